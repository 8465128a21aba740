//! The conflict check on mapped tables: predicates are in today's names, statistics in physical
//! ones.

use delta_disjoint::commit::ConflictKind;
use serde_json::{Value, json};

use super::{HandMade, field, meta_data, structure};
use crate::support::{Table, rows};

/// `amount` was called `x` once, and `s['renamed']` was `s['old']`; what is called so now came later.
fn fields() -> Vec<Value> {
    vec![
        field("amount", "x", 1, json!("long")),
        field("x", "col-x", 2, json!("long")),
        field("b.c", "col-bc", 3, json!("long")),
        field(
            "s",
            "col-s",
            4,
            structure(&[
                field("renamed", "old", 5, json!("long")),
                field("old", "col-old", 6, json!("long")),
            ]),
        ),
    ]
}

/// Rows with 0 and 1 in all columns.
async fn table(mode: &str) -> Table {
    let row = |value: i64| {
        format!(
            "SELECT {value} AS x, {value} AS \"col-x\", {value} AS \"col-bc\", \
             named_struct('old', {value}, 'col-old', {value}) AS \"col-s\""
        )
    };
    HandMade::new(&fields(), mode, &[])
        .file(
            &format!("{} UNION ALL {}", row(0), row(1)),
            &[
                ("x", 1),
                ("col-x", 2),
                ("col-bc", 3),
                ("col-s", 4),
                ("old", 5),
                ("col-old", 6),
            ],
            json!({
                "numRecords": 2,
                "minValues": {"x": 0, "col-x": 0, "col-bc": 0, "col-s": {"old": 0, "col-old": 0}},
                "maxValues": {"x": 1, "col-x": 1, "col-bc": 1, "col-s": {"old": 1, "col-old": 1}},
                "nullCount": {"x": 0, "col-x": 0, "col-bc": 0, "col-s": {"old": 0, "col-old": 0}},
            }),
        )
        .await
        .open()
        .await
}

#[tokio::test]
async fn renamed_columns_skip_by_what_their_statistics_are_kept_under() {
    for mode in ["name", "id"] {
        for (condition, winner, commits) in [
            (
                "amount < 50",
                "(100, 1, 1, named_struct('renamed', 1, 'old', 1))",
                true,
            ),
            (
                "amount < 50",
                "(10, 100, 1, named_struct('renamed', 1, 'old', 1))",
                false,
            ),
            (
                "x < 50",
                "(1, 100, 1, named_struct('renamed', 1, 'old', 1))",
                true,
            ),
            (
                "x < 50",
                "(100, 10, 1, named_struct('renamed', 1, 'old', 1))",
                false,
            ),
            (
                "x IS NULL OR x = 1",
                "(1, NULL, 1, named_struct('renamed', 1, 'old', 1))",
                false,
            ),
            (
                "\"b.c\" < 50",
                "(1, 1, 100, named_struct('renamed', 1, 'old', 1))",
                true,
            ),
            (
                "\"b.c\" < 50",
                "(100, 100, 10, named_struct('renamed', 100, 'old', 100))",
                false,
            ),
            (
                "s['renamed'] < 50",
                "(100, 100, 100, named_struct('renamed', 10, 'old', 10))",
                false,
            ),
            (
                "s['renamed'] < 50",
                "(1, 1, 1, named_struct('renamed', 100, 'old', 1))",
                true,
            ),
            (
                "s['renamed'] < 50",
                "(100, 100, 100, named_struct('renamed', 1, 'old', 100))",
                false,
            ),
            (
                "s['old'] < 50",
                "(1, 1, 1, named_struct('renamed', 1, 'old', 100))",
                true,
            ),
            (
                "s['old'] < 50",
                "(100, 100, 100, named_struct('renamed', 100, 'old', 1))",
                false,
            ),
            (
                "S.Renamed < 50",
                "(100, 100, 100, named_struct('renamed', 10, 'old', 10))",
                false,
            ),
            (
                "s['renamed'] IS NULL OR amount = 1",
                "(100, 100, 100, NULL)",
                false,
            ),
        ] {
            let table = table(mode).await;
            let loser = table
                .plan(&format!(
                    "DELETE FROM t WHERE ({condition}) AND amount <> -1"
                ))
                .await;
            table.run(&format!("INSERT INTO t VALUES {winner}")).await;
            let situation = format!("{condition} against {winner} ({mode})");
            if commits {
                loser.run().await.expect(&situation);
                assert_eq!(
                    table.rows("SELECT count(*) FROM t").await,
                    ["1"],
                    "{situation}"
                );
            } else {
                let kind = loser.conflict().await;
                assert_eq!(kind, ConflictKind::ConcurrentAppend, "{situation}");
                assert_eq!(
                    table.rows("SELECT count(*) FROM t").await,
                    ["3"],
                    "{situation}"
                );
            }
        }
    }
}

