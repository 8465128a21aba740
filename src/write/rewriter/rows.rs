//! Rows of a change, with the positions that come beside them.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;

use crate::error::{Error, Result};
use crate::read::positions::FILE_COLUMN;

/// Runs of rows of one file.
pub(super) fn by_file(batch: &RecordBatch) -> Result<Vec<(u32, RecordBatch)>> {
    let missing = || Error::internal("the changed rows come without their files");
    let files = batch
        .column_by_name(FILE_COLUMN)
        .and_then(|column| column.as_primitive_opt::<UInt32Type>())
        .ok_or_else(missing)?;
    let mut runs = Vec::new();
    let mut start = 0;
    for chunk in files.values().chunk_by(|a, b| a == b) {
        if let Some(file) = chunk.first() {
            runs.push((*file, batch.slice(start, chunk.len())));
        }
        start += chunk.len();
    }
    Ok(runs)
}

/// The columns before the positions: those of the table.
pub(super) fn table_columns(batch: &RecordBatch) -> Result<RecordBatch> {
    let positions = batch
        .schema()
        .index_of(FILE_COLUMN)
        .map_err(|_| Error::internal("the changed rows come without their files"))?;
    let columns: Vec<usize> = (0..positions).collect();
    batch
        .project(&columns)
        .map_err(|e| Error::internal("new values").with_source(e))
}
