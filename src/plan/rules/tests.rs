use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{Field, Fields, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;
use crate::ErrorKind;

/// Midnight of 2024-02-29, in days since 1970.
const LEAP_DAY: i32 = 19_782;

/// One row a case: `i`, `l`, `d`, `n`, `s`, `b`, `day`, `ts`, `Mixed Case`, `a.b` and the struct `st`.
fn rows() -> RecordBatch {
    let instant = i64::from(LEAP_DAY) * 86_400_000_000 + 13 * 3_600_000_000 + 14 * 60_000_000;
    let st = StructArray::from(vec![(
        Arc::new(Field::new("Inner", DataType::Int64, true)),
        Arc::new(Int64Array::from(vec![Some(7), None])) as ArrayRef,
    )]);
    let columns: [(&str, ArrayRef); 12] = [
        ("i", Arc::new(Int32Array::from(vec![Some(3), None]))),
        ("l", Arc::new(Int64Array::from(vec![Some(-4), None]))),
        ("d", Arc::new(Float64Array::from(vec![Some(-0.0), None]))),
        (
            "nan",
            Arc::new(Float64Array::from(vec![Some(-f64::NAN), None])),
        ),
        (
            "n",
            Arc::new(
                Decimal128Array::from(vec![Some(125), None])
                    .with_precision_and_scale(10, 2)
                    .expect("decimal"),
            ),
        ),
        ("s", Arc::new(StringArray::from(vec![Some("Ünï 1"), None]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        (
            "day",
            Arc::new(Date32Array::from(vec![Some(LEAP_DAY), None])),
        ),
        (
            "ts",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(instant), None]).with_timezone("UTC"),
            ),
        ),
        (
            "Mixed Case",
            Arc::new(Int64Array::from(vec![Some(1), None])),
        ),
        ("a.b", Arc::new(Int64Array::from(vec![Some(2), None]))),
        ("st", Arc::new(st)),
    ];
    RecordBatch::try_from_iter(columns).expect("rows")
}

fn schema() -> SchemaRef {
    rows().schema()
}

/// The value of `text` in the row with values, then in that of NULLs, as text.
fn values(text: &str) -> Result<[String; 2], String> {
    let rows = rows();
    let values = parse(text, &rows.schema())?
        .physical()?
        .evaluate(&rows)
        .and_then(|value| value.into_array(2))
        .map_err(|error| error.to_string())?;
    let options = FormatOptions::default().with_null("NULL");
    let texts = ArrayFormatter::try_new(values.as_ref(), &options).map_err(|e| e.to_string())?;
    Ok([0, 1].map(|row| texts.value(row).to_string()))
}

#[test]
fn expressions_mean_what_they_mean_in_spark() {
    let long = ["(i > 2 OR i IS NULL)"; 200].join(" AND ");
    for (text, expected) in [
        // Names.
        ("I + L", ["-1", "NULL"]),
        ("`mixed case`", ["1", "NULL"]),
        ("\"Mixed Case\" > 0", ["true", "NULL"]),
        ("`a.b`", ["2", "NULL"]),
        ("ST.inner = 7", ["true", "NULL"]),
        // Three values.
        ("i > 0 OR b", ["true", "NULL"]),
        ("i > 0 OR i IS NULL", ["true", "true"]),
        ("NOT (i = 4)", ["true", "NULL"]),
        ("i <=> NULL", ["false", "true"]),
        ("i = NULL", ["NULL", "NULL"]),
        ("b IS NOT FALSE", ["true", "true"]),
        ("i IN (1, 2, 3)", ["true", "NULL"]),
        ("i NOT IN (1, NULL)", ["NULL", "NULL"]),
        ("i NOT BETWEEN 1 AND 2", ["true", "NULL"]),
        ("i == 3", ["true", "NULL"]),
        (long.as_str(), ["true", "true"]),
        ("i != 3", ["false", "NULL"]),
        // Numbers: a quotient is a fraction, nothing is divided by zero, there is one zero.
        ("i / 2 > 1", ["true", "NULL"]),
        ("i / 0", ["NULL", "NULL"]),
        ("i / d", ["NULL", "NULL"]),
        ("l % 3", ["-1", "NULL"]),
        ("l % 0", ["NULL", "NULL"]),
        ("d < 0", ["false", "NULL"]),
        ("d >= 0.0", ["true", "NULL"]),
        ("nan = nan", ["true", "NULL"]),
        ("nan > 1e300", ["true", "NULL"]),
        ("nan < 0", ["false", "NULL"]),
        ("isnan(nan)", ["true", "false"]),
        ("n = 1.25", ["true", "NULL"]),
        ("n + 0.75 = 2", ["true", "NULL"]),
        ("-l", ["4", "NULL"]),
        ("-2147483648 < i", ["true", "NULL"]),
        ("-9223372036854775808 < l", ["true", "NULL"]),
        ("i * 100000 + l", ["299996", "NULL"]),
        ("i % 2 + 2147483646", ["2147483647", "NULL"]),
        ("2147483648 + i", ["2147483651", "NULL"]),
        ("abs(l)", ["4", "NULL"]),
        ("floor(d + 1.5)", ["1.0", "NULL"]),
        // Texts.
        ("s = 'Ünï 1'", ["true", "NULL"]),
        ("s <> \"x\"", ["true", "NULL"]),
        ("length(s)", ["5", "NULL"]),
        ("upper(s)", ["ÜNÏ 1", "NULL"]),
        ("s LIKE '%1'", ["true", "NULL"]),
        ("concat(s, '-', i)", ["Ünï 1-3", "NULL"]),
        ("s || i", ["Ünï 13", "NULL"]),
        ("substring(s, 1, 3)", ["Ünï", "NULL"]),
        ("substr(s, 5)", ["1", "NULL"]),
        ("trim('  x ')", ["x", "x"]),
        ("s <> ''", ["true", "NULL"]),
        ("startswith(s, 'Ü')", ["true", "NULL"]),
        ("coalesce(s, 'none')", ["Ünï 1", "none"]),
        ("nullif(i, 3)", ["NULL", "NULL"]),
        ("if(i > 0, 'a', 'b')", ["a", "b"]),
        ("CASE WHEN i > 0 THEN 1 ELSE 2 END", ["1", "2"]),
        ("CASE i WHEN 3 THEN 1 END", ["1", "NULL"]),
        // Times.
        ("CAST(ts AS DATE)", ["2024-02-29", "NULL"]),
        ("date(ts) = day", ["true", "NULL"]),
        ("year(ts)", ["2024", "NULL"]),
        ("EXTRACT(MONTH FROM day)", ["2", "NULL"]),
        ("dayofyear(day)", ["60", "NULL"]),
        ("hour(ts) * 100 + minute(ts)", ["1314", "NULL"]),
        ("date_trunc('MONTH', ts)", ["2024-02-01T00:00:00Z", "NULL"]),
        (
            "date_format(ts, 'yyyy-MM-dd HH:mm')",
            ["2024-02-29 13:14", "NULL"],
        ),
        ("date_format(day, 'yyyyMM')", ["202402", "NULL"]),
        ("day >= '2024-02-29'", ["true", "NULL"]),
        ("day < DATE '2024-02-29'", ["false", "NULL"]),
        ("ts >= TIMESTAMP '2024-02-29 13:14:00'", ["true", "NULL"]),
        ("CAST(i AS STRING)", ["3", "NULL"]),
        ("CAST(i AS DECIMAL(10, 2))", ["3.00", "NULL"]),
        ("CAST('12' AS BIGINT)", ["12", "12"]),
        // As deltalake writes them.
        ("n = '1.250'::decimal(10, 3)", ["true", "NULL"]),
        ("n > '-1.5'::decimal(3, 1)", ["true", "NULL"]),
        ("day = '2024-02-29'::date", ["true", "NULL"]),
        (
            "ts = arrow_cast('2024-02-29T13:14:00.000000', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            ["true", "NULL"],
        ),
        ("arrow_cast(i, 'Int64') = 3", ["true", "NULL"]),
        ("get_field(st, 'Inner') = 7", ["true", "NULL"]),
    ] {
        let found = values(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn what_may_mean_something_else_is_refused_with_the_reason() {
    let deep = format!("i = {}1{}", "(".repeat(70), ")".repeat(70));
    let long = format!("i{} > 0", " + 1".repeat(70));
    for (text, part) in [
        ("i >", "parsed"),
        ("", "parsed"),
        ("i > 0; DROP TABLE t", "left over"),
        ("i > 0 extra", "left over"),
        ("nothing > 0", "no column nothing"),
        ("st.nothing > 0", "no column nothing"),
        ("i.x > 0", "no field"),
        ("rand() > 0.5", "function rand"),
        ("current_date() > day", "function current_date"),
        ("uuid() = s", "function uuid"),
        ("sum(i) > 0", "function sum"),
        ("count(*) > 0", "count(*)"),
        ("row_number() OVER () > 0", "row_number"),
        ("i IN (SELECT 1)", "SELECT 1"),
        ("EXISTS (SELECT 1)", "EXISTS"),
        ("i > (SELECT 1)", "SELECT 1"),
        ("s RLIKE 'x'", "RLIKE"),
        ("s ILIKE 'x'", "ILIKE"),
        ("s = 'a\\'b'", "backslash"),
        ("s = 'it''s'", "doubled quote"),
        ("s = \"say \"\"it\"\"\"", "doubled quote"),
        ("s = ''''", "doubled quote"),
        ("s > 3", "compares"),
        ("i > '3'", "compares"),
        ("b = 'true'", "compares"),
        ("st = st", "not plain"),
        ("n / 3 > 1", "divides decimals"),
        ("round(d) > 0", "function round"),
        ("substring(s, 0, 1) = 'x'", "from 1 on"),
        ("CAST(d AS STRING) = 'x'", "cast"),
        ("CAST(ts AS STRING) = 'x'", "cast"),
        ("CAST(day AS INT) > 0", "cast"),
        ("CAST(s AS DATE) = day", "cast"),
        ("CAST(s AS BOOLEAN)", "cast"),
        ("day > s", "cast"),
        ("day > '20240229'", "cast"),
        ("day > '2024-02-29 10:00'", "cast"),
        ("ts > 'yesterday'", "cast"),
        ("CAST(s AS DECIMAL(10, 2)) > 0", "cast"),
        ("n = '1.25'::decimal(10, 1)", "cast"),
        (
            "arrow_cast(ts, 'Timestamp(Second, Some(\"CET\"))') = ts",
            "type",
        ),
        ("date_format(ts, 'EEE') = 'x'", "EEE"),
        ("date_format(ts, 'yyyyy') = 'x'", "yyyyy"),
        ("coalesce(s, 1) = 'x'", "another kind"),
        ("i AND b", "no condition"),
        ("i DIV 2 > 0", "DIV"),
        ("i = :x", ""),
        (deep.as_str(), ""),
        (long.as_str(), "deep"),
    ] {
        match values(text) {
            Ok(found) => panic!("{text} should be refused, but is {found:?}"),
            Err(reason) => assert!(reason.contains(part), "{text}: {reason}"),
        }
    }
}

#[test]
fn double_quotes_that_may_be_a_text_or_a_column_are_refused() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("s", DataType::Utf8, true),
        Field::new("A", DataType::Utf8, true),
    ]));
    assert!(parse("s = \"B\"", &schema).is_ok());
    assert!(parse("\"A\" = 'x'", &schema).is_ok_and(|found| found.columns() == [1]));
    let reason = parse("s = \"A\"", &schema).expect_err("refused");
    assert!(reason.contains("double quotes"), "{reason}");
}

