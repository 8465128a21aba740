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
/// does not. It also turns `-x < c` into `x > -c`, though the least integer is its own negative.
/// Columns are checked apart from this, by index.
pub(super) fn may_reach_parquet(filter: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut allowed = true;
    let walked = filter.apply(|expr| {
        let safe = if expr.is::<TryCastExpr>() || expr.is::<NegativeExpr>() {
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
