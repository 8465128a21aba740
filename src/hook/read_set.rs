//! Read sets from DataFusion expressions, for callers who know what they read.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::ToDFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use deltalake::DeltaTable;

use crate::error::{Error, Result};
use crate::read::read_set::{Read, ReadScope, ReadSet, files_kept, paths_of};
use crate::read::snapshot::TableSnapshot;
use crate::read::table::read_snapshot;
use crate::three_valued::{self, Care};

/// Begins the [`ReadSet`] of what was read of `table` at the version that it has loaded.
///
/// # Errors
///
/// `Invalid` if no version is loaded, `Corrupt` if the version cannot be used.
///
/// ```
/// use datafusion::prelude::{col, lit};
/// use delta_disjoint::hook;
/// # use deltalake::{DeltaTable, kernel::{DataType, PrimitiveType}};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let table = DeltaTable::new_in_memory().create()
/// #     .with_column("id", DataType::Primitive(PrimitiveType::Long), true, None).await?;
/// let reads = hook::reads(&table)?.matching(col("id").lt(lit(50))).build();
/// assert_eq!(reads.reads()[0].scope.to_string(), "id < 50");
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub fn reads(table: &DeltaTable) -> Result<Reads> {
    if table.version().is_none() {
        return Err(Error::invalid(
            "no version of the table is loaded, so that nothing can have been read of it; load it \
             first",
        ));
    }
    Ok(Reads {
        snapshot: read_snapshot(table)?,
        reads: Vec::new(),
    })
}

/// Collects what was read of one version of a table, see [`reads`].
#[derive(Debug, Clone)]
#[must_use = "the reads count once they are built and given to a guard or a commit"]
pub struct Reads {
    snapshot: TableSnapshot,
    reads: Vec<Read>,
}

impl Reads {
    /// Rows for which `condition` may be true. Reads are ORed: call it once for each question that
    /// was asked.
    ///
    /// Columns are named as in the table, without a qualifier. What statistics cannot decide
    /// (functions, casts that lose something, columns that are not there) counts as true.
    pub fn matching(mut self, condition: Expr) -> Self {
        let condition = self.planned(condition);
        self.reads
            .push(Read::of_scan(&self.snapshot, &[condition]).0);
        self
    }

    /// Any row.
    pub fn whole_table(mut self) -> Self {
        self.reads.push(Read::whole_table(&self.snapshot));
        self
    }

    /// No row: what was written comes from elsewhere. Besides another read it says nothing.
    pub fn nothing(mut self) -> Self {
        self.reads.push(Read {
            scope: ReadScope::Nothing,
            version: self.snapshot.version,
            files: Arc::default(),
        });
        self
    }

    /// The read set. If nothing was added to it, it counts as a read of the whole table.
    pub fn build(self) -> ReadSet {
        ReadSet::new(self.reads)
    }

    /// The condition as a scan would see it: literals cast to the columns' types, constants folded.
    fn planned(&self, condition: Expr) -> Expr {
        let Ok(schema) = Arc::clone(&self.snapshot.schema).to_dfschema_ref() else {
            return condition;
        };
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&schema))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let kept = three_valued::condition(condition.clone(), Care::FULL, &schema);
        kept.and_then(|kept| simplifier.coerce(kept.data, &schema))
            .and_then(|coerced| simplifier.simplify(coerced))
            .unwrap_or(condition)
    }
}

/// `read`, as it is judged at `snapshot`: the files it could not rule out there count besides those
/// that it names.
pub(super) fn read_again(read: &Read, snapshot: &TableSnapshot) -> Read {
    let files = match &read.scope {
        ReadScope::Nothing => HashSet::new(),
        ReadScope::Matching(predicate) => paths_of(snapshot, &files_kept(predicate, snapshot)),
        ReadScope::WholeTable => snapshot.files.iter().map(|add| add.path.clone()).collect(),
    };
    Read {
        scope: read.scope.clone(),
        version: snapshot.version,
        files: Arc::new(files.union(&read.files).cloned().collect()),
    }
}
