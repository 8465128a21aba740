//! The values of a rule's expression, and rows in messages.
//!
//! Rows go together, but a row decides about itself alone: a side of `AND` or `OR` that the other side
//! makes needless for a row may fail, and is then evaluated only because another row needs it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result as DFResult;
use datafusion::physical_plan::PhysicalExpr;

use crate::error::{Error, Result, shortened};

/// Most characters of a value in a message.
pub(super) const MAX_TEXT: usize = 100;

/// The values of `expr`, which uses `columns`, for `rows`.
///
/// # Errors
///
/// `Invalid` for a row that it cannot be evaluated for, also where it is evaluated for no other.
pub(super) fn evaluate(
    expr: &Arc<dyn PhysicalExpr>,
    columns: &[usize],
    rows: &RecordBatch,
    name: impl Fn() -> String,
) -> Result<ArrayRef> {
    if let Ok(values) = values_of(expr, rows) {
        return Ok(values);
    }
    let values = (0..rows.num_rows())
        .map(|row| {
            values_of(expr, &rows.slice(row, 1)).map_err(|error| {
                let name = name();
                let row = match columns.is_empty() {
                    true => "a row".to_owned(),
                    false => described(rows, row, columns),
                };
                Error::invalid(format!("{name} cannot be evaluated for {row}: {error}"))
                    .with_source(error)
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    concat(&values).map_err(|e| Error::internal(format!("the values of {}", name())).with_source(e))
}

fn values_of(expr: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> DFResult<ArrayRef> {
    expr.evaluate(rows)?.into_array(rows.num_rows())
}

/// A row by its values in `columns`, those that a rule uses.
pub(super) fn described(rows: &RecordBatch, row: usize, columns: &[usize]) -> String {
    let schema = rows.schema();
    let values: Vec<String> = columns
        .iter()
        .filter_map(|column| {
            let (field, values) = (schema.fields().get(*column)?, rows.columns().get(*column)?);
            Some(format!("{} = {}", field.name(), text_at(values, row)))
        })
        .collect();
    match values.is_empty() {
        true => "every row".to_owned(),
        false => format!("a row with {}", values.join(", ")),
    }
}

/// The value at `row` for a message.
pub(super) fn text_at(values: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let text = ArrayFormatter::try_new(values.as_ref(), &options)
        .map_or_else(|_| "?".to_owned(), |values| values.value(row).to_string());
    shortened(text, MAX_TEXT)
}
