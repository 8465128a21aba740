//! What deltalake 1.1.3 lets through although it loses, doubles or keeps rows, and the hook refuses.
//! Each test states both outcomes and the rows that the table is left with.

use datafusion::logical_expr::Expr;
use datafusion::prelude::{SessionContext, col, lit};
use deltalake::kernel::transaction::CommitProperties;
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableError};

use super::log_store::Interposed;
use super::sides::{Side, append, both, files, ids, ids_of, outcome};
use crate::support::Table;

#[tokio::test]
async fn optimize_after_optimize_doubles_rows_or_aborts() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 1, 2, 2, 3, 3]),
        (Side::With, "ConcurrentDeleteDelete", vec![1, 2, 3]),
    ] {
        let table = files(&[1, 2, 3]).await;
        let (winner, loser) = both(&table, side).await;
        winner.optimize().await.expect("optimized");
        assert_eq!(outcome(loser.optimize().await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

#[tokio::test]
async fn delete_of_everything_after_optimize_deletes_nothing_or_aborts() {
    for (side, expected) in [
        (Side::Without, "committed"),
        (Side::With, "ConcurrentDeleteDelete"),
    ] {
        let table = files(&[1, 2, 3]).await;
        let (winner, loser) = both(&table, side).await;
        winner.optimize().await.expect("optimized");
        assert_eq!(outcome(loser.delete().await), expected);
        assert_eq!(ids_of(&table).await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn overwrite_after_optimize_keeps_old_rows_or_aborts() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 2, 3, 77]),
        (Side::With, "ConcurrentDeleteDelete", vec![1, 2, 3]),
    ] {
        let table = files(&[1, 2, 3]).await;
        let (winner, loser) = both(&table, side).await;
        winner.optimize().await.expect("optimized");
        let overwrite = loser
            .write(vec![ids(&["id"], &[77])])
            .with_save_mode(SaveMode::Overwrite);
        assert_eq!(outcome(overwrite.await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// It removes nothing, as an append does, and yet has to replace what came in the meantime.
#[tokio::test]
async fn overwrite_of_an_empty_table_after_append_keeps_its_row_or_aborts() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 77]),
        (Side::With, "ConcurrentAppend", vec![1]),
        (Side::Blind, "ConcurrentAppend", vec![1]),
    ] {
        let table = files(&[]).await;
        let (winner, loser) = both(&table, side).await;
        append(winner, ids(&["id"], &[1])).await.expect("appended");
        let overwrite = loser
            .write(vec![ids(&["id"], &[77])])
            .with_save_mode(SaveMode::Overwrite);
        assert_eq!(outcome(overwrite.await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// Neither removes a file, since there is none of its rows yet.
#[tokio::test]
async fn overwrites_of_what_is_not_there_leave_both_rows_or_abort() {
    for before in [&[][..], &[1]] {
        for (by_predicate, declared) in [(true, false), (true, true), (false, true)] {
            let table = files(before).await;
            let mut handles = Vec::new();
            for _ in 0..2 {
                handles.push(Side::Blind.table(table.deltalake().await).await);
            }
            let mut outcomes = Vec::new();
            for handle in handles {
                let write = handle
                    .write(vec![ids(&["id"], &[77])])
                    .with_save_mode(SaveMode::Overwrite);
                let write = match by_predicate {
                    true => write.with_replace_where("id = 77"),
                    false => write,
                };
                let metadata = [("isBlindAppend".to_owned(), declared.into())];
                let properties = CommitProperties::default().with_metadata(metadata);
                outcomes.push(outcome(write.with_commit_properties(properties).await));
            }
            assert_eq!(outcomes[0], "committed");
            assert!(outcomes[1].starts_with("Concurrent"), "{outcomes:?}");
            let rows = ids_of(&table).await;
            assert_eq!(rows.iter().filter(|id| **id == 77).count(), 1, "{rows:?}");
        }
    }
}

/// A MERGE that only inserts ids that are not there.
async fn insert_missing(table: DeltaTable, new: &[i64]) -> Result<(), DeltaTableError> {
    let source = SessionContext::new()
        .read_batch(ids(&["id"], new))
        .expect("source");
    table
        .merge(source, "s.id = t.id")
        .with_source_alias("s")
        .with_target_alias("t")
        .when_not_matched_insert(|insert| insert.set("id", "s.id"))?
        .await
        .map(|_| ())
}

#[tokio::test]
async fn delete_of_everything_after_an_inserting_merge_keeps_its_row_or_aborts() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![9]),
        (Side::With, "ConcurrentAppend", vec![1, 2, 9]),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side).await;
        insert_missing(winner, &[2, 9]).await.expect("merged");
        assert_eq!(outcome(loser.delete().await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// Both insert the row that is missing.
#[tokio::test]
async fn the_same_row_merged_twice_is_inserted_once() {
    for (side, expected) in [
        (Side::Without, "ConcurrentAppend"),
        (Side::With, "ConcurrentAppend"),
        (Side::Blind, "ConcurrentAppend"),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side).await;
        insert_missing(winner, &[9]).await.expect("merged");
        assert_eq!(outcome(insert_missing(loser, &[9]).await), expected);
        assert_eq!(ids_of(&table).await, [1, 2, 9]);
    }
}

/// Both compute the next id from what they read.
#[tokio::test]
async fn insert_from_the_table_itself_gives_an_id_twice_or_aborts() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 2, 3, 3]),
        (Side::With, "ConcurrentAppend", vec![1, 2, 3]),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side).await;
        let ctx = table.deltalake_session().await;
        let next = ctx.sql("SELECT max(id) + 1 AS id FROM t").await;
        let next = next.expect("plan").collect().await.expect("rows");
        append(winner, next[0].clone()).await.expect("appended");
        assert_eq!(outcome(append(loser, next[0].clone()).await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// `INSERT INTO t SELECT …` through deltalake's table provider, whose sink commits on its own.
#[tokio::test]
async fn sql_insert_from_the_table_itself_gives_an_id_twice_or_aborts() {
    for (side, rows) in [
        (Side::Without, vec![1, 2, 3, 3]),
        (Side::With, vec![1, 2, 3]),
    ] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side.clone()).await;
        let mut failures = Vec::new();
        let mut sessions = Vec::new();
        for side in [winner, loser] {
            let ctx = SessionContext::new();
            side.update_datafusion_session(&ctx.state()).expect("store");
            let provider = side.table_provider().await.expect("provider");
            ctx.register_table("t", provider).expect("registered");
            sessions.push(ctx);
        }
        for ctx in sessions {
            let insert = ctx.sql("INSERT INTO t SELECT max(id) + 1 FROM t").await;
            if let Err(error) = insert.expect("plan").collect().await {
                failures.push(error.to_string());
            }
        }
        assert_eq!(ids_of(&table).await, rows, "{side:?}: {failures:?}");
        assert_eq!(failures.len(), 4 - rows.len(), "{failures:?}");
        assert!(failures.iter().all(|why| why.contains("added new data")));
    }
}

/// deltalake records `(a > 5 AND b > 5) IS NOT TRUE` as `a > 5 AND b > 5 IS NOT TRUE`.
#[tokio::test]
async fn predicate_that_lost_its_parentheses_misses_a_row_or_counts_as_the_whole_table() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec!["1|10", "9|9"]),
        (Side::With, "ConcurrentAppend", vec!["1|10", "2|2", "9|9"]),
    ] {
        let inserts = ["VALUES (9, 9)", "VALUES (2, 2)"];
        let table = Table::create("a BIGINT, b BIGINT", "", &inserts).await;
        let (winner, loser) = both(&table, side).await;
        let new = table.run("SELECT 1 AS a, 10 AS b").await;
        append(winner, new[0].clone()).await.expect("appended");
        let condition = col("a").gt(lit(5_i64)).and(col("b").gt(lit(5_i64)));
        let delete = loser
            .delete()
            .with_predicate(Expr::IsNotTrue(Box::new(condition)));
        assert_eq!(outcome(delete.await), expected);
        assert_eq!(table.rows("SELECT a, b FROM t ORDER BY a").await, rows);
    }
}

