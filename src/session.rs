//! Sessions: DataFusion with this crate's rule, planner, table factory and options; and `sql`, the
//! entry point for statements.

pub mod clustering;
pub mod create;
mod factory;
pub mod script;
mod statement;
pub mod table_options;
mod transaction;
pub mod types;

use std::any::Any;
use std::sync::Arc;

use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

pub use self::factory::DeltaTableFactory;
pub use self::statement::sql;
use crate::commit::SessionTransactions;
use crate::config::DeltaOptions;
use crate::plan::planner::DeltaQueryPlanner;
use crate::plan::rule::DeltaDmlRule;

/// A session that is ready for SQL on Delta tables. Its time zone is UTC, without which DataFusion
/// takes `TIMESTAMP WITH TIME ZONE` for `TIMESTAMP`.
///
/// Clones of the context are the same session and share its transaction. A context made from a copy
/// of its state is another one; pass the copy through [`register_on`] to give it transactions of
/// its own. Without that, [`sql`] refuses its statements while the first is in a transaction, and
/// what it runs by `SessionContext::sql` becomes part of that transaction.
///
/// ```
/// # async fn example() -> datafusion::error::Result<()> {
/// let ctx = delta_disjoint::session();
/// let one = delta_disjoint::sql(&ctx, "SELECT 1 AS one").await?.collect().await?;
/// assert_eq!(one[0].num_rows(), 1);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
pub fn session() -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().execution.time_zone = Some("UTC".to_owned());
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config);
    SessionContext::new_with_state(register(builder).build())
}

/// Puts rule, planner, table factory and options of this crate onto `builder`.
///
/// What the builder has already is kept: its rules and factories stay, and its query planner gets
/// every plan that does not change a Delta table. Call it last, since a rule that is added later
/// sees this crate's node instead of DataFusion's. Calling it twice is the same as once.
///
/// Transactions belong to one context and its clones: make each further session through this
/// function or [`register_on`], not by `SessionContext::new_with_state` with a copied state alone.
pub fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let planner = match builder.query_planner().take() {
        // Registered before; a second layer would only look at every log twice.
        Some(planner) if (planner.as_ref() as &dyn Any).is::<DeltaQueryPlanner>() => planner,
        inner => Arc::new(DeltaQueryPlanner::new(inner)),
    };
    let mut config = builder.config().take().unwrap_or_default();
    if config.options().extensions.get::<DeltaOptions>().is_none() {
        config
            .options_mut()
            .extensions
            .insert(DeltaOptions::default());
    }
    // A session of its own, also where the builder comes from a session in a transaction.
    config.set_extension(Arc::new(SessionTransactions::default()));
    let factory = Arc::new(DeltaTableFactory::default());
    builder
        .with_config(config)
        .with_analyzer_rule(Arc::new(DeltaDmlRule::default()))
        .with_query_planner(planner)
        .with_table_factory("DELTA".to_owned(), Arc::clone(&factory) as _)
        .with_table_factory("DELTATABLE".to_owned(), factory)
}

/// The same for a finished `state`.
pub fn register_on(state: SessionState) -> SessionState {
    register(SessionStateBuilder::new_from_existing(state)).build()
}
