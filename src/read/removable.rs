//! How the log spells the paths of files, and which files can be removed by name.
//!
//! Readers match a `remove` with its `add` by the text of their paths in the log. A path is written
//! there percent-encoded, but writers differ in what they encode (older versions of deltalake leave
//! blanks alone, Spark leaves `*`), and it may be relative or absolute. A remove that is spelled
//! differently removes nothing, and the table would hold the old rows besides the new ones. Hence
//! the text of the `add` is kept where it may differ from what this crate would write.

use std::collections::{HashMap, HashSet};

use arrow::array::AsArray;
use deltalake::DeltaTable;
use url::Url;

use super::path::canonical_path;
use super::snapshot::TableSnapshot;
use crate::error::{Error, Result};

/// How the log spells those of the live files' `paths` (percent-decoded) that not every writer
/// spells alike: its text by canonical path. The log is looked at only where there are such paths.
///
/// # Errors
///
/// `Corrupt` if the list of files can't be read.
pub(super) fn spellings<'p>(
    table: &DeltaTable,
    paths: impl IntoIterator<Item = &'p str>,
) -> Result<HashMap<String, String>> {
    if paths.into_iter().all(is_plain) {
        return Ok(HashMap::new());
    }
    let files = table.snapshot()?.add_actions_table(false)?;
    let logged = files
        .column_by_name("path")
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or_else(|| Error::internal("the list of files has no paths"))?;
    let root = table.log_store().root_url().clone();
    Ok(by_canonical_path(&root, logged.iter().flatten()))
}

fn by_canonical_path<'l>(
    root: &Url,
    logged: impl Iterator<Item = &'l str>,
) -> HashMap<String, String> {
    logged
        .filter_map(|text| {
            let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
            (!is_plain(&decoded)).then(|| (canonical_path(root, &decoded), text.to_owned()))
        })
        .collect()
}

/// Refuses `snapshot` if one of its files cannot be removed by name, because the log spells its path
/// in two ways or has two files of one name.
///
/// # Errors
///
/// `Unsupported` with the path.
pub fn check_removable(snapshot: &TableSnapshot) -> Result<()> {
    let mut seen = HashSet::new();
    match snapshot.files.iter().find(|add| !seen.insert(&add.path)) {
        None => Ok(()),
        Some(add) => Err(Error::unsupported(format!(
            "the file {} stands in the log twice, and a table with such files cannot be changed, \
             only read and appended to",
            add.path
        ))),
    }
}

/// Whether every writer spells `path` in one way: characters that all leave as they are, and the
/// percent sign, which every writer has to encode, always the same way.
fn is_plain(path: &str) -> bool {
    !path.starts_with("./")
        && path
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_./=%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_log_is_kept_where_writers_differ() {
        let root = Url::parse("file:///data/t/").expect("url");
        for (logged, canonical) in [
            ("p=a%20b/x", Some("p=a b/x")),
            ("p=a b/x", Some("p=a b/x")),
            ("a*.parquet", Some("a*.parquet")),
            ("a%2A.parquet", Some("a*.parquet")),
            ("p=%C3%BC/x", Some("p=ü/x")),
            ("p=%c3%bc/x", Some("p=ü/x")),
            ("./a.parquet", Some("a.parquet")),
            ("file:///data/t/p=a%252Fb/x", Some("p=a%2Fb/x")),
            ("file:///data/u/x", Some("file:///data/u/x")),
            ("p=a%252Fb/x", None),
            ("part-0.parquet", None),
        ] {
            let expected = canonical
                .map(|path| HashMap::from([(path.to_owned(), logged.to_owned())]))
                .unwrap_or_default();
            let spellings = by_canonical_path(&root, [logged].into_iter());
            assert_eq!(spellings, expected, "{logged}");
        }
    }

    #[test]
    fn usual_names_are_plain() {
        for (path, expected) in [
            ("part-00000-0a1b-c000.snappy.parquet", true),
            ("p=a%2Fb/q=1/x_y.parquet", true),
            ("./x.parquet", false),
            ("p=a b/x.parquet", false),
            ("p=ü/x.parquet", false),
            ("p=a:b/x.parquet", false),
        ] {
            assert_eq!(is_plain(path), expected, "{path}");
        }
    }
}
