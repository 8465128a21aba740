//! What a transaction looks like in the table's log, to this crate and to deltalake.

use futures::TryStreamExt;

use crate::support::{Table, text_rows};

#[tokio::test]
async fn transaction_is_one_version_that_names_its_statements() {
    let table = Table::numbers(2, 3, "").await;
    let version = table.log().0 + 1;
    table.run("BEGIN").await;
    table.run("SELECT * FROM t").await;
    table.run("INSERT INTO t VALUES (10, 0), (11, 0)").await;
    table.run("UPDATE t SET x = 5 WHERE id > 9").await;
    table.run("DELETE FROM t WHERE id = 0").await;
    table.run("DELETE FROM t WHERE id = -1").await;
    table.run("COMMIT").await;
    assert_eq!(table.log().0, version);

    let entry = table.log_entry(version);
    let infos = entry
        .iter()
        .filter(|action| !action["commitInfo"].is_null());
    assert_eq!(infos.count(), 1);
    let info = table.commit_info(version);
    assert_eq!(info["operation"], "TRANSACTION");
    assert_eq!(info["readVersion"], version - 1);
    assert_eq!(info["isBlindAppend"], false);
    let statements = info["operationParameters"]["statements"]
        .as_str()
        .expect("text");
    let statements: Vec<serde_json::Value> = serde_json::from_str(statements).expect("json");
    let names: Vec<&str> = statements
        .iter()
        .filter_map(|statement| statement["operation"].as_str())
        .collect();
    // Those that changed rows.
    assert_eq!(names, ["WRITE", "UPDATE", "DELETE"]);
    assert_eq!(statements[0]["mode"], "Append");
    let predicate = statements[2]["predicate"].as_str().expect("predicate");
    assert!(predicate.contains("id"), "{predicate}");

    // The file of the INSERT was replaced by that of the UPDATE and never was in a version.
    let (adds, removes): (Vec<_>, Vec<_>) = (
        entry
            .iter()
            .filter(|action| !action["add"].is_null())
            .collect(),
        entry
            .iter()
            .filter(|action| !action["remove"].is_null())
            .collect(),
    );
    assert_eq!((adds.len(), removes.len()), (2, 1));
    let metrics = &info["operationMetrics"];
    assert_eq!(metrics["numAddedFiles"], "2");
    assert_eq!(metrics["numRemovedFiles"], "1");
    assert_eq!(metrics["numOutputRows"], "2");
    assert_eq!(metrics["numUpdatedRows"], "2");
    assert_eq!(metrics["numDeletedRows"], "1");

    let theirs = table.deltalake_session().await;
    let shown = theirs
        .sql("SELECT id, x FROM t ORDER BY id")
        .await
        .expect("planned")
        .collect()
        .await
        .expect("rows");
    assert_eq!(
        text_rows(&shown),
        ["1|1", "2|2", "3|3", "4|4", "5|5", "10|5", "11|5"]
    );
    let history: Vec<_> = table
        .deltalake()
        .await
        .history(Some(1))
        .try_collect()
        .await
        .expect("history");
    assert_eq!(history[0].operation.as_deref(), Some("TRANSACTION"));
}

#[tokio::test]
async fn transaction_of_plain_inserts_is_a_blind_append() {
    let table = Table::numbers(1, 3, "").await;
    for (statements, blind) in [
        (
            &[
                "INSERT INTO t VALUES (10, 0)",
                "INSERT INTO t VALUES (11, 0)",
            ][..],
            true,
        ),
        (
            &[
                "INSERT INTO t VALUES (10, 0)",
                "INSERT INTO t SELECT id + 20, x FROM t WHERE id = 10",
            ],
            false,
        ),
        (&["SELECT 1", "INSERT INTO t VALUES (12, 0)"], true),
        (
            &[
                "SELECT * FROM t WHERE id = -5",
                "INSERT INTO t VALUES (12, 0)",
            ],
            false,
        ),
        (
            &[
                "DELETE FROM t WHERE id = -5",
                "INSERT INTO t VALUES (12, 0)",
            ],
            false,
        ),
    ] {
        table.run("BEGIN").await;
        for statement in statements {
            table.run(statement).await;
        }
        table.run("COMMIT").await;
        let info = table.commit_info(table.log().0);
        assert_eq!(info["isBlindAppend"], blind, "{statements:?}");
    }
}

#[tokio::test]
async fn checkpoint_is_written_when_it_is_due() {
    let table = Table::numbers(1, 2, "OPTIONS ('delta.checkpointInterval' '2')").await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (2, 2)").await;
    table.run("COMMIT").await;
    let checkpoint = format!("{}/_delta_log/_last_checkpoint", table.path());
    assert!(std::path::Path::new(&checkpoint).exists());
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
}
