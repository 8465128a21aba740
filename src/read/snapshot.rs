//! One version of one table: what a scan reads and what the conflict check compares with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use deltalake::kernel::Add;
use serde::{Deserialize, Serialize};

/// The `metaData` action of the log, as far as this crate compares and writes it.
///
/// Source: Delta protocol, "Change Metadata".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TableMetadata {
    /// Unique id of the table.
    pub id: String,
    /// Name given by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description given by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// File format; always Parquet.
    pub format: TableFormat,
    /// Schema in Delta's JSON form.
    pub schema_string: String,
    /// Partition columns by logical name, in order.
    pub partition_columns: Vec<String>,
    /// Table properties.
    pub configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

/// The `format` of a [`TableMetadata`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFormat {
    /// `parquet`.
    pub provider: String,
    /// Options of the format; none are known.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Default for TableFormat {
    fn default() -> Self {
        Self {
            provider: "parquet".to_owned(),
            options: BTreeMap::new(),
        }
    }
}

/// The `protocol` action of the log.
///
/// Source: Delta protocol, "Protocol Evolution". Feature lists are there only from reader version
/// 3 and writer version 7 on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TableProtocol {
    /// Least reader version.
    pub min_reader_version: i32,
    /// Least writer version.
    pub min_writer_version: i32,
    /// Features a reader must know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<BTreeSet<String>>,
    /// Features a writer must know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<BTreeSet<String>>,
}

/// One version of a table.
///
/// File paths in `files` are [canonical](crate::read::path::canonical_path).
#[derive(Debug, Clone)]
pub struct TableSnapshot {
    /// The version that was read.
    pub version: u64,
    /// Columns in table order, partition columns included.
    pub schema: SchemaRef,
    /// The table's metadata.
    pub metadata: TableMetadata,
    /// The table's protocol.
    pub protocol: TableProtocol,
    /// Live files.
    pub files: Arc<[Arc<Add>]>,
    /// How the log spells the paths that it does not spell as this crate would: text by canonical
    /// path.
    pub spellings: Arc<HashMap<String, String>>,
}

impl TableSnapshot {
    /// A table property by its full name, such as `delta.isolationLevel`.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.metadata.configuration.get(name).map(String::as_str)
    }
}
