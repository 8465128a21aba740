//! Why a file was kept, and by what it was skipped, in codes and words.
//!
//! Every answer is computed after the decision, by asking the pruner again: about a part of the
//! term, or about the same file under an assumption. A decision never depends on it.

use datafusion::logical_expr::Operator;

use super::facts::Facts;
use super::view::TermView;
use super::{Disproof, PruneFile, Visible, judge, may_match};
use crate::read::predicate::{
    Fact, Operand, ReadPredicate, SetTest, Shape, StatisticsTest, Term, Test, ValueTest, Why,
};
use crate::read::statistics::{Assumption, FileStatistics, Leaf, Needed, Nulls, StatisticsSchema};
use crate::reason::{Reason, ReasonCode};

/// Most reasons that are given for one file.
const MAX_REASONS: usize = 3;

/// Most alternatives of one term that are spelled out.
const MAX_PARTS: usize = 3;

/// One file to be explained.
pub(super) struct Explained<'e> {
    predicate: &'e ReadPredicate,
    statistics: FileStatistics<'e>,
    visible: Visible,
}

impl<'e> Explained<'e> {
    /// The one file of `file`.
    pub(super) fn new(
        predicate: &'e ReadPredicate,
        file: &'e [PruneFile<'e>],
        visible: Visible,
    ) -> Self {
        Self {
            predicate,
            statistics: FileStatistics::new(predicate.schema(), file, visible),
            visible,
        }
    }

    /// Why no row of the file can match, if that is so.
    pub(super) fn judged(&self) -> Option<Disproof<'e>> {
        let disproofs = judge(self.predicate, &self.statistics, self.visible);
        disproofs.into_iter().next().flatten()
    }

    /// The term that disproved the file by facts of kind `pass`, with the numbers that did.
    pub(super) fn skipped(&self, term: &Term, pass: Visible) -> Reason {
        let Test::Statistics(test) = &term.test else {
            let detail = format!("{} is never true", term.text);
            return Reason::new(ReasonCode::NeverTrue, detail).with_term(term.text.as_str());
        };
        let code = match pass {
            Visible::PartitionValues => ReasonCode::PartitionValues,
            Visible::Statistics => ReasonCode::Statistics,
        };
        let (why, leaf) = self.disproof(&test.shape, pass);
        let reason = Reason::new(code, format!("{} {why}", term.text));
        let reason = reason.with_term(term.text.as_str());
        match leaf.or(test.leaves().first().copied()) {
            Some(leaf) => reason.with_column(self.schema().name(leaf)),
            None => reason,
        }
    }

    /// What could not be proved about a kept file, most telling first; never empty.
    pub(super) fn kept(&self) -> Vec<Reason> {
        let partitions_alone = self.asks_partitions_alone();
        let mut reasons = most_telling(self.predicate.terms().iter().filter_map(|term| {
            let mut reason = match &term.test {
                // The first is no condition, the second would have skipped the file.
                Test::Always | Test::Never => return None,
                Test::Unusable(why) => not_usable(term, why),
                Test::Statistics(test) => self.undecided(term, test),
            };
            if partitions_alone && reason.code == ReasonCode::PartitionValueMatches {
                reason.code = ReasonCode::PartitionPredicateOnly;
            }
            Some(reason.with_term(term.text.as_str()))
        }));
        if reasons.is_empty() {
            reasons.push(Reason::new(
                ReasonCode::WholeTableRead,
                "the read has no condition",
            ));
        }
        reasons
    }

    fn schema(&self) -> &'e StatisticsSchema {
        self.predicate.schema()
    }

    fn facts(&self, leaf: &Leaf) -> Facts {
        Facts::new(self.schema(), &self.statistics, leaf)
    }

    /// Whether `shape` is disproved by itself, by facts of kind `pass`.
    fn is_disproved(&self, shape: &Shape, pass: Visible) -> bool {
        disproves(&self.statistics, self.schema(), shape, pass)
    }

    /// How `shape`, which is disproved, is, and the column that decided.
    fn disproof<'s>(&self, shape: &'s Shape, pass: Visible) -> (String, Option<&'s Leaf>) {
        match shape {
            Shape::And(children) => {
                let deciding = children
                    .iter()
                    .find(|child| self.is_disproved(child, pass))
                    .or(children.first());
                match deciding {
                    Some(child) => self.disproof(child, pass),
                    None => ("cannot be true".to_owned(), None),
                }
            }
            Shape::Or(children) => {
                let parts: Vec<(String, Option<&Leaf>)> = children
                    .iter()
                    .take(MAX_PARTS)
                    .map(|child| self.disproof(child, pass))
                    .collect();
                let leaf = parts.iter().find_map(|(_, leaf)| *leaf);
                let mut text: Vec<String> = parts.into_iter().map(|(text, _)| text).collect();
                if children.len() > MAX_PARTS {
                    text.push("so on".to_owned());
                }
                (text.join(", or "), leaf)
            }
            Shape::Compare(operand, op, literal) => {
                let facts = self.facts(&operand.leaf);
                let literal = Facts::value(literal);
                (
                    self.compared(operand, *op, &literal, shape, &facts, pass),
                    Some(&operand.leaf),
                )
            }
            Shape::Like(operand, pattern, negated) => {
                let not = if *negated { "not " } else { "" };
                let needs = format!("a value {not}like {}", Facts::value(pattern));
                (self.needs(&needs, operand), Some(&operand.leaf))
            }
            Shape::NullTest(operand, false) => (self.needs("a NULL", operand), Some(&operand.leaf)),
            Shape::NullTest(operand, true) => (self.needs("a value", operand), Some(&operand.leaf)),
            Shape::Set(set) => (
                self.needs(&of_set(set), &set.operand),
                Some(&set.operand.leaf),
            ),
            Shape::Value(test) => {
                let values: Vec<String> = test
                    .leaves
                    .iter()
                    .map(|leaf| self.facts(leaf).equation())
                    .collect();
                (
                    format!("is not true where {}", values.join(" and ")),
                    test.leaves.first(),
                )
            }
            Shape::Unusable(_) | Shape::Always | Shape::Never => {
                ("cannot be true".to_owned(), None)
            }
        }
    }

    fn compared(
        &self,
        operand: &Operand,
        op: Operator,
        literal: &str,
        shape: &Shape,
        facts: &Facts,
        pass: Visible,
    ) -> String {
        if self.schema().is_partition(&operand.leaf) || facts.nulls() == Nulls::All {
            return self.needs(&format!("a value {op} {literal}"), operand);
        }
        let low = |op: Operator| format!("needs min {op} {literal}, file has {}", facts.min());
        let high = |op: Operator| format!("needs max {op} {literal}, file has {}", facts.max());
        match op {
            Operator::Lt | Operator::LtEq => low(op),
            Operator::Gt | Operator::GtEq => high(op),
            Operator::Eq | Operator::IsNotDistinctFrom => {
                let half = |op| match shape {
                    Shape::Compare(operand, _, literal) => {
                        Shape::Compare(operand.clone(), op, literal.clone())
                    }
                    other => other.clone(),
                };
                if self.is_disproved(&half(Operator::GtEq), pass) {
                    high(Operator::GtEq)
                } else {
                    low(Operator::LtEq)
                }
            }
            _ => self.needs(&format!("a value other than {literal}"), operand),
        }
    }

    fn needs(&self, what: &str, operand: &Operand) -> String {
        format!(
            "needs {what}, file has {}",
            self.facts(&operand.leaf).range()
        )
    }

    fn undecided(&self, term: &Term, test: &StatisticsTest) -> Reason {
        let schema = self.schema();
        let leaves = test.leaves();
        for leaf in &leaves {
            let name = schema.name(leaf);
            let unknown = self.facts(leaf).is_unknown();
            if schema.is_partition(leaf) {
                if unknown {
                    let detail = format!("the partition value of column {name} is unknown");
                    return Reason::new(ReasonCode::PartitionValueUnknown, detail)
                        .with_column(name);
                }
            } else if self.visible == Visible::PartitionValues {
                return Reason::new(
                    ReasonCode::StatisticsNotUsed,
                    "statistics are not used, conflict-time data skipping is off",
                );
            } else if !self.statistics.has_statistics(0) {
                return self.statistics.why_none(0).with_column(name);
            } else if unknown {
                return self.statistics.why_unknown(0, leaf, Needed::Any);
            }
        }
        if let Some(reason) = self.by_assumption(term, test) {
            return reason;
        }
        if let Some(reason) = self.by_values(term, test) {
            return reason;
        }
        if let Some(reason) = self.missing(&test.shape) {
            return reason;
        }
        let known: Vec<String> = leaves
            .iter()
            .take(MAX_PARTS)
            .map(|leaf| self.facts(leaf).range_of())
            .collect();
        let code = if leaves.iter().all(|leaf| schema.is_partition(leaf)) {
            ReasonCode::PartitionValueMatches
        } else {
            ReasonCode::BoundsOverlap
        };
        let detail = format!("{} may match, file has {}", term.text, known.join(" and "));
        let reason = Reason::new(code, detail);
        match leaves.first() {
            Some(leaf) => reason.with_column(schema.name(leaf)),
            None => reason,
        }
    }

    /// The reason where the file would have been skipped, had its writer stated exact bounds or had
    /// it no NaN.
    fn by_assumption(&self, term: &Term, test: &StatisticsTest) -> Option<Reason> {
        let schema = self.schema();
        let would_skip = |assumption| {
            let statistics = self.statistics.assuming(assumption);
            rules_out(&statistics, schema, test, self.visible)
        };
        let rounded = test.leaves().into_iter().find_map(|leaf| {
            let (code, what) = rounding(schema, leaf)?;
            Some((leaf, code, what))
        });
        if let Some((leaf, code, what)) = rounded
            && would_skip(Assumption::BoundsAsStated)
        {
            let name = schema.name(leaf);
            let detail = format!(
                "{} may match, since {what}; file has {}",
                term.text,
                self.facts(leaf).range_of()
            );
            return Some(Reason::new(code, detail).with_column(name));
        }
        let nan_free = test.operands.iter().find(|operand| operand.nan_free);
        let in_set = test.facts.iter().find_map(|fact| match fact {
            Fact::Set(set) if set.operand.nan_free => Some(&set.operand),
            _ => None,
        });
        if let Some(operand) = nan_free.or(in_set)
            && would_skip(Assumption::NoNan)
        {
            let name = schema.name(&operand.leaf);
            let detail = format!("column {name} may hold NaN, which {} lets pass", term.text);
            return Some(Reason::new(ReasonCode::NanPossible, detail).with_column(name));
        }
        None
    }

    /// The reason where a condition would have to be evaluated and cannot be.
    fn by_values(&self, term: &Term, test: &StatisticsTest) -> Option<Reason> {
        let values = test.facts.iter().filter_map(|fact| match fact {
            Fact::Value(value) => Some(value),
            Fact::Set(_) => None,
        });
        for value in values {
            let single = value.leaves.iter().all(|leaf| self.facts(leaf).is_exact());
            match &value.why {
                Some(why) if !single => return Some(not_usable(term, why)),
                _ if single && self.fails(value, test) => {
                    let values: Vec<String> = value
                        .leaves
                        .iter()
                        .map(|leaf| self.facts(leaf).equation())
                        .collect();
                    let detail = format!("{} fails where {}", term.text, values.join(" and "));
                    return Some(Reason::new(ReasonCode::EvaluationFailed, detail));
                }
                _ => {}
            }
        }
        None
    }

    fn fails(&self, value: &ValueTest, test: &StatisticsTest) -> bool {
        TermView::new(&self.statistics, self.schema(), test, self.visible).fails(value)
    }

    /// The first piece of the statistics that `shape` needs and that is not there.
    fn missing(&self, shape: &Shape) -> Option<Reason> {
        let bound = |operand: &Operand, needed| {
            let facts = self.facts(&operand.leaf);
            let known = match needed {
                Needed::Min => facts.has_min(),
                Needed::Max => facts.has_max(),
                Needed::Nulls => facts.nulls() != Nulls::Unknown,
                Needed::Any => true,
            };
            // Bounds that only a file without NaN has are no question of statistics.
            (!known && !self.schema().is_partition(&operand.leaf))
                .then(|| self.statistics.why_unknown(0, &operand.leaf, needed))
        };
        match shape {
            Shape::And(children) | Shape::Or(children) => {
                children.iter().find_map(|child| self.missing(child))
            }
            Shape::Compare(operand, Operator::Lt | Operator::LtEq, _) => {
                bound(operand, Needed::Min)
            }
            Shape::Compare(operand, Operator::Gt | Operator::GtEq, _) => {
                bound(operand, Needed::Max)
            }
            Shape::Compare(operand, ..) | Shape::Like(operand, ..) => {
                bound(operand, Needed::Min).or_else(|| bound(operand, Needed::Max))
            }
            Shape::Set(set) => {
                bound(&set.operand, Needed::Min).or_else(|| bound(&set.operand, Needed::Max))
            }
            Shape::NullTest(operand, _) => bound(operand, Needed::Nulls),
            Shape::Value(_) | Shape::Unusable(_) | Shape::Always | Shape::Never => None,
        }
    }

    /// Whether every condition of the read is one on partition columns.
    fn asks_partitions_alone(&self) -> bool {
        self.predicate.terms().iter().all(|term| match &term.test {
            Test::Always | Test::Never => true,
            Test::Unusable(_) => false,
            Test::Statistics(test) => test
                .leaves()
                .into_iter()
                .all(|leaf| self.schema().is_partition(leaf)),
        })
    }
}

