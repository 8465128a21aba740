//! One small table and many forms of WHERE, each with the rows it is true for, worked out by hand.
//! DELETE and UPDATE run the same list.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};

use crate::support::Table;

/// The rows of the table by `id`, as [`Table::rows`] gives them; three to a file.
pub const ROWS: [&str; 9] = [
    "1|10|a",
    "2|NULL|b",
    "3|30|NULL",
    "4|40|d",
    "5|50|e",
    "6|NULL|NULL",
    "7|70|g",
    "8|80|h",
    "9|90|",
];

/// A WHERE clause and the ids it is true for.
pub type Case = (&'static str, &'static [i64]);

/// Conditions on the row alone.
pub const CONDITIONS: &[Case] = &[
    ("", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("WHERE true", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("WHERE 1 = 1", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("WHERE false", &[]),
    ("WHERE NULL", &[]),
    ("WHERE 1 = 2", &[]),
    ("WHERE id > 5 AND id < 3", &[]),
    ("WHERE id > 100", &[]),
    // Three-valued logic.
    ("WHERE x > 40", &[5, 7, 8, 9]),
    ("WHERE x <> 40", &[1, 3, 5, 7, 8, 9]),
    ("WHERE NOT (x = 40)", &[1, 3, 5, 7, 8, 9]),
    ("WHERE x = x", &[1, 3, 4, 5, 7, 8, 9]),
    ("WHERE x IS NULL", &[2, 6]),
    ("WHERE x IS NOT NULL", &[1, 3, 4, 5, 7, 8, 9]),
    ("WHERE x = NULL", &[]),
    ("WHERE NOT (x = NULL)", &[]),
    ("WHERE x IS DISTINCT FROM 40", &[1, 2, 3, 5, 6, 7, 8, 9]),
    ("WHERE x IS NOT DISTINCT FROM NULL", &[2, 6]),
    ("WHERE (x > 40) IS NOT TRUE", &[1, 2, 3, 4, 6]),
    ("WHERE (x > 40) IS UNKNOWN", &[2, 6]),
    ("WHERE (x > 40) IS FALSE", &[1, 3, 4]),
    ("WHERE x > 40 OR s IS NULL", &[3, 5, 6, 7, 8, 9]),
    ("WHERE x > 40 AND s IS NOT NULL AND s <> ''", &[5, 7, 8]),
    ("WHERE NOT (x > 40 AND id < 8)", &[1, 3, 4, 8, 9]),
    (
        "WHERE CASE WHEN x IS NULL THEN true ELSE id = 1 END",
        &[1, 2, 6],
    ),
    // Lists.
    ("WHERE x IN (10, 90)", &[1, 9]),
    ("WHERE x IN (10, NULL)", &[1]),
    ("WHERE x NOT IN (10, 90)", &[3, 4, 5, 7, 8]),
    ("WHERE x NOT IN (10, NULL)", &[]),
    ("WHERE (x IN (10, NULL)) IS NULL", &[2, 3, 4, 5, 6, 7, 8, 9]),
    // Strings and functions.
    ("WHERE s = ''", &[9]),
    ("WHERE coalesce(s, '') = ''", &[3, 6, 9]),
    ("WHERE s LIKE 'a%' OR s >= 'h'", &[1, 8]),
    ("WHERE x BETWEEN 40 AND 70", &[4, 5, 7]),
    ("WHERE CAST(id AS VARCHAR) = '3'", &[3]),
    ("WHERE x = '40'", &[4]),
    ("WHERE x > 39.5 AND x < 40.5", &[4]),
    ("WHERE id % 2 = 1 AND random() < 2", &[1, 3, 5, 7, 9]),
    ("WHERE random() < 0", &[]),
    ("WHERE now() < TIMESTAMP '2000-01-01T00:00:00Z'", &[]),
    ("WHERE twice_immutable(x) = 20", &[1]),
    ("WHERE twice_stable(x) > 150", &[8, 9]),
    ("WHERE twice_volatile(x) > 150", &[8, 9]),
    ("WHERE twice_volatile(id) > 4 AND id <= 3", &[3]),
];

/// Subqueries over another table, whose ids are 2, 5, 7 and NULL.
pub const SUBQUERIES: &[Case] = &[
    ("WHERE id IN (SELECT id FROM o)", &[2, 5, 7]),
    ("WHERE id NOT IN (SELECT id FROM o)", &[]),
    ("WHERE NOT (id IN (SELECT id FROM o))", &[]),
    (
        "WHERE id NOT IN (SELECT id FROM o WHERE id IS NOT NULL)",
        &[1, 3, 4, 6, 8, 9],
    ),
    (
        "WHERE x NOT IN (SELECT id FROM o WHERE id IS NOT NULL)",
        &[1, 3, 4, 5, 7, 8, 9],
    ),
    ("WHERE id IN (SELECT id FROM o WHERE false)", &[]),
    (
        "WHERE id NOT IN (SELECT id FROM o WHERE id > 100)",
        &[1, 2, 3, 4, 5, 6, 7, 8, 9],
    ),
    (
        "WHERE EXISTS (SELECT 1 FROM o)",
        &[1, 2, 3, 4, 5, 6, 7, 8, 9],
    ),
    ("WHERE NOT EXISTS (SELECT 1 FROM o)", &[]),
    ("WHERE EXISTS (SELECT 1 FROM o WHERE y > 1000)", &[]),
    (
        "WHERE EXISTS (SELECT 1 FROM o WHERE o.id = t.id)",
        &[2, 5, 7],
    ),
    (
        "WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.id = t.id)",
        &[1, 3, 4, 6, 8, 9],
    ),
    (
        "WHERE EXISTS (SELECT 1 FROM o WHERE o.id = t.id AND o.y > t.x)",
        &[5],
    ),
    (
        "WHERE EXISTS (SELECT 1 FROM o WHERE o.id = t.id) OR x = 10",
        &[1, 2, 5, 7],
    ),
    ("WHERE id IN (SELECT id FROM o) OR x IS NULL", &[2, 5, 6, 7]),
    ("WHERE id IN (SELECT id FROM o) AND x > 50", &[7]),
    (
        "WHERE (SELECT count(*) FROM o WHERE o.id = t.id) = 0",
        &[1, 3, 4, 6, 8, 9],
    ),
    ("WHERE x < (SELECT max(y) FROM o)", &[1, 3, 4, 5]),
    ("WHERE x > (SELECT max(y) FROM o WHERE false)", &[]),
    ("WHERE x < (SELECT max(y) FROM o WHERE o.id = t.id)", &[5]),
    (
        "WHERE id IN (WITH c AS (SELECT id FROM o WHERE id > 3) SELECT id FROM c)",
        &[5, 7],
    ),
    (
        "WHERE id IN (SELECT id FROM o UNION ALL SELECT 9)",
        &[2, 5, 7, 9],
    ),
];

/// Subqueries over the target itself.
pub const OWN_SUBQUERIES: &[Case] = &[
    ("WHERE id = (SELECT max(id) FROM t)", &[9]),
    ("WHERE x > (SELECT avg(x) FROM t)", &[7, 8, 9]),
    ("WHERE id IN (SELECT id FROM t WHERE x > 60)", &[7, 8, 9]),
    ("WHERE id IN (SELECT id + 1 FROM t WHERE x > 60)", &[8, 9]),
    (
        "WHERE id NOT IN (SELECT id FROM t WHERE x > 60)",
        &[1, 2, 3, 4, 5, 6],
    ),
    ("WHERE id NOT IN (SELECT x FROM t)", &[]),
    (
        "WHERE id IN (SELECT id FROM t ORDER BY id DESC LIMIT 2)",
        &[8, 9],
    ),
    (
        "WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = t.id + 1 AND b.x > t.x)",
        &[3, 4, 7, 8],
    ),
    (
        "WHERE x = (SELECT max(b.x) FROM t b WHERE b.s = t.s)",
        &[1, 4, 5, 7, 8, 9],
    ),
    (
        "WHERE id IN (SELECT id FROM o WHERE id IN (SELECT id FROM t WHERE x = 50))",
        &[5],
    ),
    ("WHERE id IN (SELECT id FROM small)", &[1, 3, 4]),
    ("WHERE x > (SELECT max(x) FROM small) AND id < 8", &[5, 7]),
];

/// The table, filled, with what the conditions refer to: the table `o` and three functions that
/// double.
pub async fn template() -> Table {
    let table = Table::create(
        "id BIGINT, x BIGINT, s VARCHAR",
        "",
        &[
            "VALUES (1, 10, 'a'), (2, NULL, 'b'), (3, 30, NULL)",
            "VALUES (4, 40, 'd'), (5, 50, 'e'), (6, NULL, NULL)",
            "VALUES (7, 70, 'g'), (8, 80, 'h'), (9, 90, '')",
        ],
    )
    .await;
    table
        .run("CREATE TABLE o (id BIGINT, y BIGINT) AS VALUES (2, 20), (5, 55), (7, 7), (NULL, 1)")
        .await;
    for (name, volatility) in [
        ("twice_immutable", Volatility::Immutable),
        ("twice_stable", Volatility::Stable),
        ("twice_volatile", Volatility::Volatile),
    ] {
        let twice = |args: &[ColumnarValue]| {
            let arrays = ColumnarValue::values_to_arrays(args)?;
            let doubled: Int64Array = arrays[0]
                .as_primitive::<Int64Type>()
                .unary_opt(|value| value.checked_mul(2));
            Ok(ColumnarValue::Array(Arc::new(doubled) as ArrayRef))
        };
        table.ctx.register_udf(create_udf(
            name,
            vec![DataType::Int64],
            DataType::Int64,
            volatility,
            Arc::new(twice),
        ));
    }
    table
}

/// A copy of `template` for `statement`, with the view `small` of it where that is asked for.
pub async fn fresh(template: &Table, statement: &str) -> Table {
    let table = template.copy().await;
    if statement.contains("small") {
        table
            .run("CREATE OR REPLACE VIEW small AS SELECT id, x FROM t WHERE x < 45")
            .await;
    }
    table
}

/// The files among `live`, three rows each in order of id, that hold none of `ids`.
pub fn untouched(live: &[String], ids: &[i64]) -> Vec<String> {
    live.iter()
        .enumerate()
        .filter(|(file, _)| !ids.iter().any(|id| (id - 1) / 3 == *file as i64))
        .map(|(_, path)| path.clone())
        .collect()
}
