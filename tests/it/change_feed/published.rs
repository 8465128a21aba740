//! Published tables with a feed: what others wrote is read as deltalake reads it, and our changes
//! stand behind theirs, or are refused by name.

use std::path::Path;

use delta_disjoint::ErrorKind;

use super::check_files;
use super::reader::{ours, theirs};
use crate::support::{Table, copy_folder, kind_of};

/// A copy of a published table; nothing, and a word of why, if it is not at hand.
async fn published(name: &str) -> Option<Table> {
    let Some(root) = std::env::var_os("DELTA_GOLDEN_TABLES") else {
        println!("{name}: not compared, DELTA_GOLDEN_TABLES names no folder");
        return None;
    };
    let published = Path::new(&root).join(name);
    if !published.exists() {
        println!("{name}: not compared, there is no {}", published.display());
        return None;
    }
    let folder = tempfile::tempdir().expect("folder");
    copy_folder(&published, folder.path());
    Some(Table::open(folder).await.expect("opens"))
}

#[tokio::test]
async fn published_table_is_changed_and_its_feed_goes_on() {
    let Some(table) = published("delta-rs/cdf-table").await else {
        return;
    };
    let found = table.log().0;
    let before = theirs(&table, 0).await;
    // Ten rows come, six change, one goes.
    assert_eq!(before.len(), 10 + 2 * 6 + 1);
    assert_eq!(ours(&table, 0), before);

    let rows = table.rows("SELECT * FROM t ORDER BY id").await;
    assert_eq!(rows.len(), 9);
    table
        .run("UPDATE t SET name = upper(name), birthday = DATE '2024-02-29' WHERE id <= 2")
        .await;
    table.run("DELETE FROM t WHERE name = 'Ada'").await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (11, 'Eve', NULL)").await;
    table
        .run("UPDATE t SET name = name || '!' WHERE id IN (3, 11)")
        .await;
    table.run("COMMIT").await;

    let mut after = before;
    for (version, kind, row) in [
        (1, "update_preimage", "1|Steve|2023-12-22"),
        (1, "update_postimage", "1|STEVE|2024-02-29"),
        (1, "update_preimage", "2|Bob|2023-12-22"),
        (1, "update_postimage", "2|BOB|2024-02-29"),
        (2, "delete", "9|Ada|2023-12-25"),
        (3, "insert", "11|Eve!|NULL"),
        (3, "update_preimage", "3|Dave|2023-12-22"),
        (3, "update_postimage", "3|Dave!|2023-12-22"),
    ] {
        after.push((found + version, kind.to_owned(), row.to_owned()));
    }
    after.sort();
    assert_eq!(ours(&table, 0), after);
    assert_eq!(theirs(&table, 0).await, after);
    check_files(&table);
}

#[tokio::test]
async fn published_table_with_commit_timestamps_is_read_and_its_changes_are_refused() {
    let Some(table) = published("delta-rs/cdc_ict_table").await else {
        return;
    };
    let changes = theirs(&table, 0).await;
    assert!(
        changes
            .iter()
            .any(|(_, kind, _)| kind == "update_postimage")
    );
    assert_eq!(ours(&table, 0), changes);
    assert!(!table.rows("SELECT * FROM t").await.is_empty());
    for text in [
        "UPDATE t SET age = age + 1",
        "DELETE FROM t WHERE birthyear = 1995",
        "INSERT INTO t VALUES ('Eve', 1986, 40)",
        "TRUNCATE TABLE t",
    ] {
        let error = table.refused(text).await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{text}");
        assert!(error.to_string().contains("inCommitTimestamp"), "{error}");
    }
}
