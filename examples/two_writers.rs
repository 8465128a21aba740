//! Two UPDATEs of disjoint customers overlap in time on an unpartitioned table. With conflict-time
//! data skipping both commit; without it one of them is turned away.
//!
//! `cargo run --example two_writers`

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use delta_disjoint::commit::Verdict;
use delta_disjoint::{session, sql};
use tpchgen::generators::OrderGenerator;
use tpchgen_arrow::{OrderArrow, RecordBatchIterator};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SCALE: f64 = 0.1;
/// TPC-H has 150,000 customers at scale 1.
const CUSTOMERS: i64 = 15_000;
const FILES: i64 = 16;
/// Customers whose orders are updated: those of the first file and those of the last.
const RANGES: [(i64, i64); 2] = [(1, 900), (14_100, 15_000)];

#[tokio::main]
async fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let location = folder.path().join("orders");
    let ctx = session();
    load_orders(&ctx, &location.to_string_lossy()).await?;

    println!("\nskipping on");
    let on = race(&ctx, true, 1).await?;
    println!("\nskipping off");
    let off = race(&ctx, false, 3).await?;

    let loser = off
        .iter()
        .find_map(Option::as_deref)
        .unwrap_or("no conflict");
    let committed = |outcomes: &[Option<String>]| outcomes.iter().filter(|o| o.is_none()).count();
    println!(
        "\nskipping on: {} of 2 committed; skipping off: {} of 2 committed ({loser})",
        committed(&on),
        committed(&off)
    );
    Ok(())
}

/// Generates TPC-H orders into an unpartitioned Delta table, laid out by customer.
async fn load_orders(ctx: &SessionContext, location: &str) -> Outcome<()> {
    println!("generating TPC-H orders at scale {SCALE}");
    let orders = OrderArrow::new(OrderGenerator::new(SCALE, 1, 1));
    let schema = Arc::clone(orders.schema());
    let batches: Vec<RecordBatch> = orders.collect();
    let generated = MemTable::try_new(schema, vec![batches])?;
    ctx.register_table("generated", Arc::new(generated))?;

    run(
        ctx,
        &format!(
            "CREATE EXTERNAL TABLE orders (
               o_orderkey BIGINT NOT NULL, o_custkey BIGINT NOT NULL, o_orderstatus VARCHAR,
               o_totalprice DECIMAL(15, 2), o_orderdate DATE, o_orderpriority VARCHAR,
               o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR
             ) STORED AS DELTA LOCATION '{location}'"
        ),
    )
    .await?;
    let step = (CUSTOMERS + FILES - 1) / FILES;
    for file in 0..FILES {
        let (first, last) = (file * step + 1, (file + 1) * step);
        run(
            ctx,
            &format!(
                "INSERT INTO orders SELECT * FROM generated \
                 WHERE o_custkey BETWEEN {first} AND {last}"
            ),
        )
        .await?;
    }
    let rows = number(ctx, "SELECT count(*) FROM orders").await?;
    println!("{rows} orders in an unpartitioned table of {FILES} files by o_custkey");
    Ok(())
}

/// Starts one UPDATE for each range at one version, runs them together and checks the rows. For
/// each: nothing if it committed, else the kind of conflict.
async fn race(ctx: &SessionContext, skipping: bool, mark: i64) -> Outcome<Vec<Option<String>>> {
    run(
        ctx,
        &format!("SET delta.conflict_data_skipping = {skipping}"),
    )
    .await?;
    let mut writers = Vec::new();
    for (writer, (first, last)) in RANGES.into_iter().enumerate() {
        let statement = format!(
            "UPDATE orders SET o_shippriority = {} WHERE o_custkey BETWEEN {first} AND {last}",
            mark + writer as i64
        );
        println!("  writer {}: {statement}", writer + 1);
        let frame = sql(ctx, &statement).await?;
        let context = Arc::new(frame.task_ctx());
        // Planning pins the statement to the newest version: both start there.
        writers.push((frame.create_physical_plan().await?, context));
    }
    let running: Vec<_> = writers
        .into_iter()
        .map(|(plan, context)| tokio::spawn(collect(plan, context)))
        .collect();

    let mut outcomes = Vec::new();
    for (writer, running) in running.into_iter().enumerate() {
        match running.await? {
            Ok(batches) => {
                println!(
                    "  writer {}: committed, {:?} rows",
                    writer + 1,
                    counted(&batches)
                );
                outcomes.push(None);
            }
            Err(error) => {
                println!("  writer {}: {error}", writer + 1);
                let conflict = Verdict::find(&error).and_then(Verdict::first_conflict);
                outcomes.push(Some(conflict.ok_or(error.to_string())?.kind.to_string()));
            }
        }
    }

    for (writer, ((first, last), outcome)) in RANGES.into_iter().zip(&outcomes).enumerate() {
        let value = mark + writer as i64;
        let marked = format!("SELECT count(*) FROM orders WHERE o_shippriority = {value}");
        let asked =
            format!("SELECT count(*) FROM generated WHERE o_custkey BETWEEN {first} AND {last}");
        let expected = match outcome {
            None => number(ctx, &asked).await?,
            Some(_) => 0,
        };
        assert_eq!(
            number(ctx, &marked).await?,
            expected,
            "rows of writer {writer}"
        );
    }
    let (all, generated) = (
        number(ctx, "SELECT count(*) FROM orders").await?,
        number(ctx, "SELECT count(*) FROM generated").await?,
    );
    assert_eq!(all, generated, "no row is lost or doubled");
    println!("  rows as expected");
    Ok(outcomes)
}

async fn run(ctx: &SessionContext, statement: &str) -> Outcome<Vec<RecordBatch>> {
    Ok(sql(ctx, statement).await?.collect().await?)
}

async fn number(ctx: &SessionContext, query: &str) -> Outcome<i64> {
    let batches = run(ctx, query).await?;
    let first = batches.first().ok_or("no rows")?;
    Ok(first.column(0).as_primitive::<Int64Type>().value(0))
}

fn counted(batches: &[RecordBatch]) -> Option<u64> {
    let column = batches.first()?.column(0);
    Some(
        column
            .as_primitive::<arrow::datatypes::UInt64Type>()
            .value(0),
    )
}
