mod evidence;
mod field_reports;
mod negation;
mod single_values;
mod skip_law;
mod struct_fields;

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::random;
use datafusion::logical_expr::{Expr, cast, col, lit};

use super::*;
use crate::read::statistics::NAN_FREE_TAG;
use crate::read::test_support::{
    decide, file, partition, predicate, skips, table, tagged, timestamp, unknown_writer,
    with_deletions,
};

/// Name of the case, condition, and whether the file is skipped.
fn check(schema: &StatisticsSchema, add: &Add, cases: &[(&str, bool)]) {
    for (sql, expected) in cases {
        let decision = decide(schema, sql, add);
        assert_eq!(decision.is_skip(), *expected, "{sql}: {decision:?} {add:?}");
    }
}

fn ids() -> StatisticsSchema {
    table(&[("id", DataType::Int64)], &[])
}

#[test]
fn statistics_that_are_missing_keep_and_half_of_them_may_do() {
    for (stats, expected) in [
        ("", false),
        ("{", false),
        (r#"{"numRecords":100}"#, false),
        (r#"{"numRecords":100,"minValues":{"id":1000}}"#, true),
        (r#"{"minValues":{"id":1000}}"#, true),
        (r#"{"minValues":{"id":1000},"maxValues":{"id":"x"}}"#, true),
        (r#"{"minValues":{"id":49},"maxValues":{"id":60}}"#, false),
        (r#"{"maxValues":{"id":1000}}"#, false),
    ] {
        assert_eq!(skips(&ids(), "id < 50", &file(stats)), expected, "{stats}");
    }
    assert!(!skips(&ids(), "id < 50", &Add::default()));
}

#[test]
fn integers_beyond_doubles() {
    let add = file(r#"{"minValues":{"id":9007199254740993},"maxValues":{"id":9007199254740993}}"#);
    check(
        &ids(),
        &add,
        &[
            ("id = 9007199254740992", true),
            ("id = 9007199254740993", false),
            ("id < 9007199254740993", true),
            ("id <> 9007199254740993", true),
        ],
    );
}

#[test]
fn each_comparison_of_an_integer() {
    let add = file(
        r#"{"numRecords":10,"minValues":{"id":10},"maxValues":{"id":20},"nullCount":{"id":0}}"#,
    );
    check(
        &ids(),
        &add,
        &[
            ("id < 10", true),
            ("id <= 10", false),
            ("id > 20", true),
            ("id >= 20", false),
            ("id = 9", true),
            ("id = 15", false),
            ("id <> 15", false),
            ("10 > id", true),
            ("id BETWEEN 1 AND 9", true),
            ("id BETWEEN 1 AND 10", false),
            ("id NOT BETWEEN 10 AND 20", true),
            ("id NOT BETWEEN 11 AND 20", false),
            ("id IS NULL", true),
            ("id IS NOT NULL", false),
            ("id IS DISTINCT FROM 15", false),
            ("id IS NOT DISTINCT FROM 9", true),
            ("id IS NOT DISTINCT FROM NULL", true),
            ("NOT (id >= 10)", true),
            ("NOT (id >= 10 AND id <= 20)", true),
            ("NOT (id < 10 OR id > 20)", false),
            ("id IN (1, 9, 21, NULL)", true),
            ("id IN (1, 9, 15)", false),
            ("id NOT IN (1, 15)", false),
            ("id NOT IN (1, NULL)", true),
            ("id = NULL", true),
            ("(id < 10) IS TRUE", true),
            ("(id < 10) IS NOT TRUE", false),
            ("(id >= 10) IS FALSE", true),
            ("(id < 10) IS NOT FALSE", false),
            ("(id < 10) IS UNKNOWN", false),
            ("CAST(id AS DOUBLE) < 9.5", true),
            ("CAST(id AS BOOLEAN)", false),
            ("false", true),
            ("true", false),
        ],
    );
    // Casts that fail or jump in between, as they are before DataFusion takes them apart.
    for data_type in [DataType::Int32, DataType::Boolean, DataType::Utf8] {
        let zero = ScalarValue::new_zero(&data_type).unwrap_or_else(|_| ScalarValue::from(""));
        let filter = cast(col("id"), data_type).lt(lit(zero));
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &ids());
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert!(!decision.is_skip(), "{filter}: {decision:?}");
    }
}

#[test]
fn one_term_of_a_conjunction_is_enough_and_both_sides_of_an_or_are_needed() {
    let schema = table(&[("a", DataType::Int64), ("b", DataType::Int64)], &[]);
    let add = file(r#"{"minValues":{"a":10},"maxValues":{"a":20}}"#);
    check(
        &schema,
        &add,
        &[
            ("a < 1 AND b > 5", true),
            ("a < 1 OR b > 5", false),
            ("a < 1 AND b % 100 > 20", true),
            ("a < 1 OR b % 100 > 20", false),
            ("a < 1 OR a > 20", true),
            ("NOT (a >= 10 AND b <= 20)", false),
            ("NOT (a IN (10, 20))", false),
            ("(a < 1 AND b > 5) IS NOT TRUE", false),
            ("(a < 1 AND b > 5) IS TRUE", true),
            ("a < b", false),
            ("a + 1 = 3", false),
        ],
    );
    let both = file(
        r#"{"minValues":{"a":10,"b":30},"maxValues":{"a":20,"b":40},"nullCount":{"a":0,"b":0}}"#,
    );
    assert!(!skips(&schema, "NOT (a >= 10 AND b <= 20)", &both));
    let both = file(r#"{"minValues":{"a":10,"b":1},"maxValues":{"a":20,"b":20}}"#);
    assert!(skips(&schema, "NOT (a >= 10 AND b <= 20)", &both));
}

#[test]
fn nulls_decide_where_they_are_counted() {
    let stats = |nulls: &str, bounds: &str| file(&format!(r#"{{"numRecords":4{nulls}{bounds}}}"#));
    let bounds = r#","minValues":{"id":1},"maxValues":{"id":1}"#;
    let all = stats(r#","nullCount":{"id":4}"#, "");
    let some = stats(r#","nullCount":{"id":2}"#, bounds);
    let none = stats(r#","nullCount":{"id":0}"#, bounds);
    let unknown = stats("", bounds);
    let too_many = stats(r#","nullCount":{"id":5}"#, bounds);
    for (sql, expected) in [
        // all, some, none, unknown
        ("id = 1", [true, false, false, false]),
        ("id <> 1", [true, true, true, true]),
        ("id = 2", [true, true, true, true]),
        ("id IN (1)", [true, false, false, false]),
        ("id IN (1, 2, 3, 4)", [true, false, false, false]),
        ("id NOT IN (7, 8, 9, 10)", [true, false, false, false]),
        ("id NOT IN (1, 8, 9, 10)", [true, true, true, true]),
        ("id IS NULL", [false, false, true, false]),
        ("id IS NOT NULL", [true, false, false, false]),
        ("id IS NOT DISTINCT FROM NULL", [false, false, true, false]),
        ("id IS DISTINCT FROM NULL", [true, false, false, false]),
        ("id IS DISTINCT FROM 1", [false, false, true, false]),
        ("id IS NOT DISTINCT FROM 1", [true, false, false, false]),
    ] {
        let found = [&all, &some, &none, &unknown].map(|add| skips(&ids(), sql, add));
        assert_eq!(found, expected, "{sql}");
        assert!(!skips(&ids(), sql, &too_many), "{sql}");
    }
}

#[test]
fn wide_files_count_nulls_by_none_and_all() {
    let file_of = |nulls: u64, bounds: &str| {
        with_deletions(file(&format!(
            r#"{{"numRecords":4,"nullCount":{{"id":{nulls}}}{bounds}}}"#
        )))
    };
    let bounds = r#","minValues":{"id":1},"maxValues":{"id":5}"#;
    assert!(skips(&ids(), "id IS NULL", &file_of(0, bounds)));
    assert!(!skips(&ids(), "id IS NULL", &file_of(1, bounds)));
    assert!(skips(&ids(), "id IS NOT NULL", &file_of(4, "")));
    assert!(skips(&ids(), "id > 5", &file_of(1, bounds)));
}

#[test]
fn a_file_without_rows_may_be_skipped() {
    let add = file(r#"{"numRecords":0,"nullCount":{"id":0}}"#);
    assert!(skips(&ids(), "id = 1", &add));
    assert!(skips(&ids(), "id IS NULL", &add));
    assert!(!skips(
        &ids(),
        "id = 1",
        &file(r#"{"numRecords":0,"minValues":{"id":1}}"#)
    ));
}

#[test]
fn long_lists_are_exact() {
    let add = file(r#"{"minValues":{"id":1000},"maxValues":{"id":1999}}"#);
    let list = |values: &mut dyn Iterator<Item = i64>| {
        let values: Vec<Expr> = values.map(lit).collect();
        ReadPredicate::new(&[col("id").in_list(values, false)], &ids())
    };
    let decide =
        |predicate| prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
    let outside = list(&mut (0..1000).chain(2000..9000));
    assert!(decide(outside).is_skip());
    let inside = list(&mut (0..1000).chain(1999..2000).chain(5000..9000));
    assert!(!decide(inside).is_skip());
}

#[test]
fn strings_cut_by_their_writer() {
    let schema = table(&[("s", DataType::Utf8)], &[]);
    let a32 = "a".repeat(32);
    let tie = "\u{10FFFF}";
    let bounds = |min: &str, max: &str| {
        file(&serde_json::json!({"minValues": {"s": min}, "maxValues": {"s": max}}).to_string())
    };
    for (max, value, expected) in [
        // Everything that starts with the prefix may be there, whatever follows.
        (
            format!("{a32}{tie}"),
            format!("{a32}{tie}{tie}{tie}"),
            false,
        ),
        (format!("{a32}\u{7F}"), format!("{a32}\u{1F33C}"), false),
        (format!("{a32}\u{FFFD}"), format!("{a32}\u{1F33C}"), false),
        (a32.clone(), format!("{a32}zzz"), false),
        (
            format!("{}?", &a32[1..]),
            format!("{}\u{1F33C}", &a32[1..]),
            false,
        ),
        ("b".to_owned(), "ba".to_owned(), true),
        ("b".to_owned(), "b".to_owned(), false),
        (a32.clone(), "b".to_owned(), true),
        (tie.repeat(20), tie.repeat(30), false),
    ] {
        let sql = format!("s >= '{value}'");
        assert_eq!(
            skips(&schema, &sql, &bounds("", &max)),
            expected,
            "{max} {value}"
        );
    }
    let cut_pair = bounds("aa\u{FFFD}", "b");
    assert!(!skips(&schema, "s < 'aa\u{1F33C}'", &cut_pair));
    assert!(!skips(&schema, "s < 'a'", &cut_pair));
    assert!(skips(&schema, "s > 'bb'", &cut_pair));
}

#[test]
fn like_goes_by_its_constant_prefix() {
    let schema = table(&[("s", DataType::Utf8)], &[]);
    let fruit = file(r#"{"minValues":{"s":"apple"},"maxValues":{"s":"banana"}}"#);
    let apples = file(r#"{"minValues":{"s":"apple1"},"maxValues":{"s":"apple9"}}"#);
    check(
        &schema,
        &fruit,
        &[
            ("s LIKE 'ap%'", false),
            ("s LIKE 'xyz%'", true),
            ("s LIKE 'aa_'", true),
            ("s LIKE '%x'", false),
            ("s LIKE '%'", false),
            ("s LIKE ''", true),
            ("s LIKE 'cherry'", true),
            ("s NOT LIKE 'ap%'", false),
            ("NOT (s LIKE 'ap%')", false),
            ("s ILIKE 'xyz%'", false),
            (r"s LIKE 'x\%%'", true),
            (r"s LIKE 'x\y%'", false),
        ],
    );
    check(
        &schema,
        &apples,
        &[
            ("s NOT LIKE 'apple%'", true),
            ("s NOT LIKE 'apple1%'", false),
            ("s NOT LIKE '%apple'", false),
        ],
    );
}

#[test]
fn timestamps_are_compared_in_utc_and_widened() {
    let schema = table(&[("ts", timestamp())], &[]);
    let at = |text: &str| {
        file(&format!(
            r#"{{"minValues":{{"ts":"{text}"}},"maxValues":{{"ts":"{text}"}}}}"#
        ))
    };
    for (stored, sql, expected) in [
        // 19:00Z
        (
            "2020-06-01T12:00:00.000-07:00",
            "ts < '2020-06-01T19:00:00Z'",
            true,
        ),
        (
            "2020-06-01T12:00:00.000-07:00",
            "ts = '2020-06-01T19:00:00Z'",
            false,
        ),
        (
            "2020-06-01T12:00:00.000-07:00",
            "ts = '2020-06-01T12:00:00Z'",
            true,
        ),
        // The maximum was cut to milliseconds.
        (
            "2020-06-01T12:00:00.123Z",
            "ts > '2020-06-01T12:00:00.1235Z'",
            false,
        ),
        (
            "2020-06-01T12:00:00.123Z",
            "ts > '2020-06-01T12:00:00.125Z'",
            true,
        ),
        // Stockholm's offset was cut to minutes: the row is at 1850-01-01T00:00:00Z.
        (
            "1850-01-01T00:53:28.000+00:53",
            "ts = '1850-01-01T00:00:00Z'",
            false,
        ),
        (
            "1850-01-01T00:53:28.000+00:53:28",
            "ts = '1850-01-01T00:00:00Z'",
            false,
        ),
        (
            "1850-01-01T00:53:28.000+00:53",
            "ts > '1850-01-01T00:02:00Z'",
            true,
        ),
        (
            "2020-06-01T12:00:00.000",
            "ts > '2030-01-01T00:00:00Z'",
            false,
        ),
    ] {
        assert_eq!(skips(&schema, sql, &at(stored)), expected, "{stored} {sql}");
    }
    check(
        &schema,
        &at("2020-06-01T12:00:00.000Z"),
        &[
            ("CAST(ts AS DATE) = '2020-06-02'", true),
            ("CAST(ts AS DATE) = '2020-06-01'", false),
            ("CAST(ts AS TIME) = '23:30:00'", false),
        ],
    );
}

#[test]
fn literals_of_other_zones_are_the_same_instant() {
    let schema = table(&[("ts", timestamp())], &[]);
    // 2020-06-01T00:00:00+05:00
    let literal = "arrow_cast('2020-06-01T00:00:00', 'Timestamp(Microsecond, Some(\"+05:00\"))')";
    for (stored, op, expected) in [
        ("2020-05-31T20:00:00.000Z", "<", true),
        ("2020-05-31T20:00:00.000Z", ">", false),
        ("2020-05-31T18:00:00.000Z", "<", false),
        ("2020-05-31T18:00:00.000Z", ">", true),
        ("2020-05-31T19:00:00.000Z", "=", false),
        ("2020-06-01T00:00:00.000Z", "=", true),
    ] {
        let add = file(&format!(
            r#"{{"minValues":{{"ts":"{stored}"}},"maxValues":{{"ts":"{stored}"}}}}"#
        ));
        let sql = format!("ts {op} {literal}");
        assert_eq!(skips(&schema, &sql, &add), expected, "{stored} {op}");
    }
}

#[test]
fn dates_and_their_widening_cast() {
    let schema = table(&[("d", DataType::Date32)], &[]);
    let add = file(r#"{"minValues":{"d":"2020-01-01"},"maxValues":{"d":"2020-01-31"}}"#);
    check(
        &schema,
        &add,
        &[
            ("d = DATE '2020-02-01'", true),
            ("d = DATE '2020-01-31'", false),
            ("CAST(d AS TIMESTAMP) > '2020-01-31T00:00:00'", true),
            ("CAST(d AS TIMESTAMP) > '2020-01-30T23:59:59'", false),
        ],
    );
    let odd = file(r#"{"minValues":{"d":"12020-01-01"},"maxValues":{"d":"-2020-01-31"}}"#);
    assert!(!skips(&schema, "d = DATE '2020-02-01'", &odd));
}

#[test]
fn doubles_keep_what_a_nan_could_match() {
    let schema = table(&[("x", DataType::Float64)], &[]);
    let one =
        file(r#"{"numRecords":2,"minValues":{"x":1.0},"maxValues":{"x":1.0},"nullCount":{"x":0}}"#);
    let clean = tagged(one.clone(), NAN_FREE_TAG, r#"["x"]"#);
    for (sql, any, nan_free) in [
        ("x > 5", false, true),
        ("x >= 5", false, true),
        ("x < 0.5", false, true),
        ("x <= 0.5", false, true),
        ("x <> 1", false, true),
        ("x NOT IN (1, 2, 3, 4)", false, true),
        ("x IS DISTINCT FROM 1", false, true),
        ("NOT (x = 1)", false, true),
        ("NOT (x < 5)", false, true),
        ("x = 5", true, true),
        ("x = 1", false, false),
        ("x IS NOT DISTINCT FROM 5", true, true),
        ("x IN (5, 6)", true, true),
        ("x IN (5, 6, 7, 8, 9)", true, true),
        ("x > 5 AND x < 9", true, true),
        ("x BETWEEN 5 AND 9", true, true),
        ("x NOT BETWEEN 0 AND 9", false, true),
        ("NOT (x < 5 OR x > 9)", true, true),
        ("x > 5 OR x < 0.5", false, true),
        ("x > 5 AND (x < 9 OR x = 1)", false, true),
        ("x > 5 AND x > 6", false, true),
        ("(x > 5 AND x < 9) OR x = 7", true, true),
        ("x > 0.5 AND x < 9", false, false),
        ("x IS NULL", true, true),
        ("x IS NOT NULL", false, false),
        ("x = 'NaN'::double", false, false),
        ("x > 5 AND x < 'NaN'::double", false, true),
    ] {
        assert_eq!(skips(&schema, sql, &one), any, "{sql}");
        assert_eq!(skips(&schema, sql, &clean), nan_free, "nan-free: {sql}");
    }
}

#[test]
fn zeros_and_infinities() {
    let schema = table(&[("x", DataType::Float64)], &[]);
    let stats = |min: &str, max: &str| {
        tagged(
            file(&format!(
                r#"{{"minValues":{{"x":{min}}},"maxValues":{{"x":{max}}}}}"#
            )),
            NAN_FREE_TAG,
            r#"["x"]"#,
        )
    };
    for (min, max, sql, expected) in [
        ("0.0", "5.0", "x < 0.0", false),
        ("0.0", "5.0", "x < -0.1", true),
        ("0.0", "0.0", "x <> 0.0", false),
        ("0.0", "0.0", "x NOT IN (0.0, 1.0, 2.0, 3.0)", false),
        ("0.0", "5.0", "x = -0.0", false),
        ("0.0", "5.0", "x IN (-0.0, -1.0, -2.0, -3.0)", false),
        ("-5.0", "-0.0", "x > -0.0", false),
        ("-5.0", "-0.0", "x IN (0.0, 1.0, 2.0, 3.0)", false),
        ("1.0", "\"Infinity\"", "x > 1e308", false),
        ("1.0", "\"Infinity\"", "x < 1.0", true),
        ("\"-Infinity\"", "1.0", "x < -1e308", false),
        ("\"-Infinity\"", "1.0", "x > 1.0", true),
        ("1.0", "\"NaN\"", "x > 9.0", false),
        ("1.0", "\"NaN\"", "x < 1.0", true),
    ] {
        assert_eq!(
            skips(&schema, sql, &stats(min, max)),
            expected,
            "{min} {max} {sql}"
        );
    }
}

#[test]
fn the_cast_of_a_zero_has_both_signs() {
    let add = file(r#"{"minValues":{"id":0},"maxValues":{"id":0}}"#);
    for (value, expected) in [(0.0, false), (-0.0, false), (1.0, true)] {
        let filter = cast(col("id"), DataType::Float64).eq(lit(value));
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &ids());
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert_eq!(decision.is_skip(), expected, "{filter}: {decision:?}");
    }
}

#[test]
fn single_floats_against_doubles() {
    let schema = table(&[("x", DataType::Float32)], &[]);
    let add = file(r#"{"minValues":{"x":0.1},"maxValues":{"x":0.1}}"#);
    let single = lit(f64::from(0.1_f32));
    let wide = || cast(col("x"), DataType::Float64);
    for (filter, expected) in [
        (wide().eq(single.clone()), false),
        (wide().eq(lit(0.1_f64)), true),
        (wide().gt(lit(0.1_f64)).and(wide().lt(lit(0.2_f64))), false),
        (wide().gt(single.clone()).and(wide().lt(lit(0.2_f64))), true),
        (
            wide().gt(lit(0.05_f64)).and(col("x").lt(lit(0.07_f32))),
            true,
        ),
        (wide().gt(lit(5.0_f64)), false),
        (col("x").eq(lit(0.1_f32)), false),
        (col("x").eq(lit(0.2_f32)), true),
    ] {
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &schema);
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert_eq!(decision.is_skip(), expected, "{filter}: {decision:?}");
    }
}

#[test]
fn decimals_by_precision_and_writer() {
    let stats = r#"{"minValues":{"x":1.25},"maxValues":{"x":9.75}}"#;
    for (precision, exact_writer, expected) in
        [(15, false, true), (16, false, false), (38, true, true)]
    {
        let schema = table(&[("x", DataType::Decimal128(precision, 2))], &[]);
        let add = file(stats);
        let files = [PruneFile {
            add: &add,
            exact_writer,
        }];
        let skipped = |sql| {
            prune(&predicate(&schema, sql), &files, Visible::Statistics)
                .remove(0)
                .is_skip()
        };
        assert_eq!(skipped("x > 9.75"), expected, "{precision}");
        assert_eq!(skipped("x IN (1.24, 9.76)"), expected, "{precision}");
        assert!(!skipped("x >= 9.75"), "{precision}");
    }
}

#[test]
fn booleans_and_binary_have_null_tests_only() {
    let schema = table(&[("a", DataType::Boolean), ("b", DataType::Binary)], &[]);
    let add = file(
        r#"{"numRecords":2,"minValues":{"a":true,"b":"a"},"maxValues":{"a":true,"b":"b"},
            "nullCount":{"a":0,"b":0}}"#,
    );
    check(
        &schema,
        &add,
        &[
            ("a", false),
            ("NOT a", false),
            ("a = false", false),
            ("a IS NULL", true),
            ("a IS UNKNOWN", true),
            ("b > X'ff'", false),
            ("b = X'ff'", false),
            ("b IS NULL", true),
        ],
    );
}

#[test]
fn partition_values_that_mean_something_and_that_do_not() {
    let schema = table(&[("p", DataType::Int32), ("x", DataType::Int64)], &["p"]);
    for (value, sql, expected) in [
        (Some(Some("2")), "p = 1", true),
        (Some(Some("1")), "p = 1", false),
        (Some(Some("")), "p = 1", true),
        (Some(None), "p = 1", true),
        (Some(None), "p IS NULL", false),
        (Some(Some("")), "p IS NULL", false),
        (Some(Some("2")), "p IS NULL", true),
        (Some(None), "p IS NOT NULL", true),
        (None, "p = 1", false),
        (None, "p IS NULL", false),
        (None, "p IS NOT NULL", false),
        (Some(Some("two")), "p = 1", false),
        (Some(Some("__HIVE_DEFAULT_PARTITION__")), "p = 1", false),
        (Some(Some("__HIVE_DEFAULT_PARTITION__")), "p IS NULL", false),
        // Anything immutable is evaluated.
        (Some(Some("2")), "p % 2 = 1", true),
        (Some(Some("3")), "p % 2 = 1", false),
        (Some(Some("2")), "abs(p) = 3", true),
        (Some(Some("2")), "(p = 1) IS NOT TRUE", false),
        (Some(Some("1")), "(p = 1) IS NOT TRUE", true),
        (
            Some(Some("2")),
            "CASE WHEN p = 2 THEN false ELSE true END",
            true,
        ),
        (Some(Some("0")), "10 / p = 1", false),
        (Some(Some("2")), "p IN (1, 3)", true),
        (Some(Some("2")), "p NOT IN (1, 3)", false),
        (Some(Some("2")), "p IS NOT DISTINCT FROM 1", true),
        (Some(None), "p IS DISTINCT FROM NULL", true),
        // A partition term and a data term together.
        (Some(Some("2")), "p = 1 OR x < 5", false),
        (Some(Some("2")), "p = 1 AND x < 5", true),
        (Some(Some("2")), "p = x", false),
    ] {
        let values: Vec<_> = value.map(|value| ("p", value)).into_iter().collect();
        let add = partition(&values);
        let decision = decide(&schema, sql, &add);
        assert_eq!(decision.is_skip(), expected, "{value:?} {sql} {decision:?}");
    }
    let mut add = partition(&[("p", Some("2"))]);
    add.stats = Some(r#"{"minValues":{"x":7}}"#.to_owned());
    assert!(skips(&schema, "p = 1 OR x < 5", &add));
    assert!(!skips(&schema, "p = 2 OR x < 5", &add));
    assert!(!skips(&schema, "p = 1 OR x < 8", &add));
}

#[test]
fn partitions_of_booleans_and_floats_are_exact() {
    let schema = table(
        &[("b", DataType::Boolean), ("f", DataType::Float64)],
        &["b", "f"],
    );
    let add = partition(&[("b", Some("false")), ("f", Some("NaN"))]);
    check(
        &schema,
        &add,
        &[
            ("b", true),
            ("NOT b", false),
            ("f > 5", false),
            ("f < 5", true),
            ("f = 'NaN'::double", false),
        ],
    );
}

#[test]
fn partition_timestamps_without_zone_are_off_by_hours() {
    let schema = table(&[("ts", timestamp())], &["ts"]);
    let local = partition(&[("ts", Some("2000-01-01 12:00:00"))]);
    let utc = partition(&[("ts", Some("2000-01-01T12:00:00.000000Z"))]);
    for (sql, zoneless, zoned) in [
        ("ts = '2000-01-01T12:00:00Z'", false, false),
        ("ts = '2000-01-01T19:00:00Z'", false, true),
        ("ts > '2000-01-02T03:00:00Z'", false, true),
        ("ts > '2000-01-02T05:00:00Z'", true, true),
        ("ts < '1999-12-31T19:00:00Z'", true, true),
        (
            "ts IN ('2001-01-01T00:00:00Z', '2002-01-01T00:00:00Z')",
            true,
            true,
        ),
        ("ts IS NULL", true, true),
        (
            "date_trunc('day', ts) = '2010-01-01T00:00:00Z'",
            false,
            true,
        ),
    ] {
        let decision = decide(&schema, sql, &local);
        assert_eq!(decision.is_skip(), zoneless, "{sql}: {decision:?}");
        assert_eq!(skips(&schema, sql, &utc), zoned, "{sql}");
    }
}

#[test]
fn only_partition_values_are_seen_with_skipping_off() {
    let schema = table(&[("p", DataType::Int32), ("x", DataType::Int64)], &["p"]);
    let mut add = partition(&[("p", Some("2"))]);
    add.stats = Some(
        r#"{"numRecords":1,"minValues":{"x":7},"maxValues":{"x":7},"nullCount":{"x":0}}"#
            .to_owned(),
    );
    let decide = |sql| {
        explain(
            &predicate(&schema, sql),
            &unknown_writer(&add),
            Visible::PartitionValues,
        )
    };
    for sql in ["x < 5", "x IS NULL", "x IN (1, 2, 3, 4)", "p = 1 OR x < 5"] {
        let decision = decide(sql);
        let code = decision.reason().map(|reason| reason.code);
        assert!(!decision.is_skip(), "{sql}");
        assert_eq!(code, Some(ReasonCode::StatisticsNotUsed), "{sql}");
    }
    for sql in [
        "p = 1",
        "p = 1 AND x < 5",
        "p = 1 OR p = 3",
        "p = 1 OR (x < 5 AND p = 3)",
    ] {
        let decision = decide(sql);
        let code = decision.reason().map(|reason| reason.code);
        assert_eq!(code, Some(ReasonCode::PartitionValues), "{sql}");
    }
    add.stats = Some(r#"{"numRecords":0}"#.to_owned());
    let predicate = predicate(&schema, "x < 5");
    let decision = prune(
        &predicate,
        &[unknown_writer(&add)],
        Visible::PartitionValues,
    );
    assert!(!decision[0].is_skip());
}

#[test]
fn volatile_terms_are_never_evaluated() {
    let add = file(r#"{"minValues":{"id":10},"maxValues":{"id":20}}"#);
    let filter = col("id").lt(random() * lit(0_i64));
    let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &ids());
    for _ in 0..3 {
        let decision = explain(&predicate, &unknown_writer(&add), Visible::Statistics);
        let Decision::Keep { reasons } = decision else {
            panic!("skipped");
        };
        assert_eq!(reasons[0].code, ReasonCode::VolatileTerm);
        assert!(reasons[0].detail.contains("random is volatile"));
    }
}

#[test]
fn each_file_is_judged_on_its_own_and_in_order() {
    let adds = [
        file(r#"{"minValues":{"id":1},"maxValues":{"id":9}}"#),
        file("{"),
        file(r#"{"minValues":{"id":100},"maxValues":{"id":900}}"#),
        Add::default(),
        file(r#"{"minValues":{"id":40},"maxValues":{"id":60}}"#),
    ];
    let files: Vec<_> = adds.iter().map(unknown_writer).collect();
    let skipped: Vec<bool> = prune(&predicate(&ids(), "id < 50"), &files, Visible::Statistics)
        .iter()
        .map(|outcome| outcome.is_skip())
        .collect();
    assert_eq!(skipped, [false, false, true, false, false]);
    assert!(prune(&predicate(&ids(), "id < 50"), &[], Visible::Statistics).is_empty());
}

#[test]
fn a_value_that_fails_keeps_only_its_own_file() {
    let schema = table(&[("p", DataType::Int32)], &["p"]);
    let adds = [
        partition(&[("p", Some("0"))]),
        partition(&[("p", Some("5"))]),
        partition(&[("p", Some("20"))]),
    ];
    let files: Vec<_> = adds.iter().map(unknown_writer).collect();
    let skipped: Vec<bool> = prune(
        &predicate(&schema, "100 / p = 20"),
        &files,
        Visible::Statistics,
    )
    .iter()
    .map(|outcome| outcome.is_skip())
    .collect();
    assert_eq!(skipped, [false, false, true]);
}

#[test]
fn names_with_anything_in_them() {
    for name in ["a.b", "Upper", "with space", "row_count", "o0", "f0"] {
        let schema = table(&[(name, DataType::Int64)], &[]);
        let stats = serde_json::json!({"minValues": {name: 7}, "maxValues": {name: 9}});
        let add = file(&stats.to_string());
        assert!(skips(&schema, &format!("\"{name}\" < 7"), &add), "{name}");
        assert!(!skips(&schema, &format!("\"{name}\" < 8"), &add), "{name}");
        assert!(
            skips(&schema, &format!("\"{name}\" = 1 OR \"{name}\" = 10"), &add),
            "{name}"
        );
    }
}
