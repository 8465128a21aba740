//! `sql` without a terminal: where statements come from, how results look, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use super::{Folder, command, run, run_with_stdin};

#[test]
fn every_format_shows_values_nulls_and_nested_values() {
    let folder = Folder::with_table("");
    let query = "SELECT id, s, [id] AS l FROM t ORDER BY id";
    let cases = [
        (
            "table",
            "+----+------+-----+\n\
             | id | s    | l   |\n\
             +----+------+-----+\n\
             | 1  | a;b  | [1] |\n\
             | 2  | NULL | [2] |\n\
             +----+------+-----+\n",
        ),
        ("csv", "id,s,l\n1,a;b,[1]\n2,,[2]\n"),
        (
            "json",
            "[{\"id\":1,\"s\":\"a;b\",\"l\":[1]},{\"id\":2,\"s\":null,\"l\":[2]}]\n",
        ),
        (
            "ndjson",
            "{\"id\":1,\"s\":\"a;b\",\"l\":[1]}\n{\"id\":2,\"s\":null,\"l\":[2]}\n",
        ),
    ];
    for (format, expected) in cases {
        let out = folder.sql(&["--format", format, "-c", query]).worked();
        assert_eq!(out, expected, "{format}");
    }
}

#[test]
fn a_result_without_rows_still_has_its_form() {
    let query = "SELECT 1 AS a, 'x' AS b WHERE false";
    let cases = [
        ("table", "+---+---+\n| a | b |\n+---+---+\n+---+---+\n"),
        ("csv", "a,b\n"),
        ("json", "[]\n"),
        ("ndjson", ""),
    ];
    for (format, expected) in cases {
        let out = run(&["sql", "--format", format, "-c", query]).worked();
        assert_eq!(out, expected, "{format}");
    }
}

#[test]
fn results_follow_one_another_and_statements_without_one_print_nothing() {
    let texts = "SET datafusion.execution.batch_size = 100; SELECT 1 AS a;; SELECT 2 AS b; -- end";
    let out = run(&["sql", "--format", "csv", "-c", texts, "-c", "SELECT 3 AS c"]).worked();
    assert_eq!(out, "a\n1\nb\n2\nc\n3\n");
}

#[test]
fn texts_and_files_run_in_the_order_given() {
    let folder = Folder::new();
    let file = folder.dir.path().join("two.sql");
    // As some editors write it: with a mark in front, and a last statement without an end.
    std::fs::write(&file, "\u{feff}SELECT 2 AS b;\nSELECT ';' AS c -- ;").expect("written");
    let file = file.to_str().expect("utf-8");
    let arguments = [
        "sql",
        "--format",
        "csv",
        "-c",
        "SELECT 1 AS a",
        "-f",
        file,
        "--command=SELECT 4 AS d",
        "-f",
        "-",
    ];
    let out = run_with_stdin(&arguments, "SELECT 5 AS e").worked();
    assert_eq!(out, "a\n1\nb\n2\nc\n;\nd\n4\ne\n5\n");
}

