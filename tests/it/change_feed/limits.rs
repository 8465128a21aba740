//! Tables whose feed cannot be written, and tables that are made with one.

use serde_json::{Value, json};

use super::{FEED, Shape, change_files, check_files, expected};
use crate::change_feed::reader::{ours, theirs};
use crate::support::{Table, kind_of};
use delta_disjoint::ErrorKind;

/// The protocol of the first version.
fn protocol(table: &Table) -> Value {
    table.log_entry(0)[1]["protocol"].clone()
}

#[tokio::test]
async fn new_table_with_a_feed_gets_the_least_protocol() {
    let feed = "'delta.enableChangeDataFeed' 'true'";
    for (columns, options, wanted) in [
        (
            "id BIGINT",
            String::new(),
            json!({"minReaderVersion": 1, "minWriterVersion": 4}),
        ),
        (
            "id BIGINT",
            ", 'delta.columnMapping.mode' 'name'".to_owned(),
            json!({"minReaderVersion": 2, "minWriterVersion": 5}),
        ),
        (
            "id BIGINT, at TIMESTAMP",
            ", 'delta.appendOnly' 'false'".to_owned(),
            json!({
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"],
                "writerFeatures": ["appendOnly", "changeDataFeed", "timestampNtz"],
            }),
        ),
        (
            "id BIGINT",
            ", 'delta.clusteringColumns' 'id'".to_owned(),
            json!({
                "minReaderVersion": 1, "minWriterVersion": 7,
                "writerFeatures": ["changeDataFeed", "clustering", "domainMetadata"],
            }),
        ),
    ] {
        let clauses = format!("OPTIONS ({feed}{options})");
        let table = Table::create(columns, &clauses, &[]).await;
        assert_eq!(protocol(&table), wanted, "{columns} {clauses}");
        let metadata = &table.log_entry(0)[2]["metaData"];
        assert_eq!(
            metadata["configuration"]["delta.enableChangeDataFeed"],
            json!("true")
        );
    }
    let off = Table::create(
        "id BIGINT",
        "OPTIONS ('delta.enableChangeDataFeed' 'false')",
        &[],
    )
    .await;
    assert_eq!(
        protocol(&off),
        json!({"minReaderVersion": 1, "minWriterVersion": 2})
    );
}

#[tokio::test]
async fn columns_with_names_of_the_feed_are_refused() {
    for column in ["_change_type", "_commit_version", "_COMMIT_TIMESTAMP"] {
        let error = create_error(&format!("id BIGINT, \"{column}\" BIGINT"), FEED).await;
        assert!(error.contains(column), "{error}");

        // Another writer has turned the feed on.
        let table = Table::create(
            &format!("id BIGINT, \"{column}\" BIGINT"),
            "OPTIONS ('delta.enableChangeDataFeed' 'false')",
            &["VALUES (1, 2)"],
        )
        .await;
        turn_on(
            &table,
            Some(json!({"minReaderVersion": 1, "minWriterVersion": 4})),
        )
        .await;
        assert_eq!(table.rows("SELECT * FROM t").await, ["1|2"]);
        for text in [
            "INSERT INTO t VALUES (2, 3)",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
        ] {
            let error = table.refused(text).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported));
            assert!(error.to_string().contains(column), "{error}");
        }
    }
}

#[tokio::test]
async fn feed_without_its_feature_is_refused() {
    for protocol in [
        None,
        Some(json!({"minReaderVersion": 1, "minWriterVersion": 3})),
        Some(json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []})),
    ] {
        let table = Table::numbers(1, 2, "").await;
        turn_on(&table, protocol).await;
        let error = table.refused("DELETE FROM t WHERE id = 1").await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported));
        let text = error.to_string();
        assert!(
            text.contains("changeDataFeed") && text.contains("delta.enableChangeDataFeed"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn every_protocol_with_the_feature_is_written() {
    for protocol in [
        json!({"minReaderVersion": 1, "minWriterVersion": 4}),
        json!({"minReaderVersion": 1, "minWriterVersion": 6}),
        json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["changeDataFeed"]}),
    ] {
        let table = Table::numbers(1, 2, "").await;
        turn_on(&table, Some(protocol)).await;
        table.run("DELETE FROM t WHERE id = 1").await;
        assert_eq!(ours(&table, 3), expected(3, &[("delete", "1|1")]));
        assert_eq!(theirs(&table, 3).await, expected(3, &[("delete", "1|1")]));
    }
}

