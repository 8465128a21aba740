//! What became of the statements of many histories.

use std::fmt;
use std::ops::AddAssign;

/// Counts of statements by outcome, each statement's first run only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Committed although others had committed since it was planned.
    pub beside_others: u64,
    /// Committed with nobody in between.
    pub alone: u64,
    /// Had nothing to do.
    pub nothing: u64,
    /// Conflicts.
    pub lost: u64,
    /// Errors that the statement has by itself.
    pub failed: u64,
}

impl Tally {
    pub fn committed(&mut self, raced: bool, changed: bool) {
        match (changed, raced) {
            (false, _) => self.nothing += 1,
            (true, true) => self.beside_others += 1,
            (true, false) => self.alone += 1,
        }
    }

    pub fn lost(&mut self) {
        self.lost += 1;
    }

    pub fn failed(&mut self) {
        self.failed += 1;
    }

    /// The share, in percent, of commits among the statements that others had got ahead of.
    pub fn commit_rate(&self) -> f64 {
        100.0 * self.beside_others as f64 / (self.beside_others + self.lost).max(1) as f64
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.beside_others += other.beside_others;
        self.alone += other.alone;
        self.nothing += other.nothing;
        self.lost += other.lost;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} alone, {} beside others, {} with nothing to do, {} errors, {} lost: commit rate {:.1} %",
            self.alone,
            self.beside_others,
            self.nothing,
            self.failed,
            self.lost,
            self.commit_rate()
        )
    }
}
