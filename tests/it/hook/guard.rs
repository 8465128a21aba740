//! The guard itself: one operation, what it counts as having read, and what it tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::prelude::{col, lit};
use delta_disjoint::{ErrorKind, hook};
use deltalake::kernel::transaction::CommitProperties;
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableError};
use futures::TryStreamExt;
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt;

use super::log_store::{Interposed, error_kind};
use super::sides::{Side, append, both, files, ids, ids_of, outcome, partitioned};
use crate::support::Table;

async fn guarded(table: &Table) -> DeltaTable {
    hook::guard(table.deltalake().await).await.expect("guarded")
}

#[tokio::test]
async fn one_guard_serves_one_operation() {
    let table = files(&[1, 2, 3]).await;
    let (once, _) = guarded(&table)
        .await
        .delete()
        .with_predicate("id = 1")
        .await
        .expect("deleted");
    let error = once.clone().delete().with_predicate("id = 2").await;
    let error = error.map(|_| ()).expect_err("used up");
    assert!(error.to_string().contains("hook::guard"), "{error}");
    assert_eq!(error_kind(&error), Some(ErrorKind::Invalid));
    assert_eq!(ids_of(&table).await, [2, 3]);
    // A new guard, or none.
    let again = hook::guard(once.clone()).await.expect("guarded");
    again
        .delete()
        .with_predicate("id = 2")
        .await
        .expect("deleted");
    let mut free = hook::unguard(once);
    free.update_state().await.expect("loads");
    free.delete()
        .with_predicate("id = 3")
        .await
        .expect("deleted");
    assert_eq!(ids_of(&table).await, [0; 0]);
}

/// Keeps the messages of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        if *event.metadata().level() == tracing::Level::WARN {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().expect("lock").push(text.0);
        }
    }
}

#[tokio::test]
async fn conflict_is_told_in_the_report_and_in_an_event() {
    let warnings = Warnings::default();
    // With one subscriber alone, a test on another thread that warns first would switch the warning
    // off for this one too.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(warnings.clone());
    let _quiet = tracing::subscriber::set_default(subscriber);
    let table = files(&[1, 1000]).await;
    let guard = hook::guard(table.deltalake().await);
    let report = guard.report();
    let loser = guard.await.expect("guarded");
    assert!(report.verdict().is_none());
    append(table.deltalake().await, ids(&["id"], &[7]))
        .await
        .expect("appended");
    let delete = loser.delete().with_predicate("id < 100").await;
    assert_eq!(outcome(delete), "ConcurrentAppend");
    let verdict = report.verdict().expect("a verdict");
    let conflict = verdict.first_conflict().expect("a conflict");
    assert_eq!(conflict.version, table.version().await);
    assert_eq!(conflict.read.as_deref(), Some("id < 100"));
    assert_eq!(report.reads(), ["id < 100"]);
    assert_eq!(report.committed(), None);
    let told = warnings.0.lock().expect("lock");
    let told = told
        .iter()
        .find(|text| text.contains("a guarded operation"));
    let told = told.expect("an event");
    assert!(
        told.contains("ConcurrentAppend") && told.contains("DELETE"),
        "{told}"
    );
}

/// A DELETE by `predicate` against the rows 5000 and 6000, which another writer appends.
async fn delete_beside_append(predicate: &str) -> (String, Vec<String>) {
    let table = files(&[1, 2]).await;
    let guard = hook::guard(table.deltalake().await);
    let report = guard.report();
    let loser = guard.await.expect("guarded");
    let winner = table.deltalake().await;
    append(winner, ids(&["id"], &[5_000, 6_000]))
        .await
        .expect("appended");
    let delete = loser.delete().with_predicate(predicate).await;
    (outcome(delete), report.reads())
}

#[tokio::test]
async fn recorded_predicate_counts_where_it_has_one_meaning() {
    let whole = "ConcurrentAppend";
    let cases = [
        ("id < 10", "committed"),
        ("10 > id", "committed"),
        ("id = 1 OR id = 2 AND id <> 7", "committed"),
        ("id BETWEEN 1 AND 2", "committed"),
        ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "committed"),
        ("id < 10.5", "committed"),
        ("NOT id >= 10", "committed"), // deltalake turns it around before it runs it
        ("(id < 10) IS TRUE", whole),
        ("id + 1 < 10", whole),
        ("abs(id) < 10", whole),
        ("CASE WHEN id < 10 THEN true ELSE false END", whole),
        ("id < 10 OR id % 2 = 1", whole),
        ("id < 5500", "ConcurrentAppend"),
    ];
    for (predicate, expected) in cases {
        let (found, reads) = delete_beside_append(predicate).await;
        assert_eq!(found, expected, "{predicate}: {reads:?}");
    }
}

