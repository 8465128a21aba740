//! Partitions of a write: which rows go together, how their values read in the log, and the
//! directory their files lie in.
//!
//! Source: Delta protocol, "Partition Value Serialization". Directory names are a convention of
//! Hive that no reader depends on: readers go by the log.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, RecordBatch,
    UInt32Array,
};
use arrow::compute::{nullif, take_record_batch};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::row::{RowConverter, SortField};
use chrono::DateTime;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::decimal::decimal_text;
use crate::error::{Error, Result};
use crate::read::partition_value::{HIVE_DEFAULT_PARTITION, unescape};

/// The rows of one batch that have the same partition values.
#[derive(Debug)]
pub struct PartitionedRows {
    /// Values of the partition columns, as the log has them and in the order asked for.
    pub values: Vec<Option<String>>,
    /// The rows, all columns included, in the order they had.
    pub rows: RecordBatch,
}

/// Splits `batch` by the columns at the positions `partition_columns`.
///
/// Several groups may carry the same values: NULL and the empty string are two values for Arrow and
/// one for the log.
pub fn split_by_partition(
    batch: &RecordBatch,
    partition_columns: &[usize],
) -> Result<Vec<PartitionedRows>> {
    if batch.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let columns: Vec<ArrayRef> = batch
        .project(partition_columns)
        .map_err(arrow_error)?
        .columns()
        .to_vec();
    if columns.is_empty() {
        return Ok(vec![PartitionedRows {
            values: Vec::new(),
            rows: batch.clone(),
        }]);
    }
    let values_at = |row: usize| {
        columns
            .iter()
            .map(|column| partition_text(column.as_ref(), row))
            .collect::<Result<Vec<_>>>()
    };
    let groups = group_rows(&columns)?;
    if groups.len() == 1 {
        return Ok(vec![PartitionedRows {
            values: values_at(0)?,
            rows: batch.clone(),
        }]);
    }
    groups
        .into_iter()
        .map(|rows| {
            Ok(PartitionedRows {
                values: values_at(rows.first().map_or(0, |row| *row as usize))?,
                rows: take_record_batch(batch, &UInt32Array::from(rows)).map_err(arrow_error)?,
            })
        })
        .collect()
}

/// The value of `array` at `row` as it reads in `partitionValues`; `None` for NULL, and for the
/// empty string and empty bytes, which Delta does not tell from NULL.
pub fn partition_text(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if row >= array.len() {
        return Err(Error::internal(
            "a partition value of a row that is not there",
        ));
    }
    if array.is_null(row) {
        return Ok(None);
    }
    let text = text(array, row).ok_or_else(|| {
        Error::unsupported(format!(
            "a value of the type {} that has no text as a partition value",
            array.data_type()
        ))
    })?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// `values` of a partition column with NULL for what [is none in the log](partition_text).
pub(super) fn empty_as_null(values: &ArrayRef) -> Result<ArrayRef> {
    let is_text = matches!(
        values.data_type(),
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    );
    if !is_text {
        return Ok(Arc::clone(values));
    }
    let empty = (0..values.len())
        .map(|row| Ok(Some(partition_text(values.as_ref(), row)?.is_none())))
        .collect::<Result<BooleanArray>>()?;
    nullif(values.as_ref(), &empty).map_err(arrow_error)
}

/// The directory for files with `values` in the columns named `names`, such as `a=1/b=x%2Fy`, as
/// it stands in the store: its percent signs are part of the name.
///
/// Empty for an unpartitioned table, and where a name would be too long for a file system.
pub fn partition_directory<'a>(
    names: impl IntoIterator<Item = &'a str>,
    values: &[Option<String>],
) -> String {
    let segments: Vec<String> = names
        .into_iter()
        .zip(values)
        .map(|(name, value)| {
            let value = value.as_deref().unwrap_or(HIVE_DEFAULT_PARTITION);
            format!("{}={}", escape(name), escape(value))
        })
        .collect();
    if segments
        .iter()
        .any(|segment| segment.len() > LONGEST_SEGMENT)
    {
        return String::new();
    }
    segments.join("/")
}

/// Below the 255 bytes of common file systems.
const LONGEST_SEGMENT: usize = 240;

