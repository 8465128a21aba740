//! Files with deletion vectors: hidden rows stay hidden, whoever reads and whatever is changed.

mod changes;
mod reading;
pub mod vectors;
mod winners;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::Table;

/// Switches deletion vectors on by a new protocol.
pub async fn allow_vectors(table: &Table) {
    table
        .put_entry(&[
            json!({"protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            }}),
            json!({"commitInfo": {"timestamp": 0, "operation": "SET TBLPROPERTIES"}}),
        ])
        .await;
}

/// The `add` of the file that was added by `version`, as it stands in the log.
pub fn add_of(table: &Table, version: u64) -> Value {
    table
        .log_entry(version)
        .into_iter()
        .find_map(|action| action.get("add").cloned())
        .expect("an add")
}

/// Removes the file of `add` and adds it again with `vector`: what a DELETE of another writer does.
pub fn hide(add: &Value, vector: &Value) -> Vec<Value> {
    let mut remove = json!({
        "path": add["path"], "dataChange": true, "deletionTimestamp": 0,
        "extendedFileMetadata": true, "partitionValues": add["partitionValues"],
        "size": add["size"],
    });
    if let Some(old) = add.get("deletionVector").filter(|old| !old.is_null()) {
        remove["deletionVector"] = old.clone();
    }
    let mut again = add.clone();
    again["deletionVector"] = vector.clone();
    again["dataChange"] = json!(true);
    vec![
        json!({"commitInfo": {"timestamp": 0, "operation": "DELETE", "isBlindAppend": false}}),
        json!({"remove": remove}),
        json!({"add": again}),
    ]
}

/// Writes a file of `vectors` into `table`'s folder: its encoded relative path with `prefix`, and
/// where each vector starts.
pub fn write_file(table: &Table, prefix: &str, vectors: &[Vec<u8>]) -> (String, Vec<usize>) {
    let id = Uuid::new_v4();
    let folder = std::path::Path::new(&table.path()).join(prefix);
    std::fs::create_dir_all(&folder).expect("folder");
    let (bytes, starts) = vectors::file(vectors);
    std::fs::write(folder.join(format!("deletion_vector_{id}.bin")), bytes).expect("file");
    let encoded = format!("{prefix}{}", vectors::base85(id.as_bytes()));
    (encoded, starts)
}

/// `t (id BIGINT, x BIGINT)` with vectors allowed and files of ten rows: versions 1 to `files` add
/// them.
pub async fn numbers(files: i64) -> Table {
    let table = Table::numbers(files, 10, "").await;
    allow_vectors(&table).await;
    table
}
