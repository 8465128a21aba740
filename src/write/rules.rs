//! The rules that a table carries, for the rows that a statement brings.
//!
//! In: new rows, in the table's columns. Out: the same rows with the values that the table makes,
//! each of them found to keep every rule. Rows that a statement only copies are not looked at: they
//! were checked when they came.
//!
//! | rule | source | a row keeps it if |
//! |---|---|---|
//! | `NOT NULL` | the schema | the value is there; checked [where rows are written](super::validate) |
//! | `CHECK` constraint | `delta.constraints.…` | the condition is true: false and NULL are violations |
//! | column invariant | `delta.invariants` | the same |
//! | generated column | `delta.generationExpression` | the value is that of the expression, NULL equal to NULL |
//! | `CHAR(n)`, `VARCHAR(n)` | `__CHAR_VARCHAR_TYPE_STRING` | it has at most `n` characters |
//!
//! The rules are about what the table will hold: an empty text in a partition column is NULL by then.
//!
//! Source: Delta protocol, "CHECK Constraints", "Column Invariants" and "Generated Columns"; that NULL is
//! a violation, and what becomes of texts that are too short or too long, is what Delta Spark does.

mod evaluate;
pub mod exec;
mod text_length;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, RecordBatch, RecordBatchOptions};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::physical_plan::PhysicalExpr;

use self::evaluate::{described, evaluate, text_at};
pub use self::text_length::{DECLARED_TYPE, TextLength};
use super::partition::empty_as_null;
use super::validate::conform;
use crate::error::{Error, Result};

/// A condition that holds of every row: a `CHECK` constraint or a column invariant.
#[derive(Debug, Clone)]
pub struct Condition {
    /// What messages call it, such as `CHECK constraint positive (amount > 0)`.
    pub name: String,
    /// Yields a Boolean for the table's columns.
    pub condition: Arc<dyn PhysicalExpr>,
    /// The columns it uses, by index.
    pub columns: Vec<usize>,
}

/// A column whose values follow from others.
#[derive(Debug, Clone)]
pub struct GeneratedColumn {
    /// Its index.
    pub column: usize,
    /// The expression's text.
    pub text: String,
    /// Yields the values, in the column's type.
    pub value: Arc<dyn PhysicalExpr>,
    /// The columns it uses, by index.
    pub columns: Vec<usize>,
    /// The rows whose value the table makes; that of the others is compared.
    pub made_for: MadeFor,
}

/// A column with a value that rows get where a statement gives none.
#[derive(Debug, Clone)]
pub struct DefaultValue {
    /// Its index.
    pub column: usize,
    /// Yields the value, in the column's type.
    pub value: Arc<dyn PhysicalExpr>,
    /// The rows that get it.
    pub made_for: MadeFor,
}

/// Whose value the table makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeFor {
    /// No row's.
    None,
    /// Each row's.
    All,
    /// That of the rows of these clauses of a MERGE.
    Clauses(Vec<i32>),
}

/// The rules of one table for one statement.
#[derive(Debug, Clone)]
pub struct RowRules {
    /// The table's columns.
    pub schema: SchemaRef,
    /// The partition columns, by index.
    pub partitions: Vec<usize>,
    /// Columns with a default that some row of the statement gets.
    pub defaults: Vec<DefaultValue>,
    /// All generated columns; their expressions use other columns only.
    pub generated: Vec<GeneratedColumn>,
    /// All texts with a length.
    pub lengths: Vec<TextLength>,
    /// All conditions.
    pub conditions: Vec<Condition>,
}

