//! What a transaction sees of others and others of it; what is one session and one table.

use datafusion::prelude::{SessionContext, col, lit};
use delta_disjoint::commit::ConflictKind;
use delta_disjoint::session::register_on;
use delta_disjoint::{ErrorKind, sql};

use crate::support::{Table, conflict_of, kind_of, open, plan, rows, run, text_rows, try_run};

const IDS: &str = "SELECT id FROM t ORDER BY id";

#[tokio::test]
async fn first_mention_pins_the_version_of_each_table() {
    let table = Table::numbers(1, 2, "").await;
    let second = Table::numbers(1, 1, "").await;
    open(&table.ctx, "s", &second.path()).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    // Not mentioned yet: EXPLAIN and PREPARE show no row.
    table.run("EXPLAIN SELECT * FROM t").await;
    table.run("PREPARE p AS SELECT id FROM t ORDER BY id").await;
    run(&other, "INSERT INTO t VALUES (10, 0)").await;
    assert_eq!(table.rows(IDS).await, ["0", "1", "10"]);
    run(&other, "INSERT INTO t VALUES (11, 0)").await;
    run(&other, "DELETE FROM t WHERE id = 0").await;
    assert_eq!(table.rows(IDS).await, ["0", "1", "10"]);
    assert_eq!(table.rows("EXECUTE p").await, ["0", "1", "10"]);
    run(&second.ctx, "INSERT INTO t VALUES (7, 7)").await;
    assert_eq!(table.rows("SELECT id FROM s ORDER BY id").await, ["0", "7"]);
    table.run("COMMIT").await;
    assert_eq!(table.rows(IDS).await, ["1", "10", "11"]);
}

#[tokio::test]
async fn names_and_views_of_one_table_are_one_table() {
    let table = Table::numbers(2, 3, "").await;
    let link = tempfile::tempdir().expect("folder");
    let link = link.path().join("link");
    std::os::unix::fs::symlink(table.path(), &link).expect("link");
    open(&table.ctx, "u", &format!("file://{}", table.path())).await;
    open(&table.ctx, "l", link.to_str().expect("utf-8")).await;
    table
        .run("CREATE VIEW v AS SELECT id, x FROM u WHERE id >= 3")
        .await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 100 WHERE id = 3").await;
    table.run("DELETE FROM u WHERE id = 4").await;
    table
        .run("INSERT INTO l SELECT id + 10, x FROM v WHERE x = 100")
        .await;
    for name in ["t", "u", "l"] {
        let query = format!("SELECT * FROM {name} WHERE id >= 3 ORDER BY id");
        assert_eq!(
            table.rows(&query).await,
            ["3|100", "5|5", "13|100"],
            "{name}"
        );
    }
    assert_eq!(table.rows("SELECT * FROM v ORDER BY id").await.len(), 3);
    let before = table.log().0;
    table.run("COMMIT").await;
    assert_eq!(table.log().0, before + 1);
    assert_eq!(table.rows("SELECT * FROM v ORDER BY id").await.len(), 3);
}

