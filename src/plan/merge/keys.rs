//! Which equalities of ON can prune the table's files by the values of the source.
//!
//! In: ON. Out: pairs of a column of the table and a column of the source such that a row of the
//! table matches only if its value is one of the source's. Left out is what statistics prove
//! nothing about or what is not plain equality of values: floats (NaN, two zeros), nested types,
//! `IS NOT DISTINCT FROM`, expressions that give another value each time, and comparisons in a type
//! that is neither the column's own nor one that holds each of its values.

use arrow::datatypes::DataType;
use datafusion::common::{Column, ExprSchema};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::expressions::Relations;
use super::reads::is_total;

/// One usable equality of ON.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KeyPair {
    /// Which of ON's conjuncts it is.
    pub(super) conjunct: usize,
    /// A column of the table, maybe under a cast to a type that holds all its values.
    pub(super) target: Expr,
    /// What it is compared with: a column of the source, maybe under a cast that never fails.
    pub(super) source: Expr,
}

/// The usable equalities among the conjuncts of `on`.
pub(super) fn key_pairs(on: &Expr, relations: &Relations) -> Vec<KeyPair> {
    split_conjunction(on)
        .into_iter()
        .enumerate()
        .filter_map(|(conjunct, expr)| {
            let Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) = expr
            else {
                return None;
            };
            [(left, right), (right, left)]
                .into_iter()
                .find(|(target, source)| is_usable(target, source, relations))
                .map(|(target, source)| KeyPair {
                    conjunct,
                    target: target.as_ref().clone(),
                    source: source.as_ref().clone(),
                })
        })
        .collect()
}

fn is_usable(target: &Expr, source: &Expr, relations: &Relations) -> bool {
    let (Some(target_column), Some(source_column)) =
        (column_under_casts(target), column_under_casts(source))
    else {
        return false;
    };
    if !relations.target.has_column(target_column)
        || relations.target.has_column(source_column)
        || !relations.source.has_column(source_column)
        || !is_total(source, &relations.source)
    {
        return false;
    }
    let (Ok(compared), Ok(other)) = (
        target.get_type(&relations.target),
        source.get_type(&relations.source),
    ) else {
        return false;
    };
    let Ok(own) = relations.target.field_from_column(target_column) else {
        return false;
    };
    let casts_at_most_once = match target {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        _ => false,
    };
    compared == other && casts_at_most_once && compares_by_value(own.data_type(), &compared)
}

/// A column, looked up through casts.
fn column_under_casts(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Cast(cast) => column_under_casts(&cast.expr),
        _ => None,
    }
}

/// Whether values of a column of type `own` are told apart by comparing them as `compared`.
pub(in crate::plan) fn compares_by_value(own: &DataType, compared: &DataType) -> bool {
    use DataType::{
        Boolean, Date32, Decimal128, Int8, Int16, Int32, Int64, LargeUtf8, Timestamp, Utf8,
        Utf8View,
    };
    match (own, compared) {
        (
            Boolean | Int8 | Int16 | Int32 | Int64 | Utf8 | LargeUtf8 | Utf8View | Date32
            | Decimal128(..) | Timestamp(..),
            compared,
        ) if own == compared => true,
        (Int8, Int16 | Int32 | Int64) | (Int16, Int32 | Int64) | (Int32, Int64) => true,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => true,
        _ => false,
    }
}
