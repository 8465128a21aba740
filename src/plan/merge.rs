//! MERGE as one plan: the source joined with the table, and for each pair what happens to it.
//!
//! ```text
//!  DeltaDml(Merge)
//!    Projection   new values, file, row, action      CASE over the clause
//!      Projection   the clause                       CASE over matched / not matched, first one wins
//!        Join         by the clauses that there are
//!          source       and a marker
//!          table        and file and row
//! ```
//!
//! Which join it is depends on whose rows count without a partner: the source's for NOT MATCHED, the
//! table's for NOT MATCHED BY SOURCE. Conditions and values are looked at only for the rows that
//! their clause is for, since CASE is lazy: a division by zero in one clause does no harm to another.

mod clauses;
mod expressions;
mod reads;

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::{
    MergeIntoAction, MergeIntoClause, MergeIntoClauseKind, MergeIntoOp,
};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableScanBuilder, lit,
};

use self::clauses::{clause_numbers, new_values};
use self::expressions::{Relations, check_references, needs_filter};
use super::node::{DeltaDml, DmlKind, MergeShape};
use super::target::planned;
use crate::error::{Error, Result};
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN};
use crate::read::provider::DisjointTableProvider;
use crate::write::merge::ACTION_COLUMN;

/// Column of the source's side of the join that is NULL where there is no source row.
const SOURCE_COLUMN: &str = "__delta_disjoint_source";

/// Column with the number of the clause that applies.
const CLAUSE_COLUMN: &str = "__delta_disjoint_clause";

/// The node of a MERGE into the table of `provider`.
pub(super) fn merge(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    provider: DisjointTableProvider,
) -> Result<DeltaDml> {
    let relations = relations(dml, &provider)?;
    check_references(op, &relations)?;
    let join_type = join_type(&op.clauses);
    let target = target_plan(dml, op, &provider, join_type, &relations)?;
    let joined = join(dml, op, target, join_type)?;
    let numbered = clause_numbers(joined, &op.clauses, join_type)?;
    let schema = provider.table_schema();
    let input = new_values(numbered, dml, &op.clauses, &schema, join_type)?;
    let shape = MergeShape {
        changes_rows: !op.clauses.iter().all(is_not_matched),
        repeats: is_lone_delete(&op.clauses),
    };
    let mut keys: Vec<usize> = relations
        .target_columns(&op.on)
        .iter()
        .filter_map(|name| schema.index_of(name).ok())
        .collect();
    keys.sort_unstable();
    Ok(DeltaDml::new(
        DmlKind::Merge(shape),
        dml.table_name.to_string(),
        provider,
        input,
    )
    .with_parameters(parameters(op))
    .with_key_columns(keys))
}

fn relations(dml: &DmlStatement, provider: &DisjointTableProvider) -> Result<Relations> {
    let source = dml.input.schema();
    if let Some(qualifier) = source
        .iter()
        .filter_map(|(qualifier, _)| qualifier)
        .find(|qualifier| qualifier.resolved_eq(&dml.table_name))
    {
        return Err(Error::invalid(format!(
            "MERGE: the source {qualifier} goes by the same name as the table {}; give the source \
             an alias",
            dml.table_name
        )));
    }
    for name in [
        FILE_COLUMN,
        ROW_COLUMN,
        ACTION_COLUMN,
        SOURCE_COLUMN,
        CLAUSE_COLUMN,
    ] {
        if source.has_column_with_unqualified_name(name)
            || provider.table_schema().index_of(name).is_ok()
        {
            return Err(Error::unsupported(format!(
                "the column name {name} is taken by this crate; rename the column"
            )));
        }
    }
    Ok(Relations {
        target: planned(DFSchema::try_from_qualified_schema(
            dml.table_name.clone(),
            &provider.table_schema(),
        ))?,
        source: source.as_ref().clone(),
    })
}

/// The join with the source on its left, where hash joins build.
fn join_type(clauses: &[MergeIntoClause]) -> JoinType {
    let has =
        |kind: MergeIntoClauseKind| clauses.iter().any(|clause| clause.kind.canonical() == kind);
    match (
        has(MergeIntoClauseKind::Matched),
        has(MergeIntoClauseKind::NotMatchedByTarget),
        has(MergeIntoClauseKind::NotMatchedBySource),
    ) {
        (_, true, true) => JoinType::Full,
        (_, false, true) => JoinType::Right,
        (true, true, false) => JoinType::Left,
        (false, true, false) => JoinType::LeftAnti,
        (_, false, false) => JoinType::Inner,
    }
}

