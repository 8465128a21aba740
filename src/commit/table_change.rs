//! Which changes of metadata and protocol by a winner leave our work valid.

use std::collections::BTreeSet;

use crate::read::snapshot::{TableMetadata, TableProtocol};

/// Properties that change neither what rows mean nor how they must be written.
const HARMLESS_PROPERTIES: [&str; 2] = ["delta.enableDeletionVectors", "delta.checkpointPolicy"];

/// Features that a commit planned without them still honours.
const HARMLESS_FEATURES: [&str; 2] = ["deletionVectors", "v2Checkpoint"];

/// Highest versions this crate knows. Source: Delta protocol, "Table Features".
const KNOWN_READER_VERSION: i32 = 3;
const KNOWN_WRITER_VERSION: i32 = 7;

/// Features that a legacy writer version stands for, with the least such version.
///
/// Source: Delta protocol, "Supported Features when using table features".
const LEGACY_WRITER_FEATURES: [(&str, i32); 7] = [
    ("appendOnly", 2),
    ("invariants", 2),
    ("checkConstraints", 3),
    ("changeDataFeed", 4),
    ("generatedColumns", 4),
    ("columnMapping", 5),
    ("identityColumns", 6),
];
const LEGACY_READER_FEATURES: [(&str, i32); 1] = [("columnMapping", 2)];

/// What `theirs` changes in `ours` that makes our work invalid; `None` if nothing does.
///
/// Schema, partition columns and all properties but the harmless ones must
/// be equal.
pub fn metadata_conflict(ours: &TableMetadata, theirs: &TableMetadata) -> Option<String> {
    if ours.id != theirs.id {
        return Some("the table was replaced".to_owned());
    }
    if !same_schema(&ours.schema_string, &theirs.schema_string) {
        return Some("the schema changed".to_owned());
    }
    if ours.partition_columns != theirs.partition_columns {
        return Some("the partition columns changed".to_owned());
    }
    let names = ours
        .configuration
        .keys()
        .chain(theirs.configuration.keys())
        .filter(|name| !HARMLESS_PROPERTIES.contains(&name.as_str()));
    for name in names {
        if ours.configuration.get(name) != theirs.configuration.get(name) {
            return Some(format!("property {name} changed"));
        }
    }
    let rest = |metadata: &TableMetadata| TableMetadata {
        configuration: Default::default(),
        schema_string: String::new(),
        ..metadata.clone()
    };
    (rest(ours) != rest(theirs)).then(|| "name, description or format changed".to_owned())
}

/// Whether two schemas in Delta's JSON form are one. Other writers put the keys of an object in
/// another order, the fields of a struct never.
fn same_schema(ours: &str, theirs: &str) -> bool {
    let parse = serde_json::from_str::<serde_json::Value>;
    ours == theirs
        || match (parse(ours), parse(theirs)) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => false,
        }
}

/// What `theirs` changes in `ours` that makes our work invalid; `None` if nothing does.
///
/// Only the harmless features may be gained, and none may be lost. A legacy
/// version counts as the features it stands for.
pub fn protocol_conflict(ours: &TableProtocol, theirs: &TableProtocol) -> Option<String> {
    if ours == theirs {
        return None;
    }
    if theirs.min_reader_version > KNOWN_READER_VERSION
        || theirs.min_writer_version > KNOWN_WRITER_VERSION
    {
        return Some(format!(
            "the protocol is now reader version {} and writer version {}",
            theirs.min_reader_version, theirs.min_writer_version
        ));
    }
    let pairs = [
        (reader_features(ours), reader_features(theirs)),
        (writer_features(ours), writer_features(theirs)),
    ];
    for (ours, theirs) in &pairs {
        if let Some(lost) = ours.difference(theirs).next() {
            return Some(format!("feature {lost} was dropped"));
        }
        if let Some(gained) = theirs
            .difference(ours)
            .find(|feature| !HARMLESS_FEATURES.contains(feature))
        {
            return Some(format!("feature {gained} was added"));
        }
    }
    None
}

fn reader_features(protocol: &TableProtocol) -> BTreeSet<&str> {
    features(
        protocol.reader_features.as_ref(),
        protocol.min_reader_version,
        KNOWN_READER_VERSION,
        &LEGACY_READER_FEATURES,
    )
}

fn writer_features(protocol: &TableProtocol) -> BTreeSet<&str> {
    features(
        protocol.writer_features.as_ref(),
        protocol.min_writer_version,
        KNOWN_WRITER_VERSION,
        &LEGACY_WRITER_FEATURES,
    )
}

