//! Tables that others published and tables that these tests write themselves, read by this crate
//! and by deltalake: equal rows and types, or a refusal that names what is not honoured.
//!
//! The published tables lie in the folder that `DELTA_GOLDEN_TABLES` names, one folder for each
//! source in it, a folder for each table in that.

mod compare;
mod own_tables;
mod predicates;
mod report;
mod statistics;
mod widened_types;

use std::path::{Path, PathBuf};

use self::compare::{Theirs, ours, theirs};
use self::report::{Outcome, Report};

#[tokio::test]
async fn published_tables_read_as_deltalake_reads_them() {
    let Some(root) = std::env::var_os("DELTA_GOLDEN_TABLES") else {
        println!("golden tables: none ran, DELTA_GOLDEN_TABLES names no folder");
        return;
    };
    let mut report = Report::default();
    for source in folders(Path::new(&root)) {
        for table in folders(&source) {
            report.add(&table, outcome(&table).await);
        }
    }
    println!("{report}");
    assert!(report.tables() > 0, "no table in {}", root.display());
    report.assert_no_difference();
}

/// Reads the table in `folder` with both and compares.
async fn outcome(folder: &Path) -> Outcome {
    match (ours(folder).await, theirs(folder).await) {
        (Ok(ours), Theirs::Rows(theirs)) => match ours.difference(&theirs) {
            Some(difference) => Outcome::Different(difference),
            None => predicates::check(folder, &ours).await,
        },
        // Nothing to compare the rows with; the predicates still have to agree with them.
        (Ok(ours), Theirs::Error(error)) => match predicates::check(folder, &ours).await {
            Outcome::Equal { .. } => Outcome::OnlyWe {
                rows: ours.rows(),
                error,
            },
            other => other,
        },
        (Err(error), theirs) => Outcome::of_error(&error, theirs),
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(path)
        .expect("folder")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}
