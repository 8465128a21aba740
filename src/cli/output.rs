//! Results on stdout, in the format that was asked for.

use std::io::{self, Write};
use std::sync::Arc;

use clap::ValueEnum;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use delta_disjoint::error::printable;

use super::failure::Failure;

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people; it is printed when the last row is there.
    Table,
    /// Comma-separated values with a header; NULL is empty, nested values are text.
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Ndjson,
}

/// Prints `text`, which ends its last line itself.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Tells `text`, of a line or more, on stderr.
pub(crate) fn tell(text: &str) {
    // Messages quote logs and data, which must not steer the terminal.
    let shown: Vec<_> = text.split('\n').map(printable).collect();
    // There is nowhere left to say that this failed.
    let _ = writeln!(io::stderr(), "{}", shown.join("\n"));
}

/// Prints one result; a result without columns is nothing.
pub(crate) struct ResultPrinter {
    schema: SchemaRef,
    kind: Kind,
}

enum Kind {
    Nothing,
    Table(Vec<RecordBatch>),
    Csv { header: bool },
    Json(json::Writer<Vec<u8>, JsonArray>),
    Ndjson(json::Writer<Vec<u8>, LineDelimited>),
}

impl ResultPrinter {
    /// A printer of rows with `schema`.
    pub(crate) fn new(format: Format, schema: SchemaRef) -> Self {
        // A column that is NULL is still a column.
        let json = || json::WriterBuilder::new().with_explicit_nulls(true);
        let kind = match format {
            _ if schema.fields().is_empty() => Kind::Nothing,
            Format::Table => Kind::Table(Vec::new()),
            Format::Csv => Kind::Csv { header: true },
            Format::Json => Kind::Json(json().build(Vec::new())),
            Format::Ndjson => Kind::Ndjson(json().build(Vec::new())),
        };
        Self { schema, kind }
    }

    /// Whether rows are printed as they come.
    pub(crate) fn is_streaming(&self) -> bool {
        !matches!(self.kind, Kind::Table(_))
    }

    /// Takes the next rows.
    pub(crate) fn write(&mut self, rows: RecordBatch) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Nothing => Ok(()),
            Kind::Table(batches) => {
                batches.push(rows);
                Ok(())
            }
            Kind::Csv { header } => write_csv(&rows, std::mem::take(header)),
            Kind::Json(writer) => {
                writer.write(&rows)?;
                drain(writer.get_mut())
            }
            Kind::Ndjson(writer) => {
                writer.write(&rows)?;
                drain(writer.get_mut())
            }
        }
    }

    /// Prints what is left.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let nothing = RecordBatch::new_empty(Arc::clone(&self.schema));
        match &mut self.kind {
            Kind::Nothing => Ok(()),
            Kind::Table(batches) => {
                // Without rows there are still columns.
                batches.push(nothing);
                let options = FormatOptions::default()
                    .with_null("NULL")
                    .with_display_error(true);
                let table = pretty_format_batches_with_options(batches, &options)?;
                print(&format!("{table}\n"))
            }
            Kind::Csv { header: true } => write_csv(&nothing, true),
            Kind::Csv { header: false } => Ok(()),
            Kind::Json(writer) => {
                writer.finish()?;
                writer.get_mut().push(b'\n');
                drain(writer.get_mut())
            }
            Kind::Ndjson(writer) => {
                writer.finish()?;
                drain(writer.get_mut())
            }
        }
    }
}

fn drain(buffer: &mut Vec<u8>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(buffer)?;
    stdout.flush()?;
    buffer.clear();
    Ok(())
}

fn write_csv(rows: &RecordBatch, header: bool) -> Result<(), Failure> {
    let mut text = Vec::new();
    csv::WriterBuilder::new()
        .with_header(header)
        .build(&mut text)
        .write(&nested_as_text(rows)?)?;
    drain(&mut text)
}

/// CSV has no lists and structs: they become the text that a table shows.
fn nested_as_text(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = rows.schema();
    if !schema.fields().iter().any(|f| f.data_type().is_nested()) {
        return Ok(rows.clone());
    }
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        if field.data_type().is_nested() {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(Arc::new(as_text(column.as_ref())?));
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn as_text(column: &dyn Array) -> Result<StringArray, ArrowError> {
    let options = FormatOptions::default();
    let values = ArrayFormatter::try_new(column, &options)?;
    (0..column.len())
        .map(|row| match column.is_null(row) {
            true => Ok(None),
            false => values.value(row).try_to_string().map(Some),
        })
        .collect()
}
