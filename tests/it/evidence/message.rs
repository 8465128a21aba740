//! What can be learned from an error's text alone.

use delta_disjoint::Error;
use delta_disjoint::commit::{Advice, ConflictKind, Verdict};
use delta_disjoint::reason::ReasonCode;
use serde_json::json;

use crate::support::Table;

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

/// The text between two others.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

#[tokio::test]
async fn the_text_names_the_winning_commit_and_the_column_to_cluster_by() {
    // Loser, winner, its operation, column.
    let cases = [
        (
            "DELETE FROM t WHERE id >= 150 AND x < 9000",
            "UPDATE t SET x = 0 WHERE id = 120",
            "UPDATE",
            Some("id"),
        ),
        (
            "UPDATE t SET x = 0 WHERE x BETWEEN 10 AND 20",
            "DELETE FROM t WHERE id = 90",
            "DELETE",
            Some("x"),
        ),
        (
            "INSERT INTO t SELECT id + 1000, x FROM t WHERE id = 7",
            "DELETE FROM t WHERE id < 100",
            "DELETE",
            Some("id"),
        ),
        (
            "DELETE FROM t WHERE id < 100",
            "INSERT INTO t VALUES (50, 0), (5000, 0)",
            "WRITE",
            Some("id"),
        ),
        // All rows of the new file are asked for: no column would have kept them apart.
        (
            "DELETE FROM t WHERE id < 100",
            "INSERT INTO t VALUES (50, 0), (51, 0)",
            "WRITE",
            None,
        ),
        (
            "DELETE FROM t",
            "INSERT INTO t VALUES (50, 0)",
            "WRITE",
            None,
        ),
    ];
    for (loser, winner, operation, column) in cases {
        let table = Table::numbers(2, 100, SERIALIZABLE).await;
        let planned = table.plan(loser).await;
        table.run(winner).await;
        let version = table.version().await;
        let error = planned.run().await.expect_err(loser);
        let text = error.to_string();

        assert_eq!(
            between(&text, "with version ", " ("),
            Some(version.to_string().as_str()),
            "{text}"
        );
        let by = format!("({operation} by delta-disjoint/");
        assert!(text.contains(&by), "{text}");
        assert_eq!(
            between(&text, "cluster or partition the table by ", ","),
            column,
            "{text}"
        );
        let again = format!("run it again on version {version}");
        assert!(text.contains(&again), "{text}");
        assert!(!text.contains('\n'), "{text}");
        assert!(text.len() < 600, "{} bytes: {text}", text.len());

        let verdict = Verdict::find(&error).expect("a verdict");
        let advised = verdict.advice.iter().find_map(Advice::column);
        assert_eq!(advised, column, "{text}");
        super::reasons::check_json(verdict);
    }
}

#[tokio::test]
async fn the_text_says_which_column_lacks_statistics_and_why() {
    let columns: Vec<String> = (1..=40).map(|n| format!("c{n} BIGINT")).collect();
    let values: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
    let insert = format!("VALUES ({})", values.join(", "));
    for (options, because) in [
        (
            "'delta.isolationLevel' 'Serializable'",
            "it is the 33rd; delta.dataSkippingNumIndexedCols is 32",
        ),
        (
            "'delta.isolationLevel' 'Serializable', 'delta.dataSkippingNumIndexedCols' '2'",
            "it is the 33rd; delta.dataSkippingNumIndexedCols is 2",
        ),
        (
            "'delta.isolationLevel' 'Serializable', 'delta.dataSkippingStatsColumns' 'c1'",
            "delta.dataSkippingStatsColumns says for which columns they are",
        ),
    ] {
        let table = Table::create(
            &columns.join(", "),
            &format!("OPTIONS ({options})"),
            &[&insert],
        )
        .await;
        let planned = table.plan("DELETE FROM t WHERE c33 = 33").await;
        table.run(&format!("INSERT INTO t {insert}")).await;
        let text = planned.run().await.expect_err("a conflict").to_string();
        let expected = format!("collect statistics for column c33 ({because})");
        assert!(text.contains(&expected), "no {expected} in {text}");
    }
}

