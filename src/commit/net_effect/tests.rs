use super::*;
use crate::ErrorKind;
use crate::commit::fixtures::{
    AddBuilder, RemoveBuilder, WinnerBuilder, add, remove, snapshot, winner,
};

struct Case {
    name: &'static str,
    files: Vec<AddBuilder>,
    winners: Vec<WinnerBuilder>,
    /// Path and number of adds.
    added: &'static [(&'static str, usize)],
    /// Path and whether its rows are kept.
    removed: &'static [(&'static str, bool)],
}

fn net_effect(files: &[AddBuilder], winners: Vec<WinnerBuilder>) -> NetEffect {
    let mut net_effect = NetEffect::new(Arc::new(snapshot(4, files)));
    for winner in winners {
        net_effect.apply(Arc::new(winner.0)).unwrap();
    }
    net_effect
}

/// A compaction of `from` into `into`.
fn compact(version: u64, from: &[&str], into: &[AddBuilder]) -> WinnerBuilder {
    let removes: Vec<RemoveBuilder> = from
        .iter()
        .map(|path| remove(path).data_change(false))
        .collect();
    let adds: Vec<AddBuilder> = into
        .iter()
        .map(|add| add.clone().data_change(false))
        .collect();
    winner(version, &adds, &removes)
}

fn check_cases(cases: Vec<Case>) {
    for case in cases {
        let net = net_effect(&case.files, case.winners);
        let added: Vec<_> = net
            .added()
            .iter()
            .map(|file| (file.path.to_owned(), file.adds.len()))
            .collect();
        let removed: Vec<_> = net
            .removed()
            .iter()
            .map(|file| (file.path.to_owned(), file.rows_kept))
            .collect();
        let expected = |list: &[(&str, usize)]| -> Vec<_> {
            list.iter()
                .map(|(path, n)| ((*path).to_owned(), *n))
                .collect()
        };
        assert_eq!(added, expected(case.added), "{}: added", case.name);
        let expected: Vec<_> = case
            .removed
            .iter()
            .map(|(path, kept)| ((*path).to_owned(), *kept))
            .collect();
        assert_eq!(removed, expected, "{}: removed", case.name);
    }
}

