//! Checkpoints after our commits: when they are written, what is in them, and what is left of the
//! log.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::deletion_vectors::vectors::inline;
use crate::deletion_vectors::{add_of, allow_vectors, hide};
use crate::support::{Table, text_rows};

fn log(table: &Table) -> PathBuf {
    Path::new(&table.path()).join("_delta_log")
}

/// The versions of which there is a checkpoint.
fn checkpoints(table: &Table) -> Vec<u64> {
    versions(table, ".checkpoint.parquet")
}

/// The versions of which there is a file that ends with `suffix`.
fn versions(table: &Table, suffix: &str) -> Vec<u64> {
    let mut found: Vec<u64> = std::fs::read_dir(log(table))
        .expect("log")
        .filter_map(|entry| {
            let name = entry.expect("entry").file_name();
            name.to_str()?.strip_suffix(suffix)?.parse().ok()
        })
        .collect();
    found.sort_unstable();
    found
}

/// Takes the entries up to `version` away, so that only a checkpoint tells of them.
fn forget_entries(table: &Table, version: u64) {
    for version in 0..=version {
        std::fs::remove_file(log(table).join(format!("{version:020}.json"))).expect("removed");
    }
}

async fn insert(table: &Table, times: i64) {
    for number in 0..times {
        table
            .run(&format!("INSERT INTO t VALUES ({number}, {number})"))
            .await;
    }
}

async fn rows_by_deltalake(table: &Table, query: &str) -> Vec<String> {
    let ctx = table.deltalake_session().await;
    let frame = ctx.sql(query).await.expect("plan");
    text_rows(&frame.collect().await.expect("deltalake reads it"))
}

#[tokio::test]
async fn checkpoints_come_at_the_interval_of_the_table() {
    for (clauses, commits, expected) in [
        ("", 11, vec![10]),
        ("OPTIONS ('delta.checkpointInterval' '3')", 7, vec![3, 6]),
        ("OPTIONS ('delta.checkpointInterval' '100')", 11, vec![]),
    ] {
        let table = Table::create("id BIGINT, x BIGINT", clauses, &[]).await;
        insert(&table, commits).await;
        assert_eq!(checkpoints(&table), expected, "{clauses}");
        if let Some(last) = expected.last() {
            let hint = std::fs::read(log(&table).join("_last_checkpoint")).expect("hint");
            let hint: Value = serde_json::from_slice(&hint).expect("json");
            assert_eq!(hint["version"], json!(last));
        }
        assert_eq!(
            rows_by_deltalake(&table, "SELECT count(*) FROM t").await,
            [commits.to_string()]
        );
    }
}

#[tokio::test]
async fn table_with_checkpoints_of_the_second_form_is_changed_and_read_back() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.checkpointInterval' '3')",
        &["VALUES (100, 1), (101, 2)"],
    )
    .await;
    table.change_log_entry(0, |action| {
        if action.get("protocol").is_some() {
            *action = json!({"protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["v2Checkpoint"],
                "writerFeatures": ["v2Checkpoint"],
            }});
        }
        if action.get("metaData").is_some() {
            action["metaData"]["configuration"]["delta.checkpointPolicy"] = json!("v2");
        }
    });
    let table = Table::open(table.into_folder()).await.expect("opens");
    assert_eq!(table.count("DELETE FROM t WHERE id = 100").await, 1);
    assert_eq!(table.count("UPDATE t SET x = 7 WHERE id = 101").await, 1);
    assert_eq!(checkpoints(&table), [3]);
    forget_entries(&table, 3);
    let expected = ["101|7"];
    assert_eq!(
        rows_by_deltalake(&table, "SELECT id, x FROM t").await,
        expected
    );
    let table = Table::open(table.into_folder()).await.expect("opens");
    assert_eq!(table.rows("SELECT id, x FROM t").await, expected);
    assert_eq!(table.count("UPDATE t SET x = 8 WHERE id = 101").await, 1);
    assert_eq!(
        rows_by_deltalake(&table, "SELECT id, x FROM t").await,
        ["101|8"]
    );
}