#[tokio::test]
async fn read_through_another_name_counts() {
    let table = Table::numbers(1, 3, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    open(&table.ctx, "u", &table.path()).await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    assert_eq!(
        table.rows("SELECT count(*) FROM u WHERE id > 100").await,
        ["0"]
    );
    table.run("INSERT INTO t VALUES (3, 3)").await;
    run(&other, "INSERT INTO t VALUES (150, 0)").await;
    let error = table.error("COMMIT").await;
    assert_eq!(conflict_of(&error), ConflictKind::ConcurrentAppend);
}

#[tokio::test]
async fn files_of_the_table_read_past_it_count_as_a_read_of_all() {
    let table = Table::numbers(1, 3, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    let elsewhere = tempfile::tempdir().expect("folder");
    table
        .run(&format!(
            "COPY (SELECT 1 AS one) TO '{}/a.parquet'",
            elsewhere.path().display()
        ))
        .await;
    for (name, path, conflict) in [
        ("raw", table.path(), true),
        ("far", elsewhere.path().display().to_string(), false),
    ] {
        run(
            &table.ctx,
            &format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}/'"),
        )
        .await;
        // Before the first mention of the table it is refused, see `past_scans`.
        for first in [!conflict, false] {
            let other = table.other_session().await;
            let query = format!("SELECT count(*) FROM {name}");
            table.run("BEGIN").await;
            if first {
                table.run(&query).await;
            }
            table.run("INSERT INTO t VALUES (3, 3)").await;
            if !first {
                table.run(&query).await;
            }
            run(&other, "INSERT INTO t VALUES (150, 0)").await;
            let ended = try_run(&table.ctx, "COMMIT").await;
            assert_eq!(ended.is_err(), conflict, "{name} first: {first}");
        }
    }
}

#[tokio::test]
async fn context_with_a_copied_state_does_not_share_the_transaction() {
    let table = Table::numbers(1, 2, "").await;
    let copied = SessionContext::new_with_state(table.ctx.state());
    let clone = table.ctx.clone();
    table.run("BEGIN").await;
    for statement in ["SELECT 1", "DELETE FROM t", "BEGIN", "COMMIT", "ROLLBACK"] {
        let error = try_run(&copied, statement).await.expect_err(statement);
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
        assert!(error.to_string().contains("register_on"), "{error}");
    }
    run(&clone, "INSERT INTO t VALUES (10, 0)").await;
    table.run("COMMIT").await;
    assert_eq!(rows(&copied, IDS).await, ["0", "1", "10"]);

    // With the context its transaction goes; the others are told once.
    run(&copied, "BEGIN").await;
    run(&copied, "INSERT INTO t VALUES (11, 0)").await;
    drop(copied);
    let error = table.error("INSERT INTO t VALUES (12, 0)").await;
    assert!(error.to_string().contains("rolled back"), "{error}");
    assert_eq!(table.rows(IDS).await, ["0", "1", "10"]);
}

#[tokio::test]
async fn sessions_have_transactions_of_their_own() {
    let table = Table::numbers(2, 2, "").await;
    let other = table.other_session().await;
    // Shares catalog and configuration, but is another session.
    let derived = SessionContext::new_with_state(register_on(table.ctx.state()));
    let rebuilt = SessionContext::new_with_state(table.ctx.state_of_a_clone());
    for ctx in [&table.ctx, &other, &derived, &rebuilt] {
        run(ctx, "BEGIN").await;
    }
    run(&table.ctx, "INSERT INTO t VALUES (10, 0)").await;
    run(&other, "INSERT INTO t VALUES (11, 0)").await;
    run(&derived, "INSERT INTO t VALUES (12, 0)").await;
    run(&rebuilt, "INSERT INTO t VALUES (13, 0)").await;
    for (ctx, own) in [
        (&table.ctx, "10"),
        (&other, "11"),
        (&derived, "12"),
        (&rebuilt, "13"),
    ] {
        assert_eq!(rows(ctx, IDS).await, ["0", "1", "2", "3", own]);
    }
    // A clone is the same session.
    let clone = table.ctx.clone();
    assert_eq!(
        rows(&clone, IDS).await.last().map(String::as_str),
        Some("10")
    );
    run(&clone, "COMMIT").await;
    assert_eq!(
        rows(&other, IDS).await,
        ["0", "1", "2", "3", "11"],
        "still in its own"
    );
    for ctx in [&other, &derived, &rebuilt] {
        run(ctx, "ROLLBACK").await;
        assert_eq!(rows(ctx, IDS).await, ["0", "1", "2", "3", "10"]);
    }
}

trait Rebuild {
    fn state_of_a_clone(&self) -> datafusion::execution::SessionState;
}

impl Rebuild for SessionContext {
    /// A state with an id of its own that shares the configuration's extensions.
    fn state_of_a_clone(&self) -> datafusion::execution::SessionState {
        self.clone().into_state_builder().build()
    }
}

#[tokio::test]
async fn frames_and_plain_sql_take_part() {
    let table = Table::numbers(2, 2, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (10, 0)").await;
    let frame = table.ctx.table("t").await.expect("table");
    let found = frame
        .filter(col("id").gt(lit(3_i64)))
        .expect("filter")
        .collect()
        .await
        .expect("rows");
    assert_eq!(text_rows(&found), ["10|0"]);
    table
        .ctx
        .sql("UPDATE t SET x = 1 WHERE id = 10")
        .await
        .expect("planned")
        .collect()
        .await
        .expect("updated");
    assert_eq!(rows(&other, IDS).await, ["0", "1", "2", "3"]);
    run(&other, "INSERT INTO t VALUES (5, 0)").await;
    // The frame's read was hit.
    assert_eq!(
        conflict_of(&table.error("COMMIT").await),
        ConflictKind::ConcurrentAppend
    );
}

#[tokio::test]
async fn change_of_columns_shows_only_after_the_transaction() {
    let table = Table::numbers(1, 2, "").await;
    table.run("BEGIN").await;
    assert_eq!(table.rows(IDS).await, ["0", "1"]);
    add_column(&table).await;
    table.run("UPDATE t SET x = 5 WHERE id = 0").await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["0|5", "1|1"]
    );
    let error = table.error("COMMIT").await;
    assert_eq!(conflict_of(&error), ConflictKind::MetadataChanged);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["0|0|NULL", "1|1|NULL"]
    );
}

