//! Commits of a writer's own actions.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::Arc;

use deltalake::DeltaTableError;
use deltalake::kernel::transaction::{
    CommitBuilder as DeltalakeBuilder, CommitProperties, FinalizedCommit, TableReference,
};
use deltalake::kernel::{Action, Transaction};
use deltalake::logstore::LogStoreRef;
use deltalake::protocol::DeltaOperation;
use futures::future::BoxFuture;
use serde_json::Value;
use uuid::Uuid;

use super::check::Hints;
use super::log_store::GuardedLogStore;
use super::report::Report;
use crate::clock::now_millis;
use crate::read::read_set::ReadSet;

/// deltalake's `CommitBuilder` with this crate's conflict check, and [`with_reads`](Self::with_reads).
///
/// Checkpoints and the clean-up of the log follow the table's properties, as in deltalake's
/// operations.
#[derive(Debug, Clone)]
#[must_use = "build it, and await what is built"]
pub struct CommitBuilder {
    actions: Vec<Action>,
    properties: CommitProperties,
    operation_id: Uuid,
    hints: Hints,
    report: Report,
}

impl Default for CommitBuilder {
    fn default() -> Self {
        CommitProperties::default().into()
    }
}

impl From<CommitProperties> for CommitBuilder {
    fn from(properties: CommitProperties) -> Self {
        Self {
            actions: Vec::new(),
            properties,
            operation_id: Uuid::new_v4(),
            hints: Hints::default(),
            report: Report::default(),
        }
    }
}

impl CommitBuilder {
    /// The actions of the commit.
    pub fn with_actions(mut self, actions: Vec<Action>) -> Self {
        self.actions = actions;
        self
    }

    /// What is added to `commitInfo`.
    pub fn with_app_metadata(mut self, metadata: HashMap<String, Value>) -> Self {
        self.properties = self.properties.with_metadata(metadata);
        self
    }

    /// Adds an application transaction.
    pub fn with_application_transaction(mut self, transaction: Transaction) -> Self {
        self.properties = self.properties.with_application_transaction(transaction);
        self
    }

    /// The application transactions, in place of those given before.
    pub fn with_application_transactions(mut self, transactions: Vec<Transaction>) -> Self {
        self.properties = self.properties.with_application_transactions(transactions);
        self
    }

    /// How often to try again after a lost race; 15 where it is not said.
    pub fn with_max_retries(mut self, max_retries: usize) -> Self {
        self.properties = self.properties.with_max_retries(max_retries);
        self
    }

    /// The id by which the log store knows the operation.
    pub fn with_operation_id(mut self, operation_id: Uuid) -> Self {
        self.operation_id = operation_id;
        self
    }

    /// Whether to write a checkpoint at the table's interval; it is where nothing is said.
    pub fn with_create_checkpoint(mut self, create: bool) -> Self {
        self.properties = self.properties.with_create_checkpoint(create);
        self
    }

    /// Whether to remove expired entries of the log; the table's property where nothing is said.
    pub fn with_cleanup_expired_logs(mut self, clean_up: Option<bool>) -> Self {
        self.properties = self.properties.with_cleanup_expired_logs(clean_up);
        self
    }

    /// What was read to make the actions, see [`reads`](super::reads()). Without it the commit counts
    /// as what its operation says, as for [`guard`](super::guard()).
    pub fn with_reads(mut self, reads: ReadSet) -> Self {
        self.hints.reads = Some(reads);
        self
    }

    /// Says that the rows in the added files were made without reading this table, as for
    /// [`Guard::with_blind_input`](super::Guard::with_blind_input).
    pub fn with_blind_input(mut self) -> Self {
        self.hints.blind_input = true;
        self
    }

    /// Where the verdict is found after the commit.
    pub fn report(&self) -> Report {
        self.report.clone()
    }

    /// The commit of `operation` on the version that `table` has loaded; no table yet for version 0.
    /// Await it.
    pub fn build<'a>(
        self,
        table: Option<&'a dyn TableReference>,
        log_store: LogStoreRef,
        operation: DeltaOperation,
    ) -> CheckedCommit<'a> {
        CheckedCommit {
            builder: self,
            table,
            log_store,
            operation,
        }
    }
}

/// A commit that is checked and put when it is awaited.
#[must_use = "nothing is committed before it is awaited"]
pub struct CheckedCommit<'a> {
    builder: CommitBuilder,
    table: Option<&'a dyn TableReference>,
    log_store: LogStoreRef,
    operation: DeltaOperation,
}

impl std::fmt::Debug for CheckedCommit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckedCommit")
            .field("operation", &self.operation)
            .field("builder", &self.builder)
            .finish_non_exhaustive()
    }
}

impl<'a> IntoFuture for CheckedCommit<'a> {
    type Output = Result<FinalizedCommit, DeltaTableError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    /// # Errors
    ///
    /// deltalake's: a conflict as `CommitConflictError` of its kind.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let CommitBuilder {
                mut actions,
                properties,
                operation_id,
                hints,
                report,
            } = self.builder;
            let log_store = GuardedLogStore::new(&self.log_store, hints, report)?;
            // With this action given, deltalake does not ask the operation for it, so that the
            // predicate is recorded and yet deltalake's own check need not parse its text.
            if !actions.iter().any(|a| matches!(a, Action::CommitInfo(_))) {
                let mut info = self.operation.get_commit_info();
                info.timestamp = Some(now_millis());
                let client = format!("delta-rs.{}", deltalake::crate_version());
                info.info.insert("clientVersion".to_owned(), client.into());
                actions.insert(0, Action::CommitInfo(info));
            }
            DeltalakeBuilder::from(properties)
                .with_actions(actions)
                .with_operation_id(operation_id)
                .build(
                    self.table,
                    Arc::new(log_store),
                    without_predicate(self.operation),
                )
                .await
        })
    }
}

fn without_predicate(mut operation: DeltaOperation) -> DeltaOperation {
    match &mut operation {
        DeltaOperation::Write { predicate, .. }
        | DeltaOperation::Delete { predicate }
        | DeltaOperation::Update { predicate }
        | DeltaOperation::Merge { predicate, .. } => *predicate = None,
        _ => {}
    }
    operation
}
