//! The `OPTIONS (…)` of `CREATE EXTERNAL TABLE`: table properties on the one hand, options of the
//! store on the other, and the columns that a new table is clustered by.
//!
//! ```sql
//! CREATE EXTERNAL TABLE orders (customer_id BIGINT, total DECIMAL(12, 2))
//! STORED AS DELTA LOCATION '/data/orders'
//! OPTIONS ('delta.clusteringColumns' 'customer_id', 'delta.isolationLevel' 'Serializable')
//! ```
//!
//! `delta.clusteringColumns` takes one to four columns with commas between them; `s.b` is the field
//! `b` of the struct `s`, and a name with a dot, a comma or a space stands in backticks.
//!
//! `delta.constraints.NAME` gives the table a `CHECK` constraint; its value is the condition.
//!
//! DataFusion hands options over in lower case and puts `format.` in front of those without a dot.
//! Here the property's own spelling is found again, and its value is checked and written the way
//! every Delta reader takes it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::clustering::CLUSTERING_OPTION;
use crate::error::{Error, Result};
use crate::plan::rules::CONSTRAINT_PREFIX;
use crate::write::statistics_columns::parse_column_list;
use crate::write::table_properties::parse_bytes;

/// The options of a table, told apart.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Table properties by the names and in the values that Delta knows.
    pub properties: BTreeMap<String, String>,
    /// Columns to cluster a new table by, as paths of one name a level (`delta.clusteringColumns`).
    pub clustering_columns: Vec<Vec<String>>,
    /// Everything else: options of the object store.
    pub storage: HashMap<String, String>,
}

impl fmt::Debug for TableOptions {
    /// Without the values for the object store, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage: BTreeSet<&String> = self.storage.keys().collect();
        f.debug_struct("TableOptions")
            .field("properties", &self.properties)
            .field("clustering_columns", &self.clustering_columns)
            .field("storage", &storage)
            .finish()
    }
}

/// Tells the options of a `CREATE EXTERNAL TABLE` apart.
///
/// ```
/// use std::collections::HashMap;
/// use delta_disjoint::session::table_options::table_options;
///
/// let options = table_options(&HashMap::from([
///     ("delta.isolationlevel".to_owned(), "serializable".to_owned()),
///     ("format.aws_region".to_owned(), "eu-west-1".to_owned()),
/// ]))?;
/// assert_eq!(options.properties["delta.isolationLevel"], "Serializable");
/// assert_eq!(options.storage["aws_region"], "eu-west-1");
/// # Ok::<(), delta_disjoint::Error>(())
/// ```
pub fn table_options(options: &HashMap<String, String>) -> Result<TableOptions> {
    let mut result = TableOptions::default();
    // In order, so that of several mistakes the same one is always reported.
    let ordered: BTreeMap<&String, &String> = options.iter().collect();
    for (key, value) in ordered {
        let key = key.strip_prefix("format.").unwrap_or(key);
        if !key.to_ascii_lowercase().starts_with("delta.") {
            result.storage.insert(key.to_owned(), value.clone());
            continue;
        }
        if key.eq_ignore_ascii_case(CLUSTERING_OPTION) {
            result.clustering_columns = column_list(value)?;
            continue;
        }
        let (name, value) = property(key, value)?;
        if result.properties.insert(name.clone(), value).is_some() {
            return Err(Error::invalid(format!(
                "the table property {name} is given twice"
            )));
        }
    }
    Ok(result)
}

fn column_list(value: &str) -> Result<Vec<Vec<String>>> {
    match parse_column_list(value) {
        Some(columns) if !columns.is_empty() => Ok(columns),
        _ => Err(Error::invalid(format!(
            "the option {CLUSTERING_OPTION} cannot be `{value}`; it takes column names with commas \
             between them"
        ))),
    }
}

