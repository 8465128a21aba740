//! One history: which statements, in which order they are planned and run, on which table; and the
//! run of it on a real table.

use std::fmt::Write;

use arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use delta_disjoint::ErrorKind;

use super::condition::Rows;
use super::judge::{Committed, Level, serial_order, sorted};
use super::random::Random;
use super::report::Tally;
use super::statements::Work;
use super::tables::{Shape, Tables, read};
use crate::support::{Planned, Table, count, kind_of, plan};

/// Everything about a history but its outcome.
#[derive(Debug, Clone)]
pub struct History {
    seed: u64,
    level: Level,
    shape: Shape,
    works: Vec<Work>,
    /// Each work twice: first it is planned, which pins it to a version, then it is run.
    schedule: Vec<usize>,
    /// How many of the last runs start at the same time.
    at_once: usize,
    /// Whether what lost is planned and run again in the end.
    again: bool,
    /// Whether the writers have a session each.
    sessions: bool,
    max_attempts: usize,
    statistics: Statistics,
}

/// What is left of the statistics that a commit wrote, once it is in the log. They stay JSON: a
/// table with other text there cannot be opened any more.
#[derive(Debug, Clone, Copy)]
enum Statistics {
    Whole,
    Absent,
    RowsOnly,
    MinimaOnly,
}

impl History {
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let writers = 2 + random.below(3);
        let works: Vec<Work> = (0..writers).map(|_| random.work()).collect();
        let mut schedule: Vec<usize> = (0..writers).chain(0..writers).collect();
        random.shuffle(&mut schedule);
        if random.once_in(3) {
            // All at one version.
            let mut runs: Vec<usize> = (0..writers).collect();
            random.shuffle(&mut runs);
            schedule = (0..writers).chain(runs).collect();
        }
        Self {
            seed,
            level: random.pick(&[Level::Serializable, Level::WriteSerializable]),
            shape: Shape::random(&mut random),
            works,
            schedule,
            at_once: if random.once_in(8) {
                2 + random.below(3)
            } else {
                0
            },
            again: random.once_in(2),
            sessions: random.once_in(3),
            max_attempts: random.pick(&[1, 2, 20]),
            statistics: random.pick(&[
                Statistics::Whole,
                Statistics::Whole,
                Statistics::Whole,
                Statistics::Whole,
                Statistics::Absent,
                Statistics::RowsOnly,
                Statistics::MinimaOnly,
            ]),
        }
    }

    /// Runs the history with or without data skipping and judges it. The error tells everything.
    pub async fn run(&self, tables: &Tables, skipping: bool) -> Result<Tally, String> {
        let table = tables.fresh(self.shape, self.level).await;
        let mut run = Run {
            history: self,
            rows: vec![read(&table)],
            story: format!(
                "{self:#?}\nskipping {skipping}, start {:?}\n",
                tables.rows(self.shape)
            ),
            table,
            skipping,
            base: 0,
            log: Vec::new(),
            tally: Tally::default(),
        };
        run.base = run.table.log().0;
        let outcome = run.all().await;
        outcome.map(|()| run.tally).map_err(|why| {
            format!(
                "seed {}: {why}\n{}\nreplay with HISTORY_LAW_SEED={} cargo test --test it \
                 history_law -- --nocapture",
                self.seed, run.story, self.seed
            )
        })
    }
}

/// Of every so many histories one is held against what `explain` says, which takes its time.
const ASKED: u64 = 10;

/// A history while it runs.
struct Run<'a> {
    history: &'a History,
    table: Table,
    skipping: bool,
    /// The version before the first statement, and the rows at each version from there on.
    base: u64,
    rows: Vec<Rows>,
    log: Vec<Committed<'a>>,
    tally: Tally,
    story: String,
}

/// A work that was planned.
struct Pending {
    statement: Option<Planned>,
    version: u64,
}

