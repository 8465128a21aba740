//! The statistics of one data file, collected while its rows are written.
//!
//! In: every [`RecordBatch`] that goes into the file. Out: the `stats` JSON and the `tags` of its
//! `Add` action. Guaranteed: a bound that is written encloses every row, by the order that Arrow
//! gives its type; where no such bound can be told, there is none. No number passes through a
//! floating-point type that is not its own.
//!
//! | type | bounds |
//! |---|---|
//! | integers, decimals, dates | exact |
//! | float, double | exact, in the total order (`-0.0` below `0.0`); none if the column holds a NaN, none where the bound is infinite |
//! | timestamps | cut down to milliseconds, as all Delta writers do: readers add one millisecond to the maximum |
//! | strings | exact up to the prefix length, else a prefix, and for the maximum a character above what was cut |
//! | boolean, binary, arrays, maps | none; nulls are counted |
//!
//! Source: Delta protocol, "Per-file Statistics".

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Fields, SchemaRef};

use super::statistics_columns::StatisticsColumns;
use crate::error::{Error, Result};
use crate::read::column_mapping::physical_name;

mod bounds;
mod text;

use bounds::Bounds;

/// Collects the statistics of one file; see the [module](self).
#[derive(Debug)]
pub struct FileStatisticsCollector {
    num_records: u64,
    columns: Vec<ColumnStatistics>,
    string_prefix_length: usize,
}

impl FileStatisticsCollector {
    /// A collector for a file with these `columns` of the table, in that order (no partition
    /// columns). Its results bear their physical names.
    pub fn new(columns: &SchemaRef, indexed: &StatisticsColumns) -> Self {
        Self {
            num_records: 0,
            columns: collect_columns(columns.fields(), &mut Vec::new(), indexed),
            string_prefix_length: indexed.string_prefix_length(),
        }
    }

    /// Sees the rows of `batch`, which has the columns of the file, under whatever names.
    pub fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        for column in &mut self.columns {
            let array = batch.columns().get(column.index).ok_or_else(|| {
                Error::internal("a batch has fewer columns than the file it is written to")
            })?;
            column.update(array.as_ref(), None)?;
        }
        self.num_records += batch.num_rows() as u64;
        Ok(())
    }

    /// How many rows were seen.
    pub fn num_records(&self) -> u64 {
        self.num_records
    }

    /// The statistics as the JSON text of an `Add` action.
    pub fn stats_json(&self) -> String {
        text::stats_json(self.num_records, &self.columns, self.string_prefix_length)
    }

    /// The tags of the `Add` action: [`EXACT_STATISTICS_TAG`](crate::read::statistics::EXACT_STATISTICS_TAG) always, [`NAN_FREE_TAG`](crate::read::statistics::NAN_FREE_TAG) where it
    /// has something to say.
    pub fn tags(&self) -> HashMap<String, Option<String>> {
        text::tags(&self.columns)
    }
}

/// What is known of one column or, if it is a struct, of its fields.
#[derive(Debug)]
struct ColumnStatistics {
    /// The physical name.
    name: String,
    /// Position among its siblings in the file.
    index: usize,
    kind: ColumnKind,
}

#[derive(Debug)]
enum ColumnKind {
    Leaf { null_count: u64, bounds: Bounds },
    Struct(Vec<ColumnStatistics>),
}

impl ColumnStatistics {
    /// `parent` tells which rows have a parent; a null parent counts as a null leaf.
    fn update(&mut self, array: &dyn Array, parent: Option<&NullBuffer>) -> Result<()> {
        let nulls = NullBuffer::union(parent, array.logical_nulls().as_ref());
        match &mut self.kind {
            ColumnKind::Leaf { null_count, bounds } => {
                *null_count += nulls.as_ref().map_or(0, NullBuffer::null_count) as u64;
                bounds.update(array, nulls.as_ref());
                Ok(())
            }
            ColumnKind::Struct(fields) => {
                let array = array.as_struct_opt().ok_or_else(|| {
                    Error::internal(format!("the column {} is no struct", self.name))
                })?;
                for field in fields {
                    let child = array.columns().get(field.index).ok_or_else(|| {
                        Error::internal(format!("the field {} is missing", field.name))
                    })?;
                    field.update(child.as_ref(), nulls.as_ref())?;
                }
                Ok(())
            }
        }
    }
}

fn collect_columns(
    fields: &Fields,
    path: &mut Vec<String>,
    indexed: &StatisticsColumns,
) -> Vec<ColumnStatistics> {
    let mut columns = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        path.push(physical_name(field).to_owned());
        let kind = match field.data_type() {
            DataType::Struct(inner) => {
                let inner = collect_columns(inner, path, indexed);
                (!inner.is_empty()).then_some(ColumnKind::Struct(inner))
            }
            data_type => indexed.contains(path).then(|| ColumnKind::Leaf {
                null_count: 0,
                bounds: Bounds::new(data_type),
            }),
        };
        path.pop();
        if let Some(kind) = kind {
            columns.push(ColumnStatistics {
                name: physical_name(field).to_owned(),
                index,
                kind,
            });
        }
    }
    columns
}

#[cfg(test)]
mod tests;
