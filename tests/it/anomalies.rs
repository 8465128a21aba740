//! Anomalies that a weaker check would let through, each under its name in the literature, and
//! what the two isolation levels say to it.

use delta_disjoint::commit::ConflictKind;
use delta_disjoint::{ErrorKind, session};

use crate::support::{self, Planned, Table, kind_of, open, run};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];

const APPEND: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
const DELETE_READ: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteRead);

/// `t (id BIGINT, x BIGINT)`, one file for each of `inserts`.
async fn table(level: &str, inserts: &[&str]) -> Table {
    Table::create(
        "id BIGINT, x BIGINT",
        &format!("OPTIONS ('delta.isolationLevel' '{level}')"),
        inserts,
    )
    .await
}

async fn outcome(statement: Planned) -> Option<ConflictKind> {
    match statement.run().await {
        Ok(_) => None,
        Err(error) => Some(support::conflict_of(&error)),
    }
}

/// Runs `loser` around `winner` on a fresh table at each level and compares the conflict and the
/// rows, ordered by `id`.
struct Race<'a> {
    inserts: &'a [&'a str],
    loser: &'a str,
    winner: &'a str,
    /// Conflict and rows under Serializable, then under WriteSerializable.
    expected: [(Option<ConflictKind>, &'a [&'a str]); 2],
}

impl Race<'_> {
    async fn run(&self, name: &str) {
        for (level, (conflict, rows)) in LEVELS.into_iter().zip(self.expected) {
            let table = table(level, self.inserts).await;
            let loser = table.plan(self.loser).await;
            table.run(self.winner).await;
            let version = table.version().await;
            assert_eq!(outcome(loser).await, conflict, "{name}, {level}");
            assert_eq!(
                table.rows("SELECT id, x FROM t ORDER BY id, x").await,
                rows,
                "{name}, {level}"
            );
            if conflict.is_some() {
                assert_eq!(table.version().await, version, "{name}, {level}");
            }
        }
    }
}

#[tokio::test]
async fn write_skew_aborts() {
    // The row x = 5 is not in what the DELETE read; the UPDATE brings it there.
    let rows: &[&str] = &["1|15", "2|20"];
    Race {
        inserts: &["VALUES (1, 5)", "VALUES (2, 20)"],
        loser: "DELETE FROM t WHERE x > 10",
        winner: "UPDATE t SET x = 15 WHERE x = 5",
        expected: [(APPEND, rows), (APPEND, rows)],
    }
    .run("write skew")
    .await;
}

#[tokio::test]
async fn lost_update_aborts() {
    let rows: &[&str] = &["1|11"];
    Race {
        inserts: &["VALUES (1, 1)"],
        loser: "UPDATE t SET x = x + 100 WHERE id = 1",
        winner: "UPDATE t SET x = x + 10 WHERE id = 1",
        expected: [(APPEND, rows), (APPEND, rows)],
    }
    .run("lost update")
    .await;
}

/// Two doctors on call; each goes off if the other is on.
#[tokio::test]
async fn two_conditions_on_each_others_rows_abort() {
    let off = |id: i64, other: i64| {
        format!(
            "UPDATE t SET x = 0 WHERE id = {id} AND (SELECT max(x) FROM t WHERE id = {other}) = 1"
        )
    };
    let rows: &[&str] = &["1|1", "2|0"];
    Race {
        inserts: &["VALUES (1, 1)", "VALUES (2, 1)"],
        loser: &off(1, 2),
        winner: &off(2, 1),
        expected: [(APPEND, rows), (APPEND, rows)],
    }
    .run("on call")
    .await;
}

