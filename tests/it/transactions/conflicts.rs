//! Which winners stop a transaction at COMMIT, and what is left of it then.

use delta_disjoint::commit::{ConflictKind, Verdict};

use super::orphans;
use crate::support::{Table, conflict_of, run, try_run};

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

/// Runs `statements` in a transaction, then `winner` in another session, then COMMIT.
async fn commit(table: &Table, statements: &[&str], winner: &str) -> Option<ConflictKind> {
    let other = table.other_session().await;
    table.run("BEGIN").await;
    for statement in statements {
        table.run(statement).await;
    }
    run(&other, winner).await;
    let before = table.log().0;
    let ended = try_run(&table.ctx, "COMMIT").await;
    assert_eq!(
        orphans(table),
        Vec::<String>::new(),
        "{statements:?} {winner}"
    );
    match ended {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(table.log().0, before, "nothing was committed");
            // Outside of any transaction.
            assert!(try_run(&table.ctx, "COMMIT").await.is_err());
            Some(conflict_of(&error))
        }
    }
}

#[tokio::test]
async fn winner_conflicts_if_it_meets_any_read() {
    use ConflictKind::{ConcurrentAppend, ConcurrentDeleteRead};
    let two_reads = [
        "DELETE FROM t WHERE id < 50",
        "DELETE FROM t WHERE id > 900",
    ];
    let select = [
        "SELECT * FROM t WHERE id < 50",
        "INSERT INTO t VALUES (5000, 0)",
    ];
    let zero_rows = [
        "UPDATE t SET x = 0 WHERE id BETWEEN 2000 AND 2999",
        "INSERT INTO t VALUES (5000, 0)",
    ];
    let blind = [
        "INSERT INTO t VALUES (20, 0)",
        "INSERT INTO t VALUES (21, 0)",
    ];
    let own = [
        "INSERT INTO t VALUES (6000, 0), (6001, 0)",
        "UPDATE t SET x = 1 WHERE id = 6000",
        "DELETE FROM t WHERE id = 6001",
    ];
    let insert = |from: i64, to: i64| {
        format!(
            "INSERT INTO t SELECT value, 0 FROM generate_series({from}, {})",
            to - 1
        )
    };
    let cases: [(&str, &[&str], String, Option<ConflictKind>); 14] = [
        ("between two reads", &two_reads, insert(400, 500), None),
        (
            "in the second read",
            &two_reads,
            insert(890, 950),
            Some(ConcurrentAppend),
        ),
        (
            "in the first read",
            &two_reads,
            insert(0, 1),
            Some(ConcurrentAppend),
        ),
        (
            "removes a file that was read",
            &two_reads,
            "DELETE FROM t WHERE id < 100".to_owned(),
            Some(ConcurrentDeleteRead),
        ),
        (
            "rewrites another file",
            &two_reads,
            "UPDATE t SET x = 7 WHERE id = 500".to_owned(),
            None,
        ),
        (
            "in what was only selected",
            &select,
            insert(10, 20),
            Some(ConcurrentAppend),
        ),
        ("beside what was selected", &select, insert(100, 110), None),
        (
            "beside our own insert's row",
            &select,
            insert(5000, 5001),
            None,
        ),
        (
            "where nothing was found",
            &zero_rows,
            insert(2500, 2501),
            Some(ConcurrentAppend),
        ),
        (
            "beside where nothing was found",
            &zero_rows,
            insert(3000, 3001),
            None,
        ),
        ("blind inserts, same rows", &blind, insert(20, 22), None),
        (
            "blind inserts, all gone",
            &blind,
            "TRUNCATE TABLE t".to_owned(),
            None,
        ),
        (
            "in a read of own rows",
            &own,
            insert(6000, 6001),
            Some(ConcurrentAppend),
        ),
        ("beside a read of own rows", &own, insert(7000, 7001), None),
    ];
    let template = Table::numbers(10, 100, SERIALIZABLE).await;
    for (name, statements, winner, expected) in cases {
        let table = template.copy().await;
        assert_eq!(
            commit(&table, statements, &winner).await,
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn several_winners_are_judged_together() {
    let table = Table::numbers(10, 100, SERIALIZABLE).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = -1 WHERE id < 50").await;
    run(&other, "INSERT INTO t VALUES (400, 0)").await;
    run(&other, "INSERT INTO t VALUES (10, 0)").await;
    run(&other, "DELETE FROM t WHERE id = 10 AND x = 0").await;
    table.run("SELECT * FROM t WHERE id = 700").await;
    // The row that met the read is gone again.
    table.run("COMMIT").await;
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE x = -1").await,
        ["50"]
    );
}

#[tokio::test]
async fn conflict_names_the_statement_whose_read_was_hit() {
    let table = Table::numbers(10, 100, SERIALIZABLE).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("SELECT count(*) FROM t WHERE id < 10").await;
    table.run("UPDATE t SET x = 0\n  WHERE id = 900;").await;
    table.run("INSERT INTO t VALUES (2000, 0)").await;
    run(&other, "INSERT INTO t VALUES (900, 0)").await;
    let error = table.error("COMMIT").await;
    let message = error.to_string();
    assert!(
        message.contains("read by statement 2 (UPDATE t SET x = 0 WHERE id = 900)"),
        "{message}"
    );
    assert!(message.contains("ConcurrentAppend"), "{message}");
    let verdict = Verdict::find(&error).expect("verdict");
    assert_eq!(verdict.conflict_count, 1);

    // By the file where that is what was hit.
    table.run("BEGIN").await;
    table.run("SELECT count(*) FROM t WHERE id = 500").await;
    table.run("SELECT count(*) FROM t WHERE id = 300").await;
    table.run("INSERT INTO t VALUES (2000, 0)").await;
    run(&other, "DELETE FROM t WHERE id BETWEEN 300 AND 399").await;
    let message = table.error("COMMIT").await.to_string();
    assert!(message.contains("ConcurrentDeleteRead"), "{message}");
    assert!(
        message.contains("read by statement 2 (SELECT count(*) FROM t WHERE id = 300)"),
        "{message}"
    );
}

#[tokio::test]
async fn asked_level_only_raises_that_of_the_table() {
    // (table, asked, conflict with a blind append that meets the read, level in the log)
    for (clauses, begin, conflict, level) in [
        ("", "BEGIN", false, "WriteSerializable"),
        (
            "",
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            true,
            "Serializable",
        ),
        (
            "",
            "START TRANSACTION READ WRITE",
            false,
            "WriteSerializable",
        ),
        (SERIALIZABLE, "BEGIN TRANSACTION", true, "Serializable"),
        (
            SERIALIZABLE,
            "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE",
            true,
            "Serializable",
        ),
    ] {
        let table = Table::numbers(2, 10, clauses).await;
        let other = table.other_session().await;
        table.run(begin).await;
        table.run("DELETE FROM t WHERE id < 5").await;
        run(&other, "INSERT INTO t VALUES (3, 0)").await;
        assert_eq!(
            try_run(&table.ctx, "COMMIT").await.is_err(),
            conflict,
            "{clauses} {begin}"
        );
        table.run(begin).await;
        table.run("DELETE FROM t WHERE id = 15").await;
        table.run("COMMIT").await;
        assert_eq!(table.commit_info(table.log().0)["isolationLevel"], level);
    }
}

#[tokio::test]
async fn skipping_can_be_turned_off_for_a_transaction() {
    for (skipping, expected) in [(true, None), (false, Some(ConflictKind::ConcurrentAppend))] {
        let table = Table::numbers(2, 10, SERIALIZABLE).await;
        table
            .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
            .await;
        let found = commit(
            &table,
            &["DELETE FROM t WHERE id < 5"],
            "INSERT INTO t VALUES (100, 0)",
        )
        .await;
        assert_eq!(found, expected, "{skipping}");
    }
}

#[tokio::test]
async fn transaction_without_a_change_never_conflicts() {
    let table = Table::numbers(2, 10, SERIALIZABLE).await;
    for statements in [
        &["SELECT * FROM t"][..],
        &[
            "UPDATE t SET x = 0 WHERE id = -1",
            "DELETE FROM t WHERE id = -2",
        ],
        // What came goes again, also half.
        &[
            "INSERT INTO t VALUES (50, 0), (51, 0)",
            "UPDATE t SET x = 1 WHERE id = 50",
            "DELETE FROM t WHERE id >= 50",
        ],
    ] {
        let found = commit(&table, statements, "UPDATE t SET x = x + 1").await;
        assert_eq!(found, None, "{statements:?}");
        let (version, _) = table.log();
        assert_eq!(table.commit_info(version)["operation"], "UPDATE");
    }
}

#[tokio::test]
async fn statement_that_was_only_planned_or_explained_read_nothing() {
    let table = Table::numbers(2, 10, SERIALIZABLE).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (100, 0)").await;
    let _planned = table.plan("SELECT * FROM t").await;
    table.run("EXPLAIN DELETE FROM t").await;
    run(&other, "INSERT INTO t VALUES (50, 0)").await;
    table.run("COMMIT").await;

    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (101, 0)").await;
    table.run("EXPLAIN ANALYZE SELECT * FROM t").await;
    run(&other, "INSERT INTO t VALUES (51, 0)").await;
    assert_eq!(
        conflict_of(&table.error("COMMIT").await),
        ConflictKind::ConcurrentAppend,
        "EXPLAIN ANALYZE runs the statement and shows how many rows there are"
    );
}
