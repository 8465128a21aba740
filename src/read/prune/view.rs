//! One term's view of the statistics of many files: the columns `o0`, `o1`, … and `f0`, `f1`, …
//! that its formula speaks of, as arrays with one entry a file.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, RecordBatch, UInt64Array,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options, concat, not, nullif};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};

use super::Visible;
use crate::read::predicate::{Fact, Operand, SetTest, StatisticsTest, ValueTest};
use crate::read::statistics::{ColumnArrays, FileStatistics, Leaf, Nulls, StatisticsSchema};

/// Row count that stands in for every file's own, see [`TermView::null_counts`].
const ROWS: u64 = 2;

/// What a term may know of each file.
#[derive(Debug)]
pub(super) struct TermView<'v> {
    statistics: &'v FileStatistics<'v>,
    schema: &'v StatisticsSchema,
    test: &'v StatisticsTest,
    visible: Visible,
    facts: Arc<[BooleanArray]>,
    files: Range<usize>,
}

impl<'v> TermView<'v> {
    /// The view of `test` on all files.
    pub(super) fn new(
        statistics: &'v FileStatistics<'v>,
        schema: &'v StatisticsSchema,
        test: &'v StatisticsTest,
        visible: Visible,
    ) -> Self {
        let mut view = Self {
            statistics,
            schema,
            test,
            visible,
            facts: Arc::from([]),
            files: 0..statistics.len(),
        };
        view.facts = test
            .facts
            .iter()
            .map(|fact| match fact {
                Fact::Value(test) => view.evaluate(test),
                Fact::Set(set) => view.look_up(set),
            })
            .collect();
        view
    }

    /// The same view on the file at `index` alone.
    pub(super) fn file(&self, index: usize) -> Self {
        Self {
            files: index..index + 1,
            facts: Arc::clone(&self.facts),
            ..*self
        }
    }

    /// Lower and upper bounds of `operand` in all files, as far as they may be seen.
    fn bounds(&self, operand: &Operand) -> Option<(ArrayRef, ArrayRef)> {
        let column = self.column(&operand.leaf)?;
        let read = |bounds: &ArrayRef, zero: f64| {
            let mut bounds = if operand.nan_free {
                self.statistics.without_nan(&operand.leaf, bounds)?
            } else {
                Arc::clone(bounds)
            };
            for data_type in &operand.casts {
                bounds = cast_each(&bounds, data_type)?;
            }
            (*bounds.data_type() == operand.data_type).then(|| with_zero(bounds, zero))
        };
        Some((read(&column.min, -0.0)?, read(&column.max, 0.0)?))
    }

    /// What is known of `leaf`, if it may be used.
    fn column(&self, leaf: &Leaf) -> Option<Arc<ColumnArrays>> {
        let seen = self.visible == Visible::Statistics || self.schema.is_partition(leaf);
        seen.then(|| self.statistics.leaf(leaf)).flatten()
    }

    /// Whether each file may hold a row that passes `set`: false, or unknown.
    ///
    /// A list of any length costs two searches a file.
    fn look_up(&self, set: &SetTest) -> BooleanArray {
        let length = self.statistics.len();
        let (Some(column), Some((min, max))) =
            (self.column(&set.operand.leaf), self.bounds(&set.operand))
        else {
            return BooleanArray::new_null(length);
        };
        (0..length)
            .map(|file| {
                if column.nulls.get(file) == Some(&Nulls::All) {
                    return Some(false);
                }
                let value = |bounds: &ArrayRef| {
                    ScalarValue::try_from_array(bounds, file)
                        .ok()
                        .filter(|value| !value.is_null())
                };
                let (min, max) = (value(&min), value(&max));
                // Where a bound is unknown every value may lie on the right side of it.
                let from = min
                    .as_ref()
                    .map_or(0, |min| set.values.partition_point(|value| value < min));
                let to = max.as_ref().map_or(set.values.len(), |max| {
                    set.values.partition_point(|value| value <= max)
                });
                let disproved = if set.negated {
                    // All rows hold the one value, and it is in the list.
                    min.is_some() && min == max && from < to
                } else {
                    from >= to
                };
                disproved.then_some(false)
            })
            .collect()
    }

