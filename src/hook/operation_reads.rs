//! What an operation of deltalake read, as far as its own commit tells.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use serde_json::Value;

use super::predicate_text::parse;
use crate::commit::WinningCommit;
use crate::read::read_set::{Read, ReadScope, ReadSet};
use crate::read::snapshot::TableSnapshot;

/// Operations that change the table's description or clear up, and look at no row. Adding a
/// constraint is not among them: it holds for the rows that it was tried on.
const READ_NO_ROW: [&str; 9] = [
    "ADD COLUMN",
    "ADD FEATURE",
    "CHANGE COLUMN",
    "DROP CONSTRAINT",
    "SET TBLPROPERTIES",
    "UPDATE FIELD METADATA",
    "UPDATE TABLE METADATA",
    "VACUUM START",
    "VACUUM END",
];

/// What `entry`, about to be put by an operation that read `snapshot`, counts as having read.
///
/// `blind_input` is the caller's word that the rows written come from elsewhere than this table.
pub(super) fn operation_reads(
    entry: &WinningCommit,
    snapshot: &TableSnapshot,
    blind_input: bool,
) -> ReadSet {
    let read = match asked(entry, snapshot, blind_input) {
        Asked::NotRecorded => return ReadSet::default(),
        Asked::Nothing => Read {
            scope: ReadScope::Nothing,
            version: snapshot.version,
            files: Arc::default(),
        },
        Asked::Matching(condition) => Read::of_scan(snapshot, &[condition]).0,
        Asked::WholeTable => Read::whole_table(snapshot),
    };
    ReadSet::new(vec![read])
}

/// What was asked of the table.
enum Asked {
    /// No read to speak of: files are rearranged, or no row plays a part.
    NotRecorded,
    Nothing,
    Matching(Expr),
    WholeTable,
}

fn asked(entry: &WinningCommit, snapshot: &TableSnapshot, blind_input: bool) -> Asked {
    let actions = &entry.actions;
    let only_adds = actions.removes.is_empty() && actions.cdc.is_empty();
    let condition =
        |name: &str| match parameter(entry, name).and_then(|text| parse(text, &snapshot.schema)) {
            Some(condition) => Asked::Matching(condition),
            None => Asked::WholeTable,
        };
    match entry.operation() {
        // What it removes counts as read in any case.
        "OPTIMIZE" if !actions.declares_data_change() && !actions.has_other_actions() => {
            Asked::NotRecorded
        }
        operation if READ_NO_ROW.contains(&operation) && !actions.has_file_actions() => {
            Asked::NotRecorded
        }
        "DELETE" | "UPDATE" => condition("predicate"),
        // The rows may have been computed from this table. An overwrite of a table that was empty
        // looks like an append, and yet replaces whatever is there.
        "WRITE" | "STREAMING UPDATE"
            if only_adds && entry.says_append() && (blind_input || entry.is_believed_blind()) =>
        {
            Asked::Nothing
        }
        "WRITE" if blind_input => condition("predicate"),
        // The early filter that is recorded as `predicate` is narrower than the question in some
        // cases. Rows that no source row matches are asked for outside of the condition.
        "MERGE" if blind_input && !has_not_matched_by_source(entry) => condition("mergePredicate"),
        _ => Asked::WholeTable,
    }
}

fn parameter<'a>(entry: &'a WinningCommit, name: &str) -> Option<&'a str> {
    let parameters = entry.info.operation_parameters.as_ref()?;
    parameters.get(name).and_then(Value::as_str)
}

