//! Tables of many files: what it takes to open one, to plan a statement that needs one file, and to
//! commit.
//!
//! `cargo bench --bench large_table` prints a line for each step, with tables of 10,000 and 100,000
//! files, or of as many as are named behind `--`; as a test it runs with 100 files. All but one of the files are in the log alone, with
//! statistics on eight columns: that nothing opens them shows that they are pruned.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use delta_disjoint::{session, sql};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Ids in one file.
const ROWS: usize = 1000;

/// Columns with statistics besides the id.
const COLUMNS: usize = 7;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<usize> = arguments
        .iter()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    if sizes.is_empty() {
        // What `cargo bench` passes and `cargo test` does not.
        let full = arguments.iter().any(|argument| argument == "--bench");
        sizes = if full {
            vec![10_000, 100_000]
        } else {
            vec![100]
        };
    }
    let runtime = tokio::runtime::Runtime::new()?;
    for files in sizes {
        runtime.block_on(run(files))?;
    }
    Ok(())
}

async fn run(files: usize) -> Outcome<()> {
    println!("{files} files");
    let folder = tempfile::tempdir()?;
    let location = folder.path().to_str().ok_or("no UTF-8 path")?;
    create(&session(), location).await?;
    append_to_log(folder.path(), files)?;

    let clock = Clock::start();
    let ctx = session();
    let text = format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'");
    sql(&ctx, &text).await?;
    clock.stop("open");

    // The one real file, whose ids lie behind those of all others.
    let id = files * ROWS;
    let clock = Clock::start();
    let columns = vec![id.to_string(); COLUMNS + 1].join(", ");
    sql(
        &ctx,
        &format!("INSERT INTO t VALUES ({columns}), (-{columns})"),
    )
    .await?
    .collect()
    .await?;
    clock.stop("INSERT");

    let point = format!("SELECT c1 FROM t WHERE id = {id}");
    for step in ["plan, new version", "plan a point", "plan a point again"] {
        let clock = Clock::start();
        let plan = plan(&ctx, &point).await?;
        clock.stop(step);
        assert_eq!(files_kept(&plan), Some(1), "one file is left");
    }
    let conjunction = format!(
        "SELECT c1 FROM t WHERE id >= {id} AND c2 > {} AND c3 <> 7 AND c4 IS NOT NULL",
        id - 1
    );
    let clock = Clock::start();
    let plan_of_four = plan(&ctx, &conjunction).await?;
    clock.stop("plan four conditions");
    assert_eq!(files_kept(&plan_of_four), Some(1), "one file is left");

    let clock = Clock::start();
    let delete = plan(&ctx, &format!("DELETE FROM t WHERE id = {id}")).await?;
    clock.stop("plan DELETE");
    // A winner in between, so that the conflict check has something to do.
    let other = session();
    sql(&other, &text).await?;
    let far = vec![(2 * id).to_string(); COLUMNS + 1].join(", ");
    sql(&other, &format!("INSERT INTO t VALUES ({far})"))
        .await?
        .collect()
        .await?;
    drop(other);
    let clock = Clock::start();
    collect(delete, ctx.task_ctx()).await?;
    clock.stop("DELETE of one row, one winner");
    println!("  peak memory of the process: {}", peak_memory());
    Ok(())
}

async fn create(ctx: &SessionContext, location: &str) -> Outcome<()> {
    let columns: Vec<String> = (1..=COLUMNS)
        .map(|column| format!("c{column} BIGINT"))
        .collect();
    sql(
        ctx,
        &format!(
            "CREATE EXTERNAL TABLE t (id BIGINT, {}) STORED AS DELTA LOCATION '{location}'",
            columns.join(", ")
        ),
    )
    .await?;
    Ok(())
}

/// Version 1: `files` files that are nowhere.
fn append_to_log(folder: &Path, files: usize) -> Outcome<()> {
    let mut lines = String::from(r#"{"commitInfo":{"operation":"WRITE"}}"#);
    for file in 0..files {
        let (first, last) = (file * ROWS, (file + 1) * ROWS - 1);
        let bounds = |bound: usize| {
            (1..=COLUMNS).fold(format!(r#"{{"id":{bound}"#), |mut text, column| {
                let _ = write!(text, r#","c{column}":{bound}"#);
                text
            }) + "}"
        };
        let stats = format!(
            r#"{{"numRecords":{ROWS},"minValues":{},"maxValues":{},"nullCount":{}}}"#,
            bounds(first),
            bounds(last),
            bounds(0)
        );
        let stats = stats.replace('"', "\\\"");
        let _ = write!(
            lines,
            "\n{{\"add\":{{\"path\":\"part-{file:08}-c000.snappy.parquet\",\"partitionValues\":{{}},\
             \"size\":1000000,\"modificationTime\":0,\"dataChange\":true,\"stats\":\"{stats}\"}}}}"
        );
    }
    std::fs::write(folder.join(format!("_delta_log/{:020}.json", 1)), lines)?;
    Ok(())
}

async fn plan(ctx: &SessionContext, text: &str) -> Outcome<Arc<dyn ExecutionPlan>> {
    Ok(sql(ctx, text).await?.create_physical_plan().await?)
}

/// How many files the scan in `plan` reads.
fn files_kept(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    use delta_disjoint::read::scan::DeltaScanExec;
    if let Some(scan) = plan.downcast_ref::<DeltaScanExec>() {
        let summary = scan.summary();
        return Some(summary.files_total - summary.files_pruned);
    }
    plan.children().into_iter().find_map(files_kept)
}

struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn stop(self, step: &str) {
        println!(
            "  {step:<32} {:>10.1} ms",
            self.0.elapsed().as_secs_f64() * 1e3
        );
    }
}

/// The most memory that the process had so far, where the system tells.
fn peak_memory() -> String {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            Some(line.trim_start_matches("VmHWM:").trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned())
}
