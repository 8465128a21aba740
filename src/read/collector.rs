//! Where the scans of one statement leave what they read.

use std::sync::{Arc, Mutex, PoisonError};

use super::read_set::{Read, ReadSet};

/// The reads of one statement, by table location; filled while its plan is made.
#[derive(Debug, Default)]
pub struct ReadCollector {
    reads: Mutex<Vec<(String, Read)>>,
}

/// Names one recorded read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadTicket(usize);

impl ReadCollector {
    /// An empty collector to be shared by the scans of one statement.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Records a read of the table at `location`.
    pub fn record(&self, location: &str, read: Read) {
        self.record_for_now(location, read);
    }

    /// Records a read that may turn out to be narrower while the statement runs.
    pub(crate) fn record_for_now(&self, location: &str, read: Read) -> ReadTicket {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.push((location.to_owned(), read));
        ReadTicket(reads.len() - 1)
    }

    /// Puts a narrower read in the place of the one that `ticket` was given for.
    pub(crate) fn replace(&self, ticket: ReadTicket, narrower: Read) {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, read)) = reads.get_mut(ticket.0) {
            *read = narrower;
        }
    }

    /// The reads of the table at `location` so far.
    pub fn reads_of(&self, location: &str) -> ReadSet {
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        ReadSet::new(
            reads
                .iter()
                .filter(|(of, _)| of == location)
                .map(|(_, read)| read.clone())
                .collect(),
        )
    }
}
