//! Concurrent SQL `INSERT`, `UPDATE`, `DELETE`, `MERGE` and `TRUNCATE`, one by one or in transactions,
//! on Delta Lake tables with DataFusion: writers whose data is disjoint both commit, writers whose data
//! meets do not.
//!
//! Delta Lake commits optimistically. A writer reads version N, writes files and puts version N+1;
//! if another commit was there first, a conflict check decides whether the loser may still commit.
//! This crate checks with **conflict-time data skipping**: the loser skips the files that the winner
//! added if their statistics prove that no row in them can match anything the loser read.
//!
//! # Two writers
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion::physical_plan::collect;
//! use delta_disjoint::commit::{ConflictKind, Verdict};
//! use delta_disjoint::{session, sql};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let location = folder.path().display();
//! let ctx = session();
//! sql(&ctx, &format!("CREATE EXTERNAL TABLE orders (id BIGINT, status VARCHAR) \
//!                     STORED AS DELTA LOCATION '{location}'")).await?;
//! sql(&ctx, "INSERT INTO orders VALUES (1, 'new'), (2, 'new')").await?.collect().await?;
//! sql(&ctx, "INSERT INTO orders VALUES (901, 'new'), (902, 'new')").await?.collect().await?;
//!
//! // A statement is pinned to the newest version when it is planned: these two overlap.
//! let low = sql(&ctx, "UPDATE orders SET status = 'done' WHERE id < 100").await?;
//! let high = sql(&ctx, "DELETE FROM orders WHERE id > 900").await?;
//! let late = sql(&ctx, "UPDATE orders SET status = 'late' WHERE id < 50").await?;
//! let context = ctx.task_ctx();
//! let (low, high, late) = (
//!     low.create_physical_plan().await?,
//!     high.create_physical_plan().await?,
//!     late.create_physical_plan().await?,
//! );
//!
//! collect(low, Arc::clone(&context)).await?;
//! collect(high, Arc::clone(&context)).await?; // reads other rows: commits as well
//! let error = collect(late, context).await.unwrap_err(); // reads rows that the first changed
//! let verdict = Verdict::find(&error).unwrap();
//! assert_eq!(verdict.first_conflict().unwrap().kind, ConflictKind::ConcurrentAppend);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Putting it into a session
//!
//! [`session()`] is a ready `SessionContext`; [`register`] puts the same onto a
//! `SessionStateBuilder` that has rules, factories and a query planner of its own. [`sql`] is
//! `SessionContext::sql` that also refuses what DataFusion's planner would silently drop, and that
//! acts on `BEGIN`, `COMMIT` and `ROLLBACK`. Options are set with `SET delta.… = …`, see
//! [`config::DeltaOptions`]; those of a new table stand in `OPTIONS (…)` of `CREATE EXTERNAL TABLE`,
//! see [`session::table_options`].
//!
//! Operations and commits of `deltalake` itself get the same check through the [`hook`].
//!
//! # The rule
//!
//! > A winner's file may be skipped only if it is proved that no row in it can satisfy any read of
//! > this transaction; whatever is unknown, missing, odd or failing keeps the file.
//!
//! A wrongly kept file costs a retry. A wrongly skipped file would be silent corruption.
//!
//! # Life of a statement
//!
//! | step | where | what happens |
//! |---|---|---|
//! | text | [`session`](mod@session) | [`sql`] checks what the plan will no longer show; DataFusion plans |
//! | logical plan | [`plan::rule`] | DML on a Delta table becomes a node that keeps the whole input plan; the target's scan also yields each row's file and position. A MERGE's input is the join of its source and the table, with the clause that applies to each row |
//! | optimised | DataFusion | subqueries, filters and projections move *inside* the node's input |
//! | pinned | [`plan::pin`] | once for each execution: every Delta table gets one version, in a transaction that of its first mention with the transaction's own changes, and the statement's read collector |
//! | scan planned | [`read::provider`] | the pushed filters are recorded as a read and prune the files |
//! | keys | [`plan::planner`] | of a MERGE, and of a `DELETE` or `UPDATE` by `IN (SELECT …)` or `EXISTS`: the other side is read first, to its end, and its keys narrow the table's files and the recorded read |
//! | rules | [`write::rules`] | rows that come are held to the table's constraints, and generated columns are computed |
//! | changes | [`write::rewrite`] | new rows stream into new files; changed positions go into one bitmap for each file |
//! | rows that stay | [`write::rewrite`] | of each touched file, copied by a Parquet row selection |
//! | changed rows | [`write::change_data`] | for the change data feed of a table that has one, as they were and as they are; in a transaction at `COMMIT` |
//! | winners | [`commit`] | commits after the read version are read once each; their [net effect](commit::net_effect) is computed |
//! | check | [`commit::conflict`] | a pure function: reads, our actions, net effect, isolation level → [`Verdict`](commit::Verdict) |
//! | commit | [`commit::attempt`] | put-if-absent of the version after the last one that was checked; a lost race checks the new versions only |
//! | checkpoint | [`commit`] | at the table's interval; expired entries go only if the table asks for it |
//! | result | DataFusion | one row, `count` |
//!
//! Planning and `EXPLAIN` have no side effect. A statement that changes no row commits nothing. In a
//! [transaction](commit::open_transaction) the steps from the winners to the checkpoint happen once, at
//! `COMMIT`, with the reads and changes of all statements. A statement outside of one that met a
//! conflict is planned and run again if `delta.statement_reruns` says so.
//!
//! # Why a commit is refused
//!
//! The error names the commit that won, the file and the condition that met, and what to do. The
//! [`Verdict`](commit::Verdict) behind it lists every conflict and every file that was tested, with
//! [codes](reason::ReasonCode) and numbers, as text and as JSON. [`explain`](mod@explain) asks the same
//! question without a statement, from the log alone; `docs/evidence.md` explains the codes.
//!
//! # Invariants
//!
//! 1. No predicate becomes text and is parsed again: what was planned is what is checked.
//! 2. Scan and conflict check call one pruner ([`read::prune::prune`]) over one representation of
//!    statistics.
//! 3. Reads are recorded when asked, not when answered: a scan that finds nothing still counts.
//! 4. A table is its canonical location, not its name.
//! 5. A change of data for which nothing was recorded counts as a read of the whole table.
//! 6. A table feature that cannot be honoured is refused by name before any file is written.
//! 7. A failed statement leaves the table as it was.
//! 8. The put is at the last checked version + 1, and the versions checked have no gap.
//!
//! # What it does not do
//!
//! Changes of tables that use identity columns, row tracking, in-commit timestamps, type widening or
//! Iceberg compatibility are refused by name, see [`read::features`]; so are new rows where a constraint
//! or a generated column has an expression that is not understood, see [`write::rules`]. Column
//! mapping, deletion vectors and clustering are honoured; changes are copy-on-write, no deletion vector
//! is written. A transaction changes one table. Guarantees are
//! for one table: the logs of other tables that a statement reads are not checked.

mod action_batch;
mod cancellation;
mod clock;
pub mod commit;
pub mod config;
pub mod error;
pub mod explain;
pub mod history;
pub mod hook;
pub mod plan;
pub mod read;
pub mod reason;
pub mod session;
mod storage;
mod three_valued;
pub mod write;

pub use cancellation::{Cancellation, PutState};
pub use error::{Error, ErrorKind, Result};
pub use session::{register, register_on, session, sql};

/// The README's examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the description of isolation.
#[cfg(doctest)]
#[doc = include_str!("../docs/isolation.md")]
struct Isolation;

/// And those of the description of the hook.
#[cfg(doctest)]
#[doc = include_str!("../docs/hook.md")]
struct Hook;
