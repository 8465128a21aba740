//! The command `delta-disjoint`, run as a process.

mod history;
mod input;
#[cfg(unix)]
mod interrupts;
mod late_interrupts;
mod pages;
#[cfg(target_os = "linux")]
mod prompt;
mod secrets;
mod statements;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// How a process ended.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    fn of(output: std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("utf-8"),
            err: String::from_utf8(output.stderr).expect("utf-8"),
        }
    }

    /// What it printed, if it worked.
    pub fn worked(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""));
        self.out
    }

    /// What it said on stderr, if it ended with `code`.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err
    }
}

/// The command, with nothing to read.
pub fn command(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_delta-disjoint"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The same, run to its end.
pub fn run(arguments: &[impl AsRef<OsStr>]) -> Run {
    Run::of(command(arguments).output().expect("runs"))
}

/// The same with `text` on stdin.
pub fn run_with_stdin(arguments: &[impl AsRef<OsStr>], text: &str) -> Run {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(text.as_bytes()).expect("written");
    drop(stdin);
    Run::of(child.wait_with_output().expect("ends"))
}

/// A folder for a table, with `t=…` for `--table`.
pub struct Folder {
    pub dir: TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("temporary folder"),
        }
    }

    /// With the table `t (id BIGINT, s VARCHAR)` of the rows (1, 'a;b') and (2, NULL).
    pub fn with_table(clauses: &str) -> Self {
        let folder = Self::new();
        let path = folder.path();
        let create = format!(
            "CREATE EXTERNAL TABLE t (id BIGINT, s VARCHAR) STORED AS DELTA LOCATION '{path}' \
             {clauses}; INSERT INTO t VALUES (1, 'a;b'), (2, NULL)"
        );
        let made = run(&["sql", "--format", "csv", "-c", &create]);
        assert_eq!(made.worked(), "count\n2\n");
        folder
    }

    pub fn path(&self) -> String {
        self.dir.path().to_str().expect("utf-8").to_owned()
    }

    /// The argument of `--table`.
    pub fn table(&self) -> String {
        format!("t={}", self.path())
    }

    /// `sql` on the table.
    pub fn sql(&self, arguments: &[&str]) -> Run {
        let table = self.table();
        let mut all = vec!["sql", "--table", &table];
        all.extend(arguments);
        run(&all)
    }

    /// Names of all files, data and log.
    pub fn files(&self) -> BTreeSet<String> {
        let mut files = names(self.dir.path());
        files.extend(names(&self.dir.path().join("_delta_log")));
        files
    }

    /// The newest version.
    pub fn version(&self) -> usize {
        let log = names(&self.dir.path().join("_delta_log"));
        log.iter().filter(|name| name.ends_with(".json")).count() - 1
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}
