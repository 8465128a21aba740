//! Pinning: every Delta source of a plan gets one version and the statement's read collector.
//!
//! It happens once for each execution, in the query planner, the only place that is async and runs
//! then: a registered table, a view, a prepared statement or an old DataFrame would otherwise read
//! the version it was made with. In a transaction the version is the one that was pinned at the
//! first mention, with the transaction's own changes.

use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Extension, LogicalPlan, TableScan};

use super::key_source::key_source;
use super::node::{DeltaDml, DmlKind};
use super::rule::delta_provider;
use super::semi_join::with_keys_first;
use super::sources::{InputReads, reads_of_input};
use super::transaction::Membership;
use crate::commit::open_transaction::PinnedTable;
use crate::error::{Error, Result};
use crate::read::features::{check_append_only, check_readable, check_writable};
use crate::read::keys::{KeyedRead, SourceKeys};
use crate::read::positions::{FILE_COLUMN, ROW_COLUMN};
use crate::read::provider::{DisjointTableProvider, Pin};
use crate::read::read_set::{Read, ReadScope};
use crate::read::removable::check_removable;
use crate::read::table::TableHandle;
use crate::write::merge::{ACTION_COLUMN, CLAUSE_COLUMN};

/// Pins all scans and changes of `plan` to one version of each Delta table: the newest, or what the
/// transaction sees that `session` is in.
///
/// # Errors
///
/// `Unavailable` if a table cannot be loaded or its columns are not those of the plan,
/// `Unsupported` for a table that cannot be read or changed, and for what a transaction cannot do.
pub async fn pin(plan: &LogicalPlan, session: &dyn Session) -> DFResult<LogicalPlan> {
    let membership = Membership::of(plan, session)?;
    let mut handles: BTreeMap<String, Arc<TableHandle>> = BTreeMap::new();
    let mut rewritten = HashSet::new();
    let mut targets = HashSet::new();
    plan.apply_with_subqueries(|node| {
        let provider = match node {
            LogicalPlan::TableScan(scan) => delta_provider(&scan.source),
            LogicalPlan::Extension(extension) => delta_dml(extension).map(|dml| {
                let location = dml.target().handle().location();
                targets.insert(location.to_owned());
                if removes_files(dml.kind()) {
                    rewritten.insert(location.to_owned());
                }
                dml.target().clone()
            }),
            _ => None,
        };
        if let Some(provider) = provider {
            let handle = provider.handle();
            handles
                .entry(handle.location().to_owned())
                .or_insert_with(|| Arc::clone(handle));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let collector = membership.collector();
    let mut pins = BTreeMap::new();
    // The check starts at the version of the target. Where another location is the same table, it
    // is looked at later, so that it is seen in that version or in a newer one.
    let (first, others): (Vec<_>, Vec<_>) = handles
        .into_iter()
        .partition(|(location, _)| targets.contains(location));
    for (location, handle) in first.into_iter().chain(others) {
        let PinnedTable {
            base,
            view: snapshot,
        } = membership.table(&handle).await?;
        if snapshot.schema.fields() != handle.shown_schema().fields() {
            return Err(handle.columns_changed(&snapshot).into());
        }
        check_readable(&snapshot.protocol, &snapshot.metadata)?;
        if rewritten.contains(&location) {
            check_removable(&base)?;
        }
        let pin = Pin {
            snapshot,
            collector: Arc::clone(&collector),
        };
        pins.insert(location, pin);
    }

    // Each execution has its own keys.
    let mut joins: HashMap<uuid::Uuid, Arc<SourceKeys>> = HashMap::new();
    let pinned = with_keys_first(plan.clone())?
        .transform_down_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => match delta_provider(&scan.source) {
                Some(mut provider) => {
                    if let Some(keyed) = provider.keyed() {
                        let state = joins.entry(keyed.join).or_default();
                        provider = provider.with_keys(KeyedRead {
                            state: Some(Arc::clone(state)),
                            ..keyed.clone()
                        });
                    }
                    Ok(Transformed::yes(pin_scan(scan, &provider, &pins)?))
                }
                None => Ok(Transformed::no(LogicalPlan::TableScan(scan))),
            },
            LogicalPlan::Extension(extension) => {
                if let Some(dml) = delta_dml(&extension) {
                    membership.check_change(dml)?;
                    return Ok(Transformed::yes(pin_dml(dml, &pins)?));
                }
                let Some(source) = key_source(&extension) else {
                    return Ok(Transformed::no(LogicalPlan::Extension(extension)));
                };
                let state = joins.entry(source.join).or_default();
                Ok(Transformed::yes(LogicalPlan::Extension(Extension {
                    node: Arc::new(source.with_state(Arc::clone(state))),
                })))
            }
            other => Ok(Transformed::no(other)),
        })?
        .data;
    membership.take_up(plan, &collector)?;
    Ok(pinned)
}

/// Whether `plan` changes a Delta table anywhere.
pub(super) fn has_delta_dml(plan: &LogicalPlan) -> DFResult<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Extension(extension) if delta_dml(extension).is_some()))
    })
}

