//! The skip law on the types that writers round, cut or leave out: what this crate, Spark and
//! deltalake write about a file never lets the pruner skip a row that passes. Partition columns
//! stand beside data columns in one condition.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, Duration};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, col, lit, when};
use datafusion::physical_expr::create_physical_expr;
use deltalake::kernel::{Add, DeletionVectorDescriptor, StorageType};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::read::predicate::ReadPredicate;
use crate::read::prune::{PruneFile, Visible, prune};
use crate::read::statistics::StatisticsSchema;
use crate::write::decimal::decimal_text;
use crate::write::file_statistics::FileStatisticsCollector;
use crate::write::partition::partition_text;
use crate::write::statistics_columns::StatisticsColumns;

/// How many of the columns are partition columns; they come first.
const PARTITIONS: usize = 3;

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn local() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let columns = [
        ("p", DataType::Date32),
        ("q", DataType::Utf8),
        ("r", utc()),
        ("d", DataType::Date32),
        ("t", utc()),
        ("n", local()),
        ("m", DataType::Decimal128(9, 2)),
        ("w", DataType::Decimal128(20, 2)),
        ("b", DataType::Boolean),
        ("g", DataType::Float32),
        ("s", DataType::Utf8),
    ];
    Arc::new(Schema::new(
        columns
            .into_iter()
            .map(|(name, data_type)| Field::new(name, data_type, true))
            .collect::<Vec<_>>(),
    ))
});

static STATISTICS_SCHEMA: LazyLock<StatisticsSchema> = LazyLock::new(|| StatisticsSchema {
    schema: Arc::clone(&SCHEMA),
    partition_columns: vec!["p".to_owned(), "q".to_owned(), "r".to_owned()],
    string_prefix_length: 32,
});

