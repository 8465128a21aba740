//! Faults that were reported of other readers and writers, each with the right answer here.

use super::*;

/// datafusion #15812 and #24804, delta #7101: bounds leave NaN out, and a NaN is greater than all.
#[test]
fn a_nan_hides_behind_bounds() {
    let schema = table(&[("x", DataType::Float64)], &[]);
    let add =
        file(r#"{"numRecords":2,"minValues":{"x":1.0},"maxValues":{"x":1.0},"nullCount":{"x":0}}"#);
    check(
        &schema,
        &add,
        &[
            ("x > 5", false),
            ("x >= 5", false),
            ("x <> 1", false),
            ("x IS DISTINCT FROM 1", false),
            ("x NOT IN (1)", false),
            ("x < 0", false),
            ("x = 5", true),
        ],
    );
}

/// delta-kernel-rs #1002: the greatest timestamp is cut to milliseconds, the rows are not.
#[test]
fn a_maximum_is_cut_to_milliseconds() {
    let schema = table(&[("x", timestamp())], &[]);
    let add = file(
        r#"{"minValues":{"x":"2024-01-01T00:00:00.123Z"},
            "maxValues":{"x":"2024-01-01T00:00:00.123Z"}}"#,
    );
    check(
        &schema,
        &add,
        &[
            ("x = '2024-01-01T00:00:00.123456Z'", false),
            ("x > '2024-01-01T00:00:00.123999Z'", false),
            ("x > '2024-01-01T00:00:00.124Z'", true),
            ("x < '2024-01-01T00:00:00.123Z'", true),
        ],
    );
}

/// delta #5249: offsets with seconds were written without them.
#[test]
fn offsets_of_old_days_had_seconds() {
    let schema = table(&[("x", timestamp())], &[]);
    // Los Angeles, 1883: -07:52:58.
    let add = file(
        r#"{"minValues":{"x":"1883-01-01T00:00:00.000-07:52"},
            "maxValues":{"x":"1883-01-01T00:00:00.000-07:52"}}"#,
    );
    check(
        &schema,
        &add,
        &[
            ("x = '1883-01-01T07:52:58Z'", false),
            ("x > '1883-01-01T07:54:00Z'", true),
            ("x < '1883-01-01T07:50:59Z'", true),
        ],
    );
}

