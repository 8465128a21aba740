//! The analyzer rule: DML on a Delta table becomes this crate's node, with its whole input plan.
//!
//! It runs before the optimizer, so that subqueries are decorrelated *inside* the node's input and
//! `WHERE false` becomes an input without rows. DataFusion's own way, filters extracted from the
//! optimised plan, loses both (datafusion #24654).

use std::sync::Arc;

use arrow::datatypes::Fields;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{
    DmlStatement, Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, Projection,
    TableSource, Values, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;

use super::filled::FilledColumns;
use super::merge::merge;
use super::node::{DeltaDml, DmlKind};
use super::target::{self, planned};
use super::{
    common_names, hidden, mirrored, subquery_rows, three_valued, unknown_in, unknown_join,
};
use crate::error::{Error, Result};
use crate::read::provider::DisjointTableProvider;

/// Replaces `INSERT`, `UPDATE`, `DELETE`, `MERGE` and `TRUNCATE` on a [`DisjointTableProvider`] by a
/// [`DeltaDml`] node. In all plans conditions are written so that the optimizer keeps to three-valued
/// logic; otherwise other plans pass as they are.
#[derive(Debug, Default)]
pub struct DeltaDmlRule {}

impl AnalyzerRule for DeltaDmlRule {
    fn name(&self) -> &'static str {
        "delta_dml"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DFResult<LogicalPlan> {
        let rewritten = common_names::renamed(plan)?.transform_down(|plan| match plan {
            LogicalPlan::Dml(dml) => match delta_provider(&dml.target) {
                Some(provider) => Ok(Transformed::yes(rewrite(&dml, provider)?)),
                None => Ok(Transformed::no(LogicalPlan::Dml(dml))),
            },
            other => Ok(Transformed::no(other)),
        })?;
        as_written(rewritten.data)
    }
}

/// `plan`, with conditions that the optimizer takes for what they say; what cannot be had is refused.
pub(crate) fn as_written(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    if !three_valued::changes_rows(&plan)? {
        return mirrored::turned(three_valued::keep_unknown(plan)?);
    }
    subquery_rows::check(&plan)?;
    let nullable = subquery_rows::may_find_nothing(plan)?;
    hidden::hidden(mirrored::turned(three_valued::keep_unknown(nullable)?)?)
}

/// The provider behind a table source, if it is one of this crate.
pub(super) fn delta_provider(source: &Arc<dyn TableSource>) -> Option<DisjointTableProvider> {
    source_as_provider(source)
        .ok()
        .and_then(|provider| provider.downcast_ref::<DisjointTableProvider>().cloned())
}

fn rewrite(dml: &DmlStatement, provider: DisjointTableProvider) -> Result<LogicalPlan> {
    let input = dml.input.as_ref().clone();
    let mut filled = FilledColumns::default();
    let (kind, input) = match &dml.op {
        WriteOp::Insert(op @ (InsertOp::Append | InsertOp::Overwrite)) => {
            unknown_in::check(&input, "INSERT")?;
            let (input, left_out) = FilledColumns::of_insert(input)?;
            filled = left_out;
            let kind = match op {
                InsertOp::Overwrite => DmlKind::Overwrite,
                _ => DmlKind::Insert,
            };
            (kind, new_rows(input, &provider)?)
        }
        WriteOp::Insert(InsertOp::Replace) => {
            return Err(Error::unsupported(
                "REPLACE INTO needs a key, which Delta tables do not have; use UPDATE and INSERT",
            ));
        }
        WriteOp::Delete => {
            unknown_in::check(&input, "DELETE")?;
            unknown_join::check(&input, "DELETE")?;
            let input = target::with_positions(input, "DELETE", &provider)?;
            (DmlKind::Delete, target::only_positions(input)?)
        }
        WriteOp::Update => {
            unknown_in::check(&input, "UPDATE")?;
            unknown_join::check(&input, "UPDATE")?;
            filled = FilledColumns::of_update(&input, &provider);
            (DmlKind::Update, target::update_input(input, &provider)?)
        }
        WriteOp::Truncate => (DmlKind::Truncate, no_rows()?),
        WriteOp::MergeInto(op) => return Ok(node(merge(dml, op, provider)?)),
        other => {
            return Err(Error::unsupported(format!(
                "{other} on a Delta table is not supported"
            )));
        }
    };
    Ok(node(
        DeltaDml::new(kind, dml.table_name.to_string(), provider, input).with_filled(filled),
    ))
}

fn node(dml: DeltaDml) -> LogicalPlan {
    LogicalPlan::Extension(Extension {
        node: Arc::new(dml),
    })
}

/// The input of an INSERT with the columns of `table`. SQL brings them as they should be; a frame
/// that is written to the table (`write_table`) has columns of its own.
fn new_rows(plan: LogicalPlan, table: &DisjointTableProvider) -> Result<LogicalPlan> {
    let schema = table.table_schema();
    let given = plan.schema();
    let same_names = given.fields().len() == schema.fields().len()
        && given
            .fields()
            .iter()
            .zip(schema.fields())
            .all(|(given, column)| given.name() == column.name());
    if !same_names {
        let names = |fields: &Fields| {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            names.join(", ")
        };
        return Err(Error::invalid(format!(
            "rows with the columns ({}) for the table at {}, which has ({}); give them the table's \
             names and order",
            names(given.fields()),
            table.handle().location(),
            names(schema.fields()),
        )));
    }
    let same_types = given
        .fields()
        .iter()
        .zip(schema.fields())
        .all(|(given, column)| given.data_type() == column.data_type());
    if same_types {
        return nullable_values(plan);
    }
    let columns = given
        .columns()
        .into_iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            let cast = planned(Expr::Column(column).cast_to(field.data_type(), given.as_ref()))?;
            Ok(cast.alias(field.name()))
        })
        .collect::<Result<Vec<_>>>()?;
    planned(Projection::try_new(columns, Arc::new(plan))).map(LogicalPlan::Projection)
}

/// `plan` with `VALUES` that may hold NULL for a column that takes none: DataFusion gives them the
/// table's nullability, and then fails without naming the column. The writer names it.
fn nullable_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let input = nullable_values(Arc::unwrap_or_clone(projection.input))?;
            planned(Projection::try_new(projection.expr, Arc::new(input)))
                .map(LogicalPlan::Projection)
        }
        LogicalPlan::Values(Values { schema, values }) => {
            let fields = schema
                .iter()
                .map(|(qualifier, field)| {
                    let field = field.as_ref().clone().with_nullable(true);
                    (qualifier.cloned(), Arc::new(field))
                })
                .collect();
            let schema = planned(DFSchema::new_with_metadata(
                fields,
                schema.metadata().clone(),
            ))?;
            Ok(LogicalPlan::Values(Values {
                schema: Arc::new(schema),
                values,
            }))
        }
        other => Ok(other),
    }
}

fn no_rows() -> Result<LogicalPlan> {
    LogicalPlanBuilder::empty(false)
        .build()
        .map_err(|e| Error::internal("an empty plan").with_source(e))
}
