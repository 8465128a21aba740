//! MERGE of 20,000 keys, half of them new, into TPC-H `orders`: time and peak memory of this crate's
//! MERGE beside deltalake's `MergeBuilder`, each in a process of its own on a table of its own.
//!
//! `cargo run --release --example merge [scale]`, with a scale factor of 0.1 where none is given.
//! The keys lie once all over the table and once in its last tenth.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::datasource::MemTable;
use datafusion::prelude::{DataFrame, SessionContext};
use delta_disjoint::{session, sql};
use deltalake::DeltaTable;
use tpchgen::generators::OrderGenerator;
use tpchgen_arrow::{OrderArrow, RecordBatchIterator};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const FILES: i64 = 16;
const KEYS: i64 = 20_000;
const COLUMNS: [&str; 9] = [
    "o_orderkey",
    "o_custkey",
    "o_orderstatus",
    "o_totalprice",
    "o_orderdate",
    "o_orderpriority",
    "o_clerk",
    "o_shippriority",
    "o_comment",
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [engine, table, changes] => {
            let (time, rows) = match engine.as_str() {
                "deltalake" => deltalake(table, changes).await?,
                _ => disjoint(table, changes).await?,
            };
            println!(
                "{rows} rows, {:.2} s, {}",
                time.as_secs_f64(),
                peak_memory()
            );
            Ok(())
        }
        [scale] => compare(scale.parse()?).await,
        _ => compare(0.1).await,
    }
}

/// Makes the table and the changes, and runs each engine on a copy.
async fn compare(scale: f64) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let made = folder.path().join("orders");
    println!("generating TPC-H orders at scale {scale}");
    let ctx = generate(scale, &made).await?;
    let last = number(&ctx, "SELECT max(o_orderkey) FROM generated").await?;
    for (name, first) in [
        ("all over the table", 0),
        ("in its last tenth", last / 10 * 9),
    ] {
        let changes = folder.path().join(format!("changes-{first}.parquet"));
        write_changes(&ctx, first, &changes).await?;
        println!("{KEYS} keys {name}");
        for engine in ["delta-disjoint", "deltalake"] {
            let copy = folder.path().join(format!("{engine}-{first}"));
            copy_folder(&made, &copy)?;
            let output = Command::new(std::env::current_exe()?)
                .arg(engine)
                .args([&copy, &changes])
                .output()?;
            println!(
                "  {engine:15} {}{}",
                String::from_utf8_lossy(&output.stdout).trim_end(),
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        let mut sums = Vec::new();
        for engine in ["delta-disjoint", "deltalake"] {
            let copy = folder.path().join(format!("{engine}-{first}"));
            sums.push(checksum(&copy).await?);
        }
        if sums.first() != sums.last() {
            return Err(format!("the two tables differ: {sums:?}").into());
        }
    }
    Ok(())
}

/// TPC-H orders as `generated` of the session and as a Delta table of [`FILES`] files by key.
async fn generate(scale: f64, location: &Path) -> Outcome<SessionContext> {
    let orders = OrderArrow::new(OrderGenerator::new(scale, 1, 1));
    let schema = Arc::clone(orders.schema());
    let batches: Vec<RecordBatch> = orders.collect();
    let ctx = session();
    let generated = MemTable::try_new(schema, vec![batches])?;
    ctx.register_table("generated", Arc::new(generated))?;
    run(
        &ctx,
        &format!(
            "CREATE EXTERNAL TABLE orders (
               o_orderkey BIGINT NOT NULL, o_custkey BIGINT NOT NULL, o_orderstatus VARCHAR,
               o_totalprice DECIMAL(15, 2), o_orderdate DATE, o_orderpriority VARCHAR,
               o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR
             ) STORED AS DELTA LOCATION '{}'",
            location.display()
        ),
    )
    .await?;
    let step = number(&ctx, "SELECT max(o_orderkey) FROM generated").await? / FILES + 1;
    for file in 0..FILES {
        let insert = format!(
            "INSERT INTO orders SELECT * FROM generated \
             WHERE o_orderkey >= {} AND o_orderkey < {}",
            file * step,
            (file + 1) * step
        );
        run(&ctx, &insert).await?;
    }
    let rows = number(&ctx, "SELECT count(*) FROM orders").await?;
    println!("{rows} orders in an unpartitioned table of {FILES} files by o_orderkey");
    Ok(ctx)
}

