//! Two writers, one table, one situation after the other. Where a situation cannot be made with
//! SQL, the winner's log entry or the loser's actions are made by hand.

use std::sync::Arc;

use delta_disjoint::commit::{
    Actions, CommitOptions, CommitOutcome, ConflictKind, Operation, OptimisticTransaction, Verdict,
};
use delta_disjoint::explain::{Question, explain};
use delta_disjoint::read::read_set::{Read, ReadScope, ReadSet};
use delta_disjoint::read::snapshot::TableSnapshot;
use deltalake::kernel::{Add, Remove, Transaction};
use serde_json::{Value, json};

use crate::support::{Planned, Table, conflict_of, count, text_rows};

const APPEND: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
const DELETE_READ: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteRead);
const METADATA: Option<ConflictKind> = Some(ConflictKind::MetadataChanged);
const PROTOCOL: Option<ConflictKind> = Some(ConflictKind::ProtocolChanged);

/// Ids 0 to 999 in 5 files, `x` = `id`.
async fn thousand(level: &str) -> Table {
    Table::numbers(
        5,
        200,
        &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
    )
    .await
}

/// Ids 0 to 99 in one file.
async fn small() -> Table {
    Table::numbers(1, 100, "OPTIONS ('delta.isolationLevel' 'Serializable')").await
}

/// A plain INSERT of ids from `first` to `last`.
fn append(first: i64, last: i64) -> String {
    format!("INSERT INTO t SELECT value AS id, value AS x FROM generate_series({first}, {last})")
}

async fn check(loser: Planned, expected: Option<ConflictKind>, name: &str) {
    match (loser.run().await, expected) {
        (Ok(_), None) => {}
        (Err(error), Some(kind)) => assert_eq!(conflict_of(&error), kind, "{name}: {error}"),
        (Ok(batches), Some(kind)) => panic!("{name}: {} rows, not {kind}", count(&batches)),
        (Err(error), None) => panic!("{name}: {error}"),
    }
}

#[tokio::test]
async fn reads_of_everything_abort_against_any_append() {
    for loser in [
        "DELETE FROM t",
        "DELETE FROM t WHERE true",
        "UPDATE t SET x = 0",
        "INSERT OVERWRITE t VALUES (1, 1)",
        "TRUNCATE TABLE t",
        "INSERT INTO t SELECT max(id) + 1, 0 FROM t",
        "UPDATE t SET x = (SELECT count(*) FROM t) WHERE id = 3",
    ] {
        let table = thousand("Serializable").await;
        let planned = table.plan(loser).await;
        table.run(&append(5000, 5010)).await;
        check(planned, APPEND, loser).await;
        assert_eq!(
            table.rows("SELECT count(*), sum(x) FROM t").await,
            ["1011|554555"],
            "{loser}"
        );
    }
}

#[tokio::test]
async fn conditions_of_one_read_narrow_and_several_reads_widen() {
    let two_reads = "UPDATE t SET x = (SELECT max(o.x) FROM t AS o WHERE o.id > 900) WHERE id < 50";
    let one_read = "DELETE FROM t WHERE id >= 200 AND id < 300";
    let cases = [
        ("between two reads", two_reads, (400, 499), None),
        ("meets the second read", two_reads, (890, 949), APPEND),
        ("meets the first read", two_reads, (10, 20), APPEND),
        ("beyond both conditions", one_read, (500, 599), None),
        ("below both conditions", one_read, (100, 199), None),
        ("between the conditions", one_read, (299, 400), APPEND),
        ("around both conditions", one_read, (100, 400), APPEND),
    ];
    for (name, loser, (first, last), expected) in cases {
        let table = thousand("Serializable").await;
        let planned = table.plan(loser).await;
        table.run(&append(first, last)).await;
        check(planned, expected, name).await;
    }
}

