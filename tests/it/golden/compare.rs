//! One table, read by each of the two, as types and rows that can be compared.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::support::{text_rows, try_run};

/// All rows of a table.
pub struct Rows {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

/// What deltalake makes of a table.
pub enum Theirs {
    Rows(Rows),
    Error(String),
}

impl Rows {
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as text, in order.
    pub fn sorted(&self) -> Vec<String> {
        let mut rows = text_rows(&self.batches);
        rows.sort();
        rows
    }

    /// The first difference between ours and `theirs`.
    pub fn difference(&self, theirs: &Self) -> Option<String> {
        let columns = |schema: &SchemaRef| -> Vec<String> {
            schema
                .fields()
                .iter()
                .map(|field| format!("{} {}", field.name(), describe(field.data_type())))
                .collect()
        };
        let (ours, other) = (columns(&self.schema), columns(&theirs.schema));
        if ours != other {
            return Some(format!("columns {ours:?}, deltalake has {other:?}"));
        }
        first_difference(&self.sorted(), &theirs.sorted())
    }
}

/// Where two sorted lists of rows part.
pub fn first_difference(ours: &[String], theirs: &[String]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    Some(format!(
        "{} rows and {}; the first that differs: {:?} and {:?}",
        ours.len(),
        theirs.len(),
        ours.get(at),
        theirs.get(at)
    ))
}

/// A session of ours with the table in `folder` as `t`.
pub async fn open(folder: &Path) -> Result<SessionContext, DataFusionError> {
    let ctx = delta_disjoint::session();
    let location = folder.display();
    try_run(
        &ctx,
        &format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'"),
    )
    .await?;
    Ok(ctx)
}

/// The table in `folder` as this crate reads it.
pub async fn ours(folder: &Path) -> Result<Rows, DataFusionError> {
    read(&open(folder).await?).await
}

/// The table in `folder` as deltalake's own provider reads it; a panic of its is an error.
pub async fn theirs(folder: &Path) -> Theirs {
    let url = url::Url::from_directory_path(folder.canonicalize().expect("folder")).expect("url");
    let read = tokio::spawn(async move {
        let table = deltalake::open_table(url)
            .await
            .map_err(|e| e.to_string())?;
        let ctx = SessionContext::new();
        table
            .update_datafusion_session(&ctx.state())
            .map_err(|e| e.to_string())?;
        let provider = table.table_provider().await.map_err(|e| e.to_string())?;
        ctx.register_table("t", provider)
            .map_err(|e| e.to_string())?;
        read(&ctx).await.map_err(|e| e.to_string())
    });
    match read.await {
        Ok(Ok(rows)) => Theirs::Rows(rows),
        Ok(Err(error)) => Theirs::Error(error),
        Err(_) => Theirs::Error("it panicked".to_owned()),
    }
}

async fn read(ctx: &SessionContext) -> Result<Rows, DataFusionError> {
    let frame = ctx.sql("SELECT * FROM t").await?;
    let schema = SchemaRef::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await?;
    Ok(Rows { schema, batches })
}

/// A type without what has no meaning in a Delta table: views, dictionaries, names inside of lists.
fn describe(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Dictionary(_, value) => describe(value),
        DataType::List(field) | DataType::LargeList(field) | DataType::ListView(field) => {
            format!("array<{}>", describe(field.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}:{}", field.name(), describe(field.data_type())))
                .collect();
            format!("struct<{}>", fields.join(","))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| describe(field.data_type()))
                    .collect();
                format!("map<{}>", fields.join(","))
            }
            other => format!("map<{other}>"),
        },
        other => other.to_string(),
    }
}
