//! Integration tests, one binary.

#![expect(
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test that cannot go on fails, and what modules share is public among them"
)]

mod concurrent_update;
mod create;
mod features;
mod layering;
mod reading;
mod session;
mod support;
