//! Casts that keep the order of values, and literals that mean the same in another type.
//!
//! Bounds can be cast like any value if the cast is monotone: then the cast bounds enclose the cast
//! rows. DataFusion's own pruning admits nearly every cast.

use std::sync::Arc;

use arrow::datatypes::DataType::{
    Date32, Decimal128, Dictionary, Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8,
    Timestamp, Utf8, Utf8View,
};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;

use crate::read::statistics::fits_decimal;

/// Whether `CAST(value AS to)` keeps the order of all values of type `from` and never fails for a
/// value that has no neighbour for which it fails.
pub(in crate::read) fn is_monotone(from: &DataType, to: &DataType) -> bool {
    if from == to {
        return true;
    }
    match (from, to) {
        (_, Dictionary(_, value)) => is_text(from) && is_text(value),
        (Int8 | Int16 | Int32 | Int64, Int8 | Int16 | Int32 | Int64) => digits(from) < digits(to),
        (Int8 | Int16 | Int32 | Int64, Decimal128(precision, scale)) => {
            *scale >= 0 && whole_digits(*precision, *scale) >= digits(from)
        }
        (Int8 | Int16 | Int32 | Int64 | Decimal128(..), Float32 | Float64) => true,
        (Decimal128(from_precision, from_scale), Decimal128(to_precision, to_scale)) => {
            to_scale >= from_scale
                && whole_digits(*to_precision, *to_scale)
                    >= whole_digits(*from_precision, *from_scale)
        }
        (Float32, Float64) => true,
        (Date32, Timestamp(_, zone)) => zone.as_deref().is_none_or(is_utc),
        (Timestamp(_, from_zone), Timestamp(_, to_zone)) => match (from_zone, to_zone) {
            // The same instant under another name.
            (None, None) | (Some(_), Some(_)) => true,
            // Wall clocks of other zones jump.
            (Some(zone), None) | (None, Some(zone)) => is_utc(zone),
        },
        (Timestamp(_, zone), Date32) => zone.as_deref().is_none_or(is_utc),
        _ => is_text(from) && is_text(to),
    }
}

/// Whether columns of `data_type` have bounds that are worth a comparison.
pub(super) fn is_ordered(data_type: &DataType) -> bool {
    is_text(data_type)
        || matches!(
            data_type,
            Int8 | Int16
                | Int32
                | Int64
                | Float32
                | Float64
                | Decimal128(..)
                | Date32
                | Timestamp(..)
                | DataType::Boolean
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        )
}

/// Whether `data_type` is text in one of its encodings.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View)
}

