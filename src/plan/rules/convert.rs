//! The text of an expression, as Delta tables carry them, to an expression of DataFusion.
//!
//! The texts are Spark SQL, or what `deltalake` writes for them. Both and DataFusion agree on most
//! syntax, but not always on what it means: a slash divides whole numbers into fractions in Spark,
//! `concat` of NULL is NULL there, names fold in no way and match in any case. So what is known to mean
//! the same is translated piece by piece, and everything else is refused by name; nothing depends on
//! the functions or the dialect of the session.

use std::cell::Cell;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr as SqlExpr, Ident, TypedString,
    UnaryOperator, Value,
};

use super::expression::Reason;
use super::field::field_of;
use super::functions::{call, parts};
use super::typed::{
    Family, arithmetic, choice, compare, family_of, negative, one_family, to_type, type_named,
};

/// How deep an expression may be nested; deeper ones would take much of the stack.
const MAX_DEPTH: usize = 64;

/// What stands in double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    Text,
    Name,
}

/// The expression of DataFusion that `sql` is for the columns `schema`, or why it is none; and whether
/// something in it stands in double quotes.
pub(super) fn convert(
    sql: &SqlExpr,
    schema: &DFSchema,
    quoted: Quoted,
) -> (Result<Expr, Reason>, bool) {
    let converter = Converter {
        schema,
        quoted,
        doubly: Cell::new(false),
    };
    let expr = converter.expr(sql, 0);
    (expr, converter.doubly.get())
}

struct Converter<'a> {
    schema: &'a DFSchema,
    quoted: Quoted,
    /// Whether something stood in double quotes so far.
    doubly: Cell<bool>,
}

