//! The history law over deltalake's operations: with the hook, what several writers leave is what
//! some serial order of those that committed leaves. The evaluator and the judge are those of
//! [`crate::history_law`].
//!
//! Some of the same histories also run without the hook, to count how many of them go wrong.
//!
//! - `HOOK_LAW_CASES=5000`: so many histories, with the seeds from 0 on.
//! - `HOOK_LAW_SEED=17`: this history alone.
//! - `HOOK_LAW_SHOW=1`: prints those that go wrong without it.

mod works;

use std::fmt::Write;
use std::sync::Arc;

use delta_disjoint::hook;
use deltalake::DeltaTable;
use futures::StreamExt;

use self::works::{Run, Writer};
use super::sides::outcome;
use crate::history_law::condition::Rows;
use crate::history_law::judge::{Committed, Level, serial_order, sorted};
use crate::history_law::random::Random;
use crate::history_law::tables::{Shape, Tables, read};
use crate::history_law::{seeds, variable};
use crate::support::Table;

/// Histories of a normal run.
const CASES: u64 = 500;

/// Histories that run at the same time.
const CONCURRENCY: usize = 4;

/// Everything about a history but its outcome.
#[derive(Debug)]
struct History {
    seed: u64,
    level: Level,
    shape: Shape,
    writers: Vec<Writer>,
    /// Each writer twice: first it loads the table, then it runs.
    schedule: Vec<usize>,
}

/// How a run ended; the error tells everything.
type Judged = Result<Tally, String>;

/// How the operations of one run ended.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    committed: usize,
    lost: usize,
    failed: usize,
}

impl History {
    fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xB00C);
        let writers: Vec<Writer> = (0..2 + usize::from(random.once_in(3)))
            .map(|_| Writer::random(&mut random))
            .collect();
        let mut runs: Vec<usize> = (0..writers.len()).collect();
        random.shuffle(&mut runs);
        let mut schedule: Vec<usize> = (0..writers.len()).chain(runs).collect();
        // In most histories all writers start at one version.
        if random.once_in(4) {
            random.shuffle(&mut schedule);
        }
        Self {
            seed,
            level: random.pick(&[Level::Serializable, Level::WriteSerializable]),
            shape: Shape::random(&mut random),
            writers,
            schedule,
        }
    }

    async fn run(&self, tables: &Tables, hooked: bool) -> Judged {
        let table = tables.bare(self.shape, self.level);
        let mut story = format!("{self:#?}\nhooked {hooked}, start {:?}\n", read(&table));
        self.play(&table, hooked, &mut story)
            .await
            .map_err(|why| format!("seed {}: {why}\n{story}", self.seed))
    }

    async fn play(&self, table: &Table, hooked: bool, story: &mut String) -> Result<Tally, String> {
        let mut tally = Tally::default();
        // Loaded once a version: the same for all that load it.
        let mut newest = (table.deltalake().await, table.log().0, read(table));
        let start = newest.2.clone();
        let mut log: Vec<Committed<'_>> = Vec::new();
        let mut loaded: Vec<Option<(DeltaTable, Rows)>> =
            self.writers.iter().map(|_| None).collect();
        for &number in &self.schedule {
            let writer = &self.writers[number];
            let Some((handle, rows)) = loaded[number].take() else {
                tell(story, format_args!("load {number} at {}", newest.1));
                loaded[number] = Some((newest.0.clone(), newest.2.clone()));
                continue;
            };
            let before = newest.1;
            let raced = handle.version() != Some(before);
            let handle = match (hooked, writer.is_declared()) {
                (false, _) => handle,
                (true, false) => hook::guard(handle).await.map_err(|e| e.to_string())?,
                (true, true) => {
                    let guard = hook::guard(handle).with_blind_input();
                    guard.await.map_err(|e| e.to_string())?
                }
            };
            let run = writer.run(handle, &rows).await;
            let version = table.log().0;
            tell(
                story,
                format_args!("run {number} as {version}: {}\n  {run:?}", writer.text()),
            );
            match run {
                Run::Done => {
                    let Some((_, count)) = writer.work.alone(&rows) else {
                        return Err(format!("{number} cannot be done on {rows:?}"));
                    };
                    if version > before {
                        tally.committed += 1;
                        log.push(Committed {
                            work: &writer.work,
                            count,
                        });
                    } else if writer
                        .work
                        .alone(&rows)
                        .is_some_and(|(after, _)| sorted(after) != sorted(rows.clone()))
                    {
                        return Err(format!("{number} changes {rows:?}, but did not commit"));
                    }
                }
                Run::Failed(error) => {
                    if version != before {
                        return Err(format!("{number} failed and left something in the log"));
                    }
                    let is_conflict = error.starts_with("Concurrent");
                    if is_conflict && !raced {
                        return Err(format!("{number} conflicts with nobody"));
                    }
                    if is_conflict {
                        tally.lost += 1;
                    } else if writer.work.alone(&rows).is_some() {
                        return Err(format!("{number} failed: {error}"));
                    } else {
                        tally.failed += 1;
                    }
                }
            }
            if version == before {
                continue;
            }
            newest = (table.deltalake().await, version, read(table));
            let end = &newest.2;
            if serial_order(self.level, &start, &log, 0, end).is_none() {
                let end = sorted(end.clone());
                return Err(format!("no serial order leads to {end:?}"));
            }
        }
        Ok(tally)
    }
}

#[test]
fn what_commits_with_the_hook_has_a_serial_order() {
    let seeds = seeds("HOOK_LAW", CASES);
    let cases = seeds.end - seeds.start;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    let outcomes: Vec<(Judged, Judged)> = runtime.block_on(async {
        let tables = Arc::new(Tables::create().await);
        futures::stream::iter(seeds)
            .map(|seed| {
                let tables = Arc::clone(&tables);
                let task = tokio::spawn(async move {
                    let history = History::of_seed(seed);
                    let with = history.run(&tables, true).await;
                    (with, history.run(&tables, false).await)
                });
                async move {
                    task.await.unwrap_or_else(|error| {
                        let failure = Err(format!("seed {seed}: {error}"));
                        (failure.clone(), failure)
                    })
                }
            })
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await
    });
    let mut failures = [Vec::new(), Vec::new()];
    let mut totals = [Tally::default(); 2];
    for (with, without) in outcomes {
        for (side, result) in [with, without].into_iter().enumerate() {
            match result {
                Ok(tally) => {
                    totals[side].committed += tally.committed;
                    totals[side].lost += tally.lost;
                    totals[side].failed += tally.failed;
                }
                Err(failure) => failures[side].push(failure),
            }
        }
    }
    let [with, without] = failures;
    println!(
        "{cases} histories with the hook: {} go wrong, {:?}",
        with.len(),
        totals[0]
    );
    println!(
        "the same histories without the hook: {} go wrong, {:?}",
        without.len(),
        totals[1]
    );
    if variable::<u8>("HOOK_LAW_SHOW").is_some() {
        without.iter().for_each(|failure| println!("{failure}"));
    }
    assert!(
        with.is_empty(),
        "{} of {cases} histories go wrong, the first:\n{}",
        with.len(),
        with[0]
    );
    if cases >= CASES {
        assert!(!without.is_empty(), "the histories show nothing");
        assert!(totals[0].lost > 0 && totals[0].committed > totals[0].lost);
    }
}

fn tell(story: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(story, "{what}").expect("text");
}

/// As [`outcome`], for what is done or failed.
fn ended<T>(result: Result<T, deltalake::DeltaTableError>) -> Run {
    match outcome(result).as_str() {
        "committed" => Run::Done,
        error => Run::Failed(error.to_owned()),
    }
}
