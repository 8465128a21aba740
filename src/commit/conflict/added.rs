//! Files that winners added, against our reads.

use super::findings::{Cause, Findings, Found, Listed};
use super::{Asked, CheckInput, ConflictKind};
use crate::commit::evidence::FileChange;
use crate::commit::isolation::IsolationLevel;
use crate::commit::net_effect::AddedFile;
use crate::read::prune::{Outcome, PruneFile, prune};
use crate::reason::{Reason, ReasonCode};

pub(super) fn check<'a>(input: &CheckInput<'a>, asked: &Asked<'_>, findings: &mut Findings<'a>) {
    let we_change_metadata = input.actions.metadata.is_some();
    let (candidates, left_out): (Vec<AddedFile<'a>>, Vec<_>) =
        input.net_effect.added().into_iter().partition(|file| {
            !asked.reads.is_empty() && input.level.checks_added(file.blind, we_change_metadata)
        });
    for file in &left_out {
        list_left_out(file, input, asked, findings);
    }
    findings.candidates = candidates.len();
    // A file stays open until one read may match it; what no read matches is skipped.
    let mut open: Vec<Open<'_, 'a>> = candidates
        .iter()
        .map(|file| Open {
            file,
            by_partition: true,
        })
        .collect();
    for read in 0..asked.reads.len() {
        open = ask(read, open, asked, findings);
    }
    findings.skipped = open.len();
    findings.skipped_by_partition = open.iter().filter(|open| open.by_partition).count();
}

/// A file that every read so far rules out.
struct Open<'f, 'a> {
    file: &'f AddedFile<'a>,
    /// Whether partition values were enough.
    by_partition: bool,
}

/// Holds `files` against the read at position `read`; returns those that it rules out.
fn ask<'f, 'a>(
    read: usize,
    files: Vec<Open<'f, 'a>>,
    asked: &Asked<'_>,
    findings: &mut Findings<'a>,
) -> Vec<Open<'f, 'a>> {
    let mut decisions = decide(read, &files, asked);
    files
        .into_iter()
        .filter_map(|open| {
            let file = open.file;
            // The decision rests on the first add that is kept, else on the first one.
            let mut chosen = 0;
            let mut kept = false;
            let mut by_partition = open.by_partition;
            for position in 0..file.adds.len() {
                // A missing decision is a file that was not judged.
                let outcome = decisions.next().unwrap_or(Outcome::Keep);
                by_partition &= outcome == Outcome::Skip { by_partition: true };
                if !outcome.is_skip() && !kept {
                    (chosen, kept) = (position, true);
                }
            }
            let (winner, add) = file.adds.get(chosen).copied()?;
            let cause = Cause::Pruned(read, winner, add);
            if kept {
                findings.conflict(Found {
                    kind: ConflictKind::ConcurrentAppend,
                    winner,
                    path: Some(file.path),
                    cause: cause.clone(),
                });
            }
            findings.list(|| Listed {
                winner,
                path: file.path,
                change: FileChange::Added,
                add: Some(add),
                kept,
                cause,
            });
            (!kept).then_some(Open { file, by_partition })
        })
        .collect()
}

/// The outcome of each add of each file, in order.
fn decide(read: usize, files: &[Open<'_, '_>], asked: &Asked<'_>) -> std::vec::IntoIter<Outcome> {
    let adds = files.iter().flat_map(|open| &open.file.adds);
    let Some(predicate) = asked.reads.get(read).and_then(|read| read.predicate) else {
        return adds.map(|_| Outcome::Keep).collect::<Vec<_>>().into_iter();
    };
    let tested: Vec<PruneFile<'_>> = adds
        .map(|(winner, add)| PruneFile {
            add,
            exact_writer: winner.is_exact_writer_of(add),
        })
        .collect();
    prune(predicate, &tested, asked.visible).into_iter()
}

/// Notes why `file` is not held against any read.
fn list_left_out<'a>(
    file: &AddedFile<'a>,
    input: &CheckInput<'_>,
    asked: &Asked<'_>,
    findings: &mut Findings<'a>,
) {
    let Some((winner, add)) = file.adds.first().copied() else {
        return;
    };
    findings.list(|| {
        let (code, detail) = if input.level == IsolationLevel::SnapshotIsolation {
            (
                ReasonCode::OnlyRearranges,
                "the commit only rearranges files and changes no row",
            )
        } else if asked.reads.is_empty() {
            (ReasonCode::NothingRead, "nothing was read")
        } else {
            (
                ReasonCode::BlindAppend,
                "a blind append may be ordered after this transaction under WriteSerializable",
            )
        };
        Listed {
            winner,
            path: file.path,
            change: FileChange::Added,
            add: Some(add),
            kept: false,
            cause: Cause::Reason(Reason::new(code, detail)),
        }
    });
}
