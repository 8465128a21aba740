//! The point of it all, on random histories: whatever the check lets through, the table ends up as
//! if the transactions had run one after the other; under Serializable in the order of the log,
//! under WriteSerializable in some order.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::prelude::{col, lit};
use deltalake::kernel::{Add, Remove};
use proptest::prelude::*;

use super::{Asked, Findings, find};
use crate::commit::fixtures::{AddBuilder, RemoveBuilder, add, remove, snapshot};
use crate::commit::isolation::is_blind_append;
use crate::commit::{Actions, CheckInput, CommitInfo, IsolationLevel, NetEffect, WinningCommit};
use crate::read::predicate::ReadPredicate;
use crate::read::read_set::{Read, ReadScope, ReadSet};
use crate::read::snapshot::TableSnapshot;
use crate::read::statistics::StatisticsSchema;

/// A key that tells rows apart, and the value in the column `id`, by which they are chosen.
type Row = (u64, i64);

type Files = BTreeMap<String, File>;

#[derive(Debug, Clone)]
struct File {
    /// What lies in it; its statistics speak of these rows.
    physical: Vec<Row>,
    /// What its deletion vector leaves of them.
    live: Vec<Row>,
    /// The deletion vector's id.
    vector: Option<String>,
}

impl File {
    fn new(rows: Vec<Row>) -> Self {
        Self {
            physical: rows.clone(),
            live: rows,
            vector: None,
        }
    }

    fn deleted(&self) -> i64 {
        (self.physical.len() - self.live.len()) as i64
    }

    fn add(&self, path: &str) -> AddBuilder {
        let add = with_rows(add(path), &self.physical);
        match &self.vector {
            Some(id) => add.dv(id, self.deleted()),
            None => add,
        }
    }

    fn remove(&self, path: &str) -> RemoveBuilder {
        match &self.vector {
            Some(id) => remove(path).dv(id, self.deleted()),
            None => remove(path),
        }
    }
}

fn live(files: &Files) -> Vec<Row> {
    files
        .values()
        .flat_map(|file| file.live.iter().copied())
        .collect()
}

#[derive(Debug, Clone)]
enum Statement {
    Append(Vec<i64>),
    Delete(Range<i64>),
    /// Deletes by deletion vectors, as other engines do.
    Mark(Range<i64>),
    /// Adds to the values in a range.
    Update(Range<i64>, i64),
    /// Appends copies of the rows in a range, with something added to their values.
    Copy(Range<i64>, i64),
    /// Deletes the rows in the first range if there is one in the second.
    DeleteIf(Range<i64>, Range<i64>),
    /// Writes the files whose bit is set anew as one.
    Compact(u8),
}

impl Statement {
    /// The rows after the statement ran alone, as the transaction with this number.
    fn alone(&self, rows: &[Row], number: u64) -> Vec<Row> {
        match self {
            Self::Append(values) => {
                let new = values
                    .iter()
                    .zip(0..)
                    .map(|(x, i)| (new_key(number, i), *x));
                rows.iter().copied().chain(new).collect()
            }
            Self::Delete(range) | Self::Mark(range) => rows
                .iter()
                .copied()
                .filter(|r| !range.contains(&r.1))
                .collect(),
            Self::Update(range, shift) => rows
                .iter()
                .map(|row| shifted(*row, range, *shift))
                .collect(),
            Self::Copy(range, shift) => {
                let new = rows.iter().filter(|row| range.contains(&row.1));
                let new = new.map(|row| (copied_key(row.0, number), row.1 + shift));
                rows.iter().copied().chain(new).collect()
            }
            Self::DeleteIf(range, condition) => {
                if rows.iter().any(|row| condition.contains(&row.1)) {
                    Self::Delete(range.clone()).alone(rows, number)
                } else {
                    rows.to_vec()
                }
            }
            Self::Compact(_) => rows.to_vec(),
        }
    }

    /// What it asks.
    fn ranges(&self) -> Vec<Range<i64>> {
        match self {
            Self::Append(_) | Self::Compact(_) => vec![],
            Self::Delete(range)
            | Self::Mark(range)
            | Self::Update(range, _)
            | Self::Copy(range, _) => vec![range.clone()],
            Self::DeleteIf(range, condition) => vec![range.clone(), condition.clone()],
        }
    }
}

fn new_key(number: u64, row: u64) -> u64 {
    1_000 + number * 10 + row
}

fn copied_key(key: u64, number: u64) -> u64 {
    (key + 1) * 10_000 + number
}

fn shifted((key, x): Row, range: &Range<i64>, shift: i64) -> Row {
    (key, if range.contains(&x) { x + shift } else { x })
}

