//! Bounds of strings, which writers cut.
//!
//! A cut minimum is still a lower bound. A cut maximum is not an upper one: Spark appends a
//! tie-breaker that sorts after all text (U+007F or U+10FFFF; U+FFFD in old versions, which is not
//! always high enough), other writers may leave the bare prefix. Both are raised to the least
//! string above everything that starts with the prefix. Strings compare by their UTF-8 bytes.

/// Shortest maximum that may have been cut, in bytes.
const SHORTEST_CUT: usize = 16;

/// A lower bound from a stored minimum. One that ends in U+FFFD may stand for a cut surrogate pair,
/// which sorts below it or above, so it is none.
pub(super) fn lower_bound(stored: String) -> Option<String> {
    (!stored.ends_with('\u{FFFD}')).then_some(stored)
}

/// An upper bound from a stored maximum; none where no string is high enough.
///
/// `cut_length` is the table's own prefix length in UTF-16 units, of which a string never has more
/// than UTF-8 bytes.
pub(super) fn upper_bound(stored: String, cut_length: usize) -> Option<String> {
    let prefix = stored.trim_end_matches(['\u{7F}', '\u{FFFD}', '\u{10FFFF}']);
    let whole =
        prefix.len() == stored.len() && stored.len() < SHORTEST_CUT && stored.len() < cut_length;
    if whole {
        return Some(stored);
    }
    // Java writes the lone half of a surrogate pair as a question mark.
    successor(prefix.trim_end_matches('?'))
}

/// The least string above every string that starts with `prefix`.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Surrogates are no characters; U+10FFFF has no successor.
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_maximum_stands_as_it_is() {
        for text in ["", "a", "fifteen bytes ~", "ä?", "?"] {
            assert_eq!(
                upper_bound(text.to_owned(), 32).as_deref(),
                Some(text),
                "{text}"
            );
        }
    }

    #[test]
    fn a_cut_maximum_is_raised_above_its_prefix() {
        for (stored, expected) in [
            ("abc\u{7F}", Some("abd")),
            ("abc\u{FFFD}", Some("abd")),
            ("abc\u{10FFFF}", Some("abd")),
            ("abc\u{10FFFF}\u{7F}\u{FFFD}", Some("abd")),
            ("aaaaaaaaaaaaaaaa", Some("aaaaaaaaaaaaaaab")),
            (
                "aaaaaaaaaaaaaaa\u{10FFFE}",
                Some("aaaaaaaaaaaaaaa\u{10FFFF}"),
            ),
            ("aaaaaaaaaaaaaaa\u{D7FF}", Some("aaaaaaaaaaaaaaa\u{E000}")),
            ("aaaaaaaaaaaaaaa?", Some("aaaaaaaaaaaaaab")),
            ("\u{10FFFF}\u{10FFFF}", None),
            ("\u{7F}", None),
            ("????????????????", None),
        ] {
            assert_eq!(
                upper_bound(stored.to_owned(), 32).as_deref(),
                expected,
                "{stored:?}"
            );
        }
    }

    #[test]
    fn the_tables_own_length_counts_when_it_is_shorter() {
        assert_eq!(upper_bound("abcd".into(), 4).as_deref(), Some("abce"));
        assert_eq!(upper_bound("abc".into(), 4).as_deref(), Some("abc"));
        assert_eq!(upper_bound(String::new(), 0), None);
    }

    #[test]
    fn every_string_with_the_prefix_lies_below_the_bound() {
        let prefix = "aaaaaaaaaaaaaaa\u{1F33C}";
        let bound = upper_bound(prefix.to_owned(), 32).expect("bound");
        for tail in ["", "a", "\u{10FFFF}\u{10FFFF}", "\u{1F33C}"] {
            assert!(format!("{prefix}{tail}") < bound);
        }
    }

    #[test]
    fn a_minimum_that_ends_in_a_replacement_character_is_none() {
        assert_eq!(lower_bound("ab\u{FFFD}".into()), None);
        assert_eq!(lower_bound("ab".into()).as_deref(), Some("ab"));
    }
}
