//! Why a file was kept or skipped, and why a transaction conflicts: stable codes, with the numbers
//! in words beside them. `docs/evidence.md` has the table of all codes.

use std::fmt;

/// The codes of all reasons. What a code means does not change once it is released; new ones may be
/// added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ReasonCode {
    /// Skipped: the partition values alone rule the file out.
    PartitionValues,
    /// Skipped: the column statistics rule the file out.
    Statistics,
    /// Skipped: the file holds no rows.
    NoRows,
    /// Skipped: no row ever satisfies the read.
    NeverTrue,
    /// Skipped: the file comes from a blind append, which may be ordered after us.
    BlindAppend,
    /// Skipped: our commit only rearranges files, so that no added row matters.
    OnlyRearranges,
    /// Skipped: nothing was read.
    NothingRead,
    /// Skipped: the winner moved rows between files and changed none.
    NoDataChange,
    /// Skipped: a later winner undid it.
    Undone,
    /// Skipped: the removed file was neither read nor removed by us.
    NotRead,
    /// Kept: any row of the table counts.
    WholeTableRead,
    /// Kept: rows change and no read was recorded, so that any row counts.
    NoReadRecorded,
    /// Kept: the read has conditions on partition columns alone, and the partition may match.
    PartitionPredicateOnly,
    /// Kept: the bounds of the file and the condition overlap.
    BoundsOverlap,
    /// Kept: the partition value may satisfy the condition.
    PartitionValueMatches,
    /// Kept: the partition value is missing or has no clear meaning.
    PartitionValueUnknown,
    /// Kept: the file has no statistics.
    StatisticsMissing,
    /// Kept: the file has no statistics for a column of the condition.
    ColumnStatisticsMissing,
    /// Kept: the statistics cannot be read or contradict themselves.
    StatisticsUnreadable,
    /// Kept: conflict-time data skipping is switched off.
    StatisticsNotUsed,
    /// Kept: it is not known how many values are NULL.
    NullCountUnknown,
    /// Kept: statistics of this type of column prove nothing.
    TypeRule,
    /// Kept: the bound is a string that may have been cut.
    TruncatedString,
    /// Kept: the bound is a decimal that its writer may have rounded.
    InexactDecimal,
    /// Kept: the bound is a timestamp that its writer may have cut.
    RoundedTimestamp,
    /// Kept: a NaN, which bounds leave out, may satisfy the condition.
    NanPossible,
    /// Kept: statistics cannot decide a condition of this form.
    UnusableTerm,
    /// Kept: the condition may give another answer each time it is asked.
    VolatileTerm,
    /// Kept: the condition fails for the file's values.
    EvaluationFailed,
    /// Conflict: a file that was read is gone or changed.
    ReadFileRemoved,
    /// Conflict: the winner changed rows of a file that we remove or rewrite.
    RowLevelChange,
    /// Conflict: both remove or rewrite one file.
    BothRemoved,
    /// Conflict: the table's metadata changed.
    MetadataChange,
    /// Conflict: the table's protocol changed.
    ProtocolChange,
    /// Conflict: the winner holds an action that is not understood.
    UnknownAction,
    /// Conflict: the winner committed for the same application.
    ApplicationTransaction,
    /// Conflict: both change one metadata domain.
    DomainMetadata,
    /// Conflict: the table is clustered by a column of which our files hold no statistics.
    ClusteringChange,
    /// No conflict, but other writers took every version that was tried.
    AttemptsUsedUp,
}

impl ReasonCode {
    /// All codes, in the order of the documentation.
    pub const ALL: [Self; 39] = [
        Self::PartitionValues,
        Self::Statistics,
        Self::NoRows,
        Self::NeverTrue,
        Self::BlindAppend,
        Self::OnlyRearranges,
        Self::NothingRead,
        Self::NoDataChange,
        Self::Undone,
        Self::NotRead,
        Self::WholeTableRead,
        Self::NoReadRecorded,
        Self::PartitionPredicateOnly,
        Self::BoundsOverlap,
        Self::PartitionValueMatches,
        Self::PartitionValueUnknown,
        Self::StatisticsMissing,
        Self::ColumnStatisticsMissing,
        Self::StatisticsUnreadable,
        Self::StatisticsNotUsed,
        Self::NullCountUnknown,
        Self::TypeRule,
        Self::TruncatedString,
        Self::InexactDecimal,
        Self::RoundedTimestamp,
        Self::NanPossible,
        Self::UnusableTerm,
        Self::VolatileTerm,
        Self::EvaluationFailed,
        Self::ReadFileRemoved,
        Self::RowLevelChange,
        Self::BothRemoved,
        Self::MetadataChange,
        Self::ProtocolChange,
        Self::UnknownAction,
        Self::ApplicationTransaction,
        Self::DomainMetadata,
        Self::ClusteringChange,
        Self::AttemptsUsedUp,
    ];

