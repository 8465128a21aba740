//! Comparisons with values of the table itself: what a scan with a predicate yields must be what
//! the predicate leaves of all rows.

use std::path::Path;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::SessionContext;

use super::compare::{Rows, first_difference, open};
use super::report::Outcome;
use super::statistics::contradicted;
use crate::support::text_rows;

/// Runs the predicates on the table in `folder`, whose rows are `all`.
pub async fn check(folder: &Path, all: &Rows) -> Outcome {
    let ctx = open(folder).await.expect("it was opened before");
    let memory = MemTable::try_new(Arc::clone(&all.schema), vec![all.batches.clone()]);
    ctx.register_table("m", Arc::new(memory.expect("table in memory")))
        .expect("registered");

    let mut predicates = 0;
    let mut wrong_statistics = Vec::new();
    for field in all.schema.fields() {
        let column = Expr::Column(Column::new_unqualified(field.name()));
        for (name, leaf) in leaves(field.name(), column, field.data_type()) {
            let mut tests = vec![leaf.clone().is_null()];
            for value in values(&ctx, &leaf).await {
                let value = || lit(value.clone());
                tests.push(leaf.clone().lt(value()));
                tests.push(leaf.clone().eq(value()));
                tests.push(leaf.clone().gt(value()));
            }
            for test in tests {
                predicates += 1;
                let (ours, expected) = (rows(&ctx, "t", &test).await, rows(&ctx, "m", &test).await);
                let Some(difference) = first_difference(&ours, &expected) else {
                    continue;
                };
                let lost_only = ours.iter().all(|row| expected.contains(row));
                if lost_only && contradicted(folder, &name).await {
                    wrong_statistics.push(name.clone());
                } else {
                    return Outcome::Different(format!("WHERE {test}: {difference}"));
                }
            }
        }
    }
    wrong_statistics.dedup();
    Outcome::Equal {
        predicates,
        wrong_statistics,
    }
}

/// The columns, and fields of structs, that can be compared with a value.
fn leaves(name: &str, expr: Expr, data_type: &DataType) -> Vec<(String, Expr)> {
    match data_type {
        DataType::Struct(fields) => fields
            .iter()
            .flat_map(|field| {
                let inner = get_field(expr.clone(), field.name().as_str());
                leaves(
                    &format!("{name}.{}", field.name()),
                    inner,
                    field.data_type(),
                )
            })
            .collect(),
        data_type if data_type.is_nested() => Vec::new(),
        _ => vec![(name.to_owned(), expr)],
    }
}

/// The first and the last value of `leaf` that is not NULL.
async fn values(ctx: &SessionContext, leaf: &Expr) -> Vec<ScalarValue> {
    let frame = ctx.table("m").await.expect("table in memory");
    let frame = frame.filter(leaf.clone().is_not_null()).expect("filter");
    let frame = frame
        .select(vec![leaf.clone().alias("leaf")])
        .expect("leaf");
    let batches = frame.collect().await.expect("values");
    let mut values = Vec::new();
    let filled = || batches.iter().filter(|batch| batch.num_rows() > 0);
    if let (Some(first), Some(last)) = (filled().next(), filled().next_back()) {
        for (batch, row) in [(first, 0), (last, last.num_rows() - 1)] {
            let column: &dyn Array = batch.column(0).as_ref();
            values.push(ScalarValue::try_from_array(column, row).expect("value"));
        }
    }
    values.dedup();
    values
}

async fn rows(ctx: &SessionContext, table: &str, test: &Expr) -> Vec<String> {
    let frame = ctx.table(table).await.expect("table");
    let frame = frame.filter(test.clone()).expect("filter");
    let batches = match frame.collect().await {
        Ok(batches) => batches,
        Err(error) => panic!("{table} WHERE {test}: {error}"),
    };
    let mut rows = text_rows(&batches);
    rows.sort();
    rows
}
