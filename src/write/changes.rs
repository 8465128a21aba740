//! Which rows of which files a statement takes away: one bitmap a file.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt32Type};
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN};

/// Positions of changed rows, by the index of their file.
#[derive(Debug, Default)]
pub struct RowPositions {
    files: BTreeMap<u32, RoaringTreemap>,
}

impl RowPositions {
    /// Adds the rows that `batch` names in its two position columns.
    ///
    /// # Errors
    ///
    /// `Invalid` if a row comes twice: the statement would change it twice. `Internal` if the
    /// columns are not there.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        match self.add_counting_once(batch)? {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "the statement would change one row more than once; make its subqueries \
                 return one row for each row of the table",
            )),
        }
    }

    /// Adds the rows that `batch` names, each once, and says which was the first that had come
    /// before, by file and row.
    ///
    /// # Errors
    ///
    /// `Internal` if the columns are not there.
    pub(super) fn add_counting_once(&mut self, batch: &RecordBatch) -> Result<Option<(u32, u64)>> {
        let missing = || Error::internal("the changed rows come without their positions");
        let files = batch
            .column_by_name(FILE_COLUMN)
            .and_then(|column| column.as_primitive_opt::<UInt32Type>())
            .ok_or_else(missing)?;
        let rows = batch
            .column_by_name(ROW_COLUMN)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .ok_or_else(missing)?;
        if files.null_count() > 0 || rows.null_count() > 0 {
            return Err(missing());
        }
        let mut repeated = None;
        for (file, row) in files.values().iter().zip(rows.values()) {
            let row = u64::try_from(*row).map_err(|_| missing())?;
            if !self.files.entry(*file).or_default().insert(row) {
                repeated.get_or_insert((*file, row));
            }
        }
        Ok(repeated)
    }

    /// How many rows are changed.
    pub fn len(&self) -> u64 {
        self.files.values().map(RoaringTreemap::len).sum()
    }

    /// Whether no row is changed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The changed rows of a file.
    pub(super) fn of_file(&self, file: u32) -> Option<&RoaringTreemap> {
        self.files.get(&file)
    }

    /// The changed files in order of their index, with the changed rows.
    pub fn files(&self) -> impl Iterator<Item = (u32, &RoaringTreemap)> {
        self.files.iter().map(|(file, rows)| (*file, rows))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, UInt32Array};

    use super::*;

    fn batch(files: Vec<u32>, rows: Vec<i64>) -> RecordBatch {
        RecordBatch::try_from_iter([
            (FILE_COLUMN, Arc::new(UInt32Array::from(files)) as ArrayRef),
            (ROW_COLUMN, Arc::new(Int64Array::from(rows)) as ArrayRef),
        ])
        .expect("batch")
    }

    #[test]
    fn rows_gather_by_file() {
        let mut positions = RowPositions::default();
        positions
            .add(&batch(vec![2, 0, 2], vec![5, 1, 4]))
            .expect("added");
        positions.add(&batch(vec![0], vec![7])).expect("added");
        assert_eq!(positions.len(), 4);
        let files: Vec<_> = positions
            .files()
            .map(|(file, rows)| (file, rows.iter().collect::<Vec<_>>()))
            .collect();
        assert_eq!(files, [(0, vec![1, 7]), (2, vec![4, 5])]);
    }

    #[test]
    fn a_row_that_comes_twice_is_refused() {
        let mut positions = RowPositions::default();
        let error = positions
            .add(&batch(vec![1, 1], vec![3, 3]))
            .expect_err("twice");
        assert!(error.message().contains("more than once"));
    }
}
