//! What the tests share: a table in a temporary folder, statements in one line, and statements
//! that are planned now and run later, which is how a test forces two of them to overlap.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::UInt64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use delta_disjoint::commit::{ConflictKind, Verdict};
use delta_disjoint::config::DeltaOptions;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{Error, ErrorKind, session, sql};
use deltalake::DeltaTable;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::second_opinion::{self, SecondOpinion};

/// A session with one table, `t`, in a temporary folder.
pub struct Table {
    pub ctx: SessionContext,
    dir: TempDir,
}

impl Table {
    /// `t` with `columns` and `clauses` (`PARTITIONED BY (…) OPTIONS (…)`), filled by
    /// one INSERT for each of `inserts`, so that each makes its own file.
    pub async fn create(columns: &str, clauses: &str, inserts: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let table = Self {
            ctx: session(),
            dir,
        };
        let location = table.path();
        // PARTITIONED BY stands before LOCATION, OPTIONS after it.
        let (before, after) = match clauses.find("OPTIONS") {
            Some(at) => clauses.split_at(at),
            None => (clauses, ""),
        };
        table
            .run(&format!(
                "CREATE EXTERNAL TABLE t ({columns}) STORED AS DELTA {before} LOCATION \
                 '{location}' {after}"
            ))
            .await;
        for values in inserts {
            table.run(&format!("INSERT INTO t {values}")).await;
        }
        table
    }

    /// `t (id BIGINT, x BIGINT)` with `files` files of `rows` rows; `id` counts up, `x` is `id`.
    pub async fn numbers(files: i64, rows: i64, clauses: &str) -> Self {
        let inserts: Vec<String> = (0..files)
            .map(|file| {
                let first = file * rows;
                format!(
                    "SELECT value AS id, value AS x FROM generate_series({first}, {})",
                    first + rows - 1
                )
            })
            .collect();
        let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
        Self::create("id BIGINT, x BIGINT", clauses, &inserts).await
    }

    /// The table that lies in `dir`, as `t`.
    pub async fn open(dir: TempDir) -> Result<Self, DataFusionError> {
        let ctx = session();
        let location = dir.path().to_str().expect("utf-8 path");
        try_run(
            &ctx,
            &format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'"),
        )
        .await?;
        Ok(Self { ctx, dir })
    }

    /// The table that lies in `dir`, for tests that leave it to deltalake: `ctx` does not know it,
    /// which saves the time to make a session.
    pub fn bare(ctx: SessionContext, dir: TempDir) -> Self {
        Self { ctx, dir }
    }

    /// The table's folder, for a test that writes the log by hand.
    pub fn into_folder(self) -> TempDir {
        self.dir
    }

