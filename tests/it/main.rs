//! Integration tests, one binary.

#![expect(
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test that cannot go on fails, and what modules share is public among them"
)]

mod concurrent_update;
mod delete;
mod explain;
mod insert;
mod layering;
mod prepared;
mod random_statements;
mod refusals;
mod rewritten_files;
mod support;
mod truncate;
mod update;
mod where_cases;
