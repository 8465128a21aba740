//! Everything that can happen in a small world, against brute force over rows.
//!
//! Two enumerations, each complete within its bounds:
//!
//! - every file of up to three rows with values out of NULL, 0, 1, 2 and 3, against every condition
//!   of up to two leaves: what is skipped holds no row for which the condition is true, and what
//!   bounds and null counts rule out by one comparison at a time is skipped;
//! - every table of up to three files, against every chain of up to three winners of six kinds, for
//!   every statement of a few kinds that read the table before them: what the check lets through
//!   has a serial order that the level allows. What it turns away although it has one is counted by
//!   reason.
//!
//! What is kept or turned away without need is known by kind; a new kind fails the tests.

mod question;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::logical_expr::Operator;
use deltalake::kernel::{Add, Remove};

use self::question::Question;
use self::world::{
    APPENDED, Change, File, Files, Row, Value, action, difference, live, sorted, statistics,
};
use super::{Asked, Findings, find};
use crate::commit::fixtures::{add, snapshot};
use crate::commit::{Actions, CheckInput, IsolationLevel, NetEffect};
use crate::read::predicate::ReadPredicate;
use crate::read::prune::{PruneFile, Visible, prune};
use crate::read::read_set::{Read, ReadScope, ReadSet};
use crate::read::snapshot::TableSnapshot;
use crate::read::statistics::StatisticsSchema;

const VALUES: [Value; 5] = [None, Some(0), Some(1), Some(2), Some(3)];

/// Every multiset of up to `most` of `values`, the empty one first.
fn multisets(values: &[Value], most: usize) -> Vec<Vec<Value>> {
    let mut all = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..most {
        longest = longest
            .iter()
            .flat_map(|set| {
                let more = values
                    .iter()
                    .filter(|value| set.last().is_none_or(|last| last <= *value));
                more.map(|value| set.iter().copied().chain([*value]).collect())
            })
            .collect();
        all.extend(longest.clone());
    }
    all
}

#[test]
fn every_small_file_against_every_small_condition() {
    let contents = multisets(&VALUES, 3);
    let adds: Vec<Add> = contents
        .iter()
        .map(|values| action(add("f").stats(&statistics(values))))
        .collect();
    let files: Vec<PruneFile<'_>> = adds
        .iter()
        .map(|add| PruneFile {
            add,
            exact_writer: false,
        })
        .collect();
    let schema = StatisticsSchema::of(&snapshot(0, &[]));
    let (mut skipped, mut kept, mut contradictions) = (0, 0, 0);
    for question in Question::all() {
        let predicate = ReadPredicate::new(&[question.expr()], &schema);
        let decisions = prune(&predicate, &files, Visible::Statistics);
        for (values, decision) in contents.iter().zip(decisions) {
            let bounds = Range::of(values);
            if decision.is_skip() {
                assert!(
                    !values.iter().any(|value| question.is_true(*value)),
                    "{values:?} is skipped for {question:?}"
                );
                skipped += 1;
            } else {
                assert!(
                    !bounds.rules_out(&question),
                    "{values:?} is kept for {question:?}"
                );
                kept += 1;
                contradictions += usize::from(!bounds.may_match(&question));
            }
        }
    }
    println!("{skipped} skipped, {kept} kept, {contradictions} of them by contradictions");
    assert!(skipped > 10 * contradictions);
}

/// What bounds and null counts say of a file.
struct Range {
    values: Option<(i64, i64)>,
    has_null: bool,
}

impl Range {
    fn of(values: &[Value]) -> Self {
        let known = || values.iter().flatten().copied();
        Self {
            values: known().min().zip(known().max()),
            has_null: values.contains(&None),
        }
    }

    /// Whether a row within them may satisfy the condition.
    fn may_match(&self, question: &Question) -> bool {
        self.values
            .is_some_and(|(min, max)| (min..=max).any(|value| question.is_true(Some(value))))
            || (self.has_null && question.is_true(None))
    }

