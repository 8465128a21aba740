//! Files that winners removed or changed, against the files we read and the files we remove.

use std::collections::HashSet;

use super::findings::{Cause, Findings, Found, Listed};
use super::{Asked, CheckInput, ConflictKind};
use crate::commit::evidence::FileChange;
use crate::commit::net_effect::RemovedFile;
use crate::read::read_set::ReadScope;
use crate::reason::{Reason, ReasonCode};

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
            let reason = if is_ours && rewrites(&file) {
                Reason::new(ReasonCode::RowLevelChange, "both change rows of the file")
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
            let reason = if rewrites(&file) {
                Reason::new(ReasonCode::RowLevelChange, "both change rows of the file")
            } else {
                Reason::new(ReasonCode::BothRemoved, "both remove the file")
            };
            let read = reader.flatten();
            found.push((
                ConflictKind::ConcurrentDeleteDelete,
                Cause::File(reason, read, add),
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

/// Whether the winner changed some rows of `file` and put the others elsewhere, or into a deletion
/// vector, rather than remove all of them.
fn rewrites(file: &RemovedFile<'_>) -> bool {
    let adds = &file.winner.actions.adds;
    adds.iter()
        .any(|add| add.data_change || add.path == file.path)
}
