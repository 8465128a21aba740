//! What users of other engines met when two writers changed one table, or when a change read the
//! table that it changes; each report as a test with the right answer.
//!
//! Reports about statistics have a place of their own.

use delta_disjoint::ErrorKind;
use delta_disjoint::commit::ConflictKind;

use crate::support::{Planned, Table, conflict_of, kind_of};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

/// `t (id BIGINT, x BIGINT)`: ids 0 to 9 in one file, 100 to 109 in another.
async fn two_files(level: &str) -> Table {
    let ids = |first: i64| {
        format!(
            "SELECT value AS id, value AS x FROM generate_series({first}, {})",
            first + 9
        )
    };
    Table::create(
        "id BIGINT, x BIGINT",
        &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
        &[&ids(0), &ids(100)],
    )
    .await
}

async fn contents(table: &Table) -> Vec<String> {
    table.rows("SELECT id, x FROM t ORDER BY id, x").await
}

async fn outcome(statement: Planned) -> Option<ConflictKind> {
    statement.run().await.err().map(|error| conflict_of(&error))
}

/// A statement that scans its target twice reads one version, and each scan counts (hive
/// HIVE-28987).
#[tokio::test]
async fn statement_that_scans_its_target_twice_minds_what_either_scan_read() {
    // Each finds ids below 5 by a second look at ids from 105 on.
    let statements = [
        "INSERT INTO t SELECT a.id + 1000, b.x FROM t a JOIN t b ON a.id + 100 = b.id \
         WHERE a.id < 5 AND b.id >= 100 AND b.id < 105",
        "INSERT INTO t SELECT id + 1000, x FROM t WHERE id < 5 AND id + 100 IN \
         (SELECT id FROM t WHERE id >= 100 AND id < 105)",
        "DELETE FROM t WHERE id < 5 AND EXISTS \
         (SELECT 1 FROM t b WHERE b.id = t.id + 100 AND b.id >= 100 AND b.id < 105)",
        "UPDATE t SET x = (SELECT max(b.x) FROM t b WHERE b.id >= 100 AND b.id < 105) WHERE id < 5",
    ];
    // The winner, and whether it meets one of the scans.
    let winners = [
        ("INSERT INTO t SELECT 3, x FROM t WHERE id = 100", true),
        ("INSERT INTO t SELECT 103, x FROM t WHERE id = 100", true),
        ("UPDATE t SET x = 1000 WHERE id = 102", true),
        ("DELETE FROM t WHERE id = 2", true),
        ("INSERT INTO t SELECT 500, x FROM t WHERE id = 100", false),
    ];
    for level in LEVELS {
        let template = two_files(level).await;
        for statement in statements {
            let alone = template.copy().await;
            alone.run(statement).await;
            let alone = contents(&alone).await;
            for (winner, meets) in winners {
                let table = template.copy().await;
                let planned = table.plan(statement).await;
                table.run(winner).await;
                let after_winner = contents(&table).await;
                let conflict = outcome(planned).await;
                assert_eq!(conflict.is_some(), meets, "{level}, {statement}, {winner}");
                let rows = contents(&table).await;
                if meets {
                    assert_eq!(rows, after_winner, "{level}, {statement}, {winner}");
                } else {
                    let own: Vec<_> = rows.into_iter().filter(|row| row != "500|100").collect();
                    assert_eq!(own, alone, "{level}, {statement}, {winner}");
                }
            }
        }
    }
}

/// A DELETE that finds nothing and the INSERT after it: nothing is lost, doubled or held up (ducklake
/// #1394).
#[tokio::test]
async fn insert_after_a_delete_of_no_rows_is_there_once() {
    for level in LEVELS {
        let table = two_files(level).await;
        let version = table.version().await;
        assert_eq!(table.count("DELETE FROM t WHERE id = 50").await, 0);
        assert_eq!(table.version().await, version);
        assert_eq!(table.count("INSERT INTO t VALUES (50, 50)").await, 1);
        // Both at one version, and another writer in between.
        let delete = table.plan("DELETE FROM t WHERE id = 60").await;
        let insert = table.plan("INSERT INTO t VALUES (60, 60)").await;
        table.run("UPDATE t SET x = 0 WHERE id = 50").await;
        assert_eq!(delete.count().await, 0);
        assert_eq!(insert.count().await, 1);
        assert_eq!(
            table
                .rows("SELECT id, x FROM t WHERE id BETWEEN 50 AND 60 ORDER BY id")
                .await,
            ["50|0", "60|60"],
            "{level}"
        );
        assert_eq!(table.count("DELETE FROM t WHERE id = 60").await, 1);
    }
}

