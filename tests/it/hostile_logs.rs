//! Winners whose log entry is broken, huge or meant to do harm: an error that names the version, or
//! a conflict; never a commit beside something that was not understood, never a panic.

use delta_disjoint::commit::Verdict;
use delta_disjoint::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::support::Table;

/// Ids 0 to 99 in two files.
async fn hundred(clauses: &str) -> Table {
    Table::create(
        "id BIGINT, p BIGINT",
        clauses,
        &[
            "SELECT value AS id, 1 AS p FROM generate_series(0, 49)",
            "SELECT value AS id, 1 AS p FROM generate_series(50, 99)",
        ],
    )
    .await
}

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

/// What a DELETE of ids below 10 says to a winner with this entry.
#[derive(Debug, PartialEq)]
enum Answer {
    Committed,
    Conflict,
    /// An error of this kind that names the winner's version.
    Refused(ErrorKind),
}

async fn answer(template: &Table, entry: &[u8]) -> Answer {
    let table = Table::open(template.copy_folder()).await.expect("opens");
    let planned = table.plan("DELETE FROM t WHERE id < 10").await;
    let (version, _) = table.log();
    let version = version + 1;
    let entry_path = |version| format!("{}/_delta_log/{version:020}.json", table.path());
    std::fs::write(entry_path(version), entry).expect("write");
    let files = table.files_on_disk();
    let outcome = planned.run().await;
    let committed = std::path::Path::new(&entry_path(version + 1)).exists();
    assert_eq!(outcome.is_ok(), committed);
    assert_eq!(std::fs::read(entry_path(version)).expect("entry"), entry);
    match outcome {
        Ok(_) => Answer::Committed,
        Err(error) => {
            assert_eq!(table.files_on_disk(), files, "nothing is left behind");
            let found = Error::find(&error).expect("an error of ours");
            if Verdict::find(&error).is_some() {
                return Answer::Conflict;
            }
            assert!(
                found.message().contains(&format!("version {version}")),
                "{error}"
            );
            Answer::Refused(found.kind())
        }
    }
}

fn add(change: impl Fn(&mut Value)) -> String {
    let mut add = json!({
        "path": "c.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0,
        "dataChange": true,
        "stats": r#"{"numRecords":9,"minValues":{"id":1000},"maxValues":{"id":1009},"nullCount":{"id":0}}"#,
    });
    change(&mut add);
    json!({ "add": add }).to_string()
}

fn with_stats(stats: &str) -> String {
    add(|add| add["stats"] = stats.into())
}

