//! The Delta kernel, for what deltalake does not hand out.

use std::sync::Arc;

use delta_kernel::snapshot::{Snapshot, SnapshotRef};
use delta_kernel::{DeltaResult, Engine};
use deltalake::DeltaTableError;

use super::table::TableHandle;
use crate::error::{Error, Result};

/// What `work` makes of `version` of the table of `handle`. The kernel blocks while it reads, so
/// this happens on a thread of its own.
///
/// # Errors
///
/// `Unavailable` or `Corrupt` if the log cannot be read, `Internal` if the thread ends early.
pub(crate) async fn with_version<T: Send + 'static>(
    handle: &TableHandle,
    version: u64,
    work: impl FnOnce(SnapshotRef, Arc<dyn Engine>) -> DeltaResult<T> + Send + 'static,
) -> Result<T> {
    let root = handle.log_store().transaction_url(None)?;
    let engine = handle.log_store().engine(None);
    tokio::task::spawn_blocking(move || {
        let snapshot = Snapshot::builder_for(root)
            .at_version(version)
            .build(engine.as_ref())?;
        work(snapshot, engine)
    })
    .await
    .map_err(|error| Error::internal(format!("the log was not read: {error}")).with_source(error))?
    .map_err(|error| Error::from(DeltaTableError::from(error)))
}