#[test]
fn columns_that_differ_in_case_alone_are_told_apart_by_exact_names() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("X", DataType::Int64, true),
        Field::new("abc", DataType::Int64, true),
        Field::new("ABC", DataType::Int64, true),
    ]));
    assert!(parse("X > 0", &schema).is_ok_and(|found| found.columns() == [1]));
    let reason = parse("Abc > 0", &schema).expect_err("refused");
    assert!(reason.contains("several columns"), "{reason}");
}

#[test]
fn values_have_the_type_that_they_are_known_by() {
    for (text, expected) in [
        ("1", DataType::Int32),
        ("-2147483648", DataType::Int32),
        ("2147483648", DataType::Int64),
        ("i + 1", DataType::Int32),
        ("i + l", DataType::Int64),
        ("i % 2", DataType::Int32),
        ("-i", DataType::Int32),
        ("CASE WHEN b THEN 1 ELSE l END", DataType::Int64),
        ("CASE WHEN b THEN i ELSE d END", DataType::Float64),
        ("coalesce(i, l)", DataType::Int64),
        ("if(b, i, l)", DataType::Int64),
        ("nullif(i, 3)", DataType::Int32),
        ("st.inner", DataType::Int64),
    ] {
        let rows = rows();
        let expression = parse(text, &rows.schema()).expect(text);
        assert_eq!(expression.data_type(), &expected, "{text}");
        let values = expression
            .physical()
            .expect(text)
            .evaluate(&rows)
            .and_then(|value| value.into_array(2))
            .expect(text);
        assert_eq!(values.data_type(), &expected, "{text}");
    }
}

