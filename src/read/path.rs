//! Canonical file paths: one file, one name.

use url::Url;

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
