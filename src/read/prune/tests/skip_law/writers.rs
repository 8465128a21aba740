//! What three kinds of writers say about a file's rows.

use arrow::datatypes::DataType;
use chrono::{DateTime, Duration, NaiveDate};
use datafusion::common::ScalarValue;
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::json;

use super::rows::{LeafColumn, Rows, Table};
use super::values::{YEAR_1972, is_nan, order};

/// A writer's habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// Nothing is cut; says where there is no NaN and that decimals are exact.
    Exact,
    /// Strings are cut and get a tie-breaker, timestamps are cut to milliseconds, NaN is the
    /// greatest of all, no bounds for booleans and binary.
    Spark,
    /// Decimals go through doubles, timestamps are cut to milliseconds, NaN is left out.
    Deltalake,
}

/// What is said of one leaf.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The bounds that are meant, after what the writer cuts.
    pub(super) min: Option<ScalarValue>,
    pub(super) max: Option<ScalarValue>,
    /// Their JSON.
    pub(super) min_text: Option<String>,
    pub(super) max_text: Option<String>,
    pub(super) nulls: Option<u64>,
}

/// The statistics of one file.
#[derive(Debug, Clone)]
pub(super) struct Statistics {
    pub(super) rows: Option<u64>,
    pub(super) leaves: Vec<Said>,
    pub(super) tight: Option<bool>,
    /// The columns that are said to hold no NaN.
    pub(super) nan_free: Option<Vec<String>>,
    /// Whether the tag or the commit tells that decimals are exact.
    pub(super) exact_tag: bool,
    pub(super) exact_writer: bool,
}

/// The statistics that `writer` gives for all rows of the file, deleted ones included.
pub(super) fn describe(
    table: &Table,
    rows: &Rows,
    writer: Writer,
    random: &mut StdRng,
) -> Statistics {
    let column = |leaf: usize| rows.all.iter().map(move |row| &row[leaf]);
    let leaves = table
        .leaves
        .iter()
        .enumerate()
        .map(|(position, leaf)| {
            if leaf.partition {
                return Said::default();
            }
            let mut said = bounds(column(position), leaf, writer, random);
            said.nulls = Some(column(position).filter(|value| value.is_null()).count() as u64);
            said
        })
        .collect();
    let nan_free = table
        .leaves
        .iter()
        .enumerate()
        .filter(|(position, leaf)| leaf.path.len() == 1 && !column(*position).any(is_nan))
        .map(|(_, leaf)| leaf.path[0].clone())
        .collect();
    let exact = writer == Writer::Exact;
    Statistics {
        rows: Some(rows.all.len() as u64),
        leaves,
        tight: [None, Some(true), Some(false)][random.random_range(0..3)],
        nan_free: exact.then_some(nan_free),
        exact_tag: exact && random.random_bool(0.7),
        exact_writer: writer == Writer::Spark && random.random_bool(0.5),
    }
}

fn bounds<'v>(
    values: impl Iterator<Item = &'v ScalarValue> + Clone,
    leaf: &LeafColumn,
    writer: Writer,
    random: &mut StdRng,
) -> Said {
    let mut said = Said::default();
    if matches!(leaf.data_type, DataType::List(_) | DataType::Map(..)) {
        // They mean nothing, yet some write them.
        if writer == Writer::Deltalake && values.clone().any(|value| !value.is_null()) {
            said.min_text = Some("1".to_owned());
            said.max_text = Some("1".to_owned());
        }
        return said;
    }
    let some: Vec<&ScalarValue> = values.filter(|value| !value.is_null()).collect();
    if writer == Writer::Exact && some.iter().any(|value| is_nan(value)) {
        return said;
    }
    let numbers = some.iter().copied().filter(|value| !is_nan(value));
    let (Some(mut min), Some(mut max)) = (
        numbers.clone().min_by(|a, b| order(a, b)).cloned(),
        numbers.max_by(|a, b| order(a, b)).cloned(),
    ) else {
        // Nothing but NaN.
        if writer == Writer::Spark && !some.is_empty() {
            said.min_text = Some("\"NaN\"".to_owned());
            said.max_text = said.min_text.clone();
        }
        return said;
    };
    if let Some((low, high)) = cut(&min, &max, writer, random) {
        (min, max) = (low, high);
    }
    let spark = writer == Writer::Spark;
    if spark && matches!(leaf.data_type, DataType::Boolean | DataType::Binary) {
        return said;
    }
    said.min_text = json_text(&min, writer, random);
    said.max_text = json_text(&max, writer, random);
    said.min = said.min_text.is_some().then_some(min);
    said.max = said.max_text.is_some().then_some(max);
    if spark && some.iter().any(|value| is_nan(value)) {
        said.max_text = Some("\"NaN\"".to_owned());
        said.max = None;
    }
    said
}

/// The bounds as this writer cuts them, if it does.
fn cut(
    min: &ScalarValue,
    max: &ScalarValue,
    writer: Writer,
    random: &mut StdRng,
) -> Option<(ScalarValue, ScalarValue)> {
    match (min, max) {
        (ScalarValue::Utf8(Some(min)), ScalarValue::Utf8(Some(max))) => {
            let (min, max) = match writer {
                Writer::Exact => return None,
                Writer::Spark => (prefix(min, 32).0, spark_maximum(max, random)),
                // As Parquet's writer does: 64 bytes, the last character raised.
                Writer::Deltalake => (bytes_prefix(min, 64), parquet_maximum(max)),
            };
            Some((ScalarValue::from(min), ScalarValue::from(max)))
        }
        (
            ScalarValue::TimestampMicrosecond(Some(min), zone),
            ScalarValue::TimestampMicrosecond(Some(max), _),
        ) if writer != Writer::Exact => {
            let cut = |micros: &i64| {
                let micros = micros.div_euclid(1_000) * 1_000;
                ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())
            };
            Some((cut(min), cut(max)))
        }
        _ => None,
    }
}

