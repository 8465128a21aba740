//! Random statements and transactions: the feed of each version is what a model says that became of
//! each row, and folded over the start table it gives the table as it is.

use std::fmt::Write;

use super::reader::Change;
use super::{Shape, changes_since};

const SEEDS: [(Shape, u64); 5] = [
    (Shape::Plain, 3),
    (Shape::Partitioned, 17),
    (Shape::Mapped, 404),
    (Shape::MappedAndPartitioned, 1_009),
    (Shape::Vectors, 86_028_121),
];
const COMMITS: usize = 5;

/// Id, number, partition.
type Values = (i64, Option<i64>, Option<&'static str>);

/// A row and what it was when the transaction began.
#[derive(Debug, Clone)]
struct Row {
    before: Option<Values>,
    now: Values,
    changed: bool,
}

#[derive(Debug, Default)]
struct Model {
    rows: Vec<Row>,
    gone: Vec<Values>,
    next_id: i64,
}

/// Xorshift, so that a seed means the same everywhere.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn partition(&mut self) -> Option<&'static str> {
        [Some("a"), Some("b"), Some("cd"), None][self.below(4) as usize]
    }

    fn number(&mut self) -> Option<i64> {
        match self.below(6) {
            0 => None,
            number => Some(number as i64 * 10),
        }
    }
}

impl Model {
    /// Drops or keeps rows and notes those of before that go.
    fn delete(&mut self, condition: impl Fn(&Values) -> bool) {
        for row in std::mem::take(&mut self.rows) {
            if !condition(&row.now) {
                self.rows.push(row);
            } else if let Some(before) = row.before {
                self.gone.push(before);
            }
        }
    }

    fn update(&mut self, condition: impl Fn(&Values) -> bool, change: impl Fn(&mut Values)) {
        for row in self.rows.iter_mut().filter(|row| condition(&row.now)) {
            change(&mut row.now);
            row.changed = true;
        }
    }

    fn insert(&mut self, now: Values) {
        self.rows.push(Row {
            before: None,
            now,
            changed: false,
        });
    }

    /// A statement, done to the model.
    fn step(&mut self, rng: &mut Rng) -> String {
        let (modulus, rest) = (2 + rng.below(3) as i64, rng.below(2) as i64);
        let chosen = move |row: &Values| row.0 % modulus == rest;
        match rng.below(9) {
            0 | 1 => {
                let mut text = "INSERT INTO t VALUES ".to_owned();
                for index in 0..1 + rng.below(4) {
                    let row = (self.next_id, rng.number(), rng.partition());
                    self.next_id += 1;
                    let comma = if index == 0 { "" } else { ", " };
                    write!(
                        text,
                        "{comma}({}, {}, {})",
                        row.0,
                        number(row.1),
                        partition(row.2)
                    )
                    .expect("text");
                    self.insert(row);
                }
                text
            }
            2 => {
                self.update(chosen, |row| row.1 = row.1.map(|x| x + 1));
                format!("UPDATE t SET x = x + 1 WHERE id % {modulus} = {rest}")
            }
            3 => {
                let to = rng.partition();
                self.update(chosen, |row| row.2 = to);
                format!(
                    "UPDATE t SET p = {} WHERE id % {modulus} = {rest}",
                    partition(to)
                )
            }
            4 => {
                let of = rng.partition();
                // NULL equals nothing.
                self.update(|row| of.is_some() && row.2 == of, |row| row.1 = None);
                format!("UPDATE t SET x = NULL WHERE p = {}", partition(of))
            }
            5 => {
                let modulus = modulus + 3;
                self.delete(move |row| row.0 % modulus == rest);
                format!("DELETE FROM t WHERE id % {modulus} = {rest}")
            }
            6 => {
                self.delete(|row| row.2.is_none());
                "DELETE FROM t WHERE p IS NULL".to_owned()
            }
            7 if rng.below(3) == 0 => {
                // Rows that come are new rows, equal or not.
                let stay: Vec<Values> = self.rows.iter().map(|row| row.now).collect();
                self.delete(|_| true);
                for row in stay.into_iter().filter(chosen) {
                    self.insert(row);
                }
                format!("INSERT OVERWRITE t SELECT id, x, p FROM t WHERE id % {modulus} = {rest}")
            }
            _ => self.merge(rng),
        }
    }

