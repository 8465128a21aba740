//! Conditions on `id`: as DataFusion hands them over, and as what they mean.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, binary_expr, col, lit};

use super::world::Value;

/// A condition of the small grammar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    Compare(Operator, i64),
    IsNull,
    In(Vec<Value>),
    Not(Box<Question>),
    And(Box<Question>, Box<Question>),
    Or(Box<Question>, Box<Question>),
}

impl Question {
    /// Every condition without AND, OR and NOT.
    pub(super) fn leaves() -> Vec<Self> {
        let mut leaves = vec![
            Self::IsNull,
            Self::In(vec![Some(0), Some(2)]),
            Self::In(vec![Some(1), None]),
        ];
        for operator in [
            Operator::Eq,
            Operator::NotEq,
            Operator::Lt,
            Operator::LtEq,
            Operator::Gt,
            Operator::GtEq,
            Operator::IsDistinctFrom,
            Operator::IsNotDistinctFrom,
        ] {
            leaves.extend((0..=3).map(|value| Self::Compare(operator, value)));
        }
        leaves
    }

    /// Every condition of one or two leaves.
    pub(super) fn all() -> Vec<Self> {
        let leaves = Self::leaves();
        let mut all = leaves.clone();
        for (place, left) in leaves.iter().enumerate() {
            for right in &leaves[..place] {
                let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                all.push(Self::And(left.clone(), right.clone()));
                all.push(Self::Or(left, right));
            }
        }
        let negated: Vec<Self> = all
            .iter()
            .map(|question| Self::Not(Box::new(question.clone())))
            .collect();
        all.extend(negated);
        all
    }

    pub(super) fn expr(&self) -> Expr {
        match self {
            Self::Compare(operator, value) => binary_expr(col("id"), *operator, lit(*value)),
            Self::IsNull => col("id").is_null(),
            Self::In(values) => {
                let values = values.iter().map(|value| lit(ScalarValue::Int64(*value)));
                col("id").in_list(values.collect(), false)
            }
            Self::Not(inner) => !inner.expr(),
            Self::And(left, right) => left.expr().and(right.expr()),
            Self::Or(left, right) => left.expr().or(right.expr()),
        }
    }

    /// Whether it is true of a row with this value.
    pub(super) fn is_true(&self, value: Value) -> bool {
        self.holds(value) == Some(true)
    }

    fn holds(&self, value: Value) -> Option<bool> {
        match self {
            Self::Compare(Operator::IsDistinctFrom, other) => Some(value != Some(*other)),
            Self::Compare(Operator::IsNotDistinctFrom, other) => Some(value == Some(*other)),
            Self::Compare(operator, other) => {
                let order = value?.cmp(other);
                Some(match operator {
                    Operator::Eq => order.is_eq(),
                    Operator::NotEq => order.is_ne(),
                    Operator::Lt => order.is_lt(),
                    Operator::LtEq => order.is_le(),
                    Operator::Gt => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            Self::IsNull => Some(value.is_none()),
            Self::In(values) => {
                let value = Some(value?);
                if values.contains(&value) {
                    Some(true)
                } else {
                    (!values.contains(&None)).then_some(false)
                }
            }
            Self::Not(inner) => inner.holds(value).map(|held| !held),
            Self::And(left, right) => both(left.holds(value), right.holds(value)),
            Self::Or(left, right) => {
                let neither = both(
                    left.holds(value).map(|held| !held),
                    right.holds(value).map(|held| !held),
                );
                neither.map(|held| !held)
            }
        }
    }
}

fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
