//! Columns as files hold them to columns as the table declares them, and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::{PHYSICAL_NAME, physical_name};
use crate::error::{Error, Result};

/// The position among `file`, fields of one struct of a Parquet file, of the table's field `wanted`;
/// none where the file does not have it.
///
/// Source: Delta protocol, "Reader Requirements for Column Mapping".
///
/// # Errors
///
/// `Unsupported` if it is looked for by its id and the file has fields without one, since any of
/// them might be it.
pub(super) fn position_in<'f>(
    wanted: &Field,
    mut file: impl Iterator<Item = &'f Field> + Clone,
    by_id: bool,
) -> Result<Option<usize>> {
    if !by_id {
        return Ok(file.position(|field| field.name() == physical_name(wanted)));
    }
    let id = |field: &Field| field.metadata().get(PARQUET_FIELD_ID_META_KEY).cloned();
    let wanted_id = id(wanted);
    match file.clone().position(|field| id(field) == wanted_id) {
        Some(position) => Ok(Some(position)),
        None => match file.find(|field| id(field).is_none()) {
            Some(field) => Err(Error::unsupported(format!(
                "the table finds the columns of its files by field id (table feature columnMapping, \
                 mode id), but a data file has the column {} without one",
                field.name()
            ))),
            None => Ok(None),
        },
    }
}

/// `array`, a column of a file, as the table declares it: fields of structs are found as the mapping
/// says, those that the file does not have are NULL.
pub(super) fn convert(array: &ArrayRef, target: &DataType, by_id: bool) -> Result<ArrayRef> {
    let wrong = || {
        Error::corrupt(format!(
            "a data file has {} where the table's schema has {target}",
            array.data_type()
        ))
    };
    let failed = |error: arrow::error::ArrowError| wrong().with_source(error);
    match target {
        DataType::Struct(fields) => {
            let array = array.as_struct_opt().ok_or_else(wrong)?;
            let columns = fields
                .iter()
                .map(|field| {
                    let file = array.fields().iter().map(AsRef::as_ref);
                    match position_in(field, file, by_id)? {
                        Some(position) => convert(array.column(position), field.data_type(), by_id),
                        None => Ok(new_null_array(field.data_type(), array.len())),
                    }
                })
                .collect::<Result<Vec<_>>>()?;
            struct_array(fields, columns, array).map_err(failed)
        }
        DataType::List(element) => {
            let list = as_list(array).map_err(failed)?;
            let list = list.as_list_opt::<i32>().ok_or_else(wrong)?;
            let values = convert(list.values(), element.data_type(), by_id)?;
            let list = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            );
            Ok(Arc::new(list.map_err(failed)?))
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map_opt().ok_or_else(wrong)?;
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(wrong());
            };
            // Keys and values go by position: their names are the writer's choice.
            let columns = fields
                .iter()
                .zip(map.entries().columns())
                .map(|(field, column)| convert(column, field.data_type(), by_id))
                .collect::<Result<Vec<_>>>()?;
            let pairs = StructArray::try_new(fields.clone(), columns, None).map_err(failed)?;
            let map = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                pairs,
                map.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(map.map_err(failed)?))
        }
        target if array.data_type() == target => Ok(Arc::clone(array)),
        target => {
            let strict = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            cast_with_options(array, target, &strict).map_err(failed)
        }
    }
}

/// `array` with the field names and metadata of `target`, a type that differs from its own in
/// nothing else.
///
/// # Errors
///
/// `Internal` if the types differ in more than that.
pub(crate) fn relabel(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    let wrong = || {
        Error::internal(format!(
            "{} rows for a file column {target}",
            array.data_type()
        ))
    };
    let failed = |error: arrow::error::ArrowError| wrong().with_source(error);
    match target {
        DataType::Struct(fields) => {
            let array = array.as_struct_opt().ok_or_else(wrong)?;
            let columns = relabel_all(fields, array.columns())?;
            struct_array(fields, columns, array).map_err(failed)
        }
        DataType::List(element) => {
            let list = array.as_list_opt::<i32>().ok_or_else(wrong)?;
            let list = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                relabel(list.values(), element.data_type())?,
                list.nulls().cloned(),
            );
            Ok(Arc::new(list.map_err(failed)?))
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map_opt().ok_or_else(wrong)?;
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(wrong());
            };
            let columns = relabel_all(fields, map.entries().columns())?;
            let pairs = StructArray::try_new(fields.clone(), columns, None).map_err(failed)?;
            let map = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                pairs,
                map.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(map.map_err(failed)?))
        }
        _ => Err(wrong()),
    }
}

/// Whether `field` is a column of a table that maps its columns.
pub(super) fn is_mapped(field: &Field) -> bool {
    field.metadata().contains_key(PHYSICAL_NAME)
}

fn relabel_all(fields: &Fields, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    fields
        .iter()
        .zip(columns)
        .map(|(field, column)| relabel(column, field.data_type()))
        .collect()
}

/// `columns` as a struct of `fields` that is NULL where `like` is.
fn struct_array(
    fields: &Fields,
    columns: Vec<ArrayRef>,
    like: &StructArray,
) -> Result<ArrayRef, arrow::error::ArrowError> {
    let nulls = like.nulls().cloned();
    let array = StructArray::try_new_with_length(fields.clone(), columns, nulls, like.len())?;
    Ok(Arc::new(array))
}

/// A list in whatever encoding as one with 32-bit offsets, its elements as they are.
fn as_list(array: &ArrayRef) -> Result<ArrayRef, arrow::error::ArrowError> {
    match array.data_type() {
        DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => cast(array, &DataType::List(Arc::clone(element))),
        _ => Ok(Arc::clone(array)),
    }
}
