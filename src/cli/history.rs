//! `history`: the versions of a table, from its log alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
use datafusion::arrow::error::ArrowError;
use delta_disjoint::error::printable;
use delta_disjoint::history::{HistoryEntry, history};
use delta_disjoint::read::table::TableHandle;

use super::Environment;
use super::failure::Failure;
use super::output::{Format, ResultPrinter, print};

/// Lists the versions of a table, newest first.
///
/// Only the commit entries of the log are read; versions whose entries were cleaned up are not
/// listed. What a writer did not say about its commit is NULL, and so is a timestamp that no calendar
/// has. In JSON there are also the parameters and metrics of the operation, and the timestamp is in
/// milliseconds since the epoch, whatever it is.
#[derive(Debug, Args)]
#[command(
    about = "Lists the versions of a table, newest first",
    after_help = "Examples:\n  \
        delta-disjoint history /data/orders --limit 10\n  \
        delta-disjoint history s3://lake/orders --storage-option aws_region=eu-west-1\n  \
        delta-disjoint history /data/orders --format ndjson | jq 'select(.is_blind_append)'"
)]
pub(crate) struct HistoryArguments {
    /// The table's path or URL.
    table: String,
    /// How many versions at most.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How they are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub(crate) async fn run(
    arguments: &HistoryArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let table = open(&arguments.table, environment.storage.to_map())?;
    let mut interrupts = environment.interrupts.clone();
    let entries = tokio::select! {
        () = interrupts.next() => return Err(Failure::interrupted("interrupted")),
        entries = history(&table, arguments.limit) => entries?,
    };
    match arguments.format {
        Format::Json => print(&format!("{}\n", json(&entries)?))?,
        Format::Ndjson => {
            for entry in &entries {
                print(&format!("{}\n", json(entry)?))?;
            }
        }
        Format::Table | Format::Csv => {
            let rows = rows(&entries, arguments.format == Format::Table)?;
            let mut printer = ResultPrinter::new(arguments.format, rows.schema());
            printer.write(rows)?;
            printer.finish()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The table at `location`, for a command that reads its log only.
pub(crate) fn open(
    location: &str,
    storage: HashMap<String, String>,
) -> Result<TableHandle, Failure> {
    TableHandle::at(location, storage, false)
        .map_err(|error| Failure::from(error).at(&format!("table {location}")))
}

/// Whether a calendar has the time, which may be any number in the log.
fn is_date(millis: i64) -> bool {
    chrono::DateTime::from_timestamp_millis(millis).is_some()
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::statement(format!("the history has no JSON form: {error}")))
}

/// The rows of `entries`, `for_people` without what would steer their terminal.
fn rows(entries: &[HistoryEntry], for_people: bool) -> Result<RecordBatch, ArrowError> {
    let shown = |text| match for_people {
        true => printable(text),
        false => Cow::Borrowed(text),
    };
    let text = |of: fn(&HistoryEntry) -> Option<&str>| -> ArrayRef {
        let texts = entries.iter().map(|entry| of(entry).map(shown));
        Arc::new(texts.collect::<StringArray>())
    };
    let number = |of: fn(&HistoryEntry) -> Option<u64>| -> ArrayRef {
        Arc::new(entries.iter().map(of).collect::<UInt64Array>())
    };
    let timestamps: TimestampMillisecondArray = entries
        .iter()
        .map(|entry| entry.timestamp.filter(|millis| is_date(*millis)))
        .collect();
    let blind: BooleanArray = entries.iter().map(|entry| entry.is_blind_append).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("version", number(|entry| Some(entry.version)), false),
        (
            "timestamp",
            Arc::new(timestamps.with_timezone("UTC")) as ArrayRef,
            true,
        ),
        ("operation", text(|entry| entry.operation.as_deref()), true),
        ("read_version", number(|entry| entry.read_version), true),
        (
            "isolation_level",
            text(|entry| entry.isolation_level.as_deref()),
            true,
        ),
        ("is_blind_append", Arc::new(blind), true),
        (
            "files_added",
            number(|entry| Some(entry.files_added)),
            false,
        ),
        (
            "files_removed",
            number(|entry| Some(entry.files_removed)),
            false,
        ),
        ("rows_added", number(|entry| entry.rows_added), true),
        (
            "bytes_added",
            number(|entry| Some(entry.bytes_added)),
            false,
        ),
        ("engine", text(|entry| entry.engine.as_deref()), true),
    ])
}
