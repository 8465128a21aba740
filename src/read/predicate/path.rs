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
