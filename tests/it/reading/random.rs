//! Random predicates over files with disjoint ranges: whatever is pruned, the rows are those of a
//! table in memory.

use delta_disjoint::read::scan::DeltaScanExec;
use delta_disjoint::sql;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::{push_filters, same_as_memory};
use crate::support::Table;

const FILES: i64 = 6;
const ROWS_PER_FILE: i64 = 8;
const PREDICATES: usize = 60;

/// Longer than what statistics keep of a string, with characters outside the basic plane around
/// the cut.
fn text(row: i64) -> String {
    match row % 4 {
        0 => format!("{:04}", row),
        1 => format!("{:04}{}🌼tail", row, "x".repeat(27)),
        2 => format!("{:04}{}🦀🦀{row}", row, "y".repeat(28)),
        _ => format!("{:04}\u{10FFFF}{}", row, "ÿ".repeat(40)),
    }
}

/// Row `row` as SQL values; each is NULL now and then, and values grow with `row`, so that files
/// have disjoint ranges.
fn values(row: i64, random: &mut StdRng) -> String {
    let mut or_null = |value: String| {
        if random.random_bool(0.08) {
            "NULL".to_owned()
        } else {
            value
        }
    };
    let wide = i128::from(row - 20) * 1_000_000_000_000_000_000_003_i128;
    let fields = [
        row.to_string(),
        or_null(((row - 24) * 7).to_string()),
        or_null(format!("'{}'", text(row))),
        or_null(format!("{wide}.0000000001")),
        or_null(format!("DATE '{}-01-{:02}'", 1960 + row, row % 27 + 1)),
        or_null(format!(
            "TIMESTAMP '{}-03-01 23:59:59.{:06}'",
            1960 + row,
            row * 20_833 % 1_000_000
        )),
        or_null(match row % 9 {
            4 => "CAST('NaN' AS DOUBLE)".to_owned(),
            _ => format!("{}.5", row - 24),
        }),
        or_null((row % 2 == 0).to_string()),
    ];
    format!("({})", fields.join(", "))
}

const COLUMNS: &str = "k BIGINT, i INT, s VARCHAR, dc DECIMAL(38, 10), dt DATE, ts TIMESTAMP, \
                       d DOUBLE, b BOOLEAN";

async fn table(random: &mut StdRng) -> Table {
    let rows: Vec<String> = (0..FILES * ROWS_PER_FILE)
        .map(|row| values(row, random))
        .collect();
    let table = Table::create(COLUMNS, "", &[]).await;
    table
        .run(&format!(
            "CREATE TABLE m AS SELECT k, CAST(i AS INT) AS i, s, CAST(dc AS DECIMAL(38, 10)) AS dc, \
             dt, CAST(ts AS TIMESTAMP) AS ts, d, b FROM (VALUES {}) AS v(k, i, s, dc, dt, ts, d, b)",
            rows.join(", ")
        ))
        .await;
    for file in 0..FILES {
        table
            .run(&format!(
                "INSERT INTO t SELECT * FROM m WHERE k / {ROWS_PER_FILE} = {file}"
            ))
            .await;
    }
    table
}

fn one<'a>(random: &mut StdRng, of: &[&'a str]) -> &'a str {
    of.choose(random).copied().expect("not empty")
}

/// A literal near a random row's value of a random column, and the column.
fn operand(random: &mut StdRng) -> (&'static str, String) {
    let row = random.random_range(-2..FILES * ROWS_PER_FILE + 2);
    match random.random_range(0..7) {
        0 => ("k", row.to_string()),
        1 => (
            "i",
            ((row - 24) * 7 + random.random_range(-1..=1)).to_string(),
        ),
        2 => {
            let mut text = text(row.max(0));
            match random.random_range(0..4) {
                0 => text = text.chars().take(random.random_range(0..34)).collect(),
                1 => text.push('!'),
                _ => {}
            }
            ("s", format!("'{text}'"))
        }
        3 => {
            let wide = i128::from(row - 20) * 1_000_000_000_000_000_000_003_i128;
            (
                "dc",
                format!(
                    "CAST('{wide}.000000000{}' AS DECIMAL(38, 10))",
                    random.random_range(0..3)
                ),
            )
        }
        4 => (
            "dt",
            format!("DATE '{}-01-{:02}'", 1960 + row, random.random_range(1..28)),
        ),
        5 => (
            "ts",
            format!(
                "TIMESTAMP '{}-03-01 23:59:59.{:06}'",
                1960 + row,
                row.max(0) * 20_833 % 1_000_000 + random.random_range(0..2)
            ),
        ),
        _ => ("d", format!("{}.{}", row - 24, one(random, &["0", "5"]))),
    }
}

