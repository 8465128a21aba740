//! UPDATE against UPDATE, the interleaving forced: all are planned, hence pinned to one version,
//! before any of them runs.

use delta_disjoint::commit::ConflictKind;

use crate::support::Table;

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

async fn numbers(level: &str) -> Table {
    Table::numbers(
        4,
        100,
        &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
    )
    .await
}

#[tokio::test]
async fn disjoint_ranges_commit_both() {
    for level in LEVELS {
        let table = numbers(level).await;
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
        let table = numbers(level).await;
        table.run("SET delta.conflict_data_skipping = false").await;
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
            let table = numbers(level).await;
            table
                .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
                .await;
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
        let table = numbers(level).await;
        let first = table.plan("UPDATE t SET x = -1 WHERE id = 3").await;
        let second = table.plan("UPDATE t SET x = -2 WHERE id = 70").await;
        assert_eq!(first.count().await, 1);
        // The file the second refers to by position is gone; its rows lie in a new one.
        second.conflict().await;
        assert_eq!(
            table.rows("SELECT id, x FROM t WHERE x < 0").await,
            ["3|-1"]
        );
    }
}

#[tokio::test]
async fn a_value_that_flips_into_the_read_aborts() {
    for level in LEVELS {
        let table = numbers(level).await;
        let loser = table.plan("DELETE FROM t WHERE x > 398").await;
        let winner = table.plan("UPDATE t SET x = 1000 WHERE id = 5").await;
        assert_eq!(winner.count().await, 1);
        assert_eq!(
            loser.conflict().await,
            ConflictKind::ConcurrentAppend,
            "{level}"
        );
        assert_eq!(table.rows("SELECT count(*) FROM t").await, ["400"]);
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
