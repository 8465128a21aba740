//! Rows that an expression cannot be evaluated for.

use delta_disjoint::ErrorKind;

use super::{add_check, generate};
use crate::support::{Table, kind_of};

async fn cannot_be_evaluated(table: &Table, text: &str, row: &str) {
    let error = table.refused(text).await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
    let part = format!("cannot be evaluated for a row with {row}:");
    assert!(error.to_string().contains(&part), "{text}: {error}");
}

#[tokio::test]
async fn whole_numbers_that_do_not_fit_their_type_refuse_the_row() {
    for (columns, text, good, bad, row) in [
        (
            "x INT",
            "x + 1 > 0",
            "2147483646",
            "2147483647",
            "x = 2147483647",
        ),
        (
            "x INT",
            "x - 1 < 0",
            "-2147483647",
            "-2147483648",
            "x = -2147483648",
        ),
        (
            "x INT",
            "-x <> 0",
            "-2147483647",
            "-2147483648",
            "x = -2147483648",
        ),
        (
            "x INT",
            "abs(x) <> 0",
            "-2147483647",
            "-2147483648",
            "x = -2147483648",
        ),
        (
            "x BIGINT",
            "x + 1 <> 0",
            "9223372036854775806",
            "9223372036854775807",
            "x = 9223372036854775807",
        ),
        (
            "a INT, b INT",
            "a * b < 100",
            "9, 11",
            "65536, 65536",
            "a = 65536, b = 65536",
        ),
    ] {
        let table = Table::create(columns, "", &[]).await;
        add_check(&table, "c", text).await;
        cannot_be_evaluated(&table, &format!("INSERT INTO t VALUES ({bad})"), row).await;
        cannot_be_evaluated(
            &table,
            &format!("INSERT INTO t VALUES ({good}), ({bad})"),
            row,
        )
        .await;
        let insert = format!("INSERT INTO t VALUES ({good})");
        assert_eq!(table.count(&insert).await, 1, "{text}");
    }
}

#[tokio::test]
async fn a_generated_number_is_computed_in_the_type_of_its_parts() {
    let table = Table::create("a INT, g BIGINT", "", &[]).await;
    generate(&table, "g", "a * 1000").await;
    cannot_be_evaluated(&table, "INSERT INTO t (a) VALUES (3000000)", "a = 3000000").await;
    table.run("INSERT INTO t (a) VALUES (3000)").await;
    assert_eq!(table.rows("SELECT * FROM t").await, ["3000|3000000"]);
}

#[tokio::test]
async fn a_side_of_a_condition_that_a_row_does_not_need_does_not_refuse_it() {
    let table = Table::create("kind VARCHAR, s VARCHAR, g INT", "", &[]).await;
    add_check(&table, "c", "kind <> 'n' OR CAST(s AS INT) > 0").await;
    generate(
        &table,
        "g",
        "CASE WHEN kind <> 'n' OR CAST(s AS INT) > 1 THEN 1 ELSE 2 END",
    )
    .await;
    table
        .run("INSERT INTO t (kind, s) VALUES ('n', '1'), ('t', 'abc'), ('n', '2')")
        .await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY s").await,
        ["n|1|2", "n|2|1", "t|abc|1"]
    );
    cannot_be_evaluated(
        &table,
        "INSERT INTO t (kind, s) VALUES ('t', 'abc'), ('n', 'def'), ('n', '0')",
        "kind = n, s = def",
    )
    .await;
    let error = table
        .refused("INSERT INTO t (kind, s) VALUES ('t', 'abc'), ('n', '0')")
        .await;
    for part in [
        "CHECK constraint c",
        "violated by a row with kind = n, s = 0",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
