//! MERGE INTO.

mod model;
mod random;
mod semantics;
