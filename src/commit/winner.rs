//! A commit that won: what another writer put into the log after our read version.

use deltalake::kernel::Add;
use serde_json::{Map, Value};
use url::Url;

use super::actions::Actions;
use crate::error::Result;

/// What `engineInfo` starts with where decimal bounds in statistics are exact.
const EXACT_WRITERS: [&str; 2] = ["Apache-Spark/", "delta-disjoint/"];

/// Operations that write every file they add, unless the file has a deletion vector. Others put old
/// files back with the statistics that they had, whoever wrote those: RESTORE, CLONE, CONVERT.
const WRITING_OPERATIONS: [&str; 8] = [
    "WRITE",
    "UPDATE",
    "DELETE",
    "MERGE",
    "STREAMING UPDATE",
    "CREATE TABLE AS SELECT",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE AS SELECT",
];

/// One commit between our read version and the version we try to write.
#[derive(Debug, Clone)]
pub struct WinningCommit {
    /// Its version.
    pub version: u64,
    /// What it says about itself.
    pub info: CommitInfo,
    /// What it did.
    pub actions: Actions,
}

impl WinningCommit {
    /// Reads the log entry of `version`.
    ///
    /// # Errors
    ///
    /// As [`Actions::parse`].
    pub fn parse(version: u64, bytes: &[u8], root: &Url) -> Result<Self> {
        let (actions, info) = Actions::parse(version, bytes, root)?;
        Ok(Self {
            version,
            info,
            actions,
        })
    }

    /// The operation it says it was, for messages.
    pub fn operation(&self) -> &str {
        self.info
            .operation
            .as_deref()
            .unwrap_or("unknown operation")
    }

    /// Whether it is taken for a blind append: it says so, it does nothing but add rows, and it names
    /// no other mode. An overwrite that found nothing to remove only adds rows too, and yet it has
    /// to come after whatever it was to replace.
    pub fn is_believed_blind(&self) -> bool {
        self.info.is_blind_append == Some(true)
            && self.actions.is_pure_append()
            && self.info.mode().is_none_or(is_append)
    }

    /// Whether the operation says that it appends.
    pub fn says_append(&self) -> bool {
        self.info.mode().is_some_and(is_append)
    }

    /// Whether the statistics of `add`, one of its files, hold decimal bounds without loss: its
    /// writer is exact and wrote the file itself.
    pub fn is_exact_writer_of(&self, add: &Add) -> bool {
        let exact = self
            .info
            .engine_info
            .as_deref()
            .is_some_and(|engine| EXACT_WRITERS.iter().any(|exact| engine.starts_with(exact)));
        let writes = self
            .info
            .operation
            .as_deref()
            .is_some_and(|operation| WRITING_OPERATIONS.contains(&operation));
        exact && writes && add.deletion_vector.is_none()
    }
}

fn is_append(mode: &str) -> bool {
    mode.eq_ignore_ascii_case("append")
}

/// The `commitInfo` of a commit, as far as this crate looks at it.
///
/// The protocol leaves the content to the writer, so a field of another type than expected is the
/// same as no field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommitInfo {
    /// Name of the operation.
    pub operation: Option<String>,
    /// Parameters of the operation.
    pub operation_parameters: Option<Map<String, Value>>,
    /// Whether the writer read nothing and only added rows; only a JSON boolean counts.
    pub is_blind_append: Option<bool>,
    /// The version the writer read.
    pub read_version: Option<u64>,
    /// Unique id of the writer's transaction.
    pub txn_id: Option<String>,
    /// Name and version of the writer.
    pub engine_info: Option<String>,
    /// When it was written, in milliseconds since the epoch: the in-commit timestamp, where the table
    /// has them, else the writer's clock.
    pub timestamp: Option<i64>,
    /// The level it was checked at, as its writer spells it.
    pub isolation_level: Option<String>,
    /// What its writer counted.
    pub operation_metrics: Option<Map<String, Value>>,
}

impl CommitInfo {
    /// How rows are written: `mode` is a batch's, `outputMode` a stream's.
    fn mode(&self) -> Option<&str> {
        let parameters = self.operation_parameters.as_ref()?;
        let mode = parameters
            .get("mode")
            .or_else(|| parameters.get("outputMode"))?;
        mode.as_str()
    }

    /// Reads the JSON value of a `commitInfo` action. Never fails.
    pub fn parse(raw: &str) -> Self {
        let Ok(Value::Object(mut fields)) = serde_json::from_str(raw) else {
            return Self::default();
        };
        Self {
            is_blind_append: fields.get("isBlindAppend").and_then(Value::as_bool),
            read_version: fields.get("readVersion").and_then(Value::as_u64),
            operation: take_string(&mut fields, "operation"),
            txn_id: take_string(&mut fields, "txnId"),
            engine_info: take_string(&mut fields, "engineInfo"),
            isolation_level: take_string(&mut fields, "isolationLevel"),
            operation_parameters: take_object(&mut fields, "operationParameters"),
            operation_metrics: take_object(&mut fields, "operationMetrics"),
            timestamp: ["inCommitTimestamp", "timestamp"]
                .iter()
                .find_map(|name| fields.get(*name)?.as_i64()),
        }
    }

