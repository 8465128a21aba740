//! Several winners: what they did together is what counts.

use delta_disjoint::commit::{ConflictKind, Verdict};
use delta_disjoint::explain::Question;
use delta_disjoint::reason::ReasonCode;
use serde_json::{Value, json};

use super::level_rules::{Case, judge};
use super::log::{Log, add, codes, moved, reads, remove, removing};

fn cases() -> Vec<Case> {
    let append = Some(ConflictKind::ConcurrentAppend);
    let delete_read = Some(ConflictKind::ConcurrentDeleteRead);
    let low = || reads(&["id < 50"]);
    let put_back = |path: &str, first, last| {
        let mut action = add(path, first, last);
        action["add"]["dataChange"] = json!(true);
        action
    };
    let with_vector = |action: Value, kind: &str| {
        let mut action = action;
        action[kind]["deletionVector"] = json!({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6});
        action
    };
    let other_content = {
        let mut action = add("a", 0, 499);
        action["add"]["size"] = json!(2);
        action
    };
    vec![
        (
            "added and removed again",
            vec![vec![add("new", 30, 60)], vec![remove("new")]],
            low(),
            None,
            ReasonCode::Undone,
        ),
        (
            "added and compacted: the original add counts",
            vec![
                vec![add("new", 30, 60)],
                vec![moved(remove("new")), moved(add("c", 30, 60))],
            ],
            low(),
            append,
            ReasonCode::BoundsOverlap,
        ),
        (
            "added beside the read and compacted",
            vec![
                vec![add("new", 1000, 1060)],
                vec![moved(remove("new")), moved(add("c", 1000, 1060))],
            ],
            low(),
            None,
            ReasonCode::NoDataChange,
        ),
        (
            "removed and put back as it was",
            vec![vec![remove("a")], vec![put_back("a", 0, 499)]],
            low(),
            None,
            ReasonCode::Undone,
        ),
        (
            "removed and put back with other content",
            vec![vec![remove("a")], vec![other_content]],
            low(),
            append,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "added again unchanged",
            vec![vec![put_back("a", 0, 499)]],
            low(),
            None,
            ReasonCode::NoDataChange,
        ),
        (
            "another deletion vector is an added and a removed file",
            vec![vec![remove("a"), with_vector(add("a", 0, 499), "add")]],
            low(),
            append,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "both change rows of one file by deletion vectors",
            vec![vec![remove("a"), with_vector(add("a", 0, 499), "add")]],
            removing(&["id < 50"], &["a"]),
            append,
            ReasonCode::RowLevelChange,
        ),
        (
            "compacted, and the output compacted again",
            vec![
                vec![moved(remove("a")), moved(add("c", 0, 499))],
                vec![moved(remove("c")), moved(add("e", 0, 499))],
            ],
            low(),
            None,
            ReasonCode::NoDataChange,
        ),
        (
            "compacted, and the output removed: the rows are gone",
            vec![
                vec![moved(remove("a")), moved(add("c", 0, 499))],
                vec![remove("c")],
            ],
            low(),
            delete_read,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "compacted, and rows of the output changed by a deletion vector",
            vec![
                vec![moved(remove("a")), moved(add("c", 0, 499))],
                vec![remove("c"), with_vector(add("c", 0, 499), "add")],
            ],
            low(),
            append,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "compacted, and one of the two outputs removed",
            vec![
                vec![
                    moved(remove("a")),
                    moved(add("c", 0, 299)),
                    moved(add("e", 300, 499)),
                ],
                vec![remove("e")],
            ],
            low(),
            delete_read,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "compacted, put back, and removed: the strictest removal counts",
            vec![
                vec![moved(remove("a")), moved(add("c", 0, 499))],
                vec![put_back("a", 0, 499)],
                vec![remove("a")],
            ],
            low(),
            delete_read,
            ReasonCode::ReadFileRemoved,
        ),
        (
            "put back under another spelling of its path",
            vec![vec![remove("a")], vec![put_back("./a", 0, 499)]],
            low(),
            None,
            ReasonCode::Undone,
        ),
        (
            "several adds of one path: one that may match is enough",
            vec![vec![add("new", 30, 60)], vec![add("new", 1000, 1060)]],
            low(),
            append,
            ReasonCode::BoundsOverlap,
        ),
        (
            "several adds of one path, all beside the read",
            vec![vec![add("new", 2000, 2060)], vec![add("new", 1000, 1060)]],
            low(),
            None,
            ReasonCode::Statistics,
        ),
        (
            "metadata changed there and back is a change",
            vec![
                vec![json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}})],
                vec![json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})],
            ],
            low(),
            Some(ConflictKind::ProtocolChanged),
            ReasonCode::ProtocolChange,
        ),
        (
            "the same file added and removed in one commit",
            vec![vec![remove("a"), add("a", 0, 499)]],
            low(),
            append,
            ReasonCode::BoundsOverlap,
        ),
    ]
}

