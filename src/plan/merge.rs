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
mod columns;
mod expressions;
mod keys;
mod reads;

pub(super) use self::clauses::numbered;
pub(crate) use self::columns::with_insert_columns;
pub(super) use self::keys::compares_by_value;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::{
    MergeIntoAction, MergeIntoClause, MergeIntoClauseKind, MergeIntoOp,
};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    DmlStatement, Expr, Extension, LogicalPlan, LogicalPlanBuilder, TableScanBuilder, lit,
};

use self::clauses::{clause_numbers, new_values};
use self::columns::check_columns;
use self::expressions::{Relations, check_references, needs_filter};
use self::keys::{KeyPair, key_pairs};
use super::filled::FilledColumns;
use super::key_source::KeySource;
use super::node::{DeltaDml, DmlKind, MergeShape};
use super::target::planned;
use super::unknown_in;
use crate::error::{Error, Result};
use crate::read::keys::KeyedRead;
use crate::read::predicate::text_of;
use crate::read::provider::DisjointTableProvider;

/// What the names of columns start with that are added to the two sides.
const RESERVED: &str = "__delta_disjoint_";

/// What the names of computed keys of the source start with.
const KEY_COLUMN: &str = "__delta_disjoint_key_";

/// Column of the source's side of the join that is NULL where there is no source row.
const SOURCE_COLUMN: &str = "__delta_disjoint_source";

