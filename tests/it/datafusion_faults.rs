//! Conditions that DataFusion's planner and simplifier take for others, and the rows that a change takes
//! all the same: those that SQL says.

use datafusion::prelude::SessionContext;
use delta_disjoint::ErrorKind;

use crate::support::{Table, count, kind_of, rows, run};

/// DataFusion joins two `IN` lists for one value without a thought for NULL (datafusion #24258): found by
/// the history law, seed 8959 of transactions.
#[tokio::test]
async fn in_lists_keep_to_three_valued_logic() {
    // Conditions over x, and the ids whose x satisfies them; x is id, and NULL where id is 0.
    let cases: [(&str, &[i64]); 33] = [
        ("x IN (1, 2) AND x NOT IN (4, NULL)", &[]),
        ("x NOT IN (4, NULL, 3) AND x IN (1, 2, 1)", &[]),
        (
            "x IN (1, 2, 3, 4) AND NOT (x IN (4, CAST(NULL AS BIGINT), 3, 9))",
            &[],
        ),
        ("x IN (1, 2, 3, 4) AND x NOT IN (4, 5, 6, 7)", &[1, 2, 3]),
        ("x NOT IN (1, NULL) OR x NOT IN (2, NULL)", &[]),
        ("x NOT IN (1, 2) OR x NOT IN (3, 4)", &[1, 2, 3, 4]),
        (
            "NOT (x IN (1, 2, 7, 8) AND x IN (3, 4, 5, 6))",
            &[1, 2, 3, 4],
        ),
        ("x NOT IN (1, 2, 7, 8) OR x NOT IN (2, 4, 5, 6)", &[1, 3, 4]),
        ("(x IN (1, 2) AND x IN (3, 4)) IS NULL", &[0]),
        (
            "(x IN (1, 2, 7, 8) AND x NOT IN (1, 2, 7, 8)) IS NULL",
            &[0],
        ),
        ("(x NOT IN (1, 2) OR x NOT IN (3, 4)) IS NOT TRUE", &[0]),
        ("NOT ((x IN (1, 2) AND x IN (3, 4)) IS NULL)", &[1, 2, 3, 4]),
        (
            "CASE WHEN x NOT IN (1, 2) OR x NOT IN (3, 4) THEN false ELSE true END",
            &[0],
        ),
        ("x IN (1, id) AND x NOT IN (2, id)", &[]),
        ("x IN (1, 2, NULL) AND x IN (2, 3, NULL)", &[2]),
        ("x IN (1, 2) OR x IN (2, 3, NULL)", &[1, 2, 3]),
        ("x NOT IN (1, 2) AND x NOT IN (2, 3)", &[4]),
        ("x + 1 IN (2, 3) AND x + 1 NOT IN (9, NULL)", &[]),
        ("NOT (x NOT IN (1, 2) OR x NOT IN (2, 3))", &[2]),
        // Equalities become lists.
        ("NOT ((x = 1 OR x = 2) AND (x = 3 OR x = 4))", &[1, 2, 3, 4]),
        (
            "NOT (x = 1 OR x = 2) OR NOT (x = 3 OR x = 4)",
            &[1, 2, 3, 4],
        ),
        ("((x = 1 OR x = 2) AND x NOT IN (1, 2, 3, 4)) IS NULL", &[0]),
        (
            "(x IN (1 + 1, 2 + 1) AND x IN (3 + 1, 4 + 1)) IS NULL",
            &[0],
        ),
        (
            "(NOT (x <> 1 AND x <> 2) AND NOT (x <> 3 AND x <> 4)) IS NULL",
            &[0],
        ),
        // So do values that differ only until they are simplified.
        (
            "x NOT IN (1, 2, 3, 4) OR x * 1 NOT IN (5, 6, 7, 8)",
            &[1, 2, 3, 4],
        ),
        (
            "x NOT IN (1, 2, 3, 4) OR CAST(x AS BIGINT) NOT IN (5, 6, 7, 8)",
            &[1, 2, 3, 4],
        ),
        (
            "(x IN (1, 2, 3, 4)) NOT IN (true) OR (x IN (1, 2, 3, 4)) NOT IN (false)",
            &[1, 2, 3, 4],
        ),
        // Terms that are simplified by themselves.
        ("NOT (CAST(x AS VARCHAR) ~ '.*')", &[]),
        ("(CAST(x AS VARCHAR) ~ '.*') IS NULL", &[0]),
        ("x ^ x = 0", &[1, 2, 3, 4]),
        ("(x ^ id ^ x) = id", &[1, 2, 3, 4]),
        // Lists that stand beside each other only when subqueries are merged.
        (
            "id IN (SELECT id FROM (SELECT id, x NOT IN (1, 2, 3, 4) AS a, x NOT IN (5, 6, 7, 8) AS b \
             FROM t) WHERE a OR b)",
            &[1, 2, 3, 4],
        ),
        (
            "id IN (SELECT id FROM (SELECT * FROM t WHERE x NOT IN (4, 5, 6, NULL)) WHERE x IN (1, 2, 3, 7))",
            &[],
        ),
    ];
    let start = Table::create(
        "id BIGINT, x BIGINT",
        "",
        &["VALUES (0, NULL), (1, 1), (2, 2)", "VALUES (3, 3), (4, 4)"],
    )
    .await;
    for (condition, matching) in cases {
        let matching: Vec<String> = matching.iter().map(i64::to_string).collect();
        let select = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        let table = start.copy().await;
        assert_eq!(table.rows(&select).await, matching, "{condition}");

        let deleted = count(&table.run(&format!("DELETE FROM t WHERE {condition}")).await);
        assert_eq!(deleted, matching.len() as u64, "DELETE, {condition}");

        let table = start.copy().await;
        table
            .run(&format!("PREPARE d AS DELETE FROM t WHERE {condition}"))
            .await;
        let prepared = count(&table.run("EXECUTE d").await);
        table.run("DEALLOCATE d").await;
        assert_eq!(prepared, matching.len() as u64, "PREPARE, {condition}");

        if condition.contains("SELECT") {
            continue;
        }
        let table = start.copy().await;
        let merge = format!(
            "MERGE INTO t USING (VALUES (1)) AS s (n) ON {condition} WHEN MATCHED THEN DELETE"
        );
        let merged = count(&table.run(&merge).await);
        assert_eq!(merged, matching.len() as u64, "MERGE, {condition}");

        let table = start.copy().await;
        let update = format!("UPDATE t SET x = CASE WHEN ({condition}) THEN 100 ELSE 0 END");
        table.run(&update).await;
        let updated = table
            .rows("SELECT id FROM t WHERE x = 100 ORDER BY id")
            .await;
        assert_eq!(updated, matching, "SET, {condition}");
    }

    // Sets of groups go by no name.
    let sets = "SELECT x IN (1, 2) AS k, count(*) FROM t \
                GROUP BY ROLLUP (x IN (1, 2) AND x NOT IN (2, NULL)) ORDER BY 1, 2";
    let sets = sets.replace(
        "x IN (1, 2) AS k",
        "x IN (1, 2) AND x NOT IN (2, NULL) AS k",
    );
    let table = start.copy().await;
    assert_eq!(
        table.rows(&sets).await,
        ["false|3", "NULL|2", "NULL|5"],
        "false for 2, 3 and 4"
    );

    // What DataFusion makes of it by itself. Once it is right, `plan/in_lists.rs` can go.
    let plain = SessionContext::new();
    run(&plain, "CREATE TABLE t AS VALUES (1), (2), (NULL)").await;
    for (condition, mistaken) in [
        (
            "column1 IN (1, 2, 3, 5) AND column1 NOT IN (4, NULL, 6, 7)",
            vec!["1", "2"],
        ),
        (
            "column1 NOT IN (1, 2, 5, 6) OR column1 NOT IN (3, 4, 7, 8)",
            vec!["1", "2", "NULL"],
        ),
    ] {
        let select = format!("SELECT * FROM t WHERE {condition} ORDER BY 1");
        assert_eq!(rows(&plain, &select).await, mistaken, "{condition}");
    }
}

