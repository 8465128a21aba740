//! The same rules in deltalake: tables that it made constrained, rows that both refuse, rows that it reads.

use datafusion::prelude::{SessionContext, col, lit};
use delta_disjoint::ErrorKind;
use deltalake::protocol::SaveMode;

use super::{add_invariant, generate};
use crate::support::{Table, kind_of, text_rows};

/// deltalake adds a constraint, in the way it writes them.
async fn add_constraint(table: &Table, name: &str, text: &str) {
    table
        .deltalake()
        .await
        .add_constraint()
        .with_constraint(name, text)
        .await
        .expect("constraint");
}

#[tokio::test]
async fn constraints_of_deltalake_hold() {
    for (columns, text, good, bad) in [
        (
            "id BIGINT, x BIGINT",
            "x > 0 AND id < 100",
            "(1, 1)",
            "(1, 0)",
        ),
        ("id BIGINT, x BIGINT", "x in (1, 2, 3)", "(1, 3)", "(1, 4)"),
        (
            "id BIGINT, \"ValueOf\" BIGINT",
            "\"ValueOf\" > 0",
            "(1, 1)",
            "(1, 0)",
        ),
        (
            "id BIGINT, \"State\" VARCHAR",
            "\"State\" <> 'x'",
            "(1, 'a')",
            "(1, 'x')",
        ),
        (
            "id BIGINT, s VARCHAR",
            "s = 'a' OR s IS NULL",
            "(1, NULL)",
            "(1, 'b')",
        ),
        (
            "id BIGINT, d DATE",
            "d > '2020-01-01'",
            "(1, '2020-01-02')",
            "(1, '2019-01-01')",
        ),
        (
            "id BIGINT, n DECIMAL(10, 2)",
            "n < 10.5",
            "(1, 10.49)",
            "(1, 10.5)",
        ),
    ] {
        let table = Table::create(columns, "", &[]).await;
        add_constraint(&table, "c", text).await;
        let error = table.refused(&format!("INSERT INTO t VALUES {bad}")).await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
        assert!(error.to_string().contains("CHECK constraint c"), "{error}");
        table.run(&format!("INSERT INTO t VALUES {good}")).await;
        table.run("UPDATE t SET id = id + 1").await;
        // deltalake takes what we wrote for right: the same constraint once more is no error.
        add_constraint(&table, "c", text).await;
    }
}

#[tokio::test]
async fn rows_that_deltalake_refuses_are_refused_here() {
    for (rule, text) in [
        ("check", "x > 0"),
        ("invariant", "x > 0"),
        ("generated", "id + 1"),
    ] {
        let table = Table::create("id BIGINT, x BIGINT", "", &["VALUES (1, 2)"]).await;
        match rule {
            "check" => add_constraint(&table, "c", text).await,
            "invariant" => add_invariant(&table, &["x"], text).await,
            _ => generate(&table, "x", text).await,
        }
        for (value, both_take) in [("2", true), ("-1", false)] {
            let row = format!("1 AS id, {value} AS x");
            let rows = SessionContext::new()
                .sql(&format!(
                    "SELECT CAST(1 AS BIGINT) AS id, CAST({value} AS BIGINT) AS x"
                ))
                .await
                .expect("plan")
                .collect()
                .await
                .expect("rows");
            let theirs = table
                .copy()
                .await
                .deltalake()
                .await
                .write(rows)
                .with_save_mode(SaveMode::Append)
                .await;
            assert_eq!(theirs.is_ok(), both_take, "{rule} {row}: {theirs:?}");
            let updated = table
                .copy()
                .await
                .deltalake()
                .await
                .update()
                .with_predicate(col("id").eq(lit(1_i64)))
                .with_update("x", value)
                .await;
            assert_eq!(updated.is_ok(), both_take, "{rule} {row}: {updated:?}");
            for text in [
                format!("INSERT INTO t SELECT {row}"),
                format!("UPDATE t SET x = {value} WHERE id = 1"),
            ] {
                let ours = table.copy().await;
                if both_take {
                    ours.run(&text).await;
                    let query = "SELECT * FROM t ORDER BY id, x";
                    let expected = ours.rows(query).await;
                    let session = ours.deltalake_session().await;
                    let rows = session.sql(query).await.expect("plan").collect().await;
                    assert_eq!(text_rows(&rows.expect("rows")), expected, "{text}");
                } else {
                    ours.refused(&text).await;
                }
            }
        }
    }
}
