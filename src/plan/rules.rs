//! From the rules that a table's metadata states, as text, to rules that can be evaluated.
//!
//! It happens once a statement, for the version that the statement is pinned to, and before any file
//! is written: what is not understood refuses the statement by name.

mod convert;
mod expression;
mod field;
mod functions;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use serde_json::Value;

use self::expression::{Expression, parse};
use super::filled::{FilledColumns, FilledRows};
use crate::error::{Error, Result};
use crate::read::column_expressions::{CURRENT_DEFAULT, ColumnExpressions, GENERATION_EXPRESSION};
use crate::read::features::{FieldPlace, visit_field_metadata};
use crate::read::snapshot::TableMetadata;
use crate::write::rules::{
    Condition, DECLARED_TYPE, DefaultValue, GeneratedColumn, MadeFor, RowRules, TextLength,
};

/// What the names of properties that are `CHECK` constraints begin with.
pub(crate) const CONSTRAINT_PREFIX: &str = "delta.constraints.";

/// Key of a column's invariant in the metadata of its field.
const INVARIANTS: &str = "delta.invariants";

/// The rules of the table of `metadata`, whose columns are `schema`, for a statement that leaves
/// `filled` to the table.
///
/// # Errors
///
/// `Unsupported` for a rule that is not understood, `Corrupt` for one that is damaged.
pub(super) fn row_rules(
    metadata: &TableMetadata,
    schema: &SchemaRef,
    filled: &FilledColumns,
) -> Result<RowRules> {
    let expressions = ColumnExpressions::of(metadata);
    let mut rules = RowRules {
        schema: Arc::clone(schema),
        partitions: metadata
            .partition_columns
            .iter()
            .filter_map(|name| schema.index_of(name).ok())
            .collect(),
        defaults: vec![],
        generated: vec![],
        lengths: vec![],
        conditions: check_constraints(&metadata.configuration, schema)?,
    };
    visit_field_metadata(metadata, &mut |path, place, keys| {
        let column = match place {
            FieldPlace::Column => schema.index_of(path).ok(),
            _ => None,
        };
        let not_here = [
            (INVARIANTS, place == FieldPlace::CollectionField),
            (GENERATION_EXPRESSION, column.is_none()),
            (CURRENT_DEFAULT, column.is_none()),
            (DECLARED_TYPE, column.is_none()),
        ];
        if let Some((key, _)) = not_here
            .into_iter()
            .find(|(key, refused)| *refused && keys.contains_key(*key))
        {
            return Err(Error::unsupported(format!(
                "the table has a rule that this version of delta-disjoint cannot evaluate, so that no \
                 rows can be written: {key} of {path}, which lies inside of a column"
            )));
        }
        if let Some(stated) = keys.get(INVARIANTS) {
            rules.conditions.push(invariant(path, stated, schema)?);
        }
        if let (Some(column), Some(declared)) = (column, keys.get(DECLARED_TYPE)) {
            let declared = declared.as_str().unwrap_or_default();
            rules
                .lengths
                .push(TextLength::parse(column, path, declared)?);
        }
        Ok(())
    })?;
    for (column, field) in schema.fields().iter().enumerate() {
        let made_for = match filled.iter().find(|(filled, _)| *filled == column) {
            None => MadeFor::None,
            Some((_, FilledRows::All)) => MadeFor::All,
            Some((_, FilledRows::Clauses(clauses))) => {
                MadeFor::Clauses(clauses.iter().copied().collect())
            }
        };
        let name = field.name();
        if let Some(text) = expressions.generation_of(name) {
            rules
                .generated
                .push(generated(column, text, schema, &expressions, made_for)?);
        } else if let Some(text) = expressions.default_of(name)
            && made_for != MadeFor::None
        {
            rules
                .defaults
                .push(default_value(column, text, schema, made_for)?);
        }
    }
    Ok(rules)
}

