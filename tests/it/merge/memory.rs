//! MERGE whose source is larger than the session's memory.

use std::fmt;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;
use delta_disjoint::register;

use crate::support::{Table, open, rows, run, try_run};

/// 100 000 rows, more than 1.6 MB, of which 1 000 match and 1 000 are inserted.
const MERGE: &str = "MERGE INTO t USING (SELECT value AS id, -value AS x \
    FROM generate_series(1000, 100999)) AS s ON t.id = s.id \
    WHEN MATCHED THEN UPDATE SET x = s.x \
    WHEN NOT MATCHED AND s.id < 3000 THEN INSERT VALUES (s.id, s.x)";

/// Memory without end but for the source of a MERGE, so that nothing else runs out of it.
#[derive(Debug)]
struct SourcePool {
    all: UnboundedMemoryPool,
    limit: usize,
}

impl SourcePool {
    fn new(limit: usize) -> Self {
        Self {
            all: UnboundedMemoryPool::default(),
            limit,
        }
    }
}

impl fmt::Display for SourcePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source({})", self.limit)
    }
}

impl MemoryPool for SourcePool {
    fn name(&self) -> &str {
        "source"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let is_source = reservation.consumer().name().starts_with("SourceBuffer");
        if is_source && reservation.size() + additional > self.limit {
            return Err(DataFusionError::ResourcesExhausted("full".to_owned()));
        }
        self.all.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.all.reserved()
    }
}

/// `t` with the rows 0 to 1999 in a session with so many bytes for each part of a source.
async fn table(memory: usize, disk: DiskManagerBuilder) -> (Table, SessionContext) {
    let table = Table::numbers(2, 1000, "").await;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(SourcePool::new(memory)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .expect("runtime");
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_runtime_env(runtime);
    let ctx = SessionContext::new_with_state(register(builder).build());
    open(&ctx, "t", &table.path()).await;
    (table, ctx)
}

#[tokio::test]
async fn source_that_does_not_fit_into_memory_goes_to_disk_and_comes_back_whole() {
    for (memory, spills) in [(200_000, true), (100_000_000, false)] {
        let (table, ctx) = table(memory, DiskManagerBuilder::default()).await;
        let plan = rows(&ctx, &format!("EXPLAIN ANALYZE {MERGE}"))
            .await
            .join("\n");
        let buffer = plan
            .lines()
            .find(|line| line.contains("SourceBufferExec"))
            .expect("a buffer");
        assert!(buffer.contains("source_rows=100.0 K"), "{buffer}");
        assert_eq!(
            !buffer.contains("spill_count=0"),
            spills,
            "{memory}: {plan}"
        );
        assert_eq!(
            table
                .rows("SELECT count(*), count(DISTINCT id), sum(x) FROM t")
                .await,
            // 0 to 999 as they were, 1000 to 2999 negative.
            [format!("3000|3000|{}", 499_500 - 3_999_000)],
            "{memory}"
        );
    }
}

#[tokio::test]
async fn source_that_fits_neither_memory_nor_disk_is_an_error_that_leaves_the_table() {
    let disabled = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let small = DiskManagerBuilder::default().with_max_temp_directory_size(10_000);
    for (disk, says) in [
        (
            disabled,
            "Memory Exhausted while holding the source of a join",
        ),
        (small, "max_temp_directory_size"),
    ] {
        let (table, ctx) = table(200_000, disk).await;
        let before = (table.log(), table.files_on_disk());
        let error = try_run(&ctx, MERGE).await.expect_err("no room");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!((table.log(), table.files_on_disk()), before);
        // The session goes on, with what fits.
        run(&ctx, "UPDATE t SET x = 0 WHERE id = 5").await;
    }
}
