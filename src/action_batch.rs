//! How a rewrite hands its result to the commit: record batches of four columns.
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
const ORIGINS: &str = "origins";

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("value", DataType::UInt64, true),
        Field::new("path", DataType::Utf8, true),
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
    /// Where the rows of new files come from: paths, and texts of
    /// [`RowOrigins`](crate::read::row_origins::RowOrigins), several for a file one after the other.
    pub(crate) origins: Vec<(String, String)>,
}

impl StatementResult {
    /// The columns of the batches.
    pub(crate) fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    /// The result as batches, each of limited size but for the actions.
    ///
    /// # Errors
    ///
    /// `Internal` if the columns do not fit, which would be a bug.
    pub(crate) fn to_batches(&self) -> Result<Vec<RecordBatch>> {
        let actions = self.actions.iter().map(|action| Row {
            kind: ACTION,
            text: Some(action),
            ..Row::default()
        });
        let metrics = self.metrics.iter().map(|(name, number)| Row {
            kind: METRIC,
            text: Some(name),
            value: Some(*number),
            ..Row::default()
        });
        let count = Row {
            kind: COUNT,
            value: Some(self.count),
            ..Row::default()
        };
        let first = to_batch(actions.chain(metrics).chain([count]));
        // One text to a batch: together they may be larger than an array of strings can be.
        let origins = self.origins.iter().map(|(path, text)| {
            to_batch([Row {
                kind: ORIGINS,
                text: Some(text),
                path: Some(path),
                ..Row::default()
            }])
        });
        std::iter::once(first).chain(origins).collect()
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
        let paths = column(3)?.as_string_opt::<i32>().ok_or_else(wrong)?;
        for row in 0..batch.num_rows() {
            let text = || {
                texts
                    .is_valid(row)
                    .then(|| texts.value(row).to_owned())
                    .ok_or_else(wrong)
            };
            let path = || {
                paths
                    .is_valid(row)
                    .then(|| paths.value(row).to_owned())
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
                ORIGINS => self.origins.push((path()?, text()?)),
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Row<'a> {
    kind: &'static str,
    text: Option<&'a str>,
    value: Option<u64>,
    path: Option<&'a str>,
}

fn to_batch<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> Result<RecordBatch> {
    let mut kind = StringBuilder::new();
    let mut text = StringBuilder::new();
    let mut value = UInt64Builder::new();
    let mut path = StringBuilder::new();
    for row in rows {
        kind.append_value(row.kind);
        text.append_option(row.text);
        value.append_option(row.value);
        path.append_option(row.path);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kind.finish()),
        Arc::new(text.finish()),
        Arc::new(value.finish()),
        Arc::new(path.finish()),
    ];
    RecordBatch::try_new(StatementResult::schema(), columns)
        .map_err(|e| Error::internal("a batch of actions").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_survives_its_batches() {
        let result = StatementResult {
            actions: vec!["{\"add\":{}}".to_owned(), "{\"remove\":{}}".to_owned()],
            metrics: vec![("numCopiedRows".to_owned(), 7)],
            count: 3,
            origins: vec![
                ("a.parquet".to_owned(), "[1]".to_owned()),
                ("a.parquet".to_owned(), "[2]".to_owned()),
            ],
        };
        let mut read = StatementResult::default();
        let batches = result.to_batches().expect("batches");
        assert_eq!(batches.len(), 3);
        for batch in &batches {
            read.add_batch(batch).expect("read");
        }
        assert_eq!(read, result);
    }

    #[test]
    fn another_batch_is_refused() {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(StatementResult::default().add_batch(&batch).is_err());
    }
}
