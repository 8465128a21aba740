//! Integration tests, one binary.

mod concurrent_update;
mod delete;
mod layering;
mod support;
mod update;
mod where_cases;