/// Whether a MERGE has clauses for rows without a match in the source; also where it is not said.
fn has_not_matched_by_source(entry: &WinningCommit) -> bool {
    parameter(entry, "notMatchedBySourcePredicates").is_none_or(|clauses| clauses.trim() != "[]")
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use serde_json::json;
    use url::Url;

    use super::*;
    use crate::read::snapshot::{TableMetadata, TableProtocol};

    fn snapshot() -> TableSnapshot {
        TableSnapshot {
            version: 3,
            schema: Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
            metadata: TableMetadata::default(),
            protocol: TableProtocol::default(),
            files: Vec::new().into(),
            spellings: Arc::default(),
        }
    }

    const ADD: &str = r#"{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":0,"dataChange":true}}"#;
    const MOVED: &str = r#"{"add":{"path":"m","partitionValues":{},"size":1,"modificationTime":0,"dataChange":false}}"#;
    const REMOVE: &str = r#"{"remove":{"path":"r","dataChange":true}}"#;
    const GONE: &str = r#"{"remove":{"path":"g","dataChange":false}}"#;
    const METADATA: &str = r#"{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}}}"#;
    const TXN: &str = r#"{"txn":{"appId":"a","version":1}}"#;

    /// The scope as text; `-` where nothing is recorded.
    fn scope(info: Value, actions: &[&str], blind_input: bool) -> String {
        let mut lines = vec![json!({ "commitInfo": info }).to_string()];
        lines.extend(actions.iter().map(|action| (*action).to_owned()));
        let root = Url::parse("memory:///").expect("url");
        let entry = WinningCommit::parse(4, lines.join("\n").as_bytes(), &root).expect("entry");
        let reads = operation_reads(&entry, &snapshot(), blind_input);
        match reads.reads() {
            [] => "-".to_owned(),
            [read] => read.scope.to_string(),
            more => panic!("{} reads", more.len()),
        }
    }

    #[test]
    fn operation_and_its_predicate_say_what_was_read() {
        let whole = "whole table";
        let operation = |name: &str| json!({ "operation": name });
        let with = |name: &str, parameters: Value| json!({ "operation": name, "operationParameters": parameters });
        let append = || with("WRITE", json!({ "mode": "Append" }));
        let overwrite = || with("WRITE", json!({ "mode": "Overwrite" }));
        let stream = |mode: &str| with("STREAMING UPDATE", json!({ "outputMode": mode }));
        let mut blind = append();
        blind["isBlindAppend"] = true.into();
        let mut blind_overwrite = overwrite();
        blind_overwrite["isBlindAppend"] = true.into();
        let id = json!({ "predicate": "id < 5" });
        let odd = json!({ "predicate": "NOT id < 5" });
        let merge = |clauses: &str| {
            json!({ "predicate": "id = 1", "mergePredicate": "id < 5",
                    "notMatchedBySourcePredicates": clauses })
        };
        // commitInfo, actions, the rows come from elsewhere, scope.
        let cases: Vec<(Value, Vec<&str>, bool, &str)> = vec![
            (with("DELETE", id.clone()), vec![REMOVE], false, "id < 5"),
            (
                with("UPDATE", id.clone()),
                vec![REMOVE, ADD],
                true,
                "id < 5",
            ),
            (with("DELETE", odd.clone()), vec![REMOVE], true, whole),
            (
                with("UPDATE", json!({ "predicate": "true" })),
                vec![REMOVE],
                true,
                whole,
            ),
            (
                with("DELETE", json!({ "predicate": 5 })),
                vec![REMOVE],
                true,
                whole,
            ),
            (operation("DELETE"), vec![REMOVE], true, whole),
            (append(), vec![ADD], false, whole),
            (append(), vec![ADD], true, "nothing"),
            (
                with("WRITE", json!({ "mode": "append" })),
                vec![ADD],
                true,
                "nothing",
            ),
            (overwrite(), vec![ADD], true, whole),
            (
                with(
                    "WRITE",
                    json!({ "mode": "Overwrite", "predicate": "id < 5" }),
                ),
                vec![ADD],
                true,
                "id < 5",
            ),
            (operation("WRITE"), vec![ADD], true, whole),
            (blind_overwrite, vec![ADD], true, whole),
            (append(), vec![ADD, TXN], true, "nothing"),
            (append(), vec![ADD, METADATA], true, "nothing"),
            (blind.clone(), vec![ADD], false, "nothing"),
            (blind.clone(), vec![ADD, METADATA], false, whole),
            (blind, vec![ADD, REMOVE], false, whole),
            (operation("WRITE"), vec![ADD, REMOVE], true, whole),
            (with("WRITE", id.clone()), vec![ADD, REMOVE], true, "id < 5"),
            (with("WRITE", id.clone()), vec![ADD, REMOVE], false, whole),
            (stream("Append"), vec![ADD], true, "nothing"),
            (stream("Complete"), vec![ADD], true, whole),
            (
                operation("STREAMING UPDATE"),
                vec![ADD, REMOVE],
                true,
                whole,
            ),
            (
                with("MERGE", merge("[]")),
                vec![ADD, REMOVE],
                true,
                "id < 5",
            ),
            (with("MERGE", merge("[]")), vec![ADD, REMOVE], false, whole),
            (with("MERGE", merge("[{}]")), vec![ADD, REMOVE], true, whole),
            (with("MERGE", id.clone()), vec![ADD, REMOVE], true, whole),
            (operation("OPTIMIZE"), vec![GONE, MOVED], false, "-"),
            (operation("OPTIMIZE"), vec![GONE, ADD], false, whole),
            (operation("OPTIMIZE"), vec![GONE, MOVED, TXN], false, whole),
            (
                operation("compaction of mine"),
                vec![GONE, MOVED],
                true,
                whole,
            ),
            (operation("ADD CONSTRAINT"), vec![METADATA], true, whole),
            (operation("ADD COLUMN"), vec![METADATA], false, "-"),
            (operation("VACUUM END"), vec![], false, "-"),
            (
                operation("SET TBLPROPERTIES"),
                vec![METADATA, ADD],
                false,
                whole,
            ),
            (operation("FSCK"), vec![REMOVE], true, whole),
            (
                operation("RESTORE"),
                vec![REMOVE, ADD, METADATA],
                true,
                whole,
            ),
            (json!({}), vec![ADD], true, whole),
        ];
        for (info, actions, blind_input, expected) in cases {
            let found = scope(info.clone(), &actions, blind_input);
            assert_eq!(found, expected, "{info} {actions:?} {blind_input}");
        }
    }
}