#[tokio::test]
async fn phantom_in_an_empty_scan_aborts() {
    let inserts: &[&str] = &["VALUES (1, 1)", "VALUES (2, 2)"];
    let winner = "INSERT INTO t VALUES (70, 70)";
    let kept: &[&str] = &["1|1", "2|2", "70|70"];
    let cases: [(&str, &str, &[&str]); 4] = [
        (
            "INSERT from an empty scan and a row of its own",
            "INSERT INTO t SELECT 3, 1 + 2 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id BETWEEN 50 AND 99)",
            &["1|1", "2|2", "3|3", "70|70"],
        ),
        (
            "INSERT counts what is not there",
            "INSERT INTO t SELECT 3, count(*) FROM t WHERE id BETWEEN 50 AND 99",
            &["1|1", "2|2", "3|0", "70|70"],
        ),
        (
            "UPDATE by a subquery that finds nothing",
            "UPDATE t SET x = 10 WHERE id = 1 AND NOT EXISTS \
             (SELECT 1 FROM t AS o WHERE o.id BETWEEN 50 AND 99)",
            &["1|10", "2|2", "70|70"],
        ),
        (
            "DELETE by a subquery that finds nothing",
            "DELETE FROM t WHERE id = 1 AND id NOT IN \
             (SELECT o.id - 69 FROM t AS o WHERE o.id BETWEEN 50 AND 99)",
            &["2|2", "70|70"],
        ),
    ];
    for (name, loser, serial) in cases {
        // A plain INSERT may be ordered after the loser under WriteSerializable.
        Race {
            inserts,
            loser,
            winner,
            expected: [(APPEND, kept), (None, serial)],
        }
        .run(name)
        .await;
        // An INSERT that reads may not.
        Race {
            inserts,
            loser,
            winner: "INSERT INTO t SELECT id + 68, x + 68 FROM t WHERE id = 2",
            expected: [(APPEND, kept), (APPEND, kept)],
        }
        .run(name)
        .await;
    }
}

/// What changes no row leaves no trace and has nothing to lose.
#[tokio::test]
async fn statement_that_matches_nothing_never_conflicts() {
    let rows: &[&str] = &["1|1", "70|70"];
    for loser in [
        "DELETE FROM t WHERE id BETWEEN 50 AND 99",
        "UPDATE t SET x = 0 WHERE id BETWEEN 50 AND 99",
        "INSERT INTO t SELECT id + 100, x FROM t WHERE id BETWEEN 50 AND 99",
    ] {
        for level in LEVELS {
            let table = table(level, &["VALUES (1, 1)"]).await;
            let loser = table.plan(loser).await;
            table.run("INSERT INTO t VALUES (70, 70)").await;
            let version = table.version().await;
            assert_eq!(loser.count().await, 0, "{level}");
            assert_eq!(table.version().await, version, "{level}");
            assert_eq!(table.rows("SELECT id, x FROM t ORDER BY id").await, rows);
        }
    }
}

#[tokio::test]
async fn next_key_by_maximum_is_given_out_once() {
    let next = "INSERT INTO t SELECT max(id) + 1, 0 FROM t";
    let rows: &[&str] = &["1|0", "2|0"];
    Race {
        inserts: &["VALUES (1, 0)"],
        loser: next,
        winner: next,
        expected: [(APPEND, rows), (APPEND, rows)],
    }
    .run("both by maximum")
    .await;
    // A plain INSERT of the key is ordered after the one by maximum under WriteSerializable.
    Race {
        inserts: &["VALUES (1, 0)"],
        loser: next,
        winner: "INSERT INTO t VALUES (2, 7)",
        expected: [(APPEND, &["1|0", "2|7"]), (None, &["1|0", "2|0", "2|7"])],
    }
    .run("maximum against plain")
    .await;
    // The other way round nothing was read.
    Race {
        inserts: &["VALUES (1, 0)"],
        loser: "INSERT INTO t VALUES (2, 7)",
        winner: next,
        expected: [
            (None, &["1|0", "2|0", "2|7"]),
            (None, &["1|0", "2|0", "2|7"]),
        ],
    }
    .run("plain against maximum")
    .await;
}

#[tokio::test]
async fn overwrite_meets_every_other_change() {
    meets_every_other_change("INSERT OVERWRITE t VALUES (9, 9)", &["9|9"]).await;
}

#[tokio::test]
async fn overwrite_from_the_table_itself_meets_every_other_change() {
    let loser = "INSERT OVERWRITE t SELECT id + 8, x + 8 FROM t WHERE id = 1";
    meets_every_other_change(loser, &["9|9"]).await;
}

#[tokio::test]
async fn truncate_meets_every_other_change() {
    meets_every_other_change("TRUNCATE TABLE t", &[]).await;
}

#[tokio::test]
async fn delete_without_where_meets_every_other_change() {
    meets_every_other_change("DELETE FROM t", &[]).await;
}

#[tokio::test]
async fn update_without_where_meets_every_other_change() {
    meets_every_other_change("UPDATE t SET x = 9", &["1|9", "2|9"]).await;
}

