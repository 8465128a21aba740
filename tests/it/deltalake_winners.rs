//! Our statements against commits of deltalake, whose statistics are less exact than ours and whose
//! compactions move the rows that a statement is about; and our tables as deltalake reads them.

use delta_disjoint::commit::ConflictKind;
use deltalake::DeltaTable;
use deltalake::protocol::SaveMode;

use crate::support::{Planned, Table, conflict_of, text_rows};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

const APPEND: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
const DELETE_DELETE: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteDelete);

fn at(level: &str) -> String {
    format!("OPTIONS ('delta.isolationLevel' '{level}')")
}

/// The level at which it is harder to do right: the weaker one must abort all the same, the
/// stronger one must commit all the same.
fn hard(aborts: bool) -> &'static str {
    if aborts {
        "WriteSerializable"
    } else {
        "Serializable"
    }
}

async fn outcome(loser: Planned) -> Option<ConflictKind> {
    loser.run().await.err().map(|error| conflict_of(&error))
}

/// deltalake appends the rows of `query`.
async fn deltalake_append(table: &Table, query: &str) {
    let rows = table.run(query).await;
    table
        .deltalake()
        .await
        .write(rows)
        .with_save_mode(SaveMode::Append)
        .await
        .expect("append");
}

async fn optimize(table: &Table) {
    let (_, metrics) = table.deltalake().await.optimize().await.expect("optimize");
    assert!(metrics.num_files_removed > 1, "{metrics:?}");
}

/// The rows of `query` over the table, called `t`, as deltalake's own provider reads it.
async fn deltalake_rows(table: &DeltaTable, query: &str) -> Vec<String> {
    let ctx = datafusion::prelude::SessionContext::new();
    let provider = table.table_provider().await.expect("provider");
    ctx.register_table("t", provider).expect("register");
    let frame = ctx.sql(query).await.expect("plan");
    text_rows(&frame.collect().await.expect("rows"))
}

#[tokio::test]
async fn statements_against_optimize_keep_every_row() {
    // The loser, the conflict, and count and sum of `id` in the end.
    let cases: [(&str, Option<ConflictKind>, &str); 9] = [
        ("DELETE FROM t", DELETE_DELETE, "30|435"),
        ("UPDATE t SET x = 0", DELETE_DELETE, "30|435"),
        ("TRUNCATE TABLE t", DELETE_DELETE, "30|435"),
        ("INSERT OVERWRITE t VALUES (9, 9)", DELETE_DELETE, "30|435"),
        ("DELETE FROM t WHERE id < 5", DELETE_DELETE, "30|435"),
        ("DELETE FROM t WHERE id < 10", DELETE_DELETE, "30|435"),
        // The rows that were read are where they were, in another file.
        (
            "INSERT INTO t SELECT id + 100, x FROM t WHERE id < 2",
            None,
            "32|636",
        ),
        ("INSERT INTO t SELECT max(id) + 1, 0 FROM t", None, "31|465"),
        ("INSERT INTO t VALUES (30, 30)", None, "31|465"),
    ];
    for (text, expected, rows) in cases {
        let level = hard(expected.is_some());
        let table = Table::numbers(3, 10, &at(level)).await;
        let loser = table.plan(text).await;
        optimize(&table).await;
        assert_eq!(outcome(loser).await, expected, "{level}: {text}");
        let query = "SELECT count(*), sum(id) FROM t";
        assert_eq!(table.rows(query).await, [rows], "{level}: {text}");
        assert_eq!(
            deltalake_rows(&table.deltalake().await, query).await,
            [rows]
        );
    }
}

/// OPTIMIZE moves a blind append to another file; the append stays what it was.
#[tokio::test]
async fn blind_append_that_was_optimized_is_still_a_blind_append() {
    let cases = [
        // Reads ids that the append brings: its order is decided by the level.
        (
            "INSERT INTO t SELECT id + 1000, x FROM t WHERE id < 2",
            ["Serializable", "abort"],
        ),
        (
            "INSERT INTO t SELECT id + 1000, x FROM t WHERE id < 2",
            ["WriteSerializable", "commit"],
        ),
        // Reads other ids.
        (
            "INSERT INTO t SELECT id + 1000, x FROM t WHERE id > 25",
            ["Serializable", "commit"],
        ),
        (
            "INSERT INTO t SELECT id + 1000, x FROM t WHERE id > 25",
            ["WriteSerializable", "commit"],
        ),
        // Has to remove a file that OPTIMIZE removed.
        ("DELETE FROM t WHERE id > 25", ["Serializable", "lost file"]),
        (
            "DELETE FROM t WHERE id > 25",
            ["WriteSerializable", "lost file"],
        ),
    ];
    for (text, [level, expected]) in cases {
        let table = Table::numbers(3, 10, &at(level)).await;
        let loser = table.plan(text).await;
        table.run("INSERT INTO t VALUES (0, 7), (1, 7)").await;
        optimize(&table).await;
        let expected = match expected {
            "abort" => APPEND,
            "lost file" => DELETE_DELETE,
            _ => None,
        };
        assert_eq!(outcome(loser).await, expected, "{level}: {text}");
    }
}

