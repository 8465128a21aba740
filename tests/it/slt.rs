//! Tests in SQL: files in the `sqllogictest` format, several sessions in one file.
//!
//! `own` runs all files under `tests/slt`. `extra` runs the file, or the `.slt` files in the
//! directory and below, that the environment variable `SLT_EXTRA` names:
//!
//! ```sh
//! SLT_EXTRA=<path> cargo test --test it slt::extra
//! ```
//!
//! A relative path starts from the folder of `Cargo.toml`.
//!
//! Each file has
//!
//! - an empty directory of its own, `$__TEST_DIR__` after `control substitution on`;
//! - as many sessions as it names: `connection a` before a record runs it in session `a`, no such
//!   line in the session `default`. A session is new when it is first named, `SET delta.… = …` and
//!   `BEGIN` are its own, and all share the storage only;
//! - tables by name: a session that uses a table which it has not registered, and another one of the
//!   file has with `CREATE EXTERNAL TABLE`, opens it at that location by itself, without sharing any
//!   state. It may also register it by its own `CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION …`.
//!
//! Each `COMMIT` must end as [`delta_disjoint::explain`] says just before it (see `second_opinion`).
//!
//! Statements go through [`delta_disjoint::sql`], one a record. What changes rows answers with their
//! number (`statement count 3`); as a `query` with a result it answers with one row. An error's text
//! holds the conflict's kind (`statement error ConcurrentAppend`). Values are written as in
//! DataFusion's own suite (see [`values`]); rows of a `rowsort` query may stand in any order. The
//! labels of `skipif` and `onlyif` are `datafusion`, `DataFusion` and `delta-disjoint`.

mod database;
mod values;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use sqllogictest::{
    Control, QueryExpect, Record, Runner, SortMode, TestError, TestErrorKind, parse_file,
};

use self::database::{Session, Tables};
use self::values::Letter;

const FILES_AT_A_TIME: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own() {
    // Cargo runs tests in the folder of Cargo.toml.
    run_all(files(Path::new("tests/slt"))).await;
    let compared = crate::second_opinion::compared();
    assert!(compared > 50, "{compared} commits were foretold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extra() {
    match std::env::var_os("SLT_EXTRA") {
        Some(path) => run_all(files(Path::new(&path))).await,
        None => say("SLT_EXTRA is not set: no file was run"),
    }
}

/// `path` itself or, in order, the `.slt` files in the directory and below.
fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if path.is_file() {
        found.push(path.to_owned());
    } else if path.is_dir() {
        collect(path, &mut found);
    }
    assert!(
        !found.is_empty(),
        "there is no .slt file at {}",
        path.display()
    );
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("directory")
        .map(|entry| entry.expect("entry").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            found.push(path);
        }
    }
}

async fn run_all(files: Vec<PathBuf>) {
    let count = files.len();
    let mut outcomes = futures::stream::iter(files)
        .map(|path| async move {
            // A task of its own: a panic fails this file only.
            let task = tokio::spawn({
                let path = path.clone();
                async move { run(&path).await }
            });
            let outcome = match task.await {
                Ok(outcome) => outcome,
                Err(panic) => Err(format!("  {panic}")),
            };
            (path, outcome)
        })
        .buffered(FILES_AT_A_TIME);
    let mut failed = 0;
    while let Some((path, outcome)) = outcomes.next().await {
        match outcome {
            Ok(()) => say(&format!("ok {}", path.display())),
            Err(why) => {
                failed += 1;
                say(&format!("FAILED {}\n{why}", path.display()));
            }
        }
    }
    assert!(failed == 0, "{failed} of {count} files failed");
}

/// Written past the test harness, which would keep it back where the test passes.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").expect("standard output");
}

async fn run(path: &Path) -> Result<(), String> {
    let records = parse_file::<Letter>(path)
        .map_err(|error| format!("  line {}: {}", error.location().line(), error.kind()))?;
    let tables = Tables::default();
    let rows_wanted = Arc::new(AtomicBool::new(false));
    let mut runner = Runner::new({
        let rows_wanted = Arc::clone(&rows_wanted);
        move || {
            let session = Session::new(tables.clone(), Arc::clone(&rows_wanted));
            async move { Ok(session) }
        }
    });
    for label in ["datafusion", "DataFusion", "delta-disjoint"] {
        runner.add_label(label);
    }
    runner.with_column_validator(values::same_letters);
    let mut file_sort = None;
    for record in records {
        match &record {
            Record::Halt { .. } => break,
            Record::Control(Control::SortMode(mode)) => file_sort = Some(*mode),
            Record::Query {
                expected:
                    QueryExpect::Results {
                        sort_mode, results, ..
                    },
                ..
            } => {
                rows_wanted.store(!results.is_empty(), Ordering::Relaxed);
                let sorted = matches!(
                    sort_mode.or(file_sort),
                    Some(SortMode::RowSort | SortMode::ValueSort)
                );
                runner.with_validator(if sorted {
                    values::same_rows_in_any_order
                } else {
                    values::same_rows
                });
            }
            _ => rows_wanted.store(false, Ordering::Relaxed),
        }
        runner
            .run_async(record)
            .await
            .map_err(|error| explain(&error))?;
    }
    runner.shutdown_async().await;
    Ok(())
}

/// Where, what was run, what was expected and what came.
fn explain(error: &TestError) -> String {
    let (sql, expected, actual) = match error.kind() {
        TestErrorKind::Ok { sql, .. } => (sql, "an error".to_owned(), "success".to_owned()),
        TestErrorKind::Fail { sql, err, .. } => (sql, "success".to_owned(), err.to_string()),
        TestErrorKind::ErrorMismatch {
            sql,
            err,
            expected_err,
            ..
        } => (sql, format!("the error {expected_err}"), err.to_string()),
        TestErrorKind::StatementResultMismatch {
            sql,
            expected,
            actual,
        } => (sql, format!("{expected} rows"), actual),
        TestErrorKind::QueryResultMismatch {
            sql,
            expected,
            actual,
        } => (sql, expected, actual),
        TestErrorKind::QueryResultColumnsMismatch {
            sql,
            expected,
            actual,
        } => (
            sql,
            format!("columns {expected}"),
            format!("columns {actual}"),
        ),
        other => (String::new(), String::new(), other.to_string()),
    };
    let mut text = format!("  {}", place(error));
    for (name, value) in [("SQL", sql), ("expected", expected), ("actual", actual)] {
        let value = value.trim().replace('\n', "\n    ");
        text += &format!("\n  {name}:\n    {value}");
    }
    text
}

/// The line in the file itself and, where that is an `include`, the line in what is included.
fn place(error: &TestError) -> String {
    let location = error.location().to_string();
    let places: Vec<&str> = location.split("\nat ").collect();
    match places.as_slice() {
        [inner, .., outer] => {
            let line = outer.rsplit(':').next().unwrap_or_default();
            format!("line {line} ({inner})")
        }
        _ => format!("line {}", error.location().line()),
    }
}
