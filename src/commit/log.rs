//! The table's log as the attempt loop sees it: what is new, and one put.

use std::ops::RangeInclusive;

use bytes::Bytes;
use deltalake::DeltaTableError;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStoreRef};
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use uuid::Uuid;

use super::winner::WinningCommit;
use crate::error::{Error, Result};
use crate::read::log_store::{CommitStyle, commit_style};

/// What became of a put.
#[derive(Debug)]
pub(crate) enum Put {
    /// The entry is there.
    Done,
    /// The version exists.
    Lost,
    /// Something else was said, which may not be the whole truth.
    Unclear(TransactionError),
}

/// Puts `entry` as `version`, once; a temporary file is cleared away when the put is lost.
pub(crate) async fn put_entry(store: &LogStoreRef, version: u64, entry: &Bytes) -> Result<Put> {
    let mut log = Log::new(store, Uuid::new_v4())?;
    let put = log.put(version, entry).await?;
    if matches!(put, Put::Lost) {
        log.clean_up().await;
    }
    Ok(put)
}

/// The newest version in the log by the names of its files; `None` if there is no log.
pub(crate) async fn newest_version(store: &LogStoreRef) -> Result<Option<u64>> {
    let newest = store
        .object_store(None)
        .list(Some(store.log_path()))
        .try_fold(None, |newest: Option<u64>, object| async move {
            let name = object.location.filename().unwrap_or_default();
            Ok(newest.max(version_of(name).map(|(version, _)| version)))
        })
        .await?;
    Ok(newest)
}

/// The commits of `versions`, in order, at most `concurrency` read at a time, except for entries
/// that are `known`.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) if one of them is missing or cannot be read: what
/// lies in a gap was not checked.
pub(crate) async fn read_winners(
    store: &LogStoreRef,
    versions: RangeInclusive<u64>,
    concurrency: usize,
    known: impl Fn(u64) -> Option<Bytes>,
) -> Result<Vec<WinningCommit>> {
    futures::stream::iter(versions)
        .map(|version| {
            let known = known(version);
            async move {
                let entry = match known {
                    Some(entry) => entry,
                    None => read_winner(store, version).await?,
                };
                WinningCommit::parse(version, &entry, store.root_url())
            }
        })
        .buffered(concurrency.max(1))
        .try_collect()
        .await
}

/// The entry of `version`, which a later one follows.
///
/// # Errors
///
/// As [`read_winners`].
pub(crate) async fn read_winner(store: &LogStoreRef, version: u64) -> Result<Bytes> {
    read_entry(store, version).await?.ok_or_else(|| {
        Error::unavailable(format!("the log has a gap: version {version} is missing"))
    })
}

/// The entry of `version`; `None` if it is not there.
///
/// # Errors
///
/// [`Unavailable`](crate::ErrorKind::Unavailable) if it cannot be read.
pub(crate) async fn read_entry(store: &LogStoreRef, version: u64) -> Result<Option<Bytes>> {
    store.read_commit_entry(version).await.map_err(|error| {
        Error::unavailable(format!("version {version} of the log cannot be read"))
            .with_source(error)
    })
}

/// The log of one table.
#[derive(Debug)]
pub(super) struct Log<'a> {
    store: &'a LogStoreRef,
    operation: Uuid,
    style: CommitStyle,
    /// The temporary commit file, once it is written.
    temporary: Option<Path>,
}

impl<'a> Log<'a> {
    pub(super) fn new(store: &'a LogStoreRef, operation: Uuid) -> Result<Self> {
        Ok(Self {
            store,
            operation,
            style: commit_style(store.as_ref())?,
            temporary: None,
        })
    }

    /// The newest version, at least `from`, which is known to exist.
    pub(super) async fn latest_version(&self, from: u64) -> Result<u64> {
        let latest = match self.store.get_latest_version(from).await {
            // The entry of `from` may have been cleaned up after a checkpoint.
            Err(DeltaTableError::InvalidVersion(_)) => self.list_from(from).await?,
            answer => answer.map_err(|error| {
                Error::unavailable(format!("the log cannot be listed from version {from}"))
                    .with_source(error)
            })?,
        };
        if latest < from {
            return Err(Error::unavailable(format!(
                "the log ends at version {latest}, but version {from} was read"
            )));
        }
        Ok(latest)
    }

