//! Metadata, protocol, application transactions and domain metadata, winner by winner.

use super::{CheckInput, ConflictKind, Findings};
use crate::commit::table_change::{metadata_conflict, protocol_conflict};

pub(super) fn check(input: &CheckInput<'_>, findings: &mut Findings) {
    let snapshot = input.net_effect.snapshot();
    let ours = input.actions;
    for winner in input.net_effect.winners() {
        let theirs = &winner.actions;
        for name in &theirs.unknown {
            findings.conflict(
                ConflictKind::ProtocolChanged,
                winner,
                None,
                None,
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
                findings.conflict(ConflictKind::ProtocolChanged, winner, None, None, why);
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
                findings.conflict(ConflictKind::MetadataChanged, winner, None, None, why);
            }
        }
        for transaction in &theirs.transactions {
            if ours
                .transactions
                .iter()
                .any(|own| own.app_id == transaction.app_id)
            {
                findings.conflict(
                    ConflictKind::ConcurrentTransaction,
                    winner,
                    None,
                    None,
                    format!(
                        "application {} committed its version {}",
                        transaction.app_id, transaction.version
                    ),
                );
            }
        }
        for domain in &theirs.domains {
            if ours.domains.iter().any(|own| own.domain == domain.domain) {
                findings.conflict(
                    ConflictKind::ConcurrentDomainMetadata,
                    winner,
                    None,
                    None,
                    format!("both change domain {}", domain.domain),
                );
            }
        }
    }
}