    /// Whether they rule the condition out one comparison at a time: one side of an AND, or both
    /// sides of an OR. Two sides that only together contradict each other are not looked for.
    fn rules_out(&self, question: &Question) -> bool {
        let not = |question: &Question| Question::Not(Box::new(question.clone()));
        match question {
            Question::And(left, right) => self.rules_out(left) || self.rules_out(right),
            Question::Or(left, right) => self.rules_out(left) && self.rules_out(right),
            Question::Not(inner) => match inner.as_ref() {
                Question::And(left, right) => {
                    self.rules_out(&not(left)) && self.rules_out(&not(right))
                }
                Question::Or(left, right) => {
                    self.rules_out(&not(left)) || self.rules_out(&not(right))
                }
                _ => !self.may_match(question),
            },
            _ => !self.may_match(question),
        }
    }
}

/// What we do; it read the table before every winner.
#[derive(Debug, Clone)]
enum Ours {
    Delete(Option<Question>),
    /// INSERT … SELECT of the rows.
    Copy(Option<Question>),
    Insert,
    Compact,
}

impl Ours {
    fn all(questions: &[Option<Question>]) -> Vec<Self> {
        let delete = questions.iter().cloned().map(Self::Delete);
        let copy = questions.iter().cloned().map(Self::Copy);
        delete
            .chain(copy)
            .chain([Self::Insert, Self::Compact])
            .collect()
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Delete(_) => "DELETE",
            Self::Copy(_) => "INSERT SELECT",
            Self::Insert => "INSERT",
            Self::Compact => "OPTIMIZE",
        }
    }

    fn question(&self) -> Option<&Option<Question>> {
        match self {
            Self::Delete(question) | Self::Copy(question) => Some(question),
            Self::Insert | Self::Compact => None,
        }
    }

    /// Whether it looks at this row.
    fn asks_for(&self, row: &Row) -> bool {
        match self.question() {
            Some(Some(question)) => question.is_true(row.1),
            Some(None) => true,
            None => false,
        }
    }

    fn alone(&self, rows: &[Row]) -> Vec<Row> {
        match self {
            Self::Delete(_) => rows
                .iter()
                .copied()
                .filter(|row| !self.asks_for(row))
                .collect(),
            Self::Copy(_) => {
                let copied = rows.iter().filter(|row| self.asks_for(row));
                let copied = copied.map(|(key, value)| (key + 10_000, *value));
                rows.iter().copied().chain(copied).collect()
            }
            Self::Insert => rows.iter().copied().chain([(5_000, Some(0))]).collect(),
            Self::Compact => rows.to_vec(),
        }
    }

    /// The files that it leaves of `files`.
    fn apply(&self, files: &Files) -> Files {
        let mut after = files.clone();
        let put = |rows: Vec<Row>, after: &mut Files| {
            if !rows.is_empty() {
                after.insert(format!("ours{}", rows[0].0), File::new(rows));
            }
        };
        match self {
            Self::Delete(_) => {
                for (path, file) in files {
                    let left = self.alone(&file.live);
                    if left.len() < file.live.len() {
                        after.remove(path);
                        put(left, &mut after);
                    }
                }
            }
            Self::Copy(_) | Self::Insert => {
                let rows = live(files);
                put(self.alone(&rows).split_off(rows.len()), &mut after);
            }
            Self::Compact => {
                after.clear();
                put(live(files), &mut after);
            }
        }
        after
    }

    fn reads(&self, snapshot: &TableSnapshot) -> ReadSet {
        let read = |scope, files| Read {
            scope,
            version: snapshot.version,
            files: Arc::new(files),
        };
        let paths = || snapshot.files.iter().map(|file| file.path.clone());
        match self.question() {
            Some(Some(question)) => {
                let schema = StatisticsSchema::of(snapshot);
                let predicate = ReadPredicate::new(&[question.expr()], &schema);
                let files: Vec<PruneFile<'_>> = snapshot
                    .files
                    .iter()
                    .map(|add| PruneFile {
                        add,
                        exact_writer: false,
                    })
                    .collect();
                let decisions = prune(&predicate, &files, Visible::Statistics);
                let kept = paths()
                    .zip(decisions)
                    .filter(|(_, decision)| !decision.is_skip())
                    .map(|(path, _)| path)
                    .collect();
                let scope = ReadScope::Matching(Arc::new(predicate));
                ReadSet::new(vec![read(scope, kept)])
            }
            Some(None) => ReadSet::new(vec![read(ReadScope::WholeTable, paths().collect())]),
            None => match self {
                Self::Insert => ReadSet::new(vec![read(ReadScope::Nothing, Default::default())]),
                _ => ReadSet::default(),
            },
        }
    }
}

