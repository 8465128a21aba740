//! Whether a `remove` action of this crate names a file the way its `add` does.
//!
//! Readers match the two by their text in the log. A path is written there percent-encoded, but
//! writers differ in what they encode (older versions of deltalake leave blanks alone, Spark leaves
//! `*`), and deltalake hands out the decoded form. A remove that is spelled differently removes
//! nothing, and the table would hold the old rows besides the new ones.

use std::collections::HashMap;

use arrow::array::AsArray;
use deltalake::DeltaTable;
use deltalake::kernel::Remove;
use std::sync::Arc;

use super::snapshot::TableSnapshot;
use super::table::TableHandle;
use crate::error::{Error, Result};

/// Refuses `snapshot` if one of its files cannot be removed by name. Reads the log only where a
/// path has characters that not all writers spell alike.
///
/// # Errors
///
/// `Unsupported` with the path, `Unavailable` if the log can't be read.
pub async fn check_removable(handle: &TableHandle, snapshot: &TableSnapshot) -> Result<()> {
    let mut doubtful = Vec::new();
    for add in snapshot.files.iter() {
        if !is_plain(&add.path) {
            doubtful.push(add.path.as_str());
        }
    }
    if doubtful.is_empty() {
        return Ok(());
    }
    let mut table = DeltaTable::new(Arc::clone(handle.log_store()));
    table.load_version(snapshot.version).await?;
    let files = table.snapshot()?.add_actions_table(false)?;
    let logged = files
        .column_by_name("path")
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or_else(|| Error::internal("the list of files has no paths"))?;
    check_spelling(&doubtful, logged.iter().flatten())
}

/// Characters that every writer leaves as they are, and the percent sign, which every writer has to
/// encode, always the same way.
fn is_plain(path: &str) -> bool {
    path.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./=%".contains(&byte))
}

/// Checks the decoded paths `doubtful` against all paths as they are `logged`.
fn check_spelling<'l>(doubtful: &[&str], logged: impl Iterator<Item = &'l str>) -> Result<()> {
    let mut spellings: HashMap<String, Vec<&str>> = HashMap::new();
    for path in logged {
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        if !is_plain(&decoded) {
            spellings
                .entry(decoded.into_owned())
                .or_default()
                .push(path);
        }
    }
    for path in doubtful {
        let ours = spelling(path)?;
        if spellings.get(*path).map(Vec::as_slice) != Some(&[ours.as_str()]) {
            return Err(Error::unsupported(format!(
                "the file {path} stands in the log under another spelling than this crate writes, \
                 and a table with such files cannot be changed yet, only read and appended to"
            )));
        }
    }
    Ok(())
}

/// How a remove of this crate spells `path`.
fn spelling(path: &str) -> Result<String> {
    let remove = Remove {
        path: path.to_owned(),
        ..Remove::default()
    };
    let json = serde_json::to_value(remove)
        .map_err(|e| Error::internal("a remove action as JSON").with_source(e))?;
    match json.get("path").and_then(serde_json::Value::as_str) {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::internal("a remove action without a path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_spelled_our_way_can_be_removed() {
        for (path, logged, expected) in [
            ("p=a b/x", vec!["p=a%20b/x"], true),
            ("p=a b/x", vec!["p=a b/x"], false),
            ("p=a b/x", vec![], false),
            ("p=a b/x", vec!["p=a%20b/x", "p=a b/x"], false),
            ("a*.parquet", vec!["a%2A.parquet"], true),
            ("a*.parquet", vec!["a*.parquet"], false),
            ("a,b@c.parquet", vec!["a,b@c.parquet"], true),
            ("a,b@c.parquet", vec!["a%2Cb%40c.parquet"], false),
            ("p=ü/x", vec!["p=%C3%BC/x"], true),
            ("p=ü/x", vec!["p=ü/x"], false),
            ("p=ü/x", vec!["p=%c3%bc/x"], false),
        ] {
            let logged_too = logged.iter().copied().chain(["other.parquet"]);
            let checked = check_spelling(&[path], logged_too);
            assert_eq!(checked.is_ok(), expected, "{path} {logged:?}");
        }
    }

    #[test]
    fn usual_names_are_plain() {
        for (path, expected) in [
            ("part-00000-0a1b-c000.snappy.parquet", true),
            ("p=a%2Fb/q=1/x_y.parquet", true),
            ("p=a b/x.parquet", false),
            ("p=ü/x.parquet", false),
            ("p=a:b/x.parquet", false),
        ] {
            assert_eq!(is_plain(path), expected, "{path}");
        }
    }
}
