//! Where rows that are about to be written come from, row by row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{FieldRef, Int64Type, Schema, UInt32Type};

use crate::error::{Error, Result};
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN, file_field, row_field};
use crate::read::row_origins::{Origin, RowOrigins};

/// The files and positions that rows come from.
#[derive(Debug, Clone)]
pub(in crate::write) struct RowSources {
    files: UInt32Array,
    rows: Int64Array,
    /// Whether the rows have other values there.
    changed: bool,
}

impl RowSources {
    /// The sources of the rows of `batch`, which has the two position columns.
    pub(in crate::write) fn of(batch: &RecordBatch, changed: bool) -> Result<Self> {
        Self::from_columns(
            batch.column_by_name(FILE_COLUMN),
            batch.column_by_name(ROW_COLUMN),
            changed,
        )
    }

    /// `rows` with the positions as two more columns, so that both are split alike.
    pub(super) fn beside(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let positions: [FieldRef; 2] = [file_field(), row_field()];
        let fields = rows.schema();
        let fields: Vec<FieldRef> = fields.fields().iter().chain(&positions).cloned().collect();
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        columns.push(Arc::new(self.files.clone()));
        columns.push(Arc::new(self.rows.clone()));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|e| Error::internal("rows and their positions").with_source(e))
    }

    /// The sources of `rows`, whose positions stand after the first `columns` columns.
    pub(super) fn split_off(&self, rows: &RecordBatch, columns: usize) -> Result<Self> {
        Self::from_columns(
            rows.columns().get(columns),
            rows.columns().get(columns + 1),
            self.changed,
        )
    }

    pub(super) fn slice(&self, offset: usize, length: usize) -> Self {
        Self {
            files: self.files.slice(offset, length),
            rows: self.rows.slice(offset, length),
            changed: self.changed,
        }
    }

    /// Adds the rows to those of a file.
    pub(super) fn note(&self, origins: &mut RowOrigins) {
        for (file, row) in self.files.values().iter().zip(self.rows.values()) {
            origins.push(Some(Origin {
                file: *file,
                // Looked at when the sources were made.
                row: u64::try_from(*row).unwrap_or(u64::MAX),
                changed: self.changed,
            }));
        }
    }

    fn from_columns(
        files: Option<&ArrayRef>,
        rows: Option<&ArrayRef>,
        changed: bool,
    ) -> Result<Self> {
        let missing = || Error::internal("rows come without the positions of their sources");
        let files = files
            .and_then(|column| column.as_primitive_opt::<UInt32Type>())
            .ok_or_else(missing)?;
        let rows = rows
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .ok_or_else(missing)?;
        if files.null_count() > 0
            || rows.null_count() > 0
            || rows.values().iter().any(|row| *row < 0)
        {
            return Err(missing());
        }
        Ok(Self {
            files: files.clone(),
            rows: rows.clone(),
            changed,
        })
    }
}