/// Two that take rows of one file: whichever way each of them goes about it, the second must not
/// bring rows back or take them twice (delta #7163).
#[tokio::test]
async fn changes_of_one_file_never_both_commit() {
    // Those that rewrite the file of ids 0 to 9, and those after which nothing of it is left.
    let changes = [
        "DELETE FROM t WHERE id = 3",
        "DELETE FROM t WHERE id >= 7 AND id < 10",
        "UPDATE t SET x = -1 WHERE id = 5",
        "UPDATE t SET id = id + 1000 WHERE id < 10",
        "DELETE FROM t WHERE id < 10",
        "DELETE FROM t WHERE id < 10 OR id >= 100",
        "TRUNCATE TABLE t",
        "INSERT OVERWRITE t VALUES (1, 1)",
    ];
    let templates = [two_files(LEVELS[0]).await, two_files(LEVELS[1]).await];
    for (place, first) in changes.into_iter().enumerate() {
        for (other, second) in changes.into_iter().enumerate() {
            // No append is blind here, so that the levels say the same; each has its share.
            let (level, template) = (LEVELS[(place + other) % 2], &templates[(place + other) % 2]);
            let table = template.copy().await;
            let loser = table.plan(second).await;
            table.run(first).await;
            let rows = contents(&table).await;
            assert!(
                outcome(loser).await.is_some(),
                "{level}: {first}, then {second}"
            );
            assert_eq!(
                contents(&table).await,
                rows,
                "{level}: {first}, then {second}"
            );
            // Run again, it does what it says.
            table.run(second).await;
        }
    }
}

/// A predicate on a column of any type is checked against a winner: both commit or there is a
/// conflict, and never an error of the check itself (delta-rs #2980, #4478).
#[tokio::test]
async fn predicate_of_every_type_is_checked_against_a_winner() {
    // Type, a value that is there, one that is not, and whether statistics can tell.
    let types = [
        ("BOOLEAN", "true", "false", false),
        ("TINYINT", "1", "100", true),
        ("SMALLINT", "1", "100", true),
        ("INT", "1", "100", true),
        ("BIGINT", "1", "9007199254740993", true),
        ("FLOAT", "1.5", "100.5", true),
        ("DOUBLE", "1.5", "100.5", true),
        ("DECIMAL(10, 2)", "1.25", "100.25", true),
        (
            "DECIMAL(38, 10)",
            "1.25",
            "9999999999999999999999999999.0000000001",
            true,
        ),
        ("VARCHAR", "'it''s'", "'zoë \"quoted\" \\'", true),
        ("BYTEA", "X'00ff'", "X'ff'", false),
        ("DATE", "DATE '1969-12-31'", "DATE '2024-02-29'", true),
        (
            "TIMESTAMP",
            "TIMESTAMP '1969-12-31T23:59:59.999999'",
            "TIMESTAMP '2024-02-29T12:00:00'",
            true,
        ),
        (
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMP '1969-12-31T23:59:59.999999Z'",
            "TIMESTAMP '2024-02-29T12:00:00Z'",
            true,
        ),
        (
            "STRUCT<a BIGINT>",
            "named_struct('a', 1)",
            "named_struct('a', 100)",
            false,
        ),
        ("BIGINT[]", "[1, NULL]", "[100]", false),
    ];
    for (name, here, there, told) in types {
        let table = Table::create(
            &format!("id BIGINT, c {name}"),
            "OPTIONS ('delta.isolationLevel' 'Serializable')",
            &[&format!("VALUES (1, {here}), (2, NULL)")],
        )
        .await;
        let (typed, other) = (typed(here, name), typed(there, name));
        let conditions = [
            format!("c = {typed}"),
            format!("c IN ({typed}, {typed})"),
            format!("c IS NOT DISTINCT FROM {typed}"),
            format!("NOT (c <> {typed})"),
            format!("CASE WHEN c = {typed} THEN true ELSE false END"),
            format!("c = {typed} AND id < 10"),
            format!("c BETWEEN {typed} AND {typed}"),
        ];
        for condition in conditions {
            let plain = condition == format!("c = {typed}");
            // Far away, which only the plainest condition needs to tell, and in the way.
            for (value, meets) in [(&other, false), (&typed, true)] {
                if !meets && !plain {
                    continue;
                }
                let table = table.copy().await;
                let planned = table
                    .plan(&format!("DELETE FROM t WHERE {condition}"))
                    .await;
                table
                    .run(&format!("INSERT INTO t VALUES (3, {value})"))
                    .await;
                let case = format!("{name}: {condition} against {value}");
                let rows = match planned.run().await {
                    Ok(_) => {
                        assert!(!meets, "{case} committed");
                        ["2", "3"].as_slice()
                    }
                    Err(error) => {
                        assert_eq!(
                            kind_of(&error),
                            Some(ErrorKind::Conflict),
                            "{case}: {error}"
                        );
                        assert!(meets || !told, "{case} is a needless conflict");
                        ["1", "2", "3"].as_slice()
                    }
                };
                assert_eq!(
                    table.rows("SELECT id FROM t ORDER BY id").await,
                    rows,
                    "{case}"
                );
            }
        }
    }
}

/// A literal of a type that SQL has no literals for.
fn typed(value: &str, name: &str) -> String {
    match name {
        "STRUCT<a BIGINT>" | "BIGINT[]" | "BYTEA" | "VARCHAR" | "DATE" | "TIMESTAMP" => {
            value.to_owned()
        }
        _ => format!("CAST({value} AS {name})"),
    }
}