/// What is no letter, digit, `-`, `.`, `_` or `~` has a meaning to some reader of paths.
const ODD_CHARACTERS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'!')
    .add(b'"')
    .add(b'#')
    .add(b'$')
    .add(b'%')
    .add(b'&')
    .add(b'\'')
    .add(b'(')
    .add(b')')
    .add(b'*')
    .add(b'+')
    .add(b',')
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ODD_CHARACTERS).to_string()
}

fn arrow_error(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("rows cannot be split by partition: {error}")).with_source(error)
}

/// Row numbers of equal values, groups and rows in the order of first appearance.
fn group_rows(columns: &[ArrayRef]) -> Result<Vec<Vec<u32>>> {
    let fields = columns
        .iter()
        .map(|column| SortField::new(column.data_type().clone()))
        .collect();
    let converter = RowConverter::new(fields).map_err(arrow_error)?;
    let rows = converter.convert_columns(columns).map_err(arrow_error)?;
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut group_of = HashMap::new();
    for (row, number) in rows.iter().zip(0_u32..) {
        let group = *group_of.entry(row).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(group) {
            group.push(number);
        }
    }
    Ok(groups)
}

fn text(array: &dyn Array, row: usize) -> Option<String> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string_opt::<i32>()?.value(row).to_owned(),
        DataType::LargeUtf8 => array.as_string_opt::<i64>()?.value(row).to_owned(),
        DataType::Utf8View => array.as_string_view_opt()?.value(row).to_owned(),
        DataType::Binary => binary_text(array.as_binary_opt::<i32>()?.value(row)),
        DataType::LargeBinary => binary_text(array.as_binary_opt::<i64>()?.value(row)),
        DataType::BinaryView => binary_text(array.as_binary_view_opt()?.value(row)),
        DataType::Int8 => value::<Int8Type>(array, row)?.to_string(),
        DataType::Int16 => value::<Int16Type>(array, row)?.to_string(),
        DataType::Int32 => value::<Int32Type>(array, row)?.to_string(),
        DataType::Int64 => value::<Int64Type>(array, row)?.to_string(),
        DataType::Float32 => float_text(value::<Float32Type>(array, row)?),
        DataType::Float64 => float_text(value::<Float64Type>(array, row)?),
        DataType::Boolean => array.as_boolean_opt()?.value(row).to_string(),
        DataType::Decimal128(_, scale) => {
            decimal_text(value::<Decimal128Type>(array, row)?, *scale)?
        }
        DataType::Date32 => {
            let days = i64::from(value::<Date32Type>(array, row)?);
            DateTime::from_timestamp(days.checked_mul(86_400)?, 0)?
                .format("%Y-%m-%d")
                .to_string()
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = value::<TimestampMicrosecondType>(array, row)?;
            let time = DateTime::from_timestamp_micros(micros)?;
            // The form with a zone leaves no doubt about it; the other type has none.
            let format = match zone {
                Some(_) => "%Y-%m-%dT%H:%M:%S%.6fZ",
                None => "%Y-%m-%d %H:%M:%S%.6f",
            };
            time.format(format).to_string()
        }
        _ => return None,
    })
}

fn value<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<T::Native> {
    let array: &PrimitiveArray<T> = array.as_primitive_opt::<T>()?;
    Some(array.value(row))
}

/// The fewest digits that read back as the same value; infinities as Java spells them.
fn float_text(value: impl Into<f64> + std::fmt::Display + Copy) -> String {
    let wide: f64 = value.into();
    if wide.is_infinite() {
        let sign = if wide < 0.0 { "-" } else { "" };
        format!("{sign}Infinity")
    } else {
        value.to_string()
    }
}

