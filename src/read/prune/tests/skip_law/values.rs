//! The values that occur: few a type, at the places where writers and readers go wrong, so that
//! rows, bounds and literals meet.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Int64Builder, MapBuilder, StringBuilder};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::ScalarValue;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::read::test_support::timestamp;

/// The instant from which zone offsets have whole minutes.
pub(super) const YEAR_1972: i64 = 63_676_800_000_000;

const YEAR_2000: i64 = 946_684_800_000_000;

pub(super) fn local() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// A type with bounds or null counts of its own.
pub(super) fn random_type(random: &mut StdRng) -> DataType {
    let types = [
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Float64,
        DataType::Decimal128(5, 2),
        DataType::Decimal128(15, 2),
        DataType::Decimal128(18, 0),
        DataType::Decimal128(20, 10),
        DataType::Decimal128(38, 0),
        DataType::Decimal128(38, 18),
        DataType::Utf8,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Binary,
        DataType::Boolean,
        DataType::Date32,
        timestamp(),
        timestamp(),
        local(),
    ];
    types.choose(random).expect("types").clone()
}

pub(super) fn map_type() -> DataType {
    map_value(&[]).data_type()
}

pub(super) fn list_type() -> DataType {
    DataType::new_list(DataType::Int64, true)
}

/// All values of a type, ascending.
pub(super) fn pool(data_type: &DataType) -> Vec<ScalarValue> {
    let mut values = match data_type {
        DataType::Int8 => [i8::MIN, -3, -1, 0, 1, 2, 3, 5, 7, 100, i8::MAX]
            .map(ScalarValue::from)
            .to_vec(),
        DataType::Int16 => [i16::MIN, -3, -1, 0, 1, 2, 3, 128, 300, i16::MAX]
            .map(ScalarValue::from)
            .to_vec(),
        DataType::Int32 => [i32::MIN, -3, -1, 0, 1, 2, 3, 40_000, 16_777_217, i32::MAX]
            .map(ScalarValue::from)
            .to_vec(),
        DataType::Int64 => {
            let double = 1_i64 << 53;
            [
                i64::MIN,
                -double - 1,
                -double,
                -3,
                -1,
                0,
                1,
                2,
                3,
                5,
                double - 1,
                double,
                double + 1,
                double + 2,
                i64::MAX - 1,
                i64::MAX,
            ]
            .map(ScalarValue::from)
            .to_vec()
        }
        DataType::Float32 => [
            -f32::NAN,
            f32::NEG_INFINITY,
            f32::MIN,
            -1.5,
            -0.0,
            0.0,
            f32::MIN_POSITIVE,
            0.1,
            1.0,
            1.5,
            16_777_216.0,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ]
        .map(ScalarValue::from)
        .to_vec(),
        DataType::Float64 => [
            -f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            0.1,
            f64::from(0.1_f32),
            1.0,
            1.5,
            9_007_199_254_740_992.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ]
        .map(ScalarValue::from)
        .to_vec(),
        DataType::Decimal128(precision, scale) => decimals(*precision, *scale),
        DataType::Utf8 => strings().into_iter().map(ScalarValue::from).collect(),
        DataType::Binary => [vec![], vec![0], b"abc".to_vec(), vec![255, 255]]
            .map(|bytes| ScalarValue::Binary(Some(bytes)))
            .to_vec(),
        DataType::Boolean => [false, true].map(ScalarValue::from).to_vec(),
        // The year -768, the days around the years 1 and 10000, a year beyond 50000.
        DataType::Date32 => [
            -1_000_000, -719_163, -719_162, -1, 0, 1, 737, 10_957, 10_958, 18_262, 2_932_896,
            2_932_897, 20_000_000,
        ]
        .map(|days| ScalarValue::Date32(Some(days)))
        .to_vec(),
        DataType::Timestamp(_, zone) => [
            -62_135_596_800_000_000,
            -3_786_825_600_000_000,
            -3_786_825_572_000_001,
            -1,
            0,
            1,
            999,
            1_000,
            YEAR_1972 - 1,
            YEAR_1972,
            YEAR_2000 + 123_456,
            YEAR_2000 + 123_457,
            YEAR_2000 + 124_000,
            4_102_444_800_000_000,
            253_402_300_799_999_999,
            253_402_300_800_000_000,
        ]
        .map(|micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
        .to_vec(),
        DataType::List(_) => [vec![], vec![Some(1)], vec![Some(2), None]]
            .map(|items| {
                let list =
                    arrow::array::ListArray::from_iter_primitive::<Int64Type, _, _>([Some(items)]);
                ScalarValue::List(Arc::new(list))
            })
            .to_vec(),
        _ => [&[][..], &[("k", 1)], &[("a", 5), ("k", 2)]]
            .map(map_value)
            .to_vec(),
    };
    values.sort_by(order);
    values
}

/// Arrow's order: a NaN lies beyond everything on the side of its sign.
pub(super) fn order(a: &ScalarValue, b: &ScalarValue) -> Ordering {
    match (a, b) {
        (ScalarValue::Float32(Some(a)), ScalarValue::Float32(Some(b))) => a.total_cmp(b),
        (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) => a.total_cmp(b),
        _ => a.partial_cmp(b).unwrap_or(Ordering::Equal),
    }
}

pub(super) fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    }
}

