//! What is not honoured is refused by name before a file is written; odd logs give an answer or an
//! error, never a panic.

use delta_disjoint::ErrorKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Table, kind_of};

/// A table of which the log is written by hand: `id long, x long` and one data file.
struct HandMade {
    protocol: Value,
    metadata: Value,
    adds: Vec<Value>,
    dir: TempDir,
}

impl HandMade {
    /// Version 1 / 2, no properties, one file with the rows (0, 0), (1, 1), (2, 2).
    async fn new() -> Self {
        let table = Table::numbers(1, 3, "").await;
        let adds: Vec<Value> = table
            .log_entry(1)
            .into_iter()
            .filter(|action| action.get("add").is_some())
            .collect();
        let action = |version: u64, name: &str| {
            table
                .log_entry(version)
                .into_iter()
                .find_map(|action| action.get(name).cloned())
                .expect(name)
        };
        let (protocol, metadata) = (action(0, "protocol"), action(0, "metaData"));
        let dir = table.into_folder();
        std::fs::remove_file(dir.path().join(format!("_delta_log/{:020}.json", 1)))
            .expect("removed");
        Self {
            protocol,
            metadata,
            adds,
            dir,
        }
    }

    fn features(mut self, reader: &[&str], writer: &[&str]) -> Self {
        let mut protocol = json!({
            "minReaderVersion": if reader.is_empty() { 1 } else { 3 },
            "minWriterVersion": 7,
            "writerFeatures": writer,
        });
        if !reader.is_empty() {
            protocol["readerFeatures"] = json!(reader);
        }
        self.protocol = protocol;
        self
    }

    fn legacy(mut self, reader: i32, writer: i32) -> Self {
        self.protocol = json!({"minReaderVersion": reader, "minWriterVersion": writer});
        self
    }

    fn property(mut self, name: &str, value: &str) -> Self {
        self.metadata["configuration"][name] = json!(value);
        self
    }

    /// Changes the schema's fields, numbered from 1.
    fn fields(mut self, mut change: impl FnMut(usize, &mut Value)) -> Self {
        let text = self.metadata["schemaString"].as_str().expect("text");
        let mut schema: Value = serde_json::from_str(text).expect("json");
        let fields = schema["fields"].as_array_mut().expect("fields");
        for (index, field) in fields.iter_mut().enumerate() {
            change(index + 1, field);
        }
        self.metadata["schemaString"] = json!(schema.to_string());
        self
    }

    /// Changes the schema's field `x`.
    fn field_x(self, change: impl Fn(&mut Value)) -> Self {
        self.fields(|number, field| {
            if number == 2 {
                change(field);
            }
        })
    }

    fn field_metadata(self, key: &str, value: Value) -> Self {
        self.field_x(|field| field["metadata"][key] = value.clone())
    }

    fn add(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.adds[0]["add"]);
        self
    }

    /// Writes version 0 and opens the table.
    async fn open(self) -> Result<Table, datafusion::error::DataFusionError> {
        let mut lines = vec![
            json!({"protocol": self.protocol}).to_string(),
            json!({"metaData": self.metadata}).to_string(),
        ];
        lines.extend(self.adds.iter().map(Value::to_string));
        let entry = lines.join("\n");
        std::fs::write(
            self.dir.path().join(format!("_delta_log/{:020}.json", 0)),
            entry,
        )
        .expect("log entry");
        Table::open(self.dir).await
    }

    /// The message of the refusal to open it.
    async fn refused(self) -> String {
        let error = match self.open().await {
            Ok(_) => panic!("the table should be refused"),
            Err(error) => error,
        };
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        error.to_string()
    }
}

fn files_in(table: &Table) -> Vec<String> {
    let mut files: Vec<String> = std::fs::read_dir(table.path())
        .expect("folder")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    files
}

const CHANGES: [&str; 5] = [
    "INSERT INTO t VALUES (7, 7)",
    "INSERT OVERWRITE t VALUES (7, 7)",
    "UPDATE t SET x = 5 WHERE id = 1",
    "DELETE FROM t WHERE id = 1",
    "TRUNCATE TABLE t",
];

