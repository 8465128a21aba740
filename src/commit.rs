//! Committing: winners, their net effect, the conflict check, and the attempt loop.
//!
//! What comes in: the read set and the actions of a transaction, and the table's log store. What
//! goes out: a committed version, or a [`Verdict`] that names every conflict. What is guaranteed:
//! a commit is put only at the version after the last one that was checked, and every version from
//! the read version on was checked.

pub mod actions;
pub mod advice;
pub mod attempt;
mod checkpoint;
pub mod conflict;
pub mod evidence;
pub mod exec;
pub mod isolation;
pub mod log;
pub mod net_effect;
pub mod open_transaction;
pub mod report;
pub mod session_transactions;
pub mod table_change;
pub mod transaction;
pub mod verdict;
pub mod winner;

#[cfg(test)]
mod fixtures;

pub use actions::{Actions, FileKey};
pub use advice::Advice;
pub use conflict::{CheckInput, check};
pub use evidence::{Evidence, FileChange};
pub use isolation::IsolationLevel;
pub use net_effect::NetEffect;
pub use open_transaction::{OpenTransaction, TransactionMode};
pub use session_transactions::{SessionScope, SessionTransactions};
pub use transaction::{
    Backoff, CommitOptions, CommitOutcome, Operation, OptimisticTransaction, OutcomeUnknown,
};
pub use verdict::{AttemptsUsedUp, Conflict, ConflictKind, Verdict, reason_of};
pub use winner::{CommitInfo, WinningCommit};

pub use crate::read::log_store::{CommitStyle, commit_style};
