//! Writing: data files with statistics that others can trust, and the actions that name them.

pub mod change_data;
pub mod changes;
mod decimal;
pub mod file_statistics;
pub mod file_writer;
pub mod merge;
pub mod partition;
pub mod rewrite;
mod rewriter;
pub mod rules;
pub mod statistics_columns;
pub mod table_properties;
mod table_rows;
pub mod validate;
