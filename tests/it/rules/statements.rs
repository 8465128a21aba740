//! Rules that a row keeps or violates, on every way that rows come.

use delta_disjoint::ErrorKind;
use serde_json::json;

use super::{add_check, add_invariant, add_key, change_field, change_metadata};
use crate::support::{Table, kind_of};

/// Statements that bring a row with `{}` in `x`, and how many rows they change.
const STATEMENTS: [(&str, u64); 9] = [
    ("INSERT INTO t VALUES (3, {})", 1),
    ("INSERT INTO t (x, id) VALUES ({}, 3)", 1),
    ("INSERT INTO t VALUES (3, 5), (4, {}), (5, 6)", 3),
    ("INSERT INTO t SELECT id + 10, {} FROM t WHERE id = 1", 1),
    ("INSERT OVERWRITE t VALUES (3, {})", 1),
    ("UPDATE t SET x = {} WHERE id = 1", 1),
    (
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = {}",
        1,
    ),
    (
        "MERGE INTO t USING (VALUES (3)) AS s (id) ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, {})",
        1,
    ),
    (
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN UPDATE SET x = {}",
        2,
    ),
];

struct Case {
    rule: &'static str,
    type_of_x: &'static str,
    good: &'static [&'static str],
    /// Values that violate the rule, and what the message says besides the rule's own parts.
    bad: &'static [(&'static str, &'static str)],
    parts: &'static [&'static str],
}

const CASES: [Case; 5] = [
    Case {
        rule: "check",
        type_of_x: "BIGINT",
        good: &["5", "1"],
        bad: &[("0", "x = 0"), ("-1", "x = -1"), ("NULL", "x = NULL")],
        parts: &["CHECK constraint positive (x > 0) is violated by a row with"],
    },
    Case {
        rule: "check that takes NULL",
        type_of_x: "BIGINT",
        good: &["5", "NULL"],
        bad: &[("-1", "x = -1")],
        parts: &["CHECK constraint positive (x IS NULL OR x > 0)"],
    },
    Case {
        rule: "invariant",
        type_of_x: "BIGINT",
        good: &["5"],
        bad: &[("-1", "x = -1"), ("NULL", "x = NULL")],
        parts: &["invariant of the column x (x > 0)"],
    },
    Case {
        rule: "not null",
        type_of_x: "BIGINT",
        good: &["5", "-1"],
        bad: &[("NULL", "x = NULL")],
        parts: &["NOT NULL of the column x"],
    },
    Case {
        rule: "length",
        type_of_x: "VARCHAR",
        good: &["'5'", "'äöü'", "NULL"],
        bad: &[("'abcd'", "x = abcd")],
        parts: &["VARCHAR(3) of the column x", "4 characters"],
    },
];

impl Case {
    /// `t` with the rows (1, 10) and (2, 20) and the rule.
    async fn table(&self) -> Table {
        let table = Table::create(
            &format!("id BIGINT, x {}", self.type_of_x),
            "",
            &["VALUES (1, 10)", "VALUES (2, 20)"],
        )
        .await;
        match self.rule {
            "check" => add_check(&table, "positive", "x > 0").await,
            "check that takes NULL" => add_check(&table, "positive", "x IS NULL OR x > 0").await,
            "invariant" => add_invariant(&table, &["x"], "x > 0").await,
            "not null" => {
                change_metadata(&table, |metadata| {
                    change_field(metadata, &["x"], |field| field["nullable"] = json!(false));
                })
                .await;
            }
            _ => add_key(&table, &["x"], "__CHAR_VARCHAR_TYPE_STRING", "varchar(3)").await,
        }
        table
    }
}

