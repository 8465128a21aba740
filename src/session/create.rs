//! Creating a table: version 0 of its log, written once or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::Schema;
use bytes::Bytes;
use deltalake::logstore::LogStoreRef;
use serde_json::{Value, json};
use uuid::Uuid;

use super::clustering::resolve_clustering_columns;
use super::types::{check_partition_columns, check_unmapped_names, has_timestamp_ntz, schema_json};
use crate::clock::now_millis;
use crate::commit::log::{Put, put_entry};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::rules::{CONSTRAINT_PREFIX, check_constraints};
use crate::read::change_data::{CHANGE_DATA_FEATURE, ENABLE_CHANGE_DATA_FEED, check_feed_columns};
use crate::read::clustering::{
    CLUSTERING_DOMAIN, CLUSTERING_FEATURE, DOMAIN_METADATA_FEATURE, configuration,
};
use crate::read::column_mapping::{
    ColumnMappingMode, ID, MAX_COLUMN_ID, PHYSICAL_NAME, mapped_schema, physical_path,
};
use crate::read::features::is_true;
use crate::read::snapshot::{TableFormat, TableMetadata, TableProtocol};

/// A table to be created.
#[derive(Debug, Clone)]
pub struct NewTable<'a> {
    /// Columns in table order, partition columns included, in types that
    /// [`types`](super::types) maps.
    pub schema: &'a Schema,
    /// Names of the partition columns, in order.
    pub partition_columns: &'a [String],
    /// Table properties in Delta's spelling; see
    /// [`table_options`](super::table_options::table_options).
    pub properties: &'a BTreeMap<String, String>,
    /// Columns to cluster by, as paths of one name a level; none for a table that is not clustered.
    pub clustering_columns: &'a [Vec<String>],
}

/// Writes version 0 of the table that lives in `log_store`.
///
/// A location that has a Delta log already is [`Invalid`](ErrorKind::Invalid). Of several writers
/// that create the same table at the same time one succeeds; the others get a
/// [`Conflict`](ErrorKind::Conflict) and have written nothing.
pub async fn create_table(log_store: &LogStoreRef, table: &NewTable<'_>) -> Result<()> {
    let entry = first_entry(table)?;
    // Asked first, and not only by the put: the log of an old table may start above version 0.
    if log_store.is_delta_table_location().await? {
        return Err(Error::invalid(format!(
            "{} holds a Delta table already",
            log_store.root_url()
        )));
    }
    put_first_entry(log_store, entry).await
}

/// The `metaData` of a new table; refuses what Delta or this crate cannot have.
pub fn new_metadata(table: &NewTable<'_>) -> Result<TableMetadata> {
    let mut schema = schema_json(table.schema)?;
    let mut configuration = table.properties.clone();
    if maps_columns(table)? {
        let highest = map_columns(&mut schema);
        configuration.insert(MAX_COLUMN_ID.to_owned(), highest.to_string());
    } else {
        check_unmapped_names(table.schema)?;
    }
    check_partition_columns(table.schema, table.partition_columns)?;
    clustering_of(table)?;
    check_constraints(table.properties, &Arc::new(table.schema.clone()))
        .map_err(|error| Error::invalid(format!("no table is created: {}", error.message())))?;
    let metadata = TableMetadata {
        id: Uuid::new_v4().to_string(),
        name: None,
        description: None,
        format: TableFormat::default(),
        schema_string: schema.to_string(),
        partition_columns: table.partition_columns.to_vec(),
        configuration,
        created_time: Some(now_millis()),
    };
    check_feed_columns(&metadata)?;
    Ok(metadata)
}

/// The least `protocol` that a new table needs, so that as many readers as possible take it.
///
/// # Errors
///
/// `Unsupported` for an unknown way to map columns.
pub fn new_protocol(table: &NewTable<'_>) -> Result<TableProtocol> {
    let maps_columns = maps_columns(table)?;
    let ntz = has_timestamp_ntz(table.schema);
    let clustered = !table.clustering_columns.is_empty();
    let constrained = table
        .properties
        .keys()
        .any(|property| property.starts_with(CONSTRAINT_PREFIX));
    let has_feed = is_true(table.properties, ENABLE_CHANGE_DATA_FEED);
    if !ntz && !clustered {
        // What the higher of these legacy versions brought: constraints, the feed, column mapping.
        let (min_reader_version, min_writer_version) = match (maps_columns, has_feed, constrained) {
            (true, _, _) => (2, 5),
            (false, true, _) => (1, 4),
            (false, false, true) => (1, 3),
            (false, false, false) => (1, 2),
        };
        return Ok(TableProtocol {
            min_reader_version,
            min_writer_version,
            reader_features: None,
            writer_features: None,
        });
    }
    let reader_features: BTreeSet<String> =
        [(ntz, "timestampNtz"), (maps_columns, "columnMapping")]
            .into_iter()
            .filter(|(used, _)| *used)
            .map(|(_, feature)| feature.to_owned())
            .collect();
    let mut writer_features = reader_features.clone();
    if clustered {
        // They bind writers only: any reader takes a clustered table.
        writer_features.extend([CLUSTERING_FEATURE, DOMAIN_METADATA_FEATURE].map(str::to_owned));
    }
    // Writer version 7 brings nothing along: a property binds writers only if its feature is listed.
    if table.properties.contains_key("delta.appendOnly") {
        writer_features.insert("appendOnly".to_owned());
    }
    if constrained {
        writer_features.insert("checkConstraints".to_owned());
    }
    if has_feed {
        writer_features.insert(CHANGE_DATA_FEATURE.to_owned());
    }
    Ok(TableProtocol {
        min_reader_version: if reader_features.is_empty() { 1 } else { 3 },
        min_writer_version: 7,
        reader_features: Some(reader_features).filter(|features| !features.is_empty()),
        writer_features: Some(writer_features),
    })
}

