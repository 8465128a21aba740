//! Conditions on partition columns alone, which can be evaluated instead of estimated.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::create_physical_expr;

use super::shape::PartitionTest;
use crate::read::statistics::StatisticsSchema;

/// The test that `expr` (`NOT expr` if `negated`) is, if it uses partition columns alone and has
/// one value for them, now and later.
pub(super) fn partition_test(
    expr: &Expr,
    negated: bool,
    schema: &StatisticsSchema,
) -> Option<PartitionTest> {
    let mut columns = Vec::new();
    let mut usable = true;
    expr.apply(|node| {
        usable = usable && is_immutable(node);
        if let Expr::Column(column) = node {
            match schema.index_of(&column.name) {
                Some(index) if schema.is_partition(index) => {
                    if !columns.contains(&index) {
                        columns.push(index);
                    }
                }
                _ => usable = false,
            }
        }
        Ok(if usable {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    })
    .ok()?;
    if !usable || columns.is_empty() {
        return None;
    }
    // Names of their own, so that dots, case and duplicates mean nothing.
    let name = |position: usize| format!("p{position}");
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(position, index)| {
            let data_type = schema.schema.field(*index).data_type().clone();
            Field::new(name(position), data_type, true)
        })
        .collect();
    let renamed = expr
        .clone()
        .transform(|node| {
            Ok(match &node {
                Expr::Column(column) => {
                    let index = schema.index_of(&column.name);
                    match columns.iter().position(|column| Some(*column) == index) {
                        Some(position) => {
                            Transformed::yes(Expr::Column(Column::new_unqualified(name(position))))
                        }
                        None => Transformed::no(node),
                    }
                }
                _ => Transformed::no(node),
            })
        })
        .ok()?
        .data;
    let renamed = if negated {
        Expr::Not(Box::new(renamed))
    } else {
        renamed
    };
    let arrow_schema = Arc::new(Schema::new(fields));
    let df_schema = DFSchema::try_from(Arc::clone(&arrow_schema)).ok()?;
    let expr = create_physical_expr(
        &renamed,
        &df_schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )
    .ok()?;
    let boolean = expr.data_type(&arrow_schema).ok()? == DataType::Boolean;
    boolean.then_some(PartitionTest {
        expr,
        columns,
        schema: arrow_schema,
    })
}

/// Whether this node, apart from its children, gives the same answer whenever it is evaluated.
fn is_immutable(node: &Expr) -> bool {
    match node {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::BinaryExpr(_)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::InList(_) => true,
        Expr::ScalarFunction(function) => {
            function.func.signature().volatility == Volatility::Immutable
                // A function that follows the session's settings would be evaluated under others.
                && function
                    .func
                    .inner()
                    .with_updated_config(&ConfigOptions::default())
                    .is_none()
        }
        _ => false,
    }
}
