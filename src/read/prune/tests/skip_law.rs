//! The skip law, on random rows, honest statistics and random predicates: no skipped file holds a
//! row that passes.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_expr::create_physical_expr;
use deltalake::kernel::Add;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::read::predicate::ReadPredicate;
use crate::read::prune::{Visible, prune};
use crate::read::statistics::{NAN_FREE_TAG, StatisticsSchema};
use crate::read::test_support::{file, table, tagged, unknown_writer, with_deletions};

type Row = (Option<i64>, Option<String>, Option<f64>);

fn schema() -> StatisticsSchema {
    table(
        &[
            ("i", DataType::Int64),
            ("s", DataType::Utf8),
            ("f", DataType::Float64),
        ],
        &[],
    )
}

fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -4_i64..5, 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

fn string() -> impl Strategy<Value = String> {
    // Long common prefixes, so that cut bounds matter.
    let tail = prop_oneof![
        Just(""),
        Just("a"),
        Just("\u{7F}"),
        Just("\u{10FFFF}"),
        Just("é")
    ];
    let head = prop_oneof![Just(""), Just("b"), Just("aaaaaaaaaaaaaaaaaaaa")];
    (head, tail.clone(), tail).prop_map(|(head, one, two)| format!("{head}{one}{two}"))
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-4_i32..5).prop_map(|value| f64::from(value) / 2.0),
        1 => Just(-0.0),
        1 => Just(f64::NAN),
        1 => Just(-f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    (
        prop::option::weighted(0.8, integer()),
        prop::option::weighted(0.8, string()),
        prop::option::weighted(0.8, double()),
    )
}

/// A condition of the grammar, as DataFusion would hand it over.
fn condition() -> impl Strategy<Value = Expr> {
    let column = prop_oneof![
        integer().prop_map(|value| (col("i"), lit(value))),
        string().prop_map(|value| (col("s"), lit(value))),
        double().prop_map(|value| (col("f"), lit(value))),
        double().prop_map(|value| (
            datafusion::logical_expr::cast(col("i"), DataType::Float64),
            lit(value)
        )),
    ];
    let comparison = (column.clone(), 0..8_usize).prop_map(|((left, right), op)| match op {
        0 => left.eq(right),
        1 => left.not_eq(right),
        2 => left.lt(right),
        3 => left.lt_eq(right),
        4 => left.gt(right),
        5 => right.gt_eq(left),
        6 => datafusion::logical_expr::binary_expr(
            left,
            datafusion::logical_expr::Operator::IsDistinctFrom,
            right,
        ),
        _ => datafusion::logical_expr::binary_expr(
            left,
            datafusion::logical_expr::Operator::IsNotDistinctFrom,
            right,
        ),
    });
    let list = |column: &'static str, values: BoxedStrategy<Expr>| {
        (prop::collection::vec(values, 1..4), any::<bool>())
            .prop_map(move |(values, negated)| col(column).in_list(values, negated))
    };
    let null_i =
        prop_oneof![9 => integer().prop_map(lit), 1 => Just(lit(ScalarValue::Int64(None)))];
    let leaf = prop_oneof![
        6 => comparison,
        1 => list("i", null_i.boxed()),
        1 => list("s", string().prop_map(lit).boxed()),
        1 => list("f", double().prop_map(lit).boxed()),
        1 => (integer(), integer(), any::<bool>()).prop_map(|(low, high, negated)| {
            if negated {
                col("i").not_between(lit(low), lit(high))
            } else {
                col("i").between(lit(low), lit(high))
            }
        }),
        1 => (double(), double(), any::<bool>()).prop_map(|(low, high, negated)| {
            if negated {
                col("f").not_between(lit(low), lit(high))
            } else {
                col("f").between(lit(low), lit(high))
            }
        }),
        1 => (prop_oneof![Just("i"), Just("s"), Just("f")], any::<bool>()).prop_map(
            |(column, negated)| if negated {
                col(column).is_not_null()
            } else {
                col(column).is_null()
            }
        ),
        1 => (string(), any::<bool>()).prop_map(|(prefix, negated)| {
            let pattern = lit(format!("{prefix}%"));
            if negated {
                col("s").not_like(pattern)
            } else {
                col("s").like(pattern)
            }
        }),
        1 => Just((col("i") % lit(3_i64)).eq(lit(1_i64))),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            2 => inner.clone().prop_map(|a| !a),
            1 => inner.clone().prop_map(Expr::is_true),
            1 => inner.clone().prop_map(Expr::is_not_true),
            1 => inner.clone().prop_map(Expr::is_false),
            1 => inner.prop_map(Expr::is_not_false),
        ]
    })
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
        Arc::new(
            rows.iter()
                .map(|row| row.1.clone())
                .collect::<StringArray>(),
        ),
        Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>()),
    ];
    RecordBatch::try_new(schema().schema, columns).expect("batch")
}

