//! The history law: whatever several writers do to one table at the same time, the table ends up as
//! if those that committed had run one after the other, and those that did not had never been.
//!
//! Two to four writers run random statements that are planned at the same or at different versions
//! and run in a random order, at both isolation levels, on tables of several shapes. A plain
//! evaluator over whole tables in memory ([`condition`], [`statements`]) says what each serial order
//! makes of the table, and the judge ([`judge`]) looks for one that the level allows. It also checks
//! the counts that were reported, that nobody loses who met nobody, and that what lost left no row,
//! no commit and no file.
//!
//! - `HISTORY_LAW_CASES=20000`: so many histories, with the seeds from 0 on.
//! - `HISTORY_LAW_SEED=17`: this history alone. Those in which writers run at the same time may need
//!   more than one try.
//!
//! With `--nocapture` it prints how many statements committed, and how many of the same histories
//! do where only partition values tell files apart.

pub mod condition;
pub mod judge;
pub mod merge;
pub mod random;
mod report;
mod run;
pub mod statements;
pub mod tables;
mod transactions;

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use futures::StreamExt;

use self::report::Tally;
use self::run::History;
use self::tables::Tables;

/// Histories of a normal run.
const CASES: u64 = 500;

/// One history in so many also runs with data skipping off.
const COMPARED: u64 = 4;

/// Histories that run at the same time.
const CONCURRENCY: usize = 4;

#[test]
fn what_commits_has_a_serial_order_and_what_loses_leaves_nothing() {
    let seeds = seeds("HISTORY_LAW", CASES);
    let cases = seeds.end - seeds.start;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    let outcomes: Vec<Result<(Tally, Option<Tally>), String>> = runtime.block_on(async {
        let tables = Arc::new(Tables::create().await);
        futures::stream::iter(seeds)
            .map(|seed| {
                let tables = Arc::clone(&tables);
                let task = tokio::spawn(async move {
                    let history = History::of_seed(seed);
                    let skipping = history.run(&tables, true).await?;
                    if seed % COMPARED != 0 {
                        return Ok((skipping, None));
                    }
                    let partitions = history.run(&tables, false).await?;
                    Ok((skipping, Some(partitions)))
                });
                async move {
                    task.await
                        .unwrap_or_else(|error| Err(format!("seed {seed}: {error}")))
                }
            })
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await
    });
    let mut total = Tally::default();
    // The compared histories: with skipping and without.
    let mut compared = [Tally::default(); 2];
    let mut failures = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok((skipping, partitions)) => {
                total += skipping;
                if let Some(partitions) = partitions {
                    compared[0] += skipping;
                    compared[1] += partitions;
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    println!("{cases} histories: {total}");
    println!("one in {COMPARED} of them: {}", compared[0]);
    println!("by partition values alone: {}", compared[1]);
    assert!(
        failures.is_empty(),
        "{} of {cases} histories fail, the first:\n{}",
        failures.len(),
        failures[0]
    );
    if cases >= CASES {
        assert!(total.lost > 0, "nobody met anybody");
        assert!(
            compared[0].commit_rate() > compared[1].commit_rate(),
            "skipping gains nothing"
        );
    }
}

/// The seeds that the environment asks for by `<law>_SEED` or `<law>_CASES`; else so many as `cases`.
pub fn seeds(law: &str, cases: u64) -> Range<u64> {
    match variable::<u64>(&format!("{law}_SEED")) {
        Some(seed) => seed..seed + 1,
        None => 0..variable(&format!("{law}_CASES")).unwrap_or(cases),
    }
}

pub fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => panic!("{name} is `{text}`, which is no number"),
    }
}
