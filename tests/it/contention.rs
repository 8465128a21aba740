//! Many writers at once, races that are lost over and over, answers that get lost, and statements
//! that die before their commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use delta_disjoint::commit::Verdict;
use delta_disjoint::read::provider::DisjointTableProvider;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{Error, ErrorKind, session};
use deltalake::DeltaResult;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStore, LogStoreConfig, LogStoreRef};
use object_store::ObjectStore;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::support::{Table, count, run, try_run, wait_until};

const FEED: &str = "OPTIONS ('delta.enableChangeDataFeed' 'true')";

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

/// More tries than any statement here needs.
const TRIES: usize = 500;

/// Runs `text` until it commits; conflicts are the only reason to run it again.
async fn commit(ctx: &SessionContext, text: &str) -> u64 {
    for _ in 0..TRIES {
        match try_run(ctx, text).await {
            Ok(batches) => return count(&batches),
            Err(error) => {
                let found = Error::find(&error).map(Error::is_retryable);
                assert_eq!(found, Some(true), "{text}: {error}");
            }
        }
    }
    panic!("{text}: never committed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_on_disjoint_ranges_all_commit() {
    const WRITERS: i64 = 8;
    for level in LEVELS {
        let table = Table::numbers(
            WRITERS,
            20,
            &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
        )
        .await;
        let before = table.version().await;
        let mut running = Vec::new();
        for writer in 0..WRITERS {
            let ctx = table.other_session().await;
            running.push(tokio::spawn(async move {
                let (first, last) = (writer * 20, writer * 20 + 19);
                let range = format!("id BETWEEN {first} AND {last}");
                let updated = format!("UPDATE t SET x = -{writer} WHERE {range}");
                assert_eq!(commit(&ctx, &updated).await, 20);
                let deleted = format!("DELETE FROM t WHERE id = {first}");
                assert_eq!(commit(&ctx, &deleted).await, 1);
                let inserted = format!(
                    "INSERT INTO t SELECT id + 10000, x FROM t WHERE id BETWEEN {} AND {}",
                    last - 4,
                    last
                );
                assert_eq!(commit(&ctx, &inserted).await, 5);
            }));
        }
        for writer in running {
            writer.await.expect("writer");
        }
        assert_eq!(
            table.version().await,
            before + 3 * WRITERS as u64,
            "{level}"
        );
        assert_eq!(
            table
                .rows(
                    "SELECT count(*), count(DISTINCT id), sum(x), sum(CASE WHEN id >= 10000 THEN 1 \
                     ELSE 0 END) FROM t"
                )
                .await,
            // 24 rows of each writer, all with its own number.
            ["192|192|-672|40"],
            "{level}"
        );
    }
}

/// Transfers between accounts, each account a file of its own, until all are done. Whatever the
/// order, every account ends with what its transfers say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bank_transfers_lose_no_money() {
    const ACCOUNTS: usize = 4;
    // From, to, amount; one list for each task. Every pair of tasks meets on some account.
    const TRANSFERS: [[(usize, usize, i64); 3]; 4] = [
        [(0, 1, 10), (1, 2, 20), (3, 0, 5)],
        [(1, 0, 7), (2, 3, 11), (0, 2, 1)],
        [(2, 1, 3), (3, 1, 9), (1, 0, 4)],
        [(3, 2, 6), (0, 3, 8), (2, 0, 2)],
    ];
    let mut expected = [100_i64; ACCOUNTS];
    for (from, to, amount) in TRANSFERS.into_iter().flatten() {
        expected[from] -= amount;
        expected[to] += amount;
    }
    for level in LEVELS {
        let accounts: Vec<String> = (0..ACCOUNTS)
            .map(|id| format!("VALUES ({id}, 100)"))
            .collect();
        let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
        let table = Table::create(
            "id BIGINT, balance BIGINT",
            &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
            &accounts,
        )
        .await;
        let before = table.version().await;
        let mut running = Vec::new();
        for (task, transfers) in TRANSFERS.into_iter().enumerate() {
            // Two tasks share a session, the others have their own.
            let ctx = match task {
                0 | 1 => table.ctx.clone(),
                _ => table.other_session().await,
            };
            running.push(tokio::spawn(async move {
                for (from, to, amount) in transfers {
                    let text = format!(
                        "UPDATE t SET balance = balance + CASE WHEN id = {from} THEN -{amount} \
                         ELSE {amount} END WHERE id IN ({from}, {to})"
                    );
                    assert_eq!(commit(&ctx, &text).await, 2);
                }
            }));
        }
        // A reader in between sees whole transfers.
        let reader = table.other_session().await;
        while running.iter().any(|task| !task.is_finished()) {
            let sum = crate::support::rows(&reader, "SELECT sum(balance), count(*) FROM t").await;
            assert_eq!(sum, ["400|4"], "{level}");
        }
        for task in running {
            task.await.expect("task");
        }
        assert_eq!(table.version().await, before + 12);
        let balances: Vec<i64> = table
            .rows("SELECT balance FROM t ORDER BY id")
            .await
            .iter()
            .map(|balance| balance.parse().expect("number"))
            .collect();
        assert_eq!(balances, expected, "{level}");
    }
}

