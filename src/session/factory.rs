//! `CREATE EXTERNAL TABLE … STORED AS DELTA`.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::Result as DFResult;
use datafusion::logical_expr::CreateExternalTable;
use url::Url;

use super::clustering::{CLUSTERING_OPTION, resolve_clustering_columns};
use super::create::{NewTable, create_table};
use super::table_options::{TableOptions, table_options};
use super::types::{same_columns, same_partition_columns};
use crate::error::{Error, ErrorKind, Result};
use crate::read::clustering::clustering_columns;
use crate::read::column_mapping::{mapped_schema, physical_path};
use crate::read::provider::DisjointTableProvider;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// Opens the Delta table at a location or, where a column list is given and there is none,
/// creates it.
#[derive(Default)]
pub struct DeltaTableFactory {
    storage: HashMap<String, String>,
}

impl DeltaTableFactory {
    /// A factory whose tables use these options of the object store, unless their `OPTIONS` say
    /// otherwise.
    pub fn with_storage_options(storage: HashMap<String, String>) -> Self {
        Self { storage }
    }
}

impl fmt::Debug for DeltaTableFactory {
    /// Without the options, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaTableFactory").finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProviderFactory for DeltaTableFactory {
    async fn create(
        &self,
        _: &dyn Session,
        command: &CreateExternalTable,
    ) -> DFResult<Arc<dyn TableProvider>> {
        refuse_unknown_clauses(command)?;
        let mut options = table_options(&command.options)?;
        for (name, value) in &self.storage {
            let given = options.storage.entry(name.clone());
            given.or_insert_with(|| value.clone());
        }
        let provider = if command.schema.fields().is_empty() {
            open(command, options).await?
        } else {
            open_or_create(command, options).await?
        };
        Ok(Arc::new(provider))
    }
}

async fn open(
    command: &CreateExternalTable,
    options: TableOptions,
) -> Result<DisjointTableProvider> {
    if !command.table_partition_cols.is_empty() {
        return Err(Error::invalid(
            "PARTITIONED BY without a column list; leave it out, or give the columns of a new table",
        ));
    }
    let clustering = (!options.clustering_columns.is_empty()).then_some(CLUSTERING_OPTION);
    let properties = options.properties.keys().map(String::as_str);
    if let Some(property) = properties.chain(clustering).next() {
        return Err(Error::invalid(format!(
            "{property} can be set only when the table is created; give a column list or leave the \
             option out"
        )));
    }
    let handle = handle(command, options.storage, false).map_err(|error| {
        match command.locations.as_slice() {
            [location] if is_missing_folder(location) => no_table(location).with_source(error),
            _ => error,
        }
    })?;
    if !handle.exists().await? {
        return Err(no_table(handle.location()));
    }
    DisjointTableProvider::try_new(handle).await
}

fn no_table(location: &str) -> Error {
    Error::invalid(format!(
        "there is no Delta table at {location}; give a column list to create one"
    ))
}

fn is_missing_folder(location: &str) -> bool {
    let path = match Url::parse(location) {
        Ok(url) if url.scheme() == "file" => url.to_file_path().ok(),
        Ok(_) => None,
        Err(_) => Some(PathBuf::from(location)),
    };
    path.is_some_and(|path| !path.exists())
}

