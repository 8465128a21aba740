//! What the statistics of data files prove, in the one form that scan and conflict check share.

use arrow::datatypes::SchemaRef;

use super::snapshot::TableSnapshot;

/// What must be known of a table to interpret the statistics and partition values of its files.
#[derive(Debug, Clone)]
pub struct StatisticsSchema {
    /// Columns in table order, partition columns included.
    pub schema: SchemaRef,
    /// Partition columns by name.
    pub partition_columns: Vec<String>,
    /// `delta.dataSkippingStringPrefixLength`, in UTF-16 units; 32 when not set.
    pub string_prefix_length: usize,
}

impl StatisticsSchema {
    /// The statistics schema of `snapshot`.
    pub fn of(snapshot: &TableSnapshot) -> Self {
        Self {
            schema: SchemaRef::clone(&snapshot.schema),
            partition_columns: snapshot.metadata.partition_columns.clone(),
            string_prefix_length: snapshot
                .property("delta.dataSkippingStringPrefixLength")
                .and_then(|value| value.parse().ok())
                .unwrap_or(32),
        }
    }
}