#[tokio::test]
async fn blind_append_is_left_out_only_under_write_serializable() {
    let blind = |value: Value| {
        move |action: &mut Value| {
            if let Some(info) = action.get_mut("commitInfo") {
                info["isBlindAppend"] = value.clone();
            }
        }
    };
    let cases = [
        ("WriteSerializable", json!(true), (0, 10), None),
        ("WriteSerializable", json!(false), (0, 10), APPEND),
        ("WriteSerializable", Value::Null, (0, 10), APPEND),
        ("WriteSerializable", json!("true"), (0, 10), APPEND),
        ("WriteSerializable", json!(false), (5000, 5010), None),
        ("Serializable", json!(true), (0, 10), APPEND),
        ("Serializable", json!(true), (5000, 5010), None),
    ];
    for (level, value, (first, last), expected) in cases {
        let table = thousand(level).await;
        let planned = table.plan("DELETE FROM t WHERE id < 50").await;
        table.run(&append(first, last)).await;
        let version = table.version().await;
        assert_eq!(table.commit_info(version)["isBlindAppend"], json!(true));
        table.change_log_entry(version, blind(value.clone()));
        check(
            planned,
            expected,
            &format!("{level}, {value}, from {first}"),
        )
        .await;
        if expected.is_none() {
            // The winner's rows stay, whichever order it counts as.
            assert_eq!(
                table.rows("SELECT count(*) FROM t").await,
                ["961"],
                "{level}, {value}"
            );
        }
    }
}

#[tokio::test]
async fn absent_isolation_level_is_write_serializable() {
    let table = Table::numbers(2, 100, "").await;
    let planned = table.plan("DELETE FROM t WHERE id < 50").await;
    table.run(&append(0, 10)).await;
    check(planned, None, "no level").await;
    assert_eq!(
        table.commit_info(table.version().await)["isolationLevel"],
        json!("WriteSerializable")
    );
}

#[tokio::test]
async fn new_images_of_an_update_decide() {
    let loser = "DELETE FROM t WHERE x > 900";
    let cases = [
        (
            "values stay outside",
            "UPDATE t SET x = 500 WHERE id = 5",
            None,
        ),
        (
            "a value flips into the range",
            "UPDATE t SET x = 5000 WHERE id = 5",
            APPEND,
        ),
        (
            "a whole file flips into the range",
            "UPDATE t SET x = x + 2000 WHERE id < 200",
            APPEND,
        ),
    ];
    for level in ["Serializable", "WriteSerializable"] {
        for (name, winner, expected) in cases {
            let table = thousand(level).await;
            let planned = table.plan(loser).await;
            table.run(winner).await;
            check(planned, expected, &format!("{level}: {name}")).await;
            let rows = if expected.is_some() { "1000" } else { "901" };
            assert_eq!(table.rows("SELECT count(*) FROM t").await, [rows], "{name}");
        }
    }
}

#[tokio::test]
async fn rows_moved_out_of_the_read_conflict_by_their_old_file() {
    // Every row of the file moves far away, so that no added file meets the read.
    let winner = "UPDATE t SET x = x + 5000 WHERE id < 200";
    for level in ["Serializable", "WriteSerializable"] {
        for loser in [
            "DELETE FROM t WHERE x < 100",
            "UPDATE t SET x = 0 WHERE x < 100",
            "INSERT INTO t SELECT id + 9000, x + 9000 FROM t WHERE x < 100",
        ] {
            let table = thousand(level).await;
            let planned = table.plan(loser).await;
            table.run(winner).await;
            check(planned, DELETE_READ, &format!("{level}: {loser}")).await;
            assert_eq!(
                table.rows("SELECT count(*), min(x), max(x) FROM t").await,
                ["1000|200|5199"]
            );
        }
    }
}

