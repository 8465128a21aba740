use std::ops::Range;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use deltalake::kernel::{Add, DomainMetadata, Transaction};

mod damage;
mod serial_order;
mod small_world;

use super::*;
use crate::commit::fixtures::{
    AddBuilder, WinnerBuilder, actions, add, matching, matching_partition, nothing, remove,
    snapshot, whole_table, winner,
};
use crate::read::read_set::Read;
use crate::read::snapshot::{TableMetadata, TableSnapshot};

const READ_VERSION: u64 = 4;

/// Ids 0 to 999 in two files.
fn table() -> TableSnapshot {
    snapshot(
        READ_VERSION,
        &[add("a").ids(0..500), add("b").ids(500..1000)],
    )
}

struct Ours {
    reads: Vec<Read>,
    actions: Actions,
}

impl Ours {
    fn new(reads: Vec<Read>, actions: Actions) -> Self {
        Self { reads, actions }
    }

    /// A DELETE of `ids` that rewrites `files`.
    fn delete(ids: Range<i64>, files: &[&str]) -> Self {
        let removes: Vec<_> = files.iter().map(|file| remove(file)).collect();
        Self::new(
            vec![matching(READ_VERSION, ids, files)],
            actions(&[add("ours")], &removes),
        )
    }

    fn with(mut self, change: impl FnOnce(&mut Actions)) -> Self {
        change(&mut self.actions);
        self
    }
}

fn verdict_at(
    snapshot: TableSnapshot,
    ours: &Ours,
    winners: Vec<WinnerBuilder>,
    data_skipping: bool,
) -> Verdict {
    let snapshot = Arc::new(snapshot);
    let mut net_effect = NetEffect::new(Arc::clone(&snapshot));
    for winner in winners {
        net_effect.apply(Arc::new(winner.0)).unwrap();
    }
    let reads = ReadSet::new(ours.reads.clone());
    check(&CheckInput {
        reads: &reads,
        actions: &ours.actions,
        net_effect: &net_effect,
        level: IsolationLevel::for_transaction(&snapshot, &reads, &ours.actions),
        data_skipping,
    })
}

fn with_level(mut snapshot: TableSnapshot, level: &str) -> TableSnapshot {
    snapshot
        .metadata
        .configuration
        .insert("delta.isolationLevel".to_owned(), level.to_owned());
    snapshot
}

fn verdict(ours: &Ours, winners: Vec<WinnerBuilder>) -> Verdict {
    verdict_at(with_level(table(), "Serializable"), ours, winners, true)
}

fn verdict_write_serializable(ours: &Ours, winners: Vec<WinnerBuilder>) -> Verdict {
    verdict_at(table(), ours, winners, true)
}

fn kind(verdict: &Verdict) -> Option<ConflictKind> {
    verdict.first_conflict().map(|conflict| conflict.kind)
}