/// delta-rs #4757 and #3905: decimals that went through doubles, or through 64 bits.
#[test]
fn decimals_were_rounded() {
    let whole = table(&[("x", DataType::Decimal128(38, 0))], &[]);
    let add =
        file(r#"{"minValues":{"x":9223372036854775807},"maxValues":{"x":9223372036854775807}}"#);
    let large = "x = CAST('10000000000000000000000000' AS DECIMAL(38, 0))";
    assert!(!skips(&whole, large, &add));
    assert!(!skips(&whole, "x < 5", &add));
    let fraction = table(&[("x", DataType::Decimal128(38, 18))], &[]);
    let add = file(r#"{"minValues":{"x":0.1},"maxValues":{"x":0.1}}"#);
    for (literal, expected) in [
        ("0.100000000000000001", false),
        ("0.099999999999999999", false),
        ("0.11", true),
        ("0.09", true),
    ] {
        let sql = format!("x = CAST('{literal}' AS DECIMAL(38, 18))");
        assert_eq!(skips(&fraction, &sql, &add), expected, "{literal}");
    }
}

/// delta #3430 and its mending #6664: a tie-breaker that is too small, or half of a character.
#[test]
fn a_cut_maximum_is_below_what_it_stands_for() {
    let schema = table(&[("x", DataType::Utf8)], &[]);
    let a31 = "a".repeat(31);
    for (max, value) in [
        (format!("{a31}a\u{FFFD}"), format!("{a31}a\u{1F33C}")),
        (format!("{a31}a\u{7F}"), format!("{a31}a\u{80}")),
        (format!("{a31}?"), format!("{a31}\u{1F33C}")),
        (format!("{a31}a\u{10FFFF}"), format!("{a31}a\u{10FFFF}z")),
    ] {
        let stats = serde_json::json!({"minValues": {"x": "a"}, "maxValues": {"x": max}});
        let add = file(&stats.to_string());
        assert!(!skips(&schema, &format!("x = '{value}'"), &add), "{max:?}");
        assert!(skips(&schema, "x = 'b'", &add), "{max:?}");
    }
}

/// datafusion #18241: a null count that is missing is not zero.
#[test]
fn a_missing_null_count_is_not_zero() {
    let add = file(r#"{"numRecords":2,"minValues":{"id":1},"maxValues":{"id":1}}"#);
    check(
        &ids(),
        &add,
        &[
            ("id IS NULL", false),
            ("id IS NOT NULL", false),
            ("id IS DISTINCT FROM 1", false),
            ("coalesce(id, 7) = 7", false),
        ],
    );
}

/// datafusion #560 and #9230: what is different from a value, and what is not NULL.
#[test]
fn different_and_not_null() {
    let stats = |min: i64, max: i64, nulls: u64| {
        file(&format!(
            r#"{{"numRecords":4,"minValues":{{"id":{min}}},"maxValues":{{"id":{max}}},
                "nullCount":{{"id":{nulls}}}}}"#
        ))
    };
    for (add, sql, expected) in [
        (stats(1, 9, 0), "id <> 1", false),
        (stats(1, 9, 0), "id <> 9", false),
        (stats(5, 5, 0), "id <> 5", true),
        (stats(5, 5, 3), "id <> 5", true),
        (stats(5, 5, 3), "id IS NOT NULL", false),
        (
            file(r#"{"numRecords":4,"nullCount":{"id":4}}"#),
            "id IS NOT NULL",
            true,
        ),
        (
            file(r#"{"numRecords":4,"nullCount":{"id":4}}"#),
            "id <> 5",
            true,
        ),
        (
            file(r#"{"numRecords":4,"nullCount":{"id":4}}"#),
            "NOT (id IS NOT NULL)",
            false,
        ),
    ] {
        assert_eq!(skips(&ids(), sql, &add), expected, "{sql} {:?}", add.stats);
    }
}

/// datafusion #5708: a dot in a name is no path.
#[test]
fn a_dot_is_part_of_a_name() {
    let schema = table(&[("a.b", DataType::Int64), ("b", DataType::Int64)], &[]);
    let add = file(r#"{"minValues":{"a.b":10,"b":1},"maxValues":{"a.b":20,"b":2}}"#);
    check(
        &schema,
        &add,
        &[
            (r#""a.b" = 15"#, false),
            (r#""a.b" = 2"#, true),
            ("b = 2", false),
            ("b = 15", true),
        ],
    );
    let path = file(r#"{"minValues":{"a":{"b":10}},"maxValues":{"a":{"b":20}}}"#);
    assert!(!skips(&schema, r#""a.b" = 2"#, &path));
}

/// datafusion #24702: DataFusion 55 plans `TRY_CAST(x AS SMALLINT) < 3` as `x < 3`, which is true where the cast gives
/// NULL. What is planned is what the query evaluates, and what is pruned by.
#[test]
fn planning_moves_narrowing_casts_away() {
    let sql = "TRY_CAST(id AS SMALLINT) < CAST(3 AS SMALLINT)";
    let planned = crate::read::test_support::filter(&ids(), sql);
    assert_eq!(planned.human_display().to_string(), "t.id < 3");
    let add = file(r#"{"minValues":{"id":-9223372036854775808},"maxValues":{"id":-40000}}"#);
    assert!(!skips(&ids(), sql, &add));
    let add = file(r#"{"minValues":{"id":40000},"maxValues":{"id":50000}}"#);
    assert!(skips(&ids(), sql, &add));
}
