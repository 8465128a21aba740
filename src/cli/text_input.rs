//! Statements from files and pipes, read where waiting does no harm.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tokio::sync::mpsc::{Receiver, channel};

use super::failure::Failure;
use super::interrupts::Interrupts;

/// How many lines are read ahead.
const LINES_AHEAD: usize = 64;

/// Whether what lies at `path` is a pipe or a device, which gives what is written to it.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The whole text of the file at `path`.
pub(crate) async fn read_file(path: &Path, interrupts: &Interrupts) -> Result<String, Failure> {
    let (name, path) = (path.display().to_string(), path.to_owned());
    // A file may be a pipe that nobody writes to: Ctrl-C must not wait for it.
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        File::open(path)?.read_to_string(&mut text)?;
        Ok::<_, io::Error>(text)
    });
    let mut interrupts = interrupts.clone();
    let text = tokio::select! {
        biased;
        () = interrupts.next() => {
            return Err(Failure::interrupted(format!("interrupted while {name} was read")));
        }
        read = read => read.map_err(io::Error::from).flatten(),
    };
    match text {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(error) => Err(Failure::arguments(format!(
            "{name} cannot be read: {error}"
        ))),
    }
}

/// The lines of stdin, with their ends, as they come.
pub(crate) struct Lines {
    lines: Receiver<io::Result<String>>,
    interrupts: Interrupts,
}

impl Lines {
    /// Begins to read.
    pub(crate) fn of_stdin(interrupts: &Interrupts) -> Self {
        let (sender, lines) = channel(LINES_AHEAD);
        std::thread::spawn(move || {
            let mut stdin = BufReader::new(io::stdin());
            loop {
                let mut line = String::new();
                let read = stdin.read_line(&mut line);
                let is_last = !matches!(read, Ok(length) if length > 0);
                if (read.is_err() || !line.is_empty())
                    && sender.blocking_send(read.map(|_| line)).is_err()
                {
                    break;
                }
                if is_last {
                    break;
                }
            }
        });
        Self {
            lines,
            interrupts: interrupts.clone(),
        }
    }

    /// The next line; nothing at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        tokio::select! {
            biased;
            () = self.interrupts.next() => Err(Failure::interrupted("interrupted")),
            line = self.lines.recv() => line.transpose().map_err(|error| {
                Failure::statement(format!("stdin cannot be read: {error}"))
            }),
        }
    }
}
