//! Ways to corrupt a table that no single statement shows: names that differ only in spelling.

use delta_disjoint::commit::ConflictKind;

use crate::support::{Table, open};

/// The file of version 1 under a new name on disk and, as `logged`, in the log.
async fn renamed(name: &str, logged: &str) -> Table {
    let table = Table::create("id BIGINT, x BIGINT", "", &["VALUES (1, 1), (2, 2)"]).await;
    let files = table.files_on_disk();
    let [file] = files.as_slice() else {
        panic!("one file expected, got {files:?}");
    };
    std::fs::rename(
        format!("{}/{file}", table.path()),
        format!("{}/{name}", table.path()),
    )
    .expect("renamed");
    table.change_log_entry(1, |action| {
        if let Some(add) = action.get_mut("add") {
            add["path"] = logged.into();
        }
    });
    table
}

#[tokio::test]
async fn file_is_removed_under_the_name_that_the_log_gives_it() {
    for (name, logged) in [
        ("a b.parquet", "a%20b.parquet"),
        ("a b.parquet", "a b.parquet"),
        ("a*.parquet", "a%2A.parquet"),
        ("a*.parquet", "a*.parquet"),
        ("ü.parquet", "%C3%BC.parquet"),
        ("ü.parquet", "ü.parquet"),
        ("a@b.parquet", "a@b.parquet"),
        ("a@b.parquet", "a%40b.parquet"),
    ] {
        let statements = [
            ("DELETE FROM t WHERE id = 1", vec!["2|2"]),
            ("UPDATE t SET x = 5 WHERE id = 1", vec!["1|5", "2|2"]),
            ("INSERT OVERWRITE t VALUES (3, 3)", vec!["3|3"]),
            ("TRUNCATE TABLE t", vec![]),
        ];
        let most = if name == "a b.parquet" { 4 } else { 1 };
        for (statement, rows) in statements.into_iter().take(most) {
            let table = renamed(name, logged).await;
            // A session that has not seen the file under its first name.
            let ctx = table.other_session().await;
            let outcome = crate::support::try_run(&ctx, statement).await;
            let ctx = table.other_session().await;
            let found = crate::support::rows(&ctx, "SELECT id, x FROM t ORDER BY id").await;
            outcome.unwrap_or_else(|error| panic!("{logged}: {statement}\n{error}"));
            assert_eq!(found, rows, "{logged}: {statement}");
            let removed = table
                .log_entry(2)
                .into_iter()
                .find_map(|action| Some(action.get("remove")?["path"].as_str()?.to_owned()));
            assert_eq!(removed.as_deref(), Some(logged), "{statement}");
        }
    }
}

/// What two mounts of one folder are to this crate: two locations, one table id.
#[tokio::test]
async fn table_with_the_same_id_elsewhere_counts_as_the_target() {
    let inserts = ["VALUES (1, 1)", "VALUES (2, 2)"];
    let table = Table::create("id BIGINT, x BIGINT", "", &inserts).await;
    let folder = tempfile::tempdir().expect("folder");
    copy(table.path().as_ref(), folder.path());
    open(&table.ctx, "twin", folder.path().to_str().expect("utf-8")).await;
    for statement in [
        "UPDATE t SET x = (SELECT max(x) FROM twin) WHERE id = 1",
        "DELETE FROM t WHERE id = 1 AND id < (SELECT max(x) FROM twin)",
        "INSERT INTO t SELECT max(id) + 1, 0 FROM twin",
    ] {
        let loser = table.plan(statement).await;
        table.run("UPDATE t SET x = x + 1 WHERE id = 2").await;
        assert_eq!(
            loser.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{statement}"
        );
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("folder");
    for entry in std::fs::read_dir(from).expect("folder") {
        let path = entry.expect("entry").path();
        let to = to.join(path.file_name().expect("name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("copied");
        }
    }
}