#[test]
fn adds_and_removes_are_netted() {
    let a = || add("a");
    check_cases(vec![
        Case {
            name: "plain append",
            files: vec![a()],
            winners: vec![winner(5, &[add("b")], &[])],
            added: &[("b", 1)],
            removed: &[],
        },
        Case {
            name: "delete",
            files: vec![a()],
            winners: vec![winner(5, &[], &[remove("a")])],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "added, then removed with a change of data",
            files: vec![a()],
            winners: vec![winner(5, &[add("b")], &[]), winner(6, &[], &[remove("b")])],
            added: &[],
            removed: &[],
        },
        Case {
            name: "added, removed and added again",
            files: vec![],
            winners: vec![
                winner(5, &[add("b")], &[]),
                winner(6, &[], &[remove("b")]),
                winner(7, &[add("b").size(2)], &[]),
            ],
            added: &[("b", 2)],
            removed: &[],
        },
        Case {
            name: "rewritten",
            files: vec![a()],
            winners: vec![winner(5, &[add("b")], &[remove("a")])],
            added: &[("b", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "removed and put back unchanged",
            files: vec![a().modified(7)],
            winners: vec![
                winner(5, &[add("b")], &[remove("a")]),
                winner(6, &[a().modified(7)], &[remove("b")]),
            ],
            added: &[],
            removed: &[],
        },
        Case {
            name: "put back with other statistics",
            files: vec![a().rows(1)],
            winners: vec![
                winner(5, &[], &[remove("a")]),
                winner(6, &[a().rows(2)], &[]),
            ],
            added: &[],
            removed: &[],
        },
        Case {
            name: "put back with another size",
            files: vec![a()],
            winners: vec![
                winner(5, &[], &[remove("a")]),
                winner(6, &[a().size(9)], &[]),
            ],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "put back with another modification time",
            files: vec![a()],
            winners: vec![
                winner(5, &[], &[remove("a")]),
                winner(6, &[a().modified(9)], &[]),
            ],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "put back in another partition",
            files: vec![a().p("1")],
            winners: vec![
                winner(5, &[], &[remove("a")]),
                winner(6, &[a().p("2")], &[]),
            ],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "deletion vector: the new file is added and the old one removed",
            files: vec![a()],
            winners: vec![winner(5, &[a().dv("x", 1)], &[remove("a")])],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "deletion vector, undone",
            files: vec![a().dv("x", 1)],
            winners: vec![
                winner(5, &[a().dv("y", 2)], &[remove("a").dv("x", 1)]),
                winner(6, &[a().dv("x", 1)], &[remove("a").dv("y", 2)]),
            ],
            added: &[],
            removed: &[],
        },
        Case {
            name: "re-added while live, unchanged",
            files: vec![a()],
            winners: vec![winner(5, &[a()], &[])],
            added: &[],
            removed: &[],
        },
        Case {
            name: "re-added while live, with other content",
            files: vec![a()],
            winners: vec![winner(5, &[a().size(2)], &[])],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "added and removed by one commit, same key",
            files: vec![a()],
            winners: vec![winner(5, &[a()], &[remove("a")])],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "added and removed by one commit, then removed",
            files: vec![],
            winners: vec![
                winner(5, &[add("b")], &[remove("b")]),
                winner(6, &[], &[remove("b")]),
            ],
            added: &[("b", 1)],
            removed: &[],
        },
        Case {
            name: "remove of another deletion vector takes nothing away",
            files: vec![],
            winners: vec![
                winner(5, &[add("b")], &[]),
                winner(6, &[], &[remove("b").dv("x", 1)]),
            ],
            added: &[("b", 1)],
            removed: &[],
        },
        Case {
            name: "remove of another deletion vector counts for what was read",
            files: vec![a()],
            winners: vec![winner(5, &[], &[remove("a").dv("x", 1)])],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "remove of a file that never was",
            files: vec![a()],
            winners: vec![winner(5, &[], &[remove("z")])],
            added: &[],
            removed: &[],
        },
    ]);
}

#[test]
fn compactions_are_followed() {
    let a = || add("a").rows(2);
    let b = || add("b").rows(3);
    check_cases(vec![
        Case {
            name: "believed",
            files: vec![a(), b()],
            winners: vec![compact(5, &["a", "b"], &[add("c").rows(5)])],
            added: &[],
            removed: &[("a", true), ("b", true)],
        },
        Case {
            name: "believed without counts",
            files: vec![add("a"), b()],
            winners: vec![compact(5, &["a", "b"], &[add("c").rows(5)])],
            added: &[],
            removed: &[("a", true), ("b", true)],
        },
        Case {
            name: "live rows, not physical ones, are counted",
            files: vec![add("a").rows(5).dv("x", 3)],
            winners: vec![winner(
                5,
                &[add("c").rows(2).data_change(false)],
                &[remove("a").dv("x", 3).data_change(false)],
            )],
            added: &[],
            removed: &[("a", true)],
        },
        Case {
            name: "rows are missing",
            files: vec![a(), b()],
            winners: vec![compact(5, &["a", "b"], &[add("c").rows(4)])],
            added: &[("c", 1)],
            removed: &[("a", false), ("b", false)],
        },
        Case {
            name: "adds only",
            files: vec![a()],
            winners: vec![compact(5, &[], &[add("c").rows(2)])],
            added: &[("c", 1)],
            removed: &[],
        },
        Case {
            name: "removes only",
            files: vec![a()],
            winners: vec![compact(5, &["a"], &[])],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "re-adds only what is there",
            files: vec![a(), b()],
            winners: vec![compact(5, &["a"], &[b()])],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "a removed file was not live",
            files: vec![a()],
            winners: vec![compact(5, &["a", "z"], &[add("c").rows(2)])],
            added: &[("c", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "a removed file was live with another deletion vector",
            files: vec![a().dv("x", 1)],
            winners: vec![compact(5, &["a"], &[add("c").rows(1)])],
            added: &[("c", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "one action changes data",
            files: vec![a()],
            winners: vec![winner(
                5,
                &[add("c").rows(2)],
                &[remove("a").data_change(false)],
            )],
            added: &[("c", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "with change data",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)])
                    .with(|actions| actions.cdc.push(Default::default())),
            ],
            added: &[("c", 1)],
            removed: &[("a", false)],
        },
        Case {
            name: "appended, then compacted: the append stays",
            files: vec![a()],
            winners: vec![
                winner(5, &[b()], &[]),
                compact(6, &["a", "b"], &[add("c").rows(5)]),
            ],
            added: &[("b", 1)],
            removed: &[("a", true)],
        },
        Case {
            name: "appended, compacted, and the output deleted: the append stays",
            files: vec![],
            winners: vec![
                winner(5, &[b()], &[]),
                compact(6, &["b"], &[add("c").rows(3)]),
                winner(7, &[], &[remove("c")]),
            ],
            added: &[("b", 1)],
            removed: &[],
        },
        Case {
            name: "appended, compacted, and the gone file removed again: the append stays",
            files: vec![],
            winners: vec![
                winner(5, &[b()], &[]),
                compact(6, &["b"], &[add("c").rows(3)]),
                winner(7, &[], &[remove("b")]),
            ],
            added: &[("b", 1)],
            removed: &[],
        },
        Case {
            name: "output compacted further",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                compact(6, &["c"], &[add("d").rows(2)]),
            ],
            added: &[],
            removed: &[("a", true)],
        },
        Case {
            name: "output deleted",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                winner(6, &[], &[remove("c")]),
            ],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "output compacted further and then deleted",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                compact(6, &["c"], &[add("d").rows(2)]),
                winner(7, &[], &[remove("d")]),
            ],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "one of two outputs changed",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(1), add("d").rows(1)]),
                winner(6, &[add("d").rows(1).dv("x", 1)], &[remove("d")]),
            ],
            added: &[("d", 2)],
            removed: &[("a", false)],
        },
        Case {
            name: "output deleted and put back",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                winner(6, &[], &[remove("c")]),
                winner(7, &[add("c").rows(2)], &[]),
            ],
            added: &[("c", 2)],
            removed: &[("a", true)],
        },
        Case {
            name: "removed a second time, with a change of data",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                winner(6, &[], &[remove("a")]),
            ],
            added: &[],
            removed: &[("a", false)],
        },
        Case {
            name: "compacted and restored",
            files: vec![a()],
            winners: vec![
                compact(5, &["a"], &[add("c").rows(2)]),
                winner(6, &[a()], &[remove("c")]),
            ],
            added: &[],
            removed: &[],
        },
        Case {
            name: "replaced without a remove, then compacted",
            files: vec![a()],
            winners: vec![
                winner(5, &[a().size(2)], &[]),
                compact(6, &["a"], &[add("c").rows(2)]),
            ],
            added: &[("a", 1)],
            removed: &[("a", false)],
        },
    ]);
}

