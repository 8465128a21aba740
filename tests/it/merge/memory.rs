//! MERGE whose source is larger than the session's memory.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use delta_disjoint::register;

use crate::support::{Table, open, rows, run, try_run};

/// 100 000 rows, more than 1.6 MB, of which 1 000 match and 1 000 are inserted.
const MERGE: &str = "MERGE INTO t USING (SELECT value AS id, -value AS x \
    FROM generate_series(1000, 100999)) AS s ON t.id = s.id \
    WHEN MATCHED THEN UPDATE SET x = s.x \
    WHEN NOT MATCHED AND s.id < 3000 THEN INSERT VALUES (s.id, s.x)";

/// `t` with the rows 0 to 1999 in a session with so many bytes of memory.
async fn table(memory: usize, disk: DiskManagerBuilder) -> (Table, SessionContext) {
    let table = Table::numbers(2, 1000, "").await;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .expect("runtime");
    // A hash join holds its whole side in memory, a merge join sorts it on disk. DataFusion knows
    // the latter for several partitions only.
    let mut config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(1024);
    let options = config.options_mut();
    options.optimizer.prefer_hash_join = false;
    options.execution.sort_spill_reservation_bytes = 64 * 1024;
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config)
        .with_runtime_env(runtime);
    let ctx = SessionContext::new_with_state(register(builder).build());
    open(&ctx, "t", &table.path()).await;
    (table, ctx)
}

#[tokio::test]
async fn source_that_does_not_fit_into_memory_goes_to_disk_and_comes_back_whole() {
    for (memory, spills) in [(1_000_000, true), (100_000_000, false)] {
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
        let (table, ctx) = table(1_000_000, disk).await;
        let before = (table.log(), table.files_on_disk());
        let error = try_run(&ctx, MERGE).await.expect_err("no room");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!((table.log(), table.files_on_disk()), before);
        // The session goes on, with what fits.
        run(&ctx, "UPDATE t SET x = 0 WHERE id = 5").await;
    }
}