/// The few values that occur in a column, so that rows, bounds and literals meet.
fn pool(data_type: &DataType) -> Vec<ScalarValue> {
    const NEW_YEAR_2000: i64 = 946_684_800_000_000;
    const LAST_OF_9999: i64 = 253_402_300_799_999_999;
    let text = |tail: &str| format!("{}{tail}", "a".repeat(31));
    match data_type {
        DataType::Date32 => [-1, 0, 1, 10_957, 10_958, 2_932_896, 2_932_897, -719_529]
            .map(|days| ScalarValue::Date32(Some(days)))
            .to_vec(),
        DataType::Timestamp(_, zone) => [
            -60_000_001,
            -1,
            0,
            1,
            NEW_YEAR_2000 - 1,
            NEW_YEAR_2000,
            NEW_YEAR_2000 + 1,
            NEW_YEAR_2000 + 999,
            NEW_YEAR_2000 + 1_000,
            NEW_YEAR_2000 + 1_001,
            LAST_OF_9999,
            LAST_OF_9999 + 1,
        ]
        .map(|micros| ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
        .to_vec(),
        DataType::Decimal128(precision, scale) => {
            let values: &[i128] = if *precision == 9 {
                &[-999_999_999, -150, -1, 0, 1, 150, 999_999_999]
            } else {
                &[
                    -12_345_678_901_234_567_891,
                    -1,
                    0,
                    1,
                    12_345_678_901_234_567_889,
                    12_345_678_901_234_567_890,
                    12_345_678_901_234_567_891,
                    99_999_999_999_999_999_999,
                ]
            };
            values
                .iter()
                .map(|value| ScalarValue::Decimal128(Some(*value), *precision, *scale))
                .collect()
        }
        DataType::Boolean => [true, false].map(ScalarValue::from).to_vec(),
        DataType::Float32 => [
            -1.5,
            -0.0,
            0.0,
            0.1,
            16_777_216.0,
            f32::NAN,
            -f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
        ]
        .map(ScalarValue::from)
        .to_vec(),
        _ => [
            String::new(),
            "a".to_owned(),
            "__HIVE_DEFAULT_PARTITION__".to_owned(),
            text(""),
            text("b"),
            text("bc"),
            text("\u{1F33C}"),
            text("\u{1F33C}z"),
            text("\u{FFFF}z"),
            text("\u{10FFFF}\u{10FFFF}"),
            "\u{10FFFF}".repeat(20),
        ]
        .map(ScalarValue::from)
        .to_vec(),
    }
}

fn value(data_type: &DataType) -> BoxedStrategy<ScalarValue> {
    prop::sample::select(pool(data_type)).boxed()
}

/// A value or NULL.
fn cell(column: usize) -> BoxedStrategy<ScalarValue> {
    let data_type = SCHEMA.field(column).data_type();
    let null = ScalarValue::try_from(data_type).expect("NULL");
    prop_oneof![6 => value(data_type), 1 => Just(null)].boxed()
}

fn cells(columns: std::ops::Range<usize>) -> BoxedStrategy<Vec<ScalarValue>> {
    columns.map(cell).collect::<Vec<_>>().boxed()
}

#[derive(Debug, Clone)]
struct File {
    writer: Writer,
    partition: Vec<ScalarValue>,
    rows: Vec<Vec<ScalarValue>>,
    deletions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Writer {
    Ours,
    Spark,
    Deltalake,
}

fn any_file() -> impl Strategy<Value = File> {
    (
        prop::sample::select(vec![Writer::Ours, Writer::Spark, Writer::Deltalake]),
        cells(0..PARTITIONS),
        prop::collection::vec(cells(PARTITIONS..SCHEMA.fields().len()), 1..4),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(writer, partition, rows, deletions)| File {
            writer,
            partition,
            rows,
            deletions,
        })
}

/// A column, perhaps cast, and a value to compare it with.
fn pair() -> BoxedStrategy<(Expr, Expr)> {
    let plain = (0..SCHEMA.fields().len()).prop_flat_map(|column| {
        cell(column).prop_map(move |value| (col(SCHEMA.field(column).name()), lit(value)))
    });
    let casts: Vec<BoxedStrategy<(Expr, Expr)>> = [
        ("d", utc()),
        ("d", local()),
        ("p", local()),
        ("t", DataType::Date32),
        ("n", DataType::Date32),
        ("r", DataType::Date32),
        ("t", local()),
    ]
    .into_iter()
    .map(|(column, to)| {
        value(&to)
            .prop_map(move |value| (cast(col(column), to.clone()), lit(value)))
            .boxed()
    })
    .chain([
        value(&DataType::Float32)
            .prop_map(|value| {
                let wide = value.cast_to(&DataType::Float64).expect("wider");
                (cast(col("g"), DataType::Float64), lit(wide))
            })
            .boxed(),
        value(&DataType::Decimal128(9, 2))
            .prop_map(|value| {
                let wide = value.cast_to(&DataType::Decimal128(12, 3)).expect("wider");
                (cast(col("m"), DataType::Decimal128(12, 3)), lit(wide))
            })
            .boxed(),
        value(&DataType::Decimal128(20, 2))
            .prop_map(|value| {
                let float = value.cast_to(&DataType::Float64).expect("float");
                (cast(col("w"), DataType::Float64), lit(float))
            })
            .boxed(),
    ])
    .collect();
    let casts = prop::sample::select(casts).prop_flat_map(|strategy| strategy);
    prop_oneof![3 => plain, 1 => casts].boxed()
}

fn condition() -> impl Strategy<Value = Expr> {
    let comparison = (pair(), 0..8_usize).prop_map(|((left, right), op)| {
        let op = [
            Operator::Eq,
            Operator::NotEq,
            Operator::Lt,
            Operator::LtEq,
            Operator::Gt,
            Operator::GtEq,
            Operator::IsDistinctFrom,
            Operator::IsNotDistinctFrom,
        ][op];
        binary_expr(left, op, right)
    });
    let column = || (0..SCHEMA.fields().len()).prop_map(|column| col(SCHEMA.field(column).name()));
    let list = (0..SCHEMA.fields().len(), any::<bool>()).prop_flat_map(|(column, negated)| {
        prop::collection::vec(cell(column), 1..4).prop_map(move |values| {
            let values = values.into_iter().map(lit).collect();
            col(SCHEMA.field(column).name()).in_list(values, negated)
        })
    });
    let range = (0..SCHEMA.fields().len(), any::<bool>()).prop_flat_map(|(column, negated)| {
        (cell(column), cell(column)).prop_map(move |(low, high)| {
            let column = col(SCHEMA.field(column).name());
            if negated {
                column.not_between(lit(low), lit(high))
            } else {
                column.between(lit(low), lit(high))
            }
        })
    });
    let like = (
        prop::sample::select(vec!["q", "s"]),
        prop::sample::select(vec!["%", "a%", "a_%", "aaa%", "%b", "a", "\\_%"]),
        any::<bool>(),
    )
        .prop_map(|(column, pattern, negated)| {
            if negated {
                col(column).not_like(lit(pattern))
            } else {
                col(column).like(lit(pattern))
            }
        });
    let leaf = prop_oneof![
        8 => comparison,
        2 => list,
        2 => range,
        1 => like,
        1 => column().prop_map(Expr::is_null),
        1 => column().prop_map(Expr::is_not_null),
        1 => Just(col("b")),
        1 => Just(col("b").is_unknown()),
        1 => Just(col("p").eq(col("d"))),
        1 => Just(col("q").not_eq(col("s"))),
    ];
    leaf.prop_recursive(3, 10, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            2 => inner.clone().prop_map(|a| !a),
            1 => inner.clone().prop_map(Expr::is_true),
            1 => inner.clone().prop_map(Expr::is_not_true),
            1 => inner.clone().prop_map(Expr::is_not_false),
            1 => inner.clone().prop_map(Expr::is_unknown),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| a.eq(b)),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| {
                when(a, b).otherwise(c).expect("CASE")
            }),
        ]
    })
}

