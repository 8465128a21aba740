//! The interactive prompt of `sql`.

mod input;

use std::path::PathBuf;
use std::process::ExitCode;

use datafusion::prelude::SessionContext;
use delta_disjoint::session::script::Script;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};

use self::input::Input;
use super::failure::Failure;
use super::output::{Format, print, tell};
use super::session::{is_in_transaction, roll_back, rolled_back};
use super::{Environment, statement};

/// Where the history is kept, in place of the user's data directory.
const HISTORY_VARIABLE: &str = "DELTA_DISJOINT_HISTORY";

/// How many inputs the history keeps.
const HISTORY_LENGTH: usize = 1000;

const HELP: &str = "\
Statements end with ; and may take several lines. Ctrl-C clears the input or calls the running
statement off, Ctrl-D ends.
  \\d         lists the tables
  \\d NAME    shows the columns of a table
  \\?, help   shows this
  \\q, quit   ends
";

/// Reads and runs statements until the end is asked for.
pub(crate) async fn run(
    ctx: &SessionContext,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    if let Err(failure) = converse(ctx, format, environment).await {
        // The files of the transaction would stay behind.
        return Err(rolled_back(ctx, failure).await);
    }
    if roll_back(ctx).await? {
        tell("the transaction was still open and was rolled back");
    }
    Ok(ExitCode::SUCCESS)
}

async fn converse(
    ctx: &SessionContext,
    format: Format,
    environment: &Environment,
) -> Result<(), Failure> {
    let broken = |error| Failure::statement(format!("the prompt cannot be shown: {error}"));
    let history = history_file();
    let mut editor = editor(ctx, history.as_ref()).map_err(broken)?;
    print(concat!(
        "delta-disjoint ",
        env!("CARGO_PKG_VERSION"),
        ", \\? for help\n"
    ))?;
    loop {
        let prompt = if is_in_transaction(ctx) {
            "delta-disjoint*> "
        } else {
            "delta-disjoint> "
        };
        // A thread that waits for keys must not hold up the runtime.
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline(prompt);
            (editor, line)
        });
        let line;
        (editor, line) = read
            .await
            .map_err(|error| Failure::statement(format!("the prompt failed: {error}")))?;
        let input = match line {
            Ok(input) => input,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(broken(error)),
        };
        if !input.trim().is_empty() && !may_hold_secrets(&input, environment) {
            // What cannot be remembered can still be run.
            let _ = editor.add_history_entry(input.trim_end());
            if let Some(history) = &history {
                let _ = editor.append_history(history);
            }
        }
        match Input::of(&input) {
            Input::Quit => return Ok(()),
            Input::Help => print(HELP)?,
            Input::Unknown(command) => {
                tell(&format!(
                    "there is no command {command}; \\? shows what there is"
                ));
            }
            Input::Tables => print(&tables(ctx))?,
            Input::Columns(table) => {
                run_statement(ctx, &format!("DESCRIBE {table}"), format, environment).await?;
            }
            Input::Statements(text) => run_statements(ctx, text, format, environment).await?,
        }
    }
}

/// Runs the statements of one input; the first failure ends it, not the prompt.
async fn run_statements(
    ctx: &SessionContext,
    text: &str,
    format: Format,
    environment: &Environment,
) -> Result<(), Failure> {
    let script = Script::split(ctx, text)?;
    for statement in script.statements.iter().chain(&script.rest) {
        if !run_statement(ctx, statement.text, format, environment).await? {
            break;
        }
    }
    Ok(())
}

/// Whether the statement worked. Fails only if nobody reads the results any more.
async fn run_statement(
    ctx: &SessionContext,
    text: &str,
    format: Format,
    environment: &Environment,
) -> Result<bool, Failure> {
    let interrupts = environment.interrupts.starting_now();
    match statement::run(ctx, text, format, interrupts).await {
        Ok(done) => {
            if done.is_interrupted {
                tell("interrupted too late: the statement is done");
            }
            let seconds = done.elapsed.as_secs_f64();
            match done.rows {
                Some(1) => tell(&format!("1 row in {seconds:.3} s")),
                Some(rows) => tell(&format!("{rows} rows in {seconds:.3} s")),
                None => tell(&format!("done in {seconds:.3} s")),
            }
            Ok(!done.is_interrupted)
        }
        Err(failure) if failure.is_nobody_reads() => Err(failure),
        Err(failure) => {
            let message = failure.message().unwrap_or_default();
            tell(&environment.secrets.hide(message));
            if is_in_transaction(ctx) {
                tell("the transaction is still open; COMMIT or ROLLBACK ends it");
            }
            Ok(false)
        }
    }
}

fn tables(ctx: &SessionContext) -> String {
    let mut names = Vec::new();
    for catalog_name in ctx.catalog_names() {
        let Some(catalog) = ctx.catalog(&catalog_name) else {
            continue;
        };
        for schema_name in catalog.schema_names() {
            let tables = catalog
                .schema(&schema_name)
                .map(|schema| schema.table_names());
            for table in tables.unwrap_or_default() {
                let schema = match (catalog_name.as_str(), schema_name.as_str()) {
                    (_, "information_schema") => continue,
                    ("datafusion", "public") => String::new(),
                    _ => format!("{catalog_name}.{schema_name}."),
                };
                names.push(format!("{schema}{table}\n"));
            }
        }
    }
    names.sort();
    match names.is_empty() {
        true => {
            "no tables; CREATE EXTERNAL TABLE … STORED AS DELTA makes or opens one\n".to_owned()
        }
        false => names.concat(),
    }
}

/// Options of a store and passwords and signatures in URLs are kept out of the history.
fn may_hold_secrets(input: &str, environment: &Environment) -> bool {
    environment.secrets.are_in(input) || input.to_ascii_uppercase().contains("OPTIONS")
}

fn history_file() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = variable(HISTORY_VARIABLE) {
        return Some(file.into());
    }
    let data = ["XDG_DATA_HOME", "LOCALAPPDATA"]
        .into_iter()
        .find_map(variable)
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))?;
    let folder = data.join("delta-disjoint");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

type SqlEditor = Editor<SqlHelper, FileHistory>;

fn editor(ctx: &SessionContext, history: Option<&PathBuf>) -> rustyline::Result<SqlEditor> {
    let config = Config::builder().max_history_size(HISTORY_LENGTH)?.build();
    let mut editor = SqlEditor::with_config(config)?;
    editor.set_helper(Some(SqlHelper { ctx: ctx.clone() }));
    if let Some(history) = history {
        // There is none the first time.
        let _ = editor.load_history(history);
    }
    Ok(editor)
}

/// Knows whether an input is complete.
struct SqlHelper {
    ctx: SessionContext,
}

impl Helper for SqlHelper {}
impl Highlighter for SqlHelper {}

impl Completer for SqlHelper {
    type Candidate = String;
}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // What cannot be split is complete: running it says what is wrong.
        let is_incomplete = Input::of(input).is_statements()
            && Script::split(&self.ctx, input).is_ok_and(|script| script.rest.is_some());
        Ok(match is_incomplete {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}
