//! UPDATE against UPDATE, the interleaving forced: all are planned, hence pinned to one version,
//! before any of them runs.

use delta_disjoint::commit::ConflictKind;

use crate::support::{Table, conflict_of, count};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

/// 4 files of 100 rows in a session with data skipping on or off.
async fn numbers(level: &str, skipping: bool) -> Table {
    let level = format!("OPTIONS ('delta.isolationLevel' '{level}')");
    let table = Table::numbers(4, 100, &level).await;
    table
        .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
        .await;
    table
}

#[tokio::test]
async fn disjoint_ranges_commit_both() {
    for level in LEVELS {
        let table = numbers(level, true).await;
        let first = table.plan("UPDATE t SET x = -1 WHERE id < 50").await;
        let second = table.plan("UPDATE t SET x = -2 WHERE id >= 350").await;
        assert_eq!(first.count().await, 50, "{level}");
        assert_eq!(second.count().await, 50, "{level}");
        assert_eq!(
            table
                .rows(
                    "SELECT x, count(*), min(id), max(id) FROM t WHERE x < 0 GROUP BY x ORDER BY x"
                )
                .await,
            ["-2|50|350|399", "-1|50|0|49"]
        );
        assert_eq!(
            table.rows("SELECT count(*), sum(id) FROM t").await,
            ["400|79800"]
        );
    }
}

#[tokio::test]
async fn disjoint_ranges_without_skipping_abort() {
    for level in LEVELS {
        let table = numbers(level, false).await;
        let first = table.plan("UPDATE t SET x = -1 WHERE id < 50").await;
        let second = table.plan("UPDATE t SET x = -2 WHERE id >= 350").await;
        assert_eq!(first.count().await, 50);
        assert_eq!(
            second.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{level}"
        );
        assert_eq!(
            table.rows("SELECT count(*) FROM t WHERE x = -2").await,
            ["0"]
        );
    }
}

#[tokio::test]
async fn overlapping_ranges_abort() {
    for level in LEVELS {
        for skipping in [true, false] {
            let table = numbers(level, skipping).await;
            let first = table
                .plan("UPDATE t SET x = -1 WHERE id BETWEEN 90 AND 110")
                .await;
            let second = table
                .plan("UPDATE t SET x = -2 WHERE id BETWEEN 100 AND 120")
                .await;
            assert_eq!(first.count().await, 21);
            assert_eq!(second.conflict().await, ConflictKind::ConcurrentAppend);
            assert_eq!(
                table
                    .rows("SELECT x, count(*) FROM t WHERE x < 0 GROUP BY x")
                    .await,
                ["-1|21"]
            );
        }
    }
}

#[tokio::test]
async fn disjoint_rows_of_one_file_abort() {
    for level in LEVELS {
        for skipping in [true, false] {
            let table = numbers(level, skipping).await;
            let first = table.plan("UPDATE t SET x = -1 WHERE id = 3").await;
            let second = table.plan("UPDATE t SET x = -2 WHERE id = 70").await;
            assert_eq!(first.count().await, 1);
            // The file the second refers to by position is gone; its rows lie in a new one.
            assert_eq!(
                second.conflict().await,
                ConflictKind::ConcurrentAppend,
                "{level} {skipping}"
            );
            assert_eq!(
                table.rows("SELECT id, x FROM t WHERE x < 0").await,
                ["3|-1"]
            );
        }
    }
}

#[tokio::test]
async fn a_value_that_flips_into_the_read_aborts() {
    for level in LEVELS {
        for skipping in [true, false] {
            let table = numbers(level, skipping).await;
            let loser = table.plan("UPDATE t SET x = 0 WHERE x > 398").await;
            let winner = table.plan("UPDATE t SET x = 1000 WHERE id = 5").await;
            assert_eq!(winner.count().await, 1);
            assert_eq!(
                loser.conflict().await,
                ConflictKind::ConcurrentAppend,
                "{level} {skipping}"
            );
            assert_eq!(
                table
                    .rows("SELECT id, x FROM t WHERE x > 398 ORDER BY x")
                    .await,
                ["399|399", "5|1000"]
            );
        }
    }
}

#[tokio::test]
async fn two_tasks_at_once_commit_what_is_disjoint_and_one_of_what_is_not() {
    // The ranges of the two, and how many of them commit with skipping and without.
    let cases = [
        ("id < 50", "id >= 350", [2, 1]),
        ("id BETWEEN 90 AND 110", "id BETWEEN 100 AND 120", [1, 1]),
    ];
    for level in LEVELS {
        for (first, second, expected) in cases {
            for (skipping, expected) in [true, false].into_iter().zip(expected) {
                let table = numbers(level, skipping).await;
                let mut running = Vec::new();
                for (value, range) in [(-1, first), (-2, second)] {
                    let statement = format!("UPDATE t SET x = {value} WHERE {range}");
                    running.push((value, table.plan(&statement).await));
                }
                let running = running
                    .into_iter()
                    .map(|(value, statement)| (value, tokio::spawn(statement.run())));
                let mut committed = 0;
                for (value, task) in running.collect::<Vec<_>>() {
                    let outcome = task.await.expect("joined");
                    let marked = table
                        .rows(&format!("SELECT count(*) FROM t WHERE x = {value}"))
                        .await;
                    match outcome {
                        Ok(batches) => {
                            committed += 1;
                            assert_eq!(marked, [count(&batches).to_string()]);
                        }
                        Err(error) => {
                            assert_eq!(conflict_of(&error), ConflictKind::ConcurrentAppend);
                            assert_eq!(marked, ["0"]);
                        }
                    }
                }
                assert_eq!(
                    committed, expected,
                    "{level}, {first}, {second}, {skipping}"
                );
                assert_eq!(
                    table.rows("SELECT count(*), sum(id) FROM t").await,
                    ["400|79800"]
                );
            }
        }
    }
}

#[tokio::test]
async fn eight_writers_on_disjoint_ranges_all_commit() {
    for level in LEVELS {
        let table = Table::numbers(
            8,
            50,
            &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
        )
        .await;
        let mut planned = Vec::new();
        for writer in 0..8 {
            let (first, last) = (writer * 50, writer * 50 + 49);
            planned.push(
                table
                    .plan(&format!(
                        "UPDATE t SET x = {} WHERE id BETWEEN {first} AND {last}",
                        -1 - writer
                    ))
                    .await,
            );
        }
        let before = table.version().await;
        let running: Vec<_> = planned
            .into_iter()
            .map(|statement| tokio::spawn(statement.count()))
            .collect();
        for writer in running {
            assert_eq!(writer.await.expect("joined"), 50, "{level}");
        }
        assert_eq!(table.version().await, before + 8);
        assert_eq!(
            table
                .rows("SELECT count(*), count(DISTINCT x), min(x), max(x), sum(id) FROM t")
                .await,
            ["400|8|-8|-1|79800"]
        );
    }
}
