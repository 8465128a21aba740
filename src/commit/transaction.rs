//! One transaction on one table: what it read, what it does, and how it ended.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deltalake::logstore::LogStoreRef;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::actions::Actions;
use super::attempt::Attempts;
use super::isolation::{IsolationLevel, is_blind_append};
use super::verdict::Verdict;
use crate::cancellation::Cancellation;
use crate::config::DeltaOptions;
use crate::error::{Error, Result};
use crate::read::read_set::ReadSet;
use crate::read::snapshot::TableSnapshot;

/// Our `engineInfo`. Readers of the log know by it that decimal statistics are exact.
pub const ENGINE_INFO: &str = concat!("delta-disjoint/", env!("CARGO_PKG_VERSION"));

/// What a transaction is called in `commitInfo`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Operation {
    /// `operation`, such as `DELETE`.
    pub name: String,
    /// `operationParameters`. By custom the values are strings that hold JSON.
    pub parameters: Map<String, Value>,
    /// `operationMetrics`; written as strings, as other writers do.
    pub metrics: BTreeMap<String, u64>,
}

/// How to commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitOptions {
    /// Whether column statistics may skip winners' files; if not, only partition values may.
    pub data_skipping: bool,
    /// How often to try before giving up as [`Contended`](crate::ErrorKind::Contended).
    pub max_attempts: usize,
    /// How many winners to read at a time.
    pub winner_read_concurrency: usize,
    /// How long to wait after a lost race.
    pub backoff: Backoff,
    /// Check as for [`IsolationLevel::Serializable`] where the table asks for less.
    pub serializable: bool,
    /// Stops the commit for as long as nothing is put.
    pub cancellation: Cancellation,
}

impl CommitOptions {
    /// What the options of a session say.
    pub fn from_session(options: &DeltaOptions) -> Self {
        Self {
            data_skipping: options.conflict_data_skipping,
            max_attempts: options.max_commit_attempts,
            winner_read_concurrency: options.winner_read_concurrency,
            ..Self::default()
        }
    }
}

impl Default for CommitOptions {
    fn default() -> Self {
        Self {
            data_skipping: true,
            max_attempts: 20,
            winner_read_concurrency: 8,
            backoff: Backoff::default(),
            serializable: false,
            cancellation: Cancellation::default(),
        }
    }
}

/// Exponential back-off with full jitter.
///
/// ```
/// use std::time::Duration;
///
/// use delta_disjoint::commit::Backoff;
///
/// let backoff = Backoff { first: Duration::from_millis(10), most: Duration::from_millis(100) };
/// assert_eq!(backoff.delay(1, 1.0), Duration::from_millis(10));
/// assert_eq!(backoff.delay(2, 0.5), Duration::from_millis(10));
/// assert_eq!(backoff.delay(60, 1.0), Duration::from_millis(100));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first lost race; doubled after each further one.
    pub first: Duration,
    /// The longest wait of all.
    pub most: Duration,
}

impl Backoff {
    /// No waiting.
    pub const NONE: Self = Self {
        first: Duration::ZERO,
        most: Duration::ZERO,
    };

    /// The wait after `lost` lost races; `jitter`, from 0 to 1, says how much of it.
    pub fn delay(&self, lost: usize, jitter: f64) -> Duration {
        // Beyond 2^16 every sensible `most` is reached.
        let doublings = u32::try_from(lost.saturating_sub(1)).map_or(16, |lost| lost.min(16));
        let longest = self.first.saturating_mul(1 << doublings).min(self.most);
        longest.mul_f64(if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            1.0
        })
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(20),
            most: Duration::from_secs(2),
        }
    }
}

/// A transaction that is ready to be committed.
#[derive(Debug, Clone)]
pub struct OptimisticTransaction {
    /// The version of the table that it read.
    pub snapshot: Arc<TableSnapshot>,
    /// What it read.
    pub reads: ReadSet,
    /// What it does.
    pub actions: Actions,
    /// What it is called.
    pub operation: Operation,
    /// Its unique id, by which it recognises its own commit.
    pub txn_id: Uuid,
    /// How to commit it.
    pub options: CommitOptions,
}

