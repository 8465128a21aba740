use ReasonCode::{
    BoundsOverlap, ColumnStatisticsMissing, EvaluationFailed, InexactDecimal, NanPossible,
    NeverTrue, NoRows, NullCountUnknown, PartitionPredicateOnly, PartitionValueMatches,
    PartitionValueUnknown, PartitionValues, RoundedTimestamp, Statistics, StatisticsMissing,
    StatisticsUnreadable, TruncatedString, TypeRule, UnusableTerm, WholeTableRead,
};

use super::*;

/// A column of each kind.
fn columns() -> StatisticsSchema {
    table(
        &[
            ("p", DataType::Int32),
            ("id", DataType::Int64),
            ("x", DataType::Int64),
            ("y", DataType::Int64),
            ("f", DataType::Float64),
            ("s", DataType::Utf8),
            ("d", DataType::Decimal128(38, 2)),
            ("t", timestamp()),
            ("b", DataType::Boolean),
            ("raw", DataType::Binary),
            ("list", DataType::new_list(DataType::Int64, true)),
        ],
        &["p"],
    )
}

fn some() -> Add {
    let mut add = partition(&[("p", Some("2"))]);
    add.stats = Some(
        r#"{"numRecords":10,
        "minValues":{"id":0,"x":10,"f":1.0,"s":"apple","d":100.00,"t":"2024-01-01T00:00:00.000Z","b":true,"raw":"a"},
        "maxValues":{"id":1000,"x":20,"f":2.0,"s":"a text that is as long as a cut on","d":200.00,"t":"2024-01-02T00:00:00.000Z","b":true,"raw":"b"},
        "nullCount":{"id":0,"x":3,"f":0,"s":0,"d":0,"t":0,"b":0,"raw":0}}"#
            .replace('\n', ""),
    );
    add
}

