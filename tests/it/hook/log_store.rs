//! The hook over log stores of both kinds, and where they fail.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use delta_disjoint::commit::OutcomeUnknown;
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
    reads: Reading,
    /// Entries of other writers, one put just before each of ours.
    faster: Mutex<Vec<String>>,
    puts: Putting,
    /// The versions whose put was given up, as far as this store was told.
    aborts: Arc<Mutex<Vec<u64>>>,
}

/// How entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Truly,
    /// The end is missing.
    Cut,
    Failing,
    /// They are said not to be there.
    Missing,
}

/// What becomes of a put, and what is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Putting {
    Truly,
    /// Put, and said to have found the version there.
    DoneAndLost,
    /// Put, and failed.
    DoneAndFailed,
    /// Not put, and failed.
    Failed,
}

impl Interposed {
    pub fn over(table: &DeltaTable) -> Self {
        Self {
            inner: table.log_store(),
            name: None,
            finds_no_table: false,
            reads: Reading::Truly,
            faster: Mutex::default(),
            puts: Putting::Truly,
            aborts: Arc::default(),
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
        match self.reads {
            Reading::Truly => Ok(entry),
            Reading::Cut => Ok(entry.map(|entry| entry.slice(..entry.len() - 5))),
            Reading::Failing => Err(DeltaTableError::generic("the network is down")),
            Reading::Missing => Ok(None),
        }
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
        let failed = || TransactionError::LogStoreError {
            msg: "the network is down".to_owned(),
            source: "no answer".into(),
        };
        if self.puts == Putting::Failed {
            return Err(failed());
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
        match self.puts {
            Putting::DoneAndLost => Err(TransactionError::VersionAlreadyExists(version)),
            Putting::DoneAndFailed => Err(failed()),
            Putting::Truly | Putting::Failed => Ok(()),
        }
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        self.aborts.lock().expect("lock").push(version);
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
        let aborts = Arc::clone(&store.aborts);
        let loser = hook::guard(store.table().await).await.expect("guarded");
        let delete = table.deltalake().await.delete().with_predicate(winner);
        delete.await.expect("deleted");
        let delete = loser.delete().with_predicate("id = 1").await;
        assert_eq!(outcome(delete), expected, "{winner}");
        assert_eq!(ids_of(&table).await, rows);
        // A store that notes who has a version would drop the note of somebody else.
        assert_eq!(*aborts.lock().expect("lock"), [0; 0]);
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
    for puts in [Putting::DoneAndLost, Putting::DoneAndFailed] {
        let table = files(&[1]).await;
        let before = table.version().await;
        let store = Interposed {
            puts,
            ..Interposed::over(&table.deltalake().await)
        };
        let guarded = hook::guard(store.table().await).await.expect("guarded");
        let appended = append(guarded, ids(&["id"], &[2])).await.expect("appended");
        assert_eq!(appended.version(), Some(before + 1));
        assert_eq!(table.version().await, before + 1);
        assert_eq!(ids_of(&table).await, [1, 2]);
    }
}

#[tokio::test]
async fn put_of_unknown_outcome_is_said_to_be_one() {
    // How entries are read, what becomes of the put, the style of the store, whether it stays open.
    for (reads, puts, temporary, unknown) in [
        (Reading::Truly, Putting::Failed, false, true),
        (Reading::Truly, Putting::Failed, true, false),
        (Reading::Failing, Putting::Failed, true, true),
        (Reading::Failing, Putting::DoneAndFailed, false, true),
        (Reading::Failing, Putting::DoneAndLost, false, true),
        (Reading::Missing, Putting::DoneAndLost, true, true),
    ] {
        let case = format!("{reads:?} {puts:?} {temporary}");
        let table = files(&[1]).await;
        let version = table.version().await + 1;
        let mut store = Interposed {
            reads,
            puts,
            ..Interposed::over(&table.deltalake().await)
        };
        if temporary {
            store = store.with_temporary_files();
        }
        let aborts = Arc::clone(&store.aborts);
        let guarded = hook::guard(store.table().await).await.expect("guarded");
        let error = append(guarded, ids(&["id"], &[2])).await;
        let error = error.map(|_| ()).expect_err("not certain");
        let found = our_error(&error).and_then(OutcomeUnknown::find);
        assert_eq!(
            found.map(|found| found.version),
            unknown.then_some(version),
            "{case}: {error}"
        );
        // Told once that nothing comes any more, or not at all where something may.
        assert_eq!(aborts.lock().expect("lock").is_empty(), unknown, "{case}");
    }
}

/// What adds no file may be another writer's, who did the same.
#[tokio::test]
async fn equal_entry_without_new_files_is_of_unknown_outcome() {
    let table = files(&[1]).await;
    let store = Interposed {
        puts: Putting::DoneAndLost,
        ..Interposed::over(&table.deltalake().await)
    };
    let guarded = hook::guard(store.table().await).await.expect("guarded");
    let error = guarded.delete().with_predicate("id = 1").await;
    let error = error.map(|_| ()).expect_err("not certain");
    assert!(
        our_error(&error).and_then(OutcomeUnknown::find).is_some(),
        "{error}"
    );
}

#[tokio::test]
async fn winner_that_cannot_be_read_is_a_retryable_error_that_names_it() {
    for reads in [Reading::Cut, Reading::Failing, Reading::Missing] {
        let table = files(&[1, 1000]).await;
        let store = Interposed {
            reads,
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
            "{reads:?}: {error}"
        );
        assert_eq!(
            error_kind(&error),
            Some(ErrorKind::Unavailable),
            "{reads:?}"
        );
        assert_eq!(table.version().await, version);
    }
}

#[tokio::test]
async fn store_that_cannot_be_guarded_is_refused_by_name() {
    for name in ["LastWriterWinsLogStore", "LakeFSLogStore"] {
        let table = files(&[1]).await;
        let store = Interposed::over(&table.deltalake().await).called(name);
        let error = hook::guard(store.table().await).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name), "{error}");
    }
}

/// The kind of this crate's error behind one of deltalake.
pub fn error_kind(error: &DeltaTableError) -> Option<ErrorKind> {
    our_error(error).map(Error::kind)
}

fn our_error(error: &DeltaTableError) -> Option<&Error> {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found);
        }
        source = error.source();
    }
    None
}
