//! `sql`: statements from arguments, files, pipes or a prompt.

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use datafusion::prelude::SessionContext;
use delta_disjoint::session::script::Script;

use super::failure::Failure;
use super::output::Format;
use super::session::{NamedTable, open, roll_back, rolled_back};
use super::text_input::{Lines, is_stream, read_file};
use super::{Environment, prompt, statement};

/// Runs SQL statements and prints what they return.
///
/// Statements come from -c and -f in the order in which they are given, several in one text with `;`
/// between them. Without -c and -f they come from stdin: from a prompt with history and editing over
/// several lines if it is a terminal, else as they are read.
///
/// Files are read before the first statement runs. The first statement that fails ends the run, unless
/// it is a prompt. A transaction that is open at
/// the end is rolled back, and the run counts as failed. Results are printed one after the other; one
/// of a change is the count of rows.
///
/// Ctrl-C calls the running statement off and leaves the tables as they were; a version that is just
/// being written is waited for.
#[derive(Debug, Args)]
#[command(
    about = "Runs SQL statements and prints what they return",
    after_help = "Examples:\n  \
        delta-disjoint sql --table orders=/data/orders\n  \
        delta-disjoint sql --table orders=/data/orders \\\n    \
        -c \"UPDATE orders SET status = 'done' WHERE id < 100\" \\\n    \
        -c \"SELECT status, count(*) FROM orders GROUP BY status\"\n  \
        delta-disjoint sql --table 'Customer ID=../lake/customer id' \\\n    \
        -c 'SELECT * FROM \"Customer ID\"' --format csv | head\n  \
        delta-disjoint sql -f setup.sql -c 'SELECT count(*) FROM orders' -f report.sql\n  \
        generate-changes | delta-disjoint sql --table orders=/data/orders\n\n\
        New tables: CREATE EXTERNAL TABLE t (id BIGINT) STORED AS DELTA LOCATION '/data/t'\n\
        Prompt: \\d lists tables, \\d NAME shows columns, \\? helps, \\q quits; its history is in\n\
        $DELTA_DISJOINT_HISTORY or in the user's data directory."
)]
pub(crate) struct SqlArguments {
    #[command(flatten)]
    sources: Sources,
    /// A Delta table to open, by path or URL; may be given several times.
    #[arg(long = "table", value_name = "NAME=LOCATION")]
    tables: Vec<String>,
    /// How results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub(crate) async fn run(
    arguments: SqlArguments,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let tables = arguments
        .tables
        .iter()
        .map(|given| NamedTable::parse(given))
        .collect::<Result<Vec<_>, _>>()?;
    let ctx = open(&tables, environment).await?;
    let sources = arguments.sources.0;
    if sources.is_empty() && stdin().is_terminal() {
        return prompt::run(&ctx, arguments.format, environment).await;
    }
    let mut batch = Batch {
        ctx: &ctx,
        format: arguments.format,
        environment,
        number: 0,
    };
    match batch.run(sources).await {
        Ok(()) if roll_back(&ctx).await? => Err(Failure::statement(
            "the transaction was still open at the end and was rolled back; end it with COMMIT",
        )),
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(rolled_back(&ctx, failure).await),
    }
}

/// Where statements come from.
#[derive(Debug, Clone)]
enum Source {
    Text {
        number: usize,
        text: String,
    },
    File {
        path: PathBuf,
        /// What it holds, once it is read.
        text: Option<String>,
    },
    Stdin,
}

/// The sources in the order in which they were given.
#[derive(Debug)]
struct Sources(Vec<Source>);

const COMMAND: &str = "command";
const FILE: &str = "file";

