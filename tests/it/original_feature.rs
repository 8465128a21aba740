//! Conflict-time data skipping in its first form: a DELETE on a range of ids against appends whose
//! statistics say that they lie elsewhere, or do not say so.

use std::sync::Arc;

use delta_disjoint::commit::{
    Actions, CommitOptions, CommitOutcome, ConflictKind, IsolationLevel, Operation,
    OptimisticTransaction,
};
use delta_disjoint::read::read_set::ReadSet;
use deltalake::kernel::{Add, Remove};
use serde_json::{Value, json};

use crate::support::{Planned, Table};

/// Ids 0 to 999 in 10 files.
async fn thousand() -> Table {
    Table::numbers(10, 100, "OPTIONS ('delta.isolationLevel' 'Serializable')").await
}

const APPEND: &str =
    "INSERT INTO t SELECT value AS id, value AS x FROM generate_series(1000, 1099)";

#[tokio::test]
async fn delete_against_disjoint_append_commits_both() {
    let table = thousand().await;
    let loser = table.plan("DELETE FROM t WHERE id < 50").await;
    table.run(APPEND).await;
    assert_eq!(loser.count().await, 50);
    assert_eq!(
        table
            .rows("SELECT count(*), count(DISTINCT id), min(id), max(id), sum(id) FROM t")
            .await,
        ["1050|1050|50|1099|603225"]
    );
}

#[tokio::test]
async fn delete_against_overlapping_append_aborts() {
    let table = thousand().await;
    let loser = table.plan("DELETE FROM t WHERE id >= 950").await;
    table.run(APPEND).await;
    assert_eq!(loser.conflict().await, ConflictKind::ConcurrentAppend);
    assert_eq!(
        table.rows("SELECT count(*), sum(id) FROM t").await,
        ["1100|604450"]
    );
}

#[tokio::test]
async fn delete_against_disjoint_append_with_skipping_off_aborts() {
    let table = thousand().await;
    table.run("SET delta.conflict_data_skipping = false").await;
    let loser = table.plan("DELETE FROM t WHERE id < 50").await;
    table.run(APPEND).await;
    assert_eq!(loser.conflict().await, ConflictKind::ConcurrentAppend);
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["1100"]);
}

