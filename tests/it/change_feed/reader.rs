//! Readers of the feed: one of our own, which follows the protocol and knows mapped columns and
//! hidden rows, and deltalake's.

use std::fs::File;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::support::Table;

/// Version, type and row, as text.
pub type Change = (u64, String, String);

/// Source: Delta protocol, "Change Data Files" and "Reader Requirements": the change files of a
/// version if it has any, else what its added and removed files say.
pub fn ours(table: &Table, from: u64) -> Vec<Change> {
    let newest = table.log().0;
    let metadata = (0..=newest)
        .flat_map(|version| table.log_entry(version))
        .filter_map(|action| action.get("metaData").cloned())
        .next_back()
        .expect("metadata");
    let mut changes = Vec::new();
    for version in from..=newest {
        let entry = table.log_entry(version);
        let of = |name: &str| -> Vec<Value> {
            let actions = entry.iter().filter_map(|action| action.get(name));
            actions.cloned().collect()
        };
        let cdc = of("cdc");
        let derived = cdc.is_empty();
        for file in &cdc {
            for (kind, row) in rows(table, &metadata, file, true) {
                changes.push((version, kind, row));
            }
        }
        for (name, kind) in [("add", "insert"), ("remove", "delete")] {
            for file in of(name) {
                if derived && file["dataChange"] == Value::Bool(true) {
                    for (_, row) in rows(table, &metadata, &file, false) {
                        changes.push((version, kind.to_owned(), row));
                    }
                }
            }
        }
    }
    changes.sort();
    changes
}

/// What deltalake reads.
pub async fn theirs(table: &Table, from: u64) -> Vec<Change> {
    if table.log().0 < from {
        return Vec::new();
    }
    let delta = table.deltalake().await;
    let ctx = SessionContext::new();
    delta
        .update_datafusion_session(&ctx.state())
        .expect("registers the store");
    let schema = delta.snapshot().expect("snapshot").schema();
    let columns: Vec<String> = schema.fields().map(|field| field.name().clone()).collect();
    let plan = delta
        .scan_cdf()
        .with_starting_version(from)
        .build(&ctx.state(), None)
        .await
        .expect("deltalake plans the feed");
    let batches = collect(plan, ctx.task_ctx())
        .await
        .expect("deltalake reads the feed");
    let mut changes = Vec::new();
    for batch in &batches {
        let column = |name: &str| batch.column_by_name(name).cloned().expect(name);
        let [versions, kinds] =
            ["_commit_version", "_change_type"].map(|name| texts(&column(name)));
        let columns: Vec<Vec<String>> = columns.iter().map(|name| texts(&column(name))).collect();
        for row in 0..batch.num_rows() {
            let values: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
            let version = versions[row].parse().expect("version");
            changes.push((version, kinds[row].clone(), values.join("|")));
        }
    }
    changes.sort();
    changes
}

/// Percent-decoded.
pub fn decoded(path: &str) -> String {
    percent_encoding::percent_decode_str(path)
        .decode_utf8()
        .expect("utf-8")
        .into_owned()
}

/// Type and values of the rows that are not hidden.
fn rows(table: &Table, metadata: &Value, file: &Value, is_change: bool) -> Vec<(String, String)> {
    let path = decoded(file["path"].as_str().expect("path"));
    let data = File::open(format!("{}/{path}", table.path())).expect("file");
    let batches = ParquetRecordBatchReaderBuilder::try_new(data)
        .expect("parquet")
        .build()
        .expect("reader");
    let hidden = file.get("deletionVector").map_or(0, |vector| {
        // The tests hide the first row.
        assert_eq!(vector["cardinality"], 1);
        1
    });
    let mut found = Vec::new();
    for batch in batches {
        let batch = batch.expect("rows");
        let columns = columns(metadata, file, &batch);
        let kinds = is_change.then(|| texts(batch.column_by_name("_change_type").expect("type")));
        let others = batch.num_columns() - usize::from(is_change);
        let partitions = file["partitionValues"].as_object().expect("values").len();
        assert_eq!(others + partitions, columns.len(), "columns of {path}");
        for row in 0..batch.num_rows() {
            let values: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
            let kind = kinds.as_ref().map_or("", |kinds| &kinds[row]);
            found.push((kind.to_owned(), values.join("|")));
        }
    }
    found.split_off(hidden)
}

/// The table's columns as text.
fn columns(metadata: &Value, file: &Value, batch: &RecordBatch) -> Vec<Vec<String>> {
    let schema: Value =
        serde_json::from_str(metadata["schemaString"].as_str().expect("schema")).expect("json");
    let partitions = metadata["partitionColumns"].as_array().expect("columns");
    let fields = schema["fields"].as_array().expect("fields").iter();
    fields
        .map(|field| {
            let physical = field["metadata"]
                .get("delta.columnMapping.physicalName")
                .unwrap_or(&field["name"])
                .as_str()
                .expect("name");
            if partitions.contains(&field["name"]) {
                let value = &file["partitionValues"][physical];
                let value = value.as_str().unwrap_or("NULL").to_owned();
                return vec![value; batch.num_rows()];
            }
            let index = batch.schema().index_of(physical).expect("column");
            let id = &field["metadata"]["delta.columnMapping.id"];
            if !id.is_null() {
                let schema = batch.schema();
                let found = &schema.field(index).metadata()["PARQUET:field_id"];
                assert_eq!(*found, id.to_string(), "field id of {physical}");
            }
            texts(batch.column(index))
        })
        .collect()
}

fn texts(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let texts = ArrayFormatter::try_new(column.as_ref(), &options).expect("format");
    (0..column.len())
        .map(|row| texts.value(row).to_string())
        .collect()
}
