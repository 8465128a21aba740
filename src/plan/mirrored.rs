//! Comparisons with the constant on the right: `2 < x` as `x > 2`.
//!
//! DataFusion joins the bounds of one column and takes `x >= 2 AND 2 < x` for `x >= 2`, since it minds
//! the operator and not the side that the column is on. Its optimizer turns comparisons round before
//! that, but not in joins, not where the constant is still to be computed, and below a node of this
//! crate only if something else changes too.

use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

/// `plan` and its subqueries, with the constants on the right.
pub(super) fn turned(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    plan.transform_down_with_subqueries(|plan| {
        let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        if is_condition {
            plan.map_expressions(|expr| expr.transform_up(turn))
        } else {
            Ok(Transformed::no(plan))
        }
    })
    .map(|transformed| transformed.data)
}

fn turn(expr: Expr) -> DFResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_constant = |side: &Expr| side.column_refs().is_empty() && !side.contains_outer();
    let is_comparison = matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
    );
    Ok(match op.swap() {
        Some(swapped) if is_comparison && is_constant(&left) && !is_constant(&right) => {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(right, swapped, left)))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
    })
}
