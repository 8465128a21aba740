//! What can be proved from the same statistics, by another way: for each part of a predicate the
//! answers that some row between the bounds could give.
//!
//! It knows comparisons, ranges, lists, constant prefixes and NULL tests under AND, OR and NOT, and
//! takes everything else for possible.

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;

use super::grammar::Pred;
use super::rows::{Rows, Table};
use super::values::{YEAR_1972, is_nan, order};
use super::writers::Statistics;

/// Which of the three answers are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answers {
    yes: bool,
    no: bool,
    null: bool,
}

const ANY: Answers = Answers {
    yes: true,
    no: true,
    null: true,
};
const NULL: Answers = Answers {
    yes: false,
    no: false,
    null: true,
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Nulls {
    Unknown,
    None,
    All,
}

/// What holds for one leaf of one file.
#[derive(Debug)]
struct Facts {
    low: Option<ScalarValue>,
    high: Option<ScalarValue>,
    /// Whether `high` only begins the greatest value.
    prefix: bool,
    nulls: Nulls,
    /// Whether a NaN may lie beyond the bounds.
    nan: bool,
}

const UNKNOWN: Facts = Facts {
    low: None,
    high: None,
    prefix: false,
    nulls: Nulls::Unknown,
    nan: true,
};

/// A file as the judge sees it.
#[derive(Debug)]
pub(super) struct Judge {
    facts: Vec<Facts>,
    empty: bool,
}

impl Judge {
    /// The facts of a file whose statistics are whole, or of which nothing but partition values may
    /// be seen.
    pub(super) fn new(table: &Table, rows: &Rows, statistics: Option<&Statistics>) -> Self {
        let facts = table
            .leaves
            .iter()
            .enumerate()
            .map(|(position, leaf)| {
                if leaf.partition {
                    let value = rows.all.first().map(|row| &row[position]);
                    let text = rows.partition_values.get(&leaf.path[0]);
                    return of_partition(value, text, &leaf.data_type);
                }
                statistics.map_or(UNKNOWN, |statistics| {
                    of_data(rows, statistics, position, &leaf.path, &leaf.data_type)
                })
            })
            .collect();
        Self {
            facts,
            empty: rows.deleted.is_none()
                && statistics.is_some_and(|statistics| statistics.rows == Some(0)),
        }
    }

    /// Whether it is proved that no row passes.
    pub(super) fn disproves(&self, pred: &Pred) -> bool {
        self.empty || !self.answers(pred).yes
    }

    fn answers(&self, pred: &Pred) -> Answers {
        match pred {
            Pred::Compare(leaf, op, value) => compare(&self.facts[*leaf], *op, value, false),
            Pred::Between(leaf, low, high, negated) => {
                let range = [
                    Pred::Compare(*leaf, Operator::GtEq, low.clone()),
                    Pred::Compare(*leaf, Operator::LtEq, high.clone()),
                ];
                let answers = self.all(&range);
                if *negated { not(answers) } else { answers }
            }
            Pred::In(leaf, list, negated) => {
                let facts = &self.facts[*leaf];
                let answers = list
                    .iter()
                    .map(|value| compare(facts, Operator::Eq, value, false))
                    .reduce(or)
                    .unwrap_or(ANY);
                if *negated { not(answers) } else { answers }
            }
            Pred::Like(leaf, pattern, negated) => {
                let answers = like(&self.facts[*leaf], pattern);
                if *negated { not(answers) } else { answers }
            }
            Pred::Null(leaf, negated) => {
                let nulls = self.facts[*leaf].nulls;
                let answers = Answers {
                    yes: nulls != Nulls::None,
                    no: nulls != Nulls::All,
                    null: false,
                };
                if *negated { not(answers) } else { answers }
            }
            Pred::Truth(inner, Some(true), false) => strict(self.answers(inner)),
            Pred::Truth(inner, Some(false), false) => strict(not(self.answers(inner))),
            Pred::Truth(..) | Pred::Opaque(_) => ANY,
            Pred::And(preds) => self.all(preds),
            Pred::Or(preds) => preds
                .iter()
                .map(|pred| self.answers(pred))
                .reduce(or)
                .unwrap_or(ANY),
            Pred::Not(inner) => not(self.answers(inner)),
        }
    }

    /// The conjunction; a NaN does not lie within both ends of a range.
    fn all(&self, preds: &[Pred]) -> Answers {
        let side = |pred: &Pred| match pred {
            Pred::Compare(leaf, op, value) if !is_nan(value) && !value.is_null() => match op {
                Operator::Lt | Operator::LtEq => Some((*leaf, false)),
                Operator::Gt | Operator::GtEq => Some((*leaf, true)),
                _ => None,
            },
            _ => None,
        };
        let sides: Vec<_> = preds.iter().filter_map(side).collect();
        let mut yes = true;
        let mut answers: Option<Answers> = None;
        for pred in preds {
            let single = self.answers(pred);
            answers = Some(answers.map_or(single, |answers| and(answers, single)));
            if let (Some((leaf, lower)), Pred::Compare(_, op, value)) = (side(pred), pred)
                && sides.contains(&(leaf, !lower))
            {
                yes &= compare(&self.facts[leaf], *op, value, true).yes;
            }
        }
        let answers = answers.unwrap_or(ANY);
        Answers {
            yes: answers.yes && yes,
            ..answers
        }
    }
}

fn of_partition(
    value: Option<&ScalarValue>,
    text: Option<&Option<String>>,
    data_type: &DataType,
) -> Facts {
    let Some(text) = text else { return UNKNOWN };
    let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
        return Facts {
            nulls: Nulls::All,
            ..UNKNOWN
        };
    };
    let known = match data_type {
        // Text whose meaning depends on who wrote it, and years that have no text.
        DataType::Timestamp(..) | DataType::Binary => false,
        DataType::Date32 => {
            text.len() == 10 && !text.starts_with(['-', '+']) && &text[..4] != "0000"
        }
        _ => true,
    };
    match value {
        Some(value)
            if known && text != "~" && text != "__HIVE_DEFAULT_PARTITION__" && !is_nan(value) =>
        {
            Facts {
                low: Some(value.clone()),
                high: Some(value.clone()),
                prefix: false,
                nulls: Nulls::None,
                nan: false,
            }
        }
        _ => UNKNOWN,
    }
}

