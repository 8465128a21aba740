//! The conflict check: may this transaction be committed after those winners?
//!
//! > A winner's file may be skipped only if it is proved that no row in it can satisfy any read of
//! > this transaction; whatever is unknown, missing, odd or failing keeps the file.
//!
//! A wrongly kept file costs a retry. A wrongly skipped file silently corrupts a table.
//!
//! # Two writers
//!
//! Both read version 4, a table with ids 0 to 999 in two files. The loser deletes `id < 50`; the
//! winner appended, as version 5:
//!
//! ```text
//! id              0   50           499 500          999 1000   1099
//! version 4       |------ a.parquet ---||--- b.parquet ---|
//! loser's read    [====)
//! loser           a is removed, its copy without ids 0 to 49 is added
//! winner, case 1                                           |- c -|     skipped: c starts at 1000
//! winner, case 2     |- c -|                                           kept: c may hold ids 30 to 49
//! ```
//!
//! In case 1 both commit: the loser would have read nothing of `c`, so its commit is the same
//! whether it ran before or after. In case 2 the loser would have to delete rows that it never
//! saw: `ConcurrentAppend`, and the statement is run again on version 5.
//!
//! # What is compared
//!
//! The winners' [net effect](super::net_effect) since the read version, with the read set and with
//! our own actions. Metadata, protocol, application transactions and domain metadata are compared
//! winner by winner.
//!
//! | winner's actions against ours | Serializable | WriteSerializable | SnapshotIsolation |
//! |---|---|---|---|
//! | added files against our reads | all | all but blind appends; all if we change metadata | none |
//! | removed files against files we read | yes | yes | yes |
//! | the same file removed by both | yes | yes | yes |
//! | metadata, protocol, app transaction, domain metadata | yes | yes | yes |
//!
//! # Why skipping is safe
//!
//! - Added files are judged by the [pruner](crate::read::prune) of the scan, with the predicates
//!   that were planned: what the check skips, the scan would have skipped.
//! - Reads are ORed: a file is out of the way only if every read rules it out, and, if its path was
//!   added several times, by the statistics of every add.
//! - A row that the winner moved *out* of our predicate was in a file that we read, and that file
//!   is gone: `ConcurrentDeleteRead`. A row moved *into* it is in an added file: `ConcurrentAppend`.
//! - A statement that changes rows and recorded no read counts as a read of the whole table.
//!
//! Only the log of the table that is written is checked; what a statement reads from other tables
//! may have changed.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::datatypes::{DataType, Field, Schema};
//! use datafusion::prelude::{col, lit};
//! use delta_disjoint::commit::{
//!     Actions, CheckInput, ConflictKind, IsolationLevel, NetEffect, WinningCommit, check,
//! };
//! use delta_disjoint::read::predicate::ReadPredicate;
//! use delta_disjoint::read::read_set::{Read, ReadScope, ReadSet};
//! use delta_disjoint::read::snapshot::{TableMetadata, TableProtocol, TableSnapshot};
//! use delta_disjoint::read::statistics::StatisticsSchema;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let snapshot = Arc::new(TableSnapshot {
//!     version: 4,
//!     schema: Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
//!     metadata: TableMetadata::default(),
//!     protocol: TableProtocol::default(),
//!     files: Vec::new().into(),
//!     spellings: Default::default(),
//! });
//!
//! // DELETE FROM t WHERE id < 50
//! let predicate = ReadPredicate::new(&[col("id").lt(lit(50_i64))], &StatisticsSchema::of(&snapshot));
//! let reads = ReadSet::new(vec![Read {
//!     scope: ReadScope::Matching(Arc::new(predicate)),
//!     version: 4,
//!     files: Arc::default(),
//! }]);
//!
//! // Another writer adds ids 30 to 60.
//! let entry = r#"{"add":{"path":"c.parquet","partitionValues":{},"size":1,"modificationTime":0,
//!     "dataChange":true,"stats":"{\"numRecords\":31,\"minValues\":{\"id\":30},
//!     \"maxValues\":{\"id\":60},\"nullCount\":{\"id\":0}}"}}"#.replace('\n', "");
//! let winner = WinningCommit::parse(5, entry.as_bytes(), &"memory:///t".parse()?)?;
//! let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
//! net_effect.apply(Arc::new(winner))?;
//!
//! let verdict = check(&CheckInput {
//!     reads: &reads,
//!     actions: &Actions::default(),
//!     net_effect: &net_effect,
//!     level: IsolationLevel::Serializable,
//!     data_skipping: true,
//! });
//! let conflict = verdict.first_conflict().expect("ids 30 to 49 meet");
//! assert_eq!(conflict.kind, ConflictKind::ConcurrentAppend);
//! assert_eq!((conflict.version, conflict.path.as_deref()), (5, Some("c.parquet")));
//! # Ok(())
//! # }
//! ```

