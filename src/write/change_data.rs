//! The change data feed: files that say what became of which row.
//!
//! In: rows as they were and as they are. Out: Parquet files in `_change_data` and the `cdc` actions
//! that name them. A reader of the feed takes either the change files of a version, or, where there
//! are none, the rows of its added files as inserted and those of its removed files as deleted.
//! Hence a commit has change files for all of its changes or for none:
//!
//! | commit | change files |
//! |---|---|
//! | `INSERT`, `INSERT OVERWRITE`, `TRUNCATE`, a `MERGE` that only inserts | none |
//! | rows go, each with its whole file, which has no deletion vector | none |
//! | any other: a row has new values, or was copied into a new file | for every changed row |
//!
//! Of a transaction the last two lines hold, whatever its statements were. Of a removed file with a
//! deletion vector deltalake shows the hidden rows; `INSERT OVERWRITE` and `TRUNCATE` leave it at
//! that, since they read no old row.
//!
//! Source: Delta protocol, "Change Data Files" and "Add CDC File".

mod net;

use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::Result as DFResult;
use deltalake::kernel::AddCDCFile;
use roaring::RoaringTreemap;

pub(crate) use self::net::write_net_change;
use super::file_writer::FileWriters;
use super::table_rows::{Chosen, Columns, TableRows};
use crate::error::{Error, Result};
use crate::read::change_data::CHANGE_TYPE_COLUMN;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// What a rewrite leaves behind for the change data feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedRecord {
    /// Nothing: the table has no feed.
    Nothing,
    /// Change files, where the feed needs them.
    ChangeFiles,
    /// Where each row of the new files comes from: in a transaction only the end tells which change
    /// a row has.
    Origins,
}

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeType {
    Insert,
    Preimage,
    Postimage,
    Delete,
}

impl ChangeType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Preimage => "update_preimage",
            Self::Postimage => "update_postimage",
            Self::Delete => "delete",
        }
    }
}

/// Writes the change files of one commit. Until they are handed over, dropping it deletes them.
#[derive(Debug)]
pub(super) struct ChangeFiles {
    writers: FileWriters,
}

impl ChangeFiles {
    pub(super) fn try_new(handle: &TableHandle, snapshot: &TableSnapshot) -> Result<Self> {
        let writers = FileWriters::for_change_data(
            handle.object_store(),
            &snapshot.schema,
            &snapshot.metadata,
        )?;
        Ok(Self { writers })
    }

    /// Adds `rows`, whose columns are the table's.
    pub(super) async fn write(&mut self, change: ChangeType, rows: &RecordBatch) -> Result<()> {
        let change_type: FieldRef = Arc::new(Field::new(CHANGE_TYPE_COLUMN, DataType::Utf8, true));
        let schema = rows.schema();
        let fields = schema.fields().iter().chain([&change_type]).cloned();
        let fields: Vec<FieldRef> = fields.collect();
        let types = StringArray::from_iter_values(repeat_n(change.as_str(), rows.num_rows()));
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        columns.push(Arc::new(types));
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|e| Error::internal("changed rows").with_source(e))?;
        self.writers.write(None, &rows).await
    }

    /// Adds those `rows` of a file of the table, given with the number of its rows.
    pub(super) async fn copy(
        &mut self,
        change: ChangeType,
        from: &TableRows,
        (file, total): (u32, u64),
        rows: &RoaringTreemap,
    ) -> DFResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut rows = from.read(file, total, Chosen::Only(rows), Columns::Table)?;
        while let Some(batch) = rows.next().await? {
            self.write(change, &batch).await?;
        }
        Ok(())
    }

    /// Completes all files, which stay its own.
    pub(super) async fn complete(&mut self) -> Result<()> {
        self.writers.complete().await
    }

    /// The actions of the completed files, which are the caller's from now on.
    pub(super) fn hand_over(self) -> Vec<AddCDCFile> {
        let (files, _) = self.writers.hand_over();
        files
            .into_iter()
            .map(|file| AddCDCFile {
                path: file.path,
                size: file.size,
                partition_values: file.partition_values,
                data_change: false,
                tags: None,
            })
            .collect()
    }

    /// Deletes what was written, as well as that goes.
    pub(super) async fn abort(self) {
        self.writers.abort().await;
    }
}
