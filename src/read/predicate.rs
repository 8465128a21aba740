//! From the filters of a scan to a predicate that files can be pruned with.

use std::fmt;

use datafusion::logical_expr::Expr;

use super::statistics::StatisticsSchema;

/// The predicate of one read, widened so that it can be decided from statistics.
#[derive(Debug, Clone)]
pub struct ReadPredicate {
    text: String,
}

impl ReadPredicate {
    /// Widens the conjunction of `filters`. Never fails: what is not understood becomes `true`.
    pub fn new(filters: &[Expr], _schema: &StatisticsSchema) -> Self {
        let text = filters
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" AND ");
        Self { text }
    }
}

impl fmt::Display for ReadPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
