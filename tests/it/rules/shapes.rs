//! Ways to bring rows that go past SQL's INSERT.

use datafusion::dataframe::DataFrameWriteOptions;
use delta_disjoint::{Error, ErrorKind};

use super::{add_check, generate};
use crate::support::Table;

#[tokio::test]
async fn frames_that_are_written_are_held_to_the_rules() {
    let table = Table::create("id BIGINT, g BIGINT, x BIGINT", "", &[]).await;
    generate(&table, "g", "x + 1").await;
    add_check(&table, "positive", "x > 0").await;
    table.run("SELECT 1 FROM t").await;
    for (query, part) in [
        ("SELECT 1 AS id, 3 AS g, 2 AS x", None),
        (
            "SELECT 1 AS id, 1 AS g, 0 AS x",
            Some("CHECK constraint positive"),
        ),
        ("SELECT 1 AS id, 4 AS g, 2 AS x", Some("generated column g")),
    ] {
        let frame = table.ctx.sql(query).await.expect("plan");
        let result = frame.write_table("t", DataFrameWriteOptions::new()).await;
        match (result, part) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) => {
                let found = Error::find(&error).expect("an error of this crate");
                assert_eq!(found.kind(), ErrorKind::Invalid, "{error}");
                assert!(found.message().contains(part), "{error}");
            }
            (found, _) => panic!("{query}: {found:?}"),
        }
    }
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|3|2"]);
}

#[tokio::test]
async fn plain_sql_of_the_session_is_held_to_the_rules() {
    let table = Table::create("id BIGINT, g BIGINT, x BIGINT", "", &[]).await;
    generate(&table, "g", "x + 1").await;
    table.run("SELECT 1 FROM t").await;
    let insert = |text: &'static str| async {
        let frame = table.ctx.sql(text).await?;
        frame.collect().await
    };
    insert("INSERT INTO t (id, x) VALUES (1, 2)")
        .await
        .expect("inserted");
    insert("INSERT INTO t VALUES (1, 2, 2)")
        .await
        .expect_err("refused");
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|3|2"]);
}

#[tokio::test]
async fn queries_never_see_what_stands_for_a_value() {
    let table = Table::create("id BIGINT, g BIGINT, x BIGINT", "", &[]).await;
    generate(&table, "g", "x + 1").await;
    let plan = table
        .rows("EXPLAIN VERBOSE INSERT INTO t (id, x) SELECT 1, 2")
        .await
        .join("\n");
    let physical = plan.rsplit("physical_plan").next().expect("a plan");
    assert!(!physical.contains("made_by_table"), "{plan}");
    assert_eq!(table.log().0, 1);
    // Another table takes the columns as they are.
    table
        .run("CREATE TABLE m (id BIGINT, g BIGINT) AS SELECT id, g FROM t")
        .await;
}
