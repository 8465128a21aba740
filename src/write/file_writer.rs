//! Data files: rows of the table go in, Parquet files in the store and their `Add` actions come
//! out.
//!
//! ```text
//! rows ─ conform ─ split by partition ─┬─ (source file 1, p=a) ─ Parquet ─ store
//!                                      ├─ (source file 1, p=b) ─ Parquet ─ store
//!                                      └─ (no source,     p=a) ─ Parquet ─ store
//! ```
//!
//! Rows of one group and one partition go to one open file, which is closed at the table's target
//! size. At most [`MAX_OPEN_FILES`] are open; the one that was left alone the longest is closed for
//! a new one. What is buffered is bounded by [`WRITE_BUFFER_BYTES`] and one upload part for each
//! open file. A file without rows is never written.
//!
//! Until [`FileWriters::finish`] has answered, the files belong to the writers: dropped or aborted,
//! they delete what they wrote, as well as they can. From then on the files belong to the caller,
//! who must not delete them once a commit that names them may have reached the log.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use deltalake::kernel::Add;
use object_store::ObjectStore;
use object_store::path::Path;

use super::file_statistics::FileStatisticsCollector;
use super::partition::{partition_directory, split_by_partition};
use super::statistics_columns::StatisticsColumns;
use super::table_properties::target_file_size;
use super::validate::conform;
use crate::error::{Error, Result};
use crate::read::change_data::CHANGE_TYPE_COLUMN;
use crate::read::column_mapping::{file_schema, mapped_schema, physical_name, relabel};
use crate::read::row_origins::RowOrigins;
use crate::read::snapshot::TableMetadata;
use crate::storage::delete_files;

mod open_file;
mod sources;

use open_file::OpenFile;
pub(super) use sources::RowSources;

/// Most files that are open at the same time: enough for the partitions of a usual statement,
/// few enough that their upload buffers stay small beside [`WRITE_BUFFER_BYTES`].
pub const MAX_OPEN_FILES: usize = 32;

/// How many bytes of encoded rows all open files together may hold back before the largest one
/// writes out its row group.
pub const WRITE_BUFFER_BYTES: usize = 256 * 1024 * 1024;

/// Writes the rows of one statement into data files of one table; see the [module](self).
#[derive(Debug)]
pub struct FileWriters {
    store: Arc<dyn ObjectStore>,
    /// Columns in table order, partition columns included.
    table_schema: SchemaRef,
    /// Columns of the table that are in the files, hence without the partition columns; mapped, where
    /// the table maps its columns.
    columns: SchemaRef,
    /// The same columns under the names that they have in the files.
    file_schema: SchemaRef,
    file_columns: Vec<usize>,
    partition_columns: Vec<usize>,
    /// Names of the partition columns in `partitionValues`.
    partition_keys: Vec<String>,
    statistics: StatisticsColumns,
    target_file_size: u64,
    open: HashMap<FileKey, OpenFile>,
    /// Counts writes, to find the file that was left alone the longest.
    clock: u64,
    /// Every path that was begun and not handed over, whether or not it was completed.
    begun: Vec<Path>,
    adds: Vec<Add>,
    kind: FileKind,
    /// Where the rows of the completed files come from, by path, if that is asked for.
    origins: Option<Vec<(String, RowOrigins)>>,
}

/// What the files are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    /// Rows of the table.
    Data,
    /// Rows of its change data feed.
    ChangeData,
}

impl FileWriters {
    /// Writers for a table with `table_schema` (columns in table order, partition columns included)
    /// and `metadata`, into `store`, which is rooted at the table. Where the table maps its columns,
    /// files, statistics and partition values have the physical names, and files the field ids.
    pub fn try_new(
        store: Arc<dyn ObjectStore>,
        table_schema: &SchemaRef,
        metadata: &TableMetadata,
    ) -> Result<Self> {
        let mapped = mapped_schema(table_schema, metadata)?;
        let table_schema = Arc::clone(table_schema);
        Self::of_kind(FileKind::Data, store, table_schema, &mapped, metadata)
    }

