//! The work of one rewrite: new rows, the rows that stay, and the actions.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result as DFResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use deltalake::kernel::{Action, Add, Remove};
use futures::{StreamExt, TryStreamExt};
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;

use super::changes::RowPositions;
use super::file_writer::FileWriters;
use super::merge::{RowAction, rows_for};
use super::rewrite::{Change, RewriteTarget};
use crate::action_batch::StatementResult;
use crate::cancellation::Cancellation;
use crate::clock::now_millis;
use crate::error::{Error, Result};
use crate::read::clustering::clustering_columns;
use crate::read::deletion_vector::{hidden_row_count, hidden_rows, rows_that_stay};
use crate::read::files_scan::{FilesScan, ScanFile};
use crate::read::footer::rows_in;
use crate::read::positions::FILE_COLUMN;

/// How many Parquet footers are read at once.
const FOOTER_CONCURRENCY: usize = 16;

pub(super) struct Rewriter {
    target: RewriteTarget,
    context: Arc<TaskContext>,
    metrics: Metrics,
    cancellation: Cancellation,
}

struct Metrics {
    rows_written: Count,
    rows_matched: Count,
    rows_copied: Count,
    files_rewritten: Count,
    files_removed: Count,
    files_added: Count,
    /// Those that are complete, while the statement runs.
    files_written: Gauge,
    /// Their bytes and those of the files that are being written.
    bytes_written: Gauge,
    rows_inserted: Count,
    rows_updated: Count,
    rows_deleted: Count,
}

