//! Widening: from a filter to a [`Shape`] that is true wherever the filter is.
//!
//! NOT is pushed down to the leaves first, by rules that hold in three-valued logic. A leaf that
//! statistics cannot decide then becomes `true`, which in a formula of AND and OR alone only adds
//! rows. Under anything else (CASE, IS NOT TRUE, a comparison of conditions) the whole operand
//! becomes `true`.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator, Volatility};

use super::cast::{fit, is_monotone, is_ordered, is_text};
use super::float;
use super::path::leaf_of;
use super::shape::{Operand, SetTest, Shape, Why};
use super::single_value::{leaves_of, value_test};
use crate::read::statistics::{Leaf, StatisticsSchema, touches_float};
use crate::reason::ReasonCode;

/// Deepest nesting of AND, OR and NOT that is looked into. Chains of one operator count once.
const MAX_DEPTH: usize = 128;

/// Widens `filter`.
pub(super) fn widen(filter: &Expr, schema: &StatisticsSchema) -> Shape {
    Widener { schema }.widen(filter, false, 0)
}

struct Widener<'a> {
    schema: &'a StatisticsSchema,
}

impl Widener<'_> {
    /// The shape of `expr`, or of `NOT expr` if `negated`.
    fn widen(&self, expr: &Expr, negated: bool, depth: usize) -> Shape {
        if depth > MAX_DEPTH {
            return Shape::Unusable(Why::form("nested too deeply"));
        }
        let depth = depth + 1;
        match expr {
            Expr::Alias(alias) => self.widen(&alias.expr, negated, depth),
            Expr::Not(inner) => self.widen(inner, !negated, depth),
            Expr::BinaryExpr(BinaryExpr {
                op: op @ (Operator::And | Operator::Or),
                ..
            }) => {
                let children = chain(expr, *op)
                    .into_iter()
                    .map(|child| self.widen(child, negated, depth))
                    .collect();
                if (*op == Operator::And) == negated {
                    Shape::or(children)
                } else {
                    Shape::and(children)
                }
            }
            Expr::Literal(value, _) => match value {
                ScalarValue::Boolean(Some(value)) if *value != negated => Shape::Always,
                ScalarValue::Boolean(_) | ScalarValue::Null => Shape::Never,
                _ => Shape::Unusable(Why::form("not a condition")),
            },
            // A row passes `x IS TRUE` exactly if it passes `x`, and `x IS FALSE` exactly if it
            // passes `NOT x`. Their negations also let NULL pass and are leaves.
            Expr::IsTrue(inner) if !negated => self.widen(inner, false, depth),
            Expr::IsNotTrue(inner) if negated => self.widen(inner, false, depth),
            Expr::IsFalse(inner) if !negated => self.widen(inner, true, depth),
            Expr::IsNotFalse(inner) if negated => self.widen(inner, true, depth),
            condition => match leaves_of(condition, self.schema) {
                Some(leaves) => self.with_values(condition, negated, leaves),
                None => self.by_bounds(condition, negated),
            },
        }
    }

    /// The shape of a condition that can also be evaluated where its `leaves` have one value.
    fn with_values(&self, condition: &Expr, negated: bool, leaves: Vec<Leaf>) -> Shape {
        let partitions = leaves.iter().all(|leaf| self.schema.is_partition(leaf));
        // Partition timestamps without a zone have bounds but no value.
        let bounds = if partitions && !leaves.iter().any(|leaf| self.is_zoned(leaf)) {
            None
        } else {
            Some(self.by_bounds(condition, negated))
        };
        let value = |why| value_test(condition, negated, leaves, why, self.schema);
        match bounds {
            None => match value(None) {
                Some(test) => Shape::Value(test),
                None => Shape::Unusable(reason(condition, self.schema)),
            },
            Some(Shape::Unusable(why)) => match value(Some(why.clone())) {
                Some(test) => Shape::Value(test),
                None => Shape::Unusable(why),
            },
            // Bounds say less than values here.
            Some(shape) if partitions || matches!(shape, Shape::Like(..)) => match value(None) {
                Some(test) => Shape::and(vec![shape, Shape::Value(test)]),
                None => shape,
            },
            Some(shape) => shape,
        }
    }

    /// The shape of a condition without AND, OR and NOT, as far as bounds and null counts go.
    fn by_bounds(&self, leaf: &Expr, negated: bool) -> Shape {
        let shape = match leaf {
            Expr::BinaryExpr(binary) => self.comparison(binary, negated),
            Expr::Between(between) => self.between(between, negated),
            Expr::InList(list) => self.in_list(list, negated),
            Expr::Like(like) => self.like(like, negated),
            Expr::IsNull(inner) | Expr::IsUnknown(inner) => self.null_test(inner, negated),
            Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => self.null_test(inner, !negated),
            _ => None,
        };
        shape.unwrap_or_else(|| Shape::Unusable(reason(leaf, self.schema)))
    }

    fn comparison(&self, binary: &BinaryExpr, negated: bool) -> Option<Shape> {
        let (operand, op, literal) = match (self.operand(&binary.left), literal(&binary.right)) {
            (Some(operand), Some(literal)) => (operand, binary.op, literal),
            _ => (
                self.operand(&binary.right)?,
                binary.op.swap()?,
                literal(&binary.left)?,
            ),
        };
        let op = if negated { op.negate()? } else { op };
        Some(compare(operand, op, literal))
    }

    fn between(&self, between: &Between, negated: bool) -> Option<Shape> {
        let operand = self.operand(&between.expr)?;
        let (low, high) = (literal(&between.low)?, literal(&between.high)?);
        Some(if between.negated == negated {
            Shape::and(vec![
                compare(operand.clone(), Operator::GtEq, low),
                compare(operand, Operator::LtEq, high),
            ])
        } else {
            Shape::or(vec![
                compare(operand.clone(), Operator::Lt, low),
                compare(operand, Operator::Gt, high),
            ])
        })
    }

    fn in_list(&self, list: &InList, negated: bool) -> Option<Shape> {
        let negated = list.negated != negated;
        let mut operand = self.operand(&list.expr)?;
        if !is_ordered(&operand.data_type) {
            return None;
        }
        let mut values = Vec::with_capacity(list.list.len());
        for item in &list.list {
            let value = literal(item)?;
            if value.is_null() {
                if negated {
                    // `x <> NULL` is one of the conjuncts.
                    return Some(Shape::Never);
                }
                continue;
            }
            let value = fit(value, &operand.data_type)?;
            if float::is_nan(&value) {
                return None;
            }
            // Both zeros, since they may count as equal.
            match &value {
                ScalarValue::Float32(Some(0.0)) => {
                    values.extend([-0.0_f32, 0.0].map(ScalarValue::from));
                }
                ScalarValue::Float64(Some(0.0)) => {
                    values.extend([-0.0_f64, 0.0].map(ScalarValue::from));
                }
                _ => values.push(value),
            }
        }
        if values.is_empty() {
            return Some(if negated { Shape::Always } else { Shape::Never });
        }
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values.dedup();
        operand.nan_free = operand.float && negated;
        Some(Shape::Set(SetTest {
            operand,
            values: values.into(),
            negated,
        }))
    }

    fn like(&self, like: &Like, negated: bool) -> Option<Shape> {
        let operand = self.operand(&like.expr)?;
        let pattern = literal(&like.pattern)?;
        if like.case_insensitive
            || like.escape_char.is_some_and(|escape| escape != '\\')
            || !is_text(&operand.data_type)
        {
            return None;
        }
        if pattern.is_null() {
            return Some(Shape::Never);
        }
        let pattern = fit(pattern, &operand.data_type)?;
        let escapes_are_plain = pattern.try_as_str().flatten().is_some_and(|text| {
            let mut chars = text.chars();
            while let Some(c) = chars.next() {
                // Engines differ about a backslash before anything but a wildcard.
                if c == '\\' && !matches!(chars.next(), Some('%' | '_')) {
                    return false;
                }
            }
            true
        });
        escapes_are_plain.then_some(Shape::Like(operand, pattern, like.negated != negated))
    }

    fn null_test(&self, inner: &Expr, negated: bool) -> Option<Shape> {
        Some(Shape::NullTest(self.operand(inner)?, negated))
    }

    /// A column under casts that keep its order.
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Alias(alias) => self.operand(&alias.expr),
            Expr::Cast(cast) => {
                let mut operand = self.operand(&cast.expr)?;
                let to = cast.field.data_type();
                if !is_monotone(&operand.data_type, to) {
                    return None;
                }
                // An encoding, not a type.
                let to = match to {
                    DataType::Dictionary(_, value) => value.as_ref(),
                    other => other,
                };
                if *to != operand.data_type {
                    operand.casts.push(to.clone());
                    operand.data_type = to.clone();
                }
                Some(operand)
            }
            _ => {
                let leaf = leaf_of(expr, self.schema)?;
                let data_type = self.schema.field(&leaf)?.data_type();
                Some(Operand {
                    leaf,
                    casts: Vec::new(),
                    data_type: data_type.clone(),
                    nan_free: false,
                    float: touches_float(data_type),
                })
            }
        }
    }

    fn is_zoned(&self, leaf: &Leaf) -> bool {
        self.schema
            .field(leaf)
            .is_some_and(|field| matches!(field.data_type(), DataType::Timestamp(_, Some(_))))
    }
}

