//! Values written as text, in statistics and in partition values. Whatever does not have exactly
//! the expected form is no value.

use chrono::{NaiveDate, NaiveDateTime};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// An integer: an optional minus sign and digits.
pub(super) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    is_digits(digits).then(|| text.parse().ok()).flatten()
}

/// A decimal number in plain or exponent form as the unscaled value of `decimal(precision, scale)`;
/// none where it does not fit that type exactly.
pub(super) fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if !is_digits(digits) {
                return None;
            }
            (mantissa, exponent.parse::<i32>().ok()?)
        }
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (mantissa, ""),
    };
    if !is_digits(whole) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let trailing = digits.len() - significant.len();
    // value = significant * 10^shift in units of 10^-scale
    let shift = i64::from(exponent) + i64::from(scale) + i64::try_from(trailing).ok()?
        - i64::try_from(fraction.len()).ok()?;
    // More digits than any decimal type has, or digits below its scale.
    if significant.len() > 38 || !(0..=38).contains(&shift) {
        return None;
    }
    let factor = 10_i128.checked_pow(u32::try_from(shift).ok()?)?;
    let value = significant.parse::<i128>().ok()?.checked_mul(factor)?;
    fits_decimal(value, precision).then_some(if negative { -value } else { value })
}

/// Whether an unscaled value has at most `precision` digits.
pub(crate) fn fits_decimal(value: i128, precision: u8) -> bool {
    10_u128
        .checked_pow(u32::from(precision))
        .is_some_and(|limit| value.unsigned_abs() < limit)
}

/// A finite double: digits, point and exponent, no words.
pub(super) fn double(text: &str) -> Option<f64> {
    is_float_text(text)
        .then(|| text.parse().ok())
        .flatten()
        .filter(|value: &f64| value.is_finite())
}

/// A finite float, rounded once from the text.
pub(super) fn float(text: &str) -> Option<f32> {
    is_float_text(text)
        .then(|| text.parse().ok())
        .flatten()
        .filter(|value: &f32| value.is_finite())
}

/// `yyyy-mm-dd` of the years 1 to 9999 as days since the epoch.
pub(super) fn date(text: &str) -> Option<i32> {
    let days = naive_date(text)?.signed_duration_since(NaiveDate::default());
    i32::try_from(days.num_days()).ok()
}

/// A point in time as text gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instant {
    /// Microseconds since the epoch, rounded down; in UTC if a zone was given, else as read off a
    /// wall clock.
    pub(super) micros: i64,
    /// Whether digits below the microsecond were cut.
    pub(super) cut: bool,
    /// The offset from UTC that was given, in seconds.
    pub(super) offset: Option<i32>,
}

/// `yyyy-mm-dd`, `T` or a blank, `hh:mm:ss`, an optional fraction of a second and an optional
/// offset in any form (`Z`, `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`).
pub(super) fn instant(text: &str) -> Option<Instant> {
    let date = naive_date(text.get(..10)?)?;
    let rest = text.get(10..)?.strip_prefix(['T', ' '])?;
    let (hour, minute, second) = (
        two_digits(rest.get(..2)?)?,
        two_digits(rest.get(2..)?.strip_prefix(':')?.get(..2)?)?,
        two_digits(rest.get(5..)?.strip_prefix(':')?.get(..2)?)?,
    );
    let rest = rest.get(8..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let (fraction, zone) = rest.split_at(end);
            if fraction.is_empty() {
                return None;
            }
            (fraction, zone)
        }
        None => ("", rest),
    };
    let (kept, lost) = fraction.split_at(fraction.len().min(6));
    let micro = format!("{kept:0<6}").parse().ok()?;
    let offset = match zone {
        "" => None,
        "Z" => Some(0),
        _ => Some(offset_seconds(zone)?),
    };
    let wall: NaiveDateTime = date.and_hms_micro_opt(hour, minute, second, micro)?;
    let shift = i64::from(offset.unwrap_or(0)) * MICROS_PER_SECOND;
    Some(Instant {
        micros: wall.and_utc().timestamp_micros().checked_sub(shift)?,
        cut: lost.bytes().any(|byte| byte != b'0'),
        offset,
    })
}

fn offset_seconds(zone: &str) -> Option<i32> {
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+')?),
    };
    let parts: Vec<&str> = match rest.len() {
        2 => vec![rest],
        4 => vec![rest.get(..2)?, rest.get(2..)?],
        _ => rest.split(':').collect(),
    };
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours] => (*hours, "00", "00"),
        [hours, minutes] => (*hours, *minutes, "00"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let [hours, minutes, seconds] = [
        two_digits(hours)?,
        two_digits(minutes)?,
        two_digits(seconds)?,
    ];
    if hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    let total = i32::try_from(hours * 3600 + minutes * 60 + seconds).ok()?;
    Some(sign * total)
}

