//! Writers beside each other: the feed of what is committed, and the feed turned on by a winner.

use delta_disjoint::commit::ConflictKind;
use serde_json::json;

use super::{FEED, Shape, changes_since, check_files, expected};
use crate::support::{Table, conflict_of, rows};

#[tokio::test]
async fn writers_of_disjoint_rows_each_leave_their_changes() {
    let table = Shape::Plain.table().await;
    let found = table.log().0;
    let low = table.plan("UPDATE t SET x = 0 WHERE id = 1").await;
    let high = table.plan("DELETE FROM t WHERE id = 6").await;
    assert_eq!(low.count().await, 1);
    assert_eq!(high.count().await, 1);
    let mut both = expected(
        found + 1,
        &[("update_preimage", "1|10|a"), ("update_postimage", "1|0|a")],
    );
    both.extend(expected(found + 2, &[("delete", "6|60|b")]));
    assert_eq!(changes_since(&table, Shape::Plain, found).await, both);
}

#[tokio::test]
async fn statement_that_loses_leaves_no_change_file() {
    let table = Shape::Plain.table().await;
    let late = table.plan("UPDATE t SET x = 1 WHERE id IN (1, 2)").await;
    table.run("UPDATE t SET x = 0 WHERE id = 1").await;
    let before = (table.log(), table.data_files_on_disk());
    late.conflict().await;
    assert_eq!((table.log(), table.data_files_on_disk()), before);
}

#[tokio::test]
async fn statement_that_fails_leaves_no_change_file() {
    let table = Shape::Plain.table().await;
    for text in [
        // The first row is written before the second one fails.
        "UPDATE t SET x = 1 / (id - 6)",
        "MERGE INTO t USING (VALUES (1, 1), (2, 2), (2, 3)) AS s(id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x",
    ] {
        table.refused(text).await;
    }
}

#[tokio::test]
async fn statement_that_breaks_a_constraint_leaves_no_change_file() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.enableChangeDataFeed' 'true', 'delta.constraints.small' 'x < 100')",
        &["VALUES (1, 1), (2, 2)", "VALUES (3, 99)"],
    )
    .await;
    table.refused("UPDATE t SET x = x + 1").await;
    table.run("BEGIN").await;
    table.error("UPDATE t SET x = x + 1").await;
    table.run("UPDATE t SET x = x + 1 WHERE id = 1").await;
    table.run("COMMIT").await;
    let changes = [("update_preimage", "1|1"), ("update_postimage", "1|2")];
    assert_eq!(
        changes_since(&table, Shape::Plain, 2).await,
        expected(3, &changes)
    );
}

/// Without the change files of our commit, the feed would miss it.
#[tokio::test]
async fn feed_that_a_winner_turns_on_or_off_is_a_conflict() {
    for (before, after) in [("false", "true"), ("true", "false")] {
        let clauses = format!("OPTIONS ('delta.enableChangeDataFeed' '{before}')");
        for text in [
            "UPDATE t SET x = 0 WHERE id = 1",
            "DELETE FROM t WHERE id = 1",
            "INSERT INTO t VALUES (9, 9)",
        ] {
            let table = Table::numbers(1, 3, &clauses).await;
            let late = table.plan(text).await;
            let other = table.other_session().await;
            rows(&other, "BEGIN").await;
            rows(&other, text).await;
            switch(&table, after).await;
            assert_eq!(late.conflict().await, ConflictKind::MetadataChanged);
            let error = crate::support::try_run(&other, "COMMIT")
                .await
                .expect_err("the transaction loses");
            assert_eq!(conflict_of(&error), ConflictKind::MetadataChanged);
            check_files(&table);
        }
    }
}

/// Another writer sets the property.
async fn switch(table: &Table, value: &str) {
    let mut metadata = table.log_entry(0)[2]["metaData"].clone();
    metadata["configuration"]["delta.enableChangeDataFeed"] = json!(value);
    table.put_entry(&[json!({"metaData": metadata})]).await;
}

#[tokio::test]
async fn feed_begins_with_the_version_that_turned_it_on() {
    let table = Table::create(
        "id BIGINT, x BIGINT, p VARCHAR",
        "OPTIONS ('delta.enableChangeDataFeed' 'false')",
        &["VALUES (1, 1, 'a'), (2, 2, 'b')"],
    )
    .await;
    table.run("UPDATE t SET x = 0 WHERE id = 1").await;
    assert!(
        table
            .data_files_on_disk()
            .iter()
            .all(|path| !path.starts_with('_'))
    );
    let mut metadata = table.log_entry(0)[2]["metaData"].clone();
    metadata["configuration"]["delta.enableChangeDataFeed"] = json!("true");
    table
        .put_entry(&[
            json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}),
            json!({"metaData": metadata}),
        ])
        .await;
    table.run("UPDATE t SET x = 5 WHERE id = 1").await;
    assert_eq!(
        changes_since(&table, Shape::Plain, 3).await,
        expected(
            4,
            &[("update_preimage", "1|0|a"), ("update_postimage", "1|5|a")]
        )
    );
}

/// A winner's change files say that it changed rows, whatever it says of itself.
#[tokio::test]
async fn winner_with_change_files_is_no_blind_append() {
    for with_change_files in [false, true] {
        let table = Table::numbers(1, 3, FEED).await;
        let late = table.plan("UPDATE t SET x = 0 WHERE id IN (1, 50)").await;
        table.run("INSERT INTO t VALUES (50, 1)").await;
        let version = table.log().0;
        assert_eq!(table.commit_info(version)["isBlindAppend"], json!(true));
        if with_change_files {
            let mut entry = table.log_entry(version);
            entry.push(json!({"cdc": {
                "path": "_change_data/x.parquet", "partitionValues": {}, "size": 1,
                "dataChange": false,
            }}));
            let text: Vec<String> = entry.iter().map(ToString::to_string).collect();
            let path = format!("{}/_delta_log/{version:020}.json", table.path());
            std::fs::write(path, text.join("\n")).expect("log entry");
            assert_eq!(late.conflict().await, ConflictKind::ConcurrentAppend);
        } else {
            assert_eq!(late.count().await, 1);
        }
    }
}
