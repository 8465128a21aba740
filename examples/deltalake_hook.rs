//! Two OPTIMIZE of one table overlap in time. deltalake 1.1 lets both commit, and every row is there
//! twice. With the hook the second one is turned away, and can simply run again.
//!
//! `cargo run --example deltalake_hook`

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use delta_disjoint::hook;
use deltalake::kernel::transaction::{CommitConflictError, TransactionError};
use deltalake::protocol::SaveMode;
use deltalake::{DeltaTable, DeltaTableError, open_table};
use url::Url;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FILES: i64 = 4;
const ROWS: i64 = 1_000;

#[tokio::main]
async fn main() -> Outcome<()> {
    println!("without hook");
    let folder = tempfile::tempdir()?;
    let url = create(folder.path()).await?;
    let (first, second) = (
        open_table(url.clone()).await?,
        open_table(url.clone()).await?,
    );
    first.optimize().await?;
    second.optimize().await?;
    let rows = count(&url).await?;
    println!("  both committed; {rows} rows of {}", FILES * ROWS);
    assert_eq!(rows, 2 * FILES * ROWS);

    println!("with hook");
    let folder = tempfile::tempdir()?;
    let url = create(folder.path()).await?;
    let (first, second) = (
        open_table(url.clone()).await?,
        open_table(url.clone()).await?,
    );
    let guard = hook::guard(second);
    let report = guard.report();
    let second = guard.await?;
    hook::guard(first).await?.optimize().await?;
    let Err(error) = second.optimize().await else {
        return Err("the second OPTIMIZE should have met the first".into());
    };
    assert!(matches!(
        error,
        DeltaTableError::Transaction {
            source: TransactionError::CommitConflict(CommitConflictError::ConcurrentDeleteDelete)
        }
    ));
    println!("  {}", report.verdict().ok_or("no verdict")?);
    assert_eq!(count(&url).await?, FILES * ROWS);
    // Again, on the newest version.
    hook::guard(open_table(url.clone()).await?)
        .await?
        .optimize()
        .await?;
    assert_eq!(count(&url).await?, FILES * ROWS);

    println!("without hook: rows doubled; with hook: one abort");
    Ok(())
}

/// A table of some small files.
async fn create(folder: &std::path::Path) -> Outcome<Url> {
    let url = Url::from_directory_path(folder).map_err(|()| "no absolute path")?;
    for file in 0..FILES {
        let ids = Int64Array::from_iter_values(file * ROWS..(file + 1) * ROWS);
        let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)])?;
        let table = DeltaTable::try_from_url(url.clone()).await?;
        let write = table.write(vec![batch]);
        write.with_save_mode(SaveMode::Append).await?;
    }
    Ok(url)
}

async fn count(url: &Url) -> Outcome<i64> {
    let ctx = SessionContext::new();
    let provider = open_table(url.clone()).await?.table_provider().await?;
    ctx.register_table("t", provider)?;
    let batches = ctx.sql("SELECT count(*) FROM t").await?.collect().await?;
    let first = batches.first().ok_or("no rows")?;
    Ok(first.column(0).as_primitive::<Int64Type>().value(0))
}
