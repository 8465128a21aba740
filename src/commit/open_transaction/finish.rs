//! The end of a transaction: one commit, or none and no files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::feed::{ChangeDataWriter, NetChange};
use super::table::OpenTable;
use super::{OpenTransaction, State, StatementReads};
use crate::commit::attempt::Attempts;
use crate::commit::checkpoint::checkpoint_if_due;
use crate::commit::transaction::{
    CommitOptions, CommitOutcome, Operation, OptimisticTransaction, OutcomeUnknown,
};
use crate::commit::verdict::{Conflict, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::read::read_set::{Read, ReadScope, ReadSet};
use crate::storage::UncommittedFiles;

/// `operation` in the table's history.
const OPERATION: &str = "TRANSACTION";

impl OpenTransaction {
    /// Commits what the statements did as one version, which is returned; `None` if that is
    /// nothing, which never conflicts. Either way the transaction is over. `feed` is asked for the
    /// change files, where the table needs some.
    ///
    /// # Errors
    ///
    /// `Conflict`, with the verdict as source and the statements whose reads were hit by name; else
    /// as [`OptimisticTransaction::commit`]. The files are deleted then, as well as that goes,
    /// unless it is not known whether the commit was written.
    pub async fn commit(
        &self,
        options: CommitOptions,
        feed: &dyn ChangeDataWriter,
    ) -> Result<Option<u64>> {
        let mut state = self.close();
        let changed = state
            .changed
            .take()
            .and_then(|location| state.tables.remove(&location));
        // Tables that are only read have no files of ours.
        match changed {
            Some(table) if table.is_changed() => {
                let options = CommitOptions {
                    serializable: options.serializable || self.mode.serializable,
                    ..options
                };
                commit_table(table, &state, options, feed).await.map(Some)
            }
            Some(table) => {
                table.written().delete().await;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Ends the transaction without a trace: its files are deleted, as well as that goes.
    pub async fn roll_back(&self) {
        for files in files_of(&self.close().tables) {
            files.delete().await;
        }
    }
}

/// All files that were written. Dropped, they are deleted.
pub(super) fn files_of(tables: &BTreeMap<String, OpenTable>) -> Vec<UncommittedFiles> {
    tables.values().map(OpenTable::written).collect()
}

async fn commit_table(
    table: OpenTable,
    state: &State,
    options: CommitOptions,
    feed: &dyn ChangeDataWriter,
) -> Result<u64> {
    let mut live = table.live();
    let superseded = table.superseded();
    let committed = put(&table, state, options, feed, &mut live).await;
    // No commit names these.
    superseded.delete().await;
    match committed {
        Ok(version) => {
            checkpoint_if_due(&table.handle, &table.pinned.base, version).await;
            Ok(version)
        }
        Err(error) => {
            // A lost answer may have been a success, which refers to the live ones.
            if OutcomeUnknown::find(&error).is_none() {
                live.delete().await;
            }
            Err(error)
        }
    }
}

/// Writes what is left to write, which `files` get too, and puts the version that names them.
async fn put(
    table: &OpenTable,
    state: &State,
    options: CommitOptions,
    feed: &dyn ChangeDataWriter,
    files: &mut UncommittedFiles,
) -> Result<u64> {
    let location = table.handle.location();
    let base = &table.pinned.base;
    let statements: Vec<Statement> = state
        .statements
        .iter()
        .filter(|statement| statement.collector.has_started())
        .enumerate()
        .map(|(index, statement)| Statement::new(index + 1, statement, location))
        .collect();
    let mut reads: Vec<Read> = statements
        .iter()
        .flat_map(|statement| statement.reads.reads().iter().cloned())
        .collect();
    let twins = twins(table, state);
    let past_scans = !twins.is_empty() || table.reads_all;
    if past_scans {
        reads.push(Read::whole_table(base));
    }
    let mut attempts = Attempts::new(OptimisticTransaction {
        snapshot: Arc::clone(base),
        reads: ReadSet::new(reads),
        actions: table.actions(),
        operation: operation(table),
        txn_id: Uuid::new_v4(),
        options: CommitOptions {
            // What came past the scans may hold rows of a blind append after the base, which can
            // not be put behind us in the serial order then.
            serializable: options.serializable || past_scans,
            ..options
        },
    })?;
    check_twins(table, &twins)?;
    check_same_table(table).await?;
    let log_store = table.handle.log_store();
    if let Some(rows) = table.rows_for_feed()? {
        // The change files may be as large as all that was changed.
        if let Some(verdict) = attempts.conflict_so_far(log_store).await? {
            return Err(conflict(verdict, &statements));
        }
        let change = NetChange {
            handle: &table.handle,
            base,
            view: &table.pinned.view,
            rows: &rows,
        };
        let changes = feed.write(change).await?;
        files.add(table.paths_of(changes.iter().map(|file| file.path.as_str())));
        let transaction = &mut attempts.transaction;
        let metrics = &mut transaction.operation.metrics;
        metrics.insert("numAddedChangeFiles".to_owned(), changes.len() as u64);
        transaction.actions.cdc = changes;
    }
    match attempts.run(log_store, Some(files)).await? {
        CommitOutcome::Committed {
            version,
            attempts,
            verdict,
        } => {
            tracing::info!(
                version,
                attempts,
                winners_checked = verdict.winners_checked(),
                conflict_files_skipped = verdict.skipped,
                "transaction committed"
            );
            Ok(version)
        }
        CommitOutcome::Conflicted { verdict, .. } => Err(conflict(verdict, &statements)),
    }
}

/// The tables that are `table` by another way in, such as a second mount: they have the same id.
fn twins<'a>(table: &OpenTable, state: &'a State) -> Vec<&'a OpenTable> {
    let id = &table.pinned.base.metadata.id;
    state
        .tables
        .values()
        .filter(|other| other.pinned.base.metadata.id == *id)
        .collect()
}

/// The check starts at the base of the table; what a twin showed must not be older.
fn check_twins(table: &OpenTable, twins: &[&OpenTable]) -> Result<()> {
    let base = &table.pinned.base;
    match twins
        .iter()
        .find(|twin| twin.pinned.base.version < base.version)
    {
        Some(twin) => Err(Error::unavailable(format!(
            "the tables at {} and {} have the same id, and the transaction read version {} of the \
             first before it pinned version {} of the second; nothing was committed, run the \
             transaction again and read the table that it changes first, or use one location",
            twin.handle.location(),
            table.handle.location(),
            twin.pinned.base.version,
            base.version
        ))),
        None => Ok(()),
    }
}

/// A transaction takes its time; meanwhile the table may have been dropped and made anew.
async fn check_same_table(table: &OpenTable) -> Result<()> {
    let base = &table.pinned.base;
    let newest = table.handle.newest().await?;
    if newest.metadata.id == base.metadata.id && newest.version >= base.version {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "the table at {} was replaced by another one since the transaction read version {}; \
         nothing was committed, run the transaction again",
        table.handle.location(),
        base.version
    )))
}