/// The non-NULL `literal` as a value of `data_type`; none where it does not mean exactly the same
/// there.
pub(super) fn fit(literal: &ScalarValue, data_type: &DataType) -> Option<ScalarValue> {
    let literal = match literal {
        ScalarValue::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    if literal.is_null() {
        return None;
    }
    if let Some(text) = literal.try_as_str().flatten() {
        let text = Some(text.to_owned());
        return match data_type {
            Utf8 => Some(ScalarValue::Utf8(text)),
            LargeUtf8 => Some(ScalarValue::LargeUtf8(text)),
            Utf8View => Some(ScalarValue::Utf8View(text)),
            _ => None,
        };
    }
    if let Some(value) = integer(literal) {
        return match data_type {
            Int8 => Some(ScalarValue::from(i8::try_from(value).ok()?)),
            Int16 => Some(ScalarValue::from(i16::try_from(value).ok()?)),
            Int32 => Some(ScalarValue::from(i32::try_from(value).ok()?)),
            Int64 => Some(ScalarValue::from(i64::try_from(value).ok()?)),
            _ => None,
        };
    }
    match (literal, data_type) {
        (ScalarValue::Decimal128(Some(value), precision, scale), Decimal128(p, s)) => {
            (precision == p && scale == s && fits_decimal(*value, *p)).then(|| literal.clone())
        }
        (
            ScalarValue::TimestampMicrosecond(value, Some(_)),
            Timestamp(TimeUnit::Microsecond, Some(zone)),
        ) => Some(ScalarValue::TimestampMicrosecond(
            *value,
            Some(Arc::clone(zone)),
        )),
        _ => (literal.data_type() == *data_type).then(|| literal.clone()),
    }
}

fn integer(literal: &ScalarValue) -> Option<i128> {
    match literal {
        ScalarValue::Int8(value) => value.map(i128::from),
        ScalarValue::Int16(value) => value.map(i128::from),
        ScalarValue::Int32(value) => value.map(i128::from),
        ScalarValue::Int64(value) => value.map(i128::from),
        ScalarValue::UInt8(value) => value.map(i128::from),
        ScalarValue::UInt16(value) => value.map(i128::from),
        ScalarValue::UInt32(value) => value.map(i128::from),
        ScalarValue::UInt64(value) => value.map(i128::from),
        _ => None,
    }
}

/// Decimal digits of the widest value of an integer type.
fn digits(data_type: &DataType) -> i16 {
    match data_type {
        Int8 => 3,
        Int16 => 5,
        Int32 => 10,
        _ => 19,
    }
}

fn whole_digits(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

fn is_utc(zone: &str) -> bool {
    zone == "UTC" || zone == "+00:00"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_casts_that_keep_the_order() {
        let micros = |zone: Option<&str>| Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let nanos = |zone: Option<&str>| Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
        let dictionary = |value| Dictionary(Box::new(Int32), Box::new(value));
        for (from, to, expected) in [
            (Int32, Int64, true),
            (Int64, Int32, false),
            (Int64, Float64, true),
            (Float64, Int64, false),
            (Float32, Float64, true),
            (Float64, Float32, false),
            (Int32, Decimal128(10, 0), true),
            (Int32, Decimal128(10, 1), false),
            (Int64, Decimal128(20, 1), true),
            (Decimal128(10, 2), Float64, true),
            (Decimal128(10, 2), Decimal128(12, 4), true),
            (Decimal128(10, 2), Decimal128(11, 4), false),
            (Decimal128(10, 2), Decimal128(12, 1), false),
            (Date32, micros(None), true),
            (Date32, micros(Some("UTC")), true),
            (Date32, micros(Some("Europe/Berlin")), false),
            (micros(Some("UTC")), Date32, true),
            (micros(Some("+02:00")), Date32, false),
            (micros(Some("UTC")), nanos(Some("Europe/Berlin")), true),
            (micros(Some("Europe/Berlin")), micros(None), false),
            (micros(Some("UTC")), micros(None), true),
            (micros(None), DataType::Time64(TimeUnit::Microsecond), false),
            (Int64, DataType::Boolean, false),
            (Int64, Utf8, false),
            (Utf8, Int64, false),
            (Utf8, Utf8View, true),
            (Utf8, dictionary(Utf8), true),
            (Int64, dictionary(Int64), false),
            (Utf8, DataType::Binary, false),
        ] {
            assert_eq!(is_monotone(&from, &to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn literals_fit_only_without_loss() {
        let int = ScalarValue::from(300_i64);
        assert_eq!(fit(&int, &Int16), Some(ScalarValue::from(300_i16)));
        assert_eq!(fit(&int, &Int8), None);
        assert_eq!(fit(&int, &Float64), None);
        let decimal = ScalarValue::Decimal128(Some(100_000), 5, 2);
        assert_eq!(fit(&decimal, &Decimal128(5, 2)), None);
        assert_eq!(
            fit(&ScalarValue::Decimal128(Some(1), 6, 2), &Decimal128(5, 2)),
            None
        );
        assert_eq!(
            fit(&ScalarValue::from("a"), &Utf8View),
            Some(ScalarValue::Utf8View(Some("a".into())))
        );
        assert_eq!(fit(&ScalarValue::from("1"), &Int64), None);
        assert_eq!(fit(&ScalarValue::Int64(None), &Int64), None);
    }
}
