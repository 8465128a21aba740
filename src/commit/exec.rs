//! The root operator of a change: it drives the rewrite to its end and commits.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DFResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    Partitioning, PhysicalExpr, PlanProperties,
};
use futures::TryStreamExt;
use object_store::path::Path;
use url::Url;

use super::actions::Actions;
use super::attempt::Attempts;
use super::checkpoint::checkpoint_if_due;
use super::isolation::IsolationLevel;
use super::open_transaction::{OpenTransaction, StatementChange};
use super::session_transactions::Ticket;
use super::transaction::{
    CommitOptions, CommitOutcome, Operation, OptimisticTransaction, OutcomeUnknown,
};
use crate::action_batch::StatementResult;
use crate::cancellation::Cancellation;
use crate::config::DeltaOptions;
use crate::error::{Error, Result};
use crate::read::collector::ReadCollector;
use crate::read::path::{FileLocation, canonical_path};
use crate::read::read_set::{ReadScope, ReadSet};
use crate::read::row_origins::RowOrigins;
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;
use crate::storage::UncommittedFiles;

/// The table that a [`CommitExec`] writes to, and what the statement did to it so far.
#[derive(Debug, Clone)]
pub struct CommitTarget {
    /// The table.
    pub handle: Arc<TableHandle>,
    /// The version that the statement read.
    pub snapshot: Arc<TableSnapshot>,
    /// The statement's reads.
    pub collector: Arc<ReadCollector>,
    /// `operation` of the commit.
    pub operation: String,
    /// `operationParameters` of the commit, besides the predicate.
    pub parameters: Vec<(String, String)>,
}

/// Commits the actions that its input yields and returns one row, `count`. A statement that was
/// planned in a transaction hands them over to it instead.
///
/// Nothing happens before it is executed, and it is executed once: a second run of a statement
/// needs a new plan, which reads the then newest version.
#[derive(Debug)]
pub struct CommitExec {
    input: Arc<dyn ExecutionPlan>,
    target: CommitTarget,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    started: AtomicBool,
}

impl CommitExec {
    /// A commit of what `input` yields; `schema` has the one column `count`.
    pub fn new(input: Arc<dyn ExecutionPlan>, schema: SchemaRef, target: CommitTarget) -> Self {
        Self {
            input,
            target,
            properties: Arc::new(PlanProperties::new(
                EquivalenceProperties::new(schema),
                Partitioning::UnknownPartitioning(1),
                EmissionType::Final,
                Boundedness::Bounded,
            )),
            metrics: ExecutionPlanMetricsSet::new(),
            started: AtomicBool::new(false),
        }
    }

    /// The level that the statement will be checked at or, in a transaction, its transaction, which
    /// a later statement may still raise.
    fn level(&self) -> IsolationLevel {
        let target = &self.target;
        let raised = open_transaction(target)
            .ok()
            .flatten()
            .is_some_and(|open| open.is_serializable(target.handle.location()));
        if raised || target.collector.reads_past_scans() {
            IsolationLevel::Serializable
        } else {
            IsolationLevel::of_table(&self.target.snapshot)
        }
    }
}

impl DisplayAs for CommitExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        let reads = target.collector.reads_of(target.handle.location());
        let scopes: Vec<String> = reads
            .reads()
            .iter()
            .map(|read| read.scope.to_string())
            .collect();
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(
                f,
                "CommitExec: operation={}, table={}, read_version={}, isolation={}, reads=[{}]",
                target.operation,
                target.handle.location(),
                target.snapshot.version,
                self.level().as_str(),
                scopes.join(" | ")
            ),
            DisplayFormatType::TreeRender => {
                writeln!(f, "operation={}", target.operation)?;
                writeln!(f, "read_version={}", target.snapshot.version)?;
                writeln!(f, "isolation={}", self.level().as_str())?;
                writeln!(f, "reads={}", scopes.join(" | "))
            }
        }
    }
}

impl ExecutionPlan for CommitExec {
    fn name(&self) -> &'static str {
        "CommitExec"
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
                self.schema(),
                self.target.clone(),
            ))),
            _ => internal_err!("CommitExec has one child"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> DFResult<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("CommitExec has one partition");
        }
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::invalid(
                "this plan of a change has run already; plan the statement again",
            )
            .into());
        }
        self.target.collector.start()?;
        let session = context.session_config();
        let options = CommitOptions {
            cancellation: Cancellation::of(session),
            ..CommitOptions::from_session(&DeltaOptions::from_config(session.options()))
        };
        let input = self.input.execute(0, context)?;
        let commit = commit(
            input,
            self.target.clone(),
            options,
            self.metrics.clone(),
            self.schema(),
        );
        let stream = futures::stream::once(commit);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

