//! A table that is nothing but a log: no data file lies behind it.

use std::collections::{BTreeSet, HashMap};

use delta_disjoint::commit::Verdict;
use delta_disjoint::explain::{Question, explain};
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::reason::ReasonCode;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The version that every question starts from.
pub const READ: u64 = 1;

pub struct Log {
    folder: TempDir,
    next: u64,
}

impl Log {
    /// A table with a column of each kind, partitioned by `p` if `partitioned`, with the files `a`
    /// (ids 0 to 499) and `b` (500 to 999) in version 1.
    pub fn new(partitioned: bool, properties: Value) -> Self {
        let field = |name: &str, kind: Value| json!({"name": name, "type": kind, "nullable": true, "metadata": {}});
        let mut fields: Vec<Value> = [
            ("p", "integer"),
            ("id", "long"),
            ("x", "long"),
            ("f", "double"),
            ("s", "string"),
            ("d", "decimal(38,2)"),
            ("t", "timestamp"),
            ("b", "boolean"),
            ("raw", "binary"),
            ("day", "date"),
            ("n", "decimal(10,2)"),
        ]
        .into_iter()
        .map(|(name, kind)| field(name, json!(kind)))
        .collect();
        fields.push(field(
            "st",
            json!({"type": "struct", "fields": [field("a", json!("long"))]}),
        ));
        let partitions: &[&str] = if partitioned { &["p"] } else { &[] };
        let protocol = json!({"minReaderVersion": 1, "minWriterVersion": 2});
        let mut log = Self::of(protocol, fields, partitions, properties);
        let file = |path: &str, first: u64, last: u64| {
            let values = if partitioned {
                json!({"p": "1"})
            } else {
                json!({})
            };
            added(path, values, &ids(first, last))
        };
        log.commit(&[file("a", 0, 499), file("b", 500, 999)]);
        log
    }

    /// A table without a file, in version 0.
    pub fn of(protocol: Value, fields: Vec<Value>, partitions: &[&str], properties: Value) -> Self {
        let schema = json!({"type": "struct", "fields": fields}).to_string();
        let mut log = Self {
            folder: tempfile::tempdir().expect("temporary folder"),
            next: 0,
        };
        std::fs::create_dir(log.folder.path().join("_delta_log")).expect("folder");
        log.commit(&[
            json!({"protocol": protocol}),
            json!({"metaData": {"id": "11111111-1111-1111-1111-111111111111",
                "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                "partitionColumns": partitions, "configuration": properties, "createdTime": 0}}),
        ]);
        log
    }

    pub fn serializable(partitioned: bool) -> Self {
        Self::new(partitioned, json!({"delta.isolationLevel": "Serializable"}))
    }

    /// The next version, whose writer says nothing about itself but its name.
    pub fn commit(&mut self, actions: &[Value]) -> u64 {
        let version = self.next;
        self.next += 1;
        let mut lines = Vec::new();
        if !actions
            .iter()
            .any(|action| action.get("commitInfo").is_some())
        {
            lines.push(json!({"commitInfo": {"operation": "TEST", "engineInfo": "Hand/1.0"}}));
        }
        lines.extend(actions.iter().cloned());
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let name = format!("_delta_log/{version:020}.json");
        std::fs::write(self.folder.path().join(name), lines.join("\n")).expect("entry");
        version
    }

    pub fn path(&self) -> String {
        self.folder.path().to_str().expect("utf-8").to_owned()
    }

    pub fn handle(&self) -> TableHandle {
        TableHandle::at(&self.path(), HashMap::new(), false).expect("handle")
    }

    pub async fn ask(&self, question: &Question) -> Verdict {
        let verdict = explain(&self.handle(), question).await;
        let verdict = verdict.unwrap_or_else(|error| panic!("{question:?}: {error}"));
        super::reasons::check_json(&verdict);
        verdict
    }
}

/// What a question with these reads is.
pub fn reads(predicates: &[&str]) -> Question {
    Question {
        predicates: predicates.iter().map(|text| (*text).to_owned()).collect(),
        ..Question::new(READ)
    }
}

pub fn removing(predicates: &[&str], removes: &[&str]) -> Question {
    Question {
        removes: removes.iter().map(|path| (*path).to_owned()).collect(),
        ..reads(predicates)
    }
}

pub fn whole_table() -> Question {
    Question {
        whole_table: true,
        ..Question::new(READ)
    }
}

/// The statistics of a file with these ids.
pub fn ids(first: u64, last: u64) -> String {
    json!({"numRecords": last - first + 1, "minValues": {"id": first}, "maxValues": {"id": last},
        "nullCount": {"id": 0}})
    .to_string()
}

pub fn added(path: &str, values: Value, stats: &str) -> Value {
    let stats = if stats.is_empty() {
        Value::Null
    } else {
        json!(stats)
    };
    json!({"add": {"path": path, "partitionValues": values, "size": 1, "modificationTime": 0,
        "dataChange": true, "stats": stats}})
}

pub fn add(path: &str, first: u64, last: u64) -> Value {
    added(path, json!({}), &ids(first, last))
}

pub fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "dataChange": true, "deletionTimestamp": 0}})
}

/// The same action as one of a compaction.
pub fn moved(mut action: Value) -> Value {
    for kind in ["add", "remove"] {
        if let Some(action) = action.get_mut(kind) {
            action["dataChange"] = json!(false);
        }
    }
    action
}

/// What a writer says about its commit.
pub fn info(fields: Value) -> Value {
    let mut info = json!({"operation": "WRITE", "engineInfo": "Hand/1.0"});
    for (name, value) in fields.as_object().expect("an object") {
        info[name] = value.clone();
    }
    json!({"commitInfo": info})
}

/// All codes in a verdict.
pub fn codes(verdict: &Verdict) -> BTreeSet<ReasonCode> {
    let conflicts = verdict
        .conflicts
        .iter()
        .map(|conflict| conflict.reason.code);
    let evidence = verdict
        .evidence
        .iter()
        .filter_map(|evidence| Some(evidence.decision.reason()?.code));
    conflicts.chain(evidence).collect()
}
