//! The operator that holds a join's source: read once, to its end, and given out after that.
//!
//! It is a barrier: no filter, limit or dynamic filter of the operators above reaches the source
//! through it, so that what it holds is the source and nothing less. Batches stay in memory as long
//! as the session's memory pool has room for them; then all of them go to disk.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DFResult, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, SpillMetrics,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PhysicalExpr, PlanProperties, SpillManager,
};
use futures::{StreamExt, TryStreamExt};

use super::gather::KeyGatherer;
use super::{KeyValues, SourceKeys};
use crate::config::DeltaOptions;

/// Holds what its input yields, and gathers the keys in it.
pub(crate) struct SourceBufferExec {
    input: Arc<dyn ExecutionPlan>,
    /// Which columns are keys.
    keys: Arc<[usize]>,
    state: Arc<SourceKeys>,
    held: Mutex<Option<Vec<Option<Held>>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// One partition of the source.
struct Held {
    batches: Vec<RecordBatch>,
    spilled: Vec<Arc<dyn SpillFile>>,
    spill: SpillManager,
    reservation: MemoryReservation,
}

impl fmt::Debug for SourceBufferExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceBufferExec")
            .field("input", &self.input)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl SourceBufferExec {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: Arc<[usize]>,
        state: Arc<SourceKeys>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            input,
            keys,
            state,
            held: Mutex::new(None),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Reads the source to its end and hands its keys over. A second call does nothing.
    pub(super) async fn fill(&self, context: &Arc<TaskContext>) -> DFResult<()> {
        if self.lock().is_some() {
            return Ok(());
        }
        let limit = DeltaOptions::from_config(context.session_config().options()).key_set_limit;
        let partitions = self.input.output_partitioning().partition_count();
        let mut gatherers: Vec<KeyGatherer> =
            self.keys.iter().map(|_| KeyGatherer::new(limit)).collect();
        // All at once: operators below may share work among partitions, or wait for all of them.
        let mut streams = futures::stream::select_all(
            (0..partitions)
                .map(|partition| {
                    let stream = self.input.execute(partition, Arc::clone(context))?;
                    Ok(stream
                        .map(move |batch| batch.map(|batch| (partition, batch)))
                        .boxed())
                })
                .collect::<DFResult<Vec<_>>>()?,
        );
        let mut held: Vec<Held> = (0..partitions)
            .map(|partition| self.empty(partition, context))
            .collect();
        let rows = MetricBuilder::new(&self.metrics).global_counter("source_rows");
        while let Some((partition, batch)) = streams.try_next().await? {
            rows.add(batch.num_rows());
            for (key, gatherer) in self.keys.iter().zip(&mut gatherers) {
                gatherer.add(batch.column(*key))?;
            }
            if let Some(held) = held.get_mut(partition) {
                held.add(batch)?;
            }
        }
        if held.iter().any(|held| !held.spilled.is_empty()) {
            // Memory is short, and what the operators above can have of it is theirs.
            held.iter_mut().try_for_each(Held::spill_all)?;
        }
        *self.lock() = Some(held.into_iter().map(Some).collect());
        let keys: Vec<KeyValues> = gatherers.into_iter().map(KeyGatherer::finish).collect();
        self.state.complete(&keys);
        Ok(())
    }

    fn empty(&self, partition: usize, context: &Arc<TaskContext>) -> Held {
        Held {
            batches: vec![],
            spilled: vec![],
            spill: SpillManager::new(
                context.runtime_env(),
                SpillMetrics::new(&self.metrics, partition),
                self.schema(),
            ),
            reservation: MemoryConsumer::new(format!("SourceBufferExec[{partition}]"))
                .with_can_spill(true)
                .register(context.memory_pool()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Vec<Option<Held>>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn add(&mut self, batch: RecordBatch) -> DFResult<()> {
        let grown = self.reservation.try_grow(batch.get_array_memory_size());
        self.batches.push(batch);
        match grown {
            Err(DataFusionError::ResourcesExhausted(_)) => self.spill_all(),
            grown => grown,
        }
    }

    /// Writes what is in memory into a file.
    fn spill_all(&mut self) -> DFResult<()> {
        if self.batches.is_empty() {
            return Ok(());
        }
        let batches = std::mem::take(&mut self.batches);
        let file = self
            .spill
            .spill_record_batch_and_finish(&batches, "holding the source of a join")?;
        self.spilled.extend(file);
        self.reservation.free();
        Ok(())
    }

    /// What was held, spilled batches first; memory is given back as it goes.
    fn into_stream(self) -> SendableRecordBatchStream {
        let schema = Arc::clone(self.spill.schema());
        let spill = self.spill;
        // One file at a time is open.
        let spilled = futures::stream::iter(self.spilled)
            .map(move |file| spill.read_spill_as_stream(file, None))
            .try_flatten();
        let reservation = self.reservation;
        let in_memory = futures::stream::iter(self.batches).map(move |batch| {
            reservation.try_shrink(batch.get_array_memory_size()).ok();
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(
            schema,
            spilled.chain(in_memory),
        ))
    }
}

impl DisplayAs for SourceBufferExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let keys: Vec<&str> = self
            .keys
            .iter()
            .filter_map(|key| schema.fields().get(*key))
            .map(|field| field.name().as_str())
            .collect();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "SourceBufferExec: keys=[{}]", keys.join(", "))
            }
            DisplayFormatType::TreeRender => writeln!(f, "keys={}", keys.join(", ")),
        }
    }
}

impl ExecutionPlan for SourceBufferExec {
    fn name(&self) -> &'static str {
        "SourceBufferExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
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
            (Some(input), true) => Ok(Arc::new(Self::new(
                input,
                Arc::clone(&self.keys),
                Arc::clone(&self.state),
            ))),
            _ => internal_err!("SourceBufferExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        let held = self
            .lock()
            .as_mut()
            .and_then(|held| held.get_mut(partition))
            .and_then(Option::take);
        match held {
            Some(held) => Ok(held.into_stream()),
            None => internal_err!("the source is given out once, after it was read"),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    #[tokio::test]
    async fn rows_that_went_to_disk_are_counted_and_given_out() {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
        let batches: Vec<RecordBatch> = (0..5)
            .map(|batch| {
                let ids = Int64Array::from_iter_values(batch * 1000..(batch + 1) * 1000);
                RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids)]).expect("batch")
            })
            .collect();
        let input = MemorySourceConfig::try_new_exec(&[batches], schema, None).expect("input");
        // Room for two batches of 8 kB: the third sends all three to disk, and the rest follows in
        // the end.
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(20_000)))
            .build_arc()
            .expect("runtime");
        let context = Arc::new(TaskContext::default().with_runtime(runtime));
        let buffer = SourceBufferExec::new(input, Arc::from([0]), Arc::default());
        buffer.fill(&context).await.expect("filled");
        let metrics = buffer.metrics().expect("metrics");
        let rows = metrics.sum_by_name("source_rows");
        assert_eq!(rows.map(|rows| rows.as_usize()), Some(5000));
        assert_eq!(metrics.spilled_rows(), Some(5000));
        let given: usize = buffer
            .execute(0, context)
            .expect("stream")
            .map_ok(|batch| batch.num_rows())
            .try_fold(0, |sum, rows| async move { Ok(sum + rows) })
            .await
            .expect("read");
        assert_eq!(given, 5000);
    }
}
