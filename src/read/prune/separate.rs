//! Which columns would have told a file's rows from a read.

use datafusion::logical_expr::Operator;

use super::evidence::disproves;
use super::facts::Facts;
use super::{PruneFile, Visible};
use crate::read::predicate::{ReadPredicate, Shape, Test};
use crate::read::statistics::{FileStatistics, Leaf, Nulls};

/// The data columns with a condition in `predicate` of which `file` holds values on both sides: were
/// the table clustered by one of them, its files would be narrower and might be told from the read.
/// A column whose values in the file all satisfy the condition is none, nor is one without bounds.
///
/// In the order of the conditions, each once, as people write them.
pub fn separating_columns(predicate: &ReadPredicate, file: &PruneFile<'_>) -> Vec<String> {
    let schema = predicate.schema();
    let files = std::slice::from_ref(file);
    let statistics = FileStatistics::new(schema, files, Visible::Statistics);
    let mut columns = Vec::new();
    for term in predicate.terms() {
        let Test::Statistics(test) = &term.test else {
            continue;
        };
        let Some(leaf) = straddled(&test.shape, &statistics, predicate) else {
            continue;
        };
        let name = schema.name(leaf);
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}

/// The column of `shape` that lies on both sides of it, if there is one.
fn straddled<'s>(
    shape: &'s Shape,
    statistics: &FileStatistics<'_>,
    predicate: &ReadPredicate,
) -> Option<&'s Leaf> {
    let schema = predicate.schema();
    let bounded = |leaf: &Leaf| {
        let facts = Facts::new(schema, statistics, leaf);
        !schema.is_partition(leaf)
            && facts.nulls() != Nulls::All
            && facts.has_min()
            && facts.has_max()
    };
    match shape {
        Shape::And(children) | Shape::Or(children) => children
            .iter()
            .find_map(|child| straddled(child, statistics, predicate)),
        Shape::Compare(operand, op, literal) => {
            // Of a range, the other side may be unknown to hold a NaN; that is no matter here.
            let mut outside = operand.clone();
            outside.nan_free = false;
            let negated = match op {
                Operator::Eq | Operator::IsNotDistinctFrom => Operator::NotEq,
                other => other.negate()?,
            };
            let beyond = Shape::Compare(outside, negated, literal.clone());
            let reaches_out = !disproves(statistics, schema, &beyond, Visible::Statistics);
            let narrows = !matches!(op, Operator::NotEq | Operator::IsDistinctFrom);
            (narrows && reaches_out && bounded(&operand.leaf)).then_some(&operand.leaf)
        }
        Shape::Set(set) if !set.negated => {
            let leaf = &set.operand.leaf;
            let several = !Facts::new(schema, statistics, leaf).is_exact();
            (several && bounded(leaf)).then_some(leaf)
        }
        Shape::Like(operand, _, false) => bounded(&operand.leaf).then_some(&operand.leaf),
        _ => None,
    }
}
