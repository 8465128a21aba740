//! From a list of files to a plan that reads them.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema};
use datafusion::catalog::Session;
use datafusion::common::config::TableParquetOptions;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfigBuilder, ParquetSource, parquet::ParquetRowSelection,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr_adapter::PhysicalExprAdapterFactory;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use deltalake::kernel::Add;
use object_store::ObjectMeta;
use object_store::path::Path;
use parquet::arrow::arrow_reader::RowSelection;

use super::column_mapping::{ColumnMappingMode, MappedColumns, mapped_schema, physical_name};
use super::deletion_vector::{HiddenRows, rows_that_stay};
use super::keys::KeyedScan;
use super::nested_nulls::{NestedNullsExec, with_optional_insides};
use super::partition_value::parse_partition_value;
use super::path::FileLocation;
use super::positions::{file_field, row_field, with_positions};
use super::scan::{DeltaScanExec, ScanSummary};
use super::snapshot::TableSnapshot;
use super::table::TableHandle;
use crate::error::{Error, Result};

/// A file to read, whole or in part.
#[derive(Debug, Clone)]
pub(crate) struct ScanFile {
    /// Index in the snapshot's list of files.
    pub(crate) index: usize,
    /// Rows to read; all where there is none.
    pub(crate) selection: Option<RowSelection>,
}

impl ScanFile {
    /// The rows of the file at `index` that are not hidden.
    pub(crate) fn visible(index: usize, hidden: Option<&HiddenRows>) -> Self {
        Self {
            index,
            selection: hidden.map(|hidden| rows_that_stay(&hidden.rows, hidden.total)),
        }
    }
}

/// A scan of some files of a snapshot.
#[derive(Debug)]
pub(crate) struct FilesScan<'a> {
    /// The table.
    pub(crate) handle: &'a TableHandle,
    /// The version.
    pub(crate) snapshot: &'a TableSnapshot,
    /// The files, in order.
    pub(crate) files: Vec<ScanFile>,
    /// Whether file and position come after the table's columns.
    pub(crate) positions: bool,
}