/// What a property may be, and how it is written.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Boolean,
    Positive,
    /// A number of columns, or −1 for all.
    IndexedColumns,
    ColumnList,
    Bytes,
    Interval,
    OneOf(&'static [&'static str]),
    /// Only these values; others need the table feature named.
    Without {
        feature: &'static str,
        allowed: &'static [&'static str],
    },
}

const FALSE: &[&str] = &["false"];

const fn without(feature: &'static str) -> Takes {
    Takes::Without {
        feature,
        allowed: FALSE,
    }
}

const PROPERTIES: &[(&str, Takes)] = &[
    ("delta.appendOnly", Takes::Boolean),
    ("delta.autoOptimize.autoCompact", Takes::Boolean),
    ("delta.autoOptimize.optimizeWrite", Takes::Boolean),
    ("delta.checkpoint.writeStatsAsJson", Takes::Boolean),
    ("delta.checkpoint.writeStatsAsStruct", Takes::Boolean),
    ("delta.checkpointInterval", Takes::Positive),
    (
        "delta.checkpointPolicy",
        Takes::Without {
            feature: "v2Checkpoint",
            allowed: &["classic"],
        },
    ),
    (
        "delta.columnMapping.mode",
        Takes::OneOf(&["none", "name", "id"]),
    ),
    ("delta.dataSkippingNumIndexedCols", Takes::IndexedColumns),
    ("delta.dataSkippingStatsColumns", Takes::ColumnList),
    ("delta.dataSkippingStringPrefixLength", Takes::Positive),
    ("delta.deletedFileRetentionDuration", Takes::Interval),
    ("delta.enableChangeDataFeed", Takes::Boolean),
    ("delta.enableDeletionVectors", without("deletionVectors")),
    ("delta.enableExpiredLogCleanup", Takes::Boolean),
    ("delta.enableIcebergCompatV1", without("icebergCompatV1")),
    ("delta.enableIcebergCompatV2", without("icebergCompatV2")),
    ("delta.enableIcebergCompatV3", without("icebergCompatV3")),
    (
        "delta.enableInCommitTimestamps",
        without("inCommitTimestamp"),
    ),
    ("delta.enableRowTracking", without("rowTracking")),
    ("delta.enableTypeWidening", without("typeWidening")),
    (
        "delta.isolationLevel",
        Takes::OneOf(&["Serializable", "WriteSerializable"]),
    ),
    ("delta.logRetentionDuration", Takes::Interval),
    (
        "delta.randomizeFilePrefixes",
        without("randomizeFilePrefixes"),
    ),
    ("delta.setTransactionRetentionDuration", Takes::Interval),
    ("delta.targetFileSize", Takes::Bytes),
    ("delta.tuneFileSizesForRewrites", Takes::Boolean),
];

