//! A rule that another writer adds or changes meanwhile is a conflict, and the statement that is run again
//! keeps it.

use delta_disjoint::ErrorKind;
use delta_disjoint::commit::ConflictKind;
use serde_json::json;

use super::{add_check, add_invariant, add_key, change_field, change_metadata, generate};
use crate::support::{Table, conflict_of, kind_of};

const LOSERS: [&str; 7] = [
    "INSERT INTO t VALUES (3, NULL, 3)",
    "INSERT INTO t SELECT id + 10, NULL, x FROM t WHERE id = 1",
    "INSERT OVERWRITE t VALUES (3, NULL, 3)",
    "UPDATE t SET g = NULL WHERE id = 1",
    "DELETE FROM t WHERE id = 1",
    "MERGE INTO t USING (VALUES (3)) AS s (id) ON t.id = s.id \
     WHEN NOT MATCHED THEN INSERT (id, g, x) VALUES (s.id, NULL, 3)",
    "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET g = NULL",
];

const WINNERS: [&str; 6] = [
    "check",
    "invariant",
    "not null",
    "generation",
    "other generation",
    "length",
];

/// `t (id, g, x)`, whose protocol has all rules already, and the rows (1, 1, 1) and (2, 2, 2).
async fn table(winner: &str) -> Table {
    let type_of_g = if winner == "length" {
        "VARCHAR"
    } else {
        "BIGINT"
    };
    let table = Table::create(
        &format!("id BIGINT, g {type_of_g}, x BIGINT"),
        "",
        &["VALUES (1, 1, 1)", "VALUES (2, 2, 2)"],
    )
    .await;
    match winner {
        "other generation" => generate(&table, "g", "nullif(x, x)").await,
        _ => change_metadata(&table, |_| {}).await,
    }
    table
}

async fn win(table: &Table, winner: &str) {
    match winner {
        "check" => add_check(table, "there", "g IS NOT NULL").await,
        "invariant" => add_invariant(table, &["g"], "g IS NOT NULL").await,
        "not null" => {
            change_metadata(table, |metadata| {
                change_field(metadata, &["g"], |field| field["nullable"] = json!(false));
            })
            .await;
        }
        "length" => add_key(table, &["g"], "__CHAR_VARCHAR_TYPE_STRING", "varchar(1)").await,
        _ => generate(table, "g", "x").await,
    }
}

#[tokio::test]
async fn a_rule_of_a_winner_aborts_the_loser_and_holds_when_it_runs_again() {
    for winner in WINNERS {
        let original = table(winner).await;
        for text in LOSERS {
            let table = original.copy().await;
            let loser = table.plan(text).await;
            win(&table, winner).await;
            let before = table.data_files_on_disk();
            assert_eq!(
                loser.conflict().await,
                ConflictKind::MetadataChanged,
                "{winner}: {text}"
            );
            assert_eq!(table.data_files_on_disk(), before, "{winner}: {text}");
            if text.starts_with("DELETE") || winner == "length" {
                table.run(text).await;
            } else {
                let error = table.refused(text).await;
                assert_eq!(
                    kind_of(&error),
                    Some(ErrorKind::Invalid),
                    "{winner}: {error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_rule_of_a_winner_aborts_a_transaction() {
    for winner in WINNERS {
        let original = table(winner).await;
        for text in LOSERS {
            let table = original.copy().await;
            table.run("BEGIN").await;
            table.run(text).await;
            win(&table, winner).await;
            let error = table.error("COMMIT").await;
            assert_eq!(
                conflict_of(&error),
                ConflictKind::MetadataChanged,
                "{winner}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn a_rule_that_came_in_a_transaction_is_not_seen_before_its_end() {
    let table = table("check").await;
    table.run("BEGIN").await;
    table.run("UPDATE t SET x = 5 WHERE id = 2").await;
    win(&table, "check").await;
    // The transaction is pinned to the version before.
    table.run("INSERT INTO t VALUES (3, NULL, 3)").await;
    let error = table.error("COMMIT").await;
    assert_eq!(conflict_of(&error), ConflictKind::MetadataChanged);
}

#[tokio::test]
async fn a_statement_that_runs_again_by_itself_keeps_the_new_rule() {
    for (text, outcome) in [
        (
            "INSERT INTO t VALUES (3, NULL, 3)",
            Some("CHECK constraint there"),
        ),
        ("INSERT INTO t VALUES (3, 3, 3)", None),
    ] {
        let table = table("check").await;
        table.run("SET delta.statement_reruns = 2").await;
        let loser = table.plan(text).await;
        win(&table, "check").await;
        let result = loser.run().await;
        match (result, outcome) {
            (Err(error), Some(part)) => {
                assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
                assert!(error.to_string().contains(part), "{error}");
            }
            (Ok(_), None) => {}
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_statement_of_before_does_not_make_values_by_an_old_expression() {
    let table = table("other generation").await;
    table
        .run("PREPARE old AS INSERT INTO t (id, x) VALUES (3, 4)")
        .await;
    let other = table.other_session().await;
    win(&table, "generation").await;
    table.run("EXECUTE old").await;
    assert_eq!(table.rows("SELECT g FROM t WHERE id = 3").await, ["4"]);
    drop(other);
}

#[tokio::test]
async fn a_statement_of_before_gets_values_that_the_table_makes_since() {
    for (key, text) in [
        ("CURRENT_DEFAULT", "7"),
        ("delta.generationExpression", "id * 0 + 7"),
    ] {
        let table = Table::create("id BIGINT, d BIGINT", "", &["VALUES (1, 1)"]).await;
        change_metadata(&table, |_| {}).await;
        table
            .run("PREPARE old AS INSERT INTO t (id) VALUES (2)")
            .await;
        let frame = table
            .ctx
            .sql("INSERT INTO t (id) VALUES (3)")
            .await
            .expect("plan");
        add_key(&table, &["d"], key, text).await;
        table.run("EXECUTE old").await;
        frame.collect().await.expect("inserted");
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            ["1|1", "2|7", "3|7"],
            "{key}"
        );
    }
}