/// The `CHECK` constraints among the table properties `configuration`.
///
/// # Errors
///
/// `Unsupported` for one that is not understood.
pub(crate) fn check_constraints(
    configuration: &BTreeMap<String, String>,
    schema: &SchemaRef,
) -> Result<Vec<Condition>> {
    configuration
        .iter()
        .filter_map(|(property, text)| Some((property.strip_prefix(CONSTRAINT_PREFIX)?, text)))
        .map(|(name, text)| condition(format!("CHECK constraint {name} ({text})"), text, schema))
        .collect()
}

/// Source: Delta protocol, "Column Invariants"; as there, the expression is about the whole row.
fn invariant(path: &str, stated: &Value, schema: &SchemaRef) -> Result<Condition> {
    let damaged = || {
        Error::corrupt(format!(
            "the invariant of the column {path} is damaged: {stated}"
        ))
    };
    let parsed = match stated {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| damaged().with_source(error))?
        }
        other => other.clone(),
    };
    let text = parsed
        .pointer("/expression/expression")
        .and_then(Value::as_str)
        .ok_or_else(damaged)?;
    condition(
        format!("invariant of the column {path} ({text})"),
        text,
        schema,
    )
}

fn condition(name: String, text: &str, schema: &SchemaRef) -> Result<Condition> {
    let expression = understood(&name, text, schema)?;
    if expression.data_type() != &DataType::Boolean {
        return Err(refused(
            &name,
            &format!("it yields {}, not BOOLEAN", expression.data_type()),
        ));
    }
    Ok(Condition {
        columns: expression.columns().to_vec(),
        condition: expression
            .physical()
            .map_err(|reason| refused(&name, &reason))?,
        name,
    })
}

/// Source: Delta protocol, "Generated Columns".
fn generated(
    column: usize,
    text: &str,
    schema: &SchemaRef,
    expressions: &ColumnExpressions,
    made_for: MadeFor,
) -> Result<GeneratedColumn> {
    let field = schema.field(column);
    let rule = format!("generated column {} ({text})", field.name());
    let expression = understood(&rule, text, schema)?;
    let generated = expression
        .columns()
        .iter()
        .map(|index| schema.field(*index).name())
        .find(|name| expressions.generation_of(name).is_some());
    if let Some(name) = generated {
        return Err(refused(
            &rule,
            &format!("it uses {name}, which is generated itself"),
        ));
    }
    if field.data_type().is_nested() {
        return Err(refused(&rule, "the column is no plain value"));
    }
    let expression = expression
        .in_type(field.data_type())
        .map_err(|reason| refused(&rule, &reason))?;
    let value = expression
        .physical()
        .map_err(|reason| refused(&rule, &reason))?;
    Ok(GeneratedColumn {
        column,
        columns: expression.columns().to_vec(),
        text: text.to_owned(),
        value,
        made_for,
    })
}

/// Source: Delta protocol, "Default Columns".
fn default_value(
    column: usize,
    text: &str,
    schema: &SchemaRef,
    made_for: MadeFor,
) -> Result<DefaultValue> {
    let field = schema.field(column);
    let rule = format!("default of the column {} ({text})", field.name());
    let expression = understood(&rule, text, schema)?;
    if !expression.columns().is_empty() {
        return Err(refused(&rule, "it uses other columns"));
    }
    let value = expression
        .in_type(field.data_type())
        .and_then(|expression| expression.physical())
        .map_err(|reason| refused(&rule, &reason))?;
    Ok(DefaultValue {
        column,
        value,
        made_for,
    })
}

fn understood(rule: &str, text: &str, schema: &SchemaRef) -> Result<Expression> {
    parse(text, schema).map_err(|reason| refused(rule, &reason))
}

fn refused(rule: &str, reason: &str) -> Error {
    Error::unsupported(format!(
        "the table has a rule that this version of delta-disjoint cannot evaluate, so that no rows can \
         be written: {rule}: {reason}"
    ))
}

#[cfg(test)]
mod tests;
