//! From the pinned logical plan to operators.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, Statement, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::key_source::{KeySource, key_source};
use super::node::{DeltaDml, DmlKind, count_schema};
use super::pin::{has_delta_dml, pin};
use super::rerun::RerunExec;
use super::rules::row_rules;
use crate::commit::exec::{CommitExec, CommitTarget};
use crate::commit::session_transactions::Ticket;
use crate::error::{Error, Result};
use crate::read::change_data::has_change_data_feed;
use crate::read::keys::{KeysFirstExec, SourceBufferExec};
use crate::read::provider::Pin;
use crate::read::snapshot::TableSnapshot;
use crate::write::change_data::FeedRecord;
use crate::write::rewrite::{Change, RewriteExec, RewriteTarget};
use crate::write::rules::exec::RowRulesExec;

/// Pins every Delta table of a plan to its newest version, or to the session's transaction, and plans Delta DML. Plans without Delta
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
        refuse_transaction_statement(logical_plan)?;
        let pinned = pin(logical_plan, session).await?;
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
        session: &dyn Session,
        _planning_ctx: &PhysicalPlanningContext,
    ) -> DFResult<Option<Arc<dyn ExecutionPlan>>> {
        let [input] = physical_inputs else {
            return Ok(None);
        };
        if let Some(source) = node.as_any().downcast_ref::<KeySource>() {
            return Ok(Some(buffer(source, input)?));
        }
        let Some(dml) = node.as_any().downcast_ref::<DeltaDml>() else {
            return Ok(None);
        };
        let pin = dml.target().pin().ok_or_else(not_pinned)?;
        let change = match dml.kind() {
            DmlKind::Insert => Change::Append,
            DmlKind::Overwrite => Change::Replace,
            DmlKind::Update => Change::Update,
            DmlKind::Delete => Change::Delete,
            DmlKind::Truncate => Change::Truncate,
            DmlKind::Merge(shape) => Change::Merge {
                changes_rows: shape.changes_rows,
                repeats: shape.repeats,
            },
        };
        let input = if dml.input().exists(|node| Ok(is_key_source(node)))? {
            Arc::new(KeysFirstExec::new(Arc::clone(input)))
        } else {
            Arc::clone(input)
        };
        let input = with_row_rules(input, dml, &pin.snapshot)?;
        let rewrite = RewriteExec::new(
            input,
            change,
            RewriteTarget {
                handle: Arc::clone(dml.target().handle()),
                snapshot: Arc::clone(&pin.snapshot),
                key_columns: dml.key_columns().into(),
                feed: feed_record(pin),
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
        Ok(Some(RerunExec::around(Arc::new(commit), dml, session)))
    }
}

/// `input` held to the rules of the table, if it has rows that come and the table has rules.
fn with_row_rules(
    input: Arc<dyn ExecutionPlan>,
    dml: &DeltaDml,
    snapshot: &TableSnapshot,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (in_order, has_clauses) = match dml.kind() {
        DmlKind::Delete | DmlKind::Truncate => return Ok(input),
        DmlKind::Merge(shape) if !shape.brings_rows => return Ok(input),
        DmlKind::Insert | DmlKind::Overwrite => (true, false),
        DmlKind::Update => (false, false),
        DmlKind::Merge(_) => (false, !dml.filled().is_empty()),
    };
    let rules = row_rules(&snapshot.metadata, &snapshot.schema, dml.filled())?;
    match rules.is_empty() && !has_clauses {
        true => Ok(input),
        false => Ok(Arc::new(RowRulesExec::new(input, rules, in_order))),
    }
}

/// What the statement leaves behind for the change data feed of its table.
fn feed_record(pin: &Pin) -> FeedRecord {
    if !has_change_data_feed(&pin.snapshot.metadata) {
        return FeedRecord::Nothing;
    }
    match Ticket::of(&pin.collector) {
        Some(ticket) if ticket.is_in_transaction() => FeedRecord::Origins,
        _ => FeedRecord::ChangeFiles,
    }
}

/// The operator that reads the keys' side of a join to its end.
fn buffer(source: &KeySource, input: &Arc<dyn ExecutionPlan>) -> DFResult<Arc<dyn ExecutionPlan>> {
    let state = source.state.as_ref().ok_or_else(not_pinned)?;
    let keys = source
        .keys
        .iter()
        .map(|key| source.input.schema().index_of_column(key))
        .collect::<DFResult<Vec<_>>>()?;
    Ok(Arc::new(SourceBufferExec::new(
        Arc::clone(input),
        keys.into(),
        Arc::clone(state),
    )))
}

fn is_key_source(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Extension(extension) if key_source(extension).is_some())
}

fn not_pinned() -> Error {
    Error::invalid("the plan was not pinned; call delta_disjoint::plan::pin::pin before planning")
}

/// DataFusion hands these on and does nothing about them.
fn refuse_transaction_statement(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Statement(
            statement @ (Statement::TransactionStart(_) | Statement::TransactionEnd(_)),
        ) => Err(Error::unsupported(format!(
            "{} has no effect through SessionContext::sql; use delta_disjoint::sql, which acts on \
             it at once",
            statement.name()
        ))),
        _ => Ok(()),
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
