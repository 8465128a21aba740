//! What is not supported is refused by name and leaves the table as it was.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::collect;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::SessionContext;
use delta_disjoint::ErrorKind;
use delta_disjoint::read::provider::DisjointTableProvider;

use crate::support::{Table, kind_of, open, text_rows, try_run};

/// `t` and a second Delta table `s`.
async fn two_tables() -> (Table, Table) {
    let table = Table::numbers(2, 5, "").await;
    let other = Table::numbers(1, 5, "").await;
    open(&table.ctx, "s", &other.path()).await;
    (table, other)
}

#[tokio::test]
async fn statements_that_are_not_supported_are_refused_by_name() {
    // (statement, what the message says)
    let ours = [
        ("DELETE FROM t LIMIT 1", "LIMIT"),
        ("DELETE FROM t WHERE id > 2 LIMIT 1", "LIMIT"),
        ("DELETE FROM t AS a WHERE a.id = 1", "alias a"),
        ("DELETE FROM t PARTITION (p0)", "PARTITION"),
        ("DELETE FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("UPDATE t TABLESAMPLE (10 PERCENT) SET x = 1", "TABLESAMPLE"),
        (
            "INSERT INTO t SELECT * FROM s TABLESAMPLE (10 ROWS)",
            "TABLESAMPLE",
        ),
        ("UPDATE t JOIN s ON t.id = s.id SET x = s.x", "join"),
        ("UPDATE t CROSS JOIN s SET x = 1", "join"),
        ("UPDATE t LEFT JOIN s ON t.id = s.id SET x = s.x", "join"),
        (
            "UPDATE t SET x = CASE WHEN id IN (SELECT id FROM s) THEN 1 ELSE 0 END",
            "in SET",
        ),
        (
            "UPDATE t SET x = CAST(EXISTS (SELECT 1 FROM s WHERE s.id = t.id) AS BIGINT) \
             WHERE id > 2",
            "in SET",
        ),
        (
            "UPDATE t SET x = CAST(id > ALL (SELECT id FROM s) AS BIGINT)",
            "in SET",
        ),
        ("UPDATE t SET t.x = 1", "t.x"),
        ("UPDATE t SET s.x = 1", "s.x"),
        ("UPDATE t SET x = 1, x = 2", "x twice"),
        ("UPDATE t SET x = 1, X = 2", "twice"),
        ("UPDATE t SET x = 1, \"x\" = 2", "twice"),
        ("EXPLAIN UPDATE t SET t.x = 1", "t.x"),
        ("EXPLAIN ANALYZE UPDATE t SET x = 1, x = 2", "x twice"),
        ("EXPLAIN VERBOSE UPDATE t SET s.x = 1", "s.x"),
        ("PREPARE p AS UPDATE t SET s.x = 1", "s.x"),
        ("PREPARE p AS UPDATE t SET x = 1, x = 2", "x twice"),
        ("PREPARE p AS DELETE FROM t PARTITION (p0)", "PARTITION"),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET other.t.x = 1",
            "other.t.x",
        ),
        (
            "EXPLAIN MERGE INTO t AS a USING s ON a.id = s.id \
             WHEN NOT MATCHED THEN INSERT (public.a.id) VALUES (1)",
            "public.a.id",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (t.id, 1)",
            "WHEN NOT MATCHED uses t.id",
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND s.x = 1 THEN DELETE",
            "WHEN NOT MATCHED BY SOURCE uses s.x",
        ),
        (
            "MERGE INTO t USING public.t ON true WHEN MATCHED THEN DELETE",
            "give the source an alias",
        ),
        (
            "MERGE INTO t USING (SELECT id AS __delta_disjoint_action FROM s) AS s \
             ON true WHEN MATCHED THEN DELETE",
            "__delta_disjoint_action",
        ),
        (
            "MERGE INTO t USING s TABLESAMPLE (10 ROWS) ON t.id = s.id WHEN MATCHED THEN DELETE",
            "TABLESAMPLE",
        ),
        ("REPLACE INTO t VALUES (1, 1)", "REPLACE INTO"),
        ("INSERT OR REPLACE INTO t VALUES (1, 1)", "REPLACE INTO"),
        ("COMMIT", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("SAVEPOINT a", "SAVEPOINT"),
        ("RELEASE SAVEPOINT a", "RELEASE"),
        ("END", "END"),
    ];
    let (table, _other) = two_tables().await;
    for (statement, names) in ours {
        let error = table.refused(statement).await;
        assert!(
            matches!(
                kind_of(&error),
                Some(ErrorKind::Unsupported | ErrorKind::Invalid)
            ),
            "{statement}: {error}"
        );
        assert!(error.to_string().contains(names), "{statement}: {error}");
    }
}

#[tokio::test]
async fn time_travel_is_refused_instead_of_dropped() {
    let (table, _other) = two_tables().await;
    table
        .run("SET datafusion.sql_parser.dialect = 'databricks'")
        .await;
    for statement in [
        "SELECT * FROM t VERSION AS OF 1",
        "SELECT * FROM (SELECT id FROM t TIMESTAMP AS OF '2020-01-01')",
        "INSERT INTO t SELECT * FROM s WHERE id IN (SELECT id FROM t VERSION AS OF 1)",
        "CREATE VIEW v AS SELECT * FROM t VERSION AS OF 1",
        "PREPARE p AS SELECT * FROM t VERSION AS OF 1",
        "COPY (SELECT * FROM t VERSION AS OF 1) TO '/tmp/never.parquet'",
    ] {
        let error = table.refused(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Unsupported),
            "{statement}: {error}"
        );
        assert!(
            error.to_string().contains("time travel"),
            "{statement}: {error}"
        );
    }
}

