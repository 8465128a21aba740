//! What the statistics of data files prove, in the one form that scan and conflict check share.
//!
//! In: the `add` actions of files. Out: for each column arrays with one entry a file, where NULL
//! means *unknown*. Everything that is not NULL holds for every live row of the file: writers round,
//! cut and omit, and whatever that may have touched is widened or left out here.
//!
//! | type | a bound proves something if |
//! |---|---|
//! | `byte` … `long` | it is a whole number in range |
//! | `decimal` | precision ≤ 15, or the file's writer is exact, else widened by 2^-48; ±64-bit ends never |
//! | `float`, `double` | it is finite or an infinity; NaN lies outside of all bounds |
//! | `string` | it was not cut, or could be moved to where the cut does not matter |
//! | `timestamp`, `timestamp_ntz` | always, widened by a millisecond, before 1972 by a minute more |
//! | `date` | its year has four digits |
//! | `boolean`, `binary` | never: only their null counts count |
//! | `struct` | never itself, its fields by their own types |
//! | `array`, `map` | never, and neither do their null counts |

mod bound;
mod column;
mod doubt;
mod json;
mod leaf;
mod partition;
mod prefix;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array, new_null_array};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use deltalake::kernel::Add;

use self::bound::Trust;
pub(crate) use self::bound::has_null_count;
use self::column::ColumnFacts;
pub(crate) use self::column::Nulls;
pub(crate) use self::doubt::{Assumption, Needed};
use self::json::FileJson;
pub(crate) use self::leaf::Leaf;
use self::partition::PartitionValue;
pub(crate) use self::text::fits_decimal;
use super::column_mapping::{mapped_schema, physical_name};
use super::prune::{PruneFile, Visible};
use super::snapshot::TableSnapshot;

/// Tag of an `add` that lists, as a JSON array of physical names, the top-level float columns that
/// hold no NaN.
pub const NAN_FREE_TAG: &str = "delta-disjoint.nanFree";

/// Tag of an `add` that says `true` where decimal bounds are exact at any precision.
pub const EXACT_STATISTICS_TAG: &str = "delta-disjoint.exactStatistics";

/// `delta.dataSkippingStringPrefixLength` of a table with these properties, in UTF-16 units; 32
/// where it is not set or cannot be read. Bounds are written and read by it.
pub fn string_prefix_length(properties: &BTreeMap<String, String>) -> usize {
    properties
        .get("delta.dataSkippingStringPrefixLength")
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(32)
}

/// What must be known of a table to interpret the statistics and partition values of its files.
#[derive(Debug, Clone)]
pub struct StatisticsSchema {
    /// Columns in table order, partition columns included; of a table that maps its columns, a
    /// [`mapped_schema`].
    pub schema: SchemaRef,
    /// Partition columns by name.
    pub partition_columns: Vec<String>,
    /// `delta.dataSkippingStringPrefixLength`, in UTF-16 units; 32 when not set.
    pub string_prefix_length: usize,
}

impl StatisticsSchema {
    /// The statistics schema of `snapshot`. If its columns are mapped and it cannot be told how, it
    /// has no columns, so that nothing is known of any.
    pub fn of(snapshot: &TableSnapshot) -> Self {
        Self {
            schema: mapped_schema(&snapshot.schema, &snapshot.metadata)
                .unwrap_or_else(|_| Arc::new(Schema::empty())),
            partition_columns: snapshot.metadata.partition_columns.clone(),
            string_prefix_length: string_prefix_length(&snapshot.metadata.configuration),
        }
    }

    /// The position of the column with exactly this name.
    pub(crate) fn index_of(&self, column: &str) -> Option<usize> {
        self.schema.index_of(column).ok()
    }
}

/// The statistics and partition values of several files.
///
/// As [`PruningStatistics`] it answers for columns by their exact name, and bounds of float columns
/// are NULL where a file may hold NaN: DataFusion's pruning takes bounds to enclose it
/// (apache/datafusion #15812). It is lazy: a column is interpreted when it is first asked for.
#[derive(Debug)]
pub struct FileStatistics<'a> {
    schema: &'a StatisticsSchema,
    files: &'a [PruneFile<'a>],
    json: Vec<FileJson<'a>>,
    leaves: Mutex<HashMap<Leaf, Arc<ColumnArrays>>>,
    assumption: Assumption,
}

