//! The logical node around the side of a join that says which keys are asked for: a barrier, so that
//! what is read of it is all of it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{Column, DFSchemaRef, Result as DFResult};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use crate::error::Error;
use crate::read::keys::SourceKeys;

/// The side of a join whose rows are read to their end before the table's files are chosen: the
/// source of a MERGE, or a subquery that became a semi-join.
///
/// Conditions on its columns and limits do not cross it, and all of its columns are kept. DataFusion
/// does move a condition without columns through it, which is true for all rows or for none: a MERGE
/// refuses one that has another value each time.
#[derive(Clone)]
pub(super) struct KeySource {
    pub(super) join: uuid::Uuid,
    /// The columns of `input` that the table's rows are compared with.
    pub(super) keys: Vec<Column>,
    pub(super) input: Arc<LogicalPlan>,
    /// Where the keys go; nothing in a plan that is not pinned.
    pub(super) state: Option<Arc<SourceKeys>>,
}

impl KeySource {
    pub(super) fn with_state(&self, state: Arc<SourceKeys>) -> Self {
        Self {
            state: Some(state),
            ..self.clone()
        }
    }

    fn key(&self) -> (uuid::Uuid, &[Column], &LogicalPlan) {
        (self.join, &self.keys, &self.input)
    }
}

impl PartialEq for KeySource {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for KeySource {}

impl PartialOrd for KeySource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.key().partial_cmp(&other.key())
    }
}

impl Hash for KeySource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        UserDefinedLogicalNodeCore::fmt_for_explain(self, f)
    }
}

impl UserDefinedLogicalNodeCore for KeySource {
    fn name(&self) -> &'static str {
        "KeySource"
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
        write!(f, "KeySource: keys=[{}]", keys.join(", "))
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> DFResult<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self {
                input: Arc::new(input),
                ..self.clone()
            }),
            _ => Err(Error::internal("KeySource has one input").into()),
        }
    }
}

/// The node behind an extension, if it is one of these.
pub(super) fn key_source(extension: &Extension) -> Option<&KeySource> {
    extension.node.as_any().downcast_ref()
}
