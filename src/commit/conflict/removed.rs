//! Files that winners removed or changed, against the files we read and the files we remove.

use std::collections::HashSet;

use super::{Asked, CheckInput, ConflictKind, Findings};
use crate::read::read_set::ReadScope;

pub(super) fn check(input: &CheckInput<'_>, asked: &Asked<'_>, findings: &mut Findings) {
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
        let reader = whole_table.map(|read| Some(&read.text)).or_else(|| {
            input
                .reads
                .reads()
                .iter()
                .filter(|read| !matches!(read.scope, ReadScope::Nothing))
                .position(|read| read.files.contains(file.path))
                .map(|position| asked.reads.get(position).map(|read| &read.text))
                .or(is_ours.then_some(None))
        });
        if let Some(read) = reader
            && !file.rows_kept
        {
            findings.conflict(
                ConflictKind::ConcurrentDeleteRead,
                file.winner,
                Some(file.path),
                read,
                "the file was read and is not what it was",
            );
        }
        if is_ours {
            findings.conflict(
                ConflictKind::ConcurrentDeleteDelete,
                file.winner,
                Some(file.path),
                None,
                "both remove the file",
            );
        }
    }
}