impl Args for Sources {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new(COMMAND)
                    .short('c')
                    .long(COMMAND)
                    .value_name("SQL")
                    .help("Statements; may be given several times")
                    .action(ArgAction::Append),
            )
            .arg(
                Arg::new(FILE)
                    .short('f')
                    .long(FILE)
                    .value_name("FILE")
                    .help("A file of statements, - for stdin; may be given several times")
                    .value_parser(value_parser!(PathBuf))
                    .action(ArgAction::Append),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Sources {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let indices = |id| matches.indices_of(id).into_iter().flatten();
        let texts = matches.get_many::<String>(COMMAND).into_iter().flatten();
        let texts = texts.enumerate().map(|(index, text)| Source::Text {
            number: index + 1,
            text: text.clone(),
        });
        let files = matches.get_many::<PathBuf>(FILE).into_iter().flatten();
        let files = files.map(|path| match path.to_str() {
            Some("-") => Source::Stdin,
            _ => Source::File {
                path: path.clone(),
                text: None,
            },
        });
        let mut sources: Vec<(usize, Source)> = indices(COMMAND)
            .zip(texts)
            .chain(indices(FILE).zip(files))
            .collect();
        sources.sort_by_key(|(index, _)| *index);
        let sources = sources.into_iter().map(|(_, source)| source);
        Ok(Self(sources.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A run that ends with the first failure.
struct Batch<'a> {
    ctx: &'a SessionContext,
    format: Format,
    environment: &'a Environment,
    /// Statements begun.
    number: usize,
}

impl Batch<'_> {
    async fn run(&mut self, sources: Vec<Source>) -> Result<(), Failure> {
        if sources.is_empty() {
            return self.run_stdin().await;
        }
        for source in self.read_ahead(sources).await? {
            match source {
                Source::Text { number, text } => {
                    self.run_all(&text, &|_| format!("-c number {number}"))
                        .await?;
                }
                Source::File { path, text } => {
                    let text = match text {
                        Some(text) => text,
                        None => read_file(&path, &self.environment.interrupts).await?,
                    };
                    let name = path.display();
                    self.run_all(&text, &|line| format!("{name}:{line}"))
                        .await?;
                }
                Source::Stdin => self.run_stdin().await?,
            }
        }
        Ok(())
    }

    /// `sources` with the texts of their files: one that cannot be read must not show after the
    /// statements in front of it are done. A pipe is read in its turn, since what writes to it may
    /// wait for them.
    async fn read_ahead(&self, mut sources: Vec<Source>) -> Result<Vec<Source>, Failure> {
        for source in &mut sources {
            if let Source::File { path, text } = source
                && !is_stream(path)
            {
                *text = Some(read_file(path, &self.environment.interrupts).await?);
            }
        }
        Ok(sources)
    }

    async fn run_all(
        &mut self,
        text: &str,
        place: &impl Fn(usize) -> String,
    ) -> Result<(), Failure> {
        let (end, lines) = self.run_complete(text, 0, place).await?;
        if let Some(last) = Script::split(self.ctx, &text[end..])?.rest {
            self.run_statement(last.text, &place(lines + last.line))
                .await?;
        }
        Ok(())
    }

    /// Runs the statements of `text`, which stands behind `lines` lines, that end with `;`. Returns
    /// the bytes that they take and the lines before what is left.
    async fn run_complete(
        &mut self,
        text: &str,
        lines: usize,
        place: &impl Fn(usize) -> String,
    ) -> Result<(usize, usize), Failure> {
        let mut end = 0;
        loop {
            let lines = lines + text[..end].matches('\n').count();
            let dialect = dialect(self.ctx);
            let script = Script::split(self.ctx, &text[end..])?;
            let start = end;
            for statement in &script.statements {
                self.run_statement(statement.text, &place(lines + statement.line))
                    .await?;
                end = start + statement.end;
                if self::dialect(self.ctx) != dialect {
                    break;
                }
            }
            if self::dialect(self.ctx) == dialect {
                return Ok((end, lines + text[start..end].matches('\n').count()));
            }
        }
    }

    /// Runs statements as soon as they are complete: who writes them may wait for what they return.
    async fn run_stdin(&mut self) -> Result<(), Failure> {
        let place = |line: usize| format!("stdin:{line}");
        let mut input = Lines::of_stdin(&self.environment.interrupts);
        let mut text = String::new();
        let mut lines = 0;
        while let Some(line) = input.next().await? {
            let is_end = line.contains(';');
            text.push_str(&line);
            if is_end {
                let (end, before) = self.run_complete(&text, lines, &place).await?;
                text.drain(..end);
                lines = before;
            }
        }
        self.run_all(&text, &|line| place(lines + line)).await
    }

    async fn run_statement(&mut self, text: &str, place: &str) -> Result<(), Failure> {
        self.number += 1;
        let place = format!("statement {} ({place})", self.number);
        let interrupts = self.environment.interrupts.clone();
        let done = statement::run(self.ctx, text, self.format, interrupts)
            .await
            .map_err(|failure| failure.at(&place))?;
        if done.is_interrupted {
            return Err(Failure::interrupted(format!(
                "{place}: interrupted too late: the statement is done"
            )));
        }
        Ok(())
    }
}

fn dialect(ctx: &SessionContext) -> String {
    let state = ctx.state_ref();
    let state = state.read();
    state.config_options().sql_parser.dialect.to_string()
}
