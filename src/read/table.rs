//! A table by its location: where its log is, and the newest version this process has seen.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::object_store::ObjectStoreUrl;
use deltalake::kernel::Add;
use deltalake::logstore::{LogStoreRef, commit_uri_from_version};
use deltalake::{DeltaTable, DeltaTableBuilder};
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use super::column_expressions::ColumnExpressions;
use super::column_mapping::plain_field;
use super::log_store::commit_style;
use super::path::canonical_path;
use super::removable::spellings;
use super::snapshot::{TableMetadata, TableProtocol, TableSnapshot};
use crate::error::{Error, Result};

/// One Delta table, shared by all providers and statements that name it.
///
/// The handle keeps the newest snapshot it has loaded, so that a statement on an unchanged table
/// costs two looks at the log: whether there is a newer version, and whether it is the same table.
#[derive(Debug)]
pub struct TableHandle {
    location: String,
    store_url: ObjectStoreUrl,
    root_store_url: ObjectStoreUrl,
    log_store: LogStoreRef,
    loaded: tokio::sync::Mutex<Loaded>,
    /// The columns that the catalog shows. They move only between statements, never under one.
    shown: RwLock<Shown>,
}

impl TableHandle {
    /// The handle of the table behind `log_store`. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a [log store](commit_style) that is not safe to commit to, `Internal` if no
    /// object store URL can be made for the table.
    pub fn new(log_store: LogStoreRef) -> Result<Self> {
        commit_style(log_store.as_ref())?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        let url = |scheme: &str| {
            let url = format!("{scheme}://{id}/");
            ObjectStoreUrl::parse(&url)
                .map_err(|e| Error::internal(format!("object store URL {url}: {e}")))
        };
        Ok(Self {
            location: canonical_location(log_store.root_url()),
            store_url: url("delta-disjoint")?,
            root_store_url: url("delta-disjoint-root")?,
            loaded: tokio::sync::Mutex::new(Loaded::nothing(&log_store)),
            log_store,
            shown: RwLock::new(Shown {
                schema: Arc::new(Schema::empty()),
                expressions: Arc::default(),
                changes: 0,
            }),
        })
    }

    /// The handle of the table at `location`, a path or a URL. Nothing is read yet; a local folder
    /// that is missing is made only with `make_folder`.
    ///
    /// # Errors
    ///
    /// `Invalid` for a location that is none or whose scheme no object store serves, `Unsupported`
    /// as for [`TableHandle::new`].
    pub fn at(
        location: &str,
        storage_options: HashMap<String, String>,
        make_folder: bool,
    ) -> Result<Self> {
        check_url(location)?;
        let url = if make_folder {
            deltalake::ensure_table_uri(location)?
        } else {
            deltalake::table::builder::parse_table_uri(location)?
        };
        let log_store = DeltaTableBuilder::from_url(url)?
            .with_storage_options(storage_options)
            .build_storage()?;
        Self::new(log_store)
    }

    /// The canonical location; equal for all names of one table.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The table's log.
    pub fn log_store(&self) -> &LogStoreRef {
        &self.log_store
    }

