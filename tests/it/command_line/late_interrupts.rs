//! Ctrl-C at moments that no signal can be sent at: the code that runs a statement, by itself.

#![expect(
    dead_code,
    reason = "the command uses the rest of what is included here"
)]

#[path = "../../../src/cli/failure.rs"]
mod failure;
#[path = "../../../src/cli/output.rs"]
mod output;
#[path = "../../../src/cli/progress.rs"]
mod progress;
#[path = "../../../src/cli/secrets.rs"]
mod secrets;
#[path = "../../../src/cli/statement.rs"]
mod statement;

/// In the place of the signals.
mod interrupts {
    use tokio::sync::mpsc::UnboundedReceiver;

    pub struct Interrupts(pub UnboundedReceiver<()>);

    impl Interrupts {
        pub async fn next(&mut self) {
            if self.0.recv().await.is_none() {
                std::future::pending().await
            }
        }
    }
}

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as DFResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::failure::Failure;
use self::interrupts::Interrupts;
use self::output::Format;
use self::statement::Done;
use super::Folder;
use crate::support;

type Keyboard = Arc<Mutex<Option<UnboundedSender<()>>>>;

/// Presses Ctrl-C once, while the plan of a statement is made. What acts at once has acted then.
#[derive(Debug)]
struct Interrupting {
    planner: Arc<dyn QueryPlanner + Send + Sync>,
    keyboard: Keyboard,
}

#[async_trait]
impl QueryPlanner for Interrupting {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> DFResult<Arc<dyn ExecutionPlan>> {
        let keyboard = self.keyboard.lock().expect("not poisoned").take();
        if let Some(keyboard) = keyboard {
            let _ = keyboard.send(());
            tokio::task::yield_now().await;
        }
        self.planner.create_physical_plan(plan, session).await
    }
}

/// A session with the table `t` of `folder`, whose planner presses Ctrl-C where the keyboard is given.
async fn session_of(folder: &Folder) -> (SessionContext, Keyboard) {
    let keyboard = Keyboard::default();
    let state = delta_disjoint::session().state();
    let planner = Interrupting {
        planner: Arc::clone(state.query_planner()),
        keyboard: Arc::clone(&keyboard),
    };
    let state = SessionStateBuilder::new_from_existing(state)
        .with_query_planner(Arc::new(planner))
        .build();
    let ctx = SessionContext::new_with_state(state);
    support::open(&ctx, "t", &folder.path()).await;
    (ctx, keyboard)
}

fn message(failure: &Failure) -> &str {
    failure.message().unwrap_or_default()
}

#[tokio::test]
async fn what_is_done_is_never_called_unchanged() {
    let new = Folder::new();
    let create = format!(
        "CREATE EXTERNAL TABLE u (x BIGINT) STORED AS DELTA LOCATION '{}'",
        new.path()
    );
    // Statement, whether it acts at once, new versions of t.
    let cases = [
        ("COMMIT", true, 1),
        ("END/* of it */", true, 1),
        ("ROLLBACK", true, 0),
        ("SELECT * FROM t", false, 0),
        ("INSERT INTO t VALUES (4, 'd')", false, 0),
        (create.as_str(), true, 0),
    ];
    for (text, acts_at_once, versions) in cases {
        let folder = Folder::with_table("");
        let before = folder.version();
        let (ctx, keyboard) = session_of(&folder).await;
        if acts_at_once && text != create {
            support::run(&ctx, "BEGIN").await;
            support::run(&ctx, "INSERT INTO t VALUES (3, 'c')").await;
        }
        let (sender, receiver) = unbounded_channel();
        *keyboard.lock().expect("not poisoned") = Some(sender);
        let ended: Result<Done, Failure> =
            statement::run(&ctx, text, Format::Csv, Interrupts(receiver)).await;
        match ended {
            Ok(done) => assert!(acts_at_once && done.is_interrupted, "{text}"),
            Err(failure) => {
                assert!(!acts_at_once, "{text}: {failure:?}");
                assert!(
                    message(&failure).contains("no table was changed"),
                    "{failure:?}"
                );
            }
        }
        assert_eq!(folder.version() - before, versions, "{text}");
    }
    assert_eq!(new.version(), 0);
}

#[tokio::test]
async fn every_spelling_of_the_end_of_a_transaction_is_asked_to_stop() {
    let spellings = [
        "COMMIT",
        "commit work",
        "COMMIT/* day */",
        "COMMIT--x",
        "/* a */ END",
        "END\tTRANSACTION",
    ];
    for text in spellings {
        // Pressed once and twice.
        for (times, expected) in [
            (1, "called off"),
            (2, "a second time; no table was changed"),
        ] {
            let folder = Folder::with_table("");
            let before = folder.version();
            let (ctx, _) = session_of(&folder).await;
            support::run(&ctx, "BEGIN").await;
            support::run(&ctx, "INSERT INTO t VALUES (3, 'c')").await;
            let (sender, receiver) = unbounded_channel();
            for _ in 0..times {
                sender.send(()).expect("sent");
            }
            let failure = statement::run(&ctx, text, Format::Csv, Interrupts(receiver))
                .await
                .expect_err("interrupted");
            assert!(message(&failure).contains(expected), "{text}: {failure:?}");
            assert_eq!(folder.version(), before, "{text}");
        }
    }
}
