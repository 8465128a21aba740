//! How a run fails: a message for stderr and an exit code.

use std::io;
use std::process::ExitCode;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use delta_disjoint::Error;

/// A statement failed or met a conflict.
const STATEMENT: u8 = 1;
/// The arguments are wrong.
const ARGUMENTS: u8 = 2;
/// As a shell reports a process that SIGINT ended.
const INTERRUPTED: u8 = 130;
/// As a shell reports a process that SIGPIPE ended.
const NOBODY_READS: u8 = 141;

/// Why a run ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    /// A statement failed.
    pub(crate) fn statement(message: impl Into<String>) -> Self {
        Self {
            code: STATEMENT,
            message: Some(message.into()),
        }
    }

    /// The arguments are wrong.
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self {
            code: ARGUMENTS,
            message: Some(message.into()),
        }
    }

    /// Ctrl-C.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self {
            code: INTERRUPTED,
            message: Some(message.into()),
        }
    }

    /// The same failure with `place` in front of its message.
    pub(crate) fn at(self, place: &str) -> Self {
        self.map(|message| format!("{place}: {message}"))
    }

    /// The same failure with `addition` as the last line of its message.
    pub(crate) fn and(self, addition: &str) -> Self {
        self.map(|message| format!("{message}\n{addition}"))
    }

    /// The same failure, for a command whose exit code 1 is an answer.
    pub(crate) fn without_answer(self) -> Self {
        let code = match self.code {
            STATEMENT => ARGUMENTS,
            code => code,
        };
        Self { code, ..self }
    }

    /// The same failure with its message as `change` makes it.
    pub(crate) fn map(self, change: impl FnOnce(&str) -> String) -> Self {
        Self {
            message: self.message.as_deref().map(change),
            ..self
        }
    }

    /// What to tell, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Whether there is anybody to go on for.
    pub(crate) fn is_nobody_reads(&self) -> bool {
        self.code == NOBODY_READS
    }

    /// The status of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::statement(error.to_string())
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        match Error::find(&error) {
            Some(error) => Self::statement(error.to_string()),
            None => Self::statement(error.strip_backtrace()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self {
                code: NOBODY_READS,
                message: None,
            };
        }
        Self::statement(format!("the output cannot be written: {error}"))
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            error => Self::statement(format!("the result cannot be printed: {error}")),
        }
    }
}
