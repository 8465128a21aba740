//! One stored bound as a value that really encloses the column's rows.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use serde_json::value::RawValue;

use super::{json, prefix, text};

/// Largest precision whose values survive a writer that goes through doubles.
pub(super) const EXACT_PRECISION: u8 = 15;

/// Such a writer is off by a few units in the last of a double's 53 bits: less than the number
/// shifted right by this.
const DOUBLE_ERROR: u32 = 48;

/// Writers cut maxima of timestamps down to milliseconds.
const MILLISECOND: i64 = 1_000;

/// Old writers cut zone offsets to whole minutes.
const OFFSET_ERROR: i64 = 60_000_000;

/// 1972-01-08T00:00:00Z. The last zone offset with seconds went out of use the day before.
const WHOLE_MINUTE_OFFSETS: i64 = 63_676_800_000_000;

/// Digits that tell every float from its neighbours.
const FLOAT_DIGITS: usize = 9;

/// Which bound a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

/// What decides how far a bound can be trusted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust {
    /// Whether decimals of any precision are exact.
    pub(super) exact_decimals: bool,
    /// Length to which strings are cut, in UTF-16 units.
    pub(super) prefix_length: usize,
    /// Whether every bound is taken as it stands: for evidence alone, see
    /// [`Assumption`](super::Assumption).
    pub(super) as_stated: bool,
}

/// The bound that `value` states for a column of `data_type`, widened where writers round; none
/// where it proves nothing.
pub(super) fn bound(
    value: &RawValue,
    side: Side,
    data_type: &DataType,
    trust: Trust,
) -> Option<ScalarValue> {
    let integer = || json::number(value).and_then(text::integer);
    match data_type {
        DataType::Int8 => Some(ScalarValue::from(i8::try_from(integer()?).ok()?)),
        DataType::Int16 => Some(ScalarValue::from(i16::try_from(integer()?).ok()?)),
        DataType::Int32 => Some(ScalarValue::from(i32::try_from(integer()?).ok()?)),
        DataType::Int64 => Some(ScalarValue::from(integer()?)),
        DataType::Decimal128(precision, scale) => {
            let unscaled = decimal_bound(value, side, *precision, *scale, trust)?;
            Some(ScalarValue::Decimal128(Some(unscaled), *precision, *scale))
        }
        DataType::Float32 => {
            let stated = match infinity(value) {
                Some(true) => f32::INFINITY,
                Some(false) => f32::NEG_INFINITY,
                None => text::float(json::number(value)?)?,
            };
            Some(ScalarValue::from(match side {
                _ if stated != 0.0 => stated,
                Side::Min => -0.0,
                Side::Max => 0.0,
            }))
        }
        DataType::Float64 => {
            let stated = match infinity(value) {
                Some(true) => f64::INFINITY,
                Some(false) => f64::NEG_INFINITY,
                None => double_bound(json::number(value)?, side)?,
            };
            Some(ScalarValue::from(match side {
                _ if stated != 0.0 => stated,
                Side::Min => -0.0,
                Side::Max => 0.0,
            }))
        }
        DataType::Date32 => Some(ScalarValue::Date32(Some(text::date(&json::string(
            value,
        )?)?))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = timestamp_bound(value, side, zone.is_some(), trust)?;
            Some(ScalarValue::TimestampMicrosecond(
                Some(micros),
                zone.clone(),
            ))
        }
        DataType::Utf8 => Some(ScalarValue::Utf8(Some(string_bound(value, side, trust)?))),
        DataType::LargeUtf8 => Some(ScalarValue::LargeUtf8(Some(string_bound(
            value, side, trust,
        )?))),
        DataType::Utf8View => Some(ScalarValue::Utf8View(Some(string_bound(
            value, side, trust,
        )?))),
        // Booleans and binary have null tests only; nested and unknown types have nothing.
        _ => None,
    }
}

/// Whether bounds of a column of `data_type` may prove something.
pub(super) fn has_bounds(data_type: &DataType) -> bool {
    has_null_count(data_type)
        && !matches!(
            data_type,
            DataType::Boolean | DataType::Binary | DataType::LargeBinary | DataType::BinaryView
        )
}

