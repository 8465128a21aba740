//! What a MERGE does to the rows.

use delta_disjoint::ErrorKind;

use crate::support::{Table, kind_of};

async fn table() -> Table {
    Table::create(
        "id BIGINT, x BIGINT, s VARCHAR",
        "",
        &[
            "VALUES (1, 10, 'a'), (2, 20, 'b')",
            "VALUES (3, 30, 'c'), (NULL, 40, 'd')",
        ],
    )
    .await
}

#[tokio::test]
async fn all_clauses_at_once_each_do_their_part() {
    let table = table().await;
    let changed = table
        .count(
            "MERGE INTO t USING (VALUES (1, 11), (2, 22), (5, 55), (6, 66), (NULL, 0)) AS s (id, x) \
             ON t.id = s.id \
             WHEN MATCHED AND s.x = 22 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET x = s.x, s = t.s || '!' \
             WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id, s) VALUES (s.id, 'new') \
             WHEN NOT MATCHED BY TARGET AND s.id IS NULL THEN INSERT VALUES (0, s.x, 'null') \
             WHEN NOT MATCHED BY SOURCE AND t.id IS NULL THEN DELETE \
             WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = -t.x",
        )
        .await;
    assert_eq!(changed, 6);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["0|0|null", "1|11|a!", "3|-30|c", "5|NULL|new"]
    );
    let info = table.commit_info(table.log().0);
    assert_eq!(info["operation"], "MERGE");
    for (metric, expected) in [
        ("numTargetRowsInserted", "2"),
        ("numTargetRowsUpdated", "2"),
        ("numTargetRowsDeleted", "2"),
        ("numTargetRowsCopied", "0"),
    ] {
        assert_eq!(info["operationMetrics"][metric], expected, "{metric}");
    }
    assert_eq!(info["isBlindAppend"], false);
}

#[tokio::test]
async fn a_row_that_two_source_rows_would_change_is_an_error_that_shows_it() {
    let table = table().await;
    for (clauses, both) in [
        ("WHEN MATCHED THEN UPDATE SET x = s.x", true),
        ("WHEN MATCHED AND true THEN DELETE", true),
        (
            "WHEN MATCHED AND s.x = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 0",
            true,
        ),
        ("WHEN MATCHED AND s.x = 1 THEN DELETE", false),
        ("WHEN MATCHED THEN DELETE", false),
        (
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 1",
            false,
        ),
    ] {
        let table = table.copy().await;
        let statement = format!(
            "MERGE INTO t USING (VALUES (2, 1), (2, 2)) AS s (id, x) ON t.id = s.id {clauses}"
        );
        if both {
            let error = table.refused(&statement).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
            assert!(error.to_string().contains("id = 2"), "{error}");
        } else {
            table.run(&statement).await;
            assert_eq!(
                table.rows("SELECT count(*) FROM t WHERE id = 2").await,
                ["0"],
                "{clauses}"
            );
        }
    }
}

#[tokio::test]
async fn a_merge_of_a_table_with_itself_reads_two_scans() {
    let table = table().await;
    let changed = table
        .count(
            "MERGE INTO t AS a USING (SELECT id + 1 AS id, x FROM t) AS b ON a.id = b.id \
             WHEN MATCHED THEN UPDATE SET a.x = b.x \
             WHEN NOT MATCHED THEN INSERT (id, x) VALUES (b.id, b.x)",
        )
        .await;
    assert_eq!(changed, 4);
    assert_eq!(
        table.rows("SELECT id, x FROM t ORDER BY id, x").await,
        ["1|10", "2|10", "3|20", "4|30", "NULL|40", "NULL|40"]
    );
}

#[tokio::test]
async fn what_fails_in_one_clause_does_no_harm_to_rows_of_another() {
    let table = table().await;
    let changed = table
        .count(
            "MERGE INTO t USING (VALUES (1, 0), (2, 5), (7, 0)) AS s (id, d) ON t.id = s.id \
             WHEN MATCHED AND s.d = 0 THEN DELETE \
             WHEN MATCHED AND t.x / s.d > 1 THEN UPDATE SET x = t.x / s.d \
             WHEN NOT MATCHED AND s.d <> 0 THEN INSERT (id, x) VALUES (s.id, 1 / s.d) \
             WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET x = 1 / (t.id - 2)",
        )
        .await;
    assert_eq!(changed, 3);
    assert_eq!(
        table.rows("SELECT id, x FROM t ORDER BY id").await,
        ["2|4", "3|1", "NULL|40"]
    );
}

