//! A table of files in memory: what lies in them, what their log entries say, and every change that
//! another writer makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use deltalake::kernel::Add;

use crate::commit::fixtures::{AddBuilder, RemoveBuilder, WinnerBuilder, add, remove, winner};

/// A number or NULL in the column `id`.
pub(super) type Value = Option<i64>;

/// Key of an appended row, less the winner's version.
pub(super) const APPENDED: u64 = 1_000;

/// A key that tells rows apart, and the value.
pub(super) type Row = (u64, Value);

/// Live files by path.
pub(super) type Files = BTreeMap<String, Arc<File>>;

#[derive(Debug, PartialEq)]
pub(super) struct File {
    /// What lies in it; its statistics speak of these rows.
    pub(super) physical: Vec<Row>,
    /// What its deletion vector leaves of them.
    pub(super) live: Vec<Row>,
    /// The deletion vector's id.
    vector: Option<String>,
}

impl File {
    pub(super) fn new(rows: Vec<Row>) -> Arc<Self> {
        Arc::new(Self {
            physical: rows.clone(),
            live: rows,
            vector: None,
        })
    }

    pub(super) fn add(&self, path: &str) -> AddBuilder {
        let values: Vec<Value> = self.physical.iter().map(|row| row.1).collect();
        let add = add(path).stats(&statistics(&values));
        match &self.vector {
            Some(id) => add.dv(id, self.deleted()),
            None => add,
        }
    }

    pub(super) fn remove(&self, path: &str) -> RemoveBuilder {
        match &self.vector {
            Some(id) => remove(path).dv(id, self.deleted()),
            None => remove(path),
        }
    }

    fn deleted(&self) -> i64 {
        (self.physical.len() - self.live.len()) as i64
    }
}

/// The exact statistics of a file with these values.
pub(super) fn statistics(values: &[Value]) -> String {
    let known = || values.iter().flatten();
    let bound =
        |value: Option<&i64>| value.map_or("{}".to_owned(), |value| format!(r#"{{"id":{value}}}"#));
    format!(
        r#"{{"numRecords":{},"minValues":{},"maxValues":{},"nullCount":{{"id":{}}}}}"#,
        values.len(),
        bound(known().min()),
        bound(known().max()),
        values.len() - known().count()
    )
}

pub(super) fn live(files: &Files) -> Vec<Row> {
    files
        .values()
        .flat_map(|file| file.live.iter().copied())
        .collect()
}

pub(super) fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable();
    rows
}

/// What another writer commits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// A new row that depends on what was read, as far as anybody can tell.
    Append(Value),
    BlindAppend(Value),
    /// Gives the rows with the first value the second one, by rewriting their files.
    Rewrite(Value, Value),
    /// All files become one; no row changes.
    Compaction,
    /// Deletes the rows with this value by deletion vectors.
    Mark(Value),
    /// Puts the files of the first version back.
    Restore,
}

impl Change {
    /// Every change with values out of `values`.
    pub(super) fn all(values: &[Value]) -> Vec<Self> {
        let mut all = vec![Self::Compaction, Self::Restore];
        for &value in values {
            all.extend([
                Self::Append(value),
                Self::BlindAppend(value),
                Self::Mark(value),
            ]);
            let others = values.iter().filter(|other| **other != value);
            all.extend(others.map(|other| Self::Rewrite(value, *other)));
        }
        all
    }

    /// The rows after it ran alone on `rows` as the winner with this version; the table was `first`
    /// once.
    pub(super) fn alone(self, rows: &[Row], version: u64, first: &[Row]) -> Vec<Row> {
        match self {
            Self::Append(value) | Self::BlindAppend(value) => {
                let new = (APPENDED + version, value);
                rows.iter().copied().chain([new]).collect()
            }
            Self::Rewrite(from, to) => rows
                .iter()
                .map(|(key, value)| (*key, if *value == from { to } else { *value }))
                .collect(),
            Self::Mark(value) => rows.iter().copied().filter(|row| row.1 != value).collect(),
            Self::Compaction => rows.to_vec(),
            Self::Restore => first.to_vec(),
        }
    }

    /// The files after it and its commit; `None` if there is nothing for it to do.
    pub(super) fn apply(
        self,
        files: &Files,
        version: u64,
        first: &Files,
    ) -> Option<(Files, WinnerBuilder)> {
        let mut after = files.clone();
        match self {
            Self::Append(_) | Self::BlindAppend(_) => {
                after.insert(
                    format!("w{version}"),
                    File::new(self.alone(&[], version, &[])),
                );
            }
            Self::Rewrite(from, _) => {
                let mut rows = Vec::new();
                for (path, file) in files {
                    if file.live.iter().any(|row| row.1 == from) {
                        after.remove(path);
                        rows.extend(self.alone(&file.live, version, &[]));
                    }
                }
                if !rows.is_empty() {
                    after.insert(format!("w{version}"), File::new(rows));
                }
            }
            Self::Compaction => {
                after.clear();
                let rows = live(files);
                if !rows.is_empty() {
                    after.insert(format!("w{version}"), File::new(rows));
                }
            }
            Self::Mark(value) => {
                for (path, file) in files {
                    let left: Vec<Row> = file
                        .live
                        .iter()
                        .copied()
                        .filter(|row| row.1 != value)
                        .collect();
                    if left.is_empty() {
                        after.remove(path);
                    } else if left.len() < file.live.len() {
                        let marked = File {
                            physical: file.physical.clone(),
                            live: left,
                            vector: Some(format!("v{version}")),
                        };
                        after.insert(path.clone(), Arc::new(marked));
                    }
                }
            }
            Self::Restore => after = first.clone(),
        }
        let data_change = self != Self::Compaction;
        let adds: Vec<AddBuilder> = difference(&after, files)
            .map(|(path, file)| file.add(path).data_change(data_change))
            .collect();
        let removes: Vec<RemoveBuilder> = difference(files, &after)
            .map(|(path, file)| file.remove(path).data_change(data_change))
            .collect();
        if adds.is_empty() && removes.is_empty() {
            return None;
        }
        let commit = winner(version, &adds, &removes);
        Some((
            after,
            match self {
                Self::BlindAppend(_) => commit.blind(),
                _ => commit,
            },
        ))
    }
}

/// The files that are in the first and not, the same, in the second.
pub(super) fn difference<'a>(
    of: &'a Files,
    without: &'a Files,
) -> impl Iterator<Item = (&'a String, &'a Arc<File>)> {
    of.iter()
        .filter(|(path, file)| without.get(*path) != Some(*file))
}

pub(super) fn action(builder: AddBuilder) -> Add {
    builder.into()
}
