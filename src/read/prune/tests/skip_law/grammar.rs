//! Random predicates, in a form that the judge understands and DataFusion too.

use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::core::expr_fn::{coalesce, get_field};
use datafusion::functions::expr_fn::{abs, date_part, length, lower};
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit, try_cast, when};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::rows::Table;
use super::values::{local, null, pool, random_value};
use crate::read::test_support::timestamp;

/// A predicate. Leaves are positions in the table's list of them.
#[derive(Debug, Clone)]
pub(super) enum Pred {
    Compare(usize, Operator, ScalarValue),
    Between(usize, ScalarValue, ScalarValue, bool),
    In(usize, Vec<ScalarValue>, bool),
    Like(usize, String, bool),
    Null(usize, bool),
    /// `IS TRUE`, `IS FALSE` or `IS UNKNOWN`; the flag says NOT.
    Truth(Box<Pred>, Option<bool>, bool),
    And(Vec<Pred>),
    Or(Vec<Pred>),
    Not(Box<Pred>),
    /// What a judge leaves alone.
    Opaque(Expr),
}

const COMPARISONS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// A random predicate of at most this depth.
pub(super) fn random(table: &Table, depth: usize, random: &mut StdRng) -> Pred {
    let inner = |random: &mut StdRng| self::random(table, depth - 1, random);
    if depth == 0 {
        return leaf(table, random);
    }
    match random.random_range(0..14) {
        0..=2 => Pred::And(
            (0..random.random_range(2..4))
                .map(|_| inner(random))
                .collect(),
        ),
        3..=5 => Pred::Or(
            (0..random.random_range(2..4))
                .map(|_| inner(random))
                .collect(),
        ),
        6 | 7 => Pred::Not(Box::new(inner(random))),
        8 => {
            let truth = [Some(true), Some(false), None][random.random_range(0..3)];
            Pred::Truth(Box::new(inner(random)), truth, random.random_bool(0.5))
        }
        9 => {
            let [a, b, c] = [(); 3].map(|()| inner(random).to_expr(table));
            let otherwise = [lit(true), lit(false), c][random.random_range(0..3)].clone();
            Pred::Opaque(when(a, b).otherwise(otherwise).expect("CASE"))
        }
        10 if random.random_bool(0.3) => {
            let [a, b] = [(); 2].map(|()| inner(random).to_expr(table));
            Pred::Opaque(binary_expr(a, Operator::Eq, b))
        }
        _ => leaf(table, random),
    }
}

fn leaf(table: &Table, random: &mut StdRng) -> Pred {
    let position = random.random_range(0..table.leaves.len());
    let data_type = &table.leaves[position].data_type;
    if matches!(data_type, DataType::List(_) | DataType::Map(..)) {
        return match data_type {
            DataType::Map(..) if random.random_bool(0.5) => Pred::Opaque(
                get_field(expr_of(table, position), "k").eq(lit(random.random_range(0..4_i64))),
            ),
            _ => Pred::Null(position, random.random_bool(0.5)),
        };
    }
    let value = |random: &mut StdRng| {
        if random.random_bool(0.02) {
            null(data_type)
        } else {
            random_value(data_type, random)
        }
    };
    match random.random_range(0..24) {
        0..=8 => {
            let op = *COMPARISONS.choose(random).expect("operators");
            Pred::Compare(position, op, value(random))
        }
        9..=11 => {
            let (low, high) = (value(random), value(random));
            Pred::Between(position, low, high, random.random_bool(0.3))
        }
        12 | 13 => {
            let count = [1, 2, 3, 5, 30][random.random_range(0..5)];
            let list = (0..count).map(|_| value(random)).collect();
            Pred::In(position, list, random.random_bool(0.3))
        }
        14 if *data_type == DataType::Int64 => {
            let from = random.random_range(-3..3000_i64);
            let list = (from..from + 600).map(|v| lit_value(v * 7)).collect();
            Pred::In(position, list, random.random_bool(0.2))
        }
        15 | 16 if *data_type == DataType::Utf8 => {
            Pred::Like(position, pattern(random), random.random_bool(0.4))
        }
        17 | 18 => Pred::Null(position, random.random_bool(0.5)),
        // A range of two sides, whose ends stand beside each other.
        19 | 20 => {
            let (low, high) = (value(random), value(random));
            let low_op = [Operator::Gt, Operator::GtEq][random.random_range(0..2)];
            let high_op = [Operator::Lt, Operator::LtEq][random.random_range(0..2)];
            Pred::And(vec![
                Pred::Compare(position, low_op, low),
                Pred::Compare(position, high_op, high),
            ])
        }
        _ => opaque(table, position, random),
    }
}

fn lit_value(value: i64) -> ScalarValue {
    ScalarValue::from(value)
}

fn pattern(random: &mut StdRng) -> String {
    let texts = pool(&DataType::Utf8);
    let text = match texts.choose(random).expect("texts") {
        ScalarValue::Utf8(Some(text)) => text.clone(),
        other => other.to_string(),
    };
    let cut: String = text.chars().take(random.random_range(0..40)).collect();
    let end = ["%", "%%", "_", "", "%a", "%_"][random.random_range(0..6)];
    let start = if random.random_bool(0.1) { "%" } else { "" };
    format!("{start}{cut}{end}")
}

