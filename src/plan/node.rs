//! The logical node of a change to a Delta table.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, Result as DFResult};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use super::filled::FilledColumns;
use crate::error::Error;
use crate::read::provider::{DisjointTableProvider, Pin};

/// What a [`DeltaDml`] node does to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DmlKind {
    /// `INSERT INTO`: the input's rows come.
    Insert,
    /// `INSERT OVERWRITE`: all rows go, the input's rows come.
    Overwrite,
    /// `UPDATE`: the input has new values, file and position of each changed row.
    Update,
    /// `DELETE`: the input has file and position of each row that goes.
    Delete,
    /// `TRUNCATE TABLE`: all rows go.
    Truncate,
    /// `MERGE INTO`: the input has values, file, position and action of each row that is changed
    /// or comes.
    Merge(MergeShape),
}

/// What the clauses of a MERGE can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MergeShape {
    /// Whether rows of the table may change or go.
    pub changes_rows: bool,
    /// Whether rows may come: new ones, or others in the place of old ones.
    pub brings_rows: bool,
    /// Whether several rows of the source may ask for the same row to go: `WHEN MATCHED THEN
    /// DELETE` is the only MATCHED clause, so that it does not matter which of them does it.
    pub repeats: bool,
}

impl DmlKind {
    /// The name of the operation in the table's history.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Insert | Self::Overwrite => "WRITE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Truncate => "TRUNCATE",
            Self::Merge(_) => "MERGE",
        }
    }
}

/// A change to one Delta table; its input is the statement's whole plan.
#[derive(Clone)]
pub struct DeltaDml {
    kind: DmlKind,
    table_name: String,
    target: DisjointTableProvider,
    input: Arc<LogicalPlan>,
    parameters: Vec<(String, String)>,
    key_columns: Vec<usize>,
    filled: FilledColumns,
}

impl DeltaDml {
    pub(super) fn new(
        kind: DmlKind,
        table_name: String,
        target: DisjointTableProvider,
        input: LogicalPlan,
    ) -> Self {
        Self {
            kind,
            table_name,
            target,
            input: Arc::new(input),
            parameters: vec![],
            key_columns: vec![],
            filled: FilledColumns::default(),
        }
    }

    pub(super) fn with_parameters(self, parameters: Vec<(String, String)>) -> Self {
        Self { parameters, ..self }
    }

    pub(super) fn with_key_columns(self, key_columns: Vec<usize>) -> Self {
        Self {
            key_columns,
            ..self
        }
    }

    pub(super) fn with_filled(self, filled: FilledColumns) -> Self {
        Self { filled, ..self }
    }

    /// The columns whose values the statement leaves to the table.
    pub(super) fn filled(&self) -> &FilledColumns {
        &self.filled
    }

    /// What stands in `operationParameters` besides what is recorded while planning.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// The table's columns, by index, that a row is called by in messages.
    pub fn key_columns(&self) -> &[usize] {
        &self.key_columns
    }

    /// What is done.
    pub fn kind(&self) -> DmlKind {
        self.kind
    }

    /// The table that is changed; pinned once the statement is about to run.
    pub fn target(&self) -> &DisjointTableProvider {
        &self.target
    }

    /// The name the statement calls the table by.
    pub fn table_name(&self) -> &str {
        &self.table_name
    }

    /// The plan of the changed rows.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    pub(super) fn with_input(&self, input: LogicalPlan) -> Self {
        Self {
            input: Arc::new(input),
            ..self.clone()
        }
    }

    pub(super) fn pinned(&self, pin: Pin) -> Self {
        Self {
            target: self.target.pinned(pin),
            ..self.clone()
        }
    }
}

/// The columns of a change's result: one row, `count`.
pub(super) fn count_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        Arc::new(Schema::new(vec![Field::new(
            "count",
            DataType::UInt64,
            false,
        )]))
    });
    Arc::clone(&SCHEMA)
}

static COUNT_DFSCHEMA: LazyLock<DFSchemaRef> = LazyLock::new(|| {
    Arc::new(DFSchema::try_from(count_schema()).unwrap_or_else(|_| DFSchema::empty()))
});

impl DeltaDml {
    fn key(&self) -> (DmlKind, &str, &str, &LogicalPlan) {
        (
            self.kind,
            &self.table_name,
            self.target.handle().location(),
            &self.input,
        )
    }
}

impl PartialEq for DeltaDml {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DeltaDml {}

impl PartialOrd for DeltaDml {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.key().partial_cmp(&other.key())
    }
}

impl Hash for DeltaDml {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for DeltaDml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl UserDefinedLogicalNodeCore for DeltaDml {
    fn name(&self) -> &'static str {
        "DeltaDml"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &COUNT_DFSCHEMA
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeltaDml: {:?} table={}", self.kind, self.table_name)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self {
                input: Arc::new(input),
                ..self.clone()
            }),
            _ => Err(Error::internal("DeltaDml has one input").into()),
        }
    }
}