    /// The object store whose root is the table's root.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.log_store.object_store(None)
    }

    /// The object store that holds the table, whose root is the bucket's or the file system's.
    pub fn root_object_store(&self) -> Arc<dyn ObjectStore> {
        self.log_store.root_object_store(None)
    }

    /// The URL under which scans look up [`TableHandle::object_store`].
    pub fn store_url(&self) -> &ObjectStoreUrl {
        &self.store_url
    }

    /// The URL under which scans look up [`TableHandle::root_object_store`].
    pub fn root_store_url(&self) -> &ObjectStoreUrl {
        &self.root_store_url
    }

    /// Whether there is a Delta table at the location.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the storage does not answer.
    pub async fn exists(&self) -> Result<bool> {
        Ok(self.log_store.is_delta_table_location().await?)
    }

    /// The newest version of the table in the log.
    ///
    /// # Errors
    ///
    /// `Invalid` if there is no table, `Unavailable` or `Corrupt` if the log can't be read.
    pub async fn newest(&self) -> Result<Arc<TableSnapshot>> {
        // One load at a time: the others wait and find the work done.
        let mut loaded = self.loaded.lock().await;
        if let Some((snapshot, mark)) = &loaded.newest
            && self.mark(snapshot.version).await? != *mark
        {
            // Another table stands where this one was; nothing that was loaded is of use.
            *loaded = Loaded::nothing(&self.log_store);
        }
        loaded.table.update_state().await.map_err(|e| {
            let error = Error::from(e);
            Error::new(
                error.kind(),
                format!(
                    "cannot load the table at {}: {}",
                    self.location,
                    error.message()
                ),
            )
            .with_source(error)
        })?;
        if let (Some(version), Some((known, _))) = (loaded.table.version(), &loaded.newest)
            && known.version == version
        {
            return Ok(Arc::clone(known));
        }
        let snapshot = Arc::new(read_snapshot(&loaded.table)?);
        let mark = self.mark(snapshot.version).await?;
        loaded.newest = Some((Arc::clone(&snapshot), mark));
        Ok(snapshot)
    }

    /// The table as it was at `version`; newer versions are not looked at.
    ///
    /// # Errors
    ///
    /// `Unavailable` or `Corrupt` if the log can't be read, which is also so where the version was
    /// cleaned up.
    pub async fn at_version(&self, version: u64) -> Result<Arc<TableSnapshot>> {
        let mut table = DeltaTable::new(Arc::clone(&self.log_store));
        table.load_version(version).await.map_err(|e| {
            let error = Error::from(e);
            let message = format!(
                "cannot load version {version} of the table at {}: {}",
                self.location,
                error.message()
            );
            Error::new(error.kind(), message).with_source(error)
        })?;
        Ok(Arc::new(read_snapshot(&table)?))
    }

    /// Loads the newest version and shows its columns in the catalog.
    ///
    /// # Errors
    ///
    /// As [`TableHandle::newest`].
    pub async fn refresh(&self) -> Result<Arc<TableSnapshot>> {
        let snapshot = self.newest().await?;
        self.show(&snapshot);
        Ok(snapshot)
    }

    /// The columns that the catalog shows.
    pub fn shown_schema(&self) -> SchemaRef {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&shown.schema)
    }

    /// Which columns that the catalog shows are filled by the table, and how.
    pub fn shown_expressions(&self) -> Arc<ColumnExpressions> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&shown.expressions)
    }

    /// How often the columns that the catalog shows have changed. While it is 0, every plan was made
    /// with the same columns.
    pub fn shown_changes(&self) -> u64 {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.changes
    }

    /// Lets the catalog show the columns of `snapshot` to statements planned from now on.
    pub fn show(&self, snapshot: &TableSnapshot) {
        let schema = &snapshot.schema;
        let expressions = Arc::new(ColumnExpressions::of(&snapshot.metadata));
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        // Before the first version is loaded there are none.
        if !shown.schema.fields().is_empty() && shown.schema.fields() != schema.fields() {
            shown.changes += 1;
        }
        shown.schema = Arc::clone(schema);
        shown.expressions = expressions;
    }

    /// The retryable error for a plan that was made with other columns than `snapshot` has; the
    /// catalog shows the new ones from now on.
    pub fn columns_changed(&self, snapshot: &TableSnapshot) -> Error {
        self.show(snapshot);
        Error::unavailable(format!(
            "the columns of the table at {} changed before the statement ran (version {}); run \
             the statement again",
            self.location, snapshot.version
        ))
    }

    /// What the entry of `version` can be told by; nothing where it was cleaned up.
    async fn mark(&self, version: u64) -> Result<Option<Mark>> {
        let entry = commit_uri_from_version(Some(version));
        match self.object_store().head(&entry).await {
            Ok(meta) => Ok(Some((meta.last_modified, meta.size, meta.e_tag))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Refuses what looks like a URL and is none, which would be taken for a path, and a URL for whose
/// scheme there is no object store. The location, which may hold a password, is not shown.
fn check_url(location: &str) -> Result<()> {
    if !location.contains("://") {
        return Ok(());
    }
    let url = Url::parse(location)
        .map_err(|error| Error::invalid(format!("the location is not a valid URL: {error}")))?;
    check_parts(&url)?;
    let scheme = url.scheme();
    let stores = deltalake::logstore::object_store_factories();
    let is_served = |served: &Url| served.scheme() == scheme;
    if stores.iter().any(|store| is_served(store.key())) {
        return Ok(());
    }
    let mut served: Vec<String> = stores
        .iter()
        .map(|store| store.key().scheme().to_owned())
        .collect();
    served.sort();
    let feature = match scheme {
        "s3" | "s3a" => Some("s3"),
        "az" | "adl" | "azure" | "abfs" | "abfss" | "wasb" | "wasbs" => Some("azure"),
        "gs" => Some("gcs"),
        _ => None,
    };
    let remedy = feature.map_or_else(String::new, |feature| {
        format!("; build delta-disjoint with the feature {feature}")
    });
    Err(Error::invalid(format!(
        "no object store in this build serves {scheme}:// (there is {}){remedy}",
        served.join(", ")
    )))
}

/// Refuses what object stores pass over: one table would have several locations then, and messages
/// and plans would show a password or a signature.
fn check_parts(url: &Url) -> Result<()> {
    // `container@account` is how these name a container; it is no secret.
    let may_have_user = ["abfs", "abfss", "wasb", "wasbs"].contains(&url.scheme());
    let part = if url.password().is_some() || (!url.username().is_empty() && !may_have_user) {
        "a user's name or password in front of the host"
    } else if url.query().is_some() {
        "a query (?…)"
    } else if url.fragment().is_some() {
        "a fragment (#…)"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!(
        "the location is a URL with {part}, which does not belong to a table's location; leave it \
         out, give credentials as options of the object store, and write ?, # and @ of a name as \
         %3F, %23 and %40"
    )))
}

/// What the catalog shows of a table.
#[derive(Debug)]
struct Shown {
    schema: SchemaRef,
    expressions: Arc<ColumnExpressions>,
    /// How often the columns became others.
    changes: u64,
}

/// Time, size and tag of a log entry: others where the table was dropped and made anew.
type Mark = (chrono::DateTime<chrono::Utc>, u64, Option<String>);

/// What a handle has loaded.
#[derive(Debug)]
struct Loaded {
    table: DeltaTable,
    newest: Option<(Arc<TableSnapshot>, Option<Mark>)>,
}

impl Loaded {
    fn nothing(log_store: &LogStoreRef) -> Self {
        Self {
            table: DeltaTable::new(Arc::clone(log_store)),
            newest: None,
        }
    }
}

/// One spelling for one location: no trailing slash, symbolic links of local folders resolved.
pub(crate) fn canonical_location(url: &Url) -> String {
    let resolved = url
        .to_file_path()
        .ok()
        .and_then(|path| std::fs::canonicalize(path).ok())
        .and_then(|path| Url::from_directory_path(path).ok());
    resolved
        .as_ref()
        .unwrap_or(url)
        .as_str()
        .trim_end_matches('/')
        .to_owned()
}

/// The version that `table` has loaded, with its files.
///
/// # Errors
///
/// `Invalid` or `Unavailable` if none is loaded, `Corrupt` if it cannot be used.
pub(crate) fn read_snapshot(table: &DeltaTable) -> Result<TableSnapshot> {
    let state = table.snapshot()?.snapshot();
    let logged: Vec<Add> = state
        .try_log_data()?
        .iter()
        .map(|view| {
            // It panics for a deletion vector of a storage type that it does not know.
            std::panic::catch_unwind(AssertUnwindSafe(|| {
                #[expect(
                    deprecated,
                    reason = "the one public way to a live file's tags, which say what its statistics are worth"
                )]
                view.add_action()
            }))
            .map_err(|_| {
                Error::corrupt(format!(
                    "the deletion vector of the file {} in version {} cannot be used: its storage \
                     type is unknown",
                    view.path(),
                    state.version()
                ))
            })
        })
        .collect::<Result<_>>()?;
    let spellings = spellings(table, logged.iter().map(|add| add.path.as_str()))?;
    let log_store = table.log_store();
    let root = log_store.root_url();
    let files = logged
        .into_iter()
        .map(|add| {
            let path = canonical_path(root, &add.path);
            Arc::new(Add { path, ..add })
        })
        .collect();
    let metadata: TableMetadata = reshape(state.metadata(), "metadata")?;
    let protocol: TableProtocol = reshape(state.protocol(), "protocol")?;
    Ok(TableSnapshot {
        version: state.version(),
        schema: plain_schema(&state.arrow_schema()),
        metadata,
        protocol,
        files,
        spellings: Arc::new(spellings),
    })
}