/// Metadata with `fields` as JSON and `properties`.
fn metadata(fields: &str, properties: &[(&str, &str)]) -> TableMetadata {
    TableMetadata {
        schema_string: format!(r#"{{"type":"struct","fields":[{fields}]}}"#),
        configuration: properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..TableMetadata::default()
    }
}

#[test]
fn rules_are_found_in_schema_and_properties() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("x", DataType::Int64, true),
        Field::new("g", DataType::Int32, true),
        Field::new("c", DataType::Utf8, true),
        Field::new(
            "s",
            DataType::Struct(Fields::from(vec![Field::new("y", DataType::Int64, true)])),
            true,
        ),
    ]));
    let metadata = metadata(
        r#"{"name":"x","type":"long","nullable":true,"metadata":{"comment":"a number"}},
           {"name":"g","type":"integer","nullable":true,"metadata":{"delta.generationExpression":"x % 10"}},
           {"name":"c","type":"string","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(2)"}},
           {"name":"s","nullable":true,"metadata":{},"type":{"type":"struct","fields":[
             {"name":"y","type":"long","nullable":true,"metadata":
               {"delta.invariants":"{\"expression\":{\"expression\":\"s.y > 1\"}}"}}]}}"#,
        &[
            ("delta.constraints.Small", "x < 9"),
            ("delta.appendOnly", "false"),
        ],
    );
    let rules = row_rules(&metadata, &schema, &FilledColumns::default()).expect("rules");
    assert_eq!(
        rules.names(),
        [
            "g = x % 10",
            "c CHAR(2)",
            "CHECK constraint Small (x < 9)",
            "invariant of the column s.y (s.y > 1)",
        ]
    );
    assert_eq!(rules.generated[0].made_for, MadeFor::None);
    assert_eq!(rules.conditions[1].columns, [3]);
}

