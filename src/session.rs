//! What a DataFusion session gets from this crate.

pub mod create;
pub mod table_options;
pub mod types;
