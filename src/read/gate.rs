//! Which physical filters may prune inside the Parquet source.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{CastExpr, NegativeExpr, TryCastExpr};
use datafusion::physical_plan::PhysicalExpr;

use super::predicate::is_monotone as is_monotone_cast;

/// Whether `filter` may be handed to the Parquet source.
///
/// DataFusion's pruning moves every cast but those to and from strings onto the bounds. That is
/// right only for casts that keep the order of values: the cast of a timestamp to its time of day
/// does not. It moves negation to the other side, though the least integer is its own negative, and
/// evaluates what is volatile once more. Columns are checked apart from this, by index.
pub(super) fn may_reach_parquet(filter: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut allowed = true;
    let walked = filter.apply(|expr| {
        let safe = if expr.is_volatile_node()
            || expr.downcast_ref::<TryCastExpr>().is_some()
            || expr.downcast_ref::<NegativeExpr>().is_some()
        {
            false
        } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            cast.expr()
                .data_type(schema)
                .is_ok_and(|from| is_monotone_cast(&from, cast.cast_type()))
        } else {
            true
        };
        allowed &= safe;
        Ok(if safe {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    });
    allowed && walked.is_ok()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};

    use super::*;

    #[test]
    fn what_does_not_keep_the_order_stays_out() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("i", DataType::Int64, true),
            Field::new("t", micros, true),
        ]));
        let column =
            |name: &str, index| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(name, index)) };
        let cast = |to: DataType| -> Arc<dyn PhysicalExpr> {
            Arc::new(CastExpr::new(column("t", 1), to, None))
        };
        let time = DataType::Time64(TimeUnit::Nanosecond);
        for (left, right, expected) in [
            (column("i", 0), lit(1_i64), true),
            (
                Arc::new(NegativeExpr::new(column("i", 0))) as _,
                lit(1_i64),
                false,
            ),
            (
                cast(DataType::Date32),
                lit(ScalarValue::Date32(Some(0))),
                true,
            ),
            (
                cast(time.clone()),
                lit(ScalarValue::Time64Nanosecond(Some(0))),
                false,
            ),
            (
                Arc::new(TryCastExpr::new(column("t", 1), DataType::Date32)) as _,
                lit(ScalarValue::Date32(Some(0))),
                false,
            ),
        ] {
            let filter: Arc<dyn PhysicalExpr> =
                Arc::new(BinaryExpr::new(left, Operator::Lt, right));
            assert_eq!(may_reach_parquet(&filter, &schema), expected, "{filter}");
        }
    }
}