/// The node of a MERGE into the table of `provider`.
pub(super) fn merge(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    provider: DisjointTableProvider,
) -> Result<DeltaDml> {
    check_columns(op, &provider)?;
    unknown_in::check(&dml.input, "MERGE")?;
    let relations = relations(dml, &provider)?;
    check_references(op, &relations)?;
    let merge_join = MergeJoin::of(op, &relations);
    let target = target_plan(dml, op, &provider, &merge_join, &relations)?;
    let joined = join(dml, op, target, &merge_join, &relations)?;
    let numbered = clause_numbers(joined, &op.clauses, merge_join.join_type)?;
    let schema = provider.table_schema();
    let filled = FilledColumns::of_merge(&op.clauses, &provider)?;
    let input = new_values(
        numbered,
        dml,
        &op.clauses,
        &schema,
        merge_join.join_type,
        &filled,
    )?;
    let shape = MergeShape {
        changes_rows: !op.clauses.iter().all(is_not_matched),
        brings_rows: !op.clauses.iter().all(is_delete),
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
    .with_filled(filled)
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
    let schema = provider.table_schema();
    if let Some(field) = source
        .fields()
        .iter()
        .chain(schema.fields())
        .find(|field| field.name().starts_with(RESERVED))
    {
        return Err(Error::unsupported(format!(
            "the column name {} is taken by this crate, as all that start with {RESERVED}; rename \
             the column",
            field.name()
        )));
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
    join: &MergeJoin,
    relations: &Relations,
) -> Result<LogicalPlan> {
    let mut target = provider.with_positions()?;
    if !join.pairs.is_empty() {
        target = target.with_keys(KeyedRead {
            join: join.id,
            keys: join.pairs.iter().map(|pair| pair.target.clone()).collect(),
            alone: join.alone.clone(),
            state: None,
        });
    }
    let scan = planned(
        TableScanBuilder::new(dml.table_name.clone(), provider_as_source(Arc::new(target)))
            .build()
            .map(LogicalPlan::TableScan),
    )?;
    match reads::rows_that_matter(op, join.join_type, relations) {
        Some(filter) => planned(
            LogicalPlanBuilder::from(scan)
                .filter(filter)
                .and_then(LogicalPlanBuilder::build),
        ),
        None => Ok(scan),
    }
}

/// How the two sides are joined.
#[derive(Debug)]
struct MergeJoin {
    id: uuid::Uuid,
    join_type: JoinType,
    /// Equalities whose values in the source narrow what is read of the table.
    pairs: Vec<KeyPair>,
    /// Rows of the table that count without a partner; none where those without one don't.
    alone: Option<Expr>,
}

impl MergeJoin {
    fn of(op: &MergeIntoOp, relations: &Relations) -> Self {
        let join_type = join_type(&op.clauses);
        let mut pairs = key_pairs(&op.on, relations);
        let mut alone = None;
        if matches!(join_type, JoinType::Right | JoinType::Full) {
            alone = reads::may_apply(
                &op.clauses,
                MergeIntoClauseKind::NotMatchedBySource,
                relations,
            );
            if alone.is_none() {
                // Every row of the table counts, whatever the keys are.
                pairs.clear();
            }
        }
        Self {
            id: uuid::Uuid::new_v4(),
            join_type,
            pairs,
            alone,
        }
    }
}

fn join(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    target: LogicalPlan,
    join: &MergeJoin,
    relations: &Relations,
) -> Result<LogicalPlan> {
    let mut conjuncts: Vec<Expr> = split_conjunction(&op.on).into_iter().cloned().collect();
    let mut keys = Vec::new();
    let source = source_plan(dml, op, join, relations, &mut conjuncts, &mut keys)?;
    if join.join_type == JoinType::Inner
        && let Some(term) = conjuncts
            .iter()
            .find(|term| term.is_volatile() && term.column_refs().is_empty())
    {
        // DataFusion moves a condition without columns below both sides of the join, where it is
        // drawn for the rows of one side and not for the pairs.
        return Err(Error::unsupported(format!(
            "MERGE: `{term}` in ON has another value each time and is about no column; put it into \
             the condition of a clause (WHEN MATCHED AND …)"
        )));
    }
    let (above, on): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(needs_filter);
    if !above.is_empty() && join.join_type != JoinType::Inner {
        return Err(Error::unsupported(
            "MERGE: a subquery with IN, EXISTS or a reference to the outer rows in ON is supported \
             only where all clauses are WHEN MATCHED; join the subquery with the source in USING",
        ));
    }
    let source = if keys.is_empty() {
        source
    } else {
        LogicalPlan::Extension(Extension {
            node: Arc::new(KeySource {
                join: join.id,
                keys,
                input: Arc::new(source),
                state: None,
            }),
        })
    };
    let on = conjunction(on).unwrap_or_else(|| lit(true));
    let joined = LogicalPlanBuilder::from(source).join_on(target, join.join_type, [on]);
    let Some(filter) = conjunction(above) else {
        return planned(joined.and_then(LogicalPlanBuilder::build));
    };
    let filtered = planned(
        joined
            .and_then(|joined| joined.filter(filter))
            .and_then(LogicalPlanBuilder::build),
    )?;
    unknown_in::check(&filtered, "MERGE")?;
    Ok(filtered)
}

/// The columns of the source that are used, its marker, and its side of each key. A key that is
/// more than a column becomes one, which takes its place in ON, so that what is compared is what
/// was gathered.
fn source_plan(
    dml: &DmlStatement,
    op: &MergeIntoOp,
    join: &MergeJoin,
    relations: &Relations,
    conjuncts: &mut [Expr],
    keys: &mut Vec<Column>,
) -> Result<LogicalPlan> {
    let used: BTreeSet<usize> = op
        .exprs()
        .into_iter()
        .flat_map(|expr| relations.source_columns(expr))
        .collect();
    let all = relations.source.columns();
    let mut columns: Vec<Expr> = used
        .iter()
        .filter_map(|index| all.get(*index).cloned())
        .map(Expr::Column)
        .collect();
    columns.push(lit(true).alias(SOURCE_COLUMN));
    for (number, pair) in join.pairs.iter().enumerate() {
        if let Expr::Column(column) = &pair.source {
            keys.push(column.clone());
            continue;
        }
        let name = format!("{KEY_COLUMN}{number}");
        columns.push(pair.source.clone().alias(&name));
        if let Some(conjunct) = conjuncts.get_mut(pair.conjunct) {
            *conjunct = pair.target.clone().eq(marker(&name));
        }
        keys.push(Column::new_unqualified(name));
    }
    planned(
        LogicalPlanBuilder::from(dml.input.as_ref().clone())
            .project(columns)
            .and_then(LogicalPlanBuilder::build),
    )
}

fn is_not_matched(clause: &MergeIntoClause) -> bool {
    clause.kind.is_not_matched_by_target()
}

fn is_delete(clause: &MergeIntoClause) -> bool {
    matches!(clause.action, MergeIntoAction::Delete)
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
                        "predicate": text_of(predicate),
                        "actionType": action,
                    }),
                    None => serde_json::json!({ "actionType": action }),
                }
            })
            .collect();
        serde_json::Value::from(clauses).to_string()
    };
    let predicate = serde_json::Value::from(vec![text_of(&op.on)]).to_string();
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
