//! Random operations through deltalake's builders, and what each does to a table in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::prelude::SessionContext;
use deltalake::kernel::transaction::CommitProperties;
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableError};

use super::ended;
use crate::history_law::condition::{Aggregate, COLUMNS, Condition, Expr, Function, Op, Rows};
use crate::history_law::merge::{Action, Clause, Merge, Side};
use crate::history_law::random::{CLUSTER, Random};
use crate::history_law::statements::{Source, Statement, Work};

/// One operation, and what is said of it.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) work: Work,
    /// Whether its commit calls itself a blind append, if it is one.
    says_blind: bool,
}

/// How an operation ended.
#[derive(Debug)]
pub(super) enum Run {
    Done,
    Failed(String),
}

impl Writer {
    pub(super) fn random(random: &mut Random) -> Self {
        let work = match random.below(22) {
            0..=3 => Work::Optimize,
            20..=21 => Work::Statement(replace(random)),
            4..=6 => Work::Statement(Statement::Insert(values(random))),
            7 => Work::Statement(Statement::Insert(next_row(random))),
            8 => Work::Statement(Statement::Overwrite(values(random))),
            9..=12 => Work::Statement(Statement::Update(set(random), some_condition(random))),
            13..=16 => Work::Statement(Statement::Delete(some_condition(random))),
            _ => Work::Statement(Statement::Merge(Box::new(merge(random)))),
        };
        Self {
            work,
            says_blind: random.once_in(2),
        }
    }

    /// Whether the caller says that its rows come from elsewhere, which they do.
    pub(super) fn is_declared(&self) -> bool {
        match &self.work {
            Work::Statement(
                Statement::Insert(source)
                | Statement::Overwrite(source)
                | Statement::Replace(_, source),
            ) => matches!(source, Source::Values(_)),
            Work::Statement(Statement::Merge(_)) => true,
            _ => false,
        }
    }

    pub(super) fn text(&self) -> String {
        self.work.text()
    }

    /// Runs it on `table`, whose rows are `rows`.
    pub(super) async fn run(&self, table: DeltaTable, rows: &Rows) -> Run {
        let Work::Statement(statement) = &self.work else {
            return ended(table.optimize().await);
        };
        match statement {
            Statement::Insert(source) => {
                let blind = self.says_blind && self.work.is_blind_append();
                let says = blind.then(|| ("isBlindAppend".to_owned(), true.into()));
                let properties = CommitProperties::default().with_metadata(says);
                let write = table.write(vec![batch(&source.rows(rows))]);
                let write = write.with_save_mode(SaveMode::Append);
                ended(write.with_commit_properties(properties).await)
            }
            Statement::Overwrite(source) => {
                let write = table.write(vec![batch(&source.rows(rows))]);
                ended(write.with_save_mode(SaveMode::Overwrite).await)
            }
            Statement::Replace(condition, source) => {
                let write = table.write(vec![batch(&source.rows(rows))]);
                let write = write.with_save_mode(SaveMode::Overwrite);
                ended(write.with_replace_where(bare(&condition.text("t"))).await)
            }
            Statement::Update(set, condition) => {
                let mut update = table.update();
                if let Some(condition) = condition {
                    update = update.with_predicate(bare(&condition.text("t")));
                }
                for (column, value) in set {
                    update = update.with_update(COLUMNS[*column], bare(&value.text("t")));
                }
                ended(update.await)
            }
            Statement::Delete(condition) => {
                let mut delete = table.delete();
                if let Some(condition) = condition {
                    delete = delete.with_predicate(bare(&condition.text("t")));
                }
                ended(delete.await)
            }
            Statement::Merge(merge) => ended(run_merge(table, merge, rows).await),
            Statement::Truncate => ended(table.delete().await),
        }
    }
}

