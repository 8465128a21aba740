//! What a commit reports about its winners and attempts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::Attributes;
use tracing::{Event, Id, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::support::Table;

type Fields = BTreeMap<String, String>;

/// Names and fields of events and spans, in order.
#[derive(Debug, Default, Clone)]
struct Captured {
    events: Arc<Mutex<Vec<(String, Fields)>>>,
    spans: Arc<Mutex<Vec<(String, Fields)>>>,
}

struct Reader(Fields);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Captured {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Reader(Fields::new());
        event.record(&mut fields);
        let name = event.metadata().name().to_owned();
        self.events.lock().expect("lock").push((name, fields.0));
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut fields = Reader(Fields::new());
        attributes.record(&mut fields);
        let name = attributes.metadata().name().to_owned();
        self.spans.lock().expect("lock").push((name, fields.0));
    }
}

const FILES_SKIPPED: &str = "delta.conflictDetection.dataSkipping.filesSkipped";

impl Captured {
    /// Candidates and skipped files of each conflict check since the last call.
    fn skipped(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.events.lock().expect("lock"))
            .into_iter()
            .filter(|(name, _)| name == FILES_SKIPPED)
            .map(|(_, fields)| (fields["candidates"].clone(), fields["skipped"].clone()))
            .collect()
    }

    /// The fields `field` of the spans called `name` since the last call.
    fn spans(&self, name: &str, field: &str) -> Vec<String> {
        let mut spans = self.spans.lock().expect("lock");
        let found = spans
            .iter()
            .filter(|(of, _)| of == name)
            .map(|(_, fields)| fields[field].clone())
            .collect();
        spans.retain(|(of, _)| of != name);
        found
    }
}

#[tokio::test]
async fn candidates_and_skipped_files_of_a_conflict_check_are_reported() {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::registry().with(captured.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let table = Table::numbers(2, 10, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
    assert!(captured.skipped().is_empty(), "no winners, no report");
    captured.spans("attempt", "attempt");
    captured.spans("winners", "after");

    // Two winners add three files, of which the loser's condition skips two.
    let loser = table.plan("UPDATE t SET x = -1 WHERE id < 5").await;
    let skipping = table.plan("DELETE FROM t WHERE id BETWEEN 3 AND 4").await;
    table.run("INSERT INTO t VALUES (100, 0)").await;
    table.run("INSERT INTO t VALUES (4, 0)").await;
    table.run("INSERT INTO t VALUES (200, 0)").await;
    captured.skipped();
    captured.spans("attempt", "attempt");
    captured.spans("winners", "after");
    loser.conflict().await;
    assert_eq!(captured.skipped(), [("3".to_owned(), "2".to_owned())]);
    assert_eq!(captured.spans("attempt", "attempt"), ["1"]);
    assert_eq!(captured.spans("winners", "after"), ["2"]);

    // With skipping off, nothing is skipped.
    table.run("SET delta.conflict_data_skipping = false").await;
    skipping.conflict().await;
    // The statement was planned before: the option counts when it runs.
    let reports = captured.skipped();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].0, "3");
}

#[tokio::test]
async fn a_disjoint_winner_is_reported_as_skipped() {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::registry().with(captured.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    for (skipping, skipped) in [(true, "1"), (false, "0")] {
        let table = Table::numbers(2, 10, "OPTIONS ('delta.isolationLevel' 'Serializable')").await;
        table
            .run(&format!("SET delta.conflict_data_skipping = {skipping}"))
            .await;
        let second = table.plan("UPDATE t SET x = -1 WHERE id < 5").await;
        table.run("INSERT INTO t VALUES (100, 0)").await;
        captured.skipped();
        let committed = second.run().await.is_ok();
        assert_eq!(committed, skipping);
        assert_eq!(captured.skipped(), [("1".to_owned(), skipped.to_owned())]);
    }
}
