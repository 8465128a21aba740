//! Our verdicts and errors in deltalake's words.

use deltalake::DeltaTableError;
use deltalake::kernel::transaction::{CommitConflictError, TransactionError};

use crate::commit::{ConflictKind, Verdict};
use crate::error::Error;

impl From<Error> for DeltaTableError {
    fn from(error: Error) -> Self {
        Self::GenericError {
            source: Box::new(error),
        }
    }
}

/// deltalake's error for the most telling conflict of `verdict`, if there is one.
pub(super) fn conflict_error(verdict: &Verdict) -> Option<TransactionError> {
    let conflict = verdict.first_conflict()?;
    Some(TransactionError::CommitConflict(error_of(
        conflict.kind,
        &conflict.to_string(),
    )))
}

fn error_of(kind: ConflictKind, text: &str) -> CommitConflictError {
    match kind {
        ConflictKind::MetadataChanged => CommitConflictError::MetadataChanged,
        ConflictKind::ConcurrentTransaction => CommitConflictError::ConcurrentTransaction,
        ConflictKind::ConcurrentAppend => CommitConflictError::ConcurrentAppend,
        ConflictKind::ConcurrentDeleteRead => CommitConflictError::ConcurrentDeleteRead,
        ConflictKind::ConcurrentDeleteDelete => CommitConflictError::ConcurrentDeleteDelete,
        // deltalake has no kind for domain metadata. This one takes a text, and says what to do:
        // look at the table anew.
        ConflictKind::ProtocolChanged | ConflictKind::ConcurrentDomainMetadata => {
            CommitConflictError::ProtocolChanged(text.to_owned())
        }
    }
}

/// deltalake's error for what is no conflict: nothing was written. Our error stays behind it, so
/// that its kind can be asked for.
pub(super) fn failed(error: Error) -> TransactionError {
    TransactionError::LogStoreError {
        msg: error.to_string(),
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::ErrorKind;
    use crate::commit::IsolationLevel;

    #[test]
    fn every_kind_of_conflict_has_one_of_deltalake() {
        use ConflictKind as Kind;
        let cases = [
            (Kind::ProtocolChanged, "Protocol changed"),
            (Kind::MetadataChanged, "Metadata changed"),
            (Kind::ConcurrentTransaction, "Concurrent transaction failed"),
            (Kind::ConcurrentDomainMetadata, "ConcurrentDomainMetadata"),
            (Kind::ConcurrentAppend, "added new data"),
            (
                Kind::ConcurrentDeleteRead,
                "deleted data this operation read",
            ),
            (Kind::ConcurrentDeleteDelete, "deleted the same data"),
        ];
        for (kind, expected) in cases {
            let conflict = TransactionError::CommitConflict(error_of(kind, kind.as_str()));
            let error = DeltaTableError::from(conflict);
            assert!(error.to_string().contains(expected), "{kind}: {error}");
        }
        assert!(conflict_error(&Verdict::clean(1, IsolationLevel::Serializable)).is_none());
    }

    #[test]
    fn our_error_is_found_behind_what_is_no_conflict() {
        let error = DeltaTableError::from(failed(Error::unavailable("version 7 is missing")));
        assert!(error.to_string().contains("version 7"), "{error}");
        let mut source = error.source();
        let found = loop {
            match source {
                Some(error) => match error.downcast_ref::<Error>() {
                    Some(found) => break found,
                    None => source = error.source(),
                },
                None => panic!("not found"),
            }
        };
        assert_eq!(found.kind(), ErrorKind::Unavailable);
    }
}
