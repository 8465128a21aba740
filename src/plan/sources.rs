//! Whether the input of an INSERT can have read the table it writes to.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::{LogicalPlan, TableSource};

use crate::read::provider::DisjointTableProvider;
use crate::read::table::TableHandle;

/// What the input of an INSERT reads of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputReads {
    /// Nothing: all its sources are known to be something else.
    OtherTables,
    /// The target, through scans that record themselves, and nothing unknown.
    Target,
    /// A source that may be the target under another guise.
    Unknown,
}

/// Walks `input`, subqueries included.
pub(super) fn reads_of_input(input: &LogicalPlan, target: &TableHandle) -> InputReads {
    let mut reads = InputReads::OtherTables;
    let walked = input.apply_with_subqueries(|node| {
        let of_node = match node {
            LogicalPlan::TableScan(scan) => reads_of_source(&scan.source, target),
            // Nodes of other extensions can read anything.
            LogicalPlan::Extension(_) => InputReads::Unknown,
            _ => InputReads::OtherTables,
        };
        reads = match (reads, of_node) {
            (InputReads::Unknown, _) | (_, InputReads::Unknown) => InputReads::Unknown,
            (InputReads::Target, _) | (_, InputReads::Target) => InputReads::Target,
            _ => InputReads::OtherTables,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_err() {
        return InputReads::Unknown;
    }
    reads
}

fn reads_of_source(source: &Arc<dyn TableSource>, target: &TableHandle) -> InputReads {
    let Ok(provider) = source_as_provider(source) else {
        return InputReads::Unknown;
    };
    let provider: &dyn TableProvider = provider.as_ref();
    if let Some(ours) = provider.downcast_ref::<DisjointTableProvider>() {
        return if ours.handle().location() == target.location() {
            InputReads::Target
        } else {
            InputReads::OtherTables
        };
    }
    if provider.is::<MemTable>() || provider.is::<GenerateSeriesTable>() {
        return InputReads::OtherTables;
    }
    if let Some(listing) = provider.downcast_ref::<ListingTable>() {
        let elsewhere = listing.table_paths().iter().all(|path| {
            let path = path.as_str().trim_end_matches('/');
            !within(path, target.location()) && !within(target.location(), path)
        });
        if elsewhere {
            return InputReads::OtherTables;
        }
    }
    InputReads::Unknown
}

fn within(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
