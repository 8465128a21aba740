//! EXPLAIN shows what a statement would read and change, and changes nothing; EXPLAIN ANALYZE runs
//! it once and shows what it did.

use crate::support::Table;

const STATEMENTS: [(&str, &str, &str, &str); 7] = [
    // (statement, operation, change, what is read)
    (
        "INSERT INTO t VALUES (1, 1)",
        "WRITE",
        "Append",
        "reads=[nothing]",
    ),
    (
        "INSERT INTO t SELECT * FROM t WHERE id >= 25",
        "WRITE",
        "Append",
        "reads=[id >= 25]",
    ),
    (
        "INSERT OVERWRITE t VALUES (1, 1)",
        "WRITE",
        "Replace",
        "reads=[whole table]",
    ),
    (
        "UPDATE t SET x = 0 WHERE id < 5",
        "UPDATE",
        "Update",
        "reads=[id < 5]",
    ),
    (
        "DELETE FROM t WHERE id < 5",
        "DELETE",
        "Delete",
        "reads=[id < 5]",
    ),
    ("DELETE FROM t", "DELETE", "Delete", "reads=[whole table]"),
    (
        "TRUNCATE TABLE t",
        "TRUNCATE",
        "Truncate",
        "reads=[whole table]",
    ),
];

#[tokio::test]
async fn explain_shows_table_version_reads_and_files_and_changes_nothing() {
    let table = Table::numbers(3, 10, "").await;
    let before = (table.log(), table.data_files_on_disk());
    for (statement, operation, change, reads) in STATEMENTS {
        for form in ["EXPLAIN", "EXPLAIN VERBOSE"] {
            let text = table.rows(&format!("{form} {statement}")).await.join("\n");
            let location = format!("table=file://{}", table.path());
            for expected in [
                format!("DeltaDml: {change}")
                    .replace("Append", "Insert")
                    .replace("Replace", "Overwrite"),
                format!("CommitExec: operation={operation}, {location}"),
                "read_version=3".to_owned(),
                reads.to_owned(),
                format!("RewriteExec: change={change}"),
            ] {
                assert!(
                    text.contains(&expected),
                    "{form} {statement}: no {expected} in\n{text}"
                );
            }
        }
        let tree = table
            .rows(&format!("EXPLAIN FORMAT TREE {statement}"))
            .await
            .join("\n");
        for expected in ["CommitExec", operation, "RewriteExec", change] {
            assert!(
                tree.contains(expected),
                "{statement}: no {expected} in\n{tree}"
            );
        }
        assert_eq!(
            (table.log(), table.data_files_on_disk()),
            before,
            "{statement}"
        );
    }
    for (statement, pruned) in [
        (
            "UPDATE t SET x = 0 WHERE id < 5",
            "version=3, read=[id < 5], files_total=3, files_pruned=2",
        ),
        (
            "DELETE FROM t WHERE id IN (3, 12)",
            "files_total=3, files_pruned=1",
        ),
        (
            "DELETE FROM t WHERE id > 500",
            "files_total=3, files_pruned=3",
        ),
        (
            "INSERT INTO t SELECT * FROM t WHERE id >= 25",
            "files_total=3, files_pruned=2",
        ),
    ] {
        let text = table.rows(&format!("EXPLAIN {statement}")).await.join("\n");
        assert!(text.contains(pruned), "{statement}: no {pruned} in\n{text}");
    }
    assert_eq!((table.log(), table.data_files_on_disk()), before);
}

#[tokio::test]
async fn explain_of_each_scan_of_a_statement() {
    let table = Table::numbers(3, 10, "").await;
    let text = table
        .rows("EXPLAIN UPDATE t SET x = 0 WHERE id < 5 AND x IN (SELECT x FROM t WHERE id > 25)")
        .await
        .join("\n");
    assert_eq!(text.matches("DeltaScanExec").count(), 2, "{text}");
    assert!(text.contains("id < 5"), "{text}");
    assert!(text.contains("id > 25"), "{text}");
    assert!(
        text.contains(" | "),
        "both reads are the transaction's: {text}"
    );
}

#[tokio::test]
async fn explain_analyze_runs_the_statement_once_and_shows_its_metrics() {
    let table = Table::numbers(3, 10, "").await;
    // (statement, metrics)
    let cases: &[(&str, &[&str])] = &[
        (
            "UPDATE t SET x = 100 WHERE id BETWEEN 2 AND 4",
            &[
                "files_total=3",
                "files_pruned=2",
                "files_scanned=1",
                "rows_matched=3",
                "rows_copied=7",
                "files_rewritten=1",
                "files_removed=1",
                "files_added=1",
                "attempts=1",
                "winners_checked=0",
                "conflict_candidates=0",
                "conflict_files_kept=0",
                "conflict_files_skipped_by_partition=0",
                "conflict_files_skipped=0",
            ],
        ),
        (
            "DELETE FROM t WHERE id >= 20",
            &[
                "files_scanned=1",
                "rows_matched=10",
                "rows_copied=0",
                "files_rewritten=0",
                "files_removed=1",
                "files_added=0",
            ],
        ),
        (
            "INSERT INTO t SELECT id + 100, x FROM t WHERE id < 2",
            &[
                "files_pruned=1",
                "files_added=1",
                "rows_written=2",
                "attempts=1",
            ],
        ),
        ("DELETE FROM t WHERE id = 15 AND x = 0", &["rows_matched=0"]),
        ("TRUNCATE TABLE t", &["files_removed=3", "attempts=1"]),
    ];
    for (statement, metrics) in cases {
        let version = table.log().0;
        let text = table
            .rows(&format!("EXPLAIN ANALYZE {statement}"))
            .await
            .join("\n");
        for metric in *metrics {
            assert!(text.contains(metric), "{statement}: no {metric} in\n{text}");
        }
        let changes = u64::from(!metrics.contains(&"rows_matched=0"));
        assert_eq!(table.log().0, version + changes, "{statement}");
    }
}