/// One leaf of all files.
#[derive(Debug)]
pub(crate) struct ColumnArrays {
    /// Lower bounds, of the leaf's type.
    pub(crate) min: ArrayRef,
    /// Upper bounds, of the leaf's type.
    pub(crate) max: ArrayRef,
    /// NULLs.
    pub(crate) nulls: Vec<Nulls>,
    /// The files in which nothing at all is known of the leaf.
    pub(crate) unknown: Vec<bool>,
    /// The files in which the leaf's one value is `min`, or NULL where all rows are.
    pub(crate) exact: Vec<bool>,
}

impl<'a> FileStatistics<'a> {
    /// The statistics of `files`, in order. With [`Visible::PartitionValues`] data columns and row
    /// counts are unknown.
    pub fn new(schema: &'a StatisticsSchema, files: &'a [PruneFile<'a>], visible: Visible) -> Self {
        let json = files
            .iter()
            .map(|file| match visible {
                Visible::Statistics => FileJson::parse(file.add.stats.as_deref()),
                Visible::PartitionValues => FileJson::default(),
            })
            .collect();
        Self {
            schema,
            files,
            json,
            leaves: Mutex::default(),
            assumption: Assumption::Nothing,
        }
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether the file at `index` has readable statistics.
    pub fn has_statistics(&self, index: usize) -> bool {
        self.json.get(index).is_some_and(|json| json.present)
    }

    /// Whether the file at `index` is known to hold no rows.
    pub fn has_no_rows(&self, index: usize) -> bool {
        match (self.json.get(index), self.files.get(index)) {
            (Some(json), Some(file)) => file.add.deletion_vector.is_none() && json.is_empty(),
            _ => false,
        }
    }

    /// Whether the file at `index` is known to hold no NaN in `leaf`; only columns can be, not fields
    /// inside of them.
    pub(crate) fn is_nan_free(&self, index: usize, leaf: &Leaf) -> bool {
        if self.assumption == Assumption::NoNan {
            return true;
        }
        let Some(field) = self.schema.field(leaf).filter(|_| !leaf.is_nested()) else {
            return false;
        };
        self.files
            .get(index)
            .and_then(|file| tag(file.add, NAN_FREE_TAG))
            .and_then(|columns| serde_json::from_str::<Vec<String>>(columns).ok())
            .is_some_and(|columns| columns.iter().any(|name| name == physical_name(field)))
    }

    /// The arrays of `leaf`.
    pub(crate) fn leaf(&self, leaf: &Leaf) -> Option<Arc<ColumnArrays>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(arrays) = leaves.get(leaf) {
            return Some(Arc::clone(arrays));
        }
        let arrays = Arc::new(self.read_leaf(leaf)?);
        leaves.insert(leaf.clone(), Arc::clone(&arrays));
        Some(arrays)
    }

    /// `bounds` of `leaf`, NULL for the files that may hold a NaN in it.
    pub(crate) fn without_nan(&self, leaf: &Leaf, bounds: &ArrayRef) -> Option<ArrayRef> {
        let field = self.schema.field(leaf)?;
        if !touches_float(field.data_type()) || self.schema.is_partition(leaf) {
            return Some(Arc::clone(bounds));
        }
        let doubtful: BooleanArray = (0..self.len())
            .map(|file| Some(!self.is_nan_free(file, leaf)))
            .collect();
        nullif(bounds, &doubtful).ok()
    }

    fn read_leaf(&self, leaf: &Leaf) -> Option<ColumnArrays> {
        let path = self.schema.path(leaf)?;
        let field = *path.last()?;
        let partition = self.schema.is_partition(leaf);
        let facts: Vec<ColumnFacts> = self
            .files
            .iter()
            .zip(&self.json)
            .map(|(file, json)| {
                if partition {
                    ColumnFacts::of_partition(PartitionValue::of(
                        &file.add.partition_values,
                        physical_name(field),
                        field.data_type(),
                    ))
                } else {
                    let trust = Trust {
                        exact_decimals: file.exact_writer
                            || tag(file.add, EXACT_STATISTICS_TAG) == Some("true"),
                        prefix_length: self.schema.string_prefix_length,
                        as_stated: self.assumption == Assumption::BoundsAsStated,
                    };
                    let wide = file.add.deletion_vector.is_some() || !json.tight;
                    ColumnFacts::of_data(json, &path, wide, trust)
                }
            })
            .collect();
        Some(ColumnArrays {
            unknown: facts.iter().map(ColumnFacts::is_unknown).collect(),
            exact: facts
                .iter()
                .map(|facts| match facts.nulls {
                    Nulls::All => true,
                    Nulls::None => {
                        (partition || is_exact_at_one_value(field.data_type()))
                            && facts.min.is_some()
                            && facts.min == facts.max
                    }
                    Nulls::Unknown | Nulls::Some(_) => false,
                })
                .collect(),
            nulls: facts.iter().map(|facts| facts.nulls).collect(),
            min: array(facts.iter().map(|facts| &facts.min), field.data_type()),
            max: array(facts.iter().map(|facts| &facts.max), field.data_type()),
        })
    }

    /// The column of this name.
    fn named(&self, column: &Column) -> Option<(Leaf, Arc<ColumnArrays>)> {
        let leaf = Leaf::column(self.schema.index_of(&column.name)?);
        let arrays = self.leaf(&leaf)?;
        Some((leaf, arrays))
    }
}

/// Whether equal bounds of a data column are the value of every row: neither rounded, cut nor
/// widened, and without values that bounds leave out. Strings that may be cut have no such bounds.
fn is_exact_at_one_value(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Date32
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => true,
        DataType::Decimal128(precision, _) => *precision <= bound::EXACT_PRECISION,
        _ => false,
    }
}

