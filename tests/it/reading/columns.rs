//! Columns that came later, and versions that other processes committed.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use delta_disjoint::{ErrorKind, sql};
use deltalake::kernel::{DataType, PrimitiveType, StructField};
use deltalake::operations::write::SchemaMode;

use super::{PUSHDOWN, push_filters};
use crate::support::{Table, kind_of, plan, rows, run};

async fn add_column(table: &Table, name: &str) {
    table
        .deltalake()
        .await
        .add_columns()
        .with_fields([StructField::new(
            name,
            DataType::Primitive(PrimitiveType::Long),
            true,
        )])
        .await
        .expect("deltalake adds a column");
}

#[tokio::test]
async fn a_column_added_later_is_null_in_old_files() {
    let table = Table::numbers(2, 3, "").await;
    let merged: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from(vec![100, 101]))),
        ("x", Arc::new(Int64Array::from(vec![1, 2]))),
        ("late", Arc::new(StringArray::from(vec![Some("new"), None]))),
    ];
    table
        .deltalake()
        .await
        .write([RecordBatch::try_from_iter(merged).expect("batch")])
        .with_schema_mode(SchemaMode::Merge)
        .await
        .expect("deltalake writes");
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        for (query, expected) in [
            ("SELECT count(*), count(late) FROM t", vec!["8|1"]),
            (
                "SELECT id FROM t WHERE late IS NULL ORDER BY id",
                vec!["0", "1", "2", "3", "4", "5", "101"],
            ),
            (
                "SELECT id, late FROM t WHERE late IS NOT NULL",
                vec!["100|new"],
            ),
            ("SELECT id FROM t WHERE late = 'new'", vec!["100"]),
            ("SELECT id FROM t WHERE late <> 'old'", vec!["100"]),
            (
                "SELECT id FROM t WHERE id > 4 AND late IS DISTINCT FROM 'new' ORDER BY id",
                vec!["5", "101"],
            ),
            (
                "SELECT id FROM t ORDER BY late NULLS LAST, id DESC LIMIT 2",
                vec!["100", "101"],
            ),
            ("SELECT late FROM t WHERE id = 3", vec!["NULL"]),
        ] {
            assert_eq!(table.rows(query).await, expected, "{query}");
        }
    }
    // A rewrite of an old file writes the new column too.
    assert_eq!(table.count("UPDATE t SET x = -1 WHERE id = 1").await, 1);
    assert_eq!(
        table.count("UPDATE t SET late = 'set' WHERE id = 4").await,
        1
    );
    assert_eq!(
        table
            .count("DELETE FROM t WHERE late IS NULL AND id >= 100")
            .await,
        1
    );
    assert_eq!(
        table.rows("SELECT id, x, late FROM t ORDER BY id").await,
        [
            "0|0|NULL",
            "1|-1|NULL",
            "2|2|NULL",
            "3|3|NULL",
            "4|4|set",
            "5|5|NULL",
            "100|1|new"
        ]
    );
}

#[tokio::test]
async fn the_next_statement_sees_what_another_process_committed() {
    let table = Table::numbers(1, 3, "").await;
    let other = table.other_session().await;
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
    run(&other, "INSERT INTO t VALUES (10, 10)").await;
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["4"]);
    let batch: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from(vec![20]))),
        ("x", Arc::new(Int64Array::from(vec![20]))),
    ];
    table
        .deltalake()
        .await
        .write([RecordBatch::try_from_iter(batch).expect("batch")])
        .await
        .expect("deltalake writes");
    for ctx in [&table.ctx, &other] {
        assert_eq!(rows(ctx, "SELECT count(*) FROM t").await, ["5"]);
        // DataFusion's own entry point and a view too.
        let frame = ctx.sql("SELECT count(*) FROM t").await.expect("plan");
        assert_eq!(frame.count().await.expect("runs"), 1);
        run(
            ctx,
            "CREATE OR REPLACE VIEW v AS SELECT * FROM t WHERE id >= 10",
        )
        .await;
        assert_eq!(rows(ctx, "SELECT count(*) FROM v").await, ["2"]);
    }
    run(&other, "DELETE FROM t WHERE id = 10").await;
    assert_eq!(table.rows("SELECT id FROM v").await, ["20"]);
}

#[tokio::test]
async fn old_frames_and_prepared_statements_read_the_newest_version() {
    let table = Table::numbers(1, 3, "").await;
    let other = table.other_session().await;
    let frame = sql(&table.ctx, "SELECT id FROM t").await.expect("plan");
    table.run("PREPARE q AS SELECT count(*) FROM t").await;
    assert_eq!(frame.clone().count().await.expect("runs"), 3);
    run(&other, "INSERT INTO t VALUES (10, 10)").await;
    assert_eq!(frame.count().await.expect("runs"), 4);
    assert_eq!(table.rows("EXECUTE q").await, ["4"]);
}

#[tokio::test]
async fn a_running_statement_keeps_its_version() {
    let table = Table::numbers(2, 3, "").await;
    let other = table.other_session().await;
    let reader = plan(&other, "SELECT count(*), sum(x) FROM t").await;
    table.run("UPDATE t SET x = 1000 WHERE id = 1").await;
    let batches = reader.run().await.expect("runs");
    assert_eq!(crate::support::text_rows(&batches), ["6|15"]);
}