#[tokio::test]
async fn an_append_that_is_not_declared_is_named() {
    let table = Table::numbers(1, 100, "").await;
    let planned = table.plan("DELETE FROM t WHERE id < 50").await;
    let version = table
        .put_entry(&[
            json!({"commitInfo": {"operation": "WRITE", "engineInfo": "Hand/1.0"}}),
            json!({"add": {"path": "new.parquet", "partitionValues": {}, "size": 1,
                "modificationTime": 0, "dataChange": true,
                "stats": r#"{"numRecords":2,"minValues":{"id":40},"maxValues":{"id":44}}"#}}),
        ])
        .await;
    let error = planned.run().await.expect_err("a conflict");
    let verdict = Verdict::find(&error).expect("a verdict");
    let advice = Advice::DeclareAppend {
        version: Some(version),
    };
    assert!(verdict.advice.contains(&advice), "{error}");
    let text = error.to_string();
    assert!(text.contains("declare the append"), "{text}");
    assert!(text.contains("WRITE by Hand/1.0"), "{text}");
}

#[tokio::test]
async fn a_lost_batch_is_not_written_twice() {
    let table = Table::numbers(1, 100, SERIALIZABLE).await;
    let mut verdict = {
        let planned = table.plan("DELETE FROM t WHERE id < 50").await;
        table.run("INSERT INTO t VALUES (1, 1)").await;
        let error = planned.run().await.expect_err("a conflict");
        Verdict::find(&error).expect("a verdict").clone()
    };
    // The message is the verdict's, whoever makes the error.
    let text = Error::from(verdict.clone()).to_string();
    assert!(text.contains("run it again"), "{text}");
    verdict.advice = vec![Advice::LookUpBatch];
    let text = Error::from(verdict).to_string();
    assert!(!text.contains("run it again"), "{text}");
    assert!(text.contains("already"), "{text}");
}

/// The statement that commits does not pay for evidence; `explain` tells the same afterwards.
#[tokio::test]
async fn files_beside_the_read_are_skipped_with_their_numbers() {
    let table = Table::numbers(1, 100, SERIALIZABLE).await;
    let version = table.version().await;
    let planned = table.plan("DELETE FROM t WHERE id < 50").await;
    table.run("INSERT INTO t VALUES (1000, 1), (1001, 1)").await;
    planned.count().await;
    let question = delta_disjoint::explain::Question {
        predicates: vec!["id < 50".to_owned()],
        to_version: Some(version + 1),
        ..delta_disjoint::explain::Question::new(version)
    };
    let verdict = delta_disjoint::explain::explain(&table.handle(), &question)
        .await
        .expect("a verdict");
    let reason = verdict.evidence[0].decision.reason().expect("a reason");
    assert_eq!(reason.detail, "id < 50 needs min < 50, file has min 1000");
}

/// Both touch one file: what is said of it holds, whatever the winner was.
#[tokio::test]
async fn a_file_that_both_touch_is_told_apart_by_what_the_winner_did_to_it() {
    use ReasonCode::{BothRemoved, RowLevelChange};
    let cases = [
        ("UPDATE t SET x = 9 WHERE id = 2", RowLevelChange),
        ("DELETE FROM t WHERE id = 2", RowLevelChange),
        (
            "MERGE INTO t USING (VALUES (2)) AS s (id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET x = 9",
            RowLevelChange,
        ),
        ("DELETE FROM t WHERE p = 'a'", BothRemoved),
        ("INSERT OVERWRITE t VALUES (2, 0, 'a')", BothRemoved),
        ("TRUNCATE TABLE t", BothRemoved),
        // All rows of the file are somewhere else: it is not told from a file that is dropped.
        ("UPDATE t SET p = 'c' WHERE p = 'a'", BothRemoved),
    ];
    for (winner, expected) in cases {
        let start = Table::create(
            "id BIGINT, x BIGINT, p VARCHAR",
            "PARTITIONED BY (p) OPTIONS ('delta.isolationLevel' 'Serializable')",
            &["VALUES (1, 0, 'a'), (2, 0, 'a')", "VALUES (11, 0, 'b')"],
        );
        let table = start.await;
        let planned = table.plan("DELETE FROM t WHERE id = 1").await;
        table.run(winner).await;
        let error = planned.run().await.expect_err(winner);
        let verdict = Verdict::find(&error).expect("a verdict");
        let kinds = [
            ConflictKind::ConcurrentDeleteRead,
            ConflictKind::ConcurrentDeleteDelete,
        ];
        for kind in kinds {
            let conflict = verdict.conflicts.iter().find(|found| found.kind == kind);
            let code = conflict.expect("a conflict").reason.code;
            assert_eq!(code, expected, "{winner}: {}", verdict.to_text());
        }
    }
}