    /// Whether each file's values pass `test`; unknown where one of its leaves has not one value.
    fn evaluate(&self, test: &ValueTest) -> BooleanArray {
        let length = self.statistics.len();
        let columns: Option<Vec<_>> = test.leaves.iter().map(|leaf| self.column(leaf)).collect();
        let Some(columns) = columns else {
            return BooleanArray::new_null(length);
        };
        let known: BooleanArray = (0..length)
            .map(|file| {
                let exact = |column: &Arc<ColumnArrays>| column.exact.get(file) == Some(&true);
                Some(columns.iter().all(exact))
            })
            .collect();
        // Bounds that are no values could make the condition fail.
        let unknown = not(&known);
        let arrays = columns
            .iter()
            .map(|column| nullif(&column.min, unknown.as_ref().ok()?).ok())
            .collect::<Option<Vec<_>>>();
        let batch =
            arrays.and_then(|arrays| RecordBatch::try_new(Arc::clone(&test.schema), arrays).ok());
        match batch {
            Some(batch) => passes_each(test, &batch, &known),
            None => BooleanArray::new_null(length),
        }
    }

    /// Whether `test`, all of whose leaves have one value in the first file, has no answer there.
    pub(super) fn fails(&self, test: &ValueTest) -> bool {
        self.evaluate(test).is_null(0)
    }

    fn operand(&self, column: &Column) -> Option<&Operand> {
        let index: usize = column.name.strip_prefix('o')?.parse().ok()?;
        self.test.operands.get(index)
    }

    fn fact(&self, column: &Column) -> Option<ArrayRef> {
        let index: usize = column.name.strip_prefix('f')?.parse().ok()?;
        let fact = self.facts.get(index)?;
        Some(Arc::new(fact.slice(self.files.start, self.files.len())))
    }

    fn slice(&self, array: &ArrayRef) -> ArrayRef {
        array.slice(self.files.start, self.files.len())
    }
}

impl PruningStatistics for TermView<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.operand(column) {
            Some(operand) => Some(self.slice(&self.bounds(operand)?.0)),
            None => self.fact(column),
        }
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        match self.operand(column) {
            Some(operand) => Some(self.slice(&self.bounds(operand)?.1)),
            None => self.fact(column),
        }
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    /// Null counts are only ever compared with zero and with the row count, which has no column of
    /// its own. A partition column is known to be all NULL or not where the number of rows is
    /// unknown, so the counts here say none, some or all of [`ROWS`].
    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let column = self.column(&self.operand(column)?.leaf)?;
        let counts: UInt64Array = column
            .nulls
            .get(self.files.clone())?
            .iter()
            .map(|nulls| match nulls {
                Nulls::Unknown => None,
                Nulls::None => Some(0),
                Nulls::Some(_) => Some(1),
                Nulls::All => Some(ROWS),
            })
            .collect();
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from(vec![ROWS; self.files.len()])))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// Whether each row of `batch` passes `test`, as far as it is `known`.
fn passes_each(test: &ValueTest, batch: &RecordBatch, known: &BooleanArray) -> BooleanArray {
    let passes = |batch: &RecordBatch| {
        let values = test.expr.evaluate(batch).ok()?;
        let values = values.into_array(batch.num_rows()).ok()?;
        values.as_boolean_opt().cloned()
    };
    let length = batch.num_rows();
    match passes(batch) {
        Some(passed) if passed.len() == length => (0..length)
            .map(|file| {
                known
                    .value(file)
                    .then(|| passed.is_valid(file) && passed.value(file))
            })
            .collect(),
        // One value for which the condition fails must not spoil the others.
        _ => (0..length)
            .map(|file| {
                let passed = known.value(file).then(|| passes(&batch.slice(file, 1)))??;
                (passed.len() == 1).then(|| passed.is_valid(0) && passed.value(0))
            })
            .collect(),
    }
}

/// `array` as `data_type`, NULL where a value cannot be cast.
fn cast_each(array: &ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    let cast = |array: &dyn Array| cast_with_options(array, data_type, &CastOptions::default());
    if let Ok(cast) = cast(array.as_ref()) {
        return Some(cast);
    }
    let single: Vec<ArrayRef> = (0..array.len())
        .map(|index| {
            cast(array.slice(index, 1).as_ref()).unwrap_or_else(|_| new_null_array(data_type, 1))
        })
        .collect();
    let single: Vec<&dyn Array> = single.iter().map(AsRef::as_ref).collect();
    concat(&single).ok()
}

/// `array` with both zeros replaced by `zero`, if it holds floats.
fn with_zero(array: ArrayRef, zero: f64) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let zero = if zero.is_sign_negative() { -0.0 } else { 0.0 };
            let array: Float32Array = array
                .as_primitive::<Float32Type>()
                .unary(|value| if value == 0.0 { zero } else { value });
            Arc::new(array)
        }
        DataType::Float64 => {
            let array: Float64Array = array
                .as_primitive::<Float64Type>()
                .unary(|value| if value == 0.0 { zero } else { value });
            Arc::new(array)
        }
        _ => array,
    }
}
