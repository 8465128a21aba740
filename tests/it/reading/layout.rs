//! However files are laid out and scans are split, the rows are the same.

use std::sync::Arc;

use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use delta_disjoint::read::scan::DeltaScanExec;
use delta_disjoint::sql;

use super::{PUSHDOWN, push_filters, same_as_memory, sorted};
use crate::support::{Table, open, rows};

const QUERIES: &[&str] = &[
    "SELECT * FROM {t}",
    "SELECT x FROM {t}",
    "SELECT x AS a, id, x AS b FROM {t}",
    "SELECT id + x AS s FROM {t} WHERE s_text LIKE 'row 1%'",
    "SELECT count(*) FROM {t}",
    "SELECT count(*), min(id), max(id), min(s_text), max(x), sum(x) FROM {t}",
    "SELECT count(*) FROM {t} WHERE id BETWEEN 37 AND 141",
    "SELECT * FROM {t} WHERE id = 77",
    "SELECT * FROM {t} WHERE id = -1",
    "SELECT * FROM {t} WHERE false",
    "SELECT id FROM {t} WHERE x IS NULL",
    "SELECT id FROM {t} WHERE x IN (3, 150, 199)",
    "SELECT id FROM {t} ORDER BY id LIMIT 3",
    "SELECT id FROM {t} ORDER BY x DESC NULLS LAST, id LIMIT 5",
    "SELECT id FROM {t} ORDER BY s_text DESC, id LIMIT 4 OFFSET 2",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 7)",
    "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.x WHERE b.id < 20",
    "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.x + 100 WHERE a.id < 120",
    "SELECT id FROM {t} WHERE id IN (SELECT x FROM {t} WHERE x > 180)",
    "SELECT id FROM {t} WHERE id NOT IN (SELECT x FROM {t} WHERE x IS NOT NULL)",
    "SELECT id FROM {t} WHERE x = (SELECT max(x) FROM {t})",
    "SELECT id FROM {t} o WHERE EXISTS (SELECT 1 FROM {t} i WHERE i.x = o.id + 1 AND i.id > 150)",
    "SELECT id / 40 AS g, count(*), min(x) FROM {t} GROUP BY id / 40 HAVING count(*) > 10",
    "SELECT id, row_number() OVER (PARTITION BY id % 3 ORDER BY id) FROM {t} WHERE id > 150",
    "SELECT id FROM {t} WHERE id < 3 UNION ALL SELECT id FROM {t} WHERE id > 197",
    "SELECT DISTINCT x % 4 FROM {t}",
];

const ROWS: &str = "SELECT value AS id, CASE WHEN value % 7 = 0 THEN NULL ELSE value END AS x, \
                    'row ' || value AS s_text FROM generate_series(0, 199)";

/// `t` in `files` files, and its twin `m`.
async fn table(files: i64) -> Table {
    let table = Table::create("id BIGINT, x BIGINT, s_text VARCHAR", "", &[]).await;
    table.run(&format!("CREATE TABLE m AS {ROWS}")).await;
    for file in 0..files {
        table
            .run(&format!(
                "INSERT INTO t SELECT * FROM m WHERE id * {files} / 200 = {file}"
            ))
            .await;
    }
    assert_eq!(
        table.files().await.len(),
        usize::try_from(files).expect("small")
    );
    table
}

async fn compare(ctx: &SessionContext, situation: &str) {
    for query in QUERIES {
        same_as_memory(ctx, query, situation).await;
    }
}

#[tokio::test]
async fn queries_over_several_files_give_the_rows_of_a_memory_table() {
    let table = table(5).await;
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        compare(&table.ctx, &format!("pushdown {pushdown}")).await;
    }
}

#[tokio::test]
async fn queries_without_parquet_pruning_give_the_same_rows() {
    let table = table(2).await;
    for option in ["pruning", "enable_page_index", "bloom_filter_on_read"] {
        table
            .run(&format!(
                "SET datafusion.execution.parquet.{option} = false"
            ))
            .await;
    }
    compare(&table.ctx, "no pruning").await;
}

#[tokio::test]
async fn queries_over_split_files_give_the_same_rows() {
    for (files, partitions, batch_size) in [(1, 8, 8192), (3, 16, 2), (2, 1, 8192)] {
        let table = table(files).await;
        for set in [
            format!("datafusion.execution.target_partitions = {partitions}"),
            format!("datafusion.execution.batch_size = {batch_size}"),
            "datafusion.optimizer.repartition_file_min_size = 0".to_owned(),
            "datafusion.optimizer.enable_round_robin_repartition = true".to_owned(),
        ] {
            table.run(&format!("SET {set}")).await;
        }
        if partitions > 1 {
            let scan = scan_of(&table.ctx, "SELECT sum(x) FROM t GROUP BY s_text").await;
            assert!(
                scan.properties().output_partitioning().partition_count()
                    > usize::try_from(files).expect("small"),
                "the files are split"
            );
        }
        compare(
            &table.ctx,
            &format!("{files} files, {partitions} partitions, batches of {batch_size}"),
        )
        .await;
    }
}

