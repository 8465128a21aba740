//! Checkpoints after a commit, so that the log of a busy table stays short to read.
//!
//! They are the kernel's, which knows every feature that a table may have: domain metadata,
//! application transactions and deletion vectors are in them, and statistics as the table's
//! `delta.checkpoint.writeStatsAsJson` and `…AsStruct` say. A table with the feature `v2Checkpoint`
//! gets the second form, under the name of the first, which any reader of that feature finds.

use std::time::Duration;

use deltalake::checkpoints::cleanup_expired_logs_for;

use crate::clock::now_millis;
use crate::error::Result;
use crate::read::features::is_true;
use crate::read::kernel::with_version;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// Commits between two checkpoints where the table says nothing. Source: Delta protocol,
/// `delta.checkpointInterval`.
const DEFAULT_INTERVAL: u64 = 10;

/// How long entries are kept where the table says nothing. Source: table property
/// `delta.logRetentionDuration`.
const DEFAULT_LOG_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Writes a checkpoint of `version` if the table's interval says so. The commit stands whatever
/// becomes of it, so a failure is only logged.
pub(super) async fn checkpoint_if_due(
    handle: &TableHandle,
    snapshot: &TableSnapshot,
    version: u64,
) {
    let interval = snapshot
        .property("delta.checkpointInterval")
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(DEFAULT_INTERVAL);
    if interval == 0 || version == 0 || !version.is_multiple_of(interval) {
        return;
    }
    let retention = match write_checkpoint(handle, version).await {
        Ok(retention) => retention,
        Err(error) => {
            tracing::warn!(version, %error, "the checkpoint could not be written; a later one will be");
            return;
        }
    };
    // Delta's default is to clean up; here the owner has to ask for it, since entries are what other
    // writers still check against.
    let asked = is_true(
        &snapshot.metadata.configuration,
        "delta.enableExpiredLogCleanup",
    );
    if asked && let Err(error) = remove_expired(handle, version, retention).await {
        tracing::warn!(version, %error, "expired entries of the log could not be removed");
    }
}

/// Writes the checkpoint and tells the table's log retention.
async fn write_checkpoint(handle: &TableHandle, version: u64) -> Result<Duration> {
    with_version(handle, version, |snapshot, engine| {
        snapshot.checkpoint(engine.as_ref(), None)?;
        let retention = snapshot.table_properties().log_retention_duration;
        Ok(retention.unwrap_or(DEFAULT_LOG_RETENTION))
    })
    .await
}

/// Removes entries before the last checkpoint that is older than the retention.
async fn remove_expired(handle: &TableHandle, version: u64, retention: Duration) -> Result<()> {
    let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let before = now_millis().saturating_sub(retention);
    cleanup_expired_logs_for(version, handle.log_store().as_ref(), before, None).await?;
    Ok(())
}
