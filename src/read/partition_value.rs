//! Partition values: typed values in a scan, text in the log.
//!
//! Source: Delta protocol, "Partition Value Serialization". The inverse is
//! [`partition_text`](crate::write::partition::partition_text).

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use datafusion::common::ScalarValue;

use crate::error::{Error, Result};

/// What stands for NULL in the directory names of partitions. It has no place in the log: a
/// partition value with this text came from a writer that mistook the one for the other.
pub const HIVE_DEFAULT_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The value of type `data_type` that `text` stands for in the `partitionValues` of an action.
///
/// `None` and the empty text are NULL. A timestamp without a zone is taken as UTC. Text that is no
/// value of the type is a corrupt table; [`HIVE_DEFAULT_PARTITION`] is plain text in a string
/// column and corrupt elsewhere.
///
/// ```
/// use arrow::datatypes::DataType;
/// use datafusion::common::ScalarValue;
/// use delta_disjoint::read::partition_value::parse_partition_value;
///
/// let day = parse_partition_value(Some("1970-01-02"), &DataType::Date32)?;
/// assert_eq!(day, ScalarValue::Date32(Some(1)));
/// let null = parse_partition_value(Some(""), &DataType::Int64)?;
/// assert_eq!(null, ScalarValue::Int64(None));
/// # Ok::<(), delta_disjoint::Error>(())
/// ```
pub fn parse_partition_value(text: Option<&str>, data_type: &DataType) -> Result<ScalarValue> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return ScalarValue::try_from(data_type).map_err(|error| {
            Error::unsupported(format!("{data_type} is no type of a partition column"))
                .with_source(error)
        });
    };
    parse(text, data_type).ok_or_else(|| {
        Error::corrupt(format!(
            "the partition value `{text}` is no value of the type {data_type}"
        ))
    })
}

