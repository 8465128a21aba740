//! A session as `sqllogictest` sees it, and the tables that the sessions of a file know by name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, UInt64Type};
use async_trait::async_trait;
use datafusion::common::TableReference;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as SqlStatement};
use delta_disjoint::config::DeltaOptions;
use delta_disjoint::read::provider::DisjointTableProvider;
use delta_disjoint::read::table::TableHandle;
use delta_disjoint::{session, sql};
use sqllogictest::{AsyncDB, DBOutput};

use super::values::{Letter, letter, rows};
use crate::second_opinion::SecondOpinion;

/// Locations of the tables that a session of the file has registered, by name.
#[derive(Clone, Default)]
pub struct Tables(Arc<Mutex<HashMap<TableReference, String>>>);

pub struct Session {
    ctx: SessionContext,
    tables: Tables,
    /// Locations of the tables that this session opened because others know them.
    followed: HashMap<TableReference, String>,
    /// Whether a change is to answer with a row that holds its count.
    rows_wanted: Arc<AtomicBool>,
    /// Of the open transaction.
    opinion: Option<SecondOpinion>,
}

impl Session {
    pub fn new(tables: Tables, rows_wanted: Arc<AtomicBool>) -> Self {
        Self {
            ctx: session(),
            tables,
            followed: HashMap::new(),
            rows_wanted,
            opinion: None,
        }
    }

    /// Runs `text`, and holds what becomes of a `COMMIT` against what `explain` says before it.
    async fn run_with_opinion(&mut self, text: &str) -> Result<DBOutput<Letter>> {
        let word = text.split_whitespace().next().unwrap_or_default();
        let word = word.trim_end_matches(';').to_uppercase();
        let answer = match (word.as_str(), self.opinion.take()) {
            ("COMMIT" | "END", Some(opinion)) => {
                let state = self.ctx.state();
                let options = DeltaOptions::from_config(state.config_options());
                opinion.ask(options.conflict_data_skipping, None).await
            }
            ("ROLLBACK", _) => None,
            (_, opinion) => {
                self.opinion = opinion;
                None
            }
        };
        let outcome = self.run_statement(text).await;
        if matches!(word.as_str(), "BEGIN" | "START") && outcome.is_ok() {
            self.opinion = Some(SecondOpinion::default());
        }
        if let Some(answer) = answer {
            answer.compare(&outcome).await;
        }
        outcome
    }

    async fn run_statement(&mut self, text: &str) -> Result<DBOutput<Letter>> {
        let state = self.ctx.state();
        let dialect = state.config().options().sql_parser.dialect;
        let statement = state.sql_to_statement(text, &dialect).ok();
        let frame = sql(&self.ctx, text).await?;
        if let Some(statement) = &statement {
            self.tell(statement).await?;
        }
        let changes = changes_rows(&frame);
        let letters: Vec<Letter> = frame
            .schema()
            .fields()
            .iter()
            .map(|field| letter(field.data_type()))
            .collect();
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let outcome = collect(Arc::clone(&plan), context).await;
        if let Some(opinion) = &mut self.opinion {
            opinion.note(&plan);
        }
        let batches = outcome?;
        if letters.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        if changes && !self.rows_wanted.load(Ordering::Relaxed) {
            let count = batches
                .iter()
                .filter(|batch| batch.num_rows() > 0)
                .map(|batch| batch.column(0).as_primitive::<UInt64Type>().value(0))
                .sum();
            return Ok(DBOutput::StatementComplete(count));
        }
        Ok(DBOutput::Rows {
            types: letters,
            rows: rows(&batches)?,
        })
    }

    /// Opens the tables in `statement` that only other sessions have registered, and drops those that
    /// they have dropped.
    async fn follow(&mut self, statement: &Statement) -> Result<()> {
        if let Statement::CreateExternalTable(create) = statement {
            // The session's own table takes the place of the one that it only followed.
            let name = object_name_to_table_reference(create.name.clone(), true)?;
            if self.followed.remove(&name).is_some() {
                self.ctx.deregister_table(name)?;
            }
            return Ok(());
        }
        for name in self.ctx.state().resolve_table_references(statement)? {
            let location = self.tables.location(&name);
            let is_own =
                !self.followed.contains_key(&name) && self.ctx.table_exist(name.clone())?;
            if is_own || self.followed.get(&name) == location.as_ref() {
                continue;
            }
            self.ctx.deregister_table(name.clone())?;
            self.followed.remove(&name);
            if let Some(location) = location {
                let handle = TableHandle::at(&location, HashMap::new(), false)?;
                let provider = DisjointTableProvider::try_new(Arc::new(handle)).await?;
                self.ctx.register_table(name.clone(), Arc::new(provider))?;
                self.followed.insert(name, location);
            }
        }
        Ok(())
    }

    /// Lets the other sessions know of a table that is new or gone.
    async fn tell(&self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::CreateExternalTable(create) => {
                let name = object_name_to_table_reference(create.name.clone(), true)?;
                let provider = self.ctx.table_provider(name.clone()).await?;
                if let Some(delta) = provider.downcast_ref::<DisjointTableProvider>() {
                    self.tables.add(name, delta.handle().location());
                }
            }
            Statement::Statement(statement) => {
                if let SqlStatement::Drop {
                    object_type: ObjectType::Table,
                    names,
                    ..
                } = statement.as_ref()
                {
                    for name in names {
                        let name = object_name_to_table_reference(name.clone(), true)?;
                        self.tables.remove(&name);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[async_trait]
impl AsyncDB for Session {
    type Error = DataFusionError;
    type ColumnType = Letter;

    async fn run(&mut self, text: &str) -> Result<DBOutput<Letter>> {
        // What does not parse is left to `sql` to complain about.
        let state = self.ctx.state();
        let dialect = state.config().options().sql_parser.dialect;
        let statement = state.sql_to_statement(text, &dialect).ok();
        if let Some(statement) = &statement {
            self.follow(statement).await?;
        }
        self.run_with_opinion(text).await
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "Datafusion"
    }
}

impl Tables {
    fn location(&self, name: &TableReference) -> Option<String> {
        self.0.lock().expect("tables").get(name).cloned()
    }

    fn add(&self, name: TableReference, location: &str) {
        self.0
            .lock()
            .expect("tables")
            .insert(name, location.to_owned());
    }

    fn remove(&self, name: &TableReference) {
        self.0.lock().expect("tables").remove(name);
    }
}

/// Whether the result is one count of changed rows, and no query's column of that name.
fn changes_rows(frame: &DataFrame) -> bool {
    let counts = matches!(
        frame.logical_plan(),
        LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Extension(_)
    );
    let fields = frame.schema().fields();
    counts && fields.len() == 1 && fields[0].data_type() == &DataType::UInt64
}
