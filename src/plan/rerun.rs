//! Running a statement again after a conflict, if the session asks for it.
//!
//! In: the operator of a change, and the node it was planned from. Out: its one row, `count`, of
//! the run that committed. Guaranteed: a run that lost has left nothing behind before the next one
//! is planned, on the then newest version and with everything that this version holds; only a
//! conflict is answered that way, and never in a transaction, whose earlier statements have shown
//! values of the old version.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use super::node::DeltaDml;
use crate::cancellation::Cancellation;
use crate::commit::{Backoff, SessionScope};
use crate::config::DeltaOptions;
use crate::error::{Error, ErrorKind};

/// Runs a change and, after a conflict, plans and runs it again.
pub(super) struct RerunExec {
    input: Arc<dyn ExecutionPlan>,
    again: Arc<Again>,
    metrics: ExecutionPlanMetricsSet,
}

/// What it takes to plan the statement again.
struct Again {
    node: DeltaDml,
    /// The session as it was, without re-runs: they are counted here.
    state: SessionState,
    most: usize,
}

impl RerunExec {
    /// `commit`, which was planned from `node`, with re-runs where `session` asks for them.
    pub(super) fn around(
        commit: Arc<dyn ExecutionPlan>,
        node: &DeltaDml,
        session: &dyn Session,
    ) -> Arc<dyn ExecutionPlan> {
        let most = DeltaOptions::from_config(session.config_options()).statement_reruns;
        // A session of another kind cannot be kept to plan with later.
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return commit;
        };
        if most == 0 || is_in_transaction(state) {
            return commit;
        }
        let mut state = state.clone();
        let extensions = &mut state.config_mut().options_mut().extensions;
        if let Some(options) = extensions.get_mut::<DeltaOptions>() {
            options.statement_reruns = 0;
        }
        Arc::new(Self {
            input: commit,
            again: Arc::new(Again {
                node: node.clone(),
                state,
                most,
            }),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl fmt::Debug for RerunExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RerunExec")
            .field("input", &self.input)
            .field("most", &self.again.most)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for RerunExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "RerunExec: most={}", self.again.most)
            }
            DisplayFormatType::TreeRender => writeln!(f, "most={}", self.again.most),
        }
    }
}

impl ExecutionPlan for RerunExec {
    fn name(&self) -> &'static str {
        "RerunExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self {
                input,
                again: Arc::clone(&self.again),
                metrics: ExecutionPlanMetricsSet::new(),
            })),
            _ => internal_err!("RerunExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        let first = self.input.execute(partition, Arc::clone(&context))?;
        let reruns = MetricBuilder::new(&self.metrics).global_counter("reruns");
        let again = Arc::clone(&self.again);
        let batches = futures::stream::once(async move {
            let batches = again.until_decided(first, &context, &reruns).await?;
            Ok::<_, DataFusionError>(futures::stream::iter(batches.into_iter().map(Ok)))
        })
        .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches.boxed(),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl Again {
    async fn until_decided(
        &self,
        first: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
        reruns: &Count,
    ) -> DFResult<Vec<RecordBatch>> {
        let mut stream = first;
        for number in 1..=self.most {
            let conflict = match stream.try_collect().await {
                Err(error) if is_conflict(&error) => error,
                done => return done,
            };
            let cancellation = Cancellation::of(self.state.config());
            let delay = Backoff::default().delay(number, rand::random());
            cancellation
                .or(async {
                    tokio::time::sleep(delay).await;
                    Ok(())
                })
                .await?;
            // A session that has begun a transaction meanwhile must not find the statement in it.
            if is_in_transaction(&self.state) {
                return Err(conflict);
            }
            let logical_plan = self.logical_plan();
            let planner = self.state.query_planner();
            let planning = planner.create_physical_plan(&logical_plan, &self.state);
            let plan = cancellation.or(async { Ok(planning.await) }).await??;
            if is_in_transaction(&self.state) {
                return Err(conflict);
            }
            reruns.add(1);
            tracing::info!(number, %conflict, "statement run again");
            stream = plan.execute(0, Arc::clone(context))?;
        }
        stream.try_collect().await
    }

    fn logical_plan(&self) -> LogicalPlan {
        LogicalPlan::Extension(Extension {
            node: Arc::new(self.node.clone()),
        })
    }
}

fn is_in_transaction(state: &SessionState) -> bool {
    SessionScope::of(state.config(), state.session_id())
        .is_some_and(|scope| scope.current().is_some())
}

fn is_conflict(error: &DataFusionError) -> bool {
    Error::find(error).is_some_and(|error| error.kind() == ErrorKind::Conflict)
}
