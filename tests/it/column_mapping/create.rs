//! Creating mapped tables.

use serde_json::{Value, json};

use super::{adds, same_in_deltalake};
use crate::support::{Table, kind_of, try_run};
use delta_disjoint::{ErrorKind, session};

fn action(table: &Table, name: &str) -> Value {
    table
        .log_entry(0)
        .into_iter()
        .find_map(|action| action.get(name).cloned())
        .expect("action")
}

#[tokio::test]
async fn a_table_is_created_with_ids_and_physical_names() {
    for mode in ["name", "id"] {
        let table = Table::create(
            "id BIGINT, s STRUCT<x BIGINT, y STRUCT<z VARCHAR>>, l STRUCT<v BIGINT>[], p INT",
            &format!("PARTITIONED BY (p) OPTIONS ('delta.columnMapping.mode' '{mode}')"),
            &[],
        )
        .await;
        assert_eq!(
            action(&table, "protocol"),
            json!({"minReaderVersion": 2, "minWriterVersion": 5})
        );
        let metadata = action(&table, "metaData");
        assert_eq!(
            metadata["configuration"],
            json!({"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "8"})
        );
        assert_eq!(metadata["partitionColumns"], json!(["p"]));
        let mut schema: Value =
            serde_json::from_str(metadata["schemaString"].as_str().expect("text")).expect("json");
        let mut found = Vec::new();
        walk(&mut schema, &mut found);
        let ids: Vec<(&str, i64)> = found
            .iter()
            .map(|(name, id, _)| (name.as_str(), *id))
            .collect();
        assert_eq!(
            ids,
            [
                ("id", 1),
                ("s", 2),
                ("x", 3),
                ("y", 4),
                ("z", 5),
                ("l", 6),
                ("v", 7),
                ("p", 8)
            ]
        );
        let mut physical: Vec<&str> = found.iter().map(|(.., name)| name.as_str()).collect();
        physical.sort_unstable();
        physical.dedup();
        assert_eq!(physical.len(), 8);
        assert!(
            physical.iter().all(|name| name.starts_with("col-")),
            "{physical:?}"
        );

        table
            .run(
                "INSERT INTO t VALUES (1, named_struct('x', 2, 'y', named_struct('z', 'three')), \
                 [named_struct('v', 4)], 5), (6, NULL, NULL, NULL)",
            )
            .await;
        assert_eq!(table.count("UPDATE t SET id = 7 WHERE p IS NULL").await, 1);
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            ["1|{x: 2, y: {z: three}}|[{v: 4}]|5", "7|NULL|NULL|NULL"]
        );
        same_in_deltalake(&table, "SELECT * FROM t ORDER BY id").await;
    }
}

fn walk(data_type: &mut Value, found: &mut Vec<(String, i64, String)>) {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    if let Some(fields) = data_type.get_mut("fields").and_then(Value::as_array_mut) {
        for field in fields {
            let metadata = &field["metadata"];
            found.push((
                text(&field["name"]),
                metadata["delta.columnMapping.id"].as_i64().expect("id"),
                text(&metadata["delta.columnMapping.physicalName"]),
            ));
            walk(&mut field["type"], found);
        }
    }
    if let Some(element) = data_type.get_mut("elementType") {
        walk(element, found);
    }
}

#[tokio::test]
async fn a_mapped_table_may_have_any_names_and_timestamps_without_zone() {
    let table = Table::create(
        "\"Customer ID\" BIGINT, \"a,b;{}()=\" STRUCT<\"in side\" VARCHAR>, at TIMESTAMP",
        "OPTIONS ('delta.columnMapping.mode' 'name', 'delta.appendOnly' 'false')",
        &["VALUES (1, named_struct('in side', 'x'), TIMESTAMP '2020-01-01T00:00:00')"],
    )
    .await;
    assert_eq!(
        action(&table, "protocol"),
        json!({
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["columnMapping", "timestampNtz"],
            "writerFeatures": ["appendOnly", "columnMapping", "timestampNtz"],
        })
    );
    assert_eq!(
        table
            .count("UPDATE t SET at = at WHERE \"Customer ID\" = 1")
            .await,
        1
    );
    same_in_deltalake(&table, "SELECT * FROM t").await;
    // The same declaration opens it again.
    let location = table.path();
    let again = format!(
        "CREATE EXTERNAL TABLE t (\"Customer ID\" BIGINT, \"a,b;{{}}()=\" STRUCT<\"in side\" VARCHAR>, \
         at TIMESTAMP) STORED AS DELTA LOCATION '{location}' \
         OPTIONS ('delta.columnMapping.mode' '$')"
    );
    try_run(&session(), &again.replace('$', "name"))
        .await
        .expect("opens");
    let error = try_run(&session(), &again.replace('$', "id"))
        .await
        .expect_err("other mode");
    assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{error}");
}

#[tokio::test]
async fn checkpoints_keep_physical_names() {
    for mode in ["name", "id"] {
        let table = Table::create(
            "id BIGINT, x BIGINT, p INT",
            &format!(
                "PARTITIONED BY (p) OPTIONS ('delta.columnMapping.mode' '{mode}', \
                 'delta.checkpointInterval' '3')"
            ),
            &[
                "VALUES (1, 1, 1)",
                "VALUES (100, 100, 1)",
                "VALUES (1, 1, 2)",
            ],
        )
        .await;
        let folder = std::fs::read_dir(format!("{}/_delta_log", table.path())).expect("log");
        let checkpoints = folder
            .filter(|entry| {
                let name = entry.as_ref().expect("entry").file_name();
                name.to_string_lossy().contains(".checkpoint")
            })
            .count();
        assert_eq!(checkpoints, 1, "{mode}");
        // Whoever comes now starts from the checkpoint alone.
        for version in 0..=2 {
            std::fs::remove_file(format!("{}/_delta_log/{version:020}.json", table.path()))
                .expect("cleaned up");
        }
        let other = table.other_session().await;
        for (query, expected) in [
            (
                "SELECT id, x, p FROM t ORDER BY p, id",
                vec!["1|1|1", "100|100|1", "1|1|2"],
            ),
            ("SELECT id FROM t WHERE x = 100", vec!["100"]),
        ] {
            assert_eq!(
                crate::support::rows(&other, query).await,
                expected,
                "{mode}"
            );
        }
        let explained = crate::support::rows(&other, "EXPLAIN SELECT id FROM t WHERE x > 50").await;
        assert!(
            explained.join("").contains("files_pruned=2"),
            "{explained:?}"
        );
        let explained = crate::support::rows(&other, "EXPLAIN SELECT id FROM t WHERE p = 2").await;
        assert!(
            explained.join("").contains("files_pruned=2"),
            "{explained:?}"
        );
        same_in_deltalake(&table, "SELECT id, x, p FROM t ORDER BY p, id").await;
    }
}

#[tokio::test]
async fn a_mapped_table_is_clustered_by_physical_names_whose_statistics_are_always_there() {
    for mode in ["name", "id"] {
        let table = Table::create(
            "id BIGINT, s STRUCT<k BIGINT, other BIGINT>, x BIGINT",
            &format!(
                "OPTIONS ('delta.columnMapping.mode' '{mode}', 'delta.clusteringColumns' 's.k', \
                 'delta.dataSkippingStatsColumns' 'id')"
            ),
            &["VALUES (1, named_struct('k', 5, 'other', 6), 7)"],
        )
        .await;
        assert_eq!(
            action(&table, "protocol"),
            json!({
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["columnMapping"],
                "writerFeatures": ["clustering", "columnMapping", "domainMetadata"],
            })
        );
        let metadata = action(&table, "metaData");
        let mut schema: Value =
            serde_json::from_str(metadata["schemaString"].as_str().expect("text")).expect("json");
        let mut found = Vec::new();
        walk(&mut schema, &mut found);
        let physical = |name: &str| {
            let field = found.iter().find(|(known, ..)| known == name);
            field.expect("field").2.clone()
        };
        let configuration = action(&table, "domainMetadata")["configuration"].clone();
        let configuration: Value =
            serde_json::from_str(configuration.as_str().expect("text")).expect("json");
        assert_eq!(
            configuration["clusteringColumns"],
            json!([[physical("s"), physical("k")]])
        );
        let expected = json!({physical("id"): 1, physical("s"): {physical("k"): 5}});
        assert_eq!(adds(&table, 1)[0].1["minValues"], expected, "{mode}");
        assert_eq!(table.count("UPDATE t SET x = 8 WHERE s['k'] = 5").await, 1);
        assert_eq!(adds(&table, 2)[0].1["minValues"], expected, "{mode}");
        same_in_deltalake(&table, "SELECT * FROM t").await;
    }
}