impl RowRules {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.defaults.is_empty()
            && self.generated.is_empty()
            && self.lengths.is_empty()
            && self.conditions.is_empty()
    }

    /// What messages and `EXPLAIN` call the rules.
    pub fn names(&self) -> Vec<String> {
        let generated = self
            .generated
            .iter()
            .map(|rule| format!("{} = {}", self.name_of(rule.column), rule.text));
        let lengths = self
            .lengths
            .iter()
            .map(|rule| format!("{} {}", self.name_of(rule.column), rule.type_name()));
        let conditions = self.conditions.iter().map(|rule| rule.name.clone());
        generated.chain(lengths).chain(conditions).collect()
    }

    /// `rows`, which have the table's columns, with the values that the table makes. `clauses` has
    /// the clause of a MERGE that each row belongs to.
    ///
    /// # Errors
    ///
    /// `Invalid` if a row violates a rule, or an expression cannot be evaluated for it.
    pub fn apply(&self, rows: &RecordBatch, clauses: Option<&Int32Array>) -> Result<RecordBatch> {
        let mut rows = conform(rows, &self.loose_schema())?;
        if rows.num_rows() == 0 {
            return Ok(rows);
        }
        for rule in &self.defaults {
            let value = evaluate(&rule.value, &[], &rows, || {
                format!("the default of the column {}", self.name_of(rule.column))
            })?;
            let chosen = rule.made_for.rows(rows.num_rows(), clauses)?;
            let filled = choose(&chosen, &value, rows.column(rule.column))?;
            rows = with_column(&rows, rule.column, filled)?;
        }
        for rule in &self.lengths {
            if self.generation_of(rule.column).is_none() {
                let fitting = rule.fit(rows.column(rule.column), self.name_of(rule.column))?;
                rows = with_column(&rows, rule.column, fitting)?;
            }
        }
        for column in &self.partitions {
            if self.generation_of(*column).is_none()
                && let Some(values) = rows.columns().get(*column)
            {
                let values = empty_as_null(values)?;
                rows = with_column(&rows, *column, values)?;
            }
        }
        for rule in &self.generated {
            let values = self.generate(rule, &rows, clauses)?;
            rows = with_column(&rows, rule.column, values)?;
        }
        for rule in &self.conditions {
            self.check(rule, &rows)?;
        }
        Ok(rows)
    }

    /// The columns that rows come in with: NULL may stand where the table makes a value. If it stays,
    /// it is refused where the rows are written.
    fn loose_schema(&self) -> SchemaRef {
        let filled = |index: usize| {
            let default = self.defaults.iter().any(|rule| rule.column == index);
            default || self.generation_of(index).is_some()
        };
        let fields: Vec<_> = self
            .schema
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| match filled(index) {
                true => Arc::new(field.as_ref().clone().with_nullable(true)),
                false => Arc::clone(field),
            })
            .collect();
        Arc::new(Schema::new(fields))
    }

    fn generation_of(&self, column: usize) -> Option<&GeneratedColumn> {
        self.generated.iter().find(|rule| rule.column == column)
    }

    fn name_of(&self, column: usize) -> &str {
        self.schema
            .fields()
            .get(column)
            .map_or("?", |field| field.name())
    }

    /// The values of a generated column: made, or given and found to be right.
    fn generate(
        &self,
        rule: &GeneratedColumn,
        rows: &RecordBatch,
        clauses: Option<&Int32Array>,
    ) -> Result<ArrayRef> {
        let name = self.name_of(rule.column);
        let mut expected = evaluate(&rule.value, &rule.columns, rows, || {
            format!("the generated column {name} ({})", rule.text)
        })?;
        let mut given = Arc::clone(rows.column(rule.column));
        if let Some(length) = self.lengths.iter().find(|l| l.column == rule.column) {
            expected = length.fit(&expected, name)?;
            given = length.fit(&given, name)?;
        }
        if self.partitions.contains(&rule.column) {
            expected = empty_as_null(&expected)?;
            given = empty_as_null(&given)?;
        }
        let made = rule.made_for.rows(rows.num_rows(), clauses)?;
        if rule.made_for != MadeFor::All {
            let differs = distinct(&given, &expected).map_err(|e| {
                Error::internal(format!("comparing the column {name}")).with_source(e)
            })?;
            if let Some(row) = first(&differs, |row| !made.value(row)) {
                return Err(Error::invalid(format!(
                    "the generated column {name} ({}) is given the value {} in a row where it is {}; \
                     leave the column out",
                    rule.text,
                    text_at(&given, row),
                    text_at(&expected, row),
                )));
            }
        }
        choose(&made, &expected, &given)
    }

    fn check(&self, rule: &Condition, rows: &RecordBatch) -> Result<()> {
        let results = evaluate(&rule.condition, &rule.columns, rows, || rule.name.clone())?;
        let results = results
            .as_any()
            .downcast_ref::<BooleanArray>()
            .ok_or_else(|| Error::internal(format!("{} yields no Boolean", rule.name)))?;
        if results.true_count() == rows.num_rows() {
            return Ok(());
        }
        let keeps = |row: usize| results.is_valid(row) && results.value(row);
        let row = (0..rows.num_rows()).find(|row| !keeps(*row));
        Err(Error::invalid(format!(
            "{} is violated by {}",
            rule.name,
            described(rows, row.unwrap_or_default(), &rule.columns)
        )))
    }
}

impl MadeFor {
    /// For each of `count` rows whether the table makes its value.
    fn rows(&self, count: usize, clauses: Option<&Int32Array>) -> Result<BooleanArray> {
        match self {
            Self::None => Ok(BooleanArray::from(vec![false; count])),
            Self::All => Ok(BooleanArray::from(vec![true; count])),
            Self::Clauses(numbers) => {
                let clauses = clauses
                    .ok_or_else(|| Error::internal("the rows of a MERGE come without clauses"))?;
                Ok(clauses
                    .iter()
                    .map(|clause| Some(clause.is_some_and(|clause| numbers.contains(&clause))))
                    .collect())
            }
        }
    }
}

fn choose(chosen: &BooleanArray, made: &ArrayRef, given: &ArrayRef) -> Result<ArrayRef> {
    if chosen.true_count() == chosen.len() {
        return Ok(Arc::clone(made));
    }
    if chosen.true_count() == 0 {
        return Ok(Arc::clone(given));
    }
    zip(chosen, made, given).map_err(|e| Error::internal("values made by the table").with_source(e))
}

fn with_column(rows: &RecordBatch, column: usize, values: ArrayRef) -> Result<RecordBatch> {
    let mut fields: Vec<_> = rows.schema().fields().iter().cloned().collect();
    let mut columns = rows.columns().to_vec();
    if let (Some(field), Some(place)) = (fields.get_mut(column), columns.get_mut(column)) {
        *field = Arc::new(Field::new(field.name(), values.data_type().clone(), true));
        *place = values;
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|e| Error::internal("rows with values made by the table").with_source(e))
}

/// The first row that is marked and for which `counts`.
fn first(marked: &BooleanArray, counts: impl Fn(usize) -> bool) -> Option<usize> {
    (0..marked.len()).find(|row| marked.is_valid(*row) && marked.value(*row) && counts(*row))
}
