//! Clearing away what a statement wrote in vain.

use futures::StreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

const DELETE_CONCURRENCY: usize = 8;

/// Deletes data files that no commit names, as well as that goes: what cannot be deleted is logged
/// and left. Never call it for files that a commit may name whose outcome is unknown.
pub(crate) async fn delete_files(store: &dyn ObjectStore, paths: impl IntoIterator<Item = Path>) {
    futures::stream::iter(paths)
        .for_each_concurrent(DELETE_CONCURRENCY, |path| async move {
            match store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => tracing::warn!(%path, %error, "a data file is left behind"),
            }
        })
        .await;
}