#[tokio::test]
async fn the_next_statement_sees_a_column_that_another_process_added() {
    let table = Table::numbers(1, 2, "").await;
    assert_eq!(table.rows("SELECT * FROM t WHERE id = 0").await, ["0|0"]);
    add_column(&table, "late").await;
    assert_eq!(
        table.rows("SELECT * FROM t WHERE id = 0").await,
        ["0|0|NULL"]
    );
    table.run("INSERT INTO t VALUES (5, 5, 5)").await;
    assert_eq!(table.rows("SELECT late FROM t WHERE id = 5").await, ["5"]);
    add_column(&table, "later").await;
    table
        .run("UPDATE t SET later = late + 1 WHERE id = 5")
        .await;
    assert_eq!(table.rows("SELECT later FROM t WHERE id = 5").await, ["6"]);
}

#[tokio::test]
async fn a_statement_planned_with_old_columns_is_retryable_and_then_works() {
    for text in [
        "SELECT * FROM t",
        "INSERT INTO t VALUES (7, 7)",
        "UPDATE t SET x = 9 WHERE id = 0",
    ] {
        let table = Table::numbers(1, 2, "").await;
        let frame = sql(&table.ctx, text).await.expect("plan");
        add_column(&table, "late").await;
        let error = frame.collect().await.expect_err("the columns changed");
        assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
        let again = text.replace("(7, 7)", "(7, 7, 7)");
        table.run(&again).await;
    }
}

#[tokio::test]
async fn plain_ctx_sql_meets_new_columns_at_the_second_try() {
    let table = Table::numbers(1, 2, "").await;
    add_column(&table, "late").await;
    let frame = table.ctx.sql("SELECT * FROM t").await.expect("plan");
    let error = frame.collect().await.expect_err("the columns changed");
    assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
    let frame = table.ctx.sql("SELECT * FROM t").await.expect("plan");
    assert_eq!(frame.schema().fields().len(), 3);
    assert_eq!(frame.count().await.expect("runs"), 2);
}

#[tokio::test]
async fn required_fields_inside_a_column_are_read_from_files_with_optional_ones() {
    let columns = "id BIGINT, st STRUCT<a BIGINT, b STRUCT<c BIGINT>>, l BIGINT[]";
    let row = |id: i64| {
        format!(
            "VALUES ({id}, named_struct('a', {id}, 'b', named_struct('c', {id})), make_array({id}))"
        )
    };
    for pushdown in PUSHDOWN {
        let table = Table::create(columns, "", &[&row(1), &row(2)]).await;
        // Every field inside is required from the start, as far as the log goes.
        table.change_log_entry(0, |action| {
            if let Some(text) = action.pointer_mut("/metaData/schemaString") {
                let schema = text.as_str().expect("text").to_owned();
                let (first, inside) = schema.split_at(schema.find("fields").expect("fields") + 6);
                let inside = inside
                    .replace("\"containsNull\":true", "\"containsNull\":false")
                    .replace(
                        "\"name\":\"a\",\"nullable\":true",
                        "\"name\":\"a\",\"nullable\":false",
                    )
                    .replace(
                        "\"name\":\"c\",\"nullable\":true",
                        "\"name\":\"c\",\"nullable\":false",
                    );
                let required = format!("{first}{inside}");
                assert_ne!(required, schema);
                *text = required.into();
            }
        });
        let ctx = table.other_session().await;
        push_filters(&ctx, pushdown).await;
        for (query, expected) in [
            (
                "SELECT * FROM t ORDER BY id",
                vec!["1|{a: 1, b: {c: 1}}|[1]", "2|{a: 2, b: {c: 2}}|[2]"],
            ),
            ("SELECT id FROM t WHERE st['a'] = 2", vec!["2"]),
            ("SELECT st['b']['c'], l[1] FROM t WHERE id = 1", vec!["1|1"]),
            ("SELECT count(*) FROM t", vec!["2"]),
        ] {
            assert_eq!(rows(&ctx, query).await, expected, "{query}");
        }
        run(
            &ctx,
            "INSERT INTO t SELECT id + 10, st, l FROM t WHERE id = 1",
        )
        .await;
        run(&ctx, "UPDATE t SET id = 20 WHERE st['a'] = 2").await;
        run(&ctx, "DELETE FROM t WHERE l[1] = 1 AND id < 10").await;
        assert_eq!(
            rows(&ctx, "SELECT id, st FROM t ORDER BY id").await,
            ["11|{a: 1, b: {c: 1}}", "20|{a: 2, b: {c: 2}}"]
        );
    }
}

#[tokio::test]
async fn a_table_that_was_dropped_and_made_anew_is_the_new_one() {
    let table = Table::create("id BIGINT, x BIGINT", "", &["VALUES (1, 10)"]).await;
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|10"]);
    let location = table.path();
    std::fs::remove_dir_all(&location).expect("dropped");
    // Another process, up to the same version.
    let other = delta_disjoint::session();
    for statement in [
        format!(
            "CREATE EXTERNAL TABLE t (id BIGINT, name VARCHAR) STORED AS DELTA LOCATION '{location}'"
        ),
        "INSERT INTO t VALUES (7, 'new')".to_owned(),
    ] {
        run(&other, &statement).await;
    }
    assert_eq!(table.rows("SELECT * FROM t").await, ["7|new"]);
    assert_eq!(table.count("INSERT INTO t VALUES (8, 'too')").await, 1);
    assert_eq!(
        rows(&other, "SELECT * FROM t ORDER BY id").await,
        ["7|new", "8|too"]
    );
}
