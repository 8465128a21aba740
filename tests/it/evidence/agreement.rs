//! `explain` says what the commit does, in every pair of statements of the SQL suite: the suite pins
//! what each pair ends in, and here the same question is asked without the statement that loses.

use std::collections::HashMap;
use std::path::Path;

use delta_disjoint::commit::{ConflictKind, Verdict};
use delta_disjoint::explain::{Question, explain};

use crate::support::Table;

/// One pair, as a file of `tests/slt/dml_pairs` has it.
#[derive(Debug)]
struct Pair {
    loser: String,
    winner: String,
    level: String,
    skipping: bool,
    expected: Option<ConflictKind>,
}

/// The pairs of one file.
fn pairs(text: &str) -> Vec<Pair> {
    let mut set = HashMap::new();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("let ") {
            let values = lines.next().and_then(|line| line.strip_prefix("SELECT "));
            let values = values.expect("values");
            match names {
                "loser" => set.insert("loser", values.trim_matches('\'').to_owned()),
                "level, skipping" => {
                    let (level, skipping) = values.split_once(", ").expect("two values");
                    set.insert("level", level.trim_matches('\'').to_owned());
                    set.insert("skipping", skipping.to_owned())
                }
                "winner, rows" => {
                    let (winner, _) = values.rsplit_once("', '").expect("two values");
                    set.insert("winner", winner.trim_start_matches('\'').to_owned())
                }
                other => panic!("{other}"),
            };
        }
        let expected = match line {
            "include commits.part" => None,
            "include concurrent_append.part" => Some(ConflictKind::ConcurrentAppend),
            "include concurrent_delete_read.part" => Some(ConflictKind::ConcurrentDeleteRead),
            other => {
                assert!(!other.starts_with("include"), "{other}");
                continue;
            }
        };
        found.push(Pair {
            loser: set["loser"].clone(),
            winner: set["winner"].clone(),
            level: set["level"].clone(),
            skipping: set["skipping"] == "true",
            expected,
        });
    }
    found
}

/// What the loser reads and removes; the rows 1 and 2 are in the first of the files.
fn question(pair: &Pair, version: u64, files: &[String]) -> Question {
    let question = Question {
        data_skipping: pair.skipping,
        ..Question::new(version)
    };
    let first = vec![files[0].clone()];
    let reads = |predicate: &str, removes: Vec<String>| Question {
        predicates: vec![predicate.to_owned()],
        removes,
        ..question.clone()
    };
    match pair.loser.as_str() {
        "DELETE FROM t WHERE id = 1" | "UPDATE t SET x = 1 WHERE id = 1" => reads("id = 1", first),
        "INSERT INTO t VALUES (5, 1)" => question,
        "INSERT INTO t SELECT id + 20, 1 FROM t WHERE id = 1" => reads("id = 1", vec![]),
        loser if loser.starts_with("MERGE INTO t USING (VALUES (1, 1))") => reads("id = 1", first),
        loser if loser.starts_with("MERGE INTO t USING (VALUES (5, 1))") => reads("id = 5", vec![]),
        "INSERT OVERWRITE t VALUES (9, 1)" | "TRUNCATE TABLE t" => Question {
            whole_table: true,
            removes: files.to_vec(),
            ..question
        },
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn explain_agrees_with_the_commit_in_every_pair_of_the_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt/dml_pairs");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|extension| extension == "slt") {
            all.extend(pairs(&std::fs::read_to_string(path).expect("file")));
        }
    }
    assert!(all.len() > 190, "{} pairs", all.len());
    // The table after a winner is the same for all losers.
    let mut after: HashMap<(String, String), (Table, u64, Vec<String>)> = HashMap::new();
    let mut starts: HashMap<String, Table> = HashMap::new();
    for pair in &all {
        let key = (pair.level.clone(), pair.winner.clone());
        if !after.contains_key(&key) {
            if !starts.contains_key(&pair.level) {
                let options = format!("OPTIONS ('delta.isolationLevel' '{}')", pair.level);
                let table = Table::create(
                    "id BIGINT, x BIGINT",
                    &options,
                    &["VALUES (1, 0), (2, 0)", "VALUES (11, 0), (12, 0)"],
                )
                .await;
                starts.insert(pair.level.clone(), table);
            }
            let table = starts[&pair.level].copy().await;
            let (version, files) = table.log();
            table.run(&pair.winner).await;
            after.insert(key.clone(), (table, version, files));
        }
        let (table, version, files) = &after[&key];
        let verdict = explain(&table.handle(), &question(pair, *version, files)).await;
        let verdict: Verdict = verdict.expect("a verdict");
        let kind = verdict.first_conflict().map(|conflict| conflict.kind);
        assert_eq!(kind, pair.expected, "{pair:?}\n{}", verdict.to_text());
        super::reasons::check_json(&verdict);
    }
}

/// The reads that `explain` makes of a predicate are those of a statement, and so is the outcome.
#[tokio::test]
async fn predicates_are_widened_as_in_a_scan() {
    let conditions = [
        "id < 50",
        "id BETWEEN 40 AND 60 AND x <> 3",
        "x % 2 = 1",
        "id < 50 OR x > 2000",
        "NOT (id >= 50)",
        "CAST(id AS VARCHAR) = '7'",
        "id IN (1, 2, 3, 4, 5, 6)",
        "coalesce(x, 1) = 1",
        "id < 10 + 40",
        "x IS NULL",
    ];
    let start = Table::numbers(2, 100, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    for (first, last) in [(30, 45), (1000, 1010), (2001, 2003)] {
        for condition in conditions {
            let table = start.copy().await;
            let version = table.log().0;
            let statement = format!("INSERT INTO t SELECT id + 9000, x FROM t WHERE {condition}");
            let planned = table.plan(&statement).await;
            table
                .run(&format!(
                    "INSERT INTO t SELECT value AS id, value AS x FROM generate_series({first}, {last})"
                ))
                .await;
            let question = Question {
                predicates: vec![condition.to_owned()],
                ..Question::new(version)
            };
            let verdict = explain(&table.handle(), &question).await.expect("verdict");
            let rows = table
                .rows(&format!(
                    "SELECT count(*) FROM t WHERE id < 200 AND x < 200 AND ({condition})"
                ))
                .await;
            let outcome = planned.run().await;
            // What inserts nothing commits whatever happened.
            if outcome.is_ok() && rows == ["0"] {
                continue;
            }
            assert_eq!(
                verdict.is_conflict(),
                outcome.is_err(),
                "{condition}, {first} to {last}: {}",
                verdict.to_text()
            );
            if let Err(error) = outcome {
                let found = Verdict::find(&error).expect("a verdict");
                assert_eq!(found.conflicts, verdict.conflicts, "{condition}");
            }
        }
    }
}
