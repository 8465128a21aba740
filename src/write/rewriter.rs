//! The work of one rewrite: new rows, the rows that stay, and the actions.

mod output;
mod report;
mod rows;
mod touched;

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result as DFResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use deltalake::kernel::Add;
use futures::{StreamExt, TryStreamExt};
use roaring::RoaringTreemap;

use self::output::Output;
use self::report::{Metrics, Outcome, result};
use self::rows::table_columns;
use self::touched::remove;
use super::changes::RowPositions;
use super::merge::{RowAction, rows_for};
use super::rewrite::{Change, RewriteTarget};
use super::table_rows::{Chosen, Columns, TableRows};
use crate::action_batch::StatementResult;
use crate::cancellation::Cancellation;
use crate::error::{Error, Result};
use crate::read::deletion_vector::hidden_row_count;
use crate::read::footer::rows_in;

/// How many Parquet footers are read at once.
const FOOTER_CONCURRENCY: usize = 16;

pub(super) struct Rewriter {
    target: RewriteTarget,
    table: TableRows,
    metrics: Metrics,
    cancellation: Cancellation,
}

/// The rows of the table that a statement changes.
#[derive(Debug, Default)]
struct ChangedRows {
    all: RowPositions,
    /// Those of them that get new values; noted only where change files are written.
    updated: RowPositions,
}

impl Rewriter {
    pub(super) fn new(
        target: RewriteTarget,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        Self {
            table: TableRows::new(&target.handle, &target.snapshot, &context),
            target,
            metrics: Metrics::new(metrics),
            cancellation: Cancellation::of(context.session_config()),
        }
    }

    pub(super) async fn run(
        self,
        change: Change,
        input: SendableRecordBatchStream,
    ) -> DFResult<StatementResult> {
        let mut output = Output::new(&self.target, change, self.metrics.progress.clone()).await?;
        let input = self.cancellation.stop(input);
        match self.change(&mut output, change, input).await {
            Ok(outcome) => {
                for (metric, rows) in [
                    (&self.metrics.rows_written, outcome.rows_written),
                    (&self.metrics.rows_updated, outcome.rows_updated),
                    (&self.metrics.rows_deleted, outcome.rows_gone),
                ] {
                    metric.add(usize::try_from(rows).unwrap_or(usize::MAX));
                }
                let written = output.finish().await?;
                self.metrics.files_added.add(written.added.len());
                self.metrics.files_removed.add(outcome.removed.len());
                Ok(result(change, written, outcome)?)
            }
            Err(error) => {
                output.abort().await;
                Err(error)
            }
        }
    }

    async fn change(
        &self,
        output: &mut Output,
        change: Change,
        input: SendableRecordBatchStream,
    ) -> DFResult<Outcome> {
        let mut outcome = Outcome::default();
        match change {
            Change::Append => outcome.rows_written = self.new_rows(output, input).await?,
            Change::Replace => {
                outcome.rows_written = self.new_rows(output, input).await?;
                self.remove_all(&mut outcome);
            }
            Change::Truncate => {
                outcome.rows_gone = self.rows_of_all().await?;
                self.remove_all(&mut outcome);
            }
            Change::Update => {
                let changed = self.updated_rows(output, input).await?;
                outcome.rows_written = changed.all.len();
                outcome.rows_updated = changed.all.len();
                self.rewrite_files(output, &changed, &mut outcome).await?;
            }
            Change::Delete => {
                let changed = self.deleted_rows(input).await?;
                outcome.rows_gone = changed.all.len();
                self.rewrite_files(output, &changed, &mut outcome).await?;
            }
            Change::Merge { repeats, .. } => {
                let changed = self
                    .merged_rows(output, repeats, input, &mut outcome)
                    .await?;
                self.rewrite_files(output, &changed, &mut outcome).await?;
            }
        }
        Ok(outcome)
    }

    async fn new_rows(
        &self,
        output: &mut Output,
        mut input: SendableRecordBatchStream,
    ) -> DFResult<u64> {
        let mut rows = 0;
        while let Some(batch) = input.try_next().await? {
            rows += batch.num_rows() as u64;
            self.metrics.rows_inserted.add(batch.num_rows());
            output.insert(&batch).await?;
        }
        Ok(rows)
    }

    async fn updated_rows(
        &self,
        output: &mut Output,
        mut input: SendableRecordBatchStream,
    ) -> DFResult<ChangedRows> {
        let mut changed = ChangedRows::default();
        while let Some(batch) = input.try_next().await? {
            changed.all.add(&batch)?;
            if output.changes().is_some() {
                changed.updated.add(&batch)?;
            }
            self.metrics.rows_matched.add(batch.num_rows());
            output.update(&batch).await?;
        }
        Ok(changed)
    }

    async fn deleted_rows(&self, mut input: SendableRecordBatchStream) -> DFResult<ChangedRows> {
        let mut changed = ChangedRows::default();
        while let Some(batch) = input.try_next().await? {
            changed.all.add(&batch)?;
            self.metrics.rows_matched.add(batch.num_rows());
        }
        Ok(changed)
    }

    async fn merged_rows(
        &self,
        output: &mut Output,
        repeats: bool,
        mut input: SendableRecordBatchStream,
        outcome: &mut Outcome,
    ) -> DFResult<ChangedRows> {
        let mut changed = ChangedRows::default();
        while let Some(batch) = input.try_next().await? {
            self.metrics.rows_matched.add(batch.num_rows());
            if let Some(rows) = rows_for(&batch, RowAction::Delete)?
                && let Some(row) = changed.all.add_counting_once(&rows)?
                && !repeats
            {
                return Err(self.changed_twice(row).await);
            }
            if let Some(rows) = rows_for(&batch, RowAction::Update)? {
                if let Some(row) = changed.all.add_counting_once(&rows)? {
                    return Err(self.changed_twice(row).await);
                }
                if output.changes().is_some() {
                    changed.updated.add(&rows)?;
                }
                outcome.rows_updated += rows.num_rows() as u64;
                output.update(&rows).await?;
            }
            if let Some(rows) = rows_for(&batch, RowAction::Insert)? {
                outcome.rows_written += rows.num_rows() as u64;
                self.metrics.rows_inserted.add(rows.num_rows());
                output.insert(&table_columns(&rows)?).await?;
            }
        }
        outcome.rows_written += outcome.rows_updated;
        outcome.rows_gone = changed.all.len() - outcome.rows_updated;
        Ok(changed)
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
        let total = rows_in(&self.target.handle, self.table.file(file)?).await?;
        let columns = match self.target.key_columns.as_ref() {
            [] => (0..self.target.snapshot.schema.fields().len()).collect(),
            keys => keys.to_vec(),
        };
        let only = RoaringTreemap::from_iter([row]);
        let mut rows =
            self.table
                .read(file, total, Chosen::Only(&only), Columns::Some(&columns))?;
        let options = FormatOptions::default().with_null("NULL");
        let mut described = Vec::new();
        while let Some(batch) = rows.next().await? {
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let values = ArrayFormatter::try_new(column.as_ref(), &options)?;
                if batch.num_rows() > 0 {
                    described.push(format!("{} = {}", field.name(), values.value(0)));
                }
            }
        }
        Ok(format!("the row where {}", described.join(", ")))
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
}