/// DataFusion takes the side of a column for the operator's when it joins bounds, below a node of this
/// crate and wherever a constant is still to be computed.
#[tokio::test]
async fn bounds_with_the_constant_on_the_left_are_kept() {
    let start = Table::create(
        "id BIGINT, x BIGINT, d DATE",
        "",
        &["VALUES (1, 1, DATE '2020-06-01'), (2, 2, DATE '2020-12-31'), (3, 3, NULL)"],
    )
    .await;
    let cases = [
        ("x >= 2 AND 2 < x", 1),
        ("x <= 2 AND 2 > x", 1),
        ("2 <= x AND 2 < x", 1),
        ("2 >= x AND 1 + 1 > x", 1),
        (
            "d BETWEEN DATE '2020-01-01' AND DATE '2020-12-31' AND DATE '2020-12-31' > d",
            1,
        ),
        ("d = DATE '2020-12-31' AND DATE '2020-12-31' = d", 1),
    ];
    for (condition, matching) in cases {
        for statement in ["", "PREPARE d AS "] {
            let table = start.copy().await;
            let delete = format!("{statement}DELETE FROM t WHERE {condition}");
            let mut deleted = table.run(&delete).await;
            if !statement.is_empty() {
                deleted = table.run("EXECUTE d").await;
                table.run("DEALLOCATE d").await;
            }
            assert_eq!(count(&deleted), matching, "{delete}");
        }
        let table = start.copy().await;
        let merge = format!(
            "MERGE INTO t USING (VALUES (1)) AS s (n) ON {condition} WHEN MATCHED THEN DELETE"
        );
        assert_eq!(count(&table.run(&merge).await), matching, "{merge}");
        let inserted = table
            .run(&format!(
                "INSERT INTO t SELECT x + 100, x, d FROM t WHERE {condition}"
            ))
            .await;
        assert_eq!(count(&inserted), 0, "{condition}: they are gone");
    }
}

