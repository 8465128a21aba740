//! `sql`: one statement of text, checked for what its plan would no longer show.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Result as DFResult;
use datafusion::common::config::ConfigExtension;
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{
    CopyToSource, CopyToStatement, ResetStatement, Statement as DFStatement,
};
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, Delete, FromTable, Merge, MergeAction, ObjectName, ObjectNamePart, Statement,
    TableFactor, Update, Visit, Visitor,
};

use super::transaction;
use crate::config::DeltaOptions;
use crate::error::{Error, Result};
use crate::plan::merge::with_insert_columns;
use crate::plan::rule::as_written;
use crate::read::provider::DisjointTableProvider;

/// Plans the one statement in `text`.
///
/// This is `ctx.sql(text)` with these differences:
///
/// - Statements are refused of which DataFusion's planner drops a part without a word: `SET` targets
///   with a dot or named twice (a MERGE may say the table's name or alias in front), the alias of a
///   DELETE, and what may stand behind a table's name
///   (`VERSION AS OF`, `TABLESAMPLE`, `PARTITION (…)` and the like).
/// - `BEGIN` / `START TRANSACTION`, `COMMIT` / `END` and `ROLLBACK` are accepted and act at once.
/// - `INSERT VALUES (…)` without column names in a MERGE means the columns that the table has now, also
///   where the statement is kept (`PREPARE`, the frame) and runs after they changed.
/// - `SET` targets without quotes fold to lower case, as all other names do.
/// - Tables whose columns were changed by another process are looked at again first.
/// - `CREATE EXTERNAL TABLE` takes `TIMESTAMP WITH TIME ZONE` for what it says, also in a session
///   that has no time zone.
/// - `RESET` takes this crate's options too.
/// - `PREPARE` keeps conditions from being simplified as if there were no NULL.
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
    let mut statement = state.sql_to_statement(text, &dialect)?;
    if let DFStatement::Statement(statement) = &statement
        && let Some(frame) = transaction::run(ctx, statement).await?
    {
        return Ok(frame);
    }
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
    if state
        .config()
        .options()
        .sql_parser
        .enable_ident_normalization
    {
        fold_set_names(&mut statement);
    }
    let open = transaction::current(ctx)?;
    let mut handles = Vec::new();
    for table in state.resolve_table_references(&statement)? {
        let Ok(provider) = ctx.table_provider(table).await else {
            // The planner says what is wrong with the name, where something is.
            continue;
        };
        let Some(delta) = provider.downcast_ref::<DisjointTableProvider>() else {
            continue;
        };
        let handle = delta.handle();
        match open
            .as_ref()
            .and_then(|open| open.base_of(handle.location()))
        {
            Some(base) => handle.show(&base),
            None => {
                if let Err(error) = handle.refresh().await {
                    // A table that is gone can still be dropped; other statements meet the error
                    // again.
                    tracing::debug!(%error, "the table could not be looked at before planning");
                }
            }
        }
        handles.push((Arc::clone(handle), handle.shown_changes()));
    }
    let plan = with_insert_columns(state.statement_to_plan(statement).await?)?;
    if plan.transformed
        && let Some((handle, _)) = handles
            .iter()
            .find(|(handle, changes)| handle.shown_changes() != *changes)
    {
        return Err(Error::unavailable(format!(
            "the columns of the table at {} changed while the statement was planned; run the \
             statement again",
            handle.location()
        ))
        .into());
    }
    let plan = match plan.data {
        // It is optimized without the rules of the analyzer.
        plan @ LogicalPlan::Statement(PlanStatement::Prepare(_)) => as_written(plan)?,
        plan => plan,
    };
    if open.is_none() {
        return ctx.execute_logical_plan(plan).await;
    }
    transaction::check_plan(&plan)?;
    let frame = ctx.execute_logical_plan(plan).await?;
    Ok(transaction::with_text(frame, text))
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
        DFStatement::CopyTo(CopyToStatement {
            source: CopyToSource::Query(query),
            ..
        }) => check_tables(query.as_ref()),
        _ => Ok(()),
    }
}

fn check_sql(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Update(update) => check_update(update)?,
        Statement::Delete(delete) => check_delete(delete)?,
        Statement::Merge(merge) => check_merge(merge)?,
        Statement::Explain { statement, .. } | Statement::Prepare { statement, .. } => {
            check_sql(statement)?;
        }
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. } => {
            return Err(Error::unsupported(format!(
                "{statement} inside another statement is not supported; run it by itself"
            )));
        }
        _ => {}
    }
    check_tables(statement)
}

