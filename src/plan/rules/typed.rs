//! Types: what may be compared, computed and cast so that it means the same in Spark.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::functions::expr_fn::{nanvl, nullif};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, cast, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use super::convert::number_literal;
use super::expression::Reason;

/// Kinds of types; within one, values are compared the same way by everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Null,
    Boolean,
    Number,
    Text,
    Time,
    Binary,
    Other,
}

pub(super) fn data_type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType, Reason> {
    expr.get_type(schema).map_err(|error| error.to_string())
}

pub(super) fn family_of(expr: &Expr, schema: &DFSchema) -> Result<Family, Reason> {
    Ok(family(&data_type_of(expr, schema)?))
}

fn family(data_type: &DataType) -> Family {
    match data_type {
        DataType::Null => Family::Null,
        DataType::Boolean => Family::Boolean,
        DataType::Decimal128(..) => Family::Number,
        numeric if numeric.is_integer() || is_float(numeric) => Family::Number,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Family::Text,
        DataType::Date32 | DataType::Timestamp(..) => Family::Time,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Family::Binary,
        _ => Family::Other,
    }
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Refuses values of several kinds.
pub(super) fn one_family<'e>(
    values: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Result<(), Reason> {
    let mut first = None;
    for value in values {
        let family = family_of(value, schema)?;
        match first {
            _ if family == Family::Null => {}
            None => first = Some(family),
            Some(first) if first == family => {}
            Some(_) => {
                return Err(format!(
                    "{value} is of another kind than what it stands beside"
                ));
            }
        }
    }
    Ok(())
}

/// `left op right` for a comparison.
///
/// Floats are compared as doubles, as Spark does it: NaN is equal to itself and greater than
/// everything, and there is one zero. Arrow's order tells NaNs and zeros of either sign apart.
pub(super) fn compare(
    left: Expr,
    op: Operator,
    right: Expr,
    schema: &DFSchema,
) -> Result<Expr, Reason> {
    let types = (data_type_of(&left, schema)?, data_type_of(&right, schema)?);
    match (family(&types.0), family(&types.1)) {
        (Family::Number, Family::Number) if is_float(&types.0) || is_float(&types.1) => Ok(
            binary_expr(one_zero_one_nan(left), op, one_zero_one_nan(right)),
        ),
        (Family::Time, Family::Text) => {
            Ok(binary_expr(left, op, to_type(right, &types.0, schema)?))
        }
        (Family::Text, Family::Time) => {
            Ok(binary_expr(to_type(left, &types.1, schema)?, op, right))
        }
        (Family::Null, Family::Other) | (Family::Other, _) | (_, Family::Other) => Err(format!(
            "{left} {op} {right} compares values that are not plain"
        )),
        (Family::Null, _) | (_, Family::Null) => Ok(binary_expr(left, op, right)),
        (one, other) if one == other => Ok(binary_expr(left, op, right)),
        _ => Err(format!(
            "{left} {op} {right} compares a {} with a {}",
            types.0, types.1
        )),
    }
}

/// Whether `expr` is a text that everybody reads as the same time. What engines make of other forms
/// differs, and so do the forms that the texts of a column may have.
fn is_time_text(expr: &Expr, to: &DataType) -> bool {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expr else {
        return false;
    };
    let is_date = |text: &str| {
        text.len() == 10
            && text
                .chars()
                .zip("dddd-dd-dd".chars())
                .all(|(found, wanted)| match wanted {
                    'd' => found.is_ascii_digit(),
                    other => found == other,
                })
    };
    match (to, text.get(..10)) {
        (DataType::Date32, _) => is_date(text),
        (_, Some(date)) => is_date(date),
        _ => false,
    }
}

fn one_zero_one_nan(expr: Expr) -> Expr {
    let double = cast(expr, DataType::Float64);
    // Adding zero makes the negative zero positive.
    nanvl(
        binary_expr(double, Operator::Plus, lit(0.0_f64)),
        lit(f64::NAN),
    )
}

/// `left op right` for a sum, a difference, a product, a quotient or a remainder.
///
/// A quotient is a fraction, also that of whole numbers, and what is divided by zero is NULL.
pub(super) fn arithmetic(
    left: Expr,
    op: Operator,
    right: Expr,
    schema: &DFSchema,
) -> Result<Expr, Reason> {
    let types = [data_type_of(&left, schema)?, data_type_of(&right, schema)?];
    let has = |wanted: fn(&DataType) -> bool| types.iter().any(wanted);
    if types.iter().any(|t| family(t) != Family::Number) {
        return Err(format!(
            "{left} {op} {right} is no computation with numbers"
        ));
    }
    let decimal = has(|t| matches!(t, DataType::Decimal128(..)));
    if decimal && !has(is_float) && matches!(op, Operator::Divide | Operator::Modulo) {
        return Err(format!(
            "{left} {op} {right} divides decimals, which engines round differently"
        ));
    }
    let common = if op == Operator::Divide || has(|t| *t == DataType::Float64) {
        Some(DataType::Float64)
    } else if !has(is_float) {
        None
    } else if decimal {
        Some(DataType::Float64)
    } else {
        Some(DataType::Float32)
    };
    let [left, right] = [left, right].map(|expr| match &common {
        Some(common) => cast(expr, common.clone()),
        None => expr,
    });
    let right = match (op, &common) {
        (Operator::Divide | Operator::Modulo, Some(common)) => {
            let zero = cast(lit(0.0_f64), common.clone());
            let one_zero = binary_expr(right, Operator::Plus, zero.clone());
            nullif(one_zero, zero)
        }
        (Operator::Modulo, None) => nullif(right, cast(lit(0_i32), types[1].clone())),
        _ => right,
    };
    Ok(binary_expr(left, op, right))
}

/// `expr` with the other sign. Of whole numbers there is one that has none, which is an error then.
pub(super) fn negative(expr: Expr, schema: &DFSchema) -> Result<Expr, Reason> {
    let data_type = data_type_of(&expr, schema)?;
    Ok(match data_type.is_integer() {
        true => binary_expr(cast(lit(0_i32), data_type), Operator::Minus, expr),
        false => Expr::Negative(Box::new(expr)),
    })
}

/// `case` with all its values in one type, so that this is the type that it is known by.
pub(super) fn choice(case: Case, schema: &DFSchema) -> Result<Expr, Reason> {
    coerced(Expr::Case(case), schema)
}

/// `expr` with the casts that its operators need.
pub(super) fn coerced(expr: Expr, schema: &DFSchema) -> Result<Expr, Reason> {
    ExprSimplifier::new(SimplifyContext::builder().build())
        .coerce(expr, schema)
        .map_err(|error| error.to_string())
}

/// `expr` in another type, where every engine gives the same value or an error.
pub(super) fn to_type(expr: Expr, to: &DataType, schema: &DFSchema) -> Result<Expr, Reason> {
    let from = data_type_of(&expr, schema)?;
    if from == *to {
        return Ok(expr);
    }
    if let (Expr::Literal(ScalarValue::Utf8(Some(text)), _), DataType::Decimal128(..)) = (&expr, to)
    {
        // In the form that deltalake writes decimals in.
        let number = match text.strip_prefix('-') {
            Some(digits) => Expr::Negative(Box::new(number_literal(digits)?)),
            None => number_literal(text)?,
        };
        return to_type(number, to, schema);
    }
    let whole_or_decimal = |t: &DataType| t.is_integer() || matches!(t, DataType::Decimal128(..));
    let same = match (family(&from), family(to)) {
        (Family::Null, _) => true,
        (Family::Number, Family::Number) => {
            // How many digits are dropped is a matter of rounding.
            !matches!(to, DataType::Decimal128(..)) || keeps_digits(&from, to)
        }
        (Family::Boolean | Family::Time, Family::Number) => false,
        (Family::Number, Family::Text) => from.is_integer(),
        (Family::Boolean, Family::Text) => true,
        (Family::Time, Family::Text) => from == DataType::Date32,
        (Family::Text, Family::Text) => true,
        (Family::Text, Family::Time) => is_time_text(&expr, to),
        (Family::Text, Family::Number) => whole_or_decimal(to) && to.is_integer() || is_float(to),
        (Family::Time, Family::Time) => true,
        _ => false,
    };
    match same {
        true => Ok(cast(expr, to.clone())),
        false => Err(format!(
            "the cast of {expr} from {from} to {to} differs between engines"
        )),
    }
}

fn keeps_digits(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) => to >= from,
        (from, _) => from.is_integer(),
    }
}