/// The scan operator in the plan of `query`.
async fn scan_of(ctx: &SessionContext, query: &str) -> Arc<dyn ExecutionPlan> {
    let frame = sql(ctx, query).await.expect("plan");
    let mut plan = frame.create_physical_plan().await.expect("physical plan");
    while plan.downcast_ref::<DeltaScanExec>().is_none() {
        let child = plan.children().first().map(|child| Arc::clone(child));
        plan = child.expect("a scan somewhere");
    }
    plan
}

#[tokio::test]
async fn nothing_gets_between_the_gate_and_the_parquet_source() {
    let table = table(2).await;
    push_filters(&table.ctx, true).await;
    for query in [
        "SELECT id FROM t ORDER BY id",
        "SELECT id FROM t WHERE x > 3 ORDER BY id",
        "SELECT id FROM t WHERE x > 3 ORDER BY id LIMIT 3",
        "SELECT x + 1 FROM t WHERE x > 3 LIMIT 3",
        "SELECT id FROM t WHERE x > 500 ORDER BY id",
        "SELECT sum(x) FROM t WHERE id > 3 GROUP BY s_text",
    ] {
        let scan = scan_of(&table.ctx, query).await;
        assert!(scan.children()[0].is::<DataSourceExec>(), "{query}");
    }
}

#[tokio::test]
async fn row_groups_and_pages_are_pruned_without_losing_rows() {
    // One file of many row groups and pages, written by DataFusion and put into the log by hand.
    let table = Table::create("id BIGINT, x BIGINT, s_text VARCHAR", "", &[]).await;
    table.run(&format!("CREATE TABLE m AS {ROWS}")).await;
    table
        .run(&format!(
            "COPY (SELECT * FROM m ORDER BY id) TO '{}/part-0.parquet' STORED AS PARQUET OPTIONS \
             ('format.max_row_group_size' '40', 'format.data_page_row_count_limit' '5', \
             'format.write_batch_size' '5')",
            table.path()
        ))
        .await;
    let size = std::fs::metadata(format!("{}/part-0.parquet", table.path()))
        .expect("file")
        .len();
    let add = serde_json::json!({"add": {
        "path": "part-0.parquet", "partitionValues": {}, "size": size,
        "modificationTime": 0, "dataChange": true,
    }});
    std::fs::write(
        format!("{}/_delta_log/{:020}.json", table.path(), 1),
        add.to_string(),
    )
    .expect("log entry");
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        compare(&table.ctx, &format!("row groups, pushdown {pushdown}")).await;
        // The second round reads the file in byte ranges.
        table
            .run("SET datafusion.optimizer.repartition_file_min_size = 0")
            .await;
    }
    let analyzed = table
        .rows("EXPLAIN ANALYZE SELECT x FROM t WHERE id = 77")
        .await
        .join("\n");
    assert!(
        analyzed.contains("row_groups_pruned_statistics=5 total → 1 matched"),
        "{analyzed}"
    );
}

#[tokio::test]
async fn an_empty_table_has_no_rows_and_its_columns() {
    let table = Table::create("id BIGINT, x BIGINT, s_text VARCHAR", "", &[]).await;
    table
        .run(&format!("CREATE TABLE m AS {ROWS} LIMIT 0"))
        .await;
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        compare(&table.ctx, "empty").await;
    }
    let frame = sql(&table.ctx, "SELECT * FROM t").await.expect("plan");
    let names: Vec<_> = frame.schema().fields().iter().map(|f| f.name()).collect();
    assert_eq!(names, ["id", "x", "s_text"]);
}

#[tokio::test]
async fn position_columns_are_never_shown() {
    let table = table(2).await;
    table.run("UPDATE t SET x = 0 WHERE id = 3").await;
    for query in ["SELECT * FROM t", "SELECT t.* FROM t JOIN m ON t.id = m.id"] {
        let frame = sql(&table.ctx, query).await.expect("plan");
        let names: Vec<_> = frame.schema().fields().iter().map(|f| f.name()).collect();
        assert_eq!(names, ["id", "x", "s_text"]);
    }
    for column in ["__delta_disjoint_file", "__delta_disjoint_row"] {
        let error = table.error(&format!("SELECT {column} FROM t")).await;
        assert!(error.to_string().contains("No field named"), "{error}");
    }
}

