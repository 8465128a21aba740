//! The change data feed of a transaction: what became of each row, and who writes it down.
//!
//! Each statement says where the rows of its files come from, in the view that it ran on. That is
//! carried back to the base at once, so that at `COMMIT` the rows that are still there, those with
//! new values and the new ones are known by position.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use deltalake::kernel::{Add, AddCDCFile, Remove};

use super::table::PinnedTable;
use crate::commit::actions::FileKey;
use crate::error::{Error, Result};
use crate::read::row_origins::{NetRows, RowOrigins, Source};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;

/// What a transaction did to a table, as far as its change data feed goes.
#[derive(Debug, Clone, Copy)]
pub struct NetChange<'a> {
    /// The table.
    pub handle: &'a Arc<TableHandle>,
    /// The table as the transaction found it.
    pub base: &'a Arc<TableSnapshot>,
    /// The table as the transaction leaves it.
    pub view: &'a Arc<TableSnapshot>,
    /// What became of the rows.
    pub rows: &'a NetRows,
}

/// Writes the change files of a transaction: reading and writing rows is not for a commit to know.
#[async_trait]
pub trait ChangeDataWriter: fmt::Debug + Send + Sync {
    /// Writes the change files for `change` and hands them over. If that fails, none is left behind.
    ///
    /// # Errors
    ///
    /// Those of reading rows of the table and of writing files.
    async fn write(&self, change: NetChange<'_>) -> Result<Vec<AddCDCFile>>;
}

/// Where the rows of the files `adds` come from in the base; `origins` says where in the view of
/// `pinned`, and `known` where the rows of the files come from that are the transaction's own.
///
/// # Errors
///
/// `Internal` if that is not known of one of the files.
pub(super) fn origins_in_base(
    pinned: &PinnedTable,
    known: &HashMap<String, RowOrigins>,
    adds: &[Add],
    origins: &mut HashMap<String, RowOrigins>,
) -> Result<Vec<(String, RowOrigins)>> {
    let base = indices(&pinned.base);
    let source = |file: u32| {
        let add = pinned
            .view
            .files
            .get(file as usize)
            .ok_or_else(|| Error::internal(format!("no file number {file}")))?;
        if let Some(origins) = known.get(&add.path) {
            return Ok(Source::Written(origins));
        }
        index(&base, &FileKey::of_add(add)).map(Source::Base)
    };
    adds.iter()
        .map(|add| {
            let origins = origins
                .remove(&add.path)
                .ok_or_else(|| unknown(&add.path))?;
            Ok((add.path.clone(), origins.resolved(source)?))
        })
        .collect()
}

/// What became of the rows of the base of `pinned`: the files `removes` of it are gone, and the
/// files `adds`, whose rows come from `origins`, are in the view.
///
/// # Errors
///
/// `Internal` if that does not fit together.
pub(super) fn net_rows(
    pinned: &PinnedTable,
    adds: &[Add],
    removes: &[Remove],
    origins: &HashMap<String, RowOrigins>,
) -> Result<NetRows> {
    let base = indices(&pinned.base);
    let removed = removes
        .iter()
        .map(|remove| index(&base, &FileKey::of_remove(remove)))
        .collect::<Result<Vec<_>>>()?;
    let mut rows = NetRows::of_removed(removed);
    let view = indices(&pinned.view);
    for add in adds {
        let origins = origins.get(&add.path).ok_or_else(|| unknown(&add.path))?;
        rows.add_written(index(&view, &FileKey::of_add(add))?, origins)?;
    }
    Ok(rows)
}

fn indices(snapshot: &TableSnapshot) -> HashMap<FileKey, usize> {
    let files = snapshot.files.iter().enumerate();
    files
        .map(|(index, add)| (FileKey::of_add(add), index))
        .collect()
}

fn index(indices: &HashMap<FileKey, usize>, key: &FileKey) -> Result<u32> {
    indices
        .get(key)
        .and_then(|index| u32::try_from(*index).ok())
        .ok_or_else(|| Error::internal(format!("the file {key} is not in the table")))
}

fn unknown(path: &str) -> Error {
    Error::internal(format!(
        "it is not known where the rows of {path} come from"
    ))
}
