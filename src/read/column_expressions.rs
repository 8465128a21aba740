//! Columns whose values the table makes: generated columns, and columns with a default.
//!
//! Source: Delta protocol, "Generated Columns" and "Default Columns". The expressions stand in the
//! metadata of the schema's fields; only whole columns have them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::Result as DFResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde_json::Value;

use super::snapshot::TableMetadata;
use crate::error::Error;

/// Key of a generated column's expression in the metadata of its field.
pub const GENERATION_EXPRESSION: &str = "delta.generationExpression";

/// Key of a column's default in the metadata of its field.
pub const CURRENT_DEFAULT: &str = "CURRENT_DEFAULT";

/// The expressions, as they stand in the schema, by the name of their column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnExpressions {
    generated: BTreeMap<String, String>,
    defaults: BTreeMap<String, String>,
}

impl ColumnExpressions {
    /// Those of the table of `metadata`; none where its schema cannot be read, which whoever opens the
    /// table is told.
    pub fn of(metadata: &TableMetadata) -> Self {
        let mut found = Self::default();
        let Ok(schema) = serde_json::from_str::<Value>(&metadata.schema_string) else {
            return found;
        };
        let fields = schema.get("fields").and_then(Value::as_array);
        for field in fields.into_iter().flatten() {
            let (Some(name), Some(keys)) = (
                field.get("name").and_then(Value::as_str),
                field.get("metadata"),
            ) else {
                continue;
            };
            for (key, expressions) in [
                (GENERATION_EXPRESSION, &mut found.generated),
                (CURRENT_DEFAULT, &mut found.defaults),
            ] {
                if let Some(value) = keys.get(key) {
                    expressions.insert(name.to_owned(), text_of(value));
                }
            }
        }
        found
    }

    /// The expression of a generated column.
    pub fn generation_of(&self, column: &str) -> Option<&str> {
        self.generated.get(column).map(String::as_str)
    }

    /// The default of a column that is not generated.
    pub fn default_of(&self, column: &str) -> Option<&str> {
        match self.generation_of(column) {
            None => self.defaults.get(column).map(String::as_str),
            Some(_) => None,
        }
    }

    /// Whether the table makes a value for `column` where a statement gives none.
    pub fn fills(&self, column: &str) -> bool {
        self.generated.contains_key(column) || self.defaults.contains_key(column)
    }

    /// Whether no column has an expression.
    pub fn is_empty(&self) -> bool {
        self.generated.is_empty() && self.defaults.is_empty()
    }
}

/// What stands for the value of a column that an INSERT does not name. The version that the statement
/// is pinned to says what it is: NULL, unless the table makes it.
///
/// DataFusion would put NULL there, which cannot be told from a NULL that was given. It is volatile,
/// so that no optimizer evaluates it or moves it elsewhere, and it has no value: where it is still in a
/// plan that runs, the plan fails.
pub(crate) static MADE_BY_TABLE: LazyLock<Expr> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(MadeByTable::new())).call(vec![]));

/// Whether `expr` is [`MADE_BY_TABLE`].
pub(crate) fn is_made_by_table(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<MadeByTable>().is_some(),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MadeByTable {
    signature: Signature,
}

impl MadeByTable {
    fn new() -> Self {
        Self {
            signature: Signature::exact(vec![], Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for MadeByTable {
    fn name(&self) -> &str {
        "__delta_disjoint_made_by_table"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DFResult<DataType> {
        Ok(DataType::Null)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DFResult<ColumnarValue> {
        Err(Error::unsupported(
            "the values of a column that an INSERT leaves out cannot be made in a plan of this shape; \
             name the column in the INSERT and give it its value",
        )
        .into())
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_whole_columns() {
        let metadata = |schema: &str| TableMetadata {
            schema_string: schema.to_owned(),
            ..TableMetadata::default()
        };
        let found = ColumnExpressions::of(&metadata(
            r#"{"type":"struct","fields":[
                {"name":"a","type":"long","nullable":true,"metadata":{}},
                {"name":"G","type":"long","nullable":true,
                 "metadata":{"delta.generationExpression":"a + 1"}},
                {"name":"d","type":"long","nullable":true,"metadata":{"CURRENT_DEFAULT":"7"}},
                {"name":"s","type":{"type":"struct","fields":[
                    {"name":"x","type":"long","nullable":true,"metadata":{"CURRENT_DEFAULT":"7"}}
                ]},"nullable":true,"metadata":{}}
            ]}"#,
        ));
        let names = ["a", "G", "d", "s", "x"];
        assert_eq!(
            names.map(|name| found.fills(name)),
            [false, true, true, false, false]
        );
        assert_eq!(found.generation_of("G"), Some("a + 1"));
        assert_eq!(found.default_of("d"), Some("7"));
        assert!(!found.is_empty());
        assert!(ColumnExpressions::of(&metadata("{")).is_empty());
    }
}
