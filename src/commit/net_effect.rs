//! What several winners together did to the table that we read.
//!
//! State is kept per canonical path; the newest action of a path wins. The state after the last
//! winner is compared with our read snapshot:
//!
//! ```text
//!              read version      winner 1        winner 2        net effect
//!   a          live              removed         -               removed
//!   b          -                 added           removed *       nothing
//!   c          -                 added           compacted to d  c is added (its rows live on in d)
//!   e          live              removed         added again     nothing, if nothing differs
//!   f          live              other DV        -               removed, and added
//!                                                                * with dataChange=true
//! ```
//!
//! Metadata, protocol, application transactions and domain metadata have no net effect: they are
//! judged winner by winner and never cancel out.

pub(crate) mod compaction;
mod path_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use deltalake::kernel::{Add, Remove};

use self::path_state::{AddRef, PathState, RemoveRef, Source};
use super::actions::{FileKey, dv_id};
use super::evidence::FileChange;
use super::winner::WinningCommit;
use crate::error::{Error, Result};
use crate::read::snapshot::TableSnapshot;

/// The cumulative effect of the winners since the read version.
///
/// Winners are applied once each, in order; every touched path is judged anew when it is asked
/// for, since a later winner may change what an earlier one meant.
#[derive(Debug, Clone)]
pub struct NetEffect {
    snapshot: Arc<TableSnapshot>,
    /// Positions in `snapshot.files`, ordered by path; built when the first winner comes.
    by_path: Option<Vec<usize>>,
    winners: Vec<Winner>,
    paths: BTreeMap<String, PathState>,
    compactions: Vec<Compaction>,
}

#[derive(Debug, Clone)]
struct Winner {
    commit: Arc<WinningCommit>,
    changes_data: bool,
}

/// A believed compaction: its winner, and its added files as positions in the winner's adds.
#[derive(Debug, Clone)]
struct Compaction {
    winner: usize,
    adds: Vec<usize>,
}

/// A path whose rows may be new to us.
#[derive(Debug, Clone)]
pub struct AddedFile<'a> {
    /// Canonical path.
    pub path: &'a str,
    /// Every add of the path by a winner, with that winner. Never empty.
    pub adds: Vec<(&'a WinningCommit, &'a Add)>,
    /// Whether every one of these winners is a blind append that may be ordered after us.
    pub blind: bool,
}

/// A file of our snapshot that is gone, or not what it was.
#[derive(Debug, Clone)]
pub struct RemovedFile<'a> {
    /// Canonical path.
    pub path: &'a str,
    /// The winner to name: the one whose removal counts most.
    pub winner: &'a WinningCommit,
    /// Whether only believed compactions removed it and their output is still there: then its rows
    /// are unchanged, and a transaction that only read it does not mind.
    pub rows_kept: bool,
}

/// A path that winners touched, and whose rows are in the end what they were.
#[derive(Debug, Clone)]
pub struct SettledFile<'a> {
    /// Canonical path.
    pub path: &'a str,
    /// The last winner that touched it.
    pub winner: &'a WinningCommit,
    /// What that winner did.
    pub change: FileChange,
    /// Its last add by a winner.
    pub add: Option<&'a Add>,
    /// Whether a winner undid what another one did; else rows only moved between files.
    pub undone: bool,
}

impl NetEffect {
    /// No winner yet.
    pub fn new(snapshot: Arc<TableSnapshot>) -> Self {
        Self {
            snapshot,
            by_path: None,
            winners: Vec::new(),
            paths: BTreeMap::new(),
            compactions: Vec::new(),
        }
    }

    /// The snapshot that everything is compared with.
    pub fn snapshot(&self) -> &Arc<TableSnapshot> {
        &self.snapshot
    }

    /// The last version applied; the read version before the first winner.
    pub fn last_version(&self) -> u64 {
        self.winners
            .last()
            .map_or(self.snapshot.version, |winner| winner.commit.version)
    }

