//! Checkpoints after a commit, so that the log of a busy table stays short to read.

use deltalake::DeltaTable;
use deltalake::checkpoints::create_checkpoint;
use std::sync::Arc;

use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// Commits between two checkpoints where the table says nothing. Source: Delta protocol,
/// `delta.checkpointInterval`.
const DEFAULT_INTERVAL: u64 = 10;

/// Writes a checkpoint of `version` if the table's interval says so. The commit stands whatever
/// becomes of it, so a failure is only logged.
pub(super) async fn checkpoint_if_due(
    handle: &TableHandle,
    snapshot: &TableSnapshot,
    version: u64,
) {
    let interval = snapshot
        .property("delta.checkpointInterval")
        .and_then(|value| value.parse().ok())
        .unwrap_or(DEFAULT_INTERVAL);
    if interval == 0 || version == 0 || !version.is_multiple_of(interval) {
        return;
    }
    let mut table = DeltaTable::new(Arc::clone(handle.log_store()));
    let written = match table.load_version(version).await {
        Ok(()) => create_checkpoint(&table, None).await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        tracing::warn!(version, %error, "the checkpoint could not be written; a later one will be");
    }
}