#[tokio::test]
async fn broken_entry_is_an_error_that_names_its_version() {
    use Answer::{Committed, Conflict, Refused};
    const UNREADABLE: Answer = Refused(ErrorKind::Unavailable);
    let template = hundred(SERIALIZABLE).await;
    let sound = add(|_| {});
    let text = |text: &str| text.as_bytes().to_vec();
    let cases: Vec<(&str, Vec<u8>, Answer)> = vec![
        ("nothing wrong", text(&sound), Committed),
        (
            "blank lines",
            text(&format!("\n\n{sound}\r\n \n")),
            Committed,
        ),
        ("empty", vec![], Committed),
        ("malformed", text("{\"add\":"), UNREADABLE),
        ("no JSON", text("<html>404</html>"), UNREADABLE),
        (
            "truncated last line",
            text(&format!("{sound}\n{}", &sound[..sound.len() - 9])),
            UNREADABLE,
        ),
        ("a list", text("[]"), UNREADABLE),
        ("zeros", vec![0; 4096], UNREADABLE),
        (
            "no Unicode",
            text(&sound)
                .into_iter()
                .chain([b'\n', 0xFF, 0xFE])
                .collect(),
            UNREADABLE,
        ),
        (
            "byte order mark",
            [&[0xEF, 0xBB, 0xBF], sound.as_bytes()].concat(),
            UNREADABLE,
        ),
        (
            "two actions without a line between",
            text(&format!("{sound}{sound}")),
            UNREADABLE,
        ),
        (
            "unknown action",
            text(&format!("{sound}\n{}", r#"{"launch":{}}"#)),
            Conflict,
        ),
        (
            "repeated key in an action",
            text(&sound.replace(r#""size":1"#, r#""size":1,"size":2"#)),
            UNREADABLE,
        ),
        (
            "repeated path",
            text(&sound.replace(r#""size":1"#, r#""size":1,"path":"d""#)),
            UNREADABLE,
        ),
        (
            "number out of range",
            text(&sound.replace(r#""size":1"#, r#""size":1e30"#)),
            UNREADABLE,
        ),
        (
            "negative beyond range",
            text(&sound.replace(r#""size":1"#, r#""size":-99999999999999999999"#)),
            UNREADABLE,
        ),
        (
            "no partition values",
            text(&sound.replace(r#""partitionValues":{},"#, "")),
            UNREADABLE,
        ),
        (
            "partition values of a wrong type",
            text(&sound.replace(r#""partitionValues":{}"#, r#""partitionValues":[1]"#)),
            UNREADABLE,
        ),
        (
            "no path",
            text(&sound.replace(r#""path":"c.parquet","#, "")),
            UNREADABLE,
        ),
        (
            "path is NULL",
            text(&add(|add| add["path"] = Value::Null)),
            UNREADABLE,
        ),
        (
            "deletion vector of an unknown kind",
            text(&add(|add| {
                add["deletionVector"] = json!({"storageType": "q", "pathOrInlineDv": "", "sizeInBytes": 1, "cardinality": 1});
            })),
            UNREADABLE,
        ),
    ];
    for (name, entry, expected) in cases {
        assert_eq!(answer(&template, &entry).await, expected, "{name}");
    }
}

#[tokio::test]
async fn file_with_hostile_statistics_is_kept() {
    let template = hundred(SERIALIZABLE).await;
    let row = |rest: &str| format!(r#"{{"numRecords":9,{rest}}}"#);
    let far = r#""minValues":{"id":1000},"maxValues":{"id":1009}"#;
    // Name, statistics, and whether the file is skipped.
    let cases: Vec<(&str, String, bool)> = vec![
        ("sound", row(far), true),
        ("empty", String::new(), false),
        ("truncated", row(far)[..30].to_owned(), false),
        ("trailing text", format!("{} x", row(far)), false),
        (
            "repeated column",
            row(r#""minValues":{"id":1000,"id":5}"#),
            false,
        ),
        (
            "repeated key",
            row(&format!(r#"{far},"minValues":{{"id":5}}"#)),
            false,
        ),
        (
            "minimum above maximum",
            row(r#""minValues":{"id":1000},"maxValues":{"id":5}"#),
            false,
        ),
        (
            "minimum out of range",
            row(r#""minValues":{"id":99999999999999999999}"#),
            false,
        ),
        (
            "minimum with exponent",
            row(r#""minValues":{"id":1e3}"#),
            false,
        ),
        (
            "minimum as text",
            row(r#""minValues":{"id":"1000"}"#),
            false,
        ),
        (
            "more NULLs than rows",
            row(&format!(r#"{far},"nullCount":{{"id":10}}"#)),
            false,
        ),
        (
            "negative NULLs",
            row(&format!(r#"{far},"nullCount":{{"id":-1}}"#)),
            true,
        ),
        (
            "NULLs beyond any number",
            row(r#""nullCount":{"id":1e400}"#),
            false,
        ),
        (
            "no rows but bounds",
            r#"{"numRecords":0,"minValues":{"id":5}}"#.to_owned(),
            false,
        ),
        (
            "rows beyond any number",
            r#"{"numRecords":1e400}"#.to_owned(),
            false,
        ),
        (
            "half a surrogate pair",
            row(r#""minValues":{"\ud800":1}"#),
            false,
        ),
    ];
    for (name, stats, skipped) in cases {
        let expected = if skipped {
            Answer::Committed
        } else {
            Answer::Conflict
        };
        let entry = with_stats(&stats);
        assert_eq!(
            answer(&template, entry.as_bytes()).await,
            expected,
            "{name}: {stats}"
        );
    }
}

#[tokio::test]
async fn partition_values_that_are_absent_or_repeated_keep_the_file() {
    let clauses = format!("PARTITIONED BY (p) {SERIALIZABLE}");
    let template = hundred(&clauses).await;
    let none = "{}";
    let with = |values: &str| {
        add(|add| add["stats"] = none.into()).replace(
            r#""partitionValues":{}"#,
            &format!(r#""partitionValues":{values}"#),
        )
    };
    let delete = |entry: String| {
        let template = &template;
        async move {
            let table = Table::open(template.copy_folder()).await.expect("opens");
            let planned = table.plan("DELETE FROM t WHERE p = 1").await;
            let version = table.log().0 + 1;
            let path = format!("{}/_delta_log/{version:020}.json", table.path());
            std::fs::write(path, entry).expect("write");
            planned.run().await.is_ok()
        }
    };
    // The values, and whether the file is skipped.
    for (values, skipped) in [
        (r#"{"p":"2"}"#, true),
        (r#"{"p":"1"}"#, false),
        (r#"{"p":null}"#, true),
        ("{}", false),
        (r#"{"P":"2"}"#, false),
        (r#"{"p":"two"}"#, false),
        (r#"{"p":"99999999999999999999"}"#, false),
        (r#"{"p":"1","p":"2"}"#, false),
        (r#"{"p":"2","p":"1"}"#, false),
    ] {
        assert_eq!(delete(with(values)).await, skipped, "{values}");
    }
}

/// A path may be anything: the check opens no file.
#[tokio::test]
async fn path_that_climbs_out_of_the_table_is_judged_like_any_other_and_never_opened() {
    let template = hundred(SERIALIZABLE).await;
    let victim = tempfile::NamedTempFile::new().expect("file");
    let outside = victim.path().to_str().expect("utf-8").to_owned();
    let climbing = format!("../../../../../../..{outside}");
    for path in [
        outside.as_str(),
        climbing.as_str(),
        "%2e%2e/%2e%2e/etc/passwd",
        "file:///etc/passwd",
        "http://example.invalid/x",
        "c:\\x",
        "\u{0}",
        "",
        "_delta_log/00000000000000000000.json",
    ] {
        let far = add(|add| add["path"] = path.into());
        assert_eq!(
            answer(&template, far.as_bytes()).await,
            Answer::Committed,
            "{path}"
        );
        let unknown = add(|add| {
            add["path"] = path.into();
            add["stats"] = Value::Null;
        });
        assert_eq!(
            answer(&template, unknown.as_bytes()).await,
            Answer::Conflict,
            "{path}"
        );
        let remove = json!({"remove": {"path": path, "dataChange": true}}).to_string();
        assert_eq!(
            answer(&template, remove.as_bytes()).await,
            Answer::Committed,
            "{path}"
        );
    }
    assert!(victim.path().exists());
}

#[tokio::test]
async fn statistics_of_a_hundred_thousand_columns_are_read() {
    let template = hundred(SERIALIZABLE).await;
    let columns: Vec<String> = (0..100_000)
        .map(|column| format!(r#""c{column}":1"#))
        .collect();
    let columns = columns.join(",");
    for (id, expected) in [("1000", Answer::Committed), ("5", Answer::Conflict)] {
        let stats = format!(
            r#"{{"numRecords":9,"minValues":{{{columns},"id":{id}}},"maxValues":{{{columns}}},"nullCount":{{{columns}}}}}"#
        );
        assert_eq!(
            answer(&template, with_stats(&stats).as_bytes()).await,
            expected,
            "{id}"
        );
    }
}

/// 100 MiB, as one action and as many.
#[tokio::test]
async fn huge_entry_is_read_like_a_small_one() {
    const SIZE: usize = 100 << 20;
    let template = hundred(SERIALIZABLE).await;
    let padding = "x".repeat(SIZE);
    let far = add(|_| {});
    let info = format!(r#"{{"commitInfo":{{"operation":"WRITE","userMetadata":"{padding}"}}}}"#);
    let cases = [
        (
            "text in commitInfo",
            format!("{info}\n{far}"),
            Answer::Committed,
        ),
        (
            "one unknown action",
            format!("{far}\n{{\"launch\":\"{padding}\"}}"),
            Answer::Conflict,
        ),
        (
            "not a line of JSON",
            padding,
            Answer::Refused(ErrorKind::Unavailable),
        ),
    ];
    for (name, entry, expected) in cases {
        assert_eq!(
            answer(&template, entry.as_bytes()).await,
            expected,
            "{name}"
        );
    }
}
