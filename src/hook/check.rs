//! The check of one commit before it is put, and the put.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use deltalake::DeltaTable;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStoreRef};
use object_store::ObjectStoreExt;
use uuid::Uuid;

use super::errors::{conflict_error, failed};
use super::operation_reads::operation_reads;
use super::put::{Puts, created_by_another};
use super::read_set::read_again;
use super::report::Report;
use crate::commit::conflict::{CheckInput, check_briefly};
use crate::commit::log::read_winners;
use crate::commit::{IsolationLevel, NetEffect, WinningCommit};
use crate::error::{Error, Result};
use crate::read::read_set::ReadSet;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::read_snapshot;

/// How many entries of other writers are read at a time.
const READ_CONCURRENCY: usize = 8;

/// What the caller says of an operation beyond what its commit tells.
#[derive(Debug, Clone, Default)]
pub(super) struct Hints {
    /// What was read; `None` if the commit is to tell.
    pub(super) reads: Option<ReadSet>,
    /// The rows written were made without reading the table.
    pub(super) blind_input: bool,
}

impl Hints {
    /// Whether anything is said.
    pub(super) fn say_something(&self) -> bool {
        self.reads.is_some() || self.blind_input
    }
}

/// Checks the commits of one operation.
pub(super) struct Check {
    log_store: LogStoreRef,
    puts: Puts,
    hints: Hints,
    report: Report,
    /// Entries that were read on deltalake's behalf and are not yet part of what is known.
    entries: Mutex<BTreeMap<u64, Bytes>>,
    /// What is known so far, by version read. It grows over the attempts, of which there is one at a
    /// time.
    known: tokio::sync::Mutex<BTreeMap<u64, NetEffect>>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl Check {
    pub(super) fn new(log_store: LogStoreRef, hints: Hints, report: Report) -> Self {
        Self {
            puts: Puts::new(Arc::clone(&log_store)),
            log_store,
            hints,
            report,
            entries: Mutex::default(),
            known: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps an entry that was read already.
    pub(super) fn keep(&self, version: u64, entry: Bytes) {
        self.entries().insert(version, entry);
    }

    /// Drops what is known, once the commit is decided.
    pub(super) async fn forget(&self) {
        self.entries().clear();
        self.known.lock().await.clear();
    }

    #[cfg(test)]
    pub(super) async fn knows_nothing(&self) -> bool {
        self.entries().is_empty() && self.known.lock().await.is_empty()
    }

    /// What the caller said.
    pub(super) fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Puts `commit_or_bytes` as `version` unless the operation, which read `read_versions`, meets a
    /// conflict with what was committed since.
    ///
    /// # Errors
    ///
    /// The conflict; `LogStoreError` with ours behind it if the check could not be made, and then
    /// nothing was written; else those of [`Puts::put`].
    pub(super) async fn put(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation_id: Uuid,
        read_versions: BTreeSet<u64>,
    ) -> Result<(), TransactionError> {
        let entry = self
            .entry(&commit_or_bytes, operation_id)
            .await
            .map_err(failed)?;
        if version == 0 {
            self.check_first().await?;
        } else {
            self.check(version, &entry, read_versions).await?;
        }
        self.puts
            .put(version, commit_or_bytes, operation_id, &entry)
            .await?;
        self.report.written(version);
        Ok(())
    }

    /// As [`Puts::abort`].
    pub(super) async fn abort(
        &self,
        version: u64,
        commit_or_bytes: CommitOrBytes,
        operation_id: Uuid,
    ) -> Result<(), TransactionError> {
        self.puts
            .abort(version, commit_or_bytes, operation_id)
            .await
    }

    /// Checks that there is no table. Its first entry may be gone behind a checkpoint, so that the
    /// put alone would not tell.
    async fn check_first(&self) -> Result<(), TransactionError> {
        let exists = self.log_store.is_delta_table_location().await;
        let exists = exists.map_err(|error| {
            let message = format!("it cannot be found out whether the table exists: {error}");
            failed(Error::unavailable(message).with_source(error))
        })?;
        if exists {
            return Err(created_by_another());
        }
        Ok(())
    }

    async fn check(
        &self,
        version: u64,
        entry: &Bytes,
        mut read_versions: BTreeSet<u64>,
    ) -> Result<(), TransactionError> {
        // What an entry claims beyond what deltalake asked about: data that was computed from another
        // version, say. Every version that plays a part is checked from there on.
        read_versions.extend(recorded_read_version(entry));
        if let Some(reads) = &self.hints.reads {
            read_versions.extend(reads.reads().iter().map(|read| read.version));
        }
        if read_versions.is_empty() {
            return Err(failed(Error::invalid(format!(
                "version {version} cannot be checked, since it is not known which version was read; \
                 commit through an operation or the commit builder of deltalake"
            ))));
        }
        // Nobody else committed: the usual case, which must cost next to nothing.
        if read_versions
            .iter()
            .all(|read| read.saturating_add(1) >= version)
        {
            return Ok(());
        }
        let ours = WinningCommit::parse(version, entry, self.log_store.root_url());
        let ours = ours.map_err(failed)?;
        for read in read_versions {
            if read.saturating_add(1) < version {
                self.check_from(read, version, &ours).await?;
            }
        }
        self.entries().clear();
        Ok(())
    }

    /// Checks `ours` against all commits after version `read` and before `version`.
    async fn check_from(
        &self,
        read: u64,
        version: u64,
        ours: &WinningCommit,
    ) -> Result<(), TransactionError> {
        let mut known = self.known.lock().await;
        let net_effect = self.net_effect(&mut known, read, version).await;
        let net_effect = net_effect.map_err(failed)?;
        let reads = self.reads(ours, net_effect.snapshot());
        let verdict = check_briefly(&CheckInput {
            reads: &reads,
            actions: &ours.actions,
            net_effect,
            level: IsolationLevel::for_transaction(net_effect.snapshot(), &reads, &ours.actions),
            data_skipping: true,
        });
        let asked = reads.reads().iter().map(|read| read.scope.to_string());
        self.report.checked(&verdict, asked.collect());
        let Some(error) = conflict_error(&verdict) else {
            tracing::debug!(version, operation = ours.operation(), %verdict, "no conflict");
            return Ok(());
        };
        tracing::warn!(
            version,
            operation = ours.operation(),
            %verdict,
            "a guarded operation meets a conflict"
        );
        Err(error)
    }

    /// What the winners up to `version` did to the table of version `read`.
    async fn net_effect<'k>(
        &self,
        known: &'k mut BTreeMap<u64, NetEffect>,
        read: u64,
        version: u64,
    ) -> Result<&'k NetEffect> {
        let net_effect = match known.entry(read) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let snapshot = Arc::new(self.snapshot(read).await?);
                unknown.insert(NetEffect::new(snapshot))
            }
        };
        let next = net_effect.last_version().saturating_add(1);
        let winners = read_winners(
            &self.log_store,
            next..=version.saturating_sub(1),
            READ_CONCURRENCY,
            |version| self.entries().get(&version).cloned(),
        );
        for winner in winners.await? {
            net_effect.apply(Arc::new(winner))?;
        }
        Ok(net_effect)
    }

    /// The table as it was at version `read`, with all its files.
    async fn snapshot(&self, read: u64) -> Result<TableSnapshot> {
        let mut table = DeltaTable::new(Arc::clone(&self.log_store));
        table.load_version(read).await.map_err(|error| {
            Error::unavailable(format!(
                "version {read}, which the operation read, cannot be loaded for the conflict check: \
                 {error}"
            ))
            .with_source(error)
        })?;
        read_snapshot(&table)
    }

    /// What counts as read of `snapshot`.
    fn reads(&self, ours: &WinningCommit, snapshot: &TableSnapshot) -> ReadSet {
        let Some(given) = &self.hints.reads else {
            return operation_reads(ours, snapshot, self.hints.blind_input);
        };
        let reads = given.reads().iter().map(|read| read_again(read, snapshot));
        ReadSet::new(reads.collect())
    }

    /// The entry that is about to be put.
    async fn entry(&self, commit_or_bytes: &CommitOrBytes, operation: Uuid) -> Result<Bytes> {
        match commit_or_bytes {
            CommitOrBytes::LogBytes(bytes) => Ok(bytes.clone()),
            CommitOrBytes::TmpCommit(path) => {
                let store = self.log_store.object_store(Some(operation));
                Ok(store.get(path).await?.bytes().await?)
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Bytes>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `readVersion` of the entry's `commitInfo`. An entry that is no text cannot be parsed either, which
/// is an error as soon as there is anything to check.
fn recorded_read_version(entry: &[u8]) -> Option<u64> {
    std::str::from_utf8(entry)
        .ok()?
        .lines()
        .filter(|line| line.contains("readVersion"))
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|action| action.get("commitInfo")?.get("readVersion")?.as_u64())
}
