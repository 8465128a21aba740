//! Columns with required fields inside, read from files that declare those fields as optional.
//!
//! Writers may write every Parquet field as optional, whatever the table's schema says, and
//! DataFusion's Parquet source refuses to read an optional nested field as a required one. Such
//! columns are therefore read with all their inner fields optional, and declared again afterwards
//! what the table says they are; a NULL that the table forbids is an error then. Columns of a table
//! that maps its columns come with their physical names as metadata, which ends here too.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;

use crate::error::Error;

/// `field` with everything inside of its type optional, but for the keys of maps.
pub(super) fn with_optional_insides(field: &FieldRef) -> FieldRef {
    let loose = loosened(field.data_type());
    if loose == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_data_type(loose))
}

fn loosened(data_type: &DataType) -> DataType {
    let optional = |field: &FieldRef| {
        let loose = loosened(field.data_type());
        Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(loose)
                .with_nullable(true),
        )
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(optional).collect()),
        DataType::List(element) => DataType::List(optional(element)),
        DataType::LargeList(element) => DataType::LargeList(optional(element)),
        DataType::Map(entries, sorted) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                let fields = [with_optional_insides(&fields[0]), optional(&fields[1])];
                let loose = DataType::Struct(fields.into_iter().collect());
                let entries = entries.as_ref().clone().with_data_type(loose);
                DataType::Map(Arc::new(entries), *sorted)
            }
            _ => data_type.clone(),
        },
        _ => data_type.clone(),
    }
}

/// Gives its input's columns the types of `schema`, which differ in inner nullability and in the
/// metadata of fields only.
#[derive(Debug)]
pub(super) struct NestedNullsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl NestedNullsExec {
    /// `input` with the columns of `schema`; `input` itself where nothing differs.
    pub(super) fn around(
        input: Arc<dyn ExecutionPlan>,
        schema: SchemaRef,
    ) -> Arc<dyn ExecutionPlan> {
        if input.schema().fields() == schema.fields() {
            return input;
        }
        let of_input = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            of_input.output_partitioning().clone(),
            of_input.emission_type,
            of_input.boundedness,
        );
        Arc::new(Self {
            input,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for NestedNullsExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => f.write_str(self.name()),
            DisplayFormatType::TreeRender => Ok(()),
        }
    }
}

impl ExecutionPlan for NestedNullsExec {
    fn name(&self) -> &'static str {
        "NestedNullsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
            (Some(input), true) => Ok(Self::around(input, self.schema())),
            _ => internal_err!("NestedNullsExec has one child"),
        }
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        config: &ConfigOptions,
    ) -> DFResult<Option<Arc<dyn ExecutionPlan>>> {
        Ok(self
            .input
            .repartitioned(target_partitions, config)?
            .map(|input| Self::around(input, self.schema())))
    }

    /// Filters on columns that pass through here as they are.
    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> DFResult<FilterDescription> {
        let (input, declared) = (self.input.schema(), self.schema());
        let unchanged = input
            .fields()
            .iter()
            .zip(declared.fields())
            .enumerate()
            .filter(|(_, (input, declared))| input.data_type() == declared.data_type())
            .map(|(index, _)| index)
            .collect();
        Ok(FilterDescription::new().with_child(
            ChildFilterDescription::from_child_with_allowed_indices(
                &parent_filters,
                unchanged,
                &self.input,
            )?,
        ))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        let schema = self.schema();
        let input = self.input.execute(partition, context)?;
        let declared = Arc::clone(&schema);
        let stream = input.map(move |batch| declare(&batch?, &declared));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

fn declare(batch: &RecordBatch, schema: &SchemaRef) -> DFResult<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            cast(column, field.data_type()).map_err(|e| {
                Error::corrupt(format!(
                    "a data file has NULL inside of the column {}, where the table's schema has a \
                     required field: {e}",
                    field.name()
                ))
                .with_source(e)
                .into()
            })
        })
        .collect::<DFResult<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}