/// Literals of each type survive the trip through the commit's text.
#[tokio::test]
async fn recorded_predicate_on_each_type_tells_files_apart() {
    let cases = [
        ("s = 'a'", "s = 'z'"),
        ("s < 'b' OR s IN ('c', 'd', 'e', 'f', 'g')", "s > 'b'"),
        ("d < DATE '2021-01-01'", "d > DATE '2021-01-01'"),
        (
            "ts <= arrow_cast('2021-01-01T00:00:00.123456Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            "ts > arrow_cast('2021-01-01T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
        ),
        ("x BETWEEN 0.5 AND 1.5", "x BETWEEN 0.5 AND 9.5"),
        ("n < 5", "n > -5"),
        ("i = 1 AND s IS NOT NULL", "i = 9 OR i = 1"),
    ];
    let row = |id: i64, s: &str, year: i32| {
        format!(
            "SELECT CAST({id} AS BIGINT) AS id, '{s}' AS s, DATE '{year}-01-01' AS d, \
             CAST(TIMESTAMP '{year}-01-01T00:00:00Z' AS TIMESTAMP WITH TIME ZONE) AS ts, \
             CAST({id} AS DOUBLE) AS x, CAST({id} AS DECIMAL(10, 2)) AS n, \
             CAST({id} AS INT) AS i"
        )
    };
    let columns = "id BIGINT, s VARCHAR, d DATE, ts TIMESTAMP WITH TIME ZONE, x DOUBLE, \
                   n DECIMAL(10, 2), i INT";
    let template = Table::create(columns, "", &[&row(1, "a", 2020)]).await;
    for (elsewhere, meeting) in cases {
        for (predicate, expected) in [(elsewhere, "committed"), (meeting, "ConcurrentAppend")] {
            let table = template.copy().await;
            // The loser's row, whatever its predicate is about.
            table
                .run(&format!("INSERT INTO t {}", row(9, "z", 2022)))
                .await;
            let guard = hook::guard(table.deltalake().await);
            let report = guard.report();
            let loser = guard.await.expect("guarded");
            let new = table.run(&row(9, "z", 2022)).await;
            append(table.deltalake().await, new[0].clone())
                .await
                .expect("appended");
            let delete = loser.delete().with_predicate(predicate).await;
            assert_eq!(
                outcome(delete),
                expected,
                "{predicate}: {:?}",
                report.reads()
            );
            assert_ne!(report.reads(), ["whole table"], "{predicate}");
        }
    }
}

#[tokio::test]
async fn reads_that_are_given_count_in_place_of_what_is_recorded() {
    for (given, expected) in [
        (col("id").lt(lit(10_i64)), "committed"),
        (col("id").lt(lit(10)), "committed"),
        (col("id").gt(lit(10_i64)), "ConcurrentAppend"),
    ] {
        let table = files(&[1, 2]).await;
        let loaded = table.deltalake().await;
        let reads = hook::reads(&loaded)
            .expect("reads")
            .matching(given.clone())
            .build();
        let (winner, loser) = both(&table, Side::Reads(reads)).await;
        append(winner, ids(&["id"], &[5_000]))
            .await
            .expect("appended");
        let delete = loser.delete().with_predicate("id % 5000 = 1").await;
        assert_eq!(outcome(delete), expected, "{given}");
    }
    let table = files(&[1]).await;
    for (reads, expected) in [
        (0, "committed"),
        (1, "ConcurrentAppend"),
        (2, "ConcurrentAppend"),
    ] {
        let loaded = table.deltalake().await;
        let empty = hook::reads(&loaded).expect("reads");
        let reads = match reads {
            0 => empty.nothing(),
            1 => empty.whole_table(),
            _ => empty,
        };
        let (winner, loser) = both(&table, Side::Reads(reads.build())).await;
        append(winner, ids(&["id"], &[2])).await.expect("appended");
        assert_eq!(outcome(append(loser, ids(&["id"], &[3])).await), expected);
    }
}

/// "Nothing" does not cover the files that an operation removes.
#[tokio::test]
async fn change_that_is_said_to_have_read_nothing_counts_as_the_whole_table() {
    let table = files(&[1, 2]).await;
    let reads = hook::reads(&table.deltalake().await).expect("reads");
    let (winner, loser) = both(&table, Side::Reads(reads.nothing().build())).await;
    append(winner, ids(&["id"], &[5_000]))
        .await
        .expect("appended");
    let delete = loser.delete().with_predicate("id < 10").await;
    assert_eq!(outcome(delete), "ConcurrentAppend");
}

#[tokio::test]
async fn reads_of_another_version_than_the_table_has_loaded_are_refused() {
    let table = files(&[1]).await;
    let old = table.deltalake().await;
    let reads = hook::reads(&old).expect("reads").whole_table().build();
    append(old, ids(&["id"], &[2])).await.expect("appended");
    let error = hook::guard(table.deltalake().await).with_reads(reads).await;
    let error = error.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let unloaded = DeltaTable::new(table.deltalake().await.log_store());
    assert_eq!(
        hook::reads(&unloaded).expect_err("no version").kind(),
        ErrorKind::Invalid
    );
}

/// The writer computed its rows from an older version than its table has loaded.
#[tokio::test]
async fn read_version_in_the_metadata_is_where_the_check_begins() {
    for (claimed, expected) in [
        (None, "committed"),
        (Some(1), "ConcurrentAppend"),
        (Some(u64::MAX), "committed"),
    ] {
        let table = files(&[1, 2]).await;
        assert_eq!(table.version().await, 2);
        let mut metadata = Vec::new();
        metadata.extend(claimed.map(|version: u64| ("readVersion".to_owned(), version.into())));
        let properties = CommitProperties::default().with_metadata(metadata);
        let write = guarded(&table).await.write(vec![ids(&["id"], &[3])]);
        let write = write
            .with_save_mode(SaveMode::Append)
            .with_commit_properties(properties);
        // The second INSERT is version 2, and not blind as far as it says.
        table.change_log_entry(2, |action| {
            if let Some(info) = action.get_mut("commitInfo") {
                info["isBlindAppend"] = false.into();
            }
        });
        assert_eq!(outcome(write.await), expected, "{claimed:?}");
    }
}

#[tokio::test]
async fn blind_appends_are_passed_at_the_weaker_level_alone() {
    for (level, expected) in [
        ("WriteSerializable", "committed"),
        ("Serializable", "ConcurrentAppend"),
    ] {
        let options = format!("OPTIONS ('delta.isolationLevel' '{level}')");
        let table = Table::create("id BIGINT", &options, &["VALUES (1)"]).await;
        let loser = guarded(&table).await;
        table.run("INSERT INTO t VALUES (2)").await;
        let delete = loser.delete().with_predicate("id < 10").await;
        assert_eq!(outcome(delete), expected);
    }
}

#[tokio::test]
async fn guard_adds_nothing_to_the_commit() {
    let table = files(&[1]).await;
    let guard = hook::guard(table.deltalake().await).with_blind_input();
    let guarded = guard.await.expect("guarded");
    append(guarded, ids(&["id"], &[2])).await.expect("appended");
    let info = table.commit_info(table.version().await);
    for field in ["isBlindAppend", "txnId", "isolationLevel"] {
        assert!(info.get(field).is_none(), "{info}");
    }
    assert!(
        info["engineInfo"]
            .as_str()
            .is_some_and(|engine| engine.starts_with("delta-rs:"))
    );
}

/// Each commit of an OPTIMIZE is checked from the version that all of it was planned on.
#[tokio::test]
async fn optimize_that_commits_several_times_is_checked_each_time() {
    for (winner, lost) in [
        (None, false),
        (Some("p = 1 AND id = 1"), true),
        (Some("p = 2 AND id = 3"), true),
    ] {
        let table = partitioned("").await;
        let before = table.version().await;
        let guard = hook::guard(table.deltalake().await);
        let report = guard.report();
        let loser = guard.await.expect("guarded");
        let mut rows = vec![1, 2, 3, 4];
        if let Some(predicate) = winner {
            let delete = table.deltalake().await.delete();
            delete.with_predicate(predicate).await.expect("deleted");
            rows.retain(|id| !predicate.ends_with(&id.to_string()));
        }
        let optimize = loser
            .optimize()
            .with_max_concurrent_tasks(1)
            .with_min_commit_interval(Duration::ZERO)
            .await;
        match lost {
            false => {
                optimize.expect("optimized");
                assert_eq!(table.version().await, before + 2);
                assert_eq!(table.files().await.len(), 2);
                assert_eq!(report.committed(), Some(before + 2));
            }
            true => assert!(outcome(optimize).starts_with("ConcurrentDelete")),
        }
        assert_eq!(ids_of(&table).await, rows, "{winner:?}");
    }
}

#[tokio::test]
async fn vacuum_commits_its_start_and_its_end_beside_others() {
    let table = files(&[1, 2]).await;
    let (_, metrics) = table.deltalake().await.optimize().await.expect("optimized");
    assert_eq!(metrics.num_files_removed, 2);
    let guarded = guarded(&table).await;
    append(table.deltalake().await, ids(&["id"], &[3]))
        .await
        .expect("appended");
    let vacuum = guarded
        .vacuum()
        .with_retention_period(chrono::Duration::zero())
        .with_enforce_retention_duration(false);
    let (_, metrics) = vacuum.await.expect("vacuumed");
    assert_eq!(metrics.files_deleted.len(), 2, "{metrics:?}");
    let version = table.version().await;
    assert_eq!(table.commit_info(version - 1)["operation"], "VACUUM START");
    assert_eq!(table.commit_info(version)["operation"], "VACUUM END");
    assert_eq!(ids_of(&table).await, [1, 2, 3]);
}

/// The rows in the change feed of `table` from version `start` on.
async fn rows_of_feed(table: &DeltaTable, start: u64) -> usize {
    let session = datafusion::prelude::SessionContext::new();
    let feed = table.clone().scan_cdf().with_starting_version(start);
    let feed = feed.build(&session.state(), None).await.expect("feed");
    let batches = datafusion::physical_plan::collect(feed, session.task_ctx()).await;
    let batches = batches.expect("rows");
    batches.iter().map(|batch| batch.num_rows()).sum()
}

/// Entries are hidden from deltalake's check alone.
#[tokio::test]
async fn change_feed_of_a_guarded_table_is_the_whole_truth() {
    for start in 1..5 {
        let table = files(&[1, 2, 3, 4]).await;
        let expected = |latest: u64| (latest + 1 - start) as usize;
        let guarded = guarded(&table).await;
        assert_eq!(rows_of_feed(&guarded, start).await, expected(4), "{start}");
        // As a log line would: the name is asked for.
        let _ = format!("{:?}", guarded.log_store());
        for _ in 0..2 {
            assert_eq!(rows_of_feed(&guarded, start).await, expected(4), "{start}");
        }
        // A commit that fails before it puts anything.
        append(table.deltalake().await, ids(&["id"], &[5]))
            .await
            .expect("appended");
        let write = guarded.clone().write(vec![ids(&["id"], &[6])]);
        let write = write.with_save_mode(SaveMode::Append);
        let once = CommitProperties::default().with_max_retries(0);
        let lost = write.with_commit_properties(once).await;
        assert!(lost.is_err(), "{lost:?}");
        for _ in 0..2 {
            assert_eq!(rows_of_feed(&guarded, start).await, expected(5), "{start}");
        }
        // One that the guard does not serve.
        let first = append(guarded.clone(), ids(&["id"], &[7])).await;
        assert_eq!(outcome(first), "ConcurrentAppend");
        let second = append(guarded.clone(), ids(&["id"], &[8])).await;
        assert!(outcome(second).contains("hook::guard"));
        assert_eq!(rows_of_feed(&guarded, start).await, expected(5), "{start}");
        let history: Vec<_> = guarded.history(None).try_collect().await.expect("history");
        assert_eq!(history.len(), 6);
    }
}

#[tokio::test]
async fn guard_that_was_told_something_is_not_replaced_unused() {
    let table = files(&[1]).await;
    let told = hook::guard(table.deltalake().await).with_blind_input();
    let told = told.await.expect("guarded");
    let error = hook::guard(told.clone()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("hook::unguard"), "{error}");
    let free = hook::unguard(told.clone());
    hook::guard(free).await.expect("guarded");
    let used = append(told, ids(&["id"], &[2])).await.expect("appended");
    hook::guard(used).await.expect("guarded");
    hook::guard(guarded(&table).await).await.expect("guarded");
}

/// What changes the table's description, against what changes rows, and the other way round.
#[tokio::test]
async fn changes_of_properties_and_constraints_meet_what_they_must() {
    let property = |key: &str, value: &str| [(key.to_owned(), value.to_owned())];
    let table = files(&[1, 2]).await;
    let loser = guarded(&table).await;
    append(table.deltalake().await, ids(&["id"], &[3]))
        .await
        .expect("appended");
    let set = loser.set_tbl_properties();
    let set = set.with_properties(property("delta.logRetentionDuration", "interval 9 days").into());
    assert_eq!(outcome(set.await), "committed");

    // The constraint was tried on the rows before.
    let table = files(&[1, 2]).await;
    let loser = guarded(&table).await;
    append(table.deltalake().await, ids(&["id"], &[-3]))
        .await
        .expect("appended");
    let constraint = loser.add_constraint().with_constraint("positive", "id > 0");
    assert_eq!(outcome(constraint.await), "ConcurrentAppend");

    for (key, value, expected) in [
        (
            "delta.logRetentionDuration",
            "interval 9 days",
            "MetadataChanged",
        ),
        ("delta.checkpointPolicy", "classic", "committed"),
    ] {
        let table = files(&[1, 2]).await;
        let loser = guarded(&table).await;
        let set = table.deltalake().await.set_tbl_properties();
        set.with_properties(property(key, value).into())
            .await
            .expect("set");
        let delete = loser.delete().with_predicate("id = 1").await;
        assert_eq!(outcome(delete), expected, "{key}");
    }
}

/// An overwrite of some rows reads what it replaces, if its new rows come from elsewhere.
#[tokio::test]
async fn overwrite_by_predicate_reads_its_predicate_where_the_input_is_blind() {
    for (side, expected) in [(Side::With, "ConcurrentAppend"), (Side::Blind, "committed")] {
        let table = files(&[1, 2]).await;
        let (winner, loser) = both(&table, side).await;
        append(winner, ids(&["id"], &[5_000]))
            .await
            .expect("appended");
        let overwrite = loser
            .write(vec![ids(&["id"], &[7])])
            .with_save_mode(SaveMode::Overwrite)
            .with_replace_where("id < 10");
        assert_eq!(outcome(overwrite.await), expected);
    }
}

#[tokio::test]
async fn restore_is_refused_beside_any_other_commit() {
    let table = files(&[1, 2]).await;
    let loser = guarded(&table).await;
    append(table.deltalake().await, ids(&["id"], &[3]))
        .await
        .expect("appended");
    let restore = loser.restore().with_version_to_restore(1).await;
    assert!(
        matches!(restore, Err(DeltaTableError::Transaction { .. })),
        "{restore:?}"
    );
    let (_, metrics) = guarded(&table)
        .await
        .restore()
        .with_version_to_restore(1)
        .await
        .expect("restored");
    assert_eq!(metrics.num_removed_file, 2);
    assert_eq!(ids_of(&table).await, [1]);
}

#[tokio::test]
async fn replacing_the_table_meets_whoever_changed_it() {
    use deltalake::kernel::{DataType, PrimitiveType};
    for (side, expected) in [
        (Side::Without, "committed"),
        (Side::With, "ConcurrentAppend"),
    ] {
        let table = files(&[1]).await;
        // CREATE loads the newest version; here somebody is faster after that.
        let faster = vec![
            r#"{"add":{"path":"b","partitionValues":{},"size":1,"modificationTime":0,"dataChange":true}}"#
                .to_owned(),
        ];
        let store = Interposed::over(&table.deltalake().await).beaten_by(&faster);
        let handle = side.table(DeltaTable::new(store.store())).await;
        let long = DataType::Primitive(PrimitiveType::Long);
        let create = handle.create().with_save_mode(SaveMode::Overwrite);
        let create = create.with_column("id", long, true, None).await;
        assert_eq!(outcome(create), expected);
    }
}

#[tokio::test]
async fn application_transactions_meet_by_their_id() {
    for (ours, expected) in [("a", "ConcurrentTransaction"), ("b", "committed")] {
        let table = files(&[1]).await;
        let guard = hook::guard(table.deltalake().await).with_blind_input();
        let loser = guard.await.expect("guarded");
        table
            .put_entry(&[json!({"txn": {"appId": "a", "version": 1}})])
            .await;
        let properties = CommitProperties::default()
            .with_application_transaction(deltalake::kernel::Transaction::new(ours, 1));
        let write = loser
            .write(vec![ids(&["id"], &[2])])
            .with_save_mode(SaveMode::Append)
            .with_commit_properties(properties);
        assert_eq!(outcome(write.await), expected);
    }
}
