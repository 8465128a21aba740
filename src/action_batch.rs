//! How a rewrite hands its result to the commit: record batches of a few columns.
//!
//! The two operators stand in different stages that do not know each other. Plain batches between
//! them keep it so, and let them run in different places.
//!
//! What a statement notes of the rows of its files may be large. It is let go of piece by piece while
//! the batches are made, and taken in batch by batch, so that it is in memory once.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBuilder, RecordBatch, StringBuilder, UInt32Builder,
    UInt64Builder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};

use crate::error::{Error, Result};
use crate::read::row_origins::{Origin, RowOrigins, Run};

const ACTION: &str = "action";
const METRIC: &str = "metric";
const COUNT: &str = "count";
/// A file, which the runs after it in the batch are of.
const FILE: &str = "file";
const RUN: &str = "run";

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, true),
        Field::new("value", DataType::UInt64, true),
        Field::new("from_file", DataType::UInt32, true),
        Field::new("from_row", DataType::UInt64, true),
        Field::new("changed", DataType::Boolean, true),
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
    /// Where the rows of new files come from, by path, if that is noted.
    pub(crate) origins: Vec<(String, RowOrigins)>,
}

impl StatementResult {
    /// The columns of the batches.
    pub(crate) fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    /// The result as batches, each of limited size but for the first one with the actions; each is
    /// made when it is asked for.
    pub(crate) fn into_batches(self) -> impl Iterator<Item = Result<RecordBatch>> {
        let Self {
            actions,
            metrics,
            count,
            origins,
        } = self;
        let first = std::iter::once_with(move || {
            let actions = actions.iter().map(|action| Row {
                kind: ACTION,
                text: Some(action),
                ..Row::default()
            });
            let metrics = metrics.iter().map(|(name, number)| Row {
                kind: METRIC,
                text: Some(name),
                value: Some(*number),
                ..Row::default()
            });
            let count = Row {
                kind: COUNT,
                value: Some(count),
                ..Row::default()
            };
            to_batch(actions.chain(metrics).chain([count]))
        });
        let runs = origins.into_iter().flat_map(|(path, origins)| {
            origins
                .into_pieces()
                .map(move |runs| runs_to_batch(&path, &runs))
        });
        first.chain(runs)
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
        let files = column(3)?
            .as_primitive_opt::<UInt32Type>()
            .ok_or_else(wrong)?;
        let rows = column(4)?
            .as_primitive_opt::<UInt64Type>()
            .ok_or_else(wrong)?;
        let changed = column(5)?.as_boolean_opt().ok_or_else(wrong)?;
        let mut of = None;
        for row in 0..batch.num_rows() {
            let text = || texts.is_valid(row).then(|| texts.value(row));
            let number = || values.is_valid(row).then(|| values.value(row));
            let from = || {
                files.is_valid(row).then(|| Origin {
                    file: files.value(row),
                    row: rows.value(row),
                    changed: changed.value(row),
                })
            };
            match kinds.value(row) {
                ACTION => self.actions.push(text().ok_or_else(wrong)?.to_owned()),
                METRIC => {
                    let name = text().ok_or_else(wrong)?.to_owned();
                    self.metrics.push((name, number().ok_or_else(wrong)?));
                }
                COUNT => self.count += number().ok_or_else(wrong)?,
                FILE => of = Some(self.file(text().ok_or_else(wrong)?)),
                RUN => {
                    let origins = of.and_then(|file| self.origins.get_mut(file));
                    let (_, origins) = origins.ok_or_else(wrong)?;
                    origins.push_run(Run {
                        length: number().ok_or_else(wrong)?,
                        from: from(),
                    });
                }
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    /// The index of the file at `path` among those with origins.
    fn file(&mut self, path: &str) -> usize {
        let known = self.origins.iter().rposition(|(other, _)| other == path);
        known.unwrap_or_else(|| {
            self.origins.push((path.to_owned(), RowOrigins::default()));
            self.origins.len() - 1
        })
    }
}

#[derive(Default)]
struct Row<'a> {
    kind: &'static str,
    text: Option<&'a str>,
    value: Option<u64>,
    from: Option<Origin>,
}

fn runs_to_batch(path: &str, runs: &[Run]) -> Result<RecordBatch> {
    let file = Row {
        kind: FILE,
        text: Some(path),
        ..Row::default()
    };
    let runs = runs.iter().map(|run| Row {
        kind: RUN,
        value: Some(run.length),
        from: run.from,
        ..Row::default()
    });
    to_batch([file].into_iter().chain(runs))
}

fn to_batch<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> Result<RecordBatch> {
    let mut kind = StringBuilder::new();
    let mut text = StringBuilder::new();
    let mut value = UInt64Builder::new();
    let mut from_file = UInt32Builder::new();
    let mut from_row = UInt64Builder::new();
    let mut changed = BooleanBuilder::new();
    for row in rows {
        kind.append_value(row.kind);
        text.append_option(row.text);
        value.append_option(row.value);
        from_file.append_option(row.from.map(|from| from.file));
        from_row.append_option(row.from.map(|from| from.row));
        changed.append_option(row.from.map(|from| from.changed));
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(kind.finish()),
        Arc::new(text.finish()),
        Arc::new(value.finish()),
        Arc::new(from_file.finish()),
        Arc::new(from_row.finish()),
        Arc::new(changed.finish()),
    ];
    RecordBatch::try_new(StatementResult::schema(), columns)
        .map_err(|e| Error::internal("a batch of actions").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::row_origins::RUNS_IN_A_PIECE;

    /// So many runs: no row follows the one before it.
    fn origins(runs: usize) -> RowOrigins {
        let mut origins = RowOrigins::default();
        for row in 0..runs as u64 - 1 {
            origins.push(Some(Origin {
                file: 2,
                row: row * 2,
                changed: row % 3 == 0,
            }));
        }
        origins.push_new(5);
        origins
    }

    #[test]
    fn a_result_survives_its_batches() {
        let result = StatementResult {
            actions: vec!["{\"add\":{}}".to_owned(), "{\"remove\":{}}".to_owned()],
            metrics: vec![("numCopiedRows".to_owned(), 7)],
            count: 3,
            origins: vec![
                ("a.parquet".to_owned(), origins(RUNS_IN_A_PIECE + 10)),
                ("b.parquet".to_owned(), origins(1)),
                ("c.parquet".to_owned(), origins(RUNS_IN_A_PIECE)),
            ],
        };
        let mut read = StatementResult::default();
        let mut rows = Vec::new();
        for batch in result.clone().into_batches() {
            let batch = batch.expect("batch");
            rows.push(batch.num_rows());
            read.add_batch(&batch).expect("read");
        }
        assert_eq!(read, result);
        // A file's runs come in pieces, each after the file that they are of.
        assert_eq!(rows, [4, RUNS_IN_A_PIECE + 1, 11, 2, RUNS_IN_A_PIECE + 1],);
    }

    #[test]
    fn another_batch_is_refused() {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(StatementResult::default().add_batch(&batch).is_err());
    }

    #[test]
    fn run_of_no_file_is_refused() {
        let run = Row {
            kind: RUN,
            value: Some(1),
            ..Row::default()
        };
        let batch = to_batch([run]).expect("batch");
        assert!(StatementResult::default().add_batch(&batch).is_err());
    }
}