    /// The same for files of the table's change data feed, whose rows have one column more, the last
    /// one: the type of the change. It is no column of the table, hence not mapped.
    ///
    /// Source: Delta protocol, "Change Data Files".
    pub(super) fn for_change_data(
        store: Arc<dyn ObjectStore>,
        table_schema: &SchemaRef,
        metadata: &TableMetadata,
    ) -> Result<Self> {
        let mapped = mapped_schema(table_schema, metadata)?;
        let change_type: FieldRef = Arc::new(Field::new(CHANGE_TYPE_COLUMN, DataType::Utf8, true));
        let with_type = |schema: &Schema| -> SchemaRef {
            let fields = schema.fields().iter().chain([&change_type]).cloned();
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        let (table_schema, mapped) = (with_type(table_schema), with_type(&mapped));
        Self::of_kind(FileKind::ChangeData, store, table_schema, &mapped, metadata)
    }

    fn of_kind(
        kind: FileKind,
        store: Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        mapped: &Schema,
        metadata: &TableMetadata,
    ) -> Result<Self> {
        let partition_columns = metadata
            .partition_columns
            .iter()
            .map(|name| {
                table_schema
                    .fields()
                    .iter()
                    .position(|field| field.name() == name)
                    .ok_or_else(|| {
                        Error::corrupt(format!("the partition column {name} is not in the schema"))
                    })
            })
            .collect::<Result<Vec<_>>>()?;
        let file_columns: Vec<usize> = (0..table_schema.fields().len())
            .filter(|column| !partition_columns.contains(column))
            .collect();
        if file_columns.is_empty() {
            return Err(Error::unsupported(
                "a table whose columns are all partition columns",
            ));
        }
        let fields: Vec<_> = mapped
            .fields()
            .iter()
            .enumerate()
            .filter(|(column, _)| file_columns.contains(column))
            .map(|(_, field)| Arc::clone(field))
            .collect();
        let columns: SchemaRef = Arc::new(Schema::new(fields));
        let partition_keys = partition_columns
            .iter()
            .map(|column| physical_name(mapped.field(*column)).to_owned())
            .collect();
        let statistics = match kind {
            FileKind::Data => StatisticsColumns::new(&columns, &metadata.configuration),
            FileKind::ChangeData => StatisticsColumns::none(),
        };
        Ok(Self {
            store,
            table_schema,
            statistics,
            target_file_size: target_file_size(&metadata.configuration),
            file_schema: file_schema(&columns),
            columns,
            file_columns,
            partition_columns,
            partition_keys,
            open: HashMap::new(),
            clock: 0,
            begun: Vec::new(),
            adds: Vec::new(),
            kind,
            origins: None,
        })
    }

    /// The same writers with statistics for the table's clustering columns, which are paths of
    /// names in the data files.
    ///
    /// # Errors
    ///
    /// `Corrupt` if one of them is not in the data files.
    pub fn with_clustering(mut self, columns: &[Vec<String>]) -> Result<Self> {
        let statistics = self.statistics.clone();
        self.statistics = statistics.with_clustering(&self.file_schema, columns)?;
        Ok(self)
    }

    /// The same writers, which note where the rows of each file come from.
    #[must_use]
    pub(super) fn noting_origins(mut self) -> Self {
        self.origins = Some(Vec::new());
        self
    }

    /// Writes `rows`, whose columns are the table's. Rows of different groups never share a file:
    /// `group` is the number of the file that rewritten rows come from, none for new rows.
    pub async fn write(&mut self, group: Option<u32>, rows: &RecordBatch) -> Result<()> {
        self.write_from(group, rows, None).await
    }

    /// The same for rows that come from `sources`, one for each row; none for new rows.
    pub(super) async fn write_from(
        &mut self,
        group: Option<u32>,
        rows: &RecordBatch,
        sources: Option<&RowSources>,
    ) -> Result<()> {
        let mut rows = conform(rows, &self.table_schema)?;
        let columns = rows.num_columns();
        if let Some(sources) = sources {
            rows = sources.beside(&rows)?;
        }
        for part in split_by_partition(&rows, &self.partition_columns)? {
            self.check_partition_nulls(&part.values)?;
            let sources = sources
                .map(|sources| sources.split_off(&part.rows, columns))
                .transpose()?;
            let rows = project(&part.rows, &self.file_columns, &self.file_schema)?;
            let key = FileKey {
                group,
                partition: part.values,
            };
            let mut offset = 0;
            while offset < rows.num_rows() {
                let length = (rows.num_rows() - offset).min(ROWS_AT_ONCE);
                let sources = sources
                    .as_ref()
                    .map(|sources| sources.slice(offset, length));
                self.write_slice(&key, &rows.slice(offset, length), sources.as_ref())
                    .await?;
                offset += length;
            }
        }
        Ok(())
    }

    /// How many files are complete, and the bytes of all, of what is still buffered an estimate.
    pub fn progress(&self) -> (usize, u64) {
        let complete = self.adds.iter().map(|add| add.size.unsigned_abs());
        let open = self.open.values().map(OpenFile::size);
        (self.adds.len(), complete.chain(open).sum())
    }

    /// Completes all files and hands them over, in the order in which they were completed.
    pub async fn finish(mut self) -> Result<Vec<Add>> {
        self.complete().await?;
        Ok(self.hand_over().0)
    }

    /// Completes all files, which stay the writers' own.
    pub(super) async fn complete(&mut self) -> Result<()> {
        let keys: Vec<FileKey> = self.open.keys().cloned().collect();
        for key in keys {
            self.close(&key).await?;
        }
        Ok(())
    }

    /// Hands the completed files over, with the origins of their rows, if those were noted.
    pub(super) fn hand_over(mut self) -> (Vec<Add>, Vec<(String, RowOrigins)>) {
        // From here on the files are the caller's, and dropping `self` leaves them alone.
        self.begun.clear();
        (
            std::mem::take(&mut self.adds),
            self.origins.take().unwrap_or_default(),
        )
    }

    /// Gives up: open files are abandoned and completed ones deleted, as well as that goes.
    pub async fn abort(mut self) {
        let open = std::mem::take(&mut self.open);
        let begun = std::mem::take(&mut self.begun);
        give_up(Arc::clone(&self.store), open, begun).await;
    }

    /// Delta reads an empty partition value as NULL, so a NOT NULL column cannot have it.
    fn check_partition_nulls(&self, values: &[Option<String>]) -> Result<()> {
        for (value, column) in values.iter().zip(&self.partition_columns) {
            let field = self.table_schema.field(*column);
            if value.is_none() && !field.is_nullable() {
                return Err(Error::invalid(format!(
                    "an empty value in the partition column {}, which Delta stores as NULL, and \
                     which takes none (NOT NULL)",
                    field.name()
                )));
            }
        }
        Ok(())
    }

    async fn write_slice(
        &mut self,
        key: &FileKey,
        rows: &RecordBatch,
        sources: Option<&RowSources>,
    ) -> Result<()> {
        self.clock += 1;
        if !self.open.contains_key(key) {
            if self.open.len() >= MAX_OPEN_FILES {
                self.close_least_recent().await?;
            }
            let path = self.new_path(&key.partition)?;
            self.begun.push(path.clone());
            let file = OpenFile::create(
                Arc::clone(&self.store),
                path,
                &self.file_schema,
                FileStatisticsCollector::new(&self.columns, &self.statistics),
            )?;
            self.open.insert(key.clone(), file);
        }
        let Some(file) = self.open.get_mut(key) else {
            return Err(Error::internal("the file just opened is not there"));
        };
        file.write(rows, self.clock).await?;
        if self.origins.is_some() {
            match sources {
                Some(sources) => sources.note(file.origins()),
                None => file.origins().push_new(rows.num_rows() as u64),
            }
        }
        if file.size() >= self.target_file_size {
            return self.close(key).await;
        }
        self.keep_in_budget().await
    }

    async fn keep_in_budget(&mut self) -> Result<()> {
        let buffered: usize = self.open.values().map(OpenFile::buffered_bytes).sum();
        if buffered > WRITE_BUFFER_BYTES
            && let Some(largest) = self
                .open
                .values_mut()
                .max_by_key(|file| file.buffered_bytes())
        {
            largest.flush().await?;
        }
        Ok(())
    }

    async fn close_least_recent(&mut self) -> Result<()> {
        let oldest = self
            .open
            .iter()
            .min_by_key(|(_, file)| file.last_write())
            .map(|(key, _)| key.clone());
        match oldest {
            Some(key) => self.close(&key).await,
            None => Ok(()),
        }
    }

    /// The file stays among the open ones until it is complete, so that a write that is cancelled
    /// here is still abandoned in full.
    async fn close(&mut self, key: &FileKey) -> Result<()> {
        let Some(file) = self.open.get_mut(key) else {
            return Ok(());
        };
        let keys = self.partition_keys.iter().cloned();
        let add = file
            .complete(keys.zip(key.partition.iter().cloned()).collect())
            .await?;
        if let Some(origins) = &mut self.origins {
            origins.push((add.path.clone(), std::mem::take(file.origins())));
        }
        self.open.remove(key);
        self.adds.push(add);
        Ok(())
    }

    fn new_path(&self, values: &[Option<String>]) -> Result<Path> {
        let keys = self.partition_keys.iter().map(String::as_str);
        let directory = partition_directory(keys, values);
        let id = uuid::Uuid::new_v4();
        let path = match self.kind {
            FileKind::Data => format!("{directory}/part-00000-{id}-c000.snappy.parquet"),
            FileKind::ChangeData => {
                let directory = format!("{CHANGE_DATA_FOLDER}/{directory}");
                let directory = directory.trim_end_matches('/');
                format!("{directory}/cdc-00000-{id}.c000.snappy.parquet")
            }
        };
        // Parsed, not built from parts: the percent signs in it are already part of the name.
        Path::parse(path).map_err(|error| {
            Error::invalid(format!("no path for partition values: {error}")).with_source(error)
        })
    }
}

impl Drop for FileWriters {
    fn drop(&mut self) {
        if self.begun.is_empty() && self.open.is_empty() {
            return;
        }
        let open = std::mem::take(&mut self.open);
        let begun = std::mem::take(&mut self.begun);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(give_up(Arc::clone(&self.store), open, begun));
            }
            Err(_) => tracing::warn!(
                files = begun.len(),
                "files of a failed statement are left behind: no runtime to delete them in"
            ),
        }
    }
}

/// Rows of one key go into one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    group: Option<u32>,
    partition: Vec<Option<String>>,
}

/// Where the files of the change data feed lie.
///
/// Source: Delta protocol, "Change Data Files".
const CHANGE_DATA_FOLDER: &str = "_change_data";

/// How many rows are encoded between two looks at the size of the file.
const ROWS_AT_ONCE: usize = 8192;

async fn give_up(store: Arc<dyn ObjectStore>, open: HashMap<FileKey, OpenFile>, begun: Vec<Path>) {
    for file in open.into_values() {
        file.abandon().await;
    }
    delete_files(store.as_ref(), begun).await;
}

fn project(rows: &RecordBatch, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = columns
        .iter()
        .filter_map(|column| rows.columns().get(*column))
        .zip(schema.fields())
        .map(|(array, field)| relabel(array, field.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(|error| {
        Error::internal(format!("rows do not fit the file: {error}")).with_source(error)
    })
}

#[cfg(test)]
mod tests;