/// A statement whose reads count.
struct Statement {
    number: usize,
    text: Option<Arc<str>>,
    reads: ReadSet,
}

impl Statement {
    fn new(number: usize, statement: &StatementReads, location: &str) -> Self {
        Self {
            number,
            text: statement.text.clone(),
            reads: statement.collector.reads_of(location),
        }
    }

    /// Whether `conflict` is about one of its reads.
    fn is_hit(&self, conflict: &Conflict) -> bool {
        self.reads.reads().iter().any(|read| match &read.scope {
            ReadScope::Nothing => false,
            scope => {
                let asked = conflict
                    .read
                    .as_ref()
                    .is_some_and(|text| scope.to_string() == text.as_ref());
                let file = conflict
                    .path
                    .as_ref()
                    .is_some_and(|path| read.files.contains(path));
                asked || file
            }
        })
    }
}

fn conflict(verdict: Verdict, statements: &[Statement]) -> Error {
    let mut message = format!("nothing of the transaction was committed: {verdict}");
    if let Some(conflict) = verdict.first_conflict() {
        let hit: Vec<String> = statements
            .iter()
            .filter(|statement| statement.is_hit(conflict))
            .map(|statement| match &statement.text {
                Some(text) => format!("statement {} ({text})", statement.number),
                None => format!("statement {}", statement.number),
            })
            .collect();
        if !hit.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(message, "; read by {}", hit.join(" and "));
        }
    }
    Error::new(ErrorKind::Conflict, message).with_source(verdict)
}

/// The whole is called a transaction, and its statements as they would be by themselves.
fn operation(table: &OpenTable) -> Operation {
    let statements: Vec<Value> = table
        .operations
        .iter()
        .map(|statement| {
            let mut entry = Map::new();
            entry.insert("operation".to_owned(), statement.name.clone().into());
            entry.extend(statement.parameters.clone());
            entry.into()
        })
        .collect();
    let mut parameters = Map::new();
    parameters.insert(
        "statements".to_owned(),
        Value::from(statements).to_string().into(),
    );
    Operation {
        name: OPERATION.to_owned(),
        parameters,
        metrics: table.metrics(),
    }
}
