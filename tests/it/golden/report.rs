//! What became of each table.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use datafusion::error::DataFusionError;
use delta_disjoint::{Error, ErrorKind};

use super::compare::Theirs;

pub enum Outcome {
    /// Equal to deltalake's rows, and so under so many predicates.
    Equal {
        predicates: usize,
        /// Columns in which the log's bounds do not hold for the rows of its files.
        wrong_statistics: Vec<String>,
    },
    /// Read by us and not by deltalake, for this reason.
    OnlyWe {
        rows: usize,
        error: String,
    },
    /// Refused with this feature by name.
    Refused(String),
    /// Read by neither.
    Neither(String),
    Different(String),
}

impl Outcome {
    /// The outcome where we gave `error`.
    pub fn of_error(error: &DataFusionError, theirs: Theirs) -> Self {
        let ours = Error::find(error);
        let message = ours.map_or_else(|| error.to_string(), |ours| ours.message().to_owned());
        match (ours.map(Error::kind), theirs) {
            (Some(ErrorKind::Unsupported), _) => {
                let name = message
                    .split(" with ")
                    .nth(1)
                    .unwrap_or(&message)
                    .trim_start_matches("the table feature ");
                let name = name.split([',', '\n']).next().unwrap_or(name);
                Self::Refused(name.to_owned())
            }
            (Some(ErrorKind::Internal), _) | (_, Theirs::Rows(_)) => Self::Different(message),
            // Some published logs name data files that were never published.
            (_, Theirs::Error(_)) => Self::Neither(message),
        }
    }
}

#[derive(Default)]
pub struct Report {
    outcomes: BTreeMap<String, Outcome>,
}

impl Report {
    pub fn add(&mut self, table: &Path, outcome: Outcome) {
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let name = format!("{}/{}", name(table.parent()), name(Some(table)));
        self.outcomes.insert(name, outcome);
    }

    pub fn tables(&self) -> usize {
        self.outcomes.len()
    }

    pub fn assert_no_difference(&self) {
        let different = self
            .outcomes
            .values()
            .filter(|outcome| matches!(outcome, Outcome::Different(_)))
            .count();
        assert_eq!(different, 0, "tables read differently\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut ran, mut predicates_ran, mut neither) = (0, 0, 0);
        for (table, outcome) in &self.outcomes {
            match outcome {
                Outcome::Equal {
                    predicates,
                    wrong_statistics,
                } => {
                    ran += 1;
                    predicates_ran += predicates;
                    for column in wrong_statistics {
                        writeln!(
                            f,
                            "{table}: the log's bounds of {column} do not hold for its rows; all \
                             rows are read, and a predicate skips as the bounds say"
                        )?;
                    }
                }
                Outcome::OnlyWe { rows, error } => {
                    ran += 1;
                    let error = error.lines().next().unwrap_or_default();
                    writeln!(f, "{table}: {rows} rows, not read by deltalake: {error}")?;
                }
                Outcome::Refused(feature) => {
                    *refused.entry(feature).or_default() += 1;
                    writeln!(f, "{table}: refused, {feature}")?;
                }
                Outcome::Neither(error) => {
                    neither += 1;
                    writeln!(f, "{table}: read by neither: {error}")?;
                }
                Outcome::Different(difference) => {
                    writeln!(f, "{table}: DIFFERENT: {difference}")?;
                }
            }
        }
        let total: usize = refused.values().sum();
        let features: Vec<String> = refused
            .iter()
            .map(|(feature, count)| format!("{feature} {count}"))
            .collect();
        write!(
            f,
            "golden tables: {ran} ran ({predicates_ran} predicates), {total} refused (by feature: \
             {}), {neither} read by neither",
            features.join(", ")
        )
    }
}