/// Whether any row passes, by DataFusion's own evaluation.
fn any_row_passes(condition: &Expr, rows: &[Row]) -> bool {
    let batch = batch(rows);
    let df_schema = DFSchema::try_from(batch.schema()).expect("schema");
    let expr = create_physical_expr(
        condition,
        &df_schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )
    .expect("physical");
    let passed = expr
        .evaluate(&batch)
        .and_then(|value| value.into_array(batch.num_rows()))
        .expect("evaluated");
    passed
        .as_boolean()
        .iter()
        .any(|passes| passes == Some(true))
}

/// A prefix, and a tie-breaker if it was cut.
fn cut(text: &str, tie: &str) -> String {
    match text.char_indices().nth(18) {
        Some((end, _)) => format!("{}{tie}", &text[..end]),
        None => text.to_owned(),
    }
}

fn double_json(value: f64) -> Value {
    if value == f64::INFINITY {
        json!("Infinity")
    } else if value == f64::NEG_INFINITY {
        json!("-Infinity")
    } else {
        json!(value)
    }
}

/// Honest statistics of `rows`, of which the pieces whose bit in `omit` is set are left out. Bit 0
/// says how strings are cut.
fn honest(rows: &[Row], omit: u16) -> Add {
    let integers: Vec<i64> = rows.iter().filter_map(|row| row.0).collect();
    let strings: Vec<&String> = rows.iter().filter_map(|row| row.1.as_ref()).collect();
    let doubles: Vec<f64> = rows.iter().filter_map(|row| row.2).collect();
    let numbers: Vec<f64> = doubles.iter().copied().filter(|v| !v.is_nan()).collect();
    // A bare prefix, or Spark's lower tie-breaker.
    let tie = if omit & 1 == 0 { "" } else { "\u{7F}" };
    let mut bit = 0;
    let mut add = |object: &mut Map<String, Value>, name: &str, value: Option<Value>| {
        bit += 1;
        if omit & (1 << bit) == 0
            && let Some(value) = value
        {
            object.insert(name.to_owned(), value);
        }
    };
    let [mut min, mut max, mut nulls, mut all] = [(); 4].map(|()| Map::new());
    add(&mut min, "i", integers.iter().min().map(|v| json!(v)));
    add(&mut max, "i", integers.iter().max().map(|v| json!(v)));
    add(
        &mut min,
        "s",
        strings.iter().min().map(|v| json!(cut(v, ""))),
    );
    add(
        &mut max,
        "s",
        strings.iter().max().map(|v| json!(cut(v, tie))),
    );
    let least = numbers.iter().copied().reduce(f64::min);
    let greatest = numbers.iter().copied().reduce(f64::max);
    add(&mut min, "f", least.map(double_json));
    add(&mut max, "f", greatest.map(double_json));
    let count = |values: usize| Some(json!(rows.len() - values));
    add(&mut nulls, "i", count(integers.len()));
    add(&mut nulls, "s", count(strings.len()));
    add(&mut nulls, "f", count(doubles.len()));
    add(&mut all, "numRecords", Some(json!(rows.len())));
    all.insert("minValues".to_owned(), min.into());
    all.insert("maxValues".to_owned(), max.into());
    all.insert("nullCount".to_owned(), nulls.into());
    let add = file(&Value::Object(all).to_string());
    if doubles.iter().all(|value| !value.is_nan()) {
        tagged(add, NAN_FREE_TAG, r#"["f"]"#)
    } else {
        add
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_skipped_file_holds_a_row_that_passes(
        files in prop::collection::vec(
            (prop::collection::vec(row(), 0..5), any::<u16>(), any::<u16>(), any::<bool>()),
            1..8,
        ),
        condition in condition(),
    ) {
        let schema = schema();
        let adds: Vec<Add> = files
            .iter()
            .map(|(rows, mask, other, deletions)| {
                // Most pieces are there.
                let add = honest(rows, mask & other & (other >> 3));
                if *deletions { with_deletions(add) } else { add }
            })
            .collect();
        let judged: Vec<_> = adds.iter().map(unknown_writer).collect();
        let predicate = ReadPredicate::new(std::slice::from_ref(&condition), &schema);
        let decisions = prune(&predicate, &judged, Visible::Statistics);
        for ((rows, ..), (add, decision)) in files.iter().zip(adds.iter().zip(&decisions)) {
            prop_assert!(
                !(decision.is_skip() && any_row_passes(&condition, rows)),
                "{condition}\n{rows:?}\n{:?}\n{decision:?}",
                add.stats
            );
        }
    }
}

#[test]
fn honest_statistics_do_skip() {
    let rows = vec![(Some(1), Some("b".to_owned()), Some(1.0))];
    let add = honest(&rows, 0);
    for condition in [
        col("i").gt(lit(1_i64)),
        col("s").gt(lit("b")),
        col("f").gt(lit(1.0)),
    ] {
        let predicate = ReadPredicate::new(&[condition], &schema());
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert!(decision.is_skip(), "{decision:?}");
    }
}