/// The property that `key` names, in Delta's spelling, and `value` as it is written.
fn property(key: &str, value: &str) -> Result<(String, String)> {
    let lower = key.to_ascii_lowercase();
    if let Some(constraint) = lower.strip_prefix(CONSTRAINT_PREFIX) {
        if constraint.trim().is_empty() {
            return Err(Error::invalid(format!(
                "the option {key} names no constraint; write {CONSTRAINT_PREFIX}name"
            )));
        }
        return Ok((lower, value.trim().to_owned()));
    }
    let Some((name, takes)) = PROPERTIES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
    else {
        let closest = PROPERTIES
            .iter()
            .map(|(name, _)| *name)
            .chain([CLUSTERING_OPTION])
            .min_by_key(|name| edit_distance(&name.to_ascii_lowercase(), &lower))
            .unwrap_or_default();
        return Err(Error::invalid(format!(
            "there is no table property {key}; did you mean {closest}?"
        )));
    };
    let value = value.trim();
    let written = match takes {
        Takes::Boolean => one_of(value, &["true", "false"]).ok_or("true or false".to_owned()),
        Takes::Positive => match value.parse::<u64>() {
            // Java readers parse it as a signed 32-bit number.
            Ok(number) if number > 0 && i32::try_from(number).is_ok() => Ok(number.to_string()),
            _ => Err("a whole number from 1 on".to_owned()),
        },
        Takes::IndexedColumns => match value.parse::<i32>() {
            Ok(number) if number >= -1 => Ok(number.to_string()),
            _ => Err("a number of columns, or -1 for all".to_owned()),
        },
        Takes::ColumnList => match parse_column_list(value) {
            Some(_) => Ok(value.to_owned()),
            None => Err("column names with commas between them".to_owned()),
        },
        Takes::Bytes => match parse_bytes(value) {
            // In bytes, since not every reader knows units.
            Some(bytes) => Ok(bytes.to_string()),
            None => Err("a number of bytes, or one with a unit such as 128mb".to_owned()),
        },
        Takes::Interval => {
            interval(value).ok_or("an interval such as `interval 30 days`".to_owned())
        }
        Takes::OneOf(values) => one_of(value, values).ok_or(values.join(" or ")),
        Takes::Without { feature, allowed } => match one_of(value, allowed) {
            Some(value) => Ok(value),
            None => {
                return Err(Error::unsupported(format!(
                    "the table property {name} = {value} needs {feature}, which this version of \
                     delta-disjoint cannot write"
                )));
            }
        },
    };
    match written {
        Ok(value) => Ok(((*name).to_owned(), value)),
        Err(takes) => Err(Error::invalid(format!(
            "the table property {name} cannot be `{value}`; it takes {takes}"
        ))),
    }
}

fn one_of(value: &str, values: &[&str]) -> Option<String> {
    values
        .iter()
        .find(|known| known.eq_ignore_ascii_case(value))
        .map(|known| (*known).to_owned())
}

/// `interval N UNIT`, the form that every Delta reader takes; the word `interval` may be left out.
fn interval(value: &str) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let [number, unit] = words.strip_prefix(&["interval"]).unwrap_or(&words) else {
        return None;
    };
    let number: u32 = number.parse().ok()?;
    let known = matches!(
        unit.strip_suffix('s').unwrap_or(unit),
        "microsecond" | "millisecond" | "second" | "minute" | "hour" | "day" | "week"
    );
    known.then(|| format!("interval {number} {unit}"))
}

