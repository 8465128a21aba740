//! DELETE removes exactly the rows for which WHERE is true.

use crate::support::Table;
use crate::where_cases::{
    CONDITIONS, Case, OWN_SUBQUERIES, ROWS, SUBQUERIES, fresh, template, untouched,
};

#[tokio::test]
async fn delete_by_conditions_removes_the_rows_they_are_true_for() {
    check_all(&CONDITIONS[..CONDITIONS.len() / 2]).await;
}

#[tokio::test]
async fn delete_by_more_conditions_removes_the_rows_they_are_true_for() {
    check_all(&CONDITIONS[CONDITIONS.len() / 2..]).await;
}

#[tokio::test]
async fn delete_by_subqueries_removes_the_rows_they_are_true_for() {
    check_all(SUBQUERIES).await;
}

#[tokio::test]
async fn delete_by_subqueries_over_the_target_removes_the_rows_they_are_true_for() {
    check_all(OWN_SUBQUERIES).await;
}

async fn check_all(cases: &[Case]) {
    let template = template().await;
    let mut wrong = Vec::new();
    for (condition, ids) in cases {
        let table = fresh(&template, condition).await;
        let (version, live) = table.log();
        let count = match crate::support::try_run(&table.ctx, &format!("DELETE FROM t {condition}"))
            .await
        {
            Ok(batches) => crate::support::count(&batches),
            Err(error) => {
                wrong.push(format!("{condition}: {error}"));
                continue;
            }
        };
        let stay: Vec<&str> = ROWS
            .iter()
            .enumerate()
            .filter(|(row, _)| !ids.contains(&(*row as i64 + 1)))
            .map(|(_, text)| *text)
            .collect();
        let rows = table.rows("SELECT * FROM t ORDER BY id").await;
        if rows != stay || count != ids.len() as u64 {
            wrong.push(format!("{condition}: count {count}, rows {rows:?}"));
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
async fn delete_of_all_rows_of_a_file_writes_none() {
    let table = template().await;
    assert_eq!(table.count("DELETE FROM t WHERE id <= 3").await, 3);
    let (version, live) = table.log();
    assert_eq!(live.len(), 2);
    let entry = table.log_entry(version);
    assert!(entry.iter().all(|action| action.get("add").is_none()));
    assert_eq!(table.count("DELETE FROM t").await, 6);
    assert_eq!(table.log().1, Vec::<String>::new());
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn delete_from_an_empty_table_commits_nothing() {
    let table = Table::create("id BIGINT", "", &[]).await;
    for statement in [
        "DELETE FROM t",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE id IN (SELECT id FROM t)",
    ] {
        assert_eq!(table.count(statement).await, 0, "{statement}");
        assert_eq!(table.log().0, 0, "{statement}");
    }
}

#[tokio::test]
async fn delete_repeated_on_the_same_rows_finds_them_once() {
    let table = template().await;
    assert_eq!(table.count("DELETE FROM t WHERE id = 5").await, 1);
    let version = table.log().0;
    assert_eq!(table.count("DELETE FROM t WHERE id = 5").await, 0);
    assert_eq!(table.log().0, version);
    assert_eq!(
        table.count("UPDATE t SET x = 1 WHERE id IN (4, 5)").await,
        1
    );
    assert_eq!(table.count("DELETE FROM t WHERE x = 1").await, 1);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        [
            ROWS[0], ROWS[1], ROWS[2], ROWS[5], ROWS[6], ROWS[7], ROWS[8]
        ]
    );
}

#[tokio::test]
async fn delete_in_a_file_of_several_row_groups_hits_the_right_positions() {
    let table = Table::create("id BIGINT, s VARCHAR", "", &[]).await;
    crate::support::append_row_groups(&table, 5, 20).await;
    let gone = "id IN (0, 19, 20, 41, 59, 99)";
    assert_eq!(table.count(&format!("DELETE FROM t WHERE {gone}")).await, 6);
    assert_eq!(
        table
            .rows("SELECT count(*), sum(id), count(DISTINCT s) FROM t")
            .await,
        [format!("94|{}|94", 4950 - (19 + 20 + 41 + 59 + 99))]
    );
    assert_eq!(
        table
            .rows(&format!("SELECT * FROM t WHERE {gone}"))
            .await
            .len(),
        0
    );
    assert_eq!(
        table
            .rows("SELECT id FROM t WHERE s <> concat('s', id)")
            .await
            .len(),
        0
    );
}

#[tokio::test]
async fn delete_by_partition_value_takes_null_and_the_empty_string_as_null() {
    let table = Table::create(
        "p VARCHAR, id BIGINT",
        "PARTITIONED BY (p)",
        &["VALUES ('a', 1), (NULL, 2), ('', 3), ('b/c=d %', 4), ('a', 5)"],
    )
    .await;
    assert_eq!(table.count("DELETE FROM t WHERE p = ''").await, 0);
    assert_eq!(table.count("DELETE FROM t WHERE p = 'b/c=d %'").await, 1);
    assert_eq!(
        table
            .count("DELETE FROM t WHERE p IS NULL AND id = 2")
            .await,
        1
    );
    assert_eq!(
        table.rows("SELECT p, id FROM t ORDER BY id").await,
        ["a|1", "NULL|3", "a|5"]
    );
    assert_eq!(table.count("DELETE FROM t WHERE p <> 'b'").await, 2);
    assert_eq!(table.rows("SELECT p, id FROM t").await, ["NULL|3"]);
}
