//! Conditions that are unknown for a NULL, kept from being simplified to true or false.
//!
//! DataFusion's simplifier joins lists for one value without a thought for NULL, those that it makes of
//! `x = 1 OR x = 2` included: `x IN (1, 2) AND x NOT IN (4, NULL)` becomes `x IN (1, 2)`, which no row
//! satisfies, and `x NOT IN (1) OR x NOT IN (2)` becomes `true`, also where `x` is NULL
//! (datafusion #24258). A DELETE would take rows that it must not touch. So conditions are written
//! otherwise before the simplifier sees them:
//!
//! - list elements that may be NULL become terms of their own, `x IN (1, NULL)` becomes
//!   `x IN (1) OR NULL`;
//! - in a condition of WHERE, where unknown may as well be false, NOT goes down to the terms, and a
//!   `NOT IN` says that it wants a value;
//! - elsewhere a term says itself that it is NULL for a NULL: `CASE WHEN x IS NULL THEN NULL ELSE … END`.
//!
//! So do `~` and `^`, which are simplified alike. The first and the last mean the same to the letter.

use std::collections::HashSet;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, lit, when};

use crate::error::shortened;

/// Most levels of terms inside of the operands of terms; each doubles what is written.
const MAX_NESTED: usize = 4;

/// Longest text of an expression in a message, in characters.
const MAX_TEXT: usize = 200;

/// What is minded besides lists that stand together in one expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Care {
    /// The statement changes rows: what cannot be kept right is refused.
    pub(crate) changes_rows: bool,
    /// There are several lists, which may come to stand together when expressions are merged.
    pub(crate) several_lists: bool,
}

impl Care {
    /// Nothing is left to chance.
    pub(crate) const FULL: Self = Self {
        changes_rows: true,
        several_lists: true,
    };
}

/// `condition`, whose unknown may as well be false, over `schema`.
///
/// # Errors
///
/// If the statement changes rows and has terms nested too deeply inside of terms.
pub(crate) fn condition(
    condition: Expr,
    care: Care,
    schema: &DFSchema,
) -> Result<Transformed<Expr>> {
    if !Terms::of(&condition).may_be_mistaken(care) {
        return Ok(Transformed::no(condition));
    }
    let split = condition.transform_up(split)?;
    guarded_condition(split.data, care, schema).map(Transformed::yes)
}

/// `value`, whose unknown is told from false, over `schema`.
///
/// # Errors
///
/// As [`condition`].
pub(crate) fn value(value: Expr, care: Care, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let terms = Terms::of(&value);
    // Equalities alone are left to queries as they are: a guard takes time for each row.
    let is_minded = care.changes_rows || terms.lists > 0;
    if !is_minded || !terms.may_be_mistaken(care) {
        return Ok(Transformed::no(value));
    }
    let split = value.transform_up(split)?;
    guarded_value(split.data, care, schema).map(Transformed::yes)
}

/// How many lists `expr` holds, and whether it holds anything that may be minded.
pub(crate) fn terms_in(expr: &Expr) -> (usize, bool) {
    let terms = Terms::of(expr);
    (terms.lists, terms.may_be_mistaken(Care::FULL))
}

/// What an expression holds, its operands' operands included.
#[derive(Debug, Default)]
struct Terms {
    lists: usize,
    /// What the simplifier may make a list of.
    equalities: usize,
    /// What is simplified to an answer by itself.
    answers: usize,
    /// AND and OR.
    junctions: usize,
}

impl Terms {
    fn of(expr: &Expr) -> Self {
        let mut terms = Self::default();
        // The walk fails only where its closure does.
        let _ = expr.apply(|node| {
            match node {
                Expr::InList(_) => terms.lists += 1,
                Expr::BinaryExpr(binary) => match binary.op {
                    Operator::Eq | Operator::NotEq => terms.equalities += 1,
                    Operator::And | Operator::Or => terms.junctions += 1,
                    Operator::BitwiseXor => terms.answers += 1,
                    op if is_regex(op) => {
                        terms.equalities += 1;
                        terms.answers += usize::from(is_any_text(&binary.right));
                    }
                    _ => {}
                },
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        });
        terms
    }

    fn has_any(&self) -> bool {
        self.lists + self.equalities + self.answers > 0
    }

    fn may_be_mistaken(&self, care: Care) -> bool {
        let stand_together = self.lists + self.equalities > 1 && self.junctions > 0;
        stand_together || self.answers > 0 || (care.several_lists && self.lists > 0)
    }
}

fn is_regex(op: Operator) -> bool {
    matches!(
        op,
        Operator::RegexMatch
            | Operator::RegexIMatch
            | Operator::RegexNotMatch
            | Operator::RegexNotIMatch
    )
}

fn is_any_text(pattern: &Expr) -> bool {
    match pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten() == Some(".*"),
        Expr::Cast(cast) => is_any_text(&cast.expr),
        _ => false,
    }
}