/// Changed orders from key `first` on, half of them under keys that TPC-H leaves free.
async fn write_changes(ctx: &SessionContext, first: i64, path: &Path) -> Outcome<()> {
    let half = KEYS / 2;
    let orders = number(
        ctx,
        &format!("SELECT count(*) FROM generated WHERE o_orderkey >= {first}"),
    )
    .await?;
    let step = (orders / half).max(1);
    let columns = |key: &str| format!("{key} AS o_orderkey, {}", COLUMNS[1..].join(", "));
    let chosen = format!(
        "(SELECT * FROM (SELECT *, row_number() OVER (ORDER BY o_orderkey) AS place \
          FROM generated WHERE o_orderkey >= {first}) WHERE place % {step} = 0 LIMIT {half})"
    );
    let query = format!(
        "SELECT {} FROM {chosen} UNION ALL SELECT {} FROM {chosen}",
        columns("o_orderkey"),
        columns("o_orderkey + 8")
    );
    run(
        ctx,
        &format!("COPY ({query}) TO '{}' STORED AS PARQUET", path.display()),
    )
    .await?;
    Ok(())
}

async fn disjoint(table: &str, changes: &str) -> Outcome<(Duration, u64)> {
    let ctx = session();
    for (name, format, location) in [("orders", "DELTA", table), ("changes", "PARQUET", changes)] {
        let create =
            format!("CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{location}'");
        run(&ctx, &create).await?;
    }
    let set: Vec<String> = COLUMNS
        .iter()
        .map(|column| format!("{column} = changes.{column}"))
        .collect();
    let values: Vec<String> = COLUMNS
        .iter()
        .map(|column| format!("changes.{column}"))
        .collect();
    let statement = format!(
        "MERGE INTO orders USING changes ON orders.o_orderkey = changes.o_orderkey \
         WHEN MATCHED THEN UPDATE SET {} WHEN NOT MATCHED THEN INSERT VALUES ({})",
        set.join(", "),
        values.join(", ")
    );
    let start = Instant::now();
    let batches = run(&ctx, &statement).await?;
    let time = start.elapsed();
    let rows = batches
        .first()
        .map(|batch| batch.column(0).as_primitive::<UInt64Type>().value(0))
        .ok_or("no count")?;
    Ok((time, rows))
}

async fn deltalake(table: &str, changes: &str) -> Outcome<(Duration, u64)> {
    let ctx = SessionContext::new();
    let source: DataFrame = ctx.read_parquet(changes, Default::default()).await?;
    let table: DeltaTable =
        deltalake::open_table(url::Url::from_directory_path(table).map_err(|()| "no path")?)
            .await?;
    let start = Instant::now();
    let (_, metrics) = table
        .merge(source, "t.o_orderkey = s.o_orderkey")
        .with_source_alias("s")
        .with_target_alias("t")
        .when_matched_update(|update| {
            COLUMNS.into_iter().fold(update, |update, column| {
                update.update(column, format!("s.{column}"))
            })
        })?
        .when_not_matched_insert(|insert| {
            COLUMNS.into_iter().fold(insert, |insert, column| {
                insert.set(column, format!("s.{column}"))
            })
        })?
        .await?;
    let rows = metrics.num_target_rows_updated + metrics.num_target_rows_inserted;
    Ok((start.elapsed(), rows as u64))
}

/// The most memory that this process has had, where the system tells.
fn peak_memory() -> String {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let kilobytes = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()?;
            Some(format!("{} MiB at most", kilobytes / 1024))
        })
        .unwrap_or_else(|| "memory is not known here".to_owned())
}

async fn checksum(location: &Path) -> Outcome<(i64, i64)> {
    let ctx = session();
    run(
        &ctx,
        &format!(
            "CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{}'",
            location.display()
        ),
    )
    .await?;
    Ok((
        number(&ctx, "SELECT count(*) FROM t").await?,
        number(&ctx, "SELECT sum(o_orderkey) FROM t").await?,
    ))
}

async fn run(ctx: &SessionContext, statement: &str) -> Outcome<Vec<RecordBatch>> {
    Ok(sql(ctx, statement).await?.collect().await?)
}

async fn number(ctx: &SessionContext, query: &str) -> Outcome<i64> {
    let batches = run(ctx, query).await?;
    let batch = batches.first().ok_or("no rows")?;
    Ok(batch.column(0).as_primitive::<Int64Type>().value(0))
}

fn copy_folder(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().ok_or("no name")?);
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