/// Ours, theirs, and the first conflict at Serializable and at WriteSerializable.
#[test]
fn conflict_matrix() {
    const NONE: Option<ConflictKind> = None;
    const A: Option<ConflictKind> = Some(ConflictKind::ConcurrentAppend);
    const R: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteRead);
    const D: Option<ConflictKind> = Some(ConflictKind::ConcurrentDeleteDelete);
    const M: Option<ConflictKind> = Some(ConflictKind::MetadataChanged);

    let ours = |name: &str| match name {
        "insert" => Ours::new(vec![nothing(READ_VERSION)], actions(&[add("ours")], &[])),
        "delete low" => Ours::delete(0..50, &["a"]),
        "delete low, metadata" => Ours::delete(0..50, &["a"])
            .with(|actions| actions.metadata = Some(TableMetadata::default())),
        "delete all" => Ours::new(
            vec![whole_table(READ_VERSION, &["a", "b"])],
            actions(&[], &[remove("a"), remove("b")]),
        ),
        "overwrite" => Ours::new(
            vec![whole_table(READ_VERSION, &[])],
            actions(&[add("ours")], &[remove("a"), remove("b")]),
        ),
        "optimize" => Ours::new(
            vec![],
            actions(
                &[add("ours").data_change(false)],
                &[
                    remove("a").data_change(false),
                    remove("b").data_change(false),
                ],
            ),
        ),
        other => panic!("{other}"),
    };
    let theirs = |name: &str| match name {
        "blind append, near" => winner(5, &[add("c").ids(10..20)], &[]).blind(),
        "blind append, far" => winner(5, &[add("c").ids(2000..2100)], &[]).blind(),
        "append, near" => winner(5, &[add("c").ids(10..20)], &[]),
        "append, far" => winner(5, &[add("c").ids(2000..2100)], &[]),
        "rewrite a" => winner(5, &[add("c").ids(0..490)], &[remove("a")]),
        "rewrite b" => winner(5, &[add("c").ids(500..990)], &[remove("b")]),
        "delete a" => winner(5, &[], &[remove("a")]),
        "delete b" => winner(5, &[], &[remove("b")]),
        "optimize a" => winner(
            5,
            &[add("c").ids(0..500).data_change(false)],
            &[remove("a").data_change(false)],
        ),
        "metadata" => {
            winner(5, &[], &[]).with(|actions| actions.metadata = Some(TableMetadata::default()))
        }
        "deletion vectors on" => {
            let mut metadata = table().metadata;
            metadata
                .configuration
                .insert("delta.enableDeletionVectors".into(), "true".into());
            winner(5, &[], &[]).with(|actions| actions.metadata = Some(metadata))
        }
        "nothing" => winner(5, &[], &[]),
        other => panic!("{other}"),
    };
    let matrix = [
        ("insert", "blind append, near", NONE, NONE),
        ("insert", "append, near", NONE, NONE),
        ("insert", "rewrite a", NONE, NONE),
        ("insert", "delete b", NONE, NONE),
        ("insert", "optimize a", NONE, NONE),
        ("insert", "metadata", M, M),
        ("insert", "deletion vectors on", NONE, NONE),
        ("insert", "nothing", NONE, NONE),
        ("delete low", "blind append, near", A, NONE),
        ("delete low", "blind append, far", NONE, NONE),
        ("delete low", "append, near", A, A),
        ("delete low", "append, far", NONE, NONE),
        ("delete low", "rewrite a", A, A),
        ("delete low", "rewrite b", NONE, NONE),
        ("delete low", "delete a", R, R),
        ("delete low", "delete b", NONE, NONE),
        ("delete low", "optimize a", D, D),
        ("delete low", "metadata", M, M),
        ("delete low", "deletion vectors on", NONE, NONE),
        ("delete low", "nothing", NONE, NONE),
        ("delete low, metadata", "blind append, near", A, A),
        ("delete low, metadata", "blind append, far", NONE, NONE),
        ("delete low, metadata", "deletion vectors on", M, M),
        ("delete all", "blind append, near", A, NONE),
        ("delete all", "blind append, far", A, NONE),
        ("delete all", "append, far", A, A),
        ("delete all", "rewrite b", A, A),
        ("delete all", "delete b", R, R),
        ("delete all", "optimize a", D, D),
        ("delete all", "metadata", M, M),
        ("delete all", "nothing", NONE, NONE),
        ("overwrite", "blind append, far", A, NONE),
        ("overwrite", "append, far", A, A),
        ("overwrite", "rewrite a", A, A),
        ("overwrite", "delete a", R, R),
        ("overwrite", "optimize a", D, D),
        ("optimize", "blind append, near", NONE, NONE),
        ("optimize", "append, far", NONE, NONE),
        ("optimize", "rewrite a", R, R),
        ("optimize", "delete a", R, R),
        ("optimize", "optimize a", D, D),
        ("optimize", "metadata", M, M),
        ("optimize", "nothing", NONE, NONE),
    ];
    for (our, their, serializable, write_serializable) in matrix {
        for (level, expected) in [
            ("Serializable", serializable),
            ("WriteSerializable", write_serializable),
        ] {
            let mut winner = theirs(their);
            let table = with_level(table(), level);
            // The property stands in the winner's metadata too.
            if let Some(metadata) = &mut winner.0.actions.metadata {
                metadata
                    .configuration
                    .insert("delta.isolationLevel".into(), level.into());
            }
            let found = verdict_at(table, &ours(our), vec![winner], true);
            assert_eq!(kind(&found), expected, "{our} / {their} / {level}: {found}");
        }
    }
}

