//! From the batches of a source to the values of its key columns.

use std::cmp::Ordering;
use std::collections::HashSet;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{SortOptions, sort_to_indices};
use datafusion::common::ScalarValue;

use super::KeyValues;
use crate::error::{Error, Result};

/// Gathers one key column.
#[derive(Debug)]
pub(super) struct KeyGatherer {
    limit: usize,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Set(HashSet<ScalarValue>),
    Range(ScalarValue, ScalarValue),
}

impl KeyGatherer {
    /// A gatherer that keeps at most `limit` values one by one.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            values: Values::Set(HashSet::new()),
        }
    }

    /// Adds all values of `column` but NULLs.
    ///
    /// # Errors
    ///
    /// `Internal` for a type whose values have no order.
    pub(super) fn add(&mut self, column: &ArrayRef) -> Result<()> {
        if let Values::Set(values) = &mut self.values {
            for row in 0..column.len() {
                if column.is_null(row) {
                    continue;
                }
                values.insert(value(column, row)?);
                if values.len() > self.limit {
                    break;
                }
            }
            if values.len() <= self.limit {
                return Ok(());
            }
            let (least, most) = ends(values.iter())?;
            self.values = Values::Range(least, most);
        }
        // From the batch's first row on: those that are counted already do no harm.
        if let Values::Range(least, most) = &mut self.values
            && let Some((low, high)) = ends_of(column)?
        {
            if is_less(&low, least)? {
                *least = low;
            }
            if is_less(most, &high)? {
                *most = high;
            }
        }
        Ok(())
    }

    /// What all added columns held.
    pub(super) fn finish(self) -> KeyValues {
        match self.values {
            Values::Set(values) => {
                let mut values: Vec<ScalarValue> = values.into_iter().collect();
                values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
                KeyValues::Set(values)
            }
            Values::Range(least, most) => KeyValues::Range(least, most),
        }
    }
}

fn ends<'a>(values: impl Iterator<Item = &'a ScalarValue>) -> Result<(ScalarValue, ScalarValue)> {
    let mut found: Option<(&ScalarValue, &ScalarValue)> = None;
    for value in values {
        found = Some(match found {
            None => (value, value),
            Some((least, most)) => (
                if is_less(value, least)? { value } else { least },
                if is_less(most, value)? { value } else { most },
            ),
        });
    }
    found
        .map(|(least, most)| (least.clone(), most.clone()))
        .ok_or_else(|| Error::internal("a range of no keys"))
}

/// The least and the greatest value of `column`, if it has any.
fn ends_of(column: &ArrayRef) -> Result<Option<(ScalarValue, ScalarValue)>> {
    if column.null_count() == column.len() {
        return Ok(None);
    }
    let end = |descending| {
        let options = SortOptions {
            descending,
            nulls_first: false,
        };
        let indices = sort_to_indices(column, Some(options), Some(1))
            .map_err(|e| Error::internal("the order of keys").with_source(e))?;
        let row = indices
            .values()
            .first()
            .ok_or_else(|| Error::internal("the order of keys"))?;
        value(column, *row as usize)
    };
    Ok(Some((end(false)?, end(true)?)))
}

fn value(column: &ArrayRef, row: usize) -> Result<ScalarValue> {
    ScalarValue::try_from_array(column, row)
        .map_err(|e| Error::internal("a key as a value").with_source(e))
}

fn is_less(a: &ScalarValue, b: &ScalarValue) -> Result<bool> {
    a.partial_cmp(b)
        .map(|order| order == Ordering::Less)
        .ok_or_else(|| Error::internal(format!("{a} and {b} have no order")))
}
