//! A transaction of several statements: what it pinned, read and changed so far.
//!
//! ```text
//! BEGIN    first mention of t         statements                        COMMIT
//!            pins version N     each reads N and our changes,      one check of all reads and the
//!                               leaves its reads and actions       net change, one version
//! ```
//!
//! What comes in: for each statement the collector of its reads when it is planned and, if it
//! changes rows, its actions once it has run. What goes out: one [commit](OpenTransaction::commit)
//! or [nothing](OpenTransaction::roll_back).
//!
//! # Guaranteed
//!
//! - A statement's actions are taken over as a whole, at its end, or not at all. They refer to the
//!   rows of the view that it was planned on, so a second statement that ran at the same time on
//!   the same view is turned away; only a plain append, which refers to nothing, is not.
//! - The reads of a statement count from its start, whether or not it succeeds: an error message,
//!   or a stream that was read half, may have told the application about rows. A statement that was
//!   planned and never started read nothing.
//! - A read through the view is a read of the base version: our own files are part of no version,
//!   so that no winner can touch them.
//! - Files of ours that a later statement replaced are deleted when the transaction ends, not
//!   before: a stream may still be reading them.
//! - The change data feed gets the net change too, written at `COMMIT` by a
//!   [writer](ChangeDataWriter) that is handed in: one change for each row that is another in the
//!   end. A transaction that has lost by then writes none.
//! - A `COMMIT` that is dropped before its put leaves no file behind, as well as that goes.

mod feed;
mod finish;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;

pub use self::feed::{ChangeDataWriter, NetChange};
use self::table::OpenTable;
pub use self::table::PinnedTable;
use super::actions::Actions;
use super::session_transactions::ended;
use super::transaction::Operation;
use crate::error::{Error, Result};
use crate::read::collector::ReadCollector;
use crate::read::read_set::ReadSet;
use crate::read::row_origins::RowOrigins;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// What `START TRANSACTION` asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionMode {
    /// Check as for `Serializable`, whatever lesser level the table asks for.
    pub serializable: bool,
    /// Refuse changes.
    pub read_only: bool,
}

/// A transaction that has begun; see the [module](self).
#[derive(Debug, Default)]
pub struct OpenTransaction {
    mode: TransactionMode,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    /// By canonical location.
    tables: BTreeMap<String, OpenTable>,
    /// The one table that may be changed from now on.
    changed: Option<String>,
    statements: Vec<StatementReads>,
    /// Sources of all statements that may be one of the targets under another guise.
    foreign: Vec<ForeignRead>,
    /// Locations of the tables that statements were planned to change.
    targets: BTreeSet<String>,
}

/// A source of rows that is no table of this crate.
#[derive(Debug, Clone)]
pub enum ForeignSource {
    /// Files in these places.
    Files(Vec<Url>),
    /// Anything.
    Unknown,
}

/// A foreign source in a statement of a transaction.
#[derive(Debug, Clone)]
pub struct ForeignRead {
    /// What was read.
    pub source: ForeignSource,
    /// Locations of the tables that were pinned before it was read. Of any other table it may have
    /// shown an older version than the one that is pinned later.
    pub pinned: Arc<BTreeSet<String>>,
}

/// A statement of a transaction and its reads.
#[derive(Debug)]
pub struct StatementReads {
    /// The statement's text, for messages.
    pub text: Option<Arc<str>>,
    /// Where its reads are recorded.
    pub collector: Arc<ReadCollector>,
}

/// What a statement did to its table.
#[derive(Debug)]
pub(super) struct StatementChange {
    /// The view that it ran on.
    pub(super) snapshot: Arc<TableSnapshot>,
    /// Its reads of the table.
    pub(super) reads: ReadSet,
    pub(super) actions: Actions,
    /// Where the rows of its files come from, by path; nothing where the table has no feed.
    pub(super) origins: HashMap<String, RowOrigins>,
    pub(super) operation: Operation,
}

impl OpenTransaction {
    /// A transaction without a statement.
    pub fn new(mode: TransactionMode) -> Self {
        Self {
            mode,
            state: Mutex::default(),
        }
    }

    /// The table of `handle` as the transaction sees it; at the first mention its newest version
    /// is pinned.
    ///
    /// # Errors
    ///
    /// As [`TableHandle::newest`].
    pub async fn pin(&self, handle: &Arc<TableHandle>) -> Result<PinnedTable> {
        if let Some(pinned) = self.pinned(handle.location()) {
            return Ok(pinned);
        }
        let newest = handle.newest().await?;
        let mut state = self.state();
        let table = state
            .tables
            .entry(handle.location().to_owned())
            .or_insert_with(|| OpenTable::new(Arc::clone(handle), newest));
        Ok(table.pinned.clone())
    }

    /// The table at `location`, if it was mentioned.
    pub fn pinned(&self, location: &str) -> Option<PinnedTable> {
        let state = self.state();
        state.tables.get(location).map(|table| table.pinned.clone())
    }

