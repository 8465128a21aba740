//! Clustered tables: the example that conflict-time data skipping was made for, creation, and what
//! every change keeps.

use std::path::Path;

use delta_disjoint::commit::ConflictKind;
use delta_disjoint::read::clustering::clustering_columns;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{ErrorKind, session};
use serde_json::{Value, json};

use crate::support::{Table, kind_of, rows, try_run};

const ALL: &str = "SELECT customer_id, status FROM t ORDER BY customer_id";

/// Rows of file `file`: 100 customers, 1000 apart.
fn orders_of(file: i64) -> String {
    let first = file * 100_000;
    format!(
        "SELECT value AS customer_id, 'new' AS status FROM generate_series({first}, {}, 1000)",
        first + 99_000
    )
}

/// `t (customer_id BIGINT, status VARCHAR)` of ten files, clustered by `customer_id`. Version 0 is
/// written by hand and holds everything.
async fn orders() -> Table {
    orders_with("clustering").await
}

/// The same under another name of the table feature.
async fn orders_with(feature: &str) -> Table {
    let files: Vec<String> = (0..10).map(orders_of).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let plain = Table::create("customer_id BIGINT, status VARCHAR", "", &files).await;
    let mut lines = vec![
        json!({"commitInfo": {"operation": "CREATE TABLE AS SELECT", "isBlindAppend": true}}),
        json!({"protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["appendOnly", feature, "domainMetadata", "invariants"],
        }}),
        json!({"domainMetadata": {
            "domain": "delta.clustering",
            "configuration": json!({"clusteringColumns": [["customer_id"]]}).to_string(),
            "removed": false,
        }}),
    ];
    for version in 0..=10 {
        let wanted = ["metaData", "add"];
        lines.extend(
            plain
                .log_entry(version)
                .into_iter()
                .filter(|action| wanted.iter().any(|name| action.get(name).is_some())),
        );
    }
    let folder = plain.into_folder();
    let log = folder.path().join("_delta_log");
    std::fs::remove_dir_all(&log).expect("removed");
    std::fs::create_dir(&log).expect("folder");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(log.join(format!("{:020}.json", 0)), lines.join("\n")).expect("written");
    Table::open(folder).await.expect("opens")
}

/// The rows after `status` was set for the customers of each range.
fn expected(changes: &[(&str, i64, i64)]) -> Vec<String> {
    (0..1000)
        .map(|number| {
            let customer = number * 1000;
            let status = changes
                .iter()
                .find(|(_, first, last)| (*first..=*last).contains(&customer))
                .map_or("new", |(status, _, _)| status);
            format!("{customer}|{status}")
        })
        .collect()
}

async fn assert_rows(table: &Table, expected: &[String]) {
    assert_eq!(table.rows(ALL).await, expected);
    let other = table.deltalake_session().await;
    let frame = other.sql(ALL).await.expect("plan");
    let batches = frame.collect().await.expect("deltalake reads it");
    assert_eq!(crate::support::text_rows(&batches), expected);
}

async fn clustered_by(table: &Table) -> Vec<Vec<String>> {
    let handle = table.handle();
    let snapshot = handle.newest().await.expect("loads");
    clustering_columns(&handle, &snapshot)
        .await
        .expect("columns")
}

