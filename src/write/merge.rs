//! What a MERGE does with each row that its join yields.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int8Type;

use crate::error::{Error, Result};

/// Column with what happens to a row, `Int8`: one of [`RowAction`]; NULL where no clause applies.
pub const ACTION_COLUMN: &str = "__delta_disjoint_action";

/// Column with the number of the clause that applies to a row, `Int32`; it comes where clauses leave
/// different columns to the table.
pub const CLAUSE_COLUMN: &str = "__delta_disjoint_clause";

/// What happens to one row of the join of a MERGE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAction {
    /// The row of the table gets new values.
    Update = 0,
    /// The row of the table goes.
    Delete = 1,
    /// A new row comes.
    Insert = 2,
}

impl RowAction {
    /// Its value in [`ACTION_COLUMN`].
    pub fn code(self) -> i8 {
        self as i8
    }
}

/// The rows of `batch` that are for `action`, if there are any.
///
/// # Errors
///
/// `Internal` if the batch does not say what happens to its rows.
pub(super) fn rows_for(batch: &RecordBatch, action: RowAction) -> Result<Option<RecordBatch>> {
    let actions = batch
        .column_by_name(ACTION_COLUMN)
        .and_then(|column| column.as_primitive_opt::<Int8Type>())
        .ok_or_else(|| Error::internal("the rows of a MERGE come without their actions"))?;
    let chosen: BooleanArray = actions
        .iter()
        .map(|given| Some(given == Some(action.code())))
        .collect();
    if chosen.true_count() == 0 {
        return Ok(None);
    }
    filter_record_batch(batch, &chosen)
        .map(Some)
        .map_err(|e| Error::internal("rows of a MERGE").with_source(e))
}
