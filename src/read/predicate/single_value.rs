//! Conditions that can be evaluated instead of estimated, where the columns they use have one value
//! in a whole file.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_plan::PhysicalExpr;

use super::path::leaf_of;
use super::shape::{ValueTest, Why};
use crate::read::statistics::{Leaf, StatisticsSchema, has_null_count};

/// The leaves that `expr` uses, if it uses some and gives one answer for their values, now and
/// later.
pub(super) fn leaves_of(expr: &Expr, schema: &StatisticsSchema) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::new();
    let mut usable = true;
    expr.apply(|node| {
        Ok(match single(node, schema) {
            Some(leaf) => {
                if !leaves.contains(&leaf) {
                    leaves.push(leaf);
                }
                TreeNodeRecursion::Jump
            }
            None if is_immutable(node) && !matches!(node, Expr::Column(_)) => {
                TreeNodeRecursion::Continue
            }
            None => {
                usable = false;
                TreeNodeRecursion::Stop
            }
        })
    })
    .ok()?;
    (usable && !leaves.is_empty()).then_some(leaves)
}

/// The test that `expr` (`NOT expr` if `negated`) is, given its [`leaves_of`].
pub(super) fn value_test(
    expr: &Expr,
    negated: bool,
    leaves: Vec<Leaf>,
    why: Option<Why>,
    schema: &StatisticsSchema,
) -> Option<ValueTest> {
    // Names of their own, so that dots, case and duplicates mean nothing.
    let name = |position: usize| format!("p{position}");
    let fields: Vec<Field> = leaves
        .iter()
        .enumerate()
        .map(|(position, leaf)| {
            let data_type = schema.field(leaf)?.data_type().clone();
            Some(Field::new(name(position), data_type, true))
        })
        .collect::<Option<_>>()?;
    let renamed = expr
        .clone()
        .transform_down(|node| {
            let position = single(&node, schema)
                .and_then(|leaf| leaves.iter().position(|known| *known == leaf));
            Ok(match position {
                Some(position) => Transformed::new(
                    Expr::Column(Column::new_unqualified(name(position))),
                    true,
                    TreeNodeRecursion::Jump,
                ),
                None => Transformed::no(node),
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
    let expr = failing_on_overflow(expr)?;
    let boolean = expr.data_type(&arrow_schema).ok()? == DataType::Boolean;
    boolean.then_some(ValueTest {
        expr,
        leaves,
        schema: arrow_schema,
        why,
    })
}

/// The leaf that `node` is, if one value of it can be known.
fn single(node: &Expr, schema: &StatisticsSchema) -> Option<Leaf> {
    leaf_of(node, schema).filter(|leaf| {
        schema
            .field(leaf)
            .is_some_and(|field| has_null_count(field.data_type()))
    })
}

/// `expr` with arithmetic that fails where it would wrap around.
fn failing_on_overflow(expr: Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    expr.transform(|node| {
        let strict = node
            .downcast_ref::<BinaryExpr>()
            .map(|binary| binary.clone().with_fail_on_overflow(true));
        Ok(match strict {
            Some(binary) => Transformed::yes(Arc::new(binary) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(node),
        })
    })
    .data()
    .ok()
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
