//! What one file's statistics prove about one column, after its pieces were checked against each
//! other.

use std::cmp::Ordering;

use arrow::datatypes::Field;
use datafusion::common::ScalarValue;

use super::bound::{Side, Trust, bound, has_null_count};
use super::json::{FileJson, Piece, count};
use super::leaf::keys;
use super::partition::PartitionValue;

/// How many of the rows are NULL in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Nulls {
    /// It is not known.
    #[default]
    Unknown,
    /// None of them.
    None,
    /// This many, and perhaps all.
    Some(u64),
    /// All of them.
    All,
}

/// What is known of one column in one file. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ColumnFacts {
    /// A value that no row lies below.
    pub(super) min: Option<ScalarValue>,
    /// A value that no row lies above.
    pub(super) max: Option<ScalarValue>,
    /// Its NULLs.
    pub(super) nulls: Nulls,
}

impl ColumnFacts {
    /// The facts about the data column, or the field of one, at the end of `path`. `wide` files have
    /// live rows that their statistics do not tell from deleted ones.
    pub(super) fn of_data(file: &FileJson<'_>, path: &[&Field], wide: bool, trust: Trust) -> Self {
        let Some((field, parents)) = path.split_last() else {
            return Self::default();
        };
        let keys = keys(path);
        let data_type = field.data_type();
        if !has_null_count(data_type) {
            return Self::default();
        }
        let (min, max, nulls) = (file.min.at(&keys), file.max.at(&keys), file.nulls.at(&keys));
        if [min, max, nulls]
            .iter()
            .any(|piece| matches!(piece, Piece::Repeated))
        {
            return Self::default();
        }
        let null_count = match nulls {
            Piece::Value(value) => count(value),
            Piece::Absent | Piece::Repeated => None,
        };
        let nulls = match (null_count, file.rows) {
            (None, _) => Nulls::Unknown,
            (Some(nulls), Some(rows)) if nulls > rows => return Self::default(),
            (Some(0), _) => Nulls::None,
            (Some(nulls), Some(rows)) if nulls == rows => Nulls::All,
            (Some(_), _) if wide => Nulls::Unknown,
            (Some(nulls), _) => Nulls::Some(nulls),
        };
        // A required field of a NULL struct counts as NULL, but DataFusion's `get_field` shows the
        // value that fills its place.
        let filled = !field.is_nullable() && parents.iter().any(|parent| parent.is_nullable());
        if filled && nulls != Nulls::None {
            return Self::default();
        }
        let stated = |piece| matches!(piece, Piece::Value(_));
        if nulls == Nulls::All && (stated(min) || stated(max)) {
            return Self::default();
        }
        let read = |piece, side| match piece {
            Piece::Value(value) if !is_collated(field) => bound(value, side, data_type, trust),
            _ => None,
        };
        let facts = Self {
            min: read(min, Side::Min),
            max: read(max, Side::Max),
            nulls,
        };
        match (&facts.min, &facts.max) {
            (Some(min), Some(max)) if min.partial_cmp(max) == Some(Ordering::Greater) => {
                Self::default()
            }
            _ => facts,
        }
    }

    /// The facts about a partition column.
    pub(super) fn of_partition(value: PartitionValue) -> Self {
        match value {
            PartitionValue::Unknown => Self::default(),
            PartitionValue::Null => Self {
                nulls: Nulls::All,
                ..Self::default()
            },
            PartitionValue::Exact(value) => Self {
                min: Some(value.clone()),
                max: Some(value),
                nulls: Nulls::None,
            },
            PartitionValue::Between(min, max) => Self {
                min: Some(min),
                max: Some(max),
                nulls: Nulls::None,
            },
        }
    }

    /// Whether nothing is known.
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether the column's bounds follow a collation and not the order of bytes.
pub(super) fn is_collated(field: &Field) -> bool {
    field.metadata().contains_key("__COLLATIONS")
}
