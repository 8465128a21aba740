//! The decision about each file that a winner touched, and why.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::error::printable;
use crate::read::prune::Decision;

/// What a winner did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileChange {
    /// It was added, or added again with other content.
    Added,
    /// It was removed, or is not what it was.
    Removed,
}

impl FileChange {
    /// `added` or `removed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The decision on one file that a winner touched, with respect to one read where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The winner.
    pub version: u64,
    /// The winner's operation, as it calls itself.
    pub operation: String,
    /// Canonical path of the file.
    pub path: String,
    /// What the winner did to it.
    pub change: FileChange,
    /// The file's partition values as the log has them, by the names in the log.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// The read it was tested against, as text.
    pub read: Option<Arc<str>>,
    /// Whether it was kept or skipped, and why.
    pub decision: Decision,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = if self.decision.is_skip() {
            "skipped"
        } else {
            "kept"
        };
        // Nearly all of it is what the winner wrote into the log.
        let mut text = format!(
            "version {} ({}), {} file {}",
            self.version, self.operation, self.change, self.path
        );
        if let Some(read) = &self.read {
            write!(text, ", read ({read})")?;
        }
        write!(text, ": {decision}")?;
        if let Some(reason) = self.decision.reason() {
            write!(text, ", {} ({})", reason.detail, reason.code)?;
        }
        f.write_str(&printable(&text))
    }
}
