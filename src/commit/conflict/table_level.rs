//! Metadata, protocol, application transactions and domain metadata, winner by winner.

use deltalake::kernel::DomainMetadata;
use serde_json::Value;

use super::findings::Findings;
use super::{CheckInput, ConflictKind};
use crate::commit::actions::Actions;
use crate::commit::table_change::{metadata_conflict, protocol_conflict};
use crate::read::clustering::{CLUSTERING_DOMAIN, parse_configuration};
use crate::reason::ReasonCode;

pub(super) fn check<'a>(input: &CheckInput<'a>, findings: &mut Findings<'a>) {
    let snapshot = input.net_effect.snapshot();
    let ours = input.actions;
    for winner in input.net_effect.winners() {
        let theirs = &winner.actions;
        for name in &theirs.unknown {
            findings.table_conflict(
                ConflictKind::ProtocolChanged,
                winner,
                ReasonCode::UnknownAction,
                format!("it holds an action that is not understood: {name}"),
            );
        }
        if let Some(protocol) = &theirs.protocol {
            let why = match protocol_conflict(&snapshot.protocol, protocol) {
                None if ours.protocol.is_some() => {
                    Some("both change the table's protocol".to_owned())
                }
                found => found,
            };
            if let Some(why) = why {
                findings.table_conflict(
                    ConflictKind::ProtocolChanged,
                    winner,
                    ReasonCode::ProtocolChange,
                    why,
                );
            }
        }
        if let Some(metadata) = &theirs.metadata {
            let why = match metadata_conflict(&snapshot.metadata, metadata) {
                // Ours would undo theirs, harmless or not.
                None if ours.metadata.is_some() => {
                    Some("both change the table's metadata".to_owned())
                }
                found => found,
            };
            if let Some(why) = why {
                findings.table_conflict(
                    ConflictKind::MetadataChanged,
                    winner,
                    ReasonCode::MetadataChange,
                    why,
                );
            }
        }
        for transaction in &theirs.transactions {
            if ours
                .transactions
                .iter()
                .any(|own| own.app_id == transaction.app_id)
            {
                findings.table_conflict(
                    ConflictKind::ConcurrentTransaction,
                    winner,
                    ReasonCode::ApplicationTransaction,
                    format!(
                        "application {} committed its version {}",
                        transaction.app_id, transaction.version
                    ),
                );
            }
        }
        for domain in &theirs.domains {
            if let Some(column) = unknown_clustering_column(domain, ours) {
                findings.table_conflict(
                    ConflictKind::ConcurrentDomainMetadata,
                    winner,
                    ReasonCode::ClusteringChange,
                    format!("the table is now clustered by {column}, of which our files hold no statistics"),
                );
            }
            if ours.domains.iter().any(|own| own.domain == domain.domain) {
                findings.table_conflict(
                    ConflictKind::ConcurrentDomainMetadata,
                    winner,
                    ReasonCode::DomainMetadata,
                    format!("both change domain {}", domain.domain),
                );
            }
        }
    }
}

/// A column by which `domain`, another writer's, clusters the table from now on, and for which a
/// file of ours lacks the statistics that every file of such a table has from then on.
///
/// Source: Delta protocol, "Clustered Table".
fn unknown_clustering_column(domain: &DomainMetadata, ours: &Actions) -> Option<String> {
    if domain.domain != CLUSTERING_DOMAIN || domain.removed || ours.adds.is_empty() {
        return None;
    }
    let Ok(columns) = parse_configuration(&domain.configuration) else {
        return Some("columns that cannot be read".to_owned());
    };
    columns
        .into_iter()
        .find(|column| {
            ours.adds
                .iter()
                .any(|add| !has_null_count(add.stats.as_deref(), column))
        })
        .map(|column| column.join("."))
}

fn has_null_count(stats: Option<&str>, column: &[String]) -> bool {
    let Some(Ok(stats)) = stats.map(serde_json::from_str::<Value>) else {
        return false;
    };
    column
        .iter()
        .try_fold(&stats["nullCount"], |parent, name| parent.get(name))
        .is_some_and(|count| !count.is_null())
}
