use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use deltalake::DeltaResult;
use deltalake::logstore::{
    CommitOrBytes, LogStore, LogStoreConfig, StorageConfig, commit_uri_from_version, logstore_for,
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::cancellation::Cancellation;
use crate::commit::fixtures::{actions, add, matching, nothing, remove, snapshot, whole_table};
use crate::commit::{Actions, Backoff, CommitOptions, CommitStyle, Operation, commit_style};
use crate::error::ErrorKind;
use crate::read::read_set::{Read, ReadSet};

const READ_VERSION: u64 = 4;

/// What happens to a put.
#[derive(Debug, Clone)]
enum Fault {
    /// Another writer puts this entry first.
    Race(&'static str),
    /// Our entry is put, and the answer is an error.
    AnswerLost,
    /// Our entry is put, another writer follows, and the answer is an error.
    AnswerLostAndFollowed(&'static str),
    /// Our entry is put, and the store says that it existed.
    AnswerMistaken,
    /// Nothing is put, and the answer says nothing.
    Vanished,
    /// Nothing is put, and the answer says why.
    Refused,
    /// Another writer puts this entry first, and the answer is some other error.
    RaceUnclear(&'static str),
}

/// A log store that injects faults and counts.
struct Faulty {
    inner: LogStoreRef,
    name: &'static str,
    faults: Mutex<VecDeque<Fault>>,
    hidden: Option<u64>,
    reads: Mutex<Vec<u64>>,
    puts: Mutex<Vec<u64>>,
    /// What the request tells while an entry is put.
    states: Mutex<Vec<PutState>>,
    /// Made while an entry is put.
    request: Cancellation,
}

impl Faulty {
    async fn put(&self, version: u64, entry: &str) {
        let store = self.inner.object_store(None);
        let path = commit_uri_from_version(Some(version));
        store.put(&path, entry.to_owned().into()).await.unwrap();
    }

    async fn forward(
        &self,
        version: u64,
        entry: CommitOrBytes,
        id: Uuid,
    ) -> Result<(), TransactionError> {
        match entry {
            CommitOrBytes::LogBytes(_) => self.inner.write_commit_entry(version, entry, id).await,
            CommitOrBytes::TmpCommit(path) => {
                let store = self.inner.object_store(None);
                deltalake::logstore::write_commit_entry(store.as_ref(), version, &path).await
            }
        }
    }
}

fn unclear() -> TransactionError {
    TransactionError::ObjectStore {
        source: object_store::Error::Generic {
            store: "test",
            source: "connection reset".into(),
        },
    }
}

#[async_trait::async_trait]
impl LogStore for Faulty {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    async fn read_commit_entry(&self, version: u64) -> DeltaResult<Option<Bytes>> {
        self.reads.lock().unwrap().push(version);
        if self.hidden == Some(version) {
            return Ok(None);
        }
        self.inner.read_commit_entry(version).await
    }

    async fn write_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        id: Uuid,
    ) -> Result<(), TransactionError> {
        self.puts.lock().unwrap().push(version);
        self.request.cancel();
        self.states.lock().unwrap().push(self.request.put_state());
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            None => self.forward(version, entry, id).await,
            Some(Fault::Race(other)) => {
                self.put(version, other).await;
                self.forward(version, entry, id).await
            }
            Some(Fault::AnswerLost) => {
                self.forward(version, entry, id).await?;
                Err(unclear())
            }
            Some(Fault::AnswerLostAndFollowed(other)) => {
                self.forward(version, entry, id).await?;
                self.put(version + 1, other).await;
                Err(unclear())
            }
            Some(Fault::AnswerMistaken) => {
                self.forward(version, entry, id).await?;
                Err(TransactionError::VersionAlreadyExists(version))
            }
            Some(Fault::Vanished) => Err(unclear()),
            Some(Fault::Refused) => Err(TransactionError::ObjectStore {
                source: object_store::Error::PermissionDenied {
                    path: "_delta_log".to_owned(),
                    source: "read only".into(),
                },
            }),
            Some(Fault::RaceUnclear(other)) => {
                self.put(version, other).await;
                Err(unclear())
            }
        }
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        id: Uuid,
    ) -> Result<(), TransactionError> {
        match entry {
            CommitOrBytes::LogBytes(_) => self.inner.abort_commit_entry(version, entry, id).await,
            CommitOrBytes::TmpCommit(path) => {
                Ok(self.inner.object_store(None).delete(&path).await?)
            }
        }
    }

    async fn get_latest_version(&self, start: u64) -> DeltaResult<u64> {
        self.inner.get_latest_version(start).await
    }

    fn object_store(&self, id: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.object_store(id)
    }

    fn root_object_store(&self, id: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.root_object_store(id)
    }

    fn config(&self) -> &LogStoreConfig {
        self.inner.config()
    }
}

/// A table whose log ends at the read version, and the faults that its puts meet.
struct Table {
    _folder: tempfile::TempDir,
    faulty: Arc<Faulty>,
}

impl Table {
    async fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::with(faults, "DefaultLogStore", None, Cancellation::default()).await
    }

    async fn with(
        faults: impl IntoIterator<Item = Fault>,
        name: &'static str,
        hidden: Option<u64>,
        request: Cancellation,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = url::Url::from_directory_path(folder.path()).unwrap();
        let faulty = Arc::new(Faulty {
            inner: logstore_for(&url, StorageConfig::default()).unwrap(),
            name,
            faults: Mutex::new(faults.into_iter().collect()),
            hidden,
            reads: Mutex::default(),
            puts: Mutex::default(),
            states: Mutex::default(),
            request,
        });
        faulty.put(READ_VERSION, FAR).await;
        Self {
            _folder: folder,
            faulty,
        }
    }

    fn log_store(&self) -> LogStoreRef {
        let store: Arc<Faulty> = Arc::clone(&self.faulty);
        store
    }

    fn reads(&self) -> Vec<u64> {
        self.faulty.reads.lock().unwrap().clone()
    }

    fn put_states(&self) -> Vec<PutState> {
        self.faulty.states.lock().unwrap().clone()
    }

    fn puts(&self) -> Vec<u64> {
        self.faulty.puts.lock().unwrap().clone()
    }

    /// The `commitInfo` of each version, by version.
    async fn log(&self) -> Vec<(u64, Value)> {
        let store = self.faulty.inner.object_store(None);
        let mut log = Vec::new();
        for name in self.files().await {
            let Some(version) = name.strip_suffix(".json") else {
                continue;
            };
            let path = self.faulty.inner.log_path().clone().join(name.as_str());
            let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap();
            let info = serde_json::from_slice::<Value>(line)
                .map(|line| line["commitInfo"].clone())
                .unwrap_or_default();
            log.push((version.parse().unwrap(), info));
        }
        log
    }

    /// Names of the files in the log's folder, in order.
    async fn files(&self) -> BTreeSet<String> {
        self.faulty
            .inner
            .object_store(None)
            .list(Some(self.faulty.inner.log_path()))
            .map_ok(|object| object.location.filename().unwrap().to_owned())
            .try_collect()
            .await
            .unwrap()
    }

    /// The versions that hold `id`.
    async fn versions_of(&self, id: Uuid) -> Vec<u64> {
        self.log()
            .await
            .into_iter()
            .filter(|(_, info)| info["txnId"] == id.to_string().as_str())
            .map(|(version, _)| version)
            .collect()
    }
}

/// An entry of another writer that no transaction of these tests minds.
const FAR: &str = r#"{"commitInfo":{"operation":"OTHER","isBlindAppend":true,"txnId":"other"}}"#;

/// An entry that removes a file which some transactions read.
const REMOVES_A: &str = r#"{"remove":{"path":"a","dataChange":true}}"#;

fn transaction(reads: Vec<Read>, actions: Actions) -> OptimisticTransaction {
    let files = [add("a").ids(0..500)];
    OptimisticTransaction {
        snapshot: Arc::new(snapshot(READ_VERSION, &files)),
        reads: ReadSet::new(reads),
        actions,
        operation: Operation {
            name: "TEST".to_owned(),
            parameters: [("mode".to_owned(), Value::from("Append"))]
                .into_iter()
                .collect(),
            metrics: [("numFiles".to_owned(), 3)].into(),
        },
        txn_id: Uuid::new_v4(),
        options: CommitOptions {
            max_attempts: 5,
            backoff: Backoff::NONE,
            ..CommitOptions::default()
        },
    }
}

fn insert() -> OptimisticTransaction {
    transaction(vec![nothing(READ_VERSION)], actions(&[add("n")], &[]))
}

fn delete() -> OptimisticTransaction {
    transaction(
        vec![matching(READ_VERSION, 0..50, &["a"])],
        actions(&[add("n")], &[remove("a")]),
    )
}

/// The version and the attempts of a commit.
fn committed(outcome: Result<CommitOutcome>) -> (u64, usize) {
    match outcome.unwrap() {
        CommitOutcome::Committed {
            version, attempts, ..
        } => (version, attempts),
        CommitOutcome::Conflicted { verdict, .. } => panic!("{verdict}"),
    }
}

#[tokio::test]
async fn uncontended_commit_reads_no_version_and_describes_itself() {
    let cases = [
        ("append", insert(), true, "WriteSerializable"),
        ("delete", delete(), false, "WriteSerializable"),
        (
            "optimize",
            transaction(
                vec![],
                actions(
                    &[add("n").data_change(false)],
                    &[remove("a").data_change(false)],
                ),
            ),
            false,
            "SnapshotIsolation",
        ),
    ];
    for (name, transaction, blind, level) in cases {
        let table = Table::new([]).await;
        let id = transaction.txn_id;
        let outcome = transaction.commit(&table.log_store()).await;
        assert_eq!(committed(outcome), (5, 1), "{name}");
        assert!(table.reads().is_empty(), "{name}");
        let log = table.log().await;
        let info = &log[1].1;
        assert!(info["timestamp"].as_i64().is_some_and(|millis| millis > 0));
        assert_eq!(info["operation"], "TEST");
        assert_eq!(info["operationParameters"]["mode"], "Append");
        assert_eq!(info["operationMetrics"]["numFiles"], "3");
        assert_eq!(info["readVersion"], 4);
        assert_eq!(info["isolationLevel"], level, "{name}");
        assert_eq!(info["isBlindAppend"], blind, "{name}");
        assert_eq!(info["txnId"], id.to_string());
        assert!(
            info["engineInfo"]
                .as_str()
                .is_some_and(|engine| engine.starts_with("delta-disjoint/"))
        );
    }
}

#[tokio::test]
async fn lost_race_is_checked_and_tried_again_reading_each_version_once() {
    for style in ["DefaultLogStore", "S3DynamoDbLogStore"] {
        let table = Table::with(
            [Fault::Race(FAR), Fault::Race(FAR), Fault::RaceUnclear(FAR)],
            style,
            None,
            Cancellation::default(),
        )
        .await;
        for version in 5..=9 {
            table.faulty.put(version, FAR).await;
        }
        let transaction = insert();
        let id = transaction.txn_id;
        let outcome = transaction.commit(&table.log_store()).await;
        let CommitOutcome::Committed {
            version,
            attempts,
            verdict,
        } = outcome.unwrap()
        else {
            panic!("a conflict");
        };
        assert_eq!((version, attempts), (13, 4), "{style}");
        assert_eq!(verdict.winners, Some(5..=12), "{style}");
        assert_eq!(table.puts(), [10, 11, 12, 13], "{style}");
        let mut reads = table.reads();
        reads.sort_unstable();
        assert_eq!(reads, (5..=12).collect::<Vec<_>>(), "{style}");
        assert_eq!(table.versions_of(id).await, [13], "{style}");
        let only_entries = table
            .files()
            .await
            .iter()
            .all(|name| name.ends_with(".json"));
        assert!(only_entries, "{style}: a temporary file stays behind");
    }
}

#[tokio::test]
async fn conflict_after_a_lost_race_commits_nothing() {
    for style in ["DefaultLogStore", "S3DynamoDbLogStore"] {
        let table = Table::with(
            [Fault::Race(REMOVES_A)],
            style,
            None,
            Cancellation::default(),
        )
        .await;
        let ours = delete();
        let id = ours.txn_id;
        let outcome = ours.commit(&table.log_store()).await.unwrap();
        let CommitOutcome::Conflicted {
            verdict,
            transaction,
        } = outcome
        else {
            panic!("committed");
        };
        assert_eq!(transaction.txn_id, id, "{style}");
        assert_eq!(
            verdict
                .first_conflict()
                .map(|conflict| (conflict.version, conflict.path.as_deref())),
            Some((5, Some("a"))),
            "{style}"
        );
        assert!(table.versions_of(id).await.is_empty(), "{style}");
        let only_entries = table
            .files()
            .await
            .iter()
            .all(|name| name.ends_with(".json"));
        assert!(only_entries, "{style}: a temporary file stays behind");
    }
}

/// Whoever looks before the commit, because there is work left to do, reads no version twice.
#[tokio::test]
async fn look_before_the_commit_finds_the_winners_so_far() {
    let table = Table::new([]).await;
    table.faulty.put(READ_VERSION + 1, FAR).await;
    let ours = delete();
    let id = ours.txn_id;
    let mut attempts = Attempts::new(ours).unwrap();
    let conflict = attempts.conflict_so_far(&table.log_store()).await.unwrap();
    assert!(conflict.is_none());
    assert_eq!(table.reads(), [READ_VERSION + 1]);
    table.faulty.put(READ_VERSION + 2, FAR).await;
    let (version, needed) = committed(attempts.run(&table.log_store(), None).await);
    assert_eq!((version, needed), (READ_VERSION + 3, 1));
    assert_eq!(table.reads(), [READ_VERSION + 1, READ_VERSION + 2]);
    assert_eq!(table.versions_of(id).await, [version]);

    table.faulty.put(READ_VERSION + 4, REMOVES_A).await;
    let mut late = Attempts::new(delete()).unwrap();
    let conflict = late.conflict_so_far(&table.log_store()).await.unwrap();
    assert!(conflict.is_some_and(|verdict| verdict.is_conflict()));
    assert_eq!(table.puts().len(), 1, "only the first one was put");
}

/// From the put on a version may name the files.
#[tokio::test]
async fn files_are_deleted_with_whoever_drops_them_before_the_put() {
    let path = object_store::path::Path::from("data.parquet");
    for put in [false, true] {
        let table = Table::new([]).await;
        let log_store = table.log_store();
        let store = log_store.object_store(None);
        store.put(&path, "rows".into()).await.unwrap();
        let files = UncommittedFiles::new(Arc::clone(&store), vec![path.clone()]);
        let mut attempts = Attempts::new(delete()).unwrap();
        if put {
            committed(attempts.run(&log_store, Some(&files)).await);
        } else {
            let conflict = attempts.conflict_so_far(&log_store).await.unwrap();
            assert!(conflict.is_none());
        }
        drop(files);
        let mut is_there = true;
        let most = if put { 20 } else { 2000 };
        // Deleted in the background.
        for _ in 0..most {
            is_there = store.head(&path).await.is_ok();
            if !is_there {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(is_there, put);
    }
}

#[tokio::test]
async fn own_commit_is_found_after_a_lost_answer() {
    let cases = [
        Fault::AnswerLost,
        Fault::AnswerLostAndFollowed(REMOVES_A),
        Fault::AnswerMistaken,
    ];
    for fault in cases {
        for style in ["DefaultLogStore", "S3DynamoDbLogStore"] {
            let table = Table::with([fault.clone()], style, None, Cancellation::default()).await;
            let transaction = delete();
            let id = transaction.txn_id;
            let outcome = transaction.commit(&table.log_store()).await;
            assert_eq!(committed(outcome), (5, 1), "{fault:?} {style}");
            assert_eq!(table.versions_of(id).await, [5], "{fault:?} {style}");
            assert_eq!(table.puts(), [5], "{fault:?} {style}");
        }
    }
}

#[tokio::test]
async fn same_transaction_committed_again_is_found_in_the_log() {
    let table = Table::new([]).await;
    let transaction = delete();
    let id = transaction.txn_id;
    assert_eq!(
        committed(transaction.clone().commit(&table.log_store()).await),
        (5, 1)
    );
    table.faulty.put(6, FAR).await;
    assert_eq!(
        committed(transaction.commit(&table.log_store()).await),
        (5, 1)
    );
    assert_eq!(table.versions_of(id).await, [5]);
}

#[tokio::test]
async fn failed_put_says_whether_the_outcome_is_known() {
    // Fault, log store, outcome unknown.
    let cases = [
        (Fault::Vanished, "DefaultLogStore", true),
        (Fault::Refused, "DefaultLogStore", false),
        // The temporary file is withdrawn, so nothing can be put later.
        (Fault::Vanished, "S3DynamoDbLogStore", false),
    ];
    for (fault, style, unknown) in cases {
        let table = Table::with([fault.clone()], style, None, Cancellation::default()).await;
        let transaction = insert();
        let id = transaction.txn_id;
        let error = transaction.commit(&table.log_store()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?} {style}");
        let expected = OutcomeUnknown {
            version: 5,
            txn_id: id,
        };
        assert_eq!(
            OutcomeUnknown::find(&error),
            unknown.then_some(&expected),
            "{fault:?} {style}"
        );
        assert_eq!(table.puts(), [5], "{fault:?} {style}");
        assert_eq!(table.files().await.len(), 1, "{fault:?} {style}");
    }
}

#[tokio::test]
async fn version_that_exists_but_cannot_be_found_may_be_ours() {
    for style in ["DefaultLogStore", "S3DynamoDbLogStore"] {
        // More of them than attempts, so that giving up as contended would be the alternative.
        let table = Table::with(
            vec![Fault::AnswerMistaken; 9],
            style,
            Some(5),
            Cancellation::default(),
        )
        .await;
        let transaction = insert();
        let id = transaction.txn_id;
        let error = transaction.commit(&table.log_store()).await.unwrap_err();
        let expected = OutcomeUnknown {
            version: 5,
            txn_id: id,
        };
        assert_eq!(OutcomeUnknown::find(&error), Some(&expected), "{style}");
        assert_eq!(table.puts(), [5], "{style}");
    }
}

#[tokio::test]
async fn attempts_are_bounded() {
    let table = Table::new(vec![Fault::Race(FAR); 9]).await;
    let transaction = insert();
    let id = transaction.txn_id;
    let error = transaction.commit(&table.log_store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contended);
    let reason = crate::commit::reason_of(&error).expect("a reason");
    assert_eq!(reason.code, crate::reason::ReasonCode::AttemptsUsedUp);
    assert_eq!(table.puts(), [5, 6, 7, 8, 9]);
    assert!(table.versions_of(id).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_checked_is_never_committed() {
    type Entries = &'static [(u64, &'static str)];
    // Name, entries, version that reads as absent, words of the message.
    let cases: [(&str, Entries, Option<u64>, &str); 5] = [
        (
            "unparsable",
            &[(5, FAR), (6, "{\"add\":{")],
            None,
            "version 6",
        ),
        ("not JSON", &[(5, "garbage")], None, "version 5"),
        ("gap in the listing", &[(6, FAR)], None, ""),
        ("gap when read", &[(5, FAR), (6, FAR)], Some(5), "version 5"),
        (
            "hole at the end",
            &[(5, FAR), (6, FAR)],
            Some(6),
            "version 6",
        ),
    ];
    for (name, entries, hidden, words) in cases {
        let table = Table::with([], "DefaultLogStore", hidden, Cancellation::default()).await;
        for (version, entry) in entries {
            table.faulty.put(*version, entry).await;
        }
        let error = insert().commit(&table.log_store()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}");
        assert!(error.message().contains(words), "{name}: {error}");
        assert_eq!(OutcomeUnknown::find(&error), None, "{name}");
        assert!(table.puts().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn reads_of_another_version_are_refused() {
    let table = Table::new([]).await;
    let reads = vec![matching(READ_VERSION, 0..9, &[]), whole_table(3, &[])];
    let transaction = transaction(reads, actions(&[add("n")], &[]));
    let error = transaction.commit(&table.log_store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(table.puts().is_empty());
}

#[tokio::test]
async fn transaction_without_actions_commits_without_a_put() {
    let table = Table::new([]).await;
    table.faulty.put(5, REMOVES_A).await;
    let reads = vec![whole_table(READ_VERSION, &["a"])];
    let transaction = transaction(reads, Actions::default());
    let outcome = transaction.commit(&table.log_store()).await;
    assert_eq!(committed(outcome), (READ_VERSION, 0));
    assert!(table.puts().is_empty());
}

#[tokio::test]
async fn log_that_ends_before_the_read_version_is_an_error() {
    let table = Table::new([]).await;
    let mut ours = insert();
    ours.snapshot = Arc::new(snapshot(9, &[]));
    ours.reads = ReadSet::new(vec![nothing(9)]);
    let error = ours.commit(&table.log_store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("version 9"), "{error}");
    assert!(table.puts().is_empty());
}

#[tokio::test]
async fn checkpoint_stands_for_the_cleaned_up_read_version() {
    let table = Table::new([]).await;
    let store = table.faulty.inner.object_store(None);
    let folder = table.faulty.inner.log_path().clone();
    let checkpoint = folder.join("00000000000000000004.checkpoint.parquet");
    store.put(&checkpoint, "x".into()).await.unwrap();
    let path = commit_uri_from_version(Some(READ_VERSION));
    store.delete(&path).await.unwrap();
    let outcome = insert().commit(&table.log_store()).await;
    assert_eq!(committed(outcome), (5, 1));
}

#[tokio::test]
async fn entry_of_the_read_version_may_have_been_cleaned_up() {
    let table = Table::new([]).await;
    for version in 5..=6 {
        table.faulty.put(version, FAR).await;
    }
    let store = table.faulty.inner.object_store(None);
    let path = commit_uri_from_version(Some(READ_VERSION));
    store.delete(&path).await.unwrap();
    let outcome = insert().commit(&table.log_store()).await;
    assert_eq!(committed(outcome), (7, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_all_commit_once() {
    const WRITERS: usize = 8;
    let table = Table::new([]).await;
    let mut tasks = tokio::task::JoinSet::new();
    let mut ids = Vec::new();
    for _ in 0..WRITERS {
        let mut ours = insert();
        ours.options.max_attempts = 2 * WRITERS;
        ids.push(ours.txn_id);
        let store = table.log_store();
        tasks.spawn(async move { committed(ours.commit(&store).await).0 });
    }
    let mut versions = tasks.join_all().await;
    versions.sort_unstable();
    assert_eq!(versions, (5..5 + WRITERS as u64).collect::<Vec<_>>());
    for id in ids {
        assert_eq!(table.versions_of(id).await.len(), 1);
    }
}

#[tokio::test]
async fn log_stores_that_may_overwrite_a_version_are_refused() {
    let cases = [
        ("DefaultLogStore", Some(CommitStyle::Bytes)),
        ("LakeFSLogStore", Some(CommitStyle::Bytes)),
        ("S3DynamoDbLogStore", Some(CommitStyle::TemporaryFile)),
        ("S3LogStore", None),
        ("", None),
    ];
    for (name, expected) in cases {
        let table = Table::with([], name, None, Cancellation::default()).await;
        let style = commit_style(table.log_store().as_ref());
        assert_eq!(style.as_ref().ok(), expected.as_ref(), "{name}");
        if let Err(error) = style {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains(name));
        }
        if expected.is_none() {
            assert!(insert().commit(&table.log_store()).await.is_err(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_request_to_stop_counts_until_something_is_put() {
    let lost = || vec![Fault::Race(FAR)];
    // (name, whether the request is there before, faults, puts, whether it commits)
    let cases = [
        ("before", true, vec![], vec![], false),
        ("during the put", false, vec![], vec![5], true),
        (
            "during a put whose answer is lost",
            false,
            vec![Fault::AnswerLost],
            vec![5],
            true,
        ),
        (
            "during a put that is taken for another writer's",
            false,
            vec![Fault::AnswerMistaken],
            vec![5],
            true,
        ),
        ("during a put that loses", false, lost(), vec![5], false),
    ];
    for store in ["DefaultLogStore", "S3DynamoDbLogStore"] {
        for (name, before, faults, puts, commits) in cases.clone() {
            let request = Cancellation::new();
            let table = Table::with(faults, store, None, request.clone()).await;
            if before {
                request.cancel();
            }
            let mut transaction = delete();
            transaction.options.cancellation = request.clone();
            let id = transaction.txn_id;
            let outcome = transaction.commit(&table.log_store()).await;
            assert_eq!(table.puts(), puts, "{name}, {store}");
            let running = vec![PutState::Running; puts.len()];
            assert_eq!(table.put_states(), running, "{name}, {store}");
            let ended = if commits {
                PutState::Done
            } else {
                PutState::NotBegun
            };
            assert_eq!(request.put_state(), ended, "{name}, {store}");
            if commits {
                assert_eq!(committed(outcome).0, 5, "{name}, {store}");
                assert_eq!(table.versions_of(id).await, [5], "{name}, {store}");
            } else {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}, {store}");
                assert!(OutcomeUnknown::find(&error).is_none(), "{name}, {store}");
                assert!(table.versions_of(id).await.is_empty(), "{name}, {store}");
                let files = table.files().await;
                let temporary = files.iter().find(|file| file.ends_with(".tmp"));
                assert_eq!(temporary, None, "{name}, {store}");
            }
        }
    }
}
