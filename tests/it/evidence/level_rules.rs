//! Isolation levels, blind appends, compactions, metadata and protocol: log entries, a question and
//! the verdict with its reason.

use delta_disjoint::commit::{ConflictKind, IsolationLevel, Verdict};
use delta_disjoint::explain::Question;
use delta_disjoint::reason::ReasonCode;
use serde_json::{Value, json};

use super::log::{Log, READ, add, added, codes, info, moved, reads, remove, removing, whole_table};

/// Name, commits of the winners, question, the first conflict, and one reason that must be given.
pub type Case = (
    &'static str,
    Vec<Vec<Value>>,
    Question,
    Option<ConflictKind>,
    ReasonCode,
);

const APPEND: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
const DELETE_READ: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteRead);
const DELETE_DELETE: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteDelete);
const METADATA: Option<ConflictKind> = Some(ConflictKind::MetadataChanged);
const PROTOCOL: Option<ConflictKind> = Some(ConflictKind::ProtocolChanged);

fn at(level: IsolationLevel, question: Question) -> Question {
    Question {
        isolation: Some(level),
        ..question
    }
}

fn blind(fields: Value) -> Vec<Value> {
    vec![info(fields), add("new", 30, 60)]
}

fn by(operation: &str) -> Value {
    info(json!({"operation": operation}))
}

