//! Subqueries that have a row, or none, where DataFusion expects it otherwise.
//!
//! `SELECT max(x) FROM u WHERE …` has one row whatever it finds, `OFFSET 5` leaves out rows of each
//! outer row's own: as joins, which DataFusion makes of correlated subqueries, both are forgotten
//! (datafusion #24960), and a DELETE with `NOT EXISTS` takes rows that it must not. A scalar subquery
//! that finds nothing is NULL, also over a column that never is (datafusion #24513).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result as DFResult, ScalarValue};
use datafusion::functions::core::expr_fn::nullif;
use datafusion::logical_expr::{
    Expr, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType, Subquery, lit,
};

use crate::error::{Error, Result};

/// Refuses `plan`, a change, if such a subquery would change the rows it finds.
///
/// # Errors
///
/// `Unsupported`, with what to write instead.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut found = None;
    let walked = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                let (subquery, is_scalar) = match expr {
                    Expr::Exists(term) => (&term.subquery, false),
                    Expr::InSubquery(term) => (&term.subquery, false),
                    Expr::SetComparison(term) => (&term.subquery, false),
                    Expr::ScalarSubquery(subquery) => (subquery, true),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                if !subquery.outer_ref_columns.is_empty() {
                    found = mistaken(&subquery.subquery, is_scalar);
                }
                Ok(if found.is_some() {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })
    });
    walked.map_err(|e| Error::internal("cannot look through the plan").with_source(e))?;
    match found {
        None => Ok(()),
        Some(what) => Err(Error::unsupported(format!(
            "a change with a subquery that depends on the outer row and has {what}, which would be \
             forgotten; compare a scalar subquery, such as (SELECT count(*) FROM … WHERE …) > 0"
        ))),
    }
}

/// What of the top of `plan` is forgotten.
fn mistaken(plan: &LogicalPlan, is_scalar: bool) -> Option<&'static str> {
    match plan {
        LogicalPlan::Projection(projection) => mistaken(&projection.input, is_scalar),
        LogicalPlan::SubqueryAlias(alias) => mistaken(&alias.input, is_scalar),
        LogicalPlan::Sort(sort) => mistaken(&sort.input, is_scalar),
        LogicalPlan::Distinct(distinct) => mistaken(distinct.input(), is_scalar),
        LogicalPlan::Limit(limit) => {
            let is_whole = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
                && !matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0))));
            if is_whole {
                mistaken(&limit.input, is_scalar)
            } else {
                Some("OFFSET")
            }
        }
        LogicalPlan::Filter(filter) if is_ungrouped(&filter.input) => {
            Some("HAVING without GROUP BY")
        }
        LogicalPlan::Aggregate(aggregate) if is_scalar && is_ungrouped(plan) => {
            mistaken_below(&aggregate.input)
        }
        plan if is_ungrouped(plan) => Some("an aggregate without GROUP BY"),
        plan => mistaken_below(plan),
    }
}

/// What of `plan`, which is not the top, is forgotten where it depends on the outer row.
fn mistaken_below(plan: &LogicalPlan) -> Option<&'static str> {
    let mut found = None;
    // The walk fails only where its closure does.
    let _ = plan.apply(|node| {
        let is_limited = matches!(node, LogicalPlan::Limit(_));
        if (is_limited || is_ungrouped(node)) && !node.all_out_ref_exprs().is_empty() {
            found = Some(if is_limited {
                "LIMIT or OFFSET inside"
            } else {
                "an aggregate without GROUP BY inside"
            });
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn is_ungrouped(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}

/// `plan` and its subqueries, with scalar subqueries that may be NULL unless they have a row for sure.
pub(super) fn may_find_nothing(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let rewritten = plan.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(subquery) => nullable(subquery),
                other => Ok(Transformed::no(other)),
            })
        })?;
        // Also where only an input became nullable.
        rewritten.map_data(LogicalPlan::recompute_schema)
    })
    .map(|transformed| transformed.data)
}

fn nullable(subquery: Subquery) -> DFResult<Transformed<Expr>> {
    let plan = &subquery.subquery;
    let schema = plan.schema();
    let is_certain = |plan: &LogicalPlan| match plan {
        LogicalPlan::Projection(projection) => is_ungrouped(&projection.input),
        plan => is_ungrouped(plan),
    };
    if is_certain(plan) || schema.fields().len() != 1 || schema.field(0).is_nullable() {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let (qualifier, field) = schema.qualified_field(0);
    let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let null = lit(ScalarValue::try_from(field.data_type())?);
    // The function keeps the value and loses the promise.
    let value = nullif(column, null).alias(field.name());
    let plan = LogicalPlanBuilder::from(plan.as_ref().clone())
        .project([value])?
        .build()?;
    Ok(Transformed::yes(Expr::ScalarSubquery(
        subquery.with_plan(Arc::new(plan)),
    )))
}
