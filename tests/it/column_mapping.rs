//! Tables that map their columns: physical names and field ids in files, statistics and partition
//! values, whatever the columns are called today.

mod changes;
mod conflicts;
mod create;
mod read;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Table;

/// A field of a mapped table's schema.
fn field(name: &str, physical: &str, id: i32, data_type: Value) -> Value {
    json!({
        "name": name,
        "type": data_type,
        "nullable": true,
        "metadata": {
            "delta.columnMapping.id": id,
            "delta.columnMapping.physicalName": physical,
        },
    })
}

fn structure(fields: &[Value]) -> Value {
    json!({"type": "struct", "fields": fields})
}

fn array(element: Value) -> Value {
    json!({"type": "array", "elementType": element, "containsNull": true})
}

fn map(value: Value) -> Value {
    json!({"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": true})
}

fn meta_data(fields: &[Value], mode: &str, partition_columns: &[&str]) -> Value {
    json!({"metaData": {
        "id": "00000000-0000-0000-0000-000000000003",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": structure(fields).to_string(),
        "partitionColumns": partition_columns,
        "configuration": {
            "delta.columnMapping.mode": mode,
            "delta.columnMapping.maxColumnId": "100",
            "delta.isolationLevel": "Serializable",
        },
        "createdTime": 0,
    }})
}

/// A column of every nesting, none called as in the files, and one that old files do not have.
fn nested_fields() -> Vec<Value> {
    vec![
        field("id", "col-id", 1, json!("long")),
        field(
            "s",
            "col-s",
            2,
            structure(&[
                field("x", "col-x", 3, json!("long")),
                field("b.c", "col-bc", 4, json!("long")),
                field(
                    "inner",
                    "col-inner",
                    5,
                    structure(&[field("c", "col-c", 6, json!("string"))]),
                ),
                field("new", "col-snew", 20, json!("long")),
            ]),
        ),
        field(
            "l",
            "col-l",
            7,
            array(structure(&[field("v", "col-v", 8, json!("long"))])),
        ),
        field(
            "m",
            "col-m",
            9,
            map(structure(&[field("w", "col-w", 10, json!("long"))])),
        ),
        field("b.c", "col-d", 11, json!("long")),
        field("late", "col-late", 12, json!("string")),
        field("ls", "col-ls", 13, array(json!("string"))),
    ]
}

/// Two rows, the second all NULL but for its id; `late` and `new` of the table do not exist, while
/// the file has columns of those names that were dropped.
const ROWS: &str = r#"
    SELECT 1 AS "col-id",
           named_struct('col-bc', 4, 'new', 5, 'col-x', 3,
                        'col-inner', named_struct('col-c', 'deep')) AS "col-s",
           7 AS "late",
           [named_struct('col-v', 8), named_struct('col-v', NULL)] AS "col-l",
           MAP {'k': named_struct('col-w', 10)} AS "col-m",
           11 AS "col-d",
           ['p', NULL] AS "col-ls"
    UNION ALL
    SELECT 2, NULL, 7, NULL, NULL, NULL, NULL
    ORDER BY 1"#;

const IDS: &[(&str, i32)] = &[
    ("col-id", 1),
    ("col-s", 2),
    ("col-x", 3),
    ("col-bc", 4),
    ("col-inner", 5),
    ("col-c", 6),
    ("col-l", 7),
    ("col-v", 8),
    ("col-m", 9),
    ("col-w", 10),
    ("col-d", 11),
    ("late", 99),
    ("new", 98),
    ("col-ls", 13),
];

/// A table that another writer made: version 0 and its files, written by hand.
struct HandMade {
    dir: TempDir,
    actions: Vec<Value>,
}

impl HandMade {
    /// A table with `fields`, of reader version 2 and writer version 5.
    fn new(fields: &[Value], mode: &str, partition_columns: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        std::fs::create_dir(dir.path().join("_delta_log")).expect("log folder");
        let actions = vec![
            json!({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}),
            meta_data(fields, mode, partition_columns),
        ];
        Self { dir, actions }
    }

