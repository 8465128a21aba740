//! One conjunct of a read predicate, ready to be tested.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, IsNotNullExpr, IsNullExpr, LikeExpr, lit,
};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::PhysicalExpr;

use super::shape::{Operand, SetTest, Shape, ValueTest, Why};
use crate::read::statistics::Leaf;

/// A conjunct: its text and what decides it.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    /// The conjunct as the reader knows it.
    pub(crate) text: String,
    /// What decides it.
    pub(crate) test: Test,
}

/// How a conjunct is decided.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// Not at all, and why.
    Unusable(Why),
    /// It is true by itself.
    Always,
    /// No row ever satisfies it.
    Never,
    /// From the files' statistics.
    Statistics(Arc<StatisticsTest>),
}

/// A formula over operands and facts.
///
/// DataFusion's [`PruningPredicate`] turns it into one over bounds and null counts. It sees columns
/// `o0`, `o1`, … for the operands and boolean columns `f0`, `f1`, … for the facts, which are
/// decided for each file beforehand: false where disproved.
#[derive(Debug)]
pub(crate) struct StatisticsTest {
    /// The formula.
    pub(crate) pruning: PruningPredicate,
    /// The columns it compares.
    pub(crate) operands: Vec<Operand>,
    /// The facts it uses.
    pub(crate) facts: Vec<Fact>,
    /// What it was made from, for evidence.
    pub(crate) shape: Shape,
}

/// A leaf that is decided outside of the formula.
#[derive(Debug)]
pub(crate) enum Fact {
    /// A condition on columns that have one value.
    Value(ValueTest),
    /// `[NOT] IN`.
    Set(SetTest),
}

impl Fact {
    fn leaves(&self) -> &[Leaf] {
        match self {
            Self::Value(test) => &test.leaves,
            Self::Set(set) => std::slice::from_ref(&set.operand.leaf),
        }
    }
}

impl Term {
    /// The term for a conjunct that was widened to `shape`.
    pub(crate) fn new(text: String, shape: Shape) -> Self {
        let test = match shape {
            Shape::Unusable(why) => Test::Unusable(why),
            Shape::Always => Test::Always,
            Shape::Never => Test::Never,
            shape => match StatisticsTest::new(shape) {
                Some(test) => Test::Statistics(Arc::new(test)),
                None => Test::Unusable(Why::form("its form")),
            },
        };
        Self { text, test }
    }
}

impl StatisticsTest {
    /// The leaves that it uses, each once.
    pub(crate) fn leaves(&self) -> Vec<&Leaf> {
        let operands = self.operands.iter().map(|operand| &operand.leaf);
        let facts = self.facts.iter().flat_map(Fact::leaves);
        let mut seen = Vec::new();
        for leaf in operands.chain(facts) {
            if !seen.contains(&leaf) {
                seen.push(leaf);
            }
        }
        seen
    }

    /// The test that decides `shape`; `None` where it can decide nothing.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let mut builder = Builder::default();
        let expr = builder.build(shape.clone());
        let operands = builder
            .operands
            .iter()
            .enumerate()
            .map(|(i, operand)| Field::new(format!("o{i}"), operand.data_type.clone(), true));
        let facts =
            (0..builder.facts.len()).map(|i| Field::new(format!("f{i}"), DataType::Boolean, true));
        let schema = Arc::new(Schema::new(operands.chain(facts).collect::<Vec<_>>()));
        // Lists never reach it, so that its limit on their length does not matter.
        let pruning = PruningPredicateBuilder::new()
            .with_file_schema(schema)
            .try_build(expr)
            .ok()?;
        if pruning.always_true() {
            return None;
        }
        Some(Self {
            pruning,
            operands: builder.operands,
            facts: builder.facts,
            shape,
        })
    }
}

/// Turns a shape into the formula and collects what it refers to.
#[derive(Default)]
struct Builder {
    operands: Vec<Operand>,
    facts: Vec<Fact>,
}

impl Builder {
    fn build(&mut self, shape: Shape) -> Arc<dyn PhysicalExpr> {
        match shape {
            Shape::Unusable(_) | Shape::Always => lit(true),
            Shape::Never => lit(false),
            Shape::And(children) => self.balanced(children, Operator::And),
            Shape::Or(children) => self.balanced(children, Operator::Or),
            Shape::Compare(operand, op, literal) => {
                let column = self.operand(operand);
                Arc::new(BinaryExpr::new(column, op, lit(literal)))
            }
            Shape::Like(operand, pattern, negated) => {
                let column = self.operand(operand);
                Arc::new(LikeExpr::new(negated, false, column, lit(pattern)))
            }
            Shape::NullTest(operand, false) => Arc::new(IsNullExpr::new(self.operand(operand))),
            Shape::NullTest(operand, true) => Arc::new(IsNotNullExpr::new(self.operand(operand))),
            Shape::Set(test) => self.fact(Fact::Set(test)),
            Shape::Value(test) => self.fact(Fact::Value(test)),
        }
    }

    /// A tree of low height, since DataFusion walks it recursively.
    fn balanced(&mut self, children: Vec<Shape>, op: Operator) -> Arc<dyn PhysicalExpr> {
        let mut level: Vec<Arc<dyn PhysicalExpr>> = children
            .into_iter()
            .map(|child| self.build(child))
            .collect();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .filter_map(|pair| match pair {
                    [left, right] => Some(Arc::new(BinaryExpr::new(
                        Arc::clone(left),
                        op,
                        Arc::clone(right),
                    )) as Arc<dyn PhysicalExpr>),
                    [single] => Some(Arc::clone(single)),
                    _ => None,
                })
                .collect();
        }
        level
            .pop()
            .unwrap_or_else(|| lit(ScalarValue::Boolean(Some(op == Operator::And))))
    }

    // The position inside the schema does not matter to pruning, which goes by names.
    fn operand(&mut self, operand: Operand) -> Arc<dyn PhysicalExpr> {
        let index = match self.operands.iter().position(|known| *known == operand) {
            Some(index) => index,
            None => {
                self.operands.push(operand);
                self.operands.len() - 1
            }
        };
        Arc::new(Column::new(&format!("o{index}"), index))
    }

    fn fact(&mut self, fact: Fact) -> Arc<dyn PhysicalExpr> {
        let index = self.facts.len();
        self.facts.push(fact);
        Arc::new(Column::new(&format!("f{index}"), index))
    }
}
