//! Prepared statements, views and frames that were made before the table changed. DataFusion
//! optimises a statement when it is prepared, so that the rule of this crate sees another shape at
//! EXECUTE: it is either understood or refused by name, and never changes more rows.

use delta_disjoint::{ErrorKind, sql};

use crate::support::{Table, count, kind_of, try_run};
use crate::where_cases::{CONDITIONS, OWN_SUBQUERIES, ROWS, SUBQUERIES, fresh, template};

#[tokio::test]
async fn prepared_delete_changes_the_right_rows_or_none() {
    check_all("DELETE FROM t").await;
}

#[tokio::test]
async fn prepared_update_changes_the_right_rows_or_none() {
    check_all("UPDATE t SET x = -id, s = 'new'").await;
}

/// Runs what the optimizer gives another shape: constants, lists, and all subqueries.
async fn check_all(statement: &str) {
    let template = template().await;
    let mut wrong = Vec::new();
    let mut refused = 0;
    let plain = CONDITIONS.iter().step_by(4);
    let cases: Vec<_> = plain
        .chain(SUBQUERIES)
        .chain(OWN_SUBQUERIES)
        .step_by(2)
        .collect();
    for (number, (condition, ids)) in cases.iter().enumerate() {
        let statement = format!("{statement} {condition}");
        let table = fresh(&template, condition).await;
        let name = format!("p{number}");
        table.run(&format!("PREPARE {name} AS {statement}")).await;
        match try_run(&table.ctx, &format!("EXECUTE {name}")).await {
            Ok(batches) => {
                let expected: Vec<String> = (1..=9)
                    .filter_map(|id| match (ids.contains(&id), &statement[..1]) {
                        (true, "D") => None,
                        (true, _) => Some(format!("{id}|-{id}|new")),
                        (false, _) => Some(ROWS[id as usize - 1].to_owned()),
                    })
                    .collect();
                let rows = table.rows("SELECT * FROM t ORDER BY id").await;
                if rows != expected || count(&batches) != ids.len() as u64 {
                    wrong.push(format!("{statement}: {rows:?}"));
                }
            }
            Err(error) if kind_of(&error) == Some(ErrorKind::Unsupported) => {
                refused += 1;
                let message = error.to_string();
                if !message.contains("prepared") {
                    wrong.push(format!("{statement}: {message}"));
                }
                assert_eq!(table.rows("SELECT * FROM t ORDER BY id").await, ROWS);
            }
            Err(error) => wrong.push(format!("{statement}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        refused * 2 < cases.len(),
        "{refused} of {} refused: most shapes should be understood",
        cases.len()
    );
}

/// Terms that are unknown for some rows because of NULL, the ids for which they are true, and whether
/// they are understood although they were prepared.
#[tokio::test]
async fn unknown_terms_of_prepared_statements_change_the_right_rows_or_none() {
    let cases: [(&str, &[i64], bool); 15] = [
        ("x < 0 OR NOT (id IN (SELECT id FROM s))", &[], false),
        ("x < 0 OR id NOT IN (SELECT id FROM s)", &[], false),
        (
            "x = 5 OR (x = 1 AND NOT (id + 2 IN (SELECT id FROM s)))",
            &[3],
            false,
        ),
        ("id NOT IN (SELECT id FROM s WHERE s.x = t.x)", &[2], false),
        (
            "id NOT IN (SELECT id FROM s WHERE s.x > t.x)",
            &[2, 3],
            false,
        ),
        ("(id IN (SELECT id FROM s)) IS NOT TRUE", &[2, 3], false),
        (
            "CASE WHEN id IN (SELECT id FROM s) THEN false ELSE x = 5 END",
            &[3],
            false,
        ),
        (
            "id IN (SELECT 3 FROM s WHERE s.x = 5 AND 3 NOT IN \
             (SELECT b.id FROM s b WHERE b.x = s.x))",
            &[],
            false,
        ),
        ("NOT EXISTS (SELECT 1 FROM s WHERE s.x = t.x)", &[2], false),
        ("id NOT IN (SELECT id FROM s)", &[], false),
        ("id NOT IN (SELECT coalesce(id, 1) FROM s)", &[2, 3], false),
        ("x = 5 OR id IN (SELECT id FROM s)", &[1, 3], true),
        (
            "x = 5 OR (x = 1 AND id IN (SELECT id FROM s))",
            &[1, 3],
            true,
        ),
        ("id IN (SELECT id FROM s) AND x = 1", &[1], true),
        ("EXISTS (SELECT 1 FROM s WHERE s.x = t.x)", &[1, 3], true),
    ];
    let template = Table::create(
        "id BIGINT, x BIGINT",
        "",
        &["VALUES (1, 1), (2, NULL), (3, 5)"],
    )
    .await;
    template
        .run(
            "CREATE TABLE s AS SELECT column1 AS id, column2 AS x \
             FROM (VALUES (1, 1), (NULL, 5), (NULL, NULL))",
        )
        .await;
    let mut wrong = Vec::new();
    for (number, (condition, ids, understood)) in cases.into_iter().enumerate() {
        for (change, name) in [("DELETE FROM t", "d"), ("UPDATE t SET x = -7", "u")] {
            let table = template.copy().await;
            let statement = format!("{change} WHERE {condition}");
            let name = format!("{name}{number}");
            table.run(&format!("PREPARE {name} AS {statement}")).await;
            match try_run(&table.ctx, &format!("EXECUTE {name}")).await {
                Ok(_) => {
                    let untouched: Vec<String> = (1..=3_i64)
                        .filter(|id| !ids.contains(id))
                        .map(|id| id.to_string())
                        .collect();
                    let rows = table
                        .rows("SELECT id FROM t WHERE x IS DISTINCT FROM -7 ORDER BY id")
                        .await;
                    if rows != untouched {
                        wrong.push(format!("{statement}: {rows:?}"));
                    }
                }
                Err(error) => {
                    let refused = kind_of(&error) == Some(ErrorKind::Unsupported)
                        && error.to_string().contains("prepared");
                    if !refused || understood {
                        wrong.push(format!("{statement}: {error}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn prepared_statements_take_parameters() {
    let table = Table::numbers(3, 4, "").await;
    table
        .run("PREPARE ins(BIGINT, BIGINT) AS INSERT INTO t VALUES ($1, $2)")
        .await;
    table
        .run("PREPARE del(BIGINT) AS DELETE FROM t WHERE id = $1")
        .await;
    table
        .run("PREPARE upd(BIGINT, BIGINT) AS UPDATE t SET x = $1 WHERE id >= $2")
        .await;
    assert_eq!(table.count("EXECUTE ins(100, NULL)").await, 1);
    assert_eq!(table.count("EXECUTE ins(101, 5)").await, 1);
    assert_eq!(table.count("EXECUTE del(0)").await, 1);
    assert_eq!(table.count("EXECUTE del(0)").await, 0);
    assert_eq!(table.count("EXECUTE del(NULL)").await, 0);
    assert_eq!(table.count("EXECUTE upd(-1, 11)").await, 3);
    assert_eq!(table.count("EXECUTE upd(NULL, 101)").await, 1);
    assert_eq!(
        table
            .rows("SELECT * FROM t WHERE id < 2 OR id > 9 ORDER BY id")
            .await,
        ["1|1", "10|10", "11|-1", "100|-1", "101|NULL"]
    );
    table
        .run("PREPARE scaled(BIGINT) AS UPDATE t SET x = x * $1 WHERE id = 10")
        .await;
    assert_eq!(table.count("EXECUTE scaled(7)").await, 1);
    table
        .run("PREPARE copied(BIGINT) AS INSERT INTO t SELECT id + $1, x FROM t WHERE id = 10")
        .await;
    assert_eq!(table.count("EXECUTE copied(1000)").await, 1);
    assert_eq!(
        table
            .rows("SELECT * FROM t WHERE id IN (10, 1010) ORDER BY id")
            .await,
        ["10|70", "1010|70"]
    );
    // The parameter prunes files and is recorded as read.
    let plan = table.rows("EXPLAIN EXECUTE del(5)").await.join("\n");
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE id = 5").await,
        ["1"],
        "{plan}"
    );
}

#[tokio::test]
async fn prepared_statement_sees_versions_newer_than_itself() {
    let table = Table::numbers(1, 3, "").await;
    table.run("PREPARE del AS DELETE FROM t WHERE x = 7").await;
    table
        .run("PREPARE ins AS INSERT INTO t SELECT max(id) + 1, 0 FROM t")
        .await;
    table.run("PREPARE sel AS SELECT count(*) FROM t").await;
    let other = table.other_session().await;
    try_run(&other, "INSERT INTO t VALUES (50, 7), (51, 7)")
        .await
        .expect("inserted");
    assert_eq!(table.rows("EXECUTE sel").await, ["5"]);
    assert_eq!(table.count("EXECUTE del").await, 2);
    assert_eq!(table.count("EXECUTE ins").await, 1);
    assert_eq!(table.count("EXECUTE ins").await, 1);
    assert_eq!(
        table.rows("SELECT id FROM t ORDER BY id").await,
        ["0", "1", "2", "3", "4"]
    );
}

#[tokio::test]
async fn frame_collected_twice_is_two_statements() {
    let table = Table::numbers(1, 3, "").await;
    let insert = sql(&table.ctx, "INSERT INTO t SELECT max(id) + 1, 0 FROM t")
        .await
        .expect("planned");
    let update = sql(&table.ctx, "UPDATE t SET x = x + 1 WHERE id >= 3")
        .await
        .expect("planned");
    let before = table.log().0;
    for _ in 0..2 {
        assert_eq!(count(&insert.clone().collect().await.expect("runs")), 1);
    }
    for _ in 0..2 {
        assert_eq!(count(&update.clone().collect().await.expect("runs")), 2);
    }
    assert_eq!(table.log().0, before + 4);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["0|0", "1|1", "2|2", "3|2", "4|2"]
    );
}

#[tokio::test]
async fn view_made_before_a_change_sees_it() {
    let table = Table::numbers(1, 3, "").await;
    table
        .run("CREATE VIEW v AS SELECT id FROM t WHERE x >= 2")
        .await;
    let other = table.other_session().await;
    try_run(&other, "UPDATE t SET x = 10 WHERE id = 0")
        .await
        .expect("updated");
    assert_eq!(table.rows("SELECT id FROM v ORDER BY id").await, ["0", "2"]);
    assert_eq!(
        table
            .count("DELETE FROM t WHERE id IN (SELECT id FROM v)")
            .await,
        2
    );
    assert_eq!(table.rows("SELECT id FROM t").await, ["1"]);
}

/// What follows `INSERT INTO t (id)`, and the ids that come.
const INSERTED: [(&str, &[i64]); 18] = [
    ("VALUES (4), (5)", &[4, 5]),
    ("SELECT 4", &[4]),
    ("SELECT id + 3 FROM t", &[4, 5, 6]),
    ("SELECT id + 3 FROM t WHERE false", &[]),
    ("SELECT id + 3 FROM t WHERE x = 1 OR x = 5", &[4, 6]),
    ("SELECT 4 UNION ALL SELECT 5", &[4, 5]),
    (
        "SELECT id + 3 FROM t UNION ALL SELECT id + 6 FROM t",
        &[4, 5, 6, 7, 8, 9],
    ),
    ("SELECT 4 UNION SELECT 4", &[4]),
    ("SELECT id FROM t EXCEPT SELECT 1", &[2, 3]),
    ("SELECT DISTINCT 4 FROM t", &[4]),
    ("SELECT max(id) + 1 FROM t", &[4]),
    ("SELECT count(*) + 3 FROM t GROUP BY id", &[4, 4, 4]),
    ("SELECT id + 3 FROM t ORDER BY id DESC LIMIT 1", &[6]),
    (
        "SELECT row_number() OVER (ORDER BY id) + 3 FROM t",
        &[4, 5, 6],
    ),
    (
        "SELECT a.id + 3 FROM t a JOIN t b ON a.id = b.id + 1",
        &[5, 6],
    ),
    (
        "SELECT id + 3 FROM t WHERE id IN (SELECT id FROM t WHERE x = 5)",
        &[6],
    ),
    (
        "WITH n AS (SELECT id + 3 AS id FROM t) SELECT id FROM n",
        &[4, 5, 6],
    ),
    ("SELECT v FROM (VALUES (4), (5)) AS n (v)", &[4, 5]),
];

#[tokio::test]
async fn prepared_inserts_that_leave_out_columns_bring_null_in_every_shape() {
    let template = Table::create(
        "id BIGINT, x BIGINT, s VARCHAR",
        "",
        &["VALUES (1, 1, 'a'), (2, NULL, 'b'), (3, 5, 'c')"],
    )
    .await;
    for (rows, ids) in INSERTED {
        for prepared in [false, true] {
            let table = template.copy().await;
            let text = format!("INSERT OVERWRITE t (id) {rows}");
            let count = if prepared {
                table.run(&format!("PREPARE p AS {text}")).await;
                let count = table.count("EXECUTE p").await;
                table.run("DEALLOCATE p").await;
                count
            } else {
                table.count(&text).await
            };
            assert_eq!(count, ids.len() as u64, "{rows}");
            let expected: Vec<String> = ids.iter().map(|id| format!("{id}|NULL|NULL")).collect();
            let found = table.rows("SELECT * FROM t ORDER BY id").await;
            assert_eq!(found, expected, "{rows}, prepared: {prepared}");
        }
    }
}
