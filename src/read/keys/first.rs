//! The operator that reads the source of a join to its end before the join begins.
//!
//! ```text
//!  KeysFirstExec            1. drains the source below, 2. hands its keys to the table's scan,
//!    …                      3. lets the join run
//!      HashJoinExec
//!        SourceBufferExec   (the source)
//!        DeltaScanExec      (the table)
//! ```

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    Partitioning, PhysicalExpr, PlanProperties,
};
use futures::TryStreamExt;

use super::buffer::SourceBufferExec;

/// Fills the [`SourceBufferExec`] below it, then runs its input.
#[derive(Debug)]
pub(crate) struct KeysFirstExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl KeysFirstExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            input,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for KeysFirstExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "KeysFirstExec"),
            DisplayFormatType::TreeRender => Ok(()),
        }
    }
}

impl ExecutionPlan for KeysFirstExec {
    fn name(&self) -> &'static str {
        "KeysFirstExec"
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
            (Some(input), true) => Ok(Arc::new(Self::new(input))),
            _ => internal_err!("KeysFirstExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("KeysFirstExec has one partition");
        }
        let input = Arc::clone(&self.input);
        let joined = async move {
            fill(&input, &context).await?;
            input.execute(0, context)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            futures::stream::once(joined).try_flatten(),
        )))
    }
}

/// Fills every buffer of a source in `plan`; a source that is itself below a buffer is read by it.
async fn fill(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> DFResult<()> {
    let mut waiting = vec![plan];
    while let Some(node) = waiting.pop() {
        match node.downcast_ref::<SourceBufferExec>() {
            Some(buffer) => buffer.fill(context).await?,
            None => waiting.extend(node.children()),
        }
    }
    Ok(())
}
