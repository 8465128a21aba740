//! ROLLBACK, a session that goes away, and a COMMIT that nobody waits for.

use std::time::Duration;

use super::orphans;
use crate::support::{Table, open, rows, run, try_run, wait_until};

const ALL: &str = "SELECT * FROM t ORDER BY id";
const CHANGES: [&str; 4] = [
    "INSERT INTO t VALUES (100, 1), (101, 1)",
    "UPDATE t SET x = 7 WHERE id > 2",
    "DELETE FROM t WHERE id = 100",
    "INSERT OVERWRITE t SELECT id, x + 1 FROM t",
];

#[tokio::test]
async fn rollback_leaves_nothing_behind() {
    for clauses in ["", "PARTITIONED BY (x)"] {
        let table = Table::numbers(2, 3, clauses).await;
        let before = (table.log(), table.data_files_on_disk());
        let shown = table.rows(ALL).await;
        table.run("BEGIN").await;
        for change in CHANGES {
            table.run(change).await;
        }
        assert!(table.data_files_on_disk().len() > before.1.len());
        table.run("ROLLBACK").await;
        assert_eq!((table.log(), table.data_files_on_disk()), before);
        assert_eq!(table.rows(ALL).await, shown);
        // The session goes on.
        assert_eq!(table.count("INSERT INTO t VALUES (200, 0)").await, 1);
        assert_eq!(table.log().0, before.0.0 + 1);
    }
}

#[tokio::test]
async fn session_that_goes_away_rolls_back() {
    let table = Table::numbers(2, 3, "").await;
    let before = (table.log(), table.data_files_on_disk());
    let other = table.other_session().await;
    run(&other, "BEGIN").await;
    for change in CHANGES {
        run(&other, change).await;
    }
    // A frame keeps its session, hence the transaction.
    let frame = delta_disjoint::sql(&other, ALL).await.expect("frame");
    drop(other);
    assert_eq!(frame.clone().count().await.expect("rows"), 7);
    drop(frame);
    wait_until(|| (table.log(), table.data_files_on_disk()) == before).await;
}

#[test]
fn session_that_goes_away_without_a_runtime_does_no_harm() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let (table, other) = runtime.block_on(async {
        let table = Table::numbers(1, 3, "").await;
        let other = table.other_session().await;
        run(&other, "BEGIN").await;
        run(&other, CHANGES[0]).await;
        (table, other)
    });
    drop(other);
    let shown = runtime.block_on(table.rows(ALL));
    assert_eq!(shown, ["0|0", "1|1", "2|2"]);
}

#[tokio::test]
async fn dropped_commit_happened_or_did_not() {
    // Longer and longer, so that it is dropped at several points.
    for patience in [0, 1, 2, 3, 5, 8, 20] {
        let table = Table::numbers(1, 3, "").await;
        table.run("BEGIN").await;
        table.run("INSERT INTO t VALUES (3, 3)").await;
        table.run("UPDATE t SET x = 0 WHERE id >= 2").await;
        let commit = try_run(&table.ctx, "COMMIT");
        let done = tokio::time::timeout(Duration::from_millis(patience), commit).await;
        let old = ["0|0", "1|1", "2|2"];
        let new = ["0|0", "1|1", "2|0", "3|0"];
        let shown = rows(&table.other_session().await, ALL).await;
        if done.is_ok() {
            assert_eq!(shown, new);
        } else {
            assert!(shown == old || shown == new, "{shown:?}");
        }
        // The session is in no transaction any more.
        table.run("BEGIN").await;
        table.run("ROLLBACK").await;
    }
}

#[tokio::test]
async fn dropped_statement_leaves_the_transaction_as_it_was() {
    let table = Table::numbers(3, 100, "").await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (1000, 0)").await;
    for patience in [0, 1, 2, 4, 8] {
        let statement = try_run(&table.ctx, "UPDATE t SET x = -1");
        let done = tokio::time::timeout(Duration::from_millis(patience), statement).await;
        if done.is_ok() {
            break;
        }
        assert_eq!(
            table.rows("SELECT count(*) FROM t WHERE x = -1").await,
            ["0"]
        );
    }
    table.run("DELETE FROM t WHERE id = 1000").await;
    table.run("INSERT INTO t VALUES (1001, 0)").await;
    table.run("COMMIT").await;
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["301"]);
    wait_until(|| orphans(&table).is_empty()).await;
}

#[tokio::test]
async fn table_made_anew_meanwhile_is_left_alone() {
    let table = Table::numbers(3, 2, "").await;
    table.run("BEGIN").await;
    table.run("DELETE FROM t WHERE id = 0").await;
    let folder = table.path();
    for entry in std::fs::read_dir(&folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).expect("removed");
        } else {
            std::fs::remove_file(path).expect("removed");
        }
    }
    let other = delta_disjoint::session();
    run(
        &other,
        &format!(
            "CREATE EXTERNAL TABLE n (id BIGINT, x BIGINT) STORED AS DELTA LOCATION '{folder}'"
        ),
    )
    .await;
    for id in 0..5 {
        run(&other, &format!("INSERT INTO n VALUES ({id}, 0)")).await;
    }
    let before = table.log();
    let error = table.error("COMMIT").await;
    assert!(error.to_string().contains("replaced by another"), "{error}");
    assert_eq!(table.log(), before);
    let fresh = delta_disjoint::session();
    open(&fresh, "n", &folder).await;
    assert_eq!(rows(&fresh, "SELECT count(*) FROM n").await, ["5"]);
}
