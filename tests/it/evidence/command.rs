//! `delta-disjoint explain`: output, exit status and refusals.

use std::process::{Command, Output};

use serde_json::Value;

use super::log::{Log, add};

fn explain(log: &Log, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_delta-disjoint"))
        .arg("explain")
        .arg(log.path())
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn with_winner() -> Log {
    let mut log = Log::serializable(false);
    log.commit(&[add("near", 30, 60)]);
    log
}

#[test]
fn the_exit_status_is_the_verdict() {
    let log = with_winner();
    let cases: [(&[&str], i32); 10] = [
        (&["--read-version", "1"], 0),
        (&["--read-version", "1", "--where", "id < 50"], 1),
        (&["--read-version", "1", "--where", "id < 20"], 0),
        (
            &[
                "--read-version",
                "1",
                "--where",
                "id < 20",
                "--where",
                "id = 40",
            ],
            1,
        ),
        (
            &["--read-version", "1", "--where", "id < 20", "--whole-table"],
            1,
        ),
        (
            &[
                "--read-version",
                "1",
                "--where",
                "id < 20",
                "--no-data-skipping",
            ],
            1,
        ),
        (
            &[
                "--read-version",
                "1",
                "--where",
                "id < 50",
                "--to-version",
                "1",
            ],
            0,
        ),
        (&["--read-version", "2", "--whole-table"], 0),
        (&["--read-version", "1", "--removes", "a"], 1),
        (
            &[
                "--read-version",
                "1",
                "--removes",
                "a",
                "--where",
                "id < 20",
                "--isolation",
                "write-serializable",
            ],
            0,
        ),
    ];
    for (arguments, expected) in cases {
        let output = explain(&log, arguments);
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{arguments:?}: {output:?}"
        );
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
        let first = if expected == 0 {
            "commit: "
        } else {
            "conflict: "
        };
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.starts_with(first), "{arguments:?}: {text}");
    }
}

#[test]
fn json_is_the_verdict_as_documented() {
    let log = with_winner();
    let output = explain(
        &log,
        &[
            "--read-version",
            "1",
            "--where",
            "id < 50",
            "--format",
            "json",
        ],
    );
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["verdict"], "conflict");
    assert_eq!(
        (&json["read_version"], &json["to_version"]),
        (&1.into(), &2.into())
    );
    let conflict = &json["conflicts"][0];
    assert_eq!(conflict["kind"], "ConcurrentAppend");
    assert_eq!(conflict["path"], "near");
    assert_eq!(conflict["read"], "id < 50");
    assert_eq!(conflict["reason"], "bounds-overlap");
    let evidence = &json["evidence"][0];
    assert_eq!(evidence["change"], "added");
    assert_eq!(evidence["decision"], "kept");
    assert_eq!(evidence["by"], "statistics");
    assert_eq!(json["files"]["kept"], 1);
    assert_eq!(json["advice"][0]["column"], "id");
}

#[test]
fn text_is_for_people() {
    let log = with_winner();
    let output = explain(&log, &["--read-version", "1", "--where", "id < 50"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(
        text,
        "conflict: read version 1, winner 2, checked as Serializable\n\
         added files tested: 1, kept: 1, skipped: 0\n\
         conflicts:\n  \
           - ConcurrentAppend with version 2 (TEST by Hand/1.0), file near, read (id < 50): \
               id < 50 may match, file has id from 30 to 60 (bounds-overlap)\n\
         evidence:\n  \
           - version 2 (TEST), added file near, read (id < 50): kept, id < 50 may match, \
               file has id from 30 to 60 (bounds-overlap)\n\
         advice:\n  \
           - cluster or partition the table by id, so that such writers touch other files\n  \
           - run it again on version 2\n"
    );
}

#[test]
fn what_cannot_be_asked_is_refused_with_status_2() {
    let log = with_winner();
    let cases: [(&[&str], &str); 9] = [
        (&[], "--read-version"),
        (&["--read-version", "9"], "no version 9; its newest is 2"),
        (
            &["--read-version", "1", "--to-version", "9"],
            "no version 9",
        ),
        (
            &["--read-version", "2", "--to-version", "1"],
            "before version 2",
        ),
        (&["--read-version", "1", "--where", "id <"], "id <"),
        (
            &["--read-version", "1", "--where", "nonsense = 1"],
            "nonsense",
        ),
        (&["--read-version", "1", "--where", "id + 1"], "id + 1"),
        (
            &["--read-version", "1", "--where", "id < 5 LIMIT 1"],
            "cannot be planned",
        ),
        (
            &["--read-version", "1", "--removes", "zzz"],
            "zzz is not live in version 1",
        ),
    ];
    for (arguments, expected) in cases {
        let output = explain(&log, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    let nowhere = Command::new(env!("CARGO_BIN_EXE_delta-disjoint"))
        .args(["explain", "/nowhere/at/all", "--read-version", "0"])
        .output()
        .expect("the command runs");
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn no_failure_has_the_exit_status_of_a_conflict() {
    let log = with_winner();
    for condition in ["id < 50", "id < 20"] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_delta-disjoint"))
            .args(["explain", &log.path(), "--read-version", "1"])
            .args(["--where", condition])
            .stdout(full.expect("a full device"))
            .output()
            .expect("the command runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{condition}: {error}");
        assert!(error.contains("cannot be written"), "{error}");
    }
}

#[test]
fn what_the_log_says_does_not_steer_the_terminal() {
    let mut log = Log::serializable(false);
    log.commit(&[
        serde_json::json!({"commitInfo": {
            "operation": "WRITE\u{1b}[2J\ncommit: all is well",
            "engineInfo": "x\r\u{202e}y",
        }}),
        add("near", 30, 60),
    ]);
    let output = explain(&log, &["--read-version", "1", "--where", "id < 50"]);
    let text = String::from_utf8(output.stdout).expect("utf-8");
    assert!(
        text.contains(r"(WRITE\u{1b}[2J\ncommit: all is well by x\r\u{202e}y)"),
        "{text}"
    );
    let is_steering = |c: char| c == '\u{1b}' || c == '\r' || c == '\u{202e}';
    assert!(!text.contains(is_steering), "{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("commit")),
        "{text}"
    );
    // JSON has escapes of its own and tells what the log says.
    let arguments = ["--read-version", "1", "--whole-table", "--format", "json"];
    let json = explain(&log, &arguments).stdout;
    let json: Value = serde_json::from_slice(&json).expect("json");
    assert_eq!(json["conflicts"][0]["engine"], "x\r\u{202e}y");
}
