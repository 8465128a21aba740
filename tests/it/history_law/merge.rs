//! MERGE: as SQL text, and as what it does to a whole table in memory, pair by pair.

use super::condition::{COLUMNS, Condition, Expr, Row, Rows};
use super::statements::Source;

/// `MERGE INTO t USING (source) AS s (a, b, p)`.
#[derive(Debug, Clone)]
pub struct Merge {
    pub source: Source,
    /// The column that is the same in both rows of a pair.
    pub key: usize,
    /// What else must hold of the table's row.
    pub only: Option<Condition>,
    pub matched: Vec<Clause>,
    /// The condition on the source's row under which it is inserted.
    pub not_matched: Option<Option<Condition>>,
    pub by_source: Option<Clause>,
}

#[derive(Debug, Clone)]
pub struct Clause {
    pub condition: Option<(Side, Condition)>,
    pub action: Action,
}

#[derive(Debug, Clone)]
pub enum Action {
    /// The column gets a value of a row of this side.
    Update(usize, Side, Expr),
    Delete,
}

/// Whose row is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Table,
    Source,
}

impl Side {
    fn alias(self) -> &'static str {
        match self {
            Self::Table => "t",
            Self::Source => "s",
        }
    }

    fn of<'a>(self, row: &'a Row, source: &'a Row) -> &'a Row {
        match self {
            Self::Table => row,
            Self::Source => source,
        }
    }
}

impl Merge {
    pub fn text(&self) -> String {
        let key = COLUMNS[self.key];
        let mut text = format!(
            "MERGE INTO t USING ({}) AS s (a, b, p) ON t.{key} = s.{key}",
            self.source.text()
        );
        if let Some(only) = &self.only {
            text += &format!(" AND ({})", only.text("t"));
        }
        for clause in &self.matched {
            text += &format!(" WHEN MATCHED{}", clause.text());
        }
        if let Some(condition) = &self.not_matched {
            text += " WHEN NOT MATCHED";
            if let Some(condition) = condition {
                text += &format!(" AND {}", condition.text("s"));
            }
            text += " THEN INSERT VALUES (s.a, s.b, s.p)";
        }
        if let Some(clause) = &self.by_source {
            text += &format!(" WHEN NOT MATCHED BY SOURCE{}", clause.text());
        }
        text
    }

    /// As [`super::statements::Work::alone`].
    pub fn alone(&self, table: &Rows) -> Option<(Rows, u64)> {
        let source = self.source.rows(table);
        let mut count = 0;
        let mut new = Rows::new();
        for row in table {
            let mut partners = source
                .iter()
                .filter(|source| self.is_pair(row, source, table))
                .peekable();
            let hits: Vec<(&Row, &Action)> = if partners.peek().is_some() {
                partners
                    .filter_map(|source| {
                        let mut clauses = self.matched.iter();
                        let clause = clauses.find(|clause| clause.applies(row, source, table))?;
                        Some((source, &clause.action))
                    })
                    .collect()
            } else {
                // Its clause speaks of the table's row alone.
                let clause = self.by_source.iter();
                clause
                    .filter(|clause| clause.applies(row, row, table))
                    .map(|clause| (row, &clause.action))
                    .collect()
            };
            if hits.len() > 1 && !self.is_lone_delete() {
                return None;
            }
            match hits.first() {
                None => new.push(*row),
                Some((source, action)) => {
                    count += 1;
                    if let Action::Update(column, side, value) = action {
                        let mut changed = *row;
                        changed[*column] = value.value(side.of(row, source), table);
                        new.push(changed);
                    }
                }
            }
        }
        if let Some(condition) = &self.not_matched {
            for row in &source {
                let is_matched = table.iter().any(|other| self.is_pair(other, row, table));
                let is_meant = condition
                    .as_ref()
                    .is_none_or(|condition| condition.holds(row, table) == Some(true));
                if !is_matched && is_meant {
                    count += 1;
                    new.push(*row);
                }
            }
        }
        Some((new, count))
    }

    fn is_pair(&self, row: &Row, source: &Row, table: &Rows) -> bool {
        let is_meant = self
            .only
            .as_ref()
            .is_none_or(|only| only.holds(row, table) == Some(true));
        // NULL is the same as nothing.
        is_meant && row[self.key].is_some() && row[self.key] == source[self.key]
    }

    /// A row that goes whatever its partner says goes once.
    fn is_lone_delete(&self) -> bool {
        matches!(
            self.matched.as_slice(),
            [Clause {
                condition: None,
                action: Action::Delete
            }]
        )
    }
}

impl Clause {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some((side, condition)) = &self.condition {
            text += &format!(" AND {}", condition.text(side.alias()));
        }
        match &self.action {
            Action::Update(column, side, value) => {
                let value = value.text(side.alias());
                text + &format!(" THEN UPDATE SET {} = {value}", COLUMNS[*column])
            }
            Action::Delete => text + " THEN DELETE",
        }
    }

    fn applies(&self, row: &Row, source: &Row, table: &Rows) -> bool {
        self.condition.as_ref().is_none_or(|(side, condition)| {
            condition.holds(side.of(row, source), table) == Some(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::condition::Op;
    use super::*;

    const fn row(a: i64, b: i64) -> Row {
        [Some(a), Some(b), None]
    }

    #[test]
    fn merge_is_evaluated_pair_by_pair() {
        let table = vec![row(1, 1), row(2, 2), [None, Some(3), None]];
        let update = Clause {
            condition: None,
            action: Action::Update(1, Side::Source, Expr::Column(1)),
        };
        let below = |b| (Side::Source, Condition::Compare(1, Op::Less, b));
        let delete = |condition| Clause {
            condition,
            action: Action::Delete,
        };
        let twice = vec![row(2, 7), row(2, 8)];
        type Case = (Vec<Row>, Vec<Clause>, bool, Option<Clause>);
        let cases: Vec<(Case, Option<(Rows, u64)>)> = vec![
            // NULL matches nothing, and what matches nothing is inserted.
            (
                (
                    vec![row(1, 9), [None, None, None]],
                    vec![update.clone()],
                    true,
                    None,
                ),
                Some((
                    vec![
                        row(1, 9),
                        row(2, 2),
                        [None, Some(3), None],
                        [None, None, None],
                    ],
                    2,
                )),
            ),
            ((twice.clone(), vec![update.clone()], false, None), None),
            (
                (twice.clone(), vec![delete(None)], false, None),
                Some((vec![row(1, 1), [None, Some(3), None]], 1)),
            ),
            // Only one of the pairs does anything.
            (
                (twice.clone(), vec![delete(Some(below(8)))], false, None),
                Some((vec![row(1, 1), [None, Some(3), None]], 1)),
            ),
            ((twice, vec![delete(Some(below(9)))], false, None), None),
            (
                (vec![row(1, 0)], vec![], false, Some(delete(None))),
                Some((vec![row(1, 1)], 2)),
            ),
        ];
        for ((source, matched, inserts, by_source), expected) in cases {
            let merge = Merge {
                source: Source::Values(source),
                key: 0,
                only: None,
                matched,
                not_matched: inserts.then_some(None),
                by_source,
            };
            assert_eq!(merge.alone(&table), expected, "{}", merge.text());
        }
    }
}
