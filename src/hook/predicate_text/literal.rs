//! Literals of a recorded predicate, in the forms in which deltalake prints them.
//!
//! A literal counts only if it is what a value of the column's own type is printed as. deltalake casts
//! most literals to the column's type before it executes and records a predicate. What is left of a
//! constant that was computed may be a double: `0.7` beside a `REAL` column is then another number
//! than the text read as a `REAL`, and beyond 2^53 an integer is another one than the text says. Such
//! literals do not count.

use arrow::datatypes::{DataType, Date32Type, TimeUnit};
use chrono::{NaiveDate, NaiveDateTime};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, ExactNumberInfo, Expr as SqlExpr, UnaryOperator, Value,
};

/// Up to here a double holds every integer.
const EXACT_IN_DOUBLE: u64 = 1 << f64::MANTISSA_DIGITS;

/// The literal `parsed` of a column of type `of`; nothing in any other form.
pub(super) fn literal(parsed: &SqlExpr, of: &DataType) -> Option<Expr> {
    let value = match of {
        DataType::Int8 => ScalarValue::from(number(parsed)?.parse::<i8>().ok()?),
        DataType::Int16 => ScalarValue::from(number(parsed)?.parse::<i16>().ok()?),
        DataType::Int32 => ScalarValue::from(number(parsed)?.parse::<i32>().ok()?),
        DataType::Int64 => {
            let value: i64 = number(parsed)?.parse().ok()?;
            ScalarValue::from((value.unsigned_abs() <= EXACT_IN_DOUBLE).then_some(value)?)
        }
        // Printed with the fewest digits that give the same number back.
        DataType::Float64 => {
            let value: f64 = number(parsed)?.parse().ok()?;
            ScalarValue::from(value.is_finite().then_some(value)?)
        }
        DataType::Utf8 => ScalarValue::Utf8(Some(text(parsed)?.to_owned())),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text(parsed)?.to_owned())),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text(parsed)?.to_owned())),
        DataType::Date32 => date(parsed)?,
        DataType::Decimal128(precision, scale) => decimal(parsed, *precision, *scale)?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = timestamp(parsed, zone.is_some())?;
            ScalarValue::TimestampMicrosecond(Some(micros), zone.clone())
        }
        _ => return None,
    };
    Some(lit(value))
}

/// The digits of a number with its sign.
fn number(parsed: &SqlExpr) -> Option<String> {
    match parsed {
        SqlExpr::Value(value) => match &value.value {
            Value::Number(digits, false) => Some(digits.to_string()),
            _ => None,
        },
        SqlExpr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let digits = number(expr)?;
            (!digits.starts_with('-')).then(|| format!("-{digits}"))
        }
        _ => None,
    }
}

/// A string. One with a quote in it is not certain: the printer leaves quotes that stand in pairs as
/// they are.
fn text(parsed: &SqlExpr) -> Option<&str> {
    match parsed {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) if !text.contains('\'') => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// `'2020-01-31'::date`
fn date(parsed: &SqlExpr) -> Option<ScalarValue> {
    let SqlExpr::Cast {
        kind: CastKind::DoubleColon,
        expr,
        data_type: SqlType::Date,
        array: false,
        format: None,
    } = parsed
    else {
        return None;
    };
    let text = text(expr)?;
    // Years of more than four digits are printed with a sign.
    let date = NaiveDate::parse_from_str((text.len() == 10).then_some(text)?, "%Y-%m-%d").ok()?;
    Some(ScalarValue::Date32(Some(Date32Type::from_naive_date(date))))
}

/// `'-1.50'::decimal(10, 2)`
fn decimal(parsed: &SqlExpr, precision: u8, scale: i8) -> Option<ScalarValue> {
    let SqlExpr::Cast {
        kind: CastKind::DoubleColon,
        expr,
        data_type: SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(of_precision, of_scale)),
        array: false,
        format: None,
    } = parsed
    else {
        return None;
    };
    if *of_precision != u64::from(precision) || *of_scale != i64::from(scale) {
        return None;
    }
    let text = text(expr)?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let places = usize::try_from(scale).ok()?;
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() != places || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let in_range = unscaled < 10_i128.checked_pow(u32::from(precision))?;
    in_range.then(|| ScalarValue::Decimal128(Some(sign * unscaled), precision, scale))
}

/// `arrow_cast('2020-01-31T12:00:00.000000', 'Timestamp(Microsecond, Some("UTC"))')`, without a zone
/// `None`: microseconds since the epoch.
fn timestamp(parsed: &SqlExpr, zoned: bool) -> Option<i64> {
    let SqlExpr::Function(_) = parsed else {
        return None;
    };
    let printed = parsed.to_string();
    let (text, rest) = printed
        .strip_prefix("arrow_cast('")?
        .split_once("', 'Timestamp(Microsecond, ")?;
    let expected = if zoned {
        r#"Some("UTC"))')"#
    } else {
        "None)')"
    };
    if rest != expected || text.len() != 26 {
        return None;
    }
    let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.6f").ok()?;
    Some(time.and_utc().timestamp_micros())
}
