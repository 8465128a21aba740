//! Log stores: which are refused, and how many winners are read at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use delta_disjoint::read::provider::DisjointTableProvider;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{ErrorKind, session};
use deltalake::DeltaResult;
use deltalake::kernel::Version;
use deltalake::kernel::transaction::TransactionError;
use deltalake::logstore::{CommitOrBytes, LogStore, LogStoreConfig, LogStoreRef};
use object_store::ObjectStore;
use uuid::Uuid;

use crate::support::{Table, plan, run};

/// A log store under another name, which counts the reads of entries that go on at once.
#[derive(Debug)]
struct Watched {
    inner: LogStoreRef,
    name: String,
    reading: AtomicUsize,
    most: AtomicUsize,
}

impl Watched {
    async fn new(table: &Table, name: &str) -> Arc<Self> {
        Arc::new(Self {
            inner: table.deltalake().await.log_store(),
            name: name.to_owned(),
            reading: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl LogStore for Watched {
    fn name(&self) -> String {
        self.name.clone()
    }

    async fn read_commit_entry(&self, version: Version) -> DeltaResult<Option<Bytes>> {
        let now = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        // Gives all others that may start the time to do so.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let entry = self.inner.read_commit_entry(version).await;
        self.reading.fetch_sub(1, Ordering::SeqCst);
        entry
    }

    async fn write_commit_entry(
        &self,
        version: Version,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        self.inner
            .write_commit_entry(version, entry, operation)
            .await
    }

    async fn abort_commit_entry(
        &self,
        version: Version,
        entry: CommitOrBytes,
        operation: Uuid,
    ) -> Result<(), TransactionError> {
        self.inner
            .abort_commit_entry(version, entry, operation)
            .await
    }

    async fn get_latest_version(&self, start: Version) -> DeltaResult<Version> {
        self.inner.get_latest_version(start).await
    }

    fn object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.object_store(operation)
    }

    fn root_object_store(&self, operation: Option<Uuid>) -> Arc<dyn ObjectStore> {
        self.inner.root_object_store(operation)
    }

    fn config(&self) -> &LogStoreConfig {
        self.inner.config()
    }
}

#[tokio::test]
async fn a_store_that_cannot_refuse_a_version_is_refused_when_the_table_is_opened() {
    let table = Table::numbers(1, 3, "").await;
    let store = Watched::new(&table, "LastWriterWinsLogStore").await;
    let error = TableHandle::new(store).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.message().contains("LastWriterWinsLogStore"),
        "{error}"
    );
    let store = Watched::new(&table, "DefaultLogStore").await;
    let handle = TableHandle::new(store).expect("safe");
    DisjointTableProvider::try_new(Arc::new(handle))
        .await
        .expect("opens");
}

#[tokio::test]
async fn winners_are_read_as_many_at_once_as_the_option_says() {
    for concurrency in [1, 3] {
        let table = Table::numbers(1, 3, "").await;
        let store = Watched::new(&table, "DefaultLogStore").await;
        let handle = TableHandle::new(Arc::clone(&store) as _).expect("handle");
        let provider = DisjointTableProvider::try_new(Arc::new(handle))
            .await
            .expect("provider");
        let ctx = session();
        ctx.register_table("t", Arc::new(provider))
            .expect("registered");
        run(
            &ctx,
            &format!("SET delta.winner_read_concurrency = {concurrency}"),
        )
        .await;
        let loser = plan(&ctx, "UPDATE t SET x = 9 WHERE id = 1").await;
        for id in 10..16 {
            table.run(&format!("INSERT INTO t VALUES ({id}, 0)")).await;
        }
        assert_eq!(loser.count().await, 1);
        assert_eq!(store.most.load(Ordering::SeqCst), concurrency);
        assert_eq!(table.rows("SELECT count(*), sum(x) FROM t").await, ["9|11"]);
    }
}
