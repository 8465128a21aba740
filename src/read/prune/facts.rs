//! What the statistics say about one column of one file, in words.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;

use crate::read::statistics::{ColumnArrays, FileStatistics, Leaf, Nulls, StatisticsSchema};

/// Longest value that is printed, in characters.
const MAX_VALUE: usize = 40;

/// The facts about one column in the first file of some statistics.
pub(super) struct Facts {
    name: String,
    partition: bool,
    arrays: Option<Arc<ColumnArrays>>,
}

impl Facts {
    /// The facts about `leaf`.
    pub(super) fn new(
        schema: &StatisticsSchema,
        statistics: &FileStatistics<'_>,
        leaf: &Leaf,
    ) -> Self {
        Self {
            name: schema.name(leaf),
            partition: schema.is_partition(leaf),
            arrays: statistics.leaf(leaf),
        }
    }

    /// A value as it stands in conditions.
    pub(super) fn value(value: &ScalarValue) -> String {
        value
            .to_array()
            .ok()
            .and_then(|array| text(array.as_ref()))
            .unwrap_or_else(|| "NULL".to_owned())
    }

    /// Whether nothing is known.
    pub(super) fn is_unknown(&self) -> bool {
        self.arrays
            .as_ref()
            .is_none_or(|arrays| arrays.unknown.first() == Some(&true))
    }

    /// Whether the column has one value in the file, and which.
    pub(super) fn is_exact(&self) -> bool {
        self.arrays
            .as_ref()
            .is_some_and(|arrays| arrays.exact.first() == Some(&true))
    }

    /// Its NULLs.
    pub(super) fn nulls(&self) -> Nulls {
        self.arrays
            .as_ref()
            .and_then(|arrays| arrays.nulls.first().copied())
            .unwrap_or_default()
    }

    /// Whether there is a lower bound, or needs to be none.
    pub(super) fn has_min(&self) -> bool {
        self.nulls() == Nulls::All || self.bound(true).is_some()
    }

    /// Whether there is an upper bound, or needs to be none.
    pub(super) fn has_max(&self) -> bool {
        self.nulls() == Nulls::All || self.bound(false).is_some()
    }

    /// `min 10`.
    pub(super) fn min(&self) -> String {
        match self.bound(true) {
            Some(min) => format!("min {min}"),
            None => "no min".to_owned(),
        }
    }

    /// `max 20`.
    pub(super) fn max(&self) -> String {
        match self.bound(false) {
            Some(max) => format!("max {max}"),
            None => "no max".to_owned(),
        }
    }

    /// `min 10 and max 20`, or what else is known.
    pub(super) fn range(&self) -> String {
        match (self.nulls(), self.bound(true), self.bound(false)) {
            (Nulls::All, ..) => "only NULL".to_owned(),
            (_, Some(min), Some(max)) if self.partition && min == max => min,
            (_, Some(_), _) | (_, _, Some(_)) => format!("{} and {}", self.min(), self.max()),
            (Nulls::None, None, None) => "no NULL".to_owned(),
            (_, None, None) => "no bounds".to_owned(),
        }
    }

    /// The same with the column's name: `id from 10 to 20`.
    pub(super) fn range_of(&self) -> String {
        let name = &self.name;
        match (self.nulls(), self.bound(true), self.bound(false)) {
            (Nulls::All, ..) => format!("{name} NULL"),
            (_, Some(min), Some(max)) if min == max => format!("{name} {min}"),
            (_, Some(min), Some(max)) => format!("{name} from {min} to {max}"),
            (_, Some(min), None) => format!("{name} from {min}"),
            (_, None, Some(max)) => format!("{name} up to {max}"),
            (Nulls::None, None, None) => format!("{name} without NULL"),
            (_, None, None) => format!("no bounds of {name}"),
        }
    }

    /// `p = 2`.
    pub(super) fn equation(&self) -> String {
        match (self.nulls(), self.bound(true)) {
            (Nulls::All, _) | (_, None) => format!("{} is NULL", self.name),
            (_, Some(value)) => format!("{} = {value}", self.name),
        }
    }

    fn bound(&self, min: bool) -> Option<String> {
        let arrays = self.arrays.as_ref()?;
        let bounds = if min { &arrays.min } else { &arrays.max };
        text(bounds.as_ref())
    }
}

/// The first value; none where it is NULL.
fn text(array: &dyn Array) -> Option<String> {
    if array.is_empty() || array.is_null(0) {
        return None;
    }
    let text = array_value_to_string(array, 0).ok()?;
    let text = match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    };
    Some(match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("'{text}'"),
        _ => text,
    })
}