#[tokio::test]
async fn delete_against_disjoint_append_needs_the_statistics_of_its_own_term() {
    let without = |name: &'static str| {
        move |stats: &mut Value| {
            stats.as_object_mut().expect("object").remove(name);
        }
    };
    type Damage = Box<dyn Fn(&mut Value)>;
    // Name, what becomes of the statistics' text, whether the DELETE commits.
    let cases: Vec<(&str, Damage, bool)> = vec![
        ("as written", Box::new(|_| {}), true),
        (
            "none",
            Box::new(|add| {
                add.as_object_mut().expect("object").remove("stats");
            }),
            false,
        ),
        ("null", Box::new(|add| add["stats"] = Value::Null), false),
        (
            "empty text",
            Box::new(|add| add["stats"] = json!("")),
            false,
        ),
        (
            "malformed",
            Box::new(|add| {
                let text = add["stats"].as_str().expect("text").to_owned();
                add["stats"] = json!(text[..text.len() - 1]);
            }),
            false,
        ),
        (
            "number of rows only",
            Box::new(|add| add["stats"] = json!(r#"{"numRecords":100}"#)),
            false,
        ),
        (
            "least values only",
            Box::new(|add| add["stats"] = json!(r#"{"minValues":{"id":1000}}"#)),
            true,
        ),
        (
            "greatest values only",
            Box::new(|add| add["stats"] = json!(r#"{"maxValues":{"id":1099}}"#)),
            false,
        ),
        ("no null counts", on_stats(without("nullCount")), true),
        ("no number of rows", on_stats(without("numRecords")), true),
        ("no least values", on_stats(without("minValues")), false),
        ("no greatest values", on_stats(without("maxValues")), true),
    ];
    fn on_stats(change: impl Fn(&mut Value) + 'static) -> Box<dyn Fn(&mut Value)> {
        Box::new(move |add| {
            let text = add["stats"].as_str().expect("statistics");
            let mut stats: Value = serde_json::from_str(text).expect("json");
            change(&mut stats);
            add["stats"] = json!(stats.to_string());
        })
    }
    for (name, damage, commits) in cases {
        let table = Table::numbers(2, 50, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
        let before = table.version().await;
        let loser = table.plan("DELETE FROM t WHERE id < 50").await;
        table.run(APPEND).await;
        table.change_log_entry(before + 1, |action| {
            if let Some(add) = action.get_mut("add") {
                damage(add);
            }
        });
        if commits {
            assert_eq!(loser.count().await, 50, "{name}");
            assert_eq!(
                table.rows("SELECT count(*), min(id), max(id) FROM t").await,
                ["150|50|1099"],
                "{name}"
            );
        } else {
            assert_eq!(
                loser.conflict().await,
                ConflictKind::ConcurrentAppend,
                "{name}"
            );
            assert_eq!(
                table.rows("SELECT count(*), min(id), max(id) FROM t").await,
                ["200|0|1099"],
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn partitioned_table_skips_by_partition_and_by_column() {
    // Name, winner's rows, expected conflict with skipping, without.
    let append = Some(ConflictKind::ConcurrentAppend);
    let cases = [
        (
            "same partition, other ids",
            "(1, 500), (1, 900)",
            None,
            append,
        ),
        ("other partition, same ids", "(2, 10), (2, 40)", None, None),
        (
            "same partition, same ids",
            "(1, 40), (1, 900)",
            append,
            append,
        ),
        ("partition NULL", "(NULL, 10)", None, None),
    ];
    for (name, rows, skipping, plain) in cases {
        for (on, expected) in [(true, skipping), (false, plain)] {
            let table = Table::create(
                "p INT, id BIGINT",
                "PARTITIONED BY (p) OPTIONS ('delta.isolationLevel' 'Serializable')",
                &["VALUES (1, 1), (1, 45), (1, 60), (2, 1)"],
            )
            .await;
            table
                .run(&format!("SET delta.conflict_data_skipping = {on}"))
                .await;
            let loser = table.plan("DELETE FROM t WHERE p = 1 AND id < 50").await;
            table.run(&format!("INSERT INTO t VALUES {rows}")).await;
            assert_outcome(loser, expected, 2, &format!("{name}, skipping {on}")).await;
        }
    }
}

async fn assert_outcome(loser: Planned, expected: Option<ConflictKind>, rows: u64, name: &str) {
    match (loser.run().await, expected) {
        (Ok(batches), None) => assert_eq!(crate::support::count(&batches), rows, "{name}"),
        (Err(error), Some(kind)) => {
            assert_eq!(crate::support::conflict_of(&error), kind, "{name}");
        }
        (Ok(_), Some(kind)) => panic!("{name}: committed, not {kind}"),
        (Err(error), None) => panic!("{name}: {error}"),
    }
}

/// A transaction that changes rows and says nothing about what it read has read everything.
#[tokio::test]
async fn change_without_a_recorded_read_keeps_every_added_file() {
    let table = thousand().await;
    let handle = table.handle();
    let snapshot = handle.newest().await.expect("snapshot");
    let gone = Arc::clone(&snapshot.files[0]);
    table.run(APPEND).await;
    let actions = Actions {
        adds: vec![Add {
            path: "new.parquet".to_owned(),
            size: 1,
            data_change: true,
            ..Add::default()
        }],
        removes: vec![Remove {
            path: gone.path.clone(),
            data_change: true,
            ..Remove::default()
        }],
        ..Actions::default()
    };
    let only_adds = Actions {
        removes: Vec::new(),
        ..actions.clone()
    };
    for (name, actions) in [("adds and removes", actions), ("adds", only_adds)] {
        let transaction = OptimisticTransaction {
            snapshot: Arc::clone(&snapshot),
            reads: ReadSet::default(),
            actions,
            operation: Operation {
                name: "TEST".to_owned(),
                ..Operation::default()
            },
            txn_id: uuid::Uuid::new_v4(),
            options: CommitOptions::default(),
        };
        assert_eq!(transaction.level(), IsolationLevel::Serializable);
        let outcome = transaction
            .commit(handle.log_store())
            .await
            .expect("an outcome");
        let CommitOutcome::Conflicted { verdict, .. } = outcome else {
            panic!("{name}: committed");
        };
        let conflict = verdict.first_conflict().expect("a conflict");
        assert_eq!(conflict.kind, ConflictKind::ConcurrentAppend, "{name}");
        assert_eq!(conflict.read.as_deref(), Some("whole table"), "{name}");
        assert_eq!((verdict.candidates, verdict.skipped), (1, 0), "{name}");
    }
    assert_eq!(table.version().await, snapshot.version + 1);
}
