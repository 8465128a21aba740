//! Reading mapped tables.

use serde_json::{Value, json};

use super::{HandMade, IDS, ROWS, field, nested_fields, same_in_deltalake};
use crate::support::{Table, kind_of, rows, try_run};
use delta_disjoint::ErrorKind;

/// The rows of `ROWS` in a file whose names are those of other columns of the table, physical and
/// logical ones.
const OTHER_NAMES: &str = r#"
    SELECT 1 AS "q1",
           named_struct('x', 4, 'col-snew', 5, 'q2', 3,
                        'col-x', named_struct('col-c', 'deep')) AS "m",
           7 AS "col-late",
           [named_struct('col-w', 8), named_struct('col-w', NULL)] AS "col-ls",
           MAP {'k': named_struct('col-v', 10)} AS "late",
           11 AS "col-id",
           ['p', NULL] AS "col-d"
    UNION ALL
    SELECT 2, NULL, 7, NULL, NULL, NULL, NULL
    ORDER BY 1"#;

const OTHER_IDS: &[(&str, i32)] = &[
    ("q1", 1),
    ("m", 2),
    ("q2", 3),
    ("x", 4),
    ("col-x", 5),
    ("col-c", 6),
    ("col-ls", 7),
    ("col-w", 8),
    ("late", 9),
    ("col-v", 10),
    ("col-id", 11),
    ("col-late", 99),
    ("col-snew", 98),
    ("col-d", 13),
];

async fn check(table: &Table, situation: &str) {
    for pushdown in [false, true] {
        rows(
            &table.ctx,
            &format!("SET datafusion.execution.parquet.pushdown_filters = {pushdown}"),
        )
        .await;
        for (query, expected) in [
            (
                "SELECT id, s['x'], s['b.c'], s['inner']['c'], s['new'], \"b.c\", late FROM t",
                vec!["1|3|4|deep|NULL|11|NULL", "2|NULL|NULL|NULL|NULL|NULL|NULL"],
            ),
            (
                "SELECT s, l, m, ls FROM t",
                vec![
                    "{x: 3, b.c: 4, inner: {c: deep}, new: NULL}|[{v: 8}, {v: NULL}]|\
                     {k: {w: 10}}|[p, NULL]",
                    "NULL|NULL|NULL|NULL",
                ],
            ),
            (
                "SELECT l[1]['v'], m['k']['w'] FROM t WHERE id = 1",
                vec!["8|10"],
            ),
            (
                "SELECT count(*), count(s), count(late) FROM t",
                vec!["2|1|0"],
            ),
            ("SELECT id FROM t WHERE s['x'] = 3", vec!["1"]),
            (
                "SELECT id FROM t WHERE s['b.c'] = 4 AND \"b.c\" = 11",
                vec!["1"],
            ),
            ("SELECT id FROM t WHERE s['inner']['c'] = 'deep'", vec!["1"]),
            ("SELECT id FROM t WHERE s['inner']['c'] IS NULL", vec!["2"]),
            ("SELECT id FROM t WHERE s['new'] IS NOT NULL", vec![]),
            ("SELECT id FROM t WHERE s IS NULL", vec!["2"]),
            (
                "SELECT id FROM t WHERE late IS NULL AND \"b.c\" IS NULL",
                vec!["2"],
            ),
            ("SELECT id FROM t WHERE late = '7'", vec![]),
            ("SELECT id FROM t WHERE \"b.c\" > 10", vec!["1"]),
            ("SELECT id FROM t WHERE \"b.c\" > 11", vec![]),
            ("SELECT id FROM t WHERE id > 1", vec!["2"]),
            (
                "SELECT id FROM t ORDER BY \"b.c\" NULLS LAST LIMIT 1",
                vec!["1"],
            ),
        ] {
            let mut found = rows(&table.ctx, query).await;
            found.sort();
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(found, expected, "{query} ({situation}, {pushdown})");
        }
    }
}

#[tokio::test]
async fn columns_are_found_by_physical_name_at_every_depth() {
    for features in [false, true] {
        let table = HandMade::new(&nested_fields(), "name", &[]);
        let table = if features {
            table.with_features()
        } else {
            table
        };
        let table = table
            .file(ROWS, &[], json!({"numRecords": 2}))
            .await
            .open()
            .await;
        check(&table, "name").await;
        same_in_deltalake(&table, "SELECT * FROM t ORDER BY id").await;
    }
}

#[tokio::test]
async fn columns_are_found_by_field_id_whatever_they_are_called() {
    let table = HandMade::new(&nested_fields(), "id", &[])
        .file(ROWS, IDS, json!({"numRecords": 2}))
        .await
        .open()
        .await;
    check(&table, "id").await;
    let table = HandMade::new(&nested_fields(), "id", &[])
        .file(OTHER_NAMES, OTHER_IDS, json!({"numRecords": 2}))
        .await
        .open()
        .await;
    check(&table, "id, other names").await;
}

#[tokio::test]
async fn a_file_without_field_ids_is_refused_in_id_mode() {
    let nested: Vec<(&str, i32)> = IDS
        .iter()
        .copied()
        .filter(|(name, _)| *name != "col-c")
        .collect();
    // The table's own names too: such a file has exactly the columns that are asked for.
    let same = [field("a", "a", 1, json!("long"))];
    for (fields, query, ids) in [
        (nested_fields(), ROWS, &[][..]),
        (nested_fields(), ROWS, &nested),
        (same.to_vec(), "SELECT 1 AS a", &[][..]),
    ] {
        let table = HandMade::new(&fields, "id", &[])
            .file(query, ids, json!({"numRecords": 2}))
            .await
            .open()
            .await;
        let error = table.error("SELECT * FROM t").await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().contains("columnMapping"), "{error}");
    }
}

