//! A transaction sees its own changes, others see them at COMMIT, and COMMIT makes one version.

use crate::support::{Table, rows};

const ALL: &str = "SELECT * FROM t ORDER BY id, x";

/// Rows of `t (id, x)` as text.
fn text(rows: &[(i64, i64)]) -> Vec<String> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows.iter().map(|(id, x)| format!("{id}|{x}")).collect()
}

/// A statement, its count, and what it does to the rows.
type Step = (&'static str, u64, fn(&mut Vec<(i64, i64)>));

/// Each kind of statement on rows of the base, on own rows, and on rows that were changed before.
const STEPS: [Step; 9] = [
    ("INSERT INTO t VALUES (100, 1), (101, 1)", 2, |rows| {
        rows.extend([(100, 1), (101, 1)]);
    }),
    ("UPDATE t SET x = x + 1 WHERE id >= 4", 4, |rows| {
        for row in rows.iter_mut().filter(|row| row.0 >= 4) {
            row.1 += 1;
        }
    }),
    ("UPDATE t SET x = x * 10 WHERE id >= 5", 3, |rows| {
        for row in rows.iter_mut().filter(|row| row.0 >= 5) {
            row.1 *= 10;
        }
    }),
    ("DELETE FROM t WHERE id IN (0, 100)", 2, |rows| {
        rows.retain(|row| row.0 != 0 && row.0 != 100);
    }),
    (
        "INSERT INTO t SELECT id + 1000, x FROM t WHERE id > 3",
        3,
        |rows| {
            let new: Vec<_> = rows
                .iter()
                .filter(|row| row.0 > 3)
                .map(|row| (row.0 + 1000, row.1))
                .collect();
            rows.extend(new);
        },
    ),
    (
        "DELETE FROM t WHERE id > 1000 AND x IN (SELECT x FROM t WHERE id = 5)",
        1,
        |rows| rows.retain(|row| row.0 != 1005),
    ),
    (
        "INSERT OVERWRITE t SELECT id, -x FROM t WHERE id <> 1",
        7,
        |rows| {
            rows.retain(|row| row.0 != 1);
            for row in rows.iter_mut() {
                row.1 = -row.1;
            }
        },
    ),
    ("TRUNCATE TABLE t", 7, |rows| rows.clear()),
    ("INSERT INTO t VALUES (7, 7)", 1, |rows| rows.push((7, 7))),
];

#[tokio::test]
async fn every_statement_sees_what_the_transaction_did_before() {
    for (clauses, lengths) in [
        // Each statement is the last one once.
        ("", 1..=STEPS.len()),
        ("PARTITIONED BY (x)", STEPS.len()..=STEPS.len()),
    ] {
        for length in lengths {
            let table = Table::numbers(2, 3, clauses).await;
            let before = table.log();
            let base: Vec<(i64, i64)> = (0..6).map(|id| (id, id)).collect();
            let mut expected = base.clone();
            let other = table.other_session().await;
            table.run("BEGIN").await;
            for (statement, count, change) in &STEPS[..length] {
                change(&mut expected);
                assert_eq!(
                    table.count(statement).await,
                    *count,
                    "{statement} {clauses}"
                );
                assert_eq!(
                    table.rows(ALL).await,
                    text(&expected),
                    "{statement} {clauses}"
                );
            }
            assert_eq!(rows(&other, ALL).await, text(&base), "{length} {clauses}");
            assert_eq!(table.log(), before, "{length} {clauses}");
            table.run("COMMIT").await;
            assert_eq!(
                rows(&other, ALL).await,
                text(&expected),
                "{length} {clauses}"
            );
            assert_eq!(table.rows(ALL).await, text(&expected), "{length} {clauses}");
            let (version, live) = table.log();
            assert_eq!(version, before.0 + 1);
            // What was written and replaced in the transaction is gone from the disk.
            if clauses.is_empty() {
                assert_eq!(super::orphans(&table), Vec::<String>::new());
            } else {
                let written = live.iter().filter(|file| !before.1.contains(file)).count();
                let on_disk = table.data_files_on_disk().len();
                assert_eq!(on_disk, before.1.len() + written);
            }
        }
    }
}
