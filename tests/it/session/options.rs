//! `SET`, `SHOW` and `RESET` of this crate's options, and DataFusion's options that change types,
//! partitions and batches.

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use datafusion::prelude::SessionContext;
use delta_disjoint::config::DeltaOptions;
use delta_disjoint::{ErrorKind, register};

use crate::support::{Table, kind_of, rows, run, try_run};

fn with_information_schema() -> SessionContext {
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_information_schema(true));
    SessionContext::new_with_state(register(builder).build())
}

#[tokio::test]
async fn options_are_set_shown_and_reset() {
    let ctx = with_information_schema();
    for (option, default, value) in [
        ("delta.conflict_data_skipping", "true", "false"),
        ("delta.max_commit_attempts", "20", "3"),
        ("delta.winner_read_concurrency", "8", "2"),
        ("delta.statement_reruns", "0", "3"),
    ] {
        let show = format!("SHOW {option}");
        assert_eq!(rows(&ctx, &show).await, [format!("{option}|{default}")]);
        run(&ctx, &format!("SET {option} = {value}")).await;
        assert_eq!(rows(&ctx, &show).await, [format!("{option}|{value}")]);
        run(&ctx, &format!("RESET {option}")).await;
        assert_eq!(rows(&ctx, &show).await, [format!("{option}|{default}")]);
    }
    // DataFusion's own options still reset.
    run(&ctx, "SET datafusion.execution.batch_size = 7").await;
    run(&ctx, "RESET datafusion.execution.batch_size").await;
    assert_eq!(ctx.copied_config().batch_size(), 8192);
}

#[tokio::test]
async fn bad_values_and_names_are_refused_and_change_nothing() {
    let ctx = with_information_schema();
    for (statement, expected) in [
        ("SET delta.max_commit_attempts = 0", "at least 1"),
        ("SET delta.max_commit_attempts = many", "whole number"),
        ("SET delta.winner_read_concurrency = -1", "whole number"),
        ("SET delta.statement_reruns = some", "from 0 on"),
        ("SET delta.conflict_data_skipping = maybe", "true or false"),
        ("SET delta.nonsense = 1", "delta.max_commit_attempts"),
        ("RESET delta.nonsense", "delta.max_commit_attempts"),
    ] {
        let error = try_run(&ctx, statement).await.expect_err(statement);
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let state = ctx.state();
    assert_eq!(
        DeltaOptions::from_config(state.config_options()),
        DeltaOptions::default()
    );
}

#[tokio::test]
async fn statements_work_whatever_the_session_options() {
    for options in [
        &["datafusion.sql_parser.map_string_types_to_utf8view = false"][..],
        &["datafusion.sql_parser.map_string_types_to_utf8view = true"],
        &["datafusion.execution.target_partitions = 1"],
        &["datafusion.execution.batch_size = 2"],
        &[
            "datafusion.execution.target_partitions = 7",
            "datafusion.execution.batch_size = 1",
            "datafusion.execution.parquet.pushdown_filters = true",
            "datafusion.optimizer.repartition_file_min_size = 0",
        ],
        &["datafusion.execution.parquet.schema_force_view_types = false"],
        &["datafusion.optimizer.enable_dynamic_filter_pushdown = false"],
        &["datafusion.execution.collect_statistics = false"],
        &["datafusion.execution.time_zone = '+02:00'"],
    ] {
        let table = Table::create("id INT", "", &[]).await;
        let ctx = &table.ctx;
        for option in options {
            run(ctx, &format!("SET {option}")).await;
        }
        let folder = tempfile::tempdir().expect("folder");
        run(
            ctx,
            &format!(
                "CREATE EXTERNAL TABLE u (id BIGINT, s VARCHAR, ts TIMESTAMP, p TEXT) STORED AS DELTA \
                 PARTITIONED BY (p) LOCATION '{}'",
                folder.path().display()
            ),
        )
        .await;
        run(
            ctx,
            "INSERT INTO u SELECT value, 's' || value, TIMESTAMP '2024-01-01 12:00:00', \
             CASE WHEN value % 2 = 0 THEN 'even' ELSE 'odd' END FROM generate_series(0, 9)",
        )
        .await;
        run(
            ctx,
            "UPDATE u SET s = s || '!' WHERE s IN ('s1', 's2') OR id = 9",
        )
        .await;
        run(
            ctx,
            "UPDATE u SET p = 'moved' WHERE p = 'odd' AND s LIKE '%!'",
        )
        .await;
        run(
            ctx,
            "DELETE FROM u WHERE s = 's4' OR id IN (SELECT id FROM u WHERE s = 's5')",
        )
        .await;
        run(
            ctx,
            "INSERT INTO u SELECT id + 100, s, ts, p FROM u WHERE p = 'even'",
        )
        .await;
        assert_eq!(
            rows(ctx, "SELECT id, s, p FROM u ORDER BY id").await,
            [
                "0|s0|even",
                "1|s1!|moved",
                "2|s2!|even",
                "3|s3|odd",
                "6|s6|even",
                "7|s7|odd",
                "8|s8|even",
                "9|s9!|moved",
                "100|s0|even",
                "102|s2!|even",
                "106|s6|even",
                "108|s8|even"
            ],
            "{options:?}"
        );
        assert_eq!(
            rows(
                ctx,
                "SELECT DISTINCT ts, arrow_typeof(ts), arrow_typeof(id) FROM u"
            )
            .await,
            ["2024-01-01T12:00:00|Timestamp(µs)|Int64"],
            "{options:?}"
        );
    }
}