#[tokio::test]
async fn files_from_before_the_mapping_are_read_by_the_old_names() {
    // `a` was renamed to `b` after the mapping was switched on, and a new `a` was added.
    let fields = [
        field("b", "a", 1, json!("long")),
        field("a", "col-new", 2, json!("long")),
    ];
    let table = HandMade::new(&fields, "name", &[])
        .file(
            "SELECT 7 AS a",
            &[],
            json!({"numRecords": 1, "minValues": {"a": 7}, "maxValues": {"a": 7},
                   "nullCount": {"a": 0}}),
        )
        .await
        .file(
            "SELECT 8 AS a, 9 AS \"col-new\"",
            &[("a", 1), ("col-new", 2)],
            json!({"numRecords": 1, "minValues": {"a": 8, "col-new": 9},
                   "maxValues": {"a": 8, "col-new": 9}, "nullCount": {"a": 0, "col-new": 0}}),
        )
        .await
        .open()
        .await;
    for (query, expected) in [
        ("SELECT a, b FROM t ORDER BY b", vec!["NULL|7", "9|8"]),
        ("SELECT a, b FROM t WHERE a = 7", vec![]),
        ("SELECT a, b FROM t WHERE b = 7", vec!["NULL|7"]),
        ("SELECT a, b FROM t WHERE a IS NULL", vec!["NULL|7"]),
        ("SELECT a, b FROM t WHERE a = 9", vec!["9|8"]),
        ("SELECT a, b FROM t WHERE a > 7", vec!["9|8"]),
    ] {
        assert_eq!(table.rows(query).await, expected, "{query}");
    }
    same_in_deltalake(&table, "SELECT a, b FROM t ORDER BY b").await;
}

#[tokio::test]
async fn partition_values_are_found_by_physical_name() {
    let fields = [
        field("id", "col-id", 1, json!("long")),
        field("p", "col-p", 2, json!("integer")),
    ];
    for mode in ["name", "id"] {
        let ids = &[("col-id", 1)];
        let none = Value::Null;
        let table = HandMade::new(&fields, mode, &["p"])
            .partition(
                "SELECT 1 AS \"col-id\"",
                ids,
                none.clone(),
                json!({"col-p": "5"}),
            )
            .await
            .partition(
                "SELECT 2 AS \"col-id\"",
                ids,
                none.clone(),
                json!({"col-p": null}),
            )
            .await
            .open()
            .await;
        for (query, expected) in [
            ("SELECT id, p FROM t ORDER BY id", vec!["1|5", "2|NULL"]),
            ("SELECT id FROM t WHERE p = 5", vec!["1"]),
            ("SELECT id FROM t WHERE p IS NULL", vec!["2"]),
            ("SELECT id FROM t WHERE p = 6", vec![]),
        ] {
            assert_eq!(table.rows(query).await, expected, "{query} ({mode})");
        }
        same_in_deltalake(&table, "SELECT id, p FROM t ORDER BY id").await;
        let explained = table
            .rows("EXPLAIN SELECT id FROM t WHERE p = 5")
            .await
            .join("");
        assert!(explained.contains("files_pruned=1"), "{explained}");

        // Without the key there is no value, which is neither NULL nor anything else.
        let table = HandMade::new(&fields, mode, &["p"])
            .partition("SELECT 1 AS \"col-id\"", ids, none, json!({}))
            .await
            .open()
            .await;
        let error = try_run(&table.ctx, "SELECT id FROM t WHERE p = 6").await;
        let error = error.expect_err("no value");
        assert_eq!(kind_of(&error), Some(ErrorKind::Corrupt), "{error}");
    }
}

#[tokio::test]
async fn a_mapping_that_cannot_be_told_is_refused() {
    let plain = json!({"name": "a", "type": "long", "nullable": true, "metadata": {}});
    let twice = [
        field("a", "col", 1, json!("long")),
        field("b", "col", 2, json!("long")),
    ];
    for (fields, mode, says) in [
        (vec![field("a", "a", 1, json!("long"))], "other", "other"),
        (vec![plain], "name", "columnMapping"),
        (twice.to_vec(), "name", "col"),
    ] {
        let opened = HandMade::new(&fields, mode, &[])
            .file("SELECT 1 AS a", &[], Value::Null)
            .await
            .try_open()
            .await;
        let error = match opened {
            Ok(table) => table.error("SELECT * FROM t").await,
            Err(error) => error,
        };
        assert!(error.to_string().contains(says), "{error}");
    }
    // A mode that the protocol does not provide for.
    let mut table = HandMade::new(&[field("a", "col", 1, json!("long"))], "name", &[]);
    table.actions[0] = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    let Err(error) = table.try_open().await else {
        panic!("should be refused");
    };
    assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
    assert!(error.to_string().contains("columnMapping"), "{error}");
}

#[tokio::test]
async fn filters_reach_the_files_under_their_names_but_not_inside_of_structs() {
    for mode in ["name", "id"] {
        let table = HandMade::new(&nested_fields(), mode, &[])
            .file(ROWS, IDS, json!({"numRecords": 2}))
            .await
            .open()
            .await;
        for (condition, reaches) in [
            ("\"b.c\" > 10", true),
            ("id = 1", true),
            ("s['x'] = 3", false),
            ("id = 1 AND s['x'] = 3", true),
        ] {
            let explained = table
                .rows(&format!("EXPLAIN SELECT id FROM t WHERE {condition}"))
                .await
                .join("");
            let source = explained.split("DataSourceExec").nth(1).expect("source");
            assert_eq!(source.contains("predicate="), reaches, "{explained}");
            assert!(!source.contains("get_field"), "{explained}");
        }
    }
}
