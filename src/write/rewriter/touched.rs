//! The files that a change touches: what stays of their rows is copied, what changed goes into the
//! change data feed, and they are removed.

use datafusion::common::Result as DFResult;
use deltalake::kernel::{Add, Remove};
use roaring::RoaringTreemap;

use super::output::Output;
use super::report::Outcome;
use super::{ChangedRows, Rewriter};
use crate::clock::now_millis;
use crate::error::Error;
use crate::read::deletion_vector::hidden_rows;
use crate::read::footer::rows_in;
use crate::write::change_data::ChangeType;
use crate::write::table_rows::{Chosen, Columns};

/// A file with a changed row.
struct TouchedFile<'a> {
    index: u32,
    changed: &'a RoaringTreemap,
    /// All rows that are not in the table afterwards, hidden ones included.
    gone: RoaringTreemap,
    total: u64,
    /// Whether it has a deletion vector.
    hides_rows: bool,
}

impl TouchedFile<'_> {
    fn stay(&self) -> u64 {
        self.total - self.gone.len()
    }

    /// Whether its removal tells the readers of the feed which rows went. Of a removed file with a
    /// deletion vector deltalake shows the rows that were hidden.
    fn is_told_by_removal(&self) -> bool {
        self.stay() == 0 && !self.hides_rows
    }
}

impl Rewriter {
    /// Removes every touched file; what stays of its rows goes into a new one.
    pub(super) async fn rewrite_files(
        &self,
        output: &mut Output,
        changed: &ChangedRows,
        outcome: &mut Outcome,
    ) -> DFResult<()> {
        let touched = self.touched(changed).await?;
        let told_by_files =
            outcome.rows_updated == 0 && touched.iter().all(TouchedFile::is_told_by_removal);
        if told_by_files {
            output.drop_changes().await;
        }
        for file in &touched {
            if file.stay() > 0 {
                outcome.rows_copied += self.copy(output, file).await?;
                self.metrics.files_rewritten.add(1);
            }
            self.record_old_rows(output, file, changed).await?;
            outcome.removed.push(remove(self.table.file(file.index)?));
        }
        Ok(())
    }

    async fn touched<'a>(&self, changed: &'a ChangedRows) -> DFResult<Vec<TouchedFile<'a>>> {
        let indices = changed.all.files().map(|(file, _)| file as usize);
        let hidden = hidden_rows(&self.target.handle, &self.target.snapshot, indices).await?;
        let mut touched = Vec::new();
        for (index, changed) in changed.all.files() {
            let add = self.table.file(index)?;
            let mut gone = changed.clone();
            let total = match hidden.get(&(index as usize)) {
                Some(hidden) => {
                    if !gone.is_disjoint(&hidden.rows) {
                        let message = format!("a hidden row of {} would be changed", add.path);
                        return Err(Error::internal(message).into());
                    }
                    gone |= &hidden.rows;
                    hidden.total
                }
                // The footer, not the statistics: a wrong number of rows would lose some.
                None => rows_in(&self.target.handle, add).await?,
            };
            if gone.max().is_some_and(|last| last >= total) {
                return Err(Error::internal(format!(
                    "a position beyond the {total} rows of {}",
                    add.path
                ))
                .into());
            }
            touched.push(TouchedFile {
                index,
                changed,
                gone,
                total,
                hides_rows: add.deletion_vector.is_some(),
            });
        }
        Ok(touched)
    }

    async fn copy(&self, output: &mut Output, file: &TouchedFile<'_>) -> DFResult<u64> {
        let columns = if output.notes_origins() {
            Columns::TableAndPositions
        } else {
            Columns::Table
        };
        let stay = Chosen::Without(&file.gone);
        let mut rows = self.table.read(file.index, file.total, stay, columns)?;
        while let Some(batch) = rows.next().await? {
            self.metrics.rows_copied.add(batch.num_rows());
            output.copy(file.index, &batch).await?;
        }
        Ok(file.stay())
    }

    /// The changed rows as they were, for the change data feed.
    async fn record_old_rows(
        &self,
        output: &mut Output,
        file: &TouchedFile<'_>,
        changed: &ChangedRows,
    ) -> DFResult<()> {
        let Some(changes) = output.changes() else {
            return Ok(());
        };
        let none = RoaringTreemap::new();
        let updated = changed.updated.of_file(file.index).unwrap_or(&none);
        let deleted = file.changed - updated;
        for (change, rows) in [
            (ChangeType::Preimage, updated),
            (ChangeType::Delete, &deleted),
        ] {
            let place = (file.index, file.total);
            changes.copy(change, &self.table, place, rows).await?;
        }
        Ok(())
    }
}

pub(super) fn remove(add: &Add) -> Remove {
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
