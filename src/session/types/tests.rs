use std::sync::Arc;

use arrow::datatypes::{IntervalUnit, TimeUnit};

use super::*;
use crate::ErrorKind;

fn schema(fields: Vec<Field>) -> Schema {
    Schema::new(fields)
}

fn column(data_type: DataType) -> Schema {
    schema(vec![Field::new("c", data_type, true)])
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn sql_types_have_delta_types() {
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
    let entries = Field::new(
        "entries",
        DataType::Struct(
            vec![
                Field::new("k", DataType::Utf8View, false),
                Field::new("v", DataType::Int8, false),
            ]
            .into(),
        ),
        false,
    );
    for (data_type, expected) in [
        (DataType::Int8, json!("byte")),
        (DataType::Int16, json!("short")),
        (DataType::Int32, json!("integer")),
        (DataType::Int64, json!("long")),
        (DataType::Float32, json!("float")),
        (DataType::Float64, json!("double")),
        (DataType::Boolean, json!("boolean")),
        (DataType::Date32, json!("date")),
        (DataType::Utf8View, json!("string")),
        (DataType::LargeUtf8, json!("string")),
        (DataType::BinaryView, json!("binary")),
        (DataType::Decimal128(38, 38), json!("decimal(38,38)")),
        (DataType::Decimal64(5, 0), json!("decimal(5,0)")),
        (
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            json!("timestamp_ntz"),
        ),
        (
            DataType::Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())),
            json!("timestamp"),
        ),
        (
            DataType::List(field("item", DataType::Int64)),
            json!({"type": "array", "elementType": "long", "containsNull": true}),
        ),
        (
            DataType::Map(Arc::new(entries), false),
            json!({"type": "map", "keyType": "string", "valueType": "byte", "valueContainsNull": false}),
        ),
        (
            DataType::Struct(vec![field("x", DataType::Date32)].into()),
            json!({"type": "struct", "fields": [
                {"name": "x", "type": "date", "nullable": true, "metadata": {}},
            ]}),
        ),
    ] {
        let json = schema_json(&column(data_type.clone())).expect("Delta type");
        assert_eq!(json["fields"][0]["type"], expected, "{data_type}");
    }
}

#[test]
fn nullability_is_kept() {
    let json = schema_json(&schema(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Int64, true),
    ]))
    .expect("Delta types");
    assert_eq!(json["fields"][0]["nullable"], json!(false));
    assert_eq!(json["fields"][1]["nullable"], json!(true));
}

#[test]
fn other_types_are_refused_with_what_to_use() {
    for (data_type, instead) in [
        (DataType::UInt8, "SMALLINT"),
        (DataType::UInt32, "BIGINT"),
        (DataType::UInt64, "DECIMAL(20, 0)"),
        (DataType::Float16, "REAL"),
        (DataType::Decimal256(76, 0), "38"),
        (DataType::Decimal128(10, -2), "0 <= s"),
        (DataType::Date64, "DATE"),
        (DataType::Time64(TimeUnit::Nanosecond), "TIMESTAMP"),
        (DataType::Interval(IntervalUnit::MonthDayNano), "BIGINT"),
        (DataType::Duration(TimeUnit::Second), "BIGINT"),
        (DataType::FixedSizeBinary(4), "BYTEA"),
        (DataType::Null, "the type of the values"),
        (
            DataType::List(Arc::new(Field::new("item", DataType::UInt16, true))),
            "c.element",
        ),
    ] {
        let error = schema_json(&column(data_type.clone())).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{data_type}");
        assert!(error.message().contains(instead), "{error}");
        assert!(error.message().contains("the column c"), "{error}");
    }
}

#[test]
fn odd_and_repeated_names_are_refused() {
    let int = |name: &str| Field::new(name, DataType::Int64, true);
    for name in [
        "a b", "a,b", "a;b", "{", "}", "(", ")", "a\nb", "a\tb", "a=b",
    ] {
        let error = check_unmapped_names(&schema(vec![int(name)])).expect_err(name);
        assert!(error.message().contains("column mapping"), "{error}");
    }
    for fields in [
        vec![int("a"), int("A")],
        vec![Field::new(
            "s",
            DataType::Struct(vec![int("ü"), int("Ü")].into()),
            true,
        )],
    ] {
        let error = schema_json(&schema(fields)).expect_err("repeated");
        assert!(error.message().contains("twice"), "{error}");
    }
    let allowed = schema(vec![int("a.b"), int("ü/%'\"")]);
    check_unmapped_names(&allowed).expect("allowed");
    schema_json(&allowed).expect("allowed");
    assert!(schema_json(&schema(vec![])).is_err());
    assert!(schema_json(&schema(vec![int("")])).is_err());
}

#[test]
fn timestamp_ntz_is_found_however_deep() {
    let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let list = |inner: DataType| DataType::List(Arc::new(Field::new("element", inner, true)));
    for (data_type, expected) in [
        (ntz.clone(), true),
        (utc.clone(), false),
        (list(list(ntz.clone())), true),
        (list(utc), false),
        (
            DataType::Struct(vec![Field::new("x", list(ntz), true)].into()),
            true,
        ),
    ] {
        assert_eq!(has_timestamp_ntz(&column(data_type.clone())), expected);
    }
}

#[test]
fn partition_columns_are_checked() {
    let table = schema(vec![
        Field::new("a", DataType::Int64, true),
        Field::new(
            "l",
            DataType::List(Arc::new(Field::new("item", DataType::Int64, true))),
            true,
        ),
    ]);
    check_partition_columns(&table, &[]).expect("none");
    check_partition_columns(&table, &strings(&["a"])).expect("one");
    for (columns, expected) in [
        (vec!["b"], "not among the columns"),
        (vec!["A"], "not among the columns"),
        (vec!["l"], "cannot be a partition column"),
        (vec!["a", "a"], "twice"),
    ] {
        let error = check_partition_columns(&table, &strings(&columns)).expect_err("refused");
        assert!(error.message().contains(expected), "{error}");
    }
    let narrow = schema(vec![Field::new("a", DataType::Int64, true)]);
    let error = check_partition_columns(&narrow, &strings(&["a"])).expect_err("all");
    assert!(error.message().contains("all columns"), "{error}");
}

#[test]
fn columns_of_an_existing_table_must_be_the_declared_ones() {
    let existing = schema(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("s", DataType::Utf8, true),
    ]);
    let id = Field::new("id", DataType::Int64, false);
    let s = Field::new("s", DataType::Utf8View, true);
    same_columns(&schema(vec![id.clone(), s.clone()]), &existing).expect("the same");
    for (declared, expected) in [
        (vec![id.clone()], "s string of the table is not declared"),
        (
            vec![s.clone(), id.clone()],
            "column 1 is declared as s string but is id long NOT NULL in the table",
        ),
        (
            vec![Field::new("id", DataType::Int32, false), s.clone()],
            "column 1 is declared as id integer NOT NULL",
        ),
        (
            vec![Field::new("id", DataType::Int64, true), s.clone()],
            "column 1 is declared as id long but is id long NOT NULL",
        ),
        (
            vec![id, s, Field::new("x", DataType::Date32, true)],
            "x date is not in the table",
        ),
    ] {
        let error = same_columns(&schema(declared), &existing).expect_err("differs");
        assert!(error.message().contains(expected), "{error}");
    }
    same_partition_columns(&strings(&["a"]), &strings(&["a"])).expect("the same");
    let error = same_partition_columns(&[], &strings(&["a", "b"])).expect_err("differs");
    assert!(error.message().contains("partitioned by a, b"), "{error}");
}
