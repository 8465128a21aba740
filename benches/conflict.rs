//! The conflict check and the pruner, without storage.
//!
//! `cargo bench --bench conflict`. Groups: `check/<winners>x<adds>` judges a DELETE of one id range
//! against winners that each append files elsewhere; `prune/<files>x<terms>` judges files with
//! statistics on one column against a conjunction.

use std::hint::black_box;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use criterion::{Criterion, criterion_group, criterion_main};
use datafusion::prelude::{Expr, col, lit};
use delta_disjoint::commit::{
    Actions, CheckInput, CommitInfo, IsolationLevel, NetEffect, WinningCommit, check,
};
use delta_disjoint::read::predicate::ReadPredicate;
use delta_disjoint::read::prune::{PruneFile, Visible, prune};
use delta_disjoint::read::read_set::{Read, ReadScope, ReadSet};
use delta_disjoint::read::snapshot::{TableMetadata, TableProtocol, TableSnapshot};
use delta_disjoint::read::statistics::StatisticsSchema;
use deltalake::kernel::Add;

const READ_VERSION: u64 = 4;
/// Ids in one file.
const ROWS: i64 = 100;

criterion_group!(benches, bench_check, bench_prune);
criterion_main!(benches);

fn bench_check(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    for (winners, adds) in [(1, 100), (10, 100), (100, 100)] {
        let snapshot = Arc::new(snapshot());
        let reads = ReadSet::new(vec![Read {
            scope: ReadScope::Matching(Arc::new(predicate(&snapshot, 2))),
            version: READ_VERSION,
            files: Arc::default(),
        }]);
        let actions = Actions::default();
        let commits: Vec<_> = (0..winners)
            .map(|winner| Arc::new(append(winner, adds)))
            .collect();
        group.bench_function(format!("{winners}x{adds}"), |bencher| {
            bencher.iter(|| {
                let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
                for commit in &commits {
                    let applied = net_effect.apply(Arc::clone(commit));
                    assert!(applied.is_ok(), "{applied:?}");
                }
                let verdict = check(&CheckInput {
                    reads: &reads,
                    actions: &actions,
                    net_effect: &net_effect,
                    level: IsolationLevel::Serializable,
                    data_skipping: true,
                });
                assert!(!verdict.is_conflict(), "{verdict}");
                black_box(verdict)
            });
        });
    }
    group.finish();
}

fn bench_prune(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prune");
    let snapshot = snapshot();
    for (files, terms) in [(1_000, 1), (10_000, 3)] {
        let predicate = predicate(&snapshot, terms);
        let adds: Vec<Add> = (0..files).map(file).collect();
        let files: Vec<_> = adds
            .iter()
            .map(|add| PruneFile {
                add,
                exact_writer: false,
            })
            .collect();
        group.bench_function(format!("{}x{terms}", files.len()), |bencher| {
            bencher.iter(|| black_box(prune(&predicate, &files, Visible::Statistics)));
        });
    }
    group.finish();
}

fn snapshot() -> TableSnapshot {
    TableSnapshot {
        version: READ_VERSION,
        schema: Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
        metadata: TableMetadata::default(),
        protocol: TableProtocol::default(),
        files: Vec::new().into(),
        spellings: Arc::default(),
    }
}

/// The first `terms` of `id < 0 AND id >= -50 AND id <> -7`: no file holds such an id.
fn predicate(snapshot: &TableSnapshot, terms: usize) -> ReadPredicate {
    let filters: [Expr; 3] = [
        col("id").lt(lit(0_i64)),
        col("id").gt_eq(lit(-50_i64)),
        col("id").not_eq(lit(-7_i64)),
    ];
    ReadPredicate::new(&filters[..terms], &StatisticsSchema::of(snapshot))
}

/// File number `number`, which holds `ROWS` ids of its own.
fn file(number: i64) -> Add {
    let (first, last) = (number * ROWS, (number + 1) * ROWS - 1);
    Add {
        path: format!("part-{number:08}.parquet"),
        size: 1,
        data_change: true,
        stats: Some(format!(
            r#"{{"numRecords":{ROWS},"minValues":{{"id":{first}}},"maxValues":{{"id":{last}}},"nullCount":{{"id":0}}}}"#
        )),
        ..Add::default()
    }
}

/// Winner number `winner`, which appends `adds` files.
fn append(winner: u64, adds: u64) -> WinningCommit {
    let numbers = winner * adds..(winner + 1) * adds;
    WinningCommit {
        version: READ_VERSION + 1 + winner,
        info: CommitInfo::default(),
        actions: Actions {
            adds: numbers.map(|number| file(number.cast_signed())).collect(),
            ..Actions::default()
        },
    }
}
