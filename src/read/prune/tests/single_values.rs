//! Where every row of a file holds one value, any immutable condition on it is decided.

use super::*;
use crate::read::test_support::filter;

fn stats(nulls: u64, min: &str, max: &str) -> Add {
    file(&format!(
        r#"{{"numRecords":3,"minValues":{{"x":{min}}},"maxValues":{{"x":{max}}},
            "nullCount":{{"x":{nulls}}}}}"#
    ))
}

#[test]
fn one_value_of_each_type() {
    let one = |data_type: &DataType, value: &str, sql: &str| {
        let schema = table(&[("x", data_type.clone())], &[]);
        skips(&schema, sql, &stats(0, value, value))
    };
    for (data_type, value, sql, expected) in [
        (DataType::Int8, "4", "x % 2 = 1", true),
        (DataType::Int16, "5", "x % 2 = 1", false),
        (DataType::Int32, "4", "x + 1 = 3", true),
        (DataType::Int64, "4", "CAST(x AS VARCHAR) = '3'", true),
        (DataType::Int64, "4", "CAST(x AS VARCHAR) = '4'", false),
        (
            DataType::Int64,
            "4",
            "CASE WHEN x = 4 THEN false ELSE true END",
            true,
        ),
        (DataType::Int64, "4", "(x = 4) IS NOT TRUE", true),
        (DataType::Int64, "4", "(x = 5) IS NOT TRUE", false),
        (DataType::Int64, "4", "x = 3.5", true),
        // An overflow and a failure are no proof.
        (DataType::Int64, "9223372036854775807", "x + 1 > 5", false),
        (DataType::Int64, "-9223372036854775808", "abs(x) = 1", false),
        (DataType::Int64, "0", "10 / x = 1", false),
        (
            DataType::Date32,
            "\"2020-01-31\"",
            "date_part('month', x) = 2",
            true,
        ),
        (
            DataType::Date32,
            "\"2020-01-31\"",
            "date_part('month', x) = 1",
            false,
        ),
        (DataType::Decimal128(15, 2), "1.25", "x + 1 = 3", true),
        (DataType::Decimal128(15, 2), "1.25", "x + 1 = 2.25", false),
        (DataType::Decimal128(16, 2), "1.25", "x + 1 = 3", false),
        (DataType::Utf8, "\"abc\"", "length(x) > 5", true),
        (DataType::Utf8, "\"abc\"", "length(x) < 5", false),
        (DataType::Utf8, "\"abc\"", "x LIKE '%x'", true),
        (DataType::Utf8, "\"abc\"", "x LIKE '%c'", false),
        (DataType::Utf8, "\"abc\"", "x NOT LIKE '%c'", true),
        (DataType::Utf8, "\"abc\"", "x ILIKE 'X%'", true),
        // It may be longer.
        (
            DataType::Utf8,
            "\"sixteen bytes...\"",
            "length(x) > 16",
            false,
        ),
        (DataType::Utf8, "\"abc\u{7F}\"", "length(x) > 16", false),
        (DataType::Utf8, "\"abc\u{FFFD}\"", "length(x) > 16", false),
        // Bounds leave NaN out, and zero has two signs.
        (DataType::Float64, "1.5", "x + 1 = 3", false),
        (DataType::Float64, "0.0", "1 / x < 0", false),
        // Maxima are cut.
        (
            timestamp(),
            "\"2020-06-01T12:00:00.000Z\"",
            "date_part('minute', x) = 1",
            false,
        ),
        (DataType::Boolean, "true", "NOT x", false),
    ] {
        assert_eq!(
            one(&data_type, value, sql),
            expected,
            "{data_type} {value} {sql}"
        );
    }
}

#[test]
fn nulls_beside_the_value_or_in_its_place() {
    let schema = ids();
    let x = |sql: &str| sql.replace('x', "id");
    let add = |nulls: &str| {
        file(&format!(
            r#"{{"numRecords":3,"minValues":{{"id":4}},"maxValues":{{"id":4}}{nulls}}}"#
        ))
    };
    for (nulls, expected) in [
        (r#","nullCount":{"id":0}"#, true),
        (r#","nullCount":{"id":1}"#, false),
        ("", false),
    ] {
        assert_eq!(
            skips(&schema, &x("x % 2 = 1"), &add(nulls)),
            expected,
            "{nulls}"
        );
    }
    let wide = with_deletions(add(r#","nullCount":{"id":0}"#));
    assert!(skips(&schema, "id % 2 = 1", &wide));
    let all = file(r#"{"numRecords":3,"nullCount":{"id":3}}"#);
    for (sql, expected) in [
        ("id % 2 = 1", true),
        ("coalesce(id, 7) = 7", false),
        ("coalesce(id, 7) = 8", true),
        ("(id > 5) IS NOT TRUE", false),
        ("CAST(id AS VARCHAR) = '1'", true),
    ] {
        assert_eq!(skips(&schema, sql, &all), expected, "{sql}");
    }
}

#[test]
fn every_column_of_the_condition_needs_one_value() {
    let schema = table(
        &[
            ("p", DataType::Int64),
            ("a", DataType::Int64),
            ("b", DataType::Int64),
        ],
        &["p"],
    );
    let add = |a: (i64, i64), b: (i64, i64)| {
        let mut add = partition(&[("p", Some("7"))]);
        let stats = serde_json::json!({
            "numRecords": 2, "minValues": {"a": a.0, "b": b.0},
            "maxValues": {"a": a.1, "b": b.1}, "nullCount": {"a": 0, "b": 0},
        });
        add.stats = Some(stats.to_string());
        add
    };
    for (a, b, sql, expected) in [
        ((5, 5), (3, 3), "a < b", true),
        ((3, 3), (5, 5), "a < b", false),
        ((5, 5), (3, 4), "a < b", false),
        ((5, 5), (3, 4), "a = p", true),
        ((7, 7), (3, 4), "a = p", false),
        ((5, 5), (3, 4), "a % 2 = 0 OR b > 9", true),
        ((5, 5), (3, 4), "a % 2 = 0 OR b > 3", false),
        ((5, 5), (3, 4), "(a = 5 AND b = 3) IS NOT TRUE", false),
    ] {
        let decision = decide(&schema, sql, &add(a, b));
        assert_eq!(
            decision.is_skip(),
            expected,
            "{a:?} {b:?} {sql}: {decision:?}"
        );
        // It is not the partition value that decides.
        if let Decision::Skip { reason } = decision {
            assert_eq!(reason.code, ReasonCode::Statistics, "{sql}");
        }
        let filters = [filter(&schema, sql)];
        let predicate = ReadPredicate::new(&filters, &schema);
        let add = add(a, b);
        let hidden = prune(
            &predicate,
            &[unknown_writer(&add)],
            Visible::PartitionValues,
        );
        assert!(!hidden[0].is_skip(), "{sql}");
    }
}

#[test]
fn a_file_for_which_it_fails_keeps_only_itself() {
    let adds = [("0", "0"), ("5", "5"), ("20", "20"), ("20", "21")].map(|(min, max)| {
        file(&format!(
            r#"{{"numRecords":1,"minValues":{{"id":{min}}},"maxValues":{{"id":{max}}},
                "nullCount":{{"id":0}}}}"#
        ))
    });
    let files: Vec<_> = adds.iter().map(unknown_writer).collect();
    let skipped: Vec<bool> = prune(
        &predicate(&ids(), "100 / id = 20"),
        &files,
        Visible::Statistics,
    )
    .iter()
    .map(|outcome| outcome.is_skip())
    .collect();
    assert_eq!(skipped, [false, false, true, false]);
}
