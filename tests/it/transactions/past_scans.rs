//! Reads of the target by another way than its own scans: what they may have seen is checked, or
//! the change is refused.

use delta_disjoint::ErrorKind;
use delta_disjoint::commit::ConflictKind;

use crate::support::{Table, conflict_of, kind_of, open, plan, run, try_run};

/// The folder of `table` as Parquet files.
async fn with_raw(table: &Table) {
    let path = table.path();
    let text = format!("CREATE EXTERNAL TABLE raw STORED AS PARQUET LOCATION '{path}/'");
    run(&table.ctx, &text).await;
}

#[tokio::test]
async fn table_read_past_its_scans_before_it_is_pinned_cannot_be_changed() {
    let table = Table::numbers(1, 3, "").await;
    with_raw(&table).await;
    let deltalake = table.deltalake().await;
    deltalake
        .update_datafusion_session(&table.ctx.state())
        .expect("registers the store");
    let provider = deltalake.table_provider().await.expect("provider");
    table
        .ctx
        .register_table("unknown", provider)
        .expect("registered");
    let other = table.other_session().await;
    for source in ["raw", "unknown"] {
        table.run("BEGIN").await;
        table.run(&format!("SELECT sum(x) FROM {source}")).await;
        run(&other, "UPDATE t SET x = x + 1 WHERE id = 2").await;
        for statement in [
            "UPDATE t SET x = 90 WHERE id = 0",
            "INSERT INTO t VALUES (9, 9)",
            "DELETE FROM t WHERE id = 0",
        ] {
            let error = table.error(statement).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
            assert!(error.to_string().contains("its own name first"), "{error}");
        }
        // Reading on is fine.
        table.run("SELECT sum(x) FROM t").await;
        table.run("COMMIT").await;
    }
}

#[tokio::test]
async fn table_read_past_its_scans_once_it_is_pinned_is_read_as_a_whole() {
    let table = Table::numbers(1, 3, "").await;
    with_raw(&table).await;
    let other = table.other_session().await;
    for winner in [
        "UPDATE t SET x = x + 1 WHERE id = 2",
        // A blind append, which the level of the table would leave out.
        "INSERT INTO t VALUES (150, 0)",
    ] {
        table.run("BEGIN").await;
        table.run("SELECT x FROM t WHERE id = 0").await;
        run(&other, winner).await;
        table.run("SELECT sum(x) FROM raw").await;
        table.run("INSERT INTO t VALUES (9, 9)").await;
        let error = table.error("COMMIT").await;
        assert_eq!(
            conflict_of(&error),
            ConflictKind::ConcurrentAppend,
            "{winner}"
        );
    }
}

#[tokio::test]
async fn blind_append_that_an_unrecorded_read_may_have_seen_conflicts() {
    let table = Table::numbers(1, 3, "").await;
    with_raw(&table).await;
    let twin = table.copy_folder();
    open(&table.ctx, "twin", twin.path().to_str().expect("utf-8")).await;
    let other = table.other_session().await;
    for statement in [
        "UPDATE t SET x = (SELECT count(*) FROM raw) WHERE id = 0",
        "INSERT INTO t SELECT count(*), 0 FROM raw",
        "UPDATE t SET x = (SELECT count(*) FROM twin) WHERE id = 0",
        "INSERT INTO t SELECT count(*), 0 FROM twin",
    ] {
        let loser = plan(&table.ctx, statement).await;
        run(&other, "INSERT INTO t VALUES (150, 0)").await;
        assert_eq!(
            loser.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{statement}"
        );
    }
    // A scan of the target saw its version and no other.
    let winner = plan(&table.ctx, "UPDATE t SET x = 7 WHERE id = 0").await;
    run(&other, "INSERT INTO t VALUES (150, 0)").await;
    assert_eq!(winner.count().await, 1);
}

/// What two mounts of one folder are to this crate: two locations, one table id.
#[tokio::test]
async fn table_with_the_same_id_that_was_read_in_an_older_version_stops_the_commit() {
    let table = Table::numbers(1, 3, "").await;
    let other = table.other_session().await;
    for (moves_on, winner, expected) in [
        (true, None, ErrorKind::Unavailable),
        (
            false,
            Some("UPDATE t SET x = x + 1 WHERE id = 2"),
            ErrorKind::Conflict,
        ),
        (
            false,
            Some("INSERT INTO t VALUES (150, 0)"),
            ErrorKind::Conflict,
        ),
    ] {
        let twin = table.copy_folder();
        open(&table.ctx, "twin", twin.path().to_str().expect("utf-8")).await;
        table.run("BEGIN").await;
        table.run("SELECT x FROM twin").await;
        if moves_on {
            run(&other, "UPDATE t SET x = x + 1 WHERE id = 2").await;
        }
        table.run("INSERT INTO t VALUES (9, 9)").await;
        if let Some(winner) = winner {
            run(&other, winner).await;
        }
        let before = table.version().await;
        let error = try_run(&table.ctx, "COMMIT").await.expect_err("refused");
        assert_eq!(kind_of(&error), Some(expected), "{error}");
        assert_eq!(table.version().await, before);
        run(&table.ctx, "DROP TABLE twin").await;
    }
}
