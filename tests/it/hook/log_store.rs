//! The hook over log stores of both kinds, and where they fail.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use delta_disjoint::{Error, ErrorKind, hook};
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{self, CommitOrBytes, LogStore, LogStoreConfig, LogStoreRef};
use deltalake::{DeltaResult, DeltaTable, DeltaTableError};
use object_store::ObjectStore;
use uuid::Uuid;

use super::sides::{append, files, ids, ids_of, outcome};

/// A log store between the hook and the table's own.
pub struct Interposed {
    inner: LogStoreRef,
    name: Option<&'static str>,
    finds_no_table: bool,
    /// What is cut off the entries that are read.
    unreadable: bool,
    /// Entries of other writers, one put just before each of ours.
    faster: Mutex<Vec<String>>,
    /// A put that succeeds is said to have found the version there.
    answer_is_lost: bool,
}

impl Interposed {
    pub fn over(table: &DeltaTable) -> Self {
        Self {
            inner: table.log_store(),
            name: None,
            finds_no_table: false,
            unreadable: false,
            faster: Mutex::default(),
            answer_is_lost: false,
        }
    }

    pub fn called(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Takes entries as temporary files.
    fn with_temporary_files(self) -> Self {
        self.called("S3DynamoDbLogStore")
    }

    pub fn that_finds_no_table(mut self) -> Self {
        self.finds_no_table = true;
        self
    }

    pub fn beaten_by(self, entries: &[String]) -> Self {
        Self {
            faster: Mutex::new(entries.iter().rev().cloned().collect()),
            ..self
        }
    }

    pub fn store(self) -> LogStoreRef {
        Arc::new(self)
    }

    async fn table(self) -> DeltaTable {
        let mut table = DeltaTable::new(self.store());
        table.load().await.expect("loads");
        table
    }
}

#[async_trait]
impl LogStore for Interposed {
    fn name(&self) -> String {
        self.name.map_or_else(|| self.inner.name(), str::to_owned)
    }

    async fn read_commit_entry(&self, version: u64) -> DeltaResult<Option<Bytes>> {
        let entry = self.inner.read_commit_entry(version).await?;
        Ok(entry.map(|entry| match self.unreadable {
            true => entry.slice(..entry.len() - 5),
            false => entry,
        }))
    }

    async fn write_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        let faster = self.faster.lock().expect("lock").pop();
        if let Some(faster) = faster {
            let faster = CommitOrBytes::LogBytes(faster.into());
            let put = self.inner.write_commit_entry(version, faster, operation);
            put.await.expect("the version is free");
        }
        match entry {
            CommitOrBytes::TmpCommit(path) => {
                let store = self.object_store(Some(operation));
                logstore::write_commit_entry(&store, version, &path).await?;
            }
            entry => {
                let put = self.inner.write_commit_entry(version, entry, operation);
                put.await?;
            }
        }
        if self.answer_is_lost {
            return Err(TransactionError::VersionAlreadyExists(version));
        }
        Ok(())
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        match entry {
            CommitOrBytes::TmpCommit(path) => {
                let store = self.object_store(Some(operation));
                logstore::abort_commit_entry(&store, version, &path).await
            }
            entry => {
                let abort = self.inner.abort_commit_entry(version, entry, operation);
                abort.await
            }
        }
    }

    async fn get_latest_version(&self, start: u64) -> DeltaResult<u64> {
        self.inner.get_latest_version(start).await
    }

    fn object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.object_store(operation)
    }

    fn root_object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.root_object_store(operation)
    }

    async fn is_delta_table_location(&self) -> DeltaResult<bool> {
        Ok(!self.finds_no_table && self.inner.is_delta_table_location().await?)
    }

    fn config(&self) -> &LogStoreConfig {
        self.inner.config()
    }
}

fn long_add(path: &str, id: i64) -> String {
    let stats = format!(
        r#"{{\"numRecords\":1,\"minValues\":{{\"id\":{id}}},\"maxValues\":{{\"id\":{id}}},\"nullCount\":{{\"id\":0}}}}"#
    );
    format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{}},"size":1,"modificationTime":0,"dataChange":true,"stats":"{stats}"}}}}"#
    )
}

