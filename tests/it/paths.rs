//! Files under other paths than this crate would give them: encoded in other ways, absolute, and
//! outside of the table's folder (shallow clones).

use std::path::Path;

use delta_disjoint::commit::ConflictKind;
use serde_json::json;

use crate::support::{Table, text_rows};

/// `t` with ids 0 to 9 in one file, which lies at `on_disk` (from the table's folder on) and is
/// `logged` so.
async fn table(logged: &str, on_disk: &Path) -> Table {
    let table = Table::numbers(1, 10, "").await;
    let folder = table.path();
    let old = Path::new(&folder).join(table.log().1.remove(0));
    let on_disk = Path::new(&folder).join(on_disk);
    std::fs::create_dir_all(on_disk.parent().expect("folder")).expect("folder");
    std::fs::rename(old, on_disk).expect("moved");
    table.change_log_entry(1, |action| {
        if action.get("add").is_some() {
            action["add"]["path"] = json!(logged);
        }
    });
    let dir = table.into_folder();
    Table::open(dir).await.expect("opened")
}

async fn theirs(table: &Table, query: &str) -> Vec<String> {
    let ctx = table.deltalake_session().await;
    let frame = ctx.sql(query).await.expect("plan");
    text_rows(&frame.collect().await.expect("rows"))
}

/// Reads and changes the table; its file is removed under the name that the log has for it.
async fn assert_usable(table: &Table, logged: &str, with_deltalake: bool) {
    let query = "SELECT id FROM t ORDER BY id";
    let expected: Vec<String> = (0..10).map(|id| id.to_string()).collect();
    assert_eq!(table.rows(query).await, expected, "{logged}");
    assert_eq!(
        table.rows("SELECT x FROM t WHERE id = 3").await,
        ["3"],
        "{logged}"
    );
    assert_eq!(
        table.count("DELETE FROM t WHERE id < 5").await,
        5,
        "{logged}"
    );
    let removed: Vec<_> = table
        .log_entry(2)
        .into_iter()
        .filter_map(|action| Some(action.get("remove")?["path"].as_str()?.to_owned()))
        .collect();
    assert_eq!(removed, [logged], "{logged}");
    assert_eq!(table.rows(query).await, expected[5..], "{logged}");
    if with_deltalake {
        assert_eq!(theirs(table, query).await, expected[5..], "{logged}");
    }
}

/// Another writer that removes the file, under the same name, is noticed.
async fn assert_removal_is_noticed(table: &Table, logged: &str) {
    let loser = table.plan("DELETE FROM t WHERE id = 4").await;
    table
        .put_entry(&[
            json!({"remove": {"path": logged, "dataChange": true, "deletionTimestamp": 0}}),
        ])
        .await;
    assert_eq!(
        loser.conflict().await,
        ConflictKind::ConcurrentDeleteRead,
        "{logged}"
    );
}

#[tokio::test]
async fn a_file_is_removed_under_the_name_that_the_log_has_for_it() {
    for (logged, on_disk) in [
        ("a b.parquet", "a b.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("a*b.parquet", "a*b.parquet"),
        ("a%2Ab.parquet", "a*b.parquet"),
        ("%C3%BC.parquet", "ü.parquet"),
        ("%c3%bc.parquet", "ü.parquet"),
        ("special%20p@%23h", "special p@#h"),
        ("d%2520d/x.parquet", "d%20d/x.parquet"),
    ] {
        assert_usable(&table(logged, Path::new(on_disk)).await, logged, true).await;
        assert_removal_is_noticed(&table(logged, Path::new(on_disk)).await, logged).await;
    }
}

#[tokio::test]
async fn a_file_outside_of_the_folder_is_read_and_removed_from_the_table() {
    let elsewhere = tempfile::tempdir().expect("folder");
    for (number, name) in ["x.parquet", "a b.parquet", "a%2Fb.parquet"]
        .iter()
        .enumerate()
    {
        let on_disk = elsewhere.path().join(number.to_string()).join(name);
        let url = url::Url::from_file_path(&on_disk).expect("url").to_string();
        // As Hadoop writes it, which deltalake does not know.
        let hadoop = url.replacen("file:///", "file:/", 1);
        for (logged, with_deltalake) in [(&url, true), (&hadoop, false)] {
            assert_usable(&table(logged, &on_disk).await, logged, with_deltalake).await;
            assert_removal_is_noticed(&table(logged, &on_disk).await, logged).await;
            assert!(on_disk.exists(), "the file is not this table's to delete");
        }
    }
}

/// New files lie in the table's folder beside old ones elsewhere, and one scan reads both.
#[tokio::test]
async fn a_shallow_clone_grows_files_of_its_own() {
    let elsewhere = tempfile::tempdir().expect("folder");
    let on_disk = elsewhere.path().join("origin.parquet");
    let url = url::Url::from_file_path(&on_disk).expect("url").to_string();
    let table = table(&url, &on_disk).await;
    table.run("INSERT INTO t VALUES (100, 100)").await;
    assert_eq!(
        table.rows("SELECT count(*), sum(x) FROM t").await,
        ["11|145"]
    );
    assert_eq!(table.count("UPDATE t SET x = 0 WHERE id >= 9").await, 2);
    assert_eq!(table.rows("SELECT sum(x) FROM t").await, ["36"]);
    assert_eq!(theirs(&table, "SELECT sum(x) FROM t").await, ["36"]);
}
