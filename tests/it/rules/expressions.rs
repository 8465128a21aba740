//! Which columns and expressions rules may be about.

use delta_disjoint::ErrorKind;

use super::{add_check, add_invariant};
use crate::support::{Table, kind_of};

/// Columns, clauses, rule, a row that keeps it and rows that do not.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const CASES: [Case; 13] = [
    (
        "id BIGINT, p VARCHAR",
        "PARTITIONED BY (p)",
        "p <> 'x'",
        "(1, 'a')",
        &["(1, 'x')", "(1, NULL)"],
    ),
    (
        "id BIGINT, s VARCHAR",
        "",
        "length(trim(s)) BETWEEN 1 AND 3",
        "(1, ' abc ')",
        &["(1, '   ')", "(1, 'abcd')", "(1, NULL)"],
    ),
    (
        "id BIGINT, t TIMESTAMP WITH TIME ZONE",
        "",
        "year(t) >= 2020 AND t < '2030-01-01'",
        "(1, '2020-01-01T00:00:00Z')",
        &["(1, '2019-12-31T23:59:59Z')", "(1, '2031-01-01T00:00:00Z')"],
    ),
    (
        "id BIGINT, s STRUCT<a BIGINT>",
        "",
        "s.a > 0",
        "(1, named_struct('a', 1))",
        &[
            "(1, named_struct('a', 0))",
            "(1, named_struct('a', NULL))",
            "(1, NULL)",
        ],
    ),
    (
        "id BIGINT, \"Amount\" BIGINT",
        "",
        "amount > 0 AND ID > 0",
        "(1, 1)",
        &["(1, 0)", "(0, 1)"],
    ),
    (
        "id BIGINT, \"a.b\" BIGINT",
        "",
        "`a.b` > 0",
        "(1, 1)",
        &["(1, 0)"],
    ),
    (
        "id BIGINT, \"order\" BIGINT",
        "",
        "`order` > 0",
        "(1, 1)",
        &["(1, 0)"],
    ),
    (
        "id BIGINT, d DOUBLE",
        "",
        "d >= 0",
        "(1, 'NaN'::DOUBLE)",
        &["(1, -0.5)", "(1, '-Infinity'::DOUBLE)"],
    ),
    (
        "id BIGINT, d DOUBLE",
        "",
        "NOT isnan(d) AND d < 0",
        "(1, -1.0)",
        &["(1, 'NaN'::DOUBLE)", "(1, -0.0)", "(1, NULL)"],
    ),
    (
        "id BIGINT, n DECIMAL(10, 2)",
        "",
        "n > 0.1",
        "(1, 0.11)",
        &["(1, 0.10)"],
    ),
    ("id BIGINT, x INT", "", "x / 2 > 1", "(1, 3)", &["(1, 2)"]),
    (
        "id BIGINT, b BOOLEAN",
        "",
        "b",
        "(1, true)",
        &["(1, false)", "(1, NULL)"],
    ),
    (
        "id BIGINT, s VARCHAR",
        "",
        "s IN ('a', \"b\")",
        "(1, 'b')",
        &["(1, 'c')", "(1, NULL)"],
    ),
];

#[tokio::test]
async fn rules_are_about_all_kinds_of_columns() {
    for (columns, clauses, text, good, bad) in CASES {
        for kind in ["check", "invariant"] {
            let table = Table::create(columns, clauses, &[]).await;
            match kind {
                "check" => add_check(&table, "c", text).await,
                _ => add_invariant(&table, &["id"], text).await,
            }
            for row in bad {
                let error = table.refused(&format!("INSERT INTO t VALUES {row}")).await;
                assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
                assert!(error.to_string().contains(text), "{text}: {error}");
            }
            let insert = format!("INSERT INTO t VALUES {good}");
            assert_eq!(table.count(&insert).await, 1, "{text}");
            assert_eq!(table.count("UPDATE t SET id = 2").await, 1, "{text}");
        }
    }
}

#[tokio::test]
async fn rules_of_a_table_that_maps_its_columns_use_logical_names() {
    for mode in ["name", "id"] {
        let table = Table::create(
            "id BIGINT, \"my column\" BIGINT, s STRUCT<a BIGINT>",
            &format!("OPTIONS ('delta.columnMapping.mode' '{mode}')"),
            &[],
        )
        .await;
        add_check(&table, "c", "`my column` > 0 AND s.a > 0").await;
        table
            .run("INSERT INTO t VALUES (1, 1, named_struct('a', 1))")
            .await;
        table.run("UPDATE t SET \"my column\" = 2").await;
        for text in [
            "INSERT INTO t VALUES (2, 0, named_struct('a', 1))",
            "INSERT INTO t VALUES (2, 1, named_struct('a', 0))",
            "UPDATE t SET \"my column\" = 0",
        ] {
            let error = table.refused(text).await;
            assert!(error.to_string().contains("CHECK constraint c"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_rule_that_is_not_understood_refuses_rows_by_name_and_lets_others_go() {
    for (text, part) in [
        ("x >", "parsed"),
        ("rand() > x", "function rand"),
        ("x > (SELECT 1)", "SELECT 1"),
        ("max(x) > 1", "function max"),
        ("y > 1", "no column y"),
        ("x + 1", "BOOLEAN"),
    ] {
        let table = Table::numbers(2, 3, "").await;
        add_check(&table, "odd", text).await;
        for statement in [
            "INSERT INTO t VALUES (9, 9)",
            "INSERT INTO t SELECT * FROM t WHERE false",
            "INSERT OVERWRITE t VALUES (9, 9)",
            "UPDATE t SET x = 9 WHERE id = 1",
            "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id \
             WHEN NOT MATCHED THEN INSERT VALUES (9, 9)",
        ] {
            let error = table.refused(statement).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
            for part in [part, "CHECK constraint odd", text] {
                assert!(error.to_string().contains(part), "{part} in {error}");
            }
        }
        assert_eq!(table.count("DELETE FROM t WHERE id = 1").await, 1);
        let delete = "MERGE INTO t USING (VALUES (2)) AS s (id) ON t.id = s.id \
                      WHEN MATCHED THEN DELETE";
        assert_eq!(table.count(delete).await, 1);
        assert_eq!(table.count("TRUNCATE TABLE t").await, 4);
        assert_eq!(table.rows("SELECT count(*) FROM t").await, ["0"]);
    }
}

#[tokio::test]
async fn several_rules_are_all_kept() {
    let table = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    add_check(&table, "low", "x > 0").await;
    add_check(&table, "high", "x < 10").await;
    add_invariant(&table, &["x"], "x <> 5").await;
    for (value, rule) in [("0", "low"), ("10", "high"), ("5", "invariant")] {
        let error = table
            .refused(&format!("INSERT INTO t VALUES (1, {value})"))
            .await;
        assert!(error.to_string().contains(rule), "{error}");
    }
    assert_eq!(table.count("INSERT INTO t VALUES (1, 1)").await, 1);
    let plan = table
        .rows("EXPLAIN INSERT INTO t VALUES (1, 1)")
        .await
        .join("\n");
    assert!(plan.contains("RowRulesExec"), "{plan}");
    assert!(plan.contains("CHECK constraint high (x < 10)"), "{plan}");
}