#[tokio::test]
async fn tables_that_cannot_be_read_are_refused_by_name() {
    for (table, feature) in [
        (
            HandMade::new()
                .await
                .legacy(1, 2)
                .property("delta.columnMapping.mode", "name"),
            "columnMapping",
        ),
        (
            HandMade::new()
                .await
                .features(&["catalogManaged"], &["catalogManaged"]),
            "catalogManaged",
        ),
        (
            HandMade::new()
                .await
                .features(&["madeUpFeature"], &["madeUpFeature"]),
            "madeUpFeature",
        ),
    ] {
        let message = table.refused().await;
        assert!(message.contains(feature), "{message}");
    }
}

#[tokio::test]
async fn tables_that_cannot_be_written_are_read_and_every_change_is_refused_by_name() {
    let table = HandMade::new;
    for (hand_made, feature) in [
        (
            table()
                .await
                .features(&[], &["rowTracking", "domainMetadata"])
                .property("delta.enableRowTracking", "true"),
            "rowTracking",
        ),
        (table().await.features(&[], &["rowTracking"]), "rowTracking"),
        (
            table()
                .await
                .features(&[], &["identityColumns"])
                .field_metadata("delta.identity.start", json!(1)),
            "identityColumns",
        ),
        (
            table()
                .await
                .legacy(1, 6)
                .field_metadata("delta.identity.step", json!(1)),
            "identityColumns",
        ),
        (
            table()
                .await
                .features(&[], &["appendOnly"])
                .property("delta.enableChangeDataFeed", "true"),
            "changeDataFeed",
        ),
        (
            table()
                .await
                .features(&[], &["inCommitTimestamp"])
                .property("delta.enableInCommitTimestamps", "true"),
            "inCommitTimestamp",
        ),
        (
            table()
                .await
                .features(&[], &["icebergCompatV1"])
                .property("delta.enableIcebergCompatV1", "true"),
            "icebergCompatV1",
        ),
        (
            table()
                .await
                .features(&[], &["clustering", "domainMetadata", "rowTracking"]),
            "rowTracking",
        ),
        (
            table()
                .await
                .features(&[], &["materializePartitionColumns"]),
            "materializePartitionColumns",
        ),
        (
            table()
                .await
                .features(&[], &["icebergCompatV2"])
                .property("delta.enableIcebergCompatV2", "true"),
            "icebergCompatV2",
        ),
        (
            table()
                .await
                .features(&["typeWidening"], &["typeWidening"])
                .property("delta.enableTypeWidening", "true"),
            "typeWidening",
        ),
        (
            table().await.features(&[], &["madeUpFeature"]),
            "madeUpFeature",
        ),
    ] {
        let table = hand_made.open().await.expect(feature);
        assert_eq!(
            table.rows("SELECT count(*) FROM t").await,
            ["3"],
            "{feature}"
        );
        let before = files_in(&table);
        for change in CHANGES {
            let error = table.error(change).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().contains(feature), "{error}");
        }
        assert_eq!(files_in(&table), before, "{feature}");
        assert_eq!(table.version().await, 0);
    }
}

#[tokio::test]
async fn tables_with_rules_take_rows_that_keep_them_in_every_protocol() {
    let table = HandMade::new;
    let invariant = json!("{\"expression\":{\"expression\":\"x > 0\"}}");
    for (hand_made, rule) in [
        (
            table()
                .await
                .features(&[], &["generatedColumns"])
                .field_metadata("delta.generationExpression", json!("id")),
            "generated column x",
        ),
        (
            table()
                .await
                .legacy(1, 4)
                .field_metadata("delta.generationExpression", json!("id")),
            "generated column x",
        ),
        (
            table()
                .await
                .features(&[], &["checkConstraints"])
                .property("delta.constraints.positive", "x > 0"),
            "CHECK constraint positive",
        ),
        (
            table()
                .await
                .legacy(1, 3)
                .property("delta.constraints.positive", "x > 0"),
            "CHECK constraint positive",
        ),
        (
            table()
                .await
                .legacy(1, 2)
                .field_metadata("delta.invariants", invariant.clone()),
            "invariant of the column x",
        ),
        // What the protocol does not list is held to all the same.
        (
            table()
                .await
                .features(&[], &["appendOnly"])
                .field_metadata("delta.invariants", invariant),
            "invariant of the column x",
        ),
    ] {
        let table = hand_made.open().await.expect(rule);
        let error = table.refused("INSERT INTO t VALUES (7, 0)").await;
        assert!(error.to_string().contains(rule), "{error}");
        assert_eq!(table.count("INSERT INTO t VALUES (7, 7)").await, 1);
        assert_eq!(table.version().await, 1, "{rule}");
    }
    let table = table()
        .await
        .features(&[], &["allowColumnDefaults"])
        .field_metadata("CURRENT_DEFAULT", json!("7"))
        .open()
        .await
        .expect("opens");
    table.run("INSERT INTO t (id) VALUES (9)").await;
    assert_eq!(table.rows("SELECT x FROM t WHERE id = 9").await, ["7"]);
}

