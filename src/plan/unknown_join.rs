//! `IN (SELECT …)` that is a join already, since the statement was optimised before the analyzer's
//! rule sees it: DataFusion does so at `PREPARE`.
//!
//! A join has lost what it was made of: an anti join may stem from `NOT IN`, for which NULL matters,
//! or from `NOT EXISTS`, for which it does not. Where a comparison may be unknown, only what is right
//! for both is taken.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result as DFResult};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use crate::error::{Error, Result};

/// What DataFusion names the subqueries that it makes joins of.
const SUBQUERY: &str = "__correlated_sq";

/// Refuses `plan`, the input of `statement`, if an unknown comparison in a join that was a subquery
/// may change the rows it finds.
///
/// # Errors
///
/// `Unsupported`, with the comparison.
pub(super) fn check(plan: &LogicalPlan, statement: &str) -> Result<()> {
    let found = search(plan, &mut Vec::new(), true)
        .map_err(|e| Error::internal("cannot look through the plan").with_source(e))?;
    match found {
        None => Ok(()),
        Some(comparison) => Err(Error::unsupported(format!(
            "{statement} with a subquery in WHERE that compares {comparison}, which may be unknown \
             because of NULL; whether that counts is no longer to be told after PREPARE: run the \
             statement directly instead of a prepared one"
        ))),
    }
}

/// The comparison of a join below `plan` that may give wrong rows. `above` are the operators above,
/// outermost first. On the `spine`, where the rows to change come from, every join was a subquery.
fn search<'a>(
    plan: &'a LogicalPlan,
    above: &mut Vec<&'a LogicalPlan>,
    spine: bool,
) -> DFResult<Option<String>> {
    if let LogicalPlan::Join(join) = plan
        && (spine || was_subquery(join))
        && !is_exact(join, above)
    {
        return Ok(Some(comparison(join)));
    }
    let mut found = None;
    plan.apply_subqueries(|subquery| {
        // Plans in expressions start anew: no operator above sees their columns.
        found = search(subquery, &mut Vec::new(), false)?;
        Ok(if found.is_some() {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    above.push(plan);
    for (number, input) in plan.inputs().into_iter().enumerate() {
        if found.is_none() {
            found = search(input, above, spine && number == 0)?;
        }
    }
    above.pop();
    Ok(found)
}

fn was_subquery(join: &Join) -> bool {
    join.right.schema().iter().any(|(qualifier, _)| {
        qualifier.is_none_or(|qualifier| qualifier.table().starts_with(SUBQUERY))
    })
}

/// Whether `join` finds the right rows, whatever subquery it was made of.
fn is_exact(join: &Join, above: &[&LogicalPlan]) -> bool {
    match join.join_type {
        // Also one that minds NULL: where the value of NOT IN is a constant, the comparison that is left
        // may be the subquery's own.
        JoinType::LeftAnti => !may_be_unknown(join),
        JoinType::LeftMark => !may_be_unknown(join) || unknown_is_false(join, above),
        // A semi-join is a conjunct that must be true; others are none of a predicate's.
        _ => true,
    }
}

/// Whether a comparison of `join` may be unknown; true also where that cannot be found out.
fn may_be_unknown(join: &Join) -> bool {
    let Ok(both) = join.left.schema().join(join.right.schema()) else {
        return true;
    };
    join.on
        .iter()
        .flat_map(|(left, right)| [left, right])
        .chain(&join.filter)
        .any(|expr| expr.nullable(&both).unwrap_or(true))
}

/// Whether the mark of `join` is used where unknown and false are the same: in filters, with
/// nothing but AND and OR above it.
fn unknown_is_false(join: &Join, above: &[&LogicalPlan]) -> bool {
    let Some(mark) = join.schema.columns().pop() else {
        return false;
    };
    for plan in above.iter().rev() {
        let fits = match plan {
            LogicalPlan::Filter(filter) => is_positive(&filter.predicate, &mark),
            LogicalPlan::Projection(projection) => projection
                .expr
                .iter()
                .all(|expr| *expr == Expr::Column(mark.clone()) || !uses(expr, &mark)),
            LogicalPlan::Join(join) => {
                let mut pairs = join.on.iter().flat_map(|(left, right)| [left, right]);
                pairs.all(|expr| !uses(expr, &mark))
                    && join.filter.iter().all(|filter| !uses(filter, &mark))
            }
            _ => false,
        };
        if !fits {
            return false;
        }
        if !plan.schema().has_column(&mark) {
            return true;
        }
    }
    true
}

fn is_positive(expr: &Expr, mark: &Column) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And | Operator::Or,
            right,
        }) => is_positive(left, mark) && is_positive(right, mark),
        Expr::Column(_) => true,
        other => !uses(other, mark),
    }
}

/// Whether `expr` refers to `mark`; true also where that cannot be found out.
fn uses(expr: &Expr, mark: &Column) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::Column(column) if column == mark)))
        .unwrap_or(true)
}

fn comparison(join: &Join) -> String {
    let mut terms: Vec<String> = join
        .on
        .iter()
        .map(|(left, right)| format!("{left} = {right}"))
        .collect();
    terms.extend(join.filter.iter().map(ToString::to_string));
    format!("`{}`", terms.join(" AND "))
}
