//! The `delta.*` options of a session, set with `SET delta.… = …`.

use std::any::Any;
use std::fmt::Display;
use std::str::FromStr;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::Result as DataFusionResult;

use crate::error::{Error, Result};

/// Options of this crate, registered as a DataFusion configuration extension with the prefix
/// `delta`.
///
/// ```
/// use datafusion::common::config::ConfigOptions;
/// use delta_disjoint::config::DeltaOptions;
///
/// let mut config = ConfigOptions::default();
/// config.extensions.insert(DeltaOptions::default());
/// config.set("delta.max_commit_attempts", "3")?;
/// assert_eq!(DeltaOptions::from_config(&config).max_commit_attempts, 3);
/// assert!(config.set("delta.max_commit_attempts", "0").is_err());
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeltaOptions {
    /// Whether the conflict check may use the statistics of a winner's files. Without them only
    /// partition values tell files apart; every other rule stays.
    pub conflict_data_skipping: bool,
    /// How often one statement tries to write its commit before it is
    /// [contended](crate::ErrorKind::Contended). At least 1.
    pub max_commit_attempts: usize,
    /// How many winning commits are read at the same time. At least 1.
    pub winner_read_concurrency: usize,
    /// How many different keys of a MERGE's source (or of an `IN (SELECT …)` or `EXISTS` of DELETE
    /// and UPDATE) are told apart, for each key column, when files are skipped and when conflicts
    /// are looked for; if there are more, all that lies between the least and the greatest counts.
    /// At least 1.
    pub key_set_limit: usize,
    /// How often a whole statement is planned and run again, on the then newest version, after a
    /// real conflict. 0, the default, leaves that to the caller, as a transaction always does.
    pub statement_reruns: usize,
}

impl DeltaOptions {
    /// The options in `config`; the defaults where the extension is not registered.
    pub fn from_config(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Sets the option `key`, without the prefix, to its default.
    ///
    /// # Errors
    ///
    /// `Invalid` if there is no such option.
    pub fn reset(&mut self, key: &str) -> Result<()> {
        let entries = Self::default().entries();
        let name = format!("{}.{key}", Self::PREFIX);
        let default = entries.into_iter().find(|entry| entry.key == name);
        let value = default.and_then(|entry| entry.value).unwrap_or_default();
        self.set_option(key, &value)
    }

    fn set_option(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            CONFLICT_DATA_SKIPPING => self.conflict_data_skipping = parse(key, value)?,
            MAX_COMMIT_ATTEMPTS => self.max_commit_attempts = parse_count(key, value)?,
            WINNER_READ_CONCURRENCY => self.winner_read_concurrency = parse_count(key, value)?,
            KEY_SET_LIMIT => self.key_set_limit = parse_count(key, value)?,
            STATEMENT_RERUNS => self.statement_reruns = parse(key, value)?,
            _ => {
                return Err(Error::invalid(format!(
                    "there is no option delta.{key}; the options are delta.{CONFLICT_DATA_SKIPPING}, \
                     delta.{MAX_COMMIT_ATTEMPTS}, delta.{WINNER_READ_CONCURRENCY}, \
                     delta.{KEY_SET_LIMIT} and delta.{STATEMENT_RERUNS}"
                )));
            }
        }
        Ok(())
    }
}

impl Default for DeltaOptions {
    fn default() -> Self {
        Self {
            conflict_data_skipping: true,
            max_commit_attempts: 20,
            winner_read_concurrency: 8,
            key_set_limit: 10_000,
            statement_reruns: 0,
        }
    }
}

impl ConfigExtension for DeltaOptions {
    const PREFIX: &'static str = "delta";
}

