//! Statistics JSON, read leniently and exactly: numbers keep their text, a repeated key is
//! remembered as such, and a piece that is broken is missing without spoiling its neighbours.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

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

/// A JSON object whose values are still text.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    entries: HashMap<Cow<'a, str>, Option<&'a RawValue>>,
}

impl<'a> Object<'a> {
    /// Reads `text`; an empty object where it is not one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The piece under exactly this key.
    pub(super) fn get(&self, key: &str) -> Piece<'a> {
        match self.entries.get(key) {
            None => Piece::Absent,
            Some(None) => Piece::Repeated,
            Some(Some(value)) if value.get() == "null" => Piece::Absent,
            Some(Some(value)) => Piece::Value(value),
        }
    }

    /// The piece at the end of `path`, a key a level.
    pub(super) fn at(&self, path: &[&str]) -> Piece<'a> {
        let Some((first, rest)) = path.split_first() else {
            return Piece::Absent;
        };
        let mut piece = self.get(first);
        for key in rest {
            let Piece::Value(value) = piece else { break };
            piece = match Self::parse(value.get()) {
                Some(object) => object.get(key),
                None => Piece::Absent,
            };
        }
        piece
    }

    /// The object under `key`; empty where there is none or it cannot be trusted.
    fn child(&self, key: &str) -> Self {
        match self.get(key) {
            Piece::Value(value) => Self::parse(value.get()).unwrap_or_default(),
            Piece::Absent | Piece::Repeated => Self::default(),
        }
    }

    /// Whether no leaf below this object satisfies `told`; repeated keys and broken pieces count as
    /// satisfying it.
    fn no_leaf(&self, told: &impl Fn(&RawValue) -> bool) -> bool {
        self.entries.values().all(|value| match value {
            None => false,
            Some(value) => match Self::parse(value.get()) {
                Some(object) => object.no_leaf(told),
                None => !told(value),
            },
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut entries = HashMap::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    match entries.entry(key) {
                        Entry::Vacant(entry) => {
                            entry.insert(Some(value));
                        }
                        Entry::Occupied(mut entry) => {
                            entry.insert(None);
                        }
                    }
                }
                Ok(Object { entries })
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// An object key, borrowed where it holds no escapes.
#[derive(PartialEq, Eq, Hash)]
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
#[derive(Debug, Default)]
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
        let Some(object) = text.and_then(Object::parse) else {
            return Self::default();
        };
        Self {
            present: true,
            rows: match object.get("numRecords") {
                Piece::Value(value) => count(value),
                Piece::Absent | Piece::Repeated => None,
            },
            tight: match object.get("tightBounds") {
                Piece::Absent => true,
                Piece::Repeated => false,
                Piece::Value(value) => value.get() == "true",
            },
            min: object.child("minValues"),
            max: object.child("maxValues"),
            nulls: object.child("nullCount"),
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