pub async fn verdicts() -> Vec<Verdict> {
    judge(cases()).await
}

#[tokio::test]
async fn each_rule_of_the_net_effect_gives_its_verdict_and_its_reason() {
    verdicts().await;
}

/// Two reads: a file is out of the way only if both rule it out, and the evidence has a line for each.
#[tokio::test]
async fn each_read_is_tested_and_named() {
    let mut log = Log::serializable(false);
    log.commit(&[add("between", 400, 499), add("high", 890, 949)]);
    let verdict = log.ask(&reads(&["id < 50", "id > 900"])).await;
    let lines: Vec<(String, &str, bool)> = verdict
        .evidence
        .iter()
        .map(|evidence| {
            let read = evidence.read.as_deref().expect("a read");
            (evidence.path.clone(), read, evidence.decision.is_skip())
        })
        .collect();
    let expected = [
        ("between", "id < 50", true),
        ("between", "id > 900", true),
        ("high", "id < 50", true),
        ("high", "id > 900", false),
    ];
    let mut lines: Vec<_> = lines
        .iter()
        .map(|(path, read, skip)| (path.as_str(), *read, *skip))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(
        (verdict.candidates, verdict.kept(), verdict.skipped),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn a_question_may_end_before_the_newest_version() {
    let mut log = Log::serializable(false);
    log.commit(&[add("far", 1000, 1001)]);
    log.commit(&[add("near", 10, 11)]);
    for (to_version, conflict) in [
        (Some(1), false),
        (Some(2), false),
        (Some(3), true),
        (None, true),
    ] {
        let question = Question {
            to_version,
            ..reads(&["id < 50"])
        };
        let verdict = log.ask(&question).await;
        assert_eq!(verdict.is_conflict(), conflict, "{to_version:?}");
        assert_eq!(verdict.to_version(), to_version.unwrap_or(3));
    }
    let later = Question {
        read_version: 3,
        ..reads(&["id < 50"])
    };
    let verdict = log.ask(&later).await;
    assert!(!verdict.is_conflict() && codes(&verdict).is_empty());
}

/// What writers and tools leave in the log's folder makes no version.
#[tokio::test]
async fn stray_files_in_the_log_are_no_versions() {
    let mut log = Log::serializable(false);
    let newest = log.commit(&[add("near", 10, 11)]);
    let id = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5";
    let folder = std::path::PathBuf::from(log.path()).join("_delta_log");
    for stray in [
        format!("_staged_commits/00000000000000000011.{id}.json"),
        "_staged_commits/00000000000000000012.json".to_owned(),
        "00000000000000000011.crc".to_owned(),
        "00000000000000000013.json.tmp".to_owned(),
        "00000000000000000000.00000000000000000014.compacted.json".to_owned(),
    ] {
        let path = folder.join(stray);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        std::fs::write(path, "{}").expect("file");
    }
    let verdict = log.ask(&reads(&["id < 50"])).await;
    assert_eq!(
        (verdict.is_conflict(), verdict.to_version()),
        (true, newest)
    );
    let history = delta_disjoint::history::history(&log.handle(), None).await;
    let versions: Vec<u64> = history
        .expect("history")
        .iter()
        .map(|entry| entry.version)
        .collect();
    assert_eq!(versions, [2, 1, 0]);
    let later = Question {
        to_version: Some(11),
        ..reads(&["id < 50"])
    };
    let error = delta_disjoint::explain::explain(&log.handle(), &later).await;
    let text = error.expect_err("there is no version 11").to_string();
    assert!(text.contains("its newest is 2"), "{text}");
}
