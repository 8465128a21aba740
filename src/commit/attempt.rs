//! The attempt loop: the only code that writes versions.
//!
//! ```text
//! winners --> check --conflict--> Conflicted
//!    ^          |
//!    |       no conflict
//!    |          v
//!    '-lost-- put last checked version + 1 --> Committed
//! ```
//!
//! In: a transaction. Out: its version, or the conflicts. Guaranteed: each version is read once;
//! the versions checked are contiguous from the read version on; an entry is put only directly
//! after them; a put whose answer was lost is found again in the log by its `txnId`.

use std::sync::Arc;

use bytes::Bytes;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::LogStoreRef;
use tracing::Instrument;

use super::conflict::{CheckInput, check_briefly};
use super::log::{Log, Put, is_refusal};
use super::net_effect::NetEffect;
use super::transaction::{CommitOutcome, OptimisticTransaction, OutcomeUnknown};
use super::verdict::{AttemptsUsedUp, Verdict};
use super::winner::WinningCommit;
use crate::cancellation::PutState;
use crate::clock::now_millis;
use crate::error::{Error, Result};
use crate::storage::UncommittedFiles;

/// One transaction and the log as far as it was checked.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) transaction: OptimisticTransaction,
    net_effect: NetEffect,
    /// The version that beat us, read to see whether it is our own.
    read_back: Option<WinningCommit>,
}

/// What is put.
struct NewEntry<'a> {
    bytes: Bytes,
    /// The files that it names, if they are deleted with whoever waits for it.
    files: Option<&'a UncommittedFiles>,
}

impl NewEntry<'_> {
    /// From here on a version of the log may name its files.
    fn may_be_named(&self) {
        if let Some(files) = self.files {
            files.leave_alone();
        }
    }
}

impl Attempts {
    /// Nothing is checked so far.
    ///
    /// # Errors
    ///
    /// `Unavailable` if a read is of another version than the snapshot.
    pub(super) fn new(transaction: OptimisticTransaction) -> Result<Self> {
        transaction.check_versions()?;
        Ok(Self {
            net_effect: NetEffect::new(Arc::clone(&transaction.snapshot)),
            read_back: None,
            transaction,
        })
    }

    /// Checks against the winners that are there already, for those who have work left before the
    /// commit that a lost transaction need not do; nothing if there is no conflict so far.
    pub(super) async fn conflict_so_far(
        &mut self,
        log_store: &LogStoreRef,
    ) -> Result<Option<Verdict>> {
        let log = Log::new(log_store, self.transaction.txn_id)?;
        let (own, verdict) = self.look(&log).await?;
        Ok((own.is_none() && verdict.is_conflict()).then_some(verdict))
    }

    /// Runs attempts until one decides. From the first put on, `files` are left alone.
    pub(super) async fn run(
        mut self,
        log_store: &LogStoreRef,
        files: Option<&UncommittedFiles>,
    ) -> Result<CommitOutcome> {
        let transaction = &self.transaction;
        let mut log = Log::new(log_store, transaction.txn_id)?;
        let bytes = transaction.actions.to_bytes(
            &transaction.commit_info(now_millis()),
            &transaction.snapshot.spellings,
        )?;
        let entry = NewEntry { bytes, files };
        let outcome = self.until_decided(&mut log, &entry).await;
        log.clean_up().await;
        match outcome? {
            Decided::Committed {
                version,
                attempts,
                verdict,
            } => Ok(CommitOutcome::Committed {
                version,
                attempts,
                verdict,
            }),
            Decided::Conflicted(verdict) => Ok(CommitOutcome::Conflicted {
                verdict,
                transaction: Box::new(self.transaction),
            }),
        }
    }
}

#[derive(Debug)]
enum Decided {
    Committed {
        version: u64,
        attempts: usize,
        verdict: Verdict,
    },
    Conflicted(Verdict),
}

/// How one attempt ended.
#[derive(Debug)]
enum Attempt {
    Committed(u64, Verdict),
    Conflicted(Verdict),
    Lost,
}

impl Attempts {
    async fn until_decided(&mut self, log: &mut Log<'_>, entry: &NewEntry<'_>) -> Result<Decided> {
        let most = self.transaction.options.max_attempts.max(1);
        for attempt in 1..=most {
            let span =
                tracing::info_span!("attempt", attempt, checked = self.net_effect.last_version());
            match self.attempt(log, entry).instrument(span).await? {
                Attempt::Committed(version, verdict) => {
                    return Ok(Decided::Committed {
                        version,
                        attempts: attempt,
                        verdict,
                    });
                }
                Attempt::Conflicted(verdict) => return Ok(Decided::Conflicted(verdict)),
                Attempt::Lost if attempt < most => {
                    let delay = self
                        .transaction
                        .options
                        .backoff
                        .delay(attempt, rand::random());
                    if !delay.is_zero() {
                        // The next attempt finds out whether it was the request that came.
                        tokio::select! {
                            () = tokio::time::sleep(delay) => {}
                            () = self.transaction.options.cancellation.cancelled() => {}
                        }
                    }
                }
                Attempt::Lost => {}
            }
        }
        Err(AttemptsUsedUp {
            attempts: most,
            verdict: self.check(),
        }
        .into())
    }

