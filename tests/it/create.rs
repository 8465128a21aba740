//! `CREATE EXTERNAL TABLE … STORED AS DELTA` and `DROP TABLE`.

use std::path::Path;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use delta_disjoint::{ErrorKind, register, session, sql};
use deltalake::DeltaTable;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{kind_of, open, rows, run, text_rows, try_run};

/// A folder that is there and a session.
struct Place {
    ctx: SessionContext,
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            ctx: session(),
            dir: tempfile::tempdir().expect("temporary folder"),
        }
    }

    fn path(&self) -> String {
        self.dir.path().to_str().expect("utf-8").to_owned()
    }

    /// `CREATE EXTERNAL TABLE` with `$` for the folder.
    async fn create(&self, statement: &str) -> Result<(), datafusion::error::DataFusionError> {
        let text = format!(
            "CREATE EXTERNAL TABLE {}",
            statement.replace('$', &self.path())
        );
        try_run(&self.ctx, &text).await.map(|_| ())
    }

    async fn created(&self, statement: &str) {
        if let Err(error) = self.create(statement).await {
            panic!("{statement}\n{error}");
        }
    }

    /// The kind and text of the refusal of `statement`.
    async fn refused(&self, statement: &str) -> (Option<ErrorKind>, String) {
        let error = self.create(statement).await.expect_err(statement);
        (kind_of(&error), error.to_string())
    }

    async fn deltalake(&self) -> DeltaTable {
        let url = url::Url::from_directory_path(self.dir.path()).expect("url");
        deltalake::open_table(url)
            .await
            .expect("deltalake opens it")
    }
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("folder").count()
}

#[tokio::test]
async fn a_table_is_opened_by_path_and_by_url() {
    let place = Place::new();
    place
        .created("t (id BIGINT) STORED AS DELTA LOCATION '$'")
        .await;
    run(&place.ctx, "INSERT INTO t VALUES (1)").await;
    let url = url::Url::from_directory_path(place.dir.path()).expect("url");
    for location in [
        place.path(),
        format!("{}/", place.path()),
        url.to_string(),
        url.as_str().trim_end_matches('/').to_owned(),
    ] {
        let ctx = session();
        open(&ctx, "t", &location).await;
        assert_eq!(rows(&ctx, "SELECT id FROM t").await, ["1"], "{location}");
        run(&ctx, "INSERT INTO t VALUES (2)").await;
        run(&ctx, "DELETE FROM t WHERE id = 2").await;
    }
    let ctx = session();
    run(
        &ctx,
        &format!(
            "CREATE EXTERNAL TABLE t STORED AS deltatable LOCATION '{}'",
            place.path()
        ),
    )
    .await;
    assert_eq!(rows(&ctx, "SELECT id FROM t").await, ["1"]);
}

#[tokio::test]
async fn two_names_are_one_table() {
    let place = Place::new();
    place
        .created("a (id BIGINT) STORED AS DELTA LOCATION '$'")
        .await;
    place
        .created("b STORED AS DELTA LOCATION 'file://$/'")
        .await;
    run(&place.ctx, "INSERT INTO a VALUES (1), (2)").await;
    let counted = run(
        &place.ctx,
        "DELETE FROM a WHERE id IN (SELECT id FROM b WHERE id = 2)",
    )
    .await;
    assert_eq!(text_rows(&counted), ["1"]);
    assert_eq!(rows(&place.ctx, "SELECT id FROM b").await, ["1"]);
}

