//! What `explain` says of each change that the tests plan and run, and of each `COMMIT` of the SQL
//! suite: it must be what becomes of it.
//!
//! The question is made of what the plans show once they have run: reads, level and version.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::DataFusionError;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use delta_disjoint::commit::{Conflict, ConflictKind, IsolationLevel, Verdict};
use delta_disjoint::explain::{Question, explain};
use delta_disjoint::read::table::TableHandle;

/// How many commits were compared.
static COMPARED: AtomicUsize = AtomicUsize::new(0);

pub fn compared() -> usize {
    COMPARED.load(Ordering::Relaxed)
}

/// What the statements of a transaction have read, as their plans show it.
#[derive(Debug, Default)]
pub struct SecondOpinion {
    /// Table and scope of each read.
    reads: BTreeSet<(String, String)>,
    /// Table, version and level of the last change.
    changed: Option<(String, u64, IsolationLevel)>,
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// The operators of `plan`, a line each.
fn lines(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let text = displayable(plan.as_ref()).indent(false).to_string();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// The table that `plan` changes, unless it is none on this machine.
fn target(lines: &[String]) -> Option<TableHandle> {
    let commit = lines.iter().find(|line| line.starts_with("CommitExec"))?;
    let location = between(commit, "table=", ", ").expect("a table");
    if !location.starts_with("file://") {
        return None;
    }
    // It may be gone.
    TableHandle::at(location, HashMap::new(), false).ok()
}

/// The newest version of the table that `plan` changes.
pub async fn newest(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let snapshot = target(&lines(plan))?.newest().await;
    Some(snapshot.ok()?.version)
}

impl SecondOpinion {
    /// Notes what the statement of `plan`, which has run, read and changed.
    pub fn note(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let lines = lines(plan);
        let target = target(&lines).map(|handle| handle.location().to_owned());
        for line in &lines {
            let Some(table) = between(line, "table=", ", ").map(str::to_owned) else {
                continue;
            };
            if line.starts_with("DeltaScanExec") && Some(&table) != target.as_ref() {
                let scope = between(line, "read=[", "], files_total").expect("a scope");
                self.reads.insert((table, scope.to_owned()));
            } else if line.starts_with("CommitExec") {
                let version = between(line, "read_version=", ",").map(str::parse);
                let level = match between(line, "isolation=", ",") {
                    Some("Serializable") => IsolationLevel::Serializable,
                    Some("WriteSerializable") => IsolationLevel::WriteSerializable,
                    other => panic!("{other:?} in {line}"),
                };
                let (_, reads) = line.split_once("reads=[").expect("reads");
                let reads = reads.strip_suffix(']').expect("reads");
                for scope in reads.split(" | ").filter(|scope| !scope.is_empty()) {
                    self.reads.insert((table.clone(), scope.to_owned()));
                }
                self.changed = Some((
                    table,
                    version.expect("read_version").expect("a number"),
                    level,
                ));
            }
        }
    }

    /// What `explain` says of the versions up to `to_version`; nothing where no statement changes rows
    /// of a table on this machine.
    pub async fn ask(self, data_skipping: bool, to_version: Option<u64>) -> Option<Answer> {
        let (table, version, level) = self.changed?;
        if !table.starts_with("file://") {
            return None;
        }
        let handle = TableHandle::at(&table, HashMap::new(), false).expect("a table");
        let newest = match to_version {
            Some(version) => version,
            None => handle.newest().await.expect("a version").version,
        };
        let scopes: Vec<String> = self
            .reads
            .into_iter()
            .filter(|(of, scope)| *of == table && scope != "nothing")
            .map(|(_, scope)| scope)
            .collect();
        // What is cut is not asked.
        if scopes
            .iter()
            .any(|scope| scope.contains(" …") || scope.contains("(a long condition)"))
        {
            return None;
        }
        let question = Question {
            whole_table: scopes.iter().any(|scope| scope == "whole table"),
            predicates: scopes
                .into_iter()
                .filter(|scope| scope != "whole table")
                .collect(),
            isolation: Some(level),
            data_skipping,
            to_version: Some(newest),
            ..Question::new(version)
        };
        let verdict = explain(&handle, &question)
            .await
            .map_err(|error| format!("{question:?}: {error}"));
        Some(Answer {
            handle,
            newest,
            verdict,
        })
    }
}

/// The answer, and how many versions there are then.
#[derive(Debug)]
pub struct Answer {
    handle: TableHandle,
    newest: u64,
    verdict: Result<Verdict, String>,
}

impl Answer {
    /// Fails unless the commit ended in `outcome` as was said.
    pub async fn compare<T>(self, outcome: &Result<T, DataFusionError>) {
        // A log that cannot be read is an error for both.
        let said = || self.verdict.as_ref().expect("an answer");
        match outcome {
            Ok(_) => {
                let newest = self.handle.newest().await.expect("a version").version;
                if newest != self.newest + 1 {
                    // What changes nothing commits whatever happened, and of several commits at once
                    // it is not known which came first.
                    return;
                }
                let said = said();
                assert!(!said.is_conflict(), "it committed: {}", said.to_text());
            }
            Err(error) => {
                let Some(found) = Verdict::find(error) else {
                    return;
                };
                if found.to_version() != self.newest {
                    return;
                }
                let said = said();
                // The question names no files to remove, no application and no domain. Of several
                // reads that a file meets either may be named.
                let what = |conflict: &Conflict| {
                    (
                        conflict.kind.as_str(),
                        conflict.version,
                        conflict.path.clone(),
                    )
                };
                let mut told: Vec<_> = said.conflicts.iter().map(what).collect();
                let met: Vec<_> = found.conflicts.iter().map(what).collect();
                let mut met: Vec<_> = met
                    .into_iter()
                    .filter(|(kind, ..)| {
                        ![
                            ConflictKind::ConcurrentDeleteDelete,
                            ConflictKind::ConcurrentTransaction,
                            ConflictKind::ConcurrentDomainMetadata,
                        ]
                        .iter()
                        .any(|unasked| unasked.as_str() == *kind)
                    })
                    .collect();
                told.sort();
                met.sort();
                assert_eq!(
                    told,
                    met,
                    "told: {}\nmet: {}",
                    said.to_text(),
                    found.to_text()
                );
            }
        }
        COMPARED.fetch_add(1, Ordering::Relaxed);
    }
}
