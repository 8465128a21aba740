//! Conditions as SQL: what a plan, a verdict or the log shows of a read can be asked again.
//!
//! DataFusion's unparser does the writing. What it writes otherwise than DataFusion reads it is put
//! right on both sides: literals whose type is lost get a cast, columns are quoted only where they
//! have to be, and parentheses stand where the parser needs them or people look for them.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    Subscript, TimezoneInfo, UnaryOperator, Value, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::unparser::Unparser;
use datafusion::sql::unparser::dialect::Dialect;

/// Days of the years 1 to 9999.
const YEARS: Range<i64> = -719_162..2_932_897;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// `expr` as SQL that DataFusion reads as the same condition; nothing where that cannot be had.
pub(crate) fn sql_text(expr: &Expr) -> Option<String> {
    let typed = expr.clone().transform(keep_type).ok()?.data;
    let mut sql = Unparser::new(&DataFusionDialect).expr_to_sql(&typed).ok()?;
    let _ = visit_expressions_mut(&mut sql, |node| {
        place_parentheses(node);
        ControlFlow::<()>::Continue(())
    });
    Some(bare(sql).to_string())
}

/// The rules of DataFusion's own SQL.
struct DataFusionDialect;

impl Dialect for DataFusionDialect {
    fn identifier_quote_style(&self, name: &str) -> Option<char> {
        (!is_plain_name(name)).then_some('"')
    }

    // What is inside of quotes is written as it stands where a quote is doubled already.
    fn string_literal_to_sql(&self, text: &str) -> Option<ast::Expr> {
        Some(quoted(text))
    }

    fn col_alias_overrides(&self, name: &str) -> Result<Option<String>> {
        Ok(name.contains('"').then(|| name.replace('"', "\"\"")))
    }

    /// A field as `column['field']`.
    fn scalar_function_to_sql_overrides(
        &self,
        unparser: &Unparser<'_>,
        function: &str,
        args: &[Expr],
    ) -> Result<Option<ast::Expr>> {
        let (Some((base, names)), "get_field") = (args.split_first(), function) else {
            return Ok(None);
        };
        let mut access_chain = Vec::with_capacity(names.len());
        for name in names {
            let Expr::Literal(name, _) = name else {
                return not_impl_err!("a field without a name");
            };
            let Some(Some(name)) = name.try_as_str() else {
                return not_impl_err!("a field without a name");
            };
            let index = quoted(name);
            access_chain.push(AccessExpr::Subscript(Subscript::Index { index }));
        }
        Ok(Some(ast::Expr::CompoundFieldAccess {
            root: Box::new(unparser.expr_to_sql(base)?),
            access_chain,
        }))
    }

    /// With its precision: years after 2262 have no nanoseconds.
    fn timestamp_cast_dtype(&self, unit: &TimeUnit, zone: &Option<Arc<str>>) -> ast::DataType {
        let precision = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        let zone = match zone {
            Some(_) => TimezoneInfo::WithTimeZone,
            None => TimezoneInfo::None,
        };
        ast::DataType::Timestamp(Some(precision), zone)
    }
}

fn quoted(text: &str) -> ast::Expr {
    ast::Expr::value(Value::SingleQuotedString(text.replace('\'', "''")))
}

/// Whether `name` is read as the column of that name without quotes.
fn is_plain_name(name: &str) -> bool {
    let is_lower = |character: char| character.is_ascii_lowercase() || character == '_';
    if !name.starts_with(is_lower) || !name.chars().all(|it| is_lower(it) || it.is_ascii_digit()) {
        return false;
    }
    if ALL_KEYWORDS
        .binary_search(&name.to_ascii_uppercase().as_str())
        .is_err()
    {
        return true;
    }
    // Many words of SQL are good names, and which are not only the parser knows.
    let parse = |sql: &str| {
        Parser::new(&GenericDialect {})
            .try_with_sql(sql)
            .and_then(|mut parser| parser.parse_expr())
    };
    let column = ast::Expr::Identifier(Ident::new(name));
    let is_operand = |sql: String| match parse(&sql) {
        Ok(ast::Expr::BinaryOp { left, right, .. }) => *left == column || *right == column,
        _ => false,
    };
    is_operand(format!("{name} = 1"))
        && is_operand(format!("1 < {name}"))
        && parse(&format!("CASE WHEN 1 = {name} THEN {name} ELSE {name} END")).is_ok()
}