#[test]
fn rules_that_are_damaged_or_not_supported_are_refused_by_name() {
    let field = |name: &str, key: &str, value: &str| {
        format!(
            r#"{{"name":"{name}","type":"long","nullable":true,"metadata":{{"{key}":{value}}}}}"#
        )
    };
    let generated = |column: &str, text: &str| {
        field(column, "delta.generationExpression", &format!("\"{text}\""))
    };
    let nested = |inner: &str| {
        format!(
            r#"{{"name":"l","nullable":true,"metadata":{{}},"type":{{"type":"array","containsNull":true,
               "elementType":{{"type":"struct","fields":[{inner}]}}}}}}"#
        )
    };
    let invariant = r#""{\"expression\":{\"expression\":\"i > 1\"}}""#;
    for (fields, properties, parts) in [
        (
            String::new(),
            vec![("delta.constraints.odd", "i >")],
            vec!["CHECK constraint odd (i >)", "parsed"],
        ),
        (
            String::new(),
            vec![("delta.constraints.odd", "i + 1")],
            vec!["CHECK constraint odd", "BOOLEAN"],
        ),
        (
            field("i", INVARIANTS, "\"{}\""),
            vec![],
            vec!["column i", "damaged"],
        ),
        (
            nested(&field("x", INVARIANTS, invariant)),
            vec![],
            vec!["delta.invariants", "l.x"],
        ),
        (
            nested(&generated("x", "i")),
            vec![],
            vec!["delta.generationExpression", "l.x"],
        ),
        (
            generated("i", "random()"),
            vec![],
            vec!["generated column i (random())", "function random"],
        ),
        (
            format!("{},{}", generated("i", "1"), generated("l", "i + 1")),
            vec![],
            vec!["generated column l (i + 1)", "uses i, which is generated"],
        ),
        (
            generated("i", "day"),
            vec![],
            vec!["generated column i (day)", "cast"],
        ),
    ] {
        let result = row_rules(
            &metadata(&fields, &properties),
            &schema(),
            &FilledColumns::default(),
        );
        match result {
            Ok(_) => panic!("should be refused: {parts:?}"),
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt),
                    "{error}"
                );
                for part in parts {
                    assert!(error.message().contains(part), "{part} in {error}");
                }
            }
        }
    }
}
