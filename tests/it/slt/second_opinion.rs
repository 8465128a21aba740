//! What `explain` says of each `COMMIT`, which must be what becomes of it.
//!
//! The question is made of what `EXPLAIN` shows of the transaction's statements: the reads, the level
//! and the version.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::AsArray;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use delta_disjoint::commit::{IsolationLevel, Verdict};
use delta_disjoint::config::DeltaOptions;
use delta_disjoint::explain::{Question, explain};
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::sql;

/// What reads or changes rows.
const STATEMENTS: [&str; 7] = [
    "SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE",
];

/// How many commits were compared.
static COMPARED: AtomicUsize = AtomicUsize::new(0);

pub fn compared() -> usize {
    COMPARED.load(Ordering::Relaxed)
}

/// What a transaction has read so far.
#[derive(Debug, Default)]
pub struct SecondOpinion {
    /// Table and scope of each read.
    reads: BTreeSet<(String, String)>,
    /// The keys that narrow a read are known when it has run: then it may meet less than is shown.
    narrowed: bool,
    /// Table, version and level of the last change.
    changed: Option<(String, u64, IsolationLevel)>,
}

/// The answer before the `COMMIT`, and how many versions there are then.
#[derive(Debug)]
pub struct Answer {
    handle: TableHandle,
    newest: u64,
    verdict: Verdict,
    narrowed: bool,
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

impl SecondOpinion {
    /// Notes what `statement` reads. What cannot be explained does not run either.
    pub async fn note(&mut self, ctx: &SessionContext, statement: &str) {
        let word = statement.split_whitespace().next().unwrap_or_default();
        if !STATEMENTS.contains(&word.to_uppercase().as_str()) {
            return;
        }
        let Ok(frame) = sql(ctx, &format!("EXPLAIN {statement}")).await else {
            return;
        };
        let Ok(batches) = frame.collect().await else {
            return;
        };
        for batch in &batches {
            for line in batch.column(1).as_string::<i32>().iter().flatten() {
                line.lines()
                    .for_each(|line| self.note_operator(line.trim()));
            }
        }
    }

    fn note_operator(&mut self, line: &str) {
        let Some(table) = between(line, "table=", ", ").map(str::to_owned) else {
            return;
        };
        if line.starts_with("DeltaScanExec") {
            let scope = between(line, "read=[", "], files_total").expect("a scope");
            let (scope, narrowed) = scope
                .split_once(" narrowed by keys")
                .map_or((scope, false), |(scope, _)| (scope, true));
            self.narrowed |= narrowed;
            self.reads.insert((table, scope.to_owned()));
        } else if line.starts_with("CommitExec") {
            let version = between(line, "read_version=", ",").and_then(|text| text.parse().ok());
            let level = match between(line, "isolation=", ",") {
                Some("Serializable") => IsolationLevel::Serializable,
                Some("WriteSerializable") => IsolationLevel::WriteSerializable,
                other => panic!("{other:?} in {line}"),
            };
            let (_, reads) = line.split_once("reads=[").expect("reads");
            for scope in reads.trim_end_matches(']').split(" | ") {
                self.reads.insert((table.clone(), scope.to_owned()));
            }
            self.changed = Some((table, version.expect("a version"), level));
        }
    }

    /// What `explain` says; nothing where no statement changes rows.
    pub async fn ask(self, ctx: &SessionContext) -> Option<Answer> {
        let (table, version, level) = self.changed?;
        let handle = TableHandle::at(&table, HashMap::new(), false).expect("a table");
        let newest = handle.newest().await.expect("a version").version;
        let scopes: Vec<String> = self
            .reads
            .into_iter()
            .filter(|(of, scope)| *of == table && scope != "nothing")
            .map(|(_, scope)| scope)
            .collect();
        let state = ctx.state();
        let options = DeltaOptions::from_config(state.config_options());
        let question = Question {
            whole_table: scopes.iter().any(|scope| scope == "whole table"),
            predicates: scopes
                .into_iter()
                .filter(|scope| scope != "whole table")
                .collect(),
            isolation: Some(level),
            data_skipping: options.conflict_data_skipping,
            ..Question::new(version)
        };
        let verdict = explain(&handle, &question).await;
        // The text of a read is for people: values that need quotes have none.
        let verdict = verdict.ok()?;
        Some(Answer {
            handle,
            newest,
            verdict,
            narrowed: self.narrowed,
        })
    }
}

impl Answer {
    /// Fails unless the `COMMIT` ended in `outcome` as was said.
    pub async fn compare<T>(self, outcome: &Result<T, DataFusionError>) {
        let said = self.verdict.first_conflict().map(|conflict| conflict.kind);
        let found = match outcome {
            Ok(_) => {
                let newest = self.handle.newest().await.expect("a version").version;
                if newest == self.newest {
                    // What changes nothing commits whatever happened.
                    return;
                }
                None
            }
            Err(error) => match Verdict::find(error) {
                Some(verdict) => verdict.first_conflict().map(|conflict| conflict.kind),
                None => return,
            },
        };
        if self.narrowed {
            assert!(found.is_none() || said.is_some(), "{found:?}, not foretold");
            return;
        }
        assert_eq!(said, found, "{}", self.verdict.to_text());
        COMPARED.fetch_add(1, Ordering::Relaxed);
    }
}