fn reshape<T: serde::de::DeserializeOwned>(
    action: &impl serde::Serialize,
    what: &str,
) -> Result<T> {
    serde_json::to_value(action)
        .and_then(serde_json::from_value)
        .map_err(|e| Error::corrupt(format!("the table's {what} cannot be read: {e}")))
}

/// The schema without field metadata, which would make equal schemas of plans unequal.
fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_holds_nothing_that_a_store_passes_over() {
        let cases = [
            ("s3://bucket/t", true),
            ("s3://bucket/a@b", true),
            ("s3://bucket/a%3Fb", true),
            ("file:///data/t", true),
            ("http://host:80/t", true),
            ("abfss://container@account.dfs.core.windows.net/t", true),
            ("wasb://container@account/t", true),
            (
                "abfss://container:secret@account.dfs.core.windows.net/t",
                false,
            ),
            ("s3://AKIA:secret@bucket/t", false),
            ("s3://:secret@bucket/t", false),
            ("s3://user@bucket/t", false),
            ("https://user@host/t", false),
            ("https://host/t?sv=2022&sig=secret", false),
            ("s3://bucket/t?", false),
            ("file:///data/t#secret", false),
        ];
        for (location, is_location) in cases {
            let checked = check_parts(&Url::parse(location).expect("a URL"));
            match checked {
                Ok(()) => assert!(is_location, "{location}"),
                Err(error) => {
                    assert!(!is_location, "{location}: {error}");
                    assert!(!error.message().contains("secret"), "{error}");
                }
            }
        }
        // Before anything else is looked at.
        let error = check_url("s3://user:secret@bucket/t").expect_err("refused");
        assert!(error.message().contains("password"), "{error}");
    }
}