    /// The one `commitInfo` of a commit. If there are several, which the protocol forbids, none of
    /// their claims that would relax a check is believed.
    pub(super) fn merge(mut infos: Vec<Self>) -> Self {
        let count = infos.len();
        let mut info = infos.pop().unwrap_or_default();
        if count > 1 {
            info.is_blind_append = None;
            info.read_version = None;
            info.engine_info = None;
        }
        info
    }
}

fn take_string(fields: &mut Map<String, Value>, name: &str) -> Option<String> {
    match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn take_object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match fields.remove(name) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_info_of_any_shape_is_read() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let cases = [
            ("a list", "[1,2]".to_owned()),
            ("text", r#""hello""#.to_owned()),
            ("wrong types", r#"{"operation":7,"isBlindAppend":"true","readVersion":-1,"txnId":{},"engineInfo":[],"operationParameters":"x","operationMetrics":1,"timestamp":"now","inCommitTimestamp":1.5,"isolationLevel":3}"#.to_owned()),
            ("nulls", r#"{"operation":null,"isBlindAppend":null}"#.to_owned()),
            ("numbers for booleans", r#"{"isBlindAppend":1,"readVersion":1.5}"#.to_owned()),
            ("deep nesting", format!(r#"{{"operation":"X","operationParameters":{deep}}}"#)),
        ];
        for (name, raw) in cases {
            assert_eq!(CommitInfo::parse(&raw), CommitInfo::default(), "{name}");
        }
    }

    #[test]
    fn blind_append_is_believed_only_where_nothing_speaks_against_it() {
        let add = |change: bool| {
            format!(
                r#"{{"add":{{"path":"a","partitionValues":{{}},"size":1,"modificationTime":0,"dataChange":{change}}}}}"#
            )
        };
        let info = |blind: &str| format!(r#"{{"commitInfo":{{"isBlindAppend":{blind}}}}}"#);
        let cases = [
            ("adds", vec![info("true"), add(true)], true),
            (
                "adds and txn",
                vec![
                    info("true"),
                    add(true),
                    r#"{"txn":{"appId":"a","version":1}}"#.into(),
                ],
                true,
            ),
            ("false", vec![info("false"), add(true)], false),
            ("text", vec![info(r#""true""#), add(true)], false),
            ("missing", vec![add(true)], false),
            ("nothing added", vec![info("true")], false),
            (
                "dataChange=false",
                vec![info("true"), add(true), add(false)],
                false,
            ),
            (
                "remove",
                vec![
                    info("true"),
                    add(true),
                    r#"{"remove":{"path":"b","dataChange":true}}"#.into(),
                ],
                false,
            ),
            (
                "cdc",
                vec![
                    info("true"),
                    add(true),
                    r#"{"cdc":{"path":"b","partitionValues":{},"size":1,"dataChange":false}}"#
                        .into(),
                ],
                false,
            ),
            (
                "unknown action",
                vec![info("true"), add(true), r#"{"x":1}"#.into()],
                false,
            ),
            (
                "two commitInfo",
                vec![info("true"), info("true"), add(true)],
                false,
            ),
        ];
        let root = Url::parse("memory:///").unwrap();
        for (name, lines, expected) in cases {
            let winner = WinningCommit::parse(1, lines.join("\n").as_bytes(), &root).unwrap();
            assert_eq!(winner.is_believed_blind(), expected, "{name}");
        }
    }

    #[test]
    fn decimals_are_exact_where_an_exact_writer_wrote_the_file_itself() {
        use crate::commit::fixtures::add;
        let (spark, ours) = ("Apache-Spark/3.5 Delta-Lake/3.2", "delta-disjoint/0.1.0");
        let new: Add = add("a").into();
        let marked: Add = add("a").dv("v", 1).into();
        for (engine, operation, file, expected) in [
            (Some(spark), Some("WRITE"), &new, true),
            (Some(ours), Some("UPDATE"), &new, true),
            (Some("delta-rs:py-1.1"), Some("WRITE"), &new, false),
            (Some("x Apache-Spark/3.5"), Some("WRITE"), &new, false),
            (None, Some("WRITE"), &new, false),
            // The file and its statistics may come from any writer.
            (Some(spark), Some("RESTORE"), &new, false),
            (Some(spark), Some("CLONE"), &new, false),
            (Some(spark), None, &new, false),
            (Some(spark), Some("DELETE"), &marked, false),
        ] {
            let winner = WinningCommit {
                version: 1,
                info: CommitInfo {
                    engine_info: engine.map(str::to_owned),
                    operation: operation.map(str::to_owned),
                    ..CommitInfo::default()
                },
                actions: Actions::default(),
            };
            assert_eq!(
                winner.is_exact_writer_of(file),
                expected,
                "{engine:?} {operation:?}"
            );
        }
    }
}
