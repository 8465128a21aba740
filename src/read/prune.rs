//! The one pruner: which files may hold a row that a predicate accepts.
//!
//! Scan and conflict check both call [`prune`]. Its law: **a file is skipped only if it is proved
//! that no live row in it passes the predicate; whatever is unknown, missing, odd or failing keeps
//! the file.**

mod evidence;
mod facts;
mod separate;
mod view;

use datafusion::common::pruning::PruningStatistics;
use deltalake::kernel::Add;

use self::evidence::Explained;
pub use self::separate::separating_columns;
use self::view::TermView;
use super::predicate::{ReadPredicate, StatisticsTest, Term, Test};
use super::statistics::{FileStatistics, StatisticsSchema};
use crate::reason::{Reason, ReasonCode};

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

/// What the pruner decided about one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file may hold a matching row.
    Keep,
    /// No row of the file can match.
    Skip {
        /// Whether partition values alone were enough.
        by_partition: bool,
    },
}

impl Outcome {
    /// Whether the file is out of the way.
    pub fn is_skip(self) -> bool {
        matches!(self, Self::Skip { .. })
    }
}

/// What the pruner decided about one file, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The file may hold a matching row.
    Keep {
        /// What could not be proved, most telling first; never empty.
        reasons: Vec<Reason>,
    },
    /// No row of the file can match.
    Skip {
        /// The term that proves it, and by which numbers.
        reason: Reason,
    },
}

impl Decision {
    /// Whether the file is out of the way.
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Skip { .. })
    }

    /// The reasons, most telling first.
    pub fn into_reasons(self) -> Vec<Reason> {
        match self {
            Self::Keep { reasons } => reasons,
            Self::Skip { reason } => vec![reason],
        }
    }

    /// The most telling reason.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Keep { reasons } => reasons.first(),
            Self::Skip { reason } => Some(reason),
        }
    }
}

/// Judges every file; the answer has one outcome a file, in order.
///
/// A file is skipped as soon as one conjunct of `predicate` is disproved for all of its rows. It
/// never fails: what cannot be evaluated keeps the file.
pub fn prune(predicate: &ReadPredicate, files: &[PruneFile<'_>], visible: Visible) -> Vec<Outcome> {
    let statistics = FileStatistics::new(predicate.schema(), files, visible);
    judge(predicate, &statistics, visible)
        .into_iter()
        .map(|disproof| match disproof {
            Some(Disproof::Term(_, pass)) => Outcome::Skip {
                by_partition: pass == Visible::PartitionValues,
            },
            Some(Disproof::NoRows) => Outcome::Skip {
                by_partition: false,
            },
            None => Outcome::Keep,
        })
        .collect()
}

/// The positions of the files that [`prune`] keeps.
pub fn kept(predicate: &ReadPredicate, files: &[PruneFile<'_>], visible: Visible) -> Vec<usize> {
    prune(predicate, files, visible)
        .into_iter()
        .enumerate()
        .filter(|(_, outcome)| !outcome.is_skip())
        .map(|(file, _)| file)
        .collect()
}

/// The outcome that [`prune`] has for one file, with its reasons, which cost more than the judgement.
pub fn explain(predicate: &ReadPredicate, file: &PruneFile<'_>, visible: Visible) -> Decision {
    let explained = Explained::new(predicate, std::slice::from_ref(file), visible);
    match explained.judged() {
        Some(Disproof::Term(term, pass)) => Decision::Skip {
            reason: explained.skipped(term, pass),
        },
        Some(Disproof::NoRows) => Decision::Skip {
            reason: Reason::new(ReasonCode::NoRows, "file has no rows"),
        },
        None => Decision::Keep {
            reasons: explained.kept(),
        },
    }
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
