//! Expressions over the table's columns as expressions over the columns of one file.
//!
//! DataFusion's Parquet source asks for them file by file, for what it projects and for the filters
//! that were pushed into it. Its own adapter goes by name; so it is shown the file under the table's
//! names, and the columns of what it answers get the file's names back. Columns with structs inside
//! are converted whole, since its casts of structs go by name as well.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result as DFResult, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::PhysicalExpr;

use super::convert::{convert, is_mapped, position_in};
use super::has_names_inside;
use crate::error::{Error, Result};

/// Finds the columns of a [mapped schema](super::mapped_schema) in files.
#[derive(Debug)]
pub(in crate::read) struct MappedColumns {
    /// Whether columns are found by field id and not by physical name.
    pub(in crate::read) by_id: bool,
}

impl PhysicalExprAdapterFactory for MappedColumns {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> DFResult<Arc<dyn PhysicalExprAdapter>> {
        let columns = resolve(&table, &file, self.by_id)?;
        // No column of a table is called so: what it does not have in the file stays unseen.
        let unseen = |(index, field): (usize, &FieldRef)| {
            Arc::new(field.as_ref().clone().with_name(format!("\u{0}{index}")))
        };
        let mut shown: Vec<FieldRef> = file.fields().iter().enumerate().map(unseen).collect();
        let mut columns_of_file: Vec<FileColumn> = file
            .fields()
            .iter()
            .map(|field| FileColumn {
                name: field.name().clone(),
                converted: None,
            })
            .collect();
        for (field, position) in table.fields().iter().zip(columns) {
            let Some(position) = position else { continue };
            let (Some(shown), Some(column)) =
                (shown.get_mut(position), columns_of_file.get_mut(position))
            else {
                return internal_err!("no column {position} in the file");
            };
            let mut seen = shown.as_ref().clone().with_name(field.name());
            if is_mapped(field) && has_names_inside(field.data_type()) {
                seen = seen.with_data_type(field.data_type().clone());
                column.converted = Some(field.data_type().clone());
            }
            *shown = Arc::new(seen);
        }
        let inner =
            DefaultPhysicalExprAdapterFactory.create(table, Arc::new(Schema::new(shown)))?;
        Ok(Arc::new(MappedAdapter {
            inner,
            columns: columns_of_file,
            by_id: self.by_id,
        }))
    }
}

/// For each column of `table` its position in `file`, if it is there.
fn resolve(table: &Schema, file: &Schema, by_id: bool) -> Result<Vec<Option<usize>>> {
    // Those that the Parquet reader makes up come after the file's own.
    let made_up = table
        .fields()
        .iter()
        .filter(|field| !is_mapped(field))
        .count();
    let own = file.fields().len().saturating_sub(made_up);
    table
        .fields()
        .iter()
        .map(|field| {
            if is_mapped(field) {
                let columns = file.fields().iter().take(own).map(AsRef::as_ref);
                position_in(field, columns, by_id)
            } else {
                let mut columns = file.fields().iter();
                Ok(columns.rposition(|column| column.name() == field.name()))
            }
        })
        .collect()
}

#[derive(Debug)]
struct FileColumn {
    name: String,
    /// The table's type, where the column has to be converted to it.
    converted: Option<DataType>,
}

#[derive(Debug)]
struct MappedAdapter {
    inner: Arc<dyn PhysicalExprAdapter>,
    columns: Vec<FileColumn>,
    by_id: bool,
}

impl PhysicalExprAdapter for MappedAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> DFResult<Arc<dyn PhysicalExpr>> {
        self.inner
            .rewrite(expr)?
            .transform_up(|node| {
                let Some(column) = node.downcast_ref::<Column>() else {
                    return Ok(Transformed::no(node));
                };
                let index = column.index();
                let Some(of_file) = self.columns.get(index) else {
                    return internal_err!("no column {index} in the file");
                };
                let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&of_file.name, index));
                Ok(Transformed::yes(match &of_file.converted {
                    Some(target) => Arc::new(ConvertedColumn {
                        column,
                        target: target.clone(),
                        by_id: self.by_id,
                    }),
                    None => column,
                }))
            })
            .data()
    }
}

/// A column of a file with structs inside, as the table declares it.
#[derive(Debug, Eq)]
struct ConvertedColumn {
    column: Arc<dyn PhysicalExpr>,
    target: DataType,
    by_id: bool,
}

impl PartialEq for ConvertedColumn {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.target == other.target && self.by_id == other.by_id
    }
}

impl Hash for ConvertedColumn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.target.hash(state);
        self.by_id.hash(state);
    }
}

impl fmt::Display for ConvertedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mapped({})", self.column)
    }
}

impl PhysicalExpr for ConvertedColumn {
    fn return_field(&self, input_schema: &Schema) -> DFResult<FieldRef> {
        let field = self.column.return_field(input_schema)?;
        Ok(Arc::new(Field::new(
            field.name(),
            self.target.clone(),
            field.is_nullable(),
        )))
    }

    fn evaluate(&self, batch: &RecordBatch) -> DFResult<ColumnarValue> {
        let column = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(convert(
            &column,
            &self.target,
            self.by_id,
        )?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DFResult<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(column), true) => Ok(Arc::new(Self {
                column,
                target: self.target.clone(),
                by_id: self.by_id,
            })),
            _ => Err(Error::internal("a mapped column has one column of the file").into()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
