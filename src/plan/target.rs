//! Finding the target's scan in the input of a change, and making it yield row positions.
//!
//! The walk goes only through operators that neither add, drop nor pair rows of the target in a
//! way that a change could not express. Everything else is refused by name, so that a shape that
//! is not understood never changes more rows than were asked for.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, JoinType, Result as DFResult};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    EmptyRelation, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Projection,
    SubqueryAlias, TableScan, TableScanBuilder,
};

use super::rule::delta_provider;
use crate::error::{Error, Result};
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN, file_field, row_field};
use crate::read::provider::DisjointTableProvider;

/// `plan` with file and position of each of the rows of `table` as additional columns.
pub(super) fn with_positions(
    plan: LogicalPlan,
    statement: &str,
    table: &DisjointTableProvider,
) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(scan) => scan_with_positions(scan, statement, table),
        LogicalPlan::Filter(filter) => {
            let input = with_positions(owned(filter.input), statement, table)?;
            planned(Filter::try_new(filter.predicate, Arc::new(input)).map(LogicalPlan::Filter))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let input = with_positions(owned(alias.input), statement, table)?;
            planned(
                SubqueryAlias::try_new(Arc::new(input), alias.alias)
                    .map(LogicalPlan::SubqueryAlias),
            )
        }
        LogicalPlan::Projection(projection) => {
            let input = with_positions(owned(projection.input), statement, table)?;
            let mut exprs = projection.expr;
            exprs.extend(position_columns(&input)?);
            planned(Projection::try_new(exprs, Arc::new(input)).map(LogicalPlan::Projection))
        }
        // What became of a subquery in WHERE when the plan was optimised before (PREPARE).
        LogicalPlan::Join(mut join)
            if matches!(
                join.join_type,
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
            ) =>
        {
            join.left = Arc::new(with_positions(owned(join.left), statement, table)?);
            planned(LogicalPlan::Join(join).recompute_schema())
        }
        LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row => {
            let schema = with_position_fields(&empty)?;
            Ok(LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: false,
                schema,
            }))
        }
        LogicalPlan::Limit(_) => Err(Error::unsupported(format!(
            "{statement} with LIMIT is not supported; say which rows with WHERE"
        ))),
        LogicalPlan::Join(_) => Err(Error::unsupported(format!(
            "{statement} over a join of several tables is not supported; use a subquery in WHERE \
             or in SET, and run the statement directly if it is a prepared one"
        ))),
        other => Err(Error::unsupported(format!(
            "{statement} over {} is not supported; run the statement directly instead of a \
             prepared one, with one table and WHERE",
            other.display()
        ))),
    }
}

/// The input of an UPDATE: all columns with their new values, then file and position.
pub(super) fn update_input(
    plan: LogicalPlan,
    table: &DisjointTableProvider,
) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            check_new_values(&projection.expr)?;
            let projection = of_column_types(projection, table)?;
            with_positions(LogicalPlan::Projection(projection), "UPDATE", table)
        }
        LogicalPlan::EmptyRelation(_) => with_positions(plan, "UPDATE", table),
        other => Err(Error::unsupported(format!(
            "UPDATE planned as {} is not supported; run the statement directly instead of a \
             prepared one",
            other.display()
        ))),
    }
}

/// `projection` with the types of the table's columns: a CASE may have got another one since it was
/// planned.
fn of_column_types(projection: Projection, table: &DisjointTableProvider) -> Result<Projection> {
    let schema = table.table_schema();
    let input = projection.input;
    let names = NamePreserver::new_for_projection();
    let exprs = projection.expr.into_iter().map(|expr| {
        let name = expr.qualified_name().1;
        let Ok(field) = schema.field_with_name(&name) else {
            return Ok(expr);
        };
        let saved = names.save(&expr);
        planned(expr.cast_to(field.data_type(), input.schema())).map(|cast| saved.restore(cast))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    planned(Projection::try_new(exprs, input))
}

/// `plan` reduced to file and position.
pub(super) fn only_positions(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = position_columns(&plan)?;
    planned(
        LogicalPlanBuilder::from(plan)
            .project(columns)
            .and_then(LogicalPlanBuilder::build),
    )
}

/// Refuses subqueries that DataFusion carries out in WHERE alone.
fn check_new_values(values: &[Expr]) -> Result<()> {
    let has_test = |expr: &Expr| {
        expr.exists(|node| {
            Ok(matches!(
                node,
                Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
            ))
        })
        // A walk that fails found nothing it could vouch for.
        .unwrap_or(true)
    };
    if values.iter().any(has_test) {
        return Err(Error::unsupported(
            "UPDATE: a subquery with IN, EXISTS, ANY or ALL in SET is not supported; write a scalar \
             one, (SELECT count(*) > 0 FROM … WHERE …), or UPDATE twice with the test in WHERE",
        ));
    }
    Ok(())
}

fn scan_with_positions(
    scan: TableScan,
    statement: &str,
    table: &DisjointTableProvider,
) -> Result<LogicalPlan> {
    if scan.fetch.is_some() {
        return Err(Error::unsupported(format!(
            "{statement} with LIMIT is not supported; say which rows with WHERE"
        )));
    }
    // Positions in another table would take rows of this one away.
    let provider = delta_provider(&scan.source)
        .filter(|provider| provider.handle().location() == table.handle().location())
        .ok_or_else(|| {
            Error::unsupported(format!(
                "{statement} of the table at {} takes its rows from {}, which is another table",
                table.handle().location(),
                scan.table_name
            ))
        })?;
    let columns = provider.table_schema().fields().len();
    let projection = scan.projection.map(|mut projection| {
        projection.extend([columns, columns + 1]);
        projection
    });
    let source = provider_as_source(Arc::new(provider.with_positions()?));
    planned(
        TableScanBuilder::new(scan.table_name, source)
            .with_projection(projection)
            .with_filters(scan.filters)
            .build()
            .map(LogicalPlan::TableScan),
    )
}

/// The two position columns of `plan`'s output, as expressions.
fn position_columns(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    [FILE_COLUMN, ROW_COLUMN]
        .into_iter()
        .map(|name| {
            planned(
                plan.schema()
                    .qualified_field_with_unqualified_name(name)
                    .map(|(qualifier, field)| {
                        Expr::Column(Column::new(qualifier.cloned(), field.name()))
                    }),
            )
        })
        .collect()
}

fn with_position_fields(empty: &EmptyRelation) -> Result<datafusion::common::DFSchemaRef> {
    let positions = planned(datafusion::common::DFSchema::from_unqualified_fields(
        vec![file_field(), row_field()].into(),
        std::collections::HashMap::new(),
    ))?;
    planned(empty.schema.join(&positions)).map(Arc::new)
}

fn owned(plan: Arc<LogicalPlan>) -> LogicalPlan {
    Arc::unwrap_or_clone(plan)
}

pub(super) fn planned<T>(result: DFResult<T>) -> Result<T> {
    result.map_err(|e| Error::internal(format!("cannot plan the change: {e}")).with_source(e))
}
