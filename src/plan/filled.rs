//! Columns whose values a statement leaves to the table: those that an INSERT does not name, and
//! generated columns that others do not set.
//!
//! The statement's plan yields NULL for them, and this says where that NULL is none, should the column
//! be generated or have a default in the version that the statement is pinned to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::dml::{MergeIntoAction, MergeIntoClause};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::scalar::ScalarValue;

use super::merge::numbered;
use super::target::planned;
use crate::error::{Error, Result};
use crate::read::column_expressions::{ColumnExpressions, is_made_by_table};
use crate::read::provider::DisjointTableProvider;
use crate::read::snapshot::TableMetadata;

/// The columns, by index, that a statement leaves to the table.
#[derive(Debug, Clone, Default)]
pub(super) struct FilledColumns {
    /// The expressions that the columns were found by; none for a statement that brings no rows, and
    /// for an INSERT, whose text alone says what it leaves out.
    planned_with: Option<Arc<ColumnExpressions>>,
    columns: BTreeMap<usize, FilledRows>,
}

/// Which rows of a statement leave a column to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FilledRows {
    /// All of them.
    All,
    /// Those of these clauses of a MERGE.
    Clauses(BTreeSet<i32>),
}

impl FilledColumns {
    /// Those of an INSERT, and its input with NULL in their place.
    pub(super) fn of_insert(input: LogicalPlan) -> Result<(LogicalPlan, Self)> {
        let mut filled = Self::default();
        let LogicalPlan::Projection(projection) = input else {
            refuse_markers(&input)?;
            return Ok((input, filled));
        };
        let schema = Arc::clone(&projection.schema);
        let values = projection
            .expr
            .into_iter()
            .zip(schema.fields())
            .enumerate()
            .map(|(index, (expr, field))| {
                if !is_made_by_table(bare(&expr)) {
                    return Ok(expr);
                }
                let null = planned(ScalarValue::try_from(field.data_type()))?;
                filled.columns.insert(index, FilledRows::All);
                Ok(Expr::Literal(null, None).alias(field.name()))
            })
            .collect::<Result<Vec<_>>>()?;
        let input =
            planned(Projection::try_new(values, projection.input).map(LogicalPlan::Projection))?;
        refuse_markers(&input)?;
        Ok((input, filled))
    }

    /// Those of an UPDATE: the generated columns that it does not set. `input` is a projection of all
    /// columns of the table, or has no rows.
    pub(super) fn of_update(input: &LogicalPlan, table: &DisjointTableProvider) -> Self {
        let mut filled = Self::planned_for(table);
        let LogicalPlan::Projection(projection) = input else {
            return filled;
        };
        let expressions = table.handle().shown_expressions();
        for (index, (expr, field)) in projection
            .expr
            .iter()
            .zip(table.table_schema().fields())
            .enumerate()
        {
            let stays = matches!(bare(expr), Expr::Column(column) if column.name() == field.name());
            if stays && expressions.generation_of(field.name()).is_some() {
                filled.columns.insert(index, FilledRows::All);
            }
        }
        filled
    }

    /// Those of a MERGE, by clause.
    pub(super) fn of_merge(
        clauses: &[MergeIntoClause],
        table: &DisjointTableProvider,
    ) -> Result<Self> {
        let mut filled = Self::planned_for(table);
        let expressions = table.handle().shown_expressions();
        for (index, field) in table.table_schema().fields().iter().enumerate() {
            let name = field.name();
            let mut left_out = BTreeSet::new();
            for (number, clause) in numbered(clauses)? {
                let filled = match &clause.action {
                    MergeIntoAction::Update(assignments) => {
                        expressions.generation_of(name).is_some()
                            && !assignments.iter().any(|(column, _)| column == name)
                    }
                    MergeIntoAction::Insert { columns, .. } => {
                        expressions.fills(name) && !columns.is_empty() && !columns.contains(name)
                    }
                    MergeIntoAction::Delete => false,
                };
                if filled {
                    left_out.insert(number);
                }
            }
            if !left_out.is_empty() {
                filled.columns.insert(index, FilledRows::Clauses(left_out));
            }
        }
        Ok(filled)
    }

    /// Whether the clause of this number leaves the column to the table.
    pub(super) fn is_filled(&self, column: usize, clause: i32) -> bool {
        match self.columns.get(&column) {
            Some(FilledRows::All) => true,
            Some(FilledRows::Clauses(clauses)) => clauses.contains(&clause),
            None => false,
        }
    }

    /// Whether the statement gives every column its value.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The columns and their rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &FilledRows)> {
        self.columns.iter().map(|(column, rows)| (*column, rows))
    }

    /// Whether the table of `metadata` still fills the same columns in the same way.
    pub(super) fn fits(&self, metadata: &TableMetadata) -> bool {
        self.planned_with
            .as_ref()
            .is_none_or(|planned| **planned == ColumnExpressions::of(metadata))
    }

    fn planned_for(table: &DisjointTableProvider) -> Self {
        Self {
            planned_with: Some(table.handle().shown_expressions()),
            columns: BTreeMap::new(),
        }
    }
}

/// What is inside of the names and casts around `expr`.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        Expr::Cast(cast) => bare(&cast.expr),
        other => other,
    }
}

/// A marker elsewhere than in the statement's own columns has a place that is not understood.
fn refuse_markers(plan: &LogicalPlan) -> Result<()> {
    let mut found = false;
    planned(plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|inner| Ok(is_made_by_table(inner)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    }))?;
    if found {
        return Err(Error::unsupported(
            "INSERT: the statement leaves out a column in a way that is not supported; name the column \
             and give it its value, or run the statement directly if it is a prepared one",
        ));
    }
    Ok(())
}