/// Each task takes the next number; no number is taken twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_numbers_are_taken_once_each() {
    for level in LEVELS {
        let table = Table::create(
            "id BIGINT, x BIGINT",
            &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
            &["VALUES (0, 0)"],
        )
        .await;
        let mut running = Vec::new();
        for task in 0..3 {
            let ctx = table.ctx.clone();
            running.push(tokio::spawn(async move {
                for _ in 0..3 {
                    let next = format!("INSERT INTO t SELECT max(id) + 1, {task} FROM t");
                    assert_eq!(commit(&ctx, &next).await, 1);
                }
            }));
        }
        for task in running {
            task.await.expect("task");
        }
        assert_eq!(
            table
                .rows("SELECT count(*), count(DISTINCT id), max(id) FROM t")
                .await,
            ["10|10|9"],
            "{level}"
        );
    }
}

// ---- A log store that misbehaves ----

enum Fault {
    /// Another writer puts a commit without any effect first, every time.
    AlwaysLost,
    /// The first put is done, but the answer is an error.
    AnswerLost,
    /// No put is ever answered, nor done.
    Silent(Notify),
    /// The newest version is told so often, and no more.
    Deaf(usize, Notify),
}

struct Faulty {
    inner: LogStoreRef,
    fault: Fault,
    puts: AtomicUsize,
    /// How often the newest version was asked for.
    asked: AtomicUsize,
}

impl Faulty {
    /// A session whose table `t` is that of `table`, behind `fault`.
    async fn session(table: &Table, fault: Fault) -> (SessionContext, Arc<Self>) {
        let faulty = Arc::new(Self {
            inner: Arc::clone(table.handle().log_store()),
            fault,
            puts: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        });
        let log_store: Arc<Self> = Arc::clone(&faulty);
        let handle = Arc::new(TableHandle::new(log_store).expect("handle"));
        let provider = DisjointTableProvider::try_new(handle)
            .await
            .expect("provider");
        let ctx = session();
        ctx.register_table("t", Arc::new(provider))
            .expect("register");
        (ctx, faulty)
    }

