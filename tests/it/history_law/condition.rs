//! Conditions and values over one table of three numbers: as SQL text, and as what they mean.
//!
//! The meaning is written from the SQL standard's three-valued logic over whole tables in memory. It
//! knows no files, no statistics and nothing of DataFusion, so that it can judge.

/// A number or NULL.
pub type Value = Option<i64>;

/// `a`, `b` and `p`.
pub type Row = [Value; 3];

/// A table: a multiset, in any order.
pub type Rows = Vec<Row>;

/// Names of the columns, by position in a [`Row`].
pub const COLUMNS: [&str; 3] = ["a", "b", "p"];

/// A comparison.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    Eq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
    Distinct,
}

/// A condition on one row; the columns are positions.
#[derive(Debug, Clone)]
pub enum Condition {
    Compare(usize, Op, i64),
    Between(usize, i64, i64),
    In(usize, Vec<Value>),
    IsNull(usize),
    Columns(usize, Op, usize),
    /// The column is among those of the table's rows for which the condition holds.
    InTable(usize, usize, Box<Condition>),
    /// There is a row for which the condition holds and, if asked for, whose column (second)
    /// equals one of this row (first).
    Exists(Option<(usize, usize)>, Box<Condition>),
    /// The column against a number taken from the table.
    Against(usize, Op, Aggregate),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

/// A number taken from the rows for which the condition holds.
#[derive(Debug, Clone)]
pub struct Aggregate {
    pub function: Function,
    pub column: usize,
    pub condition: Box<Condition>,
}

#[derive(Debug, Clone, Copy)]
pub enum Function {
    Max,
    Min,
    Count,
}

/// A value computed for one row.
#[derive(Debug, Clone)]
pub enum Expr {
    Literal(Value),
    Column(usize),
    Plus(usize, i64),
    /// From the whole table, with something added.
    Taken(Aggregate, i64),
}

impl Op {
    fn text(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Less => "<",
            Self::LessEq => "<=",
            Self::Greater => ">",
            Self::GreaterEq => ">=",
            Self::Distinct => "IS DISTINCT FROM",
        }
    }

    fn holds(self, left: Value, right: Value) -> Option<bool> {
        if matches!(self, Self::Distinct) {
            return Some(left != right);
        }
        let (left, right) = (left?, right?);
        Some(match self {
            Self::Eq => left == right,
            Self::NotEq | Self::Distinct => left != right,
            Self::Less => left < right,
            Self::LessEq => left <= right,
            Self::Greater => left > right,
            Self::GreaterEq => left >= right,
        })
    }
}

impl Condition {
    /// SQL text; the row is one of `alias`.
    pub fn text(&self, alias: &str) -> String {
        let name = |column: &usize| format!("{alias}.{}", COLUMNS[*column]);
        match self {
            Self::Compare(column, op, value) => format!("{} {} {value}", name(column), op.text()),
            Self::Between(column, low, high) => {
                format!("{} BETWEEN {low} AND {high}", name(column))
            }
            Self::In(column, values) => {
                let values: Vec<String> = values.iter().map(|value| literal(*value)).collect();
                format!("{} IN ({})", name(column), values.join(", "))
            }
            Self::IsNull(column) => format!("{} IS NULL", name(column)),
            Self::Columns(left, op, right) => {
                format!("{} {} {}", name(left), op.text(), name(right))
            }
            Self::InTable(column, of, condition) => format!(
                "{} IN (SELECT o.{} FROM t AS o WHERE {})",
                name(column),
                COLUMNS[*of],
                condition.text("o")
            ),
            Self::Exists(link, condition) => {
                let link = link.map_or(String::new(), |(mine, theirs)| {
                    format!("o.{} = {} AND ", COLUMNS[theirs], name(&mine))
                });
                format!(
                    "EXISTS (SELECT 1 FROM t AS o WHERE {link}({}))",
                    condition.text("o")
                )
            }
            Self::Against(column, op, aggregate) => {
                format!("{} {} {}", name(column), op.text(), aggregate.text())
            }
            Self::And(left, right) => format!("({}) AND ({})", left.text(alias), right.text(alias)),
            Self::Or(left, right) => format!("({}) OR ({})", left.text(alias), right.text(alias)),
            Self::Not(inner) => format!("NOT ({})", inner.text(alias)),
        }
    }

