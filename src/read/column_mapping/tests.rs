use arrow::array::{ArrayRef, Int32Array, Int64Array, StructArray};

use super::convert::convert;
use super::*;
use crate::error::ErrorKind;

/// `id long, l array<struct<v long>>` with these metadata.
fn table(mode: &str, id: Value, inner: Value) -> (SchemaRef, TableMetadata) {
    let json = serde_json::json!({"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": true, "metadata": id},
        {"name": "l", "nullable": true,
         "metadata": {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-l"},
         "type": {"type": "array", "containsNull": true, "elementType":
            {"type": "struct", "fields": [
                {"name": "v", "type": "long", "nullable": true, "metadata": inner}]}}},
    ]});
    let v = Field::new("v", DataType::Int64, true);
    let element = Field::new("element", DataType::Struct(vec![v].into()), true);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("l", DataType::List(Arc::new(element)), true),
    ]);
    let metadata = TableMetadata {
        schema_string: json.to_string(),
        configuration: [(MODE.to_owned(), mode.to_owned())].into(),
        ..TableMetadata::default()
    };
    (Arc::new(schema), metadata)
}

fn mapping(id: i64, name: &str) -> Value {
    serde_json::json!({"delta.columnMapping.id": id, "delta.columnMapping.physicalName": name})
}

#[test]
fn files_have_physical_names_and_ids_at_every_depth() {
    for mode in ["name", "ID"] {
        let (schema, metadata) = table(mode, mapping(1, "col-id"), mapping(3, "col-v"));
        let mapped = mapped_schema(&schema, &metadata).expect("mapped");
        let names: Vec<&str> = mapped.fields().iter().map(|f| physical_name(f)).collect();
        assert_eq!(names, ["col-id", "col-l"]);
        let with_id = |name: &str, data_type: DataType, id: &str| {
            let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_owned());
            Field::new(name, data_type, true).with_metadata(HashMap::from([id]))
        };
        let v = with_id("col-v", DataType::Int64, "3");
        let element = Field::new("element", DataType::Struct(vec![v].into()), true);
        assert_eq!(
            *file_schema(&mapped),
            Schema::new(vec![
                with_id("col-id", DataType::Int64, "1"),
                with_id("col-l", DataType::List(Arc::new(element)), "2"),
            ])
        );
        let plain: Vec<FieldRef> = mapped.fields().iter().map(plain_field).collect();
        assert_eq!(Schema::new(plain), *schema);
    }
}

#[test]
fn what_is_not_mapped_is_left_alone() {
    let (schema, metadata) = table("none", mapping(1, "col-id"), mapping(3, "col-v"));
    let mapped = mapped_schema(&schema, &metadata).expect("not mapped");
    assert_eq!(mapped, schema);
    assert_eq!(physical_name(mapped.field(0)), "id");
}

#[test]
fn a_mapping_with_gaps_or_repeats_is_corrupt() {
    let name_only = serde_json::json!({"delta.columnMapping.physicalName": "col-v"});
    let id_only = serde_json::json!({"delta.columnMapping.id": 3});
    for (id, inner, says) in [
        (mapping(1, "col-id"), name_only, "l.element.v has no"),
        (mapping(1, "col-id"), id_only, "l.element.v has no"),
        (mapping(1, ""), mapping(3, "col-v"), "id has no"),
        (mapping(1, "col-l"), mapping(3, "col-v"), "l shares"),
        (
            mapping(1, "col-id"),
            mapping(1, "col-v"),
            "l.element.v shares",
        ),
        (mapping(1 << 40, "col-id"), mapping(3, "col-v"), "id has no"),
    ] {
        let (schema, metadata) = table("name", id, inner);
        let error = mapped_schema(&schema, &metadata).expect_err(says);
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(says), "{error}");
    }
    let (schema, metadata) = table("nome", mapping(1, "col-id"), mapping(3, "col-v"));
    let error = mapped_schema(&schema, &metadata).expect_err("unknown mode");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_narrower_type_in_the_file_is_widened_and_another_shape_is_corrupt() {
    let field = Field::new("v", DataType::Int64, true).with_metadata(HashMap::from([(
        PHYSICAL_NAME.to_owned(),
        "col-v".to_owned(),
    )]));
    let target = DataType::Struct(vec![field].into());
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let of_file = Field::new("col-v", DataType::Int32, true);
    let file: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(of_file), numbers)]));
    let converted = convert(&file, &target, false).expect("widened");
    let expected: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let fields = match &target {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    };
    let expected: ArrayRef = Arc::new(StructArray::new(fields, vec![expected], None));
    assert_eq!(&converted, &expected);
    assert_eq!(&relabel(&expected, &target).expect("the same"), &expected);

    let error = convert(
        &(Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        &target,
        false,
    )
    .expect_err("no struct");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