async fn run_merge(table: DeltaTable, merge: &Merge, rows: &Rows) -> Result<(), DeltaTableError> {
    let source = SessionContext::new().read_batch(batch(&merge.source.rows(rows)))?;
    let key = COLUMNS[merge.key];
    let mut builder = table
        .merge(source, format!("t.{key} = s.{key}"))
        .with_source_alias("s")
        .with_target_alias("t");
    for clause in &merge.matched {
        builder = match &clause.action {
            Action::Delete => builder.when_matched_delete(|delete| delete)?,
            Action::Update(column, _, value) => builder
                .when_matched_update(|update| update.update(COLUMNS[*column], value.text("s")))?,
        };
    }
    if merge.not_matched.is_some() {
        builder = builder.when_not_matched_insert(|insert| {
            COLUMNS.iter().fold(insert, |insert, name| {
                insert.set(*name, format!("s.{name}"))
            })
        })?;
    }
    builder.await.map(|_| ())
}

/// Text without the table's alias, which deltalake's builders do not know.
fn bare(text: &str) -> String {
    text.replace("t.", "")
}

fn batch(rows: &Rows) -> RecordBatch {
    let columns = [0, 1, 2].map(|column: usize| {
        let values: Int64Array = rows.iter().map(|row| row[column]).collect();
        (COLUMNS[column], Arc::new(values) as ArrayRef, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).expect("batch")
}

fn cluster(random: &mut Random) -> i64 {
    random.below(4) as i64 * CLUSTER
}

fn values(random: &mut Random) -> Source {
    let rows = 1 + random.below(2);
    let cluster = cluster(random);
    Source::Values((0..rows).map(|_| random.row(cluster)).collect())
}

/// An overwrite of one cluster, which may be empty.
fn replace(random: &mut Random) -> Statement {
    let low = cluster(random);
    let mut row = random.row(low);
    row[0] = row[0].or(Some(low));
    let condition = Condition::Between(0, low, low + CLUSTER - 1);
    Statement::Replace(condition, Source::Values(vec![row]))
}

/// A row that is computed from the table: the next number.
fn next_row(random: &mut Random) -> Source {
    let largest = Aggregate {
        function: random.pick(&[Function::Max, Function::Count]),
        column: 0,
        condition: Box::new(leaf(random)),
    };
    let p = random.below(3) as i64;
    Source::One([
        Expr::Taken(largest, 1),
        Expr::Literal(None),
        Expr::Literal(Some(p)),
    ])
}

fn set(random: &mut Random) -> Vec<(usize, Expr)> {
    let value = match random.below(5) {
        0 | 1 => (0, Expr::Plus(0, random.pick(&[-CLUSTER, CLUSTER]))),
        2 | 3 => (1, Expr::Plus(1, 1)),
        _ => (1, Expr::Column(0)),
    };
    vec![value]
}

/// An upsert, or one that only inserts, updates or deletes.
fn merge(random: &mut Random) -> Merge {
    let update = Clause {
        condition: None,
        action: Action::Update(1, Side::Source, Expr::Column(1)),
    };
    let delete = Clause {
        condition: None,
        action: Action::Delete,
    };
    let (matched, inserts) = match random.below(4) {
        0 => (vec![update], false),
        1 => (vec![delete], false),
        2 => (vec![], true),
        _ => (vec![update], true),
    };
    Merge {
        source: values(random),
        key: 0,
        only: None,
        matched,
        not_matched: inserts.then_some(None),
        by_source: None,
    }
}

fn some_condition(random: &mut Random) -> Option<Condition> {
    if random.once_in(6) {
        return None;
    }
    let left = leaf(random);
    Some(match random.below(6) {
        0 => Condition::And(Box::new(left), Box::new(leaf(random))),
        1 => Condition::Or(Box::new(left), Box::new(leaf(random))),
        2 => Condition::Not(Box::new(left)),
        _ => left,
    })
}

fn leaf(random: &mut Random) -> Condition {
    let op = random.pick(&[
        Op::Eq,
        Op::NotEq,
        Op::Less,
        Op::LessEq,
        Op::Greater,
        Op::GreaterEq,
    ]);
    let low = cluster(random);
    match random.below(10) {
        0..=4 => Condition::Between(0, low, low + CLUSTER - 1),
        5 => Condition::Compare(0, op, low),
        6 => Condition::Compare(2, op, random.below(3) as i64),
        7 => Condition::In(0, (0..5).map(|step| Some(low + 2 * step)).collect()),
        8 => Condition::IsNull(random.below(3)),
        _ => Condition::Columns(0, op, 1),
    }
}
