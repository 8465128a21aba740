//! The command line: SQL on Delta tables.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use delta_disjoint::{Error, session, sql};

/// Runs SQL on Delta Lake tables; writers whose data is disjoint both commit.
#[derive(Debug, Parser)]
#[command(name = "delta-disjoint", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs statements one after the other and prints what they return.
    ///
    /// Exit codes: 0 all statements ran, 1 one failed (the later ones did not run), 2 the arguments
    /// are wrong.
    #[command(after_help = "Example:\n  \
        delta-disjoint sql --table orders=/data/orders \\\n    \
        -c \"UPDATE orders SET status = 'done' WHERE id < 100\" \\\n    \
        -c \"SELECT status, count(*) FROM orders GROUP BY status\"")]
    Sql {
        /// A statement; may be given several times.
        #[arg(short = 'c', long = "command", value_name = "SQL", required = true)]
        commands: Vec<String>,
        /// A Delta table to open, by path or URL; may be given several times.
        #[arg(long = "table", value_name = "NAME=LOCATION", value_parser = table)]
        tables: Vec<(String, String)>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Sql { commands, tables } = Arguments::parse().command;
    match run(&commands, &tables).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match Error::find(&error) {
                Some(error) => eprintln!("{error}"),
                None => eprintln!("{error}"),
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(commands: &[String], tables: &[(String, String)]) -> Result<()> {
    let ctx = session();
    for (name, location) in tables {
        let name = name.replace('"', "\"\"");
        let location = location.replace('\'', "''");
        let open =
            format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS DELTA LOCATION '{location}'");
        sql(&ctx, &open).await?;
    }
    for command in commands {
        print(&ctx, command).await?;
    }
    Ok(())
}

async fn print(ctx: &SessionContext, command: &str) -> Result<()> {
    let batches = sql(ctx, command).await?.collect().await?;
    if batches.iter().any(|batch| batch.num_columns() > 0) {
        let text = pretty_format_batches(&batches).map_err(DataFusionError::from)?;
        println!("{text}");
    }
    Ok(())
}

fn table(argument: &str) -> Result<(String, String), String> {
    match argument.split_once('=') {
        Some((name, location)) if !name.is_empty() && !location.is_empty() => {
            Ok((name.to_owned(), location.to_owned()))
        }
        _ => Err("expected NAME=LOCATION".to_owned()),
    }
}
