//! MERGE INTO.

mod concurrent;
mod field;
mod memory;
mod model;
mod optimize;
mod prepared;
mod random;
mod semantics;