/// Whether a column of `data_type` is a leaf whose null count means the nulls of the column.
pub(crate) fn has_null_count(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Decimal128(..)
            | DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Boolean
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// The number `text`, or the float that it stands for if that lies further out. A column that is a
/// double now may have been a float when its bounds were written (type widening): the text 3.4 then
/// stands for 3.4000000953674316.
fn double_bound(text: &str, side: Side) -> Option<f64> {
    let stated = text::double(text)?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.trim_start_matches(['-', '0', '.']);
    // A float's text never needs more.
    if digits.bytes().filter(u8::is_ascii_digit).count() > FLOAT_DIGITS {
        return Some(stated);
    }
    Some(match text::float(text).map(f64::from) {
        Some(float) if float.is_finite() => match side {
            Side::Min => stated.min(float),
            Side::Max => stated.max(float),
        },
        _ => stated,
    })
}

fn decimal_bound(
    value: &RawValue,
    side: Side,
    precision: u8,
    scale: i8,
    trust: Trust,
) -> Option<i128> {
    let unscaled = text::decimal(json::number(value)?, precision, scale)?;
    if trust.as_stated {
        return Some(unscaled);
    }
    // A writer that goes through 64 bits stops at their ends.
    let unit = 10_i128.checked_pow(u32::try_from(scale).ok()?)?;
    let saturated = [i64::MIN, i64::MAX]
        .iter()
        .any(|end| i128::from(*end).checked_mul(unit) == Some(unscaled));
    if saturated {
        return None;
    }
    if precision <= EXACT_PRECISION || trust.exact_decimals {
        return Some(unscaled);
    }
    let error = (unscaled.abs() >> DOUBLE_ERROR) + 1;
    let widened = match side {
        Side::Min => unscaled - error,
        Side::Max => unscaled + error,
    };
    text::fits_decimal(widened, precision).then_some(widened)
}

/// Positive or negative infinity, which JSON has as strings; `"NaN"` is no bound.
fn infinity(value: &RawValue) -> Option<bool> {
    match value.get() {
        "\"Infinity\"" => Some(true),
        "\"-Infinity\"" => Some(false),
        _ => None,
    }
}

fn timestamp_bound(value: &RawValue, side: Side, zoned: bool, trust: Trust) -> Option<i64> {
    let instant = text::instant(&json::string(value)?)?;
    match instant.offset {
        // A zone is missing where the type has one, or there where it has none.
        None if zoned => return None,
        Some(offset) if !zoned && offset != 0 => return None,
        _ => {}
    }
    if trust.as_stated {
        return Some(instant.micros);
    }
    // A value from before that day may be stated as one of its first minute.
    let error = if instant.micros < WHOLE_MINUTE_OFFSETS + OFFSET_ERROR {
        OFFSET_ERROR
    } else {
        0
    };
    Some(match side {
        Side::Min => instant.micros.saturating_sub(error),
        Side::Max => instant
            .micros
            .saturating_add(MILLISECOND)
            .saturating_add(error),
    })
}

fn string_bound(value: &RawValue, side: Side, trust: Trust) -> Option<String> {
    let stored = json::string(value)?;
    if trust.as_stated {
        return Some(stored);
    }
    match side {
        Side::Min => prefix::lower_bound(stored),
        Side::Max => prefix::upper_bound(stored, trust.prefix_length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Trust = Trust {
        exact_decimals: true,
        prefix_length: 32,
        as_stated: false,
    };
    const ROUNDED: Trust = Trust {
        exact_decimals: false,
        prefix_length: 32,
        as_stated: false,
    };

    fn read(json: &str, side: Side, data_type: &DataType, trust: Trust) -> Option<ScalarValue> {
        let value = RawValue::from_string(json.to_owned()).expect("JSON");
        bound(&value, side, data_type, trust)
    }

    #[test]
    fn the_constant_is_the_eighth_of_january_1972() {
        let parsed = text::instant("1972-01-08T00:00:00Z").expect("instant");
        assert_eq!(parsed.micros, WHOLE_MINUTE_OFFSETS);
    }

    #[test]
    fn integers_never_pass_through_doubles() {
        let long = |json| read(json, Side::Max, &DataType::Int64, ROUNDED);
        assert_eq!(
            long("9007199254740993"),
            Some(ScalarValue::from(9_007_199_254_740_993_i64))
        );
        assert_eq!(
            long("-9223372036854775808"),
            Some(ScalarValue::from(i64::MIN))
        );
        for json in ["9223372036854775808", "1.0", "1e3", "\"1\"", "true", "{}"] {
            assert_eq!(long(json), None, "{json}");
        }
        assert_eq!(read("128", Side::Max, &DataType::Int8, ROUNDED), None);
        assert_eq!(
            read("-128", Side::Min, &DataType::Int8, ROUNDED),
            Some(ScalarValue::from(-128_i8))
        );
    }

    #[test]
    fn decimals_are_trusted_by_precision_and_writer() {
        let value = |v, p, s| Some(ScalarValue::Decimal128(Some(v), p, s));
        for (json, precision, scale, trust, expected) in [
            ("0.1", 15, 2, ROUNDED, value(10, 15, 2)),
            ("0.1", 16, 2, ROUNDED, value(11, 16, 2)),
            ("99999999999999.99", 16, 2, ROUNDED, None),
            (
                "3.0e20",
                38,
                10,
                ROUNDED,
                value(
                    3_000_000_000_000_000_000_000_000_000_000 + 10_658_141_036_401_503,
                    38,
                    10,
                ),
            ),
            ("9223372036854775807", 38, 0, ROUNDED, None),
            ("0.1", 16, 2, EXACT, value(10, 16, 2)),
            (
                "0.100000000000000001",
                38,
                18,
                EXACT,
                value(100_000_000_000_000_001, 38, 18),
            ),
            ("9223372036854775807", 38, 0, EXACT, None),
            ("-9223372036854775808", 38, 0, EXACT, None),
            ("9223372036854775807.00", 38, 2, EXACT, None),
            (
                "9223372036854775806",
                38,
                0,
                EXACT,
                value(9_223_372_036_854_775_806, 38, 0),
            ),
            ("0.125", 15, 2, ROUNDED, None),
            ("\"0.1\"", 15, 2, ROUNDED, None),
        ] {
            let data_type = DataType::Decimal128(precision, scale);
            assert_eq!(read(json, Side::Max, &data_type, trust), expected, "{json}");
        }
    }

    #[test]
    fn floats_are_rounded_once_and_zero_has_both_signs() {
        let single = |json, side| read(json, side, &DataType::Float32, ROUNDED);
        assert_eq!(single("0.1", Side::Max), Some(ScalarValue::from(0.1_f32)));
        assert_eq!(single("1e39", Side::Max), None);
        let double = |json, side| match read(json, side, &DataType::Float64, ROUNDED) {
            Some(ScalarValue::Float64(Some(value))) => Some(value.to_bits()),
            _ => None,
        };
        for (json, side, expected) in [
            ("0.0", Side::Min, Some(-0.0)),
            ("-0.0", Side::Max, Some(0.0)),
            ("\"Infinity\"", Side::Max, Some(f64::INFINITY)),
            ("\"-Infinity\"", Side::Min, Some(f64::NEG_INFINITY)),
            ("\"NaN\"", Side::Max, None),
            ("\"1.5\"", Side::Max, None),
            ("5", Side::Max, Some(5.0)),
        ] {
            assert_eq!(double(json, side), expected.map(f64::to_bits), "{json}");
        }
    }

    #[test]
    fn timestamps_are_widened_by_what_writers_cut() {
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        let micros =
            |json: &str, side, data_type: &DataType| match read(json, side, data_type, ROUNDED) {
                Some(ScalarValue::TimestampMicrosecond(value, _)) => value,
                _ => None,
            };
        let new_year = 946_684_800_000_000; // 2000-01-01T00:00:00Z
        for (json, side, data_type, expected) in [
            (
                "\"2000-01-01T00:00:00.000Z\"",
                Side::Min,
                &zoned,
                Some(new_year),
            ),
            (
                "\"2000-01-01T00:00:00.000Z\"",
                Side::Max,
                &zoned,
                Some(new_year + 1_000),
            ),
            (
                "\"1999-12-31T17:00:00.000-07:00\"",
                Side::Min,
                &zoned,
                Some(new_year),
            ),
            ("\"2000-01-01T00:00:00.000\"", Side::Min, &zoned, None),
            (
                "\"2000-01-01T00:00:00.000\"",
                Side::Min,
                &local,
                Some(new_year),
            ),
            (
                "\"2000-01-01T00:00:00.000Z\"",
                Side::Min,
                &local,
                Some(new_year),
            ),
            ("\"2000-01-01T00:00:00.000+01:00\"", Side::Min, &local, None),
            (
                "\"1970-01-01T00:00:00Z\"",
                Side::Min,
                &zoned,
                Some(-60_000_000),
            ),
            (
                "\"1970-01-01T00:00:00Z\"",
                Side::Max,
                &zoned,
                Some(60_001_000),
            ),
            // The second before 1972-01-08 at +00:53:28, cut to +00:53.
            (
                "\"1972-01-08T00:53:27+00:53\"",
                Side::Min,
                &zoned,
                Some(WHOLE_MINUTE_OFFSETS + 27_000_000 - OFFSET_ERROR),
            ),
            (
                "\"1972-01-08T00:01:00Z\"",
                Side::Min,
                &zoned,
                Some(WHOLE_MINUTE_OFFSETS + OFFSET_ERROR),
            ),
            ("\"12000-01-01T00:00:00Z\"", Side::Max, &zoned, None),
            ("946684800000000", Side::Max, &zoned, None),
        ] {
            assert_eq!(micros(json, side, data_type), expected, "{json} {side:?}");
        }
    }

    #[test]
    fn types_without_a_safe_order_have_no_bounds() {
        for data_type in [
            DataType::Boolean,
            DataType::Binary,
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::new_list(DataType::Int64, true),
        ] {
            for json in ["true", "1", "\"00\"", "[1]", "\"2000-01-01T00:00:00\""] {
                assert_eq!(read(json, Side::Max, &data_type, EXACT), None, "{json}");
            }
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_no_string() {
        assert_eq!(
            read("\"ab\\ud83c\"", Side::Min, &DataType::Utf8, ROUNDED),
            None
        );
    }
}