#[tokio::test]
async fn a_created_table_has_its_columns_partitions_and_properties() {
    let place = Place::new();
    place
        .created(
            "t (id BIGINT NOT NULL, tiny TINYINT, small SMALLINT, i INT, f REAL, d DOUBLE, b \
             BOOLEAN, s VARCHAR, tx TEXT, bin BYTEA, dt DATE, ts TIMESTAMP, tz TIMESTAMP WITH TIME \
             ZONE, dc DECIMAL(38, 10), st STRUCT<a BIGINT, b VARCHAR>, l BIGINT[], p INT) \
             STORED AS DELTA PARTITIONED BY (p, b) LOCATION '$' \
             OPTIONS ('delta.ISOLATIONlevel' 'serializable', 'delta.checkpointInterval' '7')",
        )
        .await;
    let table = place.deltalake().await;
    let snapshot = table.snapshot().expect("loaded");
    let schema = serde_json::to_value(snapshot.schema().as_ref()).expect("json");
    let types: Vec<String> = schema["fields"]
        .as_array()
        .expect("fields")
        .iter()
        .map(|field| {
            let data_type = match &field["type"] {
                serde_json::Value::String(name) => name.clone(),
                nested => nested["type"].as_str().expect("type").to_owned(),
            };
            let null = if field["nullable"] == json!(true) {
                ""
            } else {
                " NOT NULL"
            };
            format!(
                "{} {data_type}{null}",
                field["name"].as_str().expect("name")
            )
        })
        .collect();
    assert_eq!(
        types,
        [
            "id long NOT NULL",
            "tiny byte",
            "small short",
            "i integer",
            "f float",
            "d double",
            "b boolean",
            "s string",
            "tx string",
            "bin binary",
            "dt date",
            "ts timestamp_ntz",
            "tz timestamp",
            "dc decimal(38,10)",
            "st struct",
            "l array",
            "p integer"
        ]
    );
    let metadata = snapshot.metadata();
    assert_eq!(
        metadata.partition_columns(),
        &["p".to_owned(), "b".to_owned()]
    );
    let configuration = metadata.configuration();
    assert_eq!(configuration["delta.isolationLevel"], "Serializable");
    assert_eq!(configuration["delta.checkpointInterval"], "7");
    assert_eq!(configuration.len(), 2);

    run(
        &place.ctx,
        "INSERT INTO t VALUES (1, 1, 1, 1, 1, 1, true, 's', 't', X'00', DATE '2024-01-01', TIMESTAMP \
         '2024-01-01 00:00:00.123456', '2024-01-01T00:00:00.123456Z', 1.5, named_struct('a', 1, 'b', 'x'), \
         make_array(1, 2), 3)",
    )
    .await;
    let shown = rows(&place.ctx, "SELECT ts, tz, dc, st, l, p, b FROM t").await;
    assert_eq!(
        shown,
        [
            "2024-01-01T00:00:00.123456|2024-01-01T00:00:00.123456Z|1.5000000000|{a: 1, b: x}|[1, 2]|3|true"
        ]
    );
    let types = rows(
        &place.ctx,
        "SELECT arrow_typeof(ts), arrow_typeof(tz) FROM t",
    )
    .await;
    assert_eq!(types, ["Timestamp(µs)|Timestamp(µs, \"UTC\")"]);
    let error = try_run(&place.ctx, "INSERT INTO t (s) VALUES ('no id')")
        .await
        .expect_err("NOT NULL");
    assert!(error.to_string().contains("id"), "{error}");
}

