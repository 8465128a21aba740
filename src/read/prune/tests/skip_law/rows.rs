//! Random tables: columns of all types, rows in files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::common::ScalarValue;
use rand::Rng;
use rand::rngs::StdRng;

use super::values::{list_type, map_type, null, pool, random_type, random_value};
use crate::read::statistics::StatisticsSchema;

/// A column, or a field of one, that has values.
#[derive(Debug, Clone)]
pub(super) struct LeafColumn {
    /// Names, outermost first.
    pub(super) path: Vec<String>,
    pub(super) data_type: DataType,
    pub(super) partition: bool,
}

/// A table's columns.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) leaves: Vec<LeafColumn>,
    pub(super) statistics: StatisticsSchema,
}

impl Table {
    /// Two to four data columns, structs among them, and up to two partition columns.
    pub(super) fn random(random: &mut StdRng) -> Self {
        let mut fields = Vec::new();
        for position in 0..random.random_range(2..=4) {
            let data_type = match random.random_range(0..10) {
                0 | 1 => {
                    let inner = Field::new("a", random_type(random), true);
                    let other = if random.random_bool(0.3) {
                        let leaf = Field::new("C.c", random_type(random), true);
                        DataType::Struct(Fields::from(vec![leaf]))
                    } else {
                        random_type(random)
                    };
                    DataType::Struct(Fields::from(vec![inner, Field::new("b", other, true)]))
                }
                2 => list_type(),
                3 => map_type(),
                _ => random_type(random),
            };
            let name = ["x", "Y", "z.z", "w"][position];
            fields.push(Field::new(name, data_type, true));
        }
        let partitions: Vec<String> = ["p", "Q q"]
            .into_iter()
            .take(random.random_range(0..=2))
            .map(str::to_owned)
            .collect();
        for name in &partitions {
            fields.push(Field::new(name, random_type(random), true));
        }
        let mut leaves = Vec::new();
        for field in &fields {
            let partition = partitions.contains(field.name());
            collect(field, &[], partition, &mut leaves);
        }
        let statistics = StatisticsSchema {
            schema: Arc::new(Schema::new(fields)),
            partition_columns: partitions,
            string_prefix_length: 32,
        };
        Self { leaves, statistics }
    }

    /// One batch of the live rows of all files.
    pub(super) fn batch(&self, files: &[Rows]) -> RecordBatch {
        let rows: Vec<Vec<ScalarValue>> = files.iter().flat_map(Rows::live).collect();
        let mut leaf = 0;
        let schema = &self.statistics.schema;
        let columns = schema
            .fields()
            .iter()
            .map(|field| array(field, &rows, &mut leaf))
            .collect();
        RecordBatch::try_new(Arc::clone(schema), columns).expect("batch")
    }
}

fn collect(field: &Field, above: &[String], partition: bool, leaves: &mut Vec<LeafColumn>) {
    let mut path = above.to_vec();
    path.push(field.name().clone());
    match field.data_type() {
        DataType::Struct(fields) => {
            for inner in fields {
                collect(inner, &path, partition, leaves);
            }
        }
        data_type => leaves.push(LeafColumn {
            path,
            data_type: data_type.clone(),
            partition,
        }),
    }
}

/// The array of `field`; every other struct with nothing but NULL inside is NULL itself.
fn array(field: &Field, rows: &[Vec<ScalarValue>], leaf: &mut usize) -> ArrayRef {
    match field.data_type() {
        DataType::Struct(fields) => {
            let children: Vec<ArrayRef> = fields
                .iter()
                .map(|inner| array(inner, rows, leaf))
                .collect();
            let nulls: NullBuffer = (0..rows.len())
                .map(|row| row % 2 == 0 || children.iter().any(|child| child.is_valid(row)))
                .collect();
            Arc::new(StructArray::new(fields.clone(), children, Some(nulls)))
        }
        data_type => {
            let position = *leaf;
            *leaf += 1;
            let values = rows.iter().map(|row| row[position].clone());
            if rows.is_empty() {
                return arrow::array::new_empty_array(data_type);
            }
            ScalarValue::iter_to_array(values).expect("array")
        }
    }
}

/// The rows of one file.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    /// Values by row and leaf.
    pub(super) all: Vec<Vec<ScalarValue>>,
    /// How many of the last rows a deletion vector hides; none without one.
    pub(super) deleted: Option<usize>,
    /// Text of the partition columns.
    pub(super) partition_values: HashMap<String, Option<String>>,
}

impl Rows {
    /// A few rows from a narrow part of the values of each column.
    pub(super) fn random(table: &Table, random: &mut StdRng) -> Self {
        let deleted = random
            .random_bool(0.2)
            .then(|| random.random_range(0..3_usize));
        let count = random.random_range(0..6) + deleted.unwrap_or(0);
        let mut partition_values = HashMap::new();
        let columns: Vec<Vec<ScalarValue>> = table
            .leaves
            .iter()
            .map(|leaf| {
                if leaf.partition {
                    let (value, text) = super::partitions::random(&leaf.data_type, random);
                    if let Some(text) = text {
                        partition_values.insert(leaf.path[0].clone(), text);
                    }
                    return vec![value; count];
                }
                let pool = pool(&leaf.data_type);
                let from = random.random_range(0..pool.len());
                let width = [1, 1, 2, 3, 5, pool.len()][random.random_range(0..6)];
                let part = &pool[from..(from + width).min(pool.len())];
                let nulls = [0.0, 0.0, 0.3, 1.0][random.random_range(0..4)];
                (0..count)
                    .map(|_| {
                        if random.random_bool(nulls) {
                            null(&leaf.data_type)
                        } else if random.random_bool(0.03) {
                            random_value(&leaf.data_type, random)
                        } else {
                            part[random.random_range(0..part.len())].clone()
                        }
                    })
                    .collect()
            })
            .collect();
        let all = (0..count)
            .map(|row| columns.iter().map(|column| column[row].clone()).collect())
            .collect();
        Self {
            all,
            deleted,
            partition_values,
        }
    }

    /// The rows that a reader sees.
    pub(super) fn live(&self) -> Vec<Vec<ScalarValue>> {
        let live = self.all.len() - self.deleted.unwrap_or(0);
        self.all[..live].to_vec()
    }
}
