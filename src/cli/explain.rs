//! `explain`: whether a writer would still commit, from a table's log alone.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use delta_disjoint::commit::IsolationLevel;
use delta_disjoint::explain::{Question, explain};

use super::Environment;
use super::failure::Failure;
use super::history::open;
use super::output::print;

/// Tells whether a writer that read one version of a table would still commit, and why not.
///
/// The check is the one that a commit goes through, against the versions after the one that was
/// read. The table's log is read, no data file, and nothing is written. Without --where,
/// --whole-table and --removes the writer is a plain append; one that removes files and has neither
/// of the others counts as having read the whole table.
///
/// Not asked, and so not answered: a commit also conflicts if another writer clustered the table by a
/// column of which the commit's new files hold no statistics, committed for the same application id
/// or changed the same metadata domain, and if both change the table's metadata or protocol.
#[derive(Debug, Args)]
#[command(
    about = "Tells whether a writer that read one version of a table would still commit",
    after_help = "\
Exit codes:
  0  it would commit
  1  it would conflict
  2  there is no answer: the arguments are wrong, the log cannot be read or the output not written

Examples:
  delta-disjoint explain /data/orders --read-version 41 --where 'id < 100'
  delta-disjoint explain /data/orders --read-version 41 --to-version 45 \\
    --where \"region = 'eu'\" --where 'id >= 900' --isolation serializable
  delta-disjoint explain /data/orders --read-version 41 --whole-table --format json | jq .advice"
)]
pub(crate) struct ExplainArguments {
    /// The table's path or URL.
    table: String,
    /// The version that the writer read.
    #[arg(long, value_name = "V")]
    read_version: u64,
    /// What it read, a condition over the table's columns; each is a read of its own.
    #[arg(long = "where", value_name = "PREDICATE")]
    predicates: Vec<String>,
    /// It read all rows.
    #[arg(long)]
    whole_table: bool,
    /// A file that it removes, as the log calls it; may be given several times.
    #[arg(long, value_name = "PATH")]
    removes: Vec<String>,
    /// How strictly to check; as the table says where it is not given.
    #[arg(long, value_enum, value_name = "LEVEL")]
    isolation: Option<Level>,
    /// The last version to check against; the newest where it is not given.
    #[arg(long, value_name = "N")]
    to_version: Option<u64>,
    /// Tell files apart by partition values alone, not by column statistics.
    #[arg(long)]
    no_data_skipping: bool,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t = AnswerFormat::Text)]
    format: AnswerFormat,
}

/// How strictly to check.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    /// Every added file counts.
    Serializable,
    /// Blind appends may be put after the writer.
    WriteSerializable,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AnswerFormat {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

pub(crate) async fn run(
    arguments: &ExplainArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let table = open(&arguments.table, environment.storage.to_map())?;
    let question = Question {
        to_version: arguments.to_version,
        predicates: arguments.predicates.clone(),
        whole_table: arguments.whole_table,
        removes: arguments.removes.clone(),
        isolation: arguments.isolation.map(|level| match level {
            Level::Serializable => IsolationLevel::Serializable,
            Level::WriteSerializable => IsolationLevel::WriteSerializable,
        }),
        data_skipping: !arguments.no_data_skipping,
        ..Question::new(arguments.read_version)
    };
    let mut interrupts = environment.interrupts.clone();
    let verdict = tokio::select! {
        () = interrupts.next() => return Err(Failure::interrupted("interrupted")),
        verdict = explain(&table, &question) => verdict?,
    };
    match arguments.format {
        AnswerFormat::Text => print(&verdict.to_text())?,
        AnswerFormat::Json => print(&format!("{:#}\n", verdict.to_json()))?,
    }
    Ok(ExitCode::from(u8::from(verdict.is_conflict())))
}
