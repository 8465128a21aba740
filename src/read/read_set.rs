//! What a transaction read: the question each scan asked and the files it could not rule out.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::predicate::ReadPredicate;
use super::prune::{PruneFile, Visible, kept};
use super::snapshot::TableSnapshot;
use super::statistics::StatisticsSchema;

/// How much of the table a read looked at.
///
/// An enum and not an option: "read nothing" and "read everything" must never be one value.
#[derive(Debug, Clone)]
pub enum ReadScope {
    /// No row was read: a plain append.
    Nothing,
    /// Rows for which the predicate may be true.
    Matching(Arc<ReadPredicate>),
    /// Any row.
    WholeTable,
}

impl fmt::Display for ReadScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Matching(predicate) => write!(f, "{predicate}"),
            Self::WholeTable => f.write_str("whole table"),
        }
    }
}

/// One recorded read of one table.
#[derive(Debug, Clone)]
pub struct Read {
    /// What was asked.
    pub scope: ReadScope,
    /// The version the scan was pinned to.
    pub version: u64,
    /// Canonical paths of the files that static pruning kept, that is, of the files read.
    pub files: Arc<HashSet<String>>,
}

impl Read {
    /// The read of a scan of `snapshot` that is handed `filters`, ANDed, and the positions of the
    /// files it has to read.
    pub fn of_scan(snapshot: &TableSnapshot, filters: &[Expr]) -> (Self, Vec<usize>) {
        let schema = StatisticsSchema::of(snapshot);
        let predicate = ReadPredicate::new(filters, &schema);
        let kept = files_kept(&predicate, snapshot);
        let scope = if filters.is_empty() {
            ReadScope::WholeTable
        } else {
            ReadScope::Matching(Arc::new(predicate))
        };
        let read = Self {
            scope,
            version: snapshot.version,
            files: Arc::new(paths_of(snapshot, &kept)),
        };
        (read, kept)
    }

    /// A read of all rows of `snapshot`.
    pub fn whole_table(snapshot: &TableSnapshot) -> Self {
        Self {
            scope: ReadScope::WholeTable,
            version: snapshot.version,
            files: Arc::new(snapshot.files.iter().map(|add| add.path.clone()).collect()),
        }
    }
}

/// The positions of the files of `snapshot` that `predicate` cannot rule out.
pub(crate) fn files_kept(predicate: &ReadPredicate, snapshot: &TableSnapshot) -> Vec<usize> {
    let candidates: Vec<_> = snapshot
        .files
        .iter()
        .map(|add| PruneFile {
            add,
            exact_writer: false,
        })
        .collect();
    kept(predicate, &candidates, Visible::Statistics)
}

/// The paths of the files at `positions` in `snapshot`.
pub(crate) fn paths_of(snapshot: &TableSnapshot, positions: &[usize]) -> HashSet<String> {
    positions
        .iter()
        .filter_map(|index| snapshot.files.get(*index))
        .map(|add| add.path.clone())
        .collect()
}

/// All reads of one transaction, ORed: a winner's file is out of the way only if every read rules
/// it out.
#[derive(Debug, Clone, Default)]
pub struct ReadSet {
    reads: Vec<Read>,
}

impl ReadSet {
    /// A set of `reads`.
    pub fn new(reads: Vec<Read>) -> Self {
        Self { reads }
    }

    /// Adds one read.
    pub fn push(&mut self, read: Read) {
        self.reads.push(read);
    }

    /// The recorded reads, in the order of recording.
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }

    /// Whether nothing was recorded at all. That is *not* the same as [`ReadScope::Nothing`]: a
    /// change of data without any record counts as a read of the whole table.
    pub fn is_unrecorded(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether rows of the table may have been read.
    pub fn reads_rows(&self) -> bool {
        self.reads
            .iter()
            .any(|read| !matches!(read.scope, ReadScope::Nothing))
    }
}
