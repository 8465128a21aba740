//! What a table's log says of its versions.
//!
//! Only the commit entries of the log are read, no checkpoint and no data file; each is read once and
//! forgotten once it is summed up. `commitInfo` is what a writer said about itself and may be missing
//! in part or in whole; files, bytes and rows are counted from the actions.

use futures::{StreamExt, TryStreamExt};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commit::WinningCommit;
use crate::commit::log::{LogFile, list_log};
use crate::commit::net_effect::compaction::live_rows;
use crate::error::{Error, Result};
use crate::read::table::TableHandle;

/// How many commit entries are read at a time.
const READ_CONCURRENCY: usize = 8;

/// One version of a table, as its commit entry tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The version.
    pub version: u64,
    /// When its writer says it was written, in milliseconds since the epoch (`timestamp`, or
    /// `inCommitTimestamp` where the table has them).
    pub timestamp: Option<i64>,
    /// `operation`.
    pub operation: Option<String>,
    /// `operationParameters`.
    pub operation_parameters: Option<Map<String, Value>>,
    /// `isolationLevel`, as its writer spells it.
    pub isolation_level: Option<String>,
    /// `isBlindAppend`: whether its writer says that it read nothing and only added rows.
    pub is_blind_append: Option<bool>,
    /// The version that its writer says it read (`readVersion`).
    pub read_version: Option<u64>,
    /// Files added.
    pub files_added: u64,
    /// Files removed.
    pub files_removed: u64,
    /// Size of the files added, in bytes.
    pub bytes_added: u64,
    /// Rows in the files added, without those that a deletion vector hides; none where the statistics
    /// of a file don't say.
    pub rows_added: Option<u64>,
    /// Whether rows changed: files were added or removed with `dataChange=true`.
    pub is_data_change: bool,
    /// `operationMetrics`.
    pub operation_metrics: Option<Map<String, Value>>,
    /// Name and version of the writer (`engineInfo`).
    pub engine: Option<String>,
}

/// The newest `limit` versions of the table, newest first; all that the log has without a limit.
///
/// Versions whose entries were cleaned up are not there; the oldest one left may be any.
///
/// # Errors
///
/// `Invalid` if there is no table, `Unavailable` if the log cannot be listed or read; where it is an
/// entry that cannot be read, the error names its version.
///
/// ```
/// use std::collections::HashMap;
///
/// use delta_disjoint::history::history;
/// use delta_disjoint::read::table::TableHandle;
/// use delta_disjoint::{session, sql};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let location = folder.path().to_str().ok_or("a path")?;
/// let ctx = session();
/// sql(&ctx, &format!("CREATE EXTERNAL TABLE t (x BIGINT) STORED AS DELTA LOCATION '{location}'")).await?;
/// sql(&ctx, "INSERT INTO t VALUES (1), (2)").await?.collect().await?;
///
/// let table = TableHandle::at(location, HashMap::new(), false)?;
/// let versions = history(&table, None).await?;
/// assert_eq!(versions[0].version, 1);
/// assert_eq!(versions[0].operation.as_deref(), Some("WRITE"));
/// assert_eq!((versions[0].files_added, versions[0].rows_added), (1, Some(2)));
/// assert_eq!(versions.len(), 2);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub async fn history(table: &TableHandle, limit: Option<usize>) -> Result<Vec<HistoryEntry>> {
    let mut versions = versions(table).await?;
    if versions.is_empty() && !table.exists().await? {
        return Err(Error::invalid(format!(
            "there is no Delta table at {}",
            table.location()
        )));
    }
    // Newest first.
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.truncate(limit.unwrap_or(usize::MAX));
    futures::stream::iter(versions)
        .map(|version| entry(table, version))
        .buffered(READ_CONCURRENCY)
        .try_filter_map(|entry| async move { Ok(entry) })
        .try_collect()
        .await
}

/// The versions that the log has commit entries of, in no order.
async fn versions(table: &TableHandle) -> Result<Vec<u64>> {
    list_log(table.log_store(), None, None)
        .try_filter_map(|file| {
            let version = match file {
                LogFile::Commit(version) => Some(version),
                LogFile::Checkpoint(_) => None,
            };
            std::future::ready(Ok(version))
        })
        .try_collect()
        .await
}

/// What the entry of `version` tells; nothing where it was cleaned up since it was listed.
async fn entry(table: &TableHandle, version: u64) -> Result<Option<HistoryEntry>> {
    let log_store = table.log_store();
    let bytes = log_store
        .read_commit_entry(version)
        .await
        .map_err(|error| {
            Error::unavailable(format!(
                "version {version} of the log cannot be read: {error}"
            ))
            .with_source(error)
        })?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let commit = WinningCommit::parse(version, &bytes, log_store.root_url())?;
    let (info, actions) = (commit.info, &commit.actions);
    Ok(Some(HistoryEntry {
        version,
        timestamp: info.timestamp,
        operation: info.operation,
        operation_parameters: info.operation_parameters,
        isolation_level: info.isolation_level,
        is_blind_append: info.is_blind_append,
        read_version: info.read_version,
        files_added: actions.adds.len() as u64,
        files_removed: actions.removes.len() as u64,
        bytes_added: actions
            .adds
            .iter()
            .map(|add| u64::try_from(add.size).unwrap_or(0))
            .fold(0, u64::saturating_add),
        rows_added: actions.adds.iter().try_fold(0, |rows: u64, add| {
            rows.checked_add(u64::try_from(live_rows(add)?).ok()?)
        }),
        is_data_change: actions.declares_data_change(),
        operation_metrics: info.operation_metrics,
        engine: info.engine_info,
    }))
}
