//! One statement: planned, run, printed, and called off where Ctrl-C asks for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement;
use delta_disjoint::commit::exec::CommitExec;
use delta_disjoint::{Cancellation, Error, ErrorKind, PutState, sql};
use futures::StreamExt;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::failure::Failure;
use super::interrupts::Interrupts;
use super::output::{Format, ResultPrinter};
use super::progress::{INTERVAL, Progress};
use super::secrets::Secrets;

/// A statement that ran.
#[derive(Debug)]
pub(crate) struct Done {
    /// Rows that it returned; none where it returns nothing.
    pub(crate) rows: Option<usize>,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// Whether Ctrl-C came too late to stop it.
    pub(crate) is_interrupted: bool,
}

/// Runs `text` in `ctx` and prints what it returns. Ctrl-C, of which `interrupts` tells, stops it and
/// leaves tables as they were; a version that is just being put is waited for, until the next Ctrl-C.
pub(crate) async fn run(
    ctx: &SessionContext,
    text: &str,
    format: Format,
    mut interrupts: Interrupts,
) -> Result<Done, Failure> {
    let secrets = Secrets::in_options(ctx, text);
    run_interruptibly(ctx, text, format, &mut interrupts)
        .await
        .map_err(|failure| failure.map(|message| secrets.hide(message)))
}

async fn run_interruptibly(
    ctx: &SessionContext,
    text: &str,
    format: Format,
    interrupts: &mut Interrupts,
) -> Result<Done, Failure> {
    let cancellation = Cancellation::new();
    cancellation.watch_statements_of(ctx);
    let mut progress = Progress::start();
    let mut ticks = ticks();
    let mut is_interrupted = false;

    let frame = {
        let at_once = AtOnce::of(ctx, text);
        let mut planning = pin!(sql(ctx, text));
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    match at_once {
                        AtOnce::Nothing => return Err(given_up(&cancellation, false)),
                        AtOnce::MakesTable => {
                            return Err(Failure::interrupted(
                                "interrupted; the table may have been made",
                            ));
                        }
                        AtOnce::EndsTransaction if is_interrupted => {
                            return Err(given_up(&cancellation, true));
                        }
                        AtOnce::EndsTransaction => {
                            is_interrupted = true;
                            cancellation.cancel();
                        }
                    }
                }
                _ = ticks.tick() => progress.show(None),
                frame = &mut planning => break frame,
            }
        }
    }
    .map_err(failure)?;
    // What acts at once leaves nothing to run: Ctrl-C comes too late.
    let is_done = matches!(frame.logical_plan(), LogicalPlan::EmptyRelation(_));
    let (plan, mut stream) = {
        let context = Arc::new(frame.task_ctx());
        let mut planning = pin!(frame.create_physical_plan());
        let plan = loop {
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    if !is_done {
                        return Err(given_up(&cancellation, false));
                    }
                    is_interrupted = true;
                }
                plan = &mut planning => break plan.map_err(failure)?,
                _ = ticks.tick() => progress.show(None),
            }
        };
        (
            Arc::clone(&plan),
            execute_stream(plan, context).map_err(failure)?,
        )
    };

    let mut printer = ResultPrinter::new(format, stream.schema());
    let mut rows = 0;
    loop {
        tokio::select! {
            biased;
            () = interrupts.next() => {
                if !is_done {
                    if is_interrupted || !is_change(plan.as_ref()) {
                        return Err(given_up(&cancellation, is_interrupted));
                    }
                    cancellation.cancel();
                }
                is_interrupted = true;
            }
            _ = ticks.tick() => progress.show(Some(plan.as_ref())),
            batch = stream.next() => match batch {
                None => break,
                Some(Err(error)) => return Err(failure(error)),
                Some(Ok(batch)) => {
                    rows += batch.num_rows();
                    if printer.is_streaming() {
                        progress.clear();
                    }
                    printer.write(batch)?;
                }
            },
        }
    }
    let elapsed = progress.elapsed();
    progress.clear();
    let has_columns = !stream.schema().fields().is_empty();
    printer.finish()?;
    Ok(Done {
        rows: has_columns.then_some(rows),
        elapsed,
        is_interrupted,
    })
}

fn ticks() -> Interval {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Whether `plan` changes a Delta table, so that it is asked to stop and not just dropped.
fn is_change(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<CommitExec>()
        || plan
            .children()
            .iter()
            .any(|child| is_change(child.as_ref()))
}

/// What a statement does to Delta tables while it is planned. All else does it when it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtOnce {
    Nothing,
    MakesTable,
    /// It is asked to stop as well, and not just dropped.
    EndsTransaction,
}

impl AtOnce {
    /// Parses `text` as it will be parsed to run, so that no spelling of a statement is missed.
    fn of(ctx: &SessionContext, text: &str) -> Self {
        let state = ctx.state();
        let dialect = state.config().options().sql_parser.dialect;
        match state.sql_to_statement(text, &dialect) {
            Ok(DFStatement::CreateExternalTable(_)) => Self::MakesTable,
            Ok(DFStatement::Statement(statement))
                if matches!(
                    statement.as_ref(),
                    Statement::Commit { .. } | Statement::Rollback { .. }
                ) =>
            {
                Self::EndsTransaction
            }
            // What is no statement does nothing.
            _ => Self::Nothing,
        }
    }
}

/// The end of a statement that is dropped by the first Ctrl-C, or by the second one since it did not
/// stop at the first.
fn given_up(cancellation: &Cancellation, is_second: bool) -> Failure {
    Failure::interrupted(match (is_second, cancellation.put_state()) {
        (false, _) => "interrupted; no table was changed by it",
        (true, PutState::NotBegun) => {
            "interrupted a second time; no table was changed by it, but files that it wrote may be \
             left in the table's folder"
        }
        (true, PutState::Done) => {
            "interrupted a second time; the statement is done, its version is written"
        }
        (true, _) => {
            "interrupted a second time while a version was being written; it is not known whether \
             it was, the table's history tells"
        }
    })
}

fn failure(error: DataFusionError) -> Failure {
    match Error::find(&error) {
        Some(error) if error.kind() == ErrorKind::Cancelled => {
            Failure::interrupted(format!("interrupted: {}", error.message()))
        }
        _ => error.into(),
    }
}
