//! Calling a statement off: whoever runs it asks, and it stops where that leaves no trace.
//!
//! ```text
//! rows are read and written ─── the log is read and checked ─── put ─── answer
//! └──────── stops here, its files are deleted ───────────┘     └ runs to its end ┘
//! ```
//!
//! A statement whose stream is dropped stops anywhere, also while the new version is being put: then
//! nobody knows whether it was. Asked to stop, it knows.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Result};

/// A request to stop that statements look for; clones are the same request.
///
/// The default is one that never comes.
///
/// ```
/// use std::sync::Arc;
///
/// use delta_disjoint::{Cancellation, Error, ErrorKind, session, sql};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let location = folder.path().display();
/// let ctx = session();
/// sql(&ctx, &format!("CREATE EXTERNAL TABLE t (x BIGINT) STORED AS DELTA LOCATION '{location}'")).await?;
///
/// let cancellation = Cancellation::new();
/// cancellation.watch_statements_of(&ctx);
/// let insert = sql(&ctx, "INSERT INTO t VALUES (1)").await?;
/// cancellation.cancel(); // from anywhere, at any time
/// let error = insert.collect().await.unwrap_err();
/// assert_eq!(Error::find(&error).map(Error::kind), Some(ErrorKind::Cancelled));
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Option<Arc<Request>>);

/// How far a statement that looks for a request has come with its new version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutState {
    /// No version of it is written.
    #[default]
    NotBegun,
    /// A version is being put: a statement that is dropped now may have written it or not.
    Running,
    /// Its version is written.
    Done,
}

#[derive(Debug, Default)]
struct Request {
    made: watch::Sender<bool>,
    put: Mutex<PutState>,
}

impl Cancellation {
    /// A request that can be made.
    pub fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// Lets the statements of `ctx` that are planned from now on, and `COMMIT`, look for this request
    /// in place of an earlier one.
    ///
    /// Changes of Delta tables stop with an error of the kind
    /// [`Cancelled`](ErrorKind::Cancelled) and leave their table as it was, or, where the new version
    /// is already being put, run to their end and succeed. Queries don't look: drop their stream.
    pub fn watch_statements_of(&self, ctx: &SessionContext) {
        let state = ctx.state_ref();
        let mut state = state.write();
        state.config_mut().set_extension(Arc::new(self.clone()));
    }

    /// Makes the request. It is never taken back.
    pub fn cancel(&self) {
        if let Some(request) = &self.0 {
            request.made.send_replace(true);
        }
    }

    /// Whether the request was made.
    pub fn is_cancelled(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|request| *request.made.borrow())
    }

    /// Waits until the request is made.
    pub async fn cancelled(&self) {
        if let Some(request) = &self.0
            && request
                .made
                .subscribe()
                .wait_for(|made| *made)
                .await
                .is_ok()
        {
            return;
        }
        std::future::pending().await
    }

    /// The request that the statements of a session look for.
    pub fn of(config: &SessionConfig) -> Self {
        config
            .get_extension::<Self>()
            .map(|request| Self::clone(&request))
            .unwrap_or_default()
    }

    /// How far the statement that looks for this request has come with its new version: whether it
    /// may be dropped. With several such statements it is the one that came further last.
    pub fn put_state(&self) -> PutState {
        self.0.as_ref().map_or_else(PutState::default, |request| {
            *request.put.lock().unwrap_or_else(PoisonError::into_inner)
        })
    }

    /// Tells how far the statement has come.
    pub(crate) fn set_put_state(&self, state: PutState) {
        if let Some(request) = &self.0 {
            *request.put.lock().unwrap_or_else(PoisonError::into_inner) = state;
        }
    }

    /// The error of a statement that stops, if it has to.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(stopped())
        } else {
            Ok(())
        }
    }

    /// `future`, or the error where the request comes first.
    pub(crate) async fn or<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(stopped()),
            done = future => done,
        }
    }

    /// `rows`, which end with the error once the request is made.
    pub(crate) fn stop(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        if self.0.is_none() {
            return rows;
        }
        let schema = rows.schema();
        let (until, after) = (self.clone(), self.clone());
        let end = stream::once(async move { after.check().err() })
            .filter_map(|error| async move { error.map(|error| Err(error.into())) });
        let rows = rows
            .take_until(async move { until.cancelled().await })
            .chain(end);
        Box::pin(RecordBatchStreamAdapter::new(schema, rows.boxed()))
    }
}

impl PartialEq for Cancellation {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl Eq for Cancellation {}

fn stopped() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "the statement was called off; the table is as it was",
    )
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::datatypes::Schema;
    use datafusion::common::DataFusionError;
    use futures::TryStreamExt;

    use super::*;

    fn endless() -> SendableRecordBatchStream {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        let schema = batch.schema();
        let rows = stream::repeat_with(move || Ok(batch.clone()));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    fn silent() -> SendableRecordBatchStream {
        let rows = stream::pending::<Result<RecordBatch, DataFusionError>>();
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::new(Schema::empty()),
            rows,
        ))
    }

    #[tokio::test]
    async fn rows_end_with_the_error() {
        for rows in [endless(), silent()] {
            let request = Cancellation::new();
            let mut rows = request.stop(rows);
            request.cancel();
            let error = loop {
                match rows.try_next().await {
                    Ok(batch) => assert!(batch.is_some(), "the rows ended without an error"),
                    Err(error) => break error,
                }
            };
            let kind = Error::find(&error).map(Error::kind);
            assert_eq!(kind, Some(ErrorKind::Cancelled));
        }
    }

    #[tokio::test]
    async fn without_a_request_nothing_changes() {
        for request in [Cancellation::new(), Cancellation::default()] {
            let rows: Vec<_> = request.stop(endless()).take(3).try_collect().await.unwrap();
            assert_eq!(rows.len(), 3);
            assert!(request.check().is_ok());
            assert_eq!(request.or(async { Ok(7) }).await.unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn a_request_that_was_made_comes_first() {
        let request = Cancellation::new();
        request.clone().cancel();
        let error = request.or(async { Ok(7) }).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn equal_are_clones_and_those_that_never_come() {
        let request = Cancellation::new();
        assert_eq!(request, request.clone());
        assert_ne!(request, Cancellation::new());
        assert_ne!(request, Cancellation::default());
        assert_eq!(Cancellation::default(), Cancellation::default());
    }
}