impl ExtensionOptions for DeltaOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> DataFusionResult<()> {
        Ok(self.set_option(key, value)?)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        vec![
            entry(
                CONFLICT_DATA_SKIPPING,
                &self.conflict_data_skipping,
                "Whether the conflict check may use the statistics of a winner's files",
            ),
            entry(
                MAX_COMMIT_ATTEMPTS,
                &self.max_commit_attempts,
                "How often one statement tries to write its commit",
            ),
            entry(
                WINNER_READ_CONCURRENCY,
                &self.winner_read_concurrency,
                "How many winning commits are read at the same time",
            ),
            entry(
                KEY_SET_LIMIT,
                &self.key_set_limit,
                "How many different keys of the other side of a join are told apart",
            ),
            entry(
                STATEMENT_RERUNS,
                &self.statement_reruns,
                "How often a statement is planned and run again after a conflict",
            ),
        ]
    }
}

const CONFLICT_DATA_SKIPPING: &str = "conflict_data_skipping";
const MAX_COMMIT_ATTEMPTS: &str = "max_commit_attempts";
const WINNER_READ_CONCURRENCY: &str = "winner_read_concurrency";
const KEY_SET_LIMIT: &str = "key_set_limit";
const STATEMENT_RERUNS: &str = "statement_reruns";

fn parse<T: FromStr>(key: &str, value: &str) -> Result<T> {
    value.trim().to_ascii_lowercase().parse().map_err(|_| {
        Error::invalid(format!(
            "delta.{key} cannot be `{value}`; it takes {}",
            match key {
                CONFLICT_DATA_SKIPPING => "true or false",
                STATEMENT_RERUNS => "a whole number from 0 on",
                _ => "a whole number from 1 on",
            }
        ))
    })
}

fn parse_count(key: &str, value: &str) -> Result<usize> {
    match parse(key, value)? {
        0 => Err(Error::invalid(format!("delta.{key} must be at least 1"))),
        count => Ok(count),
    }
}

fn entry(key: &str, value: &impl Display, description: &'static str) -> ConfigEntry {
    ConfigEntry {
        // With the prefix, which DataFusion does not add: `SHOW` looks for the whole name.
        key: format!("{}.{key}", DeltaOptions::PREFIX),
        value: Some(value.to_string()),
        description,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    #[tokio::test]
    async fn set_statement_changes_the_option() {
        let mut config = SessionConfig::new().with_information_schema(true);
        config
            .options_mut()
            .extensions
            .insert(DeltaOptions::default());
        let context = SessionContext::new_with_config(config);
        for statement in [
            "SET delta.conflict_data_skipping = false",
            "SET delta.max_commit_attempts = 3",
            "SET delta.winner_read_concurrency = 2",
            "SET delta.key_set_limit = 7",
            "SET delta.statement_reruns = 4",
        ] {
            context.sql(statement).await.expect(statement);
        }
        let state = context.state();
        assert_eq!(
            DeltaOptions::from_config(state.config_options()),
            DeltaOptions {
                conflict_data_skipping: false,
                max_commit_attempts: 3,
                winner_read_concurrency: 2,
                key_set_limit: 7,
                statement_reruns: 4,
            }
        );
        let shown = context
            .sql("SHOW delta.max_commit_attempts")
            .await
            .expect("plans")
            .count()
            .await
            .expect("runs");
        assert_eq!(shown, 1);
    }

    #[test]
    fn bad_value_names_the_option_and_what_it_takes() {
        for (key, value, expected) in [
            ("delta.max_commit_attempts", "0", "must be at least 1"),
            ("delta.max_commit_attempts", "-1", "a whole number"),
            ("delta.winner_read_concurrency", "0", "must be at least 1"),
            ("delta.conflict_data_skipping", "2", "true or false"),
            ("delta.statement_reruns", "-1", "from 0 on"),
            ("delta.nonsense", "1", "there is no option delta.nonsense"),
        ] {
            let mut config = ConfigOptions::default();
            config.extensions.insert(DeltaOptions::default());
            let error = config.set(key, value).expect_err(value);
            let message = Error::find(&error).expect("ours").to_string();
            assert!(message.contains(expected), "{message}");
            assert_eq!(DeltaOptions::from_config(&config), DeltaOptions::default());
        }
    }

    #[test]
    fn unregistered_extension_gives_the_defaults() {
        assert_eq!(
            DeltaOptions::from_config(&ConfigOptions::default()),
            DeltaOptions::default()
        );
    }
}
