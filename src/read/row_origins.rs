//! Where the rows of a written file come from.
//!
//! The change data feed of a transaction says what became of each row in the end. Rows are the same
//! row by where they come from, not by their values: a writer that is asked to notes for each row of
//! a new file, in the order of the file, the file and position that it was copied or changed from.
//! Notes of several statements are put together until they refer to the table as the transaction
//! found it.
//!
//! Rows that follow each other in both files are one run, so that memory goes by runs: copies of a
//! file have at most two for each row that was left out of it, changed rows at most one each.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// Where a row comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The file, by its index in a snapshot's list of files.
    pub file: u32,
    /// The position in that file.
    pub row: u64,
    /// Whether the row was given values since.
    pub changed: bool,
}

/// Rows of one file that follow each other there and where they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many rows.
    pub length: u64,
    /// Where the first one comes from; none for new rows.
    pub from: Option<Origin>,
}

/// Where the rows of one file come from, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOrigins {
    runs: Runs,
    rows: u64,
}

/// A file that rows come from, as the next older notes know it.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A file of the table as the transaction found it, by its index.
    Base(u32),
    /// A file that the transaction wrote.
    Written(&'a RowOrigins),
}

impl RowOrigins {
    /// Adds a row at the end.
    pub fn push(&mut self, from: Option<Origin>) {
        self.push_run(Run { length: 1, from });
    }

    /// Adds `rows` new rows at the end.
    pub fn push_new(&mut self, rows: u64) {
        self.push_run(Run {
            length: rows,
            from: None,
        });
    }

    /// How many rows the file has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The same with what the sources' own rows come from; `source` knows the files.
    ///
    /// # Errors
    ///
    /// `Internal` if a source has not the rows that were taken from it.
    pub fn resolved<'a>(&self, source: impl Fn(u32) -> Result<Source<'a>>) -> Result<Self> {
        let mut starts: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut resolved = Self::default();
        for run in self.runs.iter() {
            let Some(from) = run.from else {
                resolved.push_run(*run);
                continue;
            };
            match source(from.file)? {
                Source::Base(file) => resolved.push_run(Run {
                    length: run.length,
                    from: Some(Origin { file, ..from }),
                }),
                Source::Written(older) => {
                    let starts = starts.entry(from.file).or_insert_with(|| older.starts());
                    older.copy_to(&mut resolved, starts, from, run.length)?;
                }
            }
        }
        Ok(resolved)
    }

    /// The runs in pieces of limited size, in order; each is let go of when it is taken.
    pub(crate) fn into_pieces(self) -> impl Iterator<Item = Vec<Run>> {
        self.runs.0.into_iter()
    }

    /// Adds rows at the end.
    pub fn push_run(&mut self, run: Run) {
        if run.length == 0 {
            return;
        }
        self.rows += run.length;
        if let Some(last) = self.runs.last_mut() {
            let follows = match (last.from, run.from) {
                (None, None) => true,
                (Some(last_from), Some(from)) => {
                    last_from.file == from.file
                        && last_from.changed == from.changed
                        && last_from.row + last.length == from.row
                }
                _ => false,
            };
            if follows {
                last.length += run.length;
                return;
            }
        }
        self.runs.push(run);
    }

    /// The position of the first row of each run.
    fn starts(&self) -> Vec<u64> {
        let mut next = 0;
        self.runs
            .iter()
            .map(|run| {
                let start = next;
                next += run.length;
                start
            })
            .collect()
    }

    /// Adds to `other` where `length` rows from `from` on come from.
    fn copy_to(&self, other: &mut Self, starts: &[u64], from: Origin, length: u64) -> Result<()> {
        let missing = || Error::internal("a row comes from a position that its file has not");
        let end = from.row.checked_add(length).ok_or_else(missing)?;
        if end > self.rows {
            return Err(missing());
        }
        let mut row = from.row;
        let mut index = starts
            .partition_point(|start| *start <= row)
            .saturating_sub(1);
        while row < end {
            let (Some(run), Some(start)) = (self.runs.get(index), starts.get(index)) else {
                return Err(missing());
            };
            let skipped = row - start;
            let taken = (run.length - skipped).min(end - row);
            other.push_run(Run {
                length: taken,
                from: run.from.map(|older| Origin {
                    file: older.file,
                    row: older.row + skipped,
                    changed: older.changed || from.changed,
                }),
            });
            row += taken;
            index += 1;
        }
        Ok(())
    }
}

