//! Tables, files and SQL conditions for the tests of statistics, predicates and pruning.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionContext;
use deltalake::kernel::{Add, DeletionVectorDescriptor, StorageType};

use super::predicate::ReadPredicate;
use super::prune::{Decision, PruneFile, Visible, explain};
use super::statistics::StatisticsSchema;

/// A table with `columns`, partitioned by `partitions`.
pub(crate) fn table(columns: &[(&str, DataType)], partitions: &[&str]) -> StatisticsSchema {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, data_type)| Field::new(*name, data_type.clone(), true))
        .collect();
    StatisticsSchema {
        schema: Arc::new(Schema::new(fields)),
        partition_columns: partitions.iter().map(|name| (*name).to_owned()).collect(),
        string_prefix_length: 32,
    }
}

/// `timestamp` as Delta has it.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// A file with this statistics JSON.
pub(crate) fn file(stats: &str) -> Add {
    Add {
        path: "part-0.parquet".to_owned(),
        stats: Some(stats.to_owned()),
        ..Add::default()
    }
}

/// A file without statistics and with these partition values.
pub(crate) fn partition(values: &[(&str, Option<&str>)]) -> Add {
    Add {
        path: "part-0.parquet".to_owned(),
        partition_values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
            .collect(),
        ..Add::default()
    }
}

/// `add` with a tag.
pub(crate) fn tagged(mut add: Add, tag: &str, value: &str) -> Add {
    add.tags
        .get_or_insert_default()
        .insert(tag.to_owned(), Some(value.to_owned()));
    add
}

/// `add` with a deletion vector.
pub(crate) fn with_deletions(mut add: Add) -> Add {
    add.deletion_vector = Some(DeletionVectorDescriptor {
        storage_type: StorageType::Inline,
        path_or_inline_dv: String::new(),
        offset: None,
        size_in_bytes: 0,
        cardinality: 1,
    });
    add
}

/// `add` as a file of an unknown writer.
pub(crate) fn unknown_writer(add: &Add) -> PruneFile<'_> {
    PruneFile {
        add,
        exact_writer: false,
    }
}

/// A condition as a scan would see it: coerced and simplified, columns qualified.
pub(crate) fn filter(schema: &StatisticsSchema, sql: &str) -> Expr {
    let df_schema = DFSchema::try_from_qualified_schema("t", &schema.schema).expect("schema");
    let expr = SessionContext::new()
        .parse_sql_expr(sql, &df_schema)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(df_schema.clone()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = simplifier
        .coerce(expr, &df_schema)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    simplifier.simplify(expr).expect("simplified")
}

/// The read predicate of a condition.
pub(crate) fn predicate(schema: &StatisticsSchema, sql: &str) -> ReadPredicate {
    ReadPredicate::new(&[filter(schema, sql)], schema)
}

/// The decision about one file.
pub(crate) fn decide(schema: &StatisticsSchema, sql: &str, add: &Add) -> Decision {
    explain(
        &predicate(schema, sql),
        &unknown_writer(add),
        Visible::Statistics,
    )
}

/// Whether one file is skipped.
pub(crate) fn skips(schema: &StatisticsSchema, sql: &str, add: &Add) -> bool {
    decide(schema, sql, add).is_skip()
}