#[tokio::test]
async fn features_that_are_listed_and_not_used_bind_nobody() {
    let table = HandMade::new;
    for hand_made in [
        table().await.features(
            &[],
            &[
                "appendOnly",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "identityColumns",
            ],
        ),
        table().await.legacy(1, 6),
        table()
            .await
            .legacy(1, 4)
            .property("delta.enableChangeDataFeed", "false"),
        table()
            .await
            .legacy(2, 5)
            .property("delta.columnMapping.mode", "none"),
        table().await.features(&["timestampNtz"], &["timestampNtz"]),
        table()
            .await
            .features(&[], &["appendOnly"])
            .property("delta.appendOnly", "false"),
    ] {
        let table = hand_made.open().await.expect("opens");
        assert_eq!(table.count("INSERT INTO t VALUES (7, 7)").await, 1);
        assert_eq!(table.count("UPDATE t SET x = 5 WHERE id = 1").await, 1);
        assert_eq!(table.count("DELETE FROM t WHERE id = 2").await, 1);
        assert_eq!(
            table.rows("SELECT id, x FROM t ORDER BY id").await,
            ["0|0", "1|5", "7|7"]
        );
    }
}

#[tokio::test]
async fn an_append_only_table_takes_rows_and_loses_none() {
    for hand_made in [
        HandMade::new().await.legacy(1, 2),
        HandMade::new().await.features(&[], &["appendOnly"]),
    ] {
        let table = hand_made
            .property("delta.appendOnly", "true")
            .open()
            .await
            .expect("opens");
        assert_eq!(table.count("INSERT INTO t VALUES (7, 7)").await, 1);
        for change in &CHANGES[1..] {
            let error = table.error(change).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().contains("delta.appendOnly"), "{error}");
        }
        assert_eq!(table.rows("SELECT count(*) FROM t").await, ["4"]);
    }
}

#[tokio::test]
async fn a_feature_that_comes_later_is_refused_by_the_next_statement() {
    let table = HandMade::new().await.open().await.expect("opens");
    let planned = delta_disjoint::sql(&table.ctx, "SELECT * FROM t")
        .await
        .expect("planned");
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["madeUpFeature"], "writerFeatures": ["madeUpFeature"],
    }});
    std::fs::write(
        format!("{}/_delta_log/{:020}.json", table.path(), 1),
        protocol.to_string(),
    )
    .expect("log entry");
    let errors = [
        planned.collect().await.expect_err("refused"),
        table.error("SELECT * FROM t").await,
        table.error(CHANGES[0]).await,
    ];
    for error in errors {
        assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().contains("madeUpFeature"), "{error}");
    }
}

