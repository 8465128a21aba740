//! The functions that mean the same in Spark, by DataFusion's own means.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::functions::expr_fn as df;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
};

use super::expression::Reason;
use super::field::field_of;
use super::typed::{
    Family, arrow_type_named, choice, compare, data_type_of, family_of, one_family, to_type,
};

/// Name and arguments of a call that has nothing else to it.
pub(super) fn parts(function: &Function) -> Result<(String, Vec<&SqlExpr>), Reason> {
    let refused = || {
        format!(
            "`{function}` is not known to mean the same here and in the engine that made the rule"
        )
    };
    let Function {
        name,
        args: FunctionArguments::List(list),
        parameters: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group,
        ..
    } = function
    else {
        return Err(refused());
    };
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return Err(refused());
    };
    if !within_group.is_empty() || list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(refused());
    }
    let arguments = list
        .args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Ok(argument),
            _ => Err(refused()),
        })
        .collect::<Result<_, Reason>>()?;
    Ok((name.value.to_ascii_lowercase(), arguments))
}

/// The call of the function `name`.
pub(super) fn call(name: &str, arguments: Vec<Expr>, schema: &DFSchema) -> Result<Expr, Reason> {
    let of = |wanted: Family| {
        move |expr: Expr| match family_of(&expr, schema)? {
            family if family == wanted => Ok(expr),
            _ => Err(format!("{name}({expr}) takes another type")),
        }
    };
    let (text, number, condition) = (of(Family::Text), of(Family::Number), of(Family::Boolean));
    let count = arguments.len();
    if matches!(name, "concat" | "coalesce") && count > 0 {
        return match name {
            "concat" => concat(arguments, schema),
            _ => coalesce(arguments, schema),
        };
    }
    let mut arguments = arguments.into_iter();
    let mut next = || {
        arguments
            .next()
            .ok_or_else(|| format!("{name} takes more arguments"))
    };
    Ok(match (name, count) {
        ("length" | "len" | "char_length" | "character_length", 1) => {
            cast(df::character_length(text(next()?)?), DataType::Int32)
        }
        ("lower" | "lcase", 1) => df::lower(text(next()?)?),
        ("upper" | "ucase", 1) => df::upper(text(next()?)?),
        ("trim", 1) => df::btrim(vec![text(next()?)?]),
        ("ltrim", 1) => df::ltrim(vec![text(next()?)?]),
        ("rtrim", 1) => df::rtrim(vec![text(next()?)?]),
        ("substring" | "substr", 2 | 3) => {
            let (value, from) = (text(next()?)?, next()?);
            let long = (count == 3).then(next).transpose()?;
            // From the end, or from before the beginning, engines count differently.
            match (whole(&from), long.as_ref().map(whole)) {
                (Some(from @ 1..), None) => df::substr(value, lit(from)),
                (Some(from @ 1..), Some(Some(long @ 0..))) => {
                    df::substring(value, lit(from), lit(long))
                }
                _ => {
                    return Err(format!(
                        "{name} takes places and lengths that are numbers from 1 on"
                    ));
                }
            }
        }
        ("startswith", 2) => df::starts_with(text(next()?)?, text(next()?)?),
        ("endswith", 2) => df::ends_with(text(next()?)?, text(next()?)?),
        ("contains", 2) => df::contains(text(next()?)?, text(next()?)?),
        ("abs", 1) => df::abs(number(next()?)?),
        ("floor" | "ceil" | "ceiling", 1) => {
            let value = number(next()?)?;
            match data_type_of(&value, schema)? {
                whole if whole.is_integer() => value,
                DataType::Float64 if name == "floor" => df::floor(value),
                DataType::Float64 => df::ceil(value),
                other => return Err(format!("{name} of a {other} differs between engines")),
            }
        }
        ("isnull", 1) => next()?.is_null(),
        ("isnotnull", 1) => next()?.is_not_null(),
        // NULL is no NaN; DataFusion says NULL.
        ("isnan", 1) => {
            let value = cast(number(next()?)?, DataType::Float64);
            df::isnan(value).is_true()
        }
        ("nvl" | "ifnull", 2) => return coalesce(vec![next()?, next()?], schema),
        ("nullif", 2) => {
            let (value, other) = (next()?, next()?);
            let equal = compare(value.clone(), Operator::Eq, other, schema)?;
            choose(equal, Expr::Literal(ScalarValue::Null, None), value, schema)?
        }
        ("if", 3) => {
            let (test, then, otherwise) = (condition(next()?)?, next()?, next()?);
            one_family([&then, &otherwise].into_iter(), schema)?;
            choose(test, then, otherwise, schema)?
        }
        // How deltalake writes casts and fields of structs.
        ("arrow_cast", 2) => {
            let (value, to) = (next()?, literal(&next()?)?);
            to_type(value, &arrow_type_named(&to)?, schema)?
        }
        ("get_field", 2) => {
            let (value, field) = (next()?, literal(&next()?)?);
            let of = data_type_of(&value, schema)?;
            field_of(value, &of, &field)?.0
        }
        ("date" | "to_date", 1) => to_type(next()?, &DataType::Date32, schema)?,
        ("year" | "quarter" | "month" | "day" | "hour" | "minute" | "second", 1) => {
            date_part(name, next()?, schema)?
        }
        ("dayofmonth", 1) => date_part("day", next()?, schema)?,
        ("dayofyear", 1) => date_part("doy", next()?, schema)?,
        ("date_trunc", 2) => {
            let (unit, value) = (literal(&next()?)?, next()?);
            let unit = unit.to_ascii_lowercase();
            const UNITS: [&str; 7] = ["year", "quarter", "month", "week", "day", "hour", "minute"];
            match data_type_of(&value, schema)? {
                DataType::Timestamp(..) if UNITS.contains(&unit.as_str()) => {
                    df::date_trunc(lit(unit), value)
                }
                other => return Err(format!("{name} of a {other} to a {unit} is not known")),
            }
        }
        ("date_format", 2) => {
            let (value, format) = (next()?, literal(&next()?)?);
            if family_of(&value, schema)? != Family::Time {
                return Err(format!("{name} takes a date or a timestamp"));
            }
            df::to_char(value, lit(date_format(&format)?))
        }
        _ => {
            return Err(format!(
                "the function {name} with {count} arguments is not known to mean the same here and in \
                 the engine that made the rule"
            ));
        }
    })
}

