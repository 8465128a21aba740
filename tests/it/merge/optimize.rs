//! MERGE against OPTIMIZE by deltalake, which moves rows to other files and changes none.

use delta_disjoint::commit::ConflictKind;
use deltalake::{FilterOp, FilterValue};

use crate::support::{Table, conflict_of};

#[tokio::test]
async fn merge_loses_to_optimize_only_where_it_has_to_remove_a_moved_file() {
    // `p` 1 has the ids 1, 2 and 3, `p` 2 has 4, 5 and 6, each in a file of its own; OPTIMIZE
    // compacts `p` 1. The source's rows, the clauses, whether it is lost, and the rows in the end.
    let update = "WHEN MATCHED THEN UPDATE SET x = s.x";
    let insert = "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.x, 1)";
    let none = None;
    let lost = Some(ConflictKind::ConcurrentDeleteDelete);
    let cases = [
        ("(1, 9)", update, lost, "1/0 2/0 3/0 4/0 5/0 6/0"),
        ("(1, 9), (4, 9)", update, lost, "1/0 2/0 3/0 4/0 5/0 6/0"),
        (
            "(2, 9)",
            "WHEN MATCHED THEN DELETE",
            lost,
            "1/0 2/0 3/0 4/0 5/0 6/0",
        ),
        ("(4, 9)", update, none, "1/0 2/0 3/0 4/9 5/0 6/0"),
        (
            "(5, 9)",
            "WHEN MATCHED THEN DELETE",
            none,
            "1/0 2/0 3/0 4/0 6/0",
        ),
        // The rows that matched are read where they were, and still are there; nothing of them goes.
        (
            "(1, 9), (7, 9)",
            insert,
            none,
            "1/0 2/0 3/0 4/0 5/0 6/0 7/9",
        ),
        (
            "(4, 9), (7, 9)",
            &format!("{update} {insert}"),
            none,
            "1/0 2/0 3/0 4/9 5/0 6/0 7/9",
        ),
        // Without the keys of the source every file is read, and those of `p` 2 alone go.
        (
            "(1, 9), (4, 9)",
            "WHEN NOT MATCHED BY SOURCE AND t.p = 2 THEN DELETE",
            none,
            "1/0 2/0 3/0 4/0",
        ),
    ];
    for level in ["Serializable", "WriteSerializable"] {
        for (source, clauses, expected, rows) in cases {
            let inserts: Vec<String> = (1..=6)
                .map(|id| format!("VALUES ({id}, 0, {})", if id < 4 { 1 } else { 2 }))
                .collect();
            let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
            let table = Table::create(
                "id BIGINT, x BIGINT, p BIGINT",
                &format!("PARTITIONED BY (p) OPTIONS ('delta.isolationLevel' '{level}')"),
                &inserts,
            )
            .await;
            let loser = table
                .plan(&format!(
                    "MERGE INTO t USING (VALUES {source}) AS s (id, x) ON t.id = s.id {clauses}"
                ))
                .await;
            let (_, metrics) = table
                .deltalake()
                .await
                .optimize()
                .with_filters(&[("p", FilterOp::Eq, FilterValue::Scalar("1"))])
                .await
                .expect("optimize");
            assert_eq!(metrics.num_files_removed, 3, "{metrics:?}");
            let outcome = loser.run().await.err().map(|error| conflict_of(&error));
            assert_eq!(outcome, expected, "{level}: {source} {clauses}");
            assert_eq!(
                table
                    .rows("SELECT string_agg(id || '/' || x, ' ' ORDER BY id) FROM t")
                    .await,
                [rows],
                "{level}: {source} {clauses}"
            );
        }
    }
}
