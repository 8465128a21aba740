//! One Parquet file while it is written.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltalake::kernel::Add;
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::AsyncArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::clock::now_millis;
use crate::error::{Error, Result};
use crate::read::row_origins::RowOrigins;
use crate::write::file_statistics::FileStatisticsCollector;

pub(super) struct OpenFile {
    path: Path,
    writer: AsyncArrowWriter<BufWriter>,
    statistics: FileStatisticsCollector,
    origins: RowOrigins,
    last_write: u64,
    /// Whether completing it was begun; the upload can be called off no more.
    completing: bool,
}

impl OpenFile {
    pub(super) fn create(
        store: Arc<dyn ObjectStore>,
        path: Path,
        schema: &SchemaRef,
        statistics: FileStatisticsCollector,
    ) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("delta-disjoint ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let upload = BufWriter::with_capacity(store, path.clone(), UPLOAD_PART_BYTES)
            .with_max_concurrency(UPLOAD_CONCURRENCY);
        let writer = AsyncArrowWriter::try_new(upload, Arc::clone(schema), Some(properties))
            .map_err(|error| {
                Error::unsupported(format!("the schema has no Parquet form: {error}"))
                    .with_source(error)
            })?;
        Ok(Self {
            path,
            writer,
            statistics,
            origins: RowOrigins::default(),
            last_write: 0,
            completing: false,
        })
    }

    pub(super) async fn write(&mut self, rows: &RecordBatch, clock: u64) -> Result<()> {
        self.last_write = clock;
        self.statistics.update(rows)?;
        self.writer
            .write(rows)
            .await
            .map_err(|error| failed(&self.path, error))
    }

    pub(super) async fn flush(&mut self) -> Result<()> {
        self.writer
            .flush()
            .await
            .map_err(|error| failed(&self.path, error))
    }

    /// The encoded size so far; of what is still buffered, an estimate.
    pub(super) fn size(&self) -> u64 {
        (self.writer.bytes_written() + self.writer.in_progress_size()) as u64
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// Where its rows come from, if that is noted.
    pub(super) fn origins(&mut self) -> &mut RowOrigins {
        &mut self.origins
    }

    pub(super) fn last_write(&self) -> u64 {
        self.last_write
    }

    /// Writes the footer and completes the upload.
    pub(super) async fn complete(
        &mut self,
        partition_values: HashMap<String, Option<String>>,
    ) -> Result<Add> {
        self.completing = true;
        self.writer
            .finish()
            .await
            .map_err(|error| failed(&self.path, error))?;
        let size = i64::try_from(self.writer.bytes_written())
            .map_err(|_| Error::internal("a file that is too large"))?;
        Ok(Add {
            path: self.path.to_string(),
            partition_values,
            size,
            modification_time: now_millis(),
            data_change: true,
            stats: Some(self.statistics.stats_json()),
            tags: Some(self.statistics.tags()),
            deletion_vector: None,
            base_row_id: None,
            default_row_commit_version: None,
            clustering_provider: None,
        })
    }

    /// Calls the upload off, so that the store keeps no parts of it.
    pub(super) async fn abandon(self) {
        if self.completing {
            // The upload panics when it is called off after that.
            return;
        }
        if let Err(error) = self.writer.into_inner().abort().await {
            tracing::warn!(path = %self.path, %error, "an upload could not be called off");
        }
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile")
            .field("path", &self.path)
            .field("rows", &self.statistics.num_records())
            .finish_non_exhaustive()
    }
}

/// The least that S3 takes as a part, so that many open files need little memory.
const UPLOAD_PART_BYTES: usize = 5 * 1024 * 1024;

/// Parts of one file on their way at the same time.
const UPLOAD_CONCURRENCY: usize = 4;

fn failed(path: &Path, error: ParquetError) -> Error {
    let message = format!("the data file {path} cannot be written: {error}");
    match error {
        // The store's errors arrive as external ones, all others are about the rows.
        ParquetError::External(_) => Error::unavailable(message),
        _ => Error::internal(message),
    }
    .with_source(error)
}
