//! What the expressions of a MERGE refer to.

use std::collections::BTreeSet;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::{MergeIntoAction, MergeIntoClauseKind, MergeIntoOp};

use crate::error::{Error, Result};

/// The columns of both sides, with the qualifiers that the statement knows them by.
#[derive(Debug)]
pub(super) struct Relations {
    /// The table that is changed.
    pub(super) target: DFSchema,
    /// What stands behind USING.
    pub(super) source: DFSchema,
}

impl Relations {
    /// Whether `expr` uses columns of the table alone (or none), no subquery, and gives the same
    /// value each time.
    pub(super) fn is_of_target(&self, expr: &Expr) -> bool {
        is_plain(expr)
            && columns(expr)
                .iter()
                .all(|column| self.target.has_column(column))
    }

    /// Which of the source's columns `expr` uses.
    pub(super) fn source_columns(&self, expr: &Expr) -> BTreeSet<usize> {
        columns(expr)
            .iter()
            .filter(|column| self.source.has_column(column))
            .filter_map(|column| self.source.maybe_index_of_column(column))
            .collect()
    }

    /// The table's columns that `expr` uses.
    pub(super) fn target_columns(&self, expr: &Expr) -> BTreeSet<String> {
        columns(expr)
            .into_iter()
            .filter(|column| self.target.has_column(column))
            .map(|column| column.name)
            .collect()
    }
}

/// Refuses what no row could give a value to, and subqueries that would never be carried out.
pub(super) fn check_references(op: &MergeIntoOp, relations: &Relations) -> Result<()> {
    for clause in &op.clauses {
        let (absent, other, when) = match clause.kind.canonical() {
            MergeIntoClauseKind::NotMatchedByTarget => {
                (&relations.target, "table", "WHEN NOT MATCHED")
            }
            MergeIntoClauseKind::NotMatchedBySource => {
                (&relations.source, "source", "WHEN NOT MATCHED BY SOURCE")
            }
            _ => (&DFSchema::empty(), "", "WHEN MATCHED"),
        };
        let values: Vec<&Expr> = match &clause.action {
            MergeIntoAction::Update(assignments) => {
                assignments.iter().map(|(_, value)| value).collect()
            }
            MergeIntoAction::Insert { values, .. } => values.iter().collect(),
            MergeIntoAction::Delete => vec![],
        };
        for expr in clause.predicate.iter().chain(values) {
            if let Some(column) = columns(expr)
                .iter()
                .find(|column| absent.has_column(column))
            {
                return Err(Error::invalid(format!(
                    "MERGE: {when} uses {column}, but there is no row of the {other} then"
                )));
            }
            if has(expr, |node| {
                matches!(
                    node,
                    Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
                )
            }) {
                return Err(Error::unsupported(format!(
                    "MERGE: a subquery with IN, EXISTS, ANY or ALL in {when} is not supported; \
                     join it with the source in USING"
                )));
            }
        }
    }
    Ok(())
}

/// Whether DataFusion carries out this conjunct of ON only where it stands in a filter: it holds a
/// subquery that becomes a join.
pub(super) fn needs_filter(expr: &Expr) -> bool {
    has(expr, |node| match node {
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => true,
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    })
}

/// Whether `expr` has no subquery and gives the same value each time.
fn is_plain(expr: &Expr) -> bool {
    !expr.is_volatile()
        && !has(expr, |node| {
            matches!(
                node,
                Expr::InSubquery(_)
                    | Expr::Exists(_)
                    | Expr::SetComparison(_)
                    | Expr::ScalarSubquery(_)
                    | Expr::OuterReferenceColumn(..)
            )
        })
}

/// All columns of the join that `expr` uses, also those that its subqueries refer to.
fn columns(expr: &Expr) -> BTreeSet<Column> {
    let mut found = BTreeSet::new();
    let outer = |refs: &[Expr], found: &mut BTreeSet<Column>| {
        for reference in refs {
            if let Expr::OuterReferenceColumn(_, column) = reference {
                found.insert(column.clone());
            }
        }
    };
    // The walk fails only where its closure does.
    let _ = expr.apply(|node| {
        match node {
            Expr::Column(column) => {
                found.insert(column.clone());
            }
            Expr::ScalarSubquery(subquery) => outer(&subquery.outer_ref_columns, &mut found),
            Expr::Exists(exists) => outer(&exists.subquery.outer_ref_columns, &mut found),
            Expr::InSubquery(test) => outer(&test.subquery.outer_ref_columns, &mut found),
            Expr::SetComparison(test) => outer(&test.subquery.outer_ref_columns, &mut found),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn has(expr: &Expr, test: impl Fn(&Expr) -> bool) -> bool {
    expr.exists(|node| Ok(test(node))).unwrap_or(true)
}
