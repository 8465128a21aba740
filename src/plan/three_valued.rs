//! Plans whose conditions the optimizer cannot take for true where they are unknown.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, WriteOp};

use super::node::DeltaDml;
use crate::three_valued::{self, Care};

/// `plan` and its subqueries, with conditions that keep to three-valued logic.
pub(super) fn keep_unknown(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    let changes_rows = changes_rows(&plan)?;
    let mut lists = 0;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            lists += three_valued::terms_in(expr).0;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let care = Care {
        changes_rows,
        several_lists: lists > 1,
    };
    plan.transform_down_with_subqueries(|plan| {
        if let LogicalPlan::Join(join) = plan {
            return filtered_join(join, care);
        }
        let mut is_touched = false;
        plan.apply_expressions(|expr| {
            is_touched |= three_valued::terms_in(expr).1;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_touched {
            return Ok(Transformed::no(plan));
        }
        let schema = schema_below(&plan)?;
        let is_filter = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::TableScan(_));
        with_names(plan, |expr| {
            if is_filter {
                three_valued::condition(expr, care, &schema)
            } else {
                three_valued::value(expr, care, &schema)
            }
        })
    })
    .map(|transformed| transformed.data)
}

/// `plan` with its expressions rewritten and the names of its columns as they were.
pub(super) fn with_names(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr) -> DFResult<Transformed<Expr>>,
) -> DFResult<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let named = |expr: Expr| {
        let name = names.save(&expr);
        Ok(rewrite(expr)?.update_data(|expr| name.restore(expr)))
    };
    plan.map_expressions(|expr| match expr {
        // A set has no name.
        Expr::GroupingSet(_) => expr.map_children(named),
        expr => named(expr),
    })?
    .map_data(LogicalPlan::recompute_schema)
}

/// The columns that the expressions of `plan` are over.
pub(super) fn schema_below(plan: &LogicalPlan) -> DFResult<DFSchema> {
    match (plan, plan.inputs().as_slice()) {
        // Its filters are over columns that it need not show.
        (LogicalPlan::TableScan(scan), _) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())
        }
        // What a MERGE says is over its target too, which is no input.
        (LogicalPlan::Dml(dml), _) if matches!(dml.op, WriteOp::MergeInto(_)) => {
            let mut schema = DFSchema::clone(dml.input.schema());
            schema.merge(&DFSchema::try_from_qualified_schema(
                dml.table_name.clone(),
                &dml.target.schema(),
            )?);
            Ok(schema)
        }
        (plan, []) => Ok(DFSchema::clone(plan.schema())),
        (_, inputs) => Ok(merge_schema(inputs)),
    }
}

/// Whether `plan` is a change.
pub(super) fn changes_rows(plan: &LogicalPlan) -> DFResult<bool> {
    plan.exists(|plan| {
        Ok(match plan {
            LogicalPlan::Dml(_) => true,
            LogicalPlan::Extension(extension) => extension.node.as_any().is::<DeltaDml>(),
            _ => false,
        })
    })
}

/// Of a join only the filter: what must be equal is equal for no NULL.
fn filtered_join(mut join: Join, care: Care) -> DFResult<Transformed<LogicalPlan>> {
    let mut is_rewritten = false;
    if let Some(filter) = join.filter.take() {
        let schema = merge_schema(&[join.left.as_ref(), join.right.as_ref()]);
        let rewritten = three_valued::condition(filter, care, &schema)?;
        is_rewritten = rewritten.transformed;
        join.filter = Some(rewritten.data);
    }
    let plan = LogicalPlan::Join(join);
    Ok(if is_rewritten {
        Transformed::yes(plan)
    } else {
        Transformed::no(plan)
    })
}