fn column(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_table_with_the_early_name_of_the_feature_is_changed() {
    let table = orders_with("liquid").await;
    table
        .run("UPDATE t SET status = 'low' WHERE customer_id <= 1000")
        .await;
    assert_rows(&table, &expected(&[("low", 0, 1000)])).await;
    assert_eq!(clustered_by(&table).await, [column(&["customer_id"])]);
}

#[tokio::test]
async fn updates_of_two_customer_ranges_commit_both_with_skipping_and_one_without() {
    for skipping in [true, false] {
        let table = orders().await;
        table
            .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
            .await;
        let low = "UPDATE t SET status = 'low' WHERE customer_id BETWEEN 0 AND 1000";
        let high = "UPDATE t SET status = 'high' WHERE customer_id BETWEEN 900000 AND 901000";
        let (low, high) = (table.plan(low).await, table.plan(high).await);
        assert_eq!(low.count().await, 2);
        let mut changes = vec![("low", 0, 1000)];
        if skipping {
            assert_eq!(high.count().await, 2);
            changes.push(("high", 900_000, 901_000));
        } else {
            assert_eq!(high.conflict().await, ConflictKind::ConcurrentAppend);
        }
        assert_rows(&table, &expected(&changes)).await;
        assert_eq!(clustered_by(&table).await, [column(&["customer_id"])]);
    }
}

/// Puts a commit of a clustering OPTIMIZE, which makes one file of files 3 and 4.
async fn optimize_files_3_and_4(table: &Table) {
    let files = [orders_of(3), orders_of(4)].join(" UNION ALL ");
    let other = Table::create("customer_id BIGINT, status VARCHAR", "", &[&files]).await;
    let mut add = other
        .log_entry(1)
        .into_iter()
        .find_map(|action| action.get("add").cloned())
        .expect("add");
    let path = add["path"].as_str().expect("path").to_owned();
    std::fs::copy(
        Path::new(&other.path()).join(&path),
        Path::new(&table.path()).join(&path),
    )
    .expect("copied");
    add["dataChange"] = json!(false);
    add["clusteringProvider"] = json!("liquid");
    let mut actions = vec![
        json!({"commitInfo": {
            "operation": "OPTIMIZE",
            "operationParameters": {"clusterBy": "[\"customer_id\"]"},
            "readVersion": 0,
            "isBlindAppend": false,
        }}),
        json!({"add": add}),
    ];
    for old in table.log_entry(0) {
        let Some(add) = old.get("add") else { continue };
        let stats = add["stats"].as_str().expect("statistics");
        if [300_000, 400_000]
            .iter()
            .any(|first| stats.contains(&format!("\"minValues\":{{\"customer_id\":{first},")))
        {
            actions.push(json!({"remove": {
                "path": add["path"],
                "dataChange": false,
                "deletionTimestamp": 1,
                "extendedFileMetadata": true,
                "partitionValues": {},
                "size": add["size"],
            }}));
        }
    }
    assert_eq!(actions.len(), 4, "both files were found");
    table.put_entry(&actions).await;
}

#[tokio::test]
async fn a_clustering_optimize_stops_only_who_changes_its_files() {
    for skipping in [true, false] {
        let table = orders().await;
        table
            .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
            .await;
        let update = |first: i64| {
            format!(
                "UPDATE t SET status = 'done' WHERE customer_id BETWEEN {first} AND {}",
                first + 1000
            )
        };
        let elsewhere = table.plan(&update(900_000)).await;
        let inside = table.plan(&update(310_000)).await;
        let reader = "INSERT INTO t SELECT customer_id + 1, 'copy' FROM t \
                      WHERE customer_id BETWEEN 400000 AND 401000";
        let reader = table.plan(reader).await;
        optimize_files_3_and_4(&table).await;
        assert_eq!(
            inside.conflict().await,
            ConflictKind::ConcurrentDeleteDelete,
            "{skipping}"
        );
        assert_eq!(elsewhere.count().await, 2);
        assert_rows(&table, &expected(&[("done", 900_000, 901_000)])).await;
        // What was only read still says what it said.
        if skipping {
            assert_eq!(reader.count().await, 2);
            assert_eq!(
                table
                    .rows("SELECT customer_id FROM t WHERE status = 'copy' ORDER BY 1")
                    .await,
                ["400001", "401001"]
            );
        } else {
            assert_eq!(reader.conflict().await, ConflictKind::ConcurrentAppend);
        }
        assert_eq!(table.log().1.len(), if skipping { 10 } else { 9 });
    }
}

#[tokio::test]
async fn every_change_keeps_the_clustering() {
    let table = orders().await;
    for (change, count) in [
        ("INSERT INTO t VALUES (5, 'five'), (6, 'six')", 2),
        ("UPDATE t SET status = 'x' WHERE customer_id = 5", 1),
        ("DELETE FROM t WHERE customer_id > 5", 1000),
        ("INSERT OVERWRITE t VALUES (7, 'seven')", 1),
        ("TRUNCATE TABLE t", 1),
    ] {
        assert_eq!(table.count(change).await, count, "{change}");
        assert_eq!(
            clustered_by(&table).await,
            [column(&["customer_id"])],
            "{change}"
        );
    }
    assert_eq!(table.version().await, 5);
    for version in 1..=5 {
        assert!(
            table
                .log_entry(version)
                .iter()
                .all(|action| action.get("domainMetadata").is_none()),
            "nothing changes the domain"
        );
    }
}

/// `c00 … c34 BIGINT, s STRUCT<a BIGINT, b VARCHAR>` with clustering by the last two of all.
#[tokio::test]
async fn clustering_columns_have_statistics_wherever_they_stand() {
    let names: Vec<String> = (0..35).map(|number| format!("c{number:02}")).collect();
    let columns: Vec<String> = names.iter().map(|name| format!("{name} BIGINT")).collect();
    let columns = format!("{}, s STRUCT<a BIGINT, b VARCHAR>", columns.join(", "));
    let values: Vec<String> = (0..35).map(|number| number.to_string()).collect();
    let insert = format!(
        "VALUES ({}, named_struct('a', 41, 'b', 'x'))",
        values.join(", ")
    );
    let table = Table::create(
        &columns,
        "OPTIONS ('delta.clusteringColumns' 'C34, s.B')",
        &[&insert],
    )
    .await;
    assert_eq!(
        clustered_by(&table).await,
        [column(&["c34"]), column(&["s", "b"])]
    );
    table.run("UPDATE t SET c00 = 100").await;
    for version in [1, 2] {
        let add = table
            .log_entry(version)
            .into_iter()
            .find_map(|action| action.get("add").cloned())
            .expect("add");
        let stats: Value =
            serde_json::from_str(add["stats"].as_str().expect("statistics")).expect("json");
        let minimum = &stats["minValues"];
        assert_eq!(minimum["c31"], json!(31));
        assert_eq!(minimum["c32"], Value::Null);
        assert_eq!(minimum["c34"], json!(34));
        assert_eq!(minimum["s"], json!({"b": "x"}));
        assert_eq!(stats["nullCount"]["s"], json!({"b": 0}));
    }
    // And so the conflict check can skip by them.
    let delete = table.plan("DELETE FROM t WHERE c34 = 34").await;
    table
        .run(&insert_with(&values, 34, "1000", "INSERT INTO t VALUES"))
        .await;
    assert_eq!(delete.count().await, 1);
}

fn insert_with(values: &[String], index: usize, value: &str, start: &str) -> String {
    let mut values = values.to_vec();
    values[index] = value.to_owned();
    format!(
        "{start} ({}, named_struct('a', 41, 'b', 'x'))",
        values.join(", ")
    )
}

#[tokio::test]
async fn created_table_is_clustered_for_every_reader() {
    let table = Table::create(
        "customer_id BIGINT, \"a.b\" VARCHAR, at TIMESTAMP",
        "OPTIONS ('delta.clusteringColumns' 'customer_id, `a.b`')",
        &["VALUES (1, 'x', NULL), (2, 'y', NULL)"],
    )
    .await;
    let expected = [column(&["customer_id"]), column(&["a.b"])];
    assert_eq!(clustered_by(&table).await, expected);
    let entry = table.log_entry(0);
    let find = |name: &str| {
        entry
            .iter()
            .find_map(|action| action.get(name))
            .expect(name)
            .clone()
    };
    assert_eq!(
        find("protocol"),
        json!({
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz"],
            "writerFeatures": ["clustering", "domainMetadata", "timestampNtz"],
        })
    );
    assert_eq!(
        find("domainMetadata"),
        json!({
            "domain": "delta.clustering",
            "configuration": "{\"clusteringColumns\":[[\"customer_id\"],[\"a.b\"]]}",
            "removed": false,
        })
    );
    assert_eq!(find("metaData")["configuration"], json!({}));
    let other = table.deltalake_session().await;
    let batches = other
        .sql("SELECT count(*) FROM t")
        .await
        .expect("plan")
        .collect()
        .await
        .expect("deltalake reads it");
    assert_eq!(crate::support::text_rows(&batches), ["2"]);
}

#[tokio::test]
async fn option_that_does_not_fit_is_refused_and_leaves_nothing() {
    let ctx = session();
    let folder = tempfile::tempdir().expect("temporary folder");
    let location = folder.path().to_str().expect("utf-8");
    for (clauses, option, reason) in [
        ("", "nope", "no column nope"),
        ("", "flag", "Boolean"),
        ("", "id, ID", "twice"),
        ("", "id,", "commas"),
        ("PARTITIONED BY (flag)", "id", "PARTITIONED BY"),
    ] {
        let error = try_run(
            &ctx,
            &format!(
                "CREATE EXTERNAL TABLE t (id BIGINT, flag BOOLEAN) STORED AS DELTA {clauses} \
                 LOCATION '{location}' OPTIONS ('delta.clusteringColumns' '{option}')"
            ),
        )
        .await
        .expect_err(option);
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("folder").count(),
        0,
        "nothing was written"
    );
}

#[tokio::test]
async fn option_on_a_table_that_is_there_must_say_what_the_table_says() {
    let clustered = orders().await;
    let plain = Table::create("customer_id BIGINT, status VARCHAR", "", &[]).await;
    for (table, option, reason) in [
        (&clustered, "customer_id", None),
        (&clustered, "status", Some("is clustered by customer_id")),
        (
            &clustered,
            "customer_id, status",
            Some("not clustered by customer_id, status"),
        ),
        (&plain, "customer_id", Some("is not clustered")),
    ] {
        for columns in ["(customer_id BIGINT, status VARCHAR)", ""] {
            let reason = match (columns, reason) {
                ("", _) => Some("only when the table is created"),
                (_, reason) => reason,
            };
            let ctx = session();
            let created = try_run(
                &ctx,
                &format!(
                    "CREATE EXTERNAL TABLE t {columns} STORED AS DELTA LOCATION '{}' \
                     OPTIONS ('delta.clusteringColumns' '{option}')",
                    table.path()
                ),
            )
            .await;
            match (created, reason) {
                (Ok(_), None) => {
                    assert_eq!(rows(&ctx, "SELECT count(*) FROM t").await, ["1000"]);
                }
                (Err(error), Some(reason)) => {
                    assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
                    assert!(error.to_string().contains(reason), "{error}");
                }
                (created, reason) => panic!("{option}: {created:?}, {reason:?}"),
            }
        }
    }
}

#[tokio::test]
async fn odd_domain_metadata_keeps_writers_out_and_readers_in() {
    for configuration in [
        "",
        "{\"clusteringColumns\":[[7]]}",
        "{\"clusteringColumns\":[[\"gone\"]]}",
    ] {
        let table = orders().await;
        table
            .put_entry(&[
                json!({"commitInfo": {"operation": "CLUSTER BY"}}),
                json!({"domainMetadata": {
                    "domain": "delta.clustering",
                    "configuration": configuration,
                    "removed": false,
                }}),
            ])
            .await;
        assert_eq!(table.rows("SELECT count(*) FROM t").await, ["1000"]);
        for change in [
            "INSERT INTO t VALUES (1, 'x')",
            "DELETE FROM t WHERE customer_id = 0",
        ] {
            let error = table.refused(change).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Corrupt), "{error}");
        }
    }
    // Without the domain, or with one that was taken away, there is nothing to collect.
    let table = orders().await;
    table
        .put_entry(&[json!({"domainMetadata": {
            "domain": "delta.clustering", "configuration": "", "removed": true,
        }})])
        .await;
    assert_eq!(clustered_by(&table).await, Vec::<Vec<String>>::new());
    assert_eq!(table.count("INSERT INTO t VALUES (1, 'x')").await, 1);
}

#[tokio::test]
async fn clustering_is_found_behind_a_checkpoint() {
    let table = orders().await;
    let handle: std::sync::Arc<TableHandle> = table.handle();
    for number in 1..=11 {
        table
            .run(&format!("INSERT INTO t VALUES ({number}, 'x')"))
            .await;
    }
    let log = Path::new(&table.path()).join("_delta_log");
    assert!(
        log.join(format!("{:020}.checkpoint.parquet", 10)).exists(),
        "a checkpoint was written"
    );
    // The domain is nowhere but in the checkpoint.
    for version in 0..=10 {
        std::fs::remove_file(log.join(format!("{version:020}.json"))).expect("removed");
    }
    let snapshot = handle.newest().await.expect("loads");
    assert_eq!(
        clustering_columns(&handle, &snapshot)
            .await
            .expect("columns"),
        [column(&["customer_id"])]
    );
    let table = Table::open(table.into_folder()).await.expect("opens");
    assert_eq!(
        table
            .count("DELETE FROM t WHERE customer_id BETWEEN 1 AND 11")
            .await,
        11
    );
    assert_rows(&table, &expected(&[])).await;
}
