//! Integration tests, one binary.

mod anomalies;
mod concurrent_update;
mod conflict_errors;
mod contention;
mod deltalake_winners;
mod layering;
mod original_feature;
mod scenarios;
mod support;
