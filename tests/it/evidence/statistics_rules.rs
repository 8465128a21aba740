//! One hand-made log entry for each rule of what statistics prove: the verdict and its reason.

use delta_disjoint::commit::Verdict;
use delta_disjoint::explain::Question;
use delta_disjoint::reason::ReasonCode;
use serde_json::{Value, json};

use super::log::{Log, added, info, reads};
use ReasonCode::{
    BoundsOverlap, ColumnStatisticsMissing, EvaluationFailed, InexactDecimal, NanPossible,
    NeverTrue, NoRows, NullCountUnknown, PartitionPredicateOnly, PartitionValueMatches,
    PartitionValueUnknown, PartitionValues, RoundedTimestamp, Statistics, StatisticsMissing,
    StatisticsUnreadable, TruncatedString, TypeRule, UnusableTerm,
};

struct Case {
    predicate: &'static str,
    values: Value,
    stats: Value,
    skipped: bool,
    reason: ReasonCode,
}

fn case(predicate: &'static str, stats: Value, skipped: bool, reason: ReasonCode) -> Case {
    Case {
        predicate,
        values: json!({"p": "2"}),
        stats,
        skipped,
        reason,
    }
}

/// One column with these bounds and no NULL.
fn bounds(column: &str, min: Value, max: Value) -> Value {
    json!({"numRecords": 10, "minValues": {column: min}, "maxValues": {column: max},
        "nullCount": {column: 0}})
}

fn of_types() -> Vec<Case> {
    let long = "a common prefix of more than thirty-two characters";
    let cut = "a common prefix of more than thi";
    vec![
        // Integers beyond the precision of doubles.
        case(
            "id = 9007199254740992",
            bounds(
                "id",
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_994_u64),
            ),
            true,
            Statistics,
        ),
        case(
            "id = 9007199254740993",
            bounds(
                "id",
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_994_u64),
            ),
            false,
            BoundsOverlap,
        ),
        // Decimals of many digits, which go through doubles; saturated ones.
        case(
            "d > 300",
            bounds("d", json!(100.0), json!(200.0)),
            true,
            Statistics,
        ),
        case(
            "d > 200",
            bounds("d", json!(100.0), json!(200.0)),
            false,
            InexactDecimal,
        ),
        case(
            "d > CAST(9300000000000000000 AS DECIMAL(38,2))",
            json!({"numRecords": 1, "maxValues": {"d": i64::MAX}, "nullCount": {"d": 0}}),
            false,
            InexactDecimal,
        ),
        // A NaN lies above the largest number; a range with two ends and `=` let none pass.
        case(
            "f > 5",
            bounds("f", json!(1.0), json!(1.0)),
            false,
            NanPossible,
        ),
        case(
            "f = 5",
            bounds("f", json!(1.0), json!(1.0)),
            true,
            Statistics,
        ),
        case(
            "f > 5 AND f < 9",
            bounds("f", json!(1.0), json!(1.0)),
            true,
            Statistics,
        ),
        case(
            "f > 5",
            bounds("f", json!("Infinity"), json!("Infinity")),
            false,
            BoundsOverlap,
        ),
        case(
            "f = 0.0",
            bounds("f", json!(-0.0), json!(0.0)),
            false,
            BoundsOverlap,
        ),
        // Strings that may have been cut.
        case(
            "s > 'b'",
            bounds("s", json!("a"), json!("apple")),
            true,
            Statistics,
        ),
        case(
            "s > 'a common prefix of more than tk'",
            bounds("s", json!("a"), json!(cut)),
            true,
            Statistics,
        ),
        case(
            "s = 'a common prefix of more than thirty-three'",
            bounds("s", json!("a"), json!(cut)),
            false,
            TruncatedString,
        ),
        case(
            "s = 'a common prefix of more than thirty-two'",
            bounds("s", json!("a"), json!(long)),
            false,
            BoundsOverlap,
        ),
        case(
            "s LIKE 'b%'",
            bounds("s", json!("a"), json!("apple")),
            true,
            Statistics,
        ),
        case(
            "s LIKE '%b'",
            bounds("s", json!("a"), json!("apple")),
            false,
            BoundsOverlap,
        ),
        // Timestamps are cut to milliseconds, and their offsets to minutes before 1972.
        case(
            "t > '2024-01-02T00:00:00.0005Z'",
            bounds(
                "t",
                json!("2024-01-01T00:00:00.000Z"),
                json!("2024-01-02T00:00:00.000Z"),
            ),
            false,
            RoundedTimestamp,
        ),
        case(
            "t > '2024-01-02T00:00:00.002Z'",
            bounds(
                "t",
                json!("2024-01-01T00:00:00.000Z"),
                json!("2024-01-02T00:00:00.000Z"),
            ),
            true,
            Statistics,
        ),
        case(
            "t > '1950-01-02T00:00:30Z'",
            bounds(
                "t",
                json!("1950-01-01T00:00:00.000Z"),
                json!("1950-01-02T00:00:00.000Z"),
            ),
            false,
            RoundedTimestamp,
        ),
        case(
            "day > '2024-01-02'",
            bounds("day", json!("2024-01-01"), json!("2024-01-02")),
            true,
            Statistics,
        ),
        case(
            "day > '2024-01-02'",
            bounds("day", json!("2024-01-01"), json!("+10000-01-02")),
            false,
            StatisticsUnreadable,
        ),
        // Decimals of few digits go through a double unharmed.
        case(
            "n > 200",
            bounds("n", json!(100.0), json!(200.0)),
            true,
            Statistics,
        ),
        // A tie-breaker at the end of a string stands for anything.
        case(
            "s > 'a\u{e9}'",
            bounds("s", json!("a"), json!("a\u{7f}")),
            false,
            TruncatedString,
        ),
        case(
            "s > 'c'",
            bounds("s", json!("a"), json!("a\u{7f}")),
            true,
            Statistics,
        ),
        case(
            "s < 'b'",
            bounds("s", json!("c\u{fffd}"), json!("d")),
            false,
            TruncatedString,
        ),
        // Of structs the leaves have statistics.
        case(
            "st['a'] < 50",
            json!({"numRecords": 2, "minValues": {"st": {"a": 1000}}, "nullCount": {"st": {"a": 0}}}),
            true,
            Statistics,
        ),
        // Types of which bounds prove nothing; null counts count.
        case(
            "b = false",
            bounds("b", json!(true), json!(true)),
            false,
            TypeRule,
        ),
        case(
            "b IS NULL",
            bounds("b", json!(true), json!(true)),
            true,
            Statistics,
        ),
        case(
            "raw > X'63'",
            bounds("raw", json!("a"), json!("b")),
            false,
            TypeRule,
        ),
    ]
}

