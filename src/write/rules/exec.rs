//! The operator that holds new rows to the rules of their table.
//!
//! In: the rows that a change writes, as the [`Change`](crate::write::rewrite::Change) says; of a MERGE
//! also rows that go and rows that are left alone. Out: the same rows, the new ones with the values
//! that the table makes, in their order; the others behind them. Guaranteed: no row leaves that violates
//! a rule, and the first that does ends the statement.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{Field, Int8Type, Int32Type, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use super::RowRules;
use crate::error::{Error, Result};
use crate::write::merge::{ACTION_COLUMN, CLAUSE_COLUMN, RowAction};

/// Holds the rows of its input to [`RowRules`].
#[derive(Debug)]
pub struct RowRulesExec {
    input: Arc<dyn ExecutionPlan>,
    rules: Arc<RowRules>,
    /// The order of new rows (`INSERT … ORDER BY`), which the optimizer would drop if it were not asked
    /// for.
    order: Option<OrderingRequirements>,
    properties: Arc<PlanProperties>,
}

impl RowRulesExec {
    /// `input`, whose first columns are the table's, held to `rules`; with `in_order`, in the order
    /// that it has now, whatever the optimizer puts in its place.
    pub fn new(input: Arc<dyn ExecutionPlan>, rules: RowRules, in_order: bool) -> Self {
        let order = input
            .properties()
            .output_ordering()
            .filter(|_| in_order)
            .cloned()
            .map(OrderingRequirements::from);
        Self::ordered(input, Arc::new(rules), order)
    }

    fn ordered(
        input: Arc<dyn ExecutionPlan>,
        rules: Arc<RowRules>,
        order: Option<OrderingRequirements>,
    ) -> Self {
        let schema = output_schema(&input.schema(), &rules);
        Self {
            properties: Arc::new(PlanProperties::new(
                EquivalenceProperties::new(schema),
                Partitioning::UnknownPartitioning(1),
                EmissionType::Incremental,
                Boundedness::Bounded,
            )),
            input,
            rules,
            order,
        }
    }
}

impl DisplayAs for RowRulesExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rules.names().join(", ");
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "RowRulesExec: rules=[{names}]")
            }
            DisplayFormatType::TreeRender => writeln!(f, "rules={names}"),
        }
    }
}

impl ExecutionPlan for RowRulesExec {
    fn name(&self) -> &'static str {
        "RowRulesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone()]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DFResult<TreeNodeRecursion>,
    ) -> DFResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::ordered(
                input,
                Arc::clone(&self.rules),
                self.order.clone(),
            ))),
            _ => internal_err!("RowRulesExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        let rules = Arc::clone(&self.rules);
        let schema = self.schema();
        let output = Arc::clone(&schema);
        let batches = self
            .input
            .execute(partition, context)?
            .map(move |batch| {
                batch.and_then(|batch| {
                    checked(&batch, &rules, &output).map_err(DataFusionError::from)
                })
            })
            .map_ok(|batches| futures::stream::iter(batches.into_iter().map(Ok)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            batches.boxed(),
        )))
    }
}

/// The columns of the input in the table's types, without that of the clauses.
fn output_schema(input: &Schema, rules: &RowRules) -> SchemaRef {
    let types = rules.schema.fields();
    let fields: Vec<_> = input
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| field.name() != CLAUSE_COLUMN)
        .map(|(index, field)| match types.get(index) {
            Some(column) => Arc::new(Field::new(column.name(), column.data_type().clone(), true)),
            None => Arc::clone(field),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// The rows of `batch` in one or two batches of `schema`: those that are new, then the others.
fn checked(batch: &RecordBatch, rules: &RowRules, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let Some(actions) = batch.column_by_name(ACTION_COLUMN) else {
        return Ok(vec![new_rows(batch, rules, schema)?]);
    };
    let actions = actions
        .as_primitive_opt::<Int8Type>()
        .ok_or_else(|| Error::internal("the rows of a MERGE come with odd actions"))?;
    let comes = [RowAction::Update, RowAction::Insert].map(RowAction::code);
    let is_new: BooleanArray = actions
        .iter()
        .map(|action| Some(action.is_some_and(|action| comes.contains(&action))))
        .collect();
    let part = |chosen: &BooleanArray| {
        filter_record_batch(batch, chosen)
            .map_err(|e| Error::internal("the rows of a MERGE").with_source(e))
    };
    let mut parts = Vec::new();
    if is_new.true_count() > 0 {
        parts.push(new_rows(&part(&is_new)?, rules, schema)?);
    }
    if is_new.true_count() < is_new.len() {
        let others = not(&is_new).map_err(|e| Error::internal("actions").with_source(e))?;
        // Whatever their values are: nobody writes them.
        let others = part(&others)?;
        let columns = rules
            .schema
            .fields()
            .iter()
            .map(|field| new_null_array(field.data_type(), others.num_rows()))
            .collect();
        parts.push(put_together(columns, &others, schema)?);
    }
    Ok(parts)
}

fn new_rows(batch: &RecordBatch, rules: &RowRules, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns: Vec<usize> = (0..rules.schema.fields().len()).collect();
    let rows = batch
        .project(&columns)
        .map_err(|e| Error::internal("rows without the table's columns").with_source(e))?;
    let clauses = batch
        .column_by_name(CLAUSE_COLUMN)
        .and_then(|column| column.as_primitive_opt::<Int32Type>());
    let rows = rules.apply(&rows, clauses)?;
    put_together(rows.columns().to_vec(), batch, schema)
}

/// The table's columns and what stands behind them in `batch`, but for the clauses.
fn put_together(
    mut columns: Vec<ArrayRef>,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let given = batch.schema();
    for (field, column) in given
        .fields()
        .iter()
        .zip(batch.columns())
        .skip(columns.len())
    {
        if field.name() != CLAUSE_COLUMN {
            columns.push(Arc::clone(column));
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| Error::internal("rows that keep the rules").with_source(e))
}