#[tokio::test]
async fn partition_value_of_the_winner_skips_only_where_it_is_read() {
    let file = |values: Value| {
        json!({"add": {"path": "hand-made.parquet", "partitionValues": values, "size": 1,
            "modificationTime": 0, "dataChange": true}})
    };
    let cases = [
        ("equal", json!({"p": "1"}), APPEND),
        ("equal, other spelling", json!({"p": "01"}), APPEND),
        ("other", json!({"p": "2"}), None),
        ("null is never equal", json!({"p": null}), None),
        ("empty is null", json!({"p": ""}), None),
        ("missing", json!({}), APPEND),
        ("unreadable", json!({"p": "one"}), APPEND),
        (
            "Hive's name for null",
            json!({"p": "__HIVE_DEFAULT_PARTITION__"}),
            APPEND,
        ),
    ];
    for (name, values, expected) in cases {
        let table = Table::create(
            "p INT, id BIGINT",
            "PARTITIONED BY (p) OPTIONS ('delta.isolationLevel' 'Serializable')",
            &["VALUES (1, 1), (2, 2)"],
        )
        .await;
        let planned = table.plan("DELETE FROM t WHERE p = 1").await;
        table.put_entry(&[file(values)]).await;
        check(planned, expected, name).await;
    }
}

#[tokio::test]
async fn winner_with_nothing_but_null_is_skipped_by_what_null_never_matches() {
    null_counts_decide(0, "(900, NULL), (901, NULL)").await;
}

#[tokio::test]
async fn winner_without_null_is_skipped_by_tests_for_null() {
    null_counts_decide(1, "(900, 7)").await;
}

#[tokio::test]
async fn winner_with_some_null_is_skipped_by_neither() {
    null_counts_decide(2, "(900, NULL), (901, 7)").await;
}

/// `column` is the place of `winner` in the table of conflicts.
async fn null_counts_decide(column: usize, winner: &str) {
    let cases = [
        ("x = 1", [None, None, None]),
        ("x = 7", [None, APPEND, APPEND]),
        ("x <> 1", [None, APPEND, APPEND]),
        ("x IS NOT NULL", [None, APPEND, APPEND]),
        ("x IS NULL", [APPEND, None, APPEND]),
        ("x IS NOT DISTINCT FROM NULL", [APPEND, None, APPEND]),
        ("x IS DISTINCT FROM 7", [APPEND, None, APPEND]),
        ("x IS NOT DISTINCT FROM 7", [None, APPEND, APPEND]),
        ("NOT (x > 100)", [None, APPEND, APPEND]),
        ("x > 5 OR x IS NULL", [APPEND, APPEND, APPEND]),
        ("coalesce(x, 1) = 1", [APPEND, None, APPEND]),
    ];
    for (condition, expected) in cases {
        let table = Table::create(
            "id BIGINT, x BIGINT",
            "OPTIONS ('delta.isolationLevel' 'Serializable')",
            &["VALUES (1, 1), (2, NULL), (3, 7)"],
        )
        .await;
        let planned = table
            .plan(&format!("DELETE FROM t WHERE {condition}"))
            .await;
        table.run(&format!("INSERT INTO t VALUES {winner}")).await;
        let name = format!("{condition} against {winner}");
        let matching = table
            .rows(&format!(
                "SELECT count(*) FROM t WHERE id >= 900 AND ({condition})"
            ))
            .await;
        if matching != ["0"] {
            assert_eq!(expected[column], APPEND, "{name}");
        }
        check(planned, expected[column], &name).await;
    }
}

