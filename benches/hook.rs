//! What the hook costs a commit that meets nobody.
//!
//! `cargo bench --bench hook`. Each pair puts the same commit on tables of their own, in a folder in
//! memory where the system has one, with deltalake alone and through the hook, by turns, so that what
//! else the machine does meets both:
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

/// Pairs of commits, with the hook and without; few where only is looked whether it runs.
const PAIRS: u64 = 1000;
const PAIRS_OF_A_TEST: u64 = 4;

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let pairs = if measured { PAIRS } else { PAIRS_OF_A_TEST };
    let runtime = Runtime::new().expect("runtime");
    runtime.block_on(compare("commit", pairs, commit));
    runtime.block_on(compare("write", pairs, write));
}

/// Puts commits on two tables by turns, and prints the medians of both and their ratio.
async fn compare(name: &str, pairs: u64, one: impl AsyncFn(DeltaTable, u64, bool) -> DeltaTable) {
    let mut times = [Vec::new(), Vec::new()];
    let mut tables = [None, None];
    for number in 0..pairs {
        // Who goes first changes, so that neither has the warmer caches.
        let first = usize::from(number % 2 == 0);
        for side in [first, 1 - first] {
            let place: Option<(TempDir, DeltaTable)> = tables[side].take();
            let (folder, table) = match place.filter(|_| number % COMMITS != 0) {
                Some(place) => place,
                None => create().await,
            };
            let started = Instant::now();
            let table = one(table, number, side == 1).await;
            times[side].push(started.elapsed());
            tables[side] = Some((folder, table));
        }
    }
    if pairs < PAIRS {
        println!("{name}: {pairs} pairs ran; cargo bench measures");
        return;
    }
    let [without, with] = times.map(median);
    println!(
        "{name}: {without:.2?} without, {with:.2?} with, ratio {:.3} (medians of {pairs} pairs)",
        with.as_secs_f64() / without.as_secs_f64()
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
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
