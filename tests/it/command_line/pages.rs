//! Help, completions and manual pages.

use super::{Folder, names, run};

const SUBCOMMANDS: [&str; 6] = ["completions", "demo", "explain", "history", "man", "sql"];

#[test]
fn every_subcommand_has_help_with_an_example() {
    for subcommand in SUBCOMMANDS {
        let help = run(&[subcommand, "--help"]).worked();
        let example = format!("  delta-disjoint {subcommand}");
        assert!(help.contains("Example"), "{help}");
        assert!(help.contains(&example), "{help}");
    }
    let help = run(&["--help"]).worked();
    for code in ["  0  ", "  1  ", "  2  ", "  130  ", "  141  "] {
        assert!(help.contains(code), "{help}");
    }
}

#[test]
fn completions_know_the_subcommands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]).worked();
        for word in SUBCOMMANDS.into_iter().chain(["storage-option"]) {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
}

#[test]
fn manual_pages_are_printed_or_written() {
    let page = run(&["man"]).worked();
    assert!(page.contains(".TH delta-disjoint 1"), "{page}");
    let folder = Folder::new();
    let out = folder.dir.path().join("man/man1");
    let out = out.to_str().expect("utf-8");
    assert_eq!(run(&["man", "--out", out]).worked(), "");
    let pages = names(out.as_ref());
    assert!(pages.contains("delta-disjoint.1"), "{pages:?}");
    for subcommand in SUBCOMMANDS {
        let page = format!("delta-disjoint-{subcommand}.1");
        assert!(pages.contains(&page), "{pages:?}");
    }
}
