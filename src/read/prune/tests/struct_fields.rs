//! Fields of struct columns have statistics of their own.

use arrow::datatypes::{DataType, Field, Fields};

use super::*;

fn fields(fields: &[(&str, DataType, bool)]) -> DataType {
    let fields: Fields = fields
        .iter()
        .map(|(name, data_type, nullable)| Field::new(*name, data_type.clone(), *nullable))
        .collect();
    DataType::Struct(fields)
}

fn nested() -> StatisticsSchema {
    let inner = fields(&[("c", DataType::Int64, true), ("D", DataType::Utf8, true)]);
    let outer = fields(&[
        ("a", DataType::Int64, true),
        ("f", DataType::Float64, true),
        ("b", inner, true),
        ("x.y", DataType::Int64, true),
    ]);
    table(
        &[
            ("s", outer),
            ("a", DataType::Int64),
            ("s.a", DataType::Int64),
            ("l", DataType::new_list(DataType::Int64, true)),
        ],
        &[],
    )
}

#[test]
fn a_field_is_found_by_its_path() {
    let add = file(
        r#"{"numRecords":4,
            "minValues":{"s":{"a":10,"f":1.0,"b":{"c":5,"D":"m"},"x.y":7},"a":1},
            "maxValues":{"s":{"a":20,"f":2.0,"b":{"c":6,"D":"p"},"x.y":7},"a":2},
            "nullCount":{"s":{"a":0,"f":1,"b":{"c":2,"D":4},"x.y":0},"l":0}}"#,
    );
    check(
        &nested(),
        &add,
        &[
            ("s['a'] < 10", true),
            ("s['a'] < 11", false),
            ("t.s.a > 20", true),
            ("a > 2", true),
            ("a > 1", false),
            (r#"t."s.a" < 10"#, false),
            ("s['a'] IN (1, 2, 3, 4, 5)", true),
            ("s['a'] IN (1, 2, 3, 4, 15)", false),
            ("s['a'] IS NULL", true),
            ("s['a'] IS NOT NULL", false),
            ("s['a'] = 1 OR s['b']['c'] = 7", true),
            ("s['a'] = 1 OR s['b']['c'] = 6", false),
            ("CAST(s['a'] AS DOUBLE) > 20.5", true),
            ("s['b']['c'] = 7", true),
            ("s['b']['c'] IS NULL", false),
            ("s['x.y'] = 8", true),
            ("s['x.y'] = 7", false),
            // Bounds though all rows are NULL contradict.
            ("s['b']['D'] = 'z'", false),
            // Floats follow the rules of floats.
            ("s['f'] > 5", false),
            ("s['f'] > 5 AND s['f'] < 9", true),
            // Nothing is known of what is no leaf.
            ("s IS NULL", false),
            ("s IS NOT NULL", false),
            ("s['b'] IS NULL", false),
            ("l IS NULL", false),
            ("l IS NOT NULL", false),
            ("l[1] = 5", false),
        ],
    );
    let tagged = tagged(add, NAN_FREE_TAG, r#"["f","s","s.f"]"#);
    assert!(!skips(&nested(), "s['f'] > 5", &tagged));
}

#[test]
fn statistics_of_another_form_say_nothing() {
    for stats in [
        r#"{"minValues":{"s":10}}"#,
        r#"{"minValues":{"s.a":10}}"#,
        r#"{"minValues":{"a":10}}"#,
        r#"{"minValues":{"S":{"a":10}}}"#,
        r#"{"minValues":{"s":{"A":10}}}"#,
        r#"{"minValues":{"s":{"a":{"a":10}}}}"#,
        r#"{"minValues":{"s":[{"a":10}]}}"#,
        r#"{"minValues":{"s":{"a":10},"s":{"a":10}}}"#,
        r#"{"minValues":{"s":{"a":10,"a":10}}}"#,
        r#"{"minValues":{"s":{"a":10}},"maxValues":{"s":{"a":9}}}"#,
        r#"{"minValues":{"s":{"a":10}},"maxValues":{"s":{"a":9,"a":9}}}"#,
        r#"{"minValues":{"s":{}}}"#,
        r#"{"minValues":{"s":null}}"#,
    ] {
        assert!(!skips(&nested(), "s['a'] < 10", &file(stats)), "{stats}");
    }
    let add = file(r#"{"minValues":{"s":{"a":10}}}"#);
    assert!(skips(&nested(), "s['a'] < 10", &add));
}

/// In a NULL struct a required field holds what happens to stand there.
#[test]
fn a_required_field_of_an_optional_struct_counts_only_without_nulls() {
    let schema = |nullable| {
        let data_type = fields(&[("a", DataType::Int64, false)]);
        StatisticsSchema {
            schema: Arc::new(Schema::new(vec![Field::new("s", data_type, nullable)])),
            partition_columns: vec![],
            string_prefix_length: 32,
        }
    };
    let add = |nulls: &str| {
        file(&format!(
            r#"{{"numRecords":4,"minValues":{{"s":{{"a":10}}}}{nulls}}}"#
        ))
    };
    for (nulls, optional) in [
        (r#","nullCount":{"s":{"a":0}}"#, true),
        (r#","nullCount":{"s":{"a":1}}"#, false),
        ("", false),
    ] {
        assert_eq!(
            skips(&schema(true), "s['a'] < 10", &add(nulls)),
            optional,
            "{nulls}"
        );
        assert!(skips(&schema(false), "s['a'] < 10", &add(nulls)), "{nulls}");
    }
    let all = file(r#"{"numRecords":4,"nullCount":{"s":{"a":4}}}"#);
    assert!(!skips(&schema(true), "s['a'] = 0", &all));
}

#[test]
fn a_field_is_named_as_people_write_it() {
    let add = file(r#"{"minValues":{"s":{"b":{"c":5}}}}"#);
    let decision = decide(&nested(), "s['b']['c'] < 5", &add);
    let reason = decision.reason().expect("a reason");
    assert_eq!(
        reason.detail,
        "s['b']['c'] < 5 needs min < 5, file has min 5"
    );
    assert_eq!(reason.column.as_deref(), Some("s.b.c"));
}
