//! Integration tests, one binary.

#![expect(
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test that cannot go on fails, and what modules share is public among them"
)]

mod anomalies;
mod bank;
mod change_feed;
mod checkpoint_statistics;
mod checkpoints;
mod clustered;
mod column_mapping;
#[cfg(feature = "cli")]
mod command_line;
mod concurrent_update;
mod conflict_errors;
mod contention;
mod create;
mod datafusion_faults;
mod delete;
mod deletion_vectors;
mod deltalake_winners;
mod evidence;
mod explain;
mod features;
mod field_reports;
mod golden;
mod history_law;
mod hook;
mod hostile_logs;
mod insert;
mod large_table;
mod layering;
mod merge;
mod net_effect;
mod original_feature;
mod paths;
mod prepared;
mod random_statements;
mod reading;
mod refusals;
mod rerun;
mod rewritten_files;
mod rules;
mod scenarios;
mod second_opinion;
mod session;
mod slt;
mod soundness;
mod support;
mod transactions;
mod truncate;
mod update;
mod where_cases;
mod winner_statistics;