/// A part of a date or a timestamp, as a whole number.
fn date_part(part: &str, value: Expr, schema: &DFSchema) -> Result<Expr, Reason> {
    match data_type_of(&value, schema)? {
        DataType::Timestamp(..) => {}
        DataType::Date32 if !matches!(part, "hour" | "minute" | "second") => {}
        other => return Err(format!("{part} of a {other} is not known")),
    }
    Ok(cast(df::date_part(lit(part), value), DataType::Int32))
}

/// NULL where one of the texts is; DataFusion's own function leaves NULLs out.
fn concat(arguments: Vec<Expr>, schema: &DFSchema) -> Result<Expr, Reason> {
    let mut texts = arguments
        .into_iter()
        .map(|argument| to_type(argument, &DataType::Utf8, schema));
    let first = texts.next().unwrap_or_else(|| Ok(lit("")))?;
    texts.try_fold(first, |left, right| {
        Ok(binary_expr(left, Operator::StringConcat, right?))
    })
}

fn coalesce(mut arguments: Vec<Expr>, schema: &DFSchema) -> Result<Expr, Reason> {
    one_family(arguments.iter(), schema)?;
    let last = arguments.pop();
    if arguments.is_empty() {
        return last.ok_or_else(|| "coalesce takes more arguments".to_owned());
    }
    let case = Case {
        expr: None,
        when_then_expr: arguments
            .into_iter()
            .map(|value| (Box::new(value.clone().is_not_null()), Box::new(value)))
            .collect(),
        else_expr: last.map(Box::new),
    };
    choice(case, schema)
}

fn choose(test: Expr, then: Expr, otherwise: Expr, schema: &DFSchema) -> Result<Expr, Reason> {
    let case = Case {
        expr: None,
        when_then_expr: vec![(Box::new(test), Box::new(then))],
        else_expr: Some(Box::new(otherwise)),
    };
    choice(case, schema)
}

fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int32(value), _) => value.map(i64::from),
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        _ => None,
    }
}

fn literal(expr: &Expr) -> Result<String, Reason> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Ok(text.clone()),
        other => Err(format!("{other} is no text that is known before")),
    }
}

/// Spark's pattern of a date in the form that DataFusion takes.
fn date_format(pattern: &str) -> Result<String, Reason> {
    let mut format = String::new();
    let mut rest = pattern;
    'rest: while let Some(first) = rest.chars().next() {
        for (theirs, ours) in [
            ("yyyy", "%Y"),
            ("MM", "%m"),
            ("dd", "%d"),
            ("HH", "%H"),
            ("mm", "%M"),
            ("ss", "%S"),
        ] {
            if let Some(behind) = rest.strip_prefix(theirs)
                && !behind.starts_with(first)
            {
                format.push_str(ours);
                rest = behind;
                continue 'rest;
            }
        }
        if !matches!(first, '-' | '/' | ':' | '.' | ' ' | '_' | ',') {
            return Err(format!("the pattern {pattern} of date_format is not known"));
        }
        format.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    Ok(format)
}
