//! `BEGIN`, `COMMIT`, `ROLLBACK`: what DataFusion parses and does nothing about.

use std::sync::Arc;

use datafusion::common::Result as DFResult;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::sqlparser::ast::{
    Statement, TransactionAccessMode, TransactionIsolationLevel, TransactionMode as Mode,
};

use crate::cancellation::Cancellation;
use crate::commit::session_transactions::{ContextState, StatementText};
use crate::commit::{CommitOptions, OpenTransaction, SessionScope, TransactionMode};
use crate::config::DeltaOptions;
use crate::error::{Error, Result};
use crate::plan::change_feed::ChangeFeed;

/// Runs `statement` if it begins or ends a transaction.
pub(super) async fn run(
    ctx: &SessionContext,
    statement: &Statement,
) -> DFResult<Option<DataFrame>> {
    match statement {
        Statement::StartTransaction {
            modes,
            modifier,
            statements,
            exception,
            has_end_keyword,
            begin: _,
            transaction: _,
        } => {
            if modifier.is_some()
                || !statements.is_empty()
                || exception.is_some()
                || *has_end_keyword
            {
                return Err(Error::unsupported(format!(
                    "{statement}: only BEGIN or START TRANSACTION, with ISOLATION LEVEL, READ ONLY \
                     and READ WRITE, is supported"
                ))
                .into());
            }
            scope(ctx, statement)?.begin(OpenTransaction::new(mode(modes)?), &shared_state(ctx))?;
        }
        Statement::Commit {
            chain,
            end: _,
            modifier,
        } => {
            if *chain || modifier.is_some() {
                return Err(chain_refused(statement).into());
            }
            let options = options(ctx);
            scope(ctx, statement)?
                .end(&statement.to_string(), &shared_state(ctx))?
                .commit(options, &ChangeFeed::new(ctx.task_ctx()))
                .await?;
        }
        Statement::Rollback { chain, savepoint } => {
            if *chain {
                return Err(chain_refused(statement).into());
            }
            if savepoint.is_some() {
                return Err(savepoint_refused(statement).into());
            }
            scope(ctx, statement)?
                .end(&statement.to_string(), &shared_state(ctx))?
                .roll_back()
                .await;
        }
        Statement::Savepoint { .. } | Statement::ReleaseSavepoint { .. } => {
            return Err(savepoint_refused(statement).into());
        }
        _ => return Ok(None),
    }
    let nothing = LogicalPlanBuilder::empty(false).build()?;
    Ok(Some(DataFrame::new(ctx.state(), nothing)))
}

/// The transaction that the session is in.
///
/// # Errors
///
/// `Invalid` if another context with the same session id began it.
pub(super) fn current(ctx: &SessionContext) -> Result<Option<Arc<OpenTransaction>>> {
    session_scope(ctx).map_or(Ok(None), |scope| scope.current_of(&shared_state(ctx)))
}

/// Refuses what a transaction cannot undo.
pub(super) fn check_plan(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Ddl(ddl) => Err(Error::unsupported(format!(
            "{} acts at once and could not be rolled back; run it outside of the transaction",
            ddl.name()
        ))),
        _ => Ok(()),
    }
}

/// `frame`, which knows its text: a conflict at COMMIT names the statement.
pub(super) fn with_text(frame: DataFrame, text: &str) -> DataFrame {
    let (mut state, plan) = frame.into_parts();
    state
        .config_mut()
        .set_extension(Arc::new(StatementText::new(text)));
    DataFrame::new(state, plan)
}

/// What clones of `ctx` share, and contexts that were made from a copy of its state do not.
fn shared_state(ctx: &SessionContext) -> ContextState {
    ctx.state_ref()
}

fn session_scope(ctx: &SessionContext) -> Option<SessionScope> {
    SessionScope::of(ctx.state_ref().read().config(), &ctx.session_id())
}

fn scope(ctx: &SessionContext, statement: &Statement) -> Result<SessionScope> {
    session_scope(ctx).ok_or_else(|| {
        Error::invalid(format!(
            "{statement} needs a session of this crate; make it with delta_disjoint::session() or \
             put it onto a SessionStateBuilder with delta_disjoint::register()"
        ))
    })
}

fn options(ctx: &SessionContext) -> CommitOptions {
    let state = ctx.state_ref();
    let state = state.read();
    CommitOptions {
        cancellation: Cancellation::of(state.config()),
        ..CommitOptions::from_session(&DeltaOptions::from_config(state.config_options()))
    }
}

fn mode(modes: &[Mode]) -> Result<TransactionMode> {
    let mut asked = TransactionMode::default();
    for mode in modes {
        match mode {
            Mode::AccessMode(access) => {
                asked.read_only = *access == TransactionAccessMode::ReadOnly;
            }
            Mode::IsolationLevel(TransactionIsolationLevel::Serializable) => {
                asked.serializable = true;
            }
            Mode::IsolationLevel(level) => {
                return Err(Error::unsupported(format!(
                    "ISOLATION LEVEL {level} is not there: a transaction runs at the level of the \
                     table (delta.isolationLevel), which is WriteSerializable or Serializable, or \
                     at least at ISOLATION LEVEL SERIALIZABLE; leave the level out or ask for that"
                )));
            }
        }
    }
    Ok(asked)
}

fn chain_refused(statement: &Statement) -> Error {
    Error::unsupported(format!(
        "{statement}: neither CHAIN nor a modifier is supported; end the transaction and BEGIN the \
         next one"
    ))
}

fn savepoint_refused(statement: &Statement) -> Error {
    Error::unsupported(format!(
        "{statement}: savepoints are not supported; a statement that fails leaves no change behind, \
         and ROLLBACK undoes the whole transaction"
    ))
}