#[test]
fn skipped_files_say_which_term_and_which_numbers() {
    let cases = [
        (
            "id >= 900000",
            Statistics,
            "id",
            "id >= 900000 needs max >= 900000, file has max 1000",
        ),
        (
            "id < -5",
            Statistics,
            "id",
            "id < -5 needs min < -5, file has min 0",
        ),
        (
            "x = 9",
            Statistics,
            "x",
            "x = 9 needs min <= 9, file has min 10",
        ),
        (
            "x = 21",
            Statistics,
            "x",
            "x = 21 needs max >= 21, file has max 20",
        ),
        (
            "y = 1 AND x > 25",
            Statistics,
            "x",
            "x > 25 needs max > 25, file has max 20",
        ),
        (
            "x IN (1, 9, 30)",
            Statistics,
            "x",
            "(x = 1 OR x = 9 OR x = 30) needs min <= 1, file has min 10, or needs min <= 9, file has \
             min 10, or needs max >= 30, file has max 20",
        ),
        (
            "x IN (1, 9, 30, 31, 32)",
            Statistics,
            "x",
            "x IN (1, 9, 30, 31, 32) needs one of 5 values from 1 to 32, file has min 10 and max 20",
        ),
        (
            "id IS NULL",
            Statistics,
            "id",
            "id IS NULL needs a NULL, file has min 0 and max 1000",
        ),
        (
            "s LIKE 'xyz%'",
            Statistics,
            "s",
            "s LIKE 'xyz%' needs a value like 'xyz%', file has min 'apple' and max 'a text that is as \
             long as a cut oo'",
        ),
        (
            "f > 5 AND f < 9",
            Statistics,
            "f",
            "f > 5.0 AND f < 9.0 needs max > 5.0, file has max 2.0",
        ),
        (
            "p = 1",
            PartitionValues,
            "p",
            "p = 1 is not true where p = 2",
        ),
        (
            "p = 1 AND x > 25",
            PartitionValues,
            "p",
            "p = 1 is not true where p = 2",
        ),
        (
            "p % 2 = 1",
            PartitionValues,
            "p",
            "CAST(p AS BIGINT) % 2 = 1 is not true where p = 2",
        ),
        (
            "p = 1 OR x > 25",
            Statistics,
            "p",
            "(p = 1 OR x > 25) is not true where p = 2, or needs max > 25, file has max 20",
        ),
    ];
    let mut add = some();
    // In order, so that the strings may be compared.
    add.stats = add
        .stats
        .map(|stats| stats.replace(r#""s":"apple""#, r#""s":"a""#));
    for (sql, code, column, detail) in cases {
        let decision = decide(&columns(), sql, &add);
        assert!(decision.is_skip(), "{sql}: {decision:?}");
        let reason = decision.reason().expect("a reason");
        let detail = detail.replace("'apple'", "'a'");
        assert_eq!(
            (reason.code, reason.column.as_deref(), &reason.detail),
            (code, Some(column), &detail),
            "{sql}"
        );
    }
    for (sql, stats, code) in [
        ("id < 5", r#"{"numRecords":0}"#, NoRows),
        ("false", "{}", NeverTrue),
    ] {
        let decision = decide(&columns(), sql, &file(stats));
        let reason = decision.reason().expect("a reason");
        assert_eq!((decision.is_skip(), reason.code), (true, code), "{sql}");
    }
}

#[test]
fn kept_files_say_what_could_not_be_proved() {
    let cases = [
        (
            "x > 15",
            BoundsOverlap,
            "x > 15 may match, file has x from 10 to 20",
        ),
        (
            "y > 15",
            ColumnStatisticsMissing,
            "no statistics for column y",
        ),
        (
            "x = 12 OR y = 3",
            ColumnStatisticsMissing,
            "no statistics for column y",
        ),
        (
            "f > 15",
            NanPossible,
            "column f may hold NaN, which f > 15.0 lets pass",
        ),
        (
            "f > 1.5",
            BoundsOverlap,
            "f > 1.5 may match, file has f from 1.0 to 2.0",
        ),
        (
            "p = 2",
            PartitionPredicateOnly,
            "p = 2 may match, file has p 2",
        ),
        (
            "p = 2 AND x % 2 = 1",
            PartitionValueMatches,
            "p = 2 may match, file has p 2",
        ),
        (
            "x % 2 = 1",
            UnusableTerm,
            "statistics cannot decide x % 2 = 1 (its form)",
        ),
        (
            "length(s) > 5",
            UnusableTerm,
            "statistics cannot decide character_length(s) > 5 (function character_length)",
        ),
        (
            "d > 200",
            InexactDecimal,
            "d > CAST('200.00' AS DECIMAL(38,2)) may match, since writers round long decimals in statistics; file has d from",
        ),
        (
            "t > '2024-01-02T00:00:00.0005Z'",
            RoundedTimestamp,
            "may match, since writers cut timestamps in statistics; file has t from",
        ),
        (
            "s > 'a text that is as long as a cut once'",
            TruncatedString,
            "may match, since writers cut long strings in statistics; file has s from 'a' to",
        ),
        ("b = true", TypeRule, "statistics"),
        ("NOT b", TypeRule, "statistics"),
        (
            "raw > X'63'",
            TypeRule,
            "column raw is binary, of which statistics prove nothing",
        ),
        (
            "list IS NULL",
            TypeRule,
            "column list is an array, of which statistics prove nothing",
        ),
        ("true", WholeTableRead, "the read has no condition"),
    ];
    let mut add = some();
    add.stats = add
        .stats
        .map(|stats| stats.replace(r#""s":"apple""#, r#""s":"a""#));
    for (sql, code, detail) in cases {
        let decision = decide(&columns(), sql, &add);
        assert!(!decision.is_skip(), "{sql}: {decision:?}");
        let reason = decision.reason().expect("a reason");
        assert_eq!(reason.code, code, "{sql}: {reason:?}");
        assert!(reason.detail.contains(detail), "{sql}: {}", reason.detail);
    }
}

#[test]
fn statistics_that_are_damaged_say_how() {
    let cases = [
        ("id < 50", None, StatisticsMissing),
        ("id < 50", Some("{"), StatisticsUnreadable),
        (
            "id < 50",
            Some(r#"{"numRecords":3}"#),
            ColumnStatisticsMissing,
        ),
        (
            "id < 50",
            Some(r#"{"maxValues":{"id":1000}}"#),
            ColumnStatisticsMissing,
        ),
        (
            "id < 50",
            Some(r#"{"minValues":{"id":"x"},"nullCount":{"id":0}}"#),
            StatisticsUnreadable,
        ),
        (
            "id < 50",
            Some(r#"{"minValues":{"id":1000,"id":1001}}"#),
            StatisticsUnreadable,
        ),
        (
            "id < 50",
            Some(r#"{"numRecords":2,"minValues":{"id":1000},"nullCount":{"id":3}}"#),
            StatisticsUnreadable,
        ),
        (
            "id < 50",
            Some(r#"{"minValues":{"id":1000},"maxValues":{"id":900}}"#),
            StatisticsUnreadable,
        ),
        (
            "id IS NULL",
            Some(r#"{"minValues":{"id":1000}}"#),
            NullCountUnknown,
        ),
        (
            "x IS NULL",
            Some(r#"{"numRecords":9,"tightBounds":false,"minValues":{"x":1},"nullCount":{"x":2}}"#),
            StatisticsUnreadable,
        ),
    ];
    for (sql, stats, code) in cases {
        let mut add = file("");
        add.stats = stats.map(str::to_owned);
        let decision = decide(&columns(), sql, &add);
        assert!(!decision.is_skip(), "{sql} {stats:?}");
        let reason = decision.reason().expect("a reason");
        assert_eq!(reason.code, code, "{sql} {stats:?}: {reason:?}");
        let column = sql.split(' ').next();
        assert_eq!(reason.column.as_deref(), column, "{sql} {stats:?}");
    }
    for (values, sql, code) in [
        (vec![], "p = 1", PartitionValueUnknown),
        (vec![("p", Some("one"))], "p = 1", PartitionValueUnknown),
        (vec![("p", Some("0"))], "100 / p = 20", EvaluationFailed),
    ] {
        let decision = decide(&columns(), sql, &partition(&values));
        let reason = decision.reason().expect("a reason");
        assert_eq!(
            (decision.is_skip(), reason.code),
            (false, code),
            "{sql} {values:?}"
        );
    }
}

/// The telling reasons come first, whatever the order of the conditions.
#[test]
fn several_reasons_are_ordered_by_what_can_be_done() {
    let decision = decide(&columns(), "x % 2 = 1 AND x > 15 AND y > 15", &some());
    let Decision::Keep { reasons } = decision else {
        panic!("skipped");
    };
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(
        codes,
        [BoundsOverlap, ColumnStatisticsMissing, UnusableTerm]
    );
}

#[test]
fn separating_columns_lie_on_both_sides_of_their_condition() {
    let cases: [(&str, &[&str]); 12] = [
        ("id < 50", &["id"]),
        ("id >= 0", &[]),
        ("id = 7", &["id"]),
        ("x < 9000 AND id >= 150", &["id"]),
        ("x BETWEEN 0 AND 100 AND id BETWEEN 0 AND 2000", &[]),
        ("x BETWEEN 12 AND 100", &["x"]),
        ("f > 1.5", &["f"]),
        ("s LIKE 'a%'", &["s"]),
        ("id <> 5", &[]),
        ("y = 1", &[]),
        ("p = 2", &[]),
        ("id IN (1, 2, 3, 4, 5, 6)", &["id"]),
    ];
    let mut add = some();
    add.stats = add
        .stats
        .map(|stats| stats.replace(r#""s":"apple""#, r#""s":"a""#));
    for (sql, expected) in cases {
        let found = separating_columns(&predicate(&columns(), sql), &unknown_writer(&add));
        assert_eq!(found, expected, "{sql}");
    }
}
