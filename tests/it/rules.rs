//! The rules that a table carries: every rule, every statement that brings rows, alone and in a
//! transaction.

mod concurrent;
mod create;
mod deltalake;
mod evaluation;
mod expressions;
mod feed;
mod generated;
mod shapes;
mod statements;
mod stored;

use serde_json::{Value, json};

use crate::support::Table;

/// Puts a new version into the log whose metadata is the old one after `change`, with a protocol that has
/// all rules.
pub async fn change_metadata(table: &Table, change: impl FnOnce(&mut Value)) {
    let (newest, _) = table.log();
    let mut metadata = (0..=newest)
        .rev()
        .flat_map(|version| table.log_entry(version))
        .find_map(|action| action.get("metaData").cloned())
        .expect("metadata");
    change(&mut metadata);
    let mapped = metadata["configuration"]
        .get("delta.columnMapping.mode")
        .is_some();
    let (reader, writer) = if mapped { (2, 5) } else { (1, 4) };
    table
        .put_entry(&[
            json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}),
            json!({"metaData": metadata}),
        ])
        .await;
}

/// The field of the schema in `metadata` at `path`, changed.
pub fn change_field(metadata: &mut Value, path: &[&str], change: impl FnOnce(&mut Value)) {
    let text = metadata["schemaString"].as_str().expect("schema");
    let mut schema: Value = serde_json::from_str(text).expect("json");
    let mut place = &mut schema;
    for (level, name) in path.iter().enumerate() {
        if level > 0 {
            place = &mut place["type"];
        }
        place = place["fields"]
            .as_array_mut()
            .expect("fields")
            .iter_mut()
            .find(|field| field["name"] == *name)
            .expect("field");
    }
    change(place);
    metadata["schemaString"] = json!(schema.to_string());
}

/// A table gets a `CHECK` constraint.
pub async fn add_check(table: &Table, name: &str, text: &str) {
    change_metadata(table, |metadata| {
        metadata["configuration"][format!("delta.constraints.{name}")] = json!(text);
    })
    .await;
}

/// A column or field gets a key in its metadata.
pub async fn add_key(table: &Table, path: &[&str], key: &str, value: &str) {
    change_metadata(table, |metadata| {
        change_field(metadata, path, |field| {
            field["metadata"][key] = json!(value)
        });
    })
    .await;
}

/// A column or field gets an invariant.
pub async fn add_invariant(table: &Table, path: &[&str], text: &str) {
    let stated = json!({"expression": {"expression": text}}).to_string();
    add_key(table, path, "delta.invariants", &stated).await;
}

/// A column becomes a generated one.
pub async fn generate(table: &Table, column: &str, text: &str) {
    add_key(table, &[column], "delta.generationExpression", text).await;
}
