//! Single statements, each by itself and alone in a transaction: the feed is the same.

use super::{
    ChangeFiles, SHAPES, Shape, change_files, changes_since, check_files, expected, is_looked_at,
    ours,
};

/// What a statement does: itself, its changes, and whether it writes change files.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    ChangeFiles,
);

const CASES: &[Case] = &[
    (
        "UPDATE t SET x = x + 1 WHERE id IN (1, 5)",
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|11|a"),
            ("update_preimage", "5|50|a"),
            ("update_postimage", "5|51|a"),
        ],
        [true, true, true],
    ),
    // The same value is a change all the same.
    (
        "UPDATE t SET x = x",
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|10|a"),
            ("update_preimage", "2|20|a"),
            ("update_postimage", "2|20|a"),
            ("update_preimage", "3|NULL|b"),
            ("update_postimage", "3|NULL|b"),
            ("update_preimage", "4|40|NULL"),
            ("update_postimage", "4|40|NULL"),
            ("update_preimage", "5|50|a"),
            ("update_postimage", "5|50|a"),
            ("update_preimage", "6|60|b"),
            ("update_postimage", "6|60|b"),
        ],
        [true, true, true],
    ),
    // From one partition to another, to NULL and back.
    (
        "UPDATE t SET p = CASE id WHEN 4 THEN 'a' WHEN 1 THEN NULL ELSE 'cd' END WHERE id <> 2",
        &[
            ("update_preimage", "1|10|a"),
            ("update_postimage", "1|10|NULL"),
            ("update_preimage", "3|NULL|b"),
            ("update_postimage", "3|NULL|cd"),
            ("update_preimage", "4|40|NULL"),
            ("update_postimage", "4|40|a"),
            ("update_preimage", "5|50|a"),
            ("update_postimage", "5|50|cd"),
            ("update_preimage", "6|60|b"),
            ("update_postimage", "6|60|cd"),
        ],
        [true, true, true],
    ),
    (
        "UPDATE t SET x = coalesce(x, 0) - 1 WHERE x IS NULL OR p IS NULL",
        &[
            ("update_preimage", "3|NULL|b"),
            ("update_postimage", "3|-1|b"),
            ("update_preimage", "4|40|NULL"),
            ("update_postimage", "4|39|NULL"),
        ],
        [true, true, true],
    ),
    (
        "UPDATE t SET x = NULL WHERE id = (SELECT max(id) FROM t)",
        &[
            ("update_preimage", "6|60|b"),
            ("update_postimage", "6|NULL|b"),
        ],
        [true, true, true],
    ),
    (
        "DELETE FROM t WHERE id = 2",
        &[("delete", "2|20|a")],
        [true, true, true],
    ),
    (
        "DELETE FROM t WHERE x IS NULL",
        &[("delete", "3|NULL|b")],
        [true, false, true],
    ),
    // A whole file, part of another.
    (
        "DELETE FROM t WHERE id IN (2, 5, 6)",
        &[
            ("delete", "2|20|a"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
        ],
        [true, true, true],
    ),
    // Whole files.
    (
        "DELETE FROM t WHERE id >= 5",
        &[("delete", "5|50|a"), ("delete", "6|60|b")],
        [false, false, false],
    ),
    (
        "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE p IS NULL OR id > 4)",
        &[
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
        ],
        [true, false, true],
    ),
    (
        "DELETE FROM t",
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
        ],
        [false, false, true],
    ),
    (
        "TRUNCATE TABLE t",
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
        ],
        [false, false, false],
    ),
    (
        "INSERT INTO t VALUES (7, NULL, 'n'), (8, 80, NULL)",
        &[("insert", "7|NULL|n"), ("insert", "8|80|NULL")],
        [false, false, false],
    ),
    (
        "INSERT OVERWRITE t SELECT id, x, p FROM t WHERE id = 1",
        &[
            ("delete", "1|10|a"),
            ("delete", "2|20|a"),
            ("delete", "3|NULL|b"),
            ("delete", "4|40|NULL"),
            ("delete", "5|50|a"),
            ("delete", "6|60|b"),
            ("insert", "1|10|a"),
        ],
        [false, false, false],
    ),
    (
        "UPDATE t SET x = 1 WHERE id > 100",
        &[],
        [false, false, false],
    ),
    ("DELETE FROM t WHERE false", &[], [false, false, false]),
];

#[tokio::test]
async fn statement_leaves_the_changes_it_made() {
    check(false).await;
}

#[tokio::test]
async fn statement_alone_in_a_transaction_leaves_the_same_changes() {
    check(true).await;
}

async fn check(in_transaction: bool) {
    for shape in SHAPES {
        let template = shape.table().await;
        let found = template.log().0;
        for (case, (text, changes, files)) in CASES.iter().enumerate() {
            // Which of the shapes are looked at is not the same in a transaction.
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
            let committed = u64::from(!changes.is_empty());
            assert_eq!(table.log().0, found + committed, "{name}");
            assert_eq!(
                changes_since(&table, shape, found).await,
                expected(found + 1, changes),
                "{name}"
            );
            if committed == 1 {
                // By itself such a statement reads no old row, a transaction does.
                let replaces = text.starts_with("TRUNCATE") || text.contains("OVERWRITE");
                let wanted = match shape {
                    Shape::Vectors if replaces => in_transaction,
                    shape => shape.has_change_files(*files),
                };
                let written = change_files(&table, found + 1);
                assert_eq!(!written.is_empty(), wanted, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn change_files_lie_where_their_partitions_are() {
    let table = Shape::Partitioned.table().await;
    let found = table.log().0;
    table.run("UPDATE t SET p = 'z' WHERE id IN (1, 4)").await;
    let mut places: Vec<(String, String)> = change_files(&table, found + 1)
        .iter()
        .map(|file| {
            let path = file["path"].as_str().expect("path");
            let (folder, name) = path.rsplit_once('/').expect("a folder");
            assert!(name.starts_with("cdc-"), "{name}");
            (folder.to_owned(), file["partitionValues"]["p"].to_string())
        })
        .collect();
    places.sort();
    let place = |folder: &str, value: &str| (format!("_change_data/{folder}"), value.to_owned());
    assert_eq!(
        places,
        [
            place("p=__HIVE_DEFAULT_PARTITION__", "null"),
            place("p=a", "\"a\""),
            place("p=z", "\"z\""),
        ]
    );
}

/// deltalake's reader of the feed encodes a percent sign in a folder's name once more and finds no
/// file, of its own tables neither.
#[tokio::test]
async fn partition_values_that_paths_escape_are_read_by_their_log() {
    for odd in ["c d", "a/b=%20", "ü:*?", "__HIVE_DEFAULT_PARTITION_"] {
        let table = Shape::Partitioned.table().await;
        let found = table.log().0;
        let set = format!("UPDATE t SET p = '{odd}' WHERE id = 1");
        table.run(&set).await;
        table.run("BEGIN").await;
        table.run("UPDATE t SET x = x + 1 WHERE id = 1").await;
        table.run("COMMIT").await;
        let (once, twice) = (format!("1|10|{odd}"), format!("1|11|{odd}"));
        let mut changes = expected(
            found + 1,
            &[("update_preimage", "1|10|a"), ("update_postimage", &once)],
        );
        changes.extend(expected(
            found + 2,
            &[("update_preimage", &once), ("update_postimage", &twice)],
        ));
        let mut read = ours(&table, found + 1);
        read.sort();
        changes.sort();
        assert_eq!(read, changes);
        check_files(&table);
    }
}
