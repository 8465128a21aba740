//! Isolation levels: which of a winner's actions are held against us.

use super::actions::Actions;
use crate::read::read_set::{ReadScope, ReadSet};
use crate::read::snapshot::TableSnapshot;

/// Table property that names the level.
const PROPERTY: &str = "delta.isolationLevel";

/// How strictly a transaction is checked against the winners.
///
/// | winner's actions against ours | Serializable | WriteSerializable | SnapshotIsolation |
/// |---|---|---|---|
/// | added files against our reads | all | all but blind appends; all if we change metadata | none |
/// | removed files against files we read | yes | yes | yes |
/// | the same file removed by both | yes | yes | yes |
/// | metadata, protocol, app transaction, domain metadata | yes | yes | yes |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    /// The outcome is that of running the transactions one after the other, in log order.
    Serializable,
    /// The outcome is that of some serial order; a blind append may be ordered after us although
    /// it committed before.
    WriteSerializable,
    /// Nothing that was added matters. Used only for commits that rearrange files and change no
    /// row, never by table property.
    SnapshotIsolation,
}

impl IsolationLevel {
    /// The name as it stands in table properties and `commitInfo`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serializable => "Serializable",
            Self::WriteSerializable => "WriteSerializable",
            Self::SnapshotIsolation => "SnapshotIsolation",
        }
    }

    /// The level that `snapshot` asks for in `delta.isolationLevel`.
    ///
    /// Absent means [`WriteSerializable`](Self::WriteSerializable). A value that is not known, and
    /// `SnapshotIsolation`, which would lose writes, mean [`Serializable`](Self::Serializable).
    pub fn of_table(snapshot: &TableSnapshot) -> Self {
        match snapshot.property(PROPERTY) {
            None | Some("WriteSerializable" | "writeSerializable") => Self::WriteSerializable,
            Some(_) => Self::Serializable,
        }
    }

    /// The level at which a transaction is checked: [`Self::of_table`], or
    /// [`SnapshotIsolation`](Self::SnapshotIsolation) where it only rearranges files.
    pub fn for_transaction(snapshot: &TableSnapshot, reads: &ReadSet, actions: &Actions) -> Self {
        if only_rearranges_files(reads, actions) {
            Self::SnapshotIsolation
        } else {
            Self::of_table(snapshot)
        }
    }

    /// Whether an added file is held against our reads. `blind` says that every winner that added
    /// it is a blind append that may be ordered after us.
    pub fn checks_added(self, blind: bool, we_change_metadata: bool) -> bool {
        match self {
            Self::Serializable => true,
            Self::WriteSerializable => !blind || we_change_metadata,
            Self::SnapshotIsolation => false,
        }
    }
}

/// Whether a commit only moves rows between files: at least one file action, all of them
/// `dataChange=false`, nothing else, and no statement read rows.
pub fn only_rearranges_files(reads: &ReadSet, actions: &Actions) -> bool {
    actions.has_file_actions()
        && !actions.declares_data_change()
        && !actions.has_other_actions()
        && !reads.reads_rows()
}

/// Whether a commit of ours is a blind append: every recorded scope is
/// [`Nothing`](ReadScope::Nothing), at least one is recorded, and rows are only added.
pub fn is_blind_append(reads: &ReadSet, actions: &Actions) -> bool {
    !reads.is_unrecorded()
        && reads
            .reads()
            .iter()
            .all(|read| matches!(read.scope, ReadScope::Nothing))
        && actions.is_pure_append()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::fixtures::{add, matching, nothing, remove, snapshot, whole_table};

    #[test]
    fn table_property_gives_the_level() {
        use IsolationLevel::{Serializable, WriteSerializable};
        let cases = [
            (None, WriteSerializable),
            (Some("WriteSerializable"), WriteSerializable),
            (Some("writeSerializable"), WriteSerializable),
            (Some("Serializable"), Serializable),
            (Some("serializable"), Serializable),
            (Some("SnapshotIsolation"), Serializable),
            (Some("snapshotIsolation"), Serializable),
            (Some(""), Serializable),
            (Some("WRITE SERIALIZABLE"), Serializable),
        ];
        for (value, expected) in cases {
            let mut snapshot = snapshot(1, &[]);
            if let Some(value) = value {
                snapshot
                    .metadata
                    .configuration
                    .insert(PROPERTY.into(), value.into());
            }
            assert_eq!(IsolationLevel::of_table(&snapshot), expected, "{value:?}");
        }
    }

    #[test]
    fn added_files_are_checked_by_level() {
        use IsolationLevel::{Serializable, SnapshotIsolation, WriteSerializable};
        // Level, blind, we change metadata, checked.
        let cases = [
            (Serializable, false, false, true),
            (Serializable, true, false, true),
            (WriteSerializable, false, false, true),
            (WriteSerializable, true, false, false),
            (WriteSerializable, true, true, true),
            (SnapshotIsolation, false, true, false),
        ];
        for (level, blind, metadata, expected) in cases {
            assert_eq!(
                level.checks_added(blind, metadata),
                expected,
                "{level:?} {blind} {metadata}"
            );
        }
    }

    #[test]
    fn downgrade_needs_rearranged_files_and_nothing_else() {
        let rearranged = || Actions {
            adds: vec![add("b").data_change(false).into()],
            removes: vec![remove("a").data_change(false).into()],
            ..Actions::default()
        };
        let with = |change: fn(&mut Actions)| {
            let mut actions = rearranged();
            change(&mut actions);
            actions
        };
        let cases = [
            ("compaction", rearranged(), vec![], true),
            (
                "compaction, nothing read",
                rearranged(),
                vec![nothing(1)],
                true,
            ),
            (
                "with a read",
                rearranged(),
                vec![matching(1, 0..9, &[])],
                false,
            ),
            (
                "with a whole-table read",
                rearranged(),
                vec![whole_table(1, &[])],
                false,
            ),
            ("no action", Actions::default(), vec![], false),
            (
                "with txn",
                with(|a| {
                    a.transactions
                        .push(deltalake::kernel::Transaction::new("a", 1))
                }),
                vec![],
                false,
            ),
            (
                "with metadata",
                with(|a| a.metadata = Some(Default::default())),
                vec![],
                false,
            ),
            (
                "with changed rows",
                with(|a| a.adds.push(add("c").into())),
                vec![],
                false,
            ),
            (
                "with cdc",
                with(|a| a.cdc.push(Default::default())),
                vec![],
                false,
            ),
        ];
        for (name, actions, reads, expected) in cases {
            let reads = ReadSet::new(reads);
            let level = IsolationLevel::for_transaction(&snapshot(1, &[]), &reads, &actions);
            assert_eq!(
                level == IsolationLevel::SnapshotIsolation,
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn our_own_blind_append_needs_a_recorded_nothing() {
        let append = || Actions {
            adds: vec![add("b").into()],
            ..Actions::default()
        };
        let cases = [
            ("plain INSERT", vec![nothing(1)], append(), true),
            ("nothing recorded", vec![], append(), false),
            (
                "one scan among them",
                vec![nothing(1), matching(1, 0..9, &[])],
                append(),
                false,
            ),
            ("no file", vec![nothing(1)], Actions::default(), false),
            (
                "with a remove",
                vec![nothing(1)],
                Actions {
                    removes: vec![remove("a").into()],
                    ..append()
                },
                false,
            ),
        ];
        for (name, reads, actions, expected) in cases {
            assert_eq!(
                is_blind_append(&ReadSet::new(reads), &actions),
                expected,
                "{name}"
            );
        }
    }
}
