//! MERGE INTO.

mod concurrent;
mod field;
mod model;
mod random;
mod semantics;
