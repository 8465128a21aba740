//! The query planner chain and the analyzer rule.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{CreateExternalTable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::{SessionConfig, SessionContext};
use delta_disjoint::plan::pin::pin;
use delta_disjoint::plan::planner::{DeltaExtensionPlanner, DeltaQueryPlanner};
use delta_disjoint::plan::rule::DeltaDmlRule;
use delta_disjoint::read::provider::DisjointTableProvider;
use delta_disjoint::session::{DeltaTableFactory, register_on};
use delta_disjoint::{ErrorKind, register, session};

use crate::support::{Table, count, kind_of, open, rows, run, try_run};

/// Records the plans it is given.
#[derive(Debug, Default)]
struct Recording {
    plans: Mutex<Vec<LogicalPlan>>,
}

impl Recording {
    fn take(&self) -> Vec<LogicalPlan> {
        std::mem::take(&mut self.plans.lock().expect("lock"))
    }
}

#[async_trait]
impl QueryPlanner for Recording {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.plans.lock().expect("lock").push(plan.clone());
        DefaultPhysicalPlanner::default()
            .create_physical_plan(plan, session)
            .await
    }
}

/// Counts the plans it sees.
#[derive(Debug, Default)]
struct Counting(Mutex<usize>);

impl AnalyzerRule for Counting {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        *self.0.lock().expect("lock") += 1;
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "counting"
    }
}

/// Makes empty tables.
#[derive(Debug)]
struct Empty;

#[async_trait]
impl TableProviderFactory for Empty {
    async fn create(
        &self,
        _: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let schema = Arc::clone(command.schema.inner());
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![]])?))
    }
}

/// Whether each Delta scan of `plan` is pinned; how many there are.
fn pinned_scans(plan: &LogicalPlan) -> Vec<bool> {
    let mut pinned = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source).expect("a provider");
            if let Some(delta) = provider.downcast_ref::<DisjointTableProvider>() {
                pinned.push(delta.pin().is_some());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("walked");
    pinned
}

#[tokio::test]
async fn the_planner_that_was_there_gets_every_plan_without_delta_changes_pinned() {
    let table = Table::numbers(1, 3, "").await;
    let recording = Arc::new(Recording::default());
    let counting = Arc::new(Counting::default());
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(3))
        .with_query_planner(Arc::clone(&recording) as _)
        .with_analyzer_rule(Arc::clone(&counting) as _)
        .with_table_factory("EMPTY".to_owned(), Arc::new(Empty));
    let ctx = SessionContext::new_with_state(register(builder).build());
    assert_eq!(ctx.copied_config().target_partitions(), 3);
    open(&ctx, "t", &table.path()).await;
    run(
        &ctx,
        "CREATE EXTERNAL TABLE e (id BIGINT) STORED AS EMPTY LOCATION 'nowhere'",
    )
    .await;
    recording.take();

    for (text, scans) in [
        ("SELECT * FROM t", 1),
        (
            "SELECT * FROM t WHERE id IN (SELECT x FROM t WHERE x > 0)",
            2,
        ),
        ("SELECT * FROM t WHERE id = (SELECT max(x) FROM t)", 2),
        ("EXPLAIN SELECT * FROM t", 0),
        ("SELECT 1", 0),
        ("INSERT INTO e SELECT id FROM t", 1),
    ] {
        run(&ctx, text).await;
        let plans = recording.take();
        assert_eq!(plans.len(), 1, "{text}");
        let pinned = pinned_scans(&plans[0]);
        if scans > 0 {
            assert_eq!(pinned.len(), scans, "{text}");
        }
        assert!(pinned.into_iter().all(|pinned| pinned), "{text}");
    }
    for (text, changed) in [
        ("INSERT INTO t VALUES (7, 7)", 1),
        ("UPDATE t SET x = 0 WHERE id IN (SELECT id FROM e)", 3),
        ("DELETE FROM t WHERE id > 5", 1),
        ("INSERT OVERWRITE t SELECT * FROM t", 3),
        ("TRUNCATE TABLE t", 3),
    ] {
        assert_eq!(count(&run(&ctx, text).await), changed, "{text}");
        run(&ctx, &format!("EXPLAIN {text}")).await;
        assert!(recording.take().is_empty(), "{text}");
    }
    assert!(*counting.0.lock().expect("lock") > 10);
}

