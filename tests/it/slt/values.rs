//! Values and column types as text, as in DataFusion's own `sqllogictest` suite.
//!
//! | value | text |
//! |---|---|
//! | NULL | `NULL` |
//! | empty string or binary | `(empty)` |
//! | floating point | plain notation, at most 12 decimals, no zeros at the end: `1`, `0.3`; `NaN`, `Infinity`, `-Infinity` |
//! | decimal | all digits, no zeros at the end: `1.5` |
//! | anything else | as Arrow prints it: `true`, `2024-02-29`, `2024-02-29T12:00:00` |
//!
//! Letters: `I` integer, `R` floating point or decimal, `T` text, `B` boolean, `D` date or time, `P`
//! timestamp, `?` anything else. A file may write `T` or `?` for any column.
//!
//! Runs of white space count as one, and a number is the same with zeros at its end.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use sqllogictest::{ColumnType, Normalizer};

/// A column's type as one letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter(char);

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        Some(Self(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

pub fn letter(data_type: &DataType) -> Letter {
    Letter(match data_type {
        integer if integer.is_integer() => 'I',
        number if number.is_numeric() => 'R',
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 'T',
        DataType::Boolean => 'B',
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => 'D',
        DataType::Timestamp(..) => 'P',
        DataType::Dictionary(_, value) => return letter(value),
        _ => '?',
    })
}

#[expect(clippy::ptr_arg, reason = "the signature is sqllogictest's")]
pub fn same_letters(actual: &Vec<Letter>, expected: &Vec<Letter>) -> bool {
    let same = |(actual, expected): (&Letter, &Letter)| {
        actual == expected || !"IRBDP".contains(expected.0)
    };
    actual.len() == expected.len() && actual.iter().zip(expected).all(same)
}

pub fn same_rows(normalize: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    lines(normalize, actual) == expected_lines(normalize, expected)
}

pub fn same_rows_in_any_order(
    normalize: Normalizer,
    actual: &[Vec<String>],
    expected: &[String],
) -> bool {
    let mut actual = lines(normalize, actual);
    let mut expected = expected_lines(normalize, expected);
    actual.sort_unstable();
    expected.sort_unstable();
    actual == expected
}

fn lines(normalize: Normalizer, rows: &[Vec<String>]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let row: Vec<String> = row.iter().map(normalize).collect();
            without_final_zeros(&row.join(" "))
        })
        .collect()
}

fn expected_lines(normalize: Normalizer, lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| without_final_zeros(&normalize(line)))
        .collect()
}

fn without_final_zeros(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').map(shortest).collect();
    words.join(" ")
}

/// A number with decimals without the zeros at its end; anything else as it is.
fn shortest(word: &str) -> &str {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_decimal = match digits.split_once('.') {
        Some((whole, decimals)) => [whole, decimals]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())),
        None => false,
    };
    match is_decimal {
        true => match word.trim_end_matches('0').trim_end_matches('.') {
            "-0" => "0",
            shorter => shorter,
        },
        false => word,
    }
}

pub fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            rows.push(
                batch
                    .columns()
                    .iter()
                    .map(|column| cell(column.as_ref(), row))
                    .collect::<Result<_>>()?,
            );
        }
    }
    Ok(rows)
}

fn cell(column: &dyn Array, row: usize) -> Result<String> {
    if column.is_null(row) {
        return Ok("NULL".to_owned());
    }
    let options = FormatOptions::default().with_null("NULL");
    let text = ArrayFormatter::try_new(column, &options)?
        .value(row)
        .to_string();
    Ok(match column.data_type() {
        DataType::Float16 => {
            let value = column.as_primitive::<Float16Type>().value(row);
            float(f64::from(value), &value.to_string())
        }
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            float(f64::from(value), &value.to_string())
        }
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(row);
            float(value, &value.to_string())
        }
        decimal if decimal.is_decimal() => shortest(&text).to_owned(),
        _ if text.is_empty() => "(empty)".to_owned(),
        _ => text,
    })
}

/// `plain` is the shortest text that means `value`.
fn float(value: f64, plain: &str) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let decimals = plain
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let text = if decimals > 12 {
        format!("{value:.12}")
    } else {
        plain.to_owned()
    };
    match shortest(&text) {
        "-0" => "0".to_owned(),
        shorter => shorter.to_owned(),
    }
}
