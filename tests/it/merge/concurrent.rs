//! MERGE against other writers: what it reads is the keys of its source, and no more.

use delta_disjoint::commit::ConflictKind;

use crate::support::{Table, plan, rows, run, try_run};

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

/// `WHEN MATCHED … UPDATE, WHEN NOT MATCHED … INSERT` of `keys`, a list of numbers.
fn upsert(keys: &str, x: i64) -> String {
    let rows: Vec<String> = keys
        .split(", ")
        .map(|key| format!("({key}, {x})"))
        .collect();
    format!(
        "MERGE INTO t USING (VALUES {}) AS s (id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.x)",
        rows.join(", ")
    )
}

#[tokio::test]
async fn merges_whose_keys_do_not_meet_both_commit() {
    for level in ["Serializable", "WriteSerializable"] {
        let table = Table::numbers(
            4,
            100,
            &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
        )
        .await;
        let first = table.plan(&upsert("5, 50, 4000", -1)).await;
        let second = table.plan(&upsert("105, 150, 5000", -2)).await;
        assert_eq!(first.count().await, 3);
        assert_eq!(second.count().await, 3);
        assert_eq!(
            table
                .rows("SELECT x, count(*), sum(id) FROM t WHERE x < 0 GROUP BY x ORDER BY x")
                .await,
            ["-2|3|5255", "-1|3|4055"]
        );
    }
}

#[tokio::test]
async fn merges_that_insert_the_same_new_key_do_not_both_commit() {
    // Also where they write different partitions, and where ranges stand for the keys.
    for (clauses, limit) in [("", 10_000), ("", 1), ("PARTITIONED BY (x)", 10_000)] {
        let table = Table::numbers(1, 2, &format!("{clauses} {SERIALIZABLE}")).await;
        table
            .run(&format!("SET delta.key_set_limit = {limit}"))
            .await;
        let first = table.plan(&upsert("50, 51", -1)).await;
        let second = table.plan(&upsert("51, 52", -2)).await;
        let third = table.plan(&upsert("53, 54", -3)).await;
        assert_eq!(first.count().await, 2);
        assert_eq!(second.conflict().await, ConflictKind::ConcurrentAppend);
        assert_eq!(third.count().await, 2);
        assert_eq!(
            table
                .rows("SELECT id, x FROM t WHERE id > 9 ORDER BY id")
                .await,
            ["50|-1", "51|-1", "53|-3", "54|-3"]
        );
    }
}

#[tokio::test]
async fn merge_reads_what_its_clauses_can_depend_on() {
    // The loser merges key 5 (in the first file) and 205 (in the third); what the winner does, and
    // whether the loser may still commit.
    let matched = "WHEN MATCHED THEN UPDATE SET x = s.x";
    let small = "WHEN MATCHED AND t.x < 100 THEN UPDATE SET x = s.x";
    let insert = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.x)";
    let rest = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 0";
    let rest_above = "WHEN NOT MATCHED BY SOURCE AND t.id > 390 THEN DELETE";
    let none = None;
    let added = Some(ConflictKind::ConcurrentAppend);
    for (clauses, winner, expected) in [
        (matched, "INSERT INTO t VALUES (1000, 1)", none),
        (matched, "INSERT INTO t VALUES (205, 1)", added),
        (matched, "INSERT INTO t VALUES (6, 1), (204, 1)", none),
        (matched, "UPDATE t SET x = 1 WHERE id = 150", none),
        (matched, "UPDATE t SET x = 1 WHERE id = 7", added),
        (matched, "UPDATE t SET id = 5 WHERE id = 150", added),
        (matched, "DELETE FROM t WHERE id BETWEEN 100 AND 199", none),
        (
            matched,
            "DELETE FROM t WHERE id < 100",
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        // No matched row above 99 can be touched, so what comes there does not matter …
        (small, "INSERT INTO t VALUES (205, 300)", none),
        (small, "INSERT INTO t VALUES (205, 3)", added),
        // … but it does where a match keeps a row from being inserted.
        (
            &format!("{small} {insert}"),
            "INSERT INTO t VALUES (205, 300)",
            added,
        ),
        (insert, "INSERT INTO t VALUES (205, 300)", added),
        (insert, "INSERT INTO t VALUES (206, 300)", none),
        // Rows without a partner are read by their own condition.
        (rest, "INSERT INTO t VALUES (1000, 1)", added),
        (rest_above, "INSERT INTO t VALUES (1000, 1)", added),
        (rest_above, "INSERT INTO t VALUES (300, 1)", none),
        (
            &format!("{matched} {rest_above}"),
            "INSERT INTO t VALUES (300, 1)",
            none,
        ),
        (
            &format!("{matched} {rest_above}"),
            "INSERT INTO t VALUES (5, 1)",
            added,
        ),
        (
            &format!("{matched} {rest_above}"),
            "INSERT INTO t VALUES (395, 1)",
            added,
        ),
        (
            &format!("{matched} {insert} {rest_above}"),
            "UPDATE t SET x = 1 WHERE id = 150",
            none,
        ),
    ] {
        let table = Table::numbers(4, 100, SERIALIZABLE).await;
        let loser = table
            .plan(&format!(
                "MERGE INTO t USING (VALUES (5, -5), (205, -205), (500, -500)) AS s (id, x) \
                 ON t.id = s.id {clauses}"
            ))
            .await;
        table.run(winner).await;
        let before = table.log();
        match (expected, loser.run().await) {
            (None, Ok(_)) => {}
            (Some(kind), Err(error)) => {
                assert_eq!(
                    crate::support::conflict_of(&error),
                    kind,
                    "{clauses} against {winner}"
                );
                assert_eq!(table.log(), before);
            }
            (expected, outcome) => {
                panic!("{clauses} against {winner}: expected {expected:?}, got {outcome:?}")
            }
        }
    }
}