#[tokio::test]
async fn whole_table_delete_against_an_insert_only_merge_aborts() {
    for level in LEVELS {
        for text in [
            "DELETE FROM t",
            "INSERT OVERWRITE t VALUES (9, 9)",
            "TRUNCATE TABLE t",
        ] {
            let table = Table::numbers(2, 10, &at(level)).await;
            let loser = table.plan(text).await;
            let source = table
                .ctx
                .sql("SELECT * FROM (VALUES (1, 1), (5000, 5000)) AS s (id, x)")
                .await
                .expect("source");
            table
                .deltalake()
                .await
                .merge(source, "s.id = t.id")
                .with_source_alias("s")
                .with_target_alias("t")
                .when_not_matched_insert(|insert| insert.set("id", "s.id").set("x", "s.x"))
                .expect("clause")
                .await
                .expect("merge");
            assert_eq!(outcome(loser).await, APPEND, "{level}: {text}");
            assert_eq!(
                table.rows("SELECT count(*), max(id) FROM t").await,
                ["21|5000"]
            );
        }
    }
}

#[tokio::test]
async fn plain_insert_against_any_deltalake_commit_commits() {
    for level in LEVELS {
        for (winner, rows) in [
            ("delete", "20"),
            ("delete some", "25"),
            ("update", "30"),
            ("append", "31"),
        ] {
            let table = Table::numbers(3, 10, &at(level)).await;
            let loser = table.plan("INSERT INTO t VALUES (500, 500)").await;
            let deltalake = table.deltalake().await;
            match winner {
                "delete" => {
                    deltalake
                        .delete()
                        .with_predicate("id < 10")
                        .await
                        .expect("delete");
                }
                "delete some" => {
                    deltalake
                        .delete()
                        .with_predicate("id < 5")
                        .await
                        .expect("delete");
                }
                "update" => {
                    deltalake
                        .update()
                        .with_update("x", "x + 1")
                        .await
                        .expect("update");
                }
                _ => deltalake_append(&table, "SELECT id + 100 AS id, x FROM t LIMIT 1").await,
            }
            assert_eq!(loser.count().await, 1, "{level}, {winner}");
            assert_eq!(
                table.rows("SELECT count(*) FROM t WHERE id <> 500").await,
                [rows],
                "{level}, {winner}"
            );
            assert_eq!(
                table.rows("SELECT count(*) FROM t WHERE id = 500").await,
                ["1"]
            );
        }
    }
}

#[tokio::test]
async fn disjoint_deltalake_changes_commit_both_and_overlapping_ones_abort() {
    let losers = [
        "DELETE FROM t WHERE id BETWEEN 0 AND 5",
        "UPDATE t SET x = -1 WHERE id BETWEEN 0 AND 5",
        "INSERT INTO t SELECT id + 5000, x FROM t WHERE id BETWEEN 0 AND 5",
    ];
    let winners = [
        "update far",
        "delete far",
        "append far",
        "update near",
        "delete near",
        "append near",
    ];
    for text in losers {
        for winner in winners {
            let near = winner.ends_with("near");
            let level = hard(near);
            let table = Table::numbers(3, 10, &at(level)).await;
            let loser = table.plan(text).await;
            let deltalake = table.deltalake().await;
            let predicate = if near { "id = 3" } else { "id = 25" };
            match winner.split(' ').next() {
                Some("update") => {
                    let update = deltalake.update().with_predicate(predicate);
                    update.with_update("x", "x + 1").await.expect("update");
                }
                Some("delete") => {
                    deltalake
                        .delete()
                        .with_predicate(predicate)
                        .await
                        .expect("delete");
                }
                _ => {
                    let id = if near { 3 } else { 25 };
                    deltalake_append(&table, &format!("SELECT id, x FROM t WHERE id = {id}")).await;
                }
            }
            let version = table.version().await;
            let found = outcome(loser).await;
            assert_eq!(
                found.is_some(),
                near,
                "{level}: {text} against {winner}: {found:?}"
            );
            let after = table.version().await;
            assert_eq!(
                after,
                version + u64::from(!near),
                "{level}: {text}, {winner}"
            );
        }
    }
}

