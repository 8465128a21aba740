//! The session of a run: its tables, and how they reach their object store.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use delta_disjoint::commit::SessionScope;
use delta_disjoint::session::DeltaTableFactory;
use delta_disjoint::{session, sql};

use super::Environment;
use super::failure::Failure;

/// A table to open.
#[derive(Debug, Clone)]
pub(crate) struct NamedTable {
    name: String,
    location: String,
}

impl NamedTable {
    /// Reads `NAME=LOCATION`.
    pub(crate) fn parse(given: &str) -> Result<Self, Failure> {
        match given.split_once('=') {
            // The `=` of a URL's query parts no name from a location.
            Some((name, location))
                if !name.is_empty() && !name.contains("://") && !location.is_empty() =>
            {
                Ok(Self {
                    name: name.to_owned(),
                    location: location.to_owned(),
                })
            }
            _ => Err(Failure::arguments(format!(
                "--table {given}: expected NAME=LOCATION, such as orders=/data/orders"
            ))),
        }
    }
}

/// A session with `tables`, whose `CREATE EXTERNAL TABLE` uses the storage options of the command as
/// well.
pub(crate) async fn open(
    tables: &[NamedTable],
    environment: &Environment,
) -> Result<SessionContext, Failure> {
    let ctx = session();
    {
        let state = ctx.state_ref();
        let mut state = state.write();
        let factory = Arc::new(DeltaTableFactory::with_storage_options(
            environment.storage.to_map(),
        ));
        for name in ["DELTA", "DELTATABLE"] {
            let factory = Arc::clone(&factory);
            state.table_factories_mut().insert(name.to_owned(), factory);
        }
        // For SHOW TABLES and SHOW of an option.
        let options = state.config_mut().options_mut();
        options.catalog.information_schema = true;
    }
    let mut interrupts = environment.interrupts.clone();
    for table in tables {
        let name = table.name.replace('"', "\"\"");
        let location = table.location.replace('\'', "''");
        let open =
            format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS DELTA LOCATION '{location}'");
        tokio::select! {
            () = interrupts.next() => {
                return Err(Failure::interrupted("interrupted while tables were opened"));
            }
            opened = sql(&ctx, &open) => {
                opened.map_err(|error| Failure::from(error).at(&format!("table {}", table.name)))?;
            }
        }
    }
    Ok(ctx)
}

/// Whether `ctx` is in a transaction.
pub(crate) fn is_in_transaction(ctx: &SessionContext) -> bool {
    SessionScope::of(ctx.state_ref().read().config(), &ctx.session_id())
        .is_some_and(|scope| scope.current().is_some())
}

/// `failure` after the open transaction, if there is one, was rolled back.
pub(crate) async fn rolled_back(ctx: &SessionContext, failure: Failure) -> Failure {
    match roll_back(ctx).await {
        Ok(false) => failure,
        Ok(true) => failure.and("the open transaction was rolled back"),
        Err(error) => failure.and(error.message().unwrap_or_default()),
    }
}

/// Rolls back what is open; whether anything was.
pub(crate) async fn roll_back(ctx: &SessionContext) -> Result<bool, Failure> {
    if !is_in_transaction(ctx) {
        return Ok(false);
    }
    sql(ctx, "ROLLBACK").await?;
    Ok(true)
}
