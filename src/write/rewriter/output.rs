//! Where the rows of a rewrite go: data files and, for a table with a change data feed, the record of
//! what changed.

use arrow::array::RecordBatch;
use datafusion::common::Result as DFResult;
use deltalake::kernel::{Add, AddCDCFile};

use super::report::Progress;
use super::rows::{by_file, table_columns};
use crate::error::Result;
use crate::read::clustering::clustering_columns;
use crate::read::row_origins::RowOrigins;
use crate::write::change_data::{ChangeFiles, ChangeType, FeedRecord};
use crate::write::file_writer::{FileWriters, RowSources};
use crate::write::rewrite::{Change, RewriteTarget};

/// The files of one rewrite. Until they are handed over, dropping it deletes them.
pub(super) struct Output {
    data: FileWriters,
    changes: Option<ChangeFiles>,
    notes_origins: bool,
    progress: Progress,
}

/// What a rewrite wrote.
pub(super) struct Written {
    pub(super) added: Vec<Add>,
    /// The change files; none where the feed needs none.
    pub(super) changes: Option<Vec<AddCDCFile>>,
    /// Where the rows of the added files come from, by path, if that is noted.
    pub(super) origins: Vec<(String, RowOrigins)>,
}

impl Output {
    pub(super) async fn new(
        target: &RewriteTarget,
        change: Change,
        progress: Progress,
    ) -> Result<Self> {
        let snapshot = &target.snapshot;
        let mut data = FileWriters::try_new(
            target.handle.object_store(),
            &snapshot.schema,
            &snapshot.metadata,
        )?
        .with_clustering(&clustering_columns(&target.handle, snapshot).await?)?;
        let notes_origins = target.feed == FeedRecord::Origins;
        if notes_origins {
            data = data.noting_origins();
        }
        let changes = if target.feed == FeedRecord::ChangeFiles && may_rewrite(change) {
            Some(ChangeFiles::try_new(&target.handle, snapshot)?)
        } else {
            None
        };
        Ok(Self {
            data,
            changes,
            notes_origins,
            progress,
        })
    }

    /// Whether copied rows are wanted with their positions.
    pub(super) fn notes_origins(&self) -> bool {
        self.notes_origins
    }

    /// Writes new rows, which have the table's columns.
    pub(super) async fn insert(&mut self, rows: &RecordBatch) -> Result<()> {
        self.data.write(None, rows).await?;
        self.progress.note(self.data.progress());
        match &mut self.changes {
            Some(changes) => changes.write(ChangeType::Insert, rows).await,
            None => Ok(()),
        }
    }

    /// Writes rows with new values, which have the table's columns, then their positions.
    pub(super) async fn update(&mut self, rows: &RecordBatch) -> Result<()> {
        for (file, rows) in by_file(rows)? {
            let values = table_columns(&rows)?;
            let sources = self
                .notes_origins
                .then(|| RowSources::of(&rows, true))
                .transpose()?;
            self.data
                .write_from(Some(file), &values, sources.as_ref())
                .await?;
            self.progress.note(self.data.progress());
            if let Some(changes) = &mut self.changes {
                changes.write(ChangeType::Postimage, &values).await?;
            }
        }
        Ok(())
    }

    /// Writes rows of `file` that stay as they are; with their positions where those are
    /// [noted](Output::notes_origins).
    pub(super) async fn copy(&mut self, file: u32, rows: &RecordBatch) -> Result<()> {
        if self.notes_origins {
            let sources = RowSources::of(rows, false)?;
            let values = table_columns(rows)?;
            self.data
                .write_from(Some(file), &values, Some(&sources))
                .await?;
        } else {
            self.data.write(Some(file), rows).await?;
        }
        self.progress.note(self.data.progress());
        Ok(())
    }

    /// The files of the feed, if changes go there.
    pub(super) fn changes(&mut self) -> Option<&mut ChangeFiles> {
        self.changes.as_mut()
    }

    /// Deletes the change files: added and removed files tell the changes as well.
    pub(super) async fn drop_changes(&mut self) {
        if let Some(changes) = self.changes.take() {
            changes.abort().await;
        }
    }

    /// Completes all files and hands them over.
    pub(super) async fn finish(mut self) -> DFResult<Written> {
        // All files are its own until the last one is complete.
        self.data.complete().await?;
        self.progress.note(self.data.progress());
        if let Some(changes) = &mut self.changes {
            changes.complete().await?;
        }
        let (added, origins) = self.data.hand_over();
        Ok(Written {
            added,
            changes: self.changes.map(ChangeFiles::hand_over),
            origins,
        })
    }

    /// Deletes what was written, as well as that goes.
    pub(super) async fn abort(self) {
        self.data.abort().await;
        if let Some(changes) = self.changes {
            changes.abort().await;
        }
    }
}

/// Whether rows of a file may change or go while others of it stay.
fn may_rewrite(change: Change) -> bool {
    match change {
        Change::Append | Change::Replace | Change::Truncate => false,
        Change::Update | Change::Delete => true,
        Change::Merge { changes_rows, .. } => changes_rows,
    }
}
