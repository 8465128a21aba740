//! Creating a table: version 0 of its log, written once or not at all.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::Schema;
use bytes::Bytes;
use deltalake::logstore::LogStoreRef;
use serde_json::{Value, json};
use uuid::Uuid;

use super::clustering::resolve_clustering_columns;
use super::types::{check_partition_columns, has_timestamp_ntz, schema_json};
use crate::clock::now_millis;
use crate::commit::log::{Put, put_entry};
use crate::error::{Error, ErrorKind, Result};
use crate::read::clustering::{
    CLUSTERING_DOMAIN, CLUSTERING_FEATURE, DOMAIN_METADATA_FEATURE, configuration,
};
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
    let schema = schema_json(table.schema)?;
    check_partition_columns(table.schema, table.partition_columns)?;
    clustering_of(table)?;
    Ok(TableMetadata {
        id: Uuid::new_v4().to_string(),
        name: None,
        description: None,
        format: TableFormat::default(),
        schema_string: schema.to_string(),
        partition_columns: table.partition_columns.to_vec(),
        configuration: table.properties.clone(),
        created_time: Some(now_millis()),
    })
}

/// The least `protocol` that a new table needs, so that as many readers as possible take it.
pub fn new_protocol(table: &NewTable<'_>) -> TableProtocol {
    let ntz = has_timestamp_ntz(table.schema).then(|| "timestampNtz".to_owned());
    let mut writer_features: BTreeSet<String> = ntz.clone().into_iter().collect();
    if !table.clustering_columns.is_empty() {
        // They bind writers only: any reader takes a clustered table.
        writer_features.extend([CLUSTERING_FEATURE, DOMAIN_METADATA_FEATURE].map(str::to_owned));
    }
    if writer_features.is_empty() {
        return TableProtocol {
            min_reader_version: 1,
            min_writer_version: 2,
            reader_features: None,
            writer_features: None,
        };
    }
    // Writer version 7 brings nothing along: a property binds writers only if its feature is listed.
    if table.properties.contains_key("delta.appendOnly") {
        writer_features.insert("appendOnly".to_owned());
    }
    TableProtocol {
        min_reader_version: if ntz.is_some() { 3 } else { 1 },
        min_writer_version: 7,
        reader_features: ntz.map(|ntz| BTreeSet::from([ntz])),
        writer_features: Some(writer_features),
    }
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
        json!({"protocol": to_value(&new_protocol(table))?}),
        json!({"metaData": to_value(&metadata)?}),
    ];
    if !clustering.is_empty() {
        let names: Vec<String> = clustering.iter().map(|column| column.join(".")).collect();
        commit_info["operationParameters"]["clusterBy"] = json_text(&names)?.into();
        rest.push(json!({"domainMetadata": {
            "domain": CLUSTERING_DOMAIN,
            "configuration": configuration(&clustering)?,
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
