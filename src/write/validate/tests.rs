use arrow::array::{
    Int32Array, Int64Array, ListArray, StringArray, StringViewArray, StructArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::{Int32Type, Schema};

use super::*;
use crate::ErrorKind;

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(
        schema(fields),
        columns.into_iter().map(|(_, array)| array).collect(),
    )
    .expect("batch")
}

#[test]
fn encodings_and_narrower_types_are_cast() {
    let table = schema(vec![
        Field::new("s", DataType::Utf8, true),
        Field::new("i", DataType::Int64, false),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ]);
    let rows = batch(vec![
        ("s", Arc::new(StringViewArray::from(vec![Some("a"), None]))),
        ("i", Arc::new(Int32Array::from(vec![1, 2]))),
        ("t", Arc::new(TimestampMillisecondArray::from(vec![1, 2]))),
    ]);
    let conformed = conform(&rows, &table).expect("conforms");
    assert_eq!(conformed.schema(), table);
    assert_eq!(
        conformed.column(0).as_string::<i32>(),
        &StringArray::from(vec![Some("a"), None])
    );
    assert_eq!(conformed.num_rows(), 2);
}

#[test]
fn lossy_or_misplaced_columns_are_refused() {
    let table = schema(vec![Field::new(
        "c",
        DataType::Timestamp(TimeUnit::Microsecond, None),
        true,
    )]);
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
    let zoned: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1]).with_timezone("UTC"));
    for rows in [
        batch(vec![("c", nanos)]),
        batch(vec![("c", Arc::clone(&zoned))]),
        batch(vec![("d", Arc::clone(&zoned))]),
        batch(vec![("c", Arc::clone(&zoned)), ("d", zoned)]),
    ] {
        let error = conform(&rows, &table).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}

#[test]
fn null_in_a_not_null_column_is_refused_by_path() {
    let required = |name: &str| Field::new(name, DataType::Int64, false);
    let nullable = |name: &str| Field::new(name, DataType::Int64, true);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let with_parent = |present: Vec<bool>| -> ArrayRef {
        Arc::new(StructArray::new(
            vec![nullable("x")].into(),
            vec![Arc::clone(&values)],
            Some(NullBuffer::from(present)),
        ))
    };
    let list = |lists: Vec<Option<Vec<Option<i32>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))
    };
    let struct_field = Field::new("s", DataType::Struct(vec![required("x")].into()), true);
    let list_field = Field::new(
        "l",
        DataType::List(Arc::new(Field::new("element", DataType::Int32, false))),
        true,
    );
    for (name, field, array, expected) in [
        ("top level", required("c"), Arc::clone(&values), Some("c")),
        ("nullable", nullable("c"), Arc::clone(&values), None),
        (
            "field of a present struct",
            struct_field.clone(),
            with_parent(vec![true, true]),
            Some("s.x"),
        ),
        (
            "field of an absent struct",
            struct_field,
            with_parent(vec![true, false]),
            None,
        ),
        (
            "element",
            list_field.clone(),
            list(vec![None, Some(vec![Some(1), None])]),
            Some("l.element"),
        ),
        (
            "no element",
            list_field,
            list(vec![None, Some(vec![Some(1)])]),
            None,
        ),
    ] {
        let rows = batch(vec![(field.name().as_str(), array)]);
        let result = conform(&rows, &schema(vec![field.clone()]));
        match (result, expected) {
            (Ok(rows), None) => assert_eq!(rows.num_rows(), 2, "{name}"),
            (Err(error), Some(path)) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
                assert!(
                    error
                        .message()
                        .contains(&format!("column {path} is violated")),
                    "{name}: {error}"
                );
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}