impl<'a> Run<'a> {
    async fn all(&mut self) -> Result<(), String> {
        let history = self.history;
        let sessions = self.sessions().await;
        let mut pending: Vec<Option<Pending>> = history.works.iter().map(|_| None).collect();
        let mut lost = Vec::new();
        let last = history.schedule.len() - history.at_once.min(history.works.len());
        for (step, &writer) in history.schedule.iter().enumerate() {
            if pending[writer].is_none() {
                let statement = match &history.works[writer] {
                    Work::Statement(statement) => {
                        Some(plan(&sessions[writer], &statement.text()).await)
                    }
                    Work::Optimize => None,
                };
                let version = self.table.log().0;
                self.tell(format_args!("plan {writer} at {version}"));
                pending[writer] = Some(Pending { statement, version });
                continue;
            }
            // What runs at once needs a plan of everybody before.
            if step >= last && pending.iter().all(Option::is_some) {
                let rest = history.schedule[step..].to_vec();
                return self.race(&rest, pending).await;
            }
            let Some(work) = pending[writer].replace(Pending {
                statement: None,
                version: 0,
            }) else {
                continue;
            };
            if self.run(writer, work).await? {
                lost.push(writer);
            }
        }
        if history.again {
            for writer in lost {
                let Work::Statement(statement) = &history.works[writer] else {
                    continue;
                };
                let version = self.table.log().0;
                let statement = plan(&sessions[writer], &statement.text()).await;
                let again = Pending {
                    statement: Some(statement),
                    version,
                };
                if self.run(writer, again).await? {
                    return Err(format!("{writer} conflicts with nobody"));
                }
            }
        }
        self.nothing_left_behind()?;
        self.judge(0)
    }

    /// The session of each writer.
    async fn sessions(&self) -> Vec<SessionContext> {
        let mut sessions = vec![self.table.ctx.clone()];
        if self.history.sessions {
            for _ in 1..self.history.works.len() {
                sessions.push(self.table.other_session().await);
            }
        }
        for ctx in &sessions {
            for option in [
                format!("SET delta.conflict_data_skipping = {}", self.skipping),
                format!(
                    "SET delta.max_commit_attempts = {}",
                    self.history.max_attempts
                ),
            ] {
                crate::support::run(ctx, &option).await;
            }
        }
        let mut writers = sessions.iter().cycle().cloned();
        self.history
            .works
            .iter()
            .filter_map(|_| writers.next())
            .collect()
    }

    /// Runs one work alone; whether it met a conflict.
    async fn run(&mut self, writer: usize, pending: Pending) -> Result<bool, String> {
        let work = &self.history.works[writer];
        let (before, live) = self.table.log();
        let Some(statement) = pending.statement else {
            let (_, metrics) = self
                .table
                .deltalake()
                .await
                .optimize()
                .await
                .map_err(|e| e.to_string())?;
            let after = self.table.log().0;
            self.tell(format_args!(
                "run {writer}: optimized {} files",
                metrics.num_files_removed
            ));
            for _ in before..after {
                self.rows.push(read(&self.table));
            }
            return self.same_rows(before).map(|()| false);
        };
        let outcome = if self.history.seed.is_multiple_of(ASKED) {
            statement.run().await
        } else {
            statement.run_unasked().await
        };
        let (after, live_after) = self.table.log();
        let raced = before > pending.version;
        let is_error = self.is_error(work, pending.version);
        match outcome {
            Ok(batches) => {
                let count = count(&batches);
                self.tell(format_args!(
                    "run {writer} as {after}, {count} rows: {}",
                    work.text()
                ));
                let changed = self.changes(work, count, pending.version)?;
                if after - before != u64::from(changed) {
                    return Err(format!("{writer} made {} commits", after - before));
                }
                if changed {
                    self.damage(after);
                    self.rows.push(read(&self.table));
                    self.log.push(Committed { work, count });
                    self.judge(0)?;
                }
                self.tally.committed(raced, changed);
                Ok(false)
            }
            Err(error) => {
                self.tell(format_args!("run {writer}: {}\n  {error}", work.text()));
                if (after, live_after) != (before, live) {
                    return Err(format!("{writer} failed and left something in the log"));
                }
                if is_error && kind_of(&error) == Some(ErrorKind::Invalid) {
                    self.tally.failed();
                    return Ok(false);
                }
                if kind_of(&error) != Some(ErrorKind::Conflict) {
                    return Err(format!("{writer} failed: {error}"));
                }
                if !raced {
                    return Err(format!("{writer} conflicts with nobody"));
                }
                self.tally.lost();
                Ok(true)
            }
        }
    }