/// Subqueries whose rows DataFusion counts otherwise when it makes joins of them.
#[tokio::test]
async fn subqueries_with_a_row_in_any_case_are_refused_or_right() {
    let table = Table::create(
        "id BIGINT, x BIGINT NOT NULL",
        "",
        &["VALUES (1, 1), (2, 2)"],
    )
    .await;
    for condition in [
        "NOT EXISTS (SELECT max(u.x) FROM t AS u WHERE u.x = t.x + 100)",
        "EXISTS (SELECT count(*) FROM t AS u WHERE u.x = t.x + 100)",
        "EXISTS (SELECT 1 FROM t AS u WHERE u.x >= t.x OFFSET 5)",
        "0 IN (SELECT count(*) FROM t AS u WHERE u.x = t.x + 100)",
        "(SELECT count(*) FROM t AS u WHERE u.x = t.x + 100 HAVING count(*) > 0) IS NULL",
        "7 NOT IN (SELECT u.id FROM t AS u)",
        "NOT (7 IN (SELECT u.id FROM t AS u))",
        "NOT EXISTS (SELECT 1 FROM (SELECT count(*) AS c FROM t AS u WHERE u.x = t.x + 100) AS q \
         WHERE q.c = 0)",
        "EXISTS (SELECT 1 FROM (SELECT u.x FROM t AS u WHERE u.x >= t.x OFFSET 1) AS q WHERE q.x > 0)",
        "id IN (SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id \
         AND (b.id NOT IN (SELECT c.id FROM t AS c) OR b.id = 9))",
    ] {
        for statement in [
            format!("DELETE FROM t WHERE {condition}"),
            format!("UPDATE t SET x = 0 WHERE {condition}"),
            format!("INSERT INTO t SELECT id, x FROM t WHERE {condition}"),
        ] {
            let error = table.refused(&statement).await;
            assert_eq!(
                kind_of(&error),
                Some(ErrorKind::Unsupported),
                "{statement}: {error}"
            );
        }
    }
    // One that finds nothing is NULL, also over a column that is never NULL.
    for condition in [
        "(SELECT u.x FROM t AS u WHERE u.id = 99) IS NOT NULL",
        "(1 = (SELECT u.x FROM t AS u WHERE u.id = 99)) IS NOT NULL",
        "NOT ((SELECT u.x FROM t AS u WHERE u.id = 99) IN (1, 2, 3, 4) \
         AND (SELECT u.x FROM t AS u WHERE u.id = 99) IN (5, 6, 7, 8))",
    ] {
        let delete = format!("DELETE FROM t WHERE {condition}");
        assert_eq!(count(&table.run(&delete).await), 0, "{condition}");
        table.run(&format!("PREPARE d AS {delete}")).await;
        assert_eq!(
            count(&table.run("EXECUTE d").await),
            0,
            "PREPARE, {condition}"
        );
        table.run("DEALLOCATE d").await;
    }
    // Prepared, a MERGE has conditions over its target, which is no input of it.
    let merge = "MERGE INTO t USING (VALUES (1, 1)) AS s (k, n) ON t.id = s.k AND t.x = 1 \
                 WHEN MATCHED AND s.n = 1 AND t.x = 7 THEN DELETE";
    table.run(&format!("PREPARE m AS {merge}")).await;
    assert_eq!(count(&table.run("EXECUTE m").await), 0);
    let exists = "NOT EXISTS (SELECT max(u.x) FROM t AS u WHERE u.x = t.x + 100)";
    let error = table
        .refused(&format!("PREPARE d AS DELETE FROM t WHERE {exists}"))
        .await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
    let update = "UPDATE t SET id = (SELECT u.x FROM t AS u WHERE u.id = 99) * 0 WHERE id = 1";
    assert_eq!(count(&table.run(update).await), 1);
    let coalesced = "UPDATE t SET x = coalesce((SELECT u.x FROM t AS u WHERE u.id = 99), x + 10)";
    assert_eq!(count(&table.run(coalesced).await), 2);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY x").await,
        ["NULL|11", "2|12"]
    );
}