    /// The code as text, in kebab case.
    pub fn code(self) -> &'static str {
        match self {
            Self::PartitionValues => "partition-values",
            Self::Statistics => "statistics",
            Self::NoRows => "no-rows",
            Self::NeverTrue => "never-true",
            Self::BlindAppend => "blind-append",
            Self::OnlyRearranges => "only-rearranges",
            Self::NothingRead => "nothing-read",
            Self::NoDataChange => "no-data-change",
            Self::Undone => "undone",
            Self::NotRead => "not-read",
            Self::WholeTableRead => "whole-table-read",
            Self::NoReadRecorded => "no-read-recorded",
            Self::PartitionPredicateOnly => "partition-predicate-only",
            Self::BoundsOverlap => "bounds-overlap",
            Self::PartitionValueMatches => "partition-value-matches",
            Self::PartitionValueUnknown => "partition-value-unknown",
            Self::StatisticsMissing => "statistics-missing",
            Self::ColumnStatisticsMissing => "column-statistics-missing",
            Self::StatisticsUnreadable => "statistics-unreadable",
            Self::StatisticsNotUsed => "statistics-not-used",
            Self::NullCountUnknown => "null-count-unknown",
            Self::TypeRule => "type-rule",
            Self::TruncatedString => "truncated-string",
            Self::InexactDecimal => "inexact-decimal",
            Self::RoundedTimestamp => "rounded-timestamp",
            Self::NanPossible => "nan-possible",
            Self::UnusableTerm => "unusable-term",
            Self::VolatileTerm => "volatile-term",
            Self::EvaluationFailed => "evaluation-failed",
            Self::ReadFileRemoved => "read-file-removed",
            Self::RowLevelChange => "row-level-change",
            Self::BothRemoved => "both-removed",
            Self::MetadataChange => "metadata-change",
            Self::ProtocolChange => "protocol-change",
            Self::UnknownAction => "unknown-action",
            Self::ApplicationTransaction => "application-transaction",
            Self::DomainMetadata => "domain-metadata",
            Self::ClusteringChange => "clustering-change",
            Self::AttemptsUsedUp => "attempts-used-up",
        }
    }

    /// What decided: `partition`, `statistics`, `predicate`, `read-set`, `isolation`, `net-effect`,
    /// `file`, `table` or `attempts`.
    pub fn by(self) -> &'static str {
        match self {
            Self::PartitionValues
            | Self::PartitionPredicateOnly
            | Self::PartitionValueMatches
            | Self::PartitionValueUnknown => "partition",
            Self::Statistics
            | Self::NoRows
            | Self::BoundsOverlap
            | Self::StatisticsMissing
            | Self::ColumnStatisticsMissing
            | Self::StatisticsUnreadable
            | Self::StatisticsNotUsed
            | Self::NullCountUnknown
            | Self::TypeRule
            | Self::TruncatedString
            | Self::InexactDecimal
            | Self::RoundedTimestamp
            | Self::NanPossible => "statistics",
            Self::NeverTrue | Self::UnusableTerm | Self::VolatileTerm | Self::EvaluationFailed => {
                "predicate"
            }
            Self::NothingRead | Self::NotRead | Self::WholeTableRead | Self::NoReadRecorded => {
                "read-set"
            }
            Self::BlindAppend | Self::OnlyRearranges => "isolation",
            Self::NoDataChange | Self::Undone => "net-effect",
            Self::ReadFileRemoved | Self::RowLevelChange | Self::BothRemoved => "file",
            Self::MetadataChange
            | Self::ProtocolChange
            | Self::UnknownAction
            | Self::ApplicationTransaction
            | Self::DomainMetadata
            | Self::ClusteringChange => "table",
            Self::AttemptsUsedUp => "attempts",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One reason, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Its code.
    pub code: ReasonCode,
    /// In words, such as `id < 50 needs min < 50, file has min 1000`.
    pub detail: String,
    /// The column that it is about.
    pub column: Option<String>,
    /// The condition that it is about, as text.
    pub term: Option<String>,
}

impl Reason {
    /// A reason that is about no column.
    pub fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            column: None,
            term: None,
        }
    }

    /// The same about `column`.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// The same about the condition `term`.
    #[must_use]
    pub fn with_term(mut self, term: impl Into<String>) -> Self {
        self.term = Some(term.into());
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_kebab_case_and_each_its_own() {
        let mut seen = HashSet::new();
        for code in ReasonCode::ALL {
            let text = code.to_string();
            assert!(
                text.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{text}"
            );
            assert!(seen.insert(text.clone()), "{text} twice");
        }
    }

    #[test]
    fn every_code_stands_in_the_documentation() {
        let documentation = include_str!("../docs/evidence.md");
        let rows: Vec<&str> = documentation
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let codes: Vec<&str> = ReasonCode::ALL.iter().map(|code| code.code()).collect();
        assert_eq!(rows, codes);
    }
}