fn column_of(values: impl IntoIterator<Item = ScalarValue>) -> ArrayRef {
    ScalarValue::iter_to_array(values).expect("array")
}

/// The rows of `file` as a scan would give them: the log knows no empty partition value.
fn batch(file: &File) -> RecordBatch {
    let mut columns: Vec<ArrayRef> = Vec::new();
    for value in &file.partition {
        let value = match value {
            ScalarValue::Utf8(Some(text)) if text.is_empty() => ScalarValue::Utf8(None),
            other => other.clone(),
        };
        columns.push(value.to_array_of_size(file.rows.len()).expect("array"));
    }
    for column in 0..SCHEMA.fields().len() - PARTITIONS {
        columns.push(column_of(file.rows.iter().map(|row| row[column].clone())));
    }
    RecordBatch::try_new(Arc::clone(&SCHEMA), columns).expect("batch")
}

/// Whether any row passes, by DataFusion's own evaluation; an error is a statement that fails.
fn any_row_passes(condition: &Expr, rows: &RecordBatch) -> bool {
    let df_schema = DFSchema::try_from(rows.schema()).expect("schema");
    let expr = create_physical_expr(
        condition,
        &df_schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )
    .expect("physical");
    let Ok(passed) = expr.evaluate(rows) else {
        return false;
    };
    let passed = passed.into_array(rows.num_rows()).expect("array");
    passed
        .as_boolean()
        .iter()
        .any(|passes| passes == Some(true))
}

fn add_of(file: &File, rows: &RecordBatch) -> Add {
    let data: Vec<usize> = (PARTITIONS..SCHEMA.fields().len()).collect();
    let data = rows.project(&data).expect("data columns");
    let (stats, tags) = match file.writer {
        Writer::Ours => {
            let indexed = StatisticsColumns::new(&data.schema(), &Default::default());
            let mut collector = FileStatisticsCollector::new(&data.schema(), &indexed);
            collector.update(&data).expect("seen");
            (collector.stats_json(), Some(collector.tags()))
        }
        other => (foreign(&data, other), None),
    };
    let partition_values: HashMap<String, Option<String>> = file
        .partition
        .iter()
        .zip(SCHEMA.fields())
        .map(|(value, field)| {
            let array = value.to_array().expect("array");
            let text = partition_text(array.as_ref(), 0).expect("text");
            (field.name().clone(), text)
        })
        .collect();
    Add {
        path: "part-0.parquet".to_owned(),
        partition_values,
        stats: Some(stats),
        tags,
        deletion_vector: file.deletions.then(|| DeletionVectorDescriptor {
            storage_type: StorageType::Inline,
            path_or_inline_dv: String::new(),
            offset: None,
            size_in_bytes: 0,
            cardinality: 1,
        }),
        ..Add::default()
    }
}

