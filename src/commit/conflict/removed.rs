//! Files that winners removed or changed, against the files we read and the files we remove.

use std::collections::HashSet;

use deltalake::kernel::Add;

use super::findings::{Cause, Findings, Found, Listed};
use super::{Asked, CheckInput, ConflictKind};
use crate::commit::actions::dv_id;
use crate::commit::evidence::FileChange;
use crate::commit::net_effect::RemovedFile;
use crate::read::read_set::ReadScope;
use crate::reason::{Reason, ReasonCode};

/// `operation` of commits that change single rows. Others (WRITE, TRUNCATE) replace what was there.
const ROW_LEVEL_OPERATIONS: [&str; 3] = ["UPDATE", "DELETE", "MERGE"];

pub(super) fn check<'a>(input: &CheckInput<'a>, asked: &Asked<'_>, findings: &mut Findings<'a>) {
    let ours: HashSet<&str> = input
        .actions
        .removes
        .iter()
        .map(|remove| remove.path.as_str())
        .collect();
    let whole_table = asked.whole_table();
    for file in input.net_effect.removed() {
        let is_ours = ours.contains(file.path);
        // What we remove we have read, whether a statement said so or not.
        let reader = whole_table.map(Some).or_else(|| {
            input
                .reads
                .reads()
                .iter()
                .filter(|read| !matches!(read.scope, ReadScope::Nothing))
                .position(|read| read.files.contains(file.path))
                .map(Some)
                .or(is_ours.then_some(None))
        });
        let add = input.net_effect.read_file(file.path);
        let mut found = Vec::new();
        if let Some(read) = reader
            && !file.rows_kept
        {
            let reason = if is_ours {
                of_both(&file, add)
            } else {
                Reason::new(
                    ReasonCode::ReadFileRemoved,
                    "the file was read and is not what it was",
                )
            };
            found.push((
                ConflictKind::ConcurrentDeleteRead,
                Cause::File(reason, read, add),
            ));
        }
        if is_ours {
            let read = reader.flatten();
            found.push((
                ConflictKind::ConcurrentDeleteDelete,
                Cause::File(of_both(&file, add), read, add),
            ));
        }
        let listed = match found.first() {
            Some((_, cause)) => cause.clone(),
            None if reader.is_some() => Cause::Reason(Reason::new(
                ReasonCode::NoDataChange,
                "the winner moved the rows of the file to other files and changed none",
            )),
            None => Cause::Reason(Reason::new(
                ReasonCode::NotRead,
                "the file was neither read nor removed",
            )),
        };
        let kept = !found.is_empty();
        findings.list(|| Listed {
            winner: file.winner,
            path: file.path,
            change: FileChange::Removed,
            add,
            kept,
            cause: listed,
        });
        for (kind, cause) in found {
            findings.conflict(Found {
                kind,
                winner: file.winner,
                path: Some(file.path),
                cause,
            });
        }
    }
}

/// Why a file that we remove or rewrite, and that was `read`, is no longer what it was.
fn of_both(file: &RemovedFile<'_>, read: Option<&Add>) -> Reason {
    if changes_rows(file, read) {
        Reason::new(
            ReasonCode::RowLevelChange,
            "the winner changed rows of the file, which this transaction removes or rewrites",
        )
    } else {
        Reason::new(ReasonCode::BothRemoved, "both remove or rewrite the file")
    }
}

/// Whether the winner is known to have changed rows of `file` rather than to have removed it as a
/// whole: it gave the file another deletion vector, or it is a statement that changes single rows
/// and has written rows to the partition of the file.
fn changes_rows(file: &RemovedFile<'_>, read: Option<&Add>) -> bool {
    let Some(read) = read else {
        return false;
    };
    let by_row = file
        .winner
        .info
        .operation
        .as_deref()
        .is_some_and(|operation| ROW_LEVEL_OPERATIONS.contains(&operation));
    let vector = |add: &Add| add.deletion_vector.as_ref().map(dv_id);
    file.winner.actions.adds.iter().any(|add| {
        let other_vector = add.path == file.path && vector(add) != vector(read);
        other_vector || by_row && add.data_change && add.partition_values == read.partition_values
    })
}
