//! Where the scans of one statement leave what they read.

use std::sync::{Arc, Mutex, PoisonError};

use super::read_set::{Read, ReadSet};

/// The reads of one statement, by table location; filled while its plan is made.
#[derive(Debug, Default)]
pub struct ReadCollector {
    reads: Mutex<Vec<(String, Read)>>,
}

impl ReadCollector {
    /// An empty collector to be shared by the scans of one statement.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Records a read of the table at `location`.
    pub fn record(&self, location: &str, read: Read) {
        self.reads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((location.to_owned(), read));
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