/// Whether `shape` by itself rules the one file of `statistics` out.
pub(super) fn disproves(
    statistics: &FileStatistics<'_>,
    schema: &StatisticsSchema,
    shape: &Shape,
    pass: Visible,
) -> bool {
    StatisticsTest::new(shape.clone())
        .is_some_and(|test| rules_out(statistics, schema, &test, pass))
}

fn rules_out(
    statistics: &FileStatistics<'_>,
    schema: &StatisticsSchema,
    test: &StatisticsTest,
    pass: Visible,
) -> bool {
    let view = TermView::new(statistics, schema, test, pass);
    may_match(&view, test).first() == Some(&false)
}

/// How bounds of `leaf` may be off, by its type.
fn rounding(schema: &StatisticsSchema, leaf: &Leaf) -> Option<(ReasonCode, &'static str)> {
    use arrow::datatypes::DataType::{Decimal128, LargeUtf8, Timestamp, Utf8, Utf8View};
    match schema.field(leaf)?.data_type() {
        Utf8 | LargeUtf8 | Utf8View => Some((
            ReasonCode::TruncatedString,
            "writers cut long strings in statistics",
        )),
        Decimal128(..) => Some((
            ReasonCode::InexactDecimal,
            "writers round long decimals in statistics",
        )),
        Timestamp(..) => Some((
            ReasonCode::RoundedTimestamp,
            "writers cut timestamps in statistics",
        )),
        _ => None,
    }
}

