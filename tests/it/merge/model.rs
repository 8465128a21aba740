//! A MERGE as data: its SQL, and its result by a plain loop over all pairs of rows.

use datafusion::prelude::DataFrame;
use deltalake::operations::merge::{DeleteBuilder, MergeBuilder, UpdateBuilder};
use deltalake::{DeltaResult, DeltaTable};

/// A small generator of numbers, the same for each seed everywhere.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one_in(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    fn number(&mut self) -> Option<i64> {
        if self.one_in(8) {
            None
        } else {
            Some(self.below(9) as i64)
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: Option<i64>,
    pub x: Option<i64>,
    pub s: Option<String>,
}

impl Row {
    fn random(rng: &mut Rng, text: &str) -> Self {
        Self {
            id: rng.number(),
            x: rng.number(),
            s: (!rng.one_in(6)).then(|| text.to_owned()),
        }
    }

    pub fn literal(&self) -> String {
        let text = self
            .s
            .as_ref()
            .map_or("NULL".to_owned(), |s| format!("'{s}'"));
        format!("({}, {}, {text})", number(self.id), number(self.x))
    }

    fn shown(&self) -> String {
        let text = self.s.clone().unwrap_or_else(|| "NULL".to_owned());
        format!("{}|{}|{text}", number(self.id), number(self.x))
    }
}

fn number(value: Option<i64>) -> String {
    value.map_or("NULL".to_owned(), |value| value.to_string())
}

#[derive(Debug, Clone, Copy)]
enum Term {
    Target(char),
    Source(char),
    Number(i64),
}

impl Term {
    fn sql(self) -> String {
        match self {
            Self::Target(column) => format!("t.{column}").replace("t.i", "t.id"),
            Self::Source(column) => format!("s.{column}").replace("s.i", "s.id"),
            Self::Number(number) => number.to_string(),
        }
    }

    fn value(self, pair: Pair<'_>) -> Option<i64> {
        let column = |row: Option<&Row>, column| match column {
            'i' => row?.id,
            _ => row?.x,
        };
        match self {
            Self::Target(name) => column(pair.0, name),
            Self::Source(name) => column(pair.1, name),
            Self::Number(number) => Some(number),
        }
    }
}

type Pair<'a> = (Option<&'a Row>, Option<&'a Row>);

