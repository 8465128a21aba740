//! Commits of a writer's own actions through the hook's builder.

use std::collections::HashMap;

use datafusion::prelude::{col, lit};
use delta_disjoint::hook::{self, CommitBuilder};
use deltalake::DeltaTable;
use deltalake::kernel::transaction::FinalizedCommit;
use deltalake::kernel::{Action, Add, Remove, Transaction};
use deltalake::protocol::{DeltaOperation, SaveMode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::log_store::Interposed;
use super::sides::{append, files, ids, ids_of, outcome};
use crate::support::Table;

fn write() -> DeltaOperation {
    DeltaOperation::Write {
        mode: SaveMode::Append,
        partition_by: None,
        predicate: None,
    }
}

fn add(path: &str) -> Action {
    Action::Add(Add {
        path: path.to_owned(),
        size: 1,
        data_change: true,
        ..Add::default()
    })
}

async fn commit(
    builder: CommitBuilder,
    table: &DeltaTable,
    operation: DeltaOperation,
) -> Result<FinalizedCommit, deltalake::DeltaTableError> {
    let state = table.snapshot().expect("loaded");
    builder
        .build(Some(state), table.log_store(), operation)
        .await
}

#[tokio::test]
async fn commit_holds_what_the_builder_was_given() {
    let table = files(&[1]).await;
    let loaded = table.deltalake().await;
    let builder = CommitBuilder::default()
        .with_actions(vec![add("a.parquet")])
        .with_app_metadata(HashMap::from([
            ("mine".to_owned(), json!(7)),
            ("isBlindAppend".to_owned(), json!(true)),
        ]))
        .with_application_transaction(Transaction::new("old", 1))
        .with_application_transactions(vec![Transaction::new("app", 4)])
        .with_max_retries(3)
        .with_operation_id(Uuid::new_v4());
    let report = builder.report();
    let commit = commit(builder, &loaded, write()).await.expect("committed");
    let version = table.version().await;
    assert_eq!(commit.version, version);
    assert_eq!(commit.snapshot.version(), version);
    assert_eq!(commit.metrics.num_retries, 0);
    assert_eq!(report.committed(), Some(version));
    let entry = table.log_entry(version);
    let actions: Vec<&String> = entry
        .iter()
        .filter_map(|action| action.as_object()?.keys().next())
        .collect();
    assert_eq!(actions, ["commitInfo", "add", "txn"]);
    assert_eq!(entry[2]["txn"]["appId"], "app");
    let info = &entry[0]["commitInfo"];
    assert_eq!(info["operation"], "WRITE");
    assert_eq!(info["operationParameters"]["mode"], "Append");
    assert_eq!(
        (&info["mine"], &info["isBlindAppend"]),
        (&json!(7), &json!(true))
    );
    for field in ["timestamp", "engineInfo", "clientVersion"] {
        assert!(!info[field].is_null(), "{field} in {info}");
    }
}

/// A commit of deltalake's builder and one of the hook's differ in nothing but time and path.
#[tokio::test]
async fn commit_is_what_deltalakes_builder_would_write() {
    use deltalake::kernel::transaction::CommitBuilder as Other;
    let table = files(&[1]).await;
    let operation = || DeltaOperation::Delete {
        predicate: Some("id = 1".to_owned()),
    };
    let mut entries: Vec<Vec<Value>> = Vec::new();
    for hooked in [false, true] {
        let loaded = table.deltalake().await;
        let state = loaded.snapshot().expect("loaded");
        let actions = vec![add("a.parquet")];
        let done = match hooked {
            false => {
                let builder = Other::default().with_actions(actions);
                builder
                    .build(Some(state), loaded.log_store(), operation())
                    .await
            }
            true => {
                let builder = CommitBuilder::default().with_actions(actions);
                builder
                    .build(Some(state), loaded.log_store(), operation())
                    .await
            }
        };
        let mut entry = table.log_entry(done.expect("committed").version);
        entry[0]["commitInfo"]["timestamp"] = Value::Null;
        entries.push(entry);
    }
    assert_eq!(entries[0], entries[1]);
}

#[tokio::test]
async fn reads_decide_whether_a_commit_meets_others() {
    for (limit, expected) in [(10, "committed"), (9_000, "ConcurrentAppend")] {
        let table = files(&[1]).await;
        let loaded = table.deltalake().await;
        append(table.deltalake().await, ids(&["id"], &[5_000]))
            .await
            .expect("appended");
        let reads = hook::reads(&loaded).expect("reads");
        let builder = CommitBuilder::default()
            .with_actions(vec![add("a.parquet")])
            .with_reads(reads.matching(col("id").lt(lit(limit))).build());
        let report = builder.report();
        assert_eq!(outcome(commit(builder, &loaded, write()).await), expected);
        assert_eq!(report.reads(), [format!("id < {limit}")]);
    }
}

#[tokio::test]
async fn commit_that_says_nothing_read_the_whole_table() {
    for (blind, expected) in [(false, "ConcurrentAppend"), (true, "committed")] {
        let table = files(&[1]).await;
        let loaded = table.deltalake().await;
        append(table.deltalake().await, ids(&["id"], &[5_000]))
            .await
            .expect("appended");
        let mut builder = CommitBuilder::default().with_actions(vec![add("a.parquet")]);
        if blind {
            builder = builder.with_blind_input();
        }
        assert_eq!(outcome(commit(builder, &loaded, write()).await), expected);
    }
}

/// Two jobs of one stream: the same application id.
#[tokio::test]
async fn streams_of_one_application_meet() {
    let table = files(&[1]).await;
    let loaded = table.deltalake().await;
    let streamed = |path: &str| {
        CommitBuilder::default()
            .with_actions(vec![add(path)])
            .with_application_transaction(Transaction::new("stream", 1))
            .with_blind_input()
    };
    commit(streamed("a.parquet"), &loaded, write())
        .await
        .expect("committed");
    let second = commit(streamed("b.parquet"), &loaded, write()).await;
    assert_eq!(outcome(second), "ConcurrentTransaction");
}

#[tokio::test]
async fn file_that_both_remove_is_removed_once() {
    let table = files(&[1, 2]).await;
    let loaded = table.deltalake().await;
    let path = table.log().1[0].clone();
    let remove = || {
        Action::Remove(Remove {
            path: path.clone(),
            data_change: true,
            ..Remove::default()
        })
    };
    let delete = || DeltaOperation::Delete {
        predicate: Some("id = 1".to_owned()),
    };
    let builder = || CommitBuilder::default().with_actions(vec![remove()]);
    commit(builder(), &loaded, delete())
        .await
        .expect("committed");
    let second = commit(builder(), &loaded, delete()).await;
    assert_eq!(outcome(second), "ConcurrentDeleteRead");
    assert_eq!(ids_of(&table).await, [2]);
}

/// deltalake's builder would parse the text, and fail.
#[tokio::test]
async fn predicate_that_deltalake_cannot_read_back_is_no_obstacle() {
    let table = files(&[1]).await;
    let loaded = table.deltalake().await;
    append(table.deltalake().await, ids(&["id"], &[5_000]))
        .await
        .expect("appended");
    let reads = hook::reads(&loaded)
        .expect("reads")
        .matching(col("id").eq(lit(1)));
    let operation = DeltaOperation::Update {
        predicate: Some("my_function(id) ~> 1".to_owned()),
    };
    let builder = CommitBuilder::default()
        .with_actions(vec![add("a.parquet")])
        .with_reads(reads.build());
    let done = commit(builder, &loaded, operation.clone())
        .await
        .expect("committed");
    let info = table.commit_info(done.version);
    assert_eq!(
        info["operationParameters"]["predicate"],
        "my_function(id) ~> 1"
    );

    use deltalake::kernel::transaction::CommitBuilder as Other;
    let state = loaded.snapshot().expect("loaded");
    let plain = Other::default().with_actions(vec![add("b.parquet")]);
    let plain = plain
        .build(Some(state), loaded.log_store(), operation)
        .await;
    assert!(plain.is_err());
}

#[tokio::test]
async fn checkpoints_follow_the_tables_interval() {
    for (create, expected) in [(true, true), (false, false)] {
        let options = "OPTIONS ('delta.checkpointInterval' '2')";
        let table = Table::create("id BIGINT", options, &[]).await;
        let mut written = Vec::new();
        for number in 0..2 {
            let loaded = table.deltalake().await;
            let builder = CommitBuilder::default()
                .with_actions(vec![add(&format!("{number}.parquet"))])
                .with_create_checkpoint(create)
                .with_cleanup_expired_logs(Some(false));
            let done = commit(builder, &loaded, write()).await.expect("committed");
            written.push(done.metrics.new_checkpoint_created);
        }
        assert_eq!(written.contains(&true), expected, "{written:?}");
        let log = std::fs::read_dir(format!("{}/_delta_log", table.path())).expect("log");
        let checkpoint = log
            .map(|file| file.expect("file").file_name())
            .any(|name| name.to_string_lossy().contains(".checkpoint."));
        assert_eq!(checkpoint, expected);
    }
}

/// No table yet: the first commit is version 0, and there is one first commit.
#[tokio::test]
async fn table_is_created_once() {
    let model = files(&[]).await;
    let entry = std::fs::read(format!("{}/_delta_log/{:020}.json", model.path(), 0));
    let actions = deltalake::logstore::get_actions(0, &entry.expect("entry").into());
    let mut actions = actions.expect("actions");
    actions.retain(|action| !matches!(action, Action::CommitInfo(_)));
    let folder = tempfile::tempdir().expect("folder");
    let url = url::Url::from_directory_path(folder.path()).expect("url");
    let handle = DeltaTable::try_from_url(url).await.expect("handle");
    // As every new table, each has an id of its own.
    let create = |id: &str| {
        let mut actions = serde_json::to_value(&actions).expect("json");
        for action in actions.as_array_mut().expect("actions") {
            if let Some(metadata) = action.get_mut("metaData") {
                metadata["id"] = id.into();
            }
        }
        let actions: Vec<Action> = serde_json::from_value(actions).expect("actions");
        let builder = CommitBuilder::default().with_actions(actions);
        builder.build(None, handle.log_store(), write())
    };
    assert_eq!(create("a").await.expect("created").version, 0);
    assert_eq!(outcome(create("b").await), "ProtocolChanged");
    // The entry is gone behind a checkpoint, as after a clean-up.
    let mut table = DeltaTable::new(handle.log_store());
    table.load().await.expect("loads");
    deltalake::checkpoints::create_checkpoint(&table, None)
        .await
        .expect("checkpoint");
    let first = folder.path().join(format!("_delta_log/{:020}.json", 0));
    std::fs::remove_file(&first).expect("removed");
    assert_eq!(outcome(create("c").await), "ProtocolChanged");
    assert!(!first.exists());
}

#[tokio::test]
async fn retries_that_are_used_up_are_an_error() {
    let table = files(&[1]).await;
    let loaded = table.deltalake().await;
    append(table.deltalake().await, ids(&["id"], &[5_000]))
        .await
        .expect("appended");
    let builder = CommitBuilder::default()
        .with_actions(vec![add("a.parquet")])
        .with_blind_input()
        .with_max_retries(0);
    let error = commit(builder, &loaded, write())
        .await
        .expect_err("no retries");
    assert!(
        error
            .to_string()
            .contains("Failed to commit transaction: 0"),
        "{error}"
    );
}

#[tokio::test]
async fn commit_over_a_store_that_is_not_known_is_refused() {
    let table = files(&[1]).await;
    let loaded = table.deltalake().await;
    let store = Interposed::over(&loaded).called("SomeLogStore").store();
    let builder = CommitBuilder::default().with_actions(vec![add("a.parquet")]);
    let state = loaded.snapshot().expect("loaded");
    let error = builder.build(Some(state), store, write()).await;
    let error = error.expect_err("refused");
    assert!(error.to_string().contains("SomeLogStore"), "{error}");
}
