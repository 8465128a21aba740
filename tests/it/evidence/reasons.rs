//! Every reason code is given somewhere, and every verdict has the JSON that is documented.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use datafusion::functions::expr_fn::random;
use datafusion::prelude::{col, lit};
use delta_disjoint::Error;
use delta_disjoint::commit::{
    Actions, AttemptsUsedUp, CheckInput, ConflictKind, IsolationLevel, NetEffect, Verdict,
    WinningCommit, check, reason_of,
};
use delta_disjoint::explain::Question;
use delta_disjoint::read::predicate::ReadPredicate;
use delta_disjoint::read::read_set::{Read, ReadScope, ReadSet};
use delta_disjoint::read::snapshot::TableSnapshot;
use delta_disjoint::read::statistics::StatisticsSchema;
use delta_disjoint::reason::ReasonCode;
use deltalake::kernel::{Add, DomainMetadata, Transaction};
use serde_json::{Value, json};
use valico::json_schema::{SchemaVersion, Scope};

use super::log::{Log, READ, added, codes, reads};
use super::{level_rules, net_effect_rules, statistics_rules};

/// Fails unless the JSON of `verdict` is what the schema says, and what the verdict says.
pub fn check_json(verdict: &Verdict) {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let schema = SCHEMA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/explain.schema.json");
        let text = std::fs::read_to_string(path).expect("schema");
        serde_json::from_str(&text).expect("JSON")
    });
    let json = verdict.to_json();
    let state = validate(schema, &json);
    assert!(state.is_empty(), "{state}\n{json:#}");
    let expected = if verdict.is_conflict() {
        "conflict"
    } else {
        "commit"
    };
    assert_eq!(json["verdict"], expected);
    assert_eq!(json["read_version"], verdict.read_version);
    assert_eq!(json["to_version"], verdict.to_version());
    assert_eq!(
        json["conflicts"].as_array().map(Vec::len),
        Some(verdict.conflicts.len())
    );
    assert_eq!(
        json["evidence"].as_array().map(Vec::len),
        Some(verdict.evidence.len())
    );
    let files = &json["files"];
    assert_eq!(
        files["candidates"],
        files["kept"]
            .as_u64()
            .zip(files["skipped"].as_u64())
            .map(|(a, b)| a + b)
            .expect("counts")
    );
}

fn validate(schema: &Value, json: &Value) -> String {
    let mut scope = Scope::new().set_version(SchemaVersion::Draft7);
    let compiled = scope
        .compile_and_return(schema.clone(), false)
        .expect("a schema");
    let state = compiled.validate(json);
    let errors: Vec<String> = state
        .errors
        .iter()
        .map(|error| format!("{error:?}"))
        .collect();
    errors.join("\n")
}

#[test]
fn the_schema_refuses_what_is_no_verdict() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/explain.schema.json");
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("schema")).expect("JSON");
    let good = Verdict::clean(4, IsolationLevel::Serializable).to_json();
    assert_eq!(validate(&schema, &good), "");
    for (key, value) in [
        ("verdict", json!("perhaps")),
        ("read_version", json!(-1)),
        ("conflicts", json!([{"kind": "ConcurrentAppend"}])),
        ("evidence", json!([{"version": 1}])),
        ("files", json!({"candidates": 1})),
        ("unheard_of", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert_ne!(validate(&schema, &bad), "", "{key}");
    }
}

/// What a question cannot say: our own actions besides files, and predicates that are not pushed down.
struct Ours {
    snapshot: Arc<TableSnapshot>,
    reads: ReadSet,
    actions: Actions,
}

impl Ours {
    async fn new() -> Self {
        let snapshot = Log::serializable(false).handle().newest().await;
        let snapshot = snapshot.expect("snapshot");
        let nothing = Read {
            scope: ReadScope::Nothing,
            version: snapshot.version,
            files: Arc::default(),
        };
        Self {
            snapshot,
            reads: ReadSet::new(vec![nothing]),
            actions: Actions::default(),
        }
    }