    /// Whether it is true, false or unknown for `row` of `table`.
    pub fn holds(&self, row: &Row, table: &Rows) -> Option<bool> {
        match self {
            Self::Compare(column, op, value) => op.holds(row[*column], Some(*value)),
            Self::Between(column, low, high) => and(
                Op::GreaterEq.holds(row[*column], Some(*low)),
                Op::LessEq.holds(row[*column], Some(*high)),
            ),
            Self::In(column, values) => is_in(row[*column], values),
            Self::IsNull(column) => Some(row[*column].is_none()),
            Self::Columns(left, op, right) => op.holds(row[*left], row[*right]),
            Self::InTable(column, of, condition) => {
                let values: Vec<Value> = matching(table, condition).map(|row| row[*of]).collect();
                is_in(row[*column], &values)
            }
            Self::Exists(link, condition) => {
                let linked = |other: &Row| match link {
                    Some((mine, theirs)) => Op::Eq.holds(row[*mine], other[*theirs]) == Some(true),
                    None => true,
                };
                Some(matching(table, condition).any(linked))
            }
            Self::Against(column, op, aggregate) => op.holds(row[*column], aggregate.of(table)),
            Self::And(left, right) => and(left.holds(row, table), right.holds(row, table)),
            Self::Or(left, right) => not(and(
                not(left.holds(row, table)),
                not(right.holds(row, table)),
            )),
            Self::Not(inner) => not(inner.holds(row, table)),
        }
    }
}

impl Aggregate {
    fn text(&self) -> String {
        let column = COLUMNS[self.column];
        let value = match self.function {
            Function::Max => format!("max(o.{column})"),
            Function::Min => format!("min(o.{column})"),
            Function::Count => "count(*)".to_owned(),
        };
        format!(
            "(SELECT {value} FROM t AS o WHERE {})",
            self.condition.text("o")
        )
    }

    fn of(&self, table: &Rows) -> Value {
        let mut values = matching(table, &self.condition).map(|row| row[self.column]);
        match self.function {
            Function::Max => values.flatten().max(),
            Function::Min => values.flatten().min(),
            Function::Count => Some(values.by_ref().count() as i64),
        }
    }
}

impl Expr {
    /// SQL text; the row is one of `alias`.
    pub fn text(&self, alias: &str) -> String {
        match self {
            Self::Literal(value) => literal(*value),
            Self::Column(column) => format!("{alias}.{}", COLUMNS[*column]),
            Self::Plus(column, number) => format!("{alias}.{} + {number}", COLUMNS[*column]),
            Self::Taken(aggregate, number) => format!("{} + {number}", aggregate.text()),
        }
    }

    /// Its value for `row` of `table`.
    pub fn value(&self, row: &Row, table: &Rows) -> Value {
        match self {
            Self::Literal(value) => *value,
            Self::Column(column) => row[*column],
            Self::Plus(column, number) => row[*column].map(|value| value + number),
            Self::Taken(aggregate, number) => aggregate.of(table).map(|value| value + number),
        }
    }
}

/// A value as SQL text.
pub fn literal(value: Value) -> String {
    value.map_or("CAST(NULL AS BIGINT)".to_owned(), |value| value.to_string())
}

/// The rows for which `condition` is true.
fn matching<'a>(table: &'a Rows, condition: &'a Condition) -> impl Iterator<Item = &'a Row> {
    table
        .iter()
        .filter(|row| condition.holds(row, table) == Some(true))
}

fn is_in(value: Value, values: &[Value]) -> Option<bool> {
    let mut unknown = false;
    for other in values {
        match Op::Eq.holds(value, *other) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(false)
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}
