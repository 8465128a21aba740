//! The logical node around a MERGE's source: a barrier, so that what is read of it is all of it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{Column, DFSchemaRef, Result as DFResult};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::error::Error;
use crate::read::keys::SourceKeys;

/// The source of a MERGE whose rows are read to their end before the table's files are chosen.
///
/// Filters and limits do not cross it, and all of its columns are kept: the planner gives it none
/// that is not used.
#[derive(Clone)]
pub(in crate::plan) struct MergeSource {
    pub(in crate::plan) join: uuid::Uuid,
    /// The columns of `input` that the table's rows are compared with.
    pub(in crate::plan) keys: Vec<Column>,
    pub(in crate::plan) input: Arc<LogicalPlan>,
    /// Where the keys go; nothing in a plan that is not pinned.
    pub(in crate::plan) state: Option<Arc<SourceKeys>>,
}

impl MergeSource {
    pub(in crate::plan) fn with_state(&self, state: Arc<SourceKeys>) -> Self {
        Self {
            state: Some(state),
            ..self.clone()
        }
    }

    fn key(&self) -> (uuid::Uuid, &[Column], &LogicalPlan) {
        (self.join, &self.keys, &self.input)
    }
}

impl PartialEq for MergeSource {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for MergeSource {}

impl PartialOrd for MergeSource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.key().partial_cmp(&other.key())
    }
}

impl Hash for MergeSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for MergeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl UserDefinedLogicalNodeCore for MergeSource {
    fn name(&self) -> &'static str {
        "MergeSource"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(Column::flat_name).collect();
        write!(f, "MergeSource: keys=[{}]", keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self {
                input: Arc::new(input),
                ..self.clone()
            }),
            _ => Err(Error::internal("MergeSource has one input").into()),
        }
    }
}

/// The node behind an extension, if it is a MERGE's source.
pub(in crate::plan) fn merge_source(extension: &Extension) -> Option<&MergeSource> {
    extension.node.as_any().downcast_ref()
}
