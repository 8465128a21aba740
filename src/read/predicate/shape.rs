//! The shapes that a predicate is widened to: what statistics can decide, and `true` for the rest.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_plan::PhysicalExpr;

use crate::read::statistics::Leaf;
use crate::reason::ReasonCode;

/// Why statistics cannot decide a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    /// The kind of reason.
    pub(crate) code: ReasonCode,
    /// In words.
    pub(crate) text: String,
}

impl Why {
    /// The form of the condition is not looked into.
    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self {
            code: ReasonCode::UnusableTerm,
            text: text.into(),
        }
    }
}

/// A column, perhaps cast in ways that keep the order of its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand {
    /// The column, or the field of one.
    pub(crate) leaf: Leaf,
    /// Types it is cast to, innermost first.
    pub(crate) casts: Vec<DataType>,
    /// The type in the end.
    pub(crate) data_type: DataType,
    /// Whether bounds count only in files without NaN, since a NaN could satisfy the term.
    pub(crate) nan_free: bool,
    /// Whether the column itself is a float.
    pub(crate) float: bool,
}

/// A condition that is evaluated in the files in which every column it uses has one value: always
/// where these are partition columns.
#[derive(Debug, Clone)]
pub(crate) struct ValueTest {
    /// The condition over `schema`.
    pub(crate) expr: Arc<dyn PhysicalExpr>,
    /// The leaves it uses, in the order of `schema`.
    pub(crate) leaves: Vec<Leaf>,
    /// The leaves under names of their own.
    pub(crate) schema: SchemaRef,
    /// Why bounds cannot decide it; nothing where they need not.
    pub(crate) why: Option<Why>,
}

/// `operand [NOT] IN (values)`.
#[derive(Debug, Clone)]
pub(crate) struct SetTest {
    /// What is looked up.
    pub(crate) operand: Operand,
    /// Non-NULL values of the operand's type, ascending.
    pub(crate) values: Arc<[ScalarValue]>,
    /// Whether it is `NOT IN`.
    pub(crate) negated: bool,
}

/// A predicate without NOT that is true wherever the original one is.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// `true`, since statistics cannot decide it, and why.
    Unusable(Why),
    /// `true` by itself.
    Always,
    /// False or NULL for every row.
    Never,
    /// All of these.
    And(Vec<Shape>),
    /// One of these.
    Or(Vec<Shape>),
    /// `operand operator literal`.
    Compare(Operand, Operator, ScalarValue),
    /// `operand [NOT] LIKE pattern`; the flag says NOT.
    Like(Operand, ScalarValue, bool),
    /// `operand IS [NOT] NULL`; the flag says NOT.
    NullTest(Operand, bool),
    /// `operand [NOT] IN (values)`.
    Set(SetTest),
    /// A condition on columns that have one value.
    Value(ValueTest),
}

impl Shape {
    /// The conjunction of `children`.
    pub(crate) fn and(children: Vec<Self>) -> Self {
        let mut parts = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::And(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        if parts.iter().all(|part| matches!(part, Self::Unusable(_))) {
            return parts.into_iter().next().unwrap_or(Self::Always);
        }
        super::float::pair_ranges(&mut parts.iter_mut().collect::<Vec<_>>());
        match parts.len() {
            1 => parts.remove(0),
            _ => Self::And(parts),
        }
    }

    /// The disjunction of `children`. One side that cannot be decided makes all of it so.
    pub(crate) fn or(children: Vec<Self>) -> Self {
        let mut parts = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Self::Never => {}
                Self::Always => return Self::Always,
                Self::Unusable(why) => return Self::Unusable(why),
                Self::Or(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Self::Never,
            1 => parts.remove(0),
            _ => Self::Or(parts),
        }
    }
}