    /// Makes it a table of table features.
    fn with_features(mut self) -> Self {
        self.actions[0] = json!({"protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["columnMapping"],
            "writerFeatures": ["columnMapping", "appendOnly", "invariants"],
        }});
        self
    }

    /// Adds a file with the rows of `query`, whose columns are called as they are to be called in
    /// the file; `ids` are the field ids by the names of fields, at any depth.
    async fn file(self, query: &str, ids: &[(&str, i32)], stats: Value) -> Self {
        self.partition(query, ids, stats, json!({})).await
    }

    async fn partition(
        mut self,
        query: &str,
        ids: &[(&str, i32)],
        stats: Value,
        partition_values: Value,
    ) -> Self {
        let batch = with_field_ids(&rows_of(query).await, ids);
        let name = format!("part-{}.parquet", self.actions.len());
        let path = self.dir.path().join(&name);
        let mut writer =
            ArrowWriter::try_new(File::create(&path).expect("file"), batch.schema(), None)
                .expect("writer");
        writer.write(&batch).expect("rows");
        writer.close().expect("footer");
        let size = std::fs::metadata(&path).expect("metadata").len();
        let mut add = json!({
            "path": name, "partitionValues": partition_values, "size": size,
            "modificationTime": 0, "dataChange": true,
        });
        if !stats.is_null() {
            add["stats"] = json!(stats.to_string());
        }
        self.actions.push(json!({"add": add}));
        self
    }

    /// Writes version 0 and opens the table.
    async fn try_open(self) -> Result<Table, DataFusionError> {
        let lines: Vec<String> = self.actions.iter().map(Value::to_string).collect();
        let entry = self.dir.path().join(format!("_delta_log/{:020}.json", 0));
        std::fs::write(entry, lines.join("\n")).expect("log entry");
        Table::open(self.dir).await
    }

    async fn open(self) -> Table {
        self.try_open().await.expect("opens")
    }
}

async fn rows_of(query: &str) -> RecordBatch {
    let frame = SessionContext::new().sql(query).await.expect("plans");
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.expect("runs");
    concat_batches(&schema, &batches).expect("one batch")
}

fn with_field_ids(batch: &RecordBatch, ids: &[(&str, i32)]) -> RecordBatch {
    let ids: HashMap<&str, i32> = ids.iter().copied().collect();
    let schema = batch.schema();
    let fields: Vec<FieldRef> = schema
        .fields()
        .iter()
        .map(|field| field_with_ids(field, &ids))
        .collect();
    let columns = batch
        .columns()
        .iter()
        .zip(&fields)
        .map(|(column, field)| cast(column, field.data_type()).expect("cast"))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("batch")
}

fn field_with_ids(field: &FieldRef, ids: &HashMap<&str, i32>) -> FieldRef {
    let inside = |field: &FieldRef| field_with_ids(field, ids);
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        DataType::List(element) => DataType::List(inside(element)),
        DataType::Map(entries, sorted) => DataType::Map(inside(entries), *sorted),
        DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    };
    let metadata = ids
        .get(field.name().as_str())
        .map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()))
        .into_iter()
        .collect();
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(data_type)
            .with_metadata(metadata),
    )
}

/// The `add` actions of `version`, and the statistics of each as JSON.
fn adds(table: &Table, version: u64) -> Vec<(Value, Value)> {
    table
        .log_entry(version)
        .into_iter()
        .filter_map(|action| action.get("add").cloned())
        .map(|add| {
            let stats = add["stats"].as_str().expect("statistics");
            let stats = serde_json::from_str(stats).expect("json");
            (add, stats)
        })
        .collect()
}

/// Fails unless deltalake's own provider gives the same rows for `query`.
async fn same_in_deltalake(table: &Table, query: &str) {
    let ours = table.rows(query).await;
    let theirs = crate::support::rows(&table.deltalake_session().await, query).await;
    assert_eq!(ours, theirs, "{query}");
}