#[tokio::test]
async fn explain_of_a_refused_statement_shows_why() {
    let (table, _other) = two_tables().await;
    for (statement, names) in [
        ("DELETE FROM t LIMIT 1", "DELETE with LIMIT"),
        ("UPDATE t JOIN s ON t.id = s.id SET x = s.x", "join"),
        ("REPLACE INTO t VALUES (1, 1)", "REPLACE INTO"),
    ] {
        for form in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE"] {
            let text = match try_run(&table.ctx, &format!("{form} {statement}")).await {
                Ok(batches) => text_rows(&batches).join("\n"),
                Err(error) => error.to_string(),
            };
            assert!(text.contains(names), "{form} {statement}: {text}");
        }
        assert_eq!(table.log().0, 2, "{statement}");
    }
}

#[tokio::test]
async fn statements_that_datafusion_refuses_leave_the_table_as_it_was() {
    let (table, _other) = two_tables().await;
    for (statement, names) in [
        ("UPDATE t SET x = s.x FROM s WHERE t.id = s.id", "FROM"),
        ("DELETE FROM t USING s WHERE t.id = s.id", "Using"),
        ("DELETE FROM t, s", "single table"),
        ("DELETE FROM t JOIN s ON t.id = s.id", "joins"),
        ("DELETE FROM t ORDER BY id LIMIT 1", "order"),
        ("DELETE FROM t RETURNING id", "returning"),
        ("UPDATE t SET x = 1 RETURNING id", "returning"),
        ("UPDATE t SET x = 1 LIMIT 1", "limit"),
        (
            "INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING",
            "Insert-on",
        ),
        ("INSERT INTO t VALUES (1, 1) RETURNING id", "returning"),
        ("UPDATE t SET nothing = 1", "nothing"),
        ("DELETE FROM t WHERE nothing = 1", "nothing"),
        ("UPDATE t SET (id, x) = (1, 2)", "Tuples"),
        ("TRUNCATE TABLE t, s", "multiple"),
        ("DELETE FROM t; DELETE FROM t", "single SQL statement"),
    ] {
        let error = table.refused(statement).await;
        let root = error.find_root().to_string();
        assert!(root.contains(names), "{statement}: {root}");
        assert!(
            !matches!(error.find_root(), DataFusionError::Internal(_)),
            "{statement}: {root}"
        );
    }
}

