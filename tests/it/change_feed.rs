//! The change data feed: what its readers see of every change, row by row and version by version.

mod concurrent;
mod limits;
mod merge;
mod published;
mod random;
pub mod reader;
mod statements;
mod transactions;

use serde_json::{Value, json};

use self::reader::{Change, ours, theirs};
use crate::deletion_vectors::vectors::inline;
use crate::deletion_vectors::{add_of, hide};
use crate::support::Table;

const FEED: &str = "OPTIONS ('delta.enableChangeDataFeed' 'true')";

/// A kind of table that changes are made to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Partitioned,
    Mapped,
    MappedAndPartitioned,
    /// With a row that is hidden already.
    Vectors,
}

const SHAPES: [Shape; 4] = [
    Shape::Plain,
    Shape::Partitioned,
    Shape::MappedAndPartitioned,
    Shape::Vectors,
];

/// Whether there are change files: where the table is plain, where it is partitioned, and where the
/// first file has a deletion vector.
type ChangeFiles = [bool; 3];

/// Whether to look at the case with this number in `shape`: in each where they differ, else in one of
/// them, by turns.
fn is_looked_at(shape: Shape, case: usize, files: ChangeFiles) -> bool {
    let differs = files.iter().any(|wanted| *wanted != files[0]);
    let place = SHAPES.iter().position(|other| *other == shape);
    differs || place.is_some_and(|place| place == case % SHAPES.len())
}

impl Shape {
    fn has_change_files(self, files: ChangeFiles) -> bool {
        match self {
            Self::Plain | Self::Mapped => files[0],
            Self::Partitioned | Self::MappedAndPartitioned => files[1],
            Self::Vectors => files[2],
        }
    }

    /// Whether deltalake reads the feed of such a table: it refuses mapped columns.
    fn suits_deltalake(self) -> bool {
        matches!(self, Self::Plain | Self::Partitioned | Self::Vectors)
    }

    /// `t (id, x, p)` with the rows 1 to 6 in two inserts; the newest version is the table as found.
    async fn table(self) -> Table {
        let mapping = "OPTIONS ('delta.enableChangeDataFeed' 'true', \
                       'delta.columnMapping.mode' 'name')";
        let clauses = match self {
            Self::Plain | Self::Vectors => FEED.to_owned(),
            Self::Partitioned => format!("PARTITIONED BY (p) {FEED}"),
            Self::Mapped => mapping.to_owned(),
            Self::MappedAndPartitioned => format!("PARTITIONED BY (p) {mapping}"),
        };
        let first = match self {
            Self::Vectors => {
                "VALUES (0, 0, 'a'), (1, 10, 'a'), (2, 20, 'a'), (3, NULL, 'b'), (4, 40, NULL)"
            }
            _ => "VALUES (1, 10, 'a'), (2, 20, 'a'), (3, NULL, 'b'), (4, 40, NULL)",
        };
        let columns = "id BIGINT, x BIGINT, p VARCHAR";
        let second = "VALUES (5, 50, 'a'), (6, 60, 'b')";
        let table = Table::create(columns, &clauses, &[first, second]).await;
        if self == Self::Vectors {
            table
                .put_entry(&[json!({"protocol": {
                    "minReaderVersion": 3, "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"],
                    "writerFeatures": ["deletionVectors", "changeDataFeed"],
                }})])
                .await;
            table
                .put_entry(&hide(&add_of(&table, 1), &inline(&[0])))
                .await;
        }
        let rows = table.rows("SELECT * FROM t ORDER BY id").await;
        assert_eq!(rows, BASE, "{self:?}");
        table
    }
}

const BASE: [&str; 6] = [
    "1|10|a",
    "2|20|a",
    "3|NULL|b",
    "4|40|NULL",
    "5|50|a",
    "6|60|b",
];

/// The changes in `table` since `version`, as every reader sees them, in order.
async fn changes_since(table: &Table, shape: Shape, version: u64) -> Vec<Change> {
    let changes = ours(table, version + 1);
    if shape.suits_deltalake() && !replaces_hidden_rows(table, version + 1) {
        assert_eq!(changes, theirs(table, version + 1).await, "deltalake");
    }
    check_files(table);
    changes
}

/// Whether a version since `from` replaces all rows and with them a file with a deletion vector. Such
/// a statement reads no old row, and of the file deltalake shows the hidden rows instead.
fn replaces_hidden_rows(table: &Table, from: u64) -> bool {
    (from..=table.log().0).any(|version| {
        let operation = table.commit_info(version)["operation"].clone();
        let hides = |action: &Value| !action["remove"]["deletionVector"].is_null();
        (operation == "WRITE" || operation == "TRUNCATE")
            && table.log_entry(version).iter().any(hides)
    })
}

/// What is in `_change_data` is what the log names, with the right sizes.
fn check_files(table: &Table) {
    let mut named = Vec::new();
    for version in 0..=table.log().0 {
        let files = change_files(table, version);
        for file in &files {
            assert_eq!(file["dataChange"], json!(false));
            let path = reader::decoded(file["path"].as_str().expect("path"));
            let size = std::fs::metadata(format!("{}/{path}", table.path())).expect("file");
            assert_eq!(file["size"], json!(size.len()), "{path}");
            assert!(path.starts_with("_change_data/"), "{path}");
            named.push(path);
        }
        let metrics = &table_metrics(table, version)["numAddedChangeFiles"];
        assert!(
            metrics.is_null() || *metrics == json!(files.len().to_string()),
            "{metrics}"
        );
    }
    named.sort();
    let mut found: Vec<String> = table
        .data_files_on_disk()
        .into_iter()
        .filter(|path| path.starts_with("_change_data/"))
        .collect();
    found.sort();
    assert_eq!(found, named);
}

fn table_metrics(table: &Table, version: u64) -> Value {
    table
        .log_entry(version)
        .into_iter()
        .find_map(|action| action["commitInfo"].get("operationMetrics").cloned())
        .unwrap_or_default()
}

/// The `cdc` actions of a version.
fn change_files(table: &Table, version: u64) -> Vec<Value> {
    table
        .log_entry(version)
        .into_iter()
        .filter_map(|action| action.get("cdc").cloned())
        .collect()
}

/// Changes of one version, in order.
fn expected(version: u64, changes: &[(&str, &str)]) -> Vec<Change> {
    let mut changes: Vec<Change> = changes
        .iter()
        .map(|(kind, row)| (version, (*kind).to_owned(), (*row).to_owned()))
        .collect();
    changes.sort();
    changes
}
