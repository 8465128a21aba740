//! What a rewrite counted, and its result.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use deltalake::kernel::{Action, Remove};

use super::output::Written;
use crate::action_batch::StatementResult;
use crate::error::{Error, Result};
use crate::write::rewrite::Change;

/// Counters of the operator.
pub(super) struct Metrics {
    pub(super) rows_written: Count,
    pub(super) rows_matched: Count,
    pub(super) rows_copied: Count,
    pub(super) files_rewritten: Count,
    pub(super) files_removed: Count,
    pub(super) files_added: Count,
    pub(super) progress: Progress,
    pub(super) rows_inserted: Count,
    pub(super) rows_updated: Count,
    pub(super) rows_deleted: Count,
}

impl Metrics {
    pub(super) fn new(set: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name: &'static str| MetricBuilder::new(set).counter(name, 0);
        let gauge = |name: &'static str| MetricBuilder::new(set).gauge(name, 0);
        Self {
            rows_written: counter("rows_written"),
            rows_matched: counter("rows_matched"),
            rows_copied: counter("rows_copied"),
            files_rewritten: counter("files_rewritten"),
            files_removed: counter("files_removed"),
            files_added: counter("files_added"),
            progress: Progress {
                files_written: gauge("files_written"),
                bytes_written: gauge("bytes_written"),
            },
            rows_inserted: counter("rows_inserted"),
            rows_updated: counter("rows_updated"),
            rows_deleted: counter("rows_deleted"),
        }
    }
}

/// What is written so far, while the statement runs.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// Data files that are complete.
    files_written: Gauge,
    /// Their bytes and those of the files that are being written.
    bytes_written: Gauge,
}

impl Progress {
    pub(super) fn note(&self, (files, bytes): (usize, u64)) {
        self.files_written.set(files);
        self.bytes_written
            .set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// What became of the old files.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) removed: Vec<Remove>,
    /// New rows and rows with new values.
    pub(super) rows_written: u64,
    /// Those of `rows_written` that were there before.
    pub(super) rows_updated: u64,
    pub(super) rows_gone: u64,
    pub(super) rows_copied: u64,
}

pub(super) fn result(
    change: Change,
    written: Written,
    outcome: Outcome,
) -> Result<StatementResult> {
    let Written {
        added,
        changes,
        origins,
    } = written;
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
    if let Some(files) = &changes {
        let name = match change {
            Change::Merge { .. } => "numTargetChangeFilesAdded",
            _ => "numAddedChangeFiles",
        };
        metrics.push((name.to_owned(), files.len() as u64));
    }
    let actions = outcome
        .removed
        .into_iter()
        .map(Action::Remove)
        .chain(added.into_iter().map(Action::Add))
        .chain(changes.into_iter().flatten().map(Action::Cdc))
        .map(|action| {
            serde_json::to_string(&action)
                .map_err(|e| Error::internal("an action as JSON").with_source(e))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(StatementResult {
        actions,
        metrics,
        count,
        origins,
    })
}
