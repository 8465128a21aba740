//! The rules of statistics and of partition values for the types that the table of the other rules
//! has no column of, and for columns that are mapped.

use delta_disjoint::explain::explain;
use delta_disjoint::reason::ReasonCode;
use serde_json::{Value, json};

use super::log::{Log, added, reads};
use ReasonCode::{
    BoundsOverlap, ColumnStatisticsMissing, NanPossible, PartitionPredicateOnly,
    PartitionValueUnknown, PartitionValues, RoundedTimestamp, Statistics, TruncatedString,
    TypeRule,
};

const SERIALIZABLE: &str = "delta.isolationLevel";

fn field(name: &str, kind: Value) -> Value {
    json!({"name": name, "type": kind, "nullable": true, "metadata": {}})
}

/// Asks about one added file, and expects to see it skipped or kept for this reason.
async fn expect(
    log: &mut Log,
    file: Value,
    predicate: &str,
    (skipped, reason): (bool, ReasonCode),
) {
    log.commit(std::slice::from_ref(&file));
    let verdict = log.ask(&reads(&[predicate])).await;
    let [evidence] = verdict.evidence.as_slice() else {
        panic!("{predicate} {file}: {verdict:?}");
    };
    let found = evidence.decision.reason().expect("a reason");
    assert_eq!(
        (evidence.decision.is_skip(), found.code),
        (skipped, reason),
        "{predicate} {file}: {found:?}"
    );
    assert_eq!(verdict.is_conflict(), !skipped, "{predicate} {file}");
}

fn bounds(column: &str, min: Value, max: Value) -> String {
    json!({"numRecords": 10, "minValues": {column: min}, "maxValues": {column: max},
        "nullCount": {column: 0}})
    .to_string()
}

