//! The change data feed of a table, as far as its protocol and metadata go.
//!
//! Source: Delta protocol, "Change Data Feed" (writer requirements) and "Change Data Files".

use serde_json::Value;

use super::column_mapping::{ColumnMappingMode, PHYSICAL_NAME};
use super::features::is_true;
use super::snapshot::{TableMetadata, TableProtocol};
use crate::error::{Error, Result};

/// The table feature of the change data feed.
pub const CHANGE_DATA_FEATURE: &str = "changeDataFeed";

/// Table property that turns the feed on.
pub const ENABLE_CHANGE_DATA_FEED: &str = "delta.enableChangeDataFeed";

/// Column of a change file that says what happened to the row.
pub const CHANGE_TYPE_COLUMN: &str = "_change_type";

/// Columns that readers of the feed add to those of the table.
const FEED_COLUMNS: [&str; 3] = [CHANGE_TYPE_COLUMN, "_commit_version", "_commit_timestamp"];

/// The least legacy writer version with the feature.
const LEGACY_WRITER_VERSION: i32 = 4;

/// The writer version from which on features are listed.
const FEATURES_WRITER_VERSION: i32 = 7;

/// Whether changes of the table must be recorded for its feed.
pub fn has_change_data_feed(metadata: &TableMetadata) -> bool {
    is_true(&metadata.configuration, ENABLE_CHANGE_DATA_FEED)
}

/// Refuses a table whose feed cannot be written: one with a column of a name that the feed needs for
/// itself, or without the table feature in its protocol. A table without a feed passes.
///
/// # Errors
///
/// `Unsupported` with the column or the property, `Corrupt` for a schema that cannot be read.
pub fn check_change_data_feed(protocol: &TableProtocol, metadata: &TableMetadata) -> Result<()> {
    if !has_change_data_feed(metadata) {
        return Ok(());
    }
    let version = protocol.min_writer_version;
    let supported = if version >= FEATURES_WRITER_VERSION {
        let listed = protocol.writer_features.as_ref();
        listed.is_some_and(|features| features.contains(CHANGE_DATA_FEATURE))
    } else {
        version >= LEGACY_WRITER_VERSION
    };
    if !supported {
        return Err(Error::unsupported(format!(
            "the table property {ENABLE_CHANGE_DATA_FEED} is set, but the table's protocol does not \
             have the table feature {CHANGE_DATA_FEATURE}; unset the property, or upgrade the \
             protocol"
        )));
    }
    check_feed_columns(metadata)
}

/// Refuses a table with a feed and a column that bears the name of one that the feed adds, in
/// whatever case: the name in the table, or where columns are mapped the one in the files, which a
/// column keeps when it is renamed.
///
/// # Errors
///
/// `Unsupported` with the column, `Corrupt` for a schema that cannot be read.
pub fn check_feed_columns(metadata: &TableMetadata) -> Result<()> {
    if !has_change_data_feed(metadata) {
        return Ok(());
    }
    let schema: Value = serde_json::from_str(&metadata.schema_string).map_err(|error| {
        Error::corrupt(format!("the schema of the table is no JSON: {error}")).with_source(error)
    })?;
    let mapped = ColumnMappingMode::of(&metadata.configuration)? != ColumnMappingMode::None;
    let fields = schema.get("fields").and_then(Value::as_array);
    for field in fields.into_iter().flatten() {
        let Some(name) = field.get("name").and_then(Value::as_str) else {
            continue;
        };
        if is_reserved(name) {
            return Err(Error::unsupported(format!(
                "the column {name} of a table with a change data feed (table property \
                 {ENABLE_CHANGE_DATA_FEED}): readers of the feed get a column of this name besides \
                 the table's; rename the column, or turn the feed off"
            )));
        }
        let keys = field.get("metadata");
        let physical = keys.and_then(|keys| keys.get(PHYSICAL_NAME)?.as_str());
        if let Some(physical) = physical.filter(|physical| mapped && is_reserved(physical)) {
            return Err(Error::unsupported(format!(
                "the column {name} of a table with a change data feed (table property \
                 {ENABLE_CHANGE_DATA_FEED}): in the files it is called {physical}, as a column of \
                 the feed; drop the column, or turn the feed off"
            )));
        }
    }
    Ok(())
}

fn is_reserved(name: &str) -> bool {
    FEED_COLUMNS
        .iter()
        .any(|column| column.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(value: &str, column: &str) -> TableMetadata {
        TableMetadata {
            schema_string: format!(
                r#"{{"type":"struct","fields":[{{"name":"{column}","type":"long"}}]}}"#
            ),
            configuration: [(ENABLE_CHANGE_DATA_FEED.to_owned(), value.to_owned())].into(),
            ..TableMetadata::default()
        }
    }

    fn protocol(version: i32, features: &[&str]) -> TableProtocol {
        TableProtocol {
            min_reader_version: 1,
            min_writer_version: version,
            reader_features: None,
            writer_features: (version >= 7)
                .then(|| features.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    #[test]
    fn feed_needs_its_feature_in_the_protocol() {
        for (version, features, allowed) in [
            (2, &[] as &[&str], false),
            (3, &[], false),
            (4, &[], true),
            (6, &[], true),
            (7, &[], false),
            (7, &["changeDataFeed"], true),
        ] {
            let protocol = protocol(version, features);
            let checked = check_change_data_feed(&protocol, &metadata("true", "id"));
            assert_eq!(checked.is_ok(), allowed, "{version} {features:?}");
            check_change_data_feed(&protocol, &metadata("false", "_change_type"))
                .expect("there is no feed");
        }
    }

    #[test]
    fn columns_of_the_feed_are_reserved() {
        for column in ["_change_type", "_commit_version", "_Commit_Timestamp"] {
            let error = check_change_data_feed(&protocol(4, &[]), &metadata(" TRUE ", column))
                .expect_err(column);
            assert!(error.message().contains(column), "{error}");
        }
        check_change_data_feed(&protocol(4, &[]), &metadata("true", "change_type"))
            .expect("another name");
    }

    /// A column that was renamed has the old name in the files still.
    #[test]
    fn columns_of_the_feed_are_reserved_in_the_files_too() {
        for (physical, mode, allowed) in [
            ("_change_type", "name", false),
            ("_CHANGE_TYPE", "id", false),
            ("_commit_version", "name", false),
            ("col-1", "name", true),
            // Without a mode the files have the names of the table.
            ("_change_type", "none", true),
        ] {
            let mut metadata = metadata("true", "kind");
            metadata.schema_string = format!(
                r#"{{"type":"struct","fields":[{{"name":"kind","type":"long",
                "metadata":{{"delta.columnMapping.physicalName":"{physical}"}}}}]}}"#
            );
            let mode = ("delta.columnMapping.mode".to_owned(), mode.to_owned());
            metadata.configuration.extend([mode]);
            let checked = check_feed_columns(&metadata);
            assert_eq!(checked.is_ok(), allowed, "{physical} {metadata:?}");
            if let Err(error) = checked {
                let message = error.message();
                assert!(message.contains("column kind") && message.contains(physical));
            }
        }
    }
}
