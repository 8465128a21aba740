//! The table provider: what DataFusion's planner sees of a Delta table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchemaRef, Result as DFResult};
use datafusion::datasource::TableType;
use datafusion::logical_expr::dml::{InsertOp, MergeIntoClause};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::collector::ReadCollector;
use super::column_expressions::MADE_BY_TABLE;
use super::deletion_vector::hidden_rows;
use super::features::check_readable;
use super::files_scan::{FilesScan, ScanFile};
use super::keys::{Asked, KeyedRead, KeyedScan};
use super::positions::with_positions;
use super::read_set::Read;
use super::scan::ScanSummary;
use super::snapshot::TableSnapshot;
use super::table::TableHandle;
use crate::error::{Error, Result};

/// A Delta table in a DataFusion catalog.
///
/// As it stands in the catalog it follows the table's newest version. The query planner replaces
/// it, for each execution, by a copy that is pinned to one version and records what it reads.
#[derive(Debug, Clone)]
pub struct DisjointTableProvider {
    handle: Arc<TableHandle>,
    pin: Option<Pin>,
    positions: bool,
    keyed: Option<Arc<KeyedRead>>,
}

/// One version of a table and the place where its reads go.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The version to read.
    pub snapshot: Arc<TableSnapshot>,
    /// Where the statement's reads are recorded.
    pub collector: Arc<ReadCollector>,
}

impl DisjointTableProvider {
    /// The provider of the table of `handle`, whose newest version is loaded.
    ///
    /// # Errors
    ///
    /// `Invalid` if there is no table, `Unsupported` if it cannot be read, see
    /// [`TableHandle::newest`] for the rest.
    pub async fn try_new(handle: Arc<TableHandle>) -> Result<Self> {
        let snapshot = handle.refresh().await?;
        check_readable(&snapshot.protocol, &snapshot.metadata)?;
        Ok(Self {
            handle,
            pin: None,
            positions: false,
            keyed: None,
        })
    }

    /// The table.
    pub fn handle(&self) -> &Arc<TableHandle> {
        &self.handle
    }

    /// Columns of the table, without positions.
    pub fn table_schema(&self) -> SchemaRef {
        match &self.pin {
            Some(pin) => Arc::clone(&pin.snapshot.schema),
            None => self.handle.shown_schema(),
        }
    }

    /// This provider yielding file and position of every row besides the table's columns.
    ///
    /// # Errors
    ///
    /// `Unsupported` if a column of the table bears the name of one of those two.
    pub fn with_positions(&self) -> Result<Self> {
        use super::positions::{FILE_COLUMN, ROW_COLUMN};
        for name in [FILE_COLUMN, ROW_COLUMN] {
            if self.table_schema().index_of(name).is_ok() {
                return Err(Error::unsupported(format!(
                    "the column name {name} is taken by this crate; rename the column"
                )));
            }
        }
        Ok(Self {
            positions: true,
            ..self.clone()
        })
    }

    /// Whether file and position of every row come besides the table's columns.
    pub(crate) fn yields_positions(&self) -> bool {
        self.positions
    }

    /// This provider for a join whose other side says which keys are asked for.
    #[must_use]
    pub(crate) fn with_keys(&self, keyed: KeyedRead) -> Self {
        Self {
            keyed: Some(Arc::new(keyed)),
            ..self.clone()
        }
    }

    /// The join that says which keys are asked for, if there is one.
    pub(crate) fn keyed(&self) -> Option<&KeyedRead> {
        self.keyed.as_deref()
    }

    /// This provider pinned to one version.
    #[must_use]
    pub fn pinned(&self, pin: Pin) -> Self {
        Self {
            pin: Some(pin),
            ..self.clone()
        }
    }

    /// The pin, if there is one.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }
}

#[async_trait]
impl TableProvider for DisjointTableProvider {
    fn schema(&self) -> SchemaRef {
        if self.positions {
            with_positions(&self.table_schema())
        } else {
            self.table_schema()
        }
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// A marker that the planning of changes takes out again. Every column has it: one without a value
    /// of its own today may have one when the statement runs.
    fn get_column_default(&self, _column: &str) -> Option<&Expr> {
        Some(&*MADE_BY_TABLE)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DFResult<Vec<TableProviderFilterPushDown>> {
        // Everything is wanted for the record, nothing is promised.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let pin = match &self.pin {
            Some(pin) => pin.clone(),
            // A session without this crate's query planner: plain reading of the newest version.
            None => {
                let snapshot = self.handle.newest().await?;
                if snapshot.schema.fields() != self.table_schema().fields() {
                    return Err(self.handle.columns_changed(&snapshot).into());
                }
                let pin = Pin {
                    snapshot,
                    collector: ReadCollector::shared(),
                };
                return self
                    .pinned(pin)
                    .scan(session, projection, filters, limit)
                    .await;
            }
        };
        let snapshot = &pin.snapshot;
        check_readable(&snapshot.protocol, &snapshot.metadata)?;

        let (read, kept) = Read::of_scan(snapshot, filters);
        let summary = ScanSummary {
            table: self.handle.location().to_owned(),
            version: snapshot.version,
            scope: read.scope.to_string(),
            files_total: snapshot.files.len(),
            files_pruned: snapshot.files.len() - kept.len(),
            collector: Arc::clone(&pin.collector),
        };
        let ticket = pin.collector.record_for_now(self.handle.location(), read);
        let keyed = self.keyed().and_then(|keyed| {
            let state = keyed.state.as_ref()?;
            let scan = Arc::new(KeyedScan::new(
                keyed,
                &Asked {
                    location: self.handle.location(),
                    snapshot,
                    collector: &pin.collector,
                    ticket,
                    filters,
                    files: &kept,
                },
            ));
            state.await_keys(Arc::clone(&scan));
            Some(scan)
        });

        let hidden = hidden_rows(&self.handle, snapshot, kept.iter().copied()).await?;
        let scan = FilesScan {
            handle: &self.handle,
            snapshot,
            files: kept
                .into_iter()
                .map(|index| ScanFile::visible(index, hidden.get(&index)))
                .collect(),
            positions: self.positions,
        };
        Ok(scan.plan(session, projection, limit, summary, keyed)?)
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(hook_refused("INSERT"))
    }

    async fn delete_from(&self, _: &dyn Session, _: Vec<Expr>) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(hook_refused("DELETE"))
    }

    async fn update(
        &self,
        _: &dyn Session,
        _: Vec<(String, Expr)>,
        _: Vec<Expr>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(hook_refused("UPDATE"))
    }

    async fn truncate(&self, _: &dyn Session) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(hook_refused("TRUNCATE"))
    }

    async fn merge_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: DFSchemaRef,
        _: Expr,
        _: Vec<MergeIntoClause>,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        Err(hook_refused("MERGE"))
    }
}

/// DataFusion's hooks see only fragments of the statement (datafusion #24654): nothing may be
/// changed from there.
fn hook_refused(statement: &str) -> datafusion::error::DataFusionError {
    Error::unsupported(format!(
        "{statement} on a Delta table needs this crate's analyzer rule and query planner; make the \
         session with delta_disjoint::session() or put them onto a SessionStateBuilder with \
         delta_disjoint::register()"
    ))
    .into()
}
