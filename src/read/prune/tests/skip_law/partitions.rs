//! Partition values as writers put them into the log.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use rand::Rng;
use rand::rngs::StdRng;

use super::values::{null, random_value};
use super::writers::{date_text, decimal_text, instant_text};

/// The value that all rows have, and what the log says of it: no key, no value, or text.
pub(super) fn random(
    data_type: &DataType,
    random: &mut StdRng,
) -> (ScalarValue, Option<Option<String>>) {
    let value = random_value(data_type, random);
    match random.random_range(0..20) {
        0 => return (value, None),
        1 => return (null(data_type), Some(None)),
        2 => return (null(data_type), Some(Some(String::new()))),
        3 => return (value, Some(Some("__HIVE_DEFAULT_PARTITION__".to_owned()))),
        4 if !matches!(data_type, DataType::Utf8 | DataType::Binary) => {
            return (value, Some(Some("~".to_owned())));
        }
        _ => {}
    }
    match text(&value, random) {
        // The empty text is NULL.
        Some(text) if text.is_empty() => (null(data_type), Some(Some(text))),
        text => (value, text.map(Some)),
    }
}

fn text(value: &ScalarValue, random: &mut StdRng) -> Option<String> {
    let float = |text: String| match text.as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        _ => text,
    };
    Some(match value {
        // A sign of a NaN has no text.
        ScalarValue::Float32(Some(v)) if v.is_nan() && v.is_sign_negative() => return None,
        ScalarValue::Float64(Some(v)) if v.is_nan() && v.is_sign_negative() => return None,
        ScalarValue::Float32(Some(v)) => float(format!("{v:?}")),
        ScalarValue::Float64(Some(v)) => float(format!("{v:?}")),
        ScalarValue::Decimal128(Some(v), _, scale) => decimal_text(*v, *scale),
        ScalarValue::Utf8(Some(text)) => text.clone(),
        ScalarValue::Binary(Some(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) if random.random_bool(0.5) => text.to_owned(),
            _ => bytes.iter().map(|b| format!("\\u00{b:02X}")).collect(),
        },
        ScalarValue::Date32(Some(days)) => date_text(*days)?,
        ScalarValue::TimestampMicrosecond(Some(micros), Some(_)) if random.random_bool(0.5) => {
            // The wall clock of a writer in some zone.
            let offset = random.random_range(-12..=14) * 3_600_000_000_i64;
            instant_text(micros + offset, "%Y-%m-%d %H:%M:%S%.6f")?
        }
        ScalarValue::TimestampMicrosecond(Some(micros), Some(_)) => {
            instant_text(*micros, "%Y-%m-%dT%H:%M:%S%.6fZ")?
        }
        ScalarValue::TimestampMicrosecond(Some(micros), None) => {
            instant_text(*micros, "%Y-%m-%d %H:%M:%S%.6f")?
        }
        other => other.to_string(),
    })
}
