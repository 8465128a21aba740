use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int64Array, ListArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Int32Type, Schema};
use serde_json::value::RawValue;

use super::text::{max_prefix, prefix};
use super::*;
use crate::read::statistics::{EXACT_STATISTICS_TAG, NAN_FREE_TAG};

mod skip_law;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    num_records: u64,
    min_values: BTreeMap<String, Box<RawValue>>,
    max_values: BTreeMap<String, Box<RawValue>>,
    null_count: BTreeMap<String, Box<RawValue>>,
    tight_bounds: bool,
}

fn collect(columns: &[(&str, ArrayRef)], step: usize) -> FileStatisticsCollector {
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(
            columns
                .iter()
                .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
                .collect::<Vec<_>>(),
        )),
        columns.iter().map(|(_, array)| Arc::clone(array)).collect(),
    )
    .expect("batch");
    let indexed = StatisticsColumns::new(&batch.schema(), &BTreeMap::new());
    let mut collector = FileStatisticsCollector::new(&batch.schema(), &indexed);
    for offset in (0..batch.num_rows()).step_by(step) {
        let length = step.min(batch.num_rows() - offset);
        collector
            .update(&batch.slice(offset, length))
            .expect("same schema");
    }
    collector
}

fn stats(collector: &FileStatisticsCollector) -> Stats {
    serde_json::from_str(&collector.stats_json()).expect("JSON")
}

/// (name, values, least, greatest, nulls) as JSON text; `None` where there must be no bound.
type Case = (
    &'static str,
    ArrayRef,
    Option<&'static str>,
    Option<&'static str>,
    &'static str,
);

fn check(cases: Vec<Case>) {
    for (name, array, min, max, nulls) in cases {
        for step in [1, 2, 100] {
            let stats = stats(&collect(&[("c", Arc::clone(&array))], step));
            assert_eq!(stats.num_records, array.len() as u64, "{name}");
            assert!(stats.tight_bounds);
            let text = |map: &BTreeMap<String, Box<RawValue>>| {
                map.get("c").map(|value| value.get().to_owned())
            };
            assert_eq!(text(&stats.min_values).as_deref(), min, "{name}: min");
            assert_eq!(text(&stats.max_values).as_deref(), max, "{name}: max");
            assert_eq!(text(&stats.null_count).as_deref(), Some(nulls), "{name}");
        }
    }
}

fn decimals(precision: u8, scale: i8, values: Vec<Option<i128>>) -> ArrayRef {
    Arc::new(
        Decimal128Array::from(values)
            .with_precision_and_scale(precision, scale)
            .expect("fits"),
    )
}

#[test]
fn exact_types_have_exact_bounds() {
    let big = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
    check(vec![
        (
            "integers beyond 2^53",
            Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN)])),
            Some("-9223372036854775808"),
            Some("9223372036854775807"),
            "1",
        ),
        (
            "decimal of 38 digits",
            decimals(38, 0, vec![Some(big), Some(-big)]),
            Some("-99999999999999999999999999999999999999"),
            Some("99999999999999999999999999999999999999"),
            "0",
        ),
        (
            "decimal with a long fraction",
            decimals(18, 18, vec![Some(100_000_000_000_000_001), None]),
            Some("0.100000000000000001"),
            Some("0.100000000000000001"),
            "1",
        ),
        (
            "dates on both sides of the epoch",
            Arc::new(Date32Array::from(vec![-1, 0, -719_162])),
            Some("\"0001-01-01\""),
            Some("\"1970-01-01\""),
            "0",
        ),
        (
            "dates outside the years 1 to 9999 have no bound",
            Arc::new(Date32Array::from(vec![-719_163, 2_932_897])),
            None,
            None,
            "0",
        ),
        (
            "no values",
            Arc::new(Int64Array::from(vec![None::<i64>, None])),
            None,
            None,
            "2",
        ),
    ]);
}

#[test]
fn timestamps_are_cut_down_to_milliseconds() {
    let values = vec![Some(-1), Some(1_577_836_800_000_999), None];
    check(vec![
        (
            "UTC",
            Arc::new(TimestampMicrosecondArray::from(values.clone()).with_timezone("UTC")),
            Some("\"1969-12-31T23:59:59.999Z\""),
            Some("\"2020-01-01T00:00:00.000Z\""),
            "1",
        ),
        (
            "no zone",
            Arc::new(TimestampMicrosecondArray::from(values)),
            Some("\"1969-12-31T23:59:59.999\""),
            Some("\"2020-01-01T00:00:00.000\""),
            "1",
        ),
        (
            "beyond the calendar",
            Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX])),
            None,
            None,
            "0",
        ),
    ]);
}

#[test]
fn floats_have_bounds_only_where_they_enclose_every_row() {
    check(vec![
        (
            "plain",
            Arc::new(Float64Array::from(vec![0.1, 1e300, -5e-324])),
            Some("-5e-324"),
            Some("1e300"),
            "0",
        ),
        (
            "NaN",
            Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0])),
            None,
            None,
            "0",
        ),
        (
            "negative NaN",
            Arc::new(Float64Array::from(vec![Some(1.0), Some(-f64::NAN), None])),
            None,
            None,
            "1",
        ),
        (
            "infinite above",
            Arc::new(Float64Array::from(vec![1.0, f64::INFINITY])),
            Some("1.0"),
            None,
            "0",
        ),
        (
            "infinite below",
            Arc::new(Float64Array::from(vec![1.0, f64::NEG_INFINITY])),
            None,
            Some("1.0"),
            "0",
        ),
        (
            "both zeros",
            Arc::new(Float64Array::from(vec![0.0, -0.0])),
            Some("-0.0"),
            Some("0.0"),
            "0",
        ),
        (
            "a float reads the same as float and as double",
            Arc::new(Float32Array::from(vec![0.1_f32])),
            Some("0.10000000149011612"),
            Some("0.10000000149011612"),
            "0",
        ),
    ]);
}

