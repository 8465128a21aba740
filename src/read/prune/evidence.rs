//! Why a file was kept, and by what it was skipped, in words.

use arrow::array::Array;
use arrow::util::display::array_value_to_string;

use super::Visible;
use crate::read::predicate::{Fact, ReadPredicate, StatisticsTest, Term, Test};
use crate::read::statistics::{FileStatistics, Leaf, Nulls};

/// Most reasons that are given for one file.
const MAX_REASONS: usize = 3;

/// Longest bound that is printed, in characters.
const MAX_VALUE: usize = 40;

/// The term that disproved the file, with the numbers that did.
pub(super) fn skipped(
    predicate: &ReadPredicate,
    statistics: &FileStatistics<'_>,
    term: &Term,
    file: usize,
) -> String {
    let Test::Statistics(test) = &term.test else {
        return term.text.clone();
    };
    let numbers: Vec<String> = test
        .leaves()
        .into_iter()
        .filter_map(|leaf| {
            let name = predicate.schema().name(leaf);
            let arrays = statistics.leaf(leaf)?;
            let value = |bounds: &dyn Array| {
                (!bounds.is_null(file))
                    .then(|| array_value_to_string(bounds, file).ok())
                    .flatten()
                    .map(|text| text.chars().take(MAX_VALUE).collect::<String>())
            };
            let (min, max) = (value(&arrays.min), value(&arrays.max));
            Some(match (min, max, arrays.nulls.get(file)) {
                (_, _, Some(Nulls::All)) => format!("{name} is NULL"),
                (Some(min), Some(max), _) if min == max => format!("{name} = {min}"),
                (Some(min), Some(max), _) => format!("{name} in {min} ..= {max}"),
                (Some(min), None, _) => format!("{name} >= {min}"),
                (None, Some(max), _) => format!("{name} <= {max}"),
                (None, None, Some(Nulls::None)) => format!("{name} is not NULL"),
                _ => return None,
            })
        })
        .collect();
    if numbers.is_empty() {
        term.text.clone()
    } else {
        format!("{} [{}]", term.text, numbers.join(", "))
    }
}

/// What could not be proved about a kept file.
pub(super) fn kept(
    predicate: &ReadPredicate,
    statistics: &FileStatistics<'_>,
    visible: Visible,
    file: usize,
) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for term in predicate.terms() {
        let reason = match &term.test {
            Test::Always => continue,
            Test::Unusable(why) => not_usable(term, why),
            // It would have skipped the file.
            Test::Never => continue,
            Test::Statistics(test) => undecided(predicate, statistics, visible, term, test, file),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
        if reasons.len() == MAX_REASONS {
            break;
        }
    }
    if reasons.is_empty() {
        "no condition".to_owned()
    } else {
        reasons.join("; ")
    }
}

fn undecided(
    predicate: &ReadPredicate,
    statistics: &FileStatistics<'_>,
    visible: Visible,
    term: &Term,
    test: &StatisticsTest,
    file: usize,
) -> String {
    let schema = predicate.schema();
    let leaves = test.leaves();
    for leaf in &leaves {
        let name = schema.name(leaf);
        let unknown = statistics
            .leaf(leaf)
            .is_none_or(|arrays| arrays.unknown.get(file) == Some(&true));
        if schema.is_partition(leaf) {
            if unknown {
                return format!("partition value of {name} unknown");
            }
        } else if visible == Visible::PartitionValues {
            return "statistics not used".to_owned();
        } else if !statistics.has_statistics(file) {
            return "no statistics".to_owned();
        } else if unknown {
            return format!("no statistics for column {name}");
        }
    }
    let single_valued = |leaf: &Leaf| {
        statistics
            .leaf(leaf)
            .is_some_and(|arrays| arrays.exact.get(file) == Some(&true))
    };
    let needs_values = test.facts.iter().find_map(|fact| match fact {
        Fact::Value(value) if !value.leaves.iter().all(single_valued) => Some(&value.why),
        _ => None,
    });
    let nan = test
        .operands
        .iter()
        .find(|operand| operand.nan_free && !statistics.is_nan_free(file, &operand.leaf));
    match (needs_values, nan) {
        (Some(why), _) if !why.is_empty() => not_usable(term, why),
        (_, Some(operand)) => format!("column {} may hold NaN", schema.name(&operand.leaf)),
        _ if leaves.iter().all(|leaf| schema.is_partition(leaf)) => {
            "partition value may match".to_owned()
        }
        _ => "bounds may match".to_owned(),
    }
}

fn not_usable(term: &Term, why: &str) -> String {
    format!("term not usable: {} ({why})", term.text)
}