fn parse(text: &str, data_type: &DataType) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::Utf8 => ScalarValue::Utf8(Some(text.to_owned())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text.to_owned())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text.to_owned())),
        DataType::Binary => ScalarValue::Binary(Some(parse_binary(text))),
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(parse_binary(text))),
        DataType::BinaryView => ScalarValue::BinaryView(Some(parse_binary(text))),
        DataType::Int8 => ScalarValue::Int8(Some(text.parse().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(text.parse().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(text.parse().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(text.parse().ok()?)),
        DataType::Float32 => ScalarValue::Float32(Some(text.parse().ok()?)),
        DataType::Float64 => ScalarValue::Float64(Some(text.parse().ok()?)),
        DataType::Boolean if text.eq_ignore_ascii_case("true") => ScalarValue::Boolean(Some(true)),
        DataType::Boolean if text.eq_ignore_ascii_case("false") => {
            ScalarValue::Boolean(Some(false))
        }
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(
            Some(parse_decimal(text, *precision, *scale)?),
            *precision,
            *scale,
        ),
        DataType::Date32 => ScalarValue::Date32(Some(parse_date(text)?)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => ScalarValue::TimestampMicrosecond(
            Some(parse_timestamp(text, zone.is_some())?),
            zone.clone(),
        ),
        DataType::Dictionary(key, value) => {
            ScalarValue::Dictionary(key.clone(), Box::new(parse(text, value)?))
        }
        _ => return None,
    })
}

/// The bytes of a binary partition value: one `\u00XX` a byte if all of the text has that form,
/// else the text's own bytes.
fn parse_binary(text: &str) -> Vec<u8> {
    unescape(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The bytes behind `\u0041\u0042…`; `None` if any of the text has another form.
pub(crate) fn unescape(text: &str) -> Option<Vec<u8>> {
    let (escapes, rest) = text.as_bytes().as_chunks::<6>();
    if !rest.is_empty() {
        return None;
    }
    escapes
        .iter()
        .map(|escape| {
            let digits = std::str::from_utf8(escape.strip_prefix(b"\\u00")?).ok()?;
            digits
                .bytes()
                .all(|digit| digit.is_ascii_hexdigit())
                .then(|| u8::from_str_radix(digits, 16).ok())?
        })
        .collect()
}

/// The unscaled value; `None` if a digit does not fit.
fn parse_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > scale {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() + scale > usize::from(precision) {
        return None;
    }
    let unscaled: i128 = format!("0{whole}{fraction:0<scale$}").parse().ok()?;
    Some(if negative { -unscaled } else { unscaled })
}

fn parse_date(text: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

/// Microseconds since the epoch. Only a `timestamp` has a zone; text without one is UTC.
fn parse_timestamp(text: &str, with_zone: bool) -> Option<i64> {
    if with_zone && let Ok(time) = DateTime::parse_from_str(text, "%+") {
        return Some(time.timestamp_micros());
    }
    ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .or_else(|| {
            NaiveDate::parse_from_str(text, "%Y-%m-%d")
                .ok()?
                .and_hms_opt(0, 0, 0)
        })
        .map(|time| time.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_type_is_parsed() {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
        let zoned = |micros| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()));
        let local = |micros| ScalarValue::TimestampMicrosecond(Some(micros), None);
        let dictionary = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
        for (text, data_type, expected) in [
            ("a/b", DataType::Utf8, ScalarValue::from("a/b")),
            ("-128", DataType::Int8, ScalarValue::Int8(Some(-128))),
            (
                "9223372036854775807",
                DataType::Int64,
                ScalarValue::Int64(Some(i64::MAX)),
            ),
            ("True", DataType::Boolean, ScalarValue::Boolean(Some(true))),
            (
                "-Infinity",
                DataType::Float64,
                ScalarValue::Float64(Some(f64::NEG_INFINITY)),
            ),
            ("0.1", DataType::Float32, ScalarValue::Float32(Some(0.1))),
            (
                "-1.50",
                DataType::Decimal128(5, 1),
                ScalarValue::Decimal128(Some(-15), 5, 1),
            ),
            (
                "99999999999999999999999999999999999999",
                DataType::Decimal128(38, 0),
                ScalarValue::Decimal128(
                    Some(99_999_999_999_999_999_999_999_999_999_999_999_999),
                    38,
                    0,
                ),
            ),
            (
                "1969-12-31",
                DataType::Date32,
                ScalarValue::Date32(Some(-1)),
            ),
            ("1970-01-01T00:00:00.123456Z", utc.clone(), zoned(123_456)),
            ("1970-01-01T01:00:00+01:00", utc.clone(), zoned(0)),
            ("1970-01-01 00:00:01", utc.clone(), zoned(1_000_000)),
            ("1969-12-31 23:59:59.999999", ntz.clone(), local(-1)),
            ("1970-01-02", ntz.clone(), local(86_400_000_000)),
            (
                "\\u0000\\u00FF",
                DataType::Binary,
                ScalarValue::Binary(Some(vec![0, 255])),
            ),
            (
                "\\u0041x",
                DataType::Binary,
                ScalarValue::Binary(Some(b"\\u0041x".to_vec())),
            ),
            (
                "x",
                dictionary.clone(),
                ScalarValue::Dictionary(
                    Box::new(DataType::UInt16),
                    Box::new(ScalarValue::from("x")),
                ),
            ),
        ] {
            let value = parse_partition_value(Some(text), &data_type).expect(text);
            assert_eq!(value, expected, "{text}");
            assert_eq!(value.data_type(), data_type, "{text}");
        }
    }

    #[test]
    fn absent_and_empty_text_are_null() {
        for data_type in [
            DataType::Utf8,
            DataType::Int32,
            DataType::Date32,
            DataType::Decimal128(38, 10),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ] {
            for text in [None, Some("")] {
                let value = parse_partition_value(text, &data_type).expect("null");
                assert!(value.is_null());
                assert_eq!(value.data_type(), data_type);
            }
        }
    }

    #[test]
    fn text_of_another_type_is_corrupt() {
        for (text, data_type) in [
            ("x", DataType::Int32),
            ("2147483648", DataType::Int32),
            ("1.25", DataType::Decimal128(5, 1)),
            ("12345.0", DataType::Decimal128(5, 1)),
            (".", DataType::Decimal128(5, 1)),
            ("1e2", DataType::Decimal128(5, 1)),
            ("yes", DataType::Boolean),
            ("2020-13-01", DataType::Date32),
            (HIVE_DEFAULT_PARTITION, DataType::Int64),
            (
                "1970-01-01T00:00:00Z",
                DataType::Timestamp(TimeUnit::Microsecond, None),
            ),
        ] {
            let error = parse_partition_value(Some(text), &data_type).expect_err(text);
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
        }
    }
}