/// Statistics in the way of Spark or deltalake.
fn foreign(data: &RecordBatch, writer: Writer) -> String {
    let [mut min, mut max, mut nulls] = [(); 3].map(|()| Map::new());
    for (field, column) in data.schema().fields().iter().zip(data.columns()) {
        nulls.insert(field.name().clone(), json!(column.null_count()));
        let values: Vec<ScalarValue> = (0..column.len())
            .map(|row| ScalarValue::try_from_array(column, row).expect("value"))
            .filter(|value| !value.is_null())
            .collect();
        let nan =
            |value: &ScalarValue| matches!(value, ScalarValue::Float32(Some(v)) if v.is_nan());
        let numbers = || values.iter().filter(|value| !nan(value));
        let order = |a: &&ScalarValue, b: &&ScalarValue| a.partial_cmp(b).expect("ordered");
        let (least, mut greatest) = (numbers().min_by(order), numbers().max_by(order));
        if writer == Writer::Spark && values.iter().any(nan) {
            // To Spark a NaN is the greatest number.
            greatest = values.iter().find(|value| nan(value));
        }
        for (object, bound, is_max) in [(&mut min, least, false), (&mut max, greatest, true)] {
            if let Some(json) = bound.and_then(|bound| bound_json(bound, is_max, writer)) {
                object.insert(field.name().clone(), json);
            }
        }
    }
    format!(
        r#"{{"numRecords":{},"minValues":{},"maxValues":{},"nullCount":{}}}"#,
        data.num_rows(),
        Value::Object(min),
        Value::Object(max),
        Value::Object(nulls)
    )
    // Decimals of Spark are numbers with all their digits, which `Value` cannot hold.
    .replace("\"#", "")
    .replace("#\"", "")
}

