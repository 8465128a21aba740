//! `IN (SELECT …)` and `EXISTS` of DELETE and UPDATE: once DataFusion has made a semi-join of them,
//! the subquery's values say which keys of the table are asked for.
//!
//! Only a semi-join that every changed row has to pass counts, that is, one on the straight way from
//! the statement to its scan: a positive test that is a conjunct of WHERE.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, ExprSchema, JoinType, NullEquality, Result as DFResult,
};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::{Expr, ExprSchemable, Extension, LogicalPlan, Projection};

use super::key_source::KeySource;
use super::merge::compares_by_value;
use super::pin::delta_dml;
use super::rule::delta_provider;
use crate::read::keys::KeyedRead;

/// `plan` with the semi-joins of its changes read keys first.
pub(super) fn with_keys_first(plan: LogicalPlan) -> DFResult<LogicalPlan> {
    plan.transform_down(|node| {
        let LogicalPlan::Extension(extension) = &node else {
            return Ok(Transformed::no(node));
        };
        let Some(dml) = delta_dml(extension) else {
            return Ok(Transformed::no(node));
        };
        match first_semi_join(dml.input())? {
            Some(input) => Ok(Transformed::yes(LogicalPlan::Extension(Extension {
                node: Arc::new(dml.with_input(input)),
            }))),
            None => Ok(Transformed::no(node)),
        }
    })
    .map(|transformed| transformed.data)
}

/// `plan` with its first usable semi-join read keys first, if it has one.
fn first_semi_join(plan: &LogicalPlan) -> DFResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let [input] = plan.inputs()[..] else {
                return Ok(None);
            };
            let Some(input) = first_semi_join(input)? else {
                return Ok(None);
            };
            plan.with_new_exprs(plan.expressions(), vec![input])
                .map(Some)
        }
        LogicalPlan::Join(join) if keeps_left_rows(join.join_type) => {
            if join.join_type == JoinType::LeftSemi
                && let Some(keyed) = keyed_join(join)?
            {
                return Ok(Some(LogicalPlan::Join(keyed)));
            }
            Ok(first_semi_join(&join.left)?.map(|left| with_left(join, left)))
        }
        _ => Ok(None),
    }
}

/// `join` with its right side read first, if an equality of it says which keys are asked for.
fn keyed_join(join: &Join) -> DFResult<Option<Join>> {
    if join.null_equality != NullEquality::NullEqualsNothing {
        return Ok(None);
    }
    let (targets, sources): (Vec<Expr>, Vec<Column>) = join
        .on
        .iter()
        .filter_map(|(left, right)| usable(left, right, join))
        .unzip();
    if targets.is_empty() {
        return Ok(None);
    }
    let id = uuid::Uuid::new_v4();
    let keyed = KeyedRead {
        join: id,
        keys: targets,
        alone: None,
        state: None,
    };
    let Some(left) = with_keys(&join.left, &keyed)? else {
        return Ok(None);
    };
    let source = KeySource {
        join: id,
        keys: sources,
        input: Arc::clone(&join.right),
        state: None,
    };
    Ok(Some(Join {
        left: Arc::new(left),
        right: Arc::new(LogicalPlan::Extension(Extension {
            node: Arc::new(source),
        })),
        ..join.clone()
    }))
}

/// Both sides of an equality, if they are plain columns of one type, the table's maybe under a cast
/// to a type that holds all its values.
fn usable(left: &Expr, right: &Expr, join: &Join) -> Option<(Expr, Column)> {
    let column = match left {
        Expr::Column(column) => column,
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Column(column) => column,
            _ => return None,
        },
        _ => return None,
    };
    let Expr::Column(source) = right else {
        return None;
    };
    let type_of = |expr: &Expr, schema: &DFSchema| expr.get_type(schema).ok();
    let compared = type_of(left, join.left.schema())?;
    let own = join.left.schema().field_from_column(column).ok()?;
    (type_of(right, join.right.schema())? == compared
        && compares_by_value(own.data_type(), &compared))
    .then(|| (left.clone(), source.clone()))
}

/// `plan` with `keyed` on the scan of the changed table, if it is reached by operators alone that
/// keep columns and their names.
fn with_keys(plan: &LogicalPlan, keyed: &KeyedRead) -> DFResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = delta_provider(&scan.source)
                .filter(|provider| provider.yields_positions() && provider.keyed().is_none());
            Ok(provider.map(|provider| {
                let mut scan = scan.clone();
                scan.source = provider_as_source(Arc::new(provider.with_keys(keyed.clone())));
                LogicalPlan::TableScan(scan)
            }))
        }
        LogicalPlan::Projection(Projection { expr, .. })
            if !expr.iter().all(|expr| matches!(expr, Expr::Column(_))) =>
        {
            Ok(None)
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let [input] = plan.inputs()[..] else {
                return Ok(None);
            };
            let Some(input) = with_keys(input, keyed)? else {
                return Ok(None);
            };
            plan.with_new_exprs(plan.expressions(), vec![input])
                .map(Some)
        }
        LogicalPlan::Join(join) if keeps_left_rows(join.join_type) => {
            Ok(with_keys(&join.left, keyed)?.map(|left| with_left(join, left)))
        }
        _ => Ok(None),
    }
}

/// Whether a join yields rows of its left side, each at most once.
fn keeps_left_rows(join_type: JoinType) -> bool {
    matches!(
        join_type,
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
    )
}

fn with_left(join: &Join, left: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Join(Join {
        left: Arc::new(left),
        ..join.clone()
    })
}
