//! Reading: snapshots, statistics, predicates, pruning, and the scan itself.

pub mod features;
pub mod partition_value;
pub mod path;
pub mod predicate;
pub mod prune;
pub mod read_set;
pub mod snapshot;
pub mod statistics;
