//! Transactions against what several commits come to: files that are added and compacted, removed and
//! restored. The compactions and the RESTOREs are deltalake's.

use datafusion::prelude::SessionContext;
use delta_disjoint::commit::ConflictKind;

use crate::support::{Table, conflict_of, run, try_run};

const APPEND: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
const DELETE_READ: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteRead);

/// Ids 0 to 29, ten in a file.
async fn table(level: &str) -> Table {
    let clauses = format!("OPTIONS ('delta.isolationLevel' '{level}')");
    Table::numbers(3, 10, &clauses).await
}

/// Begins a transaction in a session of its own that runs `read` and adds the row -1.
async fn begin(table: &Table, read: &str) -> SessionContext {
    let ctx = table.other_session().await;
    run(&ctx, "BEGIN").await;
    run(&ctx, read).await;
    run(&ctx, "INSERT INTO t VALUES (-1, -1)").await;
    ctx
}

/// Commits, and says what the conflict was. The row -1 is there if there was none.
async fn commit(table: &Table, ctx: &SessionContext) -> Option<ConflictKind> {
    let outcome = try_run(ctx, "COMMIT").await.err();
    let added = table.rows("SELECT count(*) FROM t WHERE id = -1").await;
    assert_eq!(added, [if outcome.is_none() { "1" } else { "0" }]);
    outcome.map(|error| conflict_of(&error))
}

async fn compact(table: &Table) {
    let (_, metrics) = table.deltalake().await.optimize().await.expect("optimize");
    assert_eq!(metrics.num_files_removed, 4, "{metrics:?}");
}

async fn restore(table: &Table, version: u64) {
    table
        .deltalake()
        .await
        .restore()
        .with_version_to_restore(version)
        .await
        .expect("restore");
}

#[tokio::test]
async fn rows_added_and_then_compacted_count_where_they_were_added() {
    let in_range = "INSERT INTO t VALUES (100, 0)";
    let in_range_after_a_read = "INSERT INTO t SELECT 100, max(x) FROM t";
    let elsewhere = "INSERT INTO t SELECT 300, max(x) FROM t";
    let cases = [
        ("Serializable", in_range, APPEND),
        ("WriteSerializable", in_range, None),
        ("WriteSerializable", in_range_after_a_read, APPEND),
        // The compacted file reaches from 0 to 300, the rows that are new do not.
        ("Serializable", elsewhere, None),
        ("WriteSerializable", elsewhere, None),
    ];
    for (level, winner, expected) in cases {
        let table = table(level).await;
        let ctx = begin(&table, "SELECT * FROM t WHERE id BETWEEN 100 AND 199").await;
        table.run(winner).await;
        compact(&table).await;
        assert_eq!(commit(&table, &ctx).await, expected, "{level}: {winner}");
    }
}

#[tokio::test]
async fn file_removed_and_then_restored_is_as_it_was() {
    let cases = [
        // A file as a whole, a part of one, and new rows.
        "DELETE FROM t WHERE id < 10",
        "DELETE FROM t WHERE id < 5",
        "UPDATE t SET x = x + 1 WHERE id < 20",
        "INSERT INTO t SELECT 5, max(x) FROM t",
        "TRUNCATE TABLE t",
    ];
    for (index, winner) in cases.into_iter().enumerate() {
        let level = ["Serializable", "WriteSerializable"][index % 2];
        for restored in [true, false] {
            let table = table(level).await;
            let version = table.version().await;
            let ctx = begin(&table, "SELECT * FROM t WHERE id < 10").await;
            table.run(winner).await;
            if restored {
                restore(&table, version).await;
            }
            let outcome = commit(&table, &ctx).await;
            if restored {
                assert_eq!(outcome, None, "{level}: {winner}");
            } else {
                assert!(
                    outcome == APPEND || outcome == DELETE_READ,
                    "{level}: {winner}: {outcome:?}"
                );
            }
        }
    }
}

/// Back to an older state than the one that was read.
#[tokio::test]
async fn restore_of_an_older_version_takes_away_what_was_read() {
    let table = table("WriteSerializable").await;
    table.run("INSERT INTO t VALUES (5, 5)").await;
    let version = table.version().await;
    let ctx = begin(&table, "SELECT * FROM t WHERE id < 10").await;
    restore(&table, version - 1).await;
    assert_eq!(commit(&table, &ctx).await, DELETE_READ);
}