fn of_counts_and_damage() -> Vec<Case> {
    let far = |nulls: u64| {
        json!({"numRecords": 2, "minValues": {"id": 5000}, "maxValues": {"id": 5001},
            "nullCount": {"id": nulls}})
    };
    vec![
        case("id < 50", json!({"numRecords": 0}), true, NoRows),
        case("id < 50", far(0), true, Statistics),
        case(
            "id < 50",
            json!({"minValues": {"id": 1000}}),
            true,
            Statistics,
        ),
        case(
            "id < 50",
            json!({"maxValues": {"id": 1000}}),
            false,
            ColumnStatisticsMissing,
        ),
        case(
            "id < 50",
            json!({"numRecords": 100}),
            false,
            ColumnStatisticsMissing,
        ),
        case("id < 50", Value::Null, false, StatisticsMissing),
        case("id < 50", json!("{"), false, StatisticsUnreadable),
        case(
            "id < 50",
            json!(r#"{"minValues":{"id":1000,"id":1000}}"#),
            false,
            StatisticsUnreadable,
        ),
        case("id < 50", far(3), false, StatisticsUnreadable),
        case(
            "id < 50",
            json!({"numRecords": 2, "minValues": {"id": 6000}, "maxValues": {"id": 5000}, "nullCount": {"id": 0}}),
            false,
            StatisticsUnreadable,
        ),
        case(
            "id < 50",
            json!({"numRecords": 2, "nullCount": {"id": 2}}),
            true,
            Statistics,
        ),
        case(
            "id IS NOT NULL",
            json!({"numRecords": 2, "nullCount": {"id": 2}}),
            true,
            Statistics,
        ),
        case("id IS NULL", far(0), true, Statistics),
        case(
            "id IS NULL",
            json!({"numRecords": 2, "minValues": {"id": 7}}),
            false,
            NullCountUnknown,
        ),
        // Of a file with wide bounds, a null count in between says nothing.
        case(
            "id IS NULL",
            json!({"numRecords": 9, "tightBounds": false, "minValues": {"id": 1}, "nullCount": {"id": 9}}),
            false,
            StatisticsUnreadable,
        ),
        case(
            "id IS NULL",
            json!({"numRecords": 9, "tightBounds": false, "minValues": {"id": 1}, "nullCount": {"id": 0}}),
            true,
            Statistics,
        ),
        case(
            "id IS NOT NULL",
            json!({"numRecords": 9, "tightBounds": false, "nullCount": {"id": 9}}),
            true,
            Statistics,
        ),
        case(
            "id < 5",
            json!({"numRecords": 2, "minValues": {"id": 7}, "nullCount": {"id": 2}}),
            false,
            StatisticsUnreadable,
        ),
        // One term is enough in a conjunction; both are needed in a disjunction.
        case("id < 50 AND x > 5", far(0), true, Statistics),
        case("id < 50 OR x > 5", far(0), false, ColumnStatisticsMissing),
        case("id < 50 AND id % 100 > 20", far(0), true, Statistics),
        case("id % 2 = 1", far(0), false, UnusableTerm),
        case(
            "id % 2 = 1",
            bounds("id", json!(8), json!(8)),
            true,
            Statistics,
        ),
        case(
            "id + 9223372036854775807 = 1",
            bounds("id", json!(8), json!(8)),
            false,
            EvaluationFailed,
        ),
        case("id IN (1, 2, 3, 4, 5)", far(0), true, Statistics),
        case("id IN (1, 2, 3, 4, 5000)", far(0), false, BoundsOverlap),
        case(
            "id NOT IN (8, 9, 10, 11)",
            bounds("id", json!(8), json!(8)),
            true,
            Statistics,
        ),
        case("TRY_CAST(s AS INT) = 1", far(0), false, UnusableTerm),
        case("false", far(0), true, NeverTrue),
    ]
}

fn of_partition_values() -> Vec<Case> {
    let with = |values: Value, predicate, skipped, reason| Case {
        values,
        ..case(
            predicate,
            bounds("id", json!(30), json!(60)),
            skipped,
            reason,
        )
    };
    vec![
        with(json!({"p": "2"}), "p = 1", true, PartitionValues),
        with(json!({"p": "1"}), "p = 1", false, PartitionPredicateOnly),
        with(
            json!({"p": "1"}),
            "p = 1 AND id % 2 = 1",
            false,
            PartitionValueMatches,
        ),
        with(json!({"p": "1"}), "p = 1 AND id < 50", false, BoundsOverlap),
        with(json!({"p": "1"}), "p = 1 AND id < 20", true, Statistics),
        with(json!({"p": "2"}), "p = 1 OR id < 20", true, Statistics),
        with(json!({"p": ""}), "p = 1", true, PartitionValues),
        with(json!({"p": null}), "p = 1", true, PartitionValues),
        with(
            json!({"p": null}),
            "p IS NULL",
            false,
            PartitionPredicateOnly,
        ),
        with(json!({}), "p = 1", false, PartitionValueUnknown),
        with(json!({"p": "one"}), "p = 1", false, PartitionValueUnknown),
        with(
            json!({"p": "__HIVE_DEFAULT_PARTITION__"}),
            "p = 1",
            false,
            PartitionValueUnknown,
        ),
        with(json!({"p": "0"}), "100 / p = 20", false, EvaluationFailed),
        with(json!({"p": "20"}), "100 / p = 20", true, PartitionValues),
    ]
}

/// The verdicts of all cases, checked.
pub async fn verdicts() -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let cases = [of_types(), of_counts_and_damage(), of_partition_values()];
    for case in cases.into_iter().flatten() {
        let mut log = Log::serializable(true);
        let stats = match &case.stats {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            stats => stats.to_string(),
        };
        log.commit(&[added("new", case.values.clone(), &stats)]);
        let verdict = log.ask(&reads(&[case.predicate])).await;
        let name = format!("{} {} {stats}", case.predicate, case.values);
        let [evidence] = verdict.evidence.as_slice() else {
            panic!("{name}: {verdict:?}");
        };
        let reason = evidence.decision.reason().expect("a reason");
        assert_eq!(
            (evidence.decision.is_skip(), reason.code),
            (case.skipped, case.reason),
            "{name}: {reason:?}"
        );
        assert_eq!(verdict.is_conflict(), !case.skipped, "{name}");
        assert_eq!(
            (verdict.candidates, verdict.skipped),
            (1, usize::from(case.skipped)),
            "{name}"
        );
        if let Some(conflict) = verdict.first_conflict() {
            assert_eq!(conflict.reason.code, case.reason, "{name}");
        }
        verdicts.push(verdict);
    }
    verdicts
}