    /// The winners, in order.
    pub fn winners(&self) -> impl ExactSizeIterator<Item = &WinningCommit> {
        self.winners.iter().map(|winner| winner.commit.as_ref())
    }

    /// Adds the next winner.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if it is not the version after
    /// [`Self::last_version`]: what lies between was not seen.
    pub fn apply(&mut self, commit: Arc<WinningCommit>) -> Result<()> {
        let expected = self.last_version().checked_add(1);
        if expected != Some(commit.version) {
            return Err(Error::unavailable(format!(
                "the log has a gap: version {} follows version {}",
                commit.version,
                self.last_version()
            )));
        }
        self.load_touched(&commit);
        let compaction = compaction::believe(self, &commit).map(|adds| {
            self.compactions.push(Compaction {
                winner: self.winners.len(),
                adds,
            });
            self.compactions.len() - 1
        });
        let mut changes_data = commit.actions.declares_data_change();
        self.mark_ambiguous(&commit);
        self.winners.push(Winner {
            commit: Arc::clone(&commit),
            changes_data: false,
        });
        let winner = self.winners.len() - 1;
        for remove in &commit.actions.removes {
            self.apply_remove(winner, remove, compaction);
            changes_data |= compaction.is_none();
        }
        for (position, add) in commit.actions.adds.iter().enumerate() {
            let changed = self.apply_add(winner, position, add, compaction.is_some());
            changes_data |= changed && compaction.is_none();
        }
        if let Some(last) = self.winners.last_mut() {
            last.changes_data = changes_data;
        }
        Ok(())
    }