    /// The version of the table at `location` that its first mention pinned, if there was one.
    pub fn base_of(&self, location: &str) -> Option<Arc<TableSnapshot>> {
        self.pinned(location).map(|pinned| pinned.base)
    }

    /// Whether the table at `location` may be changed.
    ///
    /// # Errors
    ///
    /// `Invalid` in a read-only transaction, `Unsupported` if another table was changed.
    pub fn check_change(&self, location: &str) -> Result<()> {
        if self.mode.read_only {
            return Err(Error::invalid(
                "the transaction is READ ONLY and changes nothing; COMMIT it and begin another one",
            ));
        }
        self.state().check_change(location)
    }

    /// Takes up a planned statement; its reads count once it has started.
    pub fn add_statement(&self, statement: StatementReads) {
        self.state().statements.push(statement);
    }

    /// Adds what a statement, whose tables are pinned, will read past this crate's scans and what
    /// it changes; the answer is all of both so far.
    pub fn add_sources(
        &self,
        foreign: Vec<ForeignSource>,
        targets: &[String],
    ) -> (Vec<ForeignRead>, BTreeSet<String>) {
        let mut state = self.state();
        let pinned = Arc::new(state.tables.keys().cloned().collect());
        state
            .foreign
            .extend(foreign.into_iter().map(|source| ForeignRead {
                source,
                pinned: Arc::clone(&pinned),
            }));
        state.targets.extend(targets.iter().cloned());
        (state.foreign.clone(), state.targets.clone())
    }

    /// Counts all rows of the table at `location` as read.
    pub fn read_all(&self, location: &str) {
        if let Some(table) = self.state().tables.get_mut(location) {
            table.reads_all = true;
        }
    }

    /// Whether the transaction asks for `Serializable`, or what it did to the table at `location` so
    /// far does.
    pub(super) fn is_serializable(&self, location: &str) -> bool {
        let tables = &self.state().tables;
        self.mode.serializable || tables.get(location).is_some_and(|table| table.reads_all)
    }

    /// Takes over what a statement did to the table at `location`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the transaction has ended or the table is not what the statement ran on,
    /// `Unsupported` for a second table and for actions that cannot be put together. The files of
    /// the statement are the caller's then.
    pub(super) fn take_over(&self, location: &str, change: StatementChange) -> Result<()> {
        let mut state = self.state();
        if state.ended {
            return Err(ended());
        }
        state.check_change(location)?;
        let table = state.tables.get_mut(location).ok_or_else(|| {
            Error::internal(format!("{location} is changed, but was never mentioned"))
        })?;
        let only_appends = change.actions.is_pure_append() && !change.reads.reads_rows();
        if !Arc::ptr_eq(&table.pinned.view, &change.snapshot) && !only_appends {
            return Err(Error::unavailable(
                "another statement of this transaction changed the table at the same time; \
                 nothing of this statement was kept, run it again",
            ));
        }
        check_actions(&change)?;
        let unaccounted = is_unaccounted(&change);
        table.apply(change.actions, change.origins)?;
        table.reads_all |= unaccounted;
        table.operations.push(change.operation);
        state.changed = Some(location.to_owned());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the transaction; nothing is taken over from now on.
    fn close(&self) -> State {
        let mut state = self.state();
        std::mem::replace(
            &mut *state,
            State {
                ended: true,
                ..State::default()
            },
        )
    }
}

impl State {
    fn check_change(&self, location: &str) -> Result<()> {
        match &self.changed {
            Some(changed) if changed != location => Err(Error::unsupported(format!(
                "a transaction changes one table, and this one has changed {changed} already: each \
                 Delta table has a log of its own, and two logs cannot be written at once. COMMIT \
                 first, then change {location}"
            ))),
            _ => Ok(()),
        }
    }
}

impl Drop for OpenTransaction {
    /// What a session left open when it went is rolled back.
    fn drop(&mut self) {
        let state = self.close();
        if !state.ended {
            drop(finish::files_of(&state.tables));
        }
    }
}

/// Actions that do not add up to those of one commit.
fn check_actions(change: &StatementChange) -> Result<()> {
    if change.actions.has_other_actions() {
        return Err(Error::unsupported(
            "only rows can be changed in a transaction; change the table itself outside of it",
        ));
    }
    // The feed has one change a row in each version, which only COMMIT knows.
    if !change.actions.cdc.is_empty() {
        return Err(Error::internal(
            "a statement of a transaction has written change files of its own",
        ));
    }
    Ok(())
}

/// The last guard, for each statement by itself: files change, but no read accounts for it.
fn is_unaccounted(change: &StatementChange) -> bool {
    let only_adds = change.actions.removes.is_empty();
    !change.reads.reads_rows() && (!only_adds || change.reads.is_unrecorded())
}