#[tokio::test]
async fn hooks_of_the_provider_refuse_and_say_how_to_register() {
    let table = Table::numbers(1, 3, "").await;
    let provider = table.ctx.table_provider("t").await.expect("provider");
    let plain = SessionContext::new();
    plain
        .register_table("t", Arc::clone(&provider))
        .expect("registered");
    for statement in [
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET x = 1",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT OVERWRITE t VALUES (1, 1)",
        "TRUNCATE TABLE t",
        "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "EXPLAIN DELETE FROM t",
    ] {
        let before = table.log();
        let result = match plain.sql(statement).await {
            Ok(frame) => frame.collect().await,
            Err(error) => Err(error),
        };
        // EXPLAIN shows the error instead of failing.
        let text = match result {
            Err(error) => error.to_string(),
            Ok(batches) => text_rows(&batches).join("\n"),
        };
        if !statement.starts_with("MERGE") {
            assert!(
                text.contains("delta_disjoint::register()"),
                "{statement}: {text}"
            );
        }
        assert_eq!(table.log(), before, "{statement}");
    }

    let delta = provider
        .downcast_ref::<DisjointTableProvider>()
        .expect("ours");
    let state = plain.state();
    let input = Arc::new(EmptyExec::new(TableProvider::schema(delta)));
    let merge_schema = Arc::new(datafusion::common::DFSchema::empty());
    for result in [
        delta
            .insert_into(&state, Arc::clone(&input) as _, InsertOp::Append)
            .await,
        delta.delete_from(&state, vec![]).await,
        delta.update(&state, vec![], vec![]).await,
        delta.truncate(&state).await,
        delta
            .merge_into(
                &state,
                input,
                merge_schema,
                datafusion::prelude::lit(true),
                vec![],
            )
            .await,
    ] {
        let error = result.expect_err("refused");
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported));
        assert!(
            error.to_string().contains("delta_disjoint::register()"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn rule_without_planner_and_planner_without_rule_change_nothing() {
    use delta_disjoint::plan::planner::DeltaQueryPlanner;
    use delta_disjoint::plan::rule::DeltaDmlRule;

    let table = Table::numbers(1, 3, "").await;
    let provider = table.ctx.table_provider("t").await.expect("provider");
    let builder = || SessionStateBuilder::new().with_default_features();
    for state in [
        builder()
            .with_analyzer_rule(Arc::new(DeltaDmlRule::default()))
            .build(),
        builder()
            .with_query_planner(Arc::new(DeltaQueryPlanner::default()))
            .build(),
    ] {
        let ctx = SessionContext::new_with_state(state);
        ctx.register_table("t", Arc::clone(&provider))
            .expect("registered");
        for statement in [
            "DELETE FROM t",
            "UPDATE t SET x = 1",
            "INSERT INTO t VALUES (1, 1)",
            "INSERT OVERWRITE t VALUES (1, 1)",
            "TRUNCATE TABLE t",
        ] {
            let before = table.log();
            let result = ctx.sql(statement).await.expect("planned").collect().await;
            assert!(result.is_err(), "{statement}");
            assert_eq!(table.log(), before, "{statement}");
        }
    }
}

#[tokio::test]
async fn append_only_table_takes_new_rows_and_nothing_else() {
    let table = Table::numbers(1, 3, "OPTIONS ('delta.appendOnly' 'true')").await;
    for statement in [
        "UPDATE t SET x = 1",
        "UPDATE t SET x = 1 WHERE id = 100",
        "DELETE FROM t",
        "DELETE FROM t WHERE id = 1",
        "TRUNCATE TABLE t",
        "INSERT OVERWRITE t VALUES (1, 1)",
    ] {
        let error = table.refused(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Unsupported),
            "{statement}: {error}"
        );
        assert!(error.to_string().contains("append"), "{statement}: {error}");
    }
    assert_eq!(table.count("INSERT INTO t VALUES (9, 9)").await, 1);
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["4"]);
}

