//! What the check found, and how it becomes a verdict: the decisions are made by then, and only
//! those that are listed are explained.

use std::collections::HashMap;
use std::sync::Arc;

use deltalake::kernel::Add;

use super::{Asked, CheckInput};
use crate::commit::advice::{Hint, advise};
use crate::commit::evidence::{Evidence, FileChange};
use crate::commit::verdict::{Conflict, ConflictKind, MAX_LISTED, Verdict};
use crate::commit::winner::WinningCommit;
use crate::read::predicate::ReadPredicate;
use crate::read::prune::{Decision, PruneFile, Visible, explain};
use crate::reason::{Reason, ReasonCode};

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings<'a> {
    listing: bool,
    conflicts: Vec<Found<'a>>,
    files: Vec<Listed<'a>>,
    pub(super) candidates: usize,
    pub(super) skipped: usize,
    pub(super) skipped_by_partition: usize,
}

/// One conflict.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) kind: ConflictKind,
    pub(super) winner: &'a WinningCommit,
    pub(super) path: Option<&'a str>,
    pub(super) cause: Cause<'a>,
}

/// What a decision rests on.
#[derive(Debug, Clone)]
pub(super) enum Cause<'a> {
    /// This.
    Reason(Reason),
    /// This reason; the file as it was read may say more.
    File(Reason, Option<usize>, Option<&'a Add>),
    /// What the pruner says of this add, a winner's, and the read at this position.
    Pruned(usize, &'a WinningCommit, &'a Add),
}

/// The decision about one file.
#[derive(Debug)]
pub(super) struct Listed<'a> {
    pub(super) winner: &'a WinningCommit,
    pub(super) path: &'a str,
    pub(super) change: FileChange,
    pub(super) add: Option<&'a Add>,
    pub(super) kept: bool,
    pub(super) cause: Cause<'a>,
}

impl<'a> Findings<'a> {
    /// Findings that also list the decisions.
    pub(super) fn listing() -> Self {
        Self {
            listing: true,
            ..Self::default()
        }
    }

    pub(super) fn is_listing(&self) -> bool {
        self.listing
    }

    pub(super) fn is_conflict(&self) -> bool {
        !self.conflicts.is_empty()
    }

    /// The most telling conflict, without a reason.
    #[cfg(test)]
    pub(super) fn first(&self) -> Option<&Found<'a>> {
        self.conflicts
            .iter()
            .min_by_key(|found| (found.kind, found.winner.version))
    }

    pub(super) fn conflict(&mut self, found: Found<'a>) {
        self.conflicts.push(found);
    }

    /// A conflict that is about the table and no file.
    pub(super) fn table_conflict(
        &mut self,
        kind: ConflictKind,
        winner: &'a WinningCommit,
        code: ReasonCode,
        detail: impl Into<String>,
    ) {
        self.conflict(Found {
            kind,
            winner,
            path: None,
            cause: Cause::Reason(Reason::new(code, detail)),
        });
    }

    /// Notes a decision, if decisions are listed.
    pub(super) fn list(&mut self, listed: impl FnOnce() -> Listed<'a>) {
        if self.listing {
            self.files.push(listed());
        }
    }

    pub(super) fn into_verdict(self, input: &CheckInput<'a>, asked: &Asked<'_>) -> Verdict {
        self.into_verdict_by(input, asked, &explain)
    }

    /// The verdict, its decisions explained by `judge`.
    fn into_verdict_by(
        mut self,
        input: &CheckInput<'a>,
        asked: &Asked<'_>,
        judge: &Judge<'_>,
    ) -> Verdict {
        let mut explainer = Explainer {
            asked,
            judge,
            judged: HashMap::new(),
        };
        let net_effect = input.net_effect;
        let conflict_count = self.conflicts.len();
        // Stable: within one kind and version the order of paths stays.
        self.conflicts
            .sort_by_key(|found| (found.kind, found.winner.version));
        self.conflicts.truncate(MAX_LISTED);
        let evidence_count = self.files.len();
        // What was kept is what people ask about.
        self.files.sort_by_key(|file| !file.kept);
        self.files.truncate(MAX_LISTED);
        self.files
            .sort_by(|a, b| (a.winner.version, a.path).cmp(&(b.winner.version, b.path)));
        let conflicts: Vec<Conflict> = self
            .conflicts
            .iter()
            .map(|found| found.explain(&mut explainer))
            .collect();
        let hints = self
            .conflicts
            .iter()
            .zip(&conflicts)
            .map(|(found, conflict)| {
                let (read, add) = match found.cause {
                    Cause::Reason(_) => (None, None),
                    Cause::File(_, read, add) => (read, add),
                    Cause::Pruned(read, _, add) => (Some(read), Some(add)),
                };
                Hint {
                    conflict,
                    winner: found.winner,
                    read: read.and_then(|read| asked.reads.get(read)?.predicate),
                    add,
                }
            });
        let advice = advise(input, hints);
        let evidence = self
            .files
            .into_iter()
            .map(|file| file.explain(&mut explainer))
            .collect();
        let mut versions = net_effect.winners().map(|winner| winner.version);
        Verdict {
            read_version: net_effect.snapshot().version,
            winners: versions
                .next()
                .map(|first| first..=net_effect.last_version()),
            level: input.level,
            conflicts,
            conflict_count,
            evidence,
            evidence_count,
            candidates: self.candidates,
            skipped: self.skipped,
            skipped_by_partition: self.skipped_by_partition,
            advice,
        }
    }
}

