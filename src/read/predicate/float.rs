//! Floats: which comparisons a NaN cannot satisfy, and what zero means.
//!
//! The bounds of a file leave NaN out, while in Arrow's order a NaN lies above every number and a
//! NaN with a sign below. A row that is NaN can therefore satisfy `x > c`, `x < c` and `x <> c`
//! though all bounds say otherwise, but never `x = c`, nor both ends of a range.

use std::collections::HashSet;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use super::shape::{Operand, Shape, Why};
use crate::read::statistics::Leaf;
use crate::reason::ReasonCode;

/// `operand op literal` over floats: exact where no NaN can match, else only in files without NaN.
///
/// Zero is compared either by its sign (Arrow's kernels) or without (SQL), depending on who
/// compares, so that a strict comparison with it is loosened and "different from zero" proves
/// nothing.
pub(super) fn compare(mut operand: Operand, op: Operator, literal: ScalarValue) -> Shape {
    if is_nan(&literal) {
        return Shape::Unusable(Why {
            code: ReasonCode::NanPossible,
            text: "compares with NaN".to_owned(),
        });
    }
    let op = if is_zero(&literal) {
        match op {
            Operator::Lt => Operator::LtEq,
            Operator::Gt => Operator::GtEq,
            Operator::NotEq | Operator::IsDistinctFrom => {
                return Shape::Unusable(Why::form("zero has two signs"));
            }
            other => other,
        }
    } else {
        op
    };
    operand.nan_free = operand.float && !matches!(op, Operator::Eq | Operator::IsNotDistinctFrom);
    Shape::Compare(operand, op, literal)
}

/// Finds, among the conjuncts of one conjunction, columns with both a lower and an upper end: no
/// NaN satisfies such a conjunction, so that its ends count in every file. Returns these columns.
pub(super) fn pair_ranges(conjuncts: &mut [&mut Shape]) -> HashSet<Leaf> {
    let mut lower = HashSet::new();
    let mut upper = HashSet::new();
    for conjunct in conjuncts.iter() {
        let Shape::Compare(operand, op, _) = &**conjunct else {
            continue;
        };
        if !operand.float {
            continue;
        }
        match op {
            Operator::Gt | Operator::GtEq => {
                lower.insert(operand.leaf.clone());
            }
            Operator::Lt | Operator::LtEq => {
                upper.insert(operand.leaf.clone());
            }
            _ => {}
        }
    }
    let both: HashSet<Leaf> = lower.intersection(&upper).cloned().collect();
    for conjunct in conjuncts.iter_mut() {
        if let Shape::Compare(operand, op, _) = &mut **conjunct
            && both.contains(&operand.leaf)
            && matches!(
                op,
                Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq
            )
        {
            operand.nan_free = false;
        }
    }
    both
}

/// Whether `value` is a NaN of either sign.
pub(super) fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    }
}

fn is_zero(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => *value == 0.0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        _ => false,
    }
}
