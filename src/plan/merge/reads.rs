//! Which rows of the table can matter to a MERGE, as far as the statement's text tells.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, JoinType};
use datafusion::logical_expr::dml::MergeIntoOp;
use datafusion::logical_expr::dml::{MergeIntoClause, MergeIntoClauseKind};
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Operator};

use super::expressions::Relations;

/// A filter for the table's rows that drops only rows without any influence, if there is one.
///
/// - Where only matched rows count, a row counts if it may match and a clause may apply to it.
/// - Where the table's rows count without a partner, a row counts if it may match or if one of
///   those clauses may apply to it.
/// - Else the optimizer itself moves ON's conditions on the table to its scan. The conditions of
///   WHEN MATCHED must not narrow it: a row to which no clause applies still is a match, and keeps
///   the source's row from being inserted.
pub(super) fn rows_that_matter(
    op: &MergeIntoOp,
    join_type: JoinType,
    relations: &Relations,
) -> Option<Expr> {
    match join_type {
        JoinType::Inner => may_apply(&op.clauses, MergeIntoClauseKind::Matched, relations),
        JoinType::Right | JoinType::Full => {
            let may_match = conjuncts_of_target(&op.on, relations)?;
            let alone = may_apply(
                &op.clauses,
                MergeIntoClauseKind::NotMatchedBySource,
                relations,
            )?;
            Some(may_match.or(alone))
        }
        _ => None,
    }
}

/// What a row of the table must fulfil for a clause of `kind` to apply; nothing if that is not
/// known.
pub(super) fn may_apply(
    clauses: &[MergeIntoClause],
    kind: MergeIntoClauseKind,
    relations: &Relations,
) -> Option<Expr> {
    let conditions = clauses
        .iter()
        .filter(|clause| clause.kind.canonical() == kind)
        .map(|clause| conjuncts_of_target(clause.predicate.as_ref()?, relations))
        .collect::<Option<Vec<_>>>()?;
    disjunction(conditions)
}

/// The conjuncts of `expr` that are about the table alone; nothing if there are none.
fn conjuncts_of_target(expr: &Expr, relations: &Relations) -> Option<Expr> {
    conjunction(
        split_conjunction(expr)
            .into_iter()
            .filter(|conjunct| {
                relations.is_of_target(conjunct) && is_total(conjunct, &relations.target)
            })
            .map(fold_casts),
    )
}

/// Whether `expr` has a value for every row. As a filter it is evaluated for rows that its clause is
/// not for, where nothing may fail.
pub(super) fn is_total(expr: &Expr, target: &DFSchema) -> bool {
    let is_total = |expr: &Expr| is_total(expr, target);
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_total(&alias.expr),
        Expr::BinaryExpr(binary) => {
            let total = matches!(
                binary.op,
                Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
                    | Operator::And
                    | Operator::Or
                    | Operator::IsDistinctFrom
                    | Operator::IsNotDistinctFrom
            );
            total && is_total(&binary.left) && is_total(&binary.right)
        }
        Expr::Not(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsNotUnknown(inner) => is_total(inner),
        Expr::Between(between) => {
            is_total(&between.expr) && is_total(&between.low) && is_total(&between.high)
        }
        Expr::InList(list) => is_total(&list.expr) && list.list.iter().all(is_total),
        Expr::Cast(cast) => cast_is_total(cast, target),
        _ => false,
    }
}

/// Whether a cast has a value for each value: that of a constant which is known to have one, or one
/// to a type that holds every value.
fn cast_is_total(cast: &Cast, target: &DFSchema) -> bool {
    let to = cast.field.data_type();
    match cast.expr.as_ref() {
        Expr::Literal(value, _) => value.cast_to(to).is_ok(),
        inner => {
            is_total(inner, target)
                && inner
                    .get_type(target)
                    .is_ok_and(|from| holds_all(&from, to))
        }
    }
}

fn holds_all(from: &DataType, to: &DataType) -> bool {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8, Utf8, Utf8View};
    match (from, to) {
        (from, to) if from == to => true,
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64)
        | (Int16, Int32 | Int64 | Float32 | Float64)
        | (Int32, Int64 | Float32 | Float64)
        | (Int64, Float32 | Float64)
        | (Float32, Float64)
        | (Utf8 | LargeUtf8 | Utf8View, Utf8View) => true,
        _ => false,
    }
}

/// `expr` with its casts of constants carried out.
fn fold_casts(expr: &Expr) -> Expr {
    let folded = expr.clone().transform(|node| {
        if let Expr::Cast(cast) = &node
            && let Expr::Literal(value, _) = cast.expr.as_ref()
            && let Ok(value) = value.cast_to(cast.field.data_type())
        {
            return Ok(Transformed::yes(Expr::Literal(value, None)));
        }
        Ok(Transformed::no(node))
    });
    folded.map_or_else(|_| expr.clone(), |folded| folded.data)
}