impl Found<'_> {
    fn explain(&self, explainer: &mut Explainer<'_>) -> Conflict {
        let reason = match explainer.decision(&self.cause, true) {
            Decision::Keep { mut reasons } if !reasons.is_empty() => reasons.swap_remove(0),
            Decision::Keep { .. } => Reason::new(ReasonCode::UnusableTerm, "it was not ruled out"),
            Decision::Skip { reason } => reason,
        };
        Conflict {
            kind: self.kind,
            version: self.winner.version,
            operation: self.winner.operation().to_owned(),
            engine: self.winner.info.engine_info.clone(),
            path: self.path.map(str::to_owned),
            read: self.cause.read(explainer.asked),
            reason,
        }
    }
}

impl Listed<'_> {
    fn explain(self, explainer: &mut Explainer<'_>) -> Evidence {
        Evidence {
            version: self.winner.version,
            operation: self.winner.operation().to_owned(),
            path: self.path.to_owned(),
            change: self.change,
            partition_values: self
                .add
                .map(|add| {
                    let values = add.partition_values.iter();
                    values
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect()
                })
                .unwrap_or_default(),
            read: self.cause.read(explainer.asked),
            decision: explainer.decision(&self.cause, self.kept),
        }
    }
}

impl Cause<'_> {
    /// The read that it is about, as text.
    fn read(&self, asked: &Asked<'_>) -> Option<Arc<str>> {
        let read = match self {
            Self::Reason(_) => None,
            Self::File(_, read, _) => *read,
            Self::Pruned(read, ..) => Some(*read),
        };
        Some(Arc::clone(&asked.reads.get(read?)?.text))
    }
}

/// What the pruner says of one file.
type Judge<'j> = dyn Fn(&ReadPredicate, &PruneFile<'_>, Visible) -> Decision + 'j;

/// Puts decisions into words. What the pruner says of a file and a read is asked once, however many
/// conflicts and decisions it is behind.
struct Explainer<'e> {
    asked: &'e Asked<'e>,
    judge: &'e Judge<'e>,
    /// By the read's position and the file's add, which is one action in the log.
    judged: HashMap<(usize, *const Add), Option<Decision>>,
}