/// One of our transactions over one table, ready to be checked.
struct Transaction {
    ours: Ours,
    reads: ReadSet,
    actions: Actions,
    gone: Files,
    come: Files,
}

impl Transaction {
    fn new(ours: &Ours, files: &Files, snapshot: &TableSnapshot) -> Option<Self> {
        let after = ours.apply(files);
        let owned = |(path, file): (&String, &Arc<File>)| (path.clone(), Arc::clone(file));
        let gone: Files = difference(files, &after).map(owned).collect();
        let come: Files = difference(&after, files).map(owned).collect();
        let data_change = !matches!(ours, Ours::Compact);
        let actions = Actions {
            adds: come
                .iter()
                .map(|(path, file)| Add::from(file.add(path).data_change(data_change)))
                .collect(),
            removes: gone
                .iter()
                .map(|(path, file)| Remove::from(file.remove(path).data_change(data_change)))
                .collect(),
            ..Actions::default()
        };
        (!actions.is_empty()).then(|| Self {
            reads: ours.reads(snapshot),
            ours: ours.clone(),
            actions,
            gone,
            come,
        })
    }

    /// The table if it is committed on top of `files`; `None` if a file it removes is not there as
    /// it was.
    fn on_top_of(&self, files: &Files) -> Option<Files> {
        let mut after = files.clone();
        for (path, file) in &self.gone {
            if after.remove(path).as_ref() != Some(file) {
                return None;
            }
        }
        after.extend(
            self.come
                .iter()
                .map(|(path, file)| (path.clone(), Arc::clone(file))),
        );
        Some(after)
    }
}

/// Why an abort is needless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The rows that we ask for are, in the end, what they were: they came and went, or changed and
    /// changed back, or lie with others in a file that changed.
    SameInTheEnd,
    /// A blind append could be ordered after us, but a later winner may have read it.
    SeenByOthers,
    Unexplained,
}

/// Needless aborts by level, what we do, and why; how often, and one example.
type Needless = BTreeMap<(&'static str, &'static str, Why), (u64, String)>;

/// A table, what happened to it, and what may still happen.
struct World {
    first: Files,
    snapshot: Arc<TableSnapshot>,
    transactions: Vec<Transaction>,
    changes: Vec<Change>,
    level: IsolationLevel,
    checks: u64,
    commits: u64,
    needless: Needless,
}

impl World {
    fn new(first: Files, changes: &[Change], ours: &[Ours], level: IsolationLevel) -> Self {
        let adds: Vec<_> = first.iter().map(|(path, file)| file.add(path)).collect();
        let mut snapshot = snapshot(0, &adds);
        snapshot
            .metadata
            .configuration
            .insert("delta.isolationLevel".to_owned(), level.as_str().to_owned());
        let transactions = ours
            .iter()
            .filter_map(|ours| Transaction::new(ours, &first, &snapshot))
            .collect();
        Self {
            first,
            snapshot: Arc::new(snapshot),
            transactions,
            changes: changes.to_vec(),
            level,
            checks: 0,
            commits: 0,
            needless: Needless::new(),
        }
    }

