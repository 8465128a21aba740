//! Whether the log tells the truth about its files: found out from the files alone, since a table
//! that was written with wrong bounds loses rows to every reader that believes them.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::compute::cast;
use delta_disjoint::read::table::TableHandle;
use deltalake::kernel::Add;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// Whether a live file has a value in the top-level column `column` outside of the bounds that the
/// log states.
pub async fn contradicted(folder: &Path, column: &str) -> bool {
    let location = folder.to_str().expect("utf-8");
    let handle = TableHandle::at(location, HashMap::new(), false).expect("handle");
    let snapshot = handle.newest().await.expect("snapshot");
    snapshot
        .files
        .iter()
        .any(|add| contradicts(folder, add, column))
}

fn contradicts(folder: &Path, add: &Add, column: &str) -> bool {
    let Some(stats) = &add.stats else {
        return false;
    };
    let stats: Value = serde_json::from_str(stats).expect("statistics");
    let file = File::open(folder.join(&add.path)).expect("file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.build())
        .expect("reader");
    reader.into_iter().any(|batch| {
        let batch = batch.expect("batch");
        let Some(values) = batch.column_by_name(column) else {
            return false;
        };
        outside(values, &stats["minValues"][column], |order| order.is_lt())
            || outside(values, &stats["maxValues"][column], |order| order.is_gt())
    })
}

/// Whether a value lies on the far side of `bound`. Maxima of timestamps are cut to milliseconds,
/// so that such a column is compared by them.
fn outside(
    values: &ArrayRef,
    bound: &Value,
    is_outside: impl Fn(std::cmp::Ordering) -> bool,
) -> bool {
    use arrow::datatypes::{DataType, TimeUnit};
    let text = match bound {
        Value::Null => return false,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let compared = match values.data_type() {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        other => other.clone(),
    };
    let bound: ArrayRef = std::sync::Arc::new(StringArray::from(vec![text]));
    let (Ok(values), Ok(bound)) = (cast(values, &compared), cast(&bound, &compared)) else {
        return false;
    };
    let compare =
        arrow::array::make_comparator(&values, &bound, arrow::compute::SortOptions::default())
            .expect("values of one type");
    bound.is_valid(0)
        && (0..values.len()).any(|row| values.is_valid(row) && is_outside(compare(row, 0)))
}
