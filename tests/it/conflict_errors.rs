//! What a statement that lost says, and how a program finds it.

use delta_disjoint::commit::{ConflictKind, IsolationLevel, Verdict};
use delta_disjoint::{Error, ErrorKind};

use crate::support::Table;

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

#[tokio::test]
async fn conflict_names_versions_operation_file_and_read() {
    let table = Table::numbers(2, 100, SERIALIZABLE).await;
    let version = table.version().await;
    let loser = table
        .plan("DELETE FROM t WHERE id >= 150 AND x < 9000")
        .await;
    table.run("INSERT INTO t VALUES (-1, 0)").await;
    table.run("UPDATE t SET x = 0 WHERE id = 170").await;
    let error = loser.run().await.expect_err("a conflict");
    // However deep DataFusion buried it.
    let error = error.context("outer").context("outermost");

    let found = Error::find(&error).expect("ours");
    assert_eq!(found.kind(), ErrorKind::Conflict);
    assert!(found.is_retryable());

    let verdict = Verdict::find(&error).expect("a verdict");
    assert_eq!(verdict.read_version, version);
    assert_eq!(verdict.winners, Some(version + 1..=version + 2));
    assert_eq!(verdict.winners_checked(), 2);
    assert_eq!(verdict.level, IsolationLevel::Serializable);
    assert_eq!((verdict.candidates, verdict.skipped), (2, 1));

    let conflict = verdict.first_conflict().expect("a conflict");
    assert_eq!(conflict.kind, ConflictKind::ConcurrentAppend);
    assert_eq!(conflict.version, version + 2);
    assert_eq!(conflict.operation, "UPDATE");
    let added = table
        .log_entry(version + 2)
        .iter()
        .find_map(|action| action["add"]["path"].as_str().map(str::to_owned))
        .expect("an added file");
    assert_eq!(conflict.path.as_deref(), Some(added.as_str()));
    let read = conflict.read.as_deref().expect("a read");
    assert!(read.contains("150") && read.contains("9000"), "{read}");

    // The file it removes is gone, too: later in the list.
    let kinds: Vec<_> = verdict.conflicts.iter().map(|found| found.kind).collect();
    assert_eq!(
        kinds,
        [
            ConflictKind::ConcurrentAppend,
            ConflictKind::ConcurrentDeleteRead,
            ConflictKind::ConcurrentDeleteDelete
        ]
    );
    // So have the skipped file and the one that is gone.
    assert_eq!(verdict.evidence.len(), 3);
    assert!(
        verdict
            .evidence
            .iter()
            .any(|found| found.decision.is_skip() && found.version == version + 1)
    );

    let text = error.to_string();
    for part in [
        "ConcurrentAppend",
        &format!("read version {version}"),
        &format!("version {}", version + 2),
        "UPDATE",
        &added,
        "150",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(!found.message().ends_with('.'), "{text}");
}

#[tokio::test]
async fn conflict_by_a_removed_file_names_it_and_its_reader() {
    let table = Table::numbers(2, 100, SERIALIZABLE).await;
    let version = table.version().await;
    let loser = table
        .plan("INSERT INTO t SELECT id + 1000, x FROM t WHERE id < 10")
        .await;
    table.run("DELETE FROM t WHERE id < 100").await;
    let removed = table
        .log_entry(version + 1)
        .iter()
        .find_map(|action| action["remove"]["path"].as_str().map(str::to_owned))
        .expect("a removed file");
    let error = loser.run().await.expect_err("a conflict");
    let verdict = Verdict::find(&error).expect("a verdict");
    let [conflict] = verdict.conflicts.as_slice() else {
        panic!("{verdict:?}");
    };
    assert_eq!(conflict.kind, ConflictKind::ConcurrentDeleteRead);
    assert_eq!(conflict.version, version + 1);
    assert_eq!(conflict.operation, "DELETE");
    assert_eq!(conflict.path.as_deref(), Some(removed.as_str()));
    assert!(conflict.read.as_deref().expect("a read").contains("10"));
}

#[tokio::test]
async fn metadata_conflict_names_no_file() {
    let table = Table::numbers(1, 10, SERIALIZABLE).await;
    let loser = table.plan("INSERT INTO t VALUES (50, 50)").await;
    let deltalake = table.deltalake().await;
    deltalake
        .set_tbl_properties()
        .with_properties([("delta.appendOnly".to_owned(), "true".to_owned())].into())
        .await
        .expect("set");
    let error = loser.run().await.expect_err("a conflict");
    let verdict = Verdict::find(&error).expect("a verdict");
    let conflict = verdict.first_conflict().expect("a conflict");
    assert_eq!(conflict.kind, ConflictKind::MetadataChanged);
    assert_eq!((&conflict.path, &conflict.read), (&None, &None));
    assert!(conflict.reason.detail.contains("delta.appendOnly"));
}

#[tokio::test]
async fn other_failures_hold_no_verdict() {
    let table = Table::numbers(1, 10, SERIALIZABLE).await;
    let error = table.error("DELETE FROM t WHERE nonsense = 1").await;
    assert!(Error::find(&error).is_none() && Verdict::find(&error).is_none());
    let error = table
        .error("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE")
        .await;
    assert!(Verdict::find(&error).is_none(), "{error}");
}
