//! What a writer would meet: the conflict check without a statement, from the log alone.
//!
//! The answer is that of the check which a commit goes through: the same predicates, read sets,
//! winners and rules. No data file is read and nothing is written.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DFResult, project_schema};
use datafusion::datasource::TableType;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use deltalake::kernel::Remove;

use crate::commit::log::{newest_version, read_winners};
use crate::commit::{
    Actions, CheckInput, CommitOptions, IsolationLevel, NetEffect, Verdict, check,
};
use crate::error::{Error, Result};
use crate::read::features::check_readable;
use crate::read::path::canonical_path;
use crate::read::read_set::{Read, ReadScope, ReadSet};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;
use crate::session::session;

/// A writer that read one version of a table: would it still commit?
///
/// Each predicate and the read of the whole table is one read; a file that a winner added is out of
/// the way only if every read rules it out. A writer that reads and removes nothing is a plain
/// append, which conflicts only with changes of the table itself. One that removes files and reads
/// nothing counts as having read the whole table.
///
/// What the writer adds besides is not asked, so that what depends on it is not answered: a commit
/// also conflicts if a winner clusters the table by a column of which the commit's new files hold no
/// statistics, if a winner committed for the same application or changed the same metadata domain,
/// and if both change metadata or protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The version that the writer read.
    pub read_version: u64,
    /// The last version to check against; `None`: the newest.
    pub to_version: Option<u64>,
    /// What it read, each as a condition in SQL over the table's columns at `read_version`.
    pub predicates: Vec<String>,
    /// Whether it read all rows.
    pub whole_table: bool,
    /// Files that it removes, as the log calls them; they are live at `read_version`.
    pub removes: Vec<String>,
    /// How strictly to check; `None`: as the table says at `read_version`.
    pub isolation: Option<IsolationLevel>,
    /// Whether column statistics may skip files; if not, only partition values may.
    pub data_skipping: bool,
}

impl Question {
    /// A plain append by a writer that read `read_version`, with data skipping, checked against all
    /// versions since.
    pub fn new(read_version: u64) -> Self {
        Self {
            read_version,
            to_version: None,
            predicates: Vec::new(),
            whole_table: false,
            removes: Vec::new(),
            isolation: None,
            data_skipping: true,
        }
    }
}

/// The verdict on the writer of `question`, with all evidence.
///
/// # Errors
///
/// `Invalid` if there is no such version, if a predicate cannot be planned or if a file to remove
/// is not live; `Unsupported` if the table uses a feature that this crate does not read;
/// `Unavailable` or `Corrupt` if the log cannot be read.
///
/// ```
/// use std::collections::HashMap;
///
/// use delta_disjoint::explain::{Question, explain};
/// use delta_disjoint::read::table::TableHandle;
/// use delta_disjoint::{session, sql};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let location = folder.path().to_str().ok_or("a path")?;
/// let ctx = session();
/// sql(&ctx, &format!("CREATE EXTERNAL TABLE t (id BIGINT) STORED AS DELTA LOCATION '{location}'"))
///     .await?;
/// sql(&ctx, "INSERT INTO t VALUES (1), (2)").await?.collect().await?;
/// sql(&ctx, "UPDATE t SET id = 9 WHERE id = 2").await?.collect().await?;
///
/// // Who read version 1 and asked for ids from 5 on has not seen the 9 of version 2.
/// let table = TableHandle::at(location, HashMap::new(), false)?;
/// let question = Question {
///     predicates: vec!["id >= 5".to_owned()],
///     ..Question::new(1)
/// };
/// let verdict = explain(&table, &question).await?;
/// assert!(verdict.is_conflict());
/// assert_eq!(
///     verdict.conflicts[0].reason.detail,
///     "id >= 5 may match, file has id from 1 to 9"
/// );
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub async fn explain(table: &TableHandle, question: &Question) -> Result<Verdict> {
    let location = table.location();
    let Some(newest) = newest_version(table.log_store()).await? else {
        return Err(Error::invalid(format!(
            "there is no Delta table at {location}"
        )));
    };
    let last = question.to_version.unwrap_or(newest);
    let first = question.read_version;
    if let Some(missing) = [first, last].into_iter().find(|version| *version > newest) {
        return Err(Error::invalid(format!(
            "the table at {location} has no version {missing}; its newest is {newest}"
        )));
    }
    if last < first {
        return Err(Error::invalid(format!(
            "version {last} is before version {first}, which was read"
        )));
    }
    let snapshot = table.at_version(first).await?;
    check_readable(&snapshot.protocol, &snapshot.metadata)?;
    let actions = Actions {
        removes: removes(table, &snapshot, &question.removes)?,
        ..Actions::default()
    };
    let reads = reads(&snapshot, question).await?;
    let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
    if let Some(next) = first.checked_add(1).filter(|next| *next <= last) {
        let concurrency = CommitOptions::default().winner_read_concurrency;
        let winners = read_winners(table.log_store(), next..=last, concurrency, |_| None);
        for winner in winners.await? {
            net_effect.apply(Arc::new(winner))?;
        }
    }
    Ok(check(&CheckInput {
        reads: &reads,
        actions: &actions,
        net_effect: &net_effect,
        level: question
            .isolation
            .unwrap_or_else(|| IsolationLevel::of_table(&snapshot)),
        data_skipping: question.data_skipping,
    }))
}