async fn open_or_create(
    command: &CreateExternalTable,
    options: TableOptions,
) -> Result<DisjointTableProvider> {
    let schema: &Schema = command.schema.as_arrow();
    let partition_columns = partition_columns(command);
    let table = NewTable {
        schema,
        partition_columns: &partition_columns,
        properties: &options.properties,
        clustering_columns: &options.clustering_columns,
    };
    // Before a folder is made for it.
    super::create::new_metadata(&table)?;
    let handle = handle(command, options.storage, true)?;
    if !handle.exists().await? {
        match create_table(handle.log_store(), &table).await {
            Ok(()) => {}
            // Another writer was first: its table is held to the same columns below.
            Err(error) if error.kind() == ErrorKind::Conflict || handle.exists().await? => {}
            Err(error) => return Err(error),
        }
    }
    let provider = DisjointTableProvider::try_new(handle).await?;
    let snapshot = provider.handle().newest().await?;
    same_columns(schema, &snapshot.schema)?;
    same_partition_columns(&partition_columns, &snapshot.metadata.partition_columns)?;
    for (name, value) in &options.properties {
        if snapshot.property(name) != Some(value) {
            return Err(Error::invalid(format!(
                "the table at {} is there already and has {name} = {}, not {value}; leave the \
                 option out",
                provider.handle().location(),
                snapshot.property(name).unwrap_or("nothing"),
            )));
        }
    }
    if !options.clustering_columns.is_empty() {
        same_clustering(&table, &provider, &snapshot).await?;
    }
    Ok(provider)
}

/// Refuses clustering columns that differ from those of a table that is there already.
async fn same_clustering(
    declared: &NewTable<'_>,
    provider: &DisjointTableProvider,
    snapshot: &TableSnapshot,
) -> Result<()> {
    let declared = resolve_clustering_columns(
        declared.schema,
        declared.partition_columns,
        declared.clustering_columns,
    )?;
    let mapped = mapped_schema(&snapshot.schema, &snapshot.metadata)?;
    let physical = declared
        .iter()
        .map(|column| physical_path(&mapped, column))
        .collect::<Result<Vec<_>>>()?;
    let existing = clustering_columns(provider.handle(), snapshot).await?;
    if physical == existing {
        return Ok(());
    }
    let names = |columns: &[Vec<String>]| match columns {
        [] => "not clustered".to_owned(),
        columns => {
            let names: Vec<String> = columns.iter().map(|column| column.join(".")).collect();
            format!("clustered by {}", names.join(", "))
        }
    };
    Err(Error::invalid(format!(
        "the table at {} is there already and is {}, not {}; leave the option {CLUSTERING_OPTION} \
         out",
        provider.handle().location(),
        names(&existing),
        names(&declared),
    )))
}

fn handle(
    command: &CreateExternalTable,
    storage: HashMap<String, String>,
    make_folder: bool,
) -> Result<Arc<TableHandle>> {
    let [location] = command.locations.as_slice() else {
        return Err(Error::invalid("a Delta table has one LOCATION"));
    };
    Ok(Arc::new(TableHandle::at(location, storage, make_folder)?))
}

/// The names in PARTITIONED BY. DataFusion hands them over as they are written, in quotes or not
/// folded to lower case, unlike those of the columns.
fn partition_columns(command: &CreateExternalTable) -> Vec<String> {
    let is_column = |name: &str| command.schema.as_arrow().field_with_name(name).is_ok();
    let name = |written: &String| {
        if is_column(written) {
            return written.clone();
        }
        for quote in ['"', '`'] {
            if let Some(rest) = written.strip_prefix(quote)
                && let Some(name) = rest.strip_suffix(quote)
            {
                return name.replace(&format!("{quote}{quote}"), &quote.to_string());
            }
        }
        let folded = written.to_ascii_lowercase();
        match is_column(&folded) {
            true => folded,
            false => written.clone(),
        }
    };
    command.table_partition_cols.iter().map(name).collect()
}

fn refuse_unknown_clauses(command: &CreateExternalTable) -> Result<()> {
    let refused = [
        (!command.order_exprs.is_empty(), "WITH ORDER"),
        (command.unbounded, "UNBOUNDED"),
        (
            command.constraints.iter().next().is_some(),
            "a key constraint",
        ),
        (!command.column_defaults.is_empty(), "DEFAULT"),
        (command.or_replace, "OR REPLACE"),
    ];
    for (present, clause) in refused {
        if present {
            return Err(Error::unsupported(format!(
                "{clause} is not supported for Delta tables; leave it out"
            )));
        }
    }
    Ok(())
}
