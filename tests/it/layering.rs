//! Who may import whom, and how long a file may be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What every stage may use.
const BASE: [&str; 7] = [
    "error",
    "config",
    "cancellation",
    "clock",
    "storage",
    "reason",
    "three_valued",
];

/// For each stage: the stages below it that it may use.
const MAY_USE: [(&str, &[&str]); 11] = [
    ("read", &[]),
    // What the two stages above it hand each other.
    ("action_batch", &["read"]),
    ("write", &["read", "action_batch"]),
    ("commit", &["read", "action_batch"]),
    ("hook", &["read", "commit"]),
    ("plan", &["read", "write", "commit"]),
    ("session", &["read", "write", "commit", "plan"]),
    ("explain", &["read", "commit", "session"]),
    ("history", &["read", "commit"]),
    // The command line uses the library by its public names.
    ("cli", &[]),
    ("main", &["cli"]),
];

/// Files of the pure core: no clock, no session, no I/O.
const PURE: [&str; 7] = [
    "commit/conflict.rs",
    "commit/isolation.rs",
    "commit/net_effect.rs",
    "commit/winner.rs",
    "read/predicate.rs",
    "read/prune.rs",
    "read/statistics.rs",
];

/// Lines of code a file may have; beyond that it holds more than one idea.
const MOST_LINES: usize = 500;

fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    assert!(found.len() > 20, "the sources were found");
    found
        .into_iter()
        .map(|path| {
            let name = path
                .strip_prefix(&root)
                .expect("under src")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read_to_string(path).expect("source"))
        })
        .collect()
}

/// Code without comments and without the unit tests at the end.
fn code(text: &str) -> Vec<&str> {
    text.lines()
        .take_while(|line| *line != "mod tests {")
        .filter(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("//")
        })
        .collect()
}

fn is_test(name: &str) -> bool {
    name.contains("tests") || name.contains("test_support") || name.contains("fixtures")
}

fn stage(name: &str) -> &str {
    name.split(['/', '.']).next().unwrap_or(name)
}

#[test]
fn stages_use_only_what_lies_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.into_iter().collect();
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        if name == "lib.rs" || is_test(&name) {
            continue;
        }
        let stage = stage(&name);
        let may_use = match allowed.get(stage) {
            Some(may_use) => *may_use,
            None if BASE.contains(&stage) => &[],
            None => {
                wrong.push(format!("{name}: no layer is given for {stage}"));
                continue;
            }
        };
        for line in code(&text) {
            for part in line.split("crate::").skip(1) {
                let used: String = part
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if part.starts_with('{') {
                    wrong.push(format!(
                        "{name}: name each module by itself: {}",
                        line.trim()
                    ));
                }
                // Names that lib.rs exports from `error`.
                let exported = ["Error", "ErrorKind", "Result"].contains(&used.as_str());
                if used.is_empty() || used == stage || exported {
                    continue;
                }
                let used = used.as_str();
                if !may_use.contains(&used) && !BASE.contains(&used) {
                    wrong.push(format!("{name} uses {used}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_core_does_no_input_or_output() {
    let sources = sources();
    let mut wrong = Vec::new();
    for pure in PURE {
        let folder = pure.trim_end_matches(".rs").to_owned() + "/";
        for (name, text) in &sources {
            if (name != pure && !name.starts_with(&folder)) || is_test(name) {
                continue;
            }
            for line in code(text) {
                for word in [
                    "async fn",
                    ".await",
                    "object_store",
                    "LogStore",
                    "std::fs",
                    "SystemTime",
                    "Instant::now",
                    "Utc::now",
                    "SessionContext",
                    "SessionState",
                ] {
                    if line.contains(word) {
                        wrong.push(format!("{name}: {}", line.trim()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(name, _)| !is_test(name))
        .map(|(name, text)| (name, code(&text).len()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines of code"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
