//! Why nothing, or less than is stated, is known of a column in a file; and what would be known
//! under an assumption. For evidence alone: no decision rests on what stands here.

use arrow::datatypes::DataType;

use super::bound::{has_bounds, has_null_count};
use super::column::is_collated;
use super::json::Piece;
use super::leaf::keys;
use super::{FileStatistics, Leaf};
use crate::reason::{Reason, ReasonCode};

/// What is taken for true to find out what a decision hung on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Assumption {
    /// Nothing: the only one under which decisions are taken.
    #[default]
    Nothing,
    /// Every bound is the value that is stated, neither cut nor rounded.
    BoundsAsStated,
    /// No file holds a NaN.
    NoNan,
}

/// What a condition needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The lower bound.
    Min,
    /// The upper bound.
    Max,
    /// How many values are NULL.
    Nulls,
    /// Anything.
    Any,
}

impl<'a> FileStatistics<'a> {
    /// These statistics as they would be under `assumption`.
    pub(crate) fn assuming(&self, assumption: Assumption) -> FileStatistics<'a> {
        FileStatistics {
            schema: self.schema,
            files: self.files,
            json: self.json.clone(),
            leaves: Default::default(),
            assumption,
        }
    }

    /// Why the file at `index` has no statistics.
    pub(crate) fn why_none(&self, index: usize) -> Reason {
        let stated = self
            .files
            .get(index)
            .and_then(|file| file.add.stats.as_deref());
        match stated {
            None => Reason::new(ReasonCode::StatisticsMissing, "the file has no statistics"),
            Some(_) => Reason::new(
                ReasonCode::StatisticsUnreadable,
                "the statistics of the file cannot be read",
            ),
        }
    }

    /// Why `needed` is not known of the data column `leaf` in the file at `index`, which has
    /// statistics.
    pub(crate) fn why_unknown(&self, index: usize, leaf: &Leaf, needed: Needed) -> Reason {
        let name = self.schema.name(leaf);
        let reason = |code, detail: String| Reason::new(code, detail).with_column(name.as_str());
        let path = self.schema.path(leaf).unwrap_or_default();
        let (Some(field), Some(json)) = (path.last(), self.json.get(index)) else {
            return reason(
                ReasonCode::ColumnStatisticsMissing,
                format!("no statistics for column {name}"),
            );
        };
        let data_type = field.data_type();
        let ruled_out = match needed {
            Needed::Min | Needed::Max => !has_bounds(data_type) || is_collated(field),
            Needed::Nulls | Needed::Any => !has_null_count(data_type),
        };
        if ruled_out {
            return reason(
                ReasonCode::TypeRule,
                format!(
                    "column {name} is {}, of which statistics prove nothing",
                    type_name(data_type)
                ),
            );
        }
        let keys = keys(&path);
        let (min, max, nulls) = (json.min.at(&keys), json.max.at(&keys), json.nulls.at(&keys));
        if [min, max, nulls]
            .iter()
            .any(|piece| matches!(piece, Piece::Repeated))
        {
            return reason(
                ReasonCode::StatisticsUnreadable,
                format!("the statistics of column {name} are given twice"),
            );
        }
        let is_stated = |piece| matches!(piece, Piece::Value(_));
        let (what, stated) = match needed {
            Needed::Min => ("minimum", is_stated(min)),
            Needed::Max => ("maximum", is_stated(max)),
            Needed::Nulls => ("null count", is_stated(nulls)),
            Needed::Any => (
                "statistics",
                is_stated(min) || is_stated(max) || is_stated(nulls),
            ),
        };
        match (needed, stated) {
            (_, true) => reason(
                ReasonCode::StatisticsUnreadable,
                format!(
                    "the {what} of column {name} cannot be read, or the statistics of the column \
                     contradict each other"
                ),
            ),
            (Needed::Nulls, false) => reason(
                ReasonCode::NullCountUnknown,
                format!("no {what} for column {name}"),
            ),
            (_, false) => reason(
                ReasonCode::ColumnStatisticsMissing,
                format!("no {what} for column {name}"),
            ),
        }
    }
}

fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "a boolean",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary",
        DataType::Struct(_) => "a struct",
        DataType::Map(..) => "a map",
        data_type if data_type.is_nested() => "an array",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "a collated string",
        _ => "of a type",
    }
}
