//! A commit hook for deltalake: its operations run unchanged, and this crate's conflict check decides
//! whether they may commit.
//!
//! deltalake 1.1 checks a commit against the winners one by one, with the text of a predicate. In some
//! cases it lets through what loses or doubles rows (two `OPTIMIZE` at once), in others it refuses
//! what is harmless (an append beside a `DELETE`). With the hook the check of
//! [`commit::conflict`](crate::commit::conflict) takes its place. `docs/hook.md` has the pairs.
//!
//! # Operations
//!
//! [`guard()`] a table for **one** operation:
//!
//! ```
//! use delta_disjoint::hook;
//! # use deltalake::{DeltaTable, kernel::{DataType, PrimitiveType}};
//! # async fn example() -> Result<(), deltalake::DeltaTableError> {
//! # let table = DeltaTable::new_in_memory().create()
//! #     .with_column("id", DataType::Primitive(PrimitiveType::Long), true, None).await?;
//! let guard = hook::guard(table);
//! let report = guard.report();
//! match guard.await?.update().with_predicate("id < 50").with_update("id", "id + 1").await {
//!     Ok((_, metrics)) => println!("{} rows", metrics.num_updated_rows),
//!     // A conflict is deltalake's `CommitConflictError`; the report has what it was about.
//!     Err(error) => println!("{error}: {:?}", report.verdict().map(|v| v.to_string())),
//! }
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! The same appears as a `tracing` event. A winner that cannot be read is an error that names its
//! version, with an [`Error`](crate::Error) of a retryable kind behind it, and never "no conflict".
//! A put whose outcome stays unknown is such an error with
//! [`OutcomeUnknown`](crate::commit::OutcomeUnknown) behind it. A second operation through the same
//! guard is refused by name, and so are tables on LakeFS, whose log store deltalake has to know by its
//! type.
//!
//! # Own actions
//!
//! [`CommitBuilder`] has the methods of deltalake's, and `with_reads`.
//!
//! # What an operation counts as having read
//!
//! | operation | read |
//! |---|---|
//! | any, with [`Guard::with_reads`] | what was given, and nothing else |
//! | `DELETE`, `UPDATE` | the rows of its predicate, see below; without one the whole table |
//! | append | nothing, if [`Guard::with_blind_input`] or `isBlindAppend` in its metadata says so; else the whole table |
//! | overwrite with a predicate, `MERGE` | the rows of the condition, see below, if `with_blind_input` says that the new rows come from elsewhere; else, and for a `MERGE` with clauses for rows not matched by the source, the whole table |
//! | `OPTIMIZE` | the files that it removes |
//! | changes of properties, columns and features, `VACUUM` | no row |
//! | anything else | the whole table |
//!
//! deltalake leaves the predicate in its commit as text that has lost parentheses. It is used only if
//! it has one meaning: `AND` and `OR` of comparisons of a column with a literal, `IN`, `BETWEEN` and
//! `IS [NOT] NULL` over columns of other types than boolean. Literals beside `REAL` columns and
//! integers beyond 2^53 have none, since a constant that was computed is recorded as a double.
//! Everything else, any `NOT`, `IS TRUE`, function, `CASE` or arithmetic, counts as the whole table,
//! and so does the condition of a `MERGE` that compares with the source.
//!
//! The level is the table's `delta.isolationLevel` (`WriteSerializable` where there is none). The hook
//! never calls a commit a blind append by itself; whoever wants it to be one for others says so in the
//! commit's metadata.
//!
//! # What the hook cannot know
//!
//! - **Where rows come from.** `write` and `merge` take any data. Without a word they count as having
//!   read the whole table, so that `INSERT … SELECT` from the table itself is safe; data from
//!   elsewhere needs [`Guard::with_blind_input`]. Whoever computes new rows from a *part* of the table
//!   gives that part with [`Guard::with_reads`].
//! - **What was read before.** The check begins at the version that the operation read, at
//!   `readVersion` in its metadata, and at the version of the reads that are given. Decisions that rest
//!   on an earlier look at the table belong into one of these.
//! - **What deltalake's scan left out.** A file that deltalake's own data skipping or its parsing of a
//!   predicate wrongly ignores while the operation runs is out of reach; only the conflict check is
//!   replaced. See <https://github.com/apache/datafusion/issues/15812> for NaN.
//! - **Predicates that deltalake cannot read back.** Its commit loop parses the text of the predicate
//!   before it puts the entry, if there are winners. Where that fails (`TRY_CAST`, intervals, functions
//!   that only the caller's session has) the operation fails, with the hook as without.
//!   [`CommitBuilder`] is free of it.
//! - **What others do.** A writer without the hook checks as it always did.

mod check;
mod commit_builder;
mod errors;
mod guard;
mod log_store;
mod operation_reads;
mod predicate_text;
mod progress;
mod put;
mod read_set;
mod report;

pub use self::commit_builder::{CheckedCommit, CommitBuilder};
pub use self::guard::{Guard, guard, unguard};
pub use self::read_set::{Reads, reads};
pub use self::report::Report;
