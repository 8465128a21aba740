//! What the hook costs a commit that meets nobody.
//!
//! `cargo bench --bench hook`. Each pair puts the same commits on tables of their own, in a folder in
//! memory where the system has one, with deltalake alone (`without`) and through the hook (`with`):
//!
//! - `commit`: one small add through the commit builder, on the version that the last one left.
//! - `write`: one small batch through the write builder, its Parquet file included.
//!
//! The table is made anew before it grows long.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has nothing to report"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use delta_disjoint::hook;
use deltalake::DeltaTable;
use deltalake::kernel::transaction::CommitBuilder;
use deltalake::kernel::{Action, Add, DataType, PrimitiveType};
use deltalake::protocol::{DeltaOperation, SaveMode};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::Url;

/// Commits on one table before the next one is made.
const COMMITS: u64 = 50;

criterion_group!(benches, bench_commit, bench_write);
criterion_main!(benches);

fn bench_commit(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("commit");
    group.sampling_mode(SamplingMode::Flat);
    for (name, hooked) in [("without", false), ("with", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|commits| {
                runtime.block_on(timed(commits, async |table, number| {
                    commit(table, number, hooked).await
                }))
            });
        });
    }
    group.finish();
}

fn bench_write(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("write");
    group.sampling_mode(SamplingMode::Flat);
    for (name, hooked) in [("without", false), ("with", true)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|commits| {
                runtime.block_on(timed(commits, async |table, number| {
                    write(table, number, hooked).await
                }))
            });
        });
    }
    group.finish();
}

fn runtime() -> Runtime {
    Runtime::new().expect("runtime")
}

/// How long `commits` of these take, one after the other.
async fn timed(commits: u64, one: impl AsyncFn(DeltaTable, u64) -> DeltaTable) -> Duration {
    let mut total = Duration::ZERO;
    let mut place: Option<(TempDir, DeltaTable)> = None;
    for number in 0..commits {
        let (folder, table) = match place.take().filter(|_| number % COMMITS != 0) {
            Some(place) => place,
            None => create().await,
        };
        let started = Instant::now();
        let table = one(table, number).await;
        total += started.elapsed();
        place = Some((folder, table));
    }
    total
}

async fn create() -> (TempDir, DeltaTable) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("folder");
    let url = Url::from_directory_path(folder.path()).expect("url");
    let table = DeltaTable::try_from_url(url).await.expect("handle");
    let long = DataType::Primitive(PrimitiveType::Long);
    let create = table.create().with_column("id", long, true, None);
    // Checkpoints would be written by both alike.
    let interval = (deltalake::TableProperty::CheckpointInterval, Some("1000"));
    let create = create.with_configuration_property(interval.0, interval.1);
    (folder, create.await.expect("created"))
}

async fn commit(mut table: DeltaTable, number: u64, hooked: bool) -> DeltaTable {
    let actions = vec![Action::Add(Add {
        path: format!("{number}.parquet"),
        size: 1,
        data_change: true,
        stats: Some(
            r#"{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"nullCount":{"id":0}}"#
                .to_owned(),
        ),
        ..Add::default()
    })];
    let operation = DeltaOperation::Write {
        mode: SaveMode::Append,
        partition_by: None,
        predicate: None,
    };
    let state = table.snapshot().expect("loaded");
    let done = if hooked {
        let builder = hook::CommitBuilder::default().with_actions(actions);
        let commit = builder.build(Some(state), table.log_store(), operation);
        commit.await
    } else {
        let builder = CommitBuilder::default().with_actions(actions);
        let commit = builder.build(Some(state), table.log_store(), operation);
        commit.await
    };
    table.state = Some(done.expect("committed").snapshot);
    table
}

async fn write(mut table: DeltaTable, number: u64, hooked: bool) -> DeltaTable {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![number.cast_signed()]));
    let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true)]).expect("batch");
    if hooked {
        table = hook::guard(table).await.expect("guarded");
    }
    let write = table.write(vec![batch]).with_save_mode(SaveMode::Append);
    write.await.expect("written")
}
