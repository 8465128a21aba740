//! The names of the columns that a MERGE writes to.
//!
//! DataFusion's plan of a MERGE holds names and, for `INSERT VALUES (…)` without any, nothing but
//! places; which columns these are is known only while it is planned. A statement that is kept and
//! runs later (`PREPARE`, a frame) must not take the columns of then.

use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::dml::{MergeIntoAction, MergeIntoOp};
use datafusion::logical_expr::{LogicalPlan, WriteOp};

use crate::error::{Error, Result};
use crate::plan::rule::delta_provider;
use crate::read::provider::DisjointTableProvider;

/// `plan` with the names of the columns in each `INSERT VALUES (…)` of a MERGE into a Delta table,
/// also inside of `PREPARE` and `EXPLAIN`; whether it has such clauses. `plan` was made just now.
///
/// # Errors
///
/// DataFusion's if the plan cannot be put together again.
pub(crate) fn with_insert_columns(plan: LogicalPlan) -> DFResult<Transformed<LogicalPlan>> {
    plan.transform_down(|plan| {
        let LogicalPlan::Dml(mut dml) = plan else {
            return Ok(Transformed::no(plan));
        };
        let (WriteOp::MergeInto(op), Some(provider)) = (&mut dml.op, delta_provider(&dml.target))
        else {
            return Ok(Transformed::no(LogicalPlan::Dml(dml)));
        };
        let schema = provider.table_schema();
        let mut named = false;
        for clause in &mut op.clauses {
            if let MergeIntoAction::Insert { columns, values } = &mut clause.action
                && columns.is_empty()
                && values.len() == schema.fields().len()
            {
                let names = schema.fields().iter().map(|field| field.name().clone());
                columns.extend(names);
                named = true;
            }
        }
        let recursion = TreeNodeRecursion::Continue;
        Ok(Transformed::new(LogicalPlan::Dml(dml), named, recursion))
    })
}

/// Refuses a MERGE whose columns are not, or not certainly, those it was planned with.
///
/// # Errors
///
/// `Invalid` for a column that is not there any more, `Unsupported` for places in a table whose
/// columns have changed since the session opened it.
pub(super) fn check_columns(op: &MergeIntoOp, provider: &DisjointTableProvider) -> Result<()> {
    let schema = provider.table_schema();
    let location = provider.handle().location();
    for clause in &op.clauses {
        let names: Vec<&String> = match &clause.action {
            MergeIntoAction::Update(assignments) => {
                assignments.iter().map(|(name, _)| name).collect()
            }
            MergeIntoAction::Insert { columns, values } if columns.is_empty() => {
                let same_number = values.len() == schema.fields().len();
                if !same_number || provider.handle().shown_changes() > 0 {
                    return Err(Error::unsupported(format!(
                        "MERGE with INSERT VALUES (…): the columns of the table at {location} have \
                         changed, so that it is not certain which are meant; name them, as in \
                         INSERT (a, b) VALUES (…), or plan the statement anew with \
                         delta_disjoint::sql"
                    )));
                }
                vec![]
            }
            MergeIntoAction::Insert { columns, .. } => columns.iter().collect(),
            MergeIntoAction::Delete => vec![],
        };
        if let Some(name) = names
            .into_iter()
            .find(|name| schema.index_of(name).is_err())
        {
            return Err(Error::invalid(format!(
                "MERGE: the table at {location} has no column {name} any more; plan the statement \
                 anew (PREPARE it again, or make a new frame)"
            )));
        }
    }
    Ok(())
}