impl Converter<'_> {
    /// The parts are methods of their own, so that each level of a nested expression takes little of the
    /// stack.
    fn expr(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        let depth = depth + 1;
        match sql {
            SqlExpr::Nested(sql) => self.expr(sql, depth),
            SqlExpr::Identifier(name) => self.column(std::slice::from_ref(name)),
            SqlExpr::CompoundIdentifier(names) => self.column(names),
            SqlExpr::Value(value) => self.value(&value.value),
            SqlExpr::UnaryOp { op, expr } => self.unary(sql, *op, expr, depth),
            SqlExpr::BinaryOp {
                op: op @ (BinaryOperator::And | BinaryOperator::Or),
                ..
            } => self.junction(sql, op, depth),
            SqlExpr::BinaryOp { left, op, right } => self.binary(sql, left, op, right, depth),
            SqlExpr::IsNull(_)
            | SqlExpr::IsNotNull(_)
            | SqlExpr::IsTrue(_)
            | SqlExpr::IsNotTrue(_)
            | SqlExpr::IsFalse(_)
            | SqlExpr::IsNotFalse(_)
            | SqlExpr::IsUnknown(_)
            | SqlExpr::IsNotUnknown(_) => self.is(sql, depth),
            SqlExpr::IsDistinctFrom(left, right) => {
                self.compared(left, Operator::IsDistinctFrom, right, depth)
            }
            SqlExpr::IsNotDistinctFrom(left, right) => {
                self.compared(left, Operator::IsNotDistinctFrom, right, depth)
            }
            SqlExpr::Between { .. } | SqlExpr::InList { .. } | SqlExpr::Like { .. } => {
                self.test(sql, depth)
            }
            SqlExpr::Case { .. } => self.case(sql, depth),
            SqlExpr::TypedString(_) | SqlExpr::Cast { .. } => self.cast(sql, depth),
            _ => {
                let (name, arguments) = self.arguments(sql, depth)?;
                call(&name, arguments, self.schema)
            }
        }
    }

    fn unary(
        &self,
        sql: &SqlExpr,
        op: UnaryOperator,
        operand: &SqlExpr,
        depth: usize,
    ) -> Result<Expr, Reason> {
        match op {
            UnaryOperator::Not => Ok(Expr::Not(Box::new(self.condition(operand, depth)?))),
            UnaryOperator::Plus => self.number(self.expr(operand, depth)?),
            UnaryOperator::Minus => {
                if let SqlExpr::Value(value) = operand
                    && let Value::Number(digits, _) = &value.value
                    && let Some(whole) = whole_literal(&format!("-{digits}"))
                {
                    return Ok(whole);
                }
                negative(self.number(self.expr(operand, depth)?)?, self.schema)
            }
            _ => Err(not_known(sql)),
        }
    }

    /// A chain of AND or of OR, however long.
    fn junction(&self, sql: &SqlExpr, op: &BinaryOperator, depth: usize) -> Result<Expr, Reason> {
        let mut conditions = Vec::new();
        let mut rest = sql;
        loop {
            match rest {
                SqlExpr::BinaryOp {
                    left,
                    op: same,
                    right,
                } if same == op => {
                    conditions.push(self.condition(right, depth)?);
                    rest = left;
                }
                first => {
                    conditions.push(self.condition(first, depth)?);
                    break;
                }
            }
        }
        conditions.reverse();
        let op = match op {
            BinaryOperator::And => Operator::And,
            _ => Operator::Or,
        };
        balanced(conditions, op).ok_or_else(|| not_known(sql))
    }

    fn is(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        Ok(match sql {
            SqlExpr::IsNull(sql) => self.expr(sql, depth)?.is_null(),
            SqlExpr::IsNotNull(sql) => self.expr(sql, depth)?.is_not_null(),
            SqlExpr::IsTrue(sql) => self.condition(sql, depth)?.is_true(),
            SqlExpr::IsNotTrue(sql) => self.condition(sql, depth)?.is_not_true(),
            SqlExpr::IsFalse(sql) => self.condition(sql, depth)?.is_false(),
            SqlExpr::IsNotFalse(sql) => self.condition(sql, depth)?.is_not_false(),
            SqlExpr::IsUnknown(sql) => self.condition(sql, depth)?.is_unknown(),
            SqlExpr::IsNotUnknown(sql) => self.condition(sql, depth)?.is_not_unknown(),
            _ => return Err(not_known(sql)),
        })
    }

    fn test(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        let inner = |sql: &SqlExpr| self.expr(sql, depth);
        let (test, negated) = match sql {
            SqlExpr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let value = inner(expr)?;
                let low = self.compare(value.clone(), Operator::GtEq, inner(low)?)?;
                let high = self.compare(value, Operator::LtEq, inner(high)?)?;
                (low.and(high), *negated)
            }
            SqlExpr::InList {
                expr,
                list,
                negated,
            } => {
                let value = inner(expr)?;
                let tests = list
                    .iter()
                    .map(|item| self.compare(value.clone(), Operator::Eq, inner(item)?))
                    .collect::<Result<Vec<_>, Reason>>()?;
                let any = balanced(tests, Operator::Or).ok_or_else(|| not_known(sql))?;
                (any, *negated)
            }
            SqlExpr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let (text, pattern) = (self.text(inner(expr)?)?, self.text(inner(pattern)?)?);
                (text.like(pattern), *negated)
            }
            _ => return Err(not_known(sql)),
        };
        Ok(match negated {
            true => Expr::Not(Box::new(test)),
            false => test,
        })
    }

    fn case(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        let SqlExpr::Case {
            operand,
            conditions,
            else_result,
            ..
        } = sql
        else {
            return Err(not_known(sql));
        };
        let inner = |sql: &SqlExpr| self.expr(sql, depth);
        let operand = operand.as_deref().map(inner).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            let when = match &operand {
                Some(operand) => {
                    let value = inner(&branch.condition)?;
                    self.compare(operand.clone(), Operator::Eq, value)?
                }
                None => self.condition(&branch.condition, depth)?,
            };
            branches.push((Box::new(when), Box::new(inner(&branch.result)?)));
        }
        let otherwise = else_result.as_deref().map(inner).transpose()?;
        // Values of several kinds would be made into one kind, by rules that differ.
        let values = branches.iter().map(|(_, then)| then.as_ref());
        one_family(values.chain(otherwise.as_ref()), self.schema)?;
        let case = Case {
            expr: None,
            when_then_expr: branches,
            else_expr: otherwise.map(Box::new),
        };
        choice(case, self.schema)
    }

    fn cast(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        let (value, to) = match sql {
            SqlExpr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => (self.expr(expr, depth)?, type_named(data_type)?),
            SqlExpr::TypedString(TypedString {
                data_type, value, ..
            }) => match &value.value {
                Value::SingleQuotedString(text) => (lit(text.as_str()), type_named(data_type)?),
                _ => return Err(not_known(sql)),
            },
            _ => return Err(not_known(sql)),
        };
        to_type(value, &to, self.schema)
    }

    /// The name and the arguments of a function, also of one with a syntax of its own.
    fn arguments(&self, sql: &SqlExpr, depth: usize) -> Result<(String, Vec<Expr>), Reason> {
        let (name, arguments) = match sql {
            SqlExpr::Function(function) => parts(function)?,
            SqlExpr::Extract { field, expr, .. } => {
                let part = match field {
                    DateTimeField::Year => "year",
                    DateTimeField::Quarter => "quarter",
                    DateTimeField::Month => "month",
                    DateTimeField::Day => "day",
                    DateTimeField::Hour => "hour",
                    DateTimeField::Minute => "minute",
                    _ => return Err(not_known(sql)),
                };
                (part.to_owned(), vec![expr.as_ref()])
            }
            SqlExpr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                ..
            } => {
                let mut arguments = vec![expr.as_ref(), from.as_ref()];
                arguments.extend(substring_for.as_deref());
                ("substring".to_owned(), arguments)
            }
            SqlExpr::Trim {
                trim_where: None,
                trim_what: None,
                expr,
                trim_characters: None,
            } => ("trim".to_owned(), vec![expr.as_ref()]),
            SqlExpr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => ("floor".to_owned(), vec![expr.as_ref()]),
            SqlExpr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime),
            } => ("ceil".to_owned(), vec![expr.as_ref()]),
            _ => return Err(not_known(sql)),
        };
        let arguments = arguments
            .into_iter()
            .map(|argument| self.expr(argument, depth))
            .collect::<Result<_, Reason>>()?;
        Ok((name, arguments))
    }

    /// A column, or a field inside of one. Names match in any case, an exact one first.
    fn column(&self, names: &[Ident]) -> Result<Expr, Reason> {
        let Some((first, fields)) = names.split_first() else {
            return Err("a name without parts".to_owned());
        };
        let first = find(self.schema.fields(), &first.value)?;
        let column = Expr::Column(Column::new_unqualified(first.name()));
        let (expr, _) = fields
            .iter()
            .try_fold((column, first.data_type().clone()), |(expr, of), name| {
                field_of(expr, &of, &name.value)
            })?;
        Ok(expr)
    }

    fn value(&self, value: &Value) -> Result<Expr, Reason> {
        match value {
            Value::Number(digits, _) => number_literal(digits),
            Value::SingleQuotedString(text) => Ok(lit(text.as_str())),
            Value::DoubleQuotedString(text) => {
                self.doubly.set(true);
                match self.quoted {
                    Quoted::Text => Ok(lit(text.as_str())),
                    Quoted::Name => self.column(&[Ident::new(text.as_str())]),
                }
            }
            Value::Boolean(value) => Ok(lit(*value)),
            Value::Null => Ok(Expr::Literal(ScalarValue::Null, None)),
            other => Err(format!("{other} is no value that is known")),
        }
    }

    fn binary(
        &self,
        sql: &SqlExpr,
        left: &SqlExpr,
        op: &BinaryOperator,
        right: &SqlExpr,
        depth: usize,
    ) -> Result<Expr, Reason> {
        let op = match op {
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::Spaceship => Operator::IsNotDistinctFrom,
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            BinaryOperator::StringConcat => Operator::StringConcat,
            _ => return Err(not_known(sql)),
        };
        let (left, right) = (self.expr(left, depth)?, self.expr(right, depth)?);
        match op {
            Operator::StringConcat => call("concat", vec![left, right], self.schema),
            Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo => arithmetic(left, op, right, self.schema),
            op => self.compare(left, op, right),
        }
    }

    fn compared(
        &self,
        left: &SqlExpr,
        op: Operator,
        right: &SqlExpr,
        depth: usize,
    ) -> Result<Expr, Reason> {
        self.compare(self.expr(left, depth)?, op, self.expr(right, depth)?)
    }

    fn compare(&self, left: Expr, op: Operator, right: Expr) -> Result<Expr, Reason> {
        compare(left, op, right, self.schema)
    }

    fn condition(&self, sql: &SqlExpr, depth: usize) -> Result<Expr, Reason> {
        let expr = self.expr(sql, depth)?;
        match family_of(&expr, self.schema)? {
            Family::Boolean => Ok(expr),
            Family::Null => Ok(cast(expr, DataType::Boolean)),
            _ => Err(format!("{sql} is no condition")),
        }
    }

    fn number(&self, expr: Expr) -> Result<Expr, Reason> {
        match family_of(&expr, self.schema)? {
            Family::Number => Ok(expr),
            _ => Err(format!("{expr} is no number")),
        }
    }

    fn text(&self, expr: Expr) -> Result<Expr, Reason> {
        match family_of(&expr, self.schema)? {
            Family::Text => Ok(expr),
            _ => Err(format!("{expr} is no text")),
        }
    }
}