pub(super) fn delta_dml(extension: &Extension) -> Option<&DeltaDml> {
    extension.node.as_any().downcast_ref::<DeltaDml>()
}

fn pin_of(provider: &DisjointTableProvider, pins: &BTreeMap<String, Pin>) -> Result<Pin> {
    pins.get(provider.handle().location())
        .cloned()
        .ok_or_else(|| {
            Error::internal(format!(
                "{} was not loaded before its scan was pinned",
                provider.handle().location()
            ))
        })
}

fn pin_scan(
    mut scan: TableScan,
    provider: &DisjointTableProvider,
    pins: &BTreeMap<String, Pin>,
) -> Result<LogicalPlan> {
    let pin = pin_of(provider, pins)?;
    let snapshot = Arc::clone(&pin.snapshot);
    let columns = snapshot.schema.fields();
    let planned = scan.projected_schema.fields();
    let same = match &scan.projection {
        Some(projection) => projection
            .iter()
            .zip(planned)
            .all(|(index, field)| is_position(field.name()) || columns.get(*index) == Some(field)),
        None => planned
            .iter()
            .filter(|field| !is_position(field.name()))
            .eq(columns.iter()),
    };
    if !same {
        return Err(provider.handle().columns_changed(&snapshot));
    }
    scan.source = provider_as_source(Arc::new(provider.pinned(pin)));
    Ok(LogicalPlan::TableScan(scan))
}

fn pin_dml(dml: &DeltaDml, pins: &BTreeMap<String, Pin>) -> Result<LogicalPlan> {
    let target = dml.target();
    let pin = pin_of(target, pins)?;
    let snapshot = &pin.snapshot;
    check_writable(&snapshot.protocol, &snapshot.metadata)?;
    if removes_files(dml.kind()) {
        check_append_only(&snapshot.metadata, dml.kind().operation())?;
    }
    let brings_rows = matches!(
        dml.kind(),
        DmlKind::Insert | DmlKind::Overwrite | DmlKind::Update | DmlKind::Merge(_)
    );
    let columns_fit = dml
        .input()
        .schema()
        .fields()
        .iter()
        .filter(|field| !is_marker(dml.kind(), field.name()))
        .map(|field| (field.name(), field.data_type()))
        .eq(snapshot
            .schema
            .fields()
            .iter()
            .map(|field| (field.name(), field.data_type())));
    if brings_rows && !(columns_fit && dml.filled().fits(&snapshot.metadata)) {
        return Err(target.handle().columns_changed(snapshot));
    }
    // One table that is reached by two locations, such as two mounts, still has one id. So has a
    // copy of its folder, where this costs a retry.
    let has_twin = pins.iter().any(|(location, other)| {
        location != target.handle().location() && other.snapshot.metadata.id == snapshot.metadata.id
    });
    record_beside_scans(dml, &pin, has_twin);
    Ok(LogicalPlan::Extension(Extension {
        node: Arc::new(dml.pinned(pin)),
    }))
}

/// What the statement reads besides what its scans will record.
fn record_beside_scans(dml: &DeltaDml, pin: &Pin, has_twin: bool) {
    let location = dml.target().handle().location();
    let reads = if has_twin {
        InputReads::Unknown
    } else {
        reads_of_input(dml.input(), dml.target().handle())
    };
    if reads == InputReads::Unknown {
        pin.collector.mark_past_scans();
    }
    let scope = match (dml.kind(), reads) {
        (DmlKind::Overwrite | DmlKind::Truncate, _) | (_, InputReads::Unknown) => {
            ReadScope::WholeTable
        }
        (DmlKind::Insert, InputReads::OtherTables) => ReadScope::Nothing,
        (DmlKind::Insert, InputReads::Target)
        | (DmlKind::Update | DmlKind::Delete | DmlKind::Merge(_), _) => return,
    };
    let read = match scope {
        ReadScope::WholeTable => Read::whole_table(&pin.snapshot),
        scope => Read {
            scope,
            version: pin.snapshot.version,
            files: Arc::default(),
        },
    };
    pin.collector.record(location, read);
}

fn removes_files(kind: DmlKind) -> bool {
    match kind {
        DmlKind::Insert => false,
        DmlKind::Overwrite | DmlKind::Update | DmlKind::Delete | DmlKind::Truncate => true,
        DmlKind::Merge(shape) => shape.changes_rows,
    }
}

/// Whether a column of a change's input is none of the table's.
fn is_marker(kind: DmlKind, name: &str) -> bool {
    match kind {
        DmlKind::Update => is_position(name),
        DmlKind::Merge(_) => is_position(name) || [ACTION_COLUMN, CLAUSE_COLUMN].contains(&name),
        _ => false,
    }
}

fn is_position(name: &str) -> bool {
    name == FILE_COLUMN || name == ROW_COLUMN
}