fn cases() -> Vec<Case> {
    let weak = |question| at(IsolationLevel::WriteSerializable, question);
    let low = || reads(&["id < 50"]);
    let delete_low = || removing(&["id < 50"], &["a"]);
    let declared = json!({"isBlindAppend": true, "readVersion": 1});
    vec![
        (
            "append in the read",
            vec![vec![add("new", 30, 60)]],
            low(),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "append beside the read",
            vec![vec![add("new", 1000, 1099)]],
            low(),
            None,
            ReasonCode::Statistics,
        ),
        (
            "any append, whole table read",
            vec![vec![add("new", 1000, 1099)]],
            whole_table(),
            APPEND,
            ReasonCode::WholeTableRead,
        ),
        (
            "any append, files removed without a read",
            vec![vec![add("new", 1000, 1099)]],
            removing(&[], &["a"]),
            APPEND,
            ReasonCode::NoReadRecorded,
        ),
        (
            "plain append against an append",
            vec![vec![add("new", 30, 60)]],
            Question::new(READ),
            None,
            ReasonCode::NothingRead,
        ),
        (
            "plain append against a delete",
            vec![vec![remove("a")]],
            Question::new(READ),
            None,
            ReasonCode::NotRead,
        ),
        (
            "blind append, Serializable",
            vec![blind(declared.clone())],
            low(),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "blind append, WriteSerializable",
            vec![blind(declared.clone())],
            weak(low()),
            None,
            ReasonCode::BlindAppend,
        ),
        (
            "not declared blind",
            vec![blind(json!({}))],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "declared by a text",
            vec![blind(json!({"isBlindAppend": "true"}))],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "declared blind, but it removes",
            vec![vec![
                info(declared.clone()),
                add("new", 30, 60),
                remove("b"),
            ]],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "blind append that a later winner may have seen",
            vec![
                blind(declared.clone()),
                vec![
                    info(json!({"isBlindAppend": false, "readVersion": 2})),
                    add("far", 5000, 5001),
                ],
            ],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "blind append that a later winner cannot have seen",
            vec![
                blind(declared),
                vec![
                    info(json!({"isBlindAppend": false, "readVersion": 1})),
                    add("far", 5000, 5001),
                ],
            ],
            weak(low()),
            None,
            ReasonCode::BlindAppend,
        ),
        (
            "blind append of a file that another winner adds, too",
            vec![
                blind(json!({"isBlindAppend": true})),
                vec![info(json!({"readVersion": 1})), add("new", 30, 60)],
            ],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "declared blind, but it moves rows",
            vec![vec![
                info(json!({"isBlindAppend": true})),
                add("new", 30, 60),
                moved(add("moved", 2000, 2001)),
            ]],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "blind append before a winner that does not say what it read",
            vec![
                blind(json!({"isBlindAppend": true})),
                vec![add("far", 5000, 5001)],
            ],
            weak(low()),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "blind append before another one",
            vec![
                blind(json!({"isBlindAppend": true})),
                vec![
                    info(json!({"isBlindAppend": true, "readVersion": 2})),
                    add("far", 5000, 5001),
                ],
            ],
            weak(low()),
            None,
            ReasonCode::BlindAppend,
        ),
        (
            "blind append before a compaction of other files",
            vec![
                blind(json!({"isBlindAppend": true})),
                vec![moved(remove("b")), moved(add("c", 500, 999))],
            ],
            weak(low()),
            None,
            ReasonCode::BlindAppend,
        ),
        (
            "read file removed",
            vec![vec![remove("a")]],
            low(),
            DELETE_READ,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "other file removed",
            vec![vec![remove("b")]],
            low(),
            None,
            ReasonCode::NotRead,
        ),
        (
            "both remove a file",
            vec![vec![remove("a")]],
            delete_low(),
            DELETE_READ,
            ReasonCode::BothRemoved,
        ),
        (
            "both change rows of a file",
            vec![vec![by("UPDATE"), remove("a"), add("new", 0, 490)]],
            delete_low(),
            APPEND,
            ReasonCode::RowLevelChange,
        ),
        (
            "both change rows of a file, other ones",
            vec![vec![by("MERGE"), remove("a"), add("new", 100, 490)]],
            delete_low(),
            DELETE_READ,
            ReasonCode::RowLevelChange,
        ),
        (
            "a file that we change is overwritten",
            vec![vec![
                by("WRITE"),
                remove("a"),
                remove("b"),
                add("new", 0, 490),
            ]],
            delete_low(),
            APPEND,
            ReasonCode::BothRemoved,
        ),
        (
            "a file that we change is dropped",
            vec![vec![by("DELETE"), remove("a")]],
            delete_low(),
            DELETE_READ,
            ReasonCode::BothRemoved,
        ),
        (
            "a file that we change is rewritten by who knows what",
            vec![vec![remove("a"), add("new", 100, 490)]],
            delete_low(),
            DELETE_READ,
            ReasonCode::BothRemoved,
        ),
        (
            "compaction of a read file",
            vec![vec![moved(remove("a")), moved(add("new", 0, 499))]],
            low(),
            None,
            ReasonCode::NoDataChange,
        ),
        (
            "compaction of a removed file",
            vec![vec![moved(remove("a")), moved(add("new", 0, 499))]],
            delete_low(),
            DELETE_DELETE,
            ReasonCode::BothRemoved,
        ),
        (
            "compaction that loses rows",
            vec![vec![moved(remove("a")), moved(add("new", 0, 400))]],
            low(),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "compaction that only adds",
            vec![vec![moved(add("new", 30, 60))]],
            low(),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "compaction that changes data, too",
            vec![vec![
                moved(remove("a")),
                moved(add("c", 0, 499)),
                add("far", 5000, 5001),
            ]],
            low(),
            APPEND,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "compaction of a file that was not there",
            vec![vec![moved(remove("z")), moved(add("new", 30, 60))]],
            low(),
            APPEND,
            ReasonCode::BoundsOverlap,
        ),
        (
            "compaction into a file of unknown length",
            vec![vec![
                moved(remove("a")),
                moved(added("c", json!({}), r#"{"minValues":{"id":0}}"#)),
            ]],
            low(),
            None,
            ReasonCode::NoDataChange,
        ),
        (
            "a commit that only rearranges files",
            vec![vec![add("new", 30, 60)]],
            at(IsolationLevel::SnapshotIsolation, removing(&[], &["a"])),
            None,
            ReasonCode::OnlyRearranges,
        ),
        (
            "metadata",
            vec![vec![metadata(|m| {
                m["configuration"]["delta.appendOnly"] = json!("true")
            })]],
            Question::new(READ),
            METADATA,
            ReasonCode::MetadataChange,
        ),
        (
            "partition columns",
            vec![vec![metadata(|m| m["partitionColumns"] = json!(["p"]))]],
            Question::new(READ),
            METADATA,
            ReasonCode::MetadataChange,
        ),
        (
            "protocol",
            vec![vec![
                json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 5}}),
            ]],
            Question::new(READ),
            PROTOCOL,
            ReasonCode::ProtocolChange,
        ),
        (
            "unknown action",
            vec![vec![json!({"unheardOf": {}})]],
            Question::new(READ),
            PROTOCOL,
            ReasonCode::UnknownAction,
        ),
    ]
}

