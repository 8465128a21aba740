use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, UInt64Type};

use super::*;
use crate::read::test_support::{file, partition, table, tagged, unknown_writer, with_deletions};

/// Lower bound, upper bound and null count of the `Int64` column `x`.
fn facts(add: &Add) -> (Option<i64>, Option<i64>, Option<u64>) {
    let schema = table(&[("x", DataType::Int64)], &[]);
    let files = [unknown_writer(add)];
    let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
    let x = Column::from_name("x");
    let number = |array: Option<ArrayRef>| {
        let array = array.expect("column");
        let array = array.as_primitive::<Int64Type>();
        array.is_valid(0).then(|| array.value(0))
    };
    let nulls = statistics.null_counts(&x).expect("column");
    let nulls = nulls.as_primitive::<UInt64Type>();
    (
        number(statistics.min_values(&x)),
        number(statistics.max_values(&x)),
        nulls.is_valid(0).then(|| nulls.value(0)),
    )
}

const UNKNOWN: (Option<i64>, Option<i64>, Option<u64>) = (None, None, None);

#[test]
fn each_piece_stands_alone() {
    for (stats, expected) in [
        (
            r#"{"numRecords":9,"minValues":{"x":1},"maxValues":{"x":5},"nullCount":{"x":2}}"#,
            (Some(1), Some(5), Some(2)),
        ),
        (r#"{"minValues":{"x":1}}"#, (Some(1), None, None)),
        (r#"{"maxValues":{"x":5}}"#, (None, Some(5), None)),
        (r#"{"nullCount":{"x":0}}"#, (None, None, Some(0))),
        (r#"{"numRecords":9}"#, UNKNOWN),
        (
            r#"{"minValues":{"x":null},"maxValues":{"x":5}}"#,
            (None, Some(5), None),
        ),
        (
            r#"{"minValues":{"x":"a"},"maxValues":{"x":5}}"#,
            (None, Some(5), None),
        ),
        (
            r#"{"minValues":7,"maxValues":{"x":5},"nullCount":[]}"#,
            (None, Some(5), None),
        ),
        (
            r#"{"minValues":{"X":1,"x":2},"maxValues":{"X":5}}"#,
            (Some(2), None, None),
        ),
        (r#"{"minValues":{"\u0078":1}}"#, (Some(1), None, None)),
        (r#"{"nullCount":{"x":-1}}"#, UNKNOWN),
        (r#"{"nullCount":{"x":1.0}}"#, UNKNOWN),
        (r#"{"minValues":{"x":1}"#, UNKNOWN),
        ("", UNKNOWN),
        ("null", UNKNOWN),
        ("[]", UNKNOWN),
    ] {
        assert_eq!(facts(&file(stats)), expected, "{stats}");
    }
    assert_eq!(facts(&Add::default()), UNKNOWN);
}

#[test]
fn repeated_keys_are_unknown() {
    for (stats, expected) in [
        (
            r#"{"minValues":{"x":1,"x":2},"maxValues":{"x":5},"nullCount":{"x":0}}"#,
            UNKNOWN,
        ),
        (
            r#"{"minValues":{"x":1},"maxValues":{"x":5},"nullCount":{"x":0,"\u0078":0}}"#,
            UNKNOWN,
        ),
        (
            r#"{"minValues":{"x":1},"minValues":{"x":1},"maxValues":{"x":5}}"#,
            (None, Some(5), None),
        ),
        (
            r#"{"minValues":{"y":1,"y":2,"x":1},"maxValues":{"x":5}}"#,
            (Some(1), Some(5), None),
        ),
    ] {
        assert_eq!(facts(&file(stats)), expected, "{stats}");
    }
}

#[test]
fn contradictions_make_the_column_unknown() {
    for stats in [
        r#"{"numRecords":1,"minValues":{"x":1},"maxValues":{"x":5},"nullCount":{"x":2}}"#,
        r#"{"numRecords":9,"minValues":{"x":6},"maxValues":{"x":5},"nullCount":{"x":2}}"#,
        r#"{"numRecords":9,"minValues":{"x":1},"maxValues":{"x":5},"nullCount":{"x":9}}"#,
        r#"{"numRecords":9,"minValues":{"x":1},"nullCount":{"x":9}}"#,
    ] {
        assert_eq!(facts(&file(stats)), UNKNOWN, "{stats}");
    }
}

#[test]
fn a_wide_file_tells_nulls_only_by_none_and_all() {
    let stats = |rows: &str, nulls: u64, tight: &str| {
        format!(r#"{{{rows}"nullCount":{{"x":{nulls}}}{tight}}}"#)
    };
    let rows = r#""numRecords":9,"#;
    let wide = r#","tightBounds":false"#;
    for (rows, nulls, tight, deletions, expected) in [
        (rows, 2, "", false, Some(2)),
        (rows, 2, r#","tightBounds":true"#, false, Some(2)),
        (rows, 2, wide, false, None),
        (rows, 2, r#","tightBounds":"yes""#, false, None),
        (
            rows,
            2,
            r#","tightBounds":true,"tightBounds":true"#,
            false,
            None,
        ),
        (rows, 2, r#","tightBounds":true"#, true, None),
        (rows, 0, wide, true, Some(0)),
        (rows, 9, wide, true, Some(9)),
        ("", 2, "", false, Some(2)),
        ("", 2, wide, false, None),
        ("", 0, wide, true, Some(0)),
    ] {
        let stats = stats(rows, nulls, tight);
        let mut add = file(&stats);
        if deletions {
            add = with_deletions(add);
        }
        assert_eq!(facts(&add).2, expected, "{stats} {deletions}");
    }
    // Bounds of a wide file still hold.
    let add = with_deletions(file(r#"{"minValues":{"x":1},"maxValues":{"x":5}}"#));
    assert_eq!(facts(&add), (Some(1), Some(5), None));
}

#[test]
fn no_rows_only_if_nothing_says_otherwise() {
    let schema = table(&[("x", DataType::Int64)], &[]);
    for (stats, expected) in [
        (r#"{"numRecords":0}"#, true),
        (
            r#"{"numRecords":0,"minValues":{},"nullCount":{"x":0,"s":{"a":0}}}"#,
            true,
        ),
        (r#"{"numRecords":0,"minValues":{"x":null}}"#, true),
        (r#"{"numRecords":0,"minValues":{"x":1}}"#, false),
        (r#"{"numRecords":0,"maxValues":{"s":{"a":1}}}"#, false),
        (r#"{"numRecords":0,"nullCount":{"x":1}}"#, false),
        (r#"{"numRecords":1}"#, false),
        (r#"{"numRecords":0,"numRecords":0}"#, false),
        (r#"{"numRecords":"0"}"#, false),
        ("{}", false),
    ] {
        let add = file(stats);
        let files = [unknown_writer(&add)];
        let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
        assert_eq!(statistics.has_no_rows(0), expected, "{stats}");
        let hidden = FileStatistics::new(&schema, &files, Visible::PartitionValues);
        assert!(!hidden.has_no_rows(0), "{stats}");
    }
    let add = with_deletions(file(r#"{"numRecords":0}"#));
    let files = [unknown_writer(&add)];
    assert!(!FileStatistics::new(&schema, &files, Visible::Statistics).has_no_rows(0));
}

#[test]
fn nested_columns_have_nothing_themselves() {
    let inner = Field::new("a", DataType::Int64, true);
    let schema = table(
        &[
            ("s", DataType::Struct(vec![inner.clone()].into())),
            ("l", DataType::new_list(DataType::Int64, true)),
        ],
        &[],
    );
    let add = file(
        r#"{"numRecords":3,"minValues":{"s":{"a":1},"l":1},"maxValues":{"s":{"a":2},"l":2},
            "nullCount":{"s":{"a":3},"l":3}}"#,
    );
    let files = [unknown_writer(&add)];
    let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
    for name in ["s", "l"] {
        let column = Column::from_name(name);
        for array in [
            statistics.min_values(&column),
            statistics.max_values(&column),
            statistics.null_counts(&column),
        ] {
            assert_eq!(array.expect("column").null_count(), 1, "{name}");
        }
    }
}

#[test]
fn names_are_exact_whatever_is_in_them() {
    for name in ["a.b", "A b", "\"q\"", "MiXed", "é`"] {
        let schema = table(&[(name, DataType::Int64)], &[]);
        let stats = serde_json::json!({"minValues": {name: 7}}).to_string();
        let add = file(&stats);
        let files = [unknown_writer(&add)];
        let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
        let min = statistics.min_values(&Column::from_name(name));
        assert_eq!(min.expect("column").null_count(), 0, "{name}");
        let other = Column::from_name(name.to_lowercase() + "x");
        assert!(statistics.min_values(&other).is_none(), "{name}");
    }
}

#[test]
fn columns_kept_under_another_name_or_order_are_unknown() {
    let stats = r#"{"minValues":{"x":"a"},"maxValues":{"x":"b"},"nullCount":{"x":0}}"#;
    for (key, value, bounds, nulls) in [
        ("delta.columnMapping.physicalName", "x", true, true),
        ("delta.columnMapping.physicalName", "col-1", false, false),
        ("__COLLATIONS", "{}", false, true),
    ] {
        let field = Field::new("x", DataType::Utf8, true)
            .with_metadata([(key.to_owned(), value.to_owned())].into());
        let schema = StatisticsSchema {
            schema: Arc::new(Schema::new(vec![field])),
            partition_columns: vec![],
            string_prefix_length: 32,
        };
        let add = file(stats);
        let files = [unknown_writer(&add)];
        let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
        let known = |array: Option<ArrayRef>| array.expect("column").null_count() == 0;
        let x = Column::from_name("x");
        assert_eq!(known(statistics.min_values(&x)), bounds, "{key} {value}");
        assert_eq!(known(statistics.null_counts(&x)), nulls, "{key} {value}");
    }
}

#[test]
fn one_bad_file_does_not_spoil_its_neighbours() {
    let schema = table(&[("x", DataType::Int64)], &[]);
    let adds = [
        file(r#"{"minValues":{"x":1}}"#),
        file("{"),
        file(r#"{"minValues":{"x":"x"}}"#),
        Add::default(),
        file(r#"{"minValues":{"x":5}}"#),
    ];
    let files: Vec<_> = adds.iter().map(unknown_writer).collect();
    let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
    let min = statistics.min_values(&Column::from_name("x"));
    let min = min.expect("column");
    let min: Vec<_> = min.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(min, [Some(1), None, None, None, Some(5)]);
    assert_eq!(statistics.num_containers(), 5);
}

#[test]
fn float_bounds_are_shown_only_where_there_is_no_nan() {
    let schema = table(&[("x", DataType::Float64), ("y", DataType::Float64)], &[]);
    let plain = file(r#"{"minValues":{"x":1.0,"y":1.0}}"#);
    for (add, expected) in [
        (plain.clone(), false),
        (tagged(plain.clone(), NAN_FREE_TAG, r#"["x"]"#), true),
        (tagged(plain.clone(), NAN_FREE_TAG, r#"["y"]"#), false),
        (tagged(plain.clone(), NAN_FREE_TAG, "x"), false),
        (tagged(plain, NAN_FREE_TAG, r#"{"x":true}"#), false),
    ] {
        let files = [unknown_writer(&add)];
        let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
        let min = statistics.min_values(&Column::from_name("x"));
        assert_eq!(min.expect("column").null_count() == 0, expected, "{add:?}");
    }
}

#[test]
fn decimals_are_exact_by_writer_or_by_tag() {
    let schema = table(&[("x", DataType::Decimal128(38, 2))], &[]);
    let plain = file(r#"{"minValues":{"x":1.25}}"#);
    let tag = |value| tagged(plain.clone(), EXACT_STATISTICS_TAG, value);
    for (add, exact_writer, expected) in [
        // Widened.
        (plain.clone(), false, 124),
        (plain.clone(), true, 125),
        (tag("true"), false, 125),
        (tag("false"), false, 124),
        (tag("yes"), false, 124),
    ] {
        let files = [PruneFile {
            add: &add,
            exact_writer,
        }];
        let statistics = FileStatistics::new(&schema, &files, Visible::Statistics);
        let min = statistics.min_values(&Column::from_name("x"));
        let min = min.expect("column");
        let min = min.as_primitive::<Decimal128Type>().value(0);
        assert_eq!(min, expected, "{add:?}");
    }
}

#[test]
fn partition_columns_come_from_partition_values_alone() {
    let schema = table(&[("x", DataType::Int64)], &["x"]);
    let mut add = partition(&[("x", Some("7"))]);
    add.stats = Some(r#"{"numRecords":3,"minValues":{"x":1},"nullCount":{"x":3}}"#.to_owned());
    for visible in [Visible::Statistics, Visible::PartitionValues] {
        let files = [unknown_writer(&add)];
        let statistics = FileStatistics::new(&schema, &files, visible);
        let x = Column::from_name("x");
        for array in [statistics.min_values(&x), statistics.max_values(&x)] {
            let array = array.expect("column");
            assert_eq!(array.as_primitive::<Int64Type>().value(0), 7);
        }
        let nulls = statistics.null_counts(&x).expect("column");
        assert_eq!(nulls.as_primitive::<UInt64Type>().value(0), 0);
    }
}

#[test]
fn no_files_are_no_problem() {
    let schema = table(&[("x", DataType::Int64)], &[]);
    let statistics = FileStatistics::new(&schema, &[], Visible::Statistics);
    let min = statistics.min_values(&Column::from_name("x"));
    assert_eq!(min.expect("column").len(), 0);
    assert!(statistics.is_empty());
}

#[test]
fn floats_are_found_at_any_depth() {
    let float = Field::new("f", DataType::Float32, true);
    for (data_type, expected) in [
        (DataType::Float64, true),
        (DataType::Int64, false),
        (DataType::Decimal128(10, 2), false),
        (DataType::new_list(DataType::Float32, true), true),
        (DataType::new_list(DataType::Utf8, true), false),
        (DataType::Struct(vec![float].into()), true),
        (
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Float64)),
            true,
        ),
    ] {
        assert_eq!(touches_float(&data_type), expected, "{data_type}");
    }
}
