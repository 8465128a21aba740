//! Canonical file paths: one file, one name.

use object_store::path::Path;
use url::Url;

use crate::error::{Error, Result};

/// Where the data file with the logged `path`, percent-decoded once, lies in the object store that
/// is rooted at the table.
///
/// # Errors
///
/// `Unsupported` for a file outside of the table's folder, `Corrupt` for a path that is none.
pub fn object_path(path: &str) -> Result<Path> {
    if Url::parse(path).is_ok() || path.starts_with('/') {
        return Err(Error::unsupported(format!(
            "the file {path} is logged with an absolute path (a shallow clone?), which cannot be \
             read yet"
        )));
    }
    Path::parse(path).map_err(|e| Error::corrupt(format!("the file path {path} is not valid: {e}")))
}

/// The canonical form of a data file's `path`, which is already percent-decoded (deltalake decodes
/// when it parses an action): relative to `root` where the file lies under it, else absolute.
pub fn canonical_path(root: &Url, path: &str) -> String {
    let Ok(absolute) = Url::parse(path) else {
        return path.trim_start_matches("./").to_owned();
    };
    if absolute.scheme() != root.scheme() || absolute.host_str() != root.host_str() {
        return path.to_owned();
    }
    let mut prefix = percent_encoding::percent_decode_str(root.path())
        .decode_utf8_lossy()
        .into_owned();
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    // The path was decoded once; what the URL parser encoded again is undone here.
    let full = percent_encoding::percent_decode_str(absolute.path()).decode_utf8_lossy();
    match full.strip_prefix(prefix.as_str()) {
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_file_under_the_root_is_relative() {
        let root = Url::parse("file:///data/my%20table/").expect("url");
        let cases = [
            ("p=1/a.parquet", "p=1/a.parquet"),
            ("./a.parquet", "a.parquet"),
            ("file:///data/my table/p=1/a.parquet", "p=1/a.parquet"),
            ("file:///elsewhere/a.parquet", "file:///elsewhere/a.parquet"),
            ("s3://bucket/a.parquet", "s3://bucket/a.parquet"),
        ];
        for (path, expected) in cases {
            assert_eq!(canonical_path(&root, path), expected, "{path}");
        }
    }

    #[test]
    fn odd_paths_are_refused_by_name() {
        for path in ["file:///a.parquet", "/a.parquet", "./a.parquet", "a\u{7}b"] {
            let error = object_path(path).expect_err(path);
            assert_ne!(error.kind(), ErrorKind::Internal, "{path}");
            assert!(error.message().contains(path), "{error}");
        }
        for path in ["p=a%2Fb/a b.parquet", "p=ü/y.parquet"] {
            object_path(path).expect(path);
        }
    }
}
