//! One table in a transaction: the version that was pinned, and what the transaction made of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use deltalake::kernel::{Add, Remove};
use object_store::path::Path;

use super::feed::{self, origins_in_base};
use crate::commit::actions::{Actions, FileKey};
use crate::commit::transaction::Operation;
use crate::error::{Error, Result};
use crate::read::change_data::has_change_data_feed;
use crate::read::path::FileLocation;
use crate::read::row_origins::{NetRows, RowOrigins};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::TableHandle;
use crate::storage::UncommittedFiles;

/// A table as a transaction sees it.
#[derive(Debug, Clone)]
pub struct PinnedTable {
    /// The version that was pinned at the first mention.
    pub base: Arc<TableSnapshot>,
    /// The same with the transaction's own changes: its files go into no other one's view.
    pub view: Arc<TableSnapshot>,
}

/// A table and its uncommitted changes.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) handle: Arc<TableHandle>,
    pub(super) pinned: PinnedTable,
    /// Files of ours that are live in the view.
    adds: Vec<Add>,
    /// Files of the base that are not live in the view.
    removes: Vec<Remove>,
    /// Every file that was written, whether or not it is still live.
    written: Vec<String>,
    /// Where the rows of the files of ours come from, by path, if the table has a change data feed.
    feed: Option<HashMap<String, RowOrigins>>,
    /// Whether all rows count as read, whatever the statements recorded.
    pub(super) reads_all: bool,
    /// The statements that changed the table, in order.
    pub(super) operations: Vec<Operation>,
}

impl OpenTable {
    pub(super) fn new(handle: Arc<TableHandle>, base: Arc<TableSnapshot>) -> Self {
        Self {
            feed: has_change_data_feed(&base.metadata).then(HashMap::new),
            handle,
            pinned: PinnedTable {
                view: Arc::clone(&base),
                base,
            },
            adds: Vec::new(),
            removes: Vec::new(),
            written: Vec::new(),
            reads_all: false,
            operations: Vec::new(),
        }
    }

    /// Applies the actions of one statement that was run on the view: all of them or none.
    ///
    /// # Errors
    ///
    /// `Internal` if a file is removed that is not live in the view, and if it is not known where the
    /// rows of a new one come from though the table's feed needs it.
    pub(super) fn apply(
        &mut self,
        actions: Actions,
        mut origins: HashMap<String, RowOrigins>,
    ) -> Result<()> {
        let gone: HashSet<FileKey> = actions.removes.iter().map(FileKey::of_remove).collect();
        let view = &self.pinned.view;
        let mut live: Vec<Arc<Add>> = view
            .files
            .iter()
            .filter(|add| !gone.contains(&FileKey::of_add(add)))
            .map(Arc::clone)
            .collect();
        if view.files.len() - live.len() != actions.removes.len() {
            return Err(Error::internal(
                "a statement of a transaction removes a file that is not there",
            ));
        }
        live.extend(actions.adds.iter().cloned().map(Arc::new));
        if let Some(known) = &mut self.feed {
            let new = origins_in_base(&self.pinned, known, &actions.adds, &mut origins)?;
            let gone: HashSet<&str> = gone.iter().map(|key| key.path.as_str()).collect();
            known.retain(|path, _| !gone.contains(path.as_str()));
            known.extend(new);
        }

        // A file that no version holds just vanishes.
        let own: HashSet<FileKey> = self.adds.iter().map(FileKey::of_add).collect();
        let of_base = |remove: &Remove| !own.contains(&FileKey::of_remove(remove));
        self.removes
            .extend(actions.removes.into_iter().filter(of_base));
        self.adds
            .retain(|add| !gone.contains(&FileKey::of_add(add)));
        self.written
            .extend(new_paths(&self.pinned.base, &actions.adds));
        self.adds.extend(actions.adds);
        self.pinned.view = Arc::new(TableSnapshot {
            files: live.into(),
            ..view.as_ref().clone()
        });
        Ok(())
    }

    /// Whether the view differs from the base.
    pub(super) fn is_changed(&self) -> bool {
        !(self.adds.is_empty() && self.removes.is_empty())
    }

    /// The net change.
    pub(super) fn actions(&self) -> Actions {
        Actions {
            adds: self.adds.clone(),
            removes: self.removes.clone(),
            ..Actions::default()
        }
    }

    /// What became of the base's rows, if the table has a change data feed that needs it in change
    /// files: added and removed files do not say it where rows are the same rows, nor to every reader
    /// where a removed file has a deletion vector.
    ///
    /// # Errors
    ///
    /// `Internal` if the notes of the statements contradict each other.
    pub(super) fn rows_for_feed(&self) -> Result<Option<NetRows>> {
        let Some(origins) = &self.feed else {
            return Ok(None);
        };
        let rows = feed::net_rows(&self.pinned, &self.adds, &self.removes, origins)?;
        let mut removes = self.removes.iter();
        let told_by_files =
            rows.is_told_by_files() && removes.all(|remove| remove.deletion_vector.is_none());
        Ok((!told_by_files).then_some(rows))
    }

    /// The counters of all statements together; files are counted as they are in the end.
    pub(super) fn metrics(&self) -> BTreeMap<String, u64> {
        let mut metrics = BTreeMap::new();
        for operation in &self.operations {
            for (name, value) in &operation.metrics {
                *metrics.entry(name.clone()).or_insert(0) += value;
            }
        }
        metrics.insert("numAddedFiles".to_owned(), self.adds.len() as u64);
        metrics.insert("numRemovedFiles".to_owned(), self.removes.len() as u64);
        metrics
    }

    /// All files that were written.
    pub(super) fn written(&self) -> UncommittedFiles {
        self.files(|_| true)
    }

    /// The files that were written and are in the view.
    pub(super) fn live(&self) -> UncommittedFiles {
        let live = self.live_paths();
        self.files(|path| live.contains(path))
    }

    /// The files that were written and are of no use any more.
    pub(super) fn superseded(&self) -> UncommittedFiles {
        let live = self.live_paths();
        self.files(|path| !live.contains(path))
    }

    fn live_paths(&self) -> HashSet<&str> {
        self.adds.iter().map(|add| add.path.as_str()).collect()
    }

    fn files(&self, wanted: impl Fn(&str) -> bool) -> UncommittedFiles {
        let written = self.written.iter().map(String::as_str);
        let paths = self.paths_of(written.filter(|path| wanted(path)));
        UncommittedFiles::new(self.handle.object_store(), paths)
    }

    /// Where the files with these paths lie in the table's store.
    pub(super) fn paths_of<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Vec<Path> {
        let root = self.handle.log_store().root_url();
        paths
            .filter_map(|path| FileLocation::of(root, path).ok())
            .map(|location| location.path().clone())
            .collect()
    }
}

/// The files that `adds` brought into being: those that the base does not have, since an add may
/// also give a file of the base a deletion vector.
pub(super) fn new_paths(base: &TableSnapshot, adds: &[Add]) -> Vec<String> {
    let mut new: HashSet<&str> = adds.iter().map(|add| add.path.as_str()).collect();
    for file in base.files.iter() {
        new.remove(file.path.as_str());
    }
    new.into_iter().map(str::to_owned).collect()
}
