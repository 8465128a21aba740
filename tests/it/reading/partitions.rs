//! Partition columns: typed, NULL, and with characters that paths do not take as they are.

use super::{PUSHDOWN, push_filters, same_as_memory, sorted};
use crate::support::{Table, rows};

const ODD: &[&str] = &[
    "a/b",
    "a b",
    "ü",
    "%",
    "a%2Fb",
    "a%25b",
    "=",
    "x=y",
    "it's",
    "\"q\"",
    "a:b",
    ".",
    "..",
    "a\\b",
    "#?&",
    "{}[]",
    "a\tb",
    "a\nb",
    "NULL",
    "null",
    "__HIVE_DEFAULT_PARTITION__x",
    "🦀",
    " ",
    "http://x/y",
];

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[tokio::test]
async fn odd_characters_in_partition_values_come_back() {
    let table = Table::create("id BIGINT, p VARCHAR", "PARTITIONED BY (p)", &[]).await;
    let values: Vec<String> = ODD
        .iter()
        .enumerate()
        .map(|(id, value)| format!("({id}, {})", quoted(value)))
        .collect();
    table
        .run(&format!(
            "CREATE TABLE m AS SELECT * FROM (VALUES {}, (100, NULL)) AS v(id, p)",
            values.join(", ")
        ))
        .await;
    table.run("INSERT INTO t SELECT * FROM m").await;
    same_as_memory(&table.ctx, "SELECT id, p FROM {t}", "all").await;
    for value in ODD {
        let query = format!("SELECT id FROM {{t}} WHERE p = {}", quoted(value));
        same_as_memory(&table.ctx, &query, "each").await;
        assert_eq!(
            sorted(&table.ctx, &query.replace("{t}", "t")).await.len(),
            1
        );
    }
    // deltalake finds the same files under the same values.
    let ctx = table.deltalake_session().await;
    assert_eq!(
        sorted(&ctx, "SELECT id, p FROM t").await,
        sorted(&table.ctx, "SELECT id, p FROM t").await
    );
    // And a change finds them again.
    for value in ODD {
        let changed = table
            .count(&format!(
                "UPDATE t SET id = id + 1000 WHERE p = {}",
                quoted(value)
            ))
            .await;
        assert_eq!(changed, 1, "{value}");
    }
    assert_eq!(
        table
            .rows("SELECT count(*), min(id) FROM t WHERE id >= 1000")
            .await,
        [format!("{}|1000", ODD.len())]
    );
    for value in ODD {
        let deleted = table
            .count(&format!("DELETE FROM t WHERE p = {}", quoted(value)))
            .await;
        assert_eq!(deleted, 1, "{value}");
    }
    assert_eq!(table.rows("SELECT id, p FROM t").await, ["100|NULL"]);
}

#[tokio::test]
async fn odd_characters_written_by_deltalake_are_read() {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    let table = Table::create("id BIGINT, p VARCHAR", "PARTITIONED BY (p)", &[]).await;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(ODD.len())));
    let values: ArrayRef = Arc::new(StringArray::from(ODD.to_vec()));
    let batch = RecordBatch::try_from_iter([("id", ids), ("p", values)]).expect("batch");
    table
        .deltalake()
        .await
        .write(vec![batch])
        .await
        .expect("deltalake writes");
    let expected: Vec<String> = ODD.iter().map(|value| (*value).to_owned()).collect();
    assert_eq!(table.rows("SELECT p FROM t ORDER BY id").await, expected);
    for value in ODD {
        let deleted = table
            .count(&format!("DELETE FROM t WHERE p = {}", quoted(value)))
            .await;
        assert_eq!(deleted, 1, "{value}");
    }
}

#[tokio::test]
async fn an_empty_partition_value_is_null_as_the_protocol_says() {
    let table = Table::create(
        "id BIGINT, p VARCHAR",
        "PARTITIONED BY (p)",
        &["VALUES (1, ''), (2, NULL), (3, 'x')"],
    )
    .await;
    for pushdown in PUSHDOWN {
        push_filters(&table.ctx, pushdown).await;
        for (predicate, expected) in [
            ("p IS NULL", vec!["1", "2"]),
            ("p = ''", vec![]),
            ("p <> 'x'", vec![]),
            ("p IS NOT NULL", vec!["3"]),
            ("p IS DISTINCT FROM 'x'", vec!["1", "2"]),
        ] {
            assert_eq!(
                table
                    .rows(&format!("SELECT id FROM t WHERE {predicate} ORDER BY id"))
                    .await,
                expected,
                "{predicate}"
            );
        }
    }
}