    /// Every chain of up to `most` more winners after `chain`, which led to `files`.
    fn explore(&mut self, chain: &mut Vec<Change>, files: &Files, net: &NetEffect, most: usize) {
        // Below Serializable only blind appends make a difference.
        let is_new = self.level == IsolationLevel::Serializable
            || chain
                .iter()
                .any(|change| matches!(change, Change::BlindAppend(_)));
        if is_new && !chain.is_empty() {
            self.judge(chain, files, net);
        }
        if most == 0 {
            return;
        }
        for change in self.changes.clone() {
            let version = chain.len() as u64 + 1;
            let Some((after, commit)) = change.apply(files, version, &self.first) else {
                continue;
            };
            let mut net = net.clone();
            net.apply(Arc::new(commit.0)).expect("contiguous");
            chain.push(change);
            self.explore(chain, &after, &net, most - 1);
            chain.pop();
        }
    }

    fn judge(&mut self, chain: &[Change], files: &Files, net: &NetEffect) {
        for transaction in &self.transactions {
            let input = CheckInput {
                reads: &transaction.reads,
                actions: &transaction.actions,
                net_effect: net,
                level: IsolationLevel::for_transaction(
                    &self.snapshot,
                    &transaction.reads,
                    &transaction.actions,
                ),
                data_skipping: true,
            };
            let found = find(&input, &Asked::of(&input), Findings::default());
            self.checks += 1;
            let end = transaction.on_top_of(files);
            let has_order = end.is_some_and(|end| {
                let end = sorted(live(&end));
                let start = live(&self.first);
                has_serial_order(self.level, &start, chain, &transaction.ours, &end)
            });
            match found.first() {
                None => {
                    self.commits += 1;
                    assert!(
                        has_order,
                        "{:?} of {:?} after {chain:?} at {:?} is no serial order",
                        transaction.ours, self.first, self.level
                    );
                }
                Some(conflict) if has_order => {
                    let below = self.level == IsolationLevel::WriteSerializable;
                    let is_blind = |winner: u64| {
                        let change = chain.get(winner as usize - 1);
                        below && matches!(change, Some(Change::BlindAppend(_)))
                    };
                    // What was appended blindly may be ordered after us.
                    let asked = |files: &Files| {
                        let mut rows = sorted(live(files));
                        rows.retain(|row| {
                            let appended_by = row.0.checked_sub(APPENDED);
                            transaction.ours.asks_for(row) && !appended_by.is_some_and(is_blind)
                        });
                        rows
                    };
                    let why = if is_blind(conflict.winner.version) {
                        Why::SeenByOthers
                    } else if asked(files) == asked(&self.first) {
                        Why::SameInTheEnd
                    } else {
                        Why::Unexplained
                    };
                    let kind = (self.level.as_str(), transaction.ours.name(), why);
                    let example = || {
                        let table = live(&self.first);
                        format!("{:?} of {table:?} after {chain:?}", transaction.ours)
                    };
                    self.needless
                        .entry(kind)
                        .or_insert_with(|| (0, example()))
                        .0 += 1;
                }
                Some(_) => {}
            }
        }
    }
}

/// Whether an order that the level allows leads from `start` to `end`: the winners as in the log
/// and then we; below Serializable a blind append may come later than in the log.
fn has_serial_order(
    level: IsolationLevel,
    start: &[Row],
    chain: &[Change],
    ours: &Ours,
    end: &[Row],
) -> bool {
    let steps: Vec<usize> = (0..=chain.len()).collect();
    search(level, start, start, chain, ours, &steps, end)
}

fn search(
    level: IsolationLevel,
    start: &[Row],
    rows: &[Row],
    chain: &[Change],
    ours: &Ours,
    left: &[usize],
    end: &[Row],
) -> bool {
    if left.is_empty() {
        return sorted(rows.to_vec()) == end;
    }
    for (place, &step) in left.iter().enumerate() {
        let may_wait = |step: &usize| {
            level != IsolationLevel::Serializable
                && matches!(chain.get(*step), Some(Change::BlindAppend(_)))
        };
        if !left[..place].iter().all(may_wait) {
            return false;
        }
        let after = match chain.get(step) {
            Some(change) => change.alone(rows, step as u64 + 1, start),
            None => ours.alone(rows),
        };
        let mut rest = left.to_vec();
        rest.remove(place);
        if search(level, start, &after, chain, ours, &rest, end) {
            return true;
        }
    }
    false
}