/// A value of a BOOLEAN column, which the optimizer likes to make AND and OR of, and conditions of
/// several clauses of a kind.
#[tokio::test]
async fn truth_values_and_conditions_are_computed_for_the_rows_of_their_clause_alone() {
    let template = Table::create(
        "id BIGINT, ok BOOLEAN",
        "",
        &["VALUES (1, false), (2, NULL), (3, true)"],
    )
    .await;
    let matched_first = "WHEN MATCHED AND s.d = 0 THEN DELETE ";
    let update = "WHEN MATCHED THEN UPDATE SET ok = 4 / s.d > 1 ";
    let update_if = "WHEN MATCHED AND 4 / s.d > 1 THEN UPDATE SET ok = true ";
    let insert_false = "WHEN NOT MATCHED AND s.d = 0 THEN INSERT VALUES (s.id, false) ";
    let insert = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 4 / s.d > 1) ";
    let insert_if = "WHEN NOT MATCHED AND 4 / s.d > 1 THEN INSERT VALUES (s.id, true) ";
    let alone = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ok = 4 / (t.id - 2) > 1 ";
    let alone_if = "WHEN NOT MATCHED BY SOURCE AND 4 / (t.id - 2) > 1 THEN UPDATE SET ok = false ";
    // Of the source: 1 divides by zero where it is matched, 2 does not, 7 does, 8 does not.
    for (source, clauses, expected) in [
        (
            "(2, 2), (7, 0)",
            vec![update, insert_false],
            vec!["1|false", "2|true", "3|true", "7|false"],
        ),
        (
            "(2, 2), (7, 0)",
            vec![update],
            vec!["1|false", "2|true", "3|true"],
        ),
        (
            "(1, 0), (2, 2), (8, 2)",
            vec![matched_first, update_if, insert_if],
            vec!["2|true", "3|true", "8|true"],
        ),
        (
            "(1, 0), (2, 2), (7, 0), (8, 4)",
            vec![matched_first, update, insert_false, insert, alone],
            vec!["2|true", "3|true", "7|false", "8|false"],
        ),
        (
            "(1, 0), (2, 0), (7, 0), (8, 4)",
            vec![matched_first, update_if, insert_false, insert_if, alone_if],
            vec!["3|false", "7|false"],
        ),
        (
            "(2, 0), (8, 4)",
            vec![insert, alone],
            vec!["1|false", "2|NULL", "3|true", "8|false"],
        ),
    ] {
        let table = template.copy().await;
        let clauses = clauses.concat();
        table
            .run(&format!(
                "MERGE INTO t USING (VALUES {source}) AS s (id, d) ON t.id = s.id {clauses}"
            ))
            .await;
        let rows = table.rows("SELECT * FROM t ORDER BY id").await;
        assert_eq!(rows, expected, "{clauses}");
    }
}

#[tokio::test]
async fn a_condition_in_on_that_is_drawn_anew_each_time_and_names_no_column_is_refused() {
    let table = table().await;
    let error = table
        .refused(
            "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id AND random() < 0.5 \
             WHEN MATCHED THEN DELETE",
        )
        .await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
    assert!(error.to_string().contains("random()"), "{error}");
    table
        .run(
            "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id AND 1 = 1 \
             WHEN MATCHED AND random() < 2 THEN DELETE",
        )
        .await;
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE id = 1").await,
        ["0"]
    );
}

#[tokio::test]
async fn a_merge_that_changes_nothing_commits_nothing() {
    let table = table().await;
    let before = table.log();
    for statement in [
        "MERGE INTO t USING (VALUES (9)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1 AS id WHERE false) AS s ON t.id = s.id \
         WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id \
         WHEN MATCHED AND t.x > 100 THEN DELETE",
    ] {
        assert_eq!(table.count(statement).await, 0, "{statement}");
        assert_eq!(table.log(), before, "{statement}");
    }
}

#[tokio::test]
async fn subqueries_are_honoured_or_refused_by_name() {
    let table = table().await;
    table.run("CREATE TABLE u AS VALUES (1), (3)").await;
    for (statement, expected) in [
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s (id) \
             ON t.id = s.id AND t.id IN (SELECT column1 FROM u) WHEN MATCHED THEN DELETE",
            Ok(1),
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s (id) ON t.id = s.id \
             AND EXISTS (SELECT 1 FROM u WHERE u.column1 = s.id) WHEN MATCHED THEN DELETE",
            Ok(1),
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2), (9)) AS s (id) \
             ON t.id = s.id AND s.id < (SELECT max(column1) FROM u) \
             WHEN MATCHED AND t.x > (SELECT min(column1) * 15 FROM u) THEN DELETE \
             WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, (SELECT max(column1) FROM u))",
            Ok(2),
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s (id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET x = (SELECT max(column1) FROM u WHERE column1 = s.id)",
            Ok(2),
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s (id) ON t.id = s.id \
             WHEN MATCHED AND t.id IN (SELECT column1 FROM u) THEN DELETE",
            Err("WHEN MATCHED"),
        ),
        (
            "MERGE INTO t USING (VALUES (1), (2)) AS s (id) \
             ON t.id = s.id AND t.id IN (SELECT column1 FROM u) \
             WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            Err("in ON"),
        ),
    ] {
        let table = table.copy().await;
        match expected {
            Ok(count) => assert_eq!(table.count(statement).await, count, "{statement}"),
            Err(names) => {
                let error = table.refused(statement).await;
                assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
                assert!(error.to_string().contains(names), "{error}");
            }
        }
    }
}