    /// Files that are live and were not, unchanged, at the read version, in order of path; also
    /// files added and then compacted away, since their rows live on.
    pub fn added(&self) -> Vec<AddedFile<'_>> {
        let blind = self.blind_winners();
        self.paths
            .iter()
            .filter(|(_, state)| state.adds_rows(self.is_unchanged(state)))
            .map(|(path, state)| AddedFile {
                path,
                adds: state
                    .adds
                    .iter()
                    .filter_map(|add| {
                        let commit = self.winners[add.winner].commit.as_ref();
                        Some((commit, commit.actions.adds.get(add.position)?))
                    })
                    .collect(),
                blind: state
                    .adds
                    .iter()
                    .all(|add| blind.get(add.winner).copied().unwrap_or(false)),
            })
            .collect()
    }

    /// Files of the snapshot that are not live, unchanged, any more, in order of path.
    pub fn removed(&self) -> Vec<RemovedFile<'_>> {
        let intact = self.intact_compactions();
        let is_intact = |remove: &RemoveRef| {
            remove
                .compaction
                .is_some_and(|compaction| intact[compaction])
        };
        self.paths
            .iter()
            .filter(|(_, state)| {
                state.at_read.is_some() && (state.ambiguous || !self.is_unchanged(state))
            })
            .filter_map(|(path, state)| {
                let rows_kept = !state.ambiguous
                    && !state.replaced
                    && !state.removes.is_empty()
                    && state.removes.iter().all(is_intact);
                let strictest = state
                    .removes
                    .iter()
                    .find(|remove| !is_intact(remove))
                    .or(state.removes.first())
                    .map(|remove| remove.winner);
                let winner = strictest.or(state.adds.first().map(|add| add.winner))?;
                Some(RemovedFile {
                    path,
                    winner: self.winners[winner].commit.as_ref(),
                    rows_kept,
                })
            })
            .collect()
    }

    /// Paths that winners touched and that are neither among the [added](Self::added) files nor
    /// among the [removed](Self::removed) ones, in order of path.
    pub fn settled(&self) -> Vec<SettledFile<'_>> {
        self.paths
            .iter()
            .filter_map(|(path, state)| {
                let unchanged = self.is_unchanged(state);
                let is_removed = state.at_read.is_some() && (state.ambiguous || !unchanged);
                if state.adds_rows(unchanged) || is_removed {
                    return None;
                }
                let last_add = state.adds.last();
                let last_remove = state.removes.last().map(|remove| remove.winner);
                let (winner, change) = match (last_add.map(|add| add.winner), last_remove) {
                    (Some(added), Some(removed)) if removed > added => {
                        (removed, FileChange::Removed)
                    }
                    (Some(added), _) => (added, FileChange::Added),
                    // It removed nothing.
                    (None, _) => return None,
                };
                let in_compactions = state
                    .removes
                    .iter()
                    .all(|remove| remove.compaction.is_some());
                Some(SettledFile {
                    path,
                    winner: self.winners.get(winner)?.commit.as_ref(),
                    change,
                    add: last_add.and_then(|add| self.add_of(Source::Winner(*add))),
                    undone: !state.removes.is_empty() && !in_compactions,
                })
            })
            .collect()
    }

    /// The file at `path` as it was at the read version, if a winner touched it.
    pub fn read_file(&self, path: &str) -> Option<&Add> {
        self.add_of(self.paths.get(path)?.at_read?)
    }

    /// By winner: whether it is a blind append that may be ordered after us.
    ///
    /// That is not so if a later winner that changes data and is not blind itself may have seen
    /// the append: ordered after the append, and possibly before us, it would close a cycle.
    fn blind_winners(&self) -> Vec<bool> {
        let mut blind = vec![false; self.winners.len()];
        // The newest version that a later changer of data may have read.
        let mut seen_until: Option<u64> = None;
        for (position, winner) in self.winners.iter().enumerate().rev() {
            let commit = &winner.commit;
            if commit.is_believed_blind() {
                blind[position] = seen_until.is_none_or(|seen| seen < commit.version);
            } else if winner.changes_data {
                seen_until = seen_until.max(Some(commit.info.read_version.unwrap_or(u64::MAX)));
            }
        }
        blind
    }

    /// By compaction: whether all rows it wrote are still there, followed through later ones.
    fn intact_compactions(&self) -> Vec<bool> {
        let mut intact = vec![false; self.compactions.len()];
        // Later ones first: whether one is intact depends on later ones alone.
        for (position, compaction) in self.compactions.iter().enumerate().rev() {
            let commit = &self.winners[compaction.winner].commit;
            intact[position] = compaction.adds.iter().all(|&add| {
                let Some(add) = commit.actions.adds.get(add) else {
                    return false;
                };
                let Some(state) = self.paths.get(&add.path) else {
                    return false;
                };
                if state.ambiguous || state.replaced {
                    return false;
                }
                if state
                    .live
                    .and_then(|live| self.add_of(live))
                    .is_some_and(|live| same_content(live, add))
                {
                    return true;
                }
                let mut later = state
                    .removes
                    .iter()
                    .filter(|remove| remove.winner > compaction.winner)
                    .peekable();
                later.peek().is_some()
                    && later.all(|remove| remove.compaction.is_some_and(|next| intact[next]))
            });
        }
        intact
    }

    fn is_unchanged(&self, state: &PathState) -> bool {
        match (state.at_read, state.live) {
            (Some(before), Some(now)) => match (self.add_of(before), self.add_of(now)) {
                (Some(before), Some(now)) => same_content(before, now),
                _ => false,
            },
            _ => false,
        }
    }

    fn apply_remove(&mut self, winner: usize, remove: &Remove, compaction: Option<usize>) {
        let dv = remove.deletion_vector.as_ref().map(dv_id);
        let Some(state) = self.paths.get(&remove.path) else {
            return;
        };
        let live_dv = state
            .live
            .and_then(|live| self.add_of(live))
            .map(|live| live.deletion_vector.as_ref().map(dv_id));
        let Some(state) = self.paths.get_mut(&remove.path) else {
            return;
        };
        match live_dv {
            Some(live_dv) if live_dv == dv => state.remove_live(remove.data_change),
            // By the protocol this removes nothing, but it was hardly meant that way.
            Some(_) => state.ambiguous = true,
            None => {}
        }
        state.removes.push(RemoveRef { winner, compaction });
    }

    /// Applies an add; whether it changed the path's state.
    fn apply_add(
        &mut self,
        winner: usize,
        position: usize,
        add: &Add,
        in_compaction: bool,
    ) -> bool {
        let Some(state) = self.paths.get(&add.path) else {
            return true;
        };
        let was_live = state.live.is_some();
        let unchanged = state
            .live
            .and_then(|live| self.add_of(live))
            .is_some_and(|live| same_content(live, add));
        let Some(state) = self.paths.get_mut(&add.path) else {
            return true;
        };
        state.adds.push(AddRef { winner, position });
        if unchanged {
            return false;
        }
        state.replaced |= was_live;
        state.pending |= !in_compaction;
        state.live = Some(Source::Winner(AddRef { winner, position }));
        true
    }

    /// A commit that adds and removes the same (path, deletion vector) has no defined order; the
    /// path counts as added and as removed from now on.
    fn mark_ambiguous(&mut self, commit: &WinningCommit) {
        for key in added_and_removed(commit) {
            if let Some(state) = self.paths.get_mut(&key.path) {
                state.ambiguous = true;
            }
        }
    }

    /// Makes the state of every path that `commit` touches.
    fn load_touched(&mut self, commit: &WinningCommit) {
        let files = &self.snapshot.files;
        let by_path = self.by_path.get_or_insert_with(|| {
            let mut positions: Vec<usize> = (0..files.len()).collect();
            positions.sort_unstable_by(|a, b| files[*a].path.cmp(&files[*b].path));
            positions
        });
        let touched = commit
            .actions
            .adds
            .iter()
            .map(|add| &add.path)
            .chain(commit.actions.removes.iter().map(|remove| &remove.path));
        for path in touched {
            if self.paths.contains_key(path) {
                continue;
            }
            let start = by_path.partition_point(|position| files[*position].path < *path);
            let mut live = by_path[start..]
                .iter()
                .copied()
                .take_while(|position| files[*position].path == *path);
            let at_read = live.next().map(Source::Snapshot);
            let state = PathState {
                at_read,
                live: at_read,
                // Two live files of one path contradict the protocol: believe neither.
                ambiguous: live.next().is_some(),
                ..PathState::default()
            };
            self.paths.insert(path.clone(), state);
        }
    }

    fn add_of(&self, source: Source) -> Option<&Add> {
        match source {
            Source::Snapshot(position) => self.snapshot.files.get(position).map(Arc::as_ref),
            Source::Winner(add) => self
                .winners
                .get(add.winner)?
                .commit
                .actions
                .adds
                .get(add.position),
        }
    }

    /// The add of `path` that is live after the last winner.
    fn live(&self, path: &str) -> Option<&Add> {
        self.add_of(self.paths.get(path)?.live?)
    }
}

/// The keys that a commit both adds and removes.
fn added_and_removed(commit: &WinningCommit) -> Vec<FileKey> {
    if commit.actions.removes.is_empty() || commit.actions.adds.is_empty() {
        return Vec::new();
    }
    let removed: std::collections::HashSet<FileKey> = commit
        .actions
        .removes
        .iter()
        .map(FileKey::of_remove)
        .collect();
    commit
        .actions
        .adds
        .iter()
        .map(FileKey::of_add)
        .filter(|key| removed.contains(key))
        .collect()
}

/// Whether two adds of one path describe the same file: deletion vector, size, modification time
/// and partition values. Statistics and tags do not count.
fn same_content(a: &Add, b: &Add) -> bool {
    a.deletion_vector.as_ref().map(dv_id) == b.deletion_vector.as_ref().map(dv_id)
        && a.size == b.size
        && a.modification_time == b.modification_time
        && a.partition_values == b.partition_values
}

#[cfg(test)]
mod tests;
