//! What became of a guarded operation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::commit::Verdict;

/// What the conflict check found for one guarded operation: deltalake's conflict errors name the
/// kind alone. Cheap to clone; it fills while the operation commits.
#[derive(Debug, Clone, Default)]
pub struct Report {
    inner: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    verdicts: Vec<Verdict>,
    reads: Vec<String>,
    committed: Option<u64>,
}

impl Report {
    /// The verdict that counts: the one with a conflict, else the last one. Nothing as long as the
    /// operation met no other commit.
    pub fn verdict(&self) -> Option<Verdict> {
        let found = self.found();
        found
            .verdicts
            .iter()
            .find(|verdict| verdict.is_conflict())
            .or(found.verdicts.last())
            .cloned()
    }

    /// Every verdict, in order: one for each attempt that met other commits, and several where the
    /// operation read several versions.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.found().verdicts.clone()
    }

    /// What the operation counted as having read when it last met another commit, as text.
    pub fn reads(&self) -> Vec<String> {
        self.found().reads.clone()
    }

    /// The version that was written last.
    pub fn committed(&self) -> Option<u64> {
        self.found().committed
    }

    pub(super) fn checked(&self, verdict: &Verdict, reads: Vec<String>) {
        let mut found = self.found();
        found.verdicts.push(verdict.clone());
        found.reads = reads;
    }

    pub(super) fn written(&self, version: u64) {
        self.found().committed = Some(version);
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
