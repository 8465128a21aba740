//! Changing tables that have vectors: hidden rows stay hidden, vectors go with their files.

use serde_json::{Value, json};

use super::vectors::inline;
use super::{add_of, hide, numbers};
use crate::support::Table;

/// Two files of ten rows; of the first, rows 0, 3 and 9 are hidden.
async fn table() -> Table {
    let table = numbers(2).await;
    table
        .put_entry(&hide(&add_of(&table, 1), &inline(&[0, 3, 9])))
        .await;
    table
}

fn actions(table: &Table, version: u64, name: &str) -> Vec<Value> {
    table
        .log_entry(version)
        .into_iter()
        .filter_map(|action| action.get(name).cloned())
        .collect()
}

fn rows_in_statistics(add: &Value) -> u64 {
    let stats: Value = serde_json::from_str(add["stats"].as_str().expect("stats")).expect("json");
    stats["numRecords"].as_u64().expect("numRecords")
}

#[tokio::test]
async fn every_change_keeps_hidden_rows_hidden() {
    // Statement; rows it reports; numRecords of the new files; ids that stay; files removed.
    let visible = [1, 2, 4, 5, 6, 7, 8];
    let second: Vec<i64> = (10..20).collect();
    let all_of = |first: &[i64], second: &[i64]| [first, second].concat();
    for (text, count, added, expected, removed) in [
        (
            "UPDATE t SET id = id + 100 WHERE id IN (1, 3)",
            1,
            vec![7],
            all_of(&[2, 4, 5, 6, 7, 8], &[&second[..], &[101]].concat()),
            1,
        ),
        (
            "DELETE FROM t WHERE id < 3",
            2,
            vec![5],
            all_of(&[4, 5, 6, 7, 8], &second),
            1,
        ),
        ("DELETE FROM t WHERE id < 10", 7, vec![], second.clone(), 1),
        ("DELETE FROM t", 17, vec![], vec![], 2),
        ("TRUNCATE TABLE t", 17, vec![], vec![], 2),
        (
            "INSERT OVERWRITE t SELECT id, x FROM t WHERE id < 5",
            3,
            vec![3],
            vec![1, 2, 4],
            2,
        ),
        (
            "INSERT INTO t VALUES (50, 50)",
            1,
            vec![1],
            all_of(&visible, &[&second[..], &[50]].concat()),
            0,
        ),
    ] {
        let table = table().await;
        let old = add_of(&table, 4);
        assert_eq!(table.count(text).await, count, "{text}");
        let version = table.version().await;
        assert_eq!(version, 5, "{text}");

        let adds = actions(&table, version, "add");
        let rows: Vec<u64> = adds.iter().map(rows_in_statistics).collect();
        assert_eq!(rows, added, "{text}");
        assert!(
            adds.iter().all(|add| add["deletionVector"].is_null()),
            "{text}"
        );

        let removes = actions(&table, version, "remove");
        assert_eq!(removes.len(), removed, "{text}");
        for remove in &removes {
            assert_eq!(remove["extendedFileMetadata"], json!(true), "{text}");
            assert_eq!(remove["partitionValues"], json!({}), "{text}");
            if remove["path"] == old["path"] {
                assert_eq!(remove["size"], old["size"], "{text}");
                assert_eq!(remove["deletionVector"], old["deletionVector"], "{text}");
            } else {
                assert!(remove["deletionVector"].is_null(), "{text}");
            }
        }

        let mut expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        let mut ours = table.rows("SELECT id FROM t").await;
        let theirs = table.deltalake_session().await;
        let theirs = theirs.sql("SELECT id FROM t").await.expect("plan");
        let mut theirs = crate::support::text_rows(&theirs.collect().await.expect("rows"));
        for rows in [&mut expected, &mut ours, &mut theirs] {
            rows.sort();
        }
        assert_eq!(ours, expected, "{text}");
        assert_eq!(theirs, expected, "{text}: deltalake");
    }
}

#[tokio::test]
async fn a_change_of_hidden_rows_alone_changes_nothing() {
    let table = table().await;
    for text in [
        "DELETE FROM t WHERE id IN (0, 3, 9)",
        "UPDATE t SET x = -1 WHERE id = 3",
    ] {
        assert_eq!(table.count(text).await, 0, "{text}");
        assert_eq!(table.version().await, 4, "{text}");
    }
}

/// Statistics of a file with a vector still hold for the rows it shows, but counts of NULL only at
/// their ends.
#[tokio::test]
async fn null_counts_of_a_file_with_a_vector_are_those_of_all_its_rows() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "",
        &["VALUES (1, NULL), (2, 5), (3, NULL)"],
    )
    .await;
    super::allow_vectors(&table).await;
    let add = add_of(&table, 1);
    table.put_entry(&hide(&add, &inline(&[0, 2]))).await;
    for (condition, expected) in [
        ("x IS NULL", "0"),
        ("x IS NOT NULL", "1"),
        ("x = 5", "1"),
        ("x IS NOT DISTINCT FROM NULL", "0"),
    ] {
        let text = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(table.rows(&text).await, [expected], "{condition}");
    }
}
