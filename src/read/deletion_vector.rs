//! Deletion vectors: which rows of a data file are hidden.
//!
//! A vector lies in the log itself, in a file of the table's folder or behind an absolute path.
//! Source: Delta protocol, "Deletion Vectors" and "Deletion Vector Format". Guaranteed: a vector
//! that does not say exactly what the log says of it is an error, never a visible row.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use delta_kernel::actions::deletion_vector::DeletionVectorDescriptor as KernelDescriptor;
use delta_kernel::actions::deletion_vector::DeletionVectorStorageType;
use delta_kernel::{DeltaResult, Error as KernelError, FileMeta, FileSlice, StorageHandler};
use deltalake::kernel::{Add, DeletionVectorDescriptor};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;
use url::Url;

use super::footer::rows_in;
use super::path::FileLocation;
use super::snapshot::TableSnapshot;
use super::table::TableHandle;
use crate::error::{Error, Result};

/// How many vectors are loaded at once.
const CONCURRENCY: usize = 16;

/// The hidden rows of one file.
#[derive(Debug, Clone)]
pub struct HiddenRows {
    /// Positions of the hidden rows.
    pub rows: RoaringTreemap,
    /// Rows that the file physically holds.
    pub total: u64,
}

/// The hidden rows of those of the files with these indices that have a deletion vector.
///
/// # Errors
///
/// `Corrupt`, with the file and the version, for a vector that contradicts the log or its file;
/// `Unavailable` if the storage does not answer; `Unsupported` for a vector in another object store.
pub async fn hidden_rows(
    handle: &TableHandle,
    snapshot: &TableSnapshot,
    files: impl IntoIterator<Item = usize>,
) -> Result<HashMap<usize, HiddenRows>> {
    let loads: Vec<_> = files
        .into_iter()
        .filter_map(|index| {
            let add = snapshot.files.get(index)?;
            let vector = add.deletion_vector.as_ref()?;
            Some(async move {
                let hidden = load(handle, add, vector).await.map_err(|error| {
                    Error::new(
                        error.kind(),
                        format!(
                            "the deletion vector of the file {} in version {} cannot be used: {}",
                            add.path,
                            snapshot.version,
                            error.message()
                        ),
                    )
                    .with_source(error)
                })?;
                Ok::<_, Error>((index, hidden))
            })
        })
        .collect();
    futures::stream::iter(loads)
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

/// How many rows the deletion vector of `add` hides, as the log says.
///
/// # Errors
///
/// `Corrupt` for a negative number.
pub fn hidden_row_count(add: &Add) -> Result<u64> {
    let Some(vector) = &add.deletion_vector else {
        return Ok(0);
    };
    u64::try_from(vector.cardinality).map_err(|_| {
        Error::corrupt(format!(
            "the deletion vector of {} hides a negative number of rows",
            add.path
        ))
    })
}

/// The rows of a file of `total` rows that are not in `gone`.
pub fn rows_that_stay(gone: &RoaringTreemap, total: u64) -> RowSelection {
    let mut selectors = Vec::new();
    let mut next = 0;
    for row in gone.iter().take_while(|row| *row < total) {
        push(&mut selectors, RowSelector::select, row - next);
        push(&mut selectors, RowSelector::skip, 1);
        next = row + 1;
    }
    push(&mut selectors, RowSelector::select, total - next);
    RowSelection::from(selectors)
}

/// Of a file of `total` rows, those in `rows`.
pub fn chosen_rows(rows: &RoaringTreemap, total: u64) -> RowSelection {
    let mut selectors = Vec::new();
    let mut next = 0;
    for row in rows.iter().take_while(|row| *row < total) {
        push(&mut selectors, RowSelector::skip, row - next);
        push(&mut selectors, RowSelector::select, 1);
        next = row + 1;
    }
    push(&mut selectors, RowSelector::skip, total - next);
    RowSelection::from(selectors)
}

fn push(selectors: &mut Vec<RowSelector>, make: fn(usize) -> RowSelector, rows: u64) {
    // A file that has more rows than the address space is read by nobody.
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    if rows > 0 {
        selectors.push(make(rows));
    }
}

async fn load(
    handle: &TableHandle,
    add: &Add,
    vector: &DeletionVectorDescriptor,
) -> Result<HiddenRows> {
    // The footer, not the statistics: a wrong number of rows would lose some.
    let (rows, total) = futures::try_join!(read(handle, vector), rows_in(handle, add))?;
    let expected = u64::try_from(vector.cardinality).unwrap_or_default();
    if rows.len() != expected {
        return Err(Error::corrupt(format!(
            "it hides {} rows, but the log says {expected}",
            rows.len()
        )));
    }
    if rows.max().is_some_and(|last| last >= total) {
        return Err(Error::corrupt(format!(
            "it hides a row beyond the {total} rows of the file"
        )));
    }
    Ok(HiddenRows { rows, total })
}

async fn read(handle: &TableHandle, vector: &DeletionVectorDescriptor) -> Result<RoaringTreemap> {
    let descriptor = KernelDescriptor::try_from(vector.clone()).map_err(corrupt)?;
    if descriptor.storage_type == DeletionVectorStorageType::Inline {
        return decode_inline(&descriptor);
    }
    let location = locate(handle.log_store().root_url(), &descriptor)?;
    let store = location.store(handle);
    let size = u64::try_from(descriptor.size_in_bytes).unwrap_or_default();
    let start = u64::try_from(descriptor.offset.unwrap_or(1)).unwrap_or_default();
    // Its own length, the vector, its checksum; and the version of the format at the file's head.
    let ranges = [0..1, start..start + size + 8];
    let parts = match store.get_ranges(location.path(), &ranges).await {
        Ok(parts) => parts,
        Err(error) => {
            return Err(why_unread(store.as_ref(), location.path(), &ranges[1], error).await);
        }
    };
    let mut bytes = BytesMut::new();
    for part in parts {
        bytes.put(part);
    }
    decode_file(&descriptor, bytes.freeze())
}

/// The vector in `bytes`: the head of its file, of one byte, and its own part.
fn decode_file(descriptor: &KernelDescriptor, bytes: Bytes) -> Result<RoaringTreemap> {
    let at_the_head = KernelDescriptor {
        offset: Some(1),
        ..descriptor.clone()
    };
    let storage = Arc::new(Fetched(bytes));
    at_the_head.read(storage, &base()?).map_err(corrupt)
}

fn decode_inline(descriptor: &KernelDescriptor) -> Result<RoaringTreemap> {
    let text = descriptor.path_or_inline_dv.len();
    let size = usize::try_from(descriptor.size_in_bytes).unwrap_or_default();
    // Four bytes are five characters; what is shorter has not even a magic number.
    if size < 4 || !text.is_multiple_of(5) || text / 5 != size.div_ceil(4) {
        return Err(Error::corrupt(format!(
            "{size} bytes cannot be written in {text} characters"
        )));
    }
    descriptor
        .read(Arc::new(Fetched(Bytes::new())), &base()?)
        .map_err(corrupt)
}

fn locate(root: &Url, descriptor: &KernelDescriptor) -> Result<FileLocation> {
    if descriptor.storage_type == DeletionVectorStorageType::PersistedAbsolute {
        let path = percent_encoding::percent_decode_str(&descriptor.path_or_inline_dv)
            .decode_utf8_lossy()
            .into_owned();
        return FileLocation::of(root, &path);
    }
    let base = base()?;
    let url = descriptor
        .absolute_path(&base)
        .map_err(corrupt)?
        .ok_or_else(|| Error::internal("a stored deletion vector without a path"))?;
    let relative = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy();
    let odd = url.scheme() != base.scheme()
        || url.has_host()
        || url.query().is_some()
        || url.fragment().is_some();
    if odd {
        return Err(Error::corrupt(format!(
            "its path {} is not valid",
            descriptor.path_or_inline_dv
        )));
    }
    FileLocation::of(root, relative.trim_start_matches('/'))
}

/// A URL that stands for the table's folder, whatever that is.
fn base() -> Result<Url> {
    Url::parse("table:/").map_err(|e| Error::internal("the base of paths").with_source(e))
}

/// Stores answer differently to a range that reaches beyond the end of a file.
async fn why_unread(
    store: &dyn ObjectStore,
    path: &Path,
    range: &Range<u64>,
    error: object_store::Error,
) -> Error {
    match store.head(path).await {
        Err(object_store::Error::NotFound { .. }) => {
            Error::corrupt(format!("the file {path} is missing"))
        }
        Ok(file) if file.size < range.end => Error::corrupt(format!(
            "the file {path} has {} bytes, and the log wants those up to {}",
            file.size, range.end
        )),
        _ => error.into(),
    }
}

fn corrupt(error: KernelError) -> Error {
    Error::corrupt(error.to_string()).with_source(error)
}

/// A file that the kernel asks for and that was fetched before, since it does not wait.
struct Fetched(Bytes);

impl StorageHandler for Fetched {
    fn list_from(&self, _: &Url) -> DeltaResult<Box<dyn Iterator<Item = DeltaResult<FileMeta>>>> {
        Err(not_here())
    }

    fn read_files(
        &self,
        files: Vec<FileSlice>,
    ) -> DeltaResult<Box<dyn Iterator<Item = DeltaResult<Bytes>>>> {
        let bytes = self.0.clone();
        Ok(Box::new(files.into_iter().map(move |_| Ok(bytes.clone()))))
    }

    fn copy_atomic(&self, _: &Url, _: &Url) -> DeltaResult<()> {
        Err(not_here())
    }

    fn put(&self, _: &Url, _: Bytes, _: bool) -> DeltaResult<()> {
        Err(not_here())
    }

    fn head(&self, _: &Url) -> DeltaResult<FileMeta> {
        Err(not_here())
    }

    fn delete(&self, _: &Url) -> DeltaResult<()> {
        Err(not_here())
    }
}

fn not_here() -> KernelError {
    KernelError::generic("only a fetched deletion vector can be read here")
}

#[cfg(test)]
mod tests;
