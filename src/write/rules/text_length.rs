//! `CHAR(n)` and `VARCHAR(n)`: texts with a length, in characters.
//!
//! Delta has one type for texts; Spark puts the declared one beside it. As in Spark, blanks at the end
//! that do not fit are cut off, anything else that does not fit is refused, and a `CHAR(n)` is filled
//! up with blanks.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};

use super::evaluate::MAX_TEXT;
use crate::error::{Error, Result, shortened};

/// Key of the declared type in the metadata of a field.
pub const DECLARED_TYPE: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// A column whose texts have a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLength {
    /// Its index.
    pub column: usize,
    /// Most characters of a text.
    pub most: usize,
    /// Whether shorter texts are filled up with blanks.
    pub fixed: bool,
}

impl TextLength {
    /// What `declared`, such as `varchar(10)`, says of the column of this index.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a declaration that is not understood, such as one of texts in a list.
    pub fn parse(column: usize, name: &str, declared: &str) -> Result<Self> {
        let lower = declared.trim().to_ascii_lowercase();
        let parse = |prefix: &str| -> Option<usize> {
            let inner = lower.strip_prefix(prefix)?.strip_suffix(')')?;
            inner.trim().parse().ok().filter(|length| *length > 0)
        };
        let (most, fixed) = match (parse("varchar("), parse("char(")) {
            (Some(most), _) => (most, false),
            (None, Some(most)) => (most, true),
            (None, None) => {
                return Err(Error::unsupported(format!(
                    "the declared type {declared} of the column {name}: lengths are checked of whole \
                     columns that are CHAR or VARCHAR, not inside of others"
                )));
            }
        };
        Ok(Self {
            column,
            most,
            fixed,
        })
    }

    /// The declared type.
    pub fn type_name(&self) -> String {
        let name = if self.fixed { "CHAR" } else { "VARCHAR" };
        format!("{name}({})", self.most)
    }

    /// `values` of the column `name` in the declared length.
    ///
    /// # Errors
    ///
    /// `Invalid` for a text that is too long.
    pub(super) fn fit(&self, values: &ArrayRef, name: &str) -> Result<ArrayRef> {
        let texts = values
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::corrupt(format!("the column {name} is no text")))?;
        if texts
            .iter()
            .all(|text| text.is_none_or(|text| self.is_fit(text)))
        {
            return Ok(Arc::clone(values));
        }
        let fitting = texts
            .iter()
            .map(|text| text.map(|text| self.fitted(text, name)).transpose())
            .collect::<Result<StringArray>>()?;
        Ok(Arc::new(fitting))
    }

    fn is_fit(&self, text: &str) -> bool {
        let length = text.chars().count();
        length == self.most || (length < self.most && !self.fixed)
    }

    fn fitted(&self, text: &str, name: &str) -> Result<String> {
        let length = text.chars().count();
        if length <= self.most {
            let blanks = if self.fixed { self.most - length } else { 0 };
            return Ok(format!("{text}{}", " ".repeat(blanks)));
        }
        let end = text
            .char_indices()
            .nth(self.most)
            .map_or(text.len(), |(end, _)| end);
        match text.split_at_checked(end) {
            Some((kept, rest)) if rest.chars().all(|c| c == ' ') => Ok(kept.to_owned()),
            _ => Err(Error::invalid(format!(
                "{} of the column {name} is violated by a row with a text of {length} characters: \
                 {name} = {}",
                self.type_name(),
                shortened(text.to_owned(), MAX_TEXT),
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_fitted_or_refused() {
        for (declared, text, expected) in [
            ("varchar(3)", "abc", Some("abc")),
            ("varchar(3)", "", Some("")),
            ("varchar(3)", "äöü", Some("äöü")),
            ("VARCHAR( 3 )", "abc  ", Some("abc")),
            ("varchar(3)", "abcd", None),
            ("varchar(3)", "ab  c", None),
            ("char(3)", "a", Some("a  ")),
            ("char(3)", "abc   ", Some("abc")),
            ("char(3)", "abcd", None),
        ] {
            let rule = TextLength::parse(0, "s", declared).expect("parsed");
            let values: ArrayRef = Arc::new(StringArray::from(vec![Some(text), None]));
            match (rule.fit(&values, "s"), expected) {
                (Ok(found), Some(expected)) => {
                    let found = found.as_string::<i32>().iter().collect::<Vec<_>>();
                    assert_eq!(found, [Some(expected), None], "{declared} {text}");
                }
                (Err(error), None) => {
                    for part in [rule.type_name().as_str(), "column s", text] {
                        assert!(error.message().contains(part), "{part}: {error}");
                    }
                }
                (found, _) => panic!("{declared} {text}: {found:?}"),
            }
        }
    }

    #[test]
    fn other_declarations_are_refused() {
        for declared in [
            "array<varchar(3)>",
            "varchar",
            "char(0)",
            "char(x)",
            "string",
        ] {
            let error = TextLength::parse(0, "s", declared).expect_err(declared);
            assert!(error.message().contains(declared), "{error}");
        }
    }
}