/// The metadata of [`Log::serializable`], changed.
fn metadata(change: fn(&mut Value)) -> Value {
    let log = Log::serializable(false);
    let path = format!("{}/_delta_log/{:020}.json", log.path(), 0);
    let text = std::fs::read_to_string(path).expect("entry");
    let mut action: Value = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("json"))
        .find(|action| action.get("metaData").is_some())
        .expect("metadata");
    change(&mut action["metaData"]);
    action
}

/// The verdicts of `cases`, checked.
pub async fn judge(cases: Vec<Case>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (name, winners, question, expected, reason) in cases {
        let mut log = Log::serializable(false);
        for winner in &winners {
            log.commit(winner);
        }
        let verdict = log.ask(&question).await;
        let kind = verdict.first_conflict().map(|conflict| conflict.kind);
        assert_eq!(kind, expected, "{name}: {}", verdict.to_text());
        assert!(
            codes(&verdict).contains(&reason),
            "{name}: {}",
            verdict.to_text()
        );
        // Either is known, or the other is all that is.
        let both = [ReasonCode::RowLevelChange, ReasonCode::BothRemoved];
        let given = codes(&verdict);
        assert!(
            !both.iter().all(|code| given.contains(code)),
            "{name}: {}",
            verdict.to_text()
        );
        verdicts.push(verdict);
    }
    verdicts
}

pub async fn verdicts() -> Vec<Verdict> {
    judge(cases()).await
}

#[tokio::test]
async fn each_rule_of_isolation_gives_its_verdict_and_its_reason() {
    verdicts().await;
}

#[tokio::test]
async fn harmless_changes_of_metadata_and_protocol_are_no_conflict() {
    for action in [
        metadata(|m| m["configuration"]["delta.enableDeletionVectors"] = json!("true")),
        metadata(|m| m["configuration"]["delta.checkpointPolicy"] = json!("v2")),
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "appendOnly", "invariants"]}}),
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint", "appendOnly", "invariants"]}}),
    ] {
        let mut log = Log::serializable(false);
        log.commit(std::slice::from_ref(&action));
        for question in [Question::new(READ), removing(&["id < 50"], &["a"])] {
            let verdict = log.ask(&question).await;
            assert!(!verdict.is_conflict(), "{action}: {verdict}");
        }
    }
}

#[tokio::test]
async fn the_level_is_the_tables_unless_it_is_given() {
    for (property, expected) in [
        (json!({}), IsolationLevel::WriteSerializable),
        (
            json!({"delta.isolationLevel": "WriteSerializable"}),
            IsolationLevel::WriteSerializable,
        ),
        (
            json!({"delta.isolationLevel": "writeSerializable"}),
            IsolationLevel::WriteSerializable,
        ),
        (
            json!({"delta.isolationLevel": "Serializable"}),
            IsolationLevel::Serializable,
        ),
        (
            json!({"delta.isolationLevel": "SnapshotIsolation"}),
            IsolationLevel::Serializable,
        ),
        (
            json!({"delta.isolationLevel": "nonsense"}),
            IsolationLevel::Serializable,
        ),
    ] {
        let log = Log::new(false, property.clone());
        let verdict = log.ask(&reads(&["id < 50"])).await;
        assert_eq!(verdict.level, expected, "{property}");
        let given = at(IsolationLevel::Serializable, reads(&["id < 50"]));
        assert_eq!(log.ask(&given).await.level, IsolationLevel::Serializable);
    }
}
