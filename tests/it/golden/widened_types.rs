//! Columns whose type was widened after files were written: values are those of the old type, and
//! bounds in the old type's text never cost a row.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float32Array, Int8Array, Int16Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StructArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::compare::ours;
use super::predicates;
use super::report::Outcome;
use crate::support::Table;

fn decimals(values: [i128; 2], precision: u8, scale: i8) -> ArrayRef {
    let values = Decimal128Array::from(vec![Some(values[0]), Some(values[1]), None]);
    Arc::new(
        values
            .with_precision_and_scale(precision, scale)
            .expect("decimals"),
    )
}

/// A table whose column `v` is `wide`, with a file that was written when it was of the type of
/// `narrow`, whose bounds are `min` and `max` in that type's text.
async fn table(wide: &str, narrow: ArrayRef, min: Value, max: Value) -> Table {
    let table = Table::create(&format!("id BIGINT, v {wide}"), "", &[]).await;
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("v", narrow)]).expect("batch");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
    std::fs::write(format!("{}/narrow.parquet", table.path()), &bytes).expect("file");
    let stats = json!({
        "numRecords": 3, "minValues": {"id": 1, "v": min}, "maxValues": {"id": 3, "v": max},
        "nullCount": {"id": 0, "v": 1},
    });
    table
        .put_entry(&[
            json!({"protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["typeWidening", "timestampNtz"],
                "writerFeatures": ["typeWidening", "timestampNtz"],
            }}),
            json!({"add": {
                "path": "narrow.parquet", "partitionValues": {}, "size": bytes.len(),
                "modificationTime": 0, "dataChange": true, "stats": stats.to_string(),
            }}),
        ])
        .await;
    table
}

#[tokio::test]
async fn values_of_every_narrower_type_are_read() {
    let bytes = || Arc::new(Int8Array::from(vec![Some(-1), Some(3), None])) as ArrayRef;
    let shorts = || Arc::new(Int16Array::from(vec![Some(-1), Some(3), None])) as ArrayRef;
    let ints = || Arc::new(Int32Array::from(vec![Some(-1), Some(3), None])) as ArrayRef;
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), Some(3), None]));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(-1.1), Some(3.4), None]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(-1), Some(20_000), None]));
    let whole = ["-1", "3", "NULL"];
    let tenths = ["-1.0", "3.0", "NULL"];
    let (low, high) = (|| json!(-1), || json!(3));
    for (wide, narrow, min, max, expected) in [
        ("SMALLINT", bytes(), low(), high(), whole),
        ("INT", bytes(), low(), high(), whole),
        ("BIGINT", bytes(), low(), high(), whole),
        ("DOUBLE", bytes(), low(), high(), tenths),
        ("DECIMAL(11, 1)", bytes(), low(), high(), tenths),
        ("INT", shorts(), low(), high(), whole),
        ("BIGINT", shorts(), low(), high(), whole),
        ("DOUBLE", shorts(), low(), high(), tenths),
        ("DECIMAL(11, 1)", shorts(), low(), high(), tenths),
        ("BIGINT", ints(), low(), high(), whole),
        ("DOUBLE", ints(), low(), high(), tenths),
        ("DECIMAL(11, 1)", ints(), low(), high(), tenths),
        ("DECIMAL(21, 1)", longs, low(), high(), tenths),
        (
            "DOUBLE",
            floats,
            json!(-1.1),
            json!(3.4),
            ["-1.100000023841858", "3.4000000953674316", "NULL"],
        ),
        (
            "TIMESTAMP",
            days,
            json!("1969-12-31"),
            json!("2024-10-04"),
            ["1969-12-31T00:00:00", "2024-10-04T00:00:00", "NULL"],
        ),
        (
            "DECIMAL(20, 2)",
            decimals([-110, 340], 10, 2),
            json!(-1.1),
            json!(3.4),
            ["-1.10", "3.40", "NULL"],
        ),
        (
            "DECIMAL(20, 5)",
            decimals([-110, 340], 10, 2),
            json!(-1.1),
            json!(3.4),
            ["-1.10000", "3.40000", "NULL"],
        ),
    ] {
        let what = format!("{} to {wide}", narrow.data_type());
        let table = table(wide, narrow, min, max).await;
        assert_eq!(
            table.rows("SELECT v FROM t ORDER BY id").await,
            expected,
            "{what}"
        );
        let path = table.path();
        let all = ours(Path::new(&path)).await.expect("read");
        match predicates::check(Path::new(&path), &all).await {
            Outcome::Equal {
                wrong_statistics, ..
            } => assert!(wrong_statistics.is_empty(), "{what}"),
            Outcome::Different(difference) => panic!("{what}: {difference}"),
            _ => panic!("{what}"),
        }
        let error = table.error("DELETE FROM t WHERE id = 1").await;
        assert!(error.to_string().contains("typeWidening"), "{error}");
    }
}

/// Inside of structs and lists too.
#[tokio::test]
async fn nested_values_of_narrower_types_are_read() {
    let numbers = Int32Array::from(vec![Some(-1), Some(3), None]);
    let field = Field::new("a", DataType::Int32, true);
    let structs = StructArray::from(vec![(Arc::new(field), Arc::new(numbers) as ArrayRef)]);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(-1), None]),
        Some(vec![Some(3)]),
        None,
    ]);
    for (wide, narrow, expected) in [
        (
            "STRUCT<a BIGINT>",
            Arc::new(structs) as ArrayRef,
            ["{a: -1}", "{a: 3}", "{a: NULL}"],
        ),
        ("BIGINT[]", Arc::new(lists), ["[-1, NULL]", "[3]", "NULL"]),
    ] {
        let table = table(wide, narrow, json!(null), json!(null)).await;
        assert_eq!(
            table.rows("SELECT v FROM t ORDER BY id").await,
            expected,
            "{wide}"
        );
        let path = table.path();
        let all = ours(Path::new(&path)).await.expect("read");
        let outcome = predicates::check(Path::new(&path), &all).await;
        assert!(matches!(outcome, Outcome::Equal { .. }), "{wide}");
    }
}