/// Bounds of an enumeration: tables of up to so many rows with one of `values` each, in a file each
/// or all in one, chains of up to so many winners with `values`, and our statements with `questions`.
struct Bounds {
    values: Vec<Value>,
    rows: usize,
    one_file: bool,
    winners: usize,
    questions: Vec<Option<Question>>,
}

impl Bounds {
    fn files(&self, values: &[Value]) -> Files {
        let rows = (0..).zip(values.iter().copied());
        let file = |(path, rows): (usize, Vec<Row>)| (format!("f{path}"), File::new(rows));
        if self.one_file && !values.is_empty() {
            Files::from([file((0, rows.collect()))])
        } else {
            rows.map(|row| vec![row]).enumerate().map(file).collect()
        }
    }
}

/// Explores everything within `bounds`.
fn explore(bounds: &Bounds) -> (u64, u64, Needless) {
    let changes = Change::all(&bounds.values);
    let ours = Ours::all(&bounds.questions);
    let (mut checks, mut commits, mut needless) = (0, 0, Needless::new());
    for table in multisets(&bounds.values, bounds.rows) {
        for level in [
            IsolationLevel::Serializable,
            IsolationLevel::WriteSerializable,
        ] {
            let mut world = World::new(bounds.files(&table), &changes, &ours, level);
            let (files, net) = (
                world.first.clone(),
                NetEffect::new(Arc::clone(&world.snapshot)),
            );
            world.explore(&mut Vec::new(), &files, &net, bounds.winners);
            checks += world.checks;
            commits += world.commits;
            add_all(&mut needless, world.needless);
        }
    }
    (checks, commits, needless)
}

fn add_all(total: &mut Needless, more: Needless) {
    for (kind, (count, example)) in more {
        total.entry(kind).or_insert((0, example)).0 += count;
    }
}

#[test]
fn every_short_chain_of_winners() {
    let low = Some(Question::Compare(Operator::Lt, 2));
    let some = [None, Some(0), Some(3)];
    let bounds = [
        // Long chains over one value that our statements ask for and one that they do not.
        Bounds {
            values: vec![Some(0), Some(3)],
            rows: 3,
            one_file: false,
            winners: 3,
            questions: vec![None, low.clone()],
        },
        Bounds {
            values: some.to_vec(),
            rows: 2,
            one_file: false,
            winners: 2,
            questions: vec![None, low.clone(), Some(Question::IsNull)],
        },
        // Rows that our statements ask for and others in one file.
        Bounds {
            values: some.to_vec(),
            rows: 3,
            one_file: true,
            winners: 2,
            questions: vec![low.clone(), Some(Question::IsNull)],
        },
        // One winner, with all values and several questions.
        Bounds {
            values: VALUES.to_vec(),
            rows: 3,
            one_file: false,
            winners: 1,
            questions: vec![
                None,
                low.clone(),
                Some(Question::IsNull),
                Some(Question::Not(Box::new(Question::Compare(Operator::Eq, 1)))),
            ],
        },
    ];
    let (mut checks, mut commits, mut needless) = (0, 0, Needless::new());
    std::thread::scope(|scope| {
        let running: Vec<_> = bounds
            .iter()
            .map(|bounds| scope.spawn(|| explore(bounds)))
            .collect();
        for explored in running {
            let (more_checks, more_commits, more) = explored.join().unwrap();
            checks += more_checks;
            commits += more_commits;
            add_all(&mut needless, more);
        }
    });
    let total: u64 = needless.values().map(|(count, _)| count).sum();
    println!("{checks} checks, {commits} commits, {total} needless aborts: {needless:#?}");
    assert!(
        needless.keys().all(|(_, _, why)| *why != Why::Unexplained),
        "{needless:#?}"
    );
    assert!(total * 50 < checks, "{total} of {checks}");
}