/// `conditions` with `op`, AND or OR, between them, of little depth and in their order.
fn balanced(mut conditions: Vec<Expr>, op: Operator) -> Option<Expr> {
    while conditions.len() > 1 {
        let mut halves = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            halves.push(match rest.next() {
                Some(right) => binary_expr(left, op, right),
                None => left,
            });
        }
        conditions = halves;
    }
    conditions.pop()
}

/// A whole number, which is an INT if it fits.
fn whole_literal(digits: &str) -> Option<Expr> {
    match digits.parse::<i32>() {
        Ok(int) => Some(lit(int)),
        Err(_) => digits.parse::<i64>().ok().map(lit),
    }
}

/// Numbers as in Spark: whole ones are whole, those with a point are decimals, those with an exponent
/// doubles.
pub(super) fn number_literal(digits: &str) -> Result<Expr, Reason> {
    let odd = || format!("{digits} is no number that is known");
    if let Some(whole) = whole_literal(digits) {
        return Ok(whole);
    }
    if digits.contains(['e', 'E']) {
        return digits.parse::<f64>().map(lit).map_err(|_| odd());
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let unscaled: i128 = format!("{whole}{fraction}").parse().map_err(|_| odd())?;
    let scale = i8::try_from(fraction.len()).map_err(|_| odd())?;
    let precision = whole.trim_start_matches('0').len() + fraction.len();
    match u8::try_from(precision.max(1)) {
        Ok(precision) if precision <= 38 => Ok(lit(ScalarValue::Decimal128(
            Some(unscaled),
            precision,
            scale,
        ))),
        _ => Err(odd()),
    }
}

/// The field that `name` means.
pub(super) fn find<'f>(fields: &'f Fields, name: &str) -> Result<&'f Arc<Field>, Reason> {
    if let Some(exact) = fields.iter().find(|field| field.name() == name) {
        return Ok(exact);
    }
    let folded = name.to_lowercase();
    let mut alike = fields
        .iter()
        .filter(|field| field.name().to_lowercase() == folded);
    match (alike.next(), alike.next()) {
        (Some(field), None) => Ok(field),
        (Some(_), Some(_)) => Err(format!("several columns are called {name}")),
        (None, _) => Err(format!("there is no column {name}")),
    }
}

fn not_known(sql: &SqlExpr) -> Reason {
    format!("`{sql}` is not known to mean the same here and in the engine that made the rule")
}