/// `x IN (1, NULL, y)` is `x IN (1) OR NULL OR x = y`.
fn split(node: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(list) = node else {
        return Ok(Transformed::no(node));
    };
    // A subquery alone is a set.
    let is_set = matches!(list.list.as_slice(), [Expr::ScalarSubquery(_)]);
    if is_set || list.expr.is_volatile() || list.list.iter().all(is_never_null) {
        return Ok(Transformed::no(Expr::InList(list)));
    }
    let (plain, others): (Vec<Expr>, Vec<Expr>) = list.list.into_iter().partition(is_never_null);
    let (value, negated) = (list.expr, list.negated);
    let (equal, joined) = match negated {
        false => (Operator::Eq, Operator::Or),
        true => (Operator::NotEq, Operator::And),
    };
    let mut terms = Vec::with_capacity(others.len() + 1);
    if !plain.is_empty() {
        terms.push(Expr::InList(InList::new(value.clone(), plain, negated)));
    }
    terms.extend(others.into_iter().map(|other| {
        if is_null(&other) {
            unknown()
        } else {
            binary_expr(value.as_ref().clone(), equal, other)
        }
    }));
    Ok(Transformed::yes(joined_by(joined, terms)))
}

/// `terms` in a tree of low height.
fn joined_by(op: Operator, mut terms: Vec<Expr>) -> Expr {
    while terms.len() > 1 {
        let mut left = terms.into_iter();
        let mut next = Vec::new();
        while let Some(first) = left.next() {
            next.push(match left.next() {
                Some(second) => binary_expr(first, op, second),
                None => first,
            });
        }
        terms = next;
    }
    terms.pop().unwrap_or_else(|| lit(op == Operator::And))
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::TryCast(cast) => is_null(&cast.expr),
        Expr::Alias(alias) => is_null(&alias.expr),
        _ => false,
    }
}

fn is_never_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !value.is_null(),
        // It fails sooner than it gives NULL.
        Expr::Cast(cast) => is_never_null(&cast.expr),
        _ => false,
    }
}

/// Whether a NOT in front of `expr` stays there: what becomes of a subquery depends on it.
fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |node: &Expr| {
        Ok(matches!(
            node,
            Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
        ))
    };
    // The walk fails only where its closure does.
    expr.exists(is_subquery).unwrap_or(true)
}

/// Terms of `AND` and `OR`, each without a guard if it is not negated.
fn guarded_condition(expr: Expr, care: Care, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            op: op @ (Operator::And | Operator::Or),
            ..
        }) => {
            let terms = terms_of(expr, op)
                .into_iter()
                .map(|term| guarded_condition(term, care, schema))
                .collect::<Result<Vec<_>>>()?;
            Ok(joined_by(op, terms))
        }
        Expr::Not(inner) if !has_subquery(&inner) => match *inner {
            Expr::Not(inner) => guarded_condition(*inner, care, schema),
            Expr::InList(list) => {
                let negated = !list.negated;
                guarded_condition(Expr::InList(InList { negated, ..list }), care, schema)
            }
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::Eq | Operator::NotEq),
                right,
            }) => {
                let op = if op == Operator::Eq {
                    Operator::NotEq
                } else {
                    Operator::Eq
                };
                guarded_condition(binary_expr(*left, op, *right), care, schema)
            }
            Expr::BinaryExpr(BinaryExpr {
                op: op @ (Operator::And | Operator::Or),
                ..
            }) => {
                let other = if op == Operator::And {
                    Operator::Or
                } else {
                    Operator::And
                };
                let terms = terms_of(*inner, op)
                    .into_iter()
                    .map(|term| guarded_condition(Expr::Not(Box::new(term)), care, schema))
                    .collect::<Result<Vec<_>>>()?;
                Ok(joined_by(other, terms))
            }
            other => Ok(Expr::Not(Box::new(guarded_value(other, care, schema)?))),
        },
        Expr::InList(mut list) if !list.expr.is_volatile() => {
            if Terms::of(&list.expr).has_any() {
                *list.expr = guarded_value(*list.expr, care, schema)?;
            }
            let is_known = list.expr.as_ref().clone().is_not_null();
            let needs_guard = list.negated && list.expr.nullable(schema).unwrap_or(true);
            let list = Expr::InList(list);
            Ok(if needs_guard {
                list.and(is_known)
            } else {
                list
            })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::Eq | Operator::NotEq) || is_regex(op) =>
        {
            let mut sides = [*left, *right];
            for side in &mut sides {
                if Terms::of(side).has_any() {
                    let inner = std::mem::replace(side, unknown());
                    *side = guarded_value(inner, care, schema)?;
                }
            }
            let [left, right] = sides;
            Ok(binary_expr(left, op, right))
        }
        other => guarded_value(other, care, schema),
    }
}

