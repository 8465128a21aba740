//! Why each added file was kept or skipped.

use std::fmt;
use std::sync::Arc;

use crate::read::prune::Decision;

/// The decision on one added file of a winner with respect to one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The winner that added the file.
    pub version: u64,
    /// Canonical path of the file.
    pub path: String,
    /// The read, as text.
    pub read: Arc<str>,
    /// What the pruner decided.
    pub decision: Decision,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}, file {}: ", self.version, self.path)?;
        match &self.decision {
            Decision::Keep { why, .. } => {
                write!(f, "may match read ({}), since {why}", self.read)
            }
            Decision::Skip { term, .. } => {
                write!(f, "cannot match read ({}), by {term}", self.read)
            }
        }
    }
}
