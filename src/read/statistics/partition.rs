//! Partition values, which the log keeps as strings, as typed values.
//!
//! Source: Delta protocol, "Partition Value Serialization".

use std::collections::HashMap;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;

use super::text;
use crate::read::partition_value::HIVE_DEFAULT_PARTITION;

/// How far a wall clock can be off UTC, with a margin, in microseconds: 16 hours.
const ANY_ZONE: i64 = 16 * 3_600_000_000;

/// What is known of the one value that a column has in a whole file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PartitionValue {
    /// Nothing: the key is missing or its text has no clear meaning.
    Unknown,
    /// NULL in every row.
    Null,
    /// This value in every row.
    Exact(ScalarValue),
    /// One value between these two, both included.
    Between(ScalarValue, ScalarValue),
}

impl PartitionValue {
    /// The value of `column` in a file with these partition values.
    pub(super) fn of(
        values: &HashMap<String, Option<String>>,
        column: &str,
        data_type: &DataType,
    ) -> Self {
        match values.get(column) {
            None => Self::Unknown,
            Some(None) => Self::Null,
            Some(Some(text)) if text.is_empty() => Self::Null,
            // Hive's name for NULL, but also a string that somebody may have stored.
            Some(Some(text)) if text == HIVE_DEFAULT_PARTITION => Self::Unknown,
            Some(Some(text)) => typed(text, data_type).unwrap_or(Self::Unknown),
        }
    }
}

fn typed(text: &str, data_type: &DataType) -> Option<PartitionValue> {
    let value = match data_type {
        DataType::Int8 => ScalarValue::from(i8::try_from(text::integer(text)?).ok()?),
        DataType::Int16 => ScalarValue::from(i16::try_from(text::integer(text)?).ok()?),
        DataType::Int32 => ScalarValue::from(i32::try_from(text::integer(text)?).ok()?),
        DataType::Int64 => ScalarValue::from(text::integer(text)?),
        DataType::Decimal128(precision, scale) => {
            let unscaled = text::decimal(text, *precision, *scale)?;
            ScalarValue::Decimal128(Some(unscaled), *precision, *scale)
        }
        DataType::Float32 => ScalarValue::from(match text {
            "NaN" => f32::NAN,
            "Infinity" => f32::INFINITY,
            "-Infinity" => f32::NEG_INFINITY,
            _ => text::float(text)?,
        }),
        DataType::Float64 => ScalarValue::from(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => text::double(text)?,
        }),
        DataType::Boolean => ScalarValue::from(match text {
            "true" => true,
            "false" => false,
            _ => return None,
        }),
        DataType::Date32 => ScalarValue::Date32(Some(text::date(text)?)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let instant = text::instant(text)?;
            let value = |micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone());
            match (zone, instant.offset) {
                _ if instant.cut => return None,
                (Some(_), None) => {
                    return Some(PartitionValue::Between(
                        value(instant.micros.saturating_sub(ANY_ZONE)),
                        value(instant.micros.saturating_add(ANY_ZONE)),
                    ));
                }
                (None, Some(offset)) if offset != 0 => return None,
                _ => value(instant.micros),
            }
        }
        DataType::Utf8 => ScalarValue::Utf8(Some(text.to_owned())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text.to_owned())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text.to_owned())),
        DataType::Binary => ScalarValue::Binary(Some(bytes(text)?)),
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(bytes(text)?)),
        DataType::BinaryView => ScalarValue::BinaryView(Some(bytes(text)?)),
        _ => return None,
    };
    Some(PartitionValue::Exact(value))
}

/// Bytes that mean the same whether a character stands for its code point or for its UTF-8 form. A
/// backslash may begin an escape that some writers leave in the text.
fn bytes(text: &str) -> Option<Vec<u8>> {
    (text.is_ascii() && !text.contains('\\')).then(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: Option<&str>, data_type: &DataType) -> PartitionValue {
        let values = HashMap::from([("p".to_owned(), text.map(str::to_owned))]);
        PartitionValue::of(&values, "p", data_type)
    }

    #[test]
    fn nulls_and_what_is_not_known() {
        let int = DataType::Int32;
        assert_eq!(value(None, &int), PartitionValue::Null);
        assert_eq!(value(Some(""), &int), PartitionValue::Null);
        assert_eq!(value(Some(""), &DataType::Utf8), PartitionValue::Null);
        for data_type in [&int, &DataType::Utf8] {
            assert_eq!(
                value(Some("__HIVE_DEFAULT_PARTITION__"), data_type),
                PartitionValue::Unknown
            );
        }
        assert_eq!(
            PartitionValue::of(&HashMap::new(), "p", &int),
            PartitionValue::Unknown
        );
    }

    #[test]
    fn text_of_each_type() {
        use PartitionValue::{Exact, Unknown};
        for (text, data_type, expected) in [
            ("1", DataType::Int32, Exact(ScalarValue::from(1_i32))),
            ("one", DataType::Int32, Unknown),
            ("300", DataType::Int8, Unknown),
            (
                "1.50",
                DataType::Decimal128(5, 2),
                Exact(ScalarValue::Decimal128(Some(150), 5, 2)),
            ),
            ("1.505", DataType::Decimal128(5, 2), Unknown),
            ("0.1", DataType::Float32, Exact(ScalarValue::from(0.1_f32))),
            (
                "Infinity",
                DataType::Float64,
                Exact(ScalarValue::from(f64::INFINITY)),
            ),
            ("inf", DataType::Float64, Unknown),
            ("true", DataType::Boolean, Exact(ScalarValue::from(true))),
            ("True", DataType::Boolean, Unknown),
            (
                "1970-01-02",
                DataType::Date32,
                Exact(ScalarValue::Date32(Some(1))),
            ),
            ("1970-13-02", DataType::Date32, Unknown),
            (" x ", DataType::Utf8, Exact(ScalarValue::from(" x "))),
            (
                "\u{1}\u{2}",
                DataType::Binary,
                Exact(ScalarValue::Binary(Some(vec![1, 2]))),
            ),
            ("\u{ff}", DataType::Binary, Unknown),
            ("\\u0001", DataType::Binary, Unknown),
            ("x", DataType::new_list(DataType::Utf8, true), Unknown),
        ] {
            assert_eq!(value(Some(text), &data_type), expected, "{text}");
        }
        // Not equal to itself, so looked at by pattern.
        assert!(matches!(
            value(Some("NaN"), &DataType::Float64),
            Exact(ScalarValue::Float64(Some(nan))) if nan.is_nan()
        ));
    }

    #[test]
    fn a_timestamp_without_zone_is_known_to_the_day_only() {
        let micros = |v| ScalarValue::TimestampMicrosecond(Some(v), Some("UTC".into()));
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(
            value(Some("1970-01-01 00:00:00"), &zoned),
            PartitionValue::Between(micros(-ANY_ZONE), micros(ANY_ZONE))
        );
        assert_eq!(
            value(Some("1970-01-01T00:00:00.000001Z"), &zoned),
            PartitionValue::Exact(micros(1))
        );
        assert_eq!(
            value(Some("1970-01-01 00:00:01.5"), &local),
            PartitionValue::Exact(ScalarValue::TimestampMicrosecond(Some(1_500_000), None))
        );
        for text in ["1970-01-01 00:00:00+01:00", "1970-01-01 00:00:00.0000001"] {
            assert_eq!(value(Some(text), &local), PartitionValue::Unknown, "{text}");
        }
    }
}