/// Writes the type of a literal that has it only in its type: `1.50` would be read as a float.
fn keep_type(node: Expr) -> Result<Transformed<Expr>> {
    let value = match &node {
        Expr::Literal(ScalarValue::Dictionary(_, value), _) => value.as_ref(),
        Expr::Literal(value, _) => value,
        // Written like LIKE.
        Expr::SimilarTo(_) => return not_impl_err!("SIMILAR TO"),
        // Left out where they cannot be written.
        Expr::Case(case) => {
            for part in case.expr.iter().chain(&case.else_expr) {
                Unparser::new(&DataFusionDialect).expr_to_sql(part)?;
            }
            return Ok(Transformed::no(node));
        }
        _ => return Ok(Transformed::no(node)),
    };
    if value.is_null() {
        return Ok(Transformed::yes(lit(ScalarValue::Null)));
    }
    if let DataType::Timestamp(_, Some(zone)) = value.data_type()
        && !matches!(zone.as_ref(), "UTC" | "Z" | "+00:00")
    {
        return not_impl_err!("a literal in the zone {zone}");
    }
    if let Some(number) = count_of_units(value) {
        return Ok(Transformed::yes(cast(
            number,
            without_zone(&value.data_type()),
        )));
    }
    let text = match value {
        // A NaN has a sign, which tells it from the other one in the order of floats.
        ScalarValue::Float64(Some(number)) if number.is_nan() && number.is_sign_negative() => {
            "-NaN".to_owned()
        }
        ScalarValue::Float32(Some(number)) if number.is_nan() && number.is_sign_negative() => {
            "-NaN".to_owned()
        }
        ScalarValue::Float64(Some(number)) if !number.is_finite() => number.to_string(),
        ScalarValue::Float32(Some(number)) => number.to_string(),
        ScalarValue::Decimal32(..)
        | ScalarValue::Decimal64(..)
        | ScalarValue::Decimal128(..)
        | ScalarValue::Decimal256(..) => value.to_string(),
        ScalarValue::Struct(_) | ScalarValue::Map(_) | ScalarValue::Union(..) => {
            return not_impl_err!("a nested literal");
        }
        _ => return Ok(Transformed::no(node)),
    };
    Ok(Transformed::yes(cast(lit(text), value.data_type())))
}

/// The number behind a time that has no text, since its year has more than four digits or is before
/// the first.
fn count_of_units(value: &ScalarValue) -> Option<Expr> {
    let (number, in_a_day) = match value {
        ScalarValue::TimestampSecond(Some(number), _) => (*number, DAY),
        ScalarValue::TimestampMillisecond(Some(number), _) => (*number, DAY * 1_000),
        ScalarValue::TimestampMicrosecond(Some(number), _) => (*number, DAY * 1_000_000),
        ScalarValue::Date32(Some(days)) => {
            return (!YEARS.contains(&i64::from(*days))).then(|| lit(*days));
        }
        _ => return None,
    };
    (!YEARS.contains(&number.div_euclid(in_a_day))).then(|| lit(number))
}

/// A literal is an instant already, and what it is compared with has the zone.
fn without_zone(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

/// How an expression holds together, from the loosest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// IS [NOT] DISTINCT FROM: the parser takes all that follows for its right side.
    Distinct,
    Or,
    And,
    /// NOT, and what comes after it in a condition: IS, comparisons, IN, LIKE, BETWEEN.
    Condition,
    Sum,
    Product,
    Whole,
}