/// DataFusion compares what is under a cast, and takes a minus for a bitwise NOT.
#[tokio::test]
async fn casts_and_minus_mean_what_they_say() {
    let start = Table::create(
        "x BIGINT NOT NULL, m DECIMAL(12, 4)",
        "",
        &["VALUES (2, 1.0050), (5, 0.9999), (100000, NULL)"],
    )
    .await;
    let cases = [
        ("CAST(m AS BIGINT) > 1", 0),
        ("CAST(m AS DECIMAL(12, 1)) <> 1.0", 0),
        ("CAST(m AS DECIMAL(12, 1)) = 1.0", 2),
        ("CAST(m AS DECIMAL(12, 1)) IN (1.0, 7.5, 8.5, 9.5)", 2),
        ("TRY_CAST(x AS SMALLINT) <> 5", 1),
        ("TRY_CAST(x AS SMALLINT) IS NULL", 1),
        ("-(x & 3) = -1", 1),
        ("x & (-x) = 0", 0),
    ];
    for (condition, matching) in cases {
        let table = start.copy().await;
        let delete = format!("DELETE FROM t WHERE {condition}");
        assert_eq!(count(&table.run(&delete).await), matching, "{condition}");
        // Filters that are in the scan already.
        let table = start.copy().await;
        let prepare = format!("PREPARE d AS UPDATE t SET x = 0 WHERE {condition}");
        table.run(&prepare).await;
        table.run("EXECUTE d").await;
        table.run("DEALLOCATE d").await;
    }
}

/// `PREPARE` and `EXECUTE` both name the common subexpressions that they find, from 1 on.
#[tokio::test]
async fn prepared_values_are_those_of_their_own_expressions() {
    let table = Table::create(
        "y BIGINT, k SMALLINT, b BOOLEAN, c BOOLEAN",
        "",
        &["VALUES (0, 1, true, true)"],
    )
    .await;
    table
        .run(
            "PREPARE p AS UPDATE t SET y = coalesce(y % 50, 0), b = k <> 2 OR k = 3, c = k = 100000",
        )
        .await;
    table.run("EXECUTE p").await;
    assert_eq!(table.rows("SELECT * FROM t").await, ["0|1|true|false"]);
    table
        .run("PREPARE q AS UPDATE t SET b = k <> 2 OR k = 3, c = k = 100000")
        .await;
    table.run("EXECUTE q").await;
    assert_eq!(table.rows("SELECT * FROM t").await, ["0|1|true|false"]);
}
