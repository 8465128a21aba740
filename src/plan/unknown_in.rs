//! `IN (SELECT …)` whose answer may be unknown, in places where DataFusion takes that for false.
//!
//! With a NULL among the values or for the column, `x IN (SELECT …)` is neither true nor false.
//! DataFusion keeps to that where the term is a conjunct of WHERE by itself. Elsewhere it becomes a
//! mark that knows two answers (datafusion #21309), as does a correlated `NOT IN` (#25347), and a
//! `NOT IN` of a constant forgets the NULLs (#25473): below NOT the unknown becomes true, and a DELETE
//! takes rows that it must not touch. Such a change is
//! refused; `EXISTS`, which is never unknown, says the same without doubt.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

use crate::error::{Error, Result};

/// Refuses `plan`, the input of `statement`, if an unknown `IN` would change the rows it finds.
///
/// # Errors
///
/// `Unsupported`, with the term.
pub(super) fn check(plan: &LogicalPlan, statement: &str) -> Result<()> {
    let mut found = None;
    let walked = plan.apply_with_subqueries(|plan| {
        let condition = match plan {
            LogicalPlan::Filter(filter) => Some(&filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_ref(),
            _ => None,
        };
        if let Some(condition) = condition {
            let schema = merge_schema(&plan.inputs());
            found = split_conjunction(condition)
                .into_iter()
                .find_map(|conjunct| mistaken(conjunct, &schema));
        }
        Ok(if found.is_some() {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    walked.map_err(|e| Error::internal("cannot look through the plan").with_source(e))?;
    match found {
        None => Ok(()),
        Some(term) => Err(Error::unsupported(format!(
            "{statement} with `{term}`, which may be unknown because of NULL and would count as \
             false or true there; write [NOT] EXISTS (SELECT … WHERE … = …) instead"
        ))),
    }
}

/// The term of a conjunct that DataFusion gets wrong.
fn mistaken(conjunct: &Expr, schema: &DFSchema) -> Option<String> {
    let (term, negated) = match conjunct {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    match term {
        Expr::InSubquery(term) => {
            let correlated = !term.subquery.outer_ref_columns.is_empty();
            // Without a column it becomes a condition on the subquery's rows, which leaves out NULL.
            let is_constant = term.expr.column_refs().is_empty();
            let is_mistaken = (correlated || is_constant) && term.negated != negated;
            (is_mistaken && may_be_unknown(term, schema)).then(|| text(term))
        }
        _ => told_apart(conjunct, true, schema),
    }
}

/// A term inside of `expr` for which false and unknown lead to different rows. `positive`: nothing
/// but AND and OR stands above.
fn told_apart(expr: &Expr, positive: bool, schema: &DFSchema) -> Option<String> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And | Operator::Or,
            right,
        }) => told_apart(left, positive, schema).or_else(|| told_apart(right, positive, schema)),
        Expr::InSubquery(term) if positive && !term.negated => None,
        _ => {
            let mut found = None;
            let walked = expr.apply(|expr| {
                Ok(match expr {
                    Expr::InSubquery(term) if may_be_unknown(term, schema) => {
                        found = Some(text(term));
                        TreeNodeRecursion::Stop
                    }
                    _ => TreeNodeRecursion::Continue,
                })
            });
            // A walk that fails found nothing it could vouch for.
            if walked.is_err() {
                Some(expr.to_string())
            } else {
                found
            }
        }
    }
}

fn may_be_unknown(term: &InSubquery, schema: &DFSchema) -> bool {
    let value: DFResult<bool> = term.expr.nullable(schema);
    let found = term.subquery.subquery.schema().fields().first();
    value.unwrap_or(true) || found.is_none_or(|field| field.is_nullable())
}

fn text(term: &InSubquery) -> String {
    let not = if term.negated { "NOT " } else { "" };
    format!("{} {not}IN (SELECT …)", term.expr)
}
