//! What deltalake 1.1.3 refuses although nothing is wrong with it, and the hook allows; and what the
//! hook cannot cure.

use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::prelude::{col, ident, lit};
use delta_disjoint::hook;
use deltalake::kernel::transaction::CommitProperties;
use deltalake::protocol::SaveMode;
use deltalake::{FilterOp, FilterValue};

use super::sides::{Side, append, both, files, ids, ids_of, outcome, partitioned};
use crate::support::Table;

#[tokio::test]
async fn append_after_delete_commits_once_it_is_declared() {
    let declared =
        || CommitProperties::default().with_metadata([("isBlindAppend".to_owned(), true.into())]);
    for (side, properties, expected, rows) in [
        (
            Side::Without,
            CommitProperties::default(),
            "ConcurrentDeleteRead",
            vec![2],
        ),
        (Side::Without, declared(), "ConcurrentDeleteRead", vec![2]),
        (
            Side::With,
            CommitProperties::default(),
            "ConcurrentDeleteRead",
            vec![2],
        ),
        (Side::With, declared(), "committed", vec![2, 9]),
        (
            Side::Blind,
            CommitProperties::default(),
            "committed",
            vec![2, 9],
        ),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side.clone()).await;
        winner
            .delete()
            .with_predicate("id = 1")
            .await
            .expect("deleted");
        let write = loser
            .write(vec![ids(&["id"], &[9])])
            .with_save_mode(SaveMode::Append)
            .with_commit_properties(properties);
        assert_eq!(outcome(write.await), expected, "{side:?}");
        assert_eq!(ids_of(&table).await, rows);
    }
}

#[tokio::test]
async fn optimize_of_one_partition_after_delete_in_another_commits() {
    for (side, expected) in [
        (Side::Without, "ConcurrentDeleteRead"),
        (Side::With, "committed"),
    ] {
        let table = partitioned("").await;
        let (winner, loser) = both(&table, side).await;
        winner
            .delete()
            .with_predicate("p = 2 AND id = 3")
            .await
            .expect("deleted");
        let filters = [("p", FilterOp::Eq, FilterValue::Scalar("1"))];
        let optimize = loser.optimize().with_filters(&filters).await;
        assert_eq!(outcome(optimize), expected);
        assert_eq!(ids_of(&table).await, [1, 2, 4]);
    }
}

/// The compaction's file may hold what the UPDATE looks for, but its rows are no news.
#[tokio::test]
async fn update_of_other_files_after_optimize_commits() {
    for (side, expected, rows) in [
        (Side::Without, "ConcurrentAppend", vec![1, 2, 3, 4]),
        (Side::With, "committed", vec![1, 2, 4, 33]),
    ] {
        let inserts = [
            "VALUES (1, 5, 1)",
            "VALUES (2, 9, 1)",
            "VALUES (3, 7, 2)",
            "VALUES (4, 8, 2)",
        ];
        let clauses = "PARTITIONED BY (p)";
        let table = Table::create("id BIGINT, x BIGINT, p BIGINT", clauses, &inserts).await;
        let (winner, loser) = both(&table, side).await;
        let filters = [("p", FilterOp::Eq, FilterValue::Scalar("1"))];
        winner
            .optimize()
            .with_filters(&filters)
            .await
            .expect("optimized");
        let update = loser
            .update()
            .with_predicate("x = 7")
            .with_update("id", "33");
        assert_eq!(outcome(update.await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

#[tokio::test]
async fn disjoint_ranges_of_a_struct_field_commit_where_the_reads_are_given() {
    for (given, expected) in [
        (None, "ConcurrentAppend"),
        (Some(100_i64), "committed"),
        (Some(2_000), "ConcurrentAppend"),
    ] {
        let inserts = [
            "SELECT 1 AS id, named_struct('a', 5) AS s",
            "SELECT 2 AS id, named_struct('a', 1000) AS s",
        ];
        let table = Table::create("id BIGINT, s STRUCT<a BIGINT>", "", &inserts).await;
        let read = |limit: i64| col("s").field("a").lt(lit(limit));
        let side = match given {
            None => Side::Without,
            Some(limit) => {
                let reads = hook::reads(&table.deltalake().await).expect("reads");
                Side::Reads(reads.matching(read(limit)).build())
            }
        };
        let (winner, loser) = both(&table, side).await;
        let update = winner
            .update()
            .with_predicate("id = 2")
            .with_update("id", "22");
        update.await.expect("updated");
        let delete = loser.delete().with_predicate(read(100)).await;
        assert_eq!(outcome(delete), expected, "{given:?}");
    }
}

#[tokio::test]
async fn file_that_came_and_went_is_in_nobodys_way() {
    for (side, expected, rows) in [
        (Side::Without, "ConcurrentAppend", vec![1, 2]),
        (Side::With, "committed", vec![2]),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side).await;
        let appended = append(winner, ids(&["id"], &[0])).await.expect("appended");
        appended
            .delete()
            .with_predicate("id = 0")
            .await
            .expect("deleted");
        let delete = loser.delete().with_predicate("id <= 1").await;
        assert_eq!(outcome(delete), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// deltalake prints a column before IN without quotes and cannot read it back; it tries to only if
/// somebody else committed. Own commits go around it.
#[tokio::test]
async fn predicate_that_deltalake_cannot_read_back_fails_with_the_hook_as_without() {
    for side in [Side::Without, Side::With] {
        for disturbed in [false, true] {
            let inserts = ["VALUES (1)", "VALUES (1000)"];
            let table = Table::create("\"a-b\" BIGINT", "", &inserts).await;
            let (winner, loser) = both(&table, side.clone()).await;
            if disturbed {
                let batch = ids(&["a-b"], &[5_000]);
                append(winner, batch).await.expect("appended");
            }
            let numbers = (0..40).map(lit).collect();
            let delete = loser
                .delete()
                .with_predicate(ident("a-b").in_list(numbers, false))
                .await;
            assert_eq!(delete.is_err(), disturbed, "{side:?}: {:?}", delete.err());
        }
    }
}

/// Of two updates of different rows both commit, with the hook as without.
#[tokio::test]
async fn disjoint_updates_commit_either_way() {
    for side in [Side::Without, Side::With] {
        let table = files(&[1, 1000]).await;
        let (winner, loser) = both(&table, side).await;
        let update = winner.update().with_predicate("id >= 1000");
        update.with_update("id", "id + 1").await.expect("updated");
        let update = loser.update().with_predicate("id < 100");
        let update = update.with_update("id", "id + 1").await;
        assert_eq!(outcome(update), "committed");
        assert_eq!(ids_of(&table).await, [2, 1001]);
    }
}
