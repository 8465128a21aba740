//! Random conditions over random rows: what DELETE and UPDATE leave in the Delta table is what a
//! query over the same rows in memory computes.

use std::fmt::Write;

use delta_disjoint::sql;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support::{Table, count};

const CASES: u32 = 20;

/// `(a BIGINT, f DOUBLE, s VARCHAR)` as literals.
type Row = (&'static str, &'static str, &'static str);

fn row() -> impl Strategy<Value = Row> {
    (
        prop::sample::select(vec!["-2", "-1", "0", "1", "2", "3", "NULL"]),
        prop::sample::select(vec![
            "CAST('NaN' AS DOUBLE)",
            "CAST('-0.0' AS DOUBLE)",
            "0.0",
            "1.5",
            "-1.5",
            "CAST('inf' AS DOUBLE)",
            "CAST('-inf' AS DOUBLE)",
            "NULL",
        ]),
        prop::sample::select(vec!["''", "'a'", "'ab'", "'b'", "'é'", "NULL"]),
    )
}

fn leaf() -> impl Strategy<Value = String> {
    let comparison = prop::sample::select(vec![
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "IS DISTINCT FROM",
        "IS NOT DISTINCT FROM",
    ]);
    prop_oneof![
        6 => (comparison, row(), 0..5).prop_map(|(op, (a, f, s), which)| match which {
            0 => format!("a {op} {a}"),
            1 => format!("f {op} {f}"),
            2 => format!("s {op} {s}"),
            3 => format!("f {op} a"),
            _ => format!("a + 1 {op} {a}"),
        }),
        1 => prop::sample::select(vec!["a", "f", "s"]).prop_map(|column| format!("{column} IS NULL")),
        1 => (row(), row()).prop_map(|(x, y)| format!("a IN ({}, {})", x.0, y.0)),
        1 => (row(), row()).prop_map(|(x, y)| format!("f NOT IN ({}, {})", x.1, y.1)),
        1 => (row(), row()).prop_map(|(x, y)| format!("f BETWEEN {} AND {}", x.1, y.1)),
        1 => prop::sample::select(vec!["s LIKE 'a%'", "s NOT LIKE '%b'", "true", "NULL", "abs(a) = 1"])
            .prop_map(str::to_owned),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("({l}) AND ({r})")),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| format!("({l}) OR ({r})")),
            inner.clone().prop_map(|inner| format!("NOT ({inner})")),
            inner
                .clone()
                .prop_map(|inner| format!("({inner}) IS NOT TRUE")),
            inner
                .clone()
                .prop_map(|inner| format!("({inner}) IS NOT NULL")),
            (inner.clone(), inner)
                .prop_map(|(c, v)| format!("CASE WHEN {c} THEN {v} ELSE a = 1 END")),
        ]
    })
}

#[test]
fn delete_and_update_agree_with_a_query_in_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime");
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    // Always the same cases: a test that fails now and then is no help here.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let input = (
        prop::collection::vec(prop::collection::vec(row(), 1..5), 1..4),
        condition(),
        condition(),
    );
    TestRunner::new_with_rng(config, rng)
        .run(&input, |(files, first, second)| {
            runtime.block_on(check(&files, &first, &second));
            Ok(())
        })
        .expect("agrees");
}

/// UPDATE by the first condition, then DELETE by the second.
async fn check(files: &[Vec<Row>], first: &str, second: &str) {
    let mut id = 0;
    let inserts: Vec<String> = files
        .iter()
        .map(|rows| {
            let mut values = String::from("VALUES ");
            for (a, f, s) in rows {
                let comma = if values.ends_with(')') { ", " } else { "" };
                write!(values, "{comma}({id}, {a}, {f}, {s})").expect("text");
                id += 1;
            }
            values
        })
        .collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    let columns = "id BIGINT, a BIGINT, f DOUBLE, s VARCHAR";
    let table = Table::create(columns, "", &inserts).await;
    table.run(&format!("CREATE TABLE m ({columns})")).await;
    for insert in inserts {
        table.run(&format!("INSERT INTO m {insert}")).await;
    }

    let set = [
        ("id", "id"),
        ("a", "CASE WHEN a > 0 THEN NULL ELSE coalesce(a, 0) + 1 END"),
        ("f", "f * -1"),
        ("s", "concat(s, 'x')"),
    ];
    let assignments: Vec<String> = set[1..]
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let changed = match sql(
        &table.ctx,
        &format!("UPDATE t SET {} WHERE {first}", assignments.join(", ")),
    )
    .await
    .expect("plans")
    .collect()
    .await
    {
        Ok(batches) => count(&batches),
        Err(error) => panic!("{first}: {error}"),
    };
    let columns: Vec<String> = set
        .iter()
        .map(|(name, value)| format!("CASE WHEN {first} THEN {value} ELSE {name} END AS {name}"))
        .collect();
    table
        .run(&format!(
            "CREATE TABLE updated AS SELECT {} FROM m",
            columns.join(", ")
        ))
        .await;
    let expected = table
        .rows(&format!("SELECT count(*) FROM m WHERE {first}"))
        .await;
    assert_eq!([changed.to_string()], expected[..], "UPDATE WHERE {first}");
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        table.rows("SELECT * FROM updated ORDER BY id").await,
        "UPDATE WHERE {first}"
    );

    let deleted = table.count(&format!("DELETE FROM t WHERE {second}")).await;
    let expected = table
        .rows(&format!(
            "SELECT * FROM updated WHERE ({second}) IS NOT TRUE ORDER BY id"
        ))
        .await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        expected,
        "DELETE WHERE {second}"
    );
    assert_eq!(deleted, id - expected.len() as u64, "DELETE WHERE {second}");
}