fn term(random: &mut StdRng) -> String {
    let (column, literal) = operand(random);
    match random.random_range(0..12) {
        0 => format!("{column} IS NULL"),
        1 => format!("{column} IS NOT NULL"),
        2 => one(
            random,
            &["b", "NOT b", "b = false", "b IS NULL", "b IS NOT TRUE"],
        )
        .to_owned(),
        3 if column == "s" => {
            let prefix: String = literal.trim_matches('\'').chars().take(6).collect();
            format!("s {} '{prefix}%'", one(random, &["LIKE", "NOT LIKE"]))
        }
        4 => format!(
            "{column} {} ({literal}, {literal}, NULL)",
            one(random, &["IN", "NOT IN"])
        ),
        5 => format!("{column} BETWEEN {literal} AND {literal}"),
        6 => format!(
            "{column} {} {literal}",
            one(random, &["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        ),
        7 => format!("{literal} {} {column}", one(random, &["<", ">=", "="])),
        8 if column == "i" => format!(
            "CAST(i AS BIGINT) {} {literal}",
            one(random, &["<", ">", "="])
        ),
        8 if column == "k" => format!("CAST(k AS DOUBLE) {} {literal}.5", one(random, &["<", ">"])),
        _ => format!(
            "{column} {} {literal}",
            one(random, &["=", "<>", "<", "<=", ">", ">="])
        ),
    }
}

fn predicate(random: &mut StdRng, depth: usize) -> String {
    if depth == 0 || random.random_bool(0.35) {
        return term(random);
    }
    let left = predicate(random, depth - 1);
    let right = predicate(random, depth - 1);
    match random.random_range(0..8) {
        0..=3 => format!("({left}) AND ({right})"),
        4..=5 => format!("({left}) OR ({right})"),
        6 => format!("NOT (({left}) AND ({right}))"),
        _ => format!("(({left}) OR ({right})) IS NOT TRUE"),
    }
}

/// Files that the scan of `t` under `predicate` left out.
async fn pruned(table: &Table, predicate: &str) -> usize {
    let frame = sql(&table.ctx, &format!("SELECT k FROM t WHERE {predicate}"))
        .await
        .expect("plan");
    let mut plan = frame.create_physical_plan().await.expect("physical plan");
    loop {
        if let Some(scan) = plan.downcast_ref::<DeltaScanExec>() {
            return scan.summary().files_pruned;
        }
        let Some(child) = plan
            .children()
            .first()
            .map(|child| std::sync::Arc::clone(child))
        else {
            return 0;
        };
        plan = child;
    }
}

#[tokio::test]
async fn random_predicates_give_the_rows_of_a_memory_table() {
    let seed = 20_26;
    let mut random = StdRng::seed_from_u64(seed);
    let table = table(&mut random).await;
    same_as_memory(&table.ctx, "SELECT * FROM {t}", "all").await;
    let mut files_pruned = 0;
    for number in 0..PREDICATES {
        let predicate = predicate(&mut random, 2);
        push_filters(&table.ctx, number % 2 == 1).await;
        files_pruned += pruned(&table, &predicate).await;
        same_as_memory(
            &table.ctx,
            &format!("SELECT k FROM {{t}} WHERE {predicate}"),
            &format!("seed {seed}, predicate {number}"),
        )
        .await;
    }
    // Else nothing was shown.
    assert!(files_pruned > PREDICATES, "{files_pruned} files pruned");
}
