//! UPDATE sets exactly the rows for which WHERE is true, to values of the old row.

use crate::support::{Table, count, try_run};
use crate::where_cases::{
    CONDITIONS, Case, OWN_SUBQUERIES, ROWS, SUBQUERIES, fresh, template, untouched,
};

#[tokio::test]
async fn update_by_conditions_changes_the_rows_they_are_true_for() {
    // The input is filtered as that of DELETE is, which runs all of them.
    check_all(CONDITIONS.iter().step_by(2)).await;
}

#[tokio::test]
async fn update_by_subqueries_changes_the_rows_they_are_true_for() {
    check_all(SUBQUERIES).await;
}

#[tokio::test]
async fn update_by_subqueries_over_the_target_changes_the_rows_they_are_true_for() {
    check_all(OWN_SUBQUERIES).await;
}

async fn check_all(cases: impl IntoIterator<Item = &Case>) {
    let template = template().await;
    let mut wrong = Vec::new();
    for (condition, ids) in cases {
        let table = fresh(&template, condition).await;
        let (version, live) = table.log();
        let changed = match try_run(
            &table.ctx,
            &format!("UPDATE t SET x = -id, s = 'new' {condition}"),
        )
        .await
        {
            Ok(batches) => count(&batches),
            Err(error) => {
                wrong.push(format!("{condition}: {error}"));
                continue;
            }
        };
        let expected: Vec<String> = (1..=9)
            .map(|id| {
                if ids.contains(&id) {
                    format!("{id}|-{id}|new")
                } else {
                    ROWS[id as usize - 1].to_owned()
                }
            })
            .collect();
        let rows = table.rows("SELECT * FROM t ORDER BY id").await;
        if rows != expected || changed != ids.len() as u64 {
            wrong.push(format!("{condition}: count {changed}, rows {rows:?}"));
            continue;
        }
        let (after, files) = table.log();
        assert_eq!(after, version + u64::from(!ids.is_empty()), "{condition}");
        let untouched = untouched(&live, ids);
        let kept: Vec<_> = live
            .iter()
            .filter(|path| files.contains(path))
            .cloned()
            .collect();
        assert_eq!(kept, untouched, "{condition}: exactly the touched files go");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn update_sets_values_of_the_old_row() {
    // (SET … WHERE …, the changed rows)
    let cases: &[(&str, &[&str])] = &[
        (
            "SET x = x + 1 WHERE id <= 3",
            &["1|11|a", "2|NULL|b", "3|31|NULL"],
        ),
        ("SET id = x, x = id WHERE id = 1", &["10|1|a"]),
        ("SET x = id + x, id = x * 100 WHERE id = 1", &["1000|11|a"]),
        ("SET x = NULL WHERE id IN (1, 2)", &["1|NULL|a", "2|NULL|b"]),
        ("SET s = NULL, x = NULL WHERE id = 1", &["1|NULL|NULL"]),
        ("SET x = x WHERE id = 1", &["1|10|a"]),
        ("SET x = '7' WHERE id = 1", &["1|7|a"]),
        ("SET x = 1.9 WHERE id = 1", &["1|1|a"]),
        ("SET s = 5 WHERE id = 1", &["1|10|5"]),
        (
            "SET s = CAST(x AS VARCHAR) || s WHERE id IN (1, 2)",
            &["1|10|10a", "2|NULL|NULL"],
        ),
        (
            "SET x = CASE WHEN x IS NULL THEN -1 ELSE x END WHERE id <= 2",
            &["1|10|a", "2|-1|b"],
        ),
        (
            "SET x = coalesce(x, id * 10) WHERE id IN (2, 3)",
            &["2|20|b", "3|30|NULL"],
        ),
        ("SET x = twice_immutable(x) WHERE id = 1", &["1|20|a"]),
        ("SET x = twice_stable(x) WHERE id = 1", &["1|20|a"]),
        ("SET x = twice_volatile(x) WHERE id = 1", &["1|20|a"]),
        ("SET x = (SELECT max(x) FROM t) WHERE id = 1", &["1|90|a"]),
        ("SET x = (SELECT max(y) FROM o) WHERE id = 1", &["1|55|a"]),
        (
            "SET x = (SELECT y FROM o WHERE false) WHERE id = 1",
            &["1|NULL|a"],
        ),
        (
            "SET x = (SELECT max(o.y) FROM o WHERE o.id = t.id) WHERE id IN (1, 2, 5)",
            &["1|NULL|a", "2|20|b", "5|55|e"],
        ),
        (
            "SET x = (SELECT count(*) FROM o WHERE o.id = t.id) WHERE id IN (1, 2)",
            &["1|0|a", "2|1|b"],
        ),
        (
            "SET x = coalesce((SELECT max(o.y) FROM o WHERE o.id = t.id), x) WHERE id IN (1, 2)",
            &["1|10|a", "2|20|b"],
        ),
        (
            "AS a SET x = (SELECT max(b.x) + 1 FROM t b WHERE b.id = a.id) WHERE a.id IN (1, 2, 3)",
            &["1|11|a", "2|NULL|b", "3|31|NULL"],
        ),
        (
            "AS a SET x = a.x + 1 WHERE EXISTS (SELECT 1 FROM o WHERE o.id = a.id) AND a.id > 2",
            &["5|51|e", "7|71|g"],
        ),
        ("a SET x = 0 WHERE a.id = 1", &["1|0|a"]),
        (
            "SET x = (SELECT max(b.x) FROM t b WHERE b.id = t.id), s = (SELECT max(s) FROM t) \
             WHERE x > 75",
            &["8|80|h", "9|90|h"],
        ),
        (
            "SET x = (SELECT max(o.y) FROM o WHERE o.id = t.id) WHERE id IN (SELECT id FROM o)",
            &["2|20|b", "5|55|e", "7|7|g"],
        ),
        (
            "SET x = (SELECT count(*) FROM small) WHERE id = 9",
            &["9|3|"],
        ),
    ];
    let template = template().await;
    let mut wrong = Vec::new();
    for (statement, changed) in cases {
        let table = fresh(&template, statement).await;
        match try_run(&table.ctx, &format!("UPDATE t {statement}")).await {
            Err(error) => wrong.push(format!("{statement}: {error}")),
            Ok(batches) => {
                let mut rows = table.rows("SELECT * FROM t ORDER BY id").await;
                rows.retain(|row| !ROWS.contains(&row.as_str()) || changed.contains(&row.as_str()));
                if rows != *changed
                    || count(&batches) != changed.len() as u64
                    || table.rows("SELECT count(*) FROM t").await != ["9"]
                {
                    wrong.push(format!("{statement}: {rows:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn update_that_fails_leaves_nothing_behind() {
    let table = template().await;
    for (statement, names) in [
        ("UPDATE t SET x = 'abc'", "abc"),
        ("UPDATE t SET x = CAST(s AS BIGINT)", "Cast error"),
        ("UPDATE t SET x = 1 / (id - 8)", "Divide by zero"),
        ("UPDATE t SET x = (SELECT y FROM o)", "more than one row"),
        // DataFusion cannot plan this one.
        (
            "UPDATE t SET x = (SELECT max(b.x) FROM t b WHERE b.id < t.id)",
            "not implemented",
        ),
        ("UPDATE t SET nothing = 1", "nothing"),
        ("UPDATE t SET x = nothing", "nothing"),
        ("UPDATE t SET x = 1 WHERE nothing = 1", "nothing"),
    ] {
        let error = table.refused(statement).await.to_string();
        assert!(error.contains(names), "{statement}: {error}");
    }
    assert_eq!(table.rows("SELECT * FROM t ORDER BY id").await, ROWS);
}

#[tokio::test]
async fn update_of_a_partition_column_moves_the_row() {
    let table = Table::create(
        "p VARCHAR, id BIGINT, q INT",
        "PARTITIONED BY (p, q)",
        &["VALUES ('a', 1, 1), ('a', 2, 1), ('b', 3, 2), (NULL, 4, NULL)"],
    )
    .await;
    let cases: &[(&str, u64, &[&str])] = &[
        (
            "UPDATE t SET p = 'c' WHERE id = 1",
            1,
            &["c|1|1", "a|2|1", "b|3|2", "NULL|4|NULL"],
        ),
        (
            "UPDATE t SET p = NULL, q = q + 1 WHERE p = 'a'",
            1,
            &["c|1|1", "NULL|2|2", "b|3|2", "NULL|4|NULL"],
        ),
        (
            "UPDATE t SET p = '' WHERE id = 3",
            1,
            &["c|1|1", "NULL|2|2", "NULL|3|2", "NULL|4|NULL"],
        ),
        (
            "UPDATE t SET p = 'a/b=c d%', q = 7 WHERE p IS NULL",
            3,
            &["c|1|1", "a/b=c d%|2|7", "a/b=c d%|3|7", "a/b=c d%|4|7"],
        ),
        (
            "UPDATE t SET id = id * 10 WHERE p = 'a/b=c d%' AND q = 7",
            3,
            &["c|1|1", "a/b=c d%|20|7", "a/b=c d%|30|7", "a/b=c d%|40|7"],
        ),
    ];
    for (statement, changed, expected) in cases {
        assert_eq!(table.count(statement).await, *changed, "{statement}");
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            *expected,
            "{statement}"
        );
        // Each file lies where its values say; others find the rows too.
        let (version, _) = table.log();
        for action in table.log_entry(version) {
            if let Some(path) = action["add"]["path"].as_str() {
                assert!(path.starts_with("p="), "{path}");
            }
        }
        let other = table.other_session().await;
        assert_eq!(
            crate::support::rows(&other, "SELECT * FROM t ORDER BY id").await,
            *expected
        );
    }
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE p = 'c'").await,
        ["1"]
    );
}

#[tokio::test]
async fn update_keeps_the_rows_of_files_it_does_not_touch_and_copies_the_others() {
    let table = Table::numbers(4, 10, "").await;
    let (_, before) = table.log();
    assert_eq!(
        table
            .count("UPDATE t SET x = -1 WHERE id IN (12, 13, 35)")
            .await,
        3
    );
    let (version, after) = table.log();
    let kept: Vec<_> = before.iter().filter(|path| after.contains(path)).collect();
    assert_eq!(kept, [&before[0], &before[2]]);
    let metrics = table.commit_info(version)["operationMetrics"].clone();
    assert_eq!(metrics["numUpdatedRows"], "3");
    assert_eq!(metrics["numCopiedRows"], "17");
    assert_eq!(metrics["numRemovedFiles"], "2");
    assert_eq!(metrics["numAddedFiles"], "2");
}

#[tokio::test]
async fn update_in_a_file_of_several_row_groups_hits_the_right_positions() {
    let table = Table::create("id BIGINT, s VARCHAR", "", &[]).await;
    crate::support::append_row_groups(&table, 5, 20).await;
    assert_eq!(
        table
            .count("UPDATE t SET s = 'hit' WHERE id IN (0, 19, 20, 41, 59, 99)")
            .await,
        6
    );
    assert_eq!(
        table
            .rows("SELECT id FROM t WHERE s = 'hit' ORDER BY id")
            .await,
        ["0", "19", "20", "41", "59", "99"]
    );
    assert_eq!(
        table
            .rows("SELECT count(*), sum(id), count(DISTINCT s) FROM t")
            .await,
        ["100|4950|95"]
    );
}

#[tokio::test]
async fn update_of_an_empty_table_or_of_no_row_commits_nothing() {
    let table = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    for statement in ["UPDATE t SET x = 1", "UPDATE t SET x = 1 WHERE id = 1"] {
        assert_eq!(table.count(statement).await, 0, "{statement}");
        assert_eq!(table.log().0, 0, "{statement}");
        assert!(table.data_files_on_disk().is_empty());
    }
}

#[tokio::test]
async fn statements_one_after_another_see_each_other() {
    let table = template().await;
    assert_eq!(table.count("UPDATE t SET x = 1 WHERE id = 1").await, 1);
    assert_eq!(table.count("UPDATE t SET x = x + 1 WHERE id <= 2").await, 2);
    assert_eq!(table.count("UPDATE t SET x = x * 10 WHERE x = 2").await, 1);
    assert_eq!(
        table.count("INSERT INTO t VALUES (1, 20, 'again')").await,
        1
    );
    assert_eq!(table.count("UPDATE t SET s = 'z' WHERE x = 20").await, 2);
    assert_eq!(
        table
            .rows("SELECT * FROM t WHERE id <= 3 ORDER BY id, s")
            .await,
        ["1|20|z", "1|20|z", "2|NULL|b", "3|30|NULL"]
    );
    assert_eq!(table.count("DELETE FROM t WHERE x = 20").await, 2);
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["8"]);
}

#[tokio::test]
async fn names_fold_to_lower_case_unless_they_are_quoted() {
    let table = Table::create(
        "id BIGINT, x BIGINT, \"Up\" BIGINT",
        "",
        &["VALUES (1, 1, 1)"],
    )
    .await;
    for statement in [
        "UPDATE T SET X = 2 WHERE ID = 1",
        "UPDATE public.t SET x = 3",
        "UPDATE datafusion.public.t AS A SET x = a.x + 1",
        "PREPARE upper AS UPDATE t SET X = x + 1",
        "EXECUTE upper",
        "UPDATE t SET \"Up\" = \"Up\" + X",
        "DELETE FROM PUBLIC.T WHERE public.t.id = 2",
    ] {
        table.run(statement).await;
    }
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|5|6"]);
    for (statement, names) in [
        ("UPDATE t SET Up = 1", "up"),
        ("UPDATE t SET \"X\" = 1", "X"),
        ("EXPLAIN UPDATE t SET Up = 1", "up"),
    ] {
        let error = table.refused(statement).await.to_string();
        assert!(error.contains(names), "{statement}: {error}");
    }
}

/// A CASE whose branches differ in type gets its type after the cast to the column's was decided.
#[tokio::test]
async fn a_new_value_of_another_type_than_planned_is_cast_to_the_column() {
    let table = Table::create(
        "id INT, n SMALLINT, p DECIMAL(10,2), ts TIMESTAMP",
        "",
        &["VALUES (1, 1, 1.5, TIMESTAMP '2020-01-01 00:00:00'), (2, NULL, NULL, NULL)"],
    )
    .await;
    let update = "UPDATE t SET id = CASE WHEN n = 1 THEN id ELSE 5 END, \
                  n = CASE WHEN n = 1 THEN n ELSE 7 END, \
                  p = CASE WHEN n = 1 THEN p ELSE 2 END, \
                  ts = CASE WHEN n = 1 THEN ts ELSE TIMESTAMP '2021-01-01 00:00:00' END";
    assert_eq!(count(&table.run(update).await), 2);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        [
            "1|1|1.50|2020-01-01T00:00:00",
            "5|7|2.00|2021-01-01T00:00:00"
        ]
    );
}
