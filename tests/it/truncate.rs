//! TRUNCATE removes all rows and says how many there were.

use crate::support::Table;

#[tokio::test]
async fn truncate_removes_all_rows_of_all_files() {
    let table = Table::create(
        "p VARCHAR, id BIGINT",
        "PARTITIONED BY (p)",
        &["VALUES ('a', 1), (NULL, 2)", "VALUES ('b', 3)"],
    )
    .await;
    let (version, live) = table.log();
    assert_eq!(live.len(), 3);
    assert_eq!(table.count("TRUNCATE TABLE t").await, 3);
    assert_eq!(table.log(), (version + 1, vec![]));
    assert_eq!(table.rows("SELECT * FROM t").await, Vec::<String>::new());
    assert_eq!(table.commit_info(version + 1)["operation"], "TRUNCATE");
    assert_eq!(table.count("TRUNCATE TABLE t").await, 0);
    assert_eq!(
        table.log().0,
        version + 1,
        "nothing to do, nothing committed"
    );
    assert_eq!(table.count("INSERT INTO t VALUES ('a', 9)").await, 1);
    assert_eq!(table.rows("SELECT * FROM t").await, ["a|9"]);
}

#[tokio::test]
async fn truncate_counts_rows_that_the_statistics_do_not() {
    let table = Table::create("id BIGINT, s VARCHAR", "", &[]).await;
    crate::support::append_row_groups(&table, 3, 7).await;
    assert_eq!(table.count("TRUNCATE TABLE t").await, 21);
}
