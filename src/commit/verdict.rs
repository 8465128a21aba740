//! What the conflict check found.

use std::error::Error as StdError;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::error::DataFusionError;

use super::evidence::Evidence;
use super::isolation::IsolationLevel;
use crate::error::{Error, ErrorKind};

/// The kinds of conflict, most telling first: where several apply, the first one is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ConflictKind {
    /// The winner changed the table's protocol, or did something this crate does not know.
    ProtocolChanged,
    /// The winner changed the table's metadata.
    MetadataChanged,
    /// The winner committed for the same application id.
    ConcurrentTransaction,
    /// The winner changed the same metadata domain.
    ConcurrentDomainMetadata,
    /// The winner added a file that may hold rows this transaction would have read.
    ConcurrentAppend,
    /// The winner removed or changed a file that this transaction read.
    ConcurrentDeleteRead,
    /// The winner removed or changed a file that this transaction removes.
    ConcurrentDeleteDelete,
}

impl ConflictKind {
    /// The name, as in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProtocolChanged => "ProtocolChanged",
            Self::MetadataChanged => "MetadataChanged",
            Self::ConcurrentTransaction => "ConcurrentTransaction",
            Self::ConcurrentDomainMetadata => "ConcurrentDomainMetadata",
            Self::ConcurrentAppend => "ConcurrentAppend",
            Self::ConcurrentDeleteRead => "ConcurrentDeleteRead",
            Self::ConcurrentDeleteDelete => "ConcurrentDeleteDelete",
        }
    }
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One reason why a transaction may not be committed as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Its kind.
    pub kind: ConflictKind,
    /// The winning version.
    pub version: u64,
    /// The winner's operation, as it calls itself.
    pub operation: String,
    /// Canonical path of the file it is about.
    pub path: Option<String>,
    /// The read that the file may match, as text.
    pub read: Option<Arc<str>>,
    /// What could not be ruled out, or what changed.
    pub why: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with version {} ({})",
            self.kind, self.version, self.operation
        )?;
        if let Some(path) = &self.path {
            write!(f, ", file {path}")?;
        }
        if let Some(read) = &self.read {
            write!(f, ", read ({read})")?;
        }
        write!(f, ": {}", self.why)
    }
}

/// The result of the conflict check: conflicts, and the evidence for what was kept or skipped.
///
/// As the source of an [`Error`] of kind [`Conflict`](ErrorKind::Conflict) it is found again with
/// [`Verdict::find`]:
///
/// ```
/// use datafusion::error::DataFusionError;
/// use delta_disjoint::commit::{Conflict, ConflictKind, IsolationLevel, Verdict};
/// use delta_disjoint::{Error, ErrorKind};
///
/// let mut verdict = Verdict::clean(4, IsolationLevel::Serializable);
/// verdict.conflicts.push(Conflict {
///     kind: ConflictKind::MetadataChanged,
///     version: 5,
///     operation: "ADD COLUMNS".to_owned(),
///     path: None,
///     read: None,
///     why: "the schema changed".to_owned(),
/// });
/// let error: DataFusionError = Error::from(verdict).into();
/// assert_eq!(Error::find(&error).map(Error::kind), Some(ErrorKind::Conflict));
/// let verdict = Verdict::find(&error).expect("a verdict");
/// assert_eq!(
///     verdict.to_string(),
///     "read version 4: MetadataChanged with version 5 (ADD COLUMNS): the schema changed"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The version our transaction read.
    pub read_version: u64,
    /// The versions checked; `None` if there was no winner.
    pub winners: Option<RangeInclusive<u64>>,
    /// The level checked at.
    pub level: IsolationLevel,
    /// The conflicts, most telling first. Empty: the transaction may be committed.
    ///
    /// At most [`MAX_LISTED`]; [`Self::conflict_count`] counts all.
    pub conflicts: Vec<Conflict>,
    /// How many conflicts there are.
    pub conflict_count: usize,
    /// The decisions on added files; at most [`MAX_LISTED`].
    pub evidence: Vec<Evidence>,
    /// Added files that had to be tested against the reads.
    pub candidates: usize,
    /// Those of them that cannot match any read.
    pub skipped: usize,
}

/// Conflicts and decisions listed in a [`Verdict`]: enough to explain any conflict a person reads,
/// and little enough to keep for every statement of a session.
pub const MAX_LISTED: usize = 1000;

impl Verdict {
    /// A verdict without winners.
    pub fn clean(read_version: u64, level: IsolationLevel) -> Self {
        Self {
            read_version,
            winners: None,
            level,
            conflicts: Vec::new(),
            conflict_count: 0,
            evidence: Vec::new(),
            candidates: 0,
            skipped: 0,
        }
    }

    /// How many winners were checked.
    pub fn winners_checked(&self) -> usize {
        self.winners.clone().map_or(0, |winners| winners.count())
    }

    /// Whether there is a conflict.
    pub fn is_conflict(&self) -> bool {
        !self.conflicts.is_empty()
    }

    /// The most telling conflict.
    pub fn first_conflict(&self) -> Option<&Conflict> {
        self.conflicts.first()
    }

    /// The verdict inside a DataFusion error, however deep.
    pub fn find(error: &DataFusionError) -> Option<&Self> {
        Error::find(error)?.source()?.downcast_ref()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read version {}: ", self.read_version)?;
        match (self.conflicts.first(), &self.winners) {
            (Some(conflict), _) => {
                write!(f, "{conflict}")?;
                match self.conflict_count.saturating_sub(1) {
                    0 => Ok(()),
                    more => write!(f, " (and {more} more)"),
                }
            }
            (None, None) => f.write_str("no other commit"),
            (None, Some(winners)) => write!(
                f,
                "no conflict with versions {} to {}, {} of {} added files skipped",
                winners.start(),
                winners.end(),
                self.skipped,
                self.candidates
            ),
        }
    }
}

impl StdError for Verdict {}

impl From<Verdict> for Error {
    fn from(verdict: Verdict) -> Self {
        Self::new(ErrorKind::Conflict, verdict.to_string()).with_source(verdict)
    }
}
