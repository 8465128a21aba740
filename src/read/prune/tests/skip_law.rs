//! The skip law: **no skipped file holds a row that passes the predicate**, for random columns of
//! all types, rows, statistics and predicates. And its other half: of the files that another judge
//! can rule out by the same statistics, nearly all are skipped.
//!
//! A case is one predicate against one file. `SKIP_LAW_CASES` sets how many there are,
//! `SKIP_LAW_SEED` runs one round alone; a failure prints the seed of its round.

mod damage;
mod grammar;
mod judge;
mod partitions;
mod planning;
mod rows;
mod values;
mod writers;

use std::collections::HashMap;

use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use deltalake::kernel::Add;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::judge::Judge;
use self::rows::{Rows, Table};
use self::writers::{Statistics, Writer};
use crate::read::predicate::{ReadPredicate, sql_text};
use crate::read::prune::{Outcome, PruneFile, Visible, explain, prune};
use crate::read::statistics::{EXACT_STATISTICS_TAG, NAN_FREE_TAG};
use crate::read::test_support::{tagged, with_deletions};

const CASES: usize = 20_000;
const FILES: usize = 16;
const PREDICATES: usize = 10;

/// Rounds whose conditions are written as text.
const TEXT_ROUNDS: u64 = 300;

/// The least share of the files that can be ruled out which are.
const SHARE: f64 = 0.95;

/// What came out of some rounds.
#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    skipped: usize,
    provable: usize,
    provable_skipped: usize,
    /// Rows to which DataFusion's planning gave another answer than the condition as written.
    changed: usize,
}

#[test]
fn no_skipped_file_holds_a_row_that_passes() {
    let state = SessionContext::new().state();
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let mut tally = Tally::default();
    if let Some(seed) = number("SKIP_LAW_SEED") {
        round(&state, seed, &mut tally);
        println!("seed {seed}: {tally:?}");
        return;
    }
    let cases = number("SKIP_LAW_CASES").map_or(CASES, |cases| cases as usize);
    let mut seed = 0;
    while tally.cases < cases {
        round(&state, seed, &mut tally);
        seed += 1;
    }
    let share = tally.provable_skipped as f64 / tally.provable as f64;
    println!(
        "seeds 0 to {}: {tally:?}, {:.2} % of what can be proved",
        seed - 1,
        share * 100.0
    );
    assert!(share >= SHARE, "{share}");
}

/// One table, its files, and predicates against all of them.
fn round(state: &SessionState, seed: u64, tally: &mut Tally) {
    let mut random = StdRng::seed_from_u64(seed);
    let random = &mut random;
    let table = Table::random(random);
    let rows: Vec<Rows> = (0..FILES).map(|_| Rows::random(&table, random)).collect();
    let files: Vec<File> = rows
        .iter()
        .map(|rows| File::random(&table, rows, random))
        .collect();
    let batch = table.batch(&rows);
    let mut owner = Vec::with_capacity(batch.num_rows());
    for (file, rows) in rows.iter().enumerate() {
        owner.extend(vec![file; rows.live().len()]);
    }
    let candidates: Vec<PruneFile<'_>> = files
        .iter()
        .map(|file| PruneFile {
            add: &file.add,
            exact_writer: file.exact_writer,
        })
        .collect();
    let schema = &table.statistics.schema;
    for _ in 0..PREDICATES {
        let depth = random.random_range(0..4);
        let pred = grammar::random(&table, depth, random);
        let condition = pred.to_expr(&table);
        let filters = match planning::filters_of(state, schema, condition.clone()) {
            Ok(Some(filters)) => filters,
            // Nothing is read, or the condition is none.
            Ok(None) | Err(_) => continue,
        };
        let coerced = planning::coerced(schema, condition).expect("coerced");
        // What the query evaluates, after all of the planning, and what was written.
        let passes = all_pass(&batch, &filters);
        let written = planning::passes(&batch, &coerced).expect("evaluated");
        tally.changed += (0..passes.len())
            .filter(|row| passes[*row] != written[*row])
            .count();
        let predicate = ReadPredicate::new(&filters, &table.statistics);
        let decisions = prune(&predicate, &candidates, Visible::Statistics);
        let by_partition = prune(&predicate, &candidates, Visible::PartitionValues);
        // Planning takes NOT, short lists and much else apart; the law holds without it as well.
        let plain = ReadPredicate::new(std::slice::from_ref(&coerced), &table.statistics);
        let unplanned = prune(&plain, &candidates, Visible::Statistics);
        // What explains the outcome comes to the same.
        for (file, outcome) in candidates.iter().zip(&decisions).take(1) {
            let decision = explain(&predicate, file, Visible::Statistics);
            assert_eq!(
                decision.is_skip(),
                outcome.is_skip(),
                "{predicate}: {decision:?}"
            );
        }
        for (file, decision) in decisions.iter().enumerate() {
            let holds = |decision: &Outcome, predicate: &ReadPredicate, passes: &[bool]| {
                let matches = (0..owner.len()).any(|row| owner[row] == file && passes[row]);
                assert!(
                    !decision.is_skip() || !matches,
                    "SKIP_LAW_SEED={seed} runs this round alone\nwritten: {coerced}\n{}",
                    report(predicate, &files[file], &rows[file], decision),
                );
            };
            holds(decision, &predicate, &passes);
            holds(&by_partition[file], &predicate, &passes);
            holds(&unplanned[file], &plain, &written);
            tally.cases += 1;
            tally.skipped += usize::from(decision.is_skip());
            if files[file].judge.disproves(&pred) {
                tally.provable += 1;
                tally.provable_skipped += usize::from(decision.is_skip());
                if !decision.is_skip() && std::env::var_os("SKIP_LAW_SHOW").is_some() {
                    println!(
                        "kept: {pred:?}\n{}",
                        report(&predicate, &files[file], &rows[file], decision)
                    );
                }
            }
        }
    }
}

