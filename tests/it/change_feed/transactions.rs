//! Transactions of several statements: one version, and in it one change for each row that is
//! another in the end.

use super::reader::ours;
use super::{
    ChangeFiles, FEED, SHAPES, Shape, change_files, changes_since, check_files, expected,
    is_looked_at,
};
use crate::support::{Table, kind_of, try_run};
use delta_disjoint::ErrorKind;

/// Statements, the changes of all of them together, whether there are change files.
type Case = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    ChangeFiles,
);

const CASES: &[Case] = &[
    // Changed twice.
    (
        &[
            "UPDATE t SET x = x + 1 WHERE id IN (1, 2)",
            "UPDATE t SET p = 'q', x = x * 2 WHERE id = 1",
        ],
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|22|q"),
            ("update_preimage", "2|20|a"),
            ("update_postimage", "2|21|a"),
        ],
        [true, true, true],
    ),
    // Changed and changed back is a change.
    (
        &[
            "UPDATE t SET x = 0 WHERE id = 1",
            "UPDATE t SET x = 10 WHERE id = 1",
        ],
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|10|a"),
        ],
        [true, true, true],
    ),
    // Inserted and changed, beside a row that was there before.
    (
        &[
            "INSERT INTO t VALUES (7, 70, 'n'), (8, 80, NULL)",
            "UPDATE t SET x = x + 1 WHERE id IN (5, 7)",
        ],
        &[
            ("update_preimage", "5|50|a"),
            ("update_postimage", "5|51|a"),
            ("insert", "7|71|n"),
            ("insert", "8|80|NULL"),
        ],
        [true, true, true],
    ),
    // Inserted and changed, alone: the files tell it.
    (
        &[
            "INSERT INTO t VALUES (7, 70, 'n'), (8, 80, 'n')",
            "UPDATE t SET x = x + 1 WHERE id = 7",
            "DELETE FROM t WHERE id = 8",
        ],
        &[("insert", "7|71|n")],
        [false, false, false],
    ),
    // Inserted and deleted never was; what it came with was.
    (
        &[
            "INSERT INTO t VALUES (7, 70, 'n'), (8, 80, 'n')",
            "DELETE FROM t WHERE id IN (1, 7)",
        ],
        &[("delete", "1|10|a"), ("insert", "8|80|n")],
        [true, true, true],
    ),
    // Changed and deleted is deleted as it was.
    (
        &[
            "UPDATE t SET x = -1, p = 'q' WHERE id IN (1, 2)",
            "DELETE FROM t WHERE id = 1",
        ],
        &[
            ("delete", "1|10|a"),
            ("update_preimage", "2|20|a"),
            ("update_postimage", "2|-1|q"),
        ],
        [true, true, true],
    ),
    // An equal row is not the same row.
    (
        &[
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t VALUES (2, 20, 'a')",
        ],
        &[("delete", "2|20|a"), ("insert", "2|20|a")],
        [true, true, true],
    ),
    // Rows that are copied several times are the same rows.
    (
        &[
            "DELETE FROM t WHERE id = 1",
            "UPDATE t SET x = 21 WHERE id = 2",
            "DELETE FROM t WHERE id = 3",
            "UPDATE t SET x = 22 WHERE id = 2",
        ],
        &[
            ("delete", "1|10|a"),
            ("update_preimage", "2|20|a"),
            ("update_postimage", "2|22|a"),
            ("delete", "3|NULL|b"),
        ],
        [true, true, true],
    ),
    // A file that goes row by row is gone as a whole.
    (
        &["DELETE FROM t WHERE id = 5", "DELETE FROM t WHERE id = 6"],
        &[("delete", "5|50|a"), ("delete", "6|60|b")],
        [false, false, false],
    ),
    (
        &[
            "UPDATE t SET x = 0",
            "INSERT INTO t VALUES (7, 70, 'n')",
            "TRUNCATE TABLE t",
            "INSERT INTO t VALUES (1, 0, 'a')",
            "UPDATE t SET x = 1",
        ],
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
            ("insert", "1|1|a"),
        ],
        [false, false, true],
    ),
    (
        &[
            "UPDATE t SET x = 0 WHERE id = 1",
            "INSERT OVERWRITE t SELECT id, x, p FROM t WHERE id = 1",
        ],
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
            ("insert", "1|0|a"),
        ],
        [false, false, true],
    ),
    // MERGE over rows of the base, changed rows and new ones.
    (
        &[
            "INSERT INTO t VALUES (7, 70, 'n'), (8, 80, 'n')",
            "UPDATE t SET x = x + 1 WHERE id < 3",
            "MERGE INTO t USING (VALUES (1, 1), (2, -1), (6, 6), (7, 7), (8, -1), (9, 9)) \
             AS s(id, x) ON t.id = s.id \
             WHEN MATCHED AND s.x < 0 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET x = t.x + s.x \
             WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, s.x, 'm')",
            "UPDATE t SET p = 'end' WHERE id IN (6, 9)",
        ],
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|12|a"),
            ("delete", "2|20|a"),
            ("update_preimage", "6|60|b"),
            ("update_postimage", "6|66|end"),
            ("insert", "7|77|n"),
            ("insert", "9|9|end"),
        ],
        [true, true, true],
    ),
    // A statement that matches nothing, and one that reads, are no part of it.
    (
        &[
            "UPDATE t SET x = 0 WHERE id = 100",
            "SELECT * FROM t",
            "UPDATE t SET x = 0 WHERE id = 3",
        ],
        &[
            ("update_preimage", "3|NULL|b"),
            ("update_postimage", "3|0|b"),
        ],
        [true, true, true],
    ),
    // All that was done was undone.
    (
        &[
            "INSERT INTO t VALUES (7, 70, 'n')",
            "DELETE FROM t WHERE id = 7",
        ],
        &[],
        [false, false, false],
    ),
];

