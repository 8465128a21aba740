//! What a long statement has done so far, in one line on a terminal.

use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Statements that take less show nothing.
const QUIET: Duration = Duration::from_secs(1);

/// How often the line is written anew.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// The line of one statement.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    is_shown: bool,
    line: Option<ProgressBar>,
}

impl Progress {
    /// Begins to count; nothing is ever shown if stderr is no terminal.
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            is_shown: stderr().is_terminal(),
            line: None,
        }
    }

    /// How long the statement has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows what `plan` has done so far.
    pub(crate) fn show(&mut self, plan: Option<&dyn ExecutionPlan>) {
        if !self.is_shown || self.elapsed() < QUIET {
            return;
        }
        let line = self.line.get_or_insert_with(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                line.set_style(style);
            }
            line.with_elapsed(self.started.elapsed())
        });
        let done = match plan {
            Some(plan) => Done::of(plan).to_string(),
            None => "planning".to_owned(),
        };
        line.set_message(done);
        line.tick();
    }

    /// Takes the line away; rows are printed where it stood.
    pub(crate) fn clear(&mut self) {
        self.is_shown = false;
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Sums of the operators' metrics.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    files_read: usize,
    rows_read: usize,
    bytes_read: usize,
    rows_changed: usize,
    rows_copied: usize,
    files_written: usize,
    bytes_written: usize,
}

impl Done {
    fn of(plan: &dyn ExecutionPlan) -> Self {
        let mut done = Self::default();
        done.add(plan);
        done
    }

    fn add(&mut self, plan: &dyn ExecutionPlan) {
        if let Some(metrics) = plan.metrics() {
            let sum = |name: &str| metrics.sum_by_name(name).map_or(0, |sum| sum.as_usize());
            if plan.children().is_empty() {
                self.rows_read += metrics.output_rows().unwrap_or(0);
                self.files_read += sum("files_opened");
                self.bytes_read += sum("bytes_scanned");
            }
            self.rows_changed += sum("rows_matched") + sum("rows_inserted");
            self.rows_copied += sum("rows_copied");
            self.files_written += sum("files_written");
            self.bytes_written += sum("bytes_written");
        }
        for child in plan.children() {
            self.add(child.as_ref());
        }
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |number: usize| HumanCount(number as u64);
        let mut text = format!("read {} rows", count(self.rows_read));
        if self.bytes_read > 0 {
            let _ = write!(text, ", {}", HumanBytes(self.bytes_read as u64));
        }
        if self.files_read > 0 {
            let _ = write!(text, " of {} files", count(self.files_read));
        }
        if self.rows_changed > 0 {
            let _ = write!(text, "; changed {} rows", count(self.rows_changed));
        }
        if self.rows_copied > 0 {
            let _ = write!(text, ", copied {}", count(self.rows_copied));
        }
        if self.bytes_written > 0 {
            let _ = write!(
                text,
                "; wrote {} in {} files",
                HumanBytes(self.bytes_written as u64),
                count(self.files_written)
            );
        }
        f.write_str(&text)
    }
}