/// Subqueries, WHERE false, LIMIT and EXPLAIN reach DataFusion's own hooks as "all rows" or as
/// nothing at all (datafusion #24654, #24998, #24656).
#[tokio::test]
async fn change_with_a_subquery_takes_the_rows_it_says_and_explain_takes_none() {
    // Condition, and the ids it is true for.
    let conditions: [(&str, &str); 6] = [
        ("id IN (SELECT id FROM t WHERE x = 4)", "id = 4"),
        ("id NOT IN (SELECT id FROM t WHERE x > 1)", "id < 2"),
        ("EXISTS (SELECT 1 FROM t b WHERE b.x > 500)", "false"),
        (
            "NOT EXISTS (SELECT 1 FROM t b WHERE b.x = t.x AND b.id < 105)",
            "id >= 105",
        ),
        ("x = (SELECT max(x) FROM t)", "id = 109"),
        ("false", "false"),
    ];
    for level in LEVELS {
        let template = two_files(level).await;
        for (condition, same) in conditions {
            for statement in ["DELETE FROM t", "UPDATE t SET x = -1"] {
                let expected = template.copy().await;
                let same = expected.count(&format!("{statement} WHERE {same}")).await;
                let expected = contents(&expected).await;
                let table = template.copy().await;
                let (log, files) = (table.log(), table.files_on_disk());
                for explain in ["EXPLAIN", "EXPLAIN VERBOSE"] {
                    table
                        .run(&format!("{explain} {statement} WHERE {condition}"))
                        .await;
                    table
                        .refused(&format!("{statement} WHERE {condition} LIMIT 1"))
                        .await;
                }
                assert_eq!((table.log(), table.files_on_disk()), (log, files));
                let count = table.count(&format!("{statement} WHERE {condition}")).await;
                assert_eq!(count, same, "{statement} WHERE {condition}");
                assert_eq!(contents(&table).await, expected, "{condition}");
            }
        }
    }
}

/// An unknown `IN (SELECT …)` counts as false where it is no conjunct by itself (datafusion #21309)
/// and where a `NOT IN` is correlated (#25347): below NOT, such a change would take rows that it
/// must not.
#[tokio::test]
async fn change_by_an_in_that_may_be_unknown_is_refused_where_it_would_be_mistaken() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "",
        &["VALUES (1, 1), (2, NULL)", "VALUES (3, 3)"],
    )
    .await;
    let mistaken = [
        "id = 1 OR x NOT IN (SELECT x FROM t WHERE id <> 3)",
        "NOT (id > 0 AND x IN (SELECT x FROM t WHERE id = 2))",
        "(x IN (SELECT x FROM t WHERE id = 2)) IS NULL",
        "(x IN (SELECT x FROM t WHERE id = 2)) IS NOT TRUE",
        "CASE WHEN x IN (SELECT x FROM t WHERE id = 2) THEN false ELSE true END",
        "x NOT IN (SELECT b.x FROM t b WHERE b.id = t.id - 1)",
        "NOT x IN (SELECT b.x FROM t b WHERE b.id = t.id - 1)",
        "id IN (SELECT id FROM t b WHERE b.id = 1 OR b.x NOT IN (SELECT x FROM t))",
    ];
    for condition in mistaken {
        for statement in ["DELETE FROM t", "UPDATE t SET x = 0"] {
            let error = table
                .refused(&format!("{statement} WHERE {condition}"))
                .await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{condition}");
            assert!(error.to_string().contains("EXISTS"), "{error}");
        }
    }
    // The reproduction: when it fails, DataFusion can do without this guard.
    assert_eq!(
        table
            .rows("SELECT id FROM t WHERE id = 3 OR x NOT IN (SELECT x FROM t WHERE id = 2)")
            .await
            .len(),
        3,
        "unknown counts as false"
    );
    // What stands by itself, is not negated or cannot be unknown is as SQL has it.
    let right: [(&str, &[&str]); 6] = [
        ("x NOT IN (SELECT x FROM t)", &[]),
        ("x NOT IN (SELECT x FROM t WHERE id = 3)", &["1"]),
        ("NOT (x IN (SELECT x FROM t WHERE id = 3))", &["1"]),
        ("id = 2 OR x IN (SELECT x FROM t WHERE id < 3)", &["1", "2"]),
        ("id > 1 AND (x IN (SELECT x FROM t) OR id = 2)", &["2", "3"]),
        (
            "NOT EXISTS (SELECT 1 FROM t b WHERE b.x = t.x AND b.id < 3)",
            &["2", "3"],
        ),
    ];
    for (condition, ids) in right {
        let copy = Table::open(table.copy_folder()).await.expect("opens");
        let deleted = copy
            .count(&format!("DELETE FROM t WHERE {condition}"))
            .await;
        assert_eq!(deleted, ids.len() as u64, "{condition}");
        let left = copy.rows("SELECT id FROM t ORDER BY id").await;
        assert!(
            ids.iter().all(|id| !left.contains(&(*id).to_owned())),
            "{condition}: {left:?}"
        );
    }
}