mod added;
mod findings;
mod removed;
mod settled;
mod table_level;

use std::sync::Arc;

use self::findings::Findings;
use super::actions::Actions;
use super::isolation::IsolationLevel;
use super::net_effect::NetEffect;
pub use super::verdict::{Conflict, ConflictKind, MAX_LISTED, Verdict};
use crate::read::predicate::ReadPredicate;
use crate::read::prune::Visible;
use crate::read::read_set::{ReadScope, ReadSet};

/// Everything that the check looks at.
#[derive(Debug, Clone, Copy)]
pub struct CheckInput<'a> {
    /// What we read, at the version of the net effect's snapshot.
    pub reads: &'a ReadSet,
    /// What we do.
    pub actions: &'a Actions,
    /// What the winners did, and the snapshot that we read.
    pub net_effect: &'a NetEffect,
    /// How strictly to check.
    pub level: IsolationLevel,
    /// Whether column statistics may skip files; if not, only partition values may.
    pub data_skipping: bool,
}

/// Checks a transaction against the winners. Pure: the same input gives the same verdict.
///
/// The verdict explains each conflict and each decision, within [`MAX_LISTED`] of both.
pub fn check(input: &CheckInput<'_>) -> Verdict {
    let asked = Asked::of(input);
    find(input, &asked, Findings::listing()).into_verdict(input, &asked)
}

/// The same, but a transaction without a conflict gets no evidence and does not pay for it.
pub(crate) fn check_briefly(input: &CheckInput<'_>) -> Verdict {
    let asked = Asked::of(input);
    let findings = find(input, &asked, Findings::default());
    if findings.is_conflict() {
        check(input)
    } else {
        findings.into_verdict(input, &asked)
    }
}

fn find<'a>(input: &CheckInput<'a>, asked: &Asked<'_>, mut findings: Findings<'a>) -> Findings<'a> {
    table_level::check(input, &mut findings);
    added::check(input, asked, &mut findings);
    removed::check(input, asked, &mut findings);
    settled::list(input, &mut findings);
    findings
}

/// One read that may have returned rows.
#[derive(Debug)]
struct AskedRead<'a> {
    /// `None`: any row.
    predicate: Option<&'a ReadPredicate>,
    text: Arc<str>,
    /// Whether it was recorded; if not, it stands for what should have been.
    recorded: bool,
}

/// All reads that count.
#[derive(Debug)]
struct Asked<'a> {
    reads: Vec<AskedRead<'a>>,
    visible: Visible,
}

impl<'a> Asked<'a> {
    fn of(input: &CheckInput<'a>) -> Self {
        let mut reads: Vec<_> = input
            .reads
            .reads()
            .iter()
            .filter_map(|read| {
                let predicate = match &read.scope {
                    ReadScope::Nothing => return None,
                    ReadScope::Matching(predicate) => Some(predicate.as_ref()),
                    ReadScope::WholeTable => None,
                };
                Some(AskedRead {
                    predicate,
                    text: read.scope.to_string().into(),
                    recorded: true,
                })
            })
            .collect();
        // The last guard: files change, but no read accounts for it. Only a recorded append and
        // rearranged files need none.
        let only_adds = input.actions.removes.is_empty() && input.actions.cdc.is_empty();
        if reads.is_empty()
            && (input.reads.is_unrecorded() || !only_adds)
            && input.actions.has_file_actions()
            && input.level != IsolationLevel::SnapshotIsolation
        {
            reads.push(AskedRead {
                predicate: None,
                text: ReadScope::WholeTable.to_string().into(),
                recorded: false,
            });
        }
        Self {
            reads,
            visible: if input.data_skipping {
                Visible::Statistics
            } else {
                Visible::PartitionValues
            },
        }
    }

    /// The position of the read of the whole table, if there is one.
    fn whole_table(&self) -> Option<usize> {
        self.reads.iter().position(|read| read.predicate.is_none())
    }
}

#[cfg(test)]
mod tests;