#[test]
fn blind_appends_may_be_ordered_after_us_unless_someone_saw_them() {
    let blind = |version, path: &str| winner(version, &[add(path)], &[]).blind();
    let changer = |version| winner(version, &[add("y")], &[remove("z")]);
    let cases = [
        ("alone", vec![blind(5, "b")], true),
        ("not blind", vec![winner(5, &[add("b")], &[])], false),
        (
            "another blind append later",
            vec![blind(5, "b"), blind(6, "c")],
            true,
        ),
        (
            "a change that read it",
            vec![blind(5, "b"), changer(6)],
            false,
        ),
        (
            "a change that may have read it",
            vec![blind(5, "b"), changer(6).read_version(None)],
            false,
        ),
        (
            "a change that read an older version",
            vec![blind(5, "b"), changer(6).read_version(Some(4))],
            true,
        ),
        ("an earlier change", vec![changer(5), blind(6, "b")], true),
        (
            "a compaction that read it",
            vec![blind(5, "b"), compact(6, &["b"], &[add("c")])],
            true,
        ),
        (
            "a commit of metadata that read it",
            vec![
                blind(5, "b"),
                winner(6, &[], &[]).with(|a| a.metadata = Some(Default::default())),
            ],
            true,
        ),
        (
            "an unbelieved compaction that read it",
            vec![blind(5, "b"), compact(6, &["z"], &[add("c")])],
            false,
        ),
        (
            "added again by a commit that is not blind",
            vec![
                blind(5, "b"),
                winner(6, &[add("b").size(3)], &[remove("b")]).read_version(Some(4)),
            ],
            false,
        ),
    ];
    for (name, winners, expected) in cases {
        let net = net_effect(&[add("q")], winners);
        let added = net.added();
        let file = added.iter().find(|file| file.path == "b").expect(name);
        assert_eq!(file.blind, expected, "{name}");
    }
}

#[test]
fn gap_is_a_retryable_error() {
    let mut net = NetEffect::new(Arc::new(snapshot(4, &[])));
    for (version, ok) in [
        (6, false),
        (4, false),
        (5, true),
        (5, false),
        (7, false),
        (6, true),
    ] {
        let result = net.apply(Arc::new(winner(version, &[], &[]).0));
        assert_eq!(result.is_ok(), ok, "{version}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
    }
    assert_eq!(net.last_version(), 6);
}

#[test]
fn two_live_files_of_one_path_are_believed_in_neither() {
    let net = net_effect(
        &[add("a"), add("a").dv("x", 1)],
        vec![winner(5, &[add("a").dv("x", 1)], &[])],
    );
    assert_eq!(net.added().len(), 1);
    assert_eq!(net.removed().len(), 1);
}

#[test]
fn long_chain_of_compactions_is_followed() {
    let mut winners = vec![compact(5, &["a"], &[add("c5")])];
    for version in 6..2000 {
        let from = format!("c{}", version - 1);
        winners.push(compact(
            version,
            &[from.as_str()],
            &[add(&format!("c{version}"))],
        ));
    }
    let net = net_effect(&[add("a")], winners);
    assert!(net.removed()[0].rows_kept);
}