    fn verdict(&self, winner: &Value) -> Verdict {
        let root = "memory:///t".parse().expect("a URL");
        let winner = WinningCommit::parse(READ + 1, winner.to_string().as_bytes(), &root);
        let mut net_effect = NetEffect::new(Arc::clone(&self.snapshot));
        net_effect
            .apply(Arc::new(winner.expect("a commit")))
            .expect("contiguous");
        let verdict = check(&CheckInput {
            reads: &self.reads,
            actions: &self.actions,
            net_effect: &net_effect,
            level: IsolationLevel::Serializable,
            data_skipping: true,
        });
        check_json(&verdict);
        verdict
    }
}

async fn of_other_actions() -> Vec<Verdict> {
    let domain = |name: &str, configuration: &str| DomainMetadata {
        domain: name.to_owned(),
        configuration: configuration.to_owned(),
        removed: false,
    };
    let mut verdicts = Vec::new();

    let mut ours = Ours::new().await;
    ours.actions.transactions.push(Transaction::new("app", 7));
    verdicts.push(ours.verdict(&json!({"txn": {"appId": "app", "version": 6}})));
    assert!(
        !ours
            .verdict(&json!({"txn": {"appId": "other", "version": 6}}))
            .is_conflict()
    );

    let mut ours = Ours::new().await;
    ours.actions.domains.push(domain("d", "{}"));
    let theirs = |name: &str, configuration: &str| json!({"domainMetadata": {"domain": name, "configuration": configuration, "removed": false}});
    verdicts.push(ours.verdict(&theirs("d", "{}")));

    let mut ours = Ours::new().await;
    ours.actions.adds.push(Add {
        path: "new".to_owned(),
        data_change: true,
        ..Add::default()
    });
    let by_id = r#"{"clusteringColumns":[["id"]]}"#;
    verdicts.push(ours.verdict(&theirs("delta.clustering", by_id)));

    // DataFusion keeps such a condition to itself; another caller may record it.
    let mut ours = Ours::new().await;
    let schema = StatisticsSchema::of(&ours.snapshot);
    let predicate = ReadPredicate::new(&[col("f").lt(random() * lit(0.5))], &schema);
    ours.reads = ReadSet::new(vec![Read {
        scope: ReadScope::Matching(Arc::new(predicate)),
        version: READ,
        files: Arc::default(),
    }]);
    verdicts.push(ours.verdict(&added("new", json!({}), r#"{"numRecords":1}"#)));

    let kinds: Vec<_> = verdicts
        .iter()
        .map(|verdict| verdict.first_conflict().expect("a conflict").kind)
        .collect();
    assert_eq!(
        kinds,
        [
            ConflictKind::ConcurrentTransaction,
            ConflictKind::ConcurrentDomainMetadata,
            ConflictKind::ConcurrentDomainMetadata,
            ConflictKind::ConcurrentAppend
        ]
    );
    verdicts
}

#[tokio::test]
async fn every_reason_code_is_given() {
    let mut seen = BTreeSet::new();
    let mut log = Log::serializable(false);
    log.commit(&[added("new", json!({}), r#"{"minValues":{"id":1000}}"#)]);
    let not_used = Question {
        data_skipping: false,
        ..reads(&["id < 50"])
    };
    let verdicts = [
        statistics_rules::verdicts().await,
        level_rules::verdicts().await,
        net_effect_rules::verdicts().await,
        of_other_actions().await,
        vec![log.ask(&not_used).await],
    ];
    for verdict in verdicts.iter().flatten() {
        seen.extend(codes(verdict));
    }
    let used_up = Error::from(AttemptsUsedUp {
        attempts: 3,
        verdict: Verdict::clean(4, IsolationLevel::Serializable),
    });
    seen.insert(reason_of(&used_up).expect("a reason").code);
    let all: BTreeSet<ReasonCode> = ReasonCode::ALL.into_iter().collect();
    let missing: Vec<_> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "never given: {missing:?}");
}