async fn commit(
    mut input: SendableRecordBatchStream,
    target: CommitTarget,
    options: CommitOptions,
    metrics: ExecutionPlanMetricsSet,
    schema: SchemaRef,
) -> DFResult<RecordBatch> {
    let mut result = StatementResult::default();
    while let Some(batch) = input.try_next().await? {
        result.add_batch(&batch)?;
    }
    // A statement that changes no row leaves no trace.
    if !result.actions.is_empty() {
        let root = target.handle.log_store().root_url().clone();
        let version = target.snapshot.version;
        let (actions, _) = Actions::parse(version, result.actions.join("\n").as_bytes(), &root)?;
        let reads = target.collector.reads_of(target.handle.location());
        let added = actions.adds.iter().map(|add| &add.path);
        let written: Vec<Path> = added
            .chain(actions.cdc.iter().map(|file| &file.path))
            .filter_map(|path| FileLocation::of(&root, path).ok())
            .map(|location| location.path().clone())
            .collect();
        let files = UncommittedFiles::new(target.handle.object_store(), written);
        let operation = Operation {
            name: target.operation.clone(),
            parameters: parameters(&target, &reads),
            metrics: result.metrics.into_iter().collect(),
        };
        let done = match open_transaction(&target) {
            Err(error) => Err(error),
            Ok(Some(transaction)) => {
                let change = StatementChange {
                    snapshot: Arc::clone(&target.snapshot),
                    reads,
                    actions,
                    origins: origins(&root, result.origins),
                    operation,
                };
                let taken = transaction.take_over(target.handle.location(), change);
                if taken.is_ok() {
                    files.leave_alone();
                }
                taken
            }
            Ok(None) => {
                let transaction = OptimisticTransaction {
                    snapshot: Arc::clone(&target.snapshot),
                    reads,
                    actions,
                    operation,
                    txn_id: uuid::Uuid::new_v4(),
                    options: CommitOptions {
                        serializable: target.collector.reads_past_scans(),
                        ..options
                    },
                };
                run(transaction, &files, &target, &metrics).await
            }
        };
        if let Err(error) = done {
            // Only where it is certain that no commit names them: a lost answer may have been a
            // success.
            if OutcomeUnknown::find(&error).is_none() {
                files.delete().await;
            }
            return Err(error.into());
        }
    }
    let count: ArrayRef = Arc::new(UInt64Array::from(vec![result.count]));
    Ok(RecordBatch::try_new(schema, vec![count])?)
}

/// Where the rows of new files come from, by canonical path.
fn origins(root: &Url, origins: Vec<(String, RowOrigins)>) -> HashMap<String, RowOrigins> {
    origins
        .into_iter()
        .map(|(path, origins)| (canonical_path(root, &path), origins))
        .collect()
}

/// The transaction of several statements that this one belongs to.
fn open_transaction(target: &CommitTarget) -> Result<Option<Arc<OpenTransaction>>> {
    Ticket::of(&target.collector).map_or(Ok(None), Ticket::transaction)
}

async fn run(
    transaction: OptimisticTransaction,
    files: &UncommittedFiles,
    target: &CommitTarget,
    metrics: &ExecutionPlanMetricsSet,
) -> Result<()> {
    let counter = |name: &'static str| MetricBuilder::new(metrics).global_counter(name);
    let attempts = Attempts::new(transaction)?;
    match attempts.run(target.handle.log_store(), Some(files)).await? {
        CommitOutcome::Committed {
            version,
            attempts,
            verdict,
        } => {
            counter("attempts").add(attempts);
            counter("winners_checked").add(verdict.winners_checked());
            counter("conflict_candidates").add(verdict.candidates);
            counter("conflict_files_kept").add(verdict.kept());
            counter("conflict_files_skipped").add(verdict.skipped);
            counter("conflict_files_skipped_by_partition").add(verdict.skipped_by_partition);
            checkpoint_if_due(&target.handle, &target.snapshot, version).await;
            Ok(())
        }
        CommitOutcome::Conflicted { verdict, .. } => Err(verdict.into()),
    }
}

/// The parameters of the operation with the predicates that were recorded, for people who read the
/// history; nothing parses them again.
fn parameters(
    target: &CommitTarget,
    reads: &ReadSet,
) -> serde_json::Map<String, serde_json::Value> {
    let mut parameters: serde_json::Map<_, _> = target
        .parameters
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let predicates: Vec<String> = reads
        .reads()
        .iter()
        .filter_map(|read| match &read.scope {
            ReadScope::Matching(predicate) => Some(predicate.to_string()),
            ReadScope::WholeTable | ReadScope::Nothing => None,
        })
        .collect();
    if !predicates.is_empty() {
        let text = serde_json::Value::from(predicates).to_string();
        parameters.entry("predicate").or_insert_with(|| text.into());
    }
    parameters
}