#[tokio::test]
async fn stores_that_take_temporary_files_are_checked_as_those_that_take_bytes() {
    for (winner, expected, rows) in [
        ("id = 1000", "committed", vec![2]),
        ("id = 1", "ConcurrentDeleteRead", vec![2, 1000]),
    ] {
        let table = files(&[1, 2, 1000]).await;
        let store = Interposed::over(&table.deltalake().await).with_temporary_files();
        let loser = hook::guard(store.table().await).await.expect("guarded");
        let delete = table.deltalake().await.delete().with_predicate(winner);
        delete.await.expect("deleted");
        let delete = loser.delete().with_predicate("id = 1").await;
        assert_eq!(outcome(delete), expected, "{winner}");
        assert_eq!(ids_of(&table).await, rows);
        let mut log = std::fs::read_dir(format!("{}/_delta_log", table.path())).expect("log");
        assert!(!log.any(|file| {
            let name = file.expect("file").file_name();
            name.to_string_lossy().ends_with(".tmp")
        }));
    }
}

/// Nobody was there when the operation looked, and somebody is when it puts.
#[tokio::test]
async fn winners_that_come_between_check_and_put_are_checked_too() {
    for (faster, expected) in [
        (vec![5_000], "committed"),
        (vec![5_000, 6_000, 7_000], "committed"),
        (vec![5_000, 10], "ConcurrentAppend"),
        (vec![10], "ConcurrentAppend"),
    ] {
        let table = files(&[1, 1000]).await;
        let before = table.version().await;
        let entries: Vec<String> = faster
            .iter()
            .map(|id| long_add(&format!("{id}.parquet"), *id))
            .collect();
        let store = Interposed::over(&table.deltalake().await).beaten_by(&entries);
        let guard = hook::guard(store.table().await);
        let report = guard.report();
        let delete = guard.await.expect("guarded").delete();
        let delete = delete.with_predicate("id < 100").await;
        assert_eq!(outcome(delete), expected, "{faster:?}");
        let verdict = report.verdict().expect("a verdict");
        assert_eq!(verdict.winners_checked(), faster.len(), "{verdict}");
        assert_eq!(verdict.is_conflict(), expected != "committed", "{verdict}");
        let written = (expected == "committed").then_some(before + faster.len() as u64 + 1);
        assert_eq!(report.committed(), written);
        assert_eq!(report.verdicts().len(), faster.len());
    }
}

/// A store that tries again on its own finds the entry that it has put.
#[tokio::test]
async fn put_whose_answer_was_lost_counts_once() {
    let table = files(&[1]).await;
    let before = table.version().await;
    let store = Interposed {
        answer_is_lost: true,
        ..Interposed::over(&table.deltalake().await)
    };
    let guarded = hook::guard(store.table().await).await.expect("guarded");
    let appended = append(guarded, ids(&["id"], &[2])).await.expect("appended");
    assert_eq!(appended.version(), Some(before + 1));
    assert_eq!(table.version().await, before + 1);
    assert_eq!(ids_of(&table).await, [1, 2]);
}

#[tokio::test]
async fn winner_that_cannot_be_read_is_a_retryable_error_that_names_it() {
    let table = files(&[1, 1000]).await;
    let store = Interposed {
        unreadable: true,
        ..Interposed::over(&table.deltalake().await)
    };
    let loser = hook::guard(store.table().await).await.expect("guarded");
    let winner = table.deltalake().await;
    append(winner, ids(&["id"], &[5_000]))
        .await
        .expect("appended");
    let version = table.version().await;
    let error = loser.delete().with_predicate("id < 100").await;
    let error = error.map(|_| ()).expect_err("cannot be checked");
    assert!(
        error.to_string().contains(&format!("version {version}")),
        "{error}"
    );
    assert_eq!(error_kind(&error), Some(ErrorKind::Unavailable));
    assert_eq!(table.version().await, version);
}

#[tokio::test]
async fn store_that_may_overwrite_a_version_is_refused_by_name() {
    let table = files(&[1]).await;
    let store = Interposed::over(&table.deltalake().await).called("LastWriterWinsLogStore");
    let error = hook::guard(store.table().await).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("LastWriterWinsLogStore"),
        "{error}"
    );
}

/// The kind of this crate's error behind one of deltalake.
pub fn error_kind(error: &DeltaTableError) -> Option<ErrorKind> {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found.kind());
        }
        source = error.source();
    }
    None
}