/// Types as they are, partitions of several types, values that paths have to escape.
#[tokio::test]
async fn change_files_have_the_types_of_the_table() {
    let table = Table::create(
        "id BIGINT, d DECIMAL(20, 3), f DOUBLE, b BOOLEAN, day DATE, z TIMESTAMP WITH TIME ZONE, \
         s VARCHAR, n INT",
        &format!("PARTITIONED BY (day, n) {FEED}"),
        &[
            "VALUES (1, 1.125, 'NaN'::DOUBLE, true, '2020-01-01', '2020-01-01T00:00:00.123456Z', \
             'ü|x', -3), \
             (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        ],
    )
    .await;
    let found = table.log().0;
    table
        .run("UPDATE t SET d = coalesce(d, 0) + 1, n = coalesce(n, 5)")
        .await;
    let changes = expected(
        found + 1,
        &[
            (
                "update_preimage",
                "1|1.125|NaN|true|2020-01-01|2020-01-01T00:00:00.123456Z|ü|x|-3",
            ),
            (
                "update_postimage",
                "1|2.125|NaN|true|2020-01-01|2020-01-01T00:00:00.123456Z|ü|x|-3",
            ),
            ("update_preimage", "2|NULL|NULL|NULL|NULL|NULL|NULL|NULL"),
            ("update_postimage", "2|1.000|NULL|NULL|NULL|NULL|NULL|5"),
        ],
    );
    assert_eq!(ours(&table, found + 1), changes);
    assert_eq!(theirs(&table, found + 1).await, changes);
    check_files(&table);
}

#[tokio::test]
async fn nested_columns_are_in_the_feed_under_mapped_names() {
    for mode in ["name", "id"] {
        let table = Table::create(
            "id BIGINT, s STRUCT<a BIGINT, b VARCHAR>, l BIGINT[]",
            &format!(
                "OPTIONS ('delta.enableChangeDataFeed' 'true', 'delta.columnMapping.mode' '{mode}')"
            ),
            &[
                "SELECT 1 AS id, named_struct('a', 1, 'b', 'x') AS s, [1, 2] AS l \
               UNION ALL SELECT 2, NULL, NULL",
            ],
        )
        .await;
        let found = table.log().0;
        table.run("UPDATE t SET id = id + 10").await;
        let mut kinds: Vec<String> = ours(&table, found + 1)
            .into_iter()
            .map(|(_, kind, row)| format!("{kind} {}", row.split('|').next().expect("id")))
            .collect();
        kinds.sort();
        assert_eq!(
            kinds,
            [
                "update_postimage 11",
                "update_postimage 12",
                "update_preimage 1",
                "update_preimage 2",
            ]
        );
    }
}

#[tokio::test]
async fn checkpoint_keeps_the_feed_readable() {
    let table = Table::create(
        "id BIGINT, x BIGINT, p VARCHAR",
        "OPTIONS ('delta.enableChangeDataFeed' 'true', 'delta.checkpointInterval' '2')",
        &["VALUES (1, 1, 'a'), (2, 2, 'b')"],
    )
    .await;
    for _ in 0..3 {
        table.run("UPDATE t SET x = x + 1 WHERE id = 1").await;
    }
    let mut all = Vec::new();
    for version in 2..5_u64 {
        assert_eq!(change_files(&table, version).len(), 1);
        let before = format!("1|{}|a", version - 1);
        let after = format!("1|{version}|a");
        all.extend(expected(
            version,
            &[("update_preimage", &before), ("update_postimage", &after)],
        ));
    }
    let reopened = Table::open(table.into_folder()).await.expect("opens");
    assert_eq!(ours(&reopened, 2), all);
    assert_eq!(theirs(&reopened, 2).await, all);
    assert_eq!(
        super::changes_since(&reopened, Shape::Plain, 4).await,
        Vec::new()
    );
}

async fn turn_on(table: &Table, protocol: Option<Value>) {
    let mut metadata = table.log_entry(0)[2]["metaData"].clone();
    metadata["configuration"]["delta.enableChangeDataFeed"] = json!("true");
    let protocol = protocol.map(|protocol| json!({"protocol": protocol}));
    let actions: Vec<Value> = protocol
        .into_iter()
        .chain([json!({"metaData": metadata})])
        .collect();
    table.put_entry(&actions).await;
}

async fn create_error(columns: &str, clauses: &str) -> String {
    let folder = tempfile::tempdir().expect("folder");
    let location = folder.path().display();
    let text = format!(
        "CREATE EXTERNAL TABLE t ({columns}) STORED AS DELTA LOCATION '{location}' {clauses}"
    );
    let error = crate::support::try_run(&delta_disjoint::session(), &text)
        .await
        .expect_err("refused");
    assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
    error.to_string()
}