#[tokio::test]
async fn statistics_of_a_dropped_column_say_nothing_of_a_new_one_of_its_name() {
    // Files from before the drop have statistics under `v`; the new `v` is kept under `col-v`.
    let fields = [
        field("id", "id", 1, json!("long")),
        field("v", "col-v", 3, json!("long")),
    ];
    let old = json!({"numRecords": 1, "minValues": {"id": 1, "v": 1000},
        "maxValues": {"id": 1, "v": 1000}, "nullCount": {"id": 0, "v": 0}});
    for mode in ["name", "id"] {
        let table = HandMade::new(&fields, mode, &[])
            .file(
                "SELECT 1 AS id, 1000 AS v",
                &[("id", 1), ("v", 2)],
                old.clone(),
            )
            .await
            .open()
            .await;
        assert_eq!(table.rows("SELECT id FROM t WHERE v IS NULL").await, ["1"]);
        assert!(
            table
                .rows("SELECT id FROM t WHERE v = 1000")
                .await
                .is_empty()
        );

        // The same in a winner's file.
        let loser = table.plan("UPDATE t SET v = 1 WHERE v IS NULL").await;
        let add = json!({"add": {
            "path": "part-2.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0,
            "dataChange": true, "stats": old.to_string(),
        }});
        table.put_entry(&[add]).await;
        assert_eq!(
            loser.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_winner_that_switches_the_mapping_on_is_a_conflict_and_the_next_statement_is_right() {
    let table = Table::numbers(2, 3, "").await;
    let update = "UPDATE t SET x = -1 WHERE id < 2";
    let insert = table.plan("INSERT INTO t VALUES (100, 100)").await;
    let loser = table.plan(update).await;
    let before = table
        .log_entry(0)
        .into_iter()
        .find_map(|action| action.get("metaData").cloned())
        .expect("metaData");
    let mut mapped = meta_data(
        &[
            field("id", "id", 1, json!("long")),
            field("x", "x", 2, json!("long")),
        ],
        "name",
        &[],
    );
    mapped["metaData"]["id"] = before["id"].clone();
    let protocol = json!({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}});
    table.put_entry(&[protocol, mapped.clone()]).await;
    let other = table.other_session().await;
    rows(&other, "INSERT INTO t VALUES (50, 50)").await;
    for loser in [insert, loser] {
        let kind = loser.conflict().await;
        assert!(
            matches!(
                kind,
                ConflictKind::MetadataChanged | ConflictKind::ProtocolChanged
            ),
            "{kind:?}"
        );
    }
    assert_eq!(table.count(update).await, 2);
    let all = ["0|-1", "1|-1", "2|2", "3|3", "4|4", "5|5", "50|50"];
    assert_eq!(table.rows("SELECT id, x FROM t ORDER BY id").await, all);

    // A rename is a conflict too, and then the old files are read under the new name.
    let loser = table.plan("DELETE FROM t WHERE x = 50").await;
    let fields = [
        field("id", "id", 1, json!("long")),
        field("y", "x", 2, json!("long")),
    ];
    mapped["metaData"]["schemaString"] = json!(structure(&fields).to_string());
    table.put_entry(&[mapped]).await;
    assert_eq!(loser.conflict().await, ConflictKind::MetadataChanged);
    let table = table.copy().await;
    assert_eq!(table.rows("SELECT id, y FROM t ORDER BY id").await, all);
    assert_eq!(table.count("DELETE FROM t WHERE y = 50").await, 1);
}

#[tokio::test]
async fn partitions_are_told_apart_by_values_kept_under_physical_names() {
    let fields = [
        field("id", "col-id", 1, json!("long")),
        field("p", "col-p", 2, json!("integer")),
    ];
    for mode in ["name", "id"] {
        for (winner, commits) in [
            ("(1000, 1)", true),
            ("(10, 2)", true),
            ("(10, NULL)", true),
            ("(10, 1)", false),
        ] {
            let table = HandMade::new(&fields, mode, &["p"])
                .partition(
                    "SELECT 1 AS \"col-id\"",
                    &[("col-id", 1)],
                    json!({"numRecords": 1, "minValues": {"col-id": 1},
                           "maxValues": {"col-id": 1}, "nullCount": {"col-id": 0}}),
                    json!({"col-p": "1"}),
                )
                .await
                .open()
                .await;
            let loser = table.plan("DELETE FROM t WHERE p = 1 AND id < 50").await;
            table.run(&format!("INSERT INTO t VALUES {winner}")).await;
            if commits {
                assert_eq!(loser.count().await, 1, "{winner} ({mode})");
            } else {
                assert_eq!(
                    loser.conflict().await,
                    ConflictKind::ConcurrentAppend,
                    "{winner}"
                );
            }
        }
        // A winner that does not say in which partition its file lies.
        let table = HandMade::new(&fields, mode, &["p"])
            .partition(
                "SELECT 1 AS \"col-id\"",
                &[("col-id", 1)],
                Value::Null,
                json!({"col-p": "1"}),
            )
            .await
            .open()
            .await;
        let loser = table.plan("DELETE FROM t WHERE p = 1").await;
        let add = json!({"add": {
            "path": "part-2.parquet", "partitionValues": {"p": "7"}, "size": 1,
            "modificationTime": 0, "dataChange": true,
        }});
        table.put_entry(&[add]).await;
        assert_eq!(
            loser.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{mode}"
        );
    }
}
