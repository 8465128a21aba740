//! One error type; its kind says what the caller does next.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::{self, Write as _};

use datafusion::error::DataFusionError;
use deltalake::DeltaTableError;

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What to do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another writer changed what this statement read or wrote. Run the statement again on the
    /// newest version.
    Conflict,
    /// Other writers kept winning the race for the next version and the attempts are used up; no
    /// conflict was found. Run the same statement again, later or with more attempts.
    Contended,
    /// The storage did not answer or the table moved on while a statement was planned. Run the
    /// statement again.
    Unavailable,
    /// The statement was [called off](crate::Cancellation); nothing was changed. Run it again, if it
    /// is still wanted.
    Cancelled,
    /// The statement or the table uses something that this crate does not do. The message names
    /// it and says what to do instead.
    Unsupported,
    /// The input is wrong: a name, an option or a value. Correct it.
    Invalid,
    /// The log or a data file contradicts itself. Repair the table.
    Corrupt,
    /// A bug in this crate. Report it.
    Internal,
}

impl ErrorKind {
    /// The kind in lower case, as it stands at the head of a message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Contended => "contended",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::Unsupported => "unsupported",
            Self::Invalid => "invalid",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }
}

/// An error with a [kind](ErrorKind), a message and, where there is one, the error behind it.
///
/// Errors that travel through DataFusion are found again with [`Error::find`]:
///
/// ```
/// use datafusion::error::DataFusionError;
/// use delta_disjoint::{Error, ErrorKind};
///
/// let wrapped: DataFusionError = Error::invalid("no such option").into();
/// let wrapped = wrapped.context("while planning");
/// assert_eq!(Error::find(&wrapped).map(Error::kind), Some(ErrorKind::Invalid));
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that says `message` (no full stop at the end).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// [`ErrorKind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// [`ErrorKind::Corrupt`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// This error with `source` behind it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without the kind in front.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same statement may succeed when it is run again as it is.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Conflict | ErrorKind::Contended | ErrorKind::Unavailable
        )
    }

    /// The error of this crate inside a DataFusion error, however deep.
    pub fn find(error: &DataFusionError) -> Option<&Self> {
        let mut current: Option<&(dyn StdError + 'static)> = Some(error);
        while let Some(error) = current {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            // A boxed or shared error is its own node of the chain.
            current = match error.downcast_ref::<DataFusionError>() {
                Some(DataFusionError::External(inner)) => match inner.downcast_ref::<Self>() {
                    Some(found) => return Some(found),
                    None => inner.source(),
                },
                Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Context(_, inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Diagnostic(_, inner)) => Some(inner.as_ref()),
                Some(DataFusionError::Collection(errors)) => {
                    return errors.iter().find_map(Self::find);
                }
                _ => error.source(),
            };
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        Self::External(Box::new(error))
    }
}

impl From<DeltaTableError> for Error {
    fn from(error: DeltaTableError) -> Self {
        let kind = match &error {
            DeltaTableError::ObjectStore { .. } => ErrorKind::Unavailable,
            DeltaTableError::InvalidJsonLog { .. } => ErrorKind::Corrupt,
            DeltaTableError::KernelError(kernel) => kernel_kind(&kernel.to_string()),
            DeltaTableError::NotATable(_) | DeltaTableError::InvalidTableLocation(_) => {
                ErrorKind::Invalid
            }
            _ => ErrorKind::Unavailable,
        };
        let message = match error.to_string() {
            message if message.contains(CATALOG_MANAGED) => {
                format!(
                    "a table with the table feature catalogManaged is read and written through its \
                     catalog only: {message}"
                )
            }
            message => message,
        };
        Self::new(kind, message).with_source(error)
    }
}

/// How the kernel begins when it is asked for a catalog-managed table.
const CATALOG_MANAGED: &str = "Max catalog version error";

/// The kernel's errors are no public types of deltalake, so that only their text tells them apart.
/// What is not known stays retryable.
fn kernel_kind(message: &str) -> ErrorKind {
    const CORRUPT: [&str; 11] = [
        "Failed to parse value",
        "Invalid Checkpoint",
        "Invalid column mapping mode",
        "Invalid decimal",
        "Invalid partition values",
        "Invalid protocol action",
        "Invalid struct data",
        "No protocol found",
        "No table metadata",
        "Could not parse int",
        "Schema error",
    ];
    if CORRUPT.iter().any(|prefix| message.starts_with(prefix)) {
        ErrorKind::Corrupt
    } else if message.starts_with("Unsupported") || message.starts_with(CATALOG_MANAGED) {
        ErrorKind::Unsupported
    } else {
        ErrorKind::Unavailable
    }
}

/// `text` for a message: its first `most` characters, and a sign where there are more.
pub(crate) fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

impl From<object_store::Error> for Error {
    fn from(error: object_store::Error) -> Self {
        Self::unavailable(error.to_string()).with_source(error)
    }
}

/// `text` of somebody else for a message or a terminal: what would steer the terminal, end the line or
/// turn the order of the letters round is written as an escape, such as `\n` and `\u{1b}`.
///
/// ```
/// use delta_disjoint::error::printable;
///
/// assert_eq!(printable("MERGE ü\n\u{1b}[2J"), "MERGE ü\\n\\u{1b}[2J");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_steering = |character: char| {
        character.is_control()
            || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_steering) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_steering(character) {
            // Writing to a string does not fail.
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn found_through_every_wrapper() {
        let wrap: [fn(DataFusionError) -> DataFusionError; 4] = [
            |e| e,
            |e| e.context("outer"),
            |e| DataFusionError::Shared(Arc::new(e)),
            |e| DataFusionError::Collection(vec![DataFusionError::Plan("x".into()), e]),
        ];
        for outer in wrap {
            for inner in wrap {
                let error = outer(inner(Error::unsupported("MERGE").into()));
                let found = Error::find(&error).expect("found");
                assert_eq!(found.kind(), ErrorKind::Unsupported);
                assert_eq!(found.to_string(), "unsupported: MERGE");
            }
        }
        assert!(Error::find(&DataFusionError::Plan("x".into())).is_none());
    }

    #[test]
    fn retryable_kinds() {
        let retryable: Vec<_> = [
            ErrorKind::Conflict,
            ErrorKind::Contended,
            ErrorKind::Unavailable,
            ErrorKind::Cancelled,
            ErrorKind::Unsupported,
            ErrorKind::Invalid,
            ErrorKind::Corrupt,
            ErrorKind::Internal,
        ]
        .into_iter()
        .filter(|kind| Error::new(*kind, "").is_retryable())
        .collect();
        assert_eq!(
            retryable,
            [
                ErrorKind::Conflict,
                ErrorKind::Contended,
                ErrorKind::Unavailable
            ]
        );
    }
}
