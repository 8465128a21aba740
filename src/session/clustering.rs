//! By which columns a new table is clustered: the option `delta.clusteringColumns`.
//!
//! Source: Delta protocol, "Clustered Table"; that there are at most four columns is a rule of
//! Delta Spark, which refuses tables with more.

use arrow::datatypes::{DataType, Fields, Schema};

use crate::error::{Error, Result};

/// The option of `CREATE EXTERNAL TABLE`. It is no table property: the columns are kept as domain
/// metadata.
pub const CLUSTERING_OPTION: &str = "delta.clusteringColumns";

/// The most clustering columns that a table may have.
pub const MOST_CLUSTERING_COLUMNS: usize = 4;

/// `wanted`, paths of one name a level, as the columns of `schema` are spelled. Names are told
/// apart without case, as Delta does.
///
/// # Errors
///
/// `Invalid` for a column that is not there, is named twice or is of a type without bounds in
/// statistics, for more than [`MOST_CLUSTERING_COLUMNS`], and for a table that is partitioned.
pub fn resolve_clustering_columns(
    schema: &Schema,
    partition_columns: &[String],
    wanted: &[Vec<String>],
) -> Result<Vec<Vec<String>>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    if !partition_columns.is_empty() {
        return Err(refused(
            "a table is either clustered or partitioned; leave PARTITIONED BY or the option out",
        ));
    }
    if wanted.len() > MOST_CLUSTERING_COLUMNS {
        return Err(refused(&format!(
            "{} columns are too many; a table has at most {MOST_CLUSTERING_COLUMNS}",
            wanted.len()
        )));
    }
    let mut columns = Vec::with_capacity(wanted.len());
    for path in wanted {
        let column = resolve(schema.fields(), path)?;
        if columns.contains(&column) {
            return Err(refused(&format!("{} is named twice", column.join("."))));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn resolve(fields: &Fields, path: &[String]) -> Result<Vec<String>> {
    let text = path.join(".");
    let mut fields = Some(fields);
    let mut column = Vec::with_capacity(path.len());
    let mut data_type = None;
    for name in path {
        let field = fields
            .into_iter()
            .flatten()
            .find(|field| field.name().to_lowercase() == name.to_lowercase())
            .ok_or_else(|| {
                refused(&format!(
                    "there is no column {text}; a name with a dot or a comma stands in backticks"
                ))
            })?;
        column.push(field.name().clone());
        data_type = Some(field.data_type());
        fields = match field.data_type() {
            DataType::Struct(inner) => Some(inner),
            _ => None,
        };
    }
    match data_type {
        Some(data_type) if has_bounds(data_type) => Ok(column),
        other => Err(refused(&format!(
            "{text} is of the type {}, of which statistics keep no bounds; cluster by numbers, \
             dates, timestamps or strings",
            other.unwrap_or(&DataType::Null)
        ))),
    }
}

/// Whether statistics of a column of this type have bounds.
fn has_bounds(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Timestamp(..)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => has_bounds(values),
        _ => false,
    }
}

fn refused(why: &str) -> Error {
    Error::invalid(format!("the option {CLUSTERING_OPTION}: {why}"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;
    use crate::ErrorKind;

    fn schema() -> Schema {
        let inner = Fields::from(vec![
            Field::new("X", DataType::Int64, true),
            Field::new("tags", DataType::new_list(DataType::Utf8, true), true),
        ]);
        Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("a.b", DataType::Utf8View, true),
            Field::new("s", DataType::Struct(inner), true),
            Field::new("flag", DataType::Boolean, true),
            Field::new("at", DataType::Date32, true),
            Field::new("price", DataType::Decimal128(38, 2), true),
        ])
    }

    fn paths(list: &[&[&str]]) -> Vec<Vec<String>> {
        list.iter()
            .map(|path| path.iter().map(|name| (*name).to_owned()).collect())
            .collect()
    }

    #[test]
    fn columns_get_the_spelling_of_the_table() {
        for (wanted, expected) in [
            (paths(&[]), paths(&[])),
            (paths(&[&["ID"]]), paths(&[&["id"]])),
            (
                paths(&[&["a.B"], &["S", "x"], &["at"], &["price"]]),
                paths(&[&["a.b"], &["s", "X"], &["at"], &["price"]]),
            ),
        ] {
            let resolved = resolve_clustering_columns(&schema(), &[], &wanted).expect("columns");
            assert_eq!(resolved, expected);
        }
    }

    #[test]
    fn what_cannot_be_clustered_by_is_refused_with_the_reason() {
        for (wanted, partitions, reason) in [
            (paths(&[&["nope"]]), vec![], "no column nope"),
            (paths(&[&["a", "b"]]), vec![], "backticks"),
            (paths(&[&["id", "x"]]), vec![], "no column id.x"),
            (paths(&[&["s"]]), vec![], "Struct"),
            (paths(&[&["s", "tags"]]), vec![], "List"),
            (paths(&[&["flag"]]), vec![], "Boolean"),
            (paths(&[&["id"], &["at"], &["ID"]]), vec![], "twice"),
            (paths(&[&["id"]]), vec!["at".to_owned()], "PARTITIONED BY"),
            (
                paths(&[&["id"], &["at"], &["a.b"], &["price"], &["s", "X"]]),
                vec![],
                "at most 4",
            ),
        ] {
            let error =
                resolve_clustering_columns(&schema(), &partitions, &wanted).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            for part in [CLUSTERING_OPTION, reason] {
                assert!(error.message().contains(part), "{part} in {error}");
            }
        }
    }
}
