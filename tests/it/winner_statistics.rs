//! What a winner's statistics decide, type by type: a loser that reads one range, a winner whose
//! log entry is made by hand, and whether the two conflict.

use delta_disjoint::commit::ConflictKind;
use deltalake::checkpoints::create_checkpoint;
use serde_json::{Value, json};

use crate::support::{Planned, Table, conflict_of, open, rows};

/// A condition and whether the winner's file is skipped.
type Case<'c> = (&'c str, bool);

/// One row, so that a table is there.
const ONE_ROW: &str = "VALUES (1, NULL)";

async fn skipped(planned: Planned) -> bool {
    match planned.run().await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(
                conflict_of(&error),
                ConflictKind::ConcurrentAppend,
                "{error}"
            );
            false
        }
    }
}

/// The table of one statement, all of whose rows pass, so that it changes something.
async fn table(data_type: &str) -> Table {
    Table::create(
        &format!("id BIGINT, x {data_type}"),
        "OPTIONS ('delta.isolationLevel' 'Serializable')",
        &[ONE_ROW],
    )
    .await
}

fn winner(stats: &Value) -> Value {
    json!({"add": {"path": "hand-made.parquet", "partitionValues": {}, "size": 1,
        "modificationTime": 0, "dataChange": true, "stats": stats.to_string()}})
}