impl Metrics {
    fn new(set: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, 0);
        let gauge = |name: &'static str| MetricBuilder::new(set).gauge(name, 0);
        Self {
            rows_written: counter("rows_written"),
            rows_matched: counter("rows_matched"),
            rows_copied: counter("rows_copied"),
            files_rewritten: counter("files_rewritten"),
            files_removed: counter("files_removed"),
            files_added: counter("files_added"),
            files_written: gauge("files_written"),
            bytes_written: gauge("bytes_written"),
            rows_inserted: counter("rows_inserted"),
            rows_updated: counter("rows_updated"),
            rows_deleted: counter("rows_deleted"),
        }
    }

    /// What is written so far.
    fn note(&self, (files, bytes): (usize, u64)) {
        self.files_written.set(files);
        self.bytes_written
            .set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// What became of the old files.
#[derive(Default)]
struct Outcome {
    removed: Vec<Remove>,
    /// New rows and rows with new values.
    rows_written: u64,
    /// Those of `rows_written` that were there before.
    rows_updated: u64,
    rows_gone: u64,
    rows_copied: u64,
}

impl Rewriter {
    pub(super) fn new(
        target: RewriteTarget,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        Self {
            target,
            cancellation: Cancellation::of(context.session_config()),
            context,
            metrics: Metrics::new(metrics),
        }
    }

    pub(super) async fn run(
        self,
        change: Change,
        input: SendableRecordBatchStream,
    ) -> DFResult<StatementResult> {
        let snapshot = &self.target.snapshot;
        let mut writers = FileWriters::try_new(
            self.target.handle.object_store(),
            &snapshot.schema,
            &snapshot.metadata,
        )?
        .with_clustering(&clustering_columns(&self.target.handle, snapshot).await?)?;
        let input = self.cancellation.stop(input);
        match self.change(&mut writers, change, input).await {
            Ok(outcome) => {
                for (metric, rows) in [
                    (&self.metrics.rows_written, outcome.rows_written),
                    (&self.metrics.rows_updated, outcome.rows_updated),
                    (&self.metrics.rows_deleted, outcome.rows_gone),
                ] {
                    metric.add(usize::try_from(rows).unwrap_or(usize::MAX));
                }
                let added = writers.finish().await?;
                self.metrics.files_added.add(added.len());
                let bytes: u64 = added.iter().map(|add| add.size.unsigned_abs()).sum();
                self.metrics.note((added.len(), bytes));
                self.metrics.files_removed.add(outcome.removed.len());
                Ok(result(change, added, outcome)?)
            }
            Err(error) => {
                writers.abort().await;
                Err(error)
            }
        }
    }

    async fn change(
        &self,
        writers: &mut FileWriters,
        change: Change,
        input: SendableRecordBatchStream,
    ) -> DFResult<Outcome> {
        let mut outcome = Outcome::default();
        match change {
            Change::Append => outcome.rows_written = self.new_rows(writers, input).await?,
            Change::Replace => {
                outcome.rows_written = self.new_rows(writers, input).await?;
                self.remove_all(&mut outcome);
            }
            Change::Truncate => {
                outcome.rows_gone = self.rows_of_all().await?;
                self.remove_all(&mut outcome);
            }
            Change::Update | Change::Delete => {
                let positions = self.changed_rows(writers, change, input).await?;
                self.rewrite_files(writers, &positions, &mut outcome)
                    .await?;
                match change {
                    Change::Update => {
                        outcome.rows_written = positions.len();
                        outcome.rows_updated = positions.len();
                    }
                    _ => outcome.rows_gone = positions.len(),
                }
            }
            Change::Merge { repeats } => {
                let positions = self
                    .merged_rows(writers, repeats, input, &mut outcome)
                    .await?;
                self.rewrite_files(writers, &positions, &mut outcome)
                    .await?;
            }
        }
        Ok(outcome)
    }

    async fn new_rows(
        &self,
        writers: &mut FileWriters,
        mut input: SendableRecordBatchStream,
    ) -> DFResult<u64> {
        let mut rows = 0;
        while let Some(batch) = input.try_next().await? {
            rows += batch.num_rows() as u64;
            self.metrics.rows_inserted.add(batch.num_rows());
            self.write(writers, None, &batch).await?;
        }
        Ok(rows)
    }

    async fn write(
        &self,
        writers: &mut FileWriters,
        group: Option<u32>,
        rows: &RecordBatch,
    ) -> Result<()> {
        writers.write(group, rows).await?;
        self.metrics.note(writers.progress());
        Ok(())
    }

    async fn changed_rows(
        &self,
        writers: &mut FileWriters,
        change: Change,
        mut input: SendableRecordBatchStream,
    ) -> DFResult<RowPositions> {
        let mut positions = RowPositions::default();
        while let Some(batch) = input.try_next().await? {
            positions.add(&batch)?;
            self.metrics.rows_matched.add(batch.num_rows());
            if change == Change::Update {
                for (file, rows) in by_file(&batch)? {
                    self.write(writers, Some(file), &rows).await?;
                }
            }
        }
        Ok(positions)
    }

    async fn merged_rows(
        &self,
        writers: &mut FileWriters,
        repeats: bool,
        mut input: SendableRecordBatchStream,
        outcome: &mut Outcome,
    ) -> DFResult<RowPositions> {
        let mut positions = RowPositions::default();
        while let Some(batch) = input.try_next().await? {
            self.metrics.rows_matched.add(batch.num_rows());
            if let Some(rows) = rows_for(&batch, RowAction::Delete)?
                && let Some(row) = positions.add_counting_once(&rows)?
                && !repeats
            {
                return Err(self.changed_twice(row).await);
            }
            if let Some(rows) = rows_for(&batch, RowAction::Update)? {
                if let Some(row) = positions.add_counting_once(&rows)? {
                    return Err(self.changed_twice(row).await);
                }
                outcome.rows_updated += rows.num_rows() as u64;
                for (file, rows) in by_file(&rows)? {
                    self.write(writers, Some(file), &rows).await?;
                }
            }
            if let Some(rows) = rows_for(&batch, RowAction::Insert)? {
                outcome.rows_written += rows.num_rows() as u64;
                self.metrics.rows_inserted.add(rows.num_rows());
                self.write(writers, None, &table_columns(&rows)?).await?;
            }
        }
        outcome.rows_written += outcome.rows_updated;
        outcome.rows_gone = positions.len() - outcome.rows_updated;
        Ok(positions)
    }

    async fn changed_twice(&self, (file, row): (u32, u64)) -> DataFusionError {
        let described = match self.describe(file, row).await {
            Ok(described) => described,
            Err(error) => {
                tracing::debug!(%error, "a row that is changed twice could not be read");
                "a row".to_owned()
            }
        };
        Error::invalid(format!(
            "MERGE: more than one row of the source would change {described}; leave one of them in \
             the source, for instance with GROUP BY or DISTINCT ON"
        ))
        .into()
    }

    /// The values that a row of the table is known by.
    async fn describe(&self, file: u32, row: u64) -> DFResult<String> {
        let add = self.file(file)?;
        let total = rows_in(&self.target.handle, &add).await?;
        let mut others = RoaringTreemap::from_iter(0..total);
        others.remove(row);
        let columns = match self.target.key_columns.as_ref() {
            [] => (0..self.target.snapshot.schema.fields().len()).collect(),
            keys => keys.to_vec(),
        };
        let mut rows = self.read_file(file, rows_that_stay(&others, total), Some(&columns))?;
        let options = FormatOptions::default().with_null("NULL");
        let mut described = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let values = ArrayFormatter::try_new(column.as_ref(), &options)?;
                if batch.num_rows() > 0 {
                    described.push(format!("{} = {}", field.name(), values.value(0)));
                }
            }
        }
        Ok(format!("the row where {}", described.join(", ")))
    }

    /// Removes every touched file; what stays of its rows goes into a new one.
    async fn rewrite_files(
        &self,
        writers: &mut FileWriters,
        positions: &RowPositions,
        outcome: &mut Outcome,
    ) -> DFResult<()> {
        let indices = positions.files().map(|(file, _)| file as usize);
        let hidden = hidden_rows(&self.target.handle, &self.target.snapshot, indices).await?;
        for (file, changed) in positions.files() {
            let add = self.file(file)?;
            let mut gone = changed.clone();
            let total = match hidden.get(&(file as usize)) {
                Some(hidden) => {
                    if !gone.is_disjoint(&hidden.rows) {
                        let message = format!("a hidden row of {} would be changed", add.path);
                        return Err(Error::internal(message).into());
                    }
                    gone |= &hidden.rows;
                    hidden.total
                }
                // The footer, not the statistics: a wrong number of rows would lose some.
                None => rows_in(&self.target.handle, &add).await?,
            };
            if gone.max().is_some_and(|last| last >= total) {
                return Err(Error::internal(format!(
                    "a position beyond the {total} rows of {}",
                    add.path
                ))
                .into());
            }
            let stay = total - gone.len();
            if stay > 0 {
                let copied = self.copy(writers, file, &gone, total).await?;
                if copied != stay {
                    return Err(Error::corrupt(format!(
                        "{stay} rows of {} should stay, but {copied} were read",
                        add.path
                    ))
                    .into());
                }
                outcome.rows_copied += copied;
                self.metrics.files_rewritten.add(1);
            }
            outcome.removed.push(remove(&add));
        }
        Ok(())
    }

    async fn copy(
        &self,
        writers: &mut FileWriters,
        file: u32,
        gone: &RoaringTreemap,
        total: u64,
    ) -> DFResult<u64> {
        let mut rows = self.read_file(file, rows_that_stay(gone, total), None)?;
        let mut copied = 0;
        while let Some(batch) = rows.try_next().await? {
            copied += batch.num_rows() as u64;
            self.metrics.rows_copied.add(batch.num_rows());
            self.write(writers, Some(file), &batch).await?;
        }
        Ok(copied)
    }

    fn read_file(
        &self,
        file: u32,
        selection: RowSelection,
        columns: Option<&Vec<usize>>,
    ) -> DFResult<SendableRecordBatchStream> {
        let scan = FilesScan {
            handle: &self.target.handle,
            snapshot: &self.target.snapshot,
            files: vec![ScanFile {
                index: file as usize,
                selection: Some(selection),
            }],
            positions: false,
        };
        let source = scan.source(
            self.context.session_config().options(),
            &self.context.runtime_env(),
            1,
            columns,
            None,
        )?;
        let rows = source.execute(0, Arc::clone(&self.context))?;
        Ok(self.cancellation.stop(rows))
    }

    fn remove_all(&self, outcome: &mut Outcome) {
        outcome
            .removed
            .extend(self.target.snapshot.files.iter().map(|add| remove(add)));
    }

    async fn rows_of_all(&self) -> Result<u64> {
        let footers: Vec<_> = self
            .target
            .snapshot
            .files
            .iter()
            .map(|add| self.visible_rows_in(add))
            .collect();
        let counts: Vec<u64> = futures::stream::iter(footers)
            .buffer_unordered(FOOTER_CONCURRENCY)
            .try_collect()
            .await?;
        Ok(counts.iter().sum())
    }

    async fn visible_rows_in(&self, add: &Add) -> Result<u64> {
        let (total, hidden) = (
            rows_in(&self.target.handle, add).await?,
            hidden_row_count(add)?,
        );
        total.checked_sub(hidden).ok_or_else(|| {
            Error::corrupt(format!(
                "the deletion vector of {} hides {hidden} rows of {total}",
                add.path
            ))
        })
    }

    fn file(&self, index: u32) -> Result<Arc<Add>> {
        self.target
            .snapshot
            .files
            .get(index as usize)
            .cloned()
            .ok_or_else(|| Error::internal(format!("no file number {index}")))
    }
}

