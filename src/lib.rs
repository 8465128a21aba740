//! Concurrent SQL `INSERT`, `UPDATE` and `DELETE` on Delta Lake tables with DataFusion.

pub mod commit;
pub mod config;
pub mod error;
pub mod read;
pub mod session;
pub mod write;

pub use error::{Error, ErrorKind, Result};
