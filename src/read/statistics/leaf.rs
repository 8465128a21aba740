//! Leaves: what statistics are kept for. A leaf is a column, or a field at any depth of a struct
//! column.

use arrow::datatypes::{DataType, Field, FieldRef};

use super::StatisticsSchema;
use crate::read::column_mapping::physical_name;

/// A column of a table, or a field inside of it, by position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leaf {
    /// Position of the column in the table's schema.
    column: usize,
    /// Positions of the fields below it, outermost first; none for the column itself.
    fields: Vec<usize>,
}

impl Leaf {
    /// The column at this position.
    pub(crate) fn column(index: usize) -> Self {
        Self {
            column: index,
            fields: Vec::new(),
        }
    }

    /// Whether it lies inside of a column.
    pub(crate) fn is_nested(&self) -> bool {
        !self.fields.is_empty()
    }
}

impl StatisticsSchema {
    /// The field called exactly `name` of the struct that `leaf` is.
    pub(crate) fn leaf_in(&self, leaf: &Leaf, name: &str) -> Option<Leaf> {
        let position = children(self.field(leaf)?)?
            .iter()
            .position(|child| child.name() == name)?;
        let mut inner = leaf.clone();
        inner.fields.push(position);
        Some(inner)
    }

    /// The field that `leaf` is.
    pub(crate) fn field(&self, leaf: &Leaf) -> Option<&Field> {
        self.path(leaf)?.pop()
    }

    /// The fields on the way to `leaf`, outermost first, itself last.
    pub(super) fn path(&self, leaf: &Leaf) -> Option<Vec<&Field>> {
        let mut path = vec![self.schema.fields().get(leaf.column)?.as_ref()];
        for position in &leaf.fields {
            let next = children(path.last()?)?.get(*position)?;
            path.push(next);
        }
        Some(path)
    }

    /// The name of `leaf` for people.
    pub(crate) fn name(&self, leaf: &Leaf) -> String {
        let names: Vec<&str> = self
            .path(leaf)
            .unwrap_or_default()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        names.join(".")
    }

    /// Whether `leaf` is a partition column.
    pub(crate) fn is_partition(&self, leaf: &Leaf) -> bool {
        !leaf.is_nested()
            && self
                .field(leaf)
                .is_some_and(|field| self.partition_columns.contains(field.name()))
    }
}

/// The keys under which statistics keep the leaf at the end of `path`, one a level.
pub(super) fn keys<'f>(path: &[&'f Field]) -> Vec<&'f str> {
    path.iter().map(|field| physical_name(field)).collect()
}

fn children(field: &Field) -> Option<&[FieldRef]> {
    match field.data_type() {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}