fn compare(operand: Operand, op: Operator, literal: &ScalarValue) -> Shape {
    let known = matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    );
    if !known || !is_ordered(&operand.data_type) {
        return Shape::Unusable(Why {
            code: ReasonCode::TypeRule,
            text: format!("{op} on {}", operand.data_type),
        });
    }
    if literal.is_null() {
        return match op {
            Operator::IsDistinctFrom => Shape::NullTest(operand, true),
            Operator::IsNotDistinctFrom => Shape::NullTest(operand, false),
            _ => Shape::Never,
        };
    }
    let Some(literal) = fit(literal, &operand.data_type) else {
        return Shape::Unusable(Why::form(format!(
            "{literal} is not a value of {}",
            operand.data_type
        )));
    };
    if touches_float(&operand.data_type) {
        float::compare(operand, op, literal)
    } else {
        Shape::Compare(operand, op, literal)
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

/// The operands of a chain of one associative operator, left to right, without recursion.
fn chain(expr: &Expr, op: Operator) -> Vec<&Expr> {
    let mut operands = Vec::new();
    let mut rest = vec![expr];
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(binary) if binary.op == op => {
                rest.push(&binary.right);
                rest.push(&binary.left);
            }
            other => operands.push(other),
        }
    }
    operands
}

/// Why statistics cannot decide `leaf`.
fn reason(leaf: &Expr, schema: &StatisticsSchema) -> Why {
    let mut found = None;
    let form = |text: String| Some(Why::form(text));
    let walked = leaf.apply(|node| {
        let why = match node {
            Expr::Column(column) if schema.index_of(&column.name).is_none() => {
                form(format!("no column {}", column.name))
            }
            Expr::Column(column) => type_rule(column.name(), schema),
            Expr::ScalarSubquery(_)
            | Expr::InSubquery(_)
            | Expr::Exists(_)
            | Expr::SetComparison(_) => form("subquery".to_owned()),
            Expr::OuterReferenceColumn(..) => form("outer reference".to_owned()),
            Expr::Placeholder(_) => form("parameter".to_owned()),
            Expr::AggregateFunction(_) => form("aggregate".to_owned()),
            Expr::WindowFunction(_) => form("window function".to_owned()),
            Expr::TryCast(_) => form("TRY_CAST".to_owned()),
            Expr::Case(_) => form("CASE".to_owned()),
            Expr::ScalarFunction(function) => {
                let name = function.name();
                match function.func.signature().volatility {
                    Volatility::Volatile => Some(Why {
                        code: ReasonCode::VolatileTerm,
                        text: format!("{name} is volatile"),
                    }),
                    _ => form(format!("function {name}")),
                }
            }
            Expr::Cast(cast) => form(format!("cast to {}", cast.field.data_type())),
            _ => None,
        };
        found = why;
        Ok(if found.is_some() {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    match (walked, found) {
        (Ok(_), Some(why)) => why,
        _ => Why::form("its form"),
    }
}

/// A column that is a condition by itself, or one whose type has no statistics.
fn type_rule(column: &str, schema: &StatisticsSchema) -> Option<Why> {
    let data_type = schema.schema.field(schema.index_of(column)?).data_type();
    let rule = *data_type == DataType::Boolean || data_type.is_nested();
    rule.then(|| Why {
        code: ReasonCode::TypeRule,
        text: format!("statistics of {data_type} prove nothing"),
    })
}
