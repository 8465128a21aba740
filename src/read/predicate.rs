//! From the filters of a scan to a predicate that files can be pruned with.
//!
//! In: the filters as DataFusion hands them to `TableProvider::scan`, ANDed. Out: conjuncts, each
//! widened so that statistics can decide it. A row that passes the filters passes every conjunct;
//! the converse need not hold. Nothing in a [`ReadPredicate`] depends on a clock or a session, so
//! that it gives the same answer at commit time as at planning time.

mod cast;
mod float;
mod path;
mod shape;
mod single_value;
mod sql_text;
mod term;
mod widen;

pub(in crate::read) use self::cast::is_monotone;

use std::fmt;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Operator};

pub(crate) use self::shape::{Operand, SetTest, Shape, ValueTest, Why};
#[cfg(test)]
pub(crate) use self::sql_text::sql_text;
pub(crate) use self::term::{Fact, StatisticsTest, Term, Test};
use super::statistics::{Leaf, StatisticsSchema};
use crate::error::shortened;

/// Longest text of one conjunct, in characters.
const MAX_TEXT: usize = 500;

/// Deepest expression that is printed, since printing recurses.
const MAX_PRINTED_DEPTH: usize = 256;

/// Stands for one that is deeper.
const LONG: &str = "(a long condition)";

/// The predicate of one read, widened so that it can be decided from statistics.
///
/// Cheap to clone.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use datafusion::logical_expr::{col, lit, try_cast};
/// use delta_disjoint::read::predicate::ReadPredicate;
/// use delta_disjoint::read::statistics::StatisticsSchema;
///
/// let schema = StatisticsSchema {
///     schema: Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
///     partition_columns: vec![],
///     string_prefix_length: 32,
/// };
/// let predicate = ReadPredicate::new(&[col("t.id").lt(lit(50_i64))], &schema);
/// assert_eq!(predicate.to_string(), "id < 50");
/// assert!(!predicate.is_always_true());
/// // Casts that may turn a value into NULL are not looked into, so every file is kept.
/// let narrow = try_cast(col("id"), DataType::Int32);
/// let predicate = ReadPredicate::new(&[narrow.eq(lit(1_i32))], &schema);
/// assert!(predicate.is_always_true());
/// ```
#[derive(Debug, Clone)]
pub struct ReadPredicate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    text: String,
    terms: Vec<Term>,
    schema: StatisticsSchema,
}

impl ReadPredicate {
    /// Widens the conjunction of `filters`. Never fails: what is not understood becomes `true`.
    pub fn new(filters: &[Expr], schema: &StatisticsSchema) -> Self {
        let conjuncts: Vec<(String, Shape)> = filters
            .iter()
            .flat_map(split_conjunction)
            .map(|filter| (conjunct_text_of(filter), widen::widen(filter, schema)))
            .collect();
        let text = match conjuncts.as_slice() {
            [] => "true".to_owned(),
            [(text, _)] => text.clone(),
            several => several
                .iter()
                .map(|(text, _)| text.as_str())
                .collect::<Vec<_>>()
                .join(" AND "),
        };
        let terms = join_ranges(conjuncts)
            .into_iter()
            .map(|(text, shape)| Term::new(text, shape))
            .collect();
        Self {
            inner: Arc::new(Inner {
                text,
                terms,
                schema: schema.clone(),
            }),
        }
    }

    /// Whether no file can be skipped by it, whatever its statistics.
    pub fn is_always_true(&self) -> bool {
        self.inner
            .terms
            .iter()
            .all(|term| matches!(term.test, Test::Always | Test::Unusable(_)))
    }

    /// The conjuncts.
    pub(crate) fn terms(&self) -> &[Term] {
        &self.inner.terms
    }

    /// The table that it was made for.
    pub(crate) fn schema(&self) -> &StatisticsSchema {
        &self.inner.schema
    }
}

impl fmt::Display for ReadPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.text)
    }
}

/// Joins the two ends of a range of floats to one conjunct, since neither proves anything alone.
fn join_ranges(mut conjuncts: Vec<(String, Shape)>) -> Vec<(String, Shape)> {
    let mut shapes: Vec<&mut Shape> = conjuncts.iter_mut().map(|(_, shape)| shape).collect();
    let paired = float::pair_ranges(&mut shapes);
    let mut joined: Vec<(Leaf, String, Vec<Shape>)> = Vec::new();
    let mut result = Vec::with_capacity(conjuncts.len());
    for (text, shape) in conjuncts {
        let leaf = match &shape {
            Shape::Compare(
                operand,
                Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq,
                _,
            ) if paired.contains(&operand.leaf) => operand.leaf.clone(),
            _ => {
                result.push((text, shape));
                continue;
            }
        };
        match joined.iter_mut().find(|(known, ..)| *known == leaf) {
            Some((_, texts, shapes)) => {
                texts.push_str(" AND ");
                texts.push_str(&text);
                shapes.push(shape);
            }
            None => joined.push((leaf, text, vec![shape])),
        }
    }
    result.extend(
        joined
            .into_iter()
            .map(|(_, text, shapes)| (text, Shape::and(shapes))),
    );
    result
}

/// `expr` as SQL that says the same, as far as that can be had, and not too long. For people: nothing
/// here ever parses it again.
pub(crate) fn text_of(expr: &Expr) -> String {
    let mut depth = Depth::default();
    if expr.visit(&mut depth).is_err() || depth.deepest > MAX_PRINTED_DEPTH {
        return LONG.to_owned();
    }
    let cut = expr.clone().transform(|node| {
        Ok(match node {
            Expr::InList(mut list) if list.list.len() > MAX_TEXT => {
                list.list.truncate(MAX_TEXT);
                Transformed::yes(Expr::InList(list))
            }
            other => Transformed::no(other),
        })
    });
    let expr = cut.as_ref().map_or(expr, |cut| &cut.data);
    let text = sql_text::sql_text(expr).unwrap_or_else(|| expr.human_display().to_string());
    shortened(text, MAX_TEXT)
}

/// `expr` as text without qualifiers, which a reader of one table does not need.
pub(crate) fn unqualified_text_of(expr: &Expr) -> String {
    let unqualified = expr.clone().transform(|node| {
        Ok(match node {
            Expr::Column(column) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))
            }
            other => Transformed::no(other),
        })
    });
    text_of(unqualified.as_ref().map_or(expr, |done| &done.data))
}

/// One of several conditions that are ANDed, as text.
fn conjunct_text_of(conjunct: &Expr) -> String {
    let text = unqualified_text_of(conjunct);
    match conjunct {
        Expr::BinaryExpr(binary) if text != LONG && needs_parentheses(binary.op) => {
            format!("({text})")
        }
        _ => text,
    }
}

/// Whether a condition of `op` is another one with an AND behind it.
fn needs_parentheses(op: Operator) -> bool {
    matches!(
        op,
        Operator::Or | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
    )
}

/// Measures the depth of an expression.
#[derive(Default)]
struct Depth {
    current: usize,
    deepest: usize,
}

impl<'n> TreeNodeVisitor<'n> for Depth {
    type Node = Expr;

    fn f_down(&mut self, _node: &'n Expr) -> Result<TreeNodeRecursion> {
        self.current += 1;
        self.deepest = self.deepest.max(self.current);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _node: &'n Expr) -> Result<TreeNodeRecursion> {
        self.current = self.current.saturating_sub(1);
        Ok(TreeNodeRecursion::Continue)
    }
}

#[cfg(test)]
mod tests;