/// Conditions that bounds cannot decide, or can by casts alone.
fn opaque(table: &Table, position: usize, random: &mut StdRng) -> Pred {
    let data_type = &table.leaves[position].data_type;
    let column = expr_of(table, position);
    let op = *COMPARISONS.choose(random).expect("operators");
    let k = random.random_range(-3..5_i64);
    let compare = |left: Expr, right: Expr| Pred::Opaque(binary_expr(left, op, right));
    let casted = |to: DataType, random: &mut StdRng| {
        let value = random_value(&to, random);
        compare(cast(expr_of(table, position), to), lit(value))
    };
    match (data_type, random.random_range(0..6)) {
        (DataType::Int8 | DataType::Int16 | DataType::Int32, 0) => casted(DataType::Int64, random),
        (DataType::Int32 | DataType::Int64, 1) => compare(
            try_cast(column, DataType::Int16),
            lit(ScalarValue::from(3_i16)),
        ),
        (DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64, n) => match n {
            2 => compare(column % lit(3_i64), lit(k.rem_euclid(3))),
            3 => casted(DataType::Float64, random),
            4 => casted(DataType::Decimal128(38, 18), random),
            5 if random.random_bool(0.5) => compare(abs(column), lit(k)),
            _ => compare(cast(column, DataType::Int64) + lit(1_i64), lit(k)),
        },
        (DataType::Float32, 0 | 1) => casted(DataType::Float64, random),
        (DataType::Float64, 0 | 1) => compare(column + lit(0.5), lit(1.0)),
        (DataType::Float64, 2) => compare(try_cast(column, DataType::Int64), lit(k)),
        (DataType::Decimal128(..), 0 | 1) => casted(DataType::Float64, random),
        (DataType::Decimal128(5, 2), 2) => casted(DataType::Decimal128(15, 2), random),
        (DataType::Decimal128(15, 2), 2) => casted(DataType::Decimal128(38, 18), random),
        (DataType::Utf8, 0 | 1) => compare(length(column), lit(i32::try_from(k).expect("small"))),
        (DataType::Utf8, 2) => compare(lower(column), lit("ab")),
        (DataType::Utf8, 3) => casted(DataType::Utf8View, random),
        (DataType::Date32, 0) => casted(timestamp(), random),
        (DataType::Date32, 1) => casted(local(), random),
        (DataType::Date32, 2) => compare(date_part(lit("month"), column), lit(1_i32)),
        (DataType::Timestamp(..), 0 | 1) => casted(DataType::Date32, random),
        (DataType::Timestamp(unit, _), 2) => {
            let berlin = DataType::Timestamp(*unit, Some("Europe/Berlin".into()));
            casted(berlin, random)
        }
        (DataType::Timestamp(unit, _), 3) => {
            let inner = DataType::Timestamp(*unit, Some("Europe/Berlin".into()));
            let outer = DataType::Timestamp(*unit, None);
            let value = random_value(&outer, random);
            compare(cast(cast(column, inner), outer), lit(value))
        }
        (DataType::Timestamp(..), 4) => compare(date_part(lit("hour"), column), lit(0_i32)),
        (DataType::Boolean, _) => Pred::Opaque(column),
        (_, 5) => {
            let other = (0..table.leaves.len())
                .filter(|other| table.leaves[*other].data_type == *data_type)
                .collect::<Vec<_>>();
            let other = *other.choose(random).expect("itself at least");
            compare(column, expr_of(table, other))
        }
        _ => {
            let value = random_value(data_type, random);
            let default = random_value(data_type, random);
            compare(coalesce(vec![column, lit(default)]), lit(value))
        }
    }
}

/// The column or field as an expression.
pub(super) fn expr_of(table: &Table, position: usize) -> Expr {
    let path = &table.leaves[position].path;
    let column = Expr::Column(Column::new(Some("t"), path[0].clone()));
    path[1..]
        .iter()
        .fold(column, |base, name| get_field(base, name.as_str()))
}

impl Pred {
    /// The predicate as DataFusion has it before planning.
    pub(super) fn to_expr(&self, table: &Table) -> Expr {
        let column = |position: &usize| expr_of(table, *position);
        let chain = |preds: &[Pred], op: Operator| {
            preds
                .iter()
                .map(|pred| pred.to_expr(table))
                .reduce(|left, right| binary_expr(left, op, right))
                .expect("operands")
        };
        match self {
            Self::Compare(leaf, op, value) => binary_expr(column(leaf), *op, lit(value.clone())),
            Self::Between(leaf, low, high, negated) => {
                let (low, high) = (lit(low.clone()), lit(high.clone()));
                if *negated {
                    column(leaf).not_between(low, high)
                } else {
                    column(leaf).between(low, high)
                }
            }
            Self::In(leaf, list, negated) => {
                let list = list.iter().cloned().map(lit).collect();
                column(leaf).in_list(list, *negated)
            }
            Self::Like(leaf, pattern, negated) => {
                let pattern = lit(pattern.as_str());
                if *negated {
                    column(leaf).not_like(pattern)
                } else {
                    column(leaf).like(pattern)
                }
            }
            Self::Null(leaf, negated) => {
                if *negated {
                    column(leaf).is_not_null()
                } else {
                    column(leaf).is_null()
                }
            }
            Self::Truth(inner, truth, negated) => {
                let inner = inner.to_expr(table);
                match (truth, negated) {
                    (Some(true), false) => inner.is_true(),
                    (Some(true), true) => inner.is_not_true(),
                    (Some(false), false) => inner.is_false(),
                    (Some(false), true) => inner.is_not_false(),
                    (None, false) => inner.is_unknown(),
                    (None, true) => inner.is_not_unknown(),
                }
            }
            Self::And(preds) => chain(preds, Operator::And),
            Self::Or(preds) => chain(preds, Operator::Or),
            Self::Not(inner) => Expr::Not(Box::new(inner.to_expr(table))),
            Self::Opaque(expr) => expr.clone(),
        }
    }
}
