//! NaN and signed zero: Parquet and Delta bounds leave NaN out and know one zero, DataFusion's
//! order does not (datafusion #15812).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::datasource::MemTable;
use deltalake::DeltaTable;

use super::{PUSHDOWN, push_filters, same_as_memory, sorted};
use crate::support::Table;

/// The files' values: a bound that a NaN exceeds, one that a negative NaN undercuts, both zeros in
/// one file and in two, infinities, nothing but NULL, plain numbers.
fn files() -> Vec<Vec<Option<f64>>> {
    vec![
        vec![Some(1.0), Some(f64::NAN)],
        vec![Some(2.0), Some(-f64::NAN)],
        vec![Some(0.0), Some(-0.0)],
        vec![Some(0.0)],
        vec![Some(-0.0)],
        vec![Some(f64::INFINITY), Some(1.0)],
        vec![Some(f64::NEG_INFINITY), Some(1.0), None],
        vec![None],
        vec![Some(f64::NAN), Some(-f64::NAN)],
        vec![Some(5.0), Some(6.5)],
    ]
}

fn batches() -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("d", DataType::Float64, true),
        Field::new("f", DataType::Float32, true),
    ]));
    files()
        .into_iter()
        .enumerate()
        .map(|(file, values)| {
            let first = i64::try_from(file).expect("small") * 10;
            let ids = Int64Array::from_iter_values((first..).take(values.len()));
            #[expect(clippy::cast_possible_truncation, reason = "all values fit")]
            let floats: Float32Array = values.iter().map(|v| v.map(|v| v as f32)).collect();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(ids),
                Arc::new(Float64Array::from(values)),
                Arc::new(floats),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).expect("batch")
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
enum Writer {
    /// This crate, one file a batch.
    Ours,
    /// deltalake, one file a batch: nothing says which files are free of NaN.
    Deltalake,
    /// This crate, all rows in one file.
    OneFile,
}

const WRITERS: [Writer; 3] = [Writer::Ours, Writer::Deltalake, Writer::OneFile];

/// `t` and its twin `m`.
async fn table(writer: Writer) -> Table {
    let table = Table::create("id BIGINT, d DOUBLE, f FLOAT", "", &[]).await;
    let batches = batches();
    let schema = batches[0].schema();
    let register = |name: &str, batches: Vec<RecordBatch>| {
        let memory = MemTable::try_new(Arc::clone(&schema), vec![batches]).expect("table");
        table
            .ctx
            .register_table(name, Arc::new(memory))
            .expect("registered");
    };
    register("m", batches.clone());
    match writer {
        Writer::OneFile => assert_eq!(table.count("INSERT INTO t SELECT * FROM m").await, 18),
        Writer::Ours => {
            for file in 0..batches.len() {
                table
                    .run(&format!(
                        "INSERT INTO t SELECT * FROM m WHERE id / 10 = {file}"
                    ))
                    .await;
            }
        }
        Writer::Deltalake => {
            let mut delta: DeltaTable = table.deltalake().await;
            for batch in batches {
                delta = delta.write(vec![batch]).await.expect("deltalake writes");
            }
        }
    }
    table
}

const LITERALS: [&str; 4] = ["0.0", "(-0.0)", "5.5", "CAST('NaN' AS DOUBLE)"];

fn predicates(column: &str) -> Vec<String> {
    let mut predicates = Vec::new();
    for literal in LITERALS {
        for op in [
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "IS DISTINCT FROM",
            "IS NOT DISTINCT FROM",
        ] {
            predicates.push(format!("{column} {op} {literal}"));
        }
    }
    for predicate in [
        "{c} BETWEEN 0.5 AND 1.5",
        "{c} NOT BETWEEN 0.5 AND 6.0",
        "{c} BETWEEN -0.0 AND 0.0",
        "{c} > 4.0 AND {c} < CAST('NaN' AS DOUBLE)",
        "{c} IN (1.0, 6.5)",
        "{c} IN (0.0, 6.5)",
        "{c} IN (CAST('NaN' AS DOUBLE), 6.5)",
        "{c} NOT IN (1.0, 2.0)",
        "{c} IS NULL",
        "{c} IS NOT NULL",
        "{c} > 5.0 OR {c} IS NULL",
        "{c} >= -CAST('NaN' AS DOUBLE)",
        "{c} <= -CAST('NaN' AS DOUBLE)",
        "{c} = -CAST('NaN' AS DOUBLE)",
        "{c} >= CAST('Infinity' AS DOUBLE)",
        "NOT ({c} <= 5.0)",
        "({c} > 5.0) IS NOT TRUE",
        "5.0 < {c}",
        "-{c} > 5.0",
        "isnan({c})",
    ] {
        predicates.push(predicate.replace("{c}", column));
    }
    predicates
}

/// Queries of many predicates each, which need a scan for every one.
fn queries(column: &str) -> Vec<String> {
    predicates(column)
        .chunks(20)
        .map(|chunk| {
            chunk
                .iter()
                .map(|predicate| {
                    let name = predicate.replace('\'', "");
                    format!("SELECT '{name}' AS predicate, id FROM {{t}} WHERE {predicate}")
                })
                .collect::<Vec<_>>()
                .join(" UNION ALL ")
        })
        .collect()
}

#[tokio::test]
async fn comparisons_with_nan_and_zero_give_the_rows_of_a_memory_table() {
    for (column, writers) in [("d", &WRITERS[..]), ("f", &[Writer::Deltalake])] {
        let mut expected: Vec<Vec<String>> = Vec::new();
        for writer in writers {
            let table = table(*writer).await;
            for pushdown in PUSHDOWN {
                push_filters(&table.ctx, pushdown).await;
                for (number, query) in queries(column).iter().enumerate() {
                    if expected.len() == number {
                        expected.push(sorted(&table.ctx, &query.replace("{t}", "m")).await);
                        assert!(expected[number].len() > 20, "{:?}", expected[number]);
                    }
                    assert_eq!(
                        sorted(&table.ctx, &query.replace("{t}", "t")).await,
                        expected[number],
                        "{writer:?}, pushdown {pushdown}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_nan_beyond_the_bounds_is_found() {
    // What the comparison above would not notice if both sides were wrong.
    for writer in WRITERS {
        let table = table(writer).await;
        let found = table
            .run("SELECT id FROM t WHERE d > 6.5 ORDER BY id")
            .await;
        let ids: Vec<i64> = found
            .iter()
            .flat_map(|batch| {
                batch
                    .column(0)
                    .as_primitive::<Int64Type>()
                    .values()
                    .to_vec()
            })
            .collect();
        // NaN of 1 and 80, infinity of 50.
        assert_eq!(ids, [1, 50, 80], "{writer:?}");
    }
}

#[tokio::test]
async fn top_k_joins_and_aggregates_over_floats_give_the_rows_of_a_memory_table() {
    for writer in WRITERS {
        let table = table(writer).await;
        table
            .run(
                "CREATE TABLE keys AS SELECT * FROM (VALUES (CAST('NaN' AS DOUBLE)), (0.0), (-0.0), \
                 (6.5), (NULL)) AS v(k)",
            )
            .await;
        for pushdown in PUSHDOWN {
            push_filters(&table.ctx, pushdown).await;
            let situation = format!("{writer:?}, pushdown {pushdown}");
            for query in [
                "SELECT d, id FROM {t} ORDER BY d DESC NULLS LAST, id LIMIT 3",
                "SELECT d, id FROM {t} ORDER BY d ASC NULLS LAST, id LIMIT 3",
                "SELECT f, id FROM {t} ORDER BY f DESC NULLS FIRST, id LIMIT 9",
                "SELECT k, id FROM keys JOIN {t} ON k = d",
                "SELECT k, id FROM keys JOIN {t} ON k < d",
                "SELECT id FROM {t} WHERE d IN (SELECT k FROM keys WHERE k IS NOT NULL)",
                "SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM keys WHERE k = f)",
                "SELECT min(d), max(d), min(f), max(f), count(d), count(*) FROM {t}",
                "SELECT max(d) FROM {t} WHERE id < 10",
                "SELECT d, count(*) FROM {t} GROUP BY d",
            ] {
                same_as_memory(&table.ctx, query, &situation).await;
            }
        }
    }
}
