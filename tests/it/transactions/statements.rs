//! Statements that fail, and statements that run at the same time, in one transaction.

use delta_disjoint::ErrorKind;
use delta_disjoint::commit::ConflictKind;

use super::orphans;
use crate::support::{Table, conflict_of, kind_of, plan, run, try_run};

#[tokio::test]
async fn failed_statement_leaves_the_transaction_open_without_its_changes() {
    for clauses in ["", "PARTITIONED BY (x)"] {
        let table = Table::numbers(2, 3, clauses).await;
        table.run("BEGIN").await;
        table.run("UPDATE t SET x = 10 WHERE id = 0").await;
        let files = table.data_files_on_disk();
        for statement in [
            "INSERT INTO t SELECT id, 10 / (id - 5) FROM t",
            "UPDATE t SET x = 10 / (id - 5)",
            "INSERT OVERWRITE t SELECT id, CAST(CASE WHEN id = 5 THEN 'a' ELSE '1' END AS BIGINT) FROM t",
            "DELETE FROM t WHERE 10 / (id - 5) > 0",
            "SELECT 1 / (id - 5) FROM t",
            "SELECT nothing FROM t",
            "not even SQL",
        ] {
            assert!(try_run(&table.ctx, statement).await.is_err(), "{statement}");
            assert_eq!(table.data_files_on_disk(), files, "{statement} {clauses}");
        }
        table.run("DELETE FROM t WHERE id = 1").await;
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            ["0|10", "2|2", "3|3", "4|4", "5|5"]
        );
        table.run("COMMIT").await;
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            ["0|10", "2|2", "3|3", "4|4", "5|5"]
        );
    }
}

#[tokio::test]
async fn failed_statement_has_read_all_the_same() {
    let table = Table::numbers(2, 3, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    let other = table.other_session().await;
    table.run("BEGIN").await;
    table
        .error("DELETE FROM t WHERE id > 3 AND 10 / (id - 5) > 0")
        .await;
    table.run("INSERT INTO t VALUES (-1, 0)").await;
    run(&other, "INSERT INTO t VALUES (7, 0)").await;
    assert_eq!(
        conflict_of(&table.error("COMMIT").await),
        ConflictKind::ConcurrentAppend
    );
}

#[tokio::test]
async fn second_change_of_the_same_rows_at_the_same_time_is_turned_away() {
    let table = Table::numbers(2, 3, "").await;
    table.run("BEGIN").await;
    let late = [
        plan(&table.ctx, "UPDATE t SET x = x + 1 WHERE id = 0").await,
        plan(&table.ctx, "INSERT INTO t SELECT id + 10, x FROM t").await,
        plan(&table.ctx, "DELETE FROM t WHERE id > 100").await,
    ];
    let append = plan(&table.ctx, "INSERT INTO t VALUES (9, 9)").await;
    assert_eq!(table.count("UPDATE t SET x = x + 1 WHERE id < 3").await, 3);
    for (planned, changes) in late.into_iter().zip([true, true, false]) {
        match planned.run().await {
            Err(error) => {
                assert!(changes);
                assert_eq!(kind_of(&error), Some(ErrorKind::Unavailable), "{error}");
                assert!(error.to_string().contains("at the same time"), "{error}");
            }
            // It changes nothing, whatever it was planned on.
            Ok(_) => assert!(!changes),
        }
    }
    assert_eq!(append.count().await, 1);
    table.run("COMMIT").await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["0|1", "1|2", "2|3", "3|3", "4|4", "5|5", "9|9"]
    );
    assert_eq!(orphans(&table), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_at_once_neither_hang_nor_lose_a_change() {
    let table = Table::numbers(2, 50, "").await;
    table.run("BEGIN").await;
    let tasks: Vec<_> = (0..8_i64)
        .map(|number| {
            let ctx = table.ctx.clone();
            tokio::spawn(async move {
                let statement = match number % 4 {
                    0 => format!("INSERT INTO t VALUES ({}, 0)", 1000 + number),
                    1 => "UPDATE t SET x = x + 1000".to_owned(),
                    2 => format!("DELETE FROM t WHERE id = {number}"),
                    _ => "SELECT count(*) FROM t".to_owned(),
                };
                let done = try_run(&ctx, &statement).await;
                (number, done.is_ok())
            })
        })
        .collect();
    let mut done = Vec::new();
    for task in tasks {
        let (number, ok) = task.await.expect("no panic");
        if ok {
            done.push(number);
        }
    }
    table.run("COMMIT").await;
    let with = |kind: i64| done.iter().filter(|number| **number % 4 == kind).count();
    assert_eq!((with(0), with(3)), (2, 2), "appends and queries always go");
    assert!(with(1) + with(2) >= 1, "the first change goes");
    let deleted = with(2);
    let rows = table.rows("SELECT count(*) FROM t").await;
    assert_eq!(rows, [(102 - deleted).to_string()]);
    let raised = table.rows("SELECT x - id FROM t WHERE id = 40").await;
    assert_eq!(raised, [(1000 * with(1)).to_string()]);
}

#[tokio::test]
async fn streams_see_the_view_they_were_opened_on() {
    use datafusion::physical_plan::execute_stream;
    use futures::TryStreamExt;

    let table = Table::numbers(1, 4, "").await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (10, 10)").await;
    let open = |text: &'static str| {
        let ctx = table.ctx.clone();
        async move {
            let frame = delta_disjoint::sql(&ctx, text).await.expect("frame");
            let context = std::sync::Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await.expect("plan");
            execute_stream(plan, context).expect("stream")
        }
    };
    let first = open("SELECT id FROM t WHERE id > 2 ORDER BY id").await;
    table.run("UPDATE t SET id = id + 100 WHERE id > 2").await;
    let second = open("SELECT id FROM t WHERE id > 2 ORDER BY id").await;
    table.run("DELETE FROM t WHERE id > 2").await;
    for (stream, expected) in [(first, ["3", "10"]), (second, ["103", "110"])] {
        let batches: Vec<_> = stream.try_collect().await.expect("rows");
        assert_eq!(crate::support::text_rows(&batches), expected);
    }
    table.run("COMMIT").await;
    assert_eq!(
        table.rows("SELECT id FROM t ORDER BY id").await,
        ["0", "1", "2"]
    );
}

#[tokio::test]
async fn prepared_statements_work_inside() {
    let table = Table::numbers(1, 3, "").await;
    table
        .run("PREPARE ins(BIGINT) AS INSERT INTO t VALUES ($1, 0)")
        .await;
    table.run("BEGIN").await;
    table
        .run("PREPARE upd(BIGINT) AS UPDATE t SET x = x + 1 WHERE id = $1")
        .await;
    table.run("EXECUTE ins(5)").await;
    assert_eq!(table.count("EXECUTE upd(5)").await, 1);
    assert_eq!(table.count("EXECUTE upd(5)").await, 1);
    table.run("ROLLBACK").await;
    assert_eq!(table.count("EXECUTE upd(5)").await, 0);
    table.run("BEGIN").await;
    table.run("EXECUTE ins(5)").await;
    assert_eq!(table.count("EXECUTE upd(5)").await, 1);
    table.run("COMMIT").await;
    assert_eq!(table.rows("SELECT x FROM t WHERE id = 5").await, ["1"]);
}