/// Runs of rows of one file, without the position columns.
fn by_file(batch: &RecordBatch) -> Result<Vec<(u32, RecordBatch)>> {
    let missing = || Error::internal("the changed rows come without their files");
    let files = batch
        .column_by_name(FILE_COLUMN)
        .and_then(|column| column.as_primitive_opt::<UInt32Type>())
        .ok_or_else(missing)?;
    let rows = table_columns(batch)?;
    let mut runs = Vec::new();
    let mut start = 0;
    for chunk in files.values().chunk_by(|a, b| a == b) {
        if let Some(file) = chunk.first() {
            runs.push((*file, rows.slice(start, chunk.len())));
        }
        start += chunk.len();
    }
    Ok(runs)
}

/// The columns before the positions: those of the table.
fn table_columns(batch: &RecordBatch) -> Result<RecordBatch> {
    let positions = batch
        .schema()
        .index_of(FILE_COLUMN)
        .map_err(|_| Error::internal("the changed rows come without their files"))?;
    let columns: Vec<usize> = (0..positions).collect();
    batch
        .project(&columns)
        .map_err(|e| Error::internal("new values").with_source(e))
}

fn remove(add: &Add) -> Remove {
    Remove {
        path: add.path.clone(),
        data_change: true,
        deletion_timestamp: Some(now_millis()),
        extended_file_metadata: Some(true),
        partition_values: Some(add.partition_values.clone()),
        size: Some(add.size),
        tags: add.tags.clone(),
        deletion_vector: add.deletion_vector.clone(),
        base_row_id: add.base_row_id,
        default_row_commit_version: add.default_row_commit_version,
    }
}

