//! What a transaction does not do is refused by name, and the transaction stays open.

use delta_disjoint::{ErrorKind, sql};

use crate::support::{Table, kind_of, open, rows, run, try_run};

#[tokio::test]
async fn statements_that_begin_or_end_wrongly_are_refused() {
    let table = Table::numbers(1, 2, "").await;
    for (inside, statement, names) in [
        (false, "COMMIT", "COMMIT: the session is in no transaction"),
        (
            false,
            "ROLLBACK",
            "ROLLBACK: the session is in no transaction",
        ),
        (false, "END", "END: the session is in no transaction"),
        (true, "BEGIN", "in a transaction already"),
        (true, "START TRANSACTION", "in a transaction already"),
        (true, "COMMIT AND CHAIN", "CHAIN"),
        (true, "ROLLBACK AND CHAIN", "CHAIN"),
        (true, "SAVEPOINT a", "SAVEPOINT a: savepoints"),
        (true, "RELEASE SAVEPOINT a", "savepoints"),
        (true, "ROLLBACK TO SAVEPOINT a", "savepoints"),
        (
            false,
            "START TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "READ COMMITTED",
        ),
        (
            false,
            "START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SERIALIZABLE",
        ),
        (
            false,
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "REPEATABLE READ",
        ),
        (false, "BEGIN ISOLATION LEVEL SNAPSHOT", "SNAPSHOT"),
        (true, "EXPLAIN COMMIT", "COMMIT"),
    ] {
        if inside {
            table.run("BEGIN").await;
            table.run("INSERT INTO t VALUES (9, 9)").await;
        }
        let error = table.error(statement).await;
        assert!(error.to_string().contains(names), "{statement}: {error}");
        if inside {
            assert_eq!(
                table.rows("SELECT count(*) FROM t").await,
                ["3"],
                "{statement}"
            );
            table.run("ROLLBACK").await;
        } else {
            assert!(
                try_run(&table.ctx, "ROLLBACK").await.is_err(),
                "{statement} began one"
            );
        }
    }
}

#[tokio::test]
async fn all_forms_of_begin_and_commit_work() {
    let table = Table::numbers(1, 1, "").await;
    for (begin, end) in [
        ("BEGIN", "COMMIT"),
        ("BEGIN WORK", "COMMIT WORK"),
        ("begin transaction;", "commit transaction;"),
        ("START TRANSACTION", "END"),
        ("START TRANSACTION READ WRITE", "COMMIT AND NO CHAIN"),
    ] {
        let before = table.log().0;
        table.run(begin).await;
        table.run("INSERT INTO t VALUES (1, 1)").await;
        assert_eq!(table.log().0, before, "{begin}");
        assert!(
            table
                .run(end)
                .await
                .iter()
                .all(|batch| batch.num_rows() == 0)
        );
        assert_eq!(table.log().0, before + 1, "{end}");
    }
}

#[tokio::test]
async fn second_table_is_refused_when_it_would_be_changed() {
    let table = Table::numbers(1, 2, "").await;
    let second = Table::numbers(1, 2, "").await;
    open(&table.ctx, "s", &second.path()).await;
    table.run("BEGIN").await;
    // Neither reading nor changing nothing binds the transaction to a table.
    table.run("DELETE FROM s WHERE id = 99").await;
    table.run("INSERT INTO t SELECT id + 10, x FROM s").await;
    for statement in [
        "DELETE FROM s WHERE id = 0",
        "INSERT INTO s VALUES (5, 5)",
        "INSERT INTO s SELECT * FROM t",
        "TRUNCATE TABLE s",
    ] {
        let error = table.error(statement).await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported));
        let message = error.to_string();
        assert!(message.contains("log of its own"), "{message}");
        assert!(message.contains(&second.path()), "{message}");
    }
    table
        .run("INSERT INTO t SELECT id + 20, x FROM s WHERE id = 1")
        .await;
    table.run("COMMIT").await;
    assert_eq!(
        table.rows("SELECT id FROM t ORDER BY id").await,
        ["0", "1", "10", "11", "21"]
    );
    assert_eq!(table.rows("SELECT id FROM s ORDER BY id").await, ["0", "1"]);
    table.run("DELETE FROM s WHERE id = 0").await;
}

