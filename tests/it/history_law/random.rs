//! Random histories. Everything about a history follows from its seed, in any build and with any
//! version of any library, so that a seed that failed once can be run again years later.

use super::condition::{Aggregate, Condition, Expr, Function, Op, Row, Value};
use super::merge::{Action, Clause, Merge, Side};
use super::statements::{Source, Statement, Work};

/// Width of one cluster of values of `a`: the tables keep one cluster a file, and most conditions
/// ask for one, so that many statements are disjoint.
pub const CLUSTER: i64 = 10;

/// Where a condition stands. DataFusion takes an unknown `IN (SELECT …)` for false wherever it is no
/// conjunct of the whole condition, which below NOT makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Conjunct,
    Below,
    Negated,
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring histories.
        let mut random = Self(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }

    /// What one writer does.
    pub fn work(&mut self) -> Work {
        if self.once_in(10) {
            Work::Optimize
        } else {
            Work::Statement(self.statement())
        }
    }

    fn statement(&mut self) -> Statement {
        match self.below(24) {
            0..=3 => Statement::Insert(self.values()),
            4..=6 => Statement::Insert(self.source()),
            7..=12 => {
                let mut set = vec![self.assignment()];
                if self.once_in(3) {
                    let other = self.assignment();
                    if other.0 != set[0].0 {
                        set.push(other);
                    }
                }
                Statement::Update(set, self.some_condition())
            }
            13..=17 => Statement::Delete(self.some_condition()),
            18 => Statement::Overwrite(if self.once_in(2) {
                self.values()
            } else {
                self.source()
            }),
            19 => Statement::Truncate,
            _ => Statement::Merge(Box::new(self.merge())),
        }
    }

    fn merge(&mut self) -> Merge {
        let source = if self.once_in(3) {
            self.source()
        } else {
            self.values()
        };
        // Other columns than the first hold the same values in many rows.
        let key = self.pick(&[0, 0, 0, 0, 1, 2]);
        let only = self.once_in(3).then(|| self.leaf());
        let matched = (0..self.below(3)).map(|_| self.clause(true)).collect();
        let not_matched = (!self.once_in(3)).then(|| self.once_in(4).then(|| self.leaf()));
        let by_source = self.once_in(5).then(|| self.clause(false));
        let mut merge = Merge {
            source,
            key,
            only,
            matched,
            not_matched,
            by_source,
        };
        if merge.not_matched.is_none() && merge.by_source.is_none() {
            merge.matched.push(self.clause(true));
        }
        merge
    }

    /// A clause; with `pair` its condition and its value may be the source's.
    fn clause(&mut self, pair: bool) -> Clause {
        let side = |random: &mut Self| match pair && random.once_in(2) {
            true => Side::Source,
            false => Side::Table,
        };
        // What every row without a partner is asked for meets everybody.
        let condition = if self.once_in(if pair { 2 } else { 6 }) {
            None
        } else {
            Some((side(self), self.leaf()))
        };
        let action = if self.once_in(3) {
            Action::Delete
        } else {
            let (column, value) = self.assignment();
            Action::Update(column, side(self), value)
        };
        Clause { condition, action }
    }

    fn assignment(&mut self) -> (usize, Expr) {
        match self.below(12) {
            // Rows that move to another cluster are what makes cycles.
            0..=2 => (0, Expr::Plus(0, self.pick(&[-CLUSTER, CLUSTER]))),
            3..=5 => (1, Expr::Plus(1, 1)),
            6 => (1, Expr::Column(0)),
            7 => (1, Expr::Literal(self.small())),
            8 => (1, Expr::Taken(self.aggregate(), 1)),
            9 => (0, Expr::Taken(self.aggregate(), 1)),
            _ => (2, Expr::Literal(self.partition())),
        }
    }

    fn values(&mut self) -> Source {
        let rows = 1 + self.below(3);
        let cluster = self.cluster();
        Source::Values((0..rows).map(|_| self.row(cluster)).collect())
    }

    /// Rows that depend on the table.
    fn source(&mut self) -> Source {
        if self.once_in(3) {
            let condition = self.aggregate();
            Source::One([
                Expr::Taken(condition, 1),
                Expr::Literal(self.small()),
                Expr::Literal(self.partition()),
            ])
        } else {
            let first = match self.below(4) {
                0 => Expr::Column(0),
                1 => Expr::Taken(self.aggregate(), 0),
                _ => Expr::Plus(0, self.pick(&[-CLUSTER, CLUSTER, 1])),
            };
            let values = [first, Expr::Plus(1, 1), Expr::Column(2)];
            Source::Table(values, self.condition(1, Place::Conjunct))
        }
    }

    /// A row with `a` in the cluster that begins at `cluster`.
    pub fn row(&mut self, cluster: i64) -> Row {
        let a = cluster + self.below(CLUSTER as usize) as i64;
        let a = (!self.once_in(8)).then_some(a);
        [a, self.small(), self.partition()]
    }

    fn some_condition(&mut self) -> Option<Condition> {
        if self.once_in(2) {
            let low = self.cluster();
            return Some(Condition::Between(0, low, low + CLUSTER - 1));
        }
        (!self.once_in(8)).then(|| self.condition(2, Place::Conjunct))
    }

    fn condition(&mut self, depth: usize, place: Place) -> Condition {
        match self.below(20) {
            0..=4 if depth > 0 => match self.below(4) {
                0 => {
                    let place = place.max(Place::Below);
                    let left = self.condition(depth - 1, place);
                    let right = self.condition(depth - 1, place);
                    Condition::Or(Box::new(left), Box::new(right))
                }
                1 => Condition::Not(Box::new(self.condition(depth - 1, Place::Negated))),
                _ => {
                    let left = self.condition(depth - 1, place);
                    let right = self.condition(depth - 1, place);
                    Condition::And(Box::new(left), Box::new(right))
                }
            },
            5..=8 => self.subquery(place),
            _ => self.leaf(),
        }
    }

    /// A condition with a subquery over the table itself.
    fn subquery(&mut self, place: Place) -> Condition {
        let inner = Box::new(self.leaf());
        let condition = match self.below(4) {
            0 if place < Place::Negated => {
                let column = self.below(3);
                Condition::InTable(column, column, inner)
            }
            1 => Condition::Exists(None, inner),
            2 => {
                let column = self.below(3);
                Condition::Exists(Some((column, column)), inner)
            }
            _ => {
                let op = self.op();
                return Condition::Against(0, op, self.aggregate());
            }
        };
        let may_be_negated =
            place == Place::Conjunct || !matches!(condition, Condition::InTable(..));
        if may_be_negated && self.once_in(3) {
            Condition::Not(Box::new(condition))
        } else {
            condition
        }
    }

    fn aggregate(&mut self) -> Aggregate {
        Aggregate {
            function: self.pick(&[Function::Max, Function::Min, Function::Count]),
            column: 0,
            condition: Box::new(self.leaf()),
        }
    }

    /// A condition on the row alone.
    fn leaf(&mut self) -> Condition {
        match self.below(13) {
            0..=5 => {
                let low = self.cluster();
                Condition::Between(0, low, low + CLUSTER - 1)
            }
            6 => Condition::Compare(0, self.op(), self.cluster()),
            7 => Condition::Compare(1, self.op(), self.below(5) as i64),
            8 => Condition::Compare(2, self.op(), self.below(3) as i64),
            9 => {
                let values = (0..3).map(|_| self.small()).collect();
                Condition::In(1, values)
            }
            10 => {
                let low = self.cluster();
                let values = (0..4).map(|step| Some(low + 3 * step)).collect();
                Condition::In(0, values)
            }
            11 => Condition::IsNull(self.below(3)),
            _ => Condition::Columns(0, self.op(), 1),
        }
    }

    fn op(&mut self) -> Op {
        self.pick(&[
            Op::Eq,
            Op::NotEq,
            Op::Less,
            Op::LessEq,
            Op::Greater,
            Op::GreaterEq,
            Op::Distinct,
        ])
    }

    /// Where a cluster begins.
    fn cluster(&mut self) -> i64 {
        self.below(4) as i64 * CLUSTER
    }

    fn small(&mut self) -> Value {
        self.pick(&[None, Some(0), Some(1), Some(2), Some(3), Some(4)])
    }

    fn partition(&mut self) -> Value {
        self.pick(&[None, Some(0), Some(1), Some(2)])
    }
}