/// How a commit ended.
#[derive(Debug)]
#[must_use = "a conflict is not an error, but nothing was committed"]
pub enum CommitOutcome {
    /// The transaction is part of the table.
    Committed {
        /// As which version. For a transaction without actions, the version it read.
        version: u64,
        /// Attempts needed; 0 where there was nothing to commit.
        attempts: usize,
        /// The check against all winners.
        verdict: Verdict,
    },
    /// The table is as it was without this transaction.
    Conflicted {
        /// The conflicts and the evidence.
        verdict: Verdict,
        /// The transaction, for whoever wants to clean up or to try something else.
        transaction: Box<OptimisticTransaction>,
    },
}

/// Behind an error of [`OptimisticTransaction::commit`]: it is not known whether the commit was
/// written.
///
/// The storage failed while it wrote the version, and the log did not tell afterwards. The data
/// files must stay, since a version may refer to them, and whoever runs the statement again should
/// look for `txn_id` in the log first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeUnknown {
    /// The version that was tried.
    pub version: u64,
    /// The transaction's id, as in `commitInfo.txnId`; for a commit through the
    /// [hook](crate::hook), whose entry has none, the id of deltalake's operation.
    pub txn_id: Uuid,
}

impl OutcomeUnknown {
    /// Whether `error` leaves it open if the commit was written.
    pub fn find(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl fmt::Display for OutcomeUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "version {} may or may not hold transaction {}",
            self.version, self.txn_id
        )
    }
}

impl std::error::Error for OutcomeUnknown {}

impl OptimisticTransaction {
    /// The level it is checked at.
    pub fn level(&self) -> IsolationLevel {
        match IsolationLevel::for_transaction(&self.snapshot, &self.reads, &self.actions) {
            IsolationLevel::WriteSerializable if self.options.serializable => {
                IsolationLevel::Serializable
            }
            level => level,
        }
    }

    /// Checks the transaction against every commit since the version it read and puts it after
    /// the last one. A transaction without actions succeeds without a put, whatever others did:
    /// it read one version, and that is where it stands in the order.
    ///
    /// A conflict is an outcome, not an error.
    ///
    /// # Errors
    ///
    /// - [`Unavailable`](crate::ErrorKind::Unavailable) if a read is of another version than the
    ///   snapshot, if the storage fails, or if a winner is missing or cannot be read; with
    ///   [`OutcomeUnknown`] as source if the commit may have been written all the same.
    /// - [`Contended`](crate::ErrorKind::Contended) if every attempt lost the race.
    /// - [`Cancelled`](crate::ErrorKind::Cancelled) if it was called off before a put.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) if the log store is
    ///   [not known](super::commit_style).
    pub async fn commit(self, log_store: &LogStoreRef) -> Result<CommitOutcome> {
        let empty = self.actions.is_empty();
        let (version, level) = (self.snapshot.version, self.level());
        let attempts = Attempts::new(self)?;
        if empty {
            return Ok(CommitOutcome::Committed {
                version,
                attempts: 0,
                verdict: Verdict::clean(version, level),
            });
        }
        attempts.run(log_store, None).await
    }

    /// The `commitInfo` of the entry. `timestamp` in milliseconds since the epoch.
    pub(super) fn commit_info(&self, timestamp: i64) -> Map<String, Value> {
        let metrics: Map<String, Value> = self
            .operation
            .metrics
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string().into()))
            .collect();
        let fields: [(&str, Value); 9] = [
            ("timestamp", timestamp.into()),
            ("operation", self.operation.name.clone().into()),
            (
                "operationParameters",
                self.operation.parameters.clone().into(),
            ),
            ("readVersion", self.snapshot.version.into()),
            ("isolationLevel", self.level().as_str().into()),
            (
                "isBlindAppend",
                is_blind_append(&self.reads, &self.actions).into(),
            ),
            ("operationMetrics", metrics.into()),
            ("txnId", self.txn_id.to_string().into()),
            ("engineInfo", ENGINE_INFO.into()),
        ];
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    pub(super) fn check_versions(&self) -> Result<()> {
        let version = self.snapshot.version;
        match self
            .reads
            .reads()
            .iter()
            .find(|read| read.version != version)
        {
            None => Ok(()),
            Some(read) => Err(Error::unavailable(format!(
                "the transaction read versions {version} and {} of the table",
                read.version
            ))),
        }
    }
}