#[tokio::test]
async fn rows_that_violate_a_rule_are_refused_with_their_value() {
    for case in &CASES {
        let table = case.table().await;
        for (number, (statement, _)) in STATEMENTS.into_iter().enumerate() {
            // Each value in some statements, each statement with some value.
            for (value, shown) in case.bad.iter().skip(number % case.bad.len()).step_by(2) {
                let text = statement.replace("{}", value);
                let error = table.refused(&text).await;
                assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
                for part in case.parts.iter().chain([shown]) {
                    assert!(
                        error.to_string().contains(part),
                        "{text}: {part} in {error}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn rows_that_violate_a_rule_are_refused_in_a_transaction() {
    for case in &CASES {
        let table = case.table().await;
        let before = (table.log(), table.data_files_on_disk());
        for (statement, _) in STATEMENTS {
            let (value, shown) = case.bad[0];
            let text = statement.replace("{}", value);
            table.run("BEGIN").await;
            table.run("UPDATE t SET id = 2 WHERE id = 2").await;
            let error = table.error(&text).await;
            for part in case.parts.iter().chain([&shown]) {
                assert!(
                    error.to_string().contains(part),
                    "{text}: {part} in {error}"
                );
            }
            table.run("ROLLBACK").await;
            assert_eq!((table.log(), table.data_files_on_disk()), before, "{text}");
        }
    }
}

#[tokio::test]
async fn rows_that_keep_the_rules_are_written_alone_and_in_a_transaction() {
    for case in &CASES {
        let original = case.table().await;
        for (statement, count) in STATEMENTS {
            for value in case.good.iter().take(2) {
                let text = statement.replace("{}", value);
                let table = original.copy().await;
                assert_eq!(table.count(&text).await, count, "{text}");
                let expected = table.rows("SELECT * FROM t ORDER BY id, x").await;
                assert!(!expected.is_empty());
                if *value != case.good[0] {
                    continue;
                }
                let in_transaction = original.copy().await;
                in_transaction.run("BEGIN").await;
                assert_eq!(in_transaction.count(&text).await, count, "{text}");
                in_transaction.run("COMMIT").await;
                let found = in_transaction.rows("SELECT * FROM t ORDER BY id, x").await;
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}

#[tokio::test]
async fn rows_that_are_only_copied_or_deleted_are_not_looked_at() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "",
        &["VALUES (1, -1), (2, 5), (3, -3)"],
    )
    .await;
    add_check(&table, "positive", "x > 0").await;
    assert_eq!(table.count("DELETE FROM t WHERE id = 3").await, 1);
    assert_eq!(table.count("UPDATE t SET x = 6 WHERE id = 2").await, 1);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["1|-1", "2|6"]
    );
    // A changed row is checked, whatever is changed in it.
    let error = table.refused("UPDATE t SET id = 7 WHERE id = 1").await;
    assert!(error.to_string().contains("x = -1"), "{error}");
    assert_eq!(table.count("TRUNCATE TABLE t").await, 2);
}

#[tokio::test]
async fn statements_without_rows_keep_every_rule() {
    let table = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    add_check(&table, "never", "x > 0 AND x < 0").await;
    for text in [
        "INSERT INTO t SELECT * FROM t",
        "UPDATE t SET x = -1",
        "UPDATE t SET x = -1 WHERE false",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS id WHERE false) AS s ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT VALUES (s.id, -1)",
    ] {
        assert_eq!(table.count(text).await, 0, "{text}");
    }
    let error = table.refused("INSERT INTO t VALUES (1, 1)").await;
    assert!(
        error.to_string().contains("CHECK constraint never"),
        "{error}"
    );
}

#[tokio::test]
async fn fixed_lengths_are_filled_up_with_blanks() {
    let table = Table::create("id BIGINT, x VARCHAR", "", &[]).await;
    add_key(&table, &["x"], "__CHAR_VARCHAR_TYPE_STRING", "char(3)").await;
    table
        .run("INSERT INTO t VALUES (1, 'a'), (2, 'abc'), (3, NULL), (4, 'ab    ')")
        .await;
    table.run("UPDATE t SET x = 'ü' WHERE id = 2").await;
    assert_eq!(
        table
            .rows("SELECT id, '<' || x || '>' FROM t ORDER BY id")
            .await,
        ["1|<a  >", "2|<ü  >", "3|NULL", "4|<ab >"]
    );
    let error = table.refused("INSERT INTO t VALUES (5, 'abcd')").await;
    assert!(
        error.to_string().contains("CHAR(3) of the column x"),
        "{error}"
    );
}

#[tokio::test]
async fn append_only_tables_take_inserts_that_keep_the_rules() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.appendOnly' 'true')",
        &["VALUES (1, 10)"],
    )
    .await;
    add_check(&table, "positive", "x > 0").await;
    for text in [
        "UPDATE t SET x = 5",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
        "INSERT OVERWRITE t VALUES (1, 1)",
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 5",
    ] {
        let error = table.refused(text).await;
        assert!(
            error.to_string().contains("delta.appendOnly"),
            "{text}: {error}"
        );
    }
    table.refused("INSERT INTO t VALUES (2, -1)").await;
    assert_eq!(table.count("INSERT INTO t VALUES (2, 1)").await, 1);
}