    /// Runs the rest at the same time.
    async fn race(
        &mut self,
        writers: &[usize],
        mut pending: Vec<Option<Pending>>,
    ) -> Result<(), String> {
        let before = self.table.log().0;
        let mut running = Vec::new();
        for &writer in writers {
            match pending[writer].take() {
                Some(Pending {
                    statement: Some(statement),
                    version,
                }) => {
                    running.push((writer, version, tokio::spawn(statement.run_unasked())));
                }
                _ => self.tell(format_args!("skip {writer}")),
            }
        }
        let mut commits = 0;
        for (writer, version, task) in running {
            let work = &self.history.works[writer];
            let outcome: Result<Vec<RecordBatch>, DataFusionError> =
                task.await.map_err(|error| error.to_string())?;
            match outcome {
                Ok(batches) => {
                    let count = count(&batches);
                    self.tell(format_args!(
                        "at once {writer}, {count} rows: {}",
                        work.text()
                    ));
                    let changed = self.changes(work, count, version)?;
                    if changed {
                        self.log.push(Committed { work, count });
                        commits += 1;
                    }
                    self.tally.committed(true, changed);
                }
                Err(error) => {
                    self.tell(format_args!("at once {writer}: {}\n  {error}", work.text()));
                    match kind_of(&error) {
                        Some(ErrorKind::Invalid) if self.is_error(work, version) => {
                            self.tally.failed();
                        }
                        Some(ErrorKind::Conflict) => self.tally.lost(),
                        Some(ErrorKind::Contended) if self.history.max_attempts < writers.len() => {
                            self.tally.lost();
                        }
                        _ => return Err(format!("{writer} failed: {error}")),
                    }
                }
            }
        }
        let after = self.table.log().0;
        if after - before != commits as u64 {
            return Err(format!(
                "{commits} commits, but version {before} became {after}"
            ));
        }
        self.rows.push(read(&self.table));
        self.nothing_left_behind()?;
        self.judge(commits)
    }

    /// Takes from the statistics of `version` what this history does without.
    fn damage(&self, version: u64) {
        let statistics = self.history.statistics;
        if matches!(statistics, Statistics::Whole) {
            return;
        }
        self.table.change_log_entry(version, |action| {
            let Some(stats) = action.pointer_mut("/add/stats") else {
                return;
            };
            let text = stats.as_str().unwrap_or_default().to_owned();
            let mut whole: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            *stats = match statistics {
                Statistics::Whole => return,
                Statistics::Absent => serde_json::Value::Null,
                Statistics::RowsOnly => serde_json::json!({"numRecords": whole["numRecords"]})
                    .to_string()
                    .into(),
                Statistics::MinimaOnly => {
                    serde_json::json!({"minValues": whole["minValues"].take()})
                        .to_string()
                        .into()
                }
            };
        });
    }

    fn judge(&self, unordered: usize) -> Result<(), String> {
        let (start, end) = (&self.rows[0], self.newest());
        match serial_order(self.history.level, start, &self.log, unordered, end) {
            Some(_) => Ok(()),
            None => Err(format!(
                "no serial order leads to {:?}",
                sorted(end.clone())
            )),
        }
    }

    /// Whether a statement changes anything at the version it read, where it must have found the
    /// `count` rows that it reported.
    fn changes(&self, work: &Work, count: u64, version: u64) -> Result<bool, String> {
        let rows = &self.rows[(version - self.base) as usize];
        let Some((after, expected)) = work.alone(rows) else {
            return Err(format!(
                "{} reported {count} rows; it is an error for {rows:?}",
                work.text()
            ));
        };
        if count != expected {
            return Err(format!(
                "{} reported {count} rows; it changes {expected} of {rows:?}",
                work.text()
            ));
        }
        Ok(count > 0 || after.len() != rows.len())
    }

    /// Whether `work` cannot be carried out at `version`.
    fn is_error(&self, work: &Work, version: u64) -> bool {
        let rows = &self.rows[(version - self.base) as usize];
        work.alone(rows).is_none()
    }

    fn same_rows(&self, version: u64) -> Result<(), String> {
        let before = &self.rows[(version - self.base) as usize];
        if sorted(before.clone()) == sorted(self.newest().clone()) {
            Ok(())
        } else {
            Err(format!("{before:?} became {:?}", self.newest()))
        }
    }

    /// No file lies in the folder that no commit speaks of.
    fn nothing_left_behind(&self) -> Result<(), String> {
        let mut known = Vec::new();
        for version in 0..=self.table.log().0 {
            for action in self.table.log_entry(version) {
                let path = action["add"]["path"].as_str();
                known.extend(
                    path.and_then(|path| path.rsplit('/').next())
                        .map(str::to_owned),
                );
            }
        }
        let mut files = self.table.files_on_disk();
        files.retain(|file| !known.contains(file));
        if files.is_empty() {
            Ok(())
        } else {
            Err(format!("files that no commit speaks of: {files:?}"))
        }
    }

    fn newest(&self) -> &Rows {
        self.rows.last().unwrap_or(&EMPTY)
    }

    fn tell(&mut self, what: std::fmt::Arguments<'_>) {
        writeln!(self.story, "{what}").expect("text");
    }
}

static EMPTY: Rows = Rows::new();