#[tokio::test]
async fn file_without_rows_is_skipped_and_contradictory_counts_are_not() {
    let stats = |text: &str| {
        json!({"add": {"path": "hand-made.parquet", "partitionValues": {}, "size": 1,
            "modificationTime": 0, "dataChange": true, "stats": text}})
    };
    let far = r#""minValues":{"id":5000,"x":5000},"maxValues":{"id":5001,"x":5001}"#;
    let cases = [
        ("no row", r#"{"numRecords":0}"#.to_owned(), None),
        (
            "more nulls than rows",
            format!(r#"{{"numRecords":2,{far},"nullCount":{{"id":3}}}}"#),
            APPEND,
        ),
        (
            "least above greatest",
            r#"{"numRecords":2,"minValues":{"id":6000},"maxValues":{"id":5000},"nullCount":{"id":0}}"#
                .to_owned(),
            APPEND,
        ),
        (
            "in order",
            format!(r#"{{"numRecords":2,{far},"nullCount":{{"id":0}}}}"#),
            None,
        ),
    ];
    for (name, text, expected) in cases {
        let table = thousand("Serializable").await;
        let planned = table.plan("DELETE FROM t WHERE id < 50").await;
        table.put_entry(&[stats(&text)]).await;
        check(planned, expected, name).await;
    }
}

// ---- Losers made by hand ----

struct Hand {
    table: Table,
    snapshot: Arc<TableSnapshot>,
}

impl Hand {
    async fn new(level: &str) -> Self {
        let table = thousand(level).await;
        let snapshot = table.handle().newest().await.expect("snapshot");
        Self { table, snapshot }
    }

    fn add(path: &str, data_change: bool) -> Add {
        Add {
            path: path.to_owned(),
            size: 1,
            data_change,
            ..Add::default()
        }
    }

    /// Removes of the files whose least id is one of `ids`.
    fn remove(&self, ids: &[i64], data_change: bool) -> Vec<Remove> {
        let paths: Vec<String> = self.paths(ids);
        assert_eq!(paths.len(), ids.len());
        paths
            .into_iter()
            .map(|path| Remove {
                path,
                data_change,
                ..Remove::default()
            })
            .collect()
    }

    fn paths(&self, ids: &[i64]) -> Vec<String> {
        self.snapshot
            .files
            .iter()
            .filter(|add| {
                let stats: Value =
                    serde_json::from_str(add.stats.as_deref().expect("stats")).expect("json");
                ids.iter().any(|id| stats["minValues"]["id"] == json!(id))
            })
            .map(|add| add.path.clone())
            .collect()
    }

    /// A compaction of the files that begin with `ids` into one, as actions of ours.
    fn compaction(&self, ids: &[i64]) -> Actions {
        Actions {
            adds: vec![Self::add("compacted.parquet", false)],
            removes: self.remove(ids, false),
            ..Actions::default()
        }
    }

    /// The same as another writer's log entry.
    fn compaction_entry(&self, ids: &[i64]) -> Vec<Value> {
        let mut entry = vec![
            json!({"commitInfo": {"operation": "OPTIMIZE"}}),
            json!({"add": {"path": "other.parquet", "partitionValues": {}, "size": 1,
                "modificationTime": 0, "dataChange": false}}),
        ];
        entry.extend(
            self.paths(ids)
                .into_iter()
                .map(|path| json!({"remove": {"path": path, "dataChange": false}})),
        );
        entry
    }

    /// What `explain` says of such a commit; nothing where it cannot be asked.
    async fn foretold(&self, actions: &Actions, reads: &[Read]) -> Option<Verdict> {
        let is_plain = actions.adds.iter().all(|add| add.data_change)
            && actions.removes.iter().all(|remove| remove.data_change)
            && actions.metadata.is_none()
            && actions.protocol.is_none()
            && actions.transactions.is_empty()
            && actions.domains.is_empty();
        let is_change = !actions.adds.is_empty() || !actions.removes.is_empty();
        let is_unrecorded = reads.is_empty() && actions.removes.is_empty();
        if !is_plain || !is_change || is_unrecorded {
            return None;
        }
        let whole_table = reads
            .iter()
            .any(|read| matches!(read.scope, ReadScope::WholeTable));
        let is_nothing = |read: &Read| matches!(read.scope, ReadScope::Nothing);
        assert!(whole_table || reads.iter().all(is_nothing), "{reads:?}");
        if !whole_table && !reads.is_empty() && !actions.removes.is_empty() {
            // Who removes and says nothing has read everything.
            return None;
        }
        let removes = actions.removes.iter().map(|remove| remove.path.clone());
        let question = Question {
            whole_table,
            removes: removes.collect(),
            ..Question::new(self.snapshot.version)
        };
        let verdict = explain(&self.table.handle(), &question).await;
        Some(verdict.expect("an answer"))
    }

    async fn commit(&self, actions: Actions, reads: Vec<Read>) -> Result<u64, Verdict> {
        let foretold = self.foretold(&actions, &reads).await;
        let outcome = self.commit_unasked(actions, reads).await;
        if let Some(foretold) = foretold {
            let met = outcome.as_ref().err().map(|verdict| &verdict.conflicts);
            assert_eq!(
                Some(&foretold.conflicts).filter(|told| !told.is_empty()),
                met
            );
        }
        outcome
    }

    async fn commit_unasked(&self, actions: Actions, reads: Vec<Read>) -> Result<u64, Verdict> {
        let transaction = OptimisticTransaction {
            snapshot: Arc::clone(&self.snapshot),
            reads: ReadSet::new(reads),
            actions,
            operation: Operation {
                name: "TEST".to_owned(),
                ..Operation::default()
            },
            txn_id: uuid::Uuid::new_v4(),
            options: CommitOptions::default(),
        };
        let handle = self.table.handle();
        match transaction
            .commit(handle.log_store())
            .await
            .expect("an outcome")
        {
            CommitOutcome::Committed { version, .. } => Ok(version),
            CommitOutcome::Conflicted { verdict, .. } => Err(verdict),
        }
    }

    fn nothing(&self) -> Read {
        Read {
            scope: ReadScope::Nothing,
            version: self.snapshot.version,
            files: Arc::default(),
        }
    }

    fn everything(&self) -> Read {
        Read {
            scope: ReadScope::WholeTable,
            version: self.snapshot.version,
            files: Arc::new(
                self.snapshot
                    .files
                    .iter()
                    .map(|add| add.path.clone())
                    .collect(),
            ),
        }
    }
}

fn kind(outcome: &Result<u64, Verdict>) -> Option<ConflictKind> {
    outcome
        .as_ref()
        .err()
        .map(|verdict| verdict.first_conflict().expect("a conflict").kind)
}

#[tokio::test]
async fn compaction_as_the_loser_minds_only_its_own_files() {
    let txn = || Transaction::new("app", 1);
    // Name, winner, an application transaction along with it, expected.
    let cases: [(&str, &str, bool, Option<ConflictKind>); 6] = [
        ("append", "INSERT INTO t VALUES (0, 0)", false, None),
        (
            "append, with txn",
            "INSERT INTO t VALUES (0, 0)",
            true,
            APPEND,
        ),
        (
            "DELETE in an input",
            "DELETE FROM t WHERE id = 0",
            false,
            DELETE_READ,
        ),
        (
            "DELETE of an input",
            "DELETE FROM t WHERE id < 200",
            false,
            DELETE_READ,
        ),
        (
            "DELETE elsewhere",
            "DELETE FROM t WHERE id = 900",
            false,
            None,
        ),
        (
            "UPDATE elsewhere",
            "UPDATE t SET x = 0 WHERE id = 900",
            false,
            None,
        ),
    ];
    for (name, winner, with_txn, expected) in cases {
        let hand = Hand::new("Serializable").await;
        hand.table.run(winner).await;
        let mut actions = hand.compaction(&[0, 200]);
        if with_txn {
            actions.transactions.push(txn());
        }
        assert_eq!(
            kind(&hand.commit(actions, vec![]).await),
            expected,
            "{name}"
        );
    }
    let cases = [
        ("compaction of other files", [600, 800], None),
        (
            "compaction of the same files",
            [0, 200],
            Some(ConflictKind::ConcurrentDeleteDelete),
        ),
        (
            "compaction of one of them",
            [200, 600],
            Some(ConflictKind::ConcurrentDeleteDelete),
        ),
    ];
    for (name, files, expected) in cases {
        let hand = Hand::new("Serializable").await;
        hand.table.put_entry(&hand.compaction_entry(&files)).await;
        let outcome = hand.commit(hand.compaction(&[0, 200]), vec![]).await;
        assert_eq!(kind(&outcome), expected, "{name}");
    }
}

#[tokio::test]
async fn metadata_changer_minds_blind_appends() {
    for (changes_metadata, expected) in [(false, None), (true, APPEND)] {
        let hand = Hand::new("WriteSerializable").await;
        hand.table.run(&append(0, 10)).await;
        let mut metadata = hand.snapshot.metadata.clone();
        metadata
            .configuration
            .insert("user.key".into(), "value".into());
        let actions = Actions {
            adds: vec![Hand::add("new.parquet", true)],
            metadata: changes_metadata.then_some(metadata),
            ..Actions::default()
        };
        let outcome = hand.commit(actions, vec![hand.everything()]).await;
        assert_eq!(kind(&outcome), expected, "metadata {changes_metadata}");
    }
}

#[tokio::test]
async fn transaction_without_changes_commits_whatever_others_did() {
    let hand = Hand::new("Serializable").await;
    hand.table.run("UPDATE t SET x = 0").await;
    let version = hand.table.version().await;
    let outcome = hand
        .commit(Actions::default(), vec![hand.everything()])
        .await;
    assert_eq!(outcome.expect("committed"), hand.snapshot.version);
    assert_eq!(hand.table.version().await, version);

    let table = thousand("Serializable").await;
    let query = table
        .plan("SELECT count(*), sum(x) FROM t WHERE id < 50")
        .await;
    table.run(&append(0, 10)).await;
    assert_eq!(text_rows(&query.run().await.expect("a query")), ["50|1225"]);
}

#[tokio::test]
async fn application_transactions_conflict_by_their_application() {
    for (app, expected) in [
        ("ours", Some(ConflictKind::ConcurrentTransaction)),
        ("theirs", None),
    ] {
        let hand = Hand::new("Serializable").await;
        hand.table
            .put_entry(&[json!({"txn": {"appId": app, "version": 7}})])
            .await;
        let actions = Actions {
            adds: vec![Hand::add("new.parquet", true)],
            transactions: vec![Transaction::new("ours", 1)],
            ..Actions::default()
        };
        let outcome = hand.commit(actions, vec![hand.nothing()]).await;
        assert_eq!(kind(&outcome), expected, "{app}");
    }
    // A statement has no application transaction and does not mind theirs.
    let table = thousand("Serializable").await;
    let planned = table.plan("DELETE FROM t WHERE id < 50").await;
    table
        .put_entry(&[json!({"txn": {"appId": "ours", "version": 7}})])
        .await;
    check(planned, None, "statement").await;
}

// ---- Metadata and protocol ----

/// The table's `metaData` or `protocol` action as it stands in version 0.
fn first(table: &Table, name: &str) -> Value {
    table
        .log_entry(0)
        .into_iter()
        .find_map(|action| action.get(name).cloned())
        .expect(name)
}

const STATEMENTS: [&str; 3] = [
    "DELETE FROM t WHERE id < 50",
    "UPDATE t SET x = 0 WHERE id < 50",
    "INSERT INTO t VALUES (9000, 9000)",
];

#[tokio::test]
async fn metadata_change_aborts_every_statement_before_files_are_looked_at() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, Option<ConflictKind>); 9] = [
        (
            "added column",
            |m| {
                let text = m["schemaString"].as_str().expect("schema").to_owned();
                let mut schema: Value = serde_json::from_str(&text).expect("json");
                schema["fields"]
                    .as_array_mut()
                    .expect("fields")
                    .push(json!({"name": "y", "type": "long", "nullable": true, "metadata": {}}));
                m["schemaString"] = json!(schema.to_string());
            },
            METADATA,
        ),
        (
            "constraint",
            |m| m["configuration"]["delta.constraints.positive"] = json!("id >= 0"),
            METADATA,
        ),
        (
            "property set",
            |m| m["configuration"]["delta.appendOnly"] = json!("true"),
            METADATA,
        ),
        (
            "user property set",
            |m| m["configuration"]["owner"] = json!("someone"),
            METADATA,
        ),
        (
            "property changed",
            |m| m["configuration"]["delta.isolationLevel"] = json!("WriteSerializable"),
            METADATA,
        ),
        (
            "property unset",
            |m| m["configuration"] = json!({}),
            METADATA,
        ),
        (
            "column mapping enabled",
            |m| m["configuration"]["delta.columnMapping.mode"] = json!("name"),
            METADATA,
        ),
        (
            "deletion vectors enabled",
            |m| m["configuration"]["delta.enableDeletionVectors"] = json!("true"),
            None,
        ),
        (
            "checkpoint policy",
            |m| m["configuration"]["delta.checkpointPolicy"] = json!("v2"),
            None,
        ),
    ];
    for (name, change, expected) in cases {
        for statement in STATEMENTS {
            let table = small().await;
            let planned = table.plan(statement).await;
            let mut metadata = first(&table, "metaData");
            change(&mut metadata);
            // The added file would conflict with each of those that read, but later in the order.
            table
                .put_entry(&[
                    json!({"metaData": metadata}),
                    json!({"add": {"path": "hand-made.parquet", "partitionValues": {}, "size": 1,
                        "modificationTime": 0, "dataChange": true,
                        "stats": r#"{"numRecords":1,"minValues":{"id":6000},"maxValues":{"id":6000}}"#}}),
                ])
                .await;
            check(planned, expected, &format!("{name}: {statement}")).await;
        }
    }
}

/// Deletion vectors switched on are no obstacle, and the next winner's file is judged as before.
#[tokio::test]
async fn files_added_after_deletion_vectors_were_enabled_are_still_judged() {
    for ((low, high), expected) in [((6000, 6001), None), ((40, 60), APPEND)] {
        let table = thousand("Serializable").await;
        let planned = table.plan("DELETE FROM t WHERE id < 50").await;
        let mut metadata = first(&table, "metaData");
        metadata["configuration"]["delta.enableDeletionVectors"] = json!("true");
        table
            .put_entry(&[
                json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"],
                    "writerFeatures": ["deletionVectors", "appendOnly", "invariants"]}}),
                json!({"metaData": metadata}),
            ])
            .await;
        table
            .put_entry(&[
                json!({"add": {"path": "hand-made.parquet", "partitionValues": {},
                "size": 1, "modificationTime": 0, "dataChange": true,
                "stats": json!({"numRecords": 2, "minValues": {"id": low},
                    "maxValues": {"id": high}, "nullCount": {"id": 0}, "tightBounds": false})
                    .to_string()}}),
            ])
            .await;
        check(planned, expected, &format!("{low} to {high}")).await;
    }
}

