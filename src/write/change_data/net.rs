//! The change files of a transaction, written when it commits.
//!
//! Rows that are the same row are told by where they come from. What is read again are the rows that
//! changed, once as the transaction found them and once as it leaves them: a row that was changed
//! twice has one image before and one after, one that was inserted and changed is inserted, and one
//! that was inserted and deleted never was. Memory goes by positions, rows stream.

use std::sync::Arc;

use datafusion::common::Result as DFResult;
use datafusion::execution::TaskContext;
use deltalake::kernel::AddCDCFile;
use roaring::RoaringTreemap;

use super::{ChangeFiles, ChangeType};
use crate::error::{Error, Result};
use crate::read::deletion_vector::hidden_rows;
use crate::read::footer::rows_in;
use crate::read::row_origins::{NetRows, RemainingRows};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;
use crate::write::table_rows::TableRows;

/// Writes the change files for what a transaction did to the `rows` of a table, which it found as
/// `base` and leaves as `view`. If that fails, none is left behind.
pub(crate) async fn write_net_change(
    handle: &Arc<TableHandle>,
    [base, view]: [&Arc<TableSnapshot>; 2],
    rows: &NetRows,
    context: &Arc<TaskContext>,
) -> DFResult<Vec<AddCDCFile>> {
    let mut files = ChangeFiles::try_new(handle, view)?;
    match write(&mut files, handle, [base, view], rows, context).await {
        Ok(()) => Ok(files.hand_over()),
        Err(error) => {
            files.abort().await;
            Err(error)
        }
    }
}

async fn write(
    files: &mut ChangeFiles,
    handle: &Arc<TableHandle>,
    [base, view]: [&Arc<TableSnapshot>; 2],
    rows: &NetRows,
    context: &Arc<TaskContext>,
) -> DFResult<()> {
    let before = TableRows::new(handle, base, context);
    let removed = rows.removed();
    let indices = removed.keys().map(|file| *file as usize);
    let hidden = hidden_rows(handle, base, indices).await?;
    for (file, remaining) in removed {
        let add = before.file(*file)?;
        let (total, mut gone) = match hidden.get(&(*file as usize)) {
            Some(hidden) => (hidden.total, all_rows(hidden.total) - &hidden.rows),
            None => {
                let total = rows_in(handle, add).await?;
                (total, all_rows(total))
            }
        };
        check_visible(remaining, &gone, &add.path)?;
        gone -= &remaining.copied;
        gone -= &remaining.changed;
        for (kind, rows) in [
            (ChangeType::Preimage, &remaining.changed),
            (ChangeType::Delete, &gone),
        ] {
            files.copy(kind, &before, (*file, total), rows).await?;
        }
    }
    let after = TableRows::new(handle, view, context);
    for (file, new) in rows.written() {
        for (kind, rows) in [
            (ChangeType::Postimage, &new.changed),
            (ChangeType::Insert, &new.inserted),
        ] {
            files.copy(kind, &after, (*file, new.total), rows).await?;
        }
    }
    Ok(files.complete().await?)
}

fn all_rows(total: u64) -> RoaringTreemap {
    let mut rows = RoaringTreemap::new();
    rows.insert_range(0..total);
    rows
}

/// A row cannot come from one that was not there, nor be there both changed and unchanged.
fn check_visible(remaining: &RemainingRows, visible: &RoaringTreemap, path: &str) -> Result<()> {
    let sound = remaining.copied.is_subset(visible)
        && remaining.changed.is_subset(visible)
        && remaining.copied.is_disjoint(&remaining.changed);
    if sound {
        return Ok(());
    }
    Err(Error::internal(format!(
        "rows of a transaction come from rows of {path} that were not there"
    )))
}
