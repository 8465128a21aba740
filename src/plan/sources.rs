//! Whether the input of a change can have read the table it writes to by another way than the
//! scans that record themselves.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::logical_expr::{LogicalPlan, TableSource};
use url::Url;

use super::key_source::key_source;
use super::pin::delta_dml;
use crate::commit::open_transaction::ForeignSource;
use crate::read::provider::DisjointTableProvider;
use crate::read::table::{TableHandle, canonical_location};

/// What the input of a change reads of the target.
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
            // What is below it is looked at in its turn.
            LogicalPlan::Extension(extension) if key_source(extension).is_some() => {
                InputReads::OtherTables
            }
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
        let location = ours.handle().location();
        return if location == target.location() {
            InputReads::Target
        } else if are_comparable(location, target.location()) {
            InputReads::OtherTables
        } else {
            InputReads::Unknown
        };
    }
    match foreign_source(source) {
        Some(foreign) if may_be(&foreign, target.location()) => InputReads::Unknown,
        _ => InputReads::OtherTables,
    }
}

/// The sources of `plan`, subqueries included, that are neither a table of this crate nor known to
/// be no Delta table at all.
pub(super) fn foreign_sources(plan: &LogicalPlan) -> Vec<ForeignSource> {
    let mut found = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => found.extend(foreign_source(&scan.source)),
            LogicalPlan::Extension(extension)
                if delta_dml(extension).is_none() && key_source(extension).is_none() =>
            {
                found.push(ForeignSource::Unknown);
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_err() {
        found.push(ForeignSource::Unknown);
    }
    found
}

fn foreign_source(source: &Arc<dyn TableSource>) -> Option<ForeignSource> {
    let Ok(provider) = source_as_provider(source) else {
        return Some(ForeignSource::Unknown);
    };
    let provider: &dyn TableProvider = provider.as_ref();
    // What a recursive query refers to itself by holds rows of the sources below it.
    if provider.is::<DisjointTableProvider>()
        || provider.is::<MemTable>()
        || provider.is::<GenerateSeriesTable>()
        || provider.is::<CteWorkTable>()
    {
        return None;
    }
    Some(match provider.downcast_ref::<ListingTable>() {
        Some(listing) => ForeignSource::Files(
            listing
                .table_paths()
                .iter()
                .map(|path| path.get_url().clone())
                .collect(),
        ),
        None => ForeignSource::Unknown,
    })
}

/// Whether `source` may show rows of the table at `location`.
pub(super) fn may_be(source: &ForeignSource, location: &str) -> bool {
    match source {
        ForeignSource::Files(folders) => {
            !folders.iter().all(|folder| is_elsewhere(folder, location))
        }
        ForeignSource::Unknown => true,
    }
}

/// Whether the files below `folder` are surely none of the table at `location`.
fn is_elsewhere(folder: &Url, location: &str) -> bool {
    let folder = canonical_location(folder);
    are_comparable(&folder, location) && !within(&folder, location) && !within(location, &folder)
}

/// Whether two locations are different places if they are spelled differently: local files are not
/// in a cloud, but one place in a cloud may go by several schemes.
fn are_comparable(a: &str, b: &str) -> bool {
    let scheme = |location: &str| {
        location
            .split_once(':')
            .map(|(scheme, _)| scheme.to_owned())
    };
    match (scheme(a), scheme(b)) {
        (Some(a), Some(b)) => a == b || a == "file" || b == "file",
        _ => false,
    }
}

fn within(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_elsewhere_only_where_it_cannot_be_the_table() {
        let cases = [
            ("file:///d/t", "file:///d/t", false),
            ("file:///d/t/", "file:///d/t", false),
            ("file:///d/", "file:///d/t", false),
            ("file:///d/t/part-0.parquet", "file:///d/t", false),
            ("file:///d/t2/", "file:///d/t", true),
            ("file:///", "file:///d/t", false),
            ("file:///d/t/", "s3://d/t", true),
            ("s3://d/t/", "file:///d/t", true),
            ("s3://d/t/", "s3://d/t", false),
            ("s3://d/u/", "s3://d/t", true),
            ("s3a://d/t/", "s3://d/t", false),
            ("s3a://d/u/", "s3://d/t", false),
        ];
        for (folder, location, expected) in cases {
            let folder = Url::parse(folder).expect("url");
            assert_eq!(
                is_elsewhere(&folder, location),
                expected,
                "{folder} {location}"
            );
        }
    }
}