#[test]
fn float_bounds_read_back_as_the_same_value() {
    for value in [
        0.1_f32,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        16_777_217.0,
        -3.4e38,
    ] {
        let json = stats(&collect(
            &[("c", Arc::new(Float32Array::from(vec![value])))],
            1,
        ));
        let text = json.min_values["c"].get();
        assert_eq!(text.parse::<f32>(), Ok(value), "{text}");
        assert_eq!(text.parse::<f64>(), Ok(f64::from(value)), "{text}");
    }
}

#[test]
fn strings_are_cut_to_a_prefix_that_still_encloses() {
    let x = "x".repeat(32);
    check(vec![
        (
            "short",
            Arc::new(StringArray::from(vec![Some("b"), None, Some("a\"\u{1}")])),
            Some("\"a\\\"\\u0001\""),
            Some("\"b\""),
            "1",
        ),
        (
            "view",
            Arc::new(StringViewArray::from(vec!["", "ü"])),
            Some("\"\""),
            Some("\"ü\""),
            "0",
        ),
        (
            "long",
            Arc::new(StringArray::from(vec![format!("{x}y")])),
            Some("\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""),
            Some("\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\u{7F}\""),
            "0",
        ),
    ]);
}

#[test]
fn prefixes_split_no_character_and_bound_what_was_cut() {
    let top = '\u{10FFFF}';
    for (text, length, min, max) in [
        ("abc", 3, "abc", "abc".to_owned()),
        ("abcd", 3, "abc", "abc\u{7F}".to_owned()),
        ("abc\u{7E}", 3, "abc", "abc\u{7F}".to_owned()),
        ("abc\u{7F}", 3, "abc", format!("abc{top}")),
        ("abcé", 3, "abc", format!("abc{top}")),
        ("ab🌼", 3, "ab", format!("ab{top}")),
        ("a🌼c", 3, "a🌼", "a🌼\u{7F}".to_owned()),
        (
            "ab\u{FFFD}\u{FFFD}",
            3,
            "ab\u{FFFD}",
            format!("ab\u{FFFD}{top}"),
        ),
        ("abc\u{10FFFF}x", 3, "abc", format!("abc{top}\u{7F}")),
        (
            "abc\u{10FFFF}\u{10FFFF}",
            3,
            "abc",
            format!("abc{top}{top}"),
        ),
        ("abc", 0, "", "\u{7F}".to_owned()),
    ] {
        assert_eq!(prefix(text, length), min, "{text}");
        let bound = max_prefix(text, length);
        assert_eq!(bound, max, "{text}");
        assert!(prefix(text, length) <= text && text <= bound.as_str());
    }
}

#[test]
fn types_without_an_order_count_nulls_only() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)]), None]);
    check(vec![
        (
            "boolean",
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            None,
            None,
            "1",
        ),
        (
            "binary",
            Arc::new(BinaryArray::from_opt_vec(vec![Some(b"a"), None])),
            None,
            None,
            "1",
        ),
        ("list", Arc::new(list), None, None, "1"),
    ]);
}

#[test]
fn null_parent_counts_as_null_leaf_and_hides_its_value() {
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), Some(-100), None]));
    let parent = StructArray::new(
        vec![Field::new("x.y", DataType::Int64, true)].into(),
        vec![inner],
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let stats = stats(&collect(&[("s", Arc::new(parent))], 100));
    assert_eq!(stats.min_values["s"].get(), r#"{"x.y":7}"#);
    assert_eq!(stats.max_values["s"].get(), r#"{"x.y":7}"#);
    assert_eq!(stats.null_count["s"].get(), r#"{"x.y":2}"#);
}

#[test]
fn tags_name_the_columns_without_nan() {
    let collector = collect(
        &[
            ("a", Arc::new(Float64Array::from(vec![Some(1.0), None]))),
            ("b", Arc::new(Float64Array::from(vec![1.0, f64::NAN]))),
            (
                "c\"",
                Arc::new(Float32Array::from(vec![f32::INFINITY, 1.0])),
            ),
            ("d", Arc::new(Int64Array::from(vec![1, 2]))),
        ],
        1,
    );
    assert_eq!(
        collector.tags(),
        HashMap::from([
            (EXACT_STATISTICS_TAG.to_owned(), Some("true".to_owned())),
            (NAN_FREE_TAG.to_owned(), Some(r#"["a","c\""]"#.to_owned())),
        ])
    );
    let without = collect(&[("d", Arc::new(Int64Array::from(vec![1])))], 1);
    assert!(!without.tags().contains_key(NAN_FREE_TAG));
}

#[test]
fn deltalake_parses_what_is_written() {
    let collector = collect(
        &[
            ("i", Arc::new(Int64Array::from(vec![1, 2]))),
            ("d", decimals(38, 2, vec![Some(123), None])),
        ],
        1,
    );
    let parsed: deltalake::protocol::Stats =
        serde_json::from_str(&collector.stats_json()).expect("deltalake's form");
    assert_eq!(parsed.num_records, 2);
    assert_eq!(parsed.min_values.len(), 2);
}