/// `alone` is what `loser` makes of the table by itself: under WriteSerializable a plain INSERT
/// may be put after it.
async fn meets_every_other_change(loser: &str, alone: &[&str]) {
    let inserts: &[&str] = &["VALUES (1, 1)", "VALUES (2, 2)"];
    // Name, winner, rows after the winner alone, conflict under each level.
    type Winner<'a> = (&'a str, &'a str, &'a [&'a str], [Option<ConflictKind>; 2]);
    let winners: [Winner<'_>; 5] = [
        (
            "plain INSERT",
            "INSERT INTO t VALUES (3, 3)",
            &["1|1", "2|2", "3|3"],
            [APPEND, None],
        ),
        (
            "INSERT that reads",
            "INSERT INTO t SELECT 3, x + 2 FROM t WHERE id = 1",
            &["1|1", "2|2", "3|3"],
            [APPEND, APPEND],
        ),
        (
            "UPDATE",
            "UPDATE t SET x = 10 WHERE id = 1",
            &["1|10", "2|2"],
            [APPEND, APPEND],
        ),
        (
            "DELETE",
            "DELETE FROM t WHERE id = 1",
            &["2|2"],
            [DELETE_READ, DELETE_READ],
        ),
        (
            "TRUNCATE",
            "TRUNCATE TABLE t",
            &[],
            [DELETE_READ, DELETE_READ],
        ),
    ];
    for (name, winner, kept, [serializable, write_serializable]) in winners {
        let both: Vec<&str> = match write_serializable {
            Some(_) => kept.to_vec(),
            // Sorted by id.
            None if alone == ["9|9"] => vec!["3|3", "9|9"],
            None => alone.iter().copied().chain(["3|3"]).collect(),
        };
        Race {
            inserts,
            loser,
            winner,
            expected: [(serializable, kept), (write_serializable, &both)],
        }
        .run(&format!("{loser} against {name}"))
        .await;
    }
}

#[tokio::test]
async fn plain_insert_never_conflicts_with_files() {
    let inserts: &[&str] = &["VALUES (1, 1)", "VALUES (2, 2)"];
    let winners: [(&str, &[&str]); 6] = [
        ("INSERT INTO t VALUES (3, 3)", &["1|1", "2|2", "3|3", "5|5"]),
        ("UPDATE t SET x = 10", &["1|10", "2|10", "5|5"]),
        ("DELETE FROM t WHERE id = 1", &["2|2", "5|5"]),
        ("TRUNCATE TABLE t", &["5|5"]),
        ("INSERT OVERWRITE t VALUES (3, 3)", &["3|3", "5|5"]),
        (
            "INSERT INTO t SELECT id + 2, x + 2 FROM t WHERE id = 1",
            &["1|1", "2|2", "3|3", "5|5"],
        ),
    ];
    for (winner, rows) in winners {
        Race {
            inserts,
            loser: "INSERT INTO t VALUES (5, 5)",
            winner,
            expected: [(None, rows), (None, rows)],
        }
        .run(winner)
        .await;
    }
}

/// Blind appends may be put last only as long as nobody has seen them: here the DELETE must come
/// before the append, the copy after it, and the DELETE after the copy.
#[tokio::test]
async fn append_that_a_later_winner_has_seen_counts() {
    let table = table("WriteSerializable", &["VALUES (1, 1)"]).await;
    let loser = table.plan("DELETE FROM t WHERE x < 10").await;
    table.run("INSERT INTO t VALUES (2, 2)").await;
    table
        .run("INSERT INTO t SELECT id + 100, x + 100 FROM t WHERE id = 2")
        .await;
    assert_eq!(loser.conflict().await, ConflictKind::ConcurrentAppend);
}

#[tokio::test]
async fn table_under_other_names_is_one_table() {
    // The weaker level: what aborts here aborts everywhere.
    let table = table("WriteSerializable", &["VALUES (1, 1)", "VALUES (2, 2)"]).await;
    let path = table.path();
    let folder = tempfile::tempdir().expect("folder");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("symbolic link");
    let here = std::env::current_dir().expect("current folder");
    let up = "../".repeat(here.components().count() - 1);
    let locations = [
        format!("{path}/"),
        format!("file://{path}"),
        format!("file://{path}/"),
        format!("{up}{}", &path[1..]),
        format!("{path}/../{}", path.rsplit('/').next().expect("name")),
        link.to_str().expect("utf-8").to_owned(),
        format!("file://{}/", link.to_str().expect("utf-8")),
    ];
    let losers = [
        "INSERT INTO t SELECT max(id) + 1, 0 FROM other",
        "INSERT INTO other SELECT max(id) + 1, 0 FROM t",
        "INSERT INTO t SELECT max(id) + 1, 0 FROM v",
        "INSERT INTO t SELECT (SELECT max(id) FROM v) + 1, 0",
        "UPDATE t SET x = (SELECT max(id) FROM other) WHERE id = 1",
        "DELETE FROM other WHERE id = 1 AND id < (SELECT max(id) FROM v)",
        "UPDATE other SET x = 5 WHERE id = 1 AND EXISTS (SELECT 1 FROM t WHERE id = 2)",
    ];
    // Every location with three statements, every statement at three locations.
    for (first, location) in locations.iter().enumerate() {
        run(&table.ctx, "DROP TABLE IF EXISTS other").await;
        open(&table.ctx, "other", location).await;
        run(
            &table.ctx,
            "CREATE OR REPLACE VIEW v AS SELECT * FROM other",
        )
        .await;
        for text in losers.into_iter().cycle().skip(first).take(3) {
            let loser = table.plan(text).await;
            table.run("UPDATE t SET x = x + 1 WHERE id = 2").await;
            assert_eq!(outcome(loser).await, APPEND, "{location}: {text}");
        }
    }
}

/// Files of the table read as plain Parquet are rows of the table all the same.
#[tokio::test]
async fn table_read_as_plain_parquet_is_a_read() {
    for level in LEVELS {
        let table = table(level, &["VALUES (1, 1)", "VALUES (2, 2)"]).await;
        let folder = tempfile::tempdir().expect("folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(table.path(), &link).expect("symbolic link");
        let link = link.to_str().expect("utf-8").to_owned();
        for location in [format!("{}/", table.path()), format!("{link}/")] {
            run(&table.ctx, "DROP TABLE IF EXISTS plain").await;
            run(
                &table.ctx,
                &format!("CREATE EXTERNAL TABLE plain STORED AS PARQUET LOCATION '{location}'"),
            )
            .await;
            for text in [
                "INSERT INTO t SELECT max(id) + 1, 0 FROM plain",
                "UPDATE t SET x = (SELECT max(id) FROM plain) WHERE id = 1",
                "DELETE FROM t WHERE id = 1 AND id < (SELECT max(id) FROM plain)",
            ] {
                let loser = table.plan(text).await;
                table.run("UPDATE t SET x = x + 1 WHERE id = 2").await;
                assert_eq!(outcome(loser).await, APPEND, "{level}, {location}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn subquery_over_the_target_is_a_read() {
    let inserts: &[&str] = &["VALUES (1, 1)", "VALUES (2, 2)", "VALUES (500, 500)"];
    let far: &[&str] = &["1|1", "2|2", "500|501"];
    for loser in [
        "DELETE FROM t WHERE id = 1 AND EXISTS (SELECT 1 FROM t AS o WHERE o.id > 400)",
        "DELETE FROM t WHERE id < 3 AND id IN (SELECT o.id - 499 FROM t AS o WHERE o.id > 400)",
        "DELETE FROM t WHERE id < 3 AND id NOT IN (SELECT o.id FROM t AS o WHERE o.id > 400)",
        "DELETE FROM t WHERE id < 2 AND id < (SELECT max(o.x) FROM t AS o WHERE o.id > 400)",
        "UPDATE t SET x = (SELECT max(o.x) FROM t AS o WHERE o.id > 400) WHERE id < 3",
        "INSERT INTO t SELECT 7, max(o.x) FROM t AS o WHERE o.id > 400",
        "INSERT INTO t WITH o AS (SELECT x FROM t WHERE id > 400) SELECT 7, x FROM o",
        "INSERT INTO t SELECT a.id + 10, b.x FROM t AS a JOIN t AS b ON a.x = b.x - 499 WHERE a.id < 3",
    ] {
        Race {
            inserts,
            loser,
            winner: "UPDATE t SET x = x + 1 WHERE id > 450",
            expected: [(APPEND, far), (APPEND, far)],
        }
        .run(loser)
        .await;
    }
    // Between the two reads there is room.
    Race {
        inserts: &["VALUES (1, 1)", "VALUES (200, 2)", "VALUES (500, 500)"],
        loser: "UPDATE t SET x = (SELECT max(o.x) FROM t AS o WHERE o.id > 400) WHERE id < 3",
        winner: "UPDATE t SET x = 7 WHERE id = 200",
        expected: [
            (None, &["1|500", "200|7", "500|500"]),
            (None, &["1|500", "200|7", "500|500"]),
        ],
    }
    .run("between two reads")
    .await;
}

#[tokio::test]
async fn rows_of_another_table_are_not_held_against_the_statement() {
    for level in LEVELS {
        let table = table(level, &["VALUES (1, 1)", "VALUES (2, 2)"]).await;
        let other = table_other(&table, level).await;
        for (text, count) in [
            (
                "DELETE FROM t WHERE id IN (SELECT id FROM s WHERE y = 10)",
                1,
            ),
            ("UPDATE t SET x = (SELECT max(y) FROM s) WHERE id = 2", 1),
            (
                "INSERT INTO t SELECT s.id + 10, s.y FROM s JOIN t ON t.id = s.id",
                1,
            ),
            ("INSERT INTO t SELECT id + 20, y FROM s", 2),
        ] {
            let loser = table.plan(text).await;
            table.run("UPDATE s SET y = y + 1 WHERE id = 2").await;
            assert_eq!(loser.count().await, count, "{level}: {text}");
        }
        // The target's own rows still are.
        let loser = table
            .plan("INSERT INTO t SELECT s.id + 10, s.y FROM s JOIN t ON t.id = s.id")
            .await;
        table.run("UPDATE t SET x = 0 WHERE id = 2").await;
        assert_eq!(outcome(loser).await, APPEND, "{level}");
        drop(other);
    }
}

/// `s (id BIGINT, y BIGINT)` in the session of `table`.
async fn table_other(table: &Table, level: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    table
        .run(&format!(
            "CREATE EXTERNAL TABLE s (id BIGINT, y BIGINT) STORED AS DELTA LOCATION '{}' \
             OPTIONS ('delta.isolationLevel' '{level}')",
            folder.path().display()
        ))
        .await;
    table.run("INSERT INTO s VALUES (1, 10), (2, 20)").await;
    folder
}

/// A sort with a limit hands a filter down to the scan while it runs. Below the scan's gate it would
/// meet the bounds of a float column, which say nothing of NaN, the greatest value.
#[tokio::test]
async fn sort_stays_above_the_scan() {
    let table = Table::create(
        "id BIGINT, f DOUBLE",
        "",
        &[
            "VALUES (1, 100.0), (2, 101.0)",
            "VALUES (3, 1.0), (4, 'NaN')",
        ],
    )
    .await;
    for query in [
        "SELECT id FROM t ORDER BY f DESC",
        "SELECT id FROM t ORDER BY f DESC LIMIT 1",
        "SELECT id, row_number() OVER (ORDER BY f DESC) AS n FROM t LIMIT 1",
    ] {
        assert_eq!(
            table.rows(query).await[0].split('|').next(),
            Some("4"),
            "{query}"
        );
        let plan = table.rows(&format!("EXPLAIN {query}")).await.join("\n");
        let below = plan.split("DeltaScanExec").last().expect("a scan");
        assert!(!below.contains("SortExec"), "{plan}");
    }
}

/// A read that is planned and not yet run stays at its version.
#[tokio::test]
async fn query_reads_one_version_and_never_conflicts() {
    for level in LEVELS {
        let table = table(level, &["VALUES (1, 1)", "VALUES (2, 2)"]).await;
        let query = table
            .plan("SELECT a.id, b.x FROM t AS a JOIN t AS b ON a.id = b.id ORDER BY a.id")
            .await;
        table.run("UPDATE t SET x = 0").await;
        table.run("INSERT INTO t VALUES (3, 3)").await;
        let rows = query.run().await.expect("the query");
        assert_eq!(support::text_rows(&rows), ["1|1", "2|2"], "{level}");
    }
}

/// A prepared statement and a frame made long ago read the newest version when they run.
#[tokio::test]
async fn frame_made_before_a_winner_reads_after_it() {
    for level in LEVELS {
        let table = table(level, &["VALUES (1, 1)"]).await;
        let frame = delta_disjoint::sql(&table.ctx, "UPDATE t SET x = x + 1 WHERE id = 1")
            .await
            .expect("frame");
        let again = frame.clone();
        let other = table.other_session().await;
        run(&other, "UPDATE t SET x = x + 10 WHERE id = 1").await;
        frame.collect().await.expect("first run");
        run(&other, "UPDATE t SET x = x + 10 WHERE id = 1").await;
        again.collect().await.expect("second run");
        assert_eq!(table.rows("SELECT x FROM t").await, ["23"], "{level}");
    }
}

#[tokio::test]
async fn table_gone_between_planning_and_running_is_an_error() {
    let table = table("Serializable", &["VALUES (1, 1)"]).await;
    let path = table.path();
    let loser = table.plan("DELETE FROM t WHERE id = 1").await;
    std::fs::remove_dir_all(&path).expect("remove");
    let error = loser.run().await.expect_err("no table");
    assert!(!path.is_empty());
    assert_ne!(kind_of(&error), Some(ErrorKind::Conflict));
    let ctx = session();
    assert!(
        support::try_run(
            &ctx,
            &format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{path}'")
        )
        .await
        .is_err()
    );
}
