//! The change data feed of a transaction: the commit knows which rows changed, the writer how change
//! files look.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use deltalake::kernel::AddCDCFile;

use crate::commit::open_transaction::{ChangeDataWriter, NetChange};
use crate::error::{Error, ErrorKind, Result};
use crate::write::change_data::write_net_change;

/// Writes change files by reading the changed rows again in a session.
pub(crate) struct ChangeFeed {
    context: Arc<TaskContext>,
}

impl ChangeFeed {
    pub(crate) fn new(context: Arc<TaskContext>) -> Self {
        Self { context }
    }
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed").finish_non_exhaustive()
    }
}

#[async_trait]
impl ChangeDataWriter for ChangeFeed {
    async fn write(&self, change: NetChange<'_>) -> Result<Vec<AddCDCFile>> {
        let NetChange {
            handle,
            base,
            view,
            rows,
        } = change;
        write_net_change(handle, [base, view], rows, &self.context)
            .await
            .map_err(not_written)
    }
}

fn not_written(error: DataFusionError) -> Error {
    let (kind, reason) = match Error::find(&error) {
        Some(found) => (found.kind(), found.message().to_owned()),
        None => (ErrorKind::Unavailable, error.to_string()),
    };
    let message = format!(
        "nothing of the transaction was committed: its change data feed cannot be written: {reason}"
    );
    Error::new(kind, message).with_source(error)
}
