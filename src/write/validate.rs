//! What must hold of rows before they are written: the table's columns in the table's order, in a
//! type that is the table's but for its encoding, and no NULL where the table has none.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};

use crate::error::{Error, Result};

/// `batch` with the schema of the table.
///
/// Columns go by position and must carry the table's names. Strings, binaries and lists may come in
/// another encoding, integers and timestamps in a narrower type; anything else that is no column of
/// the table is a bug of the plan above, which casts. A NULL in a column that takes none is
/// [`Invalid`](crate::ErrorKind::Invalid).
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::internal(format!(
            "rows with {} columns for a table with {}",
            batch.num_columns(),
            schema.fields().len()
        )));
    }
    let given = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    for ((field, array), given) in schema
        .fields()
        .iter()
        .zip(batch.columns())
        .zip(given.fields())
    {
        if field.name() != given.name() {
            return Err(Error::internal(format!(
                "rows with a column {} where the table has {}",
                given.name(),
                field.name()
            )));
        }
        check_nulls(field, array.as_ref(), None, field.name())?;
        columns.push(conform_column(field, array)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|error| {
        Error::internal(format!("rows do not have the table's schema: {error}")).with_source(error)
    })
}

fn conform_column(field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (array.data_type(), field.data_type());
    if from == to {
        return Ok(Arc::clone(array));
    }
    let refused = || Error::internal(format!("{from} rows for the column {} {to}", field.name()));
    if !is_lossless(from, to) {
        return Err(refused());
    }
    cast(array, to).map_err(|error| refused().with_source(error))
}

/// Whether every value of `from` is the same value in `to`.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Decimal128, Dictionary, Float32, Float64, Int8, Int16, Int32, Int64,
        LargeBinary, LargeList, LargeUtf8, List, Map, Null, Struct, Timestamp, Utf8, Utf8View,
    };
    match (from, to) {
        (from, to) if from == to => true,
        (Null, _) => true,
        (Dictionary(_, from), to) => is_lossless(from, to),
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View)
        | (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView)
        | (Int8, Int16 | Int32 | Int64)
        | (Int16, Int32 | Int64)
        | (Int32, Int64)
        | (Float32, Float64) => true,
        (Decimal128(p1, s1), Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        (Timestamp(from_unit, from_zone), Timestamp(TimeUnit::Microsecond, to_zone)) => {
            // With a zone the instant is the same whatever the zone is.
            from_zone.is_some() == to_zone.is_some() && *from_unit != TimeUnit::Nanosecond
        }
        (List(from) | LargeList(from), List(to) | LargeList(to)) => {
            is_lossless(from.data_type(), to.data_type())
        }
        (Map(from, _), Map(to, _)) => match (from.data_type(), to.data_type()) {
            // Keys and values go by position: their names are the writer's choice.
            (Struct(from), Struct(to)) => {
                from.len() == to.len()
                    && from
                        .iter()
                        .zip(to)
                        .all(|(from, to)| is_lossless(from.data_type(), to.data_type()))
            }
            _ => false,
        },
        (Struct(from), Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| {
                    from.name() == to.name() && is_lossless(from.data_type(), to.data_type())
                })
        }
        _ => false,
    }
}

/// Refuses a NULL that `field` or a field inside it does not take, where its parent has a value.
fn check_nulls(
    field: &Field,
    array: &dyn Array,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<()> {
    let own = array.logical_nulls();
    if !field.is_nullable()
        && let Some(own) = &own
    {
        let missing = match parent {
            None => own.null_count() > 0,
            Some(parent) => parent.valid_indices().any(|row| own.is_null(row)),
        };
        if missing {
            return Err(Error::invalid(format!(
                "NOT NULL of the column {path} is violated by a row with {path} = NULL"
            )));
        }
    }
    if !holds_required(field.data_type()) {
        return Ok(());
    }
    let present = NullBuffer::union(parent, own.as_ref());
    match field.data_type() {
        DataType::Struct(fields) => {
            let Some(array) = array.as_struct_opt() else {
                return Ok(());
            };
            for (field, child) in fields.iter().zip(array.columns()) {
                let path = format!("{path}.{}", field.name());
                check_nulls(field, child.as_ref(), present.as_ref(), &path)?;
            }
            Ok(())
        }
        DataType::List(element) | DataType::LargeList(element) => {
            let path = format!("{path}.element");
            if let Some(list) = array.as_list_opt::<i32>() {
                let inner = elements_present(list.offsets(), present.as_ref(), list.values().len());
                check_nulls(element, list.values().as_ref(), Some(&inner), &path)
            } else if let Some(list) = array.as_list_opt::<i64>() {
                let inner = elements_present(list.offsets(), present.as_ref(), list.values().len());
                check_nulls(element, list.values().as_ref(), Some(&inner), &path)
            } else {
                Ok(())
            }
        }
        DataType::Map(entries, _) => {
            let (Some(map), DataType::Struct(fields)) = (array.as_map_opt(), entries.data_type())
            else {
                return Ok(());
            };
            let inner = elements_present(map.offsets(), present.as_ref(), map.entries().len());
            for ((field, child), step) in fields
                .iter()
                .zip(map.entries().columns())
                .zip(["key", "value"])
            {
                let path = format!("{path}.{step}");
                check_nulls(field, child.as_ref(), Some(&inner), &path)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether some field inside `data_type` takes no NULL.
fn holds_required(data_type: &DataType) -> bool {
    let required = |field: &Field| !field.is_nullable() || holds_required(field.data_type());
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| required(field)),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            required(field)
        }
        _ => false,
    }
}

/// Which of `length` elements lie in a list that is there.
fn elements_present<O: arrow::array::OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    present: Option<&NullBuffer>,
    length: usize,
) -> NullBuffer {
    let mut elements = BooleanBufferBuilder::new(length);
    elements.append_n(length, false);
    for (row, range) in offsets.windows(2).enumerate() {
        if present.is_none_or(|present| present.is_valid(row)) {
            for element in range[0].as_usize()..range[1].as_usize() {
                elements.set_bit(element, true);
            }
        }
    }
    NullBuffer::new(elements.finish())
}

#[cfg(test)]
mod tests;
