//! From a condition to the filters of a scan, by DataFusion's own planner, and to its answers for
//! rows, by DataFusion's own evaluation.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableSource,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;

/// A table that wants all filters and promises nothing, as ours does.
#[derive(Debug)]
struct Source(SchemaRef);

impl TableSource for Source {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// The filters that a scan of the table `t` is handed for `condition`; none where there is no scan.
pub(super) fn filters_of(
    state: &SessionState,
    schema: &SchemaRef,
    condition: Expr,
) -> Result<Option<Vec<Expr>>> {
    let source = Arc::new(Source(Arc::clone(schema)));
    let plan = LogicalPlanBuilder::scan("t", source, None)?
        .filter(condition)?
        .build()?;
    let plan = state.optimize(&plan)?;
    let mut found = None;
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found = Some(scan.filters.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The condition that `text` is.
pub(super) fn parsed(state: &SessionState, schema: &SchemaRef, text: &str) -> Result<Expr> {
    let schema = DFSchema::try_from_qualified_schema("t", schema)?;
    state.create_logical_expr(text, &schema)
}

/// The condition with the casts that planning puts in, and nothing else done to it.
pub(super) fn coerced(schema: &SchemaRef, condition: Expr) -> Result<Expr> {
    let schema = DFSchema::try_from_qualified_schema("t", schema)?;
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .build();
    ExprSimplifier::new(context).coerce(condition, &schema)
}

/// Whether each row passes `condition`; a row for which it fails does not.
pub(super) fn passes(batch: &RecordBatch, condition: &Expr) -> Result<Vec<bool>> {
    let schema = DFSchema::try_from_qualified_schema("t", &batch.schema())?;
    let expr = create_physical_expr(
        condition,
        &schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let evaluate = |batch: &RecordBatch| -> Result<BooleanArray> {
        let values = expr.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(values.as_boolean().clone())
    };
    let passed = |array: &BooleanArray| array.iter().map(|p| p == Some(true)).collect::<Vec<_>>();
    if let Ok(array) = evaluate(batch) {
        return Ok(passed(&array));
    }
    Ok((0..batch.num_rows())
        .map(|row| evaluate(&batch.slice(row, 1)).is_ok_and(|array| passed(&array) == [true]))
        .collect())
}