fn of_set(set: &SetTest) -> String {
    match (set.negated, &set.values[..]) {
        (false, [only]) => format!("the value {}", Facts::value(only)),
        (false, [first, .., last]) => format!(
            "one of {} values from {} to {}",
            set.values.len(),
            Facts::value(first),
            Facts::value(last)
        ),
        (true, values) => format!("a value that is none of the {} listed", values.len()),
        (false, []) => "one of no values".to_owned(),
    }
}

fn not_usable(term: &Term, why: &Why) -> Reason {
    Reason::new(
        why.code,
        format!("statistics cannot decide {} ({})", term.text, why.text),
    )
}

/// The first [`MAX_REASONS`] different ones of `reasons`, those of little [`weight`] before the
/// others. None is made that cannot be among them.
fn most_telling(reasons: impl Iterator<Item = Reason>) -> Vec<Reason> {
    let mut chosen: Vec<Reason> = Vec::new();
    let mut telling = 0;
    for reason in reasons {
        if chosen.iter().any(|known| known.detail == reason.detail) {
            continue;
        }
        telling += usize::from(weight(reason.code) == 0);
        chosen.push(reason);
        if telling == MAX_REASONS {
            break;
        }
    }
    // Stable: what a better table or statement would change comes first.
    chosen.sort_by_key(|reason| weight(reason.code));
    chosen.truncate(MAX_REASONS);
    chosen
}

