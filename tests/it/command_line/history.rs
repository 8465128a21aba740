//! `history`, on logs of any kind.

use super::{Folder, run};

const ADD: &str = r#"{"add":{"path":"a","partitionValues":{},"size":10,"modificationTime":0,"dataChange":true,"stats":"{\"numRecords\":3}"}}"#;
const ADD_WITHOUT_STATISTICS: &str =
    r#"{"add":{"path":"b","partitionValues":{},"size":5,"modificationTime":0,"dataChange":true}}"#;
const REMOVE: &str = r#"{"remove":{"path":"a","dataChange":true}}"#;

/// A log of these entries by version.
fn log(entries: &[(u64, &[&str])]) -> Folder {
    let folder = Folder::new();
    let log = folder.dir.path().join("_delta_log");
    std::fs::create_dir(&log).expect("made");
    for (version, lines) in entries {
        let name = format!("{version:020}.json");
        std::fs::write(log.join(name), lines.join("\n")).expect("written");
    }
    folder
}

fn csv(folder: &Folder, arguments: &[&str]) -> String {
    let path = folder.path();
    let mut all = vec!["history", &path, "--format", "csv"];
    all.extend(arguments);
    run(&all).worked()
}

#[test]
fn our_own_versions_are_told_newest_first() {
    let folder = Folder::with_table("");
    folder
        .sql(&["-c", "UPDATE t SET s = 'x' WHERE id = 1; DELETE FROM t"])
        .worked();
    let text = csv(&folder, &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    // Without the times and sizes, which vary.
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let columns: Vec<&str> = line.split(',').collect();
            [&columns[..1], &columns[2..9], &columns[10..]]
                .concat()
                .join(",")
        })
        .collect();
    let engine = concat!("delta-disjoint/", env!("CARGO_PKG_VERSION"));
    let expected = [
        "version,operation,read_version,isolation_level,is_blind_append,files_added,files_removed,rows_added,engine".to_owned(),
        format!("3,DELETE,2,WriteSerializable,false,0,1,0,{engine}"),
        format!("2,UPDATE,1,WriteSerializable,false,1,1,2,{engine}"),
        format!("1,WRITE,0,WriteSerializable,true,1,0,2,{engine}"),
        format!("0,CREATE TABLE,,,true,0,0,0,{engine}"),
    ];
    assert_eq!(told, expected);
    assert_eq!(csv(&folder, &["--limit", "1"]).lines().count(), 2);
    assert_eq!(csv(&folder, &["--limit", "0"]).lines().count(), 1);
}

