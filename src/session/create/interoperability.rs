//! deltalake reads what this crate creates and writes.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use datafusion::prelude::SessionContext;
use deltalake::kernel::{Action, Add};
use deltalake::logstore::CommitOrBytes;
use deltalake::{DeltaTable, DeltaTableBuilder};
use url::Url;

use super::*;
use crate::write::file_writer::FileWriters;

fn unloaded(directory: &tempfile::TempDir) -> DeltaTable {
    let url = Url::from_directory_path(directory.path()).expect("absolute path");
    DeltaTableBuilder::from_url(url)
        .expect("file URL")
        .build()
        .expect("table")
}

async fn commit(table: &DeltaTable, version: u64, adds: Vec<Add>) {
    let lines: Vec<String> = adds
        .into_iter()
        .map(|add| serde_json::to_string(&Action::Add(add)).expect("JSON"))
        .collect();
    table
        .log_store()
        .write_commit_entry(
            version,
            CommitOrBytes::LogBytes(Bytes::from(lines.join("\n"))),
            Uuid::new_v4(),
        )
        .await
        .expect("commits");
}

/// Creates a table with the columns of `rows`, writes and commits them, and gives the lines that
/// `query` prints on deltalake's own provider of the table `t`.
async fn round_trip(rows: &RecordBatch, partition_columns: &[&str], query: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut table = unloaded(&directory);
    let partition_columns: Vec<String> = partition_columns
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    let new = NewTable {
        schema: &rows.schema(),
        partition_columns: &partition_columns,
        properties: &BTreeMap::new(),
        clustering_columns: &[],
    };
    create_table(&table.log_store(), &new)
        .await
        .expect("created");
    table.load().await.expect("loads");
    let schema: SchemaRef = table.snapshot().expect("loaded").snapshot().arrow_schema();
    let mut writers = FileWriters::try_new(
        table.log_store().object_store(None),
        &schema,
        &new_metadata(&new).expect("metadata"),
    )
    .expect("writers");
    writers.write(None, rows).await.expect("writes");
    commit(&table, 1, writers.finish().await.expect("finishes")).await;

    table.load().await.expect("loads");
    assert_eq!(table.version(), Some(1));
    let context = SessionContext::new();
    table
        .update_datafusion_session(&context.state())
        .expect("registers the store");
    let provider = table.table_provider().await.expect("provider");
    context.register_table("t", provider).expect("registers");
    let batches = context
        .sql(query)
        .await
        .expect("plans")
        .collect()
        .await
        .expect("runs");
    arrow::util::pretty::pretty_format_batches(&batches)
        .expect("prints")
        .to_string()
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(1)
        .map(|line| line.trim_matches(['|', ' ']).replace("  ", ""))
        .collect()
}

#[tokio::test]
async fn odd_partition_values_are_read_back() {
    let values = [
        Some(""),
        None,
        Some("a/b"),
        Some("a b"),
        Some("ü"),
        Some("%"),
        Some("%2F"),
        Some("="),
        Some("a:b?#[]&+"),
        Some("__HIVE_DEFAULT_PARTITION"),
        Some("\u{1F33C}\\\"'"),
    ];
    let p: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
    let x: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let rows =
        RecordBatch::try_from_iter_with_nullable([("p", p, true), ("x", x, true)]).expect("batch");
    let read = round_trip(
        &rows,
        &["p"],
        "SELECT count(*), sum(x), count(DISTINCT p), count(p) FROM t",
    )
    .await;
    assert_eq!(read.len(), 1);
    let numbers: Vec<&str> = read[0].split('|').map(str::trim).collect();
    assert_eq!(numbers, ["11", "55", "9", "9"]);
    for (row, value) in values.iter().enumerate() {
        let condition = match value {
            None | Some("") => continue,
            Some(value) => format!("p = '{}'", value.replace('\'', "''")),
        };
        let read = round_trip(&rows, &["p"], &format!("SELECT x FROM t WHERE {condition}")).await;
        assert_eq!(read, [row.to_string()], "{condition}");
    }
    let read = round_trip(&rows, &["p"], "SELECT x FROM t WHERE p IS NULL ORDER BY x").await;
    assert_eq!(read, ["0", "1"]);
}

#[tokio::test]
async fn typed_partition_values_are_read_back() {
    let rows = RecordBatch::try_from_iter_with_nullable([
        (
            "d",
            Arc::new(Date32Array::from(vec![Some(-1), None])) as ArrayRef,
            true,
        ),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None]).with_timezone("UTC")),
            true,
        ),
        (
            "n",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None])),
            true,
        ),
        (
            "e",
            Arc::new(
                Decimal128Array::from(vec![Some(-105), None])
                    .with_precision_and_scale(38, 2)
                    .expect("fits"),
            ),
            true,
        ),
        ("x", Arc::new(Int64Array::from(vec![1, 2])), true),
    ])
    .expect("batch");
    let read = round_trip(
        &rows,
        &["d", "t", "n", "e"],
        "SELECT d, t, n, e, x FROM t WHERE d IS NOT NULL",
    )
    .await;
    assert_eq!(read.len(), 1);
    let cells: Vec<&str> = read[0].split('|').map(str::trim).collect();
    assert_eq!(
        cells,
        [
            "1969-12-31",
            "1969-12-31T23:59:59.999999Z",
            "1970-01-01T00:00:00.000001",
            "-1.05",
            "1"
        ]
    );
}

#[tokio::test]
async fn nested_and_wide_values_are_read_back() {
    let inner: ArrayRef = Arc::new(
        Decimal128Array::from(vec![Some(10_i128.pow(37)), None])
            .with_precision_and_scale(38, 0)
            .expect("fits"),
    );
    let parent = arrow::array::StructArray::new(
        vec![Field::new("y", DataType::Decimal128(38, 0), true)].into(),
        vec![inner],
        None,
    );
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("s", Arc::new(parent) as ArrayRef, true),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from(vec![1_999, -1_999]).with_timezone("UTC")),
            true,
        ),
    ])
    .expect("batch");
    assert_eq!(
        rows.schema().field(1).data_type(),
        &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    );
    // The maximum in the statistics is cut to milliseconds; the row must be found all the same.
    let read = round_trip(
        &rows,
        &[],
        "SELECT s['y'] FROM t WHERE t >= TIMESTAMP '1970-01-01T00:00:00.001999Z'",
    )
    .await;
    assert_eq!(read, [format!("1{}", "0".repeat(37))]);
}