/// Reasons that nobody can do much about come last.
fn weight(code: ReasonCode) -> u8 {
    match code {
        ReasonCode::UnusableTerm | ReasonCode::VolatileTerm | ReasonCode::TypeRule => 2,
        ReasonCode::PartitionValueMatches => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_is_made_that_cannot_be_shown() {
        use ReasonCode::{BoundsOverlap, PartitionValueMatches, UnusableTerm};
        let of = |codes: &[ReasonCode]| {
            let mut made = 0;
            let reasons = codes.iter().enumerate().map(|(position, code)| {
                made += 1;
                Reason::new(*code, position.to_string())
            });
            let details: Vec<String> = most_telling(reasons)
                .into_iter()
                .map(|reason| reason.detail)
                .collect();
            (details.join(" "), made)
        };
        let cases: [(&[ReasonCode], &str, usize); 4] = [
            (&[BoundsOverlap; 9], "0 1 2", 3),
            (
                &[
                    UnusableTerm,
                    BoundsOverlap,
                    PartitionValueMatches,
                    BoundsOverlap,
                    UnusableTerm,
                ],
                "1 3 2",
                5,
            ),
            (
                &[
                    UnusableTerm,
                    BoundsOverlap,
                    BoundsOverlap,
                    BoundsOverlap,
                    BoundsOverlap,
                ],
                "1 2 3",
                4,
            ),
            (&[], "", 0),
        ];
        for (codes, shown, made) in cases {
            assert_eq!(of(codes), (shown.to_owned(), made), "{codes:?}");
        }
        let same = (0..9).map(|_| Reason::new(BoundsOverlap, "the same"));
        assert_eq!(most_telling(same).len(), 1);
    }
}