/// How many characters must be put in, taken out or replaced to turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (row, from) in a.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in b.iter().enumerate() {
            let replaced = previous[column] + usize::from(from != *to);
            current.push(
                replaced
                    .min(previous[column + 1] + 1)
                    .min(current[column] + 1),
            );
        }
        previous = current;
    }
    previous.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn one(key: &str, value: &str) -> Result<TableOptions> {
        table_options(&HashMap::from([(key.to_owned(), value.to_owned())]))
    }

    #[test]
    fn properties_get_their_own_spelling_and_value_back() {
        for (key, value, name, written) in [
            ("delta.appendonly", "TRUE", "delta.appendOnly", "true"),
            (
                "delta.isolationlevel",
                "writeSerializable",
                "delta.isolationLevel",
                "WriteSerializable",
            ),
            (
                "delta.targetfilesize",
                "128mb",
                "delta.targetFileSize",
                "134217728",
            ),
            (
                "delta.dataskippingnumindexedcols",
                "-1",
                "delta.dataSkippingNumIndexedCols",
                "-1",
            ),
            (
                "delta.dataskippingstatscolumns",
                "a, `B c`",
                "delta.dataSkippingStatsColumns",
                "a, `B c`",
            ),
            (
                "delta.logretentionduration",
                "INTERVAL 30 Days",
                "delta.logRetentionDuration",
                "interval 30 days",
            ),
            (
                "delta.deletedfileretentionduration",
                "1 week",
                "delta.deletedFileRetentionDuration",
                "interval 1 week",
            ),
            (
                "delta.checkpoint.writestatsasstruct",
                "false",
                "delta.checkpoint.writeStatsAsStruct",
                "false",
            ),
            (
                "delta.enablechangedatafeed",
                "True",
                "delta.enableChangeDataFeed",
                "true",
            ),
            (
                "delta.enabledeletionvectors",
                "false",
                "delta.enableDeletionVectors",
                "false",
            ),
            (
                "delta.columnmapping.mode",
                "Name",
                "delta.columnMapping.mode",
                "name",
            ),
            (
                "delta.constraints.Positive",
                " Id > 0",
                "delta.constraints.positive",
                "Id > 0",
            ),
        ] {
            let options = one(key, value).expect(key);
            assert_eq!(
                options.properties,
                BTreeMap::from([(name.to_owned(), written.to_owned())])
            );
            assert!(options.storage.is_empty());
        }
    }

    #[test]
    fn bad_values_are_refused_with_what_the_property_takes() {
        for (key, value, expected) in [
            ("delta.appendonly", "yes", "true or false"),
            ("delta.checkpointinterval", "0", "from 1 on"),
            ("delta.checkpointinterval", "3000000000", "from 1 on"),
            ("delta.dataskippingnumindexedcols", "-2", "-1 for all"),
            ("delta.dataskippingstatscolumns", "a,", "commas"),
            ("delta.targetfilesize", "big", "128mb"),
            ("delta.columnmapping.mode", "on", "none or name or id"),
            ("delta.logretentionduration", "interval 1 month", "30 days"),
            ("delta.logretentionduration", "interval -1 day", "30 days"),
            (
                "delta.isolationlevel",
                "SnapshotIsolation",
                "Serializable or WriteSerializable",
            ),
            ("delta.constraints.", "id > 0", "delta.constraints.name"),
        ] {
            let error = one(key, value).expect_err(key);
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(expected), "{error}");
        }
    }

    #[test]
    fn properties_of_features_we_do_not_write_are_refused_by_name() {
        for (key, value, expected) in [
            ("delta.enabledeletionvectors", "true", "deletionVectors"),
            ("delta.checkpointpolicy", "v2", "v2Checkpoint"),
        ] {
            let error = one(key, value).expect_err(key);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains(expected), "{error}");
        }
    }

    #[test]
    fn unknown_property_names_the_closest_one() {
        for (key, closest) in [
            ("delta.appendonlly", "delta.appendOnly"),
            ("delta.isolation_level", "delta.isolationLevel"),
            ("delta.clusteringcolumn", "delta.clusteringColumns"),
            (
                "delta.checkpointstatsasjson",
                "delta.checkpoint.writeStatsAsJson",
            ),
        ] {
            let error = one(key, "x").expect_err(key);
            assert!(error.message().contains(closest), "{error}");
        }
    }

    #[test]
    fn clustering_columns_are_no_property() {
        let path = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        for (value, expected) in [
            ("customer_id", vec![path(&["customer_id"])]),
            (" a , s.b", vec![path(&["a"]), path(&["s", "b"])]),
            ("`a.b`,`c``d`", vec![path(&["a.b"]), path(&["c`d"])]),
        ] {
            let options = one("delta.clusteringcolumns", value).expect(value);
            assert_eq!(options.clustering_columns, expected);
            assert!(options.properties.is_empty() && options.storage.is_empty());
        }
        for value in ["", " ", "a,", "s.", "`a"] {
            let error = one("delta.clusteringcolumns", value).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Invalid, "{value}");
            assert!(error.message().contains("delta.clusteringColumns"));
        }
    }

    #[test]
    fn everything_else_is_for_the_store() {
        for (key, stripped) in [
            ("format.aws_region", "aws_region"),
            ("aws.region", "aws.region"),
            ("format.delta", "delta"),
        ] {
            let options = one(key, "X").expect(key);
            assert!(options.properties.is_empty());
            assert_eq!(options.storage[stripped], "X");
        }
    }
}
