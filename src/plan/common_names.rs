//! Names of common subexpressions in a plan that is optimized a second time.
//!
//! What `PREPARE` keeps is optimized, and its common subexpressions are called `__common_expr_1` and so
//! on. `EXECUTE` optimizes it again and gives the same names anew: a column then takes the value of
//! another expression.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result as DFResult};
use datafusion::logical_expr::{Expr, LogicalPlan};

const GIVEN: &str = "__common_expr_";
const KEPT: &str = "__prepared_expr_";

/// `plan` and its subqueries, with names that are not given again.
pub(super) fn renamed(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    let mut has_names = false;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            has_names |= expr.exists(|node| Ok(new_name(node).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if !has_names {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|plan| {
        plan.map_expressions(|expr| expr.transform_up(rename))?
            .map_data(LogicalPlan::recompute_schema)
    })
    .map(|transformed| transformed.data)
}

fn new_name(expr: &Expr) -> Option<String> {
    let name = match expr {
        Expr::Column(column) => &column.name,
        Expr::Alias(alias) => &alias.name,
        _ => return None,
    };
    name.strip_prefix(GIVEN).map(|rest| format!("{KEPT}{rest}"))
}

fn rename(expr: Expr) -> DFResult<Transformed<Expr>> {
    let Some(name) = new_name(&expr) else {
        return Ok(Transformed::no(expr));
    };
    Ok(match expr {
        Expr::Column(column) => Transformed::yes(Expr::Column(Column::new(column.relation, name))),
        Expr::Alias(mut alias) => {
            alias.name = name;
            Transformed::yes(Expr::Alias(alias))
        }
        other => Transformed::no(other),
    })
}
