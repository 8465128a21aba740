//! One put, what became of it where the store does not say so clearly, and its abort.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use deltalake::kernel::transaction::{CommitConflictError, TransactionError};
use deltalake::logstore::{self, CommitOrBytes, LogStoreRef};
use uuid::Uuid;

use super::errors::failed;
use crate::commit::OutcomeUnknown;
use crate::commit::log::{is_refusal, read_entry};
use crate::error::Error;

/// Puts the entries of one operation, one at a time.
pub(super) struct Puts {
    log_store: LogStoreRef,
    last: Mutex<Option<Tried>>,
}

/// A put that reached the store.
#[derive(Debug, Clone, Copy)]
struct Tried {
    version: u64,
    operation: Uuid,
    /// Whether an abort has nothing left to do: it is done, or the entry may be there.
    is_settled: bool,
}

impl Puts {
    pub(super) fn new(log_store: LogStoreRef) -> Self {
        Self {
            log_store,
            last: Mutex::default(),
        }
    }

    /// Puts `commit_or_bytes`, which holds `entry`, as `version`.
    ///
    /// A put that is said to have failed may have happened: a store that retries on its own loses
    /// against itself. The log tells.
    ///
    /// # Errors
    ///
    /// `VersionAlreadyExists` if another writer has the version, `ProtocolChanged` if that is the
    /// first one; `LogStoreError` with [`OutcomeUnknown`] behind it if it stays open whether the entry
    /// was written; the store's own error if it was not.
    pub(super) async fn put(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation: Uuid,
        entry: &Bytes,
    ) -> Result<(), TransactionError> {
        self.tried(version, operation, false);
        let put = self
            .log_store
            .write_commit_entry(version, commit_or_bytes.clone(), operation);
        let Err(error) = put.await else {
            return Ok(());
        };
        let is_lost = matches!(error, TransactionError::VersionAlreadyExists(_));
        let why = match read_entry(&self.log_store, version).await {
            Ok(Some(found)) if found == *entry && names_new_files(entry, version) => return Ok(()),
            Ok(Some(found)) if found == *entry => {
                "the same entry is there, and may be another writer's".to_owned()
            }
            Ok(Some(_)) if version == 0 => return Err(created_by_another()),
            Ok(Some(_)) => return Err(TransactionError::VersionAlreadyExists(version)),
            Ok(None) if is_lost => "it exists, but it cannot be found".to_owned(),
            Ok(None) if is_refusal(&error) => return Err(error),
            Ok(None) => match commit_or_bytes {
                // A store that is told of the end of it can say that nothing comes any more.
                CommitOrBytes::TmpCommit(_)
                    if self
                        .log_store
                        .abort_commit_entry(version, commit_or_bytes, operation)
                        .await
                        .is_ok() =>
                {
                    self.tried(version, operation, true);
                    return Err(error);
                }
                _ => error.to_string(),
            },
            Err(unread) if is_lost => unread.to_string(),
            Err(_) => error.to_string(),
        };
        self.tried(version, operation, true);
        let source = OutcomeUnknown {
            version,
            txn_id: operation,
        };
        let unknown = Error::unavailable(format!("{source}: {why}")).with_source(source);
        Err(failed(unknown))
    }

    /// Gives up the put of `version`. The store hears of it only if it has heard of the put: a store
    /// that notes who has a version would drop the note of another writer.
    pub(super) async fn abort(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match last.filter(|last| (last.version, last.operation) == (version, operation)) {
            Some(last) if last.is_settled => Ok(()),
            Some(_) => {
                let abort = self
                    .log_store
                    .abort_commit_entry(version, commit_or_bytes, operation);
                abort.await
            }
            None => match commit_or_bytes {
                CommitOrBytes::LogBytes(_) => Ok(()),
                CommitOrBytes::TmpCommit(path) => {
                    let store = self.log_store.object_store(Some(operation));
                    logstore::abort_commit_entry(&store, version, &path).await
                }
            },
        }
    }

    fn tried(&self, version: u64, operation: Uuid, is_settled: bool) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Tried {
            version,
            operation,
            is_settled,
        });
    }
}

/// The conflict of a table's first version with another writer's.
pub(super) fn created_by_another() -> TransactionError {
    let what = "the table was created by another writer; load it and run the operation again";
    tracing::warn!("a guarded operation meets a conflict: {what}");
    CommitConflictError::ProtocolChanged(what.to_owned()).into()
}

/// Whether no other writer can have put the same entry: it names files or, as a new table, an id of
/// its own.
fn names_new_files(entry: &[u8], version: u64) -> bool {
    version == 0 || std::str::from_utf8(entry).is_ok_and(|text| text.contains(r#"{"add":"#))
}