#[derive(Debug, Clone)]
enum Condition {
    Compare(Term, &'static str, Term),
    IsNull(Term),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn sql(&self) -> String {
        match self {
            Self::Compare(a, op, b) => format!("{} {op} {}", a.sql(), b.sql()),
            Self::IsNull(a) => format!("{} IS NULL", a.sql()),
            Self::And(a, b) => format!("({}) AND ({})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({}) OR ({})", a.sql(), b.sql()),
        }
    }

    /// In three-valued logic.
    fn holds(&self, pair: Pair<'_>) -> Option<bool> {
        match self {
            Self::Compare(a, op, b) => {
                let (a, b) = (a.value(pair), b.value(pair));
                if *op == "IS NOT DISTINCT FROM" {
                    return Some(a == b);
                }
                let (a, b) = (a?, b?);
                Some(match *op {
                    "=" => a == b,
                    "<" => a < b,
                    ">" => a > b,
                    _ => a != b,
                })
            }
            Self::IsNull(a) => Some(a.value(pair).is_none()),
            Self::And(a, b) => match (a.holds(pair), b.holds(pair)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.holds(pair), b.holds(pair)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }

    fn random(rng: &mut Rng, target: bool, source: bool) -> Self {
        let term = |rng: &mut Rng| {
            let column = if rng.one_in(2) { 'i' } else { 'x' };
            match (target, source) {
                (true, true) if rng.one_in(2) => Term::Target(column),
                (true, false) => Term::Target(column),
                _ => Term::Source(column),
            }
        };
        let left = term(rng);
        let leaf = if rng.one_in(6) {
            Self::IsNull(left)
        } else {
            let right = if rng.one_in(3) {
                term(rng)
            } else {
                Term::Number(rng.below(9) as i64)
            };
            let op = ["=", "<", ">", "<>"][rng.below(4) as usize];
            Self::Compare(left, op, right)
        };
        match rng.below(5) {
            0 => Self::And(Box::new(leaf), Box::new(Self::random(rng, target, source))),
            1 => Self::Or(Box::new(leaf), Box::new(Self::random(rng, target, source))),
            _ => leaf,
        }
    }

    fn random_on(rng: &mut Rng) -> Self {
        let key = Self::Compare(Term::Target('i'), "=", Term::Source('i'));
        let and = |a, b| Self::And(Box::new(a), Box::new(b));
        match rng.below(10) {
            0..=3 => key,
            4 => and(key, Self::random(rng, true, false)),
            5 => and(key, Self::random(rng, false, true)),
            6 => and(
                key,
                Self::Compare(Term::Source('x'), "=", Term::Target('x')),
            ),
            7 => and(key, Self::random(rng, true, true)),
            8 => Self::Compare(Term::Target('i'), "IS NOT DISTINCT FROM", Term::Source('i')),
            _ => Self::random(rng, true, true),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Matched,
    NotMatched,
    NotMatchedBySource,
}

#[derive(Debug, Clone)]
enum Action {
    /// `x` and, maybe, `s` get new values.
    Update(Term, bool),
    Delete,
    /// All columns, or the first two.
    Insert(bool),
}

#[derive(Debug, Clone)]
struct Clause {
    kind: Kind,
    condition: Option<Condition>,
    action: Action,
}

impl Clause {
    fn random(rng: &mut Rng) -> Self {
        let kind =
            [Kind::Matched, Kind::NotMatched, Kind::NotMatchedBySource][rng.below(3) as usize];
        let (target, source) = (kind != Kind::NotMatched, kind != Kind::NotMatchedBySource);
        let condition = (!rng.one_in(3)).then(|| Condition::random(rng, target, source));
        let action = match kind {
            Kind::NotMatched => Action::Insert(rng.one_in(2)),
            _ if rng.one_in(3) => Action::Delete,
            Kind::Matched if rng.one_in(2) => Action::Update(Term::Source('x'), rng.one_in(2)),
            _ => Action::Update(Term::Target('i'), rng.one_in(2)),
        };
        Self {
            kind,
            condition,
            action,
        }
    }

    fn sql(&self) -> String {
        let when = match self.kind {
            Kind::Matched => "MATCHED",
            Kind::NotMatched => "NOT MATCHED",
            Kind::NotMatchedBySource => "NOT MATCHED BY SOURCE",
        };
        let condition = match &self.condition {
            Some(condition) => format!(" AND ({})", condition.sql()),
            None => String::new(),
        };
        let action = match &self.action {
            Action::Update(value, true) => format!("UPDATE SET s = 'u', x = {}", value.sql()),
            Action::Update(value, false) => format!("UPDATE SET t.x = {}", value.sql()),
            Action::Delete => "DELETE".to_owned(),
            Action::Insert(true) => "INSERT VALUES (s.id, s.x, s.s)".to_owned(),
            Action::Insert(false) => "INSERT (x, id) VALUES (s.x, s.id)".to_owned(),
        };
        format!("WHEN {when}{condition} THEN {action}")
    }
}

/// One MERGE and the rows that it finds.
#[derive(Debug, Clone)]
pub struct Case {
    pub files: Vec<Vec<Row>>,
    pub source: Vec<Row>,
    on: Condition,
    clauses: Vec<Clause>,
}

#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The rows in order as text, and how many were changed.
    Rows(Vec<String>, u64),
    /// A row of the table would be changed by two of the source.
    ChangedTwice,
}

impl Case {
    pub fn random_files(rng: &mut Rng) -> Vec<Vec<Row>> {
        (0..1 + rng.below(3))
            .map(|_| {
                (0..1 + rng.below(5))
                    .map(|_| Row::random(rng, "t"))
                    .collect()
            })
            .collect()
    }

    pub fn random(rng: &mut Rng, files: Vec<Vec<Row>>) -> Self {
        Self {
            files,
            source: (0..rng.below(5)).map(|_| Row::random(rng, "s")).collect(),
            on: Condition::random_on(rng),
            clauses: (0..1 + rng.below(4)).map(|_| Clause::random(rng)).collect(),
        }
    }

    /// What stands behind USING, without the alias.
    pub fn source_sql(&self) -> String {
        let rows: Vec<String> = self.source.iter().map(Row::literal).collect();
        if rows.is_empty() {
            return "(SELECT CAST(1 AS BIGINT) AS id, CAST(1 AS BIGINT) AS x, 'a' AS s WHERE false)"
                .to_owned();
        }
        // A row with all types first, which is then left out: VALUES of NULLs alone have none.
        format!(
            "(SELECT * FROM (VALUES (CAST(-1 AS BIGINT), CAST(-1 AS BIGINT), 'a'), {}) \
             AS v (id, x, s) WHERE s IS DISTINCT FROM 'a')",
            rows.join(", ")
        )
    }

    pub fn sql(&self) -> String {
        let clauses: Vec<String> = self.clauses.iter().map(Clause::sql).collect();
        format!(
            "MERGE INTO t USING {} AS s ON {} {}",
            self.source_sql(),
            self.on.sql(),
            clauses.join(" ")
        )
    }

    /// The same statement for deltalake's builder, with `source` as [`Case::source_sql`] has it.
    pub fn builder(&self, table: DeltaTable, source: DataFrame) -> DeltaResult<MergeBuilder> {
        let mut builder = table
            .merge(source, self.on.sql())
            .with_source_alias("s")
            .with_target_alias("t");
        for clause in &self.clauses {
            let condition = clause.condition.as_ref().map(Condition::sql);
            builder = match (&clause.action, clause.kind) {
                (Action::Insert(all), _) => builder.when_not_matched_insert(|insert| {
                    let insert = insert.set("id", "s.id").set("x", "s.x");
                    let insert = if *all { insert.set("s", "s.s") } else { insert };
                    match condition {
                        Some(condition) => insert.predicate(condition),
                        None => insert,
                    }
                })?,
                (Action::Update(value, text), kind) => {
                    let update = |update: UpdateBuilder| {
                        let update = update.update("x", value.sql());
                        let update = if *text {
                            update.update("s", "'u'")
                        } else {
                            update
                        };
                        match condition {
                            Some(condition) => update.predicate(condition),
                            None => update,
                        }
                    };
                    if kind == Kind::Matched {
                        builder.when_matched_update(update)?
                    } else {
                        builder.when_not_matched_by_source_update(update)?
                    }
                }
                (Action::Delete, kind) => {
                    let delete = |delete: DeleteBuilder| match condition {
                        Some(condition) => delete.predicate(condition),
                        None => delete,
                    };
                    if kind == Kind::Matched {
                        builder.when_matched_delete(delete)?
                    } else {
                        builder.when_not_matched_by_source_delete(delete)?
                    }
                }
            };
        }
        Ok(builder)
    }

    fn clause(&self, kind: Kind, pair: Pair<'_>) -> Option<&Clause> {
        self.clauses.iter().find(|clause| {
            clause.kind == kind
                && clause
                    .condition
                    .as_ref()
                    .is_none_or(|condition| condition.holds(pair) == Some(true))
        })
    }

    pub fn evaluate(&self) -> Outcome {
        let mut rows = Vec::new();
        let mut changed = 0;
        let lone_delete = {
            let mut matched = self.clauses.iter().filter(|c| c.kind == Kind::Matched);
            matches!(
                (matched.next(), matched.next()),
                (
                    Some(Clause {
                        condition: None,
                        action: Action::Delete,
                        ..
                    }),
                    None
                )
            )
        };
        for target in self.files.iter().flatten() {
            let partners: Vec<&Row> = self
                .source
                .iter()
                .filter(|source| self.on.holds((Some(target), Some(source))) == Some(true))
                .collect();
            let mut applied: Vec<(&Clause, Pair<'_>)> = partners
                .iter()
                .filter_map(|source| {
                    let pair = (Some(target), Some(*source));
                    Some((self.clause(Kind::Matched, pair)?, pair))
                })
                .collect();
            if partners.is_empty() {
                let pair = (Some(target), None);
                applied.extend(
                    self.clause(Kind::NotMatchedBySource, pair)
                        .map(|clause| (clause, pair)),
                );
            }
            if applied.len() > 1 && !lone_delete {
                return Outcome::ChangedTwice;
            }
            match applied.first() {
                None => rows.push(target.clone()),
                Some((clause, pair)) => {
                    changed += 1;
                    if let Action::Update(value, text) = &clause.action {
                        let mut row = target.clone();
                        row.x = value.value(*pair);
                        if *text {
                            row.s = Some("u".to_owned());
                        }
                        rows.push(row);
                    }
                }
            }
        }
        for source in &self.source {
            let matched = self
                .files
                .iter()
                .flatten()
                .any(|target| self.on.holds((Some(target), Some(source))) == Some(true));
            let pair = (None, Some(source));
            if !matched && let Some(clause) = self.clause(Kind::NotMatched, pair) {
                changed += 1;
                rows.push(match clause.action {
                    Action::Insert(true) => source.clone(),
                    _ => Row {
                        s: None,
                        ..source.clone()
                    },
                });
            }
        }
        // NULLs last, as ORDER BY has them.
        rows.sort_by_key(|row| {
            (
                row.id.is_none(),
                row.id,
                row.x.is_none(),
                row.x,
                row.s.is_none(),
                row.s.clone(),
            )
        });
        Outcome::Rows(rows.iter().map(Row::shown).collect(), changed)
    }
}