#[test]
fn what_is_missing_is_null_and_cleaned_up_versions_are_left_out() {
    let folder = log(&[
        (7, &[ADD]),
        (
            8,
            &[
                r#"{"commitInfo":{"operation":"WRITE","timestamp":1000,"inCommitTimestamp":2000,"isBlindAppend":"yes","readVersion":-1}}"#,
                ADD,
                ADD_WITHOUT_STATISTICS,
            ],
        ),
        (9, &["", r#"{"commitInfo":7}"#, REMOVE, ""]),
        (
            10,
            &[
                r#"{"commitInfo":{"timestamp":"soon","isBlindAppend":true,"isolationLevel":"Serializable","engineInfo":"x, y"}}"#,
            ],
        ),
    ]);
    // Not commit entries of the table.
    let log = folder.dir.path().join("_delta_log");
    std::fs::create_dir(log.join("_staged_commits")).expect("made");
    for name in [
        "_staged_commits/00000000000000000011.json",
        "00000000000000000009.checkpoint.parquet",
        "00000000000000000010.crc",
        "000.json",
        "_last_checkpoint",
    ] {
        std::fs::write(log.join(name), "{").expect("written");
    }
    let expected = "\
        version,timestamp,operation,read_version,isolation_level,is_blind_append,files_added,files_removed,rows_added,bytes_added,engine\n\
        10,,,,Serializable,true,0,0,0,0,\"x, y\"\n\
        9,,,,,,0,1,0,0,\n\
        8,1970-01-01T00:00:02Z,WRITE,,,,2,0,,15,\n\
        7,,,,,,1,0,3,10,\n";
    assert_eq!(csv(&folder, &[]), expected);
}

#[test]
fn json_has_all_that_the_writer_said() {
    let folder = log(&[(
        0,
        &[
            r#"{"commitInfo":{"operation":"WRITE","operationParameters":{"mode":"Append"},"operationMetrics":{"numOutputRows":"3"}}}"#,
            ADD,
        ],
    )]);
    let entry = serde_json::json!({
        "version": 0, "timestamp": null, "operation": "WRITE",
        "operation_parameters": {"mode": "Append"}, "isolation_level": null, "is_blind_append": null,
        "read_version": null, "files_added": 1, "files_removed": 0, "bytes_added": 10,
        "rows_added": 3, "is_data_change": true, "operation_metrics": {"numOutputRows": "3"},
        "engine": null,
    });
    for (format, expected) in [
        ("json", serde_json::json!([entry])),
        ("ndjson", entry.clone()),
    ] {
        let out = run(&["history", &folder.path(), "--format", format]).worked();
        let told: serde_json::Value = serde_json::from_str(&out).expect("json");
        assert_eq!(told, expected, "{format}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_named_by_its_version() {
    let deep = format!("{{\"add\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let hostile = ["{", "[1]", r#"{"add":{"path":1}}"#, "\u{0}", deep.as_str()];
    for entry in hostile {
        let folder = log(&[(0, &[ADD]), (1, &[entry]), (2, &[ADD])]);
        let error = run(&["history", &folder.path()]).failed(1);
        assert!(
            error.contains("version 1 of the log cannot be read"),
            "{error}"
        );
        // What is newer can be told.
        assert_eq!(csv(&folder, &["--limit", "1"]).lines().count(), 2);
    }
}

#[test]
fn no_table_is_no_empty_history() {
    let folder = Folder::new();
    let path = folder.path();
    for location in [path.clone(), format!("{path}/none")] {
        let error = run(&["history", &location]).failed(1);
        assert!(error.contains(&location), "{error}");
    }
}

#[test]
fn a_time_that_no_calendar_has_is_null() {
    let odd = format!(r#"{{"commitInfo":{{"timestamp":{}}}}}"#, i64::MAX);
    let oddest = format!(r#"{{"commitInfo":{{"timestamp":{}}}}}"#, i64::MIN);
    let even = r#"{"commitInfo":{"timestamp":1000}}"#;
    let folder = log(&[(0, &[even]), (1, &[&odd]), (2, &[&oddest])]);
    let text = csv(&folder, &[]);
    let times: Vec<_> = text.lines().map(|line| line.split(',').nth(1)).collect();
    let expected = ["timestamp", "", "", "1970-01-01T00:00:01Z"].map(Some);
    assert_eq!(times, expected);
    let table = run(&["history", &folder.path()]).worked();
    assert_eq!(table.matches("ERROR").count(), 0, "{table}");
    let json = run(&["history", &folder.path(), "--format", "json"]).worked();
    let json: serde_json::Value = serde_json::from_str(&json).expect("json");
    assert_eq!(json[1]["timestamp"], i64::MAX);
}

#[test]
fn columns_have_the_names_that_they_have_in_json() {
    let folder = log(&[(0, &[ADD])]);
    let json = run(&["history", &folder.path(), "--format", "ndjson"]).worked();
    let json: serde_json::Value = serde_json::from_str(&json).expect("json");
    let text = csv(&folder, &[]);
    for name in text.lines().next().expect("a header").split(',') {
        assert!(json.get(name).is_some(), "{name}");
    }
}

#[test]
fn what_the_log_says_does_not_steer_the_terminal() {
    let entry = serde_json::json!({"commitInfo": {
        "operation": "WRITE\u{1b}[2J\nx", "engineInfo": "y\r", "isolationLevel": "\u{7}",
    }});
    let folder = log(&[(0, &[&entry.to_string()])]);
    let table = run(&["history", &folder.path()]).worked();
    for shown in [r"WRITE\u{1b}[2J\nx", r"y\r", r"\u{7}"] {
        assert!(table.contains(shown), "{table}");
    }
    let steers = |c: char| c.is_control() && c != '\n';
    assert!(!table.contains(steers), "{table:?}");
    assert_eq!(table.lines().count(), 5, "{table}");
    // Messages too.
    let entry = r#"{"commitInfo":{"operation":"WRITE"}}{"add":{"path":"a\u001b[2J"}}"#;
    let folder = log(&[(0, &[entry])]);
    let error = run(&["history", &folder.path()]).failed(1);
    assert!(!error.contains(steers), "{error:?}");
}
