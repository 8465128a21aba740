//! Changing mapped tables: what is written bears physical names and field ids, and the rows that
//! stay are the same rows.

use std::collections::BTreeMap;
use std::fs::File;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::schema::types::Type;
use serde_json::{Value, json};

use super::{HandMade, IDS, ROWS, adds, field, nested_fields, same_in_deltalake};
use crate::support::Table;

/// The field ids in the Parquet file at `path`, by the names on the way to the field.
fn field_ids(table: &Table, path: &str) -> BTreeMap<String, i32> {
    fn walk(field: &Type, path: &str, ids: &mut BTreeMap<String, i32>) {
        let path = match path {
            "" => field.name().to_owned(),
            path => format!("{path}.{}", field.name()),
        };
        if field.get_basic_info().has_id() {
            ids.insert(path.clone(), field.get_basic_info().id());
        } else if field.is_primitive() {
            // Keys and elements have none.
            ids.insert(path.clone(), -1);
        }
        if field.is_group() {
            for field in field.get_fields() {
                walk(field, &path, ids);
            }
        }
    }
    let file = File::open(format!("{}/{path}", table.path())).expect("file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("reader");
    let mut ids = BTreeMap::new();
    for field in reader.parquet_schema().root_schema().get_fields() {
        walk(field, "", &mut ids);
    }
    ids
}

const ALL: &str = "SELECT id, s, l, m, \"b.c\", late, ls FROM t ORDER BY id";

#[tokio::test]
async fn every_statement_keeps_names_ids_and_rows() {
    for (mode, features) in [("name", false), ("id", true)] {
        let table = HandMade::new(&nested_fields(), mode, &[]);
        let table = if features {
            table.with_features()
        } else {
            table
        };
        let table = table
            .file(ROWS, IDS, json!({"numRecords": 2}))
            .await
            .open()
            .await;
        let inserted = "INSERT INTO t VALUES (3, named_struct('x', 30, 'b.c', 40, 'inner', \
             named_struct('c', 'n'), 'new', 50), [named_struct('v', 80)], \
             MAP {'k': named_struct('w', 100)}, 110, 'L', ['z'])";
        assert_eq!(table.count(inserted).await, 1);
        let three = "3|{x: 30, b.c: 40, inner: {c: n}, new: 50}|[{v: 80}]|{k: {w: 100}}|110|L|[z]";
        let one = "1|{x: 3, b.c: 4, inner: {c: deep}, new: NULL}|[{v: 8}, {v: NULL}]|{k: {w: 10}}";
        let nulls = "NULL|NULL|NULL";
        assert_eq!(
            table.rows(ALL).await,
            [
                format!("{one}|11|NULL|[p, NULL]"),
                format!("2|{nulls}|{nulls}"),
                three.to_owned(),
            ],
            "{mode}"
        );
        same_in_deltalake(&table, ALL).await;

        let (add, stats) = adds(&table, 1).remove(0);
        let path = add["path"].as_str().expect("path");
        let expected: BTreeMap<String, i32> = [
            ("col-id", 1),
            ("col-s", 2),
            ("col-s.col-x", 3),
            ("col-s.col-bc", 4),
            ("col-s.col-inner", 5),
            ("col-s.col-inner.col-c", 6),
            ("col-s.col-snew", 20),
            ("col-l", 7),
            ("col-l.list.element.col-v", 8),
            ("col-m", 9),
            ("col-m.entries.key", -1),
            ("col-m.entries.value.col-w", 10),
            ("col-d", 11),
            ("col-late", 12),
            ("col-ls", 13),
            ("col-ls.list.element", -1),
        ]
        .map(|(path, id)| (path.to_owned(), id))
        .into();
        let normal = |ids: BTreeMap<String, i32>| -> BTreeMap<String, i32> {
            ids.into_iter()
                .map(|(path, id)| {
                    let path = path.replace(".key_value.", ".entries.");
                    let path = path.replace(".list.item", ".list.element");
                    (path.replace(".list.array", ".list.element"), id)
                })
                .collect()
        };
        assert_eq!(normal(field_ids(&table, path)), expected, "{mode}");
        assert_eq!(
            stats["minValues"],
            json!({
                "col-id": 3, "col-d": 110, "col-late": "L",
                "col-s": {"col-x": 30, "col-bc": 40, "col-inner": {"col-c": "n"}, "col-snew": 50},
            }),
            "{mode}"
        );
        assert_eq!(stats["maxValues"], stats["minValues"], "{mode}");
        assert_eq!(
            stats["nullCount"]["col-s"]["col-inner"]["col-c"], 0,
            "{mode}"
        );

        // Of the old file, one row changes and one is copied; its dropped columns end there.
        assert_eq!(
            table.count("UPDATE t SET late = 'new' WHERE id = 2").await,
            1
        );
        let (add, stats) = adds(&table, 2)
            .into_iter()
            .find(|(_, stats)| stats["minValues"]["col-id"] == 1)
            .expect("the file of the rows that stay");
        let path = add["path"].as_str().expect("path");
        assert_eq!(normal(field_ids(&table, path)), expected, "{mode}");
        assert!(stats["minValues"]["late"].is_null(), "{stats}");
        assert_eq!(
            table.rows(ALL).await,
            [
                format!("{one}|11|NULL|[p, NULL]"),
                "2|NULL|NULL|NULL|NULL|new|NULL".to_owned(),
                three.to_owned(),
            ],
            "{mode}"
        );
        same_in_deltalake(&table, ALL).await;
        let update = "UPDATE t SET \"b.c\" = s['x'] + l[1]['v'] + m['k']['w'] WHERE s['x'] > 3";
        assert_eq!(table.count(update).await, 1);
        assert_eq!(
            table.rows("SELECT \"b.c\" FROM t WHERE id = 3").await,
            ["210"]
        );
        assert_eq!(
            table
                .count("DELETE FROM t WHERE s['inner']['c'] = 'deep'")
                .await,
            1
        );
        assert_eq!(table.rows("SELECT id FROM t ORDER BY id").await, ["2", "3"]);
        same_in_deltalake(&table, ALL).await;
        let overwrite = "INSERT OVERWRITE t SELECT * FROM t WHERE id = 3";
        assert_eq!(table.count(overwrite).await, 1);
        assert_eq!(table.rows("SELECT id, s['new'] FROM t").await, ["3|50"]);
        same_in_deltalake(&table, ALL).await;
        assert_eq!(table.count("TRUNCATE TABLE t").await, 1);
        assert!(table.rows(ALL).await.is_empty());
    }
}

#[tokio::test]
async fn partition_values_are_written_under_physical_names() {
    let fields = [
        field("id", "col-id", 1, json!("long")),
        field("p", "col-p", 2, json!("string")),
        // Another column has the partition column's name in the files.
        field("x", "p", 3, json!("long")),
    ];
    for mode in ["name", "id"] {
        let table = HandMade::new(&fields, mode, &["p"])
            .partition(
                "SELECT 1 AS \"col-id\", 10 AS p UNION ALL SELECT 2, 20 ORDER BY 1",
                &[("col-id", 1), ("p", 3)],
                Value::Null,
                json!({"col-p": "a"}),
            )
            .await
            .open()
            .await;
        assert_eq!(
            table
                .count("INSERT INTO t VALUES (3, 'b', 30), (4, NULL, 40)")
                .await,
            2
        );
        assert_eq!(
            table
                .count("UPDATE t SET p = 'c', x = x + 1 WHERE p = 'a' AND x > 10")
                .await,
            1
        );
        assert_eq!(table.count("DELETE FROM t WHERE p = 'b'").await, 1);
        let query = "SELECT id, p, x FROM t ORDER BY id";
        assert_eq!(
            table.rows(query).await,
            ["1|a|10", "2|c|21", "4|NULL|40"],
            "{mode}"
        );
        same_in_deltalake(&table, query).await;
        let mut values: Vec<String> = (1..=2)
            .flat_map(|version| adds(&table, version))
            .map(|(add, stats)| format!("{} {}", add["partitionValues"], stats["minValues"]))
            .collect();
        values.sort();
        assert_eq!(
            values,
            [
                r#"{"col-p":"a"} {"col-id":1,"p":10}"#,
                r#"{"col-p":"b"} {"col-id":3,"p":30}"#,
                r#"{"col-p":"c"} {"col-id":2,"p":21}"#,
                r#"{"col-p":null} {"col-id":4,"p":40}"#,
            ],
            "{mode}"
        );
        let removed = table
            .log_entry(3)
            .into_iter()
            .find_map(|action| Some(action.get("remove")?["partitionValues"].clone()));
        assert_eq!(removed, Some(json!({"col-p": "b"})), "{mode}");
    }
}