fn features<'a>(
    listed: Option<&'a BTreeSet<String>>,
    version: i32,
    table_features_from: i32,
    legacy: &[(&'static str, i32)],
) -> BTreeSet<&'a str> {
    let mut features: BTreeSet<&str> = listed.into_iter().flatten().map(String::as_str).collect();
    if version < table_features_from {
        features.extend(
            legacy
                .iter()
                .filter(|(_, least)| version >= *least)
                .map(|(feature, _)| *feature),
        );
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_is_the_same_in_any_order_of_keys_but_not_of_fields() {
        let base =
            r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"b","type":"long"}]}"#;
        let cases = [
            (base, true),
            (
                r#"{"fields": [{"type":"long","name":"a"},{"name":"b","type":"long"}], "type":"struct"}"#,
                true,
            ),
            (
                r#"{"type":"struct","fields":[{"name":"b","type":"long"},{"name":"a","type":"long"}]}"#,
                false,
            ),
            (
                r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"b","type":"integer"}]}"#,
                false,
            ),
            (
                r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"b","type":"long","nullable":true}]}"#,
                false,
            ),
            ("{", false),
        ];
        for (other, expected) in cases {
            assert_eq!(same_schema(base, other), expected, "{other}");
            assert_eq!(same_schema(other, base), expected, "{other}");
        }
        assert!(same_schema("{", "{"));
    }

    #[test]
    fn only_harmless_metadata_changes_pass() {
        let base = TableMetadata {
            id: "i".into(),
            schema_string: "s".into(),
            configuration: [("delta.appendOnly".to_owned(), "false".to_owned())].into(),
            ..TableMetadata::default()
        };
        type Change = fn(&mut TableMetadata);
        let cases: [(&str, Change, Option<&str>); 10] = [
            ("same", |_| {}, None),
            (
                "deletion vectors",
                |m| {
                    m.configuration
                        .insert("delta.enableDeletionVectors".into(), "true".into());
                },
                None,
            ),
            (
                "checkpoint policy",
                |m| {
                    m.configuration
                        .insert("delta.checkpointPolicy".into(), "v2".into());
                },
                None,
            ),
            (
                "column added",
                |m| m.schema_string = "t".into(),
                Some("schema"),
            ),
            (
                "partitioning",
                |m| m.partition_columns.push("p".into()),
                Some("partition"),
            ),
            (
                "constraint set",
                |m| {
                    m.configuration
                        .insert("delta.constraints.c".into(), "x > 0".into());
                },
                Some("delta.constraints.c"),
            ),
            (
                "property unset",
                |m| m.configuration.clear(),
                Some("delta.appendOnly"),
            ),
            (
                "property changed",
                |m| {
                    m.configuration
                        .insert("delta.appendOnly".into(), "true".into());
                },
                Some("delta.appendOnly"),
            ),
            ("other table", |m| m.id = "j".into(), Some("replaced")),
            (
                "comment",
                |m| m.description = Some("d".into()),
                Some("description"),
            ),
        ];
        for (name, change, expected) in cases {
            let mut theirs = base.clone();
            change(&mut theirs);
            let found = metadata_conflict(&base, &theirs);
            match expected {
                None => assert_eq!(found, None, "{name}"),
                Some(word) => assert!(
                    found.as_deref().is_some_and(|why| why.contains(word)),
                    "{name}: {found:?}"
                ),
            }
        }
    }

    #[test]
    fn only_harmless_features_may_be_gained_and_none_lost() {
        let protocol = |reader: i32, writer: i32, readers: &[&str], writers: &[&str]| {
            let set = |features: &[&str]| Some(features.iter().map(|f| (*f).to_owned()).collect());
            TableProtocol {
                min_reader_version: reader,
                min_writer_version: writer,
                reader_features: set(readers).filter(|_| reader >= 3),
                writer_features: set(writers).filter(|_| writer >= 7),
            }
        };
        let legacy = || protocol(1, 2, &[], &[]);
        let upgraded = |readers: &[&str], writers: &[&str]| {
            let mut all = vec!["appendOnly", "invariants"];
            all.extend(writers);
            protocol(3, 7, readers, &all)
        };
        let cases = [
            ("same", legacy(), legacy(), None),
            (
                "legacy features spelled out",
                legacy(),
                upgraded(&[], &[]),
                None,
            ),
            (
                "deletion vectors",
                legacy(),
                upgraded(&["deletionVectors"], &["deletionVectors"]),
                None,
            ),
            (
                "v2 checkpoints",
                legacy(),
                upgraded(&["v2Checkpoint"], &["v2Checkpoint"]),
                None,
            ),
            (
                "check constraints by version",
                legacy(),
                protocol(1, 3, &[], &[]),
                Some("checkConstraints"),
            ),
            (
                "column mapping by version",
                legacy(),
                protocol(2, 5, &[], &[]),
                Some("columnMapping"),
            ),
            (
                "row tracking",
                legacy(),
                upgraded(&[], &["rowTracking"]),
                Some("rowTracking"),
            ),
            (
                "feature dropped",
                upgraded(&["deletionVectors"], &["deletionVectors"]),
                upgraded(&[], &[]),
                Some("dropped"),
            ),
            (
                "invariants dropped",
                legacy(),
                protocol(3, 7, &[], &["appendOnly"]),
                Some("invariants"),
            ),
            (
                "unknown version",
                legacy(),
                protocol(4, 8, &[], &[]),
                Some("version 4"),
            ),
        ];
        for (name, ours, theirs, expected) in cases {
            let found = protocol_conflict(&ours, &theirs);
            match expected {
                None => assert_eq!(found, None, "{name}"),
                Some(word) => assert!(
                    found.as_deref().is_some_and(|why| why.contains(word)),
                    "{name}: {found:?}"
                ),
            }
        }
    }
}