/// At most `units` UTF-16 units of `text`, and whether that is less than all of it.
fn prefix(text: &str, units: usize) -> (String, bool) {
    let mut kept = String::new();
    let mut length = 0;
    for c in text.chars() {
        length += c.len_utf16();
        if length > units {
            return (kept, true);
        }
        kept.push(c);
    }
    (kept, false)
}

fn spark_maximum(text: &str, random: &mut StdRng) -> String {
    let (kept, cut) = prefix(text, 32);
    if !cut {
        return kept;
    }
    let next = text[kept.len()..].chars().next();
    let ascii = next.is_some_and(|c| c < '\u{7F}');
    match random.random_range(0..3) {
        // Half of a surrogate pair, as Java writes it.
        0 if next.is_some_and(|c| c.len_utf16() == 2) && random.random_bool(0.5) => {
            format!("{kept}?")
        }
        // A bare prefix, which the protocol allows.
        0 => kept,
        1 if ascii => format!("{kept}\u{7F}"),
        1 => format!("{kept}\u{FFFD}"),
        _ => format!("{kept}\u{10FFFF}"),
    }
}

fn bytes_prefix(text: &str, length: usize) -> String {
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn parquet_maximum(text: &str) -> String {
    if text.len() <= 64 {
        return text.to_owned();
    }
    let mut chars: Vec<char> = bytes_prefix(text, 64).chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = char::from_u32(u32::from(last) + 1) {
            chars.push(next);
            return chars.into_iter().collect();
        }
    }
    text.to_owned()
}

/// The JSON of a bound; none where this writer has none for it.
fn json_text(value: &ScalarValue, writer: Writer, random: &mut StdRng) -> Option<String> {
    let mut float = |text: String, value: f64| {
        if value == f64::INFINITY {
            "\"Infinity\"".to_owned()
        } else if value == f64::NEG_INFINITY {
            "\"-Infinity\"".to_owned()
        } else if value == 0.0 {
            // Either sign may stand for both.
            ["0.0", "-0.0"][random.random_range(0..2)].to_owned()
        } else {
            text
        }
    };
    Some(match value {
        ScalarValue::Float32(Some(v)) => float(format!("{v:?}"), f64::from(*v)),
        ScalarValue::Float64(Some(v)) => float(format!("{v:?}"), *v),
        ScalarValue::Decimal128(Some(v), precision, scale) => match writer {
            Writer::Deltalake => double_text(*v, *precision, *scale),
            Writer::Exact | Writer::Spark => decimal_text(*v, *scale),
        },
        ScalarValue::Utf8(Some(text)) => json!(text).to_string(),
        ScalarValue::Binary(Some(bytes)) => json!(String::from_utf8_lossy(bytes)).to_string(),
        ScalarValue::Date32(Some(days)) => format!("\"{}\"", date_text(*days)?),
        ScalarValue::TimestampMicrosecond(Some(micros), zone) => {
            let text = timestamp_text(*micros, zone.is_some(), writer, random)?;
            format!("\"{text}\"")
        }
        other => other.to_string(),
    })
}

fn timestamp_text(micros: i64, zoned: bool, writer: Writer, random: &mut StdRng) -> Option<String> {
    let digits = if writer == Writer::Exact {
        "%.6f"
    } else {
        "%.3f"
    };
    let format = format!("%Y-%m-%dT%H:%M:%S{digits}");
    if !zoned {
        let zone = ["", "Z"][random.random_range(0..2)];
        return instant_text(micros, &format!("{format}{zone}"));
    }
    let (offset, zone) = match random.random_range(0..4) {
        // Stockholm before 1879, with and without its seconds.
        0 if micros < YEAR_1972 => (3208, "+00:53"),
        1 if micros < YEAR_1972 => (3208, "+00:53:28"),
        0 => (-7 * 3600, "-07:00"),
        1 => (20_700, "+0545"),
        _ => (0, "Z"),
    };
    instant_text(micros + offset * 1_000_000, &format!("{format}{zone}"))
}

pub(super) fn instant_text(micros: i64, format: &str) -> Option<String> {
    Some(
        DateTime::from_timestamp_micros(micros)?
            .format(format)
            .to_string(),
    )
}

pub(super) fn date_text(days: i32) -> Option<String> {
    let date = NaiveDate::default().checked_add_signed(Duration::days(i64::from(days)))?;
    Some(date.format("%Y-%m-%d").to_string())
}

/// All digits.
pub(super) fn decimal_text(unscaled: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).expect("scale");
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// The digits that deltalake gives: of a double, or of 64 bits where there is no fraction.
fn double_text(unscaled: i128, precision: u8, scale: i8) -> String {
    if scale == 0 && precision <= 18 {
        return unscaled.to_string();
    }
    let value = unscaled as f64 / 10_f64.powi(i32::from(scale));
    if scale == 0 {
        return (value as i64).to_string();
    }
    format!("{value:?}")
}
