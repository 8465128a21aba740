//! SQL types as Delta types: the schema of a table that is created.
//!
//! | Arrow type, as DataFusion plans SQL types | Delta type |
//! |---|---|
//! | `Int8`, `Int16`, `Int32`, `Int64` | `byte`, `short`, `integer`, `long` |
//! | `Float32`, `Float64` | `float`, `double` |
//! | `Boolean`, `Date32` | `boolean`, `date` |
//! | strings and binaries in every encoding | `string`, `binary` |
//! | decimals of up to 38 digits | `decimal(p,s)` |
//! | `Timestamp` without a zone (`TIMESTAMP`) | `timestamp_ntz` |
//! | `Timestamp` with a zone (`TIMESTAMP WITH TIME ZONE`) | `timestamp` |
//! | `Struct`, `List`, `Map` | `struct`, `array`, `map` |
//!
//! Everything else is refused by name, with what to use instead. Source: Delta protocol, "Schema
//! Serialization Format".

use std::collections::HashSet;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// `schema` in Delta's JSON form, for [`schema_string`].
///
/// Nullability is kept; names must differ by more than case.
///
/// [`schema_string`]: crate::read::snapshot::TableMetadata::schema_string
pub fn schema_json(schema: &Schema) -> Result<Value> {
    if schema.fields().is_empty() {
        return Err(Error::invalid("a table without columns"));
    }
    struct_json(schema.fields(), "")
}

/// Refuses names, however deep, that Delta takes only in a table that maps its columns.
pub fn check_unmapped_names(schema: &Schema) -> Result<()> {
    check_characters(schema.fields(), "")
}

/// Whether `schema` holds a `timestamp_ntz`, however deep; such a table needs the table feature
/// `timestampNtz`.
pub fn has_timestamp_ntz(schema: &Schema) -> bool {
    schema
        .fields()
        .iter()
        .any(|field| is_timestamp_ntz(field.data_type()))
}

/// Refuses a partition column that is not there or cannot be one, and partition columns that leave
/// no other.
pub fn check_partition_columns(schema: &Schema, partition_columns: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    for name in partition_columns {
        let Ok(field) = schema.field_with_name(name) else {
            return Err(Error::invalid(format!(
                "the partition column {name} is not among the columns of the table: {}",
                names(schema)
            )));
        };
        if !seen.insert(name) {
            return Err(Error::invalid(format!(
                "the partition column {name} is named twice"
            )));
        }
        if field.data_type().is_nested() {
            return Err(Error::invalid(format!(
                "the column {name} of the type {} cannot be a partition column; partition by a \
                 column of a plain type",
                field.data_type()
            )));
        }
    }
    if !partition_columns.is_empty() && partition_columns.len() == schema.fields().len() {
        return Err(Error::invalid(
            "all columns are partition columns; leave at least one for the data files",
        ));
    }
    Ok(())
}

/// Refuses columns that differ from those of a table that is there already, saying how. Encodings
/// of one Delta type, such as `Utf8` and `Utf8View`, are no difference.
pub fn same_columns(declared: &Schema, existing: &Schema) -> Result<()> {
    let mut differences = Vec::new();
    for (position, field) in declared.fields().iter().enumerate() {
        let Some(there) = existing.fields().get(position) else {
            differences.push(format!("{} is not in the table", describe(field)?));
            continue;
        };
        let (declared, there) = (describe(field)?, describe(there)?);
        if declared != there {
            differences.push(format!(
                "column {} is declared as {declared} but is {there} in the table",
                position + 1
            ));
        }
    }
    for field in existing.fields().iter().skip(declared.fields().len()) {
        differences.push(format!("{} of the table is not declared", describe(field)?));
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the location holds a table with other columns: {}; leave the columns out to use the \
         table's own",
        differences.join("; ")
    )))
}

/// Refuses partition columns that differ from those of a table that is there already.
pub fn same_partition_columns(declared: &[String], existing: &[String]) -> Result<()> {
    if declared == existing {
        return Ok(());
    }
    let list = |columns: &[String]| match columns {
        [] => "not partitioned".to_owned(),
        columns => format!("partitioned by {}", columns.join(", ")),
    };
    Err(Error::invalid(format!(
        "the location holds a table that is {}, but it is declared as {}",
        list(existing),
        list(declared)
    )))
}

