//! Clustered tables: the columns by which a table's files are kept together.
//!
//! Source: Delta protocol, "Clustered Table" and "Domain Metadata". The columns are in the domain
//! `delta.clustering`, by physical name, one name a level. Nothing but statistics depends on them
//! here: a writer must collect them for these columns whatever the table's properties say.

use serde::{Deserialize, Serialize};

use super::kernel::with_version;
use super::snapshot::{TableProtocol, TableSnapshot};
use super::table::TableHandle;
use crate::error::{Error, Result};

/// The table feature.
pub const CLUSTERING_FEATURE: &str = "clustering";

/// The name that clustering had before it was published; tables made then still carry it.
pub const LIQUID_FEATURE: &str = "liquid";

/// The table feature that a table with domain metadata needs.
pub const DOMAIN_METADATA_FEATURE: &str = "domainMetadata";

/// The domain that holds the columns.
pub const CLUSTERING_DOMAIN: &str = "delta.clustering";

/// Whether a table with this protocol may be clustered.
pub fn is_clustered(protocol: &TableProtocol) -> bool {
    protocol.writer_features.as_ref().is_some_and(|features| {
        features.contains(CLUSTERING_FEATURE) || features.contains(LIQUID_FEATURE)
    })
}

/// The columns by which `snapshot` of the table of `handle` is clustered, as paths of physical
/// names; none for a table that is not clustered.
///
/// # Errors
///
/// `Unavailable` or `Corrupt` if the log cannot be read, `Corrupt` if the domain has not the form
/// that the protocol gives it.
pub async fn clustering_columns(
    handle: &TableHandle,
    snapshot: &TableSnapshot,
) -> Result<Vec<Vec<String>>> {
    if !is_clustered(&snapshot.protocol) {
        return Ok(Vec::new());
    }
    let configuration = with_version(handle, snapshot.version, |snapshot, engine| {
        snapshot.get_domain_metadata_internal(CLUSTERING_DOMAIN, engine.as_ref())
    })
    .await?;
    configuration.map_or_else(|| Ok(Vec::new()), |text| parse_configuration(&text))
}

/// The columns in the configuration of the domain.
///
/// ```
/// use delta_disjoint::read::clustering::parse_configuration;
///
/// let columns = parse_configuration(r#"{"clusteringColumns":[["a"],["s","b"]]}"#)?;
/// assert_eq!(columns, [vec!["a"], vec!["s", "b"]]);
/// # Ok::<(), delta_disjoint::Error>(())
/// ```
///
/// # Errors
///
/// `Corrupt` if it has another form.
pub fn parse_configuration(text: &str) -> Result<Vec<Vec<String>>> {
    let configuration: Configuration = serde_json::from_str(text).map_err(|error| {
        Error::corrupt(format!(
            "the domain metadata {CLUSTERING_DOMAIN} cannot be read: {error}"
        ))
        .with_source(error)
    })?;
    Ok(configuration.clustering_columns)
}

/// The configuration of the domain for `columns`.
///
/// # Errors
///
/// `Internal` if there is no JSON for it, which does not happen.
pub fn configuration(columns: &[Vec<String>]) -> Result<String> {
    serde_json::to_string(&Configuration {
        clustering_columns: columns.to_vec(),
    })
    .map_err(|error| Error::internal(format!("no JSON: {error}")).with_source(error))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    clustering_columns: Vec<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn configuration_is_read_back_and_other_forms_are_refused() {
        let columns = [vec!["a.b".to_owned()], vec!["s".to_owned(), "`".to_owned()]];
        let text = configuration(&columns).expect("JSON");
        assert_eq!(parse_configuration(&text).expect("read"), columns);
        // What another writer puts beside the columns.
        let spark = r#"{"clusteringColumns":[["a"]],"domainName":"delta.clustering"}"#;
        assert_eq!(parse_configuration(spark).expect("read"), [["a"]]);
        for text in [
            "",
            "[]",
            "{}",
            r#"{"clusteringColumns":["a"]}"#,
            r#"{"clusteringColumns":[[1]]}"#,
        ] {
            let error = parse_configuration(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
        }
    }
}