#[tokio::test]
async fn typed_partition_columns_give_the_rows_of_a_memory_table() {
    for (data_type, values, predicates) in [
        (
            "INT",
            "(0, 10), (1, 9), (2, -1), (3, NULL), (4, 2147483647)",
            &[
                "p < 10",
                "p = 9",
                "p IS NULL",
                "p > 2147483646",
                "p IN (9, -1)",
            ][..],
        ),
        (
            "DATE",
            "(0, DATE '2024-02-29'), (1, DATE '1969-12-31'), (2, DATE '9999-12-31'), (3, NULL)",
            &[
                "p > DATE '2000-01-01'",
                "p = DATE '1969-12-31'",
                "p IS NULL",
            ],
        ),
        (
            "TIMESTAMP",
            "(0, TIMESTAMP '2024-02-29 12:34:56.123456'), (1, TIMESTAMP '1969-12-31 23:59:59'), \
             (2, NULL)",
            &[
                "p > TIMESTAMP '2024-02-29 12:34:56.123455'",
                "p = TIMESTAMP '2024-02-29 12:34:56.123456'",
                "p IS NULL",
                "CAST(p AS TIME) = '23:59:59'",
            ],
        ),
        (
            "TIMESTAMP WITH TIME ZONE",
            "(0, TIMESTAMP '2024-02-29 12:34:56.123456'), (1, TIMESTAMP '1969-12-31 23:59:59'), \
             (2, NULL)",
            &[
                "p > '2024-02-29T12:34:56.123455Z'",
                "p < '1970-01-01T00:00:00Z'",
                "p IS NULL",
            ],
        ),
        (
            "DECIMAL(38, 2)",
            "(0, 1.10), (1, 123456789012345678901234567890123456.78), (2, -0.01), (3, NULL)",
            &["p > 1.1", "p = 1.1", "p < 0", "p IS NULL"],
        ),
        (
            "BOOLEAN",
            "(0, true), (1, false), (2, NULL)",
            &["p", "NOT p", "p = false", "p IS NULL", "p IS NOT TRUE"],
        ),
        (
            "DOUBLE",
            "(0, CAST('NaN' AS DOUBLE)), (1, -1.5), (2, CAST('Infinity' AS DOUBLE)), (3, 0.1), \
             (4, NULL)",
            &[
                "p > 1.0",
                "p < 0.2",
                "p = 0.1",
                "p <> 0.1",
                "p IS NULL",
                "p IN (0.1, 7)",
            ],
        ),
        (
            "BYTEA",
            "(0, X'c3bc'), (1, X'61'), (2, NULL)",
            &["p = X'c3bc'", "p > X'61'", "p IS NULL"],
        ),
        (
            "SMALLINT",
            "(0, 1), (1, -32768), (2, NULL)",
            &["p < 0", "p = 1", "p + 1 = 2", "p IS NULL"],
        ),
    ] {
        let table = Table::create(
            &format!("id BIGINT, p {data_type}"),
            "PARTITIONED BY (p)",
            &[],
        )
        .await;
        table
            .run(&format!(
                "CREATE TABLE m AS SELECT id, CAST(p AS {data_type}) AS p FROM (VALUES {values}) AS \
                 v(id, p)"
            ))
            .await;
        table.run("INSERT INTO t SELECT * FROM m").await;
        for (number, predicate) in predicates.iter().enumerate() {
            push_filters(&table.ctx, number % 2 == 0).await;
            for query in [
                format!("SELECT id, p FROM {{t}} WHERE {predicate}"),
                format!("SELECT id FROM {{t}} WHERE {predicate} OR id = 0"),
            ] {
                same_as_memory(&table.ctx, &query, data_type).await;
            }
        }
        for query in [
            "SELECT p, id FROM {t}",
            "SELECT p, count(*) FROM {t} GROUP BY p",
            "SELECT id FROM {t} ORDER BY p DESC NULLS LAST, id LIMIT 2",
            "SELECT a.id FROM {t} a JOIN {t} b ON a.p = b.p WHERE b.id < 2",
        ] {
            same_as_memory(&table.ctx, query, data_type).await;
        }
        let ctx = table.deltalake_session().await;
        assert_eq!(
            rows(&ctx, "SELECT id, p FROM t ORDER BY id").await,
            table.rows("SELECT id, p FROM t ORDER BY id").await,
            "{data_type}"
        );
    }
}
