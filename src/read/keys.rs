//! The keys that the other side of a join holds, and the read that they narrow.
//!
//! A MERGE asks the table only for rows whose key is one of the source's. Those keys are known once
//! the source has been read to its end, which is after the table's scan was planned. So the scan
//! records what can be said without them, and hands that record and its list of files to
//! [`SourceKeys`], which narrows both when the keys come. Until then, or if they never come, the
//! wider record stands.

mod buffer;
mod first;
mod gather;

pub(crate) use self::buffer::SourceBufferExec;
pub(crate) use self::first::KeysFirstExec;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, Expr};
use deltalake::kernel::Add;

use super::collector::{ReadCollector, ReadTicket};
use super::predicate::{ReadPredicate, unqualified_text_of};
use super::prune::{PruneFile, Visible, kept};
use super::read_set::{Read, ReadScope};
use super::snapshot::TableSnapshot;
use super::statistics::StatisticsSchema;

/// What a scan of the table compares its rows with.
#[derive(Debug, Clone)]
pub(crate) struct KeyedRead {
    /// Names the join, so that its two sides find each other when a plan is pinned.
    pub(crate) join: uuid::Uuid,
    /// The table's side of each equality, in the order of the source's key columns.
    pub(crate) keys: Vec<Expr>,
    /// Rows that count without a partner (NOT MATCHED BY SOURCE).
    pub(crate) alone: Option<Expr>,
    /// Where the keys come; nothing in a plan that is not pinned.
    pub(crate) state: Option<Arc<SourceKeys>>,
}

/// The values of one key column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum KeyValues {
    /// Exactly these, in order, without NULL, which equals nothing.
    Set(Vec<ScalarValue>),
    /// All that are not NULL lie between the two.
    Range(ScalarValue, ScalarValue),
}

impl KeyValues {
    /// What must hold of `column` for it to equal one of the values.
    fn condition(&self, column: &Expr) -> Expr {
        let literal = |value: &ScalarValue| Expr::Literal(value.clone(), None);
        match self {
            Self::Set(values) => match values.as_slice() {
                [] => literal(&ScalarValue::Boolean(Some(false))),
                [value] => column.clone().eq(literal(value)),
                several => Expr::InList(InList::new(
                    Box::new(column.clone()),
                    several.iter().map(literal).collect(),
                    false,
                )),
            },
            Self::Range(least, most) => Expr::Between(Between::new(
                Box::new(column.clone()),
                false,
                Box::new(literal(least)),
                Box::new(literal(most)),
            )),
        }
    }
}

/// The keys of one join of one running statement, and the scans that wait for them.
#[derive(Debug, Default)]
pub(crate) struct SourceKeys {
    scans: Mutex<Vec<Arc<KeyedScan>>>,
}

impl SourceKeys {
    pub(crate) fn await_keys(&self, scan: Arc<KeyedScan>) {
        self.scans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(scan);
    }

    /// The source was read once, to its end, and `keys` is what it held, by key column.
    fn complete(&self, keys: &[KeyValues]) {
        let scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        for scan in scans.iter() {
            scan.narrow(keys);
        }
    }
}

/// A scan whose read and files are narrowed when the keys come.
pub(crate) struct KeyedScan {
    pub(crate) location: String,
    pub(crate) snapshot: Arc<TableSnapshot>,
    pub(crate) collector: Arc<ReadCollector>,
    /// The record that is narrowed.
    pub(crate) ticket: ReadTicket,
    /// What was asked besides the keys.
    pub(crate) filters: Vec<Expr>,
    /// The table's side of the keys.
    pub(crate) keys: Vec<Expr>,
    /// Rows that count without a partner.
    pub(crate) alone: Option<Expr>,
    /// Indices of the files that are left without the keys.
    pub(crate) files: Vec<usize>,
    /// Indices of the files that are left, once the keys are known.
    left: OnceLock<HashSet<u32>>,
}

/// How the keys narrow the read, for plans that are shown.
impl fmt::Display for KeyedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(unqualified_text_of).collect();
        write!(f, " narrowed by keys of {}", keys.join(", "))
    }
}

impl fmt::Debug for KeyedScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedScan")
            .field("location", &self.location)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// What a [`KeyedScan`] is made of.
pub(crate) struct Asked<'a> {
    pub(crate) location: &'a str,
    pub(crate) snapshot: &'a Arc<TableSnapshot>,
    pub(crate) collector: &'a Arc<ReadCollector>,
    pub(crate) ticket: ReadTicket,
    pub(crate) filters: &'a [Expr],
    pub(crate) files: &'a [usize],
}

impl KeyedScan {
    pub(crate) fn new(keyed: &KeyedRead, asked: &Asked<'_>) -> Self {
        Self {
            location: asked.location.to_owned(),
            snapshot: Arc::clone(asked.snapshot),
            collector: Arc::clone(asked.collector),
            ticket: asked.ticket,
            filters: asked.filters.to_vec(),
            keys: keyed.keys.clone(),
            alone: keyed.alone.clone(),
            files: asked.files.to_vec(),
            left: OnceLock::new(),
        }
    }

    /// Indices of the files that are left, once the keys are known.
    pub(crate) fn files_left(&self) -> Option<&HashSet<u32>> {
        self.left.get()
    }

    fn narrow(&self, keys: &[KeyValues]) {
        if keys.len() != self.keys.len() {
            return;
        }
        let mut filters = self.filters.clone();
        let matches = self
            .keys
            .iter()
            .zip(keys)
            .map(|(column, values)| values.condition(column));
        match &self.alone {
            None => filters.extend(matches),
            Some(alone) => filters.extend(
                matches
                    .reduce(Expr::and)
                    .map(|matches| matches.or(alone.clone())),
            ),
        }
        let predicate = ReadPredicate::new(&filters, &StatisticsSchema::of(&self.snapshot));
        let files: Vec<(usize, &Arc<Add>)> = self
            .files
            .iter()
            .filter_map(|index| Some((*index, self.snapshot.files.get(*index)?)))
            .collect();
        let candidates: Vec<_> = files
            .iter()
            .map(|(_, add)| PruneFile {
                add,
                exact_writer: false,
            })
            .collect();
        let kept: Vec<(usize, &Arc<Add>)> = kept(&predicate, &candidates, Visible::Statistics)
            .into_iter()
            .filter_map(|position| files.get(position).copied())
            .collect();
        let Ok(left) = kept
            .iter()
            .map(|(index, _)| u32::try_from(*index))
            .collect::<Result<HashSet<u32>, _>>()
        else {
            // So many files are refused where they are opened; the wider record stands.
            return;
        };
        self.collector.replace(
            self.ticket,
            Read {
                scope: ReadScope::Matching(Arc::new(predicate)),
                version: self.snapshot.version,
                files: Arc::new(kept.iter().map(|(_, add)| add.path.clone()).collect()),
            },
        );
        // A second set of keys would be another statement's.
        let _ = self.left.set(left);
    }
}

#[cfg(test)]
mod tests;