/// The other writer creates the table after this one has looked, and found none.
#[tokio::test]
async fn write_that_creates_beside_another_replaces_its_columns_or_aborts() {
    for (side, expected, columns) in [
        (Side::Without, "committed", vec!["b"]),
        (Side::With, "ProtocolChanged", vec!["a"]),
    ] {
        let folder = tempfile::tempdir().expect("folder");
        let url = url::Url::from_directory_path(folder.path()).expect("url");
        let unloaded = || async {
            let table = DeltaTable::try_from_url(url.clone()).await;
            table.expect("no table yet")
        };
        let (winner, loser) = (unloaded().await, side.table(unloaded().await).await);
        append(winner, ids(&["a"], &[1])).await.expect("created");
        assert_eq!(outcome(append(loser, ids(&["b"], &[2])).await), expected);
        let table = unloaded().await;
        let schema = table.snapshot().expect("loaded").schema();
        let names: Vec<String> = schema.fields().map(|field| field.name().clone()).collect();
        assert_eq!(names, columns);
    }
}

/// CREATE looks for a table first; here it finds none, and then another writer is faster.
#[tokio::test]
async fn create_beside_another_replaces_its_columns_or_aborts() {
    use deltalake::kernel::{DataType, PrimitiveType};
    for (side, expected, columns) in [
        (Side::Without, "committed", vec!["b"]),
        (Side::With, "ProtocolChanged", vec!["a"]),
    ] {
        let folder = tempfile::tempdir().expect("folder");
        let url = url::Url::from_directory_path(folder.path()).expect("url");
        let unloaded = DeltaTable::try_from_url(url.clone()).await.expect("handle");
        let long = DataType::Primitive(PrimitiveType::Long);
        let blind = Interposed::over(&unloaded).that_finds_no_table();
        let loser = side.table(DeltaTable::new(blind.store())).await;
        let create = unloaded.create().with_column("a", long.clone(), true, None);
        create.await.expect("created");
        let create = loser.create().with_column("b", long, true, None).await;
        assert_eq!(outcome(create), expected);
        let table = deltalake::open_table(url).await.expect("table");
        let schema = table.snapshot().expect("loaded").schema();
        let names: Vec<String> = schema.fields().map(|field| field.name().clone()).collect();
        assert_eq!(names, columns);
    }
}
