//! Column mapping: columns whose names in files, statistics and partition values are not the
//! table's.
//!
//! In: a table's columns and its metadata. Out: the same columns, where each field, however deep,
//! carries its physical name and its field id as Arrow metadata. Everything that looks something
//! up in a file or an action asks [`physical_name`] for the key. Columns that were renamed keep
//! their physical name; one that was dropped and added again has a new one, so that what old files
//! hold under the old name is not taken for it.
//!
//! Source: Delta protocol, "Column Mapping".

mod adapter;
mod convert;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde_json::Value;

pub(super) use self::adapter::MappedColumns;
pub(crate) use self::convert::relabel;
use super::snapshot::TableMetadata;
use crate::error::{Error, Result};

/// Table property that says how columns are mapped.
pub const MODE: &str = "delta.columnMapping.mode";

/// Table property with the highest field id that was ever given away.
pub const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";

/// Field metadata with a column's name in files and actions.
pub const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";

/// Field metadata with a column's id.
pub const ID: &str = "delta.columnMapping.id";

/// How the columns of data files are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMappingMode {
    /// By the table's own names.
    None,
    /// By physical names.
    Name,
    /// By the field ids of the Parquet schema.
    Id,
}

impl ColumnMappingMode {
    /// The mode in a table's properties.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a mode that is not known.
    pub fn of(properties: &BTreeMap<String, String>) -> Result<Self> {
        let Some(mode) = properties.get(MODE) else {
            return Ok(Self::None);
        };
        match mode.trim().to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "name" => Ok(Self::Name),
            "id" => Ok(Self::Id),
            _ => Err(Error::unsupported(format!(
                "the table feature columnMapping is in use with a mode that is not known: the table \
                 property {MODE} = {mode}"
            ))),
        }
    }
}

/// The columns `schema` of the table of `metadata`, with physical names and field ids as metadata of
/// the fields; `schema` itself where the table does not map columns.
///
/// # Errors
///
/// `Unsupported` for an unknown mode, `Corrupt` where a field has no physical name or id, or where
/// two have the same.
pub fn mapped_schema(schema: &SchemaRef, metadata: &TableMetadata) -> Result<SchemaRef> {
    if ColumnMappingMode::of(&metadata.configuration)? == ColumnMappingMode::None {
        return Ok(Arc::clone(schema));
    }
    let json: Value = serde_json::from_str(&metadata.schema_string).map_err(|error| {
        Error::corrupt(format!("the schema of the table is no JSON: {error}")).with_source(error)
    })?;
    let fields = mapped_fields(schema.fields(), &json, "", &mut HashSet::new())?;
    Ok(Arc::new(Schema::new(fields)))
}

/// The name of `field` in files, statistics and partition values; its own where it is not mapped.
pub fn physical_name(field: &Field) -> &str {
    field
        .metadata()
        .get(PHYSICAL_NAME)
        .map_or(field.name(), String::as_str)
}

/// The physical names on the way to a column of `mapped`, a [`mapped_schema`], or a field inside of
/// one; `path` has one name a level.
///
/// # Errors
///
/// `Internal` if it is not there.
pub fn physical_path(mapped: &Schema, path: &[String]) -> Result<Vec<String>> {
    let mut fields = Some(mapped.fields());
    path.iter()
        .map(|name| {
            let field = fields
                .and_then(|fields| fields.iter().find(|field| field.name() == name))
                .ok_or_else(|| Error::internal(format!("no column {}", path.join("."))))?;
            fields = match field.data_type() {
                DataType::Struct(inner) => Some(inner),
                _ => None,
            };
            Ok(physical_name(field).to_owned())
        })
        .collect()
}

/// The columns of a Parquet file with the columns of `mapped`, a [`mapped_schema`]: physical names,
/// and the ids as field ids.
pub fn file_schema(mapped: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = mapped.fields().iter().map(file_field).collect();
    Arc::new(Schema::new(fields))
}

/// `field` without metadata, at any depth.
pub(super) fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = map_inner(field.data_type(), &plain_field);
    Arc::new(
        field
            .as_ref()
            .clone()
            .with_data_type(data_type)
            .with_metadata(HashMap::new()),
    )
}

