use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray, UInt32Array};
use arrow::datatypes::{DataType, Field, Int64Type};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::ErrorKind;

fn table_schema(nullable_partition: bool) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("p", DataType::Utf8, nullable_partition),
        Field::new("x", DataType::Int64, false),
    ]))
}

fn metadata(partitioned: bool, properties: &[(&str, &str)]) -> TableMetadata {
    TableMetadata {
        partition_columns: if partitioned {
            vec!["p".to_owned()]
        } else {
            Vec::new()
        },
        configuration: properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..TableMetadata::default()
    }
}

fn rows(rows: &[(Option<&str>, i64)]) -> RecordBatch {
    let p: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<StringArray>());
    let x: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>());
    RecordBatch::try_from_iter_with_nullable([("p", p, true), ("x", x, true)]).expect("batch")
}

async fn stored(store: &Arc<InMemory>) -> BTreeSet<String> {
    store
        .list(None)
        .map_ok(|meta| meta.location.to_string())
        .try_collect()
        .await
        .expect("lists")
}

async fn read(store: &Arc<InMemory>, add: &Add) -> Vec<RecordBatch> {
    let bytes: Bytes = store
        .get(&Path::parse(&add.path).expect("path"))
        .await
        .expect("there")
        .bytes()
        .await
        .expect("reads");
    assert_eq!(bytes.len() as i64, add.size);
    ParquetRecordBatchReaderBuilder::try_new(bytes)
        .expect("Parquet")
        .build()
        .expect("reader")
        .collect::<Result<_, _>>()
        .expect("rows")
}

async fn values(store: &Arc<InMemory>, add: &Add) -> Vec<i64> {
    read(store, add)
        .await
        .iter()
        .flat_map(|batch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect()
}

fn writers(store: &Arc<InMemory>, schema: &SchemaRef, metadata: &TableMetadata) -> FileWriters {
    let store: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(store);
    FileWriters::try_new(store, schema, metadata).expect("writers")
}

#[tokio::test]
async fn groups_and_partitions_get_files_of_their_own() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(true), &metadata(true, &[]));
    let batch = rows(&[(Some("a/b"), 1), (None, 2), (Some(""), 3), (Some("a/b"), 4)]);
    writers.write(None, &batch).await.expect("writes");
    writers.write(Some(7), &batch).await.expect("writes");
    writers
        .write(None, &rows(&[(None, 5)]))
        .await
        .expect("writes");
    let adds = writers.finish().await.expect("finishes");

    let mut found = BTreeMap::new();
    for add in &adds {
        let directory = add.path.split('/').next().expect("segment");
        let values = values(&store, add).await;
        assert_eq!(read(&store, add).await[0].num_columns(), 1);
        let stats: serde_json::Value =
            serde_json::from_str(add.stats.as_deref().expect("stats")).expect("JSON");
        assert_eq!(stats["numRecords"], values.len());
        assert_eq!(stats["minValues"]["x"], *values.iter().min().expect("rows"));
        assert!(stats["nullCount"].get("p").is_none());
        found
            .entry((directory.to_owned(), add.partition_values["p"].clone()))
            .or_insert_with(Vec::new)
            .push(values);
    }
    for files in found.values_mut() {
        files.sort();
    }
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [
            (
                ("p=__HIVE_DEFAULT_PARTITION__".to_owned(), None),
                vec![vec![2, 3], vec![2, 3, 5]]
            ),
            (
                ("p=a%2Fb".to_owned(), Some("a/b".to_owned())),
                vec![vec![1, 4], vec![1, 4]]
            ),
        ]
    );
    assert_eq!(stored(&store).await.len(), 4);
}

#[tokio::test]
async fn file_is_closed_at_the_target_size() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(
        &store,
        &table_schema(true),
        &metadata(false, &[("delta.targetFileSize", "16kb")]),
    );
    // Values without a pattern, which are not packed much smaller.
    let numbers: Vec<(Option<&str>, i64)> = (0..40_000_i64)
        .map(|i| (None, i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)))
        .collect();
    writers.write(None, &rows(&numbers)).await.expect("writes");
    let adds = writers.finish().await.expect("finishes");
    assert!(adds.len() >= 4, "{} files", adds.len());
    let mut all = BTreeSet::new();
    for add in &adds {
        for batch in read(&store, add).await {
            all.extend(
                batch
                    .column(1)
                    .as_primitive::<Int64Type>()
                    .values()
                    .to_vec(),
            );
        }
    }
    assert_eq!(all.len(), numbers.len());
}

