//! Two operations of deltalake that start at one version and commit one after the other: the second
//! one, the loser, with the hook and without.

use std::future::Future;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use delta_disjoint::hook;
use delta_disjoint::read::read_set::ReadSet;
use deltalake::kernel::transaction::{CommitConflictError, TransactionError};
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableError};

use crate::support::Table;

/// How the loser commits.
#[derive(Debug, Clone)]
pub enum Side {
    Without,
    With,
    /// With the hook, and the word that new rows come from elsewhere.
    Blind,
    /// With the hook and these reads.
    Reads(ReadSet),
}

impl Side {
    pub async fn table(self, table: DeltaTable) -> DeltaTable {
        let guarded = match self {
            Self::Without => return table,
            Self::With => hook::guard(table).await,
            Self::Blind => hook::guard(table).with_blind_input().await,
            Self::Reads(reads) => hook::guard(table).with_reads(reads).await,
        };
        guarded.expect("guarded")
    }
}

/// What became of an operation: `committed`, the name of a conflict, or the error's text.
pub fn outcome<T>(result: Result<T, DeltaTableError>) -> String {
    use CommitConflictError as Kind;
    let conflict = match result {
        Ok(_) => return "committed".to_owned(),
        Err(DeltaTableError::Transaction {
            source: TransactionError::CommitConflict(conflict),
        }) => conflict,
        Err(error) => return error.to_string(),
    };
    match conflict {
        Kind::ConcurrentAppend => "ConcurrentAppend".to_owned(),
        Kind::ConcurrentDeleteRead => "ConcurrentDeleteRead".to_owned(),
        Kind::ConcurrentDeleteDelete => "ConcurrentDeleteDelete".to_owned(),
        Kind::MetadataChanged => "MetadataChanged".to_owned(),
        Kind::ConcurrentTransaction => "ConcurrentTransaction".to_owned(),
        Kind::ProtocolChanged(_) => "ProtocolChanged".to_owned(),
        other => other.to_string(),
    }
}

/// As [`outcome`], or `panic`.
pub async fn outcome_or_panic<T: Send + 'static>(
    operation: impl Future<Output = Result<T, DeltaTableError>> + Send + 'static,
) -> String {
    match tokio::spawn(operation).await {
        Ok(result) => outcome(result),
        Err(error) if error.is_panic() => "panic".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Two handles at one version: the winner's and the loser's.
pub async fn both(table: &Table, side: Side) -> (DeltaTable, DeltaTable) {
    let winner = table.deltalake().await;
    let loser = side.table(table.deltalake().await).await;
    assert_eq!(winner.version(), loser.version());
    (winner, loser)
}

/// Rows of one column `id`, or of `id` and `x` with one value for both.
pub fn ids(columns: &[&str], ids: &[i64]) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
    let columns = columns
        .iter()
        .map(|name| (*name, Arc::clone(&values), true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("batch")
}

/// deltalake appends `batch`.
pub async fn append(table: DeltaTable, batch: RecordBatch) -> Result<DeltaTable, DeltaTableError> {
    table
        .write(vec![batch])
        .with_save_mode(SaveMode::Append)
        .await
}

/// `t (id BIGINT)` with one file for each of `ids`.
pub async fn files(values: &[i64]) -> Table {
    let inserts: Vec<String> = values.iter().map(|id| format!("VALUES ({id})")).collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    Table::create("id BIGINT", "", &inserts).await
}

/// `t (id BIGINT, p BIGINT)` with two files in each of the partitions 1 and 2; `id` counts up.
pub async fn partitioned(options: &str) -> Table {
    let clauses = format!("PARTITIONED BY (p) {options}");
    let inserts = [
        "VALUES (1, 1)",
        "VALUES (2, 1)",
        "VALUES (3, 2)",
        "VALUES (4, 2)",
    ];
    Table::create("id BIGINT, p BIGINT", &clauses, &inserts).await
}

/// The `id` of every row, in order, as deltalake reads it.
pub async fn ids_of(table: &Table) -> Vec<i64> {
    let ctx = table.deltalake_session().await;
    let frame = ctx.sql("SELECT id FROM t ORDER BY id").await.expect("plan");
    let rows = crate::support::text_rows(&frame.collect().await.expect("rows"));
    rows.iter()
        .map(|id| id.parse().expect("a number"))
        .collect()
}
