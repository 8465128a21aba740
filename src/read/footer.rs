//! The number of rows a Parquet file holds, from its footer: the one count that cannot be wrong.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use deltalake::kernel::Add;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::async_reader::MetadataFetch;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaDataReader;

use super::path::FileLocation;
use super::table::TableHandle;
use crate::error::{Error, Result};

/// The number of rows that the file of `add` holds.
///
/// # Errors
///
/// `Unavailable` if the footer cannot be read, `Corrupt` if it makes no sense.
pub(crate) async fn rows_in(handle: &TableHandle, add: &Add) -> Result<u64> {
    let size = u64::try_from(add.size)
        .map_err(|_| Error::corrupt(format!("{} has a negative size", add.path)))?;
    let location = FileLocation::of(handle.log_store().root_url(), &add.path)?;
    let fetch = Fetch {
        store: location.store(handle),
        path: location.path().clone(),
    };
    let metadata = ParquetMetaDataReader::new()
        .load_and_finish(fetch, size)
        .await
        .map_err(|e| {
            Error::unavailable(format!("the footer of {} cannot be read: {e}", add.path))
                .with_source(e)
        })?;
    u64::try_from(metadata.file_metadata().num_rows())
        .map_err(|_| Error::corrupt(format!("{} has a negative number of rows", add.path)))
}

struct Fetch {
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl MetadataFetch for Fetch {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            self.store
                .get_range(&self.path, range)
                .await
                .map_err(|e| ParquetError::External(Box::new(e)))
        }
        .boxed()
    }
}