    /// The same table in a folder of its own, which is `t` of the same session from now on: cheaper
    /// than to fill it again.
    pub async fn copy(&self) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        copy_folder(self.dir.path(), dir.path());
        let table = Self {
            ctx: self.ctx.clone(),
            dir,
        };
        table.ctx.deregister_table("t").expect("deregistered");
        open(&table.ctx, "t", &table.path()).await;
        table
    }

    /// A copy of the table's folder, in memory where the system has a file system there: for tests
    /// that copy a table very often.
    pub fn copy_folder(&self) -> TempDir {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let dir = dir.expect("temporary folder");
        copy_folder(self.dir.path(), dir.path());
        dir
    }

    /// The newest version and the live files, oldest first, by the log's JSON entries alone.
    pub fn log(&self) -> (u64, Vec<String>) {
        let mut live = Vec::new();
        let mut version = 0;
        while self.log_path(version).exists() {
            for action in self.log_entry(version) {
                if let Some(path) = action["remove"]["path"].as_str() {
                    live.retain(|other| other != path);
                }
                if let Some(path) = action["add"]["path"].as_str() {
                    live.push(path.to_owned());
                }
            }
            version += 1;
        }
        (version - 1, live)
    }

    /// All Parquet files in the table's folder, live or not, relative to it.
    pub fn data_files_on_disk(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("folder") {
                let path = entry.expect("entry").path();
                if path.is_dir() {
                    if !path.ends_with("_delta_log") {
                        folders.push(path);
                    }
                } else {
                    let relative = path.strip_prefix(self.dir.path()).expect("inside");
                    files.push(relative.to_str().expect("utf-8").to_owned());
                }
            }
        }
        files.sort();
        files
    }

    /// Fails unless `text` is refused and leaves version, live files and the folder as they were.
    pub async fn refused(&self, text: &str) -> DataFusionError {
        let before = (self.log(), self.data_files_on_disk());
        let error = match try_run(&self.ctx, text).await {
            Ok(_) => panic!("should be refused: {text}"),
            Err(error) => error,
        };
        let after = (self.log(), self.data_files_on_disk());
        assert_eq!(before, after, "{text} left something behind");
        error
    }

    pub fn path(&self) -> String {
        self.dir.path().to_str().expect("utf-8 path").to_owned()
    }

    /// A new session with the same table under the name `t`: another process, as it were.
    pub async fn other_session(&self) -> SessionContext {
        let ctx = session();
        open(&ctx, "t", &self.path()).await;
        ctx
    }

    pub async fn run(&self, text: &str) -> Vec<RecordBatch> {
        run(&self.ctx, text).await
    }

    /// The rows of a query as text, `a|b|c`, NULL as `NULL`.
    pub async fn rows(&self, text: &str) -> Vec<String> {
        rows(&self.ctx, text).await
    }

    /// The `count` of a change.
    pub async fn count(&self, text: &str) -> u64 {
        count(&self.run(text).await)
    }

    pub async fn error(&self, text: &str) -> DataFusionError {
        try_run(&self.ctx, text)
            .await
            .expect_err("the statement should fail")
    }

    /// Plans a statement, which pins it to the newest version, without running it.
    pub async fn plan(&self, text: &str) -> Planned {
        plan(&self.ctx, text).await
    }

    /// The table as deltalake loads it.
    pub async fn deltalake(&self) -> DeltaTable {
        let url = url::Url::from_directory_path(self.path()).expect("url");
        deltalake::open_table(url)
            .await
            .expect("deltalake opens it")
    }

    /// A plain DataFusion session with deltalake's own provider of the table as `t`.
    pub async fn deltalake_session(&self) -> SessionContext {
        let table = self.deltalake().await;
        let ctx = SessionContext::new();
        table
            .update_datafusion_session(&ctx.state())
            .expect("registers the store");
        let provider = table.table_provider().await.expect("provider");
        ctx.register_table("t", provider).expect("registers");
        ctx
    }

    pub async fn version(&self) -> u64 {
        self.deltalake().await.version().expect("a version")
    }

    /// Paths of the live files, by deltalake.
    pub async fn files(&self) -> Vec<String> {
        let table = self.deltalake().await;
        let mut files: Vec<String> = table
            .get_file_uris()
            .expect("files")
            .map(|uri| uri.to_string())
            .collect();
        files.sort();
        files
    }

    /// The commit entry of `version`, one JSON object a line.
    pub fn log_entry(&self, version: u64) -> Vec<serde_json::Value> {
        std::fs::read_to_string(self.log_path(version))
            .expect("log entry")
            .lines()
            .map(|line| serde_json::from_str(line).expect("json"))
            .collect()
    }

    /// Rewrites the commit entry of `version`.
    pub fn change_log_entry(&self, version: u64, change: impl Fn(&mut serde_json::Value)) {
        change_log_entry(self.dir.path(), version, change);
    }

    fn log_path(&self, version: u64) -> PathBuf {
        self.dir
            .path()
            .join(format!("_delta_log/{version:020}.json"))
    }

    /// Puts `actions` into the log as the next version: another writer, made by hand.
    pub async fn put_entry(&self, actions: &[serde_json::Value]) -> u64 {
        let version = self.version().await + 1;
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        let path = self
            .dir
            .path()
            .join(format!("_delta_log/{version:020}.json"));
        assert!(!path.exists(), "version {version} is there already");
        std::fs::write(path, lines.join("\n")).expect("write log entry");
        version
    }

    /// The table's handle in a session of its own.
    pub fn handle(&self) -> Arc<TableHandle> {
        Arc::new(TableHandle::at(&self.path(), HashMap::new(), false).expect("handle"))
    }

    /// The names of the Parquet files in the table's folder, live or not, in order.
    pub fn files_on_disk(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![self.dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("folder") {
                let path = entry.expect("entry").path();
                let name = path.file_name().expect("name").to_string_lossy();
                if path.is_dir() {
                    if name != "_delta_log" {
                        folders.push(path);
                    }
                } else if name.ends_with(".parquet") {
                    names.push(name.into_owned());
                }
            }
        }
        names.sort();
        names
    }

    /// The `commitInfo` of `version`.
    pub fn commit_info(&self, version: u64) -> serde_json::Value {
        self.log_entry(version)
            .into_iter()
            .find_map(|action| action.get("commitInfo").cloned())
            .expect("commitInfo")
    }
}

/// Rewrites the commit entry of `version` of the table in `folder`.
pub fn change_log_entry(folder: &Path, version: u64, change: impl Fn(&mut serde_json::Value)) {
    let path = folder.join(format!("_delta_log/{version:020}.json"));
    let mut lines = Vec::new();
    for line in std::fs::read_to_string(&path).expect("log entry").lines() {
        let mut action = serde_json::from_str(line).expect("json");
        change(&mut action);
        lines.push(action.to_string());
    }
    std::fs::write(path, lines.join("\n")).expect("write log entry");
}