impl FilesScan<'_> {
    /// The plan for a query: `projection` by index into the table's columns (and positions);
    /// `keyed` will leave files out when the keys of a join are known.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a partition value that can't be read, `Unsupported` for a file in another
    /// object store than the table's.
    pub(crate) fn plan(
        self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
        summary: ScanSummary,
        keyed: Option<Arc<KeyedScan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = self.source(
            session.config_options(),
            session.runtime_env(),
            session.config().target_partitions(),
            projection,
            limit,
        )?;
        Ok(Arc::new(DeltaScanExec::new(
            source,
            Arc::new(summary),
            keyed,
        )))
    }

    /// The bare source in at most `partitions` partitions, without a gate: for plans that nothing
    /// optimises.
    ///
    /// # Errors
    ///
    /// As [`FilesScan::plan`].
    pub(crate) fn source(
        &self,
        config: &ConfigOptions,
        runtime: &RuntimeEnv,
        partitions: usize,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let layout = Layout::of(self.snapshot, self.positions)?;
        let root = self.handle.log_store().root_url();
        let locations = self
            .files
            .iter()
            .map(|file| FileLocation::of(root, &self.add(file)?.path))
            .collect::<Result<Vec<_>>>()?;
        let all_in_table = locations
            .iter()
            .all(|location| matches!(location, FileLocation::InTable(_)));
        // A source has one object store: the table's, or the one around it if a file lies there.
        let (store_url, store) = if all_in_table {
            (self.handle.store_url(), self.handle.object_store())
        } else {
            let store = self.handle.root_object_store();
            (self.handle.root_store_url(), store)
        };
        runtime.register_object_store(store_url.as_ref(), store);
        let files = self
            .files
            .iter()
            .zip(&locations)
            .map(|(file, location)| {
                let path = if all_in_table {
                    location.path().clone()
                } else {
                    location.path_from(root)?
                };
                self.partitioned_file(file, path, &layout)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut groups = FileGroup::new(files).split_files(partitions.max(1));
        if groups.is_empty() {
            // A plan without any partition breaks operators that ask for exactly one.
            groups.push(FileGroup::default());
        }

        let mut options = TableParquetOptions {
            global: config.execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        // Spark writes INT96 for timestamps of any age; Delta's unit is the microsecond.
        options.global.coerce_int96 = Some("us".to_owned());
        let source = ParquetSource::new(layout.table.clone()).with_table_parquet_options(options);

        let all: Vec<usize> = (0..layout.order.len()).collect();
        let projected: Vec<usize> = projection
            .unwrap_or(&all)
            .iter()
            .copied()
            .filter(|index| *index < layout.order.len())
            .collect();
        let projection: Vec<usize> = projected
            .iter()
            .filter_map(|index| layout.order.get(*index).copied())
            .collect();
        let config = FileScanConfigBuilder::new(store_url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_expr_adapter(layout.adapter)
            .with_limit(limit)
            .with_projection_indices(Some(projection))
            .map_err(|e| Error::internal("cannot project the scan").with_source(e))?
            .build();
        let source = DataSourceExec::from_data_source(config);
        let declared = layout
            .declared
            .project(&projected)
            .map_err(|e| Error::internal("cannot project the scan").with_source(e))?;
        Ok(NestedNullsExec::around(source, Arc::new(declared)))
    }

    fn add(&self, file: &ScanFile) -> Result<&Add> {
        self.snapshot
            .files
            .get(file.index)
            .map(AsRef::as_ref)
            .ok_or_else(|| Error::internal(format!("no file number {}", file.index)))
    }

    fn partitioned_file(
        &self,
        file: &ScanFile,
        path: Path,
        layout: &Layout,
    ) -> Result<PartitionedFile> {
        let add = self.add(file)?;
        let mut values = Vec::with_capacity(layout.partition_fields.len() + 1);
        for field in &layout.partition_fields {
            let raw = add
                .partition_values
                .get(physical_name(field))
                .ok_or_else(|| {
                    Error::corrupt(format!(
                        "the file {} has no value for partition column {}",
                        add.path,
                        field.name()
                    ))
                })?;
            values.push(
                parse_partition_value(raw.as_deref(), field.data_type()).map_err(|e| {
                    Error::corrupt(format!(
                        "partition column {} of the file {}: {}",
                        field.name(),
                        add.path,
                        e.message()
                    ))
                })?,
            );
        }
        if self.positions {
            let index = u32::try_from(file.index)
                .map_err(|_| Error::unsupported("a table with more than 2^32 files"))?;
            values.push(ScalarValue::UInt32(Some(index)));
        }
        let mut partitioned =
            PartitionedFile::new_from_meta(object_meta(add, path)?).with_partition_values(values);
        if let Some(selection) = &file.selection {
            partitioned = partitioned.with_extension(ParquetRowSelection::new(selection.clone()));
        }
        Ok(partitioned)
    }
}

fn object_meta(add: &Add, location: Path) -> Result<ObjectMeta> {
    Ok(ObjectMeta {
        location,
        last_modified: chrono::DateTime::from_timestamp_millis(add.modification_time)
            .unwrap_or_default(),
        size: u64::try_from(add.size)
            .map_err(|_| Error::corrupt(format!("the file {} has a negative size", add.path)))?,
        e_tag: None,
        version: None,
    })
}

/// DataFusion wants file columns, then partition columns, then virtual ones; the table has them in
/// its own order.
struct Layout {
    table: TableSchema,
    /// How the columns of files are found, where not by the table's names.
    adapter: Option<Arc<dyn PhysicalExprAdapterFactory>>,
    partition_fields: Vec<FieldRef>,
    /// For each column of the table (and each position): its place in `table`.
    order: Vec<usize>,
    /// The columns of the table (and the positions) as the table declares them.
    declared: Schema,
}

impl Layout {
    fn of(snapshot: &TableSnapshot, positions: bool) -> Result<Self> {
        let is_partition = |field: &FieldRef| {
            snapshot
                .metadata
                .partition_columns
                .iter()
                .any(|name| name == field.name())
        };
        let mapped = mapped_schema(&snapshot.schema, &snapshot.metadata)?;
        let adapter: Option<Arc<dyn PhysicalExprAdapterFactory>> =
            match ColumnMappingMode::of(&snapshot.metadata.configuration)? {
                ColumnMappingMode::None => None,
                ColumnMappingMode::Name => Some(Arc::new(MappedColumns { by_id: false })),
                ColumnMappingMode::Id => Some(Arc::new(MappedColumns { by_id: true })),
            };
        let fields = mapped.fields();
        let (partition_fields, file_fields): (Vec<FieldRef>, Vec<FieldRef>) =
            fields.iter().cloned().partition(is_partition);
        let mut constants = partition_fields.clone();
        let loose: Vec<FieldRef> = file_fields.iter().map(with_optional_insides).collect();
        let mut builder = TableSchema::builder(Arc::new(Schema::new(loose)));
        if positions {
            constants.push(file_field());
            builder = builder.with_virtual_columns(vec![row_field()]);
        }
        let table = builder.with_table_partition_cols(constants).build();

        let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let (file, row) = (file_field(), row_field());
        if positions {
            names.push(file.name());
            names.push(row.name());
        }
        let declared = if positions {
            with_positions(&snapshot.schema).as_ref().clone()
        } else {
            snapshot.schema.as_ref().clone()
        };
        let order = names
            .into_iter()
            .map(|name| {
                table
                    .table_schema()
                    .index_of(name)
                    .map_err(|e| Error::internal("column order").with_source(e))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            table,
            adapter,
            partition_fields,
            order,
            declared,
        })
    }
}
