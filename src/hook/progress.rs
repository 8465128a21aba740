//! How far the commits of one operation are.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deltalake::kernel::transaction::TransactionError;
use uuid::Uuid;

use super::errors::failed;
use crate::error::Error;

/// Follows the steps in which deltalake commits, and to which operation the guard belongs.
#[derive(Debug, Default)]
pub(super) struct Progress {
    steps: Mutex<Steps>,
}

#[derive(Debug, Default)]
struct Steps {
    /// The operation that committed first. OPTIMIZE and VACUUM commit several times under one id.
    operation: Option<Uuid>,
    /// The versions that the commits of the operation so far are based on.
    read_versions: BTreeSet<u64>,
    /// How often a commit was begun since the last one was decided. More than once means that
    /// something else than a commit asked, or that the guard is shared against its purpose.
    begun: usize,
    /// Whether the version that this commit is based on is known.
    is_based: bool,
    /// Whether the next question for the latest version may be that of deltalake's own check: a
    /// commit has begun, or has lost a race, and nobody has asked anything since.
    may_check: bool,
    /// The next version that deltalake's own check reads, and the last one.
    to_check: Option<(u64, u64)>,
}

impl Progress {
    /// A commit begins.
    pub(super) fn begin(&self) {
        let mut steps = self.steps();
        steps.begun = steps.begun.saturating_add(1);
        steps.is_based = false;
        steps.may_check = true;
        steps.to_check = None;
    }

    /// The put lost a race; deltalake goes on with the same commit.
    pub(super) fn lost(&self) {
        let mut steps = self.steps();
        steps.may_check = true;
        steps.to_check = None;
    }

    /// deltalake asked which version is the latest from `start` on. For one commit the first question
    /// is about the version that was read, and further ones, after lost races, about newer versions.
    /// If it is not certain whose question it is, each counts.
    pub(super) fn looked(&self, start: u64, latest: u64) {
        let mut steps = self.steps();
        if steps.begun == 0 {
            return;
        }
        if !steps.is_based || steps.begun > 1 {
            steps.read_versions.insert(start);
            steps.is_based = true;
        }
        let may_check = std::mem::take(&mut steps.may_check);
        steps.to_check = (may_check && latest > start).then(|| (start.saturating_add(1), latest));
    }

    /// Whether the entry of `version` is asked for by deltalake's own check, which reads the versions
    /// after the one it is based on, one by one. Whoever reads another one is somebody else: a commit
    /// has failed, or only the name was asked for, and from then on nothing is hidden.
    pub(super) fn is_own_check(&self, version: u64) -> bool {
        let mut steps = self.steps();
        match steps.to_check.take() {
            Some((next, last)) if next == version => {
                steps.to_check = (next < last).then_some((next + 1, last));
                true
            }
            _ => {
                steps.may_check = false;
                false
            }
        }
    }

    /// Whether an operation has put an entry, or tried to.
    pub(super) fn is_bound(&self) -> bool {
        self.steps().operation.is_some()
    }

    /// The versions that the operation read, now that `operation` puts an entry.
    ///
    /// # Errors
    ///
    /// `Invalid`, if the guard belongs to another operation.
    pub(super) fn bind(&self, operation: Uuid) -> Result<BTreeSet<u64>, TransactionError> {
        let mut steps = self.steps();
        let owner = *steps.operation.get_or_insert(operation);
        if owner != operation {
            steps.end();
            return Err(failed(Error::invalid(
                "this table is guarded for one operation, which has committed already; call \
                 hook::guard for each operation",
            )));
        }
        Ok(steps.read_versions.clone())
    }

    /// The commit is decided.
    pub(super) fn end(&self) {
        self.steps().end();
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps {
    fn end(&mut self) {
        self.begun = 0;
        self.is_based = false;
        self.may_check = false;
        self.to_check = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_hidden_from_deltalakes_check_alone() {
        let progress = Progress::default();
        // Before a commit nothing is hidden, whoever asks.
        progress.looked(3, 5);
        assert!(!progress.is_own_check(4));
        progress.begin();
        assert!(!progress.is_own_check(4), "not looked yet");
        progress.looked(3, 5);
        assert!(!progress.is_own_check(4), "somebody has read in between");
        progress.begin();
        progress.looked(3, 5);
        assert!(progress.is_own_check(4));
        assert!(progress.is_own_check(5));
        assert!(!progress.is_own_check(6));
        // The race is lost, and deltalake looks again.
        progress.lost();
        progress.looked(5, 6);
        assert!(progress.is_own_check(6));
        progress.end();
        progress.looked(6, 7);
        assert!(!progress.is_own_check(7));
    }

    /// A commit that failed without a put, or a log line, leaves a commit begun behind.
    #[test]
    fn nothing_is_hidden_once_somebody_else_asks() {
        let begun = || {
            let progress = Progress::default();
            progress.begin();
            progress.looked(1, 5);
            progress
        };
        for other in [1, 3, 5] {
            let progress = begun();
            assert!(!progress.is_own_check(other), "{other}");
            assert!(!progress.is_own_check(2), "after {other}");
        }
        // A change feed asks for the latest version first.
        let progress = begun();
        progress.looked(1, 2);
        assert!(!progress.is_own_check(2));
        // The guard serves another operation already.
        let progress = Progress::default();
        progress.bind(Uuid::new_v4()).expect("bound");
        progress.begin();
        progress.looked(1, 5);
        assert!(progress.bind(Uuid::new_v4()).is_err());
        assert!(!progress.is_own_check(2));
    }

    #[test]
    fn versions_read_are_those_of_every_commit_of_the_operation() {
        let (operation, other) = (Uuid::new_v4(), Uuid::new_v4());
        let progress = Progress::default();
        // Some other question before the commit.
        progress.looked(0, 5);
        progress.begin();
        progress.looked(3, 5);
        progress.looked(5, 6);
        assert_eq!(progress.bind(operation).expect("bound"), [3].into());
        progress.end();
        progress.begin();
        progress.looked(7, 7);
        assert_eq!(progress.bind(operation).expect("bound"), [3, 7].into());
        let error = progress.bind(other).expect_err("another operation");
        assert!(error.to_string().contains("hook::guard"), "{error}");
    }

    #[test]
    fn every_version_counts_where_it_is_not_certain_which_commit_asks() {
        let progress = Progress::default();
        progress.begin();
        progress.looked(2, 5);
        // Another commit through the same guard, or somebody who only asked for the name.
        progress.begin();
        progress.looked(4, 5);
        progress.looked(5, 6);
        let bound = progress.bind(Uuid::new_v4()).expect("bound");
        assert_eq!(bound, [2, 4, 5].into());
    }
}