    fn merge(&mut self, rng: &mut Rng) -> String {
        let first = rng.below(self.next_id as u64 + 1) as i64;
        let last = first + 1 + rng.below(5) as i64;
        let source = |id: i64| (first..=last).contains(&id);
        let is_there: Vec<i64> = self.rows.iter().map(|row| row.now.0).collect();
        self.delete(|row| source(row.0) && row.0 % 3 == 0);
        self.update(|row| source(row.0), |row| row.1 = Some(row.0 * 100));
        for id in (first..=last).filter(|id| !is_there.contains(id)) {
            self.insert((id, Some(-id), Some("a")));
        }
        self.next_id = self.next_id.max(last + 1);
        format!(
            "MERGE INTO t USING (SELECT value AS id FROM generate_series({first}, {last})) AS s \
             ON t.id = s.id \
             WHEN MATCHED AND t.id % 3 = 0 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET x = s.id * 100 \
             WHEN NOT MATCHED THEN INSERT (id, x, p) VALUES (s.id, -s.id, 'a')"
        )
    }

    /// The changes since the last commit, which is `version` now.
    fn commit(&mut self, version: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add =
            |kind: &str, row: &Values| changes.push((version, kind.to_owned(), text(row)));
        for row in &mut self.rows {
            match row.before {
                None => add("insert", &row.now),
                Some(before) if row.changed => {
                    add("update_preimage", &before);
                    add("update_postimage", &row.now);
                }
                Some(_) => {}
            }
            row.before = Some(row.now);
            row.changed = false;
        }
        for row in std::mem::take(&mut self.gone) {
            add("delete", &row);
        }
        changes.sort();
        changes
    }

    fn texts(&self) -> Vec<String> {
        let mut rows: Vec<String> = self.rows.iter().map(|row| text(&row.now)).collect();
        rows.sort();
        rows
    }
}

fn number(number: Option<i64>) -> String {
    number.map_or("NULL".to_owned(), |number| number.to_string())
}

fn partition(value: Option<&str>) -> String {
    value.map_or("NULL".to_owned(), |value| format!("'{value}'"))
}

fn text(row: &Values) -> String {
    format!("{}|{}|{}", row.0, number(row.1), row.2.unwrap_or("NULL"))
}

#[tokio::test]
async fn random_changes_leave_the_feed_of_the_model() {
    for (shape, seed) in SEEDS {
        check(shape, seed).await;
    }
}

async fn check(shape: Shape, seed: u64) {
    let mut rng = Rng(seed);
    let table = shape.table().await;
    let mut model = Model {
        next_id: 7,
        ..Model::default()
    };
    for row in [
        (1, Some(10), Some("a")),
        (2, Some(20), Some("a")),
        (3, None, Some("b")),
        (4, Some(40), None),
        (5, Some(50), Some("a")),
        (6, Some(60), Some("b")),
    ] {
        model.insert(row);
    }
    let mut version = table.log().0;
    model.commit(version);
    let mut folded = model.texts();
    let mut history = String::new();
    for _ in 0..COMMITS {
        let statements = match rng.below(2) {
            0 => 1,
            _ => 2 + rng.below(4),
        };
        if statements > 1 {
            table.run("BEGIN").await;
        }
        for _ in 0..statements {
            let statement = model.step(&mut rng);
            write!(history, "\n  {statement}").expect("text");
            table.run(&statement).await;
        }
        if statements > 1 {
            table.run("COMMIT").await;
        }
        let newest = table.log().0;
        let expected = model.commit(newest);
        history.push_str("\n  --");
        let place = format!("{shape:?}, seed {seed}: {history}");
        let found = changes_since(&table, shape, version).await;
        assert_eq!(found, expected, "{place}");
        fold(&mut folded, &found, &place);
        let mut rows = table.rows("SELECT * FROM t").await;
        rows.sort();
        assert_eq!(rows, model.texts(), "{place}");
        assert_eq!(rows, folded, "{place}");
        version = newest;
    }
}

/// Applies `changes` to `rows`, which stay in order.
fn fold(rows: &mut Vec<String>, changes: &[Change], place: &str) {
    for (_, kind, row) in changes {
        if kind == "delete" || kind == "update_preimage" {
            let at = rows.iter().position(|other| other == row);
            rows.swap_remove(at.unwrap_or_else(|| panic!("{row} is not there: {place}")));
        }
    }
    for (_, kind, row) in changes {
        if kind == "insert" || kind == "update_postimage" {
            rows.push(row.clone());
        }
    }
    rows.sort();
}