    async fn attempt(&mut self, log: &mut Log<'_>, entry: &NewEntry<'_>) -> Result<Attempt> {
        let cancellation = self.transaction.options.cancellation.clone();
        let (own, verdict) = self.look(log).await?;
        if let Some(version) = own {
            entry.may_be_named();
            cancellation.set_put_state(PutState::Done);
            return Ok(Attempt::Committed(version, verdict));
        }
        if verdict.is_conflict() {
            return Ok(Attempt::Conflicted(verdict));
        }
        let Some(version) = self.net_effect.last_version().checked_add(1) else {
            return Err(Error::corrupt("the log has no version left"));
        };
        // From here on it is the log that decides.
        cancellation.check()?;
        cancellation.set_put_state(PutState::Running);
        let attempt = self.put(version, log, entry, verdict).await;
        match &attempt {
            Ok(Attempt::Committed(..)) => cancellation.set_put_state(PutState::Done),
            Err(error) if OutcomeUnknown::find(error).is_some() => {}
            _ => cancellation.set_put_state(PutState::NotBegun),
        }
        attempt
    }

    async fn put(
        &mut self,
        version: u64,
        log: &mut Log<'_>,
        entry: &NewEntry<'_>,
        verdict: Verdict,
    ) -> Result<Attempt> {
        entry.may_be_named();
        match log.put(version, &entry.bytes).await? {
            Put::Done => Ok(Attempt::Committed(version, verdict)),
            Put::Lost => self.read_back(version, log, verdict).await,
            Put::Unclear(error) => self.after_unclear_put(version, error, log, verdict).await,
        }
    }

    /// Applies what is new in the log and checks against all of it. With a version, which is our own
    /// commit.
    async fn look(&mut self, log: &Log<'_>) -> Result<(Option<u64>, Verdict)> {
        let before = self.net_effect.last_version();
        let cancellation = self.transaction.options.cancellation.clone();
        let span = tracing::info_span!("winners", after = before);
        let own = cancellation.or(self.find_winners(log).instrument(span));
        let own = own.await?;
        let verdict = self.check();
        if own.is_none() && self.net_effect.last_version() > before {
            // The name under which other engines report the same numbers.
            tracing::info!(
                name: "delta.conflictDetection.dataSkipping.filesSkipped",
                candidates = verdict.candidates,
                skipped = verdict.skipped,
                "delta.conflictDetection.dataSkipping.filesSkipped"
            );
        }
        Ok((own, verdict))
    }

    /// Applies the versions that are new since the last attempt. `Some`: one of them is our own
    /// commit, put earlier with its answer lost.
    async fn find_winners(&mut self, log: &Log<'_>) -> Result<Option<u64>> {
        let mut next = self.net_effect.last_version().saturating_add(1);
        let latest = log.latest_version(self.net_effect.last_version()).await?;
        let mut winners = Vec::new();
        if let Some(known) = self.read_back.take_if(|known| known.version == next) {
            winners.push(known);
            next += 1;
        }
        if next <= latest {
            let concurrency = self.transaction.options.winner_read_concurrency;
            winners.extend(log.read_all(next..=latest, concurrency).await?);
        }
        for winner in winners {
            if self.is_own(&winner) {
                return Ok(Some(winner.version));
            }
            self.net_effect.apply(Arc::new(winner))?;
        }
        Ok(None)
    }

    fn check(&self) -> Verdict {
        check_briefly(&CheckInput {
            reads: &self.transaction.reads,
            actions: &self.transaction.actions,
            net_effect: &self.net_effect,
            level: self.transaction.level(),
            data_skipping: self.transaction.options.data_skipping,
        })
    }

    /// `version` exists. A store that retries on its own may have put our entry and then lost to
    /// itself, so look whose it is.
    async fn read_back(
        &mut self,
        version: u64,
        log: &mut Log<'_>,
        verdict: Verdict,
    ) -> Result<Attempt> {
        let why = match self.whose(version, log, verdict).await {
            Ok(Some(attempt)) => return Ok(attempt),
            Ok(None) => "it exists, but it cannot be found".to_owned(),
            Err(error) => error.to_string(),
        };
        // It may be ours.
        log.keep_temporary_file();
        Err(self.unknown(version, &why))
    }

    /// The put of `version` failed, but the entry may be there: only the log tells.
    async fn after_unclear_put(
        &mut self,
        version: u64,
        error: TransactionError,
        log: &mut Log<'_>,
        verdict: Verdict,
    ) -> Result<Attempt> {
        match self.whose(version, log, verdict).await {
            Ok(Some(attempt)) => Ok(attempt),
            Ok(None) => {
                if log.abort(version).await || is_refusal(&error) {
                    let message = format!("version {version} was not written: {error}");
                    return Err(Error::unavailable(message).with_source(error));
                }
                Err(self.unknown(version, &error.to_string()))
            }
            Err(_) => {
                log.keep_temporary_file();
                Err(self.unknown(version, &error.to_string()))
            }
        }
    }

    /// Looks whose entry `version` is; nothing if it is not there. Where another writer has it, our
    /// put has failed for good.
    async fn whose(
        &mut self,
        version: u64,
        log: &mut Log<'_>,
        verdict: Verdict,
    ) -> Result<Option<Attempt>> {
        let Some(winner) = log.read(version).await? else {
            return Ok(None);
        };
        if self.is_own(&winner) {
            log.keep_temporary_file();
            return Ok(Some(Attempt::Committed(version, verdict)));
        }
        self.read_back = Some(winner);
        Ok(Some(Attempt::Lost))
    }

    fn is_own(&self, commit: &WinningCommit) -> bool {
        commit.info.txn_id.as_deref() == Some(self.transaction.txn_id.to_string().as_str())
    }

    fn unknown(&self, version: u64, why: &str) -> Error {
        let source = OutcomeUnknown {
            version,
            txn_id: self.transaction.txn_id,
        };
        Error::unavailable(format!("{source}: {why}")).with_source(source)
    }
}

#[cfg(test)]
mod tests;
