//! Reading: what a scan of ours gives is what a table in memory with the same rows gives.

mod columns;
mod floats;
mod layout;
mod partitions;
mod random;

use datafusion::prelude::SessionContext;

use crate::support::{rows, text_rows, try_run};

/// How the Parquet source filters: not at all beyond pruning, or row by row too.
const PUSHDOWN: [bool; 2] = [false, true];

async fn push_filters(ctx: &SessionContext, on: bool) {
    rows(
        ctx,
        &format!("SET datafusion.execution.parquet.pushdown_filters = {on}"),
    )
    .await;
}

/// The sorted rows of `query`, or the error's first line.
async fn sorted(ctx: &SessionContext, query: &str) -> Vec<String> {
    match try_run(ctx, query).await {
        Ok(batches) => {
            let mut rows = text_rows(&batches);
            rows.sort();
            rows
        }
        Err(error) => vec![format!("error: {error}")],
    }
}

/// Runs `query`, in which `{t}` stands for the table, on the Delta table `t` and on `m`, its twin in
/// memory, and compares the rows in any order.
async fn same_as_memory(ctx: &SessionContext, query: &str, situation: &str) {
    let delta = sorted(ctx, &query.replace("{t}", "t")).await;
    let memory = sorted(ctx, &query.replace("{t}", "m")).await;
    assert!(
        !memory.first().is_some_and(|row| row.starts_with("error")),
        "{query}: {memory:?}"
    );
    assert_eq!(delta, memory, "{query} ({situation})");
}
