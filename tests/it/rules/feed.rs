//! Rules of a table with a change data feed: the feed has the values that the table made.

use serde_json::json;

use super::{add_check, add_key, change_metadata, generate};
use crate::change_feed::reader::{ours, theirs};
use crate::support::Table;

/// Statements and what the feed says of them.
const CASES: [(&str, &[(&str, &str)]); 4] = [
    (
        "INSERT INTO t (id, x) VALUES (4, 4)",
        &[("insert", "4|40|4|d  ")],
    ),
    (
        "UPDATE t SET x = 5 WHERE id = 1",
        &[
            ("update_preimage", "1|10|1|a  "),
            ("update_postimage", "1|50|5|a  "),
        ],
    ),
    (
        "MERGE INTO t USING (VALUES (1, 7), (2, 0), (4, 4)) AS s (id, x) ON t.id = s.id \
         WHEN MATCHED AND s.x = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET x = s.x, c = 'm' \
         WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, s.x)",
        &[
            ("update_preimage", "1|10|1|a  "),
            ("update_postimage", "1|70|7|m  "),
            ("delete", "2|20|2|a  "),
            ("insert", "4|40|4|d  "),
        ],
    ),
    ("DELETE FROM t WHERE id = 2", &[("delete", "2|20|2|a  ")]),
];

#[tokio::test]
async fn the_feed_has_the_values_that_the_table_made() {
    let original = Table::create("id BIGINT, g BIGINT, x BIGINT, c VARCHAR", "", &[]).await;
    generate(&original, "g", "x * 10").await;
    add_key(&original, &["c"], "__CHAR_VARCHAR_TYPE_STRING", "char(3)").await;
    add_key(&original, &["c"], "CURRENT_DEFAULT", "'d'").await;
    add_check(&original, "low", "g < 100").await;
    change_metadata(&original, |metadata| {
        metadata["configuration"]["delta.enableChangeDataFeed"] = json!("true");
    })
    .await;
    original
        .run("INSERT INTO t (id, x, c) VALUES (1, 1, 'a'), (2, 2, 'a'), (3, 3, 'a')")
        .await;
    for text in [
        "INSERT INTO t (id, x) VALUES (4, 10)",
        "UPDATE t SET x = 10 WHERE id = 1",
    ] {
        let error = original.refused(text).await;
        assert!(
            error.to_string().contains("CHECK constraint low"),
            "{error}"
        );
    }
    for (text, changes) in CASES {
        for in_transaction in [false, true] {
            let table = original.copy().await;
            let version = table.log().0 + 1;
            if in_transaction {
                table.run("BEGIN").await;
            }
            table.run(text).await;
            if in_transaction {
                table.run("COMMIT").await;
            }
            let mut expected: Vec<_> = changes
                .iter()
                .map(|(kind, row)| (version, (*kind).to_owned(), (*row).to_owned()))
                .collect();
            expected.sort();
            assert_eq!(ours(&table, version), expected, "{text}");
            assert_eq!(theirs(&table, version).await, expected, "{text}");
        }
    }
}
