//! A log store for one operation: it forwards everything and checks what is committed.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use delta_kernel::{AsAny, Engine};
use deltalake::DeltaTableError;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStore, LogStoreConfig, LogStoreRef};
use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;
use uuid::Uuid;

use super::check::{Check, Hints};
use super::progress::Progress;
use super::report::Report;
use crate::error::Result;
use crate::read::log_store::commit_style;

/// The log store of a table during one guarded operation.
///
/// deltalake asks for a commit in these steps, which is what tells it from any other use:
///
/// ```text
/// name()                        the form of the entry is chosen: a commit begins
/// get_latest_version(read)      the version that the operation read
/// read_commit_entry(read + 1 …) deltalake's own check, if there is a newer version
/// write_commit_entry(latest + 1)
/// ```
///
/// Our check happens in the last step. The entries handed out in the third are empty, so that
/// deltalake's check, which is too lax in some cases and too strict in others, finds nothing. At any
/// other time entries are what they are.
pub(super) struct GuardedLogStore {
    inner: LogStoreRef,
    progress: Progress,
    check: Check,
}

impl GuardedLogStore {
    /// Guards one operation on the table of `log_store`, which may be guarded for another one.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a log store that is not known to be safe to commit to.
    pub(super) fn new(log_store: &LogStoreRef, hints: Hints, report: Report) -> Result<Self> {
        let inner = unguarded(log_store);
        commit_style(inner.as_ref())?;
        Ok(Self {
            check: Check::new(Arc::clone(&inner), hints, report),
            progress: Progress::default(),
            inner,
        })
    }
}

/// The log store itself where `log_store` is one that guards an operation.
pub(super) fn unguarded(log_store: &LogStoreRef) -> LogStoreRef {
    let any = AsAny::any_ref(log_store.as_ref());
    match any.downcast_ref::<GuardedLogStore>() {
        Some(guarded) => Arc::clone(&guarded.inner),
        None => Arc::clone(log_store),
    }
}

impl fmt::Debug for GuardedLogStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedLogStore")
            .field("inner", &self.inner)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

// A method that is not forwarded would be the trait's own, which knows nothing of the store.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl LogStore for GuardedLogStore {
    fn name(&self) -> String {
        self.progress.begin();
        self.inner.name()
    }

    async fn refresh(&self) -> Result<(), DeltaTableError> {
        self.inner.refresh().await
    }

    async fn read_commit_entry(&self, version: u64) -> Result<Option<Bytes>, DeltaTableError> {
        let entry = self.inner.read_commit_entry(version).await?;
        if !self.progress.is_own_check(version) {
            return Ok(entry);
        }
        Ok(entry.map(|entry| {
            self.check.keep(version, entry);
            Bytes::new()
        }))
    }

    async fn write_commit_entry(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation_id: Uuid,
    ) -> Result<(), TransactionError> {
        let read_versions = self.progress.bind(operation_id)?;
        let outcome = self
            .check
            .put(version, commit_or_bytes, operation_id, read_versions)
            .await;
        // After a lost race deltalake goes on with the same commit.
        if !matches!(outcome, Err(TransactionError::VersionAlreadyExists(_))) {
            self.progress.end();
        }
        outcome
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation_id: Uuid,
    ) -> Result<(), TransactionError> {
        self.inner
            .abort_commit_entry(version, commit_or_bytes, operation_id)
            .await
    }

    async fn get_latest_version(&self, start_version: u64) -> Result<u64, DeltaTableError> {
        let latest = self.inner.get_latest_version(start_version).await?;
        self.progress.looked(start_version, latest);
        Ok(latest)
    }

    fn object_store(&self, operation_id: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.object_store(operation_id)
    }

    fn root_object_store(&self, operation_id: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.root_object_store(operation_id)
    }

    fn engine(&self, operation_id: Option<Uuid>) -> Arc<dyn Engine> {
        self.inner.engine(operation_id)
    }

    fn to_uri(&self, location: &Path) -> String {
        self.inner.to_uri(location)
    }

    fn root_url(&self) -> &Url {
        self.inner.root_url()
    }

    fn log_path(&self) -> &Path {
        self.inner.log_path()
    }

    fn transaction_url(&self, operation_id: Option<Uuid>) -> Result<Url, DeltaTableError> {
        self.inner.as_ref().transaction_url(operation_id)
    }

    async fn is_delta_table_location(&self) -> Result<bool, DeltaTableError> {
        self.inner.is_delta_table_location().await
    }

    fn config(&self) -> &LogStoreConfig {
        self.inner.config()
    }

    fn object_store_url(&self) -> ObjectStoreUrl {
        self.inner.object_store_url()
    }
}