impl Binding {
    fn of(node: &ast::Expr) -> Self {
        match node {
            ast::Expr::BinaryOp { op, .. } => match op {
                BinaryOperator::Or => Self::Or,
                BinaryOperator::And => Self::And,
                BinaryOperator::Plus | BinaryOperator::Minus => Self::Sum,
                BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => {
                    Self::Product
                }
                _ => Self::Condition,
            },
            ast::Expr::Identifier(_)
            | ast::Expr::CompoundIdentifier(_)
            | ast::Expr::CompoundFieldAccess { .. }
            | ast::Expr::Value(_)
            | ast::Expr::Function(_)
            | ast::Expr::Cast { .. }
            | ast::Expr::Case { .. }
            | ast::Expr::Nested(_) => Self::Whole,
            ast::Expr::IsDistinctFrom(..) | ast::Expr::IsNotDistinctFrom(..) => Self::Distinct,
            ast::Expr::UnaryOp { op, .. } if *op != UnaryOperator::Not => Self::Whole,
            _ => Self::Condition,
        }
    }

    fn tighter(self) -> Self {
        match self {
            Self::Distinct => Self::Or,
            Self::Or => Self::And,
            Self::And => Self::Condition,
            Self::Condition => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Whole => Self::Whole,
        }
    }
}

/// Called from the leaves up, so that the operands of `node` are in order.
fn place_parentheses(node: &mut ast::Expr) {
    use ast::Expr as E;
    let binding = Binding::of(node);
    match node {
        E::BinaryOp { left, right, .. } if binding != Binding::Condition => {
            hold(left, binding);
            hold(right, binding.tighter());
        }
        E::BinaryOp { left, right, .. }
        | E::IsDistinctFrom(left, right)
        | E::IsNotDistinctFrom(left, right) => {
            hold(left, Binding::Sum);
            hold(right, Binding::Sum);
        }
        E::IsNull(inner)
        | E::IsNotNull(inner)
        | E::IsTrue(inner)
        | E::IsNotTrue(inner)
        | E::IsFalse(inner)
        | E::IsNotFalse(inner)
        | E::IsUnknown(inner)
        | E::IsNotUnknown(inner) => hold(inner, Binding::Sum),
        E::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => hold(expr, Binding::Whole),
        E::UnaryOp { expr, .. } => {
            // Two minus signs begin a comment.
            let is_column = matches!(**expr, E::Identifier(_) | E::CompoundFieldAccess { .. });
            if !is_column {
                wrap(expr);
            }
        }
        E::InList { expr, list, .. } => {
            hold(expr, Binding::Sum);
            list.iter_mut().for_each(unwrap);
        }
        E::Between {
            expr, low, high, ..
        } => {
            hold(expr, Binding::Sum);
            hold(low, Binding::Sum);
            hold(high, Binding::Sum);
        }
        E::Like { expr, pattern, .. } | E::ILike { expr, pattern, .. } => {
            hold(expr, Binding::Sum);
            hold(pattern, Binding::Sum);
        }
        E::Cast { expr, .. } => unwrap(expr),
        E::CompoundFieldAccess { root, .. } => hold(root, Binding::Whole),
        E::Function(function) => {
            if let FunctionArguments::List(list) = &mut function.args {
                for arg in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg {
                        unwrap(arg);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Puts parentheses round `node` if it holds together less than `least`, and takes others away.
fn hold(node: &mut ast::Expr, least: Binding) {
    unwrap(node);
    if Binding::of(node) < least {
        wrap(node);
    }
}

fn wrap(node: &mut ast::Expr) {
    if !matches!(node, ast::Expr::Nested(_)) {
        let inner = std::mem::replace(node, ast::Expr::value(Value::Null));
        *node = ast::Expr::Nested(Box::new(inner));
    }
}

fn unwrap(node: &mut ast::Expr) {
    let inner = std::mem::replace(node, ast::Expr::value(Value::Null));
    *node = bare(inner);
}

fn bare(mut node: ast::Expr) -> ast::Expr {
    while let ast::Expr::Nested(inner) = node {
        node = *inner;
    }
    node
}
