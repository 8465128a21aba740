//! Canonical file paths: one file, one name, and the object store in which it lies.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use super::table::TableHandle;
use crate::error::{Error, Result};

/// Schemes whose URLs have the path within their object store as their path.
const PLAIN_SCHEMES: [&str; 7] = ["file", "memory", "s3", "s3a", "gs", "abfs", "abfss"];

/// The place of a file that the log names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileLocation {
    /// In the table's folder: the path in [`TableHandle::object_store`].
    InTable(Path),
    /// Elsewhere in the object store that holds the table: the path in
    /// [`TableHandle::root_object_store`].
    Elsewhere(Path),
}

impl FileLocation {
    /// Where the file with the logged `path`, percent-decoded once, lies if the table's root is
    /// `root`.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a file in another object store than the table's, `Corrupt` for a path that
    /// is none.
    pub fn of(root: &Url, path: &str) -> Result<Self> {
        let invalid = |e| Error::corrupt(format!("the file path {path} is not valid: {e}"));
        let relative = canonical_path(root, path);
        if let Some(absolute) = Absolute::parse(&relative) {
            if !absolute.shares_store(root) {
                return Err(Error::unsupported(format!(
                    "the file {path} lies in another object store than the table (a shallow \
                     clone?), which cannot be read yet"
                )));
            }
            let path = absolute.path.trim_start_matches('/');
            return Path::parse(path).map(Self::Elsewhere).map_err(invalid);
        }
        if relative.starts_with('/') {
            return Err(Error::unsupported(format!(
                "the file {path} is logged with a path of unknown meaning; a path is relative to \
                 the table or a URL with a scheme and a path"
            )));
        }
        Path::parse(&relative).map(Self::InTable).map_err(invalid)
    }

    /// The path in [`TableHandle::root_object_store`] of the table at `root`.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a path that is none.
    pub fn path_from(&self, root: &Url) -> Result<Path> {
        match self {
            Self::Elsewhere(path) => Ok(path.clone()),
            Self::InTable(path) => {
                let folder = percent_encoding::percent_decode_str(root.path()).decode_utf8_lossy();
                let whole = format!("{}/{path}", folder.trim_matches('/'));
                Path::parse(whole.trim_start_matches('/'))
                    .map_err(|e| Error::corrupt(format!("the file path {path} is not valid: {e}")))
            }
        }
    }

    /// The path in its object store, see [`FileLocation::store`].
    pub fn path(&self) -> &Path {
        match self {
            Self::InTable(path) | Self::Elsewhere(path) => path,
        }
    }

    /// The object store of the table of `handle` that [`FileLocation::path`] refers to.
    pub fn store(&self, handle: &TableHandle) -> Arc<dyn ObjectStore> {
        match self {
            Self::InTable(_) => handle.object_store(),
            Self::Elsewhere(_) => handle.root_object_store(),
        }
    }
}

/// The canonical form of a data file's `path`, which is already percent-decoded (deltalake decodes
/// when it parses an action): relative to `root` where the file lies under it, else absolute.
pub fn canonical_path(root: &Url, path: &str) -> String {
    let Some(absolute) = Absolute::parse(path) else {
        return path.trim_start_matches("./").to_owned();
    };
    if !absolute.shares_store(root) {
        return path.to_owned();
    }
    let mut prefix = percent_encoding::percent_decode_str(root.path())
        .decode_utf8_lossy()
        .into_owned();
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    match absolute.path.strip_prefix(prefix.as_str()) {
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

/// An absolute path in its parts. A URL parser would encode the decoded text again, but not where
/// a percent sign is part of a name, so that the name could not be had back.
#[derive(Debug)]
struct Absolute<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// From the first slash on.
    path: &'a str,
}

impl<'a> Absolute<'a> {
    /// `scheme://authority/path`, or `scheme:/path` as Hadoop writes it for local files.
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once(':')?;
        let valid = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !valid || !rest.starts_with('/') {
            return None;
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/')?),
            None => ("", rest),
        };
        Some(Self {
            scheme,
            authority,
            path,
        })
    }

    fn shares_store(&self, root: &Url) -> bool {
        let plain = |scheme: &str| if scheme == "s3a" { "s3" } else { scheme }.to_ascii_lowercase();
        PLAIN_SCHEMES.contains(&root.scheme())
            && plain(self.scheme) == plain(root.scheme())
            && self.authority.eq_ignore_ascii_case(root.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn root() -> Url {
        Url::parse("file:///data/my%20table/").expect("url")
    }

    #[test]
    fn a_file_under_the_root_is_relative() {
        let cases = [
            ("p=1/a.parquet", "p=1/a.parquet"),
            ("./a.parquet", "a.parquet"),
            ("file:///data/my table/p=1/a.parquet", "p=1/a.parquet"),
            ("file:/data/my table/p=1/a.parquet", "p=1/a.parquet"),
            ("file:///data/my table/p=a%2Fb/c", "p=a%2Fb/c"),
            ("file:///elsewhere/a.parquet", "file:///elsewhere/a.parquet"),
            ("s3://bucket/a.parquet", "s3://bucket/a.parquet"),
        ];
        for (path, expected) in cases {
            assert_eq!(canonical_path(&root(), path), expected, "{path}");
        }
    }

    #[test]
    fn files_are_found_in_the_store_of_the_table() {
        let in_table = |path: &str| FileLocation::InTable(Path::parse(path).expect("path"));
        let elsewhere = |path: &str| FileLocation::Elsewhere(Path::parse(path).expect("path"));
        let s3 = Url::parse("s3://bucket/t/").expect("url");
        for (root, path, expected) in [
            (
                root(),
                "p=a%2Fb/a b.parquet",
                in_table("p=a%2Fb/a b.parquet"),
            ),
            (root(), "./p=ü/y.parquet", in_table("p=ü/y.parquet")),
            (root(), "a:b.parquet", in_table("a:b.parquet")),
            (
                root(),
                "file:///data/my table/a:b.parquet",
                in_table("a:b.parquet"),
            ),
            (
                root(),
                "file:/data/other/a%20b",
                elsewhere("data/other/a%20b"),
            ),
            (s3.clone(), "s3a://bucket/u/a", elsewhere("u/a")),
            (s3, "s3://bucket/t/a", in_table("a")),
        ] {
            let location = FileLocation::of(&root, path).expect(path);
            assert_eq!(location, expected, "{path}");
        }
    }

    #[test]
    fn odd_paths_are_refused_by_name() {
        for (path, kind) in [
            ("s3://bucket/a.parquet", ErrorKind::Unsupported),
            ("file://host/a.parquet", ErrorKind::Unsupported),
            ("/a.parquet", ErrorKind::Unsupported),
            ("../a.parquet", ErrorKind::Corrupt),
            ("a//b.parquet", ErrorKind::Corrupt),
            ("a\u{7}b", ErrorKind::Corrupt),
        ] {
            let error = FileLocation::of(&root(), path).expect_err(path);
            assert_eq!(error.kind(), kind, "{path}");
            assert!(error.message().contains(path), "{error}");
        }
    }
}
