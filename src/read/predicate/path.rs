//! Columns and fields of struct columns in expressions.

use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::Expr;

use crate::read::statistics::{Leaf, StatisticsSchema};

/// The column, or the field of a struct column, that `expr` is. However it is written, a field
/// arrives as a call of `get_field` with one or more names.
pub(super) fn leaf_of(expr: &Expr, schema: &StatisticsSchema) -> Option<Leaf> {
    match expr {
        Expr::Alias(alias) => leaf_of(&alias.expr, schema),
        Expr::Column(column) => Some(Leaf::column(schema.index_of(&column.name)?)),
        Expr::ScalarFunction(function) if function.func.inner().is::<GetFieldFunc>() => {
            let (base, names) = function.args.split_first()?;
            names
                .iter()
                .try_fold(leaf_of(base, schema)?, |leaf, name| match name {
                    Expr::Literal(name, _) => schema.leaf_in(&leaf, name.try_as_str()??),
                    _ => None,
                })
        }
        _ => None,
    }
}

/// `column['field']` for a field of a column, as people write it.
pub(super) fn text_of_field(expr: &Expr) -> Option<String> {
    let Expr::ScalarFunction(function) = expr else {
        return None;
    };
    let (Expr::Column(column), names) = function.args.split_first()? else {
        return None;
    };
    if !function.func.inner().is::<GetFieldFunc>() {
        return None;
    }
    names
        .iter()
        .try_fold(column.name.clone(), |text, name| match name {
            Expr::Literal(name, _) => Some(format!("{text}['{}']", name.try_as_str()??)),
            _ => None,
        })
}