#[tokio::test]
async fn more_partitions_than_open_files_lose_no_row() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(true), &metadata(true, &[]));
    let names: Vec<String> = (0..2 * MAX_OPEN_FILES).map(|i| i.to_string()).collect();
    for round in 0..2 {
        let batch: Vec<(Option<&str>, i64)> = names
            .iter()
            .map(|name| (Some(name.as_str()), round))
            .collect();
        writers.write(None, &rows(&batch)).await.expect("writes");
        assert!(writers.open.len() <= MAX_OPEN_FILES);
    }
    let adds = writers.finish().await.expect("finishes");
    let mut seen = BTreeMap::new();
    for add in &adds {
        let partition = add.partition_values["p"].clone().expect("value");
        seen.entry(partition)
            .or_insert_with(BTreeSet::new)
            .extend(values(&store, add).await);
    }
    assert_eq!(seen.len(), names.len());
    assert!(seen.values().all(|rows| *rows == BTreeSet::from([0, 1])));
}

#[tokio::test]
async fn recently_written_file_stays_open() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(true), &metadata(true, &[]));
    for i in 0..2 * MAX_OPEN_FILES {
        let name = i.to_string();
        writers
            .write(None, &rows(&[(Some("busy"), 1), (Some(&name), 1)]))
            .await
            .expect("writes");
    }
    let adds = writers.finish().await.expect("finishes");
    let busy = adds
        .iter()
        .filter(|add| add.partition_values["p"].as_deref() == Some("busy"))
        .count();
    assert_eq!(busy, 1);
}

#[tokio::test]
async fn no_rows_make_no_file() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(true), &metadata(true, &[]));
    writers.write(None, &rows(&[])).await.expect("writes");
    assert!(writers.finish().await.expect("finishes").is_empty());
    assert!(stored(&store).await.is_empty());
}

#[tokio::test]
async fn aborted_writers_delete_what_they_wrote() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(true), &metadata(true, &[]));
    for i in 0..2 * MAX_OPEN_FILES {
        let name = i.to_string();
        writers
            .write(None, &rows(&[(Some(&name), 1)]))
            .await
            .expect("writes");
    }
    assert!(!stored(&store).await.is_empty());
    writers.abort().await;
    assert!(stored(&store).await.is_empty());
}

#[tokio::test]
async fn dropped_writers_delete_what_they_wrote_and_finished_ones_do_not() {
    let store = Arc::new(InMemory::new());
    let schema = table_schema(true);
    let mut finished = writers(&store, &schema, &metadata(true, &[]));
    finished
        .write(None, &rows(&[(Some("kept"), 1)]))
        .await
        .expect("writes");
    finished.finish().await.expect("finishes");

    let mut dropped = writers(&store, &schema, &metadata(true, &[]));
    for i in 0..2 * MAX_OPEN_FILES {
        let name = i.to_string();
        dropped
            .write(None, &rows(&[(Some(&name), 1)]))
            .await
            .expect("writes");
    }
    drop(dropped);
    // The clean-up runs as a task of its own.
    let mut paths = stored(&store).await;
    for _ in 0..10_000 {
        if paths.len() == 1 {
            break;
        }
        tokio::task::yield_now().await;
        paths = stored(&store).await;
    }
    assert_eq!(paths.len(), 1, "{paths:?}");
    assert!(paths.iter().all(|path| path.starts_with("p=kept/")));
}

#[tokio::test]
async fn null_where_none_may_be_is_refused_before_a_file_is_begun() {
    let store = Arc::new(InMemory::new());
    let mut writers = writers(&store, &table_schema(false), &metadata(true, &[]));
    for value in [None, Some("")] {
        let error = writers
            .write(None, &rows(&[(value, 1)]))
            .await
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("column p"), "{error}");
    }
    assert!(writers.begun.is_empty());
}

#[tokio::test]
async fn deleting_what_is_not_there_is_fine() {
    let store = InMemory::new();
    delete_files(&store, [Path::from("not/there")]).await;
}