#[tokio::test]
async fn what_cannot_be_rolled_back_is_refused() {
    let table = Table::numbers(1, 2, "").await;
    table.run("CREATE TABLE m (a BIGINT) AS VALUES (1)").await;
    table.run("CREATE VIEW w AS SELECT 1").await;
    let folder = tempfile::tempdir().expect("folder");
    let location = folder.path().display();
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (9, 9)").await;
    for statement in [
        "CREATE TABLE n (a BIGINT)",
        "CREATE TABLE n AS SELECT * FROM t",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE SCHEMA sc",
        "DROP TABLE t",
        "DROP TABLE IF EXISTS nothing",
        "DROP VIEW w",
        &format!("CREATE EXTERNAL TABLE n (a BIGINT) STORED AS DELTA LOCATION '{location}'"),
        "INSERT INTO m VALUES (2)",
    ] {
        let error = table.error(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Unsupported),
            "{statement}: {error}"
        );
        assert!(
            error.to_string().contains("rolled back"),
            "{statement}: {error}"
        );
    }
    assert!(
        std::fs::read_dir(folder.path())
            .expect("folder")
            .next()
            .is_none()
    );
    assert_eq!(table.rows("SELECT * FROM m").await, ["1"]);
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
    table.run("COMMIT").await;
    table.run("DROP VIEW w").await;
    table.run("INSERT INTO m VALUES (2)").await;
}

#[tokio::test]
async fn read_only_transaction_changes_nothing() {
    let table = Table::numbers(1, 3, "").await;
    let before = (table.log(), table.data_files_on_disk());
    let other = table.other_session().await;
    table.run("START TRANSACTION READ ONLY").await;
    for statement in [
        "INSERT INTO t VALUES (9, 9)",
        "UPDATE t SET x = 0",
        "DELETE FROM t WHERE id = -1",
        "TRUNCATE TABLE t",
    ] {
        let error = table.error(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Invalid),
            "{statement}: {error}"
        );
        assert!(error.to_string().contains("READ ONLY"), "{error}");
    }
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
    assert_eq!((table.log(), table.data_files_on_disk()), before);
    run(&other, "DELETE FROM t").await;
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["3"]);
    table.run("COMMIT").await;
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn datafusions_own_entry_point_says_that_it_does_nothing() {
    let table = Table::numbers(1, 1, "").await;
    for statement in ["START TRANSACTION", "COMMIT", "ROLLBACK"] {
        let frame = table.ctx.sql(statement).await.expect("planned");
        let error = frame.collect().await.expect_err("refused");
        assert!(error.to_string().contains("delta_disjoint::sql"), "{error}");
    }
    let plain = datafusion::prelude::SessionContext::new();
    let error = sql(&plain, "BEGIN").await.expect_err("refused");
    assert!(
        error.to_string().contains("delta_disjoint::session()"),
        "{error}"
    );
}

#[tokio::test]
async fn failure_to_begin_leaves_the_open_transaction_alone() {
    let table = Table::numbers(1, 1, "").await;
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (1, 1)").await;
    table.error("BEGIN").await;
    table.run("COMMIT").await;
    assert_eq!(
        rows(&table.ctx, "SELECT id FROM t ORDER BY id").await,
        ["0", "1"]
    );
}

#[tokio::test]
async fn copy_to_files_is_refused_in_a_transaction() {
    let table = Table::numbers(1, 2, "").await;
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("a.parquet");
    let copy = format!("COPY t TO '{}'", file.display());
    table.run("BEGIN").await;
    table.run("INSERT INTO t VALUES (9, 9)").await;
    let by_plain_sql = async { table.ctx.sql(&copy).await?.collect().await };
    for outcome in [try_run(&table.ctx, &copy).await, by_plain_sql.await] {
        let error = outcome.expect_err("refused");
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().contains("COPY"), "{error}");
    }
    assert!(!file.exists());
    table.run("ROLLBACK").await;
    table.run(&copy).await;
    assert!(file.exists());
}