/// What a read shows of itself can be asked again: the same rows pass, and the same files are skipped.
#[test]
fn a_condition_as_text_says_the_same() {
    let state = SessionContext::new().state();
    let (mut said, mut mute) = (0, 0);
    for seed in 0..TEXT_ROUNDS {
        let mut random = StdRng::seed_from_u64(seed);
        let random = &mut random;
        let table = Table::random(random);
        let rows: Vec<Rows> = (0..FILES).map(|_| Rows::random(&table, random)).collect();
        let files: Vec<File> = rows
            .iter()
            .map(|rows| File::random(&table, rows, random))
            .collect();
        let batch = table.batch(&rows);
        let candidates: Vec<PruneFile<'_>> = files
            .iter()
            .map(|file| PruneFile {
                add: &file.add,
                exact_writer: file.exact_writer,
            })
            .collect();
        let schema = &table.statistics.schema;
        for _ in 0..PREDICATES {
            let depth = random.random_range(0..4);
            let condition = grammar::random(&table, depth, random).to_expr(&table);
            let Ok(Some(filters)) = planning::filters_of(&state, schema, condition) else {
                continue;
            };
            let Some(text) = text_of_all(&filters) else {
                mute += 1;
                continue;
            };
            let parsed = planning::parsed(&state, schema, &text)
                .unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
            let again = planning::filters_of(&state, schema, parsed.clone())
                .unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
            said += 1;
            let Some(again) = again else {
                // Found out that it is never true.
                assert!(
                    !all_pass(&batch, &filters).contains(&true),
                    "seed {seed}: {text}"
                );
                continue;
            };
            assert_eq!(
                all_pass(&batch, &filters),
                all_pass(&batch, &again),
                "seed {seed}: {filters:?}\n{text}\n{again:?}"
            );
            let skips = |filters: &[Expr]| -> Vec<bool> {
                let predicate = ReadPredicate::new(filters, &table.statistics);
                let decisions = prune(&predicate, &candidates, Visible::Statistics);
                decisions.iter().map(|it| it.is_skip()).collect()
            };
            assert_eq!(
                skips(&filters),
                skips(&again),
                "seed {seed}: {filters:?}\n{text}\n{again:?}"
            );
        }
    }
    println!("{said} conditions as text, {mute} without");
    assert!(said > 2_000 && mute * 20 < said, "{said}, {mute}");
}

/// `filters`, ANDed, as SQL; nothing where one of them has no such text.
fn text_of_all(filters: &[Expr]) -> Option<String> {
    let all = filters.iter().cloned().reduce(Expr::and)?;
    sql_text(&all)
}

/// Whether each row passes all of `filters`.
fn all_pass(batch: &arrow::array::RecordBatch, filters: &[Expr]) -> Vec<bool> {
    let mut passes = vec![true; batch.num_rows()];
    for filter in filters {
        let one = planning::passes(batch, filter).expect("evaluated");
        for (all, one) in passes.iter_mut().zip(one) {
            *all &= one;
        }
    }
    passes
}

fn report(predicate: &ReadPredicate, file: &File, rows: &Rows, decision: &Outcome) -> String {
    format!(
        "predicate: {predicate}\nstatistics: {:?}\npartition values: {:?}\ntags: {:?}, exact \
         writer: {}, deletion vector: {}\nlive rows: {:?}\ndecision: {decision:?}",
        file.add.stats,
        file.add.partition_values,
        file.add.tags,
        file.exact_writer,
        file.add.deletion_vector.is_some(),
        rows.live(),
    )
}

/// A file as the log describes it, and as the judge sees it.
struct File {
    add: Add,
    exact_writer: bool,
    judge: Judge,
}

impl File {
    fn random(table: &Table, rows: &Rows, random: &mut StdRng) -> Self {
        let writers = [Writer::Exact, Writer::Spark, Writer::Deltalake];
        let writer = writers[random.random_range(0..3)];
        let mut statistics: Statistics = writers::describe(table, rows, writer, random);
        let text = damage::write(table, &mut statistics, random);
        let judge = Judge::new(table, rows, (!text.broken).then_some(&statistics));
        let mut add = Add {
            path: "part-0.parquet".to_owned(),
            stats: text.json,
            partition_values: HashMap::clone(&rows.partition_values),
            ..Add::default()
        };
        if let Some(columns) = &statistics.nan_free {
            add = tagged(add, NAN_FREE_TAG, &serde_json::json!(columns).to_string());
        }
        if statistics.exact_tag {
            add = tagged(add, EXACT_STATISTICS_TAG, "true");
        }
        if rows.deleted.is_some() {
            add = with_deletions(add);
        }
        // A commit is not taken for the writer of a file that it only puts a deletion vector on.
        Self {
            exact_writer: statistics.exact_writer && rows.deleted.is_none(),
            add,
            judge,
        }
    }
}
