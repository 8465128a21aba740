use super::*;

fn protocol(reader: i32, writer: i32, features: &[&str]) -> TableProtocol {
    let features: BTreeSet<String> = features.iter().map(|name| (*name).to_owned()).collect();
    TableProtocol {
        min_reader_version: reader,
        min_writer_version: writer,
        reader_features: (reader == 3).then(|| features.clone()),
        writer_features: (writer == 7).then_some(features),
    }
}

fn metadata(properties: &[(&str, &str)], fields: &str) -> TableMetadata {
    TableMetadata {
        schema_string: format!(r#"{{"type":"struct","fields":[{fields}]}}"#),
        configuration: properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..TableMetadata::default()
    }
}

const ID: &str = r#"{"name":"id","type":"long","nullable":true,"metadata":{}}"#;

fn assert_refused(result: Result<()>, parts: &[&str]) {
    let error = result.expect_err("refused");
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
    for part in parts {
        assert!(error.message().contains(part), "{part} in {error}");
    }
}

#[test]
fn readable_tables_are_accepted() {
    for (protocol, properties) in [
        (protocol(1, 2, &[]), vec![]),
        (protocol(2, 5, &[]), vec![]),
        (
            protocol(2, 5, &[]),
            vec![("delta.columnMapping.mode", "none")],
        ),
        (
            protocol(2, 5, &[]),
            vec![("delta.columnMapping.mode", "name")],
        ),
        (
            protocol(3, 7, &["columnMapping"]),
            vec![("delta.columnMapping.mode", "id")],
        ),
        (
            protocol(
                3,
                7,
                &[
                    "timestampNtz",
                    "v2Checkpoint",
                    "vacuumProtocolCheck",
                    "deletionVectors",
                    "columnMapping",
                ],
            ),
            vec![],
        ),
    ] {
        check_readable(&protocol, &metadata(&properties, ID)).expect("readable table");
    }
}

#[test]
fn unreadable_tables_are_refused_by_name() {
    let plain = metadata(&[], ID);
    for (protocol, metadata, parts) in [
        (protocol(4, 7, &[]), &plain, vec!["reader version 4"]),
        (
            protocol(3, 7, &["catalogManaged"]),
            &plain,
            vec!["catalogManaged"],
        ),
        (
            protocol(1, 7, &["collations"]),
            &metadata(
                &[],
                r#"{"name":"s","type":"string","nullable":true,"metadata":{"__COLLATIONS":{"s":"ICU.de"}}}"#,
            ),
            vec!["collations", "column s"],
        ),
        (
            protocol(1, 2, &[]),
            &metadata(&[("delta.columnMapping.mode", "name")], ID),
            vec!["columnMapping", "delta.columnMapping.mode"],
        ),
        (
            protocol(3, 7, &["v2Checkpoint"]),
            &metadata(&[("delta.columnMapping.mode", "id")], ID),
            vec!["columnMapping"],
        ),
        (
            protocol(2, 5, &[]),
            &metadata(&[("delta.columnMapping.mode", "other")], ID),
            vec!["columnMapping", "delta.columnMapping.mode = other"],
        ),
    ] {
        assert_refused(check_readable(&protocol, metadata), &parts);
    }
}

#[test]
fn unknown_data_types_are_found_however_deep() {
    for (data_type, expected) in [
        (r#""decimal(38,10)""#, None),
        (r#""timestamp_ntz""#, None),
        (r#""variant""#, Some(("c", "variant"))),
        (r#""interval day""#, Some(("c", "interval day"))),
        (
            r#"{"type":"array","elementType":"variant","containsNull":true}"#,
            Some(("c", "variant")),
        ),
        (
            r#"{"type":"map","keyType":"string","valueType":"void","valueContainsNull":true}"#,
            Some(("c", "void")),
        ),
        (
            r#"{"type":"array","containsNull":true,"elementType":{"type":"struct","fields":[{"name":"x","type":"variant","nullable":true,"metadata":{}}]}}"#,
            Some(("c.element.x", "variant")),
        ),
        (
            r#"{"type":"struct","fields":[{"name":"x","type":"geometry","nullable":true,"metadata":{}}]}"#,
            Some(("c.x", "geometry")),
        ),
    ] {
        let field = format!(r#"{{"name":"c","type":{data_type},"nullable":true,"metadata":{{}}}}"#);
        let found = first_unreadable_type(&metadata(&[], &field)).expect("schema");
        assert_eq!(
            found
                .as_ref()
                .map(|(column, data_type)| (column.as_str(), data_type.as_str())),
            expected,
            "{data_type}"
        );
    }
}

#[test]
fn unused_legacy_features_are_writable() {
    for protocol in [
        protocol(1, 1, &[]),
        protocol(1, 2, &[]),
        protocol(1, 4, &[]),
        protocol(2, 6, &[]),
        protocol(
            3,
            7,
            &[
                "appendOnly",
                "timestampNtz",
                "clustering",
                "domainMetadata",
                "v2Checkpoint",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "columnMapping",
                "identityColumns",
                "allowColumnDefaults",
            ],
        ),
    ] {
        check_writable(
            &protocol,
            &metadata(&[("delta.enableChangeDataFeed", "false")], ID),
        )
        .expect("writable table");
    }
}

#[test]
fn used_features_are_refused_with_their_user() {
    let field = |key: &str| {
        format!(r#"{{"name":"c","type":"long","nullable":true,"metadata":{{"{key}":"x"}}}}"#)
    };
    let nested = format!(
        r#"{{"name":"s","type":{{"type":"array","containsNull":true,"elementType":{{"type":"struct","fields":[{}]}}}},"nullable":true,"metadata":{{}}}}"#,
        field("delta.identity.step")
    );
    for (properties, fields, parts) in [
        (
            vec![],
            nested,
            vec!["identityColumns", "column s.element.c "],
        ),
        (
            vec![],
            field("delta.identity.start"),
            vec!["identityColumns", "column c "],
        ),
    ] {
        assert_refused(
            check_writable(&protocol(2, 6, &[]), &metadata(&properties, &fields)),
            &parts,
        );
    }
}

#[test]
fn unknown_writer_features_are_refused_by_name() {
    for feature in ["rowTracking", "brandNew"] {
        assert_refused(
            check_writable(&protocol(3, 7, &[feature]), &metadata(&[], ID)),
            &[feature, "write"],
        );
    }
    assert_refused(
        check_writable(&protocol(3, 8, &[]), &metadata(&[], ID)),
        &["writer version 8"],
    );
}

#[test]
fn append_only_table_refuses_changes() {
    let table = metadata(&[("delta.appendOnly", "true")], ID);
    assert_refused(
        check_append_only(&table, "DELETE"),
        &["DELETE", "delta.appendOnly"],
    );
    check_append_only(&metadata(&[("delta.appendOnly", "false")], ID), "DELETE").expect("allowed");
    check_append_only(&metadata(&[], ID), "UPDATE").expect("allowed");
}
