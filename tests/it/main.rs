//! Integration tests, one binary.

mod concurrent_update;
mod layering;
mod support;
