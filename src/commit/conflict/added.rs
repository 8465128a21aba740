//! Files that winners added, against our reads.

use std::sync::Arc;

use super::{Asked, AskedRead, CheckInput, ConflictKind, Findings};
use crate::commit::evidence::Evidence;
use crate::commit::net_effect::AddedFile;
use crate::read::prune::{Decision, PruneFile, prune};

pub(super) fn check(input: &CheckInput<'_>, asked: &Asked<'_>, findings: &mut Findings) {
    if asked.reads.is_empty() {
        return;
    }
    let we_change_metadata = input.actions.metadata.is_some();
    let candidates: Vec<AddedFile<'_>> = input
        .net_effect
        .added()
        .into_iter()
        .filter(|file| input.level.checks_added(file.blind, we_change_metadata))
        .collect();
    findings.candidates = candidates.len();
    // A file stays open until one read may match it; what no read matches is skipped.
    let mut open: Vec<&AddedFile<'_>> = candidates.iter().collect();
    for read in &asked.reads {
        open = ask(read, open, asked, findings);
    }
    findings.skipped = open.len();
}

/// Holds `files` against one read; returns those that it rules out.
fn ask<'f, 'a>(
    read: &AskedRead<'_>,
    files: Vec<&'f AddedFile<'a>>,
    asked: &Asked<'_>,
    findings: &mut Findings,
) -> Vec<&'f AddedFile<'a>> {
    let decisions = decide(read, &files, asked);
    files
        .into_iter()
        .zip(decisions)
        .filter_map(|(file, decided)| {
            let (winner, decision) = match decided {
                Some((add, decision)) => (file.adds.get(add)?.0, decision),
                None => (file.adds.first()?.0, undecided()),
            };
            let skipped = decision.is_skip();
            if let Decision::Keep { why, .. } = &decision {
                findings.conflict(
                    ConflictKind::ConcurrentAppend,
                    winner,
                    Some(file.path),
                    Some(&read.text),
                    why,
                );
            }
            findings.evidence(|| Evidence {
                version: winner.version,
                path: file.path.to_owned(),
                read: Arc::clone(&read.text),
                decision,
            });
            skipped.then_some(file)
        })
        .collect()
}

/// The decision on each file and the position of the add it rests on: the first add that is kept,
/// else the first one.
fn decide(
    read: &AskedRead<'_>,
    files: &[&AddedFile<'_>],
    asked: &Asked<'_>,
) -> Vec<Option<(usize, Decision)>> {
    let Some(predicate) = read.predicate else {
        let keep = Decision::Keep {
            why: "any row counts".to_owned(),
        };
        return files.iter().map(|_| Some((0, keep.clone()))).collect();
    };
    let tested: Vec<PruneFile<'_>> = files
        .iter()
        .flat_map(|file| &file.adds)
        .map(|(winner, add)| PruneFile {
            add,
            exact_writer: winner.is_exact_writer_of(add),
        })
        .collect();
    let mut decisions = prune(predicate, &tested, asked.visible).into_iter();
    files
        .iter()
        .map(|file| {
            let mut chosen: Option<(usize, Decision)> = None;
            for position in 0..file.adds.len() {
                // A missing decision is a file that was not judged.
                let decision = decisions.next().unwrap_or_else(undecided);
                let is_first_kept = !decision.is_skip()
                    && chosen.as_ref().is_none_or(|(_, chosen)| chosen.is_skip());
                if chosen.is_none() || is_first_kept {
                    chosen = Some((position, decision));
                }
            }
            chosen
        })
        .collect()
}

fn undecided() -> Decision {
    Decision::Keep {
        why: "it was not judged".to_owned(),
    }
}