async fn reads(snapshot: &Arc<TableSnapshot>, question: &Question) -> Result<ReadSet> {
    let mut reads = ReadSet::default();
    for predicate in &question.predicates {
        for read in reads_of(predicate, snapshot).await? {
            reads.push(read);
        }
    }
    if question.whole_table {
        reads.push(Read::whole_table(snapshot));
    }
    // A plain append says that it read nothing; who removes and says nothing has read everything.
    if reads.is_unrecorded() && question.removes.is_empty() {
        reads.push(Read {
            scope: ReadScope::Nothing,
            version: snapshot.version,
            files: Arc::default(),
        });
    }
    Ok(reads)
}

/// The reads of `SELECT … WHERE predicate`, planned as any statement is.
async fn reads_of(predicate: &str, snapshot: &Arc<TableSnapshot>) -> Result<Vec<Read>> {
    let wrong = |error: DataFusionError| {
        Error::invalid(format!(
            "the predicate {predicate} cannot be planned: {}",
            error.strip_backtrace()
        ))
        .with_source(error)
    };
    let probe = Arc::new(Probe {
        snapshot: Arc::clone(snapshot),
        reads: Mutex::default(),
    });
    let ctx = session();
    let table = ctx.read_table(Arc::clone(&probe) as _).map_err(wrong)?;
    let condition = table.parse_sql_expr(predicate).map_err(wrong)?;
    if let Expr::Alias(alias) = &condition {
        return Err(Error::invalid(format!(
            "the predicate {predicate} ends in a name, {}, which a condition has none of",
            alias.name
        )));
    }
    let filtered = table.filter(condition).map_err(wrong)?;
    filtered.create_physical_plan().await.map_err(wrong)?;
    let mut reads = probe.reads.lock().unwrap_or_else(PoisonError::into_inner);
    if reads.is_empty() {
        // Nothing is scanned for a condition that is never true.
        reads.push(Read::of_scan(snapshot, &[lit(false)]).0);
    }
    Ok(std::mem::take(&mut reads))
}

fn removes(table: &TableHandle, snapshot: &TableSnapshot, paths: &[String]) -> Result<Vec<Remove>> {
    let mut seen = HashSet::new();
    let mut removes = Vec::new();
    for path in paths {
        let canonical = canonical_path(table.log_store().root_url(), path);
        let live = snapshot
            .files
            .iter()
            .find(|add| add.path == *path || add.path == canonical)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "the file {path} is not live in version {}",
                    snapshot.version
                ))
            })?;
        if seen.insert(live.path.as_str()) {
            removes.push(Remove {
                path: live.path.clone(),
                data_change: true,
                deletion_vector: live.deletion_vector.clone(),
                ..Remove::default()
            });
        }
    }
    Ok(removes)
}

/// A table without rows that notes what its scans are asked for.
#[derive(Debug)]
struct Probe {
    snapshot: Arc<TableSnapshot>,
    reads: Mutex<Vec<Read>>,
}

#[async_trait]
impl TableProvider for Probe {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.snapshot.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DFResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let (read, _) = Read::of_scan(&self.snapshot, filters);
        self.reads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(read);
        let schema = project_schema(&self.snapshot.schema, projection)?;
        Ok(Arc::new(EmptyExec::new(schema)))
    }
}
