//! What the simplifier must not see through.
//!
//! DataFusion compares the value under a cast instead of the cast: `CAST(m AS BIGINT) > 1` becomes
//! `m > 1`, which 1.5 satisfies (datafusion #23095), `TRY_CAST(x AS SMALLINT) <> 5` becomes `x <> 5`,
//! also for 100000 (#24702). Beside bit operators it takes `-x` for `~x` (#24665). Such casts go behind
//! a function that gives back its argument, such a minus becomes a subtraction.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult, ScalarValue};
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit,
};

use super::three_valued::{schema_below, with_names};

/// `plan` and its subqueries, with the same answers.
pub(super) fn hidden(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    plan.transform_down_with_subqueries(|plan| {
        let mut is_touched = false;
        plan.apply_expressions(|expr| {
            is_touched |= expr.exists(|node| {
                Ok(matches!(
                    node,
                    Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_)
                ))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_touched {
            return Ok(Transformed::no(plan));
        }
        let schema = schema_below(&plan)?;
        with_names(plan, |expr| {
            let has_bits = expr.exists(|node| Ok(is_of_bits(node)))?;
            expr.transform_up(|node| rewritten(node, has_bits, &schema))
        })
    })
    .map(|transformed| transformed.data)
}

fn is_of_bits(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor,
            ..
        })
    )
}

fn rewritten(node: Expr, has_bits: bool, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
    let hide = |operand: Box<Expr>| hidden_cast(*operand, schema);
    Ok(match node {
        Expr::Negative(inner) if has_bits && inner.get_type(schema)?.is_signed_integer() => {
            let zero = ScalarValue::new_zero(&inner.get_type(schema)?)?;
            Transformed::yes(lit(zero) - *inner)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let (left, right) = (hide(left)?, hide(right)?);
            let transformed = left.transformed || right.transformed;
            let data = binary_expr(left.data, op, right.data);
            Transformed::new(data, transformed, TreeNodeRecursion::Continue)
        }
        Expr::InList(list) => hide(list.expr)?
            .update_data(|expr| Expr::InList(InList::new(Box::new(expr), list.list, list.negated))),
        Expr::Between(between) => hide(between.expr)?.update_data(|expr| {
            Expr::Between(Between::new(
                Box::new(expr),
                between.negated,
                between.low,
                between.high,
            ))
        }),
        other => Transformed::no(other),
    })
}

/// The operand of a comparison.
fn hidden_cast(operand: Expr, schema: &DFSchema) -> DFResult<Transformed<Expr>> {
    let mut is_lossy_chain = false;
    let mut next = &operand;
    loop {
        next = match next {
            Expr::TryCast(_) => {
                is_lossy_chain = true;
                break;
            }
            Expr::Cast(cast) => {
                is_lossy_chain |= is_lossy(&cast.expr.get_type(schema)?, cast.field.data_type());
                &cast.expr
            }
            _ => break,
        };
    }
    if !is_lossy_chain || operand.column_refs().is_empty() {
        return Ok(Transformed::no(operand));
    }
    let null = lit(ScalarValue::try_from(&operand.get_type(schema)?)?);
    Ok(Transformed::yes(nullif(operand, null)))
}

fn compares(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Whether two values of `from` may become one of `to`, of types whose casts are looked through.
fn is_lossy(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal128, Decimal256, Timestamp};
    match (from, to) {
        (Decimal128(_, from) | Decimal256(_, from), Decimal128(_, to) | Decimal256(_, to)) => {
            to < from
        }
        (Decimal128(_, scale) | Decimal256(_, scale), to) => to.is_integer() && *scale > 0,
        (Timestamp(from, _), Timestamp(to, _)) => to < from,
        _ => false,
    }
}
