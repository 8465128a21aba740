//! When a commit is believed to rearrange rows without changing any.

use std::collections::HashSet;

use deltalake::kernel::Add;
use serde::Deserialize;

use super::{NetEffect, added_and_removed, same_content};
use crate::commit::actions::FileKey;
use crate::commit::winner::WinningCommit;

/// Whether `commit`, the next winner, is a compaction; if so, the positions of the adds that hold
/// the rows it moved.
///
/// It must both add and remove, with `dataChange=false` throughout and no change data; every file
/// it removes must be live just before it; no file it adds may be live unless the same commit
/// removes it or it is re-added unchanged; and as many live rows must come as go, where the
/// statistics tell.
pub(super) fn believe(before: &NetEffect, commit: &WinningCommit) -> Option<Vec<usize>> {
    let actions = &commit.actions;
    if actions.adds.is_empty()
        || actions.removes.is_empty()
        || actions.declares_data_change()
        || !added_and_removed(commit).is_empty()
    {
        return None;
    }
    let mut rows_removed = Some(0);
    let mut removed_paths = HashSet::new();
    for remove in &actions.removes {
        let live = before.live(&remove.path)?;
        if FileKey::of_add(live).dv != FileKey::of_remove(remove).dv {
            return None;
        }
        // The same remove twice removes its rows once.
        if removed_paths.insert(remove.path.as_str()) {
            rows_removed = sum(rows_removed, live_rows(live));
        }
    }
    let mut rows_added = Some(0);
    let mut added_paths = HashSet::new();
    let mut moved = Vec::new();
    for (position, add) in actions.adds.iter().enumerate() {
        if !added_paths.insert(add.path.as_str()) {
            return None;
        }
        if !removed_paths.contains(add.path.as_str())
            && let Some(live) = before.live(&add.path)
        {
            if same_content(live, add) {
                continue;
            }
            return None;
        }
        rows_added = sum(rows_added, live_rows(add));
        moved.push(position);
    }
    let counts_agree = match (rows_removed, rows_added) {
        (Some(removed), Some(added)) => removed == added,
        _ => true,
    };
    (counts_agree && !moved.is_empty()).then_some(moved)
}

/// Rows of a file that its deletion vector leaves; `None` where the statistics do not tell.
pub(crate) fn live_rows(add: &Add) -> Option<i64> {
    #[derive(Deserialize)]
    struct Counts {
        #[serde(rename = "numRecords")]
        num_records: i64,
    }
    let counts: Counts = serde_json::from_str(add.stats.as_deref()?).ok()?;
    let deleted = add.deletion_vector.as_ref().map_or(0, |dv| dv.cardinality);
    counts
        .num_records
        .checked_sub(deleted)
        .filter(|rows| *rows >= 0)
}

fn sum(total: Option<i64>, rows: Option<i64>) -> Option<i64> {
    total?.checked_add(rows?)
}