fn of_data(
    rows: &Rows,
    statistics: &Statistics,
    position: usize,
    path: &[String],
    data_type: &DataType,
) -> Facts {
    let said = &statistics.leaves[position];
    if matches!(data_type, DataType::List(_) | DataType::Map(..)) {
        return UNKNOWN;
    }
    let nulls = match (said.nulls, statistics.rows) {
        (Some(0), _) => Nulls::None,
        (Some(nulls), Some(rows)) if nulls == rows => Nulls::All,
        _ => Nulls::Unknown,
    };
    let exact = statistics.exact_tag || (statistics.exact_writer && rows.deleted.is_none());
    let bounded = match data_type {
        DataType::Boolean | DataType::Binary => false,
        DataType::Decimal128(precision, _) => *precision <= 15 || exact,
        _ => true,
    };
    let nan_free = path.len() == 1
        && statistics
            .nan_free
            .as_ref()
            .is_some_and(|columns| columns.contains(&path[0]));
    let mut facts = Facts {
        low: said.min.as_ref().filter(|_| bounded).and_then(lowest),
        high: None,
        prefix: false,
        nulls,
        nan: matches!(data_type, DataType::Float32 | DataType::Float64) && !nan_free,
    };
    if let Some((high, prefix)) = said.max.as_ref().filter(|_| bounded).and_then(highest) {
        facts.high = Some(high);
        facts.prefix = prefix;
    }
    facts
}

fn lowest(min: &ScalarValue) -> Option<ScalarValue> {
    Some(match min {
        ScalarValue::Utf8(Some(text)) if text.ends_with('\u{FFFD}') => return None,
        ScalarValue::Float32(Some(0.0)) => ScalarValue::from(-0.0_f32),
        ScalarValue::Float64(Some(0.0)) => ScalarValue::from(-0.0_f64),
        ScalarValue::TimestampMicrosecond(Some(micros), zone) => {
            let early = if *micros < YEAR_1972 { 60_000_000 } else { 0 };
            let low = four_digits(*micros)? - early;
            ScalarValue::TimestampMicrosecond(Some(low), zone.clone())
        }
        ScalarValue::Date32(Some(days)) => {
            four_digits(i64::from(*days) * 86_400_000_000)?;
            min.clone()
        }
        ScalarValue::Decimal128(Some(value), _, scale) => not_an_end(*value, *scale, min)?,
        other => other.clone(),
    })
}

fn highest(max: &ScalarValue) -> Option<(ScalarValue, bool)> {
    Some(match max {
        ScalarValue::Utf8(Some(text)) => {
            let kept = text.trim_end_matches(['\u{7F}', '\u{FFFD}', '\u{10FFFF}']);
            if kept.len() == text.len() && text.len() < 16 {
                (max.clone(), false)
            } else {
                (ScalarValue::from(kept.trim_end_matches('?')), true)
            }
        }
        ScalarValue::Float32(Some(0.0)) => (ScalarValue::from(0.0_f32), false),
        ScalarValue::Float64(Some(0.0)) => (ScalarValue::from(0.0_f64), false),
        ScalarValue::TimestampMicrosecond(Some(micros), zone) => {
            let early = if *micros < YEAR_1972 { 60_000_000 } else { 0 };
            let high = four_digits(*micros)? + 1_000 + early;
            (
                ScalarValue::TimestampMicrosecond(Some(high), zone.clone()),
                false,
            )
        }
        ScalarValue::Date32(Some(days)) => {
            four_digits(i64::from(*days) * 86_400_000_000)?;
            (max.clone(), false)
        }
        ScalarValue::Decimal128(Some(value), _, scale) => (not_an_end(*value, *scale, max)?, false),
        other => (other.clone(), false),
    })
}

/// Only years of four digits have a text that is understood; the outermost days are left alone,
/// since zones may move them out.
fn four_digits(micros: i64) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    (-62_135_596_800_000_000 + DAY..253_402_300_800_000_000 - DAY)
        .contains(&micros)
        .then_some(micros)
}

