use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use deltalake::{DeltaTable, DeltaTableBuilder};
use futures::future::join_all;
use url::Url;

use super::*;

fn unloaded(directory: &tempfile::TempDir) -> DeltaTable {
    let url = Url::from_directory_path(directory.path()).expect("absolute path");
    DeltaTableBuilder::from_url(url)
        .expect("file URL")
        .build()
        .expect("table")
}

fn schema(with_ntz: bool) -> Schema {
    let mut fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8View, true),
        Field::new(
            "at",
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())),
            true,
        ),
        Field::new("price", DataType::Decimal128(38, 10), true),
        Field::new("p", DataType::Int32, true),
    ];
    if with_ntz {
        let ntz = DataType::Timestamp(TimeUnit::Nanosecond, None);
        fields.push(Field::new(
            "times",
            DataType::List(Arc::new(Field::new("item", ntz, true))),
            true,
        ));
    }
    Schema::new(fields)
}

fn properties(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn created_table_loads_with_schema_partitions_and_properties() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut table = unloaded(&directory);
    create_table(
        &table.log_store(),
        &NewTable {
            schema: &schema(false),
            partition_columns: &["p".to_owned()],
            properties: &properties(&[("delta.isolationLevel", "Serializable")]),
            clustering_columns: &[],
        },
    )
    .await
    .expect("created");

    table.load().await.expect("loads");
    assert_eq!(table.version(), Some(0));
    let snapshot = table.snapshot().expect("loaded").snapshot();
    let metadata = snapshot.metadata();
    assert_eq!(metadata.partition_columns(), &["p".to_owned()]);
    assert_eq!(
        metadata
            .configuration()
            .get("delta.isolationLevel")
            .map(String::as_str),
        Some("Serializable")
    );
    let read = snapshot.arrow_schema();
    assert_eq!(read.field(0), &Field::new("id", DataType::Int64, false));
    assert_eq!(
        read.field(2).data_type(),
        &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    );
    assert_eq!(read.field(3).data_type(), &DataType::Decimal128(38, 10));
    let protocol = snapshot.protocol();
    assert_eq!(
        (protocol.min_reader_version(), protocol.min_writer_version()),
        (1, 2)
    );
}

#[tokio::test]
async fn nested_timestamp_without_zone_brings_its_feature() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut table = unloaded(&directory);
    let properties = properties(&[("delta.appendOnly", "true")]);
    let schema = schema(true);
    let new = NewTable {
        schema: &schema,
        partition_columns: &[],
        properties: &properties,
        clustering_columns: &[],
    };
    let protocol = new_protocol(&new).expect("protocol");
    assert_eq!(
        (protocol.min_reader_version, protocol.min_writer_version),
        (3, 7)
    );
    assert_eq!(
        protocol.writer_features,
        Some(BTreeSet::from([
            "appendOnly".to_owned(),
            "timestampNtz".to_owned()
        ]))
    );
    create_table(&table.log_store(), &new)
        .await
        .expect("created");
    table.load().await.expect("loads");
    crate::read::features::check_writable(&protocol, &new_metadata(&new).expect("metadata"))
        .expect("we write what we create");
}

#[tokio::test]
async fn location_with_a_table_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let table = unloaded(&directory);
    let schema = schema(false);
    let properties = BTreeMap::new();
    let new = NewTable {
        schema: &schema,
        partition_columns: &[],
        properties: &properties,
        clustering_columns: &[],
    };
    create_table(&table.log_store(), &new)
        .await
        .expect("created");
    let error = create_table(&table.log_store(), &new)
        .await
        .expect_err("there already");
    assert_eq!(error.kind(), ErrorKind::Invalid);

    // A log whose first versions were cleaned up is a table too.
    let log = directory.path().join("_delta_log");
    std::fs::rename(
        log.join("00000000000000000000.json"),
        log.join("00000000000000000005.json"),
    )
    .expect("renamed");
    let error = create_table(&table.log_store(), &new)
        .await
        .expect_err("there already");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn of_many_creators_one_succeeds() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let table = unloaded(&directory);
    let log_store = table.log_store();
    let schema = schema(false);
    let properties = BTreeMap::new();
    let new = NewTable {
        schema: &schema,
        partition_columns: &[],
        properties: &properties,
        clustering_columns: &[],
    };
    // Straight to the put: every one of them has found the location empty.
    let results =
        join_all((0..8).map(|_| async { put_first_entry(&log_store, first_entry(&new)?).await }))
            .await;
    let losers: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!(losers.len(), 7);
    for loser in losers {
        assert_eq!(loser.kind(), ErrorKind::Conflict, "{loser}");
    }
}

#[tokio::test]
async fn refused_table_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let table = unloaded(&directory);
    let schema = Schema::new(vec![Field::new("u", DataType::UInt64, true)]);
    let error = create_table(
        &table.log_store(),
        &NewTable {
            schema: &schema,
            partition_columns: &[],
            properties: &BTreeMap::new(),
            clustering_columns: &[],
        },
    )
    .await
    .expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("there").count(),
        0
    );
}

/// Delta reads the property whatever its case.
#[test]
fn feed_that_is_on_in_any_spelling_gets_its_protocol() {
    for (value, version) in [
        ("true", 4),
        ("True", 4),
        (" TRUE ", 4),
        ("false", 2),
        ("1", 2),
    ] {
        let new = NewTable {
            schema: &schema(false),
            partition_columns: &[],
            properties: &properties(&[(ENABLE_CHANGE_DATA_FEED, value)]),
            clustering_columns: &[],
        };
        let protocol = new_protocol(&new).expect("protocol");
        assert_eq!(protocol.min_writer_version, version, "{value:?}");
        let metadata = new_metadata(&new).expect("metadata");
        crate::read::features::check_writable(&protocol, &metadata).expect("writable");
    }
}
