//! Transactions of several statements in SQL.

mod conflicts;
mod endings;
mod history;
mod own_writes;
mod past_scans;
mod refused;
mod statements;
mod visibility;

use crate::support::Table;

/// The files on disk that no version of the table up to its newest one names.
fn orphans(table: &Table) -> Vec<String> {
    let (version, _) = table.log();
    let named: Vec<String> = (0..=version)
        .flat_map(|version| table.log_entry(version))
        .filter_map(|action| Some(action["add"]["path"].as_str()?.to_owned()))
        .collect();
    let mut orphans = table.data_files_on_disk();
    orphans.retain(|file| !named.contains(file));
    orphans
}
