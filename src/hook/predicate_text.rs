//! The predicate that deltalake wrote into its commit, read back where its text has one meaning.
//!
//! deltalake prints the predicate that it executed and drops parentheses on the way: the operand of
//! `IS NULL`, `IS TRUE`, `NOT`, `IN` and `BETWEEN` is printed bare, so that `(a > 5 AND b) IS NULL`
//! and `a > 5 AND (b IS NULL)` have one text. Accepted is therefore only `AND` / `OR` of
//!
//! - a comparison (`=`, `<>`, `<`, `<=`, `>`, `>=`) of a column with a literal, in either order,
//! - `column IN (literal, …)`, `column BETWEEN literal AND literal`, `column IS [NOT] NULL`,
//!
//! over columns named without a table. No column may be a boolean: it could be the tail of a longer
//! operand that lost its parentheses, as `b` is above, while a condition that ends in any other
//! column cannot be an operand of these. `AND` and `OR` themselves are printed with parentheses
//! wherever they bind looser than what is around them, and are associative.
//!
//! Everything else gives nothing, which the caller takes for a read of the whole table.

mod literal;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::Column;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, Expr, Operator, binary_expr};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use self::literal::literal;

/// Longest text that is looked at, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// Most connectives, and most open parentheses at a time, that are looked at: reading recurses, and
/// a commit may have little stack left.
const MAX_CONNECTIVES: usize = 100;
const MAX_OPEN: usize = 12;

/// The condition that `text` stands for on a table with the columns of `schema`; nothing if the text
/// may have meant anything else.
pub(super) fn parse(text: &str, schema: &Schema) -> Option<Expr> {
    // A backslash keeps the printer from doubling the quote behind it, and a comment would hide the
    // rest. Neither is part of any form that is accepted.
    if text.len() > MAX_TEXT || ["\\", "--", "/*"].iter().any(|odd| text.contains(odd)) {
        return None;
    }
    if !is_shallow(text) {
        return None;
    }
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).ok()?;
    let parsed = parser.parse_expr().ok()?;
    if parser.peek_token().token != Token::EOF {
        return None;
    }
    let reader = Reader {
        schema,
        plain_names: schema.fields().iter().all(|field| is_plain(field.name())),
    };
    reader.condition(&parsed)
}

struct Reader<'a> {
    schema: &'a Schema,
    /// Whether every column has a name that is the same with and without quotes.
    plain_names: bool,
}

impl Reader<'_> {
    fn condition(&self, parsed: &SqlExpr) -> Option<Expr> {
        match parsed {
            SqlExpr::Nested(inner) => self.condition(inner),
            SqlExpr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    let op = match op {
                        BinaryOperator::And => Operator::And,
                        _ => Operator::Or,
                    };
                    let left = self.condition(left)?;
                    Some(binary_expr(left, op, self.condition(right)?))
                }
                _ => self.comparison(left, comparison(op)?, right),
            },
            SqlExpr::IsNull(operand) => Some(self.column(operand)?.0.is_null()),
            SqlExpr::IsNotNull(operand) => Some(self.column(operand)?.0.is_not_null()),
            // A column before IN is printed without the quotes that its name may need.
            SqlExpr::InList {
                expr,
                list,
                negated: false,
            } if self.plain_names => {
                let (column, of) = self.column(expr)?;
                let list: Option<Vec<Expr>> = list.iter().map(|item| literal(item, of)).collect();
                Some(Expr::InList(InList::new(Box::new(column), list?, false)))
            }
            SqlExpr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                let (column, of) = self.column(expr)?;
                Some(Expr::Between(Between::new(
                    Box::new(column),
                    false,
                    Box::new(literal(low, of)?),
                    Box::new(literal(high, of)?),
                )))
            }
            _ => None,
        }
    }

    fn comparison(&self, left: &SqlExpr, op: Operator, right: &SqlExpr) -> Option<Expr> {
        if let Some((column, of)) = self.column(left) {
            return Some(binary_expr(column, op, literal(right, of)?));
        }
        let (column, of) = self.column(right)?;
        Some(binary_expr(literal(left, of)?, op, column))
    }

    /// A column of the table by its exact name, and its type.
    fn column(&self, parsed: &SqlExpr) -> Option<(Expr, &DataType)> {
        let SqlExpr::Identifier(name) = parsed else {
            return None;
        };
        if !matches!(name.quote_style, None | Some('"')) {
            return None;
        }
        let (_, field) = self.schema.column_with_name(&name.value)?;
        if field.data_type() == &DataType::Boolean {
            return None;
        }
        let column = Expr::Column(Column::new_unqualified(&name.value));
        Some((column, field.data_type()))
    }
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

fn is_shallow(text: &str) -> bool {
    let connectives = text
        .split_whitespace()
        .filter(|word| word.eq_ignore_ascii_case("and") || word.eq_ignore_ascii_case("or"))
        .count();
    let mut open = 0_usize;
    let mut most = 0;
    for byte in text.bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    connectives <= MAX_CONNECTIVES && most <= MAX_OPEN
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
