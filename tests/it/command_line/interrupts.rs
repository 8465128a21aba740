//! Ctrl-C, sent as the signal that it is.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

use super::{Folder, Run, command};

/// Rows without an end.
const ENDLESS: &str =
    "SELECT value AS k, CAST(value AS VARCHAR) AS v FROM generate_series(1, 100000000000)";

/// A table whose files are complete after a few rows, so that they show while the statement runs.
fn small_files() -> Folder {
    Folder::with_table("OPTIONS ('delta.targetFileSize' '1')")
}

fn interrupt(child: &Child) {
    // The shell's own: not every machine has the program.
    let sent = Command::new("sh")
        .args(["-c", "kill -INT \"$0\"", &child.id().to_string()])
        .status()
        .expect("sh runs");
    assert!(sent.success());
}

/// Waits until the statement has written three files besides those of `before`.
fn wait_for_files(folder: &Folder, before: &BTreeSet<String>, child: &mut Child) {
    while folder.files().difference(before).count() < 3 {
        assert_eq!(child.try_wait().expect("asked"), None, "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ended(child: Child) -> Run {
    Run::of(child.wait_with_output().expect("ends"))
}

#[test]
fn a_change_leaves_the_table_as_it_was() {
    let folder = small_files();
    let before = folder.files();
    let insert = format!("INSERT INTO t {ENDLESS}");
    let cases = [
        vec![insert.clone()],
        vec![format!("INSERT OVERWRITE t {ENDLESS}")],
        vec![
            "BEGIN".to_owned(),
            "DELETE FROM t WHERE id = 1".to_owned(),
            insert,
        ],
        vec![format!(
            "MERGE INTO t USING ({ENDLESS}) AS s (k, v) ON t.id = s.k \
             WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.k, s.v)"
        )],
    ];
    // The source of a MERGE is read to its end before anything is written.
    let writes = |case: &[String]| !case.iter().any(|text| text.starts_with("MERGE"));
    for case in cases {
        let table = folder.table();
        let mut arguments = vec!["sql", "--table", &table];
        for text in &case {
            arguments.extend(["-c", text]);
        }
        if !writes(&case) {
            // Something to wait for before it.
            arguments.splice(3..3, ["-c", "SELECT 1"]);
        }
        let mut child = command(&arguments).spawn().expect("starts");
        if writes(&case) {
            wait_for_files(&folder, &before, &mut child);
        } else {
            let mut output = BufReader::new(child.stdout.as_mut().expect("stdout"));
            output.read_line(&mut String::new()).expect("a line");
        }
        interrupt(&child);
        let error = ended(child).failed(130);
        assert!(error.contains("interrupted"), "{error}");
        assert_eq!(folder.files(), before, "{case:?}");
    }
}

#[test]
fn a_query_stops() {
    let mut child = command(&[
        "sql",
        "--format",
        "csv",
        "-c",
        ENDLESS,
        "-c",
        "SELECT 'next'",
    ])
    .spawn()
    .expect("starts");
    let mut output = BufReader::new(child.stdout.take().expect("stdout"));
    output.read_line(&mut String::new()).expect("a line");
    // Read on, so that it is the signal that stops it.
    let reader = std::thread::spawn(move || {
        let mut last = String::new();
        for line in output.lines() {
            last = line.expect("a line");
        }
        last
    });
    interrupt(&child);
    let error = ended(child).failed(130);
    assert!(
        error.starts_with("statement 1 (-c number 1): interrupted"),
        "{error}"
    );
    assert_ne!(reader.join().expect("read"), "next");
}

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hold_it() {
    let folder = Folder::new();
    let pipe = folder.dir.path().join("pipe.sql");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.to_str().expect("utf-8");
    let mut child = command(&["sql", "-c", "SELECT 1", "-f", pipe])
        .spawn()
        .expect("starts");
    let mut output = BufReader::new(child.stdout.as_mut().expect("stdout"));
    output.read_line(&mut String::new()).expect("a line");
    interrupt(&child);
    let error = ended(child).failed(130);
    assert!(error.contains("interrupted"), "{error}");
}
