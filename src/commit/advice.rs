//! What to do about a conflict, worked out from what the check found.

use std::collections::BTreeMap;
use std::fmt;

use arrow::datatypes::{DataType, Fields};
use deltalake::kernel::Add;

use super::conflict::CheckInput;
use super::isolation::IsolationLevel;
use super::verdict::{Conflict, ConflictKind};
use super::winner::WinningCommit;
use crate::error::printable;
use crate::read::predicate::ReadPredicate;
use crate::read::prune::{PruneFile, separating_columns};
use crate::read::snapshot::TableSnapshot;
use crate::reason::ReasonCode;

/// Conflicts that are looked at for advice: more than one would follow.
const MAX_CONFLICTS: usize = 20;

/// Leaf columns with statistics where no property says otherwise. Source: table property
/// `delta.dataSkippingNumIndexedCols`.
const INDEXED_COLUMNS: usize = 32;

/// One thing to do, so that the conflict does not come back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// Keep rows apart by this column: a file on both sides of the read holds a range of it.
    ClusterBy {
        /// The column.
        column: String,
    },
    /// Have statistics collected for a column that the read has a condition on.
    CollectStatistics {
        /// The column.
        column: String,
        /// Why there are none, as far as that is known.
        because: String,
    },
    /// Say with a condition which rows are read.
    AddPredicate {
        /// Whether there are conditions on partition columns already.
        beside_partitions: bool,
    },
    /// Write a condition so that statistics can decide it.
    RewriteTerm {
        /// The condition.
        term: String,
    },
    /// Declare a commit that only adds rows as a blind append.
    DeclareAppend {
        /// The winner that does not; `None` if it is our own commit.
        version: Option<u64>,
    },
    /// Switch conflict-time data skipping on.
    UseStatistics,
    /// Look whether the application's batch is in the table already.
    LookUpBatch,
    /// Run the statement again.
    Rerun {
        /// The version it will read, or a later one.
        version: u64,
    },
}

impl Advice {
    /// A stable code in kebab case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ClusterBy { .. } => "cluster-by",
            Self::CollectStatistics { .. } => "collect-statistics",
            Self::AddPredicate { .. } => "add-predicate",
            Self::RewriteTerm { .. } => "rewrite-term",
            Self::DeclareAppend { .. } => "declare-append",
            Self::UseStatistics => "use-statistics",
            Self::LookUpBatch => "look-up-batch",
            Self::Rerun { .. } => "re-run",
        }
    }

    /// The column that it is about.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::ClusterBy { column } | Self::CollectStatistics { column, .. } => Some(column),
            _ => None,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterBy { column } => write!(
                f,
                "cluster or partition the table by {}, so that such writers touch other files",
                printable(column)
            ),
            Self::CollectStatistics { column, because } => {
                write!(
                    f,
                    "collect statistics for column {} ({})",
                    printable(column),
                    printable(because)
                )
            }
            Self::AddPredicate {
                beside_partitions: false,
            } => f.write_str("add a predicate: the whole table is read"),
            Self::AddPredicate {
                beside_partitions: true,
            } => f.write_str(
                "add a predicate on a column that is no partition column: whole partitions are read",
            ),
            Self::RewriteTerm { term } => write!(
                f,
                "compare a column with a literal instead of {}, which statistics cannot decide",
                printable(term)
            ),
            Self::DeclareAppend {
                version: Some(version),
            } => write!(
                f,
                "have the writer of version {version}, which only adds rows, declare the append \
                 (isBlindAppend) if it reads nothing"
            ),
            Self::DeclareAppend { version: None } => f.write_str(
                "declare the append (a read scope of nothing) if nothing was read, or record what \
                 was read",
            ),
            Self::UseStatistics => f.write_str("SET delta.conflict_data_skipping = true"),
            Self::LookUpBatch => f.write_str(
                "look whether the batch of the application is in the table already before it is \
                 written again",
            ),
            Self::Rerun { version } => {
                write!(f, "run it again on version {version}")
            }
        }
    }
}

/// A conflict and what it came from.
#[derive(Debug)]
pub(super) struct Hint<'h> {
    pub(super) conflict: &'h Conflict,
    pub(super) winner: &'h WinningCommit,
    /// The predicate of the read that was hit.
    pub(super) read: Option<&'h ReadPredicate>,
    /// The file that it hit.
    pub(super) add: Option<&'h Add>,
}

/// What to do about the conflicts, those of the first conflict first, each once.
pub(super) fn advise<'h>(
    input: &CheckInput<'_>,
    hints: impl Iterator<Item = Hint<'h>>,
) -> Vec<Advice> {
    let mut all: Vec<Advice> = Vec::new();
    let mut batch = false;
    let mut any = false;
    for hint in hints.take(MAX_CONFLICTS) {
        any = true;
        batch |= hint.conflict.kind == ConflictKind::ConcurrentTransaction;
        for advice in of_conflict(&hint, input) {
            if !all.contains(&advice) {
                all.push(advice);
            }
        }
    }
    // A batch that another one wrote must not be written twice.
    if any && !batch {
        all.push(Advice::Rerun {
            version: input.net_effect.last_version(),
        });
    }
    all
}