#[tokio::test]
async fn delete_above_a_bound_finds_nan_in_the_table_and_in_a_winner() {
    for level in LEVELS {
        let table = Table::create("id BIGINT, f DOUBLE", &at(level), &["VALUES (1, 1.0)"]).await;
        deltalake_append(
            &table,
            "SELECT 2::BIGINT AS id, 1.0::DOUBLE AS f UNION ALL SELECT 3::BIGINT, 'NaN'::DOUBLE",
        )
        .await;
        assert_eq!(table.count("DELETE FROM t WHERE f > 5.0").await, 1);
        assert_eq!(table.rows("SELECT id FROM t ORDER BY id").await, ["1", "2"]);

        // The rows of the winner, a condition, the conflict.
        let nan = "SELECT 7::BIGINT AS id, 'NaN'::DOUBLE AS f UNION ALL SELECT 8::BIGINT, 1.0";
        let zero = "SELECT 7::BIGINT AS id, 0.0::DOUBLE AS f";
        let plain = "SELECT 7::BIGINT AS id, 1.0::DOUBLE AS f UNION ALL SELECT 8::BIGINT, 2.0";
        let cases = [
            (nan, "f > 5.0", APPEND),
            (nan, "f >= 5.0", APPEND),
            (nan, "f <> 1.0", APPEND),
            (nan, "f IS DISTINCT FROM 1.0", APPEND),
            (nan, "NOT (f <= 5.0)", APPEND),
            (nan, "f > 5.0 AND f < 90.0", None),
            (nan, "f = 10.0", None),
            (nan, "f IN (10.0, 11.0)", None),
            (zero, "f <= -0.0 OR f = 10.0", APPEND),
            (plain, "f > 5.0 AND f < 90.0", None),
            (plain, "f = 10.0", None),
        ];
        for (rows, condition, expected) in cases {
            let table =
                Table::create("id BIGINT, f DOUBLE", &at(level), &["VALUES (1, 10.0)"]).await;
            let loser = table
                .plan(&format!("DELETE FROM t WHERE {condition}"))
                .await;
            deltalake_append(&table, rows).await;
            assert_eq!(
                outcome(loser).await,
                expected,
                "{level}: {condition} against {rows}"
            );
        }
    }
}

/// deltalake cuts the bounds of timestamps down to milliseconds.
#[tokio::test]
async fn timestamp_above_the_cut_bound_aborts() {
    let cases = [
        ("ts > '2024-05-01T00:00:00.000500Z'", APPEND),
        ("ts = '2024-05-01T00:00:00.000999Z'", APPEND),
        ("ts >= '2024-05-01T00:00:00.000999Z'", APPEND),
        ("ts > '2024-05-01T00:00:00.002Z'", None),
        ("ts < '2024-05-01T00:00:00.000Z'", None),
    ];
    for level in LEVELS {
        for (condition, expected) in cases {
            let table = Table::create(
                "id BIGINT, ts TIMESTAMP WITH TIME ZONE",
                &at(level),
                &[
                    "VALUES (1, '2025-01-01T00:00:00Z')",
                    "VALUES (2, '2024-05-01T00:00:00.000999Z')",
                    "VALUES (3, '2020-01-01T00:00:00Z')",
                ],
            )
            .await;
            let loser = table
                .plan(&format!("DELETE FROM t WHERE {condition}"))
                .await;
            deltalake_append(&table, "SELECT id + 10 AS id, ts FROM t WHERE id = 2").await;
            assert_eq!(outcome(loser).await, expected, "{level}: {condition}");
        }
    }
}

