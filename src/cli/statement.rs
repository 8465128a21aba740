//! One statement: planned, run, printed, and called off where Ctrl-C asks for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionContext};
use delta_disjoint::commit::exec::CommitExec;
use delta_disjoint::{Cancellation, Error, ErrorKind, sql};
use futures::StreamExt;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::failure::Failure;
use super::interrupts::Interrupts;
use super::output::{Format, ResultPrinter};
use super::progress::{INTERVAL, Progress};

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
    let cancellation = Cancellation::new();
    cancellation.watch_statements_of(ctx);
    let mut progress = Progress::start();
    let mut ticks = ticks();
    let mut is_interrupted = false;

    let frame = {
        let mut planning = pin!(sql(ctx, text));
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => {
                    if makes_a_table(text) {
                        return Err(Failure::interrupted(
                            "interrupted; the table may have been made",
                        ));
                    }
                    if is_interrupted || !ends_a_transaction(text) {
                        return Err(given_up(is_interrupted));
                    }
                    is_interrupted = true;
                    cancellation.cancel();
                }
                _ = ticks.tick() => progress.show(None),
                frame = &mut planning => break frame,
            }
        }
    }
    .map_err(failure)?;
    let (plan, stream) = {
        let context = Arc::new(frame.task_ctx());
        let plan = tokio::select! {
            biased;
            () = interrupts.next() => return Err(given_up(is_interrupted)),
            plan = physical_plan(frame, &mut progress, &mut ticks) => plan.map_err(failure)?,
        };
        (
            Arc::clone(&plan),
            execute_stream(plan, context).map_err(failure)?,
        )
    };

    let mut stream = stream;
    let mut printer = ResultPrinter::new(format, stream.schema());
    let mut rows = 0;
    loop {
        tokio::select! {
            biased;
            () = interrupts.next() => {
                if is_interrupted || !is_change(plan.as_ref()) {
                    return Err(given_up(is_interrupted));
                }
                is_interrupted = true;
                cancellation.cancel();
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

async fn physical_plan(
    frame: DataFrame,
    progress: &mut Progress,
    ticks: &mut Interval,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let mut planning = pin!(frame.create_physical_plan());
    loop {
        tokio::select! {
            biased;
            plan = &mut planning => return plan,
            _ = ticks.tick() => progress.show(None),
        }
    }
}

/// Whether `plan` changes a Delta table, so that it is asked to stop and not just dropped.
fn is_change(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<CommitExec>()
        || plan
            .children()
            .iter()
            .any(|child| is_change(child.as_ref()))
}

/// Whether `text` is done once it is planned and is asked to stop as well.
fn ends_a_transaction(text: &str) -> bool {
    ["COMMIT", "END", "ROLLBACK"].contains(&words(text)[0].as_str())
}

fn makes_a_table(text: &str) -> bool {
    words(text) == ["CREATE", "EXTERNAL"]
}

/// The first two words.
fn words(text: &str) -> [String; 2] {
    let mut words = text.split_whitespace().map(str::to_ascii_uppercase);
    [(); 2].map(|()| words.next().unwrap_or_default())
}

fn given_up(is_second: bool) -> Failure {
    Failure::interrupted(if is_second {
        "interrupted a second time while a version was being written; whether it was, the table's \
         history tells"
    } else {
        "interrupted; no table was changed by it"
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
