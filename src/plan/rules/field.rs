//! A field of a struct.
//!
//! A struct that is NULL may hide values in its fields. DataFusion's own function shows them; for SQL,
//! they are NULL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{Result as DFResult, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::convert::find;
use super::expression::Reason;

/// The field `name` of `base`, whose type is `data_type`, and the type of the field.
pub(super) fn field_of(
    base: Expr,
    data_type: &DataType,
    name: &str,
) -> Result<(Expr, DataType), Reason> {
    let DataType::Struct(fields) = data_type else {
        return Err(format!("{name} is no field of a {data_type}"));
    };
    let field = find(fields, name)?;
    let function = ScalarUDF::from(FieldOf {
        signature: Signature::any(1, Volatility::Immutable),
        field: field.name().clone(),
    });
    Ok((
        Arc::new(function).call(vec![base]),
        field.data_type().clone(),
    ))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FieldOf {
    signature: Signature,
    field: String,
}

impl ScalarUDFImpl for FieldOf {
    fn name(&self) -> &str {
        "field_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DFResult<DataType> {
        match types {
            [DataType::Struct(fields)] => match fields.find(&self.field) {
                Some((_, field)) => Ok(field.data_type().clone()),
                None => plan_err!("there is no field {}", self.field),
            },
            other => plan_err!("{} is no field of {other:?}", self.field),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DFResult<ColumnarValue> {
        let [base] = arguments.args.as_slice() else {
            return exec_err!("a field of no struct");
        };
        let base = base.to_array(arguments.number_rows)?;
        let Some(base) = base.as_struct_opt() else {
            return exec_err!("a field of no struct");
        };
        let Some(field) = base.column_by_name(&self.field) else {
            return exec_err!("a struct without the field {}", self.field);
        };
        Ok(ColumnarValue::Array(with_nulls_of(field, base.nulls())?))
    }
}

/// `field` with NULL where its struct is.
fn with_nulls_of(field: &ArrayRef, nulls: Option<&NullBuffer>) -> DFResult<ArrayRef> {
    if nulls.is_none() || field.data_type() == &DataType::Null {
        return Ok(Arc::clone(field));
    }
    let nulls = NullBuffer::union(field.nulls(), nulls);
    Ok(make_array(
        field.to_data().into_builder().nulls(nulls).build()?,
    ))
}