/// The type that Arrow calls so, as far as Delta tables have it.
pub(super) fn arrow_type_named(name: &str) -> Result<DataType, Reason> {
    let unknown = || format!("the type {name} is not known");
    let data_type: DataType = name.parse().map_err(|_| unknown())?;
    match data_type {
        DataType::Timestamp(_, None) => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Timestamp(_, Some(zone)) if zone.as_ref() == "UTC" => {
            Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(zone)))
        }
        DataType::Timestamp(..) => Err(unknown()),
        DataType::Utf8View | DataType::LargeUtf8 => Ok(DataType::Utf8),
        known => Ok(known),
    }
}

/// The type that SQL calls so. `TIMESTAMP` is Spark's, an instant; without a zone it is read as UTC.
pub(super) fn type_named(sql: &SqlType) -> Result<DataType, Reason> {
    Ok(match sql {
        SqlType::Boolean | SqlType::Bool => DataType::Boolean,
        SqlType::TinyInt(None) => DataType::Int8,
        SqlType::SmallInt(None) => DataType::Int16,
        SqlType::Int(None) | SqlType::Integer(None) => DataType::Int32,
        SqlType::BigInt(None) => DataType::Int64,
        SqlType::Float(ExactNumberInfo::None) | SqlType::Real => DataType::Float32,
        SqlType::Double(ExactNumberInfo::None) | SqlType::DoublePrecision => DataType::Float64,
        SqlType::Decimal(info) | SqlType::Numeric(info) | SqlType::Dec(info) => {
            let (precision, scale) = match info {
                ExactNumberInfo::None => (10, 0),
                ExactNumberInfo::Precision(precision) => (*precision, 0),
                ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
            };
            match (u8::try_from(precision), i8::try_from(scale)) {
                (Ok(precision @ 1..=38), Ok(scale)) if (0..=precision as i8).contains(&scale) => {
                    DataType::Decimal128(precision, scale)
                }
                _ => return Err(format!("there is no type {sql}")),
            }
        }
        SqlType::String(None) | SqlType::Text | SqlType::Varchar(None) => DataType::Utf8,
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp(None, TimezoneInfo::None) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        SqlType::TimestampNtz(None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Custom(name, arguments) if arguments.is_empty() => {
            match name.to_string().to_ascii_lowercase().as_str() {
                "byte" => DataType::Int8,
                "short" => DataType::Int16,
                "long" => DataType::Int64,
                _ => return Err(format!("the type {sql} is not known")),
            }
        }
        _ => return Err(format!("the type {sql} is not known")),
    })
}
