//! Whether a table is what some serial order of statements makes of it.
//!
//! What the two levels promise of the statements that committed:
//!
//! - *Serializable*: the table is what they make of it one after the other in the order of the log,
//!   and each reports the rows it changes there.
//! - *WriteSerializable*: the same holds for some order in which statements that are no blind
//!   appends stand as they do in the log, and a blind append stands at its own place or later. It is
//!   never earlier than in the log, and nothing else moves.
//!
//! A statement that changed nothing is not in the log. It reports no row, and that must be right for
//! the version it read.

use super::condition::Rows;
use super::statements::Work;

/// The level a history runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Serializable,
    WriteSerializable,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Serializable => "Serializable",
            Self::WriteSerializable => "WriteSerializable",
        }
    }
}

/// A commit: what it was and how many rows it said that it changed.
#[derive(Debug, Clone, Copy)]
pub struct Committed<'a> {
    pub work: &'a Work,
    pub count: u64,
}

/// An order of `log` that the level allows and that leads from `start` to `end` with the counts
/// that were reported; positions in `log`.
///
/// The last `unordered` commits raced each other, and which came first is not known.
pub fn serial_order(
    level: Level,
    start: &Rows,
    log: &[Committed<'_>],
    unordered: usize,
    end: &Rows,
) -> Option<Vec<usize>> {
    let end = sorted(end.clone());
    let known: Vec<usize> = (0..log.len() - unordered).collect();
    let raced: Vec<usize> = (log.len() - unordered..log.len()).collect();
    permutations(&raced).into_iter().find_map(|raced| {
        let logged: Vec<usize> = known.iter().copied().chain(raced).collect();
        search(level, start, log, &logged, &mut Vec::new(), &end)
    })
}

/// Continues `order`, which led to `table`, by what is left of the log.
fn search(
    level: Level,
    table: &Rows,
    log: &[Committed<'_>],
    left: &[usize],
    order: &mut Vec<usize>,
    end: &Rows,
) -> Option<Vec<usize>> {
    if left.is_empty() {
        return (sorted(table.clone()) == *end).then(|| order.clone());
    }
    for (place, &next) in left.iter().enumerate() {
        let may_be_passed = |before: &usize| {
            level == Level::WriteSerializable && log[*before].work.is_blind_append()
        };
        if !left[..place].iter().all(may_be_passed) {
            break;
        }
        // Where it would have been an error it does not stand.
        let Some((after, count)) = log[next].work.alone(table) else {
            continue;
        };
        if count != log[next].count {
            continue;
        }
        let mut rest = left.to_vec();
        rest.remove(place);
        order.push(next);
        if let Some(found) = search(level, &after, log, &rest, order, end) {
            return Some(found);
        }
        order.pop();
    }
    None
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    (0..of.len())
        .flat_map(|first| {
            let mut rest = of.to_vec();
            let first = rest.remove(first);
            permutations(&rest).into_iter().map(move |mut order| {
                order.insert(0, first);
                order
            })
        })
        .collect()
}

/// The same rows in the order that stands for the multiset.
pub fn sorted(mut rows: Rows) -> Rows {
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::super::condition::{Condition, Expr, Op};
    use super::super::statements::{Source, Statement};
    use super::*;

    fn row(a: i64) -> [Option<i64>; 3] {
        [Some(a), None, None]
    }

    fn insert(a: i64) -> Work {
        Work::Statement(Statement::Insert(Source::Values(vec![row(a)])))
    }

    fn add_ten() -> Work {
        Work::Statement(Statement::Update(vec![(0, Expr::Plus(0, 10))], None))
    }

    fn delete_above(a: i64) -> Work {
        let condition = Condition::Compare(0, Op::Greater, a);
        Work::Statement(Statement::Delete(Some(condition)))
    }

    #[test]
    fn judge_finds_the_orders_that_a_level_allows_and_no_other() {
        use Level::{Serializable, WriteSerializable};
        let (one, two) = (row(1), row(2));
        // The log with counts, the end, and whether each level allows it.
        type Case = (&'static str, Vec<(Work, u64)>, Rows, [bool; 2]);
        let cases: Vec<Case> = vec![
            (
                "as logged",
                vec![(insert(2), 1), (add_ten(), 2)],
                vec![row(11), row(12)],
                [true, true],
            ),
            (
                "append after",
                vec![(insert(2), 1), (add_ten(), 1)],
                vec![row(11), two],
                [false, true],
            ),
            (
                "append before",
                vec![(add_ten(), 1), (insert(2), 1)],
                vec![row(11), two],
                [true, true],
            ),
            (
                "append never earlier",
                vec![(add_ten(), 2), (insert(2), 1)],
                vec![row(11), row(12)],
                [false, false],
            ),
            (
                "wrong count",
                vec![(add_ten(), 2)],
                vec![row(11)],
                [false, false],
            ),
            (
                "lost update",
                vec![(add_ten(), 1), (add_ten(), 1)],
                vec![row(11)],
                [false, false],
            ),
            // One row moved past a DELETE that should have met it.
            (
                "skew",
                vec![(add_ten(), 1), (delete_above(5), 0)],
                vec![row(11)],
                [false, false],
            ),
            (
                "others stay in order",
                vec![(delete_above(5), 0), (add_ten(), 1)],
                vec![row(11)],
                [true, true],
            ),
            ("nothing", vec![], vec![one], [true, true]),
            (
                "doubled row",
                vec![(insert(2), 1)],
                vec![one, two, two],
                [false, false],
            ),
        ];
        for (name, log, end, expected) in cases {
            let log: Vec<Committed<'_>> = log
                .iter()
                .map(|(work, count)| Committed {
                    work,
                    count: *count,
                })
                .collect();
            for (level, expected) in [Serializable, WriteSerializable].into_iter().zip(expected) {
                let found = serial_order(level, &vec![one], &log, 0, &end);
                assert_eq!(found.is_some(), expected, "{name}, {level:?}");
            }
        }
    }

    #[test]
    fn commits_that_raced_are_tried_in_every_order() {
        let (first, second) = (delete_above(5), add_ten());
        let log = [
            Committed {
                work: &first,
                count: 0,
            },
            Committed {
                work: &second,
                count: 1,
            },
        ];
        let reversed = [log[1], log[0]];
        let end = vec![row(11)];
        let order = |log: &[Committed<'_>], unordered| {
            serial_order(Level::Serializable, &vec![row(1)], log, unordered, &end)
        };
        assert_eq!(order(&log, 0), Some(vec![0, 1]));
        assert_eq!(order(&reversed, 0), None);
        assert_eq!(order(&reversed, 2), Some(vec![1, 0]));
    }
}