fn with_rows(file: AddBuilder, rows: &[Row]) -> AddBuilder {
    let values = || rows.iter().map(|row| row.1);
    let bound = |value: Option<i64>| value.unwrap_or_default();
    file.stats(&format!(
        r#"{{"numRecords":{},"minValues":{{"id":{}}},"maxValues":{{"id":{}}},"nullCount":{{"id":0}}}}"#,
        rows.len(),
        bound(values().min()),
        bound(values().max())
    ))
}

/// The table, with all its versions.
struct Table {
    level: IsolationLevel,
    versions: Vec<Files>,
    commits: Vec<Arc<WinningCommit>>,
}

impl Table {
    fn snapshot(&self, version: usize) -> TableSnapshot {
        let files: Vec<AddBuilder> = self.versions[version]
            .iter()
            .map(|(path, file)| file.add(path))
            .collect();
        let mut snapshot = snapshot(version as u64, &files);
        snapshot.metadata.configuration.insert(
            "delta.isolationLevel".to_owned(),
            self.level.as_str().to_owned(),
        );
        snapshot
    }

    fn reads(&self, statement: &Statement, snapshot: &TableSnapshot) -> ReadSet {
        let files = &self.versions[snapshot.version as usize];
        let read = |scope, files| Read {
            scope,
            version: snapshot.version,
            files: Arc::new(files),
        };
        match statement {
            Statement::Append(_) => {
                return ReadSet::new(vec![read(ReadScope::Nothing, HashSet::new())]);
            }
            Statement::Compact(_) => return ReadSet::default(),
            _ => {}
        }
        let reads = statement.ranges().into_iter().map(|range| {
            let filters = [
                col("id").gt_eq(lit(range.start)),
                col("id").lt(lit(range.end)),
            ];
            let predicate = ReadPredicate::new(&filters, &StatisticsSchema::of(snapshot));
            let kept = files.iter().filter(|(_, file)| {
                let values = || file.physical.iter().map(|row| row.1);
                values().max() >= Some(range.start) && values().min() < Some(range.end)
            });
            let kept = kept.map(|(path, _)| path.clone()).collect();
            read(ReadScope::Matching(Arc::new(predicate)), kept)
        });
        ReadSet::new(reads.collect())
    }

    /// The files that go, and those that come.
    fn change(&self, statement: &Statement, version: usize, number: u64) -> (Vec<String>, Files) {
        let files = &self.versions[version];
        let mut gone = Vec::new();
        let mut come = Files::new();
        let mut put = |rows: Vec<Row>| {
            if !rows.is_empty() {
                come.insert(format!("f{number}-{}", come.len()), File::new(rows));
            }
        };
        match statement {
            Statement::Append(_) => put(statement.alone(&[], number)),
            Statement::Copy(..) => {
                let all = live(files);
                put(statement.alone(&all, number).split_off(all.len()));
            }
            Statement::Compact(mask) => {
                let chosen = files
                    .iter()
                    .zip(0..8)
                    .filter(|(_, bit)| mask & (1 << bit) != 0);
                let chosen: Vec<_> = chosen.map(|(file, _)| file).collect();
                gone.extend(chosen.iter().map(|(path, _)| (*path).clone()));
                put(chosen
                    .iter()
                    .flat_map(|(_, file)| file.live.iter().copied())
                    .collect());
            }
            Statement::DeleteIf(_, condition)
                if !live(files).iter().any(|row| condition.contains(&row.1)) => {}
            Statement::Mark(range) => {
                for (path, file) in files {
                    let (hit, rest): (Vec<Row>, Vec<Row>) =
                        file.live.iter().partition(|row| range.contains(&row.1));
                    if !hit.is_empty() {
                        gone.push(path.clone());
                        if !rest.is_empty() {
                            let marked = File {
                                physical: file.physical.clone(),
                                live: rest,
                                vector: Some(format!("v{number}")),
                            };
                            come.insert(path.clone(), marked);
                        }
                    }
                }
            }
            Statement::Delete(range)
            | Statement::Update(range, _)
            | Statement::DeleteIf(range, _) => {
                for (path, file) in files {
                    let (hit, rest): (Vec<Row>, Vec<Row>) =
                        file.live.iter().partition(|row| range.contains(&row.1));
                    if !hit.is_empty() {
                        gone.push(path.clone());
                        put(rest);
                        if let Statement::Update(_, shift) = statement {
                            put(hit.iter().map(|row| shifted(*row, range, *shift)).collect());
                        }
                    }
                }
            }
        }
        (gone, come)
    }

