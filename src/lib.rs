//! Concurrent SQL `INSERT`, `UPDATE` and `DELETE` on Delta Lake tables with DataFusion.

mod action_batch;
pub mod commit;
pub mod config;
pub mod error;
pub mod plan;
pub mod read;
pub mod session;
mod storage;
pub mod write;

pub use error::{Error, ErrorKind, Result};
pub use session::{register, session, sql};