/// The scan of the table, with positions, reduced to the rows that can matter.
fn target_plan(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    provider: &DisjointTableProvider,
    join_type: JoinType,
    relations: &Relations,
) -> Result<LogicalPlan> {
    let source = provider_as_source(Arc::new(provider.with_positions()?));
    let scan = planned(
        TableScanBuilder::new(dml.table_name.clone(), source)
            .build()
            .map(LogicalPlan::TableScan),
    )?;
    match reads::rows_that_matter(op, join_type, relations) {
        Some(filter) => planned(
            LogicalPlanBuilder::from(scan)
                .filter(filter)
                .and_then(LogicalPlanBuilder::build),
        ),
        None => Ok(scan),
    }
}

fn join(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    target: LogicalPlan,
    join_type: JoinType,
) -> Result<LogicalPlan> {
    let mut columns: Vec<Expr> = dml
        .input
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    columns.push(lit(true).alias(SOURCE_COLUMN));
    let (above, on): (Vec<Expr>, Vec<Expr>) = split_conjunction(&op.on)
        .into_iter()
        .cloned()
        .partition(needs_filter);
    if !above.is_empty() && join_type != JoinType::Inner {
        return Err(Error::unsupported(
            "MERGE: a subquery with IN, EXISTS or a reference to the outer rows in ON is supported \
             only where all clauses are WHEN MATCHED; join the subquery with the source in USING",
        ));
    }
    let on = conjunction(on).unwrap_or_else(|| lit(true));
    let joined = LogicalPlanBuilder::from(dml.input.as_ref().clone())
        .project(columns)
        .and_then(|source| source.join_on(target, join_type, [on]));
    let joined = match conjunction(above) {
        Some(filter) => joined.and_then(|joined| joined.filter(filter)),
        None => joined,
    };
    planned(joined.and_then(LogicalPlanBuilder::build))
}

fn is_not_matched(clause: &MergeIntoClause) -> bool {
    clause.kind.is_not_matched_by_target()
}

/// Whether a row of the table may have several partners: it goes once, whatever the order.
fn is_lone_delete(clauses: &[MergeIntoClause]) -> bool {
    let mut matched = clauses
        .iter()
        .filter(|clause| clause.kind == MergeIntoClauseKind::Matched);
    matches!(
        (matched.next(), matched.next()),
        (
            Some(MergeIntoClause {
                predicate: None,
                action: MergeIntoAction::Delete,
                ..
            }),
            None
        )
    )
}

/// A column of the join's input by its name alone.
fn marker(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// ON and the clauses as text, for people who read the history. Nothing parses it again.
fn parameters(op: &MergeIntoOp) -> Vec<(String, String)> {
    let of_kind = |kind: MergeIntoClauseKind| {
        let clauses: Vec<serde_json::Value> = op
            .clauses
            .iter()
            .filter(|clause| clause.kind.canonical() == kind)
            .map(|clause| {
                let action = match &clause.action {
                    MergeIntoAction::Update(_) => "update",
                    MergeIntoAction::Insert { .. } => "insert",
                    MergeIntoAction::Delete => "delete",
                };
                match &clause.predicate {
                    Some(predicate) => serde_json::json!({
                        "predicate": expressions::text_of(predicate),
                        "actionType": action,
                    }),
                    None => serde_json::json!({ "actionType": action }),
                }
            })
            .collect();
        serde_json::Value::from(clauses).to_string()
    };
    let predicate = serde_json::Value::from(vec![expressions::text_of(&op.on)]).to_string();
    vec![
        ("predicate".to_owned(), predicate),
        (
            "matchedPredicates".to_owned(),
            of_kind(MergeIntoClauseKind::Matched),
        ),
        (
            "notMatchedPredicates".to_owned(),
            of_kind(MergeIntoClauseKind::NotMatchedByTarget),
        ),
        (
            "notMatchedBySourcePredicates".to_owned(),
            of_kind(MergeIntoClauseKind::NotMatchedBySource),
        ),
    ]
}
