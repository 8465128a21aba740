//! The table's log as the attempt loop sees it: what is new, and one put.

use std::ops::RangeInclusive;

use bytes::Bytes;
use deltalake::DeltaTableError;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStoreRef};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
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

/// A file in the log's folder from which a version can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFile {
    /// The entry of this version.
    Commit(u64),
    /// A checkpoint of this version, or a part of it.
    Checkpoint(u64),
}

impl LogFile {
    /// The version.
    pub(crate) fn version(self) -> u64 {
        match self {
            Self::Commit(version) | Self::Checkpoint(version) => version,
        }
    }

    /// What a name in the log's folder stands for; nothing for names of other files, such as
    /// checksums, compacted entries and what a writer left behind half-done.
    ///
    /// Source: Delta protocol, "Delta Log Entries" and "Checkpoints".
    fn of_name(name: &str) -> Option<Self> {
        let is_number = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut parts = name.split('.');
        let version = parts
            .next()
            .filter(|digits| is_number(digits, 20))?
            .parse()
            .ok()?;
        match parts.collect::<Vec<_>>()[..] {
            ["json"] => Some(Self::Commit(version)),
            ["checkpoint", "parquet"] => Some(Self::Checkpoint(version)),
            ["checkpoint", id, "parquet" | "json"] if Uuid::try_parse(id).is_ok() => {
                Some(Self::Checkpoint(version))
            }
            ["checkpoint", part, parts, "parquet"]
                if is_number(part, 10) && is_number(parts, 10) =>
            {
                Some(Self::Checkpoint(version))
            }
            _ => None,
        }
    }
}

/// The log's files from version `from` on, or all of them, in no order.
///
/// Stores list what lies in folders of the log's folder as well, such as staged commits and
/// sidecars: that is left out.
pub(crate) fn list_log(
    store: &LogStoreRef,
    operation: Option<Uuid>,
    from: Option<u64>,
) -> BoxStream<'static, Result<LogFile>> {
    let folder = store.log_path().clone();
    let location = store.root_url().clone();
    let objects = store.object_store(operation);
    let listed = match from {
        // Names sort by version: this is just before any file of `from`.
        Some(from) => {
            objects.list_with_offset(Some(&folder), &folder.clone().join(format!("{from:020}")))
        }
        None => objects.list(Some(&folder)),
    };
    let length = folder.parts_count() + 1;
    listed
        .map_err(move |error| {
            Error::unavailable(format!(
                "the log of the table at {location} cannot be listed: {error}"
            ))
            .with_source(error)
        })
        .try_filter_map(move |object| {
            let file = object
                .location
                .filename()
                .filter(|_| object.location.parts_count() == length)
                .and_then(LogFile::of_name)
                .filter(|file| from.is_none_or(|from| from <= file.version()));
            std::future::ready(Ok(file))
        })
        .boxed()
}

/// The newest version in the log by the names of its files; `None` if there is no log.
pub(crate) async fn newest_version(store: &LogStoreRef) -> Result<Option<u64>> {
    list_log(store, None, None)
        .try_fold(None, |newest: Option<u64>, file| async move {
            Ok(newest.max(Some(file.version())))
        })
        .await
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
        let (latest, exists) = list_log(self.store, Some(self.operation), Some(from))
            .try_fold((from, false), |(latest, _), file| async move {
                Ok(match file {
                    LogFile::Commit(version) => (latest.max(version), true),
                    LogFile::Checkpoint(_) => (latest, true),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_and_checkpoints_make_a_version() {
        let id = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5";
        let checkpoint = Some(LogFile::Checkpoint(11));
        let cases = [
            ("json".to_owned(), Some(LogFile::Commit(11))),
            ("checkpoint.parquet".to_owned(), checkpoint),
            (format!("checkpoint.{id}.parquet"), checkpoint),
            (format!("checkpoint.{id}.json"), checkpoint),
            (
                "checkpoint.0000000001.0000000002.parquet".to_owned(),
                checkpoint,
            ),
            ("crc".to_owned(), None),
            ("json.tmp".to_owned(), None),
            (format!("{id}.json"), None),
            ("00000000000000000012.compacted.json".to_owned(), None),
            ("checkpoint.parquet.crc".to_owned(), None),
            ("checkpoint.json".to_owned(), None),
            ("checkpoint.1.2.parquet".to_owned(), None),
            ("checkpoint.other.parquet".to_owned(), None),
            (String::new(), None),
        ];
        for (rest, expected) in cases {
            let name = format!("00000000000000000011.{rest}");
            assert_eq!(LogFile::of_name(&name), expected, "{name}");
        }
        for name in [
            "",
            "11.json",
            "_last_checkpoint",
            "+0000000000000000011.json",
            "99999999999999999999.json",
            "\u{e9}0000000000000000011.json",
        ] {
            assert_eq!(LogFile::of_name(name), None, "{name}");
        }
    }
}
