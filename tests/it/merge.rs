//! MERGE INTO.

mod concurrent;
mod field;
mod model;
mod prepared;
mod random;
mod semantics;
