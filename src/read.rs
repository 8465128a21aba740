//! Reading: snapshots, statistics, predicates, pruning, and the scan itself.

pub mod path;
pub mod predicate;
pub mod prune;
pub mod read_set;
pub mod snapshot;
pub mod statistics;

#[cfg(test)]
mod test_support;
