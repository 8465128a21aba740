//! The command line: one module a subcommand, and what they share.
//!
//! Results go to stdout, everything else to stderr. What is printed passes [`secrets`] on its way
//! if it may hold any.

mod demo;
mod explain;
mod failure;
mod history;
mod interrupts;
mod output;
mod pages;
mod progress;
mod prompt;
mod secrets;
mod session;
mod sql;
mod statement;
mod text_input;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::failure::Failure;
use self::interrupts::Interrupts;
use self::secrets::{Secrets, StorageOptions};

/// SQL on Delta Lake tables for several writers at once: writers whose data is disjoint both commit.
#[derive(Debug, Parser)]
#[command(
    name = "delta-disjoint",
    version,
    after_help = format!("{EXIT_CODES}\n\n{EXAMPLES}"),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// An option of the object store, such as aws_region=eu-west-1; may be given several times.
    ///
    /// Names and values are those of the object_store library; what is not given is taken from the
    /// environment (AWS_ACCESS_KEY_ID, AZURE_STORAGE_ACCOUNT_KEY, GOOGLE_SERVICE_ACCOUNT, …), which
    /// also keeps secrets out of the list of processes. Values are never printed.
    #[arg(
        long = "storage-option",
        value_name = "KEY=VALUE",
        global = true,
        hide_default_value = true
    )]
    storage_options: Vec<String>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    it worked
  1    a statement failed or met a conflict
  2    the arguments are wrong
  130  it was interrupted (Ctrl-C)
  141  nobody reads the output any more";

const EXAMPLES: &str = "\
Examples:
  delta-disjoint demo
  delta-disjoint sql --table orders=/data/orders
  delta-disjoint sql --table orders=s3://lake/orders --storage-option aws_region=eu-west-1 \\
    -c \"DELETE FROM orders WHERE id < 100\"
  delta-disjoint explain /data/orders --read-version 41 --where 'id < 100'
  delta-disjoint history /data/orders --limit 10";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArguments),
    Sql(sql::SqlArguments),
    Explain(explain::ExplainArguments),
    History(history::HistoryArguments),
    Completions(pages::CompletionsArguments),
    Man(pages::ManArguments),
}

/// What every subcommand gets besides its arguments.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) storage: StorageOptions,
    pub(crate) secrets: Secrets,
    pub(crate) interrupts: Interrupts,
}

pub(crate) fn main() -> ExitCode {
    let given: Vec<_> = std::env::args_os().collect();
    let secrets = Secrets::of(&given, std::env::vars_os());
    match parse_and_run(given, &secrets) {
        Ok(code) => code,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::tell(&secrets.hide(message));
            }
            failure.exit_code()
        }
    }
}

fn parse_and_run(given: Vec<std::ffi::OsString>, secrets: &Secrets) -> Result<ExitCode, Failure> {
    let arguments = match Arguments::try_parse_from(given) {
        Ok(arguments) => arguments,
        // Asked for: --help and --version.
        Err(text) if !text.use_stderr() => {
            output::print(&text.render().to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(Failure::arguments(error.render().to_string().trim_end())),
    };
    // Of options on both sides of the subcommand, clap keeps those behind it only.
    if arguments.storage_options.len() != secrets.options_given() {
        return Err(Failure::arguments(
            "give all --storage-option before the subcommand or all of them behind it",
        ));
    }
    let storage = StorageOptions::parse(&arguments.storage_options)?;
    // Exit code 1 of `explain` says that there is a conflict, so that no failure may have it.
    let is_answered_by_code = matches!(arguments.command, Command::Explain(_));
    start_and_run(arguments.command, storage, secrets.clone()).map_err(|failure| {
        if is_answered_by_code {
            failure.without_answer()
        } else {
            failure
        }
    })
}

fn start_and_run(
    command: Command,
    storage: StorageOptions,
    secrets: Secrets,
) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::statement(format!("the runtime cannot be started: {error}")))?;
    let done = runtime.block_on(async {
        let environment = Environment {
            storage,
            secrets,
            interrupts: Interrupts::listen(),
        };
        run(command, &environment).await
    });
    // It ends with the process: a read that nobody will ever answer must not hold that, and work of
    // deltalake that was given up panics if the tasks it waits for are taken away.
    std::mem::forget(runtime);
    done
}

async fn run(command: Command, environment: &Environment) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments, environment).await,
        Command::Sql(arguments) => sql::run(arguments, environment).await,
        Command::Explain(arguments) => explain::run(&arguments, environment).await,
        Command::History(arguments) => history::run(&arguments, environment).await,
        Command::Completions(arguments) => pages::completions(&arguments),
        Command::Man(arguments) => pages::man(&arguments),
    }
}