#[test]
fn the_first_failure_ends_the_run_and_says_where() {
    let folder = Folder::with_table("");
    let file = folder.dir.path().join("bad.sql");
    std::fs::write(
        &file,
        "SELECT 1 AS a;\n\nSELECT * FROM nowhere;\nSELECT 2 AS b;\n",
    )
    .expect("written");
    let file = file.to_str().expect("utf-8");
    let cases = [
        (
            vec![
                "-c",
                "SELECT 1 AS a",
                "-c",
                "SELECT * FROM nowhere; SELECT 2 AS b",
            ],
            "statement 2 (-c number 2): ".to_owned(),
        ),
        (vec!["-f", file], format!("statement 2 ({file}:3): ")),
        (
            vec!["-c", "SELECT 1 AS a; SELECT 'open"],
            "statement 2 (-c number 1): ".to_owned(),
        ),
    ];
    for (arguments, expected) in cases {
        let mut all = vec!["sql", "--format", "csv"];
        all.extend(arguments);
        let ended = run(&all);
        assert_eq!(ended.out, "a\n1\n", "{expected}");
        let error = ended.failed(1);
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn stdin_is_run_and_ends_with_the_first_failure() {
    let arguments = ["sql", "--format", "csv"];
    let out = run_with_stdin(
        &arguments,
        "SELECT 'a\n;' AS a; SELECT\n1 AS b;\nSELECT 2 AS c",
    );
    assert_eq!(out.worked(), "a\n\"a\n;\"\nb\n1\nc\n2\n");
    assert_eq!(run_with_stdin(&arguments, "").worked(), "");
    let ended = run_with_stdin(
        &arguments,
        "SELECT 1 AS a;\n\nSELECT\n* FROM nowhere; SELECT 2;\n",
    );
    assert_eq!(ended.out, "a\n1\n");
    let error = ended.failed(1);
    assert!(error.starts_with("statement 2 (stdin:3): "), "{error}");
    let error = run_with_stdin(&arguments, "SELECT 1 AS a;\nSELECT 1 +\n").failed(1);
    assert!(error.starts_with("statement 2 (stdin:2): "), "{error}");
}

#[test]
fn the_dialect_holds_from_the_statement_that_sets_it() {
    // In MySQL, `#` begins a comment.
    let text =
        "SET datafusion.sql_parser.dialect = 'MySQL'; SELECT 1 AS a # ; nothing\n;SELECT 2 AS b";
    let out = run(&["sql", "--format", "csv", "-c", text]).worked();
    assert_eq!(out, "a\n1\nb\n2\n");
}

#[test]
fn transactions_reach_over_the_statements_of_a_run() {
    let folder = Folder::with_table("");
    let count = "SELECT count(*) AS n FROM t";
    let csv = ["--format", "csv"];
    let sql = |statements: &[&str]| {
        let mut arguments = csv.to_vec();
        for statement in statements {
            arguments.extend(["-c", statement]);
        }
        folder.sql(&arguments)
    };
    let before = folder.files();

    let rolled_back = sql(&[
        "BEGIN",
        "DELETE FROM t WHERE id = 1",
        count,
        "ROLLBACK",
        count,
    ]);
    assert_eq!(rolled_back.worked(), "count\n1\nn\n1\nn\n2\n");
    assert_eq!(folder.files(), before);

    let open = sql(&["BEGIN; DELETE FROM t WHERE id = 1"]);
    let error = open.failed(1);
    assert!(
        error.contains("was still open at the end and was rolled back"),
        "{error}"
    );
    assert_eq!(folder.files(), before);

    let failed = sql(&["BEGIN; INSERT INTO t VALUES (3, 'c'); SELECT * FROM nowhere; COMMIT"]);
    let error = failed.failed(1);
    assert!(
        error.ends_with("the open transaction was rolled back\n"),
        "{error}"
    );
    assert_eq!(folder.files(), before);

    let done = sql(&[
        "BEGIN; DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (3, 'c'); COMMIT",
        count,
    ]);
    assert_eq!(done.worked(), "count\n1\ncount\n1\nn\n2\n");
    assert_eq!(folder.version(), 2);
}

#[test]
fn a_conflict_ends_the_run_with_its_statement() {
    let folder = Folder::with_table("");
    let mut first = command(&["sql", "--format", "csv", "--table", &folder.table()])
        .stdin(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = first.stdin.take().expect("stdin");
    let mut output = BufReader::new(first.stdout.take().expect("stdout"));
    input
        .write_all(b"BEGIN;\nUPDATE t SET s = 'first' WHERE id = 1;\n")
        .expect("written");
    // It has run once its result is there, though stdin is still open.
    let mut line = String::new();
    for expected in ["count\n", "1\n"] {
        line.clear();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, expected);
    }
    let second = "UPDATE t SET s = 'second' WHERE id = 1";
    folder.sql(&["-c", second]).worked();
    input.write_all(b"COMMIT;\n").expect("written");
    drop(input);
    let mut error = String::new();
    let mut errors = first.stderr.take().expect("stderr");
    errors.read_to_string(&mut error).expect("read");
    assert_eq!(first.wait().expect("ends").code(), Some(1), "{error}");
    assert!(
        error.starts_with("statement 3 (stdin:3): conflict: "),
        "{error}"
    );
    let query = "SELECT s FROM t WHERE id = 1";
    let out = folder.sql(&["--format", "csv", "-c", query]).worked();
    assert_eq!(out, "s\nsecond\n");
}

#[test]
fn tables_have_any_name_and_lie_anywhere() {
    let folder = Folder::new();
    let odd = folder.dir.path().join("it's a \"table\"");
    let location = odd.to_str().expect("utf-8").replace('\'', "''");
    let create = format!(
        "CREATE EXTERNAL TABLE \"Customer ID\" (x BIGINT) STORED AS DELTA LOCATION '{location}'; \
         INSERT INTO \"Customer ID\" VALUES (7)"
    );
    run(&["sql", "-c", &create]).worked();
    let query = "SELECT x FROM \"Customer \"\"ID\"";
    for location in [odd.to_str().expect("utf-8"), "it's a \"table\""] {
        let table = format!("Customer \"ID={location}");
        let out = command(&["sql", "--format", "csv", "--table", &table, "-c", query])
            .current_dir(folder.dir.path())
            .output()
            .expect("runs");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "x\n7\n", "{location}");
    }
}

#[test]
fn a_table_that_is_not_there_is_named() {
    let folder = Folder::new();
    let path = folder.path();
    let cases = [
        (
            format!("t={path}"),
            1,
            "table t: invalid: there is no Delta table at ",
        ),
        (
            format!("t={path}/none"),
            1,
            "table t: invalid: there is no Delta table at ",
        ),
        (
            "t=gs://bucket/t".to_owned(),
            1,
            "table t: invalid: no object store in this build serves gs:// (there is file, memory); \
             build delta-disjoint with the feature gcs",
        ),
        ("t".to_owned(), 2, "--table t: expected NAME=LOCATION"),
        ("=x".to_owned(), 2, "--table =x: expected NAME=LOCATION"),
    ];
    for (table, code, expected) in cases {
        let error = run(&["sql", "--table", &table, "-c", "SELECT 1"]).failed(code);
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(
        super::names(folder.dir.path()).is_empty(),
        "nothing was made"
    );
}

#[test]
fn wrong_arguments_are_told_apart_from_failures() {
    for arguments in [
        vec!["sql", "--format", "xml", "-c", "SELECT 1"],
        vec!["sql", "SELECT 1"],
        vec!["sql", "-f", "/nowhere/at.all"],
        vec!["history"],
        vec!["nothing"],
        vec![],
    ] {
        let ended = run(&arguments);
        assert_eq!(ended.out, "", "{arguments:?}");
        assert!(!ended.failed(2).is_empty(), "{arguments:?}");
    }
}

#[test]
fn nobody_reading_is_no_panic() {
    let endless = "SELECT value FROM generate_series(1, 100000000000)";
    for format in ["csv", "ndjson", "json"] {
        let mut child = command(&["sql", "--format", format, "-c", endless])
            .spawn()
            .expect("starts");
        let mut output = BufReader::new(child.stdout.take().expect("stdout"));
        let mut some = [0; 10];
        output.read_exact(&mut some).expect("read");
        drop(output);
        let ended = super::Run::of(child.wait_with_output().expect("ends"));
        assert_eq!(ended.failed(141), "", "{format}");
    }
}

#[test]
fn the_demonstration_shows_what_it_says_and_leaves_nothing() {
    let folder = Folder::new();
    let ended = command(&["demo"])
        .env("TMPDIR", folder.dir.path())
        .output()
        .expect("runs");
    let out = super::Run::of(ended).worked();
    let end = "Disjoint writers that committed: 2 of 2 with statistics, 1 of 2 without. 3900 orders \
               are left.\n";
    assert!(out.ends_with(end), "{out}");
    assert_eq!(
        out.matches("did not commit: conflict: ").count(),
        2,
        "{out}"
    );
    assert!(super::names(folder.dir.path()).is_empty());
}

#[test]
fn a_file_that_cannot_be_read_fails_before_anything_is_done() {
    let folder = Folder::with_table("");
    let before = folder.version();
    let insert = "INSERT INTO t VALUES (3, 'c')";
    let directory = folder.path();
    for file in ["missing.sql", directory.as_str()] {
        let error = folder.sql(&["-c", insert, "-f", file]).failed(2);
        assert!(error.contains("cannot be read"), "{error}");
        assert_eq!(folder.version(), before, "{file}");
    }
}
