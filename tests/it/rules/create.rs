//! `CREATE EXTERNAL TABLE` with constraints.

use delta_disjoint::{ErrorKind, session};

use crate::support::{Table, kind_of, try_run};

#[tokio::test]
async fn a_new_table_may_have_constraints() {
    for (columns, more, protocol) in [
        ("id BIGINT, x BIGINT", "", (1, 3)),
        (
            "id BIGINT, x BIGINT",
            ", 'delta.columnMapping.mode' 'name'",
            (2, 5),
        ),
        (
            "id BIGINT, x BIGINT",
            ", 'delta.clusteringColumns' 'id'",
            (1, 7),
        ),
        ("id BIGINT, x BIGINT, t TIMESTAMP", "", (3, 7)),
    ] {
        let table = Table::create(
            columns,
            &format!("OPTIONS ('delta.constraints.Positive' 'x > 0'{more})"),
            &[],
        )
        .await;
        let actions = table.log_entry(0);
        let found = actions
            .iter()
            .find_map(|action| action.get("protocol"))
            .expect("protocol");
        assert_eq!(found["minReaderVersion"], protocol.0, "{more}");
        assert_eq!(found["minWriterVersion"], protocol.1, "{more}");
        if protocol.1 == 7 {
            let features = found["writerFeatures"].to_string();
            assert!(features.contains("checkConstraints"), "{features}");
        }
        let error = table.refused("INSERT INTO t (id, x) VALUES (1, 0)").await;
        assert!(
            error
                .to_string()
                .contains("CHECK constraint positive (x > 0)"),
            "{error}"
        );
        assert_eq!(table.count("INSERT INTO t (id, x) VALUES (1, 1)").await, 1);
    }
}

#[tokio::test]
async fn a_new_table_cannot_have_a_constraint_that_cannot_be_checked() {
    let dir = tempfile::tempdir().expect("folder");
    let location = dir.path().join("new").display().to_string();
    for (text, part) in [
        ("y > 0", "no column y"),
        ("x >", "parsed"),
        ("x", "BOOLEAN"),
    ] {
        let error = try_run(
            &session(),
            &format!(
                "CREATE EXTERNAL TABLE t (x BIGINT) STORED AS DELTA LOCATION '{location}' \
                 OPTIONS ('delta.constraints.c' '{text}')"
            ),
        )
        .await
        .expect_err("refused");
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
        for part in [part, "CHECK constraint c"] {
            assert!(error.to_string().contains(part), "{part} in {error}");
        }
        assert!(!dir.path().join("new").exists());
    }
}