/// As many as the batches of a query have rows.
pub(crate) const RUNS_IN_A_PIECE: usize = 8_192;

/// Runs in full pieces, but for the last one: they are not moved when more of them come, and need not
/// be there twice while they are handed on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Runs(Vec<Vec<Run>>);

impl Runs {
    fn push(&mut self, run: Run) {
        match self.0.last_mut() {
            Some(piece) if piece.len() < RUNS_IN_A_PIECE => piece.push(run),
            _ => self.0.push(vec![run]),
        }
    }

    fn get(&self, index: usize) -> Option<&Run> {
        self.0
            .get(index / RUNS_IN_A_PIECE)?
            .get(index % RUNS_IN_A_PIECE)
    }

    fn last_mut(&mut self) -> Option<&mut Run> {
        self.0.last_mut()?.last_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().flatten()
    }
}

/// What a transaction did to the rows of its table in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetRows {
    removed: BTreeMap<u32, RemainingRows>,
    written: BTreeMap<u32, WrittenRows>,
}

/// Rows of a removed file that are still there, in another file. All others that were visible are
/// gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemainingRows {
    /// Positions of rows as they were.
    pub copied: RoaringTreemap,
    /// Positions of rows with new values.
    pub changed: RoaringTreemap,
}

/// Rows of a new file that were not there, or not like that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// How many rows the file has.
    pub total: u64,
    /// Positions of new rows.
    pub inserted: RoaringTreemap,
    /// Positions of rows with new values.
    pub changed: RoaringTreemap,
}

impl NetRows {
    /// What became of the files `removed`, by index, with new files that have none of their rows so
    /// far.
    pub fn of_removed(removed: impl IntoIterator<Item = u32>) -> Self {
        Self {
            removed: removed
                .into_iter()
                .map(|file| (file, RemainingRows::default()))
                .collect(),
            written: BTreeMap::new(),
        }
    }

    /// Adds the new file with this index, whose rows come from `origins`.
    ///
    /// # Errors
    ///
    /// `Internal` if one of them comes from a file that was not removed, or from a row that is in a
    /// new file already.
    pub fn add_written(&mut self, file: u32, origins: &RowOrigins) -> Result<()> {
        let mut rows = WrittenRows {
            total: origins.rows,
            ..WrittenRows::default()
        };
        let mut next = 0;
        for run in origins.runs.iter() {
            let here = next..next + run.length;
            next = here.end;
            let Some(from) = run.from else {
                rows.inserted.insert_range(here);
                continue;
            };
            let remaining = self.removed.get_mut(&from.file).ok_or_else(|| {
                Error::internal("a row of a transaction comes from a file that is still there")
            })?;
            let there = from.row..from.row + run.length;
            let others = if from.changed {
                rows.changed.insert_range(here);
                &mut remaining.changed
            } else {
                &mut remaining.copied
            };
            if others.insert_range(there) != run.length {
                return Err(Error::internal("a row of a transaction is there twice"));
            }
        }
        if self.written.insert(file, rows).is_some() {
            return Err(Error::internal("a file of a transaction is there twice"));
        }
        Ok(())
    }

    /// Whether added and removed files say all, to a reader who knows which rows of a removed file were
    /// hidden: none of their rows is the same row.
    pub fn is_told_by_files(&self) -> bool {
        self.removed
            .values()
            .all(|rows| rows.copied.is_empty() && rows.changed.is_empty())
    }

    /// The removed files, by index.
    pub fn removed(&self) -> &BTreeMap<u32, RemainingRows> {
        &self.removed
    }

    /// The new files, by index.
    pub fn written(&self) -> &BTreeMap<u32, WrittenRows> {
        &self.written
    }
}

#[cfg(test)]
mod tests;
