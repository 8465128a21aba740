//! The operator that carries a change out: new files for the rows that come and stay, and the
//! actions that put them in place of the old ones.
//!
//! In: changed rows, as the [`Change`] says. Out: batches of actions. Guaranteed: only files
//! with a changed row are rewritten; nothing of the table refers to the new files until the
//! actions are committed; if anything fails, the new files are deleted on a best-effort basis.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::TryStreamExt;

use super::change_data::FeedRecord;
use super::rewriter::Rewriter;
use crate::action_batch::StatementResult;
use crate::error::Error;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// What the input of a [`RewriteExec`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its rows come.
    Append,
    /// All rows go, its rows come.
    Replace,
    /// New values, file and position of each row that changes.
    Update,
    /// File and position of each row that goes.
    Delete,
    /// All rows go; the input has none.
    Truncate,
    /// Values, file, position and [action](super::merge::RowAction) of each row; rows without an
    /// action are left alone.
    Merge {
        /// Whether rows of the table may change or go.
        changes_rows: bool,
        /// Whether a row that goes may come several times.
        repeats: bool,
    },
}

/// The table version that is changed.
#[derive(Debug, Clone)]
pub struct RewriteTarget {
    /// The table.
    pub handle: Arc<TableHandle>,
    /// The version that the input's positions refer to.
    pub snapshot: Arc<TableSnapshot>,
    /// The table's columns, by index, that a row is called by in messages.
    pub key_columns: Arc<[usize]>,
    /// What is left behind for the table's change data feed.
    pub feed: FeedRecord,
}

/// Writes data files and yields the actions of the change.
#[derive(Debug)]
pub struct RewriteExec {
    input: Arc<dyn ExecutionPlan>,
    change: Change,
    target: RewriteTarget,
    /// The order of new rows, which the optimizer would drop if it were not asked for.
    order: Option<OrderingRequirements>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RewriteExec {
    /// A rewrite of `target` by what `input` yields. New rows (`INSERT … ORDER BY`) are written in
    /// the order that `input` has now, whatever the optimizer puts in its place.
    pub fn new(input: Arc<dyn ExecutionPlan>, change: Change, target: RewriteTarget) -> Self {
        let order = match change {
            Change::Append | Change::Replace => input
                .output_ordering()
                .cloned()
                .map(OrderingRequirements::from),
            Change::Update | Change::Delete | Change::Truncate | Change::Merge { .. } => None,
        };
        Self::ordered(input, change, target, order)
    }

    fn ordered(
        input: Arc<dyn ExecutionPlan>,
        change: Change,
        target: RewriteTarget,
        order: Option<OrderingRequirements>,
    ) -> Self {
        Self {
            input,
            change,
            target,
            order,
            properties: Arc::new(PlanProperties::new(
                EquivalenceProperties::new(StatementResult::schema()),
                Partitioning::UnknownPartitioning(1),
                EmissionType::Final,
                Boundedness::Bounded,
            )),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for RewriteExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "RewriteExec: change={:?}", self.change)
            }
            DisplayFormatType::TreeRender => writeln!(f, "change={:?}", self.change),
        }
    }
}

impl ExecutionPlan for RewriteExec {
    fn name(&self) -> &'static str {
        "RewriteExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone()]
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
            (Some(input), true) => Ok(Arc::new(Self::ordered(
                input,
                self.change,
                self.target.clone(),
                self.order.clone(),
            ))),
            _ => internal_err!("RewriteExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        if partition != 0 {
            return Err(Error::internal("RewriteExec has one partition").into());
        }
        let input = self.input.execute(0, Arc::clone(&context))?;
        let rewriter = Rewriter::new(self.target.clone(), context, &self.metrics);
        let change = self.change;
        let stream = futures::stream::once(async move {
            let result = rewriter.run(change, input).await?;
            let batches = result.into_batches();
            Ok::<_, DataFusionError>(futures::stream::iter(batches.map(|batch| Ok(batch?))))
        })
        .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            StatementResult::schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