/// DataFusion plans a table from its name and alias and drops whatever else stands there.
fn check_tables(tree: &impl Visit) -> Result<()> {
    struct Tables;

    impl Visitor for Tables {
        type Break = Error;

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Error> {
            match dropped_part(table) {
                Some((name, part)) => ControlFlow::Break(Error::unsupported(format!(
                    "{part} behind the table {name} is not supported; leave it out"
                ))),
                None => ControlFlow::Continue(()),
            }
        }
    }

    match tree.visit(&mut Tables) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn dropped_part(table: &TableFactor) -> Option<(String, &'static str)> {
    match table {
        TableFactor::Table {
            name,
            alias: _,
            args: _,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            // Hints change no result.
            index_hints: _,
        } => [
            (version.is_some(), "a version (time travel)"),
            (sample.is_some(), "TABLESAMPLE"),
            (!partitions.is_empty(), "PARTITION"),
            (*with_ordinality, "WITH ORDINALITY"),
            (json_path.is_some(), "a JSON path"),
            (!with_hints.is_empty(), "WITH (…)"),
        ]
        .into_iter()
        .find(|(present, _)| *present)
        .map(|(_, part)| (name.to_string(), part)),
        TableFactor::Derived {
            sample: Some(_), ..
        } => Some(("(SELECT …)".to_owned(), "TABLESAMPLE")),
        _ => None,
    }
}

/// Names without quotes fold to lower case; DataFusion forgets it for `SET` targets only.
fn fold_set_names(statement: &mut DFStatement) {
    match statement {
        DFStatement::Statement(statement) => fold_set_names_of_sql(statement),
        DFStatement::Explain(explain) => fold_set_names(&mut explain.statement),
        _ => {}
    }
}

fn fold_set_names_of_sql(statement: &mut Statement) {
    match statement {
        Statement::Explain { statement, .. } | Statement::Prepare { statement, .. } => {
            fold_set_names_of_sql(statement);
        }
        Statement::Update(update) => {
            for assignment in &mut update.assignments {
                if let AssignmentTarget::ColumnName(name) = &mut assignment.target {
                    for part in &mut name.0 {
                        if let ObjectNamePart::Identifier(name) = part
                            && name.quote_style.is_none()
                        {
                            name.value = name.value.to_ascii_lowercase();
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

/// DataFusion drops the alias: where WHERE uses it, it means something else or nothing.
fn check_delete(delete: &Delete) -> Result<()> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    for table in from {
        if let TableFactor::Table {
            name,
            alias: Some(alias),
            ..
        } = &table.relation
        {
            return Err(Error::unsupported(format!(
                "DELETE with the alias {} is not supported; leave it out and say {name} in WHERE",
                alias.name
            )));
        }
    }
    Ok(())
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
            // The name itself: with and without quotes it is the same column.
            let column = name
                .0
                .last()
                .and_then(ObjectNamePart::as_ident)
                .map(|ident| ident.value.to_lowercase());
            if !seen.insert(column) {
                return Err(Error::invalid(format!("SET names the column {name} twice")));
            }
        }
    }
    Ok(())
}

/// DataFusion takes a longer name in front of a column for the table's if its last part is.
fn check_merge(merge: &Merge) -> Result<()> {
    let TableFactor::Table { name, alias, .. } = &merge.table else {
        return Ok(());
    };
    let most = match alias {
        Some(_) => 1,
        None => name.0.len(),
    };
    for clause in &merge.clauses {
        let columns: Vec<&ObjectName> = match &clause.action {
            MergeAction::Update(update) => update
                .assignments
                .iter()
                .filter_map(|assignment| match &assignment.target {
                    AssignmentTarget::ColumnName(name) => Some(name),
                    AssignmentTarget::Tuple(_) => None,
                })
                .collect(),
            MergeAction::Insert(insert) => insert.columns.iter().collect(),
            MergeAction::Delete { .. } => vec![],
        };
        if let Some(column) = columns.iter().find(|column| column.0.len() > most + 1) {
            return Err(Error::invalid(format!(
                "MERGE: {column} is no column of {}; say it without a name in front",
                alias
                    .as_ref()
                    .map_or_else(|| name.to_string(), |alias| alias.name.to_string())
            )));
        }
    }
    Ok(())
}
