//! Planning: from DataFusion's DML plan to an operator that changes the table.
//!
//! ```text
//!  Dml(t)            rule        DeltaDml(t)            pin, plan      CommitExec
//!    Filter      ----------->      Projection        ------------->     RewriteExec
//!      TableScan(t)                  Filter                               (the input's operators)
//!                                      TableScan(t + positions)             DeltaScanExec
//! ```

pub(crate) mod change_feed;
mod common_names;
mod filled;
mod hidden;
mod key_source;
pub(crate) mod merge;
mod mirrored;
pub mod node;
pub mod pin;
pub mod planner;
mod rerun;
pub mod rule;
pub(crate) mod rules;
mod semi_join;
mod sources;
mod subquery_rows;
mod target;
mod three_valued;
mod transaction;
mod unknown_in;
mod unknown_join;