#[tokio::test]
async fn a_checkpoint_is_read_like_the_entries_it_replaces() {
    let table = table(3).await;
    table.run("DELETE FROM t WHERE id BETWEEN 60 AND 70").await;
    table.run("DELETE FROM m WHERE false").await;
    let expected = sorted(&table.ctx, "SELECT * FROM t").await;
    assert_eq!(expected.len(), 189);
    deltalake::checkpoints::create_checkpoint(&table.deltalake().await, None)
        .await
        .expect("checkpoint");
    for version in 0..=3 {
        std::fs::remove_file(format!("{}/_delta_log/{version:020}.json", table.path()))
            .expect("old entry");
    }
    let ctx = delta_disjoint::session();
    open(&ctx, "t", &table.path()).await;
    assert_eq!(sorted(&ctx, "SELECT * FROM t").await, expected);
    assert_eq!(
        rows(&ctx, "SELECT id FROM t WHERE id BETWEEN 58 AND 72")
            .await
            .len(),
        4
    );
}

#[tokio::test]
async fn casts_that_do_not_keep_the_order_lose_no_row() {
    let table = Table::create(
        "id BIGINT, ts TIMESTAMP, n BIGINT, s VARCHAR, dc DECIMAL(10, 2)",
        "",
        &[],
    )
    .await;
    // Each file spans midnight, zero or a change of width, so that the cast bounds do not enclose
    // the cast values.
    table
        .run(
            "CREATE TABLE m AS SELECT id, ts, n, s, CAST(dc AS DECIMAL(10, 2)) AS dc FROM (VALUES \
             (0, TIMESTAMP '2024-01-01 00:30:00', 0, '9', 1.25), \
             (1, TIMESTAMP '2024-01-01 23:30:00', -1, '10', -1.75), \
             (2, TIMESTAMP '2024-01-02 00:10:00', 1, 'x', 2.50), \
             (10, TIMESTAMP '2024-01-03 22:00:00', -3000000000, '100', 99.99), \
             (11, TIMESTAMP '2024-01-04 12:00:00', 5, '20', 1.00), \
             (12, TIMESTAMP '2024-01-05 01:00:00', 3000000000, '3', 0.01), \
             (20, TIMESTAMP '2024-01-06 01:00:00', -9223372036854775808, '3', 0.00)) \
             AS v(id, ts, n, s, dc)",
        )
        .await;
    for file in 0..3 {
        table
            .run(&format!(
                "INSERT INTO t SELECT * FROM m WHERE id / 10 = {file}"
            ))
            .await;
    }
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        for predicate in [
            "CAST(ts AS TIME) = '23:30:00'",
            "CAST(ts AS TIME) > '12:30:00'",
            "CAST(ts AS TIME) < '00:20:00'",
            "CAST(n AS BOOLEAN) = false",
            "NOT CAST(n AS BOOLEAN)",
            "CAST(n AS BOOLEAN)",
            "TRY_CAST(n AS INT) = 5",
            "TRY_CAST(n AS INT) IS NULL",
            "TRY_CAST(s AS INT) > 15",
            "CAST(n AS VARCHAR) < '3'",
            "CAST(dc AS INT) = 1",
            "CAST(dc AS BIGINT) > 2",
            "CAST(ts AS DATE) = DATE '2024-01-04'",
            "CAST(ts AS DATE) IN (DATE '2024-01-02', DATE '2024-01-05')",
            "CAST(n AS DOUBLE) > 4.5",
            "-n > 5",
            "-n < 0",
            "abs(dc) > 1.5",
            "date_trunc('day', ts) = TIMESTAMP '2024-01-04 00:00:00'",
            "extract(hour FROM ts) = 23",
        ] {
            same_as_memory(
                &table.ctx,
                &format!("SELECT id FROM {{t}} WHERE {predicate}"),
                &format!("pushdown {pushdown}"),
            )
            .await;
        }
        for query in [
            "SELECT id FROM {t} ORDER BY CAST(ts AS TIME) DESC LIMIT 2",
            "SELECT id FROM {t} ORDER BY CAST(n AS BOOLEAN), id LIMIT 2",
            "SELECT id FROM {t} ORDER BY TRY_CAST(n AS INT) DESC NULLS LAST, id LIMIT 2",
            "SELECT id FROM {t} ORDER BY -n LIMIT 2",
            "SELECT id FROM {t} ORDER BY CAST(dc AS INT) DESC, id LIMIT 2",
        ] {
            same_as_memory(&table.ctx, query, &format!("pushdown {pushdown}")).await;
        }
    }
}
