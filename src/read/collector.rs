//! Where the scans of one statement leave what they read.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::read_set::{Read, ReadSet};
use crate::error::Result;

/// Says whether a planned statement may start to run; made where sessions and their transactions
/// are known.
pub trait Permit: Any + Debug + Send + Sync {
    /// Looks again each time that one of the statement's operators is started.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the statement was planned in another transaction than the session is in.
    fn check(&self) -> Result<()>;
}

/// The reads of one statement, by table location; filled while its plan is made.
#[derive(Debug, Default)]
pub struct ReadCollector {
    reads: Mutex<Vec<(String, Read)>>,
    permit: Option<Arc<dyn Permit>>,
    started: AtomicBool,
    past_scans: AtomicBool,
}

/// Names one recorded read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadTicket(usize);

impl ReadCollector {
    /// An empty collector to be shared by the scans of one statement.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// An empty collector of a statement that starts only with `permit`.
    pub fn permitted(permit: Arc<dyn Permit>) -> Arc<Self> {
        Arc::new(Self {
            permit: Some(permit),
            ..Self::default()
        })
    }

    /// What the statement needs to start.
    pub fn permit(&self) -> Option<&dyn Permit> {
        self.permit.as_deref()
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

    /// Notes that the statement may read its target by another way than scans of a pinned version.
    pub fn mark_past_scans(&self) {
        self.past_scans.store(true, Ordering::SeqCst);
    }

    /// Whether the statement may read its target by another way than scans of a pinned version:
    /// then it may see any newer version, with the rows of blind appends.
    pub fn reads_past_scans(&self) -> bool {
        self.past_scans.load(Ordering::SeqCst)
    }

    /// Called by every operator that shows or changes rows, before it does.
    ///
    /// # Errors
    ///
    /// As [`Permit::check`].
    pub fn start(&self) -> Result<()> {
        // First the mark, then the question: whoever ends a transaction asks in the other order,
        // so that no statement starts unseen.
        self.started.store(true, Ordering::SeqCst);
        self.permit.as_ref().map_or(Ok(()), |permit| permit.check())
    }

    /// Whether the statement may have shown or changed rows: from then on its reads count.
    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }
}