#[tokio::test]
async fn transaction_leaves_one_change_for_each_row() {
    for shape in SHAPES {
        let template = shape.table().await;
        let found = template.log().0;
        for (case, (statements, changes, files)) in CASES.iter().enumerate() {
            if !is_looked_at(shape, case, *files) {
                continue;
            }
            let name = format!("{statements:?} ({shape:?})");
            let table = template.copy().await;
            table.run("BEGIN").await;
            for statement in *statements {
                table.run(statement).await;
            }
            table.run("COMMIT").await;
            let committed = u64::from(!changes.is_empty());
            assert_eq!(table.log().0, found + committed, "{name}");
            assert_eq!(
                changes_since(&table, shape, found).await,
                expected(found + 1, changes),
                "{name}"
            );
            if committed == 1 {
                let written = change_files(&table, found + 1);
                assert_eq!(
                    !written.is_empty(),
                    shape.has_change_files(*files),
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test]
async fn rolled_back_transaction_leaves_no_file() {
    let table = Shape::Partitioned.table().await;
    let before = (table.log(), table.data_files_on_disk());
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 0, p = 'z'").await;
    table.run("DELETE FROM t WHERE id = 1").await;
    table.run("ROLLBACK").await;
    assert_eq!((table.log(), table.data_files_on_disk()), before);
}

#[tokio::test]
async fn transaction_that_loses_leaves_no_file() {
    let table = Shape::Plain.table().await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 0 WHERE id IN (1, 5)").await;
    try_run(&other, "UPDATE t SET x = 7 WHERE id = 1")
        .await
        .expect("the other one is first");
    let before = table.log();
    let error = table.error("COMMIT").await;
    assert!(error.to_string().contains("conflict"), "{error}");
    assert_eq!(table.log(), before);
    check_files(&table);
}

/// The change files may be as large as all that was changed.
#[tokio::test]
async fn transaction_that_has_lost_writes_no_change_file() {
    let table = Shape::Plain.table().await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 0 WHERE id IN (1, 5)").await;
    try_run(
        &other,
        "INSERT OVERWRITE t SELECT id, x, p FROM t WHERE id < 6",
    )
    .await
    .expect("the other one is first");
    // Now none can be written.
    std::fs::write(format!("{}/_change_data", table.path()), "").expect("a file");
    let error = table.error("COMMIT").await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Conflict), "{error}");
}

#[tokio::test]
async fn statement_that_fails_in_a_transaction_has_no_part_in_its_feed() {
    let table = Shape::Plain.table().await;
    let found = table.log().0;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 0 WHERE id = 1").await;
    table
        .error(
            "MERGE INTO t USING (VALUES (2, 1), (2, 2)) AS s(id, x) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET x = s.x",
        )
        .await;
    table.run("COMMIT").await;
    assert_eq!(
        changes_since(&table, Shape::Plain, found).await,
        expected(
            found + 1,
            &[("update_preimage", "1|10|a"), ("update_postimage", "1|0|a")]
        )
    );
}

/// More changed and copied rows than their notes fit into one batch.
#[tokio::test]
async fn many_scattered_rows_are_told_apart() {
    const ROWS: i64 = 20_000;
    let table = Table::numbers(1, ROWS, FEED).await;
    table.run("BEGIN").await;
    for text in [
        "UPDATE t SET x = x + 1 WHERE id % 2 = 0",
        "UPDATE t SET x = x + 1 WHERE id % 3 = 0",
        "DELETE FROM t WHERE id % 5 = 0",
    ] {
        table.run(text).await;
    }
    table.run("COMMIT").await;
    let mut changes = Vec::new();
    for id in 0..ROWS {
        let after = id + i64::from(id % 2 == 0) + i64::from(id % 3 == 0);
        if id % 5 == 0 {
            changes.push((2, "delete".to_owned(), format!("{id}|{id}")));
        } else if after != id {
            changes.push((2, "update_preimage".to_owned(), format!("{id}|{id}")));
            changes.push((2, "update_postimage".to_owned(), format!("{id}|{after}")));
        }
    }
    changes.sort();
    assert!(ours(&table, 2) == changes);
    check_files(&table);
}