#[tokio::test]
async fn protocol_change_aborts_unless_it_is_harmless() {
    let features = |reader: &[&str], writer: &[&str]| {
        json!({"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": reader, "writerFeatures": writer})
    };
    let cases = [
        (
            "deletion vectors",
            features(
                &["deletionVectors"],
                &["deletionVectors", "appendOnly", "invariants"],
            ),
            None,
        ),
        (
            "checkpoints of the second form",
            features(
                &["v2Checkpoint"],
                &["v2Checkpoint", "appendOnly", "invariants"],
            ),
            None,
        ),
        (
            "row tracking",
            features(
                &[],
                &["rowTracking", "domainMetadata", "appendOnly", "invariants"],
            ),
            PROTOCOL,
        ),
        (
            "column mapping",
            features(
                &["columnMapping"],
                &["columnMapping", "appendOnly", "invariants"],
            ),
            PROTOCOL,
        ),
        (
            "unheard of",
            features(&["x"], &["x", "appendOnly", "invariants"]),
            PROTOCOL,
        ),
        (
            "a feature dropped",
            json!({"minReaderVersion": 1, "minWriterVersion": 1}),
            PROTOCOL,
        ),
        (
            "a higher writer version",
            json!({"minReaderVersion": 1, "minWriterVersion": 5}),
            PROTOCOL,
        ),
    ];
    for (name, protocol, expected) in cases {
        for statement in STATEMENTS {
            let table = small().await;
            let planned = table.plan(statement).await;
            table.put_entry(&[json!({"protocol": protocol})]).await;
            check(planned, expected, &format!("{name}: {statement}")).await;
        }
    }
}

