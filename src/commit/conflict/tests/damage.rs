//! Damaged log entries: whatever happens to the bytes of a winner's entry, it is never taken for
//! less than it was.
//!
//! Some damage is no damage: with another digit an entry is a valid entry that says something else.
//! So "never laxer" is tested in two forms that hold without exception. For any damage: where the
//! check finds no conflict, a second and plain reading of the same bytes says so too. And for bytes
//! that are cut out of an entry whose numbers cannot be cut into others that prove more: what was
//! a conflict stays one.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use url::Url;

use super::*;
use crate::commit::WinningCommit;
use crate::error::ErrorKind;

const CASES: u32 = 4_000;

/// The winner's version.
const VERSION: u64 = READ_VERSION + 1;

/// DELETE WHERE id < 50, which rewrites `a`.
fn ours() -> Ours {
    Ours::delete(0..50, &["a"])
}

fn root() -> Url {
    "memory:///t".parse().unwrap()
}

/// The verdict on an entry with these bytes; the error if it cannot be read.
fn judged(entry: &[u8]) -> Result<Verdict, crate::error::Error> {
    let winner = WinningCommit::parse(VERSION, entry, &root())?;
    let snapshot = Arc::new(with_level(table(), "Serializable"));
    let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
    net_effect.apply(Arc::new(winner))?;
    let ours = ours();
    Ok(check(&CheckInput {
        reads: &ReadSet::new(ours.reads),
        actions: &ours.actions,
        net_effect: &net_effect,
        level: IsolationLevel::Serializable,
        data_skipping: true,
    }))
}

fn add_line(path: &str, stats: &str) -> String {
    let stats = Value::from(stats).to_string();
    format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{}},"size":1,"modificationTime":0,"dataChange":true,"stats":{stats}}}}}"#
    )
}

const INFO: &str = r#"{"commitInfo":{"timestamp":0,"operation":"WRITE","readVersion":4,"isBlindAppend":false,"engineInfo":"x"}}"#;

const REMOVE_A: &str = r#"{"remove":{"path":"a","dataChange":true,"deletionTimestamp":0}}"#;

/// Entries with and without conflict.
fn entries() -> Vec<String> {
    let far =
        r#"{"numRecords":71,"minValues":{"id":1000},"maxValues":{"id":1099},"nullCount":{"id":0}}"#;
    let near =
        r#"{"numRecords":71,"minValues":{"id":7},"maxValues":{"id":99},"nullCount":{"id":0}}"#;
    let null = r#"{"numRecords":71,"minValues":{},"maxValues":{},"nullCount":{"id":71}}"#;
    let empty = r#"{"numRecords":0}"#;
    vec![
        [INFO, &add_line("c", far)].join("\n"),
        [INFO, &add_line("c", near)].join("\n"),
        [INFO, &add_line("c", null), &add_line("d", empty)].join("\n"),
        [INFO, &add_line("c", far), REMOVE_A].join("\n"),
        [
            REMOVE_A,
            &add_line("c", near),
            r#"{"txn":{"appId":"x","version":1}}"#,
        ]
        .join("\n"),
    ]
}

#[derive(Debug, Clone)]
enum Damage {
    Replace(usize, u8),
    Insert(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize),
    Swap(usize, usize),
    Truncate(usize),
}

impl Damage {
    /// Places count from the entry's length on again.
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        let range = |place: usize, count: usize| {
            let start = place % length;
            start..(start + count).min(length)
        };
        match *self {
            Self::Replace(place, byte) => bytes[place % length] = byte,
            Self::Insert(place, byte) => bytes.insert(place % length, byte),
            Self::Cut(place, count) => drop(bytes.drain(range(place, count))),
            Self::Repeat(place, count) => {
                let range = range(place, count);
                let (end, piece) = (range.end, bytes[range].to_vec());
                bytes.splice(end..end, piece);
            }
            Self::Swap(one, other) => bytes.swap(one % length, other % length),
            Self::Truncate(place) => bytes.truncate(place % length),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = prop_oneof![
        3 => prop::sample::select(b"{}[]\",:0123456789-.eE\\ \n".to_vec()),
        1 => any::<u8>(),
    ];
    let place = any::<usize>();
    prop_oneof![
        3 => (place, byte.clone()).prop_map(|(place, byte)| Damage::Replace(place, byte)),
        2 => (place, byte).prop_map(|(place, byte)| Damage::Insert(place, byte)),
        2 => (place, 1..30_usize).prop_map(|(place, count)| Damage::Cut(place, count)),
        1 => (place, 1..60_usize).prop_map(|(place, count)| Damage::Repeat(place, count)),
        1 => (place, place).prop_map(|(one, other)| Damage::Swap(one, other)),
        1 => place.prop_map(Damage::Truncate),
    ]
}

/// Always the same cases: a test that fails now and then is no help here.
fn runner() -> TestRunner {
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]))
}