fn naive_date(text: &str) -> Option<NaiveDate> {
    let [year, month, day] = [text.get(..4)?, text.get(4..7)?, text.get(7..)?];
    let month = month.strip_prefix('-')?;
    let day = day.strip_prefix('-')?;
    if !is_digits(year) || year == "0000" {
        return None;
    }
    NaiveDate::from_ymd_opt(year.parse().ok()?, two_digits(month)?, two_digits(day)?)
}

fn two_digits(text: &str) -> Option<u32> {
    (text.len() == 2 && is_digits(text))
        .then(|| text.parse().ok())
        .flatten()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_float_text(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_digit_by_digit() {
        for (text, precision, scale, expected) in [
            (
                "0.100000000000000001",
                38,
                18,
                Some(100_000_000_000_000_001),
            ),
            ("1e3", 10, 2, Some(100_000)),
            ("1.5E-1", 10, 2, Some(15)),
            ("-12.50", 10, 2, Some(-1250)),
            ("12.5000", 4, 2, Some(1250)),
            ("0.00", 4, 2, Some(0)),
            ("0e99999", 4, 2, Some(0)),
            ("1.005", 10, 2, None),
            ("100", 4, 2, None),
            ("1e400", 38, 0, None),
            ("1e99999999999", 38, 0, None),
            (
                "99999999999999999999999999999999999999",
                38,
                0,
                Some(10_i128.pow(38) - 1),
            ),
            ("100000000000000000000000000000000000000", 38, 0, None),
            ("", 10, 2, None),
            ("-", 10, 2, None),
            (".5", 10, 2, None),
            ("5.", 10, 2, None),
            ("1e", 10, 2, None),
            ("+1", 10, 2, None),
        ] {
            assert_eq!(decimal(text, precision, scale), expected, "{text}");
        }
    }

    #[test]
    fn dates_of_four_digit_years_only() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("1969-12-31", Some(-1)),
            ("9999-12-31", Some(2_932_896)),
            ("2023-02-29", None),
            ("12345-01-01", None),
            ("-0001-01-01", None),
            ("0000-01-01", None),
            ("2020-1-1", None),
            ("2020-01-01T00:00:00Z", None),
            ("", None),
            ("日本語日本語日本", None),
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
    }

    #[test]
    fn instants_in_every_offset_form() {
        let second = |micros: i64| Some(micros * MICROS_PER_SECOND);
        for (text, expected) in [
            ("1970-01-01T00:00:01Z", second(1)),
            ("1970-01-01 00:00:01", second(1)),
            ("1970-01-01T00:00:01.000Z", second(1)),
            ("1969-12-31T17:00:01-07:00", second(1)),
            ("1969-12-31T17:00:01-0700", second(1)),
            ("1969-12-31T17:00:01-07", second(1)),
            ("1970-01-01T00:53:29+00:53:28", second(1)),
            ("1970-01-01T00:00:00.000001Z", Some(1)),
            ("1970-01-01T00:00:00.0000019Z", Some(1)),
            ("1969-12-31T23:59:59.9999999Z", Some(-1)),
            ("1970-01-01T00:00:60Z", None),
            ("1970-01-01T24:00:00Z", None),
            ("1970-01-01T00:00Z", None),
            ("1970-01-01", None),
            ("1970-01-01T00:00:00.Z", None),
            ("1970-01-01T00:00:00 UTC", None),
            ("1970-01-01T00:00:00+1:00", None),
            ("1970-01-01T00:00:00+25:00", None),
            ("1970-01-01T0é:00:00Z", None),
            ("10000-01-01T00:00:00Z", None),
        ] {
            assert_eq!(instant(text).map(|i| i.micros), expected, "{text}");
        }
    }

    #[test]
    fn cut_and_offset_are_told() {
        let get = |text| instant(text).map(|i| (i.cut, i.offset));
        assert_eq!(get("1970-01-01 00:00:00.1234560"), Some((false, None)));
        assert_eq!(get("1970-01-01 00:00:00.1234561"), Some((true, None)));
        assert_eq!(get("1970-01-01T00:00:00-01:00"), Some((false, Some(-3600))));
    }

    #[test]
    fn numbers_in_their_plain_form_only() {
        assert_eq!(integer("9007199254740993"), Some(9_007_199_254_740_993));
        assert_eq!(integer("-0"), Some(0));
        for text in ["", "-", "+1", "1.0", "1e3", " 1", "9223372036854775808"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(float("0.1"), Some(0.1));
        assert_eq!(double("1e400"), None);
        for text in ["", "NaN", "inf", "infinity", "1_0", "0x1"] {
            assert_eq!(double(text), None, "{text}");
        }
    }
}
