//! Hand-made files, commits, reads and snapshots for the tests of this folder.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::{col, lit};
use deltalake::kernel::{Add, DeletionVectorDescriptor, Remove, StorageType, Transaction};

use super::actions::Actions;
use super::winner::{CommitInfo, WinningCommit};
use crate::read::predicate::ReadPredicate;
use crate::read::read_set::{Read, ReadScope};
use crate::read::snapshot::{TableMetadata, TableProtocol, TableSnapshot};
use crate::read::statistics::StatisticsSchema;

/// An added file of 1 byte with `dataChange=true` and no statistics.
pub(super) fn add(path: &str) -> AddBuilder {
    AddBuilder(Add {
        path: path.to_owned(),
        size: 1,
        data_change: true,
        ..Add::default()
    })
}

#[derive(Debug, Clone)]
pub(super) struct AddBuilder(Add);

impl AddBuilder {
    /// Statistics of a file that holds each of `ids` once.
    pub(super) fn ids(self, ids: Range<i64>) -> Self {
        let (rows, last) = (ids.end - ids.start, ids.end - 1);
        self.stats(&format!(
            r#"{{"numRecords":{rows},"minValues":{{"id":{}}},"maxValues":{{"id":{last}}},"nullCount":{{"id":0}}}}"#,
            ids.start
        ))
    }

    pub(super) fn rows(self, rows: i64) -> Self {
        self.stats(&format!(r#"{{"numRecords":{rows}}}"#))
    }

    pub(super) fn stats(mut self, stats: &str) -> Self {
        self.0.stats = Some(stats.to_owned());
        self
    }

    pub(super) fn data_change(mut self, data_change: bool) -> Self {
        self.0.data_change = data_change;
        self
    }

    pub(super) fn modified(mut self, millis: i64) -> Self {
        self.0.modification_time = millis;
        self
    }

    pub(super) fn size(mut self, bytes: i64) -> Self {
        self.0.size = bytes;
        self
    }

    pub(super) fn p(mut self, value: &str) -> Self {
        self.0
            .partition_values
            .insert("p".to_owned(), Some(value.to_owned()));
        self
    }

    pub(super) fn dv(mut self, id: &str, cardinality: i64) -> Self {
        self.0.deletion_vector = Some(dv(id, cardinality));
        self
    }
}

impl From<AddBuilder> for Add {
    fn from(builder: AddBuilder) -> Self {
        builder.0
    }
}

/// A removed file with `dataChange=true`.
pub(super) fn remove(path: &str) -> RemoveBuilder {
    RemoveBuilder(Remove {
        path: path.to_owned(),
        data_change: true,
        ..Remove::default()
    })
}

#[derive(Debug, Clone)]
pub(super) struct RemoveBuilder(Remove);

impl RemoveBuilder {
    pub(super) fn data_change(mut self, data_change: bool) -> Self {
        self.0.data_change = data_change;
        self
    }

    pub(super) fn dv(mut self, id: &str, cardinality: i64) -> Self {
        self.0.deletion_vector = Some(dv(id, cardinality));
        self
    }
}

impl From<RemoveBuilder> for Remove {
    fn from(builder: RemoveBuilder) -> Self {
        builder.0
    }
}

fn dv(id: &str, cardinality: i64) -> DeletionVectorDescriptor {
    DeletionVectorDescriptor {
        storage_type: StorageType::UuidRelativePath,
        path_or_inline_dv: id.to_owned(),
        offset: None,
        size_in_bytes: 1,
        cardinality,
    }
}

pub(super) fn actions(adds: &[AddBuilder], removes: &[RemoveBuilder]) -> Actions {
    Actions {
        adds: adds.iter().cloned().map(Add::from).collect(),
        removes: removes.iter().cloned().map(Remove::from).collect(),
        ..Actions::default()
    }
}

/// A commit of another writer that read the version before its own.
pub(super) fn winner(
    version: u64,
    adds: &[AddBuilder],
    removes: &[RemoveBuilder],
) -> WinnerBuilder {
    WinnerBuilder(WinningCommit {
        version,
        info: CommitInfo {
            operation: Some("TEST".to_owned()),
            read_version: version.checked_sub(1),
            ..CommitInfo::default()
        },
        actions: actions(adds, removes),
    })
}

#[derive(Debug, Clone)]
pub(super) struct WinnerBuilder(pub(super) WinningCommit);

impl WinnerBuilder {
    pub(super) fn blind(mut self) -> Self {
        self.0.info.is_blind_append = Some(true);
        self
    }

    pub(super) fn read_version(mut self, version: Option<u64>) -> Self {
        self.0.info.read_version = version;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Actions)) -> Self {
        change(&mut self.0.actions);
        self
    }

    pub(super) fn txn(self, app_id: &str) -> Self {
        self.with(|actions| actions.transactions.push(Transaction::new(app_id, 1)))
    }
}

/// A table with columns `id` and `p` (both long); `p` is the partition column where a file has a
/// value for it.
pub(super) fn snapshot(version: u64, files: &[AddBuilder]) -> TableSnapshot {
    let partitioned = files.iter().any(|file| !file.0.partition_values.is_empty());
    TableSnapshot {
        version,
        schema: Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("p", DataType::Int64, true),
        ])),
        metadata: TableMetadata {
            id: "table".to_owned(),
            schema_string: "schema".to_owned(),
            partition_columns: partitioned.then(|| "p".to_owned()).into_iter().collect(),
            ..TableMetadata::default()
        },
        protocol: TableProtocol {
            min_reader_version: 1,
            min_writer_version: 2,
            ..TableProtocol::default()
        },
        files: files
            .iter()
            .cloned()
            .map(|file| Arc::new(file.into()))
            .collect(),
        spellings: Arc::default(),
    }
}

/// A read of `id >= ids.start AND id < ids.end`.
pub(super) fn matching(version: u64, ids: Range<i64>, files: &[&str]) -> Read {
    let filters = [col("id").gt_eq(lit(ids.start)), col("id").lt(lit(ids.end))];
    filtered(version, &filters, files)
}

/// A read of `p = value AND id >= ids.start AND id < ids.end` of a table partitioned by `p`.
pub(super) fn matching_partition(
    version: u64,
    value: i64,
    ids: Range<i64>,
    files: &[&str],
) -> Read {
    let filters = [
        col("p").eq(lit(value)),
        col("id").gt_eq(lit(ids.start)),
        col("id").lt(lit(ids.end)),
    ];
    filtered(version, &filters, files)
}

fn filtered(version: u64, filters: &[datafusion::logical_expr::Expr], files: &[&str]) -> Read {
    let partitioned = filters.len() > 2;
    let file = if partitioned {
        add("f").p("1")
    } else {
        add("f")
    };
    let schema = StatisticsSchema::of(&snapshot(version, &[file]));
    read(
        ReadScope::Matching(Arc::new(ReadPredicate::new(filters, &schema))),
        version,
        files,
    )
}

pub(super) fn whole_table(version: u64, files: &[&str]) -> Read {
    read(ReadScope::WholeTable, version, files)
}

pub(super) fn nothing(version: u64) -> Read {
    read(ReadScope::Nothing, version, &[])
}

fn read(scope: ReadScope, version: u64, files: &[&str]) -> Read {
    Read {
        scope,
        version,
        files: Arc::new(files.iter().map(|file| (*file).to_owned()).collect()),
    }
}