fn bound_json(bound: &ScalarValue, is_max: bool, writer: Writer) -> Option<Value> {
    Some(match bound {
        ScalarValue::Date32(Some(days)) => {
            let date = DateTime::from_timestamp(i64::from(*days) * 86_400, 0)?.date_naive();
            json!(date.to_string())
        }
        ScalarValue::TimestampMicrosecond(Some(micros), zone) => {
            let millis = DateTime::from_timestamp_millis(micros.div_euclid(1_000))?;
            let format = "%Y-%m-%dT%H:%M:%S%.3f";
            json!(match (zone, writer) {
                (None, _) => millis.format(format).to_string(),
                (Some(_), Writer::Spark) => {
                    format!("{}-07:00", (millis - Duration::hours(7)).format(format))
                }
                (Some(_), _) => format!("{}Z", millis.format(format)),
            })
        }
        ScalarValue::Decimal128(Some(value), _, scale) if writer == Writer::Spark => {
            json!(format!("#{}#", decimal_text(*value, *scale)?))
        }
        ScalarValue::Decimal128(Some(value), _, scale) => {
            json!(*value as f64 / 10_f64.powi(i32::from(*scale)))
        }
        ScalarValue::Boolean(value) => match writer {
            Writer::Spark => return None,
            _ => json!(value),
        },
        ScalarValue::Float32(Some(value)) if value.is_nan() => json!("NaN"),
        ScalarValue::Float32(Some(value)) if value.is_infinite() => match writer {
            Writer::Spark if *value > 0.0 => json!("Infinity"),
            Writer::Spark => json!("-Infinity"),
            _ => return None,
        },
        ScalarValue::Float32(Some(value)) => json!(value),
        ScalarValue::Utf8(Some(text)) => {
            // UTF-16 units, the half of a pair as a question mark, and a tie-breaker.
            let units: Vec<u16> = text.encode_utf16().collect();
            if units.len() <= 32 {
                json!(text)
            } else {
                let cut: String = char::decode_utf16(units[..32].iter().copied())
                    .map(|unit| unit.unwrap_or('?'))
                    .collect();
                let tie = match writer {
                    Writer::Spark if is_max => "\u{10FFFF}",
                    _ => "",
                };
                json!(format!("{cut}{tie}"))
            }
        }
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_skipped_file_of_any_writer_holds_a_row_that_passes(
        files in prop::collection::vec(any_file(), 1..10),
        condition in condition(),
    ) {
        let rows: Vec<RecordBatch> = files.iter().map(batch).collect();
        let adds: Vec<Add> = files.iter().zip(&rows).map(|(file, rows)| add_of(file, rows)).collect();
        let judged: Vec<PruneFile<'_>> = files
            .iter()
            .zip(&adds)
            .map(|(file, add)| PruneFile { add, exact_writer: file.writer == Writer::Spark })
            .collect();
        let predicate = ReadPredicate::new(std::slice::from_ref(&condition), &STATISTICS_SCHEMA);
        let decisions = prune(&predicate, &judged, Visible::Statistics);
        for ((file, rows), (add, decision)) in files.iter().zip(&rows).zip(adds.iter().zip(&decisions)) {
            prop_assert!(
                !(decision.is_skip() && any_row_passes(&condition, rows)),
                "{condition}\n{file:?}\n{add:?}\n{decision:?}"
            );
        }
    }
}

/// Otherwise the law would hold for a pruner that skips nothing.
#[test]
fn statistics_of_every_writer_do_skip() {
    let int = |value: i128, precision| ScalarValue::Decimal128(Some(value), precision, 2);
    let micros = |micros, zone: Option<&str>| {
        ScalarValue::TimestampMicrosecond(Some(micros), zone.map(Into::into))
    };
    let file = |writer| File {
        writer,
        partition: vec![
            ScalarValue::Date32(Some(0)),
            ScalarValue::from("a"),
            micros(0, Some("UTC")),
        ],
        rows: vec![vec![
            ScalarValue::Date32(Some(0)),
            micros(946_684_800_000_000, Some("UTC")),
            micros(946_684_800_000_000, None),
            int(1, 9),
            int(1, 20),
            ScalarValue::from(true),
            ScalarValue::from(0.5_f32),
            ScalarValue::from("a"),
        ]],
        deletions: false,
    };
    for (condition, but_not_of) in [
        (col("p").gt(lit(ScalarValue::Date32(Some(0)))), None),
        (col("q").not_eq(lit("a")), None),
        (col("r").gt(lit(micros(1, Some("UTC")))), None),
        (col("d").gt(lit(ScalarValue::Date32(Some(0)))), None),
        (
            col("t").gt(lit(micros(946_684_800_001_000, Some("UTC")))),
            None,
        ),
        (col("n").gt(lit(micros(946_684_800_001_000, None))), None),
        (col("m").gt(lit(int(1, 9))), None),
        (col("w").gt(lit(int(1, 20))), Some(Writer::Deltalake)),
        (col("g").eq(lit(0.25_f32)), None),
        (col("s").gt(lit("a")), None),
    ] {
        for writer in [Writer::Ours, Writer::Spark, Writer::Deltalake] {
            let file = file(writer);
            let add = add_of(&file, &batch(&file));
            let predicate =
                ReadPredicate::new(std::slice::from_ref(&condition), &STATISTICS_SCHEMA);
            let judged = PruneFile {
                add: &add,
                exact_writer: writer == Writer::Spark,
            };
            let decision = prune(&predicate, &[judged], Visible::Statistics).remove(0);
            assert_eq!(
                decision.is_skip(),
                but_not_of != Some(writer),
                "{condition} {writer:?} {:?} {decision:?}",
                add.stats
            );
        }
    }
}
