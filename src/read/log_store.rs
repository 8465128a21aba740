//! Which log stores are safe to commit to.

use deltalake::logstore::LogStore;

use crate::error::{Error, Result};

/// How a log store takes a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStyle {
    /// As bytes, put only if the version is absent.
    Bytes,
    /// As a temporary file that it moves into place.
    TemporaryFile,
}

/// How `store` takes a new entry.
///
/// # Errors
///
/// [`Unsupported`](crate::ErrorKind::Unsupported) if the log store is not known to refuse a version
/// that exists: two writers could then both believe to have written it.
pub fn commit_style(store: &dyn LogStore) -> Result<CommitStyle> {
    match store.name().as_str() {
        "DefaultLogStore" | "LakeFSLogStore" => Ok(CommitStyle::Bytes),
        "S3DynamoDbLogStore" => Ok(CommitStyle::TemporaryFile),
        name => Err(Error::unsupported(format!(
            "log store {name} is not known to refuse a version that exists; \
             use a store with conditional puts, or S3 with DynamoDB"
        ))),
    }
}
