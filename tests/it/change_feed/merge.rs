//! MERGE: the feed tells updates, deletes and inserts, all of them or none in change files.

use super::{ChangeFiles, SHAPES, change_files, changes_since, expected, is_looked_at};

type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    ChangeFiles,
);

const CASES: &[Case] = &[
    (
        "MERGE INTO t USING (VALUES (1, 100), (2, 200), (3, -1), (9, 900)) AS s(id, x) \
         ON t.id = s.id \
         WHEN MATCHED AND s.x < 0 THEN DELETE \
         WHEN MATCHED THEN UPDATE SET x = s.x, p = 'm' \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, s.x, NULL) \
         WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN DELETE \
         WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET x = NULL",
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|100|m"),
            ("update_preimage", "2|20|a"),
            ("update_postimage", "2|200|m"),
            ("delete", "3|NULL|b"),
            ("update_preimage", "5|50|a"),
            ("update_postimage", "5|NULL|a"),
            ("delete", "6|60|b"),
            ("insert", "9|900|NULL"),
        ],
        [true, true, true],
    ),
    // Inserts stand beside the deletes of rows of a file that is partly rewritten.
    (
        "MERGE INTO t USING (VALUES (1), (9)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, 9, 'n')",
        &[("delete", "1|10|a"), ("insert", "9|9|n")],
        [true, true, true],
    ),
    // Whole files go, rows come: the files tell it.
    (
        "MERGE INTO t USING (VALUES (5), (6), (9)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, 9, 'n')",
        &[
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
            ("insert", "9|9|n"),
        ],
        [false, false, false],
    ),
    (
        "MERGE INTO t USING (VALUES (1), (2), (3), (4), (9)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, 9, 'n')",
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("insert", "9|9|n"),
        ],
        [false, false, true],
    ),
    (
        "MERGE INTO t USING (VALUES (1), (9)) AS s(id) ON t.id = s.id \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, NULL, 'n')",
        &[("insert", "9|NULL|n")],
        [false, false, false],
    ),
    // It might have changed rows, and has not.
    (
        "MERGE INTO t USING (VALUES (8), (9)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = 0 \
         WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, 9, 'n')",
        &[("insert", "8|9|n"), ("insert", "9|9|n")],
        [false, false, false],
    ),
    // A row that several source rows ask to go goes once.
    (
        "MERGE INTO t USING (VALUES (1), (1), (2)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN DELETE",
        &[("delete", "1|10|a"), ("delete", "2|20|a")],
        [true, false, true],
    ),
    (
        "MERGE INTO t USING (VALUES (4, 40)) AS s(id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x",
        &[
            ("update_preimage", "4|40|NULL"),
            ("update_postimage", "4|40|NULL"),
        ],
        [true, true, true],
    ),
    (
        "MERGE INTO t USING (VALUES (100)) AS s(id) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = 0",
        &[],
        [false, false, false],
    ),
];

#[tokio::test]
async fn merge_leaves_the_changes_of_all_its_clauses() {
    for shape in SHAPES {
        let template = shape.table().await;
        let found = template.log().0;
        for (case, (text, changes, files)) in CASES.iter().enumerate() {
            for in_transaction in [false, true] {
                if !is_looked_at(shape, case + usize::from(in_transaction), *files) {
                    continue;
                }
                let name = format!("{text} ({shape:?}, transaction: {in_transaction})");
                let table = template.copy().await;
                if in_transaction {
                    table.run("BEGIN").await;
                }
                table.run(text).await;
                if in_transaction {
                    table.run("COMMIT").await;
                }
                assert_eq!(
                    changes_since(&table, shape, found).await,
                    expected(found + 1, changes),
                    "{name}"
                );
                let committed = table.log().0 > found;
                assert_eq!(committed, !changes.is_empty(), "{name}");
                if committed {
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
}