/// Statements that read `id = 1` or the condition, against a winner with these bounds of `x`.
async fn check(data_type: &str, min: Value, max: Value, cases: &[Case<'_>]) {
    let stats = json!({"numRecords": 3, "minValues": {"id": 100, "x": min},
        "maxValues": {"id": 101, "x": max}, "nullCount": {"id": 0, "x": 0}});
    for (condition, expected) in cases {
        let table = table(data_type).await;
        let planned = table
            .plan(&format!("DELETE FROM t WHERE id = 1 OR ({condition})"))
            .await;
        table.put_entry(&[winner(&stats)]).await;
        assert_eq!(
            skipped(planned).await,
            *expected,
            "{data_type}: {condition}"
        );
    }
}

#[tokio::test]
async fn strings_longer_than_their_prefix() {
    let a32 = "a".repeat(32);
    let beyond = format!("x >= '{a32}\u{1F33C}'");
    check(
        "VARCHAR",
        json!("a"),
        json!(format!("{a32}\u{7F}")),
        &[(&beyond, false), ("x >= 'b'", true), ("x < 'a'", true)],
    )
    .await;
    check(
        "VARCHAR",
        json!("apple"),
        json!("banana"),
        &[
            ("x LIKE 'ap%'", false),
            ("x LIKE 'xyz%'", true),
            ("x LIKE '%x'", false),
            ("x NOT LIKE 'ap%'", false),
            ("x LIKE '%'", false),
            ("length(x) > 50", false),
        ],
    )
    .await;
}

#[tokio::test]
async fn timestamps_with_any_offset() {
    for (stored, cases) in [
        (
            "2020-06-01T12:00:00.000-07:00",
            [
                ("x < '2020-06-01T19:00:00Z'", true),
                ("x = '2020-06-01T19:00:00Z'", false),
            ],
        ),
        // Stockholm's offset of 53 minutes and 28 seconds, cut.
        (
            "1850-01-01T00:53:28.000+00:53",
            [
                ("x = '1850-01-01T00:00:00Z'", false),
                ("x > '1850-01-01T00:02:00Z'", true),
            ],
        ),
        (
            "2020-06-01T12:00:00.123Z",
            [
                ("x > '2020-06-01T12:00:00.1235Z'", false),
                ("x > '2020-06-01T12:00:00.125Z'", true),
            ],
        ),
    ] {
        check(
            "TIMESTAMP WITH TIME ZONE",
            json!(stored),
            json!(stored),
            &cases,
        )
        .await;
    }
}

#[tokio::test]
async fn floats_that_hide_nan_and_signs() {
    check(
        "DOUBLE",
        json!(0.0),
        json!(1.0),
        &[
            ("x > 5", false),
            ("x < 0.0", false),
            ("x = 5", true),
            ("x > 5 AND x < 9", true),
            ("x <> 1", false),
        ],
    )
    .await;
    check(
        "REAL",
        json!(0.1),
        json!(0.1),
        &[
            // As a double the value is 0.100000001490116.
            ("x = 0.1", true),
            ("x = 0.10000000149011612", false),
            ("x = CAST('0.1' AS REAL)", false),
            ("x BETWEEN 0.2 AND 0.3", true),
        ],
    )
    .await;
    check(
        "DOUBLE",
        json!("-Infinity"),
        json!("Infinity"),
        &[("x = 1e300", false), ("x > 1 AND x < 2", false)],
    )
    .await;
}

#[tokio::test]
async fn booleans_and_binary_and_what_is_computed() {
    check(
        "BOOLEAN",
        json!(true),
        json!(true),
        &[
            ("NOT x", false),
            ("x = false", false),
            ("x", false),
            ("x IS NULL", true),
        ],
    )
    .await;
    check(
        "BYTEA",
        json!("a"),
        json!("b"),
        &[("x > X'ff'", false), ("x IS NULL", true)],
    )
    .await;
    check(
        "BIGINT",
        json!(10),
        json!(20),
        &[
            ("x + 1 = 3", false),
            // DataFusion plans `x = 3`.
            ("CAST(x AS VARCHAR) = '3'", true),
            ("CAST(x AS VARCHAR) = '13'", false),
            ("CAST(x AS VARCHAR) LIKE '3%'", false),
            ("x % 2 = 1", false),
            ("x < id", false),
            ("x < 1 AND id % 100 > 20", true),
            ("x < 1 OR id % 100 > 20", false),
            ("NOT (x >= 10 AND id <= 200)", true),
            ("NOT (x IN (10, 20))", false),
            // A condition with a volatile part is not offered to the scan: the whole table is read.
            ("random() < 0.5", false),
            ("x < 10 AND random() < 0.5", false),
            ("x < (SELECT min(id) FROM t)", false),
        ],
    )
    .await;
    // One value in the whole file.
    check(
        "BIGINT",
        json!(10),
        json!(10),
        &[
            ("x + 1 = 3", true),
            ("x % 2 = 0", false),
            ("CAST(x AS VARCHAR) = '3'", true),
        ],
    )
    .await;
}

#[tokio::test]
async fn fields_of_structs() {
    let stats = |from: i64| {
        json!({"numRecords": 2, "minValues": {"s": {"a": from, "b.c": {"d": from}}},
            "maxValues": {"s": {"a": from + 9, "b.c": {"d": from + 9}}},
            "nullCount": {"s": {"a": 0, "b.c": {"d": 1}}}})
    };
    for (condition, expected) in [
        ("s['a'] < 100", true),
        ("s['a'] < 501", false),
        ("t.s.a < 100", true),
        ("s['b.c']['d'] < 100", true),
        ("s['b.c']['d'] < 501", false),
        ("s['a'] < 100 OR s['a'] IS NULL", true),
        ("s['a'] < 100 OR s['b.c']['d'] IS NULL", false),
        ("s IS NULL OR s['a'] < 100", false),
    ] {
        let table = Table::create(
            "id BIGINT, s STRUCT<a BIGINT, \"b.c\" STRUCT<d BIGINT>>",
            "OPTIONS ('delta.isolationLevel' 'Serializable')",
            &["VALUES (1, named_struct('a', 5, 'b.c', named_struct('d', 7)))"],
        )
        .await;
        let planned = table
            .plan(&format!("DELETE FROM t WHERE {condition}"))
            .await;
        table.put_entry(&[winner(&stats(500))]).await;
        assert_eq!(skipped(planned).await, expected, "{condition}");
    }
}

/// Statistics that this crate writes about fields of structs let two statements pass each other.
#[tokio::test]
async fn statements_on_fields_of_structs_pass_each_other() {
    let table = Table::create(
        "s STRUCT<a BIGINT>",
        "OPTIONS ('delta.isolationLevel' 'Serializable')",
        &[
            "SELECT named_struct('a', value) FROM generate_series(0, 9)",
            "SELECT named_struct('a', value) FROM generate_series(500, 509)",
        ],
    )
    .await;
    let low = table.plan("DELETE FROM t WHERE s['a'] < 5").await;
    let high = table.plan("DELETE FROM t WHERE s['a'] > 505").await;
    let both = table.plan("DELETE FROM t WHERE s['a'] IN (7, 507)").await;
    assert_eq!(low.count().await, 5);
    assert_eq!(high.count().await, 4);
    assert!(!skipped(both).await);
    assert_eq!(
        table.rows("SELECT count(*), sum(s['a']) FROM t").await,
        ["11|3050"]
    );
}

#[tokio::test]
async fn the_time_of_planning_is_what_is_checked() {
    for (stored, expected) in [
        ("2999-01-01T00:00:00.000Z", true),
        ("2001-01-01T00:00:00.000Z", false),
    ] {
        let table = table("TIMESTAMP WITH TIME ZONE").await;
        let planned = table.plan("DELETE FROM t WHERE id = 1 OR x < now()").await;
        let stats = json!({"numRecords": 1, "minValues": {"id": 100, "x": stored},
            "maxValues": {"id": 101, "x": stored}, "nullCount": {"id": 0, "x": 0}});
        table.put_entry(&[winner(&stats)]).await;
        assert_eq!(skipped(planned).await, expected, "{stored}");
    }
}

#[tokio::test]
async fn partition_timestamps_of_an_unknown_zone() {
    for (stored, expected) in [
        ("2000-01-01 12:00:00", false),
        ("2000-01-03 12:00:00", true),
    ] {
        let table = Table::create(
            "id BIGINT, ts TIMESTAMP WITH TIME ZONE",
            "PARTITIONED BY (ts) OPTIONS ('delta.isolationLevel' 'Serializable')",
            &["VALUES (1, '2000-01-01T19:00:00Z')"],
        )
        .await;
        let planned = table
            .plan("DELETE FROM t WHERE ts = '2000-01-01T19:00:00Z'")
            .await;
        let add = json!({"add": {"path": "hand-made.parquet", "partitionValues": {"ts": stored},
            "size": 1, "modificationTime": 0, "dataChange": true}});
        table.put_entry(&[add]).await;
        assert_eq!(skipped(planned).await, expected, "{stored}");
    }
}

/// A column that the statistics do not speak of stays unknown once a checkpoint stands for the
/// entries (delta-rs #3201).
#[tokio::test]
async fn a_column_without_statistics_is_read_from_a_checkpoint() {
    let table = Table::numbers(3, 10, "").await;
    for version in 1..=3 {
        table.change_log_entry(version, |action| {
            if let Some(Value::String(text)) = action.pointer_mut("/add/stats") {
                let mut stats: Value = serde_json::from_str(text).expect("statistics");
                for piece in ["minValues", "maxValues", "nullCount"] {
                    stats[piece].as_object_mut().expect("an object").remove("x");
                }
                *text = stats.to_string();
            }
        });
    }
    let deltalake = table.deltalake().await;
    create_checkpoint(&deltalake, None)
        .await
        .expect("checkpoint");
    for version in 0..=3 {
        std::fs::remove_file(format!("{}/_delta_log/{version:020}.json", table.path()))
            .expect("old entry");
    }
    let ctx = delta_disjoint::session();
    open(&ctx, "t", &table.path()).await;
    for (condition, expected) in [
        ("x = 15", vec!["15"]),
        ("x IS NULL", vec![]),
        ("x IS NOT NULL AND id = 15", vec!["15"]),
        ("x > 27", vec!["28", "29"]),
    ] {
        let text = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(rows(&ctx, &text).await, expected, "{condition}");
    }
}