    /// The newest version by the names in the log's folder. That `from` exists shows in a
    /// checkpoint of it or in a later version.
    async fn list_from(&self, from: u64) -> Result<u64> {
        let store = self.store.object_store(Some(self.operation));
        // Names sort by version: this is just before any file of `from`.
        let offset = self.store.log_path().clone().join(format!("{from:020}"));
        let (latest, exists) = store
            .list_with_offset(Some(self.store.log_path()), &offset)
            .try_fold((from, false), |(latest, exists), object| async move {
                let name = object.location.filename().unwrap_or_default();
                Ok(match version_of(name) {
                    Some((version, ".json")) => (latest.max(version), true),
                    Some((version, _)) => (latest, exists || version >= from),
                    None => (latest, exists),
                })
            })
            .await?;
        if exists {
            Ok(latest)
        } else {
            Err(Error::unavailable(format!(
                "the log ends before version {from}, which was read"
            )))
        }
    }

    /// Reads one version; `None` if it is not there.
    pub(super) async fn read(&self, version: u64) -> Result<Option<WinningCommit>> {
        let entry = read_entry(self.store, version).await?;
        entry
            .map(|bytes| WinningCommit::parse(version, &bytes, self.store.root_url()))
            .transpose()
    }

    /// As [`read_winners`].
    pub(super) async fn read_all(
        &self,
        versions: RangeInclusive<u64>,
        concurrency: usize,
    ) -> Result<Vec<WinningCommit>> {
        read_winners(self.store, versions, concurrency, |_| None).await
    }

    /// Puts `entry` as `version` if it is absent.
    pub(super) async fn put(&mut self, version: u64, entry: &Bytes) -> Result<Put> {
        let entry = self.entry(entry).await?;
        let answer = self
            .store
            .write_commit_entry(version, entry, self.operation)
            .await;
        Ok(match answer {
            Ok(()) => {
                self.temporary = None;
                Put::Done
            }
            Err(TransactionError::VersionAlreadyExists(_)) => Put::Lost,
            Err(error) => Put::Unclear(error),
        })
    }

    /// Tells the store that the put of `version` is given up. Whether it is undone for certain.
    pub(super) async fn abort(&mut self, version: u64) -> bool {
        let Some(path) = self.temporary.take() else {
            return false;
        };
        self.store
            .abort_commit_entry(version, CommitOrBytes::TmpCommit(path), self.operation)
            .await
            .is_ok()
    }

    /// Forgets the temporary file: an entry may refer to it.
    pub(super) fn keep_temporary_file(&mut self) {
        self.temporary = None;
    }

    /// Deletes the temporary file, which no entry refers to, on a best-effort basis.
    pub(super) async fn clean_up(&mut self) {
        if let Some(path) = self.temporary.take()
            && let Err(error) = self
                .store
                .object_store(Some(self.operation))
                .delete(&path)
                .await
        {
            tracing::debug!(%error, %path, "a temporary commit file stays behind");
        }
    }

    async fn entry(&mut self, bytes: &Bytes) -> Result<CommitOrBytes> {
        match (self.style, &self.temporary) {
            (CommitStyle::Bytes, _) => Ok(CommitOrBytes::LogBytes(bytes.clone())),
            (CommitStyle::TemporaryFile, Some(path)) => Ok(CommitOrBytes::TmpCommit(path.clone())),
            (CommitStyle::TemporaryFile, None) => {
                let name = format!("_commit_{}.json.tmp", Uuid::new_v4());
                let path = self.store.log_path().clone().join(name.as_str());
                self.store
                    .object_store(Some(self.operation))
                    .put(&path, bytes.clone().into())
                    .await?;
                self.temporary = Some(path.clone());
                Ok(CommitOrBytes::TmpCommit(path))
            }
        }
    }
}

/// Whether `error` says for certain that nothing was written, now or later.
pub(crate) fn is_refusal(error: &TransactionError) -> bool {
    use object_store::Error as StoreError;
    matches!(
        error,
        TransactionError::ObjectStore {
            source: StoreError::PermissionDenied { .. }
                | StoreError::Unauthenticated { .. }
                | StoreError::NotFound { .. }
                | StoreError::NotSupported { .. }
                | StoreError::NotImplemented { .. }
                | StoreError::InvalidPath { .. }
                | StoreError::Precondition { .. }
        }
    )
}

/// Version and rest of a file name in the log's folder.
///
/// Source: Delta protocol, "Delta Log Entries" and "Checkpoints": 20 digits, then the kind of file.
pub(crate) fn version_of(file_name: &str) -> Option<(u64, &str)> {
    let (digits, rest) = file_name.split_at_checked(20)?;
    let is_version = digits.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('.');
    Some((digits.parse().ok().filter(|_| is_version)?, rest))
}