/// Another writer adds the column `note`.
async fn add_column(table: &Table) {
    let mut metadata = table
        .log_entry(0)
        .into_iter()
        .find(|action| !action["metaData"].is_null())
        .expect("metaData");
    let text = metadata["metaData"]["schemaString"]
        .as_str()
        .expect("schema");
    let mut schema: serde_json::Value = serde_json::from_str(text).expect("json");
    schema["fields"]
        .as_array_mut()
        .expect("fields")
        .push(serde_json::json!(
            {"name": "note", "type": "string", "nullable": true, "metadata": {}}
        ));
    metadata["metaData"]["schemaString"] = schema.to_string().into();
    table.put_entry(&[metadata]).await;
}

#[tokio::test]
async fn plan_runs_only_where_it_was_made() {
    let table = Table::numbers(2, 2, "").await;
    let before = table.log();
    let outside = [
        plan(&table.ctx, "SELECT * FROM t").await,
        plan(&table.ctx, "UPDATE t SET x = 9 WHERE id = 0").await,
        plan(&table.ctx, "INSERT INTO t VALUES (9, 9)").await,
    ];
    table.run("BEGIN").await;
    for planned in outside {
        let error = planned.run().await.expect_err("planned before");
        assert!(
            error.to_string().contains("before the transaction"),
            "{error}"
        );
    }
    let inside = [
        plan(&table.ctx, "SELECT * FROM t").await,
        plan(&table.ctx, "UPDATE t SET x = 9 WHERE id = 0").await,
        plan(&table.ctx, "INSERT INTO t VALUES (9, 9)").await,
    ];
    table.run("ROLLBACK").await;
    for planned in inside {
        let error = planned.run().await.expect_err("planned in it");
        assert!(error.to_string().contains("has ended"), "{error}");
    }
    table.run("BEGIN").await;
    let frame = sql(&table.ctx, IDS).await.expect("frame");
    table.run("DELETE FROM t WHERE id = 0").await;
    // A frame is planned each time that it is collected.
    assert_eq!(
        text_rows(&frame.clone().collect().await.expect("rows")),
        ["1", "2", "3"]
    );
    table.run("ROLLBACK").await;
    assert_eq!(
        text_rows(&frame.collect().await.expect("rows")),
        ["0", "1", "2", "3"]
    );
    assert_eq!(table.log(), before);
    assert_eq!(super::orphans(&table), Vec::<String>::new());
}
