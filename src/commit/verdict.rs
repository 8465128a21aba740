//! What the conflict check found.

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::error::DataFusionError;

use super::advice::Advice;
use super::evidence::Evidence;
use super::isolation::IsolationLevel;
use crate::error::{Error, ErrorKind, printable};
use crate::reason::{Reason, ReasonCode};

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
    /// Name and version of the winner's writer, as it calls itself.
    pub engine: Option<String>,
    /// Canonical path of the file it is about.
    pub path: Option<String>,
    /// The read that the file may match, as text.
    pub read: Option<Arc<str>>,
    /// What could not be ruled out, or what changed.
    pub reason: Reason,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nearly all of it is what the winner wrote into the log.
        let mut text = format!(
            "{} with version {} ({}",
            self.kind, self.version, self.operation
        );
        match &self.engine {
            Some(engine) => write!(text, " by {engine})")?,
            None => text.push(')'),
        }
        if let Some(path) = &self.path {
            write!(text, ", file {path}")?;
        }
        if let Some(read) = &self.read {
            write!(text, ", read ({read})")?;
        }
        write!(text, ": {}", self.reason)?;
        f.write_str(&printable(&text))
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
/// use delta_disjoint::reason::{Reason, ReasonCode};
/// use delta_disjoint::{Error, ErrorKind};
///
/// let mut verdict = Verdict::clean(4, IsolationLevel::Serializable);
/// verdict.conflicts.push(Conflict {
///     kind: ConflictKind::MetadataChanged,
///     version: 5,
///     operation: "ADD COLUMNS".to_owned(),
///     engine: None,
///     path: None,
///     read: None,
///     reason: Reason::new(ReasonCode::MetadataChange, "the schema changed"),
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
    /// The decisions on the files that winners touched, by version and path; at most [`MAX_LISTED`],
    /// those that were kept before the others. Of a transaction that committed there are none, which
    /// costs nothing then: `explain` tells.
    pub evidence: Vec<Evidence>,
    /// How many decisions there are.
    pub evidence_count: usize,
    /// Added files that had to be tested against the reads.
    pub candidates: usize,
    /// Those of them that cannot match any read.
    pub skipped: usize,
    /// Those of the skipped ones that partition values alone rule out.
    pub skipped_by_partition: usize,
    /// What to do about the conflicts, most telling first.
    pub advice: Vec<Advice>,
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
            evidence_count: 0,
            candidates: 0,
            skipped: 0,
            skipped_by_partition: 0,
            advice: Vec::new(),
        }
    }

    /// How many winners were checked.
    pub fn winners_checked(&self) -> usize {
        self.winners.clone().map_or(0, |winners| winners.count())
    }

    /// The last version checked; the read version if there was no winner.
    pub fn to_version(&self) -> u64 {
        self.winners
            .as_ref()
            .map_or(self.read_version, |winners| *winners.end())
    }

    /// Added files that may match a read.
    pub fn kept(&self) -> usize {
        self.candidates.saturating_sub(self.skipped)
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
        Self::of(Error::find(error)?)
    }

    /// The verdict behind an error of kind [`Conflict`](ErrorKind::Conflict).
    pub fn of(error: &Error) -> Option<&Self> {
        error.source()?.downcast_ref()
    }

    /// What the message says to do: the most telling advice and the last, which is to run again.
    fn shown_advice(&self) -> impl Iterator<Item = &Advice> {
        let last = self.advice.len().saturating_sub(1);
        self.advice
            .iter()
            .enumerate()
            .filter(move |(position, _)| *position == 0 || *position == last)
            .map(|(_, advice)| advice)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read version {}: ", self.read_version)?;
        match (self.conflicts.first(), &self.winners) {
            (Some(conflict), _) => {
                write!(f, "{conflict}")?;
                match self.conflict_count.saturating_sub(1) {
                    0 => {}
                    more => write!(f, " (and {more} more)")?,
                }
                for (position, advice) in self.shown_advice().enumerate() {
                    f.write_str(if position == 0 { "; " } else { ", and " })?;
                    write!(f, "{advice}")?;
                }
                Ok(())
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

/// Behind an error of kind [`Contended`](ErrorKind::Contended): other writers took every version
/// that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptsUsedUp {
    /// How often it was tried.
    pub attempts: usize,
    /// The last check, which found no conflict.
    pub verdict: Verdict,
}

impl AttemptsUsedUp {
    /// What an `error` of kind [`Contended`](ErrorKind::Contended) holds.
    pub fn of(error: &Error) -> Option<&Self> {
        error.source()?.downcast_ref()
    }
}

impl fmt::Display for AttemptsUsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "other writers took the next version {} times in a row, lastly version {}; no conflict \
             was found; run the statement again, later or with a higher delta.max_commit_attempts",
            self.attempts,
            self.verdict.to_version().saturating_add(1)
        )
    }
}

impl StdError for AttemptsUsedUp {}

impl From<AttemptsUsedUp> for Error {
    fn from(used_up: AttemptsUsedUp) -> Self {
        Self::new(ErrorKind::Contended, used_up.to_string()).with_source(used_up)
    }
}

/// Why `error` is a conflict or a lost race: the reason of the most telling conflict. `None` for any
/// other error.
pub fn reason_of(error: &Error) -> Option<Reason> {
    let conflict = Verdict::of(error).and_then(Verdict::first_conflict);
    match (conflict, AttemptsUsedUp::of(error)) {
        (Some(conflict), _) => Some(conflict.reason.clone()),
        (None, Some(used_up)) => Some(Reason::new(ReasonCode::AttemptsUsedUp, used_up.to_string())),
        (None, None) => None,
    }
}

impl From<Verdict> for Error {
    fn from(verdict: Verdict) -> Self {
        Self::new(ErrorKind::Conflict, verdict.to_string()).with_source(verdict)
    }
}