#[tokio::test]
async fn each_rule_of_statistics_gives_its_verdict_and_its_reason() {
    verdicts().await;
}

/// What is believed of statistics may depend on who wrote them and on the file.
#[tokio::test]
async fn the_writer_and_the_file_decide_what_statistics_prove() {
    let by =
        |engine: &str, operation: &str| info(json!({"engineInfo": engine, "operation": operation}));
    let spark = by("Apache-Spark/3.5.1 Delta-Lake/3.1.0", "WRITE");
    let restored = by("Apache-Spark/3.5.1 Delta-Lake/3.1.0", "RESTORE");
    let deltalake = by("delta-rs:py-1.1.0", "WRITE");
    let vector = json!({"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6});
    let decimals = bounds("d", json!(100.0), json!(200.0));
    let floats = bounds("f", json!(1.0), json!(1.0));
    let ids = |nulls: u64| {
        json!({"numRecords": 10, "minValues": {"id": 1000}, "maxValues": {"id": 2000},
            "nullCount": {"id": nulls}})
    };
    let none = Value::Null;
    // Who, predicate, statistics, tags, deletion vector, skipped, reason.
    let cases = [
        (&spark, "d > 200", &decimals, &none, &none, true, Statistics),
        (
            &restored,
            "d > 200",
            &decimals,
            &none,
            &none,
            false,
            InexactDecimal,
        ),
        (
            &deltalake,
            "d > 200",
            &decimals,
            &none,
            &none,
            false,
            InexactDecimal,
        ),
        (
            &spark,
            "d > 200",
            &decimals,
            &none,
            &vector,
            false,
            InexactDecimal,
        ),
        (
            &deltalake,
            "d > 200",
            &decimals,
            &json!({"delta-disjoint.exactStatistics": "true"}),
            &none,
            true,
            Statistics,
        ),
        (&spark, "f > 5", &floats, &none, &none, false, NanPossible),
        (
            &spark,
            "f > 5",
            &floats,
            &json!({"delta-disjoint.nanFree": r#"["f"]"#}),
            &none,
            true,
            Statistics,
        ),
        (&spark, "id < 50", &ids(0), &none, &vector, true, Statistics),
        (
            &spark,
            "id IS NULL",
            &ids(0),
            &none,
            &vector,
            true,
            Statistics,
        ),
        (
            &spark,
            "id IS NULL",
            &ids(3),
            &none,
            &vector,
            false,
            StatisticsUnreadable,
        ),
    ];
    for (who, predicate, stats, tags, vector, skipped, code) in cases {
        let mut log = Log::serializable(true);
        let mut action = added("new", json!({"p": "2"}), &stats.to_string());
        action["add"]["tags"] = tags.clone();
        if !vector.is_null() {
            action["add"]["deletionVector"] = vector.clone();
        }
        log.commit(&[who.clone(), action]);
        let verdict = log.ask(&reads(&[predicate])).await;
        let decision = &verdict.evidence[0].decision;
        let reason = decision.reason().expect("a reason");
        assert_eq!(
            (decision.is_skip(), reason.code),
            (skipped, code),
            "{who} {predicate} {stats}: {reason:?}"
        );
    }
}

#[tokio::test]
async fn with_skipping_off_only_partition_values_count() {
    for (predicate, reason) in [
        ("id < 50", ReasonCode::StatisticsNotUsed),
        ("p = 1", PartitionValues),
        ("p = 2", PartitionPredicateOnly),
    ] {
        let mut log = Log::serializable(true);
        log.commit(&[added(
            "new",
            json!({"p": "2"}),
            r#"{"minValues":{"id":1000}}"#,
        )]);
        let question = Question {
            data_skipping: false,
            ..reads(&[predicate])
        };
        let verdict = log.ask(&question).await;
        let found = verdict.evidence[0].decision.reason().expect("a reason");
        assert_eq!(found.code, reason, "{predicate}");
    }
}
