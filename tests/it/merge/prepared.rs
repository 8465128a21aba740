//! A MERGE that is planned once and runs later, after the table's columns changed.

use delta_disjoint::{ErrorKind, sql};

use crate::support::{Table, kind_of, try_run};

const MERGE: &str = "MERGE INTO t USING (SELECT column1 AS id, column2 AS a, column3 AS b \
    FROM (VALUES (1, 10, 20), (2, 11, 21))) AS s ON t.id = s.id \
    WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a, s.b)";

async fn table() -> Table {
    Table::create("id BIGINT, a BIGINT, b BIGINT", "", &["VALUES (1, 1, 2)"]).await
}

/// Another writer gives the table the columns `names`, all BIGINT.
async fn set_columns(table: &Table, names: &[&str]) {
    let mut metadata = table
        .log_entry(0)
        .into_iter()
        .find(|action| action.get("metaData").is_some())
        .expect("metaData");
    let fields: Vec<_> = names
        .iter()
        .map(|name| {
            serde_json::json!({"name": name, "type": "long", "nullable": true, "metadata": {}})
        })
        .collect();
    metadata["metaData"]["schemaString"] = serde_json::json!({"type": "struct", "fields": fields})
        .to_string()
        .into();
    table.put_entry(&[metadata]).await;
}

#[tokio::test]
async fn values_without_names_go_to_the_columns_of_when_the_merge_was_planned() {
    for (columns, expected) in [
        (["id", "b", "a"], Some("2|11|21")),
        // The column that a value was for is gone.
        (["id", "b", "c"], None),
    ] {
        let table = table().await;
        table.run(&format!("PREPARE m AS {MERGE}")).await;
        let frame = sql(&table.ctx, MERGE).await.expect("planned");
        set_columns(&table, &columns).await;
        let error = table.error("EXECUTE m").await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
        let before = table.log().0;
        match expected {
            Some(row) => {
                assert_eq!(table.count("EXECUTE m").await, 1);
                let inserted = "SELECT id, a, b FROM t WHERE id = 2";
                assert_eq!(table.rows(inserted).await, [row]);
                table.run("DELETE FROM t WHERE id = 2").await;
                frame.collect().await.expect("runs");
                assert_eq!(table.rows(inserted).await, [row]);
            }
            None => {
                for error in [
                    table.error("EXECUTE m").await,
                    frame.collect().await.expect_err("refused"),
                ] {
                    assert!(error.to_string().contains("No field named a"), "{error}");
                }
                assert_eq!(table.log().0, before);
            }
        }
    }
}

#[tokio::test]
async fn an_assignment_to_a_column_that_is_gone_is_an_error() {
    let table = table().await;
    table
        .run(
            "PREPARE m AS MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET a = 5",
        )
        .await;
    set_columns(&table, &["id", "b"]).await;
    table.error("EXECUTE m").await;
    let error = table.refused("EXECUTE m").await;
    assert!(error.to_string().contains("No field named a"), "{error}");
}

#[tokio::test]
async fn a_plan_of_datafusion_itself_is_refused_once_columns_have_changed() {
    let table = table().await;
    let ctx = &table.ctx;
    ctx.sql(&format!("PREPARE m AS {MERGE}"))
        .await
        .expect("prepared");
    let frame = ctx.sql(MERGE).await.expect("planned");
    assert_eq!(table.count("EXECUTE m").await, 1);
    set_columns(&table, &["id", "b", "a"]).await;
    table.error("EXECUTE m").await;
    for error in [
        try_run(ctx, "EXECUTE m").await.expect_err("refused"),
        frame.collect().await.expect_err("refused"),
    ] {
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().contains("name them"), "{error}");
    }
    let named = MERGE.replace("INSERT VALUES", "INSERT (id, a, b) VALUES");
    table.run("DELETE FROM t WHERE id = 2").await;
    let frame = ctx.sql(&named).await.expect("planned");
    frame.collect().await.expect("runs");
    assert_eq!(
        table.rows("SELECT id, a, b FROM t WHERE id = 2").await,
        ["2|11|21"]
    );
}
