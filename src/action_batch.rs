//! How a rewrite hands its result to the commit: record batches of three columns.
//!
//! The two operators stand in different stages that do not know each other. Plain batches between
//! them keep it so, and let them run in different places.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringBuilder, UInt64Builder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};

use crate::error::{Error, Result};

const ACTION: &str = "action";
const METRIC: &str = "metric";
const COUNT: &str = "count";

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("value", DataType::UInt64, true),
    ]))
});

/// What a statement did, before it is committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatementResult {
    /// Log actions, one line of JSON each.
    pub(crate) actions: Vec<String>,
    /// Counters for the commit's `operationMetrics`.
    pub(crate) metrics: Vec<(String, u64)>,
    /// Rows that the statement reports as changed.
    pub(crate) count: u64,
}

impl StatementResult {
    /// The columns of the batches.
    pub(crate) fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    /// The result as one batch.
    ///
    /// # Errors
    ///
    /// `Internal` if the columns do not fit, which would be a bug.
    pub(crate) fn to_batch(&self) -> Result<RecordBatch> {
        let mut kind = StringBuilder::new();
        let mut text = StringBuilder::new();
        let mut value = UInt64Builder::new();
        for action in &self.actions {
            kind.append_value(ACTION);
            text.append_value(action);
            value.append_null();
        }
        for (name, number) in &self.metrics {
            kind.append_value(METRIC);
            text.append_value(name);
            value.append_value(*number);
        }
        kind.append_value(COUNT);
        text.append_null();
        value.append_value(self.count);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(kind.finish()),
            Arc::new(text.finish()),
            Arc::new(value.finish()),
        ];
        RecordBatch::try_new(Self::schema(), columns)
            .map_err(|e| Error::internal("a batch of actions").with_source(e))
    }

    /// Adds what `batch` says.
    ///
    /// # Errors
    ///
    /// `Internal` for a batch of another shape.
    pub(crate) fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let wrong = || Error::internal("the input of a commit is not a batch of actions");
        let column = |index: usize| batch.columns().get(index).ok_or_else(wrong);
        let kinds = column(0)?.as_string_opt::<i32>().ok_or_else(wrong)?;
        let texts = column(1)?.as_string_opt::<i32>().ok_or_else(wrong)?;
        let values = column(2)?
            .as_primitive_opt::<UInt64Type>()
            .ok_or_else(wrong)?;
        for row in 0..batch.num_rows() {
            let text = || {
                texts
                    .is_valid(row)
                    .then(|| texts.value(row).to_owned())
                    .ok_or_else(wrong)
            };
            let number = || {
                values
                    .is_valid(row)
                    .then(|| values.value(row))
                    .ok_or_else(wrong)
            };
            match kinds.value(row) {
                ACTION => self.actions.push(text()?),
                METRIC => self.metrics.push((text()?, number()?)),
                COUNT => self.count += number()?,
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_survives_its_batch() {
        let result = StatementResult {
            actions: vec!["{\"add\":{}}".to_owned(), "{\"remove\":{}}".to_owned()],
            metrics: vec![("numCopiedRows".to_owned(), 7)],
            count: 3,
        };
        let mut read = StatementResult::default();
        read.add_batch(&result.to_batch().expect("batch"))
            .expect("read");
        assert_eq!(read, result);
    }

    #[test]
    fn another_batch_is_refused() {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(StatementResult::default().add_batch(&batch).is_err());
    }
}
