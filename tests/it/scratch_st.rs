use crate::support::Table;
#[tokio::test]
async fn scratch() {
    let table = Table::create("id BIGINT, x DOUBLE, s VARCHAR NOT NULL", "", &["VALUES (1, 2.0, 'a')", "VALUES (2, CAST('NaN' AS DOUBLE), 'a')", "VALUES (3, 5, 'a')"]).await;
    for q in ["INSERT INTO t SELECT * FROM t ORDER BY id DESC"] {
        println!("{}", table.rows(&format!("EXPLAIN VERBOSE {q}")).await.join("\n"));
    }
    println!("{}", table.rows("EXPLAIN INSERT INTO t VALUES (1, 2, 'a')").await.join("\n"));
    println!("{}", table.rows("EXPLAIN INSERT INTO t (id, s) VALUES (1, NULL)").await.join("\n"));
}
