//! Clearing away what a statement wrote in vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Files of a change that no commit names. Whoever drops it before a commit may do so deletes them, as
/// well as that goes.
#[derive(Debug)]
pub(crate) struct UncommittedFiles {
    store: Arc<dyn ObjectStore>,
    paths: Vec<Path>,
    left_alone: AtomicBool,
}

impl UncommittedFiles {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, paths: Vec<Path>) -> Self {
        Self {
            store,
            paths,
            left_alone: AtomicBool::new(false),
        }
    }

    pub(crate) fn add(&mut self, paths: impl IntoIterator<Item = Path>) {
        self.paths.extend(paths);
    }

    /// Lets them be when it is dropped: from here on a commit may name them, or another one answers
    /// for them.
    pub(crate) fn leave_alone(&self) {
        self.left_alone.store(true, Ordering::SeqCst);
    }

    /// Deletes them, as well as that goes. Only where it is certain that no commit names them.
    pub(crate) async fn delete(self) {
        // If this is dropped half-way, the rest is deleted all the same.
        self.left_alone.store(false, Ordering::SeqCst);
        delete_files(self.store.as_ref(), self.paths.iter().cloned()).await;
        self.leave_alone();
    }
}

impl Drop for UncommittedFiles {
    fn drop(&mut self) {
        if self.paths.is_empty() || self.left_alone.load(Ordering::SeqCst) {
            return;
        }
        let paths = std::mem::take(&mut self.paths);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let store = Arc::clone(&self.store);
                runtime.spawn(async move { delete_files(store.as_ref(), paths).await });
            }
            Err(_) => tracing::warn!(
                files = paths.len(),
                "files of a change that was never committed are left behind: no runtime to delete \
                 them in"
            ),
        }
    }
}
