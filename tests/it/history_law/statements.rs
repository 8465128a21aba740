//! The statements of a history: as SQL text, and as what they do to a whole table in memory.
//!
//! A new kind of statement is one more variant of [`Statement`] with its text, its effect and a line
//! in `random.rs`.

use super::condition::{COLUMNS, Condition, Expr, Row, Rows, literal};
use super::merge::Merge;

/// One SQL statement.
#[derive(Debug, Clone)]
pub enum Statement {
    Insert(Source),
    Overwrite(Source),
    /// deltalake's overwrite of the rows of a condition, which the new rows fulfil.
    Replace(Condition, Source),
    Update(Vec<(usize, Expr)>, Option<Condition>),
    Delete(Option<Condition>),
    Truncate,
    Merge(Box<Merge>),
}

/// Where new rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    Values(Vec<Row>),
    /// One row of values that need no row: literals and numbers taken from the table.
    One([Expr; 3]),
    /// The table itself.
    Table([Expr; 3], Condition),
}

/// What one writer does between its read version and its one commit.
#[derive(Debug, Clone)]
pub enum Work {
    Statement(Statement),
    /// deltalake's compaction of the whole table.
    Optimize,
}

impl Work {
    /// Whether it only adds rows and reads none, as can be seen from its text.
    pub fn is_blind_append(&self) -> bool {
        matches!(self, Self::Statement(Statement::Insert(Source::Values(_))))
    }

    /// What it makes of a table, and how many rows it says that it changed; nothing where it is an
    /// error, as a MERGE is that would change a row twice.
    pub fn alone(&self, table: &Rows) -> Option<(Rows, u64)> {
        match self {
            Self::Statement(statement) => statement.alone(table),
            Self::Optimize => Some((table.clone(), 0)),
        }
    }

    /// For messages.
    pub fn text(&self) -> String {
        match self {
            Self::Statement(statement) => statement.text(),
            Self::Optimize => "OPTIMIZE by deltalake".to_owned(),
        }
    }
}

impl Statement {
    pub fn text(&self) -> String {
        match self {
            Self::Insert(source) => format!("INSERT INTO t {}", source.text()),
            Self::Overwrite(source) => format!("INSERT OVERWRITE t {}", source.text()),
            Self::Replace(condition, source) => {
                format!("overwrite where {}: {}", condition.text("t"), source.text())
            }
            Self::Update(set, condition) => {
                let set: Vec<String> = set
                    .iter()
                    .map(|(column, value)| format!("{} = {}", COLUMNS[*column], value.text("t")))
                    .collect();
                format!("UPDATE t SET {}{}", set.join(", "), where_text(condition))
            }
            Self::Delete(condition) => format!("DELETE FROM t{}", where_text(condition)),
            Self::Truncate => "TRUNCATE TABLE t".to_owned(),
            Self::Merge(merge) => merge.text(),
        }
    }

    /// As [`Work::alone`].
    pub fn alone(&self, table: &Rows) -> Option<(Rows, u64)> {
        Some(match self {
            Self::Insert(source) => {
                let new = source.rows(table);
                let count = new.len() as u64;
                (table.iter().copied().chain(new).collect(), count)
            }
            Self::Overwrite(source) => {
                let new = source.rows(table);
                let count = new.len() as u64;
                (new, count)
            }
            Self::Replace(condition, source) => {
                let new = source.rows(table);
                let count = new.len() as u64;
                let condition = Some(condition.clone());
                let left = table.iter().filter(|row| !is_hit(&condition, row, table));
                (left.copied().chain(new).collect(), count)
            }
            Self::Update(set, condition) => {
                let mut count = 0;
                let new = table.iter().map(|row| {
                    let mut new = *row;
                    if is_hit(condition, row, table) {
                        count += 1;
                        for (column, value) in set {
                            new[*column] = value.value(row, table);
                        }
                    }
                    new
                });
                let new = new.collect();
                (new, count)
            }
            Self::Delete(condition) => {
                let left: Rows = table
                    .iter()
                    .copied()
                    .filter(|row| !is_hit(condition, row, table))
                    .collect();
                let count = (table.len() - left.len()) as u64;
                (left, count)
            }
            Self::Truncate => (Rows::new(), table.len() as u64),
            Self::Merge(merge) => return merge.alone(table),
        })
    }
}

impl Source {
    pub fn text(&self) -> String {
        match self {
            Self::Values(rows) => {
                let rows: Vec<String> = rows
                    .iter()
                    .map(|row| format!("({})", row.map(literal).join(", ")))
                    .collect();
                format!("VALUES {}", rows.join(", "))
            }
            Self::One(values) => format!("SELECT {}", select(values)),
            Self::Table(values, condition) => {
                format!(
                    "SELECT {} FROM t WHERE {}",
                    select(values),
                    condition.text("t")
                )
            }
        }
    }

    pub fn rows(&self, table: &Rows) -> Rows {
        let row = |values: &[Expr; 3], row: &Row| {
            [0, 1, 2].map(|column: usize| values[column].value(row, table))
        };
        match self {
            Self::Values(rows) => rows.clone(),
            Self::One(values) => vec![row(values, &[None; 3])],
            Self::Table(values, condition) => table
                .iter()
                .filter(|row| condition.holds(row, table) == Some(true))
                .map(|of| row(values, of))
                .collect(),
        }
    }
}

/// Values under the names of the columns: two of one text would not be told apart.
fn select(values: &[Expr; 3]) -> String {
    let named: Vec<String> = values
        .iter()
        .zip(COLUMNS)
        .map(|(value, name)| format!("{} AS {name}", value.text("t")))
        .collect();
    named.join(", ")
}

fn where_text(condition: &Option<Condition>) -> String {
    condition.as_ref().map_or(String::new(), |condition| {
        format!(" WHERE {}", condition.text("t"))
    })
}

fn is_hit(condition: &Option<Condition>, row: &Row, table: &Rows) -> bool {
    condition
        .as_ref()
        .is_none_or(|condition| condition.holds(row, table) == Some(true))
}
