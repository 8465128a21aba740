//! The one pruner: which files may hold a row that a predicate accepts.
//!
//! Scan and conflict check both call [`prune`]. Its law: **a file is skipped only if it is proved
//! that no live row in it passes the predicate; whatever is unknown, missing, odd or failing keeps
//! the file.**

mod evidence;
mod view;

use datafusion::common::pruning::PruningStatistics;
use deltalake::kernel::Add;

use self::view::TermView;
use super::predicate::{ReadPredicate, StatisticsTest, Term, Test};
use super::statistics::{FileStatistics, StatisticsSchema};

/// Which facts about a file the pruner may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// Partition values and column statistics.
    Statistics,
    /// Partition values alone (`delta.conflict_data_skipping = false`).
    PartitionValues,
}

/// A file to be judged.
#[derive(Debug, Clone, Copy)]
pub struct PruneFile<'a> {
    /// The action that describes the file.
    pub add: &'a Add,
    /// Whether the file's writer is known to write decimal bounds exactly.
    pub exact_writer: bool,
}

/// What the pruner decided about one file, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The file may hold a matching row.
    Keep {
        /// What could not be proved.
        why: String,
    },
    /// No row of the file can match.
    Skip {
        /// The term that proves it, as text.
        term: String,
        /// Whether partition values alone were enough.
        by_partition: bool,
    },
}

impl Decision {
    /// Whether the file is out of the way.
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Skip { .. })
    }
}

/// Judges every file; the answer has one decision a file, in order.
///
/// A file is skipped as soon as one conjunct of `predicate` is disproved for all of its rows. It
/// never fails: what cannot be evaluated keeps the file.
pub fn prune(
    predicate: &ReadPredicate,
    files: &[PruneFile<'_>],
    visible: Visible,
) -> Vec<Decision> {
    let statistics = FileStatistics::new(predicate.schema(), files, visible);
    judge(predicate, &statistics, visible)
        .into_iter()
        .enumerate()
        .map(|(file, disproof)| match disproof {
            Some(Disproof::Term(term, pass)) => Decision::Skip {
                term: evidence::skipped(predicate, &statistics, term, file),
                by_partition: pass == Visible::PartitionValues,
            },
            Some(Disproof::NoRows) => Decision::Skip {
                term: "no rows".to_owned(),
                by_partition: false,
            },
            None => Decision::Keep {
                why: evidence::kept(predicate, &statistics, visible, file),
            },
        })
        .collect()
}

/// The positions of the files that [`prune`] keeps, without the reasons, which cost more than the
/// judgement where there are many files.
pub fn kept(predicate: &ReadPredicate, files: &[PruneFile<'_>], visible: Visible) -> Vec<usize> {
    let statistics = FileStatistics::new(predicate.schema(), files, visible);
    judge(predicate, &statistics, visible)
        .iter()
        .enumerate()
        .filter(|(_, disproof)| disproof.is_none())
        .map(|(file, _)| file)
        .collect()
}

/// Why no row of a file can match.
#[derive(Debug, Clone, Copy)]
enum Disproof<'p> {
    /// By this term, by facts of this kind.
    Term(&'p Term, Visible),
    /// There are none.
    NoRows,
}

fn judge<'p>(
    predicate: &'p ReadPredicate,
    statistics: &FileStatistics<'_>,
    visible: Visible,
) -> Vec<Option<Disproof<'p>>> {
    let mut disproofs = vec![None; statistics.len()];
    // Partition values first, so that what they decide alone is told apart.
    let mut passes = vec![Visible::PartitionValues];
    if visible == Visible::Statistics {
        passes.push(Visible::Statistics);
    }
    for pass in passes {
        for term in predicate.terms() {
            let keeps = match &term.test {
                Test::Always | Test::Unusable(_) => continue,
                Test::Never => vec![false; statistics.len()],
                Test::Statistics(test) if is_worth(test, predicate.schema(), pass) => may_match(
                    &TermView::new(statistics, predicate.schema(), test, pass),
                    test,
                ),
                Test::Statistics(_) => continue,
            };
            for (disproof, keep) in disproofs.iter_mut().zip(keeps) {
                if disproof.is_none() && !keep {
                    *disproof = Some(Disproof::Term(term, pass));
                }
            }
        }
    }
    for (file, disproof) in disproofs.iter_mut().enumerate() {
        if disproof.is_none() && statistics.has_no_rows(file) {
            *disproof = Some(Disproof::NoRows);
        }
    }
    disproofs
}

/// Whether `test` can prove anything from what is seen in this pass.
fn is_worth(test: &StatisticsTest, schema: &StatisticsSchema, pass: Visible) -> bool {
    let partitions = pass == Visible::PartitionValues;
    test.leaves()
        .into_iter()
        .any(|leaf| schema.is_partition(leaf) == partitions)
}

/// Whether each file may hold a row that passes `test`.
fn may_match(view: &TermView<'_>, test: &StatisticsTest) -> Vec<bool> {
    let length = view.num_containers();
    match test.pruning.prune(view) {
        Ok(keeps) if keeps.len() == length => keeps,
        // Only the files for which it fails are kept.
        _ => (0..length)
            .map(|file| {
                test.pruning
                    .prune(&view.file(file))
                    .ok()
                    .and_then(|keeps| keeps.first().copied())
                    .unwrap_or(true)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