#[tokio::test]
async fn other_writers_lose_to_a_merge_that_meets_their_rows() {
    for (loser, expected) in [
        ("UPDATE t SET x = 1 WHERE id BETWEEN 90 AND 110", true),
        ("UPDATE t SET x = 1 WHERE id BETWEEN 200 AND 210", false),
        ("DELETE FROM t WHERE id >= 390", true),
        ("DELETE FROM t WHERE id = 350", false),
        ("INSERT INTO t VALUES (5, 5)", false),
        ("INSERT INTO t SELECT max(id) + 1, 0 FROM t", true),
    ] {
        let table = Table::numbers(4, 100, SERIALIZABLE).await;
        let loser_planned = table.plan(loser).await;
        assert_eq!(
            table.plan(&upsert("5, 105, 4000", -1)).await.count().await,
            3
        );
        match (expected, loser_planned.run().await) {
            (false, Ok(_)) => {}
            (true, Err(error)) => assert_eq!(
                crate::support::conflict_of(&error),
                ConflictKind::ConcurrentAppend,
                "{loser}"
            ),
            (expected, outcome) => panic!("{loser}: expected {expected}, got {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn source_that_reads_the_table_is_a_read_of_its_own() {
    let table = Table::numbers(4, 100, SERIALIZABLE).await;
    let statement = "MERGE INTO t USING (SELECT max(id) + 1 AS id FROM t) AS s ON t.id = s.id \
                     WHEN NOT MATCHED THEN INSERT VALUES (s.id, -1)";
    let first = table.plan(statement).await;
    let second = table.plan(statement).await;
    assert_eq!(first.count().await, 1);
    assert_eq!(second.conflict().await, ConflictKind::ConcurrentAppend);

    // A part of it is read: what lies elsewhere does not matter.
    let loser = table
        .plan(
            "MERGE INTO t USING (SELECT id, x FROM t WHERE id < 20) AS s ON t.id = s.id + 300 \
             WHEN MATCHED THEN UPDATE SET x = s.x",
        )
        .await;
    table.run("UPDATE t SET x = 9 WHERE id = 150").await;
    assert!(loser.run().await.is_err(), "a computed key is no key set");
    let loser = table
        .plan(
            "MERGE INTO t USING (SELECT id + 300 AS id, x FROM t WHERE id < 20) AS s \
             ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x",
        )
        .await;
    table.run("UPDATE t SET x = 9 WHERE id = 150").await;
    assert_eq!(loser.count().await, 20);
}

#[tokio::test]
async fn files_that_cannot_hold_a_key_are_not_scanned() {
    let table = Table::numbers(8, 100, "").await;
    for (source, pruned) in [
        ("(VALUES (5), (705)) AS s (id)", 6),
        ("(VALUES (9999), (CAST(NULL AS BIGINT))) AS s (id)", 8),
        ("(SELECT CAST(310 AS INT) AS id) AS s", 7),
        (
            "(SELECT value AS id FROM generate_series(150, 250)) AS s",
            6,
        ),
    ] {
        let text = table
            .rows(&format!(
                "EXPLAIN ANALYZE MERGE INTO t USING {source} ON t.id = s.id \
                 WHEN MATCHED AND s.id < 0 THEN DELETE"
            ))
            .await
            .join("\n");
        assert!(
            text.contains(&format!("files_pruned_by_keys={pruned}")),
            "{source}: {text}"
        );
    }
}

#[tokio::test]
async fn every_execution_of_a_prepared_merge_has_its_own_keys() {
    let table = Table::numbers(2, 100, SERIALIZABLE).await;
    table.run("CREATE TABLE k AS SELECT 5 AS id").await;
    table
        .run(
            "PREPARE p AS MERGE INTO t USING k ON t.id = k.id WHEN MATCHED THEN UPDATE SET x = -1 \
             WHEN NOT MATCHED THEN INSERT VALUES (k.id, -2)",
        )
        .await;
    assert_eq!(table.count("EXECUTE p").await, 1);
    table.run("INSERT INTO k VALUES (105), (205)").await;
    let planned = plan(&table.ctx, "EXECUTE p").await;
    table.run("INSERT INTO t VALUES (300, 1)").await;
    assert_eq!(planned.count().await, 3);
    assert_eq!(
        rows(&table.ctx, "SELECT id, x FROM t WHERE x < 0 ORDER BY id").await,
        ["5|-1", "105|-1", "205|-2"]
    );
}

#[tokio::test]
async fn in_and_exists_of_delete_and_update_read_the_keys_of_the_subquery() {
    let added = Some(ConflictKind::ConcurrentAppend);
    let inside = "INSERT INTO t VALUES (205, 1)";
    let outside = "INSERT INTO t VALUES (1000, 1), (2000, 1)";
    for (loser, winner, expected) in [
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM k)",
            outside,
            None,
        ),
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM k)",
            inside,
            added,
        ),
        (
            "DELETE FROM t WHERE EXISTS (SELECT 1 FROM k WHERE k.id = t.id) AND x < 1000",
            outside,
            None,
        ),
        (
            "UPDATE t SET x = -1 WHERE EXISTS (SELECT 1 FROM k WHERE k.id = t.id)",
            inside,
            added,
        ),
        (
            "UPDATE t SET x = -1 WHERE x >= 0 AND id IN (SELECT id FROM k WHERE id > 0)",
            outside,
            None,
        ),
        // Not a test that every row has to pass, or not a positive one.
        (
            "UPDATE t SET x = -1 WHERE id IN (SELECT id FROM k) OR x = 7",
            outside,
            added,
        ),
        (
            "DELETE FROM t WHERE id NOT IN (SELECT id FROM k)",
            outside,
            added,
        ),
        // Two tests: each row has to pass both.
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM k) AND x IN (SELECT id FROM k)",
            outside,
            None,
        ),
        (
            "DELETE FROM t WHERE id IN (SELECT id FROM k) AND id NOT IN (SELECT 206)",
            outside,
            None,
        ),
        // Computed: no key.
        (
            "DELETE FROM t WHERE id + 1 IN (SELECT id FROM k)",
            outside,
            added,
        ),
    ] {
        let table = Table::numbers(4, 100, SERIALIZABLE).await;
        table
            .run("CREATE TABLE k AS VALUES (5), (205), (500)")
            .await;
        table
            .run("CREATE VIEW v AS SELECT column1 AS id FROM k")
            .await;
        let loser = loser.replace("FROM k", "FROM v AS k");
        let planned = table.plan(&loser).await;
        table.run(winner).await;
        match (expected, planned.run().await) {
            (None, Ok(_)) => {}
            (Some(kind), Err(error)) => {
                assert_eq!(crate::support::conflict_of(&error), kind, "{loser}");
            }
            (expected, outcome) => panic!("{loser}: expected {expected:?}, got {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn upsert_of_an_absent_key_as_delete_and_insert_in_transactions_aborts() {
    let table = Table::numbers(2, 100, SERIALIZABLE).await;
    let other = table.other_session().await;
    for (session, x) in [(&table.ctx, -1), (&other, -2)] {
        for statement in [
            "BEGIN",
            "DELETE FROM t WHERE id IN (SELECT 500)",
            &format!("INSERT INTO t VALUES (500, {x})"),
        ] {
            run(session, statement).await;
        }
    }
    run(&table.ctx, "COMMIT").await;
    let error = try_run(&other, "COMMIT").await.expect_err("the same key");
    assert_eq!(
        crate::support::conflict_of(&error),
        ConflictKind::ConcurrentAppend
    );
    assert_eq!(table.rows("SELECT x FROM t WHERE id = 500").await, ["-1"]);
}

#[tokio::test]
async fn merges_in_transactions_see_each_other_and_are_checked_by_their_keys() {
    let table = Table::numbers(2, 100, SERIALIZABLE).await;
    let other = table.other_session().await;
    run(&other, "BEGIN").await;
    run(&other, &upsert("5, 500", -2)).await;
    run(&other, &upsert("500, 501", -3)).await;
    assert_eq!(
        rows(&other, "SELECT id, x FROM t WHERE x < 0 ORDER BY id").await,
        ["5|-2", "500|-3", "501|-3"]
    );
    table.run(&upsert("105, 600", 9)).await;
    run(&other, "COMMIT").await;
    assert_eq!(
        table
            .rows("SELECT id, x FROM t WHERE x < 0 ORDER BY id")
            .await,
        ["5|-2", "500|-3", "501|-3"]
    );

    run(&other, "BEGIN").await;
    run(&other, &upsert("700", -2)).await;
    table.run(&upsert("700", -9)).await;
    let error = try_run(&other, "COMMIT").await.expect_err("the same key");
    assert_eq!(
        crate::support::conflict_of(&error),
        ConflictKind::ConcurrentAppend
    );
}
