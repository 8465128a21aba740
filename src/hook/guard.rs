//! Guarding one operation of deltalake.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use deltalake::DeltaTable;

use super::check::Hints;
use super::log_store::{GuardedLogStore, unguarded};
use super::report::Report;
use crate::error::{Error, Result};
use crate::read::read_set::ReadSet;

/// Prepares `table` for one operation whose commit is checked by this crate; await it for the table.
///
/// ```
/// use delta_disjoint::hook;
/// # use deltalake::{DeltaTable, kernel::{DataType, PrimitiveType}};
/// # async fn example() -> Result<(), deltalake::DeltaTableError> {
/// # let table = DeltaTable::new_in_memory().create()
/// #     .with_column("id", DataType::Primitive(PrimitiveType::Long), true, None).await?;
/// let (table, _) = hook::guard(table).await?.delete().with_predicate("id < 50").await?;
/// // Once more for the next operation.
/// let (table, _) = hook::guard(table).await?.optimize().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub fn guard(table: DeltaTable) -> Guard {
    Guard {
        table,
        hints: Hints::default(),
        report: Report::default(),
    }
}

/// Takes the guard off a table that an operation returned; without effect on any other table.
pub fn unguard(table: DeltaTable) -> DeltaTable {
    with_log_store(&table, unguarded(&table.log_store()))
}

/// One operation that is about to be guarded, see [`guard()`].
#[must_use = "await it for the guarded table"]
pub struct Guard {
    table: DeltaTable,
    hints: Hints,
    report: Report,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("version", &self.table.version())
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// Says what the operation reads, see [`reads`](super::reads()). It counts in place of what the
    /// operation records, and has to cover all of it: the rows that the operation looks for, and what
    /// the rows it writes were computed from.
    pub fn with_reads(mut self, reads: ReadSet) -> Self {
        self.hints.reads = Some(reads);
        self
    }

    /// Says that the rows which the operation brings in were made without reading this table: an
    /// append of data from elsewhere, a MERGE whose source is elsewhere.
    ///
    /// An append then reads nothing and meets no other writer's data; an overwrite with a predicate
    /// and a MERGE read what their condition asks for. Without it they count as reading the whole
    /// table. DELETE, UPDATE and OPTIMIZE do not need it.
    pub fn with_blind_input(mut self) -> Self {
        self.hints.blind_input = true;
        self
    }

    /// Where the verdict is found after the operation, which returns deltalake's error alone.
    pub fn report(&self) -> Report {
        self.report.clone()
    }

    fn finish(self) -> Result<DeltaTable> {
        if let (Some(reads), Some(loaded)) = (&self.hints.reads, self.table.version())
            && let Some(other) = reads.reads().iter().find(|read| read.version != loaded)
        {
            return Err(Error::unavailable(format!(
                "version {loaded} of the table is loaded, but what was read is of version {}; load \
                 one version and read it again",
                other.version
            )));
        }
        let log_store =
            GuardedLogStore::new(&self.table.log_store(), self.hints, self.report.clone())?;
        Ok(with_log_store(&self.table, Arc::new(log_store)))
    }
}

impl IntoFuture for Guard {
    type Output = Result<DeltaTable>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// # Errors
    ///
    /// `Unsupported` for a log store that is not known to be safe to commit to, `Unavailable` if
    /// reads are given that are of another version than the table has loaded.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.finish() })
    }
}

fn with_log_store(table: &DeltaTable, log_store: deltalake::logstore::LogStoreRef) -> DeltaTable {
    let mut other = DeltaTable::new(log_store);
    other.state.clone_from(&table.state);
    other
}
