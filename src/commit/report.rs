//! A verdict for people and for programs: text of several lines, and JSON.
//!
//! `docs/explain.schema.json` is the schema of the JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::evidence::Evidence;
use super::verdict::{Conflict, Verdict};

impl Verdict {
    /// The verdict as JSON.
    ///
    /// ```
    /// use delta_disjoint::commit::{IsolationLevel, Verdict};
    ///
    /// let json = Verdict::clean(4, IsolationLevel::Serializable).to_json();
    /// assert_eq!(json["verdict"], "commit");
    /// assert_eq!((&json["read_version"], &json["to_version"]), (&4.into(), &4.into()));
    /// ```
    pub fn to_json(&self) -> Value {
        let conflicts: Vec<Value> = self.conflicts.iter().map(conflict).collect();
        let evidence: Vec<Value> = self.evidence.iter().map(decision).collect();
        let advice: Vec<Value> = self
            .advice
            .iter()
            .map(|advice| {
                json!({
                    "code": advice.code(),
                    "column": advice.column(),
                    "text": advice.to_string(),
                })
            })
            .collect();
        json!({
            "verdict": if self.is_conflict() { "conflict" } else { "commit" },
            "read_version": self.read_version,
            "to_version": self.to_version(),
            "isolation_level": self.level.as_str(),
            "conflicts": conflicts,
            "conflict_count": self.conflict_count,
            "evidence": evidence,
            "evidence_count": self.evidence_count,
            "files": {
                "candidates": self.candidates,
                "kept": self.kept(),
                "skipped": self.skipped,
            },
            "advice": advice,
        })
    }

    /// The verdict as text of several lines, the evidence included.
    ///
    /// ```
    /// use delta_disjoint::commit::{IsolationLevel, Verdict};
    ///
    /// assert_eq!(
    ///     Verdict::clean(4, IsolationLevel::Serializable).to_text(),
    ///     "commit: read version 4, no other commit, checked as Serializable\n"
    /// );
    /// ```
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let verdict = if self.is_conflict() {
            "conflict"
        } else {
            "commit"
        };
        write!(text, "{verdict}: read version {}, ", self.read_version)?;
        match &self.winners {
            None => text.push_str("no other commit"),
            Some(winners) if winners.start() == winners.end() => {
                write!(text, "winner {}", winners.start())?;
            }
            Some(winners) => write!(text, "winners {} to {}", winners.start(), winners.end())?,
        }
        writeln!(text, ", checked as {}", self.level.as_str())?;
        if self.candidates > 0 {
            writeln!(
                text,
                "added files tested: {}, kept: {}, skipped: {}",
                self.candidates,
                self.kept(),
                self.skipped
            )?;
        }
        list(
            text,
            "conflicts",
            &self.conflicts,
            self.conflict_count,
            |c| format!("{c} ({})", c.reason.code),
        )?;
        list(text, "evidence", &self.evidence, self.evidence_count, |e| {
            e.to_string()
        })?;
        list(text, "advice", &self.advice, self.advice.len(), |advice| {
            advice.to_string()
        })
    }
}

fn list<T>(
    text: &mut String,
    title: &str,
    items: &[T],
    count: usize,
    show: impl Fn(&T) -> String,
) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(text, "{title}:")?;
    for item in items {
        writeln!(text, "  - {}", show(item))?;
    }
    match count.saturating_sub(items.len()) {
        0 => Ok(()),
        more => writeln!(text, "  - and {more} more"),
    }
}

fn conflict(conflict: &Conflict) -> Value {
    json!({
        "kind": conflict.kind.as_str(),
        "version": conflict.version,
        "operation": conflict.operation,
        "engine": conflict.engine,
        "path": conflict.path,
        "read": conflict.read.as_deref(),
        "reason": conflict.reason.code.code(),
        "detail": conflict.reason.detail,
        "column": conflict.reason.column,
    })
}

fn decision(evidence: &Evidence) -> Value {
    let reason = evidence.decision.reason();
    json!({
        "version": evidence.version,
        "operation": evidence.operation,
        "path": evidence.path,
        "change": evidence.change.as_str(),
        "partition_values": evidence.partition_values,
        "read": evidence.read.as_deref(),
        "decision": if evidence.decision.is_skip() { "skipped" } else { "kept" },
        "by": reason.map(|reason| reason.code.by()),
        "reason": reason.map(|reason| reason.code.code()),
        "detail": reason.map(|reason| reason.detail.as_str()),
        "column": reason.and_then(|reason| reason.column.as_deref()),
    })
}
