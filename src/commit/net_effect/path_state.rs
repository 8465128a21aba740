//! What is known of one path: at the read version, after the last winner, and what lay between.

/// Where the add that describes a live file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Position in the files of the read snapshot.
    Snapshot(usize),
    /// An add of a winner.
    Winner(AddRef),
}

/// An add of a winner, by position of the winner and of the add in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddRef {
    pub(super) winner: usize,
    pub(super) position: usize,
}

/// A remove by a winner, and the believed compaction it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoveRef {
    pub(super) winner: usize,
    pub(super) compaction: Option<usize>,
}

/// The state of one path and its history since the read version.
#[derive(Debug, Clone, Default)]
pub(super) struct PathState {
    /// The file at the read version.
    pub(super) at_read: Option<Source>,
    /// The file after the last winner.
    pub(super) live: Option<Source>,
    /// Every add, also those that changed nothing.
    pub(super) adds: Vec<AddRef>,
    /// Every remove, also those that removed nothing.
    pub(super) removes: Vec<RemoveRef>,
    /// Rows were added by a change of data and are still in the file.
    pub(super) pending: bool,
    /// Rows were added by a change of data and then moved to another file.
    pub(super) carried: bool,
    /// A live file was added again with other content and without a remove.
    pub(super) replaced: bool,
    /// The actions contradict each other: the path counts as added and as removed for good.
    pub(super) ambiguous: bool,
}

impl PathState {
    /// The live file is removed. Only `dataChange=true` says that its rows are gone; otherwise
    /// they live on elsewhere.
    pub(super) fn remove_live(&mut self, data_change: bool) {
        self.live = None;
        self.carried |= self.pending && !data_change;
        self.pending = false;
    }

    /// Whether rows may be new to us. `unchanged`: the file is what it was at the read version.
    pub(super) fn adds_rows(&self, unchanged: bool) -> bool {
        !self.adds.is_empty() && (self.ambiguous || self.carried || (self.pending && !unchanged))
    }
}