fn maps_columns(table: &NewTable<'_>) -> Result<bool> {
    Ok(ColumnMappingMode::of(table.properties)? != ColumnMappingMode::None)
}

/// Gives every field of `data_type`, in Delta's JSON form and at any depth, an id and a physical
/// name; the answer is the highest id.
fn map_columns(data_type: &mut Value) -> u32 {
    fn map(data_type: &mut Value, highest: &mut u32) {
        for field in data_type
            .get_mut("fields")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            *highest += 1;
            field["metadata"][ID] = json!(*highest);
            field["metadata"][PHYSICAL_NAME] = json!(format!("col-{}", Uuid::new_v4()));
            map(&mut field["type"], highest);
        }
        for key in ["elementType", "keyType", "valueType"] {
            if let Some(inner) = data_type.get_mut(key) {
                map(inner, highest);
            }
        }
    }
    let mut highest = 0;
    map(data_type, &mut highest);
    highest
}

fn first_entry(table: &NewTable<'_>) -> Result<Bytes> {
    let metadata = new_metadata(table)?;
    let properties = json_text(&metadata.configuration)?;
    let partition_by = json_text(&metadata.partition_columns)?;
    let clustering = clustering_of(table)?;
    let mut commit_info = json!({
        "timestamp": now_millis(),
        "operation": "CREATE TABLE",
        "operationParameters": {
            "isManaged": "false",
            "partitionBy": partition_by,
            "properties": properties,
        },
        "isBlindAppend": true,
        "engineInfo": concat!("delta-disjoint/", env!("CARGO_PKG_VERSION")),
        "txnId": Uuid::new_v4().to_string(),
    });
    let mut rest = vec![
        json!({"protocol": to_value(&new_protocol(table)?)?}),
        json!({"metaData": to_value(&metadata)?}),
    ];
    if !clustering.is_empty() {
        // Readers look them up where statistics are.
        let columns = mapped_schema(&Arc::new(table.schema.clone()), &metadata)?;
        let physical = clustering
            .iter()
            .map(|column| physical_path(&columns, column))
            .collect::<Result<Vec<_>>>()?;
        let names: Vec<String> = clustering.iter().map(|column| column.join(".")).collect();
        commit_info["operationParameters"]["clusterBy"] = json_text(&names)?.into();
        rest.push(json!({"domainMetadata": {
            "domain": CLUSTERING_DOMAIN,
            "configuration": configuration(&physical)?,
            "removed": false,
        }}));
    }
    let mut lines = vec![json!({"commitInfo": commit_info}).to_string()];
    lines.extend(rest.iter().map(Value::to_string));
    Ok(Bytes::from(lines.join("\n")))
}

fn clustering_of(table: &NewTable<'_>) -> Result<Vec<Vec<String>>> {
    resolve_clustering_columns(
        table.schema,
        table.partition_columns,
        table.clustering_columns,
    )
}

async fn put_first_entry(log_store: &LogStoreRef, entry: Bytes) -> Result<()> {
    let location = log_store.root_url();
    match put_entry(log_store, 0, &entry).await? {
        Put::Done => Ok(()),
        Put::Lost => Err(Error::new(
            ErrorKind::Conflict,
            format!("another writer created a table at {location} first; nothing was written"),
        )),
        Put::Unclear(error) => Err(Error::unavailable(format!(
            "no table could be created at {location}: {error}"
        ))
        .with_source(error)),
    }
}

fn json_text(value: &impl serde::Serialize) -> Result<String> {
    Ok(to_value(value)?.to_string())
}

fn to_value(value: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Error::internal(format!("no JSON: {error}")).with_source(error))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod interoperability;
