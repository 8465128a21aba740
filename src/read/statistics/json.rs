//! Statistics JSON, read leniently and exactly: numbers keep their text, a repeated key is
//! remembered as such, and a piece that is broken is missing without spoiling its neighbours.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Levels of nested columns that are looked through. No table nests as deeply; text that does would
/// use up the stack.
const MAX_NESTING: usize = 64;

/// What an object says about one of its keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece<'a> {
    /// Nothing, or `null`.
    Absent,
    /// The key occurs more than once, so no value of it can be trusted.
    Repeated,
    /// The text of its value.
    Value(&'a RawValue),
}

/// A JSON object that is still text. It is read anew for each question, so that of many files with
/// many columns nothing is kept that nobody asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Object<'a>(Option<&'a str>);

impl<'a> Object<'a> {
    /// The object that `piece` is; empty where it is none or cannot be trusted.
    fn of(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Value(value) => Self(Some(value.get())),
            Piece::Absent | Piece::Repeated => Self(None),
        }
    }

    /// The piece under exactly this key.
    fn get(&self, key: &str) -> Piece<'a> {
        match self.0.and_then(|text| pick(text, [key])) {
            Some([piece]) => piece,
            None => Piece::Absent,
        }
    }

    /// The piece at the end of `path`, a key a level.
    pub(super) fn at(&self, path: &[&str]) -> Piece<'a> {
        let Some((first, rest)) = path.split_first() else {
            return Piece::Absent;
        };
        let mut piece = self.get(first);
        for key in rest {
            let Piece::Value(_) = piece else { break };
            piece = Self::of(piece).get(key);
        }
        piece
    }

    /// Whether no leaf below this object satisfies `told`; repeated keys, broken pieces and what
    /// lies deeper than [`MAX_NESTING`] count as satisfying it.
    fn no_leaf(&self, told: &impl Fn(&RawValue) -> bool) -> bool {
        self.0
            .and_then(Entries::parse)
            .is_none_or(|entries| entries.no_leaf(MAX_NESTING, told))
    }
}

/// The pieces under `keys` of the object `text`; nothing where it is no object.
fn pick<'a, const N: usize>(text: &'a str, keys: [&str; N]) -> Option<[Piece<'a>; N]> {
    struct Pick<'k, const N: usize>([&'k str; N]);

    impl<'de, const N: usize> DeserializeSeed<'de> for Pick<'_, N> {
        type Value = [Piece<'de>; N];

        fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<Self::Value, D::Error> {
            object.deserialize_map(self)
        }
    }

    impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
        type Value = [Piece<'de>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pieces: [Option<Piece<'de>>; N] = [None; N];
            while let Some(Key(found)) = map.next_key()? {
                let wanted = self
                    .0
                    .iter()
                    .zip(&mut pieces)
                    .find(|(key, _)| **key == found);
                let Some((_, piece)) = wanted else {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                };
                let value: &RawValue = map.next_value()?;
                *piece = Some(match piece {
                    Some(_) => Piece::Repeated,
                    None if value.get() == "null" => Piece::Absent,
                    None => Piece::Value(value),
                });
            }
            Ok(pieces.map(|piece| piece.unwrap_or(Piece::Absent)))
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let pieces = Pick(keys).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(pieces)
}

/// All entries of an object, in order.
struct Entries<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'a> Entries<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn no_leaf(self, depth: usize, told: &impl Fn(&RawValue) -> bool) -> bool {
        let mut keys = HashSet::new();
        self.0.into_iter().all(|(Key(key), value)| {
            keys.insert(key)
                && match (Self::parse(value.get()), depth.checked_sub(1)) {
                    (Some(inner), Some(depth)) => inner.no_leaf(depth, told),
                    (Some(_), None) => false,
                    (None, _) => !told(value),
                }
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// An object key, borrowed where it holds no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The statistics of one file, one level deep.
///
/// Source: Delta protocol, "Per-file Statistics".
#[derive(Debug, Clone, Default)]
pub(super) struct FileJson<'a> {
    /// Whether there is a statistics object at all.
    pub(super) present: bool,
    /// `numRecords`: rows in the file, deleted ones included.
    pub(super) rows: Option<u64>,
    /// `tightBounds`; a file whose flag is missing is tight, one whose flag is broken is not.
    pub(super) tight: bool,
    /// `minValues`.
    pub(super) min: Object<'a>,
    /// `maxValues`.
    pub(super) max: Object<'a>,
    /// `nullCount`.
    pub(super) nulls: Object<'a>,
}

impl<'a> FileJson<'a> {
    /// Reads the `stats` text of an `add`.
    pub(super) fn parse(text: Option<&'a str>) -> Self {
        const KEYS: [&str; 5] = [
            "numRecords",
            "tightBounds",
            "minValues",
            "maxValues",
            "nullCount",
        ];
        let Some([rows, tight, min, max, nulls]) = text.and_then(|text| pick(text, KEYS)) else {
            return Self::default();
        };
        Self {
            present: true,
            rows: match rows {
                Piece::Value(value) => count(value),
                Piece::Absent | Piece::Repeated => None,
            },
            tight: match tight {
                Piece::Absent => true,
                Piece::Repeated => false,
                Piece::Value(value) => value.get() == "true",
            },
            min: Object::of(min),
            max: Object::of(max),
            nulls: Object::of(nulls),
        }
    }

    /// Whether the file holds no rows and nothing else in its statistics says otherwise.
    pub(super) fn is_empty(&self) -> bool {
        let told = |value: &RawValue| value.get() != "null";
        self.rows == Some(0)
            && self.min.no_leaf(&told)
            && self.max.no_leaf(&told)
            && self
                .nulls
                .no_leaf(&|value: &RawValue| told(value) && count(value) != Some(0))
    }
}

/// A count of rows: digits alone.
pub(super) fn count(value: &RawValue) -> Option<u64> {
    let text = value.get();
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The text of a JSON number.
pub(super) fn number(value: &RawValue) -> Option<&str> {
    let text = value.get();
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        .then_some(text)
}

/// The text of a JSON string; none where it holds what is no Unicode text, such as half of a
/// surrogate pair.
pub(super) fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}