#[tokio::test]
async fn explain_analyze_shows_the_conflict_check() {
    let table = Table::numbers(2, 10, "").await;
    // AnalyzeExec is planned now and run after the winner.
    let loser = table
        .plan("EXPLAIN ANALYZE UPDATE t SET x = 0 WHERE id < 5")
        .await;
    table.run("INSERT INTO t VALUES (500, 500)").await;
    table.run("UPDATE t SET x = 7 WHERE id >= 500").await;
    let text = crate::support::text_rows(&loser.run().await.expect("commits")).join("\n");
    for metric in [
        "winners_checked=2",
        "conflict_candidates=1",
        "conflict_files_skipped=1",
        "attempts=1",
    ] {
        assert!(text.contains(metric), "no {metric} in\n{text}");
    }
    assert_eq!(
        table.rows("SELECT count(*) FROM t WHERE x = 0").await,
        ["5"]
    );
}

#[tokio::test]
async fn explain_in_a_transaction_shows_the_level_that_it_asks_for() {
    for (begin, level) in [
        ("BEGIN", "WriteSerializable"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "Serializable"),
    ] {
        let table = Table::numbers(1, 10, "").await;
        table.run(begin).await;
        let text = table.rows("EXPLAIN DELETE FROM t WHERE id < 5").await;
        let text = text.join("\n");
        assert!(
            text.contains(&format!("isolation={level}")),
            "{begin}: {text}"
        );
        table.run("ROLLBACK").await;
        let text = table.rows("EXPLAIN DELETE FROM t WHERE id < 5").await;
        let text = text.join("\n");
        assert!(
            text.contains("isolation=WriteSerializable"),
            "{begin}: {text}"
        );
    }
}

/// What the plans of changes show, in order: `tests/it/explain/plans.txt` has it. Paths, times and
/// sizes are left out.
#[tokio::test]
async fn plans_show_read_scopes_and_counters() {
    let statements = [
        "EXPLAIN INSERT INTO t VALUES (1, 1)",
        "EXPLAIN INSERT INTO t SELECT id + 100, x FROM t WHERE id >= 25",
        "EXPLAIN INSERT OVERWRITE t VALUES (1, 1)",
        "EXPLAIN UPDATE t SET x = 0 WHERE id < 5 AND x IN (SELECT x FROM t WHERE id > 25)",
        "EXPLAIN DELETE FROM t WHERE x % 2 = 1 AND id BETWEEN 3 AND 12",
        "EXPLAIN DELETE FROM t",
        "EXPLAIN MERGE INTO t USING (VALUES (1, 1), (50, 2)) AS s (id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.x)",
        "EXPLAIN TRUNCATE TABLE t",
        "EXPLAIN ANALYZE UPDATE t SET x = 100 WHERE id BETWEEN 2 AND 4",
        "EXPLAIN ANALYZE DELETE FROM t WHERE id >= 20",
        "EXPLAIN ANALYZE INSERT INTO t SELECT id + 100, x FROM t WHERE id < 2",
        "EXPLAIN ANALYZE TRUNCATE TABLE t",
    ];
    let options = "OPTIONS ('delta.isolationLevel' 'Serializable')";
    let table = Table::numbers(3, 10, options).await;
    let mut shown = String::new();
    for statement in statements {
        let text = table.rows(statement).await.join("\n");
        shown += &plan_of(statement, &text, &table);
    }
    // Planned before three other writers: two blind appends and a change beside the read.
    let table = Table::numbers(3, 10, options).await;
    let statement = "EXPLAIN ANALYZE UPDATE t SET x = 0 WHERE id < 5";
    let planned = table.plan(statement).await;
    table.run("INSERT INTO t VALUES (500, 500)").await;
    table.run("INSERT INTO t VALUES (600, 600)").await;
    table.run("UPDATE t SET x = 7 WHERE id = 500").await;
    let text = crate::support::text_rows(&planned.run().await.expect("commits")).join("\n");
    shown += &plan_of(statement, &text, &table);

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/explain/plans.txt");
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        shown == expected,
        "these are not the plans of {path}:\n{shown}"
    );
}

/// This crate's operators in `text`, the answer to `statement`.
fn plan_of(statement: &str, text: &str, table: &Table) -> String {
    let mut shown = format!("> {statement}\n");
    for line in text.lines() {
        // The first line has the kind of plan in front.
        let kinds = ["physical_plan|", "Plan with Metrics|"];
        let line = kinds
            .iter()
            .find_map(|kind| line.strip_prefix(kind))
            .unwrap_or(line)
            .trim();
        let own = ["CommitExec", "RewriteExec", "DeltaScanExec"];
        if !own.iter().any(|name| line.starts_with(name)) {
            continue;
        }
        let line = line.replace(&table.path(), "<table>");
        shown += &match line.split_once("metrics=[") {
            None => line,
            Some((operator, metrics)) => {
                let mut counters: Vec<&str> = metrics
                    .trim_end_matches(']')
                    .split(", ")
                    .filter(|metric| {
                        metric.split_once('=').is_some_and(|(name, value)| {
                            !name.contains("bytes")
                                && !name.contains("batches")
                                && value.bytes().all(|byte| byte.is_ascii_digit())
                        })
                    })
                    .collect();
                counters.sort_unstable();
                format!("{operator}metrics=[{}]", counters.join(", "))
            }
        };
        shown.push('\n');
    }
    shown.push('\n');
    shown
}