/// Values of `data_type` as an array, NULL where there is none.
fn array<'v>(
    values: impl ExactSizeIterator<Item = &'v Option<ScalarValue>>,
    data_type: &DataType,
) -> ArrayRef {
    let length = values.len();
    let unknown = || new_null_array(data_type, length);
    let Ok(null) = ScalarValue::try_from(data_type) else {
        return unknown();
    };
    if length == 0 {
        return unknown();
    }
    let values = values.map(|value| value.clone().unwrap_or_else(|| null.clone()));
    match ScalarValue::iter_to_array(values) {
        Ok(array) if array.data_type() == data_type => array,
        _ => unknown(),
    }
}

impl PruningStatistics for FileStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        let (leaf, arrays) = self.named(column)?;
        self.without_nan(&leaf, &arrays.min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        let (leaf, arrays) = self.named(column)?;
        self.without_nan(&leaf, &arrays.max)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let (_, arrays) = self.named(column)?;
        let counts: UInt64Array = arrays
            .nulls
            .iter()
            .zip(&self.json)
            .map(|(nulls, json)| match nulls {
                Nulls::Unknown => None,
                Nulls::None => Some(0),
                Nulls::Some(count) => Some(*count),
                Nulls::All => json.rows,
            })
            .collect();
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.json.iter().map(|json| json.rows).collect();
        Some(Arc::new(counts))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// Whether values of `data_type` are floats or hold some. Arrow and Parquet disagree about the
/// order of NaN and of zeros, so that nothing but this module may prune on such columns.
pub fn touches_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(field)
        | DataType::ListView(field)
        | DataType::LargeList(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => touches_float(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| touches_float(field.data_type())),
        DataType::Union(fields, _) => fields
            .iter()
            .any(|(_, field)| touches_float(field.data_type())),
        DataType::Dictionary(_, value) => touches_float(value),
        DataType::RunEndEncoded(_, value) => touches_float(value.data_type()),
        _ => false,
    }
}

fn tag<'a>(add: &'a Add, name: &str) -> Option<&'a str> {
    add.tags.as_ref()?.get(name)?.as_deref()
}

#[cfg(test)]
mod tests;