/// Bytes that are text stand for themselves, as other engines read them; others are escaped, and so
/// is text that would read as escapes.
fn binary_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if unescape(text).is_none_or(|bytes| bytes.is_empty()) => text.to_owned(),
        _ => bytes.iter().map(|byte| format!("\\u{byte:04X}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
        Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray,
    };
    use datafusion::common::ScalarValue;

    use super::*;
    use crate::read::partition_value::parse_partition_value;

    fn values() -> Vec<(ArrayRef, Option<&'static str>)> {
        vec![
            (Arc::new(StringArray::from(vec![None::<&str>])), None),
            (Arc::new(StringArray::from(vec![""])), None),
            (Arc::new(StringArray::from(vec!["a/b"])), Some("a/b")),
            (Arc::new(StringViewArray::from(vec!["ü"])), Some("ü")),
            (Arc::new(BinaryArray::from_vec(vec![b"ab"])), Some("ab")),
            (
                Arc::new(BinaryArray::from_vec(vec![&[0xFF, 0x00]])),
                Some("\\u00FF\\u0000"),
            ),
            (
                Arc::new(BinaryArray::from_vec(vec![b"\\u0041"])),
                Some("\\u005C\\u0075\\u0030\\u0030\\u0034\\u0031"),
            ),
            (
                Arc::new(Int64Array::from(vec![i64::MIN])),
                Some("-9223372036854775808"),
            ),
            (Arc::new(Float64Array::from(vec![0.1])), Some("0.1")),
            (Arc::new(Float32Array::from(vec![-0.1_f32])), Some("-0.1")),
            (Arc::new(Float64Array::from(vec![-0.0])), Some("-0")),
            (
                Arc::new(Float64Array::from(vec![f64::NEG_INFINITY])),
                Some("-Infinity"),
            ),
            (Arc::new(BooleanArray::from(vec![true])), Some("true")),
            (
                Arc::new(
                    Decimal128Array::from(vec![-105])
                        .with_precision_and_scale(10, 2)
                        .expect("fits"),
                ),
                Some("-1.05"),
            ),
            (Arc::new(Date32Array::from(vec![-1])), Some("1969-12-31")),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("UTC")),
                Some("1969-12-31T23:59:59.999999Z"),
            ),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![1])),
                Some("1970-01-01 00:00:00.000001"),
            ),
        ]
    }

    #[test]
    fn text_reads_back_as_the_same_value() {
        for (array, expected) in values() {
            let text = partition_text(array.as_ref(), 0).expect("has text");
            assert_eq!(text.as_deref(), expected);
            let read = parse_partition_value(text.as_deref(), array.data_type()).expect("parses");
            let written = ScalarValue::try_from_array(&array, 0).expect("scalar");
            if expected.is_none() {
                assert!(read.is_null());
            } else {
                assert_eq!(read, written);
            }
        }
    }

    #[test]
    fn nan_reads_back_as_nan() {
        let array = Float64Array::from(vec![f64::NAN]);
        let text = partition_text(&array, 0).expect("has text");
        let read = parse_partition_value(text.as_deref(), &DataType::Float64).expect("parses");
        assert!(matches!(read, ScalarValue::Float64(Some(value)) if value.is_nan()));
    }

    #[test]
    fn value_beyond_the_calendar_is_refused() {
        let array = TimestampMicrosecondArray::from(vec![i64::MAX]);
        let error = partition_text(&array, 0).expect_err("no text");
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    }

    #[test]
    fn directory_names_are_escaped() {
        let some = |text: &str| Some(text.to_owned());
        for (values, expected) in [
            (vec![], ""),
            (
                vec![some("a/b"), None],
                "p%20q=a%2Fb/r=__HIVE_DEFAULT_PARTITION__",
            ),
            (vec![some("50%"), some("ü=.")], "p%20q=50%25/r=%C3%BC%3D."),
            (vec![some(&"x".repeat(300)), None], ""),
        ] {
            assert_eq!(partition_directory(["p q", "r"], &values), expected);
        }
    }

    #[test]
    fn rows_are_grouped_in_order() {
        let batch = RecordBatch::try_from_iter([
            (
                "p",
                Arc::new(StringArray::from(vec![
                    Some("a"),
                    None,
                    Some("a"),
                    Some(""),
                    Some("b"),
                ])) as ArrayRef,
            ),
            ("x", Arc::new(Int32Array::from(vec![0, 1, 2, 3, 4]))),
        ])
        .expect("batch");
        let groups: Vec<_> = split_by_partition(&batch, &[0])
            .expect("splits")
            .into_iter()
            .map(|group| {
                let rows = group.rows.column(1).as_primitive::<Int32Type>().values();
                (group.values, rows.to_vec())
            })
            .collect();
        let some = |text: &str| vec![Some(text.to_owned())];
        assert_eq!(
            groups,
            [
                (some("a"), vec![0, 2]),
                (vec![None], vec![1]),
                (vec![None], vec![3]),
                (some("b"), vec![4]),
            ]
        );
        let whole = split_by_partition(&batch, &[]).expect("splits");
        assert_eq!(whole.len(), 1);
        assert_eq!(whole[0].rows.num_rows(), 5);
        assert!(
            split_by_partition(&batch.slice(0, 0), &[0])
                .expect("splits")
                .is_empty()
        );
    }
}