/// What Parquet readers and writers of Delta take for syntax.
const FORBIDDEN_CHARACTERS: &[char] = &[' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '='];

fn struct_json(fields: &Fields, path: &str) -> Result<Value> {
    let mut seen = HashSet::new();
    let mut list = Vec::with_capacity(fields.len());
    for field in fields {
        let path = join(path, field.name());
        if field.name().is_empty() {
            return Err(Error::invalid("a column without a name"));
        }
        if !seen.insert(field.name().to_lowercase()) {
            return Err(Error::invalid(format!(
                "the column {path} is there twice; Delta tells names apart by more than case"
            )));
        }
        list.push(json!({
            "name": field.name(),
            "type": type_json(field.data_type(), &path)?,
            "nullable": field.is_nullable(),
            "metadata": {},
        }));
    }
    if list.is_empty() {
        return Err(Error::unsupported(format!(
            "the column {path} is a struct without fields"
        )));
    }
    Ok(json!({"type": "struct", "fields": list}))
}

fn type_json(data_type: &DataType, path: &str) -> Result<Value> {
    let refuse = |instead: &str| {
        Err(Error::unsupported(format!(
            "the column {path} has the type {data_type}, which Delta does not have; use {instead}"
        )))
    };
    Ok(match data_type {
        DataType::Int8 => json!("byte"),
        DataType::Int16 => json!("short"),
        DataType::Int32 => json!("integer"),
        DataType::Int64 => json!("long"),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Boolean => json!("boolean"),
        DataType::Date32 => json!("date"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => json!("string"),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => json!("binary"),
        DataType::Timestamp(_, None) => json!("timestamp_ntz"),
        DataType::Timestamp(_, Some(_)) => json!("timestamp"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => match u8::try_from(*scale) {
            Ok(scale) if scale <= *precision && (1..=38).contains(precision) => {
                json!(format!("decimal({precision},{scale})"))
            }
            _ => return refuse("DECIMAL(p, s) with 0 <= s <= p <= 38"),
        },
        DataType::Struct(fields) => struct_json(fields, path)?,
        DataType::List(element) | DataType::LargeList(element) => json!({
            "type": "array",
            "elementType": type_json(element.data_type(), &join(path, "element"))?,
            "containsNull": element.is_nullable(),
        }),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => json!({
                "type": "map",
                "keyType": type_json(fields[0].data_type(), &join(path, "key"))?,
                "valueType": type_json(fields[1].data_type(), &join(path, "value"))?,
                "valueContainsNull": fields[1].is_nullable(),
            }),
            _ => return refuse("a map with keys and values"),
        },
        DataType::Dictionary(_, values) => type_json(values, path)?,
        DataType::UInt8 => return refuse("SMALLINT"),
        DataType::UInt16 => return refuse("INT"),
        DataType::UInt32 => return refuse("BIGINT"),
        DataType::UInt64 => return refuse("BIGINT or DECIMAL(20, 0)"),
        DataType::Float16 => return refuse("REAL"),
        DataType::Decimal256(..) => return refuse("DECIMAL with at most 38 digits"),
        DataType::Date64 => return refuse("DATE or TIMESTAMP"),
        DataType::Time32(_) | DataType::Time64(_) => {
            return refuse("TIMESTAMP, or BIGINT for a number of microseconds");
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            return refuse("BIGINT for a number of units");
        }
        DataType::FixedSizeBinary(_) => return refuse("BYTEA"),
        DataType::FixedSizeList(..) | DataType::ListView(_) | DataType::LargeListView(_) => {
            return refuse("an array without a fixed length");
        }
        DataType::Union(..) => return refuse("a struct with one field for each type"),
        DataType::RunEndEncoded(..) => return refuse("the type of its values"),
        DataType::Null => return refuse("the type of the values to come"),
    })
}

fn check_characters(fields: &Fields, path: &str) -> Result<()> {
    for field in fields {
        let path = join(path, field.name());
        let odd = |c: &char| FORBIDDEN_CHARACTERS.contains(c);
        if let Some(character) = field.name().chars().find(odd) {
            return Err(Error::unsupported(format!(
                "the name of the column {path} holds {character:?}, which needs column mapping: \
                 create the table with OPTIONS ('delta.columnMapping.mode' 'name'), or use a name \
                 without any of \" ,;{{}}()\\n\\t=\""
            )));
        }
        check_inner_characters(field.data_type(), &path)?;
    }
    Ok(())
}

fn check_inner_characters(data_type: &DataType, path: &str) -> Result<()> {
    match data_type {
        DataType::Struct(fields) => check_characters(fields, path),
        DataType::List(element) | DataType::LargeList(element) => {
            check_inner_characters(element.data_type(), path)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entries) => entries
                .iter()
                .try_for_each(|entry| check_inner_characters(entry.data_type(), path)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_timestamp_ntz(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, zone) => zone.is_none(),
        DataType::Struct(fields) => fields
            .iter()
            .any(|field| is_timestamp_ntz(field.data_type())),
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            is_timestamp_ntz(field.data_type())
        }
        DataType::Dictionary(_, values) => is_timestamp_ntz(values),
        _ => false,
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn names(schema: &Schema) -> String {
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    names.join(", ")
}

/// Name, Delta type and nullability of a column, for comparing and for people.
fn describe(field: &Field) -> Result<String> {
    let data_type = match type_json(field.data_type(), field.name())? {
        Value::String(name) => name,
        nested => nested.to_string(),
    };
    let nullability = if field.is_nullable() { "" } else { " NOT NULL" };
    Ok(format!("{} {data_type}{nullability}", field.name()))
}

#[cfg(test)]
mod tests;
