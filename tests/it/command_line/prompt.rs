//! The prompt, in a terminal that `script` makes.

use std::io::Write;
use std::process::{Command, Stdio};

use super::Folder;

/// Types `lines`, and reads as many characters of the output as `head -c` is given.
fn type_until_nobody_reads(folder: &Folder, characters: usize, lines: &str) -> String {
    let command = format!(
        "'{}' sql --table '{}' | head -c {characters}",
        env!("CARGO_BIN_EXE_delta-disjoint"),
        folder.table()
    );
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        // A terminal without keys to move about.
        .env("TERM", "dumb")
        .env("DELTA_DISJOINT_HISTORY", folder.dir.path().join("history"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let mut keys = child.stdin.take().expect("stdin");
    keys.write_all(lines.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("ends");
    drop(keys);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_transaction_is_rolled_back_when_nobody_reads_any_more() {
    let folder = Folder::with_table("");
    let before = folder.files();
    let queries = "SELECT * FROM t;\n".repeat(50);
    let lines = format!("BEGIN; INSERT INTO t VALUES (3, 'c');\n{queries}\\q\n");
    // The greeting, the prompt and some of what the INSERT returns: what comes next meets the closed
    // pipe.
    let shown = type_until_nobody_reads(&folder, 60, &lines);
    assert!(shown.contains("1 row in"), "{shown}");
    let mut after = folder.files();
    after.remove("history");
    assert_eq!(after, before, "{shown}");
}

#[test]
fn inputs_with_secrets_are_not_remembered() {
    let folder = Folder::with_table("");
    let lines = "SELECT 'https://host/t?sv=1&sig=passw0rd';\n\
                 SELECT 's3://user:passw0rd@bucket/t';\n\
                 SELECT 'plain';\n\\q\n";
    type_until_nobody_reads(&folder, 100_000, lines);
    let history = std::fs::read_to_string(folder.dir.path().join("history")).expect("a history");
    assert!(history.contains("plain"), "{history}");
    assert!(!history.contains("passw0rd"), "{history}");
}
