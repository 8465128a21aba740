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
        refused * 3 < cases.len(),
        "{refused} of {} refused: most shapes should be understood",
        cases.len()
    );
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
