//! Which tables this crate reads and writes: what it does not honour is refused by name, before
//! anything is read or written.
//!
//! Source: Delta protocol, "Table Features", "Requirements for Readers" and "Requirements for
//! Writers". A table feature that is supported but not in use binds nobody, so the older ones,
//! which a legacy writer version brings along unasked, are refused only where the table uses them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::change_data::{CHANGE_DATA_FEATURE, check_change_data_feed};
use super::clustering::{CLUSTERING_FEATURE, DOMAIN_METADATA_FEATURE, LIQUID_FEATURE};
use super::column_mapping::{ColumnMappingMode, MODE};
use super::snapshot::{TableMetadata, TableProtocol};
use crate::error::{Error, Result};

/// Refuses a table that this crate would read wrongly.
pub fn check_readable(protocol: &TableProtocol, metadata: &TableMetadata) -> Result<()> {
    if !(1..=3).contains(&protocol.min_reader_version) {
        return Err(cannot(
            "read",
            format!("reader version {}", protocol.min_reader_version),
        ));
    }
    if protocol.min_reader_version == 3 {
        for feature in features(&protocol.reader_features) {
            if !READABLE_FEATURES.contains(&feature) {
                return Err(cannot("read", format!("the table feature {feature}")));
            }
        }
    }
    check_column_mapping(protocol, metadata)?;
    // Bounds in the order of a collation prove nothing about the order of bytes.
    if let Some(column) = first_collated(metadata)? {
        return Err(cannot(
            "read",
            format!("the table feature collations, which the column {column} uses"),
        ));
    }
    if let Some((column, data_type)) = first_unreadable_type(metadata)? {
        return Err(cannot(
            "read",
            format!("the data type {data_type} of the column {column}"),
        ));
    }
    Ok(())
}

/// Refuses a table to which this crate would write what its features forbid. Whether the table can
/// be read is a question of its own: [`check_readable`].
pub fn check_writable(protocol: &TableProtocol, metadata: &TableMetadata) -> Result<()> {
    if !(1..=7).contains(&protocol.min_writer_version) {
        return Err(cannot(
            "write",
            format!("writer version {}", protocol.min_writer_version),
        ));
    }
    if protocol.min_writer_version == 7 {
        for feature in features(&protocol.writer_features) {
            if !WRITABLE_FEATURES.contains(&feature) && !LEGACY_FEATURES.contains(&feature) {
                return Err(cannot("write", format!("the table feature {feature}")));
            }
        }
    }
    check_column_mapping(protocol, metadata)?;
    check_change_data_feed(protocol, metadata)?;
    for property in metadata.configuration.keys() {
        if !is_true(&metadata.configuration, property) {
            continue;
        }
        let feature = match property.as_str() {
            "delta.enableRowTracking" => "rowTracking",
            "delta.enableInCommitTimestamps" => "inCommitTimestamp",
            "delta.enableTypeWidening" => "typeWidening",
            "delta.enableIcebergCompatV1" => "icebergCompatV1",
            "delta.enableIcebergCompatV2" => "icebergCompatV2",
            "delta.enableIcebergCompatV3" => "icebergCompatV3",
            _ => continue,
        };
        return Err(cannot(
            "write",
            format!("the table feature {feature}, which the table property {property} uses"),
        ));
    }
    let mut used = None;
    walk_fields(&schema(metadata)?, "", &mut |column, field| {
        let Some(Value::Object(keys)) = field.get("metadata") else {
            return;
        };
        if keys.keys().any(|key| key.starts_with("delta.identity.")) {
            used.get_or_insert(("identityColumns", column.to_owned()));
        }
    });
    match used {
        Some((feature, column)) => Err(cannot(
            "write",
            format!("the table feature {feature}, which the column {column} uses"),
        )),
        None => Ok(()),
    }
}

/// Refuses `operation` (such as `DELETE`), which removes or changes rows, on an append-only table.
///
/// Source: Delta protocol, "Append-only Tables".
pub fn check_append_only(metadata: &TableMetadata, operation: &str) -> Result<()> {
    if is_true(&metadata.configuration, "delta.appendOnly") {
        return Err(Error::unsupported(format!(
            "{operation} changes or removes rows, but the table takes new rows only \
             (table property delta.appendOnly)"
        )));
    }
    Ok(())
}