/// Whether a struct lies in `data_type`, whose fields have names of their own.
fn has_names_inside(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(element) | DataType::LargeList(element) => {
            has_names_inside(element.data_type())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entries) => entries
                .iter()
                .any(|field| has_names_inside(field.data_type())),
            _ => false,
        },
        _ => false,
    }
}

fn file_field(field: &FieldRef) -> FieldRef {
    let metadata = field
        .metadata()
        .get(PARQUET_FIELD_ID_META_KEY)
        .map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.clone()))
        .into_iter()
        .collect();
    let data_type = map_inner(field.data_type(), &file_field);
    Arc::new(
        Field::new(physical_name(field), data_type, field.is_nullable()).with_metadata(metadata),
    )
}

/// `data_type` with `change` made to each field right inside of it.
fn map_inner(data_type: &DataType, change: &impl Fn(&FieldRef) -> FieldRef) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(change).collect()),
        DataType::List(element) => DataType::List(change(element)),
        DataType::LargeList(element) => DataType::LargeList(change(element)),
        DataType::Map(entries, sorted) => DataType::Map(change(entries), *sorted),
        _ => data_type.clone(),
    }
}

/// `fields` with the names and ids that `json`, a struct type in Delta's form, gives them.
fn mapped_fields(
    fields: &Fields,
    json: &Value,
    path: &str,
    ids: &mut HashSet<i32>,
) -> Result<Fields> {
    let described = json.get("fields").and_then(Value::as_array);
    let mut names = HashSet::new();
    fields
        .iter()
        .map(|field| {
            let path = match path {
                "" => field.name().clone(),
                path => format!("{path}.{}", field.name()),
            };
            let corrupt = |what: &str| {
                Error::corrupt(format!(
                    "the table maps its columns (table feature columnMapping), but the column \
                     {path} {what}"
                ))
            };
            let described = described
                .into_iter()
                .flatten()
                .find(|described| {
                    described.get("name").and_then(Value::as_str) == Some(field.name())
                })
                .ok_or_else(|| corrupt("is not in its schema"))?;
            let metadata = described.get("metadata");
            let name = metadata
                .and_then(|metadata| metadata.get(PHYSICAL_NAME)?.as_str())
                .filter(|name| !name.is_empty())
                .ok_or_else(|| corrupt(&format!("has no {PHYSICAL_NAME}")))?;
            let id = metadata
                .and_then(|metadata| i32::try_from(metadata.get(ID)?.as_i64()?).ok())
                .ok_or_else(|| corrupt(&format!("has no {ID}")))?;
            if !names.insert(name) {
                return Err(corrupt(&format!("shares its {PHYSICAL_NAME} {name}")));
            }
            if !ids.insert(id) {
                return Err(corrupt(&format!("shares its {ID} {id}")));
            }
            let data_type = match described.get("type") {
                Some(json) => mapped_type(field.data_type(), json, &path, ids)?,
                None => field.data_type().clone(),
            };
            let metadata = HashMap::from([
                (PHYSICAL_NAME.to_owned(), name.to_owned()),
                (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()),
            ]);
            Ok(Arc::new(
                field
                    .as_ref()
                    .clone()
                    .with_data_type(data_type)
                    .with_metadata(metadata),
            ))
        })
        .collect()
}

fn mapped_type(
    data_type: &DataType,
    json: &Value,
    path: &str,
    ids: &mut HashSet<i32>,
) -> Result<DataType> {
    // Elements, keys and values have neither name nor id; what lies in them has.
    let mut inside = |field: &FieldRef, key: &str, step: &str| -> Result<FieldRef> {
        let data_type = match json.get(key) {
            Some(json) => mapped_type(field.data_type(), json, &format!("{path}.{step}"), ids)?,
            None => field.data_type().clone(),
        };
        Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
    };
    Ok(match data_type {
        DataType::Struct(fields) => DataType::Struct(mapped_fields(fields, json, path, ids)?),
        DataType::List(element) => DataType::List(inside(element, "elementType", "element")?),
        DataType::LargeList(element) => {
            DataType::LargeList(inside(element, "elementType", "element")?)
        }
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let fields = vec![
                    inside(&fields[0], "keyType", "key")?,
                    inside(&fields[1], "valueType", "value")?,
                ];
                let entries = entries
                    .as_ref()
                    .clone()
                    .with_data_type(DataType::Struct(fields.into()));
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        _ => data_type.clone(),
    })
}

#[cfg(test)]
mod tests;
