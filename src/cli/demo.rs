//! `demo`: two writers at once, told in a few lines.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{Error, session, sql};

use super::Environment;
use super::failure::Failure;
use super::output::{print, tell};

/// Customers in the table, in as many files as [`FILES`].
const CUSTOMERS: i64 = 4000;
const FILES: i64 = 4;

/// Shows two writers that change one table at the same time.
///
/// It makes a table in a temporary folder, which it removes, and starts pairs of statements at the
/// same version of it.
#[derive(Debug, Args)]
#[command(
    about = "Shows two writers that change one table at the same time",
    after_help = "Example:\n  delta-disjoint demo"
)]
pub(crate) struct DemoArguments {}

pub(crate) async fn run(_: &DemoArguments, environment: &Environment) -> Result<ExitCode, Failure> {
    let folder = Folder::make()?;
    let mut interrupts = environment.interrupts.clone();
    tokio::select! {
        () = interrupts.next() => Err(Failure::interrupted("interrupted")),
        shown = show(&folder) => shown,
    }
}

async fn show(folder: &Folder) -> Result<ExitCode, Failure> {
    let ctx = session();
    let table = make_table(&ctx, folder).await?;
    print(&format!(
        "A table of orders in {FILES} files, {} customers in each. It is not partitioned.\n",
        CUSTOMERS / FILES
    ))?;

    let low = "UPDATE orders SET status = 'done' WHERE customer_id < 100";
    let high = "DELETE FROM orders WHERE customer_id >= 3900";
    let meeting = "UPDATE orders SET status = 'late' WHERE customer_id BETWEEN 50 AND 150";
    let low_again = "UPDATE orders SET status = 'sent' WHERE customer_id < 100";
    let high_again = "DELETE FROM orders WHERE customer_id >= 3800";

    print("\n1. Disjoint customers: both commit.\n")?;
    let first = race(&ctx, &table, [low, high]).await?;
    print("\n2. The same customers: the second one would overwrite what it never saw.\n")?;
    let second = race(&ctx, &table, [low_again, meeting]).await?;
    print("\n3. Disjoint customers, checked without the statistics of files.\n")?;
    run_statement(&ctx, "SET delta.conflict_data_skipping = false").await?;
    let third = race(&ctx, &table, [low, high_again]).await?;

    let batches = run_statement(&ctx, "SELECT count(*) FROM orders").await?;
    let rows = batches.first().map_or(0, |batch| {
        batch.column(0).as_primitive::<Int64Type>().value(0)
    });
    print(&format!(
        "\nDisjoint writers that committed: {} of 2 with statistics, {} of 2 without. {rows} orders \
         are left.\n",
        first.committed, third.committed
    ))?;
    let is_as_told = (first.committed, second.committed, third.committed) == (2, 1, 1);
    if is_as_told && rows == CUSTOMERS - 100 {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Failure::statement("this is not what should have happened"))
    }
}

/// A table with a file for each range of customers.
async fn make_table(ctx: &SessionContext, folder: &Folder) -> Result<TableHandle, Failure> {
    let location = folder.path.join("orders").display().to_string();
    let quoted = location.replace('\'', "''");
    run_statement(
        ctx,
        &format!(
            "CREATE EXTERNAL TABLE orders (customer_id BIGINT, status VARCHAR) STORED AS DELTA \
             LOCATION '{quoted}'"
        ),
    )
    .await?;
    let step = CUSTOMERS / FILES;
    for file in 0..FILES {
        let (first, last) = (file * step, (file + 1) * step - 1);
        run_statement(
            ctx,
            &format!(
                "INSERT INTO orders SELECT value, 'new' FROM generate_series({first}, {last})"
            ),
        )
        .await?;
    }
    Ok(TableHandle::at(&location, Default::default(), false)?)
}

struct Outcome {
    committed: usize,
}

/// Plans both statements at one version, then runs one after the other.
async fn race(
    ctx: &SessionContext,
    table: &TableHandle,
    statements: [&str; 2],
) -> Result<Outcome, Failure> {
    let version = table.newest().await?.version;
    let mut writers: Vec<(char, Arc<dyn ExecutionPlan>, Arc<TaskContext>)> = Vec::new();
    for (name, statement) in ['A', 'B'].into_iter().zip(statements) {
        print(&format!(
            "   {name} starts at version {version}: {statement}\n"
        ))?;
        let frame = sql(ctx, statement).await?;
        let context = Arc::new(frame.task_ctx());
        // Planning pins the statement to the newest version.
        writers.push((name, frame.create_physical_plan().await?, context));
    }
    let mut committed = 0;
    for (name, plan, context) in writers {
        match collect(plan, context).await {
            Ok(batches) => {
                committed += 1;
                let version = table.newest().await?.version;
                let rows = count(&batches);
                print(&format!(
                    "   {name} committed version {version}: {rows} rows\n"
                ))?;
            }
            Err(error) => match Error::find(&error) {
                Some(error) if error.is_retryable() => {
                    print(&format!("   {name} did not commit: {error}\n"))?;
                }
                _ => return Err(error.into()),
            },
        }
    }
    Ok(Outcome { committed })
}

async fn run_statement(
    ctx: &SessionContext,
    statement: &str,
) -> Result<Vec<RecordBatch>, DataFusionError> {
    sql(ctx, statement).await?.collect().await
}

fn count(batches: &[RecordBatch]) -> u64 {
    batches
        .first()
        .and_then(|batch| batch.column(0).as_primitive_opt::<UInt64Type>())
        .map_or(0, |counts| counts.iter().flatten().sum())
}

/// A temporary folder that goes when it is dropped.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn make() -> Result<Self, Failure> {
        let name = format!("delta-disjoint-demo-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| {
            Failure::statement(format!("{} cannot be made: {error}", path.display()))
        })?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tell(&format!("{} stays behind: {error}", self.path.display()));
        }
    }
}