fn result(change: Change, added: Vec<Add>, outcome: Outcome) -> Result<StatementResult> {
    let mut metrics = vec![
        ("numAddedFiles".to_owned(), added.len() as u64),
        ("numRemovedFiles".to_owned(), outcome.removed.len() as u64),
    ];
    let count = match change {
        Change::Append | Change::Replace => {
            metrics.push(("numOutputRows".to_owned(), outcome.rows_written));
            outcome.rows_written
        }
        Change::Update => {
            metrics.push(("numUpdatedRows".to_owned(), outcome.rows_written));
            metrics.push(("numCopiedRows".to_owned(), outcome.rows_copied));
            outcome.rows_written
        }
        Change::Delete | Change::Truncate => {
            metrics.push(("numDeletedRows".to_owned(), outcome.rows_gone));
            metrics.push(("numCopiedRows".to_owned(), outcome.rows_copied));
            outcome.rows_gone
        }
        Change::Merge { .. } => {
            let inserted = outcome.rows_written - outcome.rows_updated;
            metrics.extend(
                [
                    ("numTargetRowsInserted", inserted),
                    ("numTargetRowsUpdated", outcome.rows_updated),
                    ("numTargetRowsDeleted", outcome.rows_gone),
                    ("numTargetRowsCopied", outcome.rows_copied),
                    ("numTargetFilesAdded", added.len() as u64),
                    ("numTargetFilesRemoved", outcome.removed.len() as u64),
                    ("numOutputRows", outcome.rows_written + outcome.rows_copied),
                ]
                .map(|(name, value)| (name.to_owned(), value)),
            );
            outcome.rows_written + outcome.rows_gone
        }
    };
    let actions = outcome
        .removed
        .into_iter()
        .map(Action::Remove)
        .chain(added.into_iter().map(Action::Add))
        .map(|action| {
            serde_json::to_string(&action)
                .map_err(|e| Error::internal("an action as JSON").with_source(e))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(StatementResult {
        actions,
        metrics,
        count,
    })
}
