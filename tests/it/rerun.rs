//! A statement that is run again after a conflict, if the session asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use delta_disjoint::commit::ConflictKind;
use delta_disjoint::{Cancellation, ErrorKind};
use tokio::sync::Notify;

use crate::support::{Table, conflict_of, kind_of, plan, run, try_run};

/// `t` with ids 0 to 19 in two files; `reruns` are asked for.
async fn table(reruns: usize) -> Table {
    let table = Table::numbers(2, 10, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    table
        .run(&format!("SET delta.statement_reruns = {reruns}"))
        .await;
    table
}

#[tokio::test]
async fn statement_is_run_again_on_the_newest_version() {
    for (reruns, commits) in [(0, false), (1, true), (5, true)] {
        let table = table(reruns).await;
        let other = table.other_session().await;
        let update = plan(&table.ctx, "UPDATE t SET x = x + 100 WHERE id < 5").await;
        run(&other, "UPDATE t SET x = 7 WHERE id = 1").await;
        run(&other, "INSERT INTO t VALUES (4, 40)").await;
        if commits {
            // The row that came is changed too.
            assert_eq!(update.count().await, 6);
            assert_eq!(
                table
                    .rows("SELECT * FROM t WHERE id < 5 ORDER BY id, x")
                    .await,
                ["0|100", "1|107", "2|102", "3|103", "4|104", "4|140"]
            );
            let (version, _) = table.log();
            assert_eq!(table.commit_info(version)["readVersion"], version - 1);
        } else {
            assert_eq!(update.conflict().await, ConflictKind::ConcurrentAppend);
        }
        let (_, live) = table.log();
        let named = table.data_files_on_disk().len();
        let ever: usize = (0..=table.log().0)
            .flat_map(|version| table.log_entry(version))
            .filter(|action| !action["add"].is_null())
            .count();
        assert_eq!(named, ever, "files of the lost run are gone; {live:?}");
    }
}

#[tokio::test]
async fn every_kind_of_statement_can_be_run_again() {
    for (statement, count, rows) in [
        ("INSERT INTO t SELECT max(id) + 1, 0 FROM t", 1, "22"),
        ("INSERT OVERWRITE t SELECT * FROM t WHERE id > 18", 2, "2"),
        ("DELETE FROM t WHERE id IN (SELECT max(id) FROM t)", 1, "20"),
        ("TRUNCATE TABLE t", 21, "0"),
    ] {
        let table = table(3).await;
        let other = table.other_session().await;
        let planned = plan(&table.ctx, statement).await;
        run(&other, "INSERT INTO t VALUES (100, 0)").await;
        assert_eq!(planned.count().await, count, "{statement}");
        assert_eq!(
            table.rows("SELECT count(*) FROM t").await,
            [rows],
            "{statement}"
        );
    }
}

#[tokio::test]
async fn number_of_reruns_is_told() {
    let table = table(2).await;
    let plain = table
        .rows("EXPLAIN ANALYZE UPDATE t SET x = 0 WHERE id = 1")
        .await;
    assert!(plain.join("\n").contains("reruns=0"), "{plain:?}");
    let other = table.other_session().await;
    let explained = plan(
        &table.ctx,
        "EXPLAIN ANALYZE UPDATE t SET x = 1 WHERE id = 1",
    )
    .await;
    run(&other, "UPDATE t SET x = 2 WHERE id = 1").await;
    let told = crate::support::text_rows(&explained.run().await.expect("runs")).join("\n");
    assert!(told.contains("RerunExec: most=2"), "{told}");
    assert!(told.contains("reruns=1"), "{told}");
    assert_eq!(table.rows("SELECT x FROM t WHERE id = 1").await, ["1"]);
}

#[tokio::test]
async fn only_conflicts_lead_to_a_rerun() {
    let table = table(5).await;
    let error = table.error("UPDATE t SET x = 1 / (id - 3)").await;
    assert!(kind_of(&error).is_none(), "{error}");
    // Prepared statements too.
    table
        .run("PREPARE p(BIGINT) AS DELETE FROM t WHERE id = $1")
        .await;
    let other = table.other_session().await;
    let planned = plan(&table.ctx, "EXECUTE p(2)").await;
    run(&other, "UPDATE t SET x = 5 WHERE id = 2").await;
    assert_eq!(planned.count().await, 1);
}

#[tokio::test]
async fn transaction_is_never_run_again() {
    let table = table(5).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 0 WHERE id < 5").await;
    run(&other, "INSERT INTO t VALUES (3, 3)").await;
    assert_eq!(
        conflict_of(&table.error("COMMIT").await),
        ConflictKind::ConcurrentAppend
    );
    // Nor does a statement of before end up in a transaction.
    let planned = plan(&table.ctx, "UPDATE t SET x = 0 WHERE id < 5").await;
    table.run("BEGIN").await;
    let error = planned.run().await.expect_err("planned before");
    assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
    table.run("COMMIT").await;
    assert!(try_run(&table.ctx, "COMMIT").await.is_err());
}

/// Never comes to an end with the second plan of a change, and tells that it has begun.
#[derive(Debug)]
struct StuckPlanner {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
    plans: AtomicUsize,
    stuck: Arc<Notify>,
}

#[async_trait]
impl QueryPlanner for StuckPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        if matches!(plan, LogicalPlan::Extension(_)) && self.plans.fetch_add(1, SeqCst) == 1 {
            self.stuck.notify_one();
            std::future::pending::<()>().await;
        }
        self.planner.create_physical_plan(plan, session).await
    }
}

#[tokio::test]
async fn a_request_to_stop_counts_while_the_statement_is_planned_again() {
    let table = table(3).await;
    let other = table.other_session().await;
    let stuck = Arc::new(Notify::new());
    let state = table.ctx.state();
    let planner = StuckPlanner {
        planner: Arc::clone(state.query_planner()),
        plans: AtomicUsize::new(0),
        stuck: Arc::clone(&stuck),
    };
    let state = SessionStateBuilder::new_from_existing(state)
        .with_query_planner(Arc::new(planner))
        .build();
    let ctx = SessionContext::new_with_state(state);
    let request = Cancellation::new();
    request.watch_statements_of(&ctx);

    let update = plan(&ctx, "UPDATE t SET x = x + 100 WHERE id < 5").await;
    run(&other, "UPDATE t SET x = 7 WHERE id = 1").await;
    let (version, _) = table.log();
    let files = table.data_files_on_disk();
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::join!(update.run(), async {
            stuck.notified().await;
            request.cancel();
        })
    });
    let (ended, ()) = ended.await.expect("it stops");
    let error = ended.expect_err("called off");
    assert_eq!(kind_of(&error), Some(ErrorKind::Cancelled));
    assert_eq!(table.log().0, version);
    assert_eq!(table.data_files_on_disk(), files);
}
