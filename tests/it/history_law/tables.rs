//! The tables that histories start from: made once, copied for each.

use std::collections::BTreeMap;
use std::fs::File;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use tempfile::TempDir;

use super::condition::{COLUMNS, Row, Rows, Value, literal};
use super::judge::Level;
use super::random::{CLUSTER, Random};
use crate::support::{Table, change_log_entry};

/// How a table is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    partitioned: bool,
    /// Columns with statistics: none, the first, or all.
    indexed: i8,
    data: usize,
}

const INDEXED: [i8; 3] = [0, 1, -1];

/// Number of different contents.
const DATA: usize = 4;

impl Shape {
    pub fn random(random: &mut Random) -> Self {
        Self {
            partitioned: random.once_in(3),
            // Tables with statistics are where files are skipped.
            indexed: random.pick(&[0, 1, -1, -1, -1]),
            data: random.pick(&[0, 0, 0, 0, 1, 1, 2, 3]),
        }
    }

    /// The rows of each file, or of each INSERT where the table is partitioned.
    fn files(self) -> Vec<Vec<Row>> {
        let mut random = Random::new(self.data as u64);
        let cluster = |of: usize| of as i64 * CLUSTER;
        match self.data {
            // A cluster a file.
            0 => (0..4)
                .map(|file| (0..4).map(|_| random.row(cluster(file))).collect())
                .collect(),
            // Files of one row, and one without numbers.
            1 => (0..5)
                .map(|file| match file {
                    4 => vec![[None, None, Some(1)]],
                    _ => vec![random.row(cluster(file))],
                })
                .collect(),
            // Two files over everything.
            2 => (0..2)
                .map(|_| (0..4).map(|file| random.row(cluster(file))).collect())
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// One table of each shape.
pub struct Tables {
    templates: BTreeMap<Shape, Table>,
}

impl Tables {
    pub async fn create() -> Self {
        let mut templates = BTreeMap::new();
        for partitioned in [false, true] {
            for indexed in INDEXED {
                for data in 0..DATA {
                    let shape = Shape {
                        partitioned,
                        indexed,
                        data,
                    };
                    templates.insert(shape, create(shape).await);
                }
            }
        }
        Self { templates }
    }

    /// A table of this shape that nobody else has.
    pub async fn fresh(&self, shape: Shape, level: Level) -> Table {
        Table::open(self.copy(shape, level)).await.expect("opens")
    }

    /// The same without a session that knows it.
    pub fn bare(&self, shape: Shape, level: Level) -> Table {
        let ctx = self.templates[&shape].ctx.clone();
        Table::bare(ctx, self.copy(shape, level))
    }

    fn copy(&self, shape: Shape, level: Level) -> TempDir {
        let copy = self.templates[&shape].copy_folder();
        change_log_entry(copy.path(), 0, |action| {
            if let Some(configuration) = action.pointer_mut("/metaData/configuration") {
                configuration["delta.isolationLevel"] = level.name().into();
            }
        });
        copy
    }

    pub fn rows(&self, shape: Shape) -> Rows {
        shape.files().concat()
    }
}

async fn create(shape: Shape) -> Table {
    let inserts: Vec<String> = shape
        .files()
        .iter()
        .map(|rows| {
            let rows: Vec<String> = rows
                .iter()
                .map(|row| format!("({})", row.map(literal).join(", ")))
                .collect();
            format!("VALUES {}", rows.join(", "))
        })
        .collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    let partitioned = if shape.partitioned {
        "PARTITIONED BY (p)"
    } else {
        ""
    };
    let clauses = format!(
        "{partitioned} OPTIONS ('delta.dataSkippingNumIndexedCols' '{}')",
        shape.indexed
    );
    Table::create("a BIGINT, b BIGINT, p BIGINT", &clauses, &inserts).await
}

/// All rows of the table, from its newest version's files: what another reader sees.
pub fn read(table: &Table) -> Rows {
    let mut live: BTreeMap<String, Value> = BTreeMap::new();
    for version in 0..=table.log().0 {
        for action in table.log_entry(version) {
            if let Some(path) = action["remove"]["path"].as_str() {
                live.remove(path);
            }
            if let Some(path) = action["add"]["path"].as_str() {
                assert!(action["add"]["deletionVector"].is_null(), "not read here");
                let p = action["add"]["partitionValues"]["p"].as_str();
                live.insert(path.to_owned(), p.map(|p| p.parse().expect("a number")));
            }
        }
    }
    let mut rows = Rows::new();
    for (path, p) in live {
        let file = File::open(format!("{}/{path}", table.path())).expect("data file");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("footer");
        for batch in reader.build().expect("reader") {
            let batch = batch.expect("batch");
            let column = |name: &str| Some(batch.column_by_name(name)?.as_primitive::<Int64Type>());
            let columns = COLUMNS.map(column);
            rows.extend((0..batch.num_rows()).map(|row| {
                columns.map(|column| match column {
                    Some(column) => column.is_valid(row).then(|| column.value(row)),
                    None => p,
                })
            }));
        }
    }
    rows
}
