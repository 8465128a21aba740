//! MERGE INTO.

mod concurrent;
mod field;
mod model;
mod optimize;
mod random;
mod semantics;