#[tokio::test]
async fn both_upgrading_the_protocol_conflict() {
    let upgrade = json!({"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["appendOnly", "deletionVectors", "invariants"]});
    let hand = Hand::new("Serializable").await;
    hand.table.put_entry(&[json!({"protocol": upgrade})]).await;
    let actions = Actions {
        protocol: Some(serde_json::from_value(upgrade).expect("protocol")),
        ..Actions::default()
    };
    let outcome = hand.commit(actions, vec![hand.nothing()]).await;
    assert_eq!(kind(&outcome), PROTOCOL);
}

#[tokio::test]
async fn most_telling_conflict_comes_first() {
    let hand = Hand::new("Serializable").await;
    let [ours] = hand.paths(&[0]).try_into().expect("one file");
    // By the protocol a remove may come without partition values and size.
    hand.table
        .put_entry(&[
            json!({"add": {"path": "hand-made.parquet", "partitionValues": {}, "size": 1,
                "modificationTime": 0, "dataChange": true}}),
            json!({"remove": {"path": ours, "dataChange": true}}),
        ])
        .await;
    let actions = Actions {
        adds: vec![Hand::add("new.parquet", true)],
        removes: hand.remove(&[0], true),
        ..Actions::default()
    };
    let verdict = hand
        .commit(actions, vec![hand.everything()])
        .await
        .expect_err("conflicts");
    let kinds: Vec<ConflictKind> = verdict.conflicts.iter().map(|found| found.kind).collect();
    assert_eq!(
        kinds,
        [
            ConflictKind::ConcurrentAppend,
            ConflictKind::ConcurrentDeleteRead,
            ConflictKind::ConcurrentDeleteDelete
        ]
    );
}

#[tokio::test]
async fn winner_that_cannot_be_read_is_never_taken_for_no_conflict() {
    for (name, line) in [
        ("not JSON", "{"),
        ("an action of a wrong form", r#"{"add":{"path":1}}"#),
    ] {
        let table = thousand("Serializable").await;
        let before = table.files_on_disk();
        let planned = table.plan("DELETE FROM t WHERE id < 50").await;
        let version = table.put_entry(&[]).await;
        std::fs::write(
            format!("{}/_delta_log/{version:020}.json", table.path()),
            line,
        )
        .expect("write");
        let error = planned.run().await.expect_err(name);
        let error = delta_disjoint::Error::find(&error).expect("ours");
        assert_eq!(
            error.kind(),
            delta_disjoint::ErrorKind::Unavailable,
            "{name}"
        );
        assert!(
            error.message().contains(&format!("version {version}")),
            "{name}: {error}"
        );
        assert_eq!(table.files_on_disk(), before, "{name}");
    }
    // An action that nobody has heard of may mean anything.
    let table = thousand("Serializable").await;
    let planned = table.plan("INSERT INTO t VALUES (9000, 9000)").await;
    table.put_entry(&[json!({"unheardOf": {}})]).await;
    check(planned, PROTOCOL, "unknown action").await;
}