/// A statement that is planned, hence pinned to a version, and not yet run.
pub struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl Planned {
    /// Runs it, and holds what becomes of a change against what `explain` says of it.
    pub async fn run(self) -> Result<Vec<RecordBatch>, DataFusionError> {
        let options = DeltaOptions::from_config(self.context.session_config().options());
        // One that runs again by itself ends otherwise than at first.
        let newest = match options.statement_reruns {
            0 => second_opinion::newest(&self.plan).await,
            _ => None,
        };
        let outcome = collect(Arc::clone(&self.plan), self.context).await;
        let mut opinion = SecondOpinion::default();
        opinion.note(&self.plan);
        if newest.is_some()
            && let Some(answer) = opinion.ask(options.conflict_data_skipping, newest).await
        {
            answer.compare(&outcome).await;
        }
        outcome
    }

    /// Runs it, and asks nobody.
    pub async fn run_unasked(self) -> Result<Vec<RecordBatch>, DataFusionError> {
        collect(self.plan, self.context).await
    }

    /// The `count` of a change that must succeed.
    pub async fn count(self) -> u64 {
        count(&self.run().await.expect("the statement should commit"))
    }

    /// The kind of conflict of a change that must lose.
    pub async fn conflict(self) -> ConflictKind {
        conflict_of(
            &self
                .run()
                .await
                .expect_err("the statement should meet a conflict"),
        )
    }
}

pub async fn plan(ctx: &SessionContext, text: &str) -> Planned {
    let frame = sql(ctx, text).await.expect("plan");
    Planned {
        context: Arc::new(frame.task_ctx()),
        plan: frame.create_physical_plan().await.expect("physical plan"),
    }
}

pub async fn open(ctx: &SessionContext, name: &str, location: &str) {
    run(
        ctx,
        &format!("CREATE EXTERNAL TABLE {name} STORED AS DELTA LOCATION '{location}'"),
    )
    .await;
}

pub async fn try_run(
    ctx: &SessionContext,
    text: &str,
) -> Result<Vec<RecordBatch>, DataFusionError> {
    sql(ctx, text).await?.collect().await
}

pub async fn run(ctx: &SessionContext, text: &str) -> Vec<RecordBatch> {
    match try_run(ctx, text).await {
        Ok(batches) => batches,
        Err(error) => panic!("{text}\n{error}"),
    }
}

pub async fn rows(ctx: &SessionContext, text: &str) -> Vec<String> {
    text_rows(&run(ctx, text).await)
}

pub fn text_rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("format"))
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> = columns
                .iter()
                .map(|column| column.value(row).to_string())
                .collect();
            rows.push(values.join("|"));
        }
    }
    rows
}

pub fn count(batches: &[RecordBatch]) -> u64 {
    let [batch] = batches else {
        panic!("one batch expected, got {}", batches.len());
    };
    assert_eq!(batch.num_rows(), 1, "one row");
    assert_eq!(batch.schema().field(0).name(), "count");
    batch.column(0).as_primitive::<UInt64Type>().value(0)
}

pub fn kind_of(error: &DataFusionError) -> Option<ErrorKind> {
    Error::find(error).map(Error::kind)
}

/// The kind of the first conflict in `error`.
pub fn conflict_of(error: &DataFusionError) -> ConflictKind {
    assert_eq!(kind_of(error), Some(ErrorKind::Conflict), "{error}");
    let verdict = Verdict::find(error).expect("a verdict");
    verdict.first_conflict().expect("a conflict").kind
}

/// Appends one file of `groups` row groups of `rows` rows to `t (id BIGINT, s VARCHAR)`, as another
/// writer would: this crate's own files have one row group where they are small.
pub async fn append_row_groups(table: &Table, groups: i64, rows: i64) {
    let ids = Int64Array::from_iter_values(0..groups * rows);
    let texts = StringArray::from_iter_values((0..groups * rows).map(|id| format!("s{id}")));
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("s", Arc::new(texts) as ArrayRef),
    ])
    .expect("batch");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows as usize))
        .build();
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("writer");
    writer.write(&batch).expect("written");
    assert_eq!(
        writer.close().expect("closed").num_row_groups() as i64,
        groups
    );
    std::fs::write(table.dir.path().join("groups.parquet"), &bytes).expect("file");
    let version = table.log().0 + 1;
    let add = serde_json::json!({"add": {
        "path": "groups.parquet", "partitionValues": {}, "size": bytes.len(),
        "modificationTime": 0, "dataChange": true
    }});
    std::fs::write(table.log_path(version), add.to_string()).expect("log entry");
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("folder");
    for entry in std::fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Waits for work in the background.
pub async fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..2000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen");
}
