//! Why a file was kept, and by what it was skipped, in words.

use arrow::array::Array;
use arrow::util::display::array_value_to_string;

use super::Visible;
use crate::read::predicate::{Fact, ReadPredicate, StatisticsTest, Term, Test};
use crate::read::statistics::{FileStatistics, Nulls};

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
    let numbers: Vec<String> = columns(test)
        .into_iter()
        .filter_map(|column| {
            let name = predicate.schema().schema.field(column).name();
            let arrays = statistics.column(column)?;
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
            Test::Unusable(why) => format!("term not usable: {} ({why})", term.text),
            // It would have skipped the file.
            Test::Never => continue,
            Test::Statistics(test) => undecided(predicate, statistics, visible, test, file),
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
    test: &StatisticsTest,
    file: usize,
) -> String {
    let schema = predicate.schema();
    for column in columns(test) {
        let name = schema.schema.field(column).name();
        let unknown = statistics
            .column(column)
            .and_then(|arrays| arrays.unknown.get(file))
            == Some(&true);
        if schema.is_partition(column) {
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
    let nan = test.operands.iter().find(|operand| {
        operand.nan_free
            && !statistics.is_nan_free(file, schema.schema.field(operand.column).name())
    });
    match nan {
        Some(operand) => format!(
            "column {} may hold NaN",
            schema.schema.field(operand.column).name()
        ),
        None if columns(test)
            .iter()
            .all(|column| schema.is_partition(*column)) =>
        {
            "partition value may match".to_owned()
        }
        None => "bounds may match".to_owned(),
    }
}

/// The columns that `test` uses, each once.
fn columns(test: &StatisticsTest) -> Vec<usize> {
    let mut columns: Vec<usize> = test.operands.iter().map(|operand| operand.column).collect();
    for fact in &test.facts {
        match fact {
            Fact::Partition(test) => columns.extend(&test.columns),
            Fact::Set(set) => columns.push(set.operand.column),
        }
    }
    let mut seen = Vec::with_capacity(columns.len());
    for column in columns {
        if !seen.contains(&column) {
            seen.push(column);
        }
    }
    seen
}
