//! The one clock of this crate.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch, the log's unit of time; 0 for a clock that stands before it.
pub(crate) fn now_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
