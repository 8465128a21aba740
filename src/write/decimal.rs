//! Decimals as text, exact in every digit.

/// `unscaled` × 10<sup>−`scale`</sup> in plain digits, with exactly `scale` digits after the point.
/// `None` for a scale that Delta does not have (negative or above 38).
pub(crate) fn decimal_text(unscaled: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok().filter(|scale| *scale <= 38)?;
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    Some(if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_is_kept() {
        for (unscaled, scale, expected) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 2, "-0.05"),
            (12345, 2, "123.45"),
            (100_000_000_000_000_001, 18, "0.100000000000000001"),
            (
                99_999_999_999_999_999_999_999_999_999_999_999_999,
                0,
                "99999999999999999999999999999999999999",
            ),
            (
                -99_999_999_999_999_999_999_999_999_999_999_999_999,
                38,
                "-0.99999999999999999999999999999999999999",
            ),
        ] {
            assert_eq!(decimal_text(unscaled, scale).as_deref(), Some(expected));
        }
        assert_eq!(decimal_text(1, -1), None);
    }
}
