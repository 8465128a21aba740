//! The two columns that say where a row lies: its file and its position in that file.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use parquet::arrow::RowNumber;

/// Column with the index of the row's file in the snapshot's list of files, `UInt32`.
pub const FILE_COLUMN: &str = "__delta_disjoint_file";

/// Column with the position of the row in its file, `Int64`, counted from 0 over all rows that
/// the file physically holds.
pub const ROW_COLUMN: &str = "__delta_disjoint_row";

/// The field of [`FILE_COLUMN`].
pub fn file_field() -> FieldRef {
    Arc::new(Field::new(FILE_COLUMN, DataType::UInt32, false))
}

/// The field of [`ROW_COLUMN`]; DataFusion's Parquet source fills it in.
pub fn row_field() -> FieldRef {
    Arc::new(Field::new(ROW_COLUMN, DataType::Int64, false).with_extension_type(RowNumber))
}

/// `schema` with the two position columns at its end.
pub fn with_positions(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    fields.push(file_field());
    fields.push(row_field());
    Arc::new(Schema::new(fields))
}