#[test]
fn statistics_decide_whether_an_added_file_is_skipped() {
    let low = || Ours::delete(0..50, &["a"]);
    let append = |file: AddBuilder| vec![winner(5, &[file], &[])];
    // Name, ours, winners, conflict with skipping, conflict without.
    let cases = [
        ("disjoint", low(), append(add("c").ids(1000..1100)), false, true),
        ("meets", Ours::delete(950..2000, &["b"]), append(add("c").ids(1000..1100)), true, true),
        ("no statistics", low(), append(add("c")), true, true),
        ("malformed statistics", low(), append(add("c").stats("{\"numRecords\":1,")), true, true),
        ("row count only", low(), append(add("c").rows(100)), true, true),
        (
            "least value only",
            low(),
            append(add("c").stats(r#"{"minValues":{"id":1000}}"#)),
            false,
            true,
        ),
        (
            "no null count",
            low(),
            append(add("c").stats(
                r#"{"numRecords":5,"minValues":{"id":1000},"maxValues":{"id":1100}}"#,
            )),
            false,
            true,
        ),
        (
            "contradictory null count",
            low(),
            append(add("c").stats(
                r#"{"numRecords":5,"minValues":{"id":1000},"maxValues":{"id":1100},"nullCount":{"id":6}}"#,
            )),
            true,
            true,
        ),
        (
            "all null",
            low(),
            append(add("c").stats(r#"{"numRecords":5,"nullCount":{"id":5}}"#)),
            false,
            true,
        ),
        ("no rows", low(), append(add("c").rows(0)), false, true),
        ("nothing but whole table", Ours::new(vec![whole_table(4, &[])], actions(&[], &[remove("a")])), append(add("c").ids(1000..1100)), true, true),
        ("files change without a read", Ours::new(vec![], actions(&[add("n")], &[remove("a")])), append(add("c").ids(1000..1100)), true, true),
        ("rows go, but only an append is recorded", Ours::new(vec![nothing(4)], actions(&[add("n")], &[remove("a")])), append(add("c").ids(1000..1100)), true, true),
        ("plain append", Ours::new(vec![nothing(4)], actions(&[add("n")], &[])), append(add("c")), false, false),
        (
            "between two reads",
            Ours::new(vec![matching(4, 0..50, &["a"]), matching(4, 900..950, &["b"])], Actions::default()),
            append(add("c").ids(400..500)),
            false,
            true,
        ),
        (
            "in the second of two reads",
            Ours::new(vec![matching(4, 0..50, &["a"]), matching(4, 900..950, &["b"])], Actions::default()),
            append(add("c").ids(890..910)),
            true,
            true,
        ),
        (
            "beyond a range of two conjuncts",
            Ours::delete(200..300, &["a"]),
            append(add("c").ids(500..600)),
            false,
            true,
        ),
        (
            "one of two adds of a path meets",
            low(),
            vec![winner(5, &[add("c").ids(0..10)], &[]), winner(6, &[add("c").ids(1000..1100).dv("x", 1)], &[remove("c")])],
            true,
            true,
        ),
        (
            "appended and compacted away, disjoint",
            low(),
            vec![
                winner(5, &[add("c").ids(1000..1010)], &[]),
                winner(6, &[add("d").data_change(false)], &[remove("c").data_change(false)]),
            ],
            false,
            true,
        ),
        (
            "appended and compacted away, meets",
            low(),
            vec![
                winner(5, &[add("c").ids(0..10)], &[]),
                winner(6, &[add("d").data_change(false)], &[remove("c").data_change(false)]),
            ],
            true,
            true,
        ),
        (
            "appended and deleted",
            low(),
            vec![winner(5, &[add("c").ids(0..10)], &[]), winner(6, &[], &[remove("c")])],
            false,
            false,
        ),
    ];
    for (name, ours, winners, skipping, plain) in cases {
        for (data_skipping, expected) in [(true, skipping), (false, plain)] {
            let found = verdict_at(
                with_level(table(), "Serializable"),
                &ours,
                winners.clone(),
                data_skipping,
            );
            let expected = expected.then_some(ConflictKind::ConcurrentAppend);
            assert_eq!(
                kind(&found),
                expected,
                "{name}, skipping {data_skipping}: {found}"
            );
            let kept = found.candidates - found.skipped;
            assert_eq!(kept, usize::from(expected.is_some()), "{name}: {found:?}");
        }
    }
}

#[test]
fn file_added_again_and_again_is_skipped_only_if_every_add_is() {
    let ours = Ours::delete(0..50, &["a"]);
    let (meets, low, high) = (40..60, 1000..1100, 2000..2100);
    for (added, conflicts) in [
        (vec![meets.clone(), low.clone(), high.clone()], true),
        (vec![low.clone(), meets.clone(), high.clone()], true),
        (vec![low.clone(), high.clone(), meets], true),
        (vec![low, high], false),
    ] {
        let name = format!("{added:?}");
        let winners = (5..)
            .zip(added)
            .map(|(version, ids)| winner(version, &[add("c").ids(ids)], &[]));
        let verdict = verdict(&ours, winners.collect());
        assert_eq!(!verdict.conflicts.is_empty(), conflicts, "{name}");
    }
}

#[test]
fn partitions_separate_writers_even_without_statistics() {
    let ours = || {
        Ours::new(
            vec![matching_partition(4, 1, 0..50, &["a"])],
            actions(&[], &[remove("a")]),
        )
    };
    let table = || {
        with_level(
            snapshot(READ_VERSION, &[add("a").p("1").ids(0..500)]),
            "Serializable",
        )
    };
    // Name, file, conflict with skipping, conflict without.
    let cases = [
        (
            "same partition, disjoint",
            add("c").p("1").ids(50..60),
            false,
            true,
        ),
        (
            "other partition, same ids",
            add("c").p("2").ids(0..50),
            false,
            false,
        ),
        (
            "same partition, same ids",
            add("c").p("1").ids(0..50),
            true,
            true,
        ),
        (
            "other partition, no statistics",
            add("c").p("2"),
            false,
            false,
        ),
        (
            "empty partition value",
            add("c").p("").ids(0..50),
            false,
            false,
        ),
        ("missing partition value", add("c").ids(0..50), true, true),
        (
            "unreadable partition value",
            add("c").p("one").ids(0..50),
            true,
            true,
        ),
    ];
    for (name, file, skipping, plain) in cases {
        for (data_skipping, expected) in [(true, skipping), (false, plain)] {
            let winners = vec![winner(5, std::slice::from_ref(&file), &[])];
            let found = verdict_at(table(), &ours(), winners, data_skipping);
            assert_eq!(
                found.is_conflict(),
                expected,
                "{name}, skipping {data_skipping}: {found}"
            );
        }
    }
}

#[test]
fn removed_files_conflict_only_with_those_who_read_or_remove_them() {
    let read_a = || Ours::new(vec![matching(4, 0..50, &["a"])], actions(&[add("n")], &[]));
    let compaction = |version, from: &str, into: AddBuilder| {
        winner(
            version,
            &[into.data_change(false)],
            &[remove(from).data_change(false)],
        )
    };
    let far = |path: &str| add(path).ids(2000..2500);
    let cases = [
        (
            "not read",
            read_a(),
            vec![winner(5, &[], &[remove("b")])],
            None,
        ),
        (
            "read",
            read_a(),
            vec![winner(5, &[], &[remove("a")])],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "rows moved out of our range",
            read_a(),
            vec![winner(5, &[far("c")], &[remove("a")])],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "deletion vector on a file read",
            read_a(),
            vec![winner(5, &[far("a").dv("x", 1)], &[remove("a")])],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "removed and put back",
            read_a(),
            vec![
                winner(5, &[], &[remove("a")]),
                winner(6, &[add("a").ids(0..500)], &[]),
            ],
            None,
        ),
        (
            "compacted",
            read_a(),
            vec![compaction(5, "a", add("c").ids(0..500))],
            None,
        ),
        (
            "compacted, with other rows",
            read_a(),
            vec![compaction(5, "a", far("c").rows(499))],
            Some(ConflictKind::ConcurrentAppend),
        ),
        (
            "compacted, and then changed",
            read_a(),
            vec![
                compaction(5, "a", add("c").ids(0..500)),
                winner(6, &[], &[remove("c")]),
            ],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "whole table read",
            Ours::new(vec![whole_table(4, &[])], actions(&[add("n")], &[])),
            vec![winner(5, &[], &[remove("b")])],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "whole table read, compacted",
            Ours::new(vec![whole_table(4, &[])], actions(&[add("n")], &[])),
            vec![compaction(5, "b", add("c").ids(500..1000))],
            None,
        ),
        (
            "removed by both, compacted",
            Ours::delete(0..50, &["a"]),
            vec![compaction(5, "a", add("c").ids(0..500))],
            Some(ConflictKind::ConcurrentDeleteDelete),
        ),
        (
            "removed by us, not said to be read",
            Ours::new(vec![matching(4, 0..50, &[])], actions(&[], &[remove("a")])),
            vec![winner(5, &[], &[remove("a")])],
            Some(ConflictKind::ConcurrentDeleteRead),
        ),
        (
            "OPTIMIZE with a txn is no mere rearrangement",
            Ours::new(
                vec![],
                actions(
                    &[add("n").data_change(false)],
                    &[remove("a").data_change(false)],
                ),
            )
            .with(|a| a.transactions.push(Transaction::new("x", 1))),
            vec![winner(5, &[far("c")], &[])],
            Some(ConflictKind::ConcurrentAppend),
        ),
        (
            "OPTIMIZE of other files",
            Ours::new(
                vec![],
                actions(
                    &[add("n").data_change(false)],
                    &[remove("a").data_change(false)],
                ),
            ),
            vec![compaction(5, "b", add("c").ids(500..1000))],
            None,
        ),
        (
            "remove without partition values",
            Ours::delete(0..50, &["a"]),
            vec![winner(5, &[], &[remove("z")])],
            None,
        ),
    ];
    for (name, ours, winners, expected) in cases {
        let found = verdict(&ours, winners);
        assert_eq!(kind(&found), expected, "{name}: {found}");
    }
}

#[test]
fn blind_appends_are_left_out_only_under_write_serializable() {
    let ours = || Ours::delete(0..50, &["a"]);
    let near = || winner(5, &[add("c").ids(10..20)], &[]);
    let optimize = |version| {
        winner(
            version,
            &[add("d").data_change(false)],
            &[remove("c").data_change(false)],
        )
    };
    let other_change = |version| winner(version, &[add("e").ids(900..901)], &[remove("b")]);
    // Name, winners, conflict at Serializable, conflict at WriteSerializable.
    let cases = [
        ("blind", vec![near().blind()], true, false),
        ("not said", vec![near()], true, true),
        (
            "blind, then compacted",
            vec![near().blind(), optimize(6)],
            true,
            false,
        ),
        (
            "blind, then seen by a change",
            vec![near().blind(), other_change(6)],
            true,
            true,
        ),
        (
            "blind, then an unrelated older change",
            vec![near().blind(), other_change(6).read_version(Some(4))],
            true,
            false,
        ),
        (
            "blind with txn",
            vec![near().blind().txn("app")],
            true,
            false,
        ),
    ];
    for (name, winners, serializable, write_serializable) in cases {
        assert_eq!(
            verdict(&ours(), winners.clone()).is_conflict(),
            serializable,
            "{name}"
        );
        let found = verdict_write_serializable(&ours(), winners);
        assert_eq!(found.is_conflict(), write_serializable, "{name}: {found}");
    }
}

#[test]
fn winners_are_judged_one_by_one_above_files() {
    let insert = || Ours::new(vec![nothing(4)], actions(&[add("n")], &[]));
    let domain = |name: &str| DomainMetadata {
        domain: name.to_owned(),
        ..DomainMetadata::default()
    };
    let metadata = |change: fn(&mut TableMetadata)| {
        let mut metadata = with_level(table(), "Serializable").metadata;
        change(&mut metadata);
        metadata
    };
    let empty = |version| winner(version, &[], &[]);
    let harmless = || {
        let mut protocol = table().protocol;
        protocol.min_reader_version = 3;
        protocol.min_writer_version = 7;
        let features = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect());
        protocol.reader_features = features(&["deletionVectors"]);
        protocol.writer_features = features(&["appendOnly", "invariants", "deletionVectors"]);
        protocol
    };
    use ConflictKind::*;
    let cases = [
        (
            "same application",
            insert().with(|a| a.transactions.push(Transaction::new("x", 2))),
            vec![empty(5).txn("x")],
            Some(ConcurrentTransaction),
        ),
        (
            "other application",
            insert().with(|a| a.transactions.push(Transaction::new("x", 2))),
            vec![empty(5).txn("y")],
            None,
        ),
        (
            "same domain",
            insert().with(|a| a.domains.push(domain("d"))),
            vec![empty(5).with(|a| a.domains.push(domain("d")))],
            Some(ConcurrentDomainMetadata),
        ),
        (
            "other domain",
            insert().with(|a| a.domains.push(domain("d"))),
            vec![empty(5).with(|a| a.domains.push(domain("e")))],
            None,
        ),
        (
            "unknown action",
            insert(),
            vec![empty(5).with(|a| a.unknown.push("newAction".into()))],
            Some(ProtocolChanged),
        ),
        (
            "harmless feature",
            insert(),
            vec![empty(5).with(|a| a.protocol = Some(harmless()))],
            None,
        ),
        (
            "harmless feature, but we change the protocol",
            insert().with(|a| a.protocol = Some(harmless())),
            vec![empty(5).with(|a| a.protocol = Some(harmless()))],
            Some(ProtocolChanged),
        ),
        (
            "feature lost",
            insert(),
            vec![empty(5).with(|a| a.protocol = Some(Default::default()))],
            Some(ProtocolChanged),
        ),
        (
            "property set and unset again",
            insert(),
            vec![
                empty(5).with(|a| {
                    a.metadata = Some(metadata(|m| {
                        m.configuration
                            .insert("delta.appendOnly".into(), "true".into());
                    }))
                }),
                empty(6).with(|a| a.metadata = Some(metadata(|_| {}))),
            ],
            Some(MetadataChanged),
        ),
        (
            "metadata before files",
            Ours::delete(0..50, &["a"]),
            vec![
                winner(5, &[add("c").ids(0..9)], &[remove("a")]),
                empty(6)
                    .with(|a| a.metadata = Some(metadata(|m| m.schema_string = "other".into()))),
            ],
            Some(MetadataChanged),
        ),
    ];
    for (name, ours, winners, expected) in cases {
        let found = verdict(&ours, winners);
        assert_eq!(kind(&found), expected, "{name}: {found}");
    }
}

#[test]
fn new_clustering_columns_conflict_where_our_files_lack_their_statistics() {
    let domain = |configuration: &str, removed: bool| DomainMetadata {
        domain: "delta.clustering".to_owned(),
        configuration: configuration.to_owned(),
        removed,
    };
    let file = |null_count: &str| {
        let mut file: Add = add("new").ids(10..20).into();
        file.stats = Some(format!(r#"{{"numRecords":1,"nullCount":{null_count}}}"#));
        file
    };
    let by_id = r#"{"clusteringColumns":[["id"]]}"#;
    let nested = r#"{"clusteringColumns":[["id"],["s","b"]]}"#;
    for (name, configuration, removed, null_count, conflicts) in [
        ("collected", by_id, false, r#"{"id":0}"#, false),
        ("nested", nested, false, r#"{"id":0,"s":{"b":1}}"#, false),
        ("not collected", by_id, false, r#"{"p":0}"#, true),
        ("one of two", nested, false, r#"{"id":0,"s":{"c":1}}"#, true),
        ("null", by_id, false, r#"{"id":null}"#, true),
        ("no more clustering", by_id, true, r#"{"p":0}"#, false),
        (
            "no columns",
            r#"{"clusteringColumns":[]}"#,
            false,
            "{}",
            false,
        ),
        ("unreadable", "{", false, r#"{"id":0}"#, true),
    ] {
        let ours = Ours::new(vec![nothing(READ_VERSION)], actions(&[], &[]))
            .with(|actions| actions.adds.push(file(null_count)));
        let domain = domain(configuration, removed);
        let found = verdict(
            &ours,
            vec![winner(5, &[], &[]).with(|a| a.domains.push(domain))],
        );
        let kinds: Vec<_> = found.conflicts.iter().map(|c| c.kind).collect();
        let expected = if conflicts {
            vec![ConflictKind::ConcurrentDomainMetadata]
        } else {
            vec![]
        };
        assert_eq!(kinds, expected, "{name}");
    }
}

#[test]
fn conflicts_are_ordered_and_explained() {
    let ours = Ours::delete(0..50, &["a"]);
    let winners = vec![
        winner(5, &[], &[remove("a")]),
        winner(6, &[add("c").ids(10..20)], &[]),
    ];
    let found = verdict(&ours, winners);
    let kinds: Vec<_> = found
        .conflicts
        .iter()
        .map(|c| (c.kind, c.version))
        .collect();
    assert_eq!(
        kinds,
        [
            (ConflictKind::ConcurrentAppend, 6),
            (ConflictKind::ConcurrentDeleteRead, 5),
            (ConflictKind::ConcurrentDeleteDelete, 5),
        ]
    );
    assert_eq!(found.winners, Some(5..=6));
    assert_eq!(
        (found.candidates, found.skipped, found.evidence.len()),
        (1, 0, 2)
    );
    let text = found.to_string();
    for part in [
        "read version 4",
        "ConcurrentAppend",
        "version 6",
        "TEST",
        "file c",
        "id",
        "2 more",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let error: DataFusionError = crate::Error::from(found.clone()).into();
    assert_eq!(
        Verdict::find(&error.context("while committing")),
        Some(&found)
    );
}

#[test]
fn lists_are_bounded_and_counts_are_exact() {
    let files: Vec<_> = (0..2 * MAX_LISTED)
        .map(|n| add(&format!("c{n:05}")))
        .collect();
    let ours = Ours::new(vec![whole_table(4, &[])], actions(&[], &[remove("a")]));
    let found = verdict(&ours, vec![winner(5, &files, &[])]);
    assert_eq!(found.conflict_count, 2 * MAX_LISTED);
    assert_eq!(found.conflicts.len(), MAX_LISTED);
    assert_eq!(found.evidence.len(), MAX_LISTED);
    assert_eq!(found.candidates, 2 * MAX_LISTED);
}

#[test]
fn no_winner_gives_a_clean_verdict() {
    let found = verdict(&Ours::delete(0..50, &["a"]), vec![]);
    assert_eq!(found, Verdict::clean(4, IsolationLevel::Serializable));
    assert_eq!(found.to_string(), "read version 4: no other commit");
}
