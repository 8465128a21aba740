//! `sql`: one statement of text, checked for what its plan would no longer show.

use std::collections::HashSet;

use datafusion::common::Result as DFResult;
use datafusion::common::config::ConfigExtension;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{AssignmentTarget, Statement, Update};

use crate::config::DeltaOptions;
use crate::error::{Error, Result};
use crate::read::provider::DisjointTableProvider;

/// Plans the one statement in `text`.
///
/// This is `ctx.sql(text)` with some differences:
///
/// - Statements whose meaning DataFusion's planner drops without a word are refused: `SET` targets
///   with a dot or named twice, and transactions, which are not there yet.
/// - Tables whose columns were changed by another process are looked at again first.
/// - `CREATE EXTERNAL TABLE` takes `TIMESTAMP WITH TIME ZONE` for what it says, also in a session
///   that has no time zone.
/// - `RESET` takes this crate's options too.
///
/// Queries and changes run when the returned frame is collected; DDL runs at once.
///
/// # Errors
///
/// DataFusion's errors for text it does not understand; this crate's, to be found with
/// [`Error::find`], for what is refused here.
///
/// ```
/// # async fn example() -> datafusion::error::Result<()> {
/// use delta_disjoint::{Error, ErrorKind, session, sql};
///
/// let ctx = session();
/// let error = sql(&ctx, "UPDATE t SET s.x = 1").await.unwrap_err();
/// assert_eq!(Error::find(&error).map(Error::kind), Some(ErrorKind::Unsupported));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub async fn sql(ctx: &SessionContext, text: &str) -> DFResult<DataFrame> {
    let mut state = ctx.state();
    let dialect = state.config().options().sql_parser.dialect;
    let statement = state.sql_to_statement(text, &dialect)?;
    check(&statement)?;
    if let DFStatement::Reset(ResetStatement::Variable(name)) = &statement
        && let Some(option) = delta_option(&name.to_string())
    {
        return reset(ctx, &option);
    }
    if matches!(statement, DFStatement::CreateExternalTable(_)) {
        // In a session without a time zone DataFusion plans TIMESTAMP WITH TIME ZONE as TIMESTAMP.
        let options = state.config_mut().options_mut();
        options
            .execution
            .time_zone
            .get_or_insert_with(|| "UTC".to_owned());
    }
    for table in state.resolve_table_references(&statement)? {
        let Ok(provider) = ctx.table_provider(table).await else {
            // The planner says what is wrong with the name, where something is.
            continue;
        };
        if let Some(delta) = provider.downcast_ref::<DisjointTableProvider>()
            && let Err(error) = delta.handle().refresh().await
        {
            // A table that is gone can still be dropped; other statements meet the error again.
            tracing::debug!(%error, "the table could not be looked at before planning");
        }
    }
    let plan = state.statement_to_plan(statement).await?;
    ctx.execute_logical_plan(plan).await
}

/// The name of an option of this crate without its prefix.
fn delta_option(name: &str) -> Option<String> {
    name.to_lowercase()
        .strip_prefix(DeltaOptions::PREFIX)?
        .strip_prefix('.')
        .map(str::to_owned)
}

/// DataFusion resets its own options only.
fn reset(ctx: &SessionContext, option: &str) -> DFResult<DataFrame> {
    let state = ctx.state_ref();
    let mut state = state.write();
    let extensions = &mut state.config_mut().options_mut().extensions;
    match extensions.get_mut::<DeltaOptions>() {
        Some(options) => options.reset(option)?,
        None => DeltaOptions::default().reset(option)?,
    }
    drop(state);
    ctx.read_empty()
}

fn check(statement: &DFStatement) -> Result<()> {
    match statement {
        DFStatement::Statement(statement) => check_sql(statement),
        DFStatement::Explain(explain) => check(&explain.statement),
        _ => Ok(()),
    }
}

fn check_sql(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Update(update) => check_update(update),
        Statement::Explain { statement, .. } | Statement::Prepare { statement, .. } => {
            check_sql(statement)
        }
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. } => Err(Error::unsupported(
            "transactions of several statements are not there yet; every statement commits by \
             itself",
        )),
        _ => Ok(()),
    }
}

/// DataFusion keeps the last part of a `SET` target and, of several assignments to one column, an
/// arbitrary one.
fn check_update(update: &Update) -> Result<()> {
    let mut seen = HashSet::new();
    for assignment in &update.assignments {
        let names = match &assignment.target {
            AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
            AssignmentTarget::Tuple(names) => names.as_slice(),
        };
        for name in names {
            if name.0.len() > 1 {
                return Err(Error::unsupported(format!(
                    "SET {name}: only whole columns of the table can be set, without the table's \
                     name in front; set a struct column as a whole"
                )));
            }
            if !seen.insert(name.to_string().to_lowercase()) {
                return Err(Error::invalid(format!("SET names the column {name} twice")));
            }
        }
    }
    Ok(())
}
