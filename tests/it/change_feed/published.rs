//! Published tables with a feed: what others wrote is read as deltalake reads it, and our changes
//! stand behind theirs.

use std::path::Path;

use super::check_files;
use super::reader::{ours, theirs};
use crate::support::{Table, copy_folder};

#[tokio::test]
async fn published_table_is_changed_and_its_feed_goes_on() {
    let Some(root) = std::env::var_os("DELTA_GOLDEN_TABLES") else {
        println!("published tables with a feed: none ran, DELTA_GOLDEN_TABLES names no folder");
        return;
    };
    let published = Path::new(&root).join("delta-rs/cdf-table");
    if !published.exists() {
        println!(
            "published tables with a feed: none ran, there is no {}",
            published.display()
        );
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    copy_folder(&published, folder.path());
    let table = Table::open(folder).await.expect("opens");
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
