//! Which clause applies to a row of the join, and what it makes of the row.

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::dml::{MergeIntoAction, MergeIntoClause, MergeIntoClauseKind};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit,
};
use datafusion::scalar::ScalarValue;

use super::{SOURCE_COLUMN, marker};
use crate::error::{Error, Result};
use crate::plan::filled::FilledColumns;
use crate::plan::target::planned;
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN, file_field, row_field};
use crate::write::merge::{ACTION_COLUMN, CLAUSE_COLUMN, RowAction};

/// `joined` with the number of the clause that applies to each row, NULL where none does.
pub(super) fn clause_numbers(
    joined: LogicalPlan,
    clauses: &[MergeIntoClause],
    join_type: JoinType,
) -> Result<LogicalPlan> {
    let of_kind = |kind: MergeIntoClauseKind| -> Result<Expr> {
        let mut branches = Vec::new();
        let mut otherwise = null(&DataType::Int32)?;
        for (number, clause) in numbered(clauses)? {
            if clause.kind.canonical() != kind {
                continue;
            }
            match &clause.predicate {
                Some(predicate) => branches.push((predicate.clone(), lit(number))),
                None => {
                    // What stands behind a clause without a condition never applies.
                    otherwise = lit(number);
                    break;
                }
            }
        }
        Ok(case(branches, otherwise))
    };
    let number = match join_type {
        JoinType::Inner => of_kind(MergeIntoClauseKind::Matched)?,
        JoinType::LeftAnti => of_kind(MergeIntoClauseKind::NotMatchedByTarget)?,
        _ => case(
            vec![
                (
                    marker(FILE_COLUMN).is_null(),
                    of_kind(MergeIntoClauseKind::NotMatchedByTarget)?,
                ),
                (
                    marker(SOURCE_COLUMN).is_null(),
                    of_kind(MergeIntoClauseKind::NotMatchedBySource)?,
                ),
            ],
            of_kind(MergeIntoClauseKind::Matched)?,
        ),
    };
    let mut columns: Vec<Expr> = joined
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    columns.push(number.alias(CLAUSE_COLUMN));
    planned(
        LogicalPlanBuilder::from(joined)
            .project(columns)
            .and_then(LogicalPlanBuilder::build),
    )
}

/// The table's columns with their new values, then file, row and action; the clause too, where there are
/// columns that the table fills.
pub(super) fn new_values(
    numbered_rows: LogicalPlan,
    dml: &DmlStatement,
    clauses: &[MergeIntoClause],
    schema: &SchemaRef,
    join_type: JoinType,
    filled: &FilledColumns,
) -> Result<LogicalPlan> {
    let mut columns = Vec::with_capacity(schema.fields().len() + 3);
    for (index, field) in schema.fields().iter().enumerate() {
        let mut branches = Vec::new();
        for (number, clause) in numbered(clauses)? {
            if filled.is_filled(index, number) {
                continue;
            }
            let value = match &clause.action {
                MergeIntoAction::Update(assignments) => assignments
                    .iter()
                    .find(|(name, _)| name == field.name())
                    .map_or_else(
                        || Expr::Column(Column::new(Some(dml.table_name.clone()), field.name())),
                        |(_, value)| value.clone(),
                    ),
                MergeIntoAction::Insert { columns, values } => {
                    inserted(columns, values, index, field.name())
                        .map_or_else(|| null(field.data_type()), Ok)?
                }
                MergeIntoAction::Delete => continue,
            };
            let value = planned(value.cast_to(field.data_type(), numbered_rows.schema()))?;
            branches.push((number, value));
        }
        columns.push(by_clause(branches, null(field.data_type())?).alias(field.name()));
    }
    for (name, field) in [(FILE_COLUMN, file_field()), (ROW_COLUMN, row_field())] {
        columns.push(match join_type {
            JoinType::LeftAnti => null(field.data_type())?.alias(name),
            _ => marker(name),
        });
    }
    let mut actions = Vec::new();
    for (number, clause) in numbered(clauses)? {
        let action = match &clause.action {
            MergeIntoAction::Update(_) => RowAction::Update,
            MergeIntoAction::Delete => RowAction::Delete,
            MergeIntoAction::Insert { .. } => RowAction::Insert,
        };
        actions.push((number, lit(action.code())));
    }
    columns.push(by_clause(actions, null(&DataType::Int8)?).alias(ACTION_COLUMN));
    if !filled.is_empty() {
        columns.push(marker(CLAUSE_COLUMN));
    }
    planned(
        LogicalPlanBuilder::from(numbered_rows)
            .project(columns)
            .and_then(LogicalPlanBuilder::build),
    )
}

/// What an INSERT clause gives to the column; nothing where it does not name it.
fn inserted(columns: &[String], values: &[Expr], index: usize, name: &str) -> Option<Expr> {
    let place = if columns.is_empty() {
        Some(index)
    } else {
        columns.iter().position(|column| column == name)
    };
    match place {
        Some(place) => values.get(place).cloned(),
        None => None,
    }
}

pub(in crate::plan) fn numbered(
    clauses: &[MergeIntoClause],
) -> Result<Vec<(i32, &MergeIntoClause)>> {
    clauses
        .iter()
        .enumerate()
        .map(|(number, clause)| {
            i32::try_from(number)
                .map(|number| (number, clause))
                .map_err(|_| Error::unsupported("MERGE with more than 2^31 clauses"))
        })
        .collect()
}

fn null(data_type: &DataType) -> Result<Expr> {
    planned(ScalarValue::try_from(data_type)).map(|value| Expr::Literal(value, None))
}

/// The value of the first branch whose condition is true.
fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    if branches.is_empty() {
        return otherwise;
    }
    Expr::Case(Case {
        expr: None,
        when_then_expr: branches
            .into_iter()
            .map(|(when, then)| (Box::new(when), Box::new(then)))
            .collect(),
        else_expr: Some(Box::new(otherwise)),
    })
}

/// The value for the clause that applies. It is the form of CASE that compares one value: the form
/// with conditions becomes AND and OR where the values are BOOLEAN, and those are not lazy.
fn by_clause(branches: Vec<(i32, Expr)>, otherwise: Expr) -> Expr {
    let branches = branches
        .into_iter()
        .map(|(number, value)| (lit(number), value))
        .collect();
    match case(branches, otherwise) {
        Expr::Case(case) => Expr::Case(Case {
            expr: Some(Box::new(marker(CLAUSE_COLUMN))),
            ..case
        }),
        constant => constant,
    }
}