/// The terms of a chain of `op`, in order; not by recursion, since chains are long.
fn terms_of(expr: Expr, op: Operator) -> Vec<Expr> {
    let mut left = vec![expr];
    let mut terms = Vec::new();
    while let Some(next) = left.pop() {
        match next {
            Expr::BinaryExpr(binary) if binary.op == op => {
                left.push(*binary.right);
                left.push(*binary.left);
            }
            term => terms.push(term),
        }
    }
    terms
}

/// Every term NULL where an operand is.
fn guarded_value(expr: Expr, care: Care, schema: &DFSchema) -> Result<Expr> {
    if nested(&expr) > MAX_NESTED {
        if !care.changes_rows {
            return Ok(expr);
        }
        return plan_err!(
            "`{}` has IN, =, ~ or ^ more than {MAX_NESTED} levels deep inside of one another's \
             operands; name the inner ones in a subquery",
            shortened(expr.human_display().to_string(), MAX_TEXT)
        );
    }
    let guarded = expr.transform_up(|node| {
        let mut seen = HashSet::new();
        let is_unknown: Vec<Expr> = operands_of(&node)
            .into_iter()
            .filter(|operand| !is_never_null(operand) && operand.nullable(schema).unwrap_or(true))
            .filter(|operand| seen.insert(*operand))
            .map(|operand| operand.clone().is_null())
            .collect();
        if is_unknown.is_empty() || node.is_volatile() {
            return Ok(Transformed::no(node));
        }
        let data_type = match &node {
            Expr::BinaryExpr(binary) if binary.op == Operator::BitwiseXor => {
                node.get_type(schema)?
            }
            _ => DataType::Boolean,
        };
        let null = ScalarValue::try_from(&data_type)?;
        let case = when(joined_by(Operator::Or, is_unknown), lit(null)).otherwise(node)?;
        Ok(Transformed::yes(case))
    })?;
    Ok(guarded.data)
}

/// The operands whose NULL makes a term unknown; none of what is no term.
fn operands_of(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::InList(list) => vec![&list.expr],
        Expr::BinaryExpr(binary)
            if is_equality_with_a_constant(binary)
                || is_regex(binary.op)
                || binary.op == Operator::BitwiseXor =>
        {
            vec![&binary.left, &binary.right]
        }
        _ => vec![],
    }
}

/// Only such an equality can become a list.
fn is_equality_with_a_constant(binary: &BinaryExpr) -> bool {
    matches!(binary.op, Operator::Eq | Operator::NotEq)
        && [&binary.left, &binary.right].into_iter().any(|side| {
            side.column_refs().is_empty() && !side.contains_outer() && !has_subquery(side)
        })
}

/// How many terms stand inside of one another's operands.
fn nested(expr: &Expr) -> usize {
    let mut deepest = 0;
    let mut left = vec![(expr, 0)];
    while let Some((next, depth)) = left.pop() {
        let depth = depth + usize::from(!operands_of(next).is_empty());
        deepest = deepest.max(depth);
        // The walk fails only where its closure does.
        let _ = next.apply_children(|child| {
            left.push((child, depth));
            Ok(TreeNodeRecursion::Continue)
        });
    }
    deepest
}