/// Whether a table property is set to `true`, in whatever case, as Delta reads it.
pub fn is_true(properties: &BTreeMap<String, String>, property: &str) -> bool {
    properties
        .get(property)
        .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Where in the schema a field stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPlace {
    /// It is a column.
    Column,
    /// It is a field of a column that is a struct, at any depth.
    StructField,
    /// It is a field of a struct inside of a list or a map.
    CollectionField,
}

/// Calls `visit` with the path, the place and the metadata of every field that has some, until it fails.
///
/// # Errors
///
/// Those of `visit`, and `Corrupt` for a schema that cannot be read.
pub fn visit_field_metadata(
    metadata: &TableMetadata,
    visit: &mut impl FnMut(&str, FieldPlace, &Map<String, Value>) -> Result<()>,
) -> Result<()> {
    fn walk(
        data_type: &Value,
        path: &str,
        place: FieldPlace,
        visit: &mut impl FnMut(&str, FieldPlace, &Map<String, Value>) -> Result<()>,
    ) -> Result<()> {
        let fields = data_type.get("fields").and_then(Value::as_array);
        for field in fields.into_iter().flatten() {
            let name = field.get("name").and_then(Value::as_str).unwrap_or("?");
            let path = match place {
                FieldPlace::Column => name.to_owned(),
                _ => format!("{path}.{name}"),
            };
            if let Some(Value::Object(keys)) = field.get("metadata")
                && !keys.is_empty()
            {
                visit(&path, place, keys)?;
            }
            let inner = match place {
                FieldPlace::Column => FieldPlace::StructField,
                place => place,
            };
            if let Some(data_type) = field.get("type") {
                walk(data_type, &path, inner, visit)?;
            }
        }
        for key in ["elementType", "keyType", "valueType"] {
            if let Some(inner) = data_type.get(key) {
                walk(inner, path, FieldPlace::CollectionField, visit)?;
            }
        }
        Ok(())
    }
    walk(&schema(metadata)?, "", FieldPlace::Column, visit)
}

/// The first column, by its path, whose data type this crate cannot read, and that type; nested
/// columns are looked into.
pub fn first_unreadable_type(metadata: &TableMetadata) -> Result<Option<(String, String)>> {
    let mut found = None;
    walk_fields(&schema(metadata)?, "", &mut |column, field| {
        if found.is_none()
            && let Some(data_type) = field.get("type").and_then(unreadable_type)
        {
            found = Some((column.to_owned(), data_type));
        }
    });
    Ok(found)
}

/// The first column, by its path, whose strings have a collation of their own.
fn first_collated(metadata: &TableMetadata) -> Result<Option<String>> {
    let mut found = None;
    walk_fields(&schema(metadata)?, "", &mut |column, field| {
        let collated = field
            .get("metadata")
            .is_some_and(|metadata| metadata.get("__COLLATIONS").is_some());
        if collated {
            found.get_or_insert_with(|| column.to_owned());
        }
    });
    Ok(found)
}

/// `timestampWithoutTimezone` is a spelling of `timestampNtz` that some tables carry.
const READABLE_FEATURES: &[&str] = &[
    "timestampNtz",
    "timestampWithoutTimezone",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "deletionVectors",
    "columnMapping",
    "typeWidening",
    "typeWidening-preview",
];

/// `deletionVectors`: vectors are honoured and removed with their files, and none are written.
///
/// `vacuumProtocolCheck` binds those who vacuum.
///
/// Domains that are not understood are kept by not being mentioned.
///
/// `invariants`, `checkConstraints`, `generatedColumns` and `allowColumnDefaults` are rules for the rows
/// that a statement brings; see `write::rules`.
const WRITABLE_FEATURES: &[&str] = &[
    "appendOnly",
    "invariants",
    "checkConstraints",
    "generatedColumns",
    "allowColumnDefaults",
    "timestampNtz",
    "timestampWithoutTimezone",
    "deletionVectors",
    "v2Checkpoint",
    CLUSTERING_FEATURE,
    LIQUID_FEATURE,
    DOMAIN_METADATA_FEATURE,
    "vacuumProtocolCheck",
    CHANGE_DATA_FEATURE,
];

/// Features that the writer versions 2 to 6 imply; writable while they are not in use.
const LEGACY_FEATURES: &[&str] = &["columnMapping", "identityColumns"];

const PRIMITIVE_TYPES: &[&str] = &[
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
];

fn cannot(verb: &str, what: String) -> Error {
    Error::unsupported(format!(
        "this version of delta-disjoint cannot {verb} a table with {what}"
    ))
}

fn features(list: &Option<BTreeSet<String>>) -> impl Iterator<Item = &str> {
    list.iter().flatten().map(String::as_str)
}

/// Readers differ in what they make of a mode that the protocol does not provide for.
fn check_column_mapping(protocol: &TableProtocol, metadata: &TableMetadata) -> Result<()> {
    let listed = || features(&protocol.reader_features).any(|feature| feature == "columnMapping");
    let supported = match protocol.min_reader_version {
        2 => true,
        3 => listed(),
        _ => false,
    };
    if ColumnMappingMode::of(&metadata.configuration)? == ColumnMappingMode::None || supported {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the table property {MODE} is set, but the table's protocol does not have the table feature \
         columnMapping; unset the property, or upgrade the protocol"
    )))
}

fn schema(metadata: &TableMetadata) -> Result<Value> {
    serde_json::from_str(&metadata.schema_string).map_err(|error| {
        Error::corrupt(format!("the schema of the table is no JSON: {error}")).with_source(error)
    })
}

/// Calls `visit` with the path and the JSON of every field in `data_type`, however deep.
fn walk_fields(data_type: &Value, path: &str, visit: &mut impl FnMut(&str, &Map<String, Value>)) {
    let Some(data_type) = data_type.as_object() else {
        return;
    };
    for field in data_type
        .get("fields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
    {
        let name = field.get("name").and_then(Value::as_str).unwrap_or("?");
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        visit(&path, field);
        if let Some(inner) = field.get("type") {
            walk_fields(inner, &path, visit);
        }
    }
    for (key, step) in [
        ("elementType", "element"),
        ("keyType", "key"),
        ("valueType", "value"),
    ] {
        if let Some(inner) = data_type.get(key) {
            walk_fields(inner, &format!("{path}.{step}"), visit);
        }
    }
}

/// The part of `data_type` that is not known; fields of structs are left to the walk.
fn unreadable_type(data_type: &Value) -> Option<String> {
    match data_type {
        Value::String(name) => {
            let known = PRIMITIVE_TYPES.contains(&name.as_str())
                || name == "decimal"
                || (name.starts_with("decimal(") && name.ends_with(')'));
            (!known).then(|| name.clone())
        }
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("struct") => None,
            Some("array") => unreadable_type(object.get("elementType")?),
            Some("map") => ["keyType", "valueType"]
                .iter()
                .find_map(|key| unreadable_type(object.get(*key)?)),
            _ => Some(data_type.to_string()),
        },
        _ => Some(data_type.to_string()),
    }
}

#[cfg(test)]
mod tests;