/// Whether `entry`, read plainly, does nothing that a DELETE of ids below 50 could mind.
fn is_harmless(entry: &str) -> Result<bool, serde_json::Error> {
    for line in entry.split('\n').filter(|line| !line.trim().is_empty()) {
        let Value::Object(actions) = serde_json::from_str(line)? else {
            return Ok(false);
        };
        for (name, action) in &actions {
            let harmless = match name.as_str() {
                "commitInfo" | "txn" => true,
                "remove" => action["path"] != "a" && action["path"] != "b",
                "add" => action["path"] != "a" && action["path"] != "b" && is_out_of_range(action)?,
                _ => action.is_null(),
            };
            if !harmless {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether the statistics say that no id below 50 is there.
fn is_out_of_range(add: &Value) -> Result<bool, serde_json::Error> {
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap_or("null"))?;
    let rows = &stats["numRecords"];
    let none = stats["nullCount"]["id"] == *rows;
    let above = stats["minValues"]["id"]
        .as_i64()
        .is_some_and(|min| min >= 50);
    Ok(above || rows.as_u64().is_some_and(|rows| none || rows == 0))
}

#[test]
fn damage_is_an_error_or_is_judged_by_what_is_left() {
    let entries = entries();
    let input = (
        prop::sample::select(entries),
        prop::collection::vec(damage(), 1..4),
    );
    let mut counts = [0_u32; 3];
    let counted = std::cell::RefCell::new(&mut counts);
    runner()
        .run(&input, |(entry, damages)| {
            let mut bytes = entry.into_bytes();
            damages.iter().for_each(|damage| damage.apply(&mut bytes));
            let text = String::from_utf8_lossy(&bytes);
            let kind = match judged(&bytes) {
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Unavailable);
                    prop_assert!(error.message().contains("version 5"), "{}", error);
                    0
                }
                Ok(verdict) if verdict.is_conflict() => 1,
                Ok(_) => {
                    let plain = is_harmless(&text);
                    prop_assert!(
                        matches!(plain, Ok(true)),
                        "{plain:?}: no conflict in\n{text}"
                    );
                    2
                }
            };
            counted.borrow_mut()[kind] += 1;
            Ok(())
        })
        .unwrap();
    assert!(counts.iter().all(|count| *count > CASES / 40), "{counts:?}");
}

#[test]
fn conflict_survives_whatever_is_cut_out() {
    // Of these numbers any parts put together prove no more than the whole.
    let near =
        r#"{"numRecords":77,"minValues":{"id":4},"maxValues":{"id":9},"nullCount":{"id":0}}"#;
    let above = r#"{"numRecords":77,"minValues":{"id":4},"nullCount":{"id":0}}"#;
    let entries = [
        [INFO, &add_line("c", near)].join("\n"),
        [INFO, &add_line("c", above), REMOVE_A].join("\n"),
        [REMOVE_A, &add_line("c", near)].join("\n"),
        [&add_line("c", near), INFO].join("\n"),
    ];
    // The names that say which file it is about: another name is another statement.
    let kept = |entry: &str| {
        let names = [r#""path":"c""#, r#""path":"a""#];
        names.map(|name| entry.contains(name))
    };
    let input = (
        prop::sample::select(entries.to_vec()),
        any::<usize>(),
        1..40_usize,
    );
    runner()
        .run(&input, |(entry, place, count)| {
            let mut bytes = entry.clone().into_bytes();
            Damage::Cut(place, count).apply(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            let whole_line_gone = text.lines().count() < entry.lines().count();
            if kept(&text) != kept(&entry) || whole_line_gone {
                return Ok(());
            }
            if let Ok(verdict) = judged(&bytes) {
                prop_assert!(verdict.is_conflict(), "no conflict in\n{text}");
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_truncation_of_an_entry_is_an_error_or_lacks_whole_lines() {
    for entry in entries() {
        for end in 0..entry.len() {
            let cut = &entry.as_bytes()[..end];
            let lines_are_whole =
                entry.as_bytes()[end] == b'\n' || cut.ends_with(b"\n") || end == 0;
            assert_eq!(judged(cut).is_ok(), lines_are_whole, "{}", &entry[..end]);
        }
    }
}

#[test]
fn statistics_nested_beyond_any_stack_keep_the_file() {
    let deep = 50_000;
    let nested = format!("{}1{}", r#"{"id":"#.repeat(deep), "}".repeat(deep));
    for stats in [
        format!(r#"{{"numRecords":0,"minValues":{nested}}}"#),
        format!(r#"{{"numRecords":0,"nullCount":{nested}}}"#),
        format!(r#"{{"numRecords":7,"minValues":{nested},"maxValues":{nested}}}"#),
        nested.clone(),
        "[".repeat(deep),
    ] {
        let verdict = judged(add_line("c", &stats).as_bytes()).unwrap();
        assert_eq!(kind(&verdict), Some(ConflictKind::ConcurrentAppend));
    }
}

#[test]
fn nesting_in_other_places_of_an_entry_is_harmless() {
    let deep = 50_000;
    let nested = format!("{}1{}", r#"{"a":"#.repeat(deep), "}".repeat(deep));
    let list = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let add = add_line("c", "{}");
    let cases = [
        format!(r#"{{"commitInfo":{nested}}}"#),
        format!(r#"{{"commitInfo":{{"operationParameters":{list}}}}}"#),
        format!(r#"{{"unheardOf":{nested}}}"#),
        format!(r#"{{"add":{nested}}}"#),
        format!(
            r#"{{"metaData":{{"id":"i","schemaString":{},"x":{list}}}}}"#,
            Value::from(nested.as_str())
        ),
        format!(r#"{{"protocol":{{"minReaderVersion":1,"minWriterVersion":2,"x":{list}}}}}"#),
        add.replace(r#""size":1"#, &format!(r#""size":1,"x":{nested}"#)),
        add.replace(
            r#""partitionValues":{}"#,
            &format!(r#""partitionValues":{{"p":{nested}}}"#),
        ),
        add.replace(r#""size":1"#, &format!(r#""size":1,"tags":{{"p":{list}}}"#)),
        nested.clone(),
        list.clone(),
    ];
    for entry in &cases {
        // Whatever the answer is, there is one.
        if let Err(error) = judged(entry.as_bytes()) {
            assert!(error.message().contains("version 5"), "{}", &entry[..40]);
        }
    }
}