impl Explainer<'_> {
    fn judged(&mut self, read: usize, file: PruneFile<'_>) -> Option<Decision> {
        let (asked, judge) = (self.asked, self.judge);
        self.judged
            .entry((read, std::ptr::from_ref(file.add)))
            .or_insert_with(|| {
                let predicate = asked.reads.get(read)?.predicate?;
                Some(judge(predicate, &file, asked.visible))
            })
            .clone()
    }

    /// The decision in words. Whether the file is kept is settled, whatever is found here.
    fn decision(&mut self, cause: &Cause<'_>, kept: bool) -> Decision {
        let found = match cause {
            Cause::Reason(reason) => vec![reason.clone()],
            Cause::File(reason, read, add) => {
                let more = read.zip(*add).and_then(|(read, add)| {
                    let file = PruneFile {
                        add,
                        exact_writer: false,
                    };
                    self.judged(read, file)?.into_reasons().into_iter().next()
                });
                vec![match more {
                    Some(more) => Reason {
                        detail: format!("{}: {}", reason.detail, more.detail),
                        code: reason.code,
                        column: more.column,
                        term: more.term,
                    },
                    None => reason.clone(),
                }]
            }
            Cause::Pruned(read, winner, add) => {
                let file = PruneFile {
                    add,
                    exact_writer: winner.is_exact_writer_of(add),
                };
                match self.judged(*read, file) {
                    Some(decision) => decision.into_reasons(),
                    None => vec![any_row(*read, self.asked)],
                }
            }
        };
        if kept {
            Decision::Keep { reasons: found }
        } else {
            let reason = found.into_iter().next();
            Decision::Skip {
                reason: reason.unwrap_or_else(|| Reason::new(ReasonCode::Statistics, "ruled out")),
            }
        }
    }
}

/// Why a read without a predicate keeps a file.
fn any_row(read: usize, asked: &Asked<'_>) -> Reason {
    if asked.reads.get(read).is_none_or(|read| read.recorded) {
        Reason::new(
            ReasonCode::WholeTableRead,
            "any row of the table may have been read",
        )
    } else {
        Reason::new(
            ReasonCode::NoReadRecorded,
            "rows are changed and no read was recorded, so that any row may have been read",
        )
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::find;
    use super::*;
    use crate::commit::fixtures::{actions, add, matching, remove, snapshot, winner};
    use crate::commit::{IsolationLevel, NetEffect};
    use crate::read::read_set::ReadSet;

    /// A file may be behind a conflict, or two, and a decision: it is explained once for each read.
    #[test]
    fn each_file_and_read_is_explained_once() {
        let snapshot = Arc::new(snapshot(
            4,
            &[add("a").ids(0..500), add("b").ids(500..1000)],
        ));
        let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
        let adds = [add("near").ids(30..60), add("far").ids(2000..2100)];
        net_effect
            .apply(Arc::new(winner(5, &adds, &[remove("a"), remove("b")]).0))
            .unwrap();
        let reads = ReadSet::new(vec![
            matching(4, 0..50, &["a"]),
            matching(4, 900..950, &["b"]),
        ]);
        let ours = actions(&[add("ours")], &[remove("a"), remove("b")]);
        let input = CheckInput {
            reads: &reads,
            actions: &ours,
            net_effect: &net_effect,
            level: IsolationLevel::Serializable,
            data_skipping: true,
        };
        let asked = Asked::of(&input);
        let judged = RefCell::new(Vec::new());
        let verdict = find(&input, &asked, Findings::listing()).into_verdict_by(
            &input,
            &asked,
            &|predicate, file, visible| {
                judged
                    .borrow_mut()
                    .push((predicate.to_string(), file.add.path.clone()));
                explain(predicate, file, visible)
            },
        );
        assert_eq!((verdict.conflict_count, verdict.evidence_count), (5, 5));
        let mut judged = judged.into_inner();
        judged.sort();
        let mut once = judged.clone();
        once.dedup();
        assert_eq!(judged, once);
        // Each removed file with the read that it was read by, the kept one with the read that keeps
        // it, the skipped one with both.
        assert_eq!(judged.len(), 5, "{judged:?}");
    }
}
