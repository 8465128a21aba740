//! Table properties that say how data files are written.

use std::collections::BTreeMap;

/// Size in bytes at which a data file is closed: `delta.targetFileSize`. 100 MiB when it is not set
/// or not readable, since a hint must not keep anyone from writing.
pub fn target_file_size(properties: &BTreeMap<String, String>) -> u64 {
    properties
        .get("delta.targetFileSize")
        .and_then(|value| parse_bytes(value))
        .unwrap_or(DEFAULT_TARGET_FILE_SIZE)
}

/// Bytes in `104857600`, `100mb`, `100 MB` or `100m`: units are powers of 1024, as Spark has them.
/// `None` for anything else and for zero.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
}

/// deltalake's default.
const DEFAULT_TARGET_FILE_SIZE: u64 = 100 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, expected) in [
            ("104857600", Some(104_857_600)),
            ("100mb", Some(104_857_600)),
            (" 1 GB ", Some(1 << 30)),
            ("8k", Some(8192)),
            ("1b", Some(1)),
            ("0", None),
            ("", None),
            ("mb", None),
            ("-1", None),
            ("1.5mb", None),
            ("99999999999999999999", None),
            ("18446744073709551615k", None),
            ("1 xb", None),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn unset_or_unreadable_target_size_is_the_default() {
        let size = |value: &str| {
            let key = "delta.targetFileSize".to_owned();
            target_file_size(&BTreeMap::from([(key, value.to_owned())]))
        };
        assert_eq!(target_file_size(&BTreeMap::new()), 100 << 20);
        assert_eq!(size("big"), 100 << 20);
        assert_eq!(size("2mb"), 2 << 20);
    }
}