#[tokio::test]
async fn registering_twice_is_registering_once() {
    let recording = Arc::new(Recording::default());
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_query_planner(Arc::clone(&recording) as _);
    let state = register_on(register(register(builder)).build());
    let planner: &dyn std::any::Any = state.query_planner().as_ref();
    assert!(planner.is::<DeltaQueryPlanner>());
    let ctx = SessionContext::new_with_state(state);
    let table = Table::numbers(1, 3, "").await;
    open(&ctx, "t", &table.path()).await;
    recording.take();
    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await, ["3"]);
    assert_eq!(recording.take().len(), 1);
    assert_eq!(count(&run(&ctx, "DELETE FROM t WHERE id = 1").await), 1);
    assert_eq!(count(&run(&ctx, "INSERT INTO t VALUES (1, 1)").await), 1);
    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await, ["3"]);
    assert_eq!(table.version().await, 3);
}

/// A planner that someone composes on their own.
#[derive(Debug)]
struct Composed {
    pins: bool,
}

#[async_trait]
impl QueryPlanner for Composed {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = if self.pins {
            pin(plan, session).await?
        } else {
            plan.clone()
        };
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(
            DeltaExtensionPlanner::default(),
        )])
        .create_physical_plan(&plan, session)
        .await
    }
}

fn composed(pins: bool) -> SessionContext {
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_analyzer_rule(Arc::new(DeltaDmlRule::default()))
        .with_query_planner(Arc::new(Composed { pins }))
        .with_table_factory("DELTA".to_owned(), Arc::new(DeltaTableFactory::default()))
        .build();
    SessionContext::new_with_state(state)
}

#[tokio::test]
async fn a_planner_of_one_s_own_pins_and_plans_changes() {
    let table = Table::numbers(2, 3, "").await;
    let ctx = composed(true);
    open(&ctx, "t", &table.path()).await;
    assert_eq!(
        count(&run(&ctx, "UPDATE t SET x = 9 WHERE id = 1").await),
        1
    );
    assert_eq!(
        count(
            &run(
                &ctx,
                "DELETE FROM t WHERE x IN (SELECT x FROM t WHERE x > 3)"
            )
            .await
        ),
        3
    );
    run(&table.ctx, "INSERT INTO t VALUES (20, 20)").await;
    assert_eq!(
        rows(&ctx, "SELECT id FROM t ORDER BY id").await,
        ["0", "2", "3", "20"]
    );
}

#[tokio::test]
async fn a_planner_that_does_not_pin_is_told_how() {
    let table = Table::numbers(1, 3, "").await;
    let ctx = composed(false);
    open(&ctx, "t", &table.path()).await;
    // Reading works: the provider looks at the newest version by itself.
    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await, ["3"]);
    for change in ["DELETE FROM t", "INSERT INTO t VALUES (7, 7)"] {
        let error = try_run(&ctx, change).await.expect_err("not pinned");
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
        assert!(error.to_string().contains("plan::pin::pin"), "{error}");
    }
    assert_eq!(table.version().await, 1);
}

#[tokio::test]
async fn a_session_without_the_rule_changes_nothing_and_says_what_is_missing() {
    let table = Table::numbers(1, 3, "").await;
    let provider = table.ctx.table_provider("t").await.expect("provider");
    let ctx = SessionContext::new();
    ctx.register_table("t", provider).expect("registered");
    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await, ["3"]);
    for change in [
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET x = 1",
        "INSERT INTO t VALUES (7, 7)",
        "TRUNCATE TABLE t",
    ] {
        let frame = ctx.sql(change).await;
        let error = match frame {
            Ok(frame) => frame.collect().await.expect_err("refused"),
            Err(error) => error,
        };
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        assert!(
            error.to_string().contains("delta_disjoint::register()"),
            "{error}"
        );
    }
    assert_eq!(table.version().await, 1);
}

#[tokio::test]
async fn plain_ctx_sql_runs_queries_and_changes() {
    let table = Table::numbers(2, 3, "").await;
    let ctx = session();
    open(&ctx, "t", &table.path()).await;
    for (text, expected) in [
        ("UPDATE t SET x = 9 WHERE id = 1", 1),
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE x > 8)",
            1,
        ),
        ("DELETE FROM t WHERE false", 0),
        ("INSERT INTO t SELECT id + 10, x FROM t", 5),
    ] {
        let batches = ctx.sql(text).await.expect("plans").collect().await;
        assert_eq!(count(&batches.expect("runs")), expected, "{text}");
    }
    let batches = ctx
        .sql("SELECT count(*) FROM t")
        .await
        .expect("plans")
        .collect()
        .await;
    assert_eq!(crate::support::text_rows(&batches.expect("runs")), ["10"]);
}