    /// Runs a statement that read `version`; whether it is in the log now.
    fn run(&mut self, statement: &Statement, version: usize, number: u64) -> bool {
        let snapshot = Arc::new(self.snapshot(version));
        let reads = self.reads(statement, &snapshot);
        let (gone, come) = self.change(statement, version, number);
        let before = &self.versions[version];
        let data_change = !matches!(statement, Statement::Compact(_));
        let actions = Actions {
            adds: come
                .iter()
                .map(|(path, file)| Add::from(file.add(path).data_change(data_change)))
                .collect(),
            removes: gone
                .iter()
                .map(|path| Remove::from(before[path].remove(path).data_change(data_change)))
                .collect(),
            ..Actions::default()
        };
        if actions.is_empty() {
            return false;
        }
        let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
        for winner in &self.commits[version..] {
            net_effect.apply(Arc::clone(winner)).expect("contiguous");
        }
        let input = CheckInput {
            reads: &reads,
            actions: &actions,
            net_effect: &net_effect,
            level: IsolationLevel::for_transaction(&snapshot, &reads, &actions),
            data_skipping: true,
        };
        if find(&input, &Asked::of(&input), Findings::default()).is_conflict() {
            return false;
        }
        let mut files = self.versions.last().expect("a version").clone();
        for path in &gone {
            let removed = files.remove(path);
            assert_eq!(
                removed.map(|file| file.vector),
                Some(before[path].vector.clone()),
                "{path} is not what it was: {statement:?}"
            );
        }
        files.extend(come);
        self.commits.push(Arc::new(WinningCommit {
            version: self.versions.len() as u64,
            info: CommitInfo {
                operation: Some("TEST".to_owned()),
                is_blind_append: Some(is_blind_append(&reads, &actions)),
                read_version: Some(version as u64),
                ..CommitInfo::default()
            },
            actions,
        }));
        self.versions.push(files);
        true
    }

    fn rows(&self) -> Vec<Row> {
        sorted(live(self.versions.last().expect("a version")))
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable();
    rows
}

/// Whether some order of `left` leads from `rows` to `goal`.
fn some_order(rows: &[Row], left: &[(u64, &Statement)], goal: &[Row]) -> bool {
    if left.is_empty() {
        return sorted(rows.to_vec()) == goal;
    }
    (0..left.len()).any(|next| {
        let (number, statement) = left[next];
        let mut rest = left.to_vec();
        rest.remove(next);
        some_order(&statement.alone(rows, number), &rest, goal)
    })
}

// A small domain, so that ranges meet: three writers have to, before a cycle can close.
fn range() -> impl Strategy<Value = Range<i64>> {
    (0..5_i64, 1..5_i64).prop_map(|(start, length)| start..start + length)
}

fn shift() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![-10, -2, 2, 10])
}

fn values(most: usize) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..6_i64, 1..=most)
}

fn statement() -> impl Strategy<Value = Statement> {
    prop_oneof![
        3 => values(2).prop_map(Statement::Append),
        2 => range().prop_map(Statement::Delete),
        2 => range().prop_map(Statement::Mark),
        3 => (range(), shift()).prop_map(|(range, shift)| Statement::Update(range, shift)),
        3 => (range(), shift()).prop_map(|(range, shift)| Statement::Copy(range, shift)),
        2 => (range(), range()).prop_map(|(range, other)| Statement::DeleteIf(range, other)),
        3 => (1..=u8::MAX).prop_map(Statement::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn what_commits_has_a_serial_order(
        files in prop::collection::vec(values(2), 1..4),
        // Each with the number of versions that it is behind.
        statements in prop::collection::vec((statement(), 0..4_usize), 2..6),
        serializable in any::<bool>(),
    ) {
        let mut keys = 0..;
        let first: Files = files
            .iter()
            .zip(0..)
            .map(|(values, file): (_, u32)| {
                let rows = values.iter().zip(&mut keys).map(|(x, key)| (key, *x)).collect();
                (format!("a{file}"), File::new(rows))
            })
            .collect();
        let before = live(&first);
        let level = if serializable {
            IsolationLevel::Serializable
        } else {
            IsolationLevel::WriteSerializable
        };
        let mut table = Table { level, versions: vec![first], commits: Vec::new() };
        let mut committed = Vec::new();
        for ((statement, behind), number) in statements.iter().zip(0..) {
            let version = (table.versions.len() - 1).saturating_sub(*behind);
            if table.run(statement, version, number) {
                committed.push((number, statement));
            }
        }
        let in_log_order = committed
            .iter()
            .fold(before.clone(), |rows, (number, statement)| statement.alone(&rows, *number));
        if serializable {
            prop_assert_eq!(sorted(in_log_order), table.rows(), "{:?}", table.commits);
        } else {
            prop_assert!(
                sorted(in_log_order) == table.rows()
                    || some_order(&before, &committed, &table.rows()),
                "{committed:?}\n{:?}",
                table.versions
            );
        }
    }
}
