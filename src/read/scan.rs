//! The scan operator: DataFusion's Parquet source behind a gate.
//!
//! In: a snapshot, the files that survived pruning, a projection. Out: rows, and where asked for
//! their file and position. Guaranteed: no row is lost to Parquet statistics that do not hold for
//! DataFusion's order of values. DataFusion's physical filter push-down hands predicates of
//! operators above (static and dynamic ones) to the Parquet source, which prunes row groups and
//! pages with them; the gate lets through only those that are safe there (datafusion #15812).

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DFResult, internal_err};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, Statistics,
};

use datafusion::scalar::ScalarValue;

use super::collector::ReadCollector;
use super::gate::may_reach_parquet;
use super::keys::KeyedScan;
use super::positions::{FILE_COLUMN, ROW_COLUMN};
use super::statistics::touches_float;

/// What a scan looked at, for `EXPLAIN` and metrics.
#[derive(Debug, Clone)]
pub struct ScanSummary {
    /// Canonical location of the table.
    pub table: String,
    /// The version that is read.
    pub version: u64,
    /// What was recorded as read.
    pub scope: String,
    /// Live files of the version.
    pub files_total: usize,
    /// Files that cannot hold a matching row.
    pub files_pruned: usize,
    /// Where the read was recorded.
    pub collector: Arc<ReadCollector>,
}

/// Reads files of one table version.
#[derive(Debug)]
pub struct DeltaScanExec {
    input: Arc<dyn ExecutionPlan>,
    summary: Arc<ScanSummary>,
    keyed: Option<Arc<KeyedScan>>,
    /// The input without the files that hold no key of the join.
    with_keys: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    metrics: ExecutionPlanMetricsSet,
}

impl DeltaScanExec {
    /// A gate around `input`, the Parquet source's operator.
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        summary: Arc<ScanSummary>,
        keyed: Option<Arc<KeyedScan>>,
    ) -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        for (name, files) in [
            ("files_total", summary.files_total),
            ("files_pruned", summary.files_pruned),
            (
                "files_scanned",
                summary.files_total.saturating_sub(summary.files_pruned),
            ),
        ] {
            MetricBuilder::new(&metrics).global_counter(name).add(files);
        }
        Self {
            input,
            summary,
            keyed,
            with_keys: Mutex::new(None),
            metrics,
        }
    }

    /// What the scan looked at.
    pub fn summary(&self) -> &ScanSummary {
        &self.summary
    }

    fn around(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(
            input,
            Arc::clone(&self.summary),
            self.keyed.clone(),
        ))
    }

    /// What is read: all files, or those that may hold a key of the join.
    fn chosen_input(&self) -> DFResult<Arc<dyn ExecutionPlan>> {
        let Some(left) = self.keyed.as_ref().and_then(|keyed| keyed.files_left()) else {
            return Ok(Arc::clone(&self.input));
        };
        let mut with_keys = self
            .with_keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(chosen) = with_keys.as_ref() {
            return Ok(Arc::clone(chosen));
        }
        let planned = self
            .summary
            .files_total
            .saturating_sub(self.summary.files_pruned);
        MetricBuilder::new(&self.metrics)
            .global_counter("files_pruned_by_keys")
            .add(planned.saturating_sub(left.len()));
        let chosen = only_files(Arc::clone(&self.input), left)?;
        *with_keys = Some(Arc::clone(&chosen));
        Ok(chosen)
    }
}

/// `plan`, which yields positions, reading `left` of its files. Partitions stay, though some may
/// have no file any more.
fn only_files(
    plan: Arc<dyn ExecutionPlan>,
    left: &HashSet<u32>,
) -> DFResult<Arc<dyn ExecutionPlan>> {
    plan.transform_down(|node| {
        let config = node
            .downcast_ref::<DataSourceExec>()
            .and_then(|source| source.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else {
            return Ok(Transformed::no(node));
        };
        let mut config = config.clone();
        config.file_groups = config
            .file_groups
            .iter()
            .map(|group| {
                let files = group.files().iter();
                files
                    .filter(|file| match file.partition_values.last() {
                        Some(ScalarValue::UInt32(Some(index))) => left.contains(index),
                        _ => true,
                    })
                    .cloned()
                    .collect::<Vec<_>>()
                    .into()
            })
            .collect();
        let chosen: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
        Ok(Transformed::yes(chosen))
    })
    .map(|transformed| transformed.data)
}

/// Columns a pushed predicate may name: neither a float, whose Parquet bounds leave NaN out and
/// know only one zero, nor a position, which the Parquet reader makes up itself.
fn open_columns(schema: &SchemaRef) -> HashSet<usize> {
    schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| {
            field.name() != FILE_COLUMN
                && field.name() != ROW_COLUMN
                && !touches_float(field.data_type())
        })
        .map(|(index, _)| index)
        .collect()
}

impl DisplayAs for DeltaScanExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "DeltaScanExec: table={}, version={}, read=[{}{}], files_total={}, files_pruned={}",
                summary.table,
                summary.version,
                summary.scope,
                match &self.keyed {
                    Some(keyed) => keyed.to_string(),
                    None => String::new(),
                },
                summary.files_total,
                summary.files_pruned
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "version={}", summary.version)?;
                writeln!(
                    f,
                    "files={} of {}",
                    summary.files_total.saturating_sub(summary.files_pruned),
                    summary.files_total
                )
            }
        }
    }
}

impl ExecutionPlan for DeltaScanExec {
    fn name(&self) -> &'static str {
        "DeltaScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        // The source has no order to keep, and an operator that keeps it gets sorts pushed below
        // it: a sort with a limit would then hand its dynamic filter to the source past the gate.
        vec![false]
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
            (Some(input), true) => Ok(self.around(input)),
            _ => internal_err!("DeltaScanExec has one child"),
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
            .map(|input| self.around(input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        self.summary.collector.start()?;
        self.chosen_input()?.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> DFResult<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        self.input.with_fetch(limit).map(|input| self.around(input))
    }

    fn fetch(&self) -> Option<usize> {
        self.input.fetch()
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> DFResult<FilterDescription> {
        let schema = self.schema();
        // A filter that names no column of the child is not passed on.
        let closed: Arc<dyn PhysicalExpr> = Arc::new(Column::new("", usize::MAX));
        let filters: Vec<_> = parent_filters
            .into_iter()
            .map(|filter| {
                if may_reach_parquet(&filter, &schema) {
                    filter
                } else {
                    Arc::clone(&closed)
                }
            })
            .collect();
        Ok(FilterDescription::new().with_child(
            ChildFilterDescription::from_child_with_allowed_indices(
                &filters,
                open_columns(&schema),
                &self.input,
            )?,
        ))
    }
}