#[tokio::test]
async fn a_file_in_another_store_is_refused_by_name() {
    for path in ["file://host/part-0.parquet", "s3://bucket/part-0.parquet"] {
        let table = HandMade::new()
            .await
            .add(|add| add["path"] = json!(path))
            .open()
            .await
            .expect("opens");
        for statement in ["SELECT * FROM t", CHANGES[2]] {
            let error = table.error(statement).await;
            assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}

#[tokio::test]
async fn a_damaged_data_file_gives_an_error_that_names_it() {
    type Damage = fn(&str);
    for (what, damage) in [
        (
            "missing",
            (|path| std::fs::remove_file(path).expect("removed")) as Damage,
        ),
        ("empty", |path| std::fs::write(path, "").expect("written")),
        ("no Parquet", |path| {
            let size = std::fs::read(path).expect("read").len();
            std::fs::write(path, vec![b'x'; size]).expect("written");
        }),
        ("cut", |path| {
            let bytes = std::fs::read(path).expect("read");
            std::fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
        }),
    ] {
        let table = HandMade::new().await.open().await.expect("opens");
        let file = table.files().await.remove(0);
        let path = file.trim_start_matches("file://");
        damage(path);
        let name = path.rsplit('/').next().expect("name");
        for statement in ["SELECT * FROM t", CHANGES[2], CHANGES[3]] {
            let error = table.error(statement).await;
            assert!(
                error.to_string().contains(name),
                "{what}, {statement}: {error}"
            );
        }
        assert_eq!(table.version().await, 0, "{what}");
    }
}

#[tokio::test]
async fn files_with_odd_statistics_are_kept() {
    for stats in [
        Value::Null,
        json!(""),
        json!("{"),
        json!("null"),
        json!("[]"),
        json!("7"),
        json!("{}"),
        json!("{\"numRecords\":3}"),
        json!("{\"numRecords\":-3}"),
        json!("{\"numRecords\":1e400}"),
        json!("{\"numRecords\":\"three\",\"minValues\":7}"),
        json!("{\"numRecords\":3,\"minValues\":{\"id\":\"zero\"},\"maxValues\":{\"id\":{}}}"),
        json!("{\"numRecords\":3,\"minValues\":{\"id\":9},\"maxValues\":{\"id\":0}}"),
        json!("{\"numRecords\":3,\"nullCount\":{\"id\":4}}"),
        json!("{\"minValues\":{\"id\":[0]},\"maxValues\":null,\"nullCount\":{\"id\":null}}"),
    ] {
        let table = HandMade::new()
            .await
            .add(|add| add["stats"] = stats.clone())
            .open()
            .await
            .expect("opens");
        for (query, expected) in [
            ("SELECT count(*), min(id), max(id) FROM t", "3|0|2"),
            ("SELECT x FROM t WHERE id = 1", "1"),
            ("SELECT count(*) FROM t WHERE id IS NULL", "0"),
            ("SELECT count(*) FROM t WHERE id IS NOT NULL", "3"),
        ] {
            assert_eq!(table.rows(query).await, [expected], "{stats}: {query}");
        }
        assert_eq!(table.count("UPDATE t SET x = 5 WHERE id = 1").await, 1);
    }
}

#[tokio::test]
async fn damaged_pages_are_an_error_and_change_nothing() {
    let table = HandMade::new().await.open().await.expect("opens");
    let file = table.files().await.remove(0);
    let path = file.trim_start_matches("file://");
    let mut bytes = std::fs::read(path).expect("read");
    bytes[4..60].fill(0xFF);
    std::fs::write(path, bytes).expect("written");
    for statement in ["SELECT * FROM t", CHANGES[2], CHANGES[3]] {
        table.error(statement).await;
    }
    assert_eq!(table.version().await, 0);
}

#[tokio::test]
async fn odd_partition_values_are_an_error_and_never_null() {
    for (values, what) in [
        (json!({}), "x"),
        (json!({"x": "seven"}), "seven"),
        (
            json!({"x": "__HIVE_DEFAULT_PARTITION__"}),
            "__HIVE_DEFAULT_PARTITION__",
        ),
        (json!({"x": "9223372036854775808"}), "9223372036854775808"),
    ] {
        let mut hand_made = HandMade::new().await;
        hand_made.metadata["partitionColumns"] = json!(["x"]);
        let opened = hand_made
            .add(|add| add["partitionValues"] = values.clone())
            .open()
            .await;
        let errors = match opened {
            Err(error) => vec![error],
            Ok(table) => {
                let mut errors = Vec::new();
                for statement in [
                    "SELECT * FROM t",
                    "SELECT id FROM t WHERE x = 7",
                    "SELECT id FROM t WHERE x IS NULL",
                    "UPDATE t SET id = 5 WHERE x = 7",
                    "DELETE FROM t WHERE x = 7",
                ] {
                    errors.push(table.error(statement).await);
                }
                errors
            }
        };
        for error in errors {
            assert_eq!(kind_of(&error), Some(ErrorKind::Corrupt), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}

#[tokio::test]
async fn types_of_columns_that_are_not_known_are_refused_by_name() {
    for (data_type, what) in [
        (json!("variant"), "variant"),
        (json!("interval"), "interval"),
        (
            json!({"type": "array", "elementType": "void", "containsNull": true}),
            "void",
        ),
    ] {
        let result = HandMade::new()
            .await
            .field_x(|field| field["type"] = data_type.clone())
            .open()
            .await;
        let error = match result {
            Ok(_) => panic!("{what} should be refused"),
            Err(error) => error,
        };
        assert!(error.to_string().contains(what), "{error}");
    }
}