#[tokio::test]
async fn further_types_give_their_verdicts_and_reasons() {
    let list = json!({"type": "array", "elementType": "long", "containsNull": true});
    let map = json!({"type": "map", "keyType": "string", "valueType": "long",
        "valueContainsNull": true});
    let fields = vec![
        field("id", json!("long")),
        field("r", json!("float")),
        field("z", json!("timestamp_ntz")),
        field("l", list),
        field("m", map),
        field("i", json!("integer")),
        field(
            "st",
            json!({"type": "struct", "fields": [field("a", json!("long"))]}),
        ),
    ];
    let no_bounds = json!({"numRecords": 2, "nullCount": {"l": 0, "m": 0}}).to_string();
    let cases = [
        // A single is compared as a single: 0.1 as a double lies below it.
        (
            "r = CAST(0.1 AS FLOAT)",
            bounds("r", json!(0.1), json!(0.1)),
            (false, BoundsOverlap),
        ),
        (
            "r = CAST(0.2 AS FLOAT)",
            bounds("r", json!(0.1), json!(0.1)),
            (true, Statistics),
        ),
        (
            "r > CAST(0.2 AS FLOAT)",
            bounds("r", json!(0.1), json!(0.1)),
            (false, NanPossible),
        ),
        // Timestamps without a zone are cut as those with one.
        (
            "z > '2024-01-02T00:00:00.0005'",
            bounds(
                "z",
                json!("2024-01-01T00:00:00.000"),
                json!("2024-01-02T00:00:00.000"),
            ),
            (false, RoundedTimestamp),
        ),
        (
            "z > '2024-01-02T00:00:00.002'",
            bounds(
                "z",
                json!("2024-01-01T00:00:00.000"),
                json!("2024-01-02T00:00:00.000"),
            ),
            (true, Statistics),
        ),
        // Of collections nothing is known, whatever is written down.
        ("l IS NULL", no_bounds.clone(), (false, TypeRule)),
        ("m IS NULL", no_bounds.clone(), (false, TypeRule)),
        ("l = [1, 2]", no_bounds, (false, TypeRule)),
        // Nor of a struct by itself.
        (
            "st IS NULL",
            json!({"numRecords": 2, "nullCount": {"st": {"a": 0}}}).to_string(),
            (false, TypeRule),
        ),
        // A literal that does not fit the column's type is not cut to it.
        (
            "i > 3000000000",
            bounds("i", json!(1), json!(2)),
            (true, Statistics),
        ),
    ];
    for (predicate, stats, expected) in cases {
        let mut log = Log::of(
            json!({"minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}),
            fields.clone(),
            &[],
            json!({SERIALIZABLE: "Serializable"}),
        );
        log.commit(&[added("a", json!({}), "")]);
        expect(
            &mut log,
            added("new", json!({}), &stats),
            predicate,
            expected,
        )
        .await;
    }
}

#[tokio::test]
async fn partition_values_of_each_type_give_their_verdicts_and_reasons() {
    let cases = [
        // Type, the file's value, predicate.
        (
            "date",
            "2024-01-02",
            "p = '2024-01-03'",
            (true, PartitionValues),
        ),
        (
            "date",
            "2024-01-02",
            "p = '2024-01-02'",
            (false, PartitionPredicateOnly),
        ),
        (
            "date",
            "yesterday",
            "p = '2024-01-03'",
            (false, PartitionValueUnknown),
        ),
        ("boolean", "true", "NOT p", (true, PartitionValues)),
        ("boolean", "true", "p", (false, PartitionPredicateOnly)),
        ("double", "1.5", "p > 2", (true, PartitionValues)),
        ("double", "NaN", "p > 2", (false, PartitionPredicateOnly)),
        ("decimal(10,2)", "1.50", "p > 1.5", (true, PartitionValues)),
        ("string", "a", "p LIKE 'b%'", (true, PartitionValues)),
        (
            "string",
            "b",
            "p LIKE 'b%'",
            (false, PartitionPredicateOnly),
        ),
        // Local text of an unknown zone is within sixteen hours of what it says.
        (
            "timestamp",
            "2024-01-02 12:00:00",
            "p > '2024-01-02T20:00:00Z'",
            (false, PartitionPredicateOnly),
        ),
        (
            "timestamp",
            "2024-01-02T12:00:00.000000Z",
            "p > '2024-01-02T20:00:00Z'",
            (true, PartitionValues),
        ),
    ];
    for (kind, value, predicate, expected) in cases {
        let mut log = Log::of(
            json!({"minReaderVersion": 1, "minWriterVersion": 2}),
            vec![field("id", json!("long")), field("p", json!(kind))],
            &["p"],
            json!({SERIALIZABLE: "Serializable"}),
        );
        log.commit(&[added("a", json!({"p": null}), "")]);
        let file = added("new", json!({"p": value}), "");
        expect(&mut log, file, predicate, expected).await;
    }
}

/// Statistics and partition values go by physical names, at every level.
#[tokio::test]
async fn mapped_columns_are_looked_up_by_their_physical_names() {
    let mapped = |name: &str, physical: &str, id: u32, kind: Value| {
        json!({"name": name, "type": kind, "nullable": true, "metadata":
            {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": physical}})
    };
    let leaf = mapped("a.b", "col-4", 4, json!("long"));
    let fields = vec![
        mapped("customer id", "col-1", 1, json!("long")),
        mapped("p", "col-2", 2, json!("integer")),
        mapped("s", "col-3", 3, json!({"type": "struct", "fields": [leaf]})),
    ];
    let physical = json!({"numRecords": 2, "minValues": {"col-1": 1000, "col-3": {"col-4": 50}},
        "nullCount": {"col-1": 0, "col-3": {"col-4": 0}}})
    .to_string();
    let logical = physical.replace("col-1", "customer id");
    let cases = [
        (
            "\"customer id\" < 50",
            json!({"col-2": "1"}),
            &physical,
            (true, Statistics),
        ),
        (
            "\"customer id\" > 50",
            json!({"col-2": "1"}),
            &physical,
            (false, ColumnStatisticsMissing),
        ),
        (
            "\"customer id\" < 50",
            json!({"col-2": "1"}),
            &logical,
            (false, ColumnStatisticsMissing),
        ),
        (
            "s['a.b'] < 50",
            json!({"col-2": "1"}),
            &physical,
            (true, Statistics),
        ),
        (
            "p = 2",
            json!({"col-2": "1"}),
            &physical,
            (true, PartitionValues),
        ),
        (
            "p = 2",
            json!({"p": "1"}),
            &physical,
            (false, PartitionValueUnknown),
        ),
    ];
    for (predicate, values, stats, expected) in cases {
        let mut log = Log::of(
            json!({"minReaderVersion": 2, "minWriterVersion": 5}),
            fields.clone(),
            &["p"],
            json!({SERIALIZABLE: "Serializable", "delta.columnMapping.mode": "name",
                "delta.columnMapping.maxColumnId": "4"}),
        );
        log.commit(&[added("a", json!({"col-2": "1"}), "")]);
        expect(&mut log, added("new", values, stats), predicate, expected).await;
    }
}

/// A maximum as long as the table lets strings be may have been cut.
#[tokio::test]
async fn the_prefix_length_of_the_table_decides_what_a_string_maximum_is() {
    for (length, decided) in [
        (None, (true, Statistics)),
        (Some("9"), (true, Statistics)),
        (Some("8"), (false, TruncatedString)),
    ] {
        let mut properties = json!({SERIALIZABLE: "Serializable"});
        if let Some(length) = length {
            properties["delta.dataSkippingStringPrefixLength"] = json!(length);
        }
        let mut log = Log::new(false, properties);
        let file = added(
            "c",
            json!({}),
            &bounds("s", json!("abc"), json!("abcdefgh")),
        );
        expect(&mut log, file, "s > 'abcdefghz'", decided).await;
    }
}

/// Bounds in the order of a collation prove nothing about the order of bytes.
#[tokio::test]
async fn a_table_with_a_collated_column_is_refused_by_name() {
    let mut collated = field("s", json!("string"));
    collated["metadata"] = json!({"__COLLATIONS": {"s": "icu.en_US"}});
    let mut log = Log::of(
        json!({"minReaderVersion": 1, "minWriterVersion": 2}),
        vec![collated],
        &[],
        json!({SERIALIZABLE: "Serializable"}),
    );
    log.commit(&[added("a", json!({}), &bounds("s", json!("a"), json!("b")))]);
    log.commit(&[added("b", json!({}), &bounds("s", json!("A"), json!("B")))]);
    let error = explain(&log.handle(), &reads(&["s = 'c'"])).await;
    let error = error.expect_err("it is refused").to_string();
    assert!(
        error.contains("collations, which the column s uses"),
        "{error}"
    );
}
