//! Files that winners touched without any effect in the end: they are listed, and nothing else.

use super::CheckInput;
use super::findings::{Cause, Findings, Listed};
use crate::reason::{Reason, ReasonCode};

pub(super) fn list<'a>(input: &CheckInput<'a>, findings: &mut Findings<'a>) {
    if !findings.is_listing() {
        return;
    }
    for file in input.net_effect.settled() {
        let reason = if file.undone {
            Reason::new(ReasonCode::Undone, "a winner undid what a winner did")
        } else {
            Reason::new(
                ReasonCode::NoDataChange,
                "the winner rearranged rows and changed none",
            )
        };
        findings.list(|| Listed {
            winner: file.winner,
            path: file.path,
            change: file.change,
            add: file.add,
            kept: false,
            cause: Cause::Reason(reason),
        });
    }
}
