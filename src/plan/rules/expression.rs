//! An expression that a table carries as text, once it is understood.
//!
//! Spark's `"text"` is a text, and `deltalake` puts names into double quotes. It is a text here, unless
//! the expression has no meaning then and has one with names.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DFResult};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;
use datafusion::sql::sqlparser::dialect::DatabricksDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::convert::{Quoted, convert};
use super::typed::{coerced, data_type_of, to_type};

/// Why an expression is not understood.
pub(super) type Reason = String;

/// An expression over the columns of a table.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    expr: Expr,
    data_type: DataType,
    columns: Vec<usize>,
    schema: Arc<DFSchema>,
}

impl Expression {
    /// The type of its values.
    pub(super) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The columns it uses, by index.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The same with values of the type of a column.
    pub(super) fn in_type(mut self, to: &DataType) -> Result<Self, Reason> {
        self.expr = to_type(self.expr, to, &self.schema)?;
        self.data_type = to.clone();
        Ok(self)
    }

    /// The expression in the form that is evaluated.
    pub(super) fn physical(&self) -> Result<Arc<dyn PhysicalExpr>, Reason> {
        let expr = coerced(self.expr.clone(), &self.schema)?;
        create_physical_expr(
            &expr,
            &self.schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )
        .and_then(without_overflow)
        .map_err(|error| error.to_string())
    }
}

/// `expr` with an error where a whole number does not fit its type, instead of another number.
fn without_overflow(expr: Arc<dyn PhysicalExpr>) -> DFResult<Arc<dyn PhysicalExpr>> {
    let checked = expr.transform_up(|expr| {
        Ok(match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) => {
                let checked = binary.clone().with_fail_on_overflow(true);
                Transformed::yes(Arc::new(checked) as Arc<dyn PhysicalExpr>)
            }
            None => Transformed::no(expr),
        })
    })?;
    Ok(checked.data)
}

/// The expression that `text` is for a table with the columns `schema`.
pub(super) fn parse(text: &str, schema: &SchemaRef) -> Result<Expression, Reason> {
    let sql = parse_text(text)?;
    let schema = DFSchema::try_from(Arc::clone(schema)).map_err(|error| error.to_string())?;
    let converted = |quoted| {
        let (expr, doubly) = convert(&sql, &schema, quoted);
        let found = expr.and_then(|expr| {
            let data_type = data_type_of(&expr, &schema)?;
            Ok((expr, data_type))
        });
        (found, doubly)
    };
    let (expr, data_type) = match converted(Quoted::Text) {
        (Ok(found), false) => found,
        (Ok(found), true) => match converted(Quoted::Name).0 {
            // An expression about no column says nothing: names are meant.
            Ok(with_names) if found.0.column_refs().is_empty() => with_names,
            Ok(_) => {
                return Err(
                    "what stands in double quotes may be a text or a column; put texts into single \
                     quotes and names into backticks"
                        .to_owned(),
                );
            }
            Err(_) => found,
        },
        (Err(reason), false) => return Err(reason),
        (Err(reason), true) => converted(Quoted::Name).0.map_err(|_| reason)?,
    };
    let mut columns: Vec<usize> = expr
        .column_refs()
        .into_iter()
        .filter_map(|column| schema.maybe_index_of_column(column))
        .collect();
    columns.sort_unstable();
    Ok(Expression {
        expr,
        data_type,
        columns,
        schema: Arc::new(schema),
    })
}

fn parse_text(text: &str) -> Result<SqlExpr, Reason> {
    let cannot = |why: String| format!("it cannot be parsed: {why}");
    if text.contains('\\') {
        // Where it escapes and where it stands for itself depends on Spark's settings.
        return Err("a backslash in it may mean one thing or another".to_owned());
    }
    let tokens = Tokenizer::new(&DatabricksDialect, text)
        .with_unescape(false)
        .tokenize()
        .map_err(|error| cannot(error.to_string()))?;
    if tokens.iter().any(has_doubled_quote) {
        return Err(
            "a doubled quote in a text is a quote for some engines and nothing for others"
                .to_owned(),
        );
    }
    let mut parser = Parser::new(&DatabricksDialect)
        .try_with_sql(text)
        .map_err(|error| cannot(error.to_string()))?;
    let sql = parser
        .parse_expr()
        .map_err(|error| cannot(error.to_string()))?;
    match parser.peek_token().token {
        Token::EOF => Ok(sql),
        token => Err(cannot(format!("{token} is left over"))),
    }
}

/// Spark takes it for the end of one text and the beginning of the next, up to version 3.
fn has_doubled_quote(token: &Token) -> bool {
    match token {
        Token::SingleQuotedString(text) => text.contains('\''),
        Token::DoubleQuotedString(text) => text.contains('"'),
        _ => false,
    }
}