#[tokio::test]
async fn types_that_delta_does_not_have_are_refused_by_name() {
    let place = Place::new();
    for (data_type, instead) in [
        ("TIME", "Time64"),
        ("INTERVAL", "Interval"),
        ("TINYINT UNSIGNED", "SMALLINT"),
        ("SMALLINT UNSIGNED", "INT"),
        ("INT UNSIGNED", "BIGINT"),
        ("BIGINT UNSIGNED", "DECIMAL(20, 0)"),
        ("DECIMAL(50, 2)", "38"),
        ("TIME[]", "Time64"),
        ("STRUCT<a TIME>", "Time64"),
    ] {
        let (kind, message) = place
            .refused(&format!(
                "t (odd {data_type}) STORED AS DELTA LOCATION '$/new'"
            ))
            .await;
        assert_eq!(kind, Some(ErrorKind::Unsupported), "{message}");
        assert!(
            message.contains("odd") && message.contains(instead),
            "{data_type}: {message}"
        );
    }
    assert_eq!(entries(place.dir.path()), 0, "no folder is left behind");
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_with_what_to_do() {
    let place = Place::new();
    for (columns, expected) in [
        ("\"Customer ID\" BIGINT", "column mapping"),
        ("\"a,b\" BIGINT", "column mapping"),
        ("\"a=b\" BIGINT", "column mapping"),
        ("id BIGINT, \"ID\" BIGINT", "twice"),
        ("id BIGINT, id BIGINT", "id"),
        ("st STRUCT<\"a b\" BIGINT>", "column mapping"),
    ] {
        let (_, message) = place
            .refused(&format!("t ({columns}) STORED AS DELTA LOCATION '$/new'"))
            .await;
        assert!(message.contains(expected), "{columns}: {message}");
    }
    for (clause, expected) in [
        ("PARTITIONED BY (nope)", "nope"),
        ("PARTITIONED BY (id, x)", "all columns"),
        ("PARTITIONED BY (x, x)", "twice"),
    ] {
        let (_, message) = place
            .refused(&format!(
                "t (id BIGINT, x BIGINT) STORED AS DELTA {clause} LOCATION '$/new'"
            ))
            .await;
        assert!(message.contains(expected), "{clause}: {message}");
    }
    assert_eq!(entries(place.dir.path()), 0);
}

#[tokio::test]
async fn names_with_upper_case_dots_and_quotes_work() {
    let place = Place::new();
    place
        .created("t (\"Id\" BIGINT, \"a.b\" BIGINT, \"it's\" BIGINT, \"ü\" BIGINT) STORED AS DELTA LOCATION '$'")
        .await;
    run(
        &place.ctx,
        "INSERT INTO t VALUES (1, 2, 3, 4), (5, 6, 7, 8)",
    )
    .await;
    run(
        &place.ctx,
        "UPDATE t SET \"a.b\" = \"it's\" + 1 WHERE \"Id\" = 1",
    )
    .await;
    run(&place.ctx, "DELETE FROM t WHERE \"ü\" = 8").await;
    assert_eq!(
        rows(&place.ctx, "SELECT * FROM t WHERE \"a.b\" > 3").await,
        ["1|4|3|4"]
    );
}

#[tokio::test]
async fn options_are_told_apart_and_checked() {
    let place = Place::new();
    place
        .created(
            "t (id BIGINT) STORED AS DELTA LOCATION '$' OPTIONS ('timeout' '30s', \
             'aws.region' 'eu-west-1', 'DELTA.appendonly' 'TRUE')",
        )
        .await;
    let configuration = place.deltalake().await;
    let configuration = configuration
        .snapshot()
        .expect("loaded")
        .metadata()
        .configuration()
        .clone();
    assert_eq!(configuration.len(), 1, "store options are no properties");
    assert_eq!(configuration["delta.appendOnly"], "true");
    for (option, expected) in [
        (
            "'delta.isolationLevl' 'Serializable'",
            "delta.isolationLevel",
        ),
        (
            "'delta.isolationLevel' 'SnapshotIsolation'",
            "Serializable or WriteSerializable",
        ),
        ("'delta.enableDeletionVectors' 'true'", "deletionVectors"),
        ("'delta.columnMapping.mode' 'on'", "none or name or id"),
        ("'delta.constraints.c' 'id >'", "CHECK constraint c"),
        ("'delta.appendOnly' 'maybe'", "true or false"),
    ] {
        let (_, message) = place
            .refused(&format!(
                "u (id BIGINT) STORED AS DELTA LOCATION '$/new' OPTIONS ({option})"
            ))
            .await;
        assert!(message.contains(expected), "{option}: {message}");
    }
    assert!(!place.dir.path().join("new").exists());
}

#[tokio::test]
async fn clauses_that_delta_tables_do_not_have_are_refused() {
    let place = Place::new();
    for (statement, expected) in [
        (
            "t (id BIGINT, PRIMARY KEY (id)) STORED AS DELTA LOCATION '$/new'",
            "key constraint",
        ),
        (
            "t (id BIGINT DEFAULT 7) STORED AS DELTA LOCATION '$/new'",
            "DEFAULT",
        ),
        (
            "t (id BIGINT) STORED AS DELTA WITH ORDER (id) LOCATION '$/new'",
            "WITH ORDER",
        ),
        (
            "t STORED AS DELTA PARTITIONED BY (id) LOCATION '$/new'",
            "column list",
        ),
        (
            "t STORED AS DELTA LOCATION '$/new' OPTIONS ('delta.appendOnly' 'true')",
            "column list",
        ),
        ("t (id BIGINT) STORED AS DELTA LOCATION 'odd://x/y'", "odd"),
    ] {
        let (_, message) = place.refused(statement).await;
        assert!(message.contains(expected), "{statement}: {message}");
    }
    for text in [
        format!(
            "CREATE OR REPLACE EXTERNAL TABLE t (id BIGINT) STORED AS DELTA LOCATION '{}/new'",
            place.path()
        ),
        format!(
            "CREATE UNBOUNDED EXTERNAL TABLE t (id BIGINT) STORED AS DELTA LOCATION '{}/new'",
            place.path()
        ),
    ] {
        let error = try_run(&place.ctx, &text).await.expect_err("refused");
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
    }
    assert_eq!(entries(place.dir.path()), 0);
}

#[tokio::test]
async fn a_missing_folder_is_made_only_for_a_new_table() {
    let place = Place::new();
    for statement in [
        "t STORED AS DELTA LOCATION '$/deep/er'",
        "t STORED AS DELTA LOCATION 'file://$/deep/er'",
    ] {
        let (kind, message) = place.refused(statement).await;
        assert_eq!(kind, Some(ErrorKind::Invalid), "{message}");
        assert!(
            message.contains("no Delta table") && message.contains("deep/er"),
            "{message}"
        );
    }
    assert_eq!(entries(place.dir.path()), 0);
    place
        .created("t (id BIGINT) STORED AS DELTA LOCATION '$/deep/er'")
        .await;
    run(&place.ctx, "INSERT INTO t VALUES (1)").await;
    place
        .created("u (id BIGINT) STORED AS DELTA LOCATION 'file://$/a b/ü'")
        .await;
    run(&place.ctx, "INSERT INTO u VALUES (1)").await;
    assert!(place.dir.path().join("deep/er/_delta_log").is_dir());
    assert!(place.dir.path().join("a b/ü/_delta_log").is_dir());
    let ctx = session();
    open(&ctx, "u", &format!("{}/a b/ü", place.path())).await;
    assert_eq!(rows(&ctx, "SELECT * FROM u").await, ["1"]);
}

#[tokio::test]
async fn an_existing_table_is_opened_by_the_same_declaration_and_by_no_other() {
    let place = Place::new();
    let declaration = "(id BIGINT NOT NULL, p VARCHAR) STORED AS DELTA PARTITIONED BY (p) LOCATION '$' \
                       OPTIONS ('delta.isolationLevel' 'Serializable')";
    place.created(&format!("t {declaration}")).await;
    run(&place.ctx, "INSERT INTO t VALUES (1, 'x')").await;
    for (name, same) in [
        ("a", declaration),
        (
            "b",
            "(id BIGINT NOT NULL, p TEXT) STORED AS DELTA PARTITIONED BY (p) LOCATION '$'",
        ),
    ] {
        place.created(&format!("{name} {same}")).await;
        assert_eq!(
            rows(&place.ctx, &format!("SELECT * FROM {name}")).await,
            ["1|x"]
        );
    }
    // The session knows the name already.
    place
        .created(&format!("IF NOT EXISTS t {declaration}"))
        .await;
    let error = place
        .create(&format!("t {declaration}"))
        .await
        .expect_err("there already");
    assert!(error.to_string().contains("already exists"), "{error}");
    for (other, expected) in [
        (
            "(id BIGINT, p VARCHAR) STORED AS DELTA PARTITIONED BY (p) LOCATION '$'",
            "NOT NULL",
        ),
        (
            "(id INT NOT NULL, p VARCHAR) STORED AS DELTA PARTITIONED BY (p) LOCATION '$'",
            "integer",
        ),
        (
            "(id BIGINT NOT NULL, q VARCHAR) STORED AS DELTA PARTITIONED BY (q) LOCATION '$'",
            "q",
        ),
        ("(id BIGINT NOT NULL) STORED AS DELTA LOCATION '$'", "p"),
        (
            "(id BIGINT NOT NULL, p VARCHAR, z INT) STORED AS DELTA PARTITIONED BY (p) LOCATION '$'",
            "z",
        ),
        (
            "(p VARCHAR, id BIGINT NOT NULL) STORED AS DELTA PARTITIONED BY (p) LOCATION '$'",
            "column 1",
        ),
        (
            "(id BIGINT NOT NULL, p VARCHAR) STORED AS DELTA LOCATION '$'",
            "partitioned by p",
        ),
        (
            "(id BIGINT NOT NULL, p VARCHAR) STORED AS DELTA PARTITIONED BY (p) LOCATION '$' OPTIONS \
             ('delta.isolationLevel' 'WriteSerializable')",
            "delta.isolationLevel",
        ),
        (
            "(id BIGINT NOT NULL, p VARCHAR) STORED AS DELTA PARTITIONED BY (p) LOCATION '$' OPTIONS \
             ('delta.appendOnly' 'true')",
            "delta.appendOnly",
        ),
    ] {
        for name in ["other", "IF NOT EXISTS other"] {
            let (kind, message) = place.refused(&format!("{name} {other}")).await;
            assert_eq!(kind, Some(ErrorKind::Invalid), "{message}");
            assert!(message.contains(expected), "{other}: {message}");
        }
    }
    assert_eq!(place.deltalake().await.version(), Some(1));
}

#[tokio::test]
async fn creators_at_once_share_one_table() {
    for round in 0..3 {
        let place = Place::new();
        let creators: Vec<_> = (0..6)
            .map(|_| {
                let path = place.path();
                tokio::spawn(async move {
                    let ctx = session();
                    let created = try_run(
                        &ctx,
                        &format!(
                            "CREATE EXTERNAL TABLE t (id BIGINT) STORED AS DELTA LOCATION '{path}/new'"
                        ),
                    )
                    .await;
                    created.map(|_| ctx)
                })
            })
            .collect();
        for creator in creators {
            let ctx = creator.await.expect("joined").expect("creates or opens");
            run(&ctx, "INSERT INTO t VALUES (1)").await;
        }
        let ctx = session();
        open(&ctx, "t", &format!("{}/new", place.path())).await;
        assert_eq!(
            rows(&ctx, "SELECT count(*) FROM t").await,
            ["6"],
            "round {round}"
        );
    }
}

#[tokio::test]
async fn a_creator_that_is_late_with_other_columns_gets_a_clear_error() {
    let place = Place::new();
    let creators: Vec<_> = ["id BIGINT", "id INT"]
        .into_iter()
        .map(|columns| {
            let path = place.path();
            tokio::spawn(async move {
                try_run(
                    &session(),
                    &format!(
                        "CREATE EXTERNAL TABLE t ({columns}) STORED AS DELTA LOCATION '{path}'"
                    ),
                )
                .await
            })
        })
        .collect();
    let mut refused = 0;
    for creator in creators {
        if let Err(error) = creator.await.expect("joined") {
            assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
            assert!(error.to_string().contains("other columns"), "{error}");
            refused += 1;
        }
    }
    assert_eq!(refused, 1);
}

#[tokio::test]
async fn drop_table_leaves_the_files() {
    let place = Place::new();
    place
        .created("t (id BIGINT) STORED AS DELTA LOCATION '$'")
        .await;
    run(&place.ctx, "INSERT INTO t VALUES (1)").await;
    let before = entries(place.dir.path());
    run(&place.ctx, "DROP TABLE t").await;
    assert!(sql(&place.ctx, "SELECT * FROM t").await.is_err());
    assert_eq!(entries(place.dir.path()), before);
    place.created("t STORED AS DELTA LOCATION '$'").await;
    assert_eq!(rows(&place.ctx, "SELECT * FROM t").await, ["1"]);
    // A table that is gone from the disk can be dropped too.
    std::fs::remove_dir_all(place.dir.path().join("_delta_log")).expect("removed");
    run(&place.ctx, "DROP TABLE t").await;
    run(&place.ctx, "DROP TABLE IF EXISTS t").await;
}

#[tokio::test]
async fn tables_of_other_kinds_are_created_and_changed_as_before() {
    let place = Place::new();
    place
        .created("t (id BIGINT) STORED AS DELTA LOCATION '$/t'")
        .await;
    run(&place.ctx, "INSERT INTO t VALUES (1), (2)").await;
    run(
        &place.ctx,
        "CREATE TABLE m AS SELECT id, id * 2 AS twice FROM t",
    )
    .await;
    run(&place.ctx, "INSERT INTO m VALUES (7, 7)").await;
    assert_eq!(rows(&place.ctx, "SELECT sum(twice) FROM m").await, ["13"]);
    run(&place.ctx, "DELETE FROM m WHERE id = 7").await;
    run(&place.ctx, "UPDATE m SET twice = 0 WHERE id = 1").await;
    assert_eq!(rows(&place.ctx, "SELECT sum(twice) FROM m").await, ["4"]);
    run(
        &place.ctx,
        &format!(
            "COPY t TO '{}/copy.parquet' STORED AS PARQUET",
            place.path()
        ),
    )
    .await;
    place
        .created("c STORED AS PARQUET LOCATION '$/copy.parquet'")
        .await;
    run(&place.ctx, "INSERT INTO t SELECT id + 10 FROM c").await;
    run(
        &place.ctx,
        "CREATE VIEW v AS SELECT id FROM t WHERE id > 10",
    )
    .await;
    assert_eq!(
        rows(&place.ctx, "SELECT id FROM v ORDER BY id").await,
        ["11", "12"]
    );
}

#[tokio::test]
async fn a_session_without_a_time_zone_creates_timestamps_with_one_too() {
    let builder = SessionStateBuilder::new().with_default_features();
    let place = Place {
        ctx: SessionContext::new_with_state(register(builder).build()),
        dir: tempfile::tempdir().expect("temporary folder"),
    };
    assert_eq!(
        place.ctx.copied_config().options().execution.time_zone,
        None
    );
    place
        .created("t (ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE) STORED AS DELTA LOCATION '$'")
        .await;
    run(
        &place.ctx,
        "INSERT INTO t VALUES ('2024-01-01T02:00:00', '2024-01-01T02:00:00+02:00')",
    )
    .await;
    assert_eq!(
        rows(
            &place.ctx,
            "SELECT *, arrow_typeof(ts), arrow_typeof(tz) FROM t"
        )
        .await,
        ["2024-01-01T02:00:00|2024-01-01T00:00:00Z|Timestamp(µs)|Timestamp(µs, \"UTC\")"]
    );
    assert_eq!(
        place.ctx.copied_config().options().execution.time_zone,
        None
    );
}
