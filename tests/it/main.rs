//! Integration tests, one binary.

mod layering;
mod support;