    fn puts(&self) -> usize {
        self.puts.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl LogStore for Faulty {
    fn name(&self) -> String {
        self.inner.name()
    }

    async fn read_commit_entry(&self, version: u64) -> DeltaResult<Option<Bytes>> {
        self.inner.read_commit_entry(version).await
    }

    async fn write_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        id: Uuid,
    ) -> Result<(), TransactionError> {
        let put = self.puts.fetch_add(1, Ordering::SeqCst);
        match &self.fault {
            Fault::AlwaysLost => {
                let other = r#"{"commitInfo":{"operation":"OTHER","isBlindAppend":true}}"#;
                let other = CommitOrBytes::LogBytes(Bytes::from(other));
                self.inner.write_commit_entry(version, other, id).await?;
            }
            Fault::AnswerLost if put == 0 => {
                self.inner.write_commit_entry(version, entry, id).await?;
                return Err(TransactionError::ObjectStore {
                    source: object_store::Error::Generic {
                        store: "test",
                        source: "connection reset".into(),
                    },
                });
            }
            Fault::AnswerLost | Fault::Deaf(..) => {}
            Fault::Silent(reached) => {
                reached.notify_one();
                std::future::pending::<()>().await;
            }
        }
        self.inner.write_commit_entry(version, entry, id).await
    }

    async fn abort_commit_entry(
        &self,
        version: u64,
        entry: CommitOrBytes,
        id: Uuid,
    ) -> Result<(), TransactionError> {
        self.inner.abort_commit_entry(version, entry, id).await
    }

    async fn get_latest_version(&self, start: u64) -> DeltaResult<u64> {
        if let Fault::Deaf(most, reached) = &self.fault
            && self.asked.fetch_add(1, Ordering::SeqCst) >= *most
        {
            reached.notify_one();
            std::future::pending::<()>().await;
        }
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

/// What changes `t` in each way.
const STATEMENTS: [(&str, u64); 5] = [
    ("DELETE FROM t WHERE id < 15", 15),
    ("UPDATE t SET x = -1 WHERE id < 15", 15),
    ("INSERT INTO t VALUES (500, 500), (501, 501)", 2),
    ("INSERT OVERWRITE t SELECT id, x FROM t WHERE id < 4", 4),
    ("TRUNCATE TABLE t", 30),
];

async fn contents(table: &Table) -> Vec<String> {
    table.rows("SELECT id, x FROM t ORDER BY id, x").await
}

#[tokio::test]
async fn attempts_used_up_is_contended_and_leaves_nothing() {
    for (text, _) in STATEMENTS {
        let table = Table::numbers(3, 10, "").await;
        let (rows, files, version) = (
            contents(&table).await,
            table.files_on_disk(),
            table.version().await,
        );
        let (ctx, faulty) = Faulty::session(&table, Fault::AlwaysLost).await;
        run(&ctx, "SET delta.max_commit_attempts = 3").await;
        let error: DataFusionError = try_run(&ctx, text).await.expect_err(text);
        let found = Error::find(&error).expect("ours");
        assert_eq!(found.kind(), ErrorKind::Contended, "{text}: {error}");
        assert!(found.is_retryable());
        // Nobody is in the way, so there is no verdict to explain it by.
        assert!(Verdict::find(&error).is_none(), "{text}");
        assert_eq!(faulty.puts(), 3, "{text}");
        assert_eq!(
            table.version().await,
            version + 3,
            "only the others' commits: {text}"
        );
        assert_eq!(table.files_on_disk(), files, "{text}");
        assert_eq!(contents(&table).await, rows, "{text}");
    }
}

#[tokio::test]
async fn conflict_leaves_no_file_behind() {
    for (text, _) in STATEMENTS
        .into_iter()
        .filter(|(text, _)| !text.contains("VALUES"))
    {
        let table = Table::numbers(3, 10, "").await;
        let loser = table.plan(text).await;
        table.run("UPDATE t SET x = 7 WHERE id < 20").await;
        let (rows, files, version) = (
            contents(&table).await,
            table.files_on_disk(),
            table.version().await,
        );
        loser.conflict().await;
        assert_eq!(table.files_on_disk(), files, "{text}");
        assert_eq!(table.version().await, version, "{text}");
        assert_eq!(contents(&table).await, rows, "{text}");
    }
}

#[tokio::test]
async fn lost_answer_is_one_success() {
    for (text, changed) in STATEMENTS {
        let expected = Table::numbers(3, 10, "").await;
        expected.run(text).await;
        let table = Table::numbers(3, 10, "").await;
        let version = table.version().await;
        let (ctx, faulty) = Faulty::session(&table, Fault::AnswerLost).await;
        assert_eq!(count(&run(&ctx, text).await), changed, "{text}");
        assert_eq!(faulty.puts(), 1, "{text}");
        assert_eq!(table.version().await, version + 1, "{text}");
        assert_eq!(contents(&table).await, contents(&expected).await, "{text}");
    }
}

/// The process dies between the rewrite and the commit: here its task is dropped.
#[tokio::test]
async fn statement_dropped_before_its_commit_leaves_the_table_as_it_was() {
    for (text, changed) in STATEMENTS {
        let table = Table::numbers(3, 10, "").await;
        let (rows, files, version) = (
            contents(&table).await,
            table.files_on_disk(),
            table.version().await,
        );
        let (ctx, faulty) = Faulty::session(&table, Fault::Silent(Notify::new())).await;
        let running = tokio::spawn(async move { try_run(&ctx, text).await.map(|_| ()) });
        let Fault::Silent(reached) = &faulty.fault else {
            unreachable!("made so above");
        };
        reached.notified().await;
        running.abort();
        assert!(running.await.expect_err("dropped").is_cancelled());

        assert_eq!(table.version().await, version, "{text}");
        assert_eq!(contents(&table).await, rows, "{text}");
        // Its files are there, and no one looks at them.
        if !text.contains("TRUNCATE") {
            assert!(table.files_on_disk().len() > files.len(), "{text}");
        }
        // The next statement has its way.
        assert_eq!(table.count(text).await, changed, "{text}");
        assert_eq!(table.version().await, version + 1, "{text}");
    }
}

/// Before the put no version can name its files, so that they go with it.
#[tokio::test]
async fn statement_dropped_before_its_put_leaves_no_file() {
    for (text, _) in STATEMENTS {
        let table = Table::numbers(3, 10, FEED).await;
        let before = (table.log(), table.data_files_on_disk());
        let (ctx, faulty) = Faulty::session(&table, Fault::Deaf(0, Notify::new())).await;
        drop_when_deaf(&ctx, &faulty, text, || {
            let written = table.data_files_on_disk().len() > before.1.len();
            assert_eq!(written, !text.contains("TRUNCATE"), "{text}");
        })
        .await;
        wait_until(|| table.data_files_on_disk() == before.1).await;
        assert_eq!(table.log(), before.0, "{text}");
    }
}

#[tokio::test]
async fn commit_dropped_before_its_put_leaves_no_file() {
    // Before the change files are written, and after that.
    for (answers, wrote_changes) in [(0, false), (1, true)] {
        let table = Table::numbers(3, 10, FEED).await;
        let before = (table.log(), table.data_files_on_disk());
        let fault = Fault::Deaf(answers, Notify::new());
        let (ctx, faulty) = Faulty::session(&table, fault).await;
        run(&ctx, "BEGIN").await;
        for statement in TRANSACTION {
            run(&ctx, statement).await;
        }
        drop_when_deaf(&ctx, &faulty, "COMMIT", || {
            let files = table.data_files_on_disk();
            let changes = files.iter().any(|path| path.starts_with("_change_data"));
            assert_eq!(changes, wrote_changes, "{files:?}");
            assert!(files.len() > before.1.len(), "{files:?}");
        })
        .await;
        wait_until(|| table.data_files_on_disk() == before.1).await;
        assert_eq!(table.log(), before.0);
    }
}

/// Runs `text` until the log does not answer, then looks and drops it.
async fn drop_when_deaf(ctx: &SessionContext, faulty: &Faulty, text: &str, look: impl Fn()) {
    let running = tokio::spawn({
        let (ctx, text) = (ctx.clone(), text.to_owned());
        async move { try_run(&ctx, &text).await.map(|_| ()) }
    });
    let Fault::Deaf(_, reached) = &faulty.fault else {
        unreachable!("made so by the caller");
    };
    reached.notified().await;
    look();
    running.abort();
    assert!(running.await.expect_err("dropped").is_cancelled());
}

/// What makes a transaction of `t`, and the rows that it leaves.
const TRANSACTION: [&str; 3] = [
    "INSERT INTO t VALUES (500, 500), (501, 501)",
    "UPDATE t SET x = -1 WHERE id >= 20",
    "DELETE FROM t WHERE id BETWEEN 21 AND 500",
];

#[tokio::test]
async fn commit_of_a_transaction_is_as_safe_as_that_of_a_statement() {
    for fault in [
        Fault::AlwaysLost,
        Fault::AnswerLost,
        Fault::Silent(Notify::new()),
    ] {
        let table = Table::numbers(3, 10, "").await;
        let (rows, files, version) = (
            contents(&table).await,
            table.files_on_disk(),
            table.version().await,
        );
        let (ctx, faulty) = Faulty::session(&table, fault).await;
        run(&ctx, "SET delta.max_commit_attempts = 3").await;
        run(&ctx, "BEGIN").await;
        for statement in TRANSACTION {
            run(&ctx, statement).await;
        }
        assert_eq!(faulty.puts(), 0);
        let committing = tokio::spawn({
            let ctx = ctx.clone();
            async move { try_run(&ctx, "COMMIT").await.map(|_| ()) }
        });
        match &faulty.fault {
            Fault::AlwaysLost => {
                let error = committing.await.expect("no panic").expect_err("contended");
                let found = Error::find(&error).expect("ours");
                assert_eq!(found.kind(), ErrorKind::Contended, "{error}");
                assert_eq!(table.version().await, version + 3);
                assert_eq!(table.files_on_disk(), files);
                assert_eq!(contents(&table).await, rows);
            }
            Fault::AnswerLost => {
                committing.await.expect("no panic").expect("committed");
                assert_eq!(table.version().await, version + 1);
                let changed = table.rows("SELECT id FROM t WHERE x = -1").await;
                assert_eq!(changed.len(), 2, "ids 20 and 501: {changed:?}");
                assert_eq!(contents(&table).await.len(), 22);
            }
            Fault::Silent(reached) => {
                reached.notified().await;
                committing.abort();
                assert!(committing.await.expect_err("dropped").is_cancelled());
                assert_eq!(table.version().await, version);
                assert_eq!(contents(&table).await, rows);
            }
            Fault::Deaf(..) => unreachable!("not among them"),
        }
        // In no transaction any more.
        run(&ctx, "BEGIN").await;
        run(&ctx, "ROLLBACK").await;
    }
}