#[tokio::test]
async fn plan_executed_twice_is_refused_the_second_time() {
    let table = Table::numbers(1, 3, "").await;
    let frame = delta_disjoint::sql(&table.ctx, "INSERT INTO t VALUES (9, 9)")
        .await
        .expect("planned");
    let context = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.expect("physical");
    collect(Arc::clone(&plan), Arc::clone(&context))
        .await
        .expect("once");
    let before = (table.log(), table.data_files_on_disk());
    let error = collect(plan, context).await.expect_err("twice");
    assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
    assert!(error.to_string().contains("has run already"), "{error}");
    assert_eq!((table.log(), table.data_files_on_disk()), before);
}

#[tokio::test]
async fn prepared_statements_that_are_not_supported_are_refused_when_executed() {
    let (table, _other) = two_tables().await;
    for (number, (statement, names)) in [
        ("DELETE FROM t LIMIT 1", "LIMIT"),
        ("DELETE FROM t WHERE id > 2 LIMIT 1", "LIMIT"),
        ("UPDATE t JOIN s ON t.id = s.id SET x = 1", "join"),
        (
            "UPDATE t LEFT JOIN s ON t.id = s.id SET x = 1 WHERE s.id = 1",
            "join",
        ),
        ("UPDATE t CROSS JOIN s SET x = s.id", "join"),
        ("REPLACE INTO t VALUES (1, 1)", "REPLACE INTO"),
    ]
    .iter()
    .enumerate()
    {
        table
            .run(&format!("PREPARE p{number} AS {statement}"))
            .await;
        let error = table.refused(&format!("EXECUTE p{number}")).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Unsupported),
            "{statement}: {error}"
        );
        assert!(error.to_string().contains(names), "{statement}: {error}");
    }
}

#[tokio::test]
async fn views_and_tables_in_memory_are_not_changed_as_if_they_were_the_table() {
    let table = Table::numbers(1, 3, "").await;
    table
        .run("CREATE VIEW v AS SELECT * FROM t WHERE id = 1")
        .await;
    for statement in [
        "DELETE FROM v",
        "UPDATE v SET x = 1",
        "INSERT INTO v VALUES (1, 1)",
        "TRUNCATE TABLE v",
    ] {
        table.refused(statement).await;
    }
}

#[tokio::test]
async fn column_that_bears_the_name_of_a_position_is_refused() {
    let table = Table::create(
        "id BIGINT, __delta_disjoint_row BIGINT",
        "",
        &["VALUES (1, 2)"],
    )
    .await;
    for statement in ["DELETE FROM t WHERE id = 1", "UPDATE t SET id = 2"] {
        let error = table.refused(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Unsupported),
            "{statement}: {error}"
        );
        assert!(
            error.to_string().contains("__delta_disjoint_row"),
            "{error}"
        );
    }
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|2"]);
}

#[tokio::test]
async fn one_row_changed_twice_is_refused() {
    // SQL has no way to say it: a semi join that repeats rows stands for a plan that would.
    let (table, _other) = two_tables().await;
    table.run("INSERT INTO s VALUES (1, 100), (1, 200)").await;
    for statement in [
        "UPDATE t SET x = (SELECT s.x FROM s WHERE s.id = 1)",
        "DELETE FROM t WHERE x = (SELECT s.x FROM s WHERE s.id = 1)",
    ] {
        let error = table.refused(statement).await.to_string();
        assert!(error.contains("more than one row"), "{statement}: {error}");
    }
    // Repeated matches of a subquery in WHERE are one change of the row.
    assert_eq!(
        table
            .count("UPDATE t SET x = 5 WHERE id IN (SELECT id FROM s)")
            .await,
        5
    );
    assert_eq!(
        table
            .count("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.id = 1)")
            .await,
        1
    );
}
