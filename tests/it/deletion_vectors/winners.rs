//! Winners that hide rows of a file while a statement of ours is under way.

use delta_disjoint::commit::ConflictKind;

use super::vectors::inline;
use super::{add_of, hide, numbers};
use crate::support::Table;

async fn ids(table: &Table) -> Vec<String> {
    table.rows("SELECT id FROM t ORDER BY id").await
}

#[tokio::test]
async fn a_winner_that_hides_rows_of_a_file_we_read_or_rewrite_conflicts() {
    // The winner's row is another one than ours: vectors are not merged.
    for (text, expected) in [
        ("DELETE FROM t WHERE id = 5", ConflictKind::ConcurrentAppend),
        (
            "UPDATE t SET x = 0 WHERE id = 5",
            ConflictKind::ConcurrentAppend,
        ),
        ("DELETE FROM t", ConflictKind::ConcurrentAppend),
        ("TRUNCATE TABLE t", ConflictKind::ConcurrentAppend),
        (
            "INSERT INTO t SELECT id + 50, x FROM t WHERE id = 5",
            ConflictKind::ConcurrentAppend,
        ),
    ] {
        for before in [None, Some(vec![7])] {
            let table = numbers(2).await;
            let mut add = add_of(&table, 1);
            let mut hidden = vec![1];
            if let Some(before) = before {
                table.put_entry(&hide(&add, &inline(&before))).await;
                add = add_of(&table, table.version().await);
                hidden.extend(before);
            }
            let loser = table.plan(text).await;
            table.put_entry(&hide(&add, &inline(&hidden))).await;
            let rows = ids(&table).await;
            assert_eq!(loser.conflict().await, expected, "{text}");
            assert_eq!(ids(&table).await, rows, "{text}");
        }
    }
}

#[tokio::test]
async fn a_winner_that_hides_rows_of_a_file_we_did_not_read_does_not_conflict() {
    for text in [
        "DELETE FROM t WHERE id = 15",
        "UPDATE t SET id = 115 WHERE id = 15",
        "INSERT INTO t SELECT id + 100, x FROM t WHERE id = 15",
        "INSERT INTO t VALUES (115, 0)",
    ] {
        let table = numbers(2).await;
        let loser = table.plan(text).await;
        table
            .put_entry(&hide(&add_of(&table, 1), &inline(&[1, 2])))
            .await;
        assert_eq!(loser.count().await, 1, "{text}");
        let mut expected: Vec<i64> = (0..20).filter(|id| ![1, 2].contains(id)).collect();
        match text {
            text if text.starts_with("DELETE") => expected.retain(|id| *id != 15),
            text if text.starts_with("UPDATE") => {
                expected.retain(|id| *id != 15);
                expected.push(115);
            }
            _ => expected.push(115),
        }
        let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(ids(&table).await, expected, "{text}");
    }
}

/// The file stays, its vector goes (RESTORE): rows come back that a reader has not seen.
#[tokio::test]
async fn a_winner_that_takes_a_vector_away_conflicts_with_readers_of_the_file() {
    let table = numbers(2).await;
    let bare = add_of(&table, 1);
    table.put_entry(&hide(&bare, &inline(&[5]))).await;
    let reader = table.plan("DELETE FROM t WHERE id = 5").await;
    let inserts = table
        .plan("INSERT INTO t SELECT id + 50, x FROM t WHERE id = 5")
        .await;
    let other = table.plan("DELETE FROM t WHERE id = 15").await;
    let hidden = add_of(&table, table.version().await);
    let mut actions = hide(&hidden, &inline(&[5]));
    actions[2]["add"]
        .as_object_mut()
        .expect("object")
        .remove("deletionVector");
    table.put_entry(&actions).await;
    // No row was changed: nothing to commit, hence nothing to check.
    assert_eq!(reader.count().await, 0);
    assert_eq!(inserts.count().await, 0);
    assert_eq!(other.count().await, 1);

    let reader = table.plan("DELETE FROM t WHERE id BETWEEN 4 AND 5").await;
    table.put_entry(&hide(&bare, &inline(&[5]))).await;
    assert_eq!(reader.conflict().await, ConflictKind::ConcurrentAppend);
}

/// Each statement deletes one row of the same file, as two writers of vectors might.
#[tokio::test]
async fn a_third_writer_that_hides_more_conflicts_too() {
    let table = numbers(1).await;
    let loser = table.plan("DELETE FROM t WHERE id = 9").await;
    let mut hidden = Vec::new();
    for row in [2, 4] {
        let add = add_of(
            &table,
            if hidden.is_empty() {
                1
            } else {
                table.version().await
            },
        );
        hidden.push(row);
        table.put_entry(&hide(&add, &inline(&hidden))).await;
    }
    assert_eq!(loser.conflict().await, ConflictKind::ConcurrentAppend);
    assert_eq!(ids(&table).await.len(), 8);
}

/// The new vector hides all that would match, but the statistics of the file do not say so.
#[tokio::test]
async fn a_vector_over_the_only_match_still_conflicts() {
    let table = numbers(1).await;
    let loser = table.plan("UPDATE t SET x = 0 WHERE id = 5").await;
    table
        .put_entry(&hide(&add_of(&table, 1), &inline(&[5])))
        .await;
    assert_eq!(loser.conflict().await, ConflictKind::ConcurrentAppend);
}
