//! Rules are about what the table will hold, not about what a statement's rows look like.

use delta_disjoint::ErrorKind;

use super::{add_check, add_key, generate};
use crate::support::{Table, kind_of};

async fn violates(table: &Table, text: &str, part: &str) {
    let error = table.refused(text).await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
    assert!(error.to_string().contains(part), "{text}: {error}");
}

#[tokio::test]
async fn an_empty_text_in_a_partition_column_is_null_for_the_rules() {
    let table = Table::create(
        "id BIGINT, u VARCHAR, p VARCHAR",
        "PARTITIONED BY (p)",
        &["VALUES (1, 'x', 'x')"],
    )
    .await;
    add_check(&table, "there", "p IS NOT NULL OR id > 5").await;
    generate(&table, "u", "coalesce(p, 'none')").await;
    for text in [
        "INSERT INTO t (id, p) VALUES (2, '')",
        "INSERT INTO t (id, p) SELECT id, trim(' ') FROM t",
        "UPDATE t SET p = ''",
        "MERGE INTO t USING (VALUES (2)) AS s (id) ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, '')",
    ] {
        violates(&table, text, "p = NULL").await;
    }
    // A default and a fixed length come first.
    add_key(&table, &["p"], "CURRENT_DEFAULT", "''").await;
    violates(&table, "INSERT INTO t (id) VALUES (2)", "p = NULL").await;
    table.run("INSERT INTO t (id) VALUES (6)").await;
    add_key(&table, &["p"], "__CHAR_VARCHAR_TYPE_STRING", "char(2)").await;
    table.run("INSERT INTO t (id, p) VALUES (3, '')").await;
    assert_eq!(
        table
            .rows("SELECT id, u, '<' || p || '>' FROM t ORDER BY id")
            .await,
        ["1|x|<x>", "3|  |<  >", "6|none|NULL"]
    );
}

#[tokio::test]
async fn an_empty_text_of_a_generated_partition_column_is_null_for_the_rules() {
    let table = Table::create("id BIGINT, s VARCHAR, g VARCHAR", "PARTITIONED BY (g)", &[]).await;
    generate(&table, "g", "trim(s)").await;
    table
        .run("INSERT INTO t VALUES (1, ' ', ''), (2, ' ', NULL)")
        .await;
    table.run("INSERT INTO t (id, s) VALUES (3, ' ')").await;
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE g IS NULL").await,
        ["3"]
    );
    violates(
        &table,
        "INSERT INTO t VALUES (4, 'a', '')",
        "the value NULL",
    )
    .await;
    add_check(&table, "there", "g IS NOT NULL").await;
    for text in [
        "INSERT INTO t (id, s) VALUES (4, ' ')",
        "INSERT INTO t VALUES (4, ' ', '')",
        "UPDATE t SET id = 5",
    ] {
        violates(&table, text, "CHECK constraint there").await;
    }
}

#[tokio::test]
async fn a_field_of_a_struct_that_is_null_is_null_whatever_it_hides() {
    const HIDE: &str = "UPDATE t SET s = CASE WHEN id <> 1 THEN s END";
    for text in [
        "s.a > 0",
        "s.i.b > 0",
        "get_field(s, 'a') > 0",
        "get_field(get_field(s, 'i'), 'b') > 0",
    ] {
        let table = structs().await;
        add_check(&table, "positive", text).await;
        violates(&table, HIDE, text).await;
        table.run("UPDATE t SET id = id + 1").await;
    }
    let table = structs().await;
    generate(&table, "g", "s.i.b").await;
    table.run(HIDE).await;
    assert_eq!(
        table.rows("SELECT id, g FROM t ORDER BY id").await,
        ["1|NULL", "2|4"]
    );
    // The inner struct may be the one that is NULL.
    let table = structs().await;
    add_check(&table, "positive", "s.i.b > 0").await;
    violates(
        &table,
        "UPDATE t SET s = named_struct('a', 1, 'i', CASE WHEN id <> 1 THEN s.i END)",
        "s.i.b > 0",
    )
    .await;
}

async fn structs() -> Table {
    Table::create(
        "id BIGINT, g BIGINT, s STRUCT<a BIGINT, i STRUCT<b BIGINT>>",
        "",
        &[
            "VALUES (1, 2, named_struct('a', 1, 'i', named_struct('b', 2))), \
           (2, 4, named_struct('a', 3, 'i', named_struct('b', 4)))",
        ],
    )
    .await
}