#[tokio::test]
async fn failing_store_is_unavailable_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let root = directory.path().join("table");
    std::fs::create_dir(&root).expect("created");
    let store: Arc<dyn ObjectStore> =
        Arc::new(object_store::local::LocalFileSystem::new_with_prefix(&root).expect("store"));
    let mut writers =
        FileWriters::try_new(store, &table_schema(true), &metadata(true, &[])).expect("writers");
    // A file where the table's directory was: nothing can be written below it.
    std::fs::remove_dir(&root).expect("removed");
    std::fs::write(&root, "in the way").expect("written");
    writers
        .write(None, &rows(&[(Some("a"), 1)]))
        .await
        .expect("small files stay in memory until they are completed");
    let error = writers.finish().await.expect_err("no directory");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(std::fs::read(&root).expect("there"), b"in the way");
}

/// Whatever becomes of the rows on their way (split, cut at the target size, closed for others), the
/// notes say of each row of each file where it comes from.
#[tokio::test]
async fn origins_are_noted_in_the_order_of_the_file() {
    let store = Arc::new(InMemory::new());
    for (partitions, target_file_size) in [(1, "1"), (3, "1"), (3, "10000000"), (40, "10000000")] {
        let schema = table_schema(true);
        let metadata = metadata(true, &[("delta.targetFileSize", target_file_size)]);
        let mut writers = writers(&store, &schema, &metadata).noting_origins();
        for number in 0..4_i64 {
            // New rows are negative, others the number of their row.
            let new = number == 2;
            let of_row = |row: i64| if new { -row - 1 } else { row };
            let names: Vec<String> = (0..10_000)
                .map(|row: i64| format!("p{}", row * 7 % partitions))
                .collect();
            let batch: Vec<_> = (0..10_000)
                .map(|row| (Some(names[row as usize].as_str()), of_row(row)))
                .collect();
            let sources = RowSources::of(
                &RecordBatch::try_from_iter([
                    (
                        "__delta_disjoint_file",
                        Arc::new(UInt32Array::from(vec![number as u32; 10_000])) as ArrayRef,
                    ),
                    (
                        "__delta_disjoint_row",
                        Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef,
                    ),
                ])
                .expect("positions"),
                number == 1,
            )
            .expect("sources");
            writers
                .write_from(Some(5), &rows(&batch), (!new).then_some(&sources))
                .await
                .expect("writes");
        }
        writers.complete().await.expect("completes");
        let (adds, origins) = writers.hand_over();
        let mut files = BTreeMap::new();
        for (add, (path, origins)) in adds.iter().zip(origins) {
            assert_eq!(add.path, path);
            let mut noted = Vec::new();
            for run in origins.into_pieces().flatten() {
                for offset in 0..run.length {
                    noted.push(run.from.map(|from| (from.row + offset) as i64));
                    if let Some(from) = run.from {
                        *files.entry(from.file).or_insert(0) += 1;
                        assert_eq!(from.changed, from.file == 1);
                    }
                }
            }
            let expected: Vec<Option<i64>> = values(&store, add)
                .await
                .into_iter()
                .map(|value| (value >= 0).then_some(value))
                .collect();
            assert_eq!(noted, expected, "{partitions} partitions");
        }
        assert_eq!(
            files,
            BTreeMap::from([(0, 10_000), (1, 10_000), (3, 10_000)])
        );
    }
}

#[tokio::test]
async fn change_data_has_a_folder_and_a_column_of_its_own() {
    let store = Arc::new(InMemory::new());
    for (partitioned, folder) in [(false, "_change_data"), (true, "_change_data/p=a%2Fb")] {
        let into: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(&store);
        let metadata = metadata(partitioned, &[]);
        let mut writers =
            FileWriters::for_change_data(into, &table_schema(true), &metadata).expect("writers");
        let with_type = RecordBatch::try_from_iter_with_nullable([
            (
                "p",
                Arc::new(StringArray::from(vec!["a/b"])) as ArrayRef,
                true,
            ),
            ("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef, true),
            (
                "_change_type",
                Arc::new(StringArray::from(vec!["delete"])) as ArrayRef,
                true,
            ),
        ])
        .expect("batch");
        writers.write(None, &with_type).await.expect("writes");
        let [file] = writers
            .finish()
            .await
            .expect("finishes")
            .try_into()
            .expect("one");
        let (found, name) = file.path.rsplit_once('/').expect("folder");
        assert_eq!(found, folder);
        assert!(
            name.starts_with("cdc-") && name.ends_with(".parquet"),
            "{name}"
        );
        let batch = &read(&store, &file).await[0];
        let schema = batch.schema();
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let wanted: &[&str] = if partitioned {
            &["x", "_change_type"]
        } else {
            &["p", "x", "_change_type"]
        };
        assert_eq!(names, wanted);
    }
}