fn of_conflict(hint: &Hint<'_>, input: &CheckInput<'_>) -> Vec<Advice> {
    let mut advice = Vec::new();
    let reason = &hint.conflict.reason;
    let snapshot = input.net_effect.snapshot();
    match reason.code {
        ReasonCode::ApplicationTransaction => advice.push(Advice::LookUpBatch),
        ReasonCode::WholeTableRead => advice.push(Advice::AddPredicate {
            beside_partitions: false,
        }),
        ReasonCode::PartitionPredicateOnly => advice.push(Advice::AddPredicate {
            beside_partitions: true,
        }),
        ReasonCode::NoReadRecorded => advice.push(Advice::DeclareAppend { version: None }),
        ReasonCode::StatisticsNotUsed => advice.push(Advice::UseStatistics),
        ReasonCode::StatisticsMissing
        | ReasonCode::ColumnStatisticsMissing
        | ReasonCode::NullCountUnknown
        | ReasonCode::StatisticsUnreadable => {
            if let Some(column) = &reason.column {
                advice.push(Advice::CollectStatistics {
                    column: column.clone(),
                    because: why_not_collected(column, snapshot, hint),
                });
            }
        }
        _ => {}
    }
    if advice.is_empty()
        && let (Some(predicate), Some(add)) = (hint.read, hint.add)
    {
        let file = PruneFile {
            add,
            exact_writer: hint.winner.is_exact_writer_of(add),
        };
        let column = separating_columns(predicate, &file).into_iter().next();
        match (column, reason.code, &reason.term) {
            (Some(column), ..) => advice.push(Advice::ClusterBy { column }),
            (
                None,
                ReasonCode::UnusableTerm
                | ReasonCode::VolatileTerm
                | ReasonCode::TypeRule
                | ReasonCode::EvaluationFailed,
                Some(term),
            ) => advice.push(Advice::RewriteTerm { term: term.clone() }),
            _ => {}
        }
    }
    let undeclared = hint.conflict.kind == ConflictKind::ConcurrentAppend
        && input.level == IsolationLevel::WriteSerializable
        && hint.winner.actions.is_pure_append()
        && hint.winner.info.is_blind_append.is_none();
    if undeclared {
        advice.push(Advice::DeclareAppend {
            version: Some(hint.winner.version),
        });
    }
    advice
}

/// Why a file has no statistics for `column`, by the table's properties.
fn why_not_collected(column: &str, snapshot: &TableSnapshot, hint: &Hint<'_>) -> String {
    if snapshot
        .property("delta.dataSkippingStatsColumns")
        .is_some()
    {
        return "delta.dataSkippingStatsColumns says for which columns they are".to_owned();
    }
    let indexed = snapshot
        .property("delta.dataSkippingNumIndexedCols")
        .and_then(|value| value.trim().parse::<i64>().ok())
        .filter(|count| *count >= -1)
        .map_or(INDEXED_COLUMNS, |count| {
            // -1, which is all of them, is no usize.
            usize::try_from(count).unwrap_or(usize::MAX)
        });
    match position_of(column, snapshot) {
        Some(position) if position > indexed => format!(
            "it is the {}; delta.dataSkippingNumIndexedCols is {indexed}",
            ordinal(position)
        ),
        _ => match &hint.winner.info.engine_info {
            Some(engine) => format!("{engine} wrote none or they do not count"),
            None => "its writer wrote none or they do not count".to_owned(),
        },
    }
}

/// The position of a leaf column among those that have statistics, from 1 on.
fn position_of(column: &str, snapshot: &TableSnapshot) -> Option<usize> {
    fn walk(
        fields: &Fields,
        prefix: &str,
        position: &mut usize,
        seen: &mut BTreeMap<String, usize>,
    ) {
        for field in fields {
            let name = format!("{prefix}{}", field.name());
            match field.data_type() {
                DataType::Struct(inner) => walk(inner, &format!("{name}."), position, seen),
                _ => {
                    *position += 1;
                    seen.entry(name).or_insert(*position);
                }
            }
        }
    }
    let data: Fields = snapshot
        .schema
        .fields()
        .iter()
        .filter(|field| !snapshot.metadata.partition_columns.contains(field.name()))
        .cloned()
        .collect();
    let mut seen = BTreeMap::new();
    walk(&data, "", &mut 0, &mut seen);
    seen.get(column).copied()
}

fn ordinal(number: usize) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