#[tokio::test]
async fn application_transactions_are_in_the_checkpoint() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.checkpointInterval' '3')",
        &[],
    )
    .await;
    table
        .put_entry(&[json!({"txn": {"appId": "feed", "version": 42, "lastUpdated": 1}})])
        .await;
    insert(&table, 2).await;
    assert_eq!(checkpoints(&table), [3]);
    forget_entries(&table, 3);
    let loaded = table.deltalake().await;
    let state = loaded.snapshot().expect("loaded").snapshot();
    assert_eq!(
        state
            .transaction_version(loaded.log_store().as_ref(), "feed")
            .await
            .expect("read"),
        Some(42)
    );
}

#[tokio::test]
async fn deletion_vectors_are_in_the_checkpoint() {
    let table = Table::numbers(1, 10, "OPTIONS ('delta.checkpointInterval' '4')").await;
    allow_vectors(&table).await;
    let hidden = hide(&add_of(&table, 1), &inline(&[3, 4]));
    table.put_entry(&hidden).await;
    assert_eq!(table.count("INSERT INTO t VALUES (100, 100)").await, 1);
    assert_eq!(checkpoints(&table), [4]);
    forget_entries(&table, 4);
    let table = Table::open(table.into_folder()).await.expect("opens");
    for (change, expected) in [
        (None, "9|138"),
        (Some("DELETE FROM t WHERE id > 8"), "7|29"),
    ] {
        if let Some(change) = change {
            assert_eq!(table.count(change).await, 2);
        }
        let query = "SELECT count(*), sum(id) FROM t";
        assert_eq!(table.rows(query).await, [expected]);
        assert_eq!(rows_by_deltalake(&table, query).await, [expected]);
    }
}

#[tokio::test]
async fn a_checkpoint_that_fails_leaves_the_commit_alone() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.checkpointInterval' '2')",
        &["VALUES (1, 1)"],
    )
    .await;
    let obstacle = log(&table).join(format!("{:020}.checkpoint.parquet", 2));
    std::fs::create_dir_all(obstacle.join("x")).expect("obstacle");
    assert_eq!(table.count("INSERT INTO t VALUES (2, 2)").await, 1);
    assert!(obstacle.is_dir(), "no checkpoint could be put there");
    assert_eq!(table.count("INSERT INTO t VALUES (3, 3)").await, 1);
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
    std::fs::remove_dir_all(&obstacle).expect("removed");
    // A later one is written.
    assert_eq!(table.count("DELETE FROM t WHERE id = 1").await, 1);
    assert_eq!(checkpoints(&table), [4]);
    assert_eq!(
        rows_by_deltalake(&table, "SELECT count(*) FROM t").await,
        ["2"]
    );
}

/// Makes everything in the log as old as `days`.
fn age(table: &Table, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    for entry in std::fs::read_dir(log(table)).expect("log") {
        let path = entry.expect("entry").path();
        let file = std::fs::File::options()
            .append(true)
            .open(path)
            .expect("opened");
        file.set_modified(then).expect("aged");
    }
}

#[tokio::test]
async fn expired_entries_stay_unless_the_table_asks_for_their_removal() {
    for (property, age_in_days, oldest) in [
        ("", 365, 0),
        ("'delta.enableExpiredLogCleanup' 'false',", 365, 0),
        // Within the retention nothing goes.
        ("'delta.enableExpiredLogCleanup' 'true',", 5, 0),
        // Version 5 is in the retention, and so everything from the checkpoint before it on.
        ("'delta.enableExpiredLogCleanup' 'true',", 8, 4),
    ] {
        let table = Table::create(
            "id BIGINT, x BIGINT",
            &format!(
                "OPTIONS ({property} 'delta.logRetentionDuration' 'interval 1 week', \
                 'delta.checkpointInterval' '2')"
            ),
            &[],
        )
        .await;
        insert(&table, 4).await;
        assert_eq!(checkpoints(&table), [2, 4]);
        age(&table, age_in_days);
        insert(&table, 2).await;
        let expected: Vec<u64> = (oldest..=6).collect();
        assert_eq!(
            versions(&table, ".json"),
            expected,
            "{property} {age_in_days}"
        );
        let expected: &[u64] = if oldest == 0 { &[2, 4, 6] } else { &[4, 6] };
        assert_eq!(checkpoints(&table), expected);
        assert_eq!(
            rows_by_deltalake(&table, "SELECT count(*) FROM t").await,
            ["6"]
        );
        let other = table.other_session().await;
        assert_eq!(
            crate::support::rows(&other, "SELECT count(*) FROM t").await,
            ["6"]
        );
    }
}