pub(super) fn null(data_type: &DataType) -> ScalarValue {
    ScalarValue::try_from(data_type).expect("a type with NULL")
}

fn map_value(entries: &[(&str, i64)]) -> ScalarValue {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for (key, value) in entries {
        builder.keys().append_value(key);
        builder.values().append_value(*value);
    }
    builder.append(true).expect("entry");
    ScalarValue::try_from_array(&builder.finish(), 0).expect("map")
}

/// Ends of the type, neighbours of them and of zero, the ends of 64 bits and neighbours beyond what
/// a double tells apart.
fn decimals(precision: u8, scale: i8) -> Vec<ScalarValue> {
    let end = 10_i128.pow(u32::from(precision)) - 1;
    let unit = 10_i128.pow(u32::try_from(scale).expect("scale"));
    let half = end / 3;
    let mut unscaled = vec![
        -end,
        1 - end,
        -half,
        -unit,
        -1,
        0,
        1,
        2,
        unit,
        unit + 1,
        half,
        half + 1,
        half + 2,
        end - 1,
        end,
    ];
    for bits in [i64::MIN, i64::MAX] {
        for near in [-1, 0, 1] {
            unscaled.extend((i128::from(bits) + near).checked_mul(unit));
        }
    }
    unscaled.retain(|value| value.abs() <= end);
    unscaled.sort_unstable();
    unscaled.dedup();
    unscaled
        .into_iter()
        .map(|value| ScalarValue::Decimal128(Some(value), precision, scale))
        .collect()
}

fn strings() -> Vec<String> {
    let head = "a".repeat(31);
    let mut strings: Vec<String> = [
        "",
        "A",
        "a",
        "aa",
        "ab",
        "ab\u{7F}",
        "ab\u{FFFD}",
        "ab\u{10FFFF}",
        "a?",
        "a_c",
        "b",
        "~",
        "'",
        "a''b",
        "\\' OR \"",
        "\u{7F}",
        "é",
        "\u{1F33C}",
    ]
    .map(str::to_owned)
    .to_vec();
    for tail in [
        "",
        "a",
        "ab",
        "?",
        "\u{7F}z",
        "é",
        "\u{1F33C}",
        "\u{10FFFF}",
        "b",
    ] {
        strings.push(format!("{head}{tail}"));
        strings.push(format!("{head}a{tail}{tail}"));
    }
    strings.push("\u{10FFFF}".repeat(3));
    strings.push("\u{10FFFF}".repeat(40));
    strings.push("\u{1F33C}".repeat(20));
    strings.push("ab".repeat(40));
    strings
}

/// A value of the pool or one made at random.
pub(super) fn random_value(data_type: &DataType, random: &mut StdRng) -> ScalarValue {
    if random.random_bool(0.15) {
        match data_type {
            DataType::Int64 => return ScalarValue::from(random.random::<i64>()),
            DataType::Int32 => return ScalarValue::from(random.random::<i32>()),
            DataType::Float64 => return ScalarValue::from(random.random_range(-2.0..2.0)),
            DataType::Timestamp(_, zone) => {
                let micros = random.random_range(-YEAR_2000..2 * YEAR_2000);
                return ScalarValue::TimestampMicrosecond(Some(micros), zone.clone());
            }
            DataType::Date32 => {
                return ScalarValue::Date32(Some(random.random_range(-20_000..40_000)));
            }
            _ => {}
        }
    }
    pool(data_type).choose(random).expect("values").clone()
}
