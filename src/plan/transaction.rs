//! A statement in the transaction, or outside of any, that its session is in when it is planned.
//!
//! | statement | in a transaction |
//! |---|---|
//! | its tables | as pinned at the first mention, with the transaction's own changes |
//! | its reads | count from its start |
//! | its changes | are refused where a rollback could not undo them or COMMIT could not make one version of them |
//! | `EXPLAIN` | sees what the transaction sees and leaves no trace: it shows no row |

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::node::DeltaDml;
use super::pin::delta_dml;
use super::sources::{foreign_sources, may_be};
use crate::commit::SessionScope;
use crate::commit::open_transaction::{OpenTransaction, PinnedTable, StatementReads};
use crate::commit::session_transactions::StatementText;
use crate::error::{Error, Result};
use crate::read::collector::ReadCollector;
use crate::read::table::TableHandle;

/// Where a statement stands.
#[derive(Debug)]
pub(super) struct Membership {
    scope: Option<SessionScope>,
    transaction: Option<Arc<OpenTransaction>>,
    explains: bool,
    text: Option<Arc<str>>,
}

impl Membership {
    /// The standing of `plan`, which `session` is about to run.
    ///
    /// # Errors
    ///
    /// `Unsupported` if it changes what is no Delta table, or writes files by COPY, in a
    /// transaction.
    pub(super) fn of(plan: &LogicalPlan, session: &dyn Session) -> DFResult<Self> {
        let scope = SessionScope::of(session.config(), session.session_id());
        let transaction = scope.as_ref().and_then(SessionScope::current);
        if transaction.is_some() {
            check_plan(plan)?;
        }
        Ok(Self {
            scope,
            transaction,
            explains: matches!(plan, LogicalPlan::Explain(_)),
            text: session
                .config()
                .get_extension::<StatementText>()
                .map(|text| Arc::clone(text.text())),
        })
    }

    /// A collector for the statement's reads, which lets it start only where it stands now.
    pub(super) fn collector(&self) -> Arc<ReadCollector> {
        match &self.scope {
            Some(scope) => {
                ReadCollector::permitted(Arc::new(scope.ticket(self.transaction.as_ref())))
            }
            None => ReadCollector::shared(),
        }
    }

    /// What the statement sees of the table of `handle`.
    ///
    /// # Errors
    ///
    /// As [`TableHandle::newest`].
    pub(super) async fn table(&self, handle: &Arc<TableHandle>) -> Result<PinnedTable> {
        if let Some(transaction) = &self.transaction {
            if !self.explains {
                return transaction.pin(handle).await;
            }
            if let Some(pinned) = transaction.pinned(handle.location()) {
                return Ok(pinned);
            }
        }
        let newest = handle.newest().await?;
        Ok(PinnedTable {
            base: Arc::clone(&newest),
            view: newest,
        })
    }

    /// Whether the statement may change its target.
    ///
    /// # Errors
    ///
    /// As [`OpenTransaction::check_change`].
    pub(super) fn check_change(&self, dml: &DeltaDml) -> Result<()> {
        self.transaction.as_ref().map_or(Ok(()), |transaction| {
            transaction.check_change(dml.target().handle().location())
        })
    }

    /// Tells the transaction of the statement, whose reads go to `collector`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it changes a table that an earlier statement may have read by another way
    /// before the table was pinned.
    pub(super) fn take_up(
        &self,
        plan: &LogicalPlan,
        collector: &Arc<ReadCollector>,
    ) -> DFResult<()> {
        let Some(transaction) = self.transaction.as_ref().filter(|_| !self.explains) else {
            return Ok(());
        };
        let own_targets = targets(plan)?;
        let (foreign, targets) = transaction.add_sources(foreign_sources(plan), &own_targets);
        // Rows that came another way than through our scans were read all the same.
        for target in targets {
            let mut reads = foreign
                .iter()
                .filter(|read| may_be(&read.source, &target))
                .peekable();
            if reads.peek().is_none() {
                continue;
            }
            // A version from before the pinned one is none that the check at COMMIT looks at.
            if own_targets.contains(&target) && reads.any(|read| !read.pinned.contains(&target)) {
                return Err(read_before_pinned(&target).into());
            }
            transaction.read_all(&target);
        }
        transaction.add_statement(StatementReads {
            text: self.text.clone(),
            collector: Arc::clone(collector),
        });
        Ok(())
    }
}

/// Locations of the tables that `plan` changes.
fn targets(plan: &LogicalPlan) -> DFResult<Vec<String>> {
    let mut targets = Vec::new();
    plan.apply(|node| {
        if let LogicalPlan::Extension(extension) = node
            && let Some(dml) = delta_dml(extension)
        {
            targets.push(dml.target().handle().location().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(targets)
}

fn read_before_pinned(target: &str) -> Error {
    Error::unavailable(format!(
        "an earlier statement of the transaction read a source that may be the table at {target} \
         by another way, before the transaction had pinned a version of it: what it saw cannot be \
         checked. ROLLBACK and run the transaction again; read the table by its own name first"
    ))
}

/// Refuses what a rollback could not undo.
fn check_plan(plan: &LogicalPlan) -> DFResult<()> {
    plan.apply(|node| match node {
        LogicalPlan::Dml(dml) => Err(Error::unsupported(format!(
            "{} is not a Delta table of this session, and its changes could not be rolled back; \
             change it outside of the transaction",
            dml.table_name
        ))
        .into()),
        LogicalPlan::Copy(copy) => Err(Error::unsupported(format!(
            "COPY … TO {} writes files that could not be rolled back; run it outside of the \
             transaction",
            copy.output_url
        ))
        .into()),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(())
}
