//! Rows of a file of the table, read again by their positions.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Result as DFResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use deltalake::kernel::Add;
use futures::TryStreamExt;
use roaring::RoaringTreemap;

use crate::cancellation::Cancellation;
use crate::error::{Error, Result};
use crate::read::deletion_vector::{chosen_rows, rows_that_stay};
use crate::read::files_scan::{FilesScan, ScanFile};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// The files of one version of a table.
#[derive(Debug, Clone)]
pub(super) struct TableRows {
    handle: Arc<TableHandle>,
    snapshot: Arc<TableSnapshot>,
    context: Arc<TaskContext>,
}

/// Which rows of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chosen<'a> {
    /// These.
    Only(&'a RoaringTreemap),
    /// All but these.
    Without(&'a RoaringTreemap),
}

/// Which columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns<'a> {
    /// Those of the table.
    Table,
    /// Those of the table, then file and position.
    TableAndPositions,
    /// Those of the table with these indices.
    Some(&'a Vec<usize>),
}

/// Rows that are being read.
pub(super) struct ExactRows {
    rows: SendableRecordBatchStream,
    path: String,
    expected: u64,
    read: u64,
}

impl TableRows {
    pub(super) fn new(
        handle: &Arc<TableHandle>,
        snapshot: &Arc<TableSnapshot>,
        context: &Arc<TaskContext>,
    ) -> Self {
        Self {
            handle: Arc::clone(handle),
            snapshot: Arc::clone(snapshot),
            context: Arc::clone(context),
        }
    }

    pub(super) fn file(&self, index: u32) -> Result<&Arc<Add>> {
        self.snapshot
            .files
            .get(index as usize)
            .ok_or_else(|| Error::internal(format!("no file number {index}")))
    }

    /// The chosen ones of the `total` rows of a file, in order.
    pub(super) fn read(
        &self,
        file: u32,
        total: u64,
        chosen: Chosen<'_>,
        columns: Columns<'_>,
    ) -> DFResult<ExactRows> {
        let (expected, selection) = match chosen {
            Chosen::Only(rows) => (rows.len(), chosen_rows(rows, total)),
            Chosen::Without(rows) => (
                total.saturating_sub(rows.len()),
                rows_that_stay(rows, total),
            ),
        };
        let (positions, projection) = match columns {
            Columns::Table => (false, None),
            Columns::TableAndPositions => (true, None),
            Columns::Some(columns) => (false, Some(columns)),
        };
        let scan = FilesScan {
            handle: &self.handle,
            snapshot: &self.snapshot,
            files: vec![ScanFile {
                index: file as usize,
                selection: Some(selection),
            }],
            positions,
        };
        let source = scan.source(
            self.context.session_config().options(),
            &self.context.runtime_env(),
            1,
            projection,
            None,
        )?;
        let rows = source.execute(0, Arc::clone(&self.context))?;
        Ok(ExactRows {
            rows: Cancellation::of(self.context.session_config()).stop(rows),
            path: self.file(file)?.path.clone(),
            expected,
            read: 0,
        })
    }
}

impl ExactRows {
    /// The next rows.
    ///
    /// # Errors
    ///
    /// Those of the reader; `Corrupt` at the end if there were more or less than were chosen.
    pub(super) async fn next(&mut self) -> DFResult<Option<RecordBatch>> {
        let batch = self.rows.try_next().await?;
        self.read += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        if batch.is_none() && self.read != self.expected {
            return Err(Error::corrupt(format!(
                "{} rows of {} should be there, but {} were read",
                self.expected, self.path, self.read
            ))
            .into());
        }
        Ok(batch)
    }
}
