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
use crate::commit::log::read_winner;
use crate::error::{Error, Result};
use crate::read::log_store::commit_style;

/// deltalake starts and ends a branch for each operation on such a store, which it looks for by type.
const LAKE_FS: &str = "LakeFSLogStore";

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
/// other time entries are what they are: after the second step nobody but deltalake's check reads the
/// next version first, and each further step is hidden only if it is the expected one.
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
    /// `Unsupported` for a log store that is not known to be safe to commit to, or that deltalake has
    /// to know by its type; `Invalid` if what was said of the other operation would be lost.
    pub(super) fn new(log_store: &LogStoreRef, hints: Hints, report: Report) -> Result<Self> {
        if let Some(guarded) = as_guarded(log_store)
            && guarded.check.hints().say_something()
            && !guarded.progress.is_bound()
        {
            return Err(Error::invalid(
                "this table is guarded already, and what its guard was told of the operation would \
                 be lost; say it to the new guard, and take the other one off with hook::unguard",
            ));
        }
        let inner = unguarded(log_store);
        commit_style(inner.as_ref())?;
        if inner.name() == LAKE_FS {
            return Err(Error::unsupported(format!(
                "log store {LAKE_FS} cannot be guarded: deltalake prepares each of its operations by \
                 the store's own type, which a guard hides; use the SQL statements of this crate or \
                 deltalake without the hook"
            )));
        }
        Ok(Self {
            check: Check::new(Arc::clone(&inner), hints, report),
            progress: Progress::default(),
            inner,
        })
    }
}

/// The log store itself where `log_store` is one that guards an operation.
pub(super) fn unguarded(log_store: &LogStoreRef) -> LogStoreRef {
    match as_guarded(log_store) {
        Some(guarded) => Arc::clone(&guarded.inner),
        None => Arc::clone(log_store),
    }
}

fn as_guarded(log_store: &LogStoreRef) -> Option<&GuardedLogStore> {
    AsAny::any_ref(log_store.as_ref()).downcast_ref()
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
        if !self.progress.is_own_check(version) {
            return self.inner.read_commit_entry(version).await;
        }
        let entry = read_winner(&self.inner, version).await?;
        self.check.keep(version, entry);
        Ok(Some(Bytes::new()))
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
        if matches!(outcome, Err(TransactionError::VersionAlreadyExists(_))) {
            self.progress.lost();
        } else {
            self.progress.end();
            self.check.forget().await;
        }
        outcome
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation_id: Uuid,
    ) -> Result<(), TransactionError> {
        self.check
            .abort(version, commit_or_bytes, operation_id)
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

#[cfg(test)]
mod tests {
    use deltalake::DeltaTable;
    use deltalake::kernel::{Action, Add, DataType, PrimitiveType};
    use deltalake::protocol::{DeltaOperation, SaveMode};

    use super::*;

    async fn append(table: &DeltaTable, log_store: LogStoreRef, path: &str) -> bool {
        let add = Add {
            path: path.to_owned(),
            size: 1,
            data_change: true,
            ..Add::default()
        };
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: None,
            predicate: None,
        };
        deltalake::kernel::transaction::CommitBuilder::default()
            .with_actions(vec![Action::Add(add)])
            .build(
                Some(table.snapshot().expect("loaded")),
                log_store,
                operation,
            )
            .await
            .is_ok()
    }

    #[tokio::test]
    async fn guard_keeps_nothing_once_its_commit_is_decided() {
        for blind_input in [true, false] {
            let table = DeltaTable::new_in_memory()
                .create()
                .with_column("id", DataType::Primitive(PrimitiveType::Long), true, None)
                .await
                .expect("created");
            let plain = table.log_store();
            let hints = Hints {
                blind_input,
                ..Hints::default()
            };
            let report = Report::default();
            let guarded = GuardedLogStore::new(&plain, hints, report.clone()).expect("guarded");
            let guarded = Arc::new(guarded);
            assert!(append(&table, plain, "a").await);
            let store: LogStoreRef = Arc::clone(&guarded) as _;
            assert_eq!(append(&table, store, "b").await, blind_input);
            assert!(report.verdict().is_some());
            assert!(guarded.check.knows_nothing().await);
        }
    }
}