/// deltalake writes the bounds of decimals through a double.
#[tokio::test]
async fn decimal_above_the_rounded_bound_aborts() {
    let cases = [
        ("DECIMAL(38, 19)", "d > 0.1", APPEND),
        ("DECIMAL(38, 19)", "d = 0.100000000000000001", APPEND),
        ("DECIMAL(38, 19)", "d > 0.1000000000000000005", APPEND),
        // A double holds 15 digits: up to there the bounds are exact.
        ("DECIMAL(15, 2)", "d > 7", None),
        ("DECIMAL(15, 2)", "d > 0.09", APPEND),
        ("DECIMAL(15, 2)", "d > 0.10", None),
    ];
    for level in LEVELS {
        for (data_type, condition, expected) in cases {
            let table = Table::create(
                &format!("id BIGINT, d {data_type}"),
                &at(level),
                &[
                    "VALUES (1, 8)",
                    "VALUES (2, 0.100000000000000001)",
                    "VALUES (3, 0.100000000000000001)",
                ],
            )
            .await;
            let loser = table
                .plan(&format!("DELETE FROM t WHERE {condition}"))
                .await;
            deltalake_append(&table, "SELECT id + 10 AS id, d FROM t WHERE id = 2").await;
            let name = format!("{level}: {condition} of a {data_type}");
            assert_eq!(outcome(loser).await, expected, "{name}");
        }
    }
}

/// Bounds of long strings are prefixes.
#[tokio::test]
async fn string_beyond_the_cut_bound_aborts() {
    let long = "a".repeat(60);
    let cases = [
        (format!("s > '{long}'"), APPEND),
        (format!("s = '{long}b'"), APPEND),
        (format!("s > '{}'", "a".repeat(40)), APPEND),
        ("s > 'b'".to_owned(), None),
        ("s < 'A'".to_owned(), None),
        ("s LIKE 'b%'".to_owned(), None),
        ("s LIKE 'aaa%'".to_owned(), APPEND),
    ];
    for level in LEVELS {
        for (condition, expected) in &cases {
            let table = Table::create(
                "id BIGINT, s STRING",
                &at(level),
                &[
                    "VALUES (1, 'bb'), (2, 'A'), (3, '0')",
                    &format!("VALUES (4, '{long}b')"),
                ],
            )
            .await;
            let loser = table
                .plan(&format!("DELETE FROM t WHERE {condition}"))
                .await;
            deltalake_append(&table, "SELECT id + 10 AS id, s FROM t WHERE id = 4").await;
            assert_eq!(outcome(loser).await, *expected, "{level}: {condition}");
        }
    }
}

#[tokio::test]
async fn column_that_deltalake_adds_aborts_and_the_next_run_sees_it() {
    use deltalake::kernel::{DataType, PrimitiveType, StructField};
    for text in [
        "INSERT INTO t VALUES (500, 500)",
        "DELETE FROM t WHERE id = 1",
    ] {
        let table = Table::numbers(2, 10, "").await;
        let loser = table.plan(text).await;
        table
            .deltalake()
            .await
            .add_columns()
            .with_fields([StructField::new(
                "y",
                DataType::Primitive(PrimitiveType::Long),
                true,
            )])
            .await
            .expect("add a column");
        assert_eq!(
            outcome(loser).await,
            Some(ConflictKind::MetadataChanged),
            "{text}"
        );
        table.run("UPDATE t SET y = 7 WHERE id = 3").await;
        assert_eq!(
            table
                .rows("SELECT id, x, y FROM t WHERE id IN (3, 4) ORDER BY id")
                .await,
            ["3|3|7", "4|4|NULL"]
        );
    }
}

#[tokio::test]
async fn deltalake_reads_what_both_writers_left() {
    for level in LEVELS {
        let table = Table::numbers(4, 25, &at(level)).await;
        let losers = [
            table.plan("DELETE FROM t WHERE id < 10").await,
            table
                .plan("UPDATE t SET x = -1 WHERE id BETWEEN 30 AND 34")
                .await,
            table
                .plan("INSERT INTO t SELECT id + 1000, x FROM t WHERE id >= 90")
                .await,
            table.plan("INSERT INTO t VALUES (5000, NULL)").await,
        ];
        for loser in losers {
            loser.count().await;
        }
        table
            .deltalake()
            .await
            .update()
            .with_predicate("id = 60")
            .with_update("x", "-2")
            .await
            .expect("update");
        table.run("DELETE FROM t WHERE x = -2").await;
        for query in [
            "SELECT count(*), count(x), sum(id), sum(x), min(id), max(id) FROM t",
            "SELECT id, x FROM t ORDER BY id",
            "SELECT count(*) FROM t WHERE x = -1",
        ] {
            let ours = table.rows(query).await;
            let theirs = deltalake_rows(&table.deltalake().await, query).await;
            assert_eq!(ours, theirs, "{level}: {query}");
        }
        assert_eq!(
            table.rows("SELECT count(*), sum(id) FROM t").await,
            ["100|20790"]
        );
    }
}