fn not_an_end(unscaled: i128, scale: i8, value: &ScalarValue) -> Option<ScalarValue> {
    let unit = 10_i128.pow(u32::try_from(scale).ok()?);
    let end = [i64::MIN, i64::MAX]
        .iter()
        .any(|end| i128::from(*end).checked_mul(unit) == Some(unscaled));
    (!end).then(|| value.clone())
}

fn compare(facts: &Facts, op: Operator, value: &ScalarValue, in_range: bool) -> Answers {
    if facts.nulls == Nulls::All {
        return match op {
            Operator::IsDistinctFrom => known(!value.is_null()),
            Operator::IsNotDistinctFrom => known(value.is_null()),
            _ => NULL,
        };
    }
    let null = facts.nulls != Nulls::None;
    if value.is_null() {
        let is_null = Answers {
            yes: null,
            no: true,
            null: false,
        };
        return match op {
            Operator::IsDistinctFrom => not(is_null),
            Operator::IsNotDistinctFrom => is_null,
            _ => NULL,
        };
    }
    if is_nan(value) {
        return ANY;
    }
    let zero = match value {
        ScalarValue::Float32(Some(value)) => *value == 0.0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        _ => false,
    };
    let against = |bound: &ScalarValue| {
        if zero && [-0.0, 0.0].iter().any(|zero| same_float(bound, *zero)) {
            return Ordering::Equal;
        }
        order(bound, value)
    };
    let low = facts.low.as_ref().map(against);
    let high = facts.high.as_ref().map(against);
    let begins = facts.prefix
        && match (&facts.high, value) {
            (Some(ScalarValue::Utf8(Some(prefix))), ScalarValue::Utf8(Some(value))) => {
                value.starts_with(prefix.as_str())
            }
            _ => false,
        };
    // Whether some value lies below, at, and above the literal.
    let nan = facts.nan && !in_range;
    let mut below = low.is_none_or(Ordering::is_lt) || nan;
    let mut above = high.is_none_or(Ordering::is_gt) || begins || nan;
    let equal = low.is_none_or(Ordering::is_le) && (high.is_none_or(Ordering::is_ge) || begins);
    if zero {
        // Zeros may count as equal or not.
        below |= equal;
        above |= equal;
    }
    let (yes, no) = match op {
        Operator::Eq | Operator::IsNotDistinctFrom => (equal, below || above),
        Operator::NotEq | Operator::IsDistinctFrom => (below || above, equal),
        Operator::Lt => (below, equal || above),
        Operator::LtEq => (below || equal, above),
        Operator::Gt => (above, equal || below),
        Operator::GtEq => (above || equal, below),
        _ => return ANY,
    };
    match op {
        Operator::IsDistinctFrom => Answers {
            yes: yes || null,
            no,
            null: false,
        },
        Operator::IsNotDistinctFrom => Answers {
            yes,
            no: no || null,
            null: false,
        },
        _ => Answers { yes, no, null },
    }
}

fn same_float(value: &ScalarValue, float: f64) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => f64::from(*value) == float,
        ScalarValue::Float64(Some(value)) => *value == float,
        _ => false,
    }
}

/// `LIKE` by what stands before the first wildcard; the negation is decided only for `prefix%`.
fn like(facts: &Facts, pattern: &str) -> Answers {
    if facts.nulls == Nulls::All {
        return NULL;
    }
    let null = facts.nulls != Nulls::None;
    let head: String = pattern.chars().take_while(|c| !"%_".contains(*c)).collect();
    let head = ScalarValue::from(head.as_str());
    if head == ScalarValue::from(pattern) {
        return compare(facts, Operator::Eq, &head, false);
    }
    let (Some(low), ScalarValue::Utf8(Some(head))) = (&facts.low, &head) else {
        return Answers {
            yes: true,
            no: true,
            null,
        };
    };
    let starts = |bound: &ScalarValue| matches!(bound, ScalarValue::Utf8(Some(text)) if text.starts_with(head.as_str()));
    let below = compare(
        facts,
        Operator::GtEq,
        &ScalarValue::from(head.as_str()),
        false,
    )
    .yes;
    let above = order(low, &ScalarValue::from(head.as_str())).is_gt() && !starts(low);
    Answers {
        yes: below && !above,
        no: true,
        null,
    }
}

fn known(answer: bool) -> Answers {
    Answers {
        yes: answer,
        no: !answer,
        null: false,
    }
}

fn strict(answers: Answers) -> Answers {
    Answers {
        yes: answers.yes,
        no: answers.no || answers.null,
        null: false,
    }
}

fn not(answers: Answers) -> Answers {
    Answers {
        yes: answers.no,
        no: answers.yes,
        null: answers.null,
    }
}

fn and(a: Answers, b: Answers) -> Answers {
    Answers {
        yes: a.yes && b.yes,
        no: a.no || b.no,
        null: (a.null && (b.null || b.yes)) || (b.null && a.yes),
    }
}

fn or(a: Answers, b: Answers) -> Answers {
    not(and(not(a), not(b)))
}
