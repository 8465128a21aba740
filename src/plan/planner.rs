//! From the pinned logical plan to operators.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::node::{DeltaDml, DmlKind, count_schema};
use super::pin::{has_delta_dml, pin};
use crate::commit::exec::{CommitExec, CommitTarget};
use crate::error::Error;
use crate::write::rewrite::{Change, RewriteExec, RewriteTarget};

/// Pins every Delta table of a plan to its newest version and plans Delta DML. Plans without Delta
/// DML go, pinned, to the query planner that the session had before, if it had one.
#[derive(Debug, Default)]
pub struct DeltaQueryPlanner {
    inner: Option<Arc<dyn QueryPlanner + Send + Sync>>,
}

impl DeltaQueryPlanner {
    /// A planner that hands plans without Delta DML to `inner`.
    pub fn new(inner: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl QueryPlanner for DeltaQueryPlanner {
    async fn create_physical_plan(
        &self,
        logical_plan: &LogicalPlan,
        session: &dyn Session,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let pinned = pin(logical_plan).await?;
        match &self.inner {
            Some(inner) if !has_delta_dml(&pinned)? => {
                inner.create_physical_plan(&pinned, session).await
            }
            _ => {
                DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(
                    DeltaExtensionPlanner::default(),
                )])
                .create_physical_plan(&pinned, session)
                .await
            }
        }
    }
}

/// Plans [`DeltaDml`] nodes, for those who compose their own query planner. The plan must have
/// been pinned with [`pin`] before.
#[derive(Debug, Default)]
pub struct DeltaExtensionPlanner {}

#[async_trait]
impl ExtensionPlanner for DeltaExtensionPlanner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> DFResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(dml) = node.as_any().downcast_ref::<DeltaDml>() else {
            return Ok(None);
        };
        let [input] = physical_inputs else {
            return Err(Error::internal("DeltaDml has one input").into());
        };
        let pin = dml.target().pin().ok_or_else(|| {
            Error::invalid(
                "the plan was not pinned; call delta_disjoint::plan::pin::pin before planning",
            )
        })?;
        let change = match dml.kind() {
            DmlKind::Insert => Change::Append,
            DmlKind::Overwrite => Change::Replace,
            DmlKind::Update => Change::Update,
            DmlKind::Delete => Change::Delete,
            DmlKind::Truncate => Change::Truncate,
            DmlKind::Merge(shape) => Change::Merge {
                repeats: shape.repeats,
            },
        };
        let rewrite = RewriteExec::new(
            Arc::clone(input),
            change,
            RewriteTarget {
                handle: Arc::clone(dml.target().handle()),
                snapshot: Arc::clone(&pin.snapshot),
                key_columns: dml.key_columns().into(),
            },
        );
        let commit = CommitExec::new(
            Arc::new(rewrite),
            count_schema(),
            CommitTarget {
                handle: Arc::clone(dml.target().handle()),
                snapshot: Arc::clone(&pin.snapshot),
                collector: Arc::clone(&pin.collector),
                operation: dml.kind().operation().to_owned(),
                parameters: operation_parameters(dml),
            },
        );
        Ok(Some(Arc::new(commit)))
    }
}

/// What stands in `operationParameters` before the statement runs; predicates are added by the
/// commit from what was recorded.
fn operation_parameters(dml: &DeltaDml) -> Vec<(String, String)> {
    let mode = match dml.kind() {
        DmlKind::Insert => Some("Append"),
        DmlKind::Overwrite => Some("Overwrite"),
        DmlKind::Update | DmlKind::Delete | DmlKind::Truncate | DmlKind::Merge(_) => None,
    };
    mode.map(|mode| ("mode".to_owned(), mode.to_owned()))
        .into_iter()
        .chain(dml.parameters().iter().cloned())
        .collect()
}
