//! Reading: snapshots, statistics, predicates, pruning, and the scan itself.

pub mod change_data;
pub mod clustering;
pub mod collector;
pub mod column_expressions;
pub mod column_mapping;
pub mod deletion_vector;
pub mod features;
pub(crate) mod files_scan;
pub(crate) mod footer;
mod gate;
pub(crate) mod kernel;
pub(crate) mod keys;
pub mod log_store;
mod nested_nulls;
pub mod partition_value;
pub mod path;
pub mod positions;
pub mod predicate;
pub mod provider;
pub mod prune;
pub mod read_set;
pub mod removable;
pub mod row_origins;
pub mod scan;
pub mod snapshot;
pub mod statistics;
pub mod table;

#[cfg(test)]
mod test_support;
