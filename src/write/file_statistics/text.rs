//! Statistics as text. The JSON is put together here and not by a JSON library, so that no number
//! passes through a floating-point type on its way.

use std::collections::HashMap;

use chrono::{DateTime, Datelike, NaiveDateTime};

use super::bounds::Bounds;
use super::{ColumnKind, ColumnStatistics};
use crate::read::statistics::{EXACT_STATISTICS_TAG, NAN_FREE_TAG};
use crate::write::decimal::decimal_text;

pub(super) fn stats_json(
    num_records: u64,
    columns: &[ColumnStatistics],
    string_prefix_length: usize,
) -> String {
    let bound = |side| {
        move |column: &ColumnStatistics| match &column.kind {
            ColumnKind::Leaf { bounds, .. } => bound_text(bounds, side, string_prefix_length),
            ColumnKind::Struct(_) => None,
        }
    };
    let min_values = object(columns, &bound(Side::Min)).unwrap_or_else(|| "{}".to_owned());
    let max_values = object(columns, &bound(Side::Max)).unwrap_or_else(|| "{}".to_owned());
    let null_count = object(columns, &|column| match &column.kind {
        ColumnKind::Leaf { null_count, .. } => Some(null_count.to_string()),
        ColumnKind::Struct(_) => None,
    })
    .unwrap_or_else(|| "{}".to_owned());
    format!(
        "{{\"numRecords\":{num_records},\"minValues\":{min_values},\"maxValues\":{max_values},\
         \"nullCount\":{null_count},\"tightBounds\":true}}"
    )
}

pub(super) fn tags(columns: &[ColumnStatistics]) -> HashMap<String, Option<String>> {
    let mut tags = HashMap::from([(EXACT_STATISTICS_TAG.to_owned(), Some("true".to_owned()))]);
    let nan_free: Vec<String> = columns
        .iter()
        .filter(|column| {
            matches!(
                column.kind,
                ColumnKind::Leaf {
                    bounds: Bounds::Float { has_nan: false, .. },
                    ..
                }
            )
        })
        .map(|column| quoted(&column.name))
        .collect();
    if !nan_free.is_empty() {
        tags.insert(
            NAN_FREE_TAG.to_owned(),
            Some(format!("[{}]", nan_free.join(","))),
        );
    }
    tags
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

/// An object of what `leaf` says of each leaf; structs nest. `None` if it would be empty.
fn object(
    columns: &[ColumnStatistics],
    leaf: &dyn Fn(&ColumnStatistics) -> Option<String>,
) -> Option<String> {
    let members: Vec<String> = columns
        .iter()
        .filter_map(|column| {
            let value = match &column.kind {
                ColumnKind::Leaf { .. } => leaf(column),
                ColumnKind::Struct(fields) => object(fields, leaf),
            }?;
            Some(format!("{}:{value}", quoted(&column.name)))
        })
        .collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

fn bound_text(bounds: &Bounds, side: Side, string_prefix_length: usize) -> Option<String> {
    match bounds {
        Bounds::None => None,
        Bounds::Integer(range) => Some(pick(range, side)?.to_string()),
        Bounds::Decimal { scale, range } => decimal_text(*pick(range, side)?, *scale),
        Bounds::Float { has_nan: true, .. } => None,
        Bounds::Float { range, .. } => {
            let value = *pick(range, side)?;
            // JSON has no infinity. The debug form has the fewest digits that read back as the
            // same value, and keeps the sign of zero.
            value.is_finite().then(|| format!("{value:?}"))
        }
        Bounds::Date(range) => {
            let days = i64::from(*pick(range, side)?);
            let date = DateTime::from_timestamp(days.checked_mul(86_400)?, 0)?.date_naive();
            (1..=9999)
                .contains(&date.year())
                .then(|| format!("\"{}\"", date.format("%Y-%m-%d")))
        }
        Bounds::Timestamp { utc, range } => {
            let millis = pick(range, side)?.div_euclid(1000);
            let time: NaiveDateTime = DateTime::from_timestamp_millis(millis)?.naive_utc();
            let zone = if *utc { "Z" } else { "" };
            (1..=9999)
                .contains(&time.year())
                .then(|| format!("\"{}{zone}\"", time.format("%Y-%m-%dT%H:%M:%S%.3f")))
        }
        Bounds::String(range) => {
            let value = pick(range, side)?;
            Some(match side {
                Side::Min => quoted(prefix(value, string_prefix_length)),
                Side::Max => quoted(&max_prefix(value, string_prefix_length)),
            })
        }
    }
}

fn pick<T>(range: &Option<(T, T)>, side: Side) -> Option<&T> {
    let (min, max) = range.as_ref()?;
    Some(match side {
        Side::Min => min,
        Side::Max => max,
    })
}

/// The longest prefix of `text` that has at most `length` UTF-16 units and splits no character.
pub(super) fn prefix(text: &str, length: usize) -> &str {
    let mut units = 0;
    for (offset, character) in text.char_indices() {
        units += character.len_utf16();
        if units > length {
            return &text[..offset];
        }
    }
    text
}

/// A short string that is not below `text`, nor below anything between it and its own prefix.
///
/// The prefix is made longer while the first character cut off is the greatest there is, since no
/// tie-breaker would be above it; if that reaches the end, `text` itself is the bound.
pub(super) fn max_prefix(text: &str, length: usize) -> String {
    const GREATEST: char = '\u{10FFFF}';
    const LOW_TIE_BREAKER: char = '\u{7F}';
    let mut end = prefix(text, length).len();
    loop {
        match text[end..].chars().next() {
            None => return text.to_owned(),
            Some(GREATEST) => end += GREATEST.len_utf8(),
            Some(cut) => {
                let tie_breaker = if cut < LOW_TIE_BREAKER {
                    LOW_TIE_BREAKER
                } else {
                    GREATEST
                };
                return format!("{}{tie_breaker}", &text[..end]);
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
