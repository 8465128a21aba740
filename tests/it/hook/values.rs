//! Values that deltalake's conflict check misjudges in statistics and partition values, and those
//! at which it panics.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, RecordBatch, TimestampMicrosecondArray};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::prelude::{col, lit};
use delta_disjoint::hook;
use deltalake::kernel::{Action, Remove};
use deltalake::protocol::DeltaOperation;
use serde_json::json;

use super::sides::{Side, append, both, ids_of, outcome, outcome_or_panic, partitioned};
use crate::support::Table;

/// The winner moves the row with id 1 to a value that the loser's predicate takes; the row with id 2
/// is the loser's in any case.
async fn moved_row(
    column: &str,
    of: &str,
    [first, second]: [&str; 2],
    moved: Expr,
    predicate: Expr,
) -> Vec<(String, Vec<i64>)> {
    let mut outcomes = Vec::new();
    for side in [Side::Without, Side::With] {
        let inserts = [
            format!("VALUES (1, {first})"),
            format!("VALUES (2, {second})"),
        ];
        let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
        let table = Table::create(&format!("id BIGINT, {column} {of}"), "", &inserts).await;
        let (winner, loser) = both(&table, side).await;
        let update = winner
            .update()
            .with_predicate("id = 1")
            .with_update(column, moved.clone());
        update.await.expect("updated");
        let delete = loser.delete().with_predicate(predicate.clone()).await;
        outcomes.push((outcome(delete), ids_of(&table).await));
    }
    outcomes
}

fn missed_and_met() -> Vec<(String, Vec<i64>)> {
    vec![
        ("committed".to_owned(), vec![1]),
        ("ConcurrentAppend".to_owned(), vec![1, 2]),
    ]
}

/// deltalake writes the maximum without its microseconds.
#[tokio::test]
async fn timestamp_above_its_cut_maximum_is_missed_or_met() {
    let at = |micros| {
        lit(ScalarValue::TimestampMicrosecond(
            Some(micros),
            Some("UTC".into()),
        ))
    };
    let outcomes = moved_row(
        "at",
        "TIMESTAMP WITH TIME ZONE",
        [
            "TIMESTAMP '2020-01-01T00:00:00Z'",
            "TIMESTAMP '2024-01-01T00:00:00Z'",
        ],
        at(1_700_000_000_123_456),
        col("at").gt(at(1_700_000_000_123_400)),
    )
    .await;
    assert_eq!(outcomes, missed_and_met());
}

/// deltalake writes both bounds as 123456789012345.69.
#[tokio::test]
async fn decimal_below_its_rounded_minimum_is_missed_or_met() {
    let decimal = |unscaled| lit(ScalarValue::Decimal128(Some(unscaled), 18, 3));
    let outcomes = moved_row(
        "d",
        "DECIMAL(18, 3)",
        ["900000000000000.000", "1.000"],
        decimal(123_456_789_012_345_678),
        col("d").lt(decimal(123_456_789_012_345_685)),
    )
    .await;
    assert_eq!(outcomes, missed_and_met());
}

/// A NaN is greater than any number and not in the bounds of its file, which end at 1.
#[tokio::test]
async fn nan_is_missed_or_met() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 3]),
        (Side::With, "ConcurrentAppend", vec![1, 2, 3]),
    ] {
        let inserts = ["VALUES (1, 1.0), (3, 1.0)", "VALUES (2, 100.0)"];
        let table = Table::create("id BIGINT, x DOUBLE", "", &inserts).await;
        let (winner, loser) = both(&table, side).await;
        let update = winner.update().with_predicate("id = 1");
        update
            .with_update("x", lit(f64::NAN))
            .await
            .expect("updated");
        let delete = loser.delete().with_predicate(col("x").gt(lit(5.0)));
        assert_eq!(outcome(delete.await), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// The empty text stands for NULL.
#[tokio::test]
async fn empty_partition_value_is_missed_or_met() {
    for (side, expected, rows) in [
        (Side::Without, "committed", vec![1, 9]),
        (Side::With, "ConcurrentAppend", vec![1, 2, 9]),
    ] {
        let inserts = ["VALUES (1, 'a')", "VALUES (2, NULL)", "VALUES (9, NULL)"];
        let clauses = "PARTITIONED BY (p)";
        let table = Table::create("id BIGINT, p VARCHAR", clauses, &inserts).await;
        // Another writer's file in the partition ''; it is that of the row 9, which went before.
        let entry = table.log_entry(3);
        let add = entry.iter().find(|action| action["add"].is_object());
        let mut add = add.expect("added")["add"].clone();
        let remove = json!({"remove": {"path": add["path"], "dataChange": true,
                                       "partitionValues": {"p": null}}});
        table.put_entry(&[remove]).await;
        let (_, loser) = both(&table, side).await;
        add["partitionValues"] = json!({"p": ""});
        table.put_entry(&[json!({ "add": add })]).await;
        let delete = loser.delete().with_predicate(col("p").is_null()).await;
        assert_eq!(outcome(delete), expected);
        assert_eq!(ids_of(&table).await, rows);
    }
}

/// deltalake looks for the partition's value under the column's logical name.
#[tokio::test]
async fn partition_predicate_on_mapped_columns_panics_or_is_checked() {
    for (side, row, expected) in [
        (Side::Without, "VALUES (9, 2)", "panic"),
        (Side::With, "VALUES (9, 2)", "committed"),
        (Side::With, "VALUES (9, 1)", "ConcurrentAppend"),
    ] {
        let table = partitioned("OPTIONS ('delta.columnMapping.mode' 'name')").await;
        let (_, loser) = both(&table, side).await;
        // As the statement of another writer that reads.
        let statement = format!("INSERT INTO t {row}");
        table.run(&statement).await;
        let version = table.version().await;
        table.change_log_entry(version, |action| {
            if let Some(info) = action.get_mut("commitInfo") {
                info["isBlindAppend"] = false.into();
            }
        });
        let delete = loser.delete().with_predicate("p = 1");
        let found = outcome_or_panic(delete.into_future()).await;
        assert_eq!(found, expected, "{row}");
        let rows = ids_of(&table).await;
        match expected {
            "committed" => assert_eq!(rows, [3, 4, 9]),
            _ => assert_eq!(rows, [1, 2, 3, 4, 9]),
        }
    }
}

/// deltalake's operations cannot print a list, so that none of them gets as far as its check, at which
/// own commits panic: it needs the type of the bounds of a list, which have none.
#[tokio::test]
async fn comparison_of_a_list_panics_or_counts_as_the_whole_table() {
    use deltalake::kernel::transaction::CommitBuilder;
    let inserts = ["VALUES (1, [1, 2])", "VALUES (2, [3])"];
    let table = Table::create("id BIGINT, l BIGINT[]", "", &inserts).await;
    for side in [Side::Without, Side::With] {
        let (_, loser) = both(&table, side).await;
        let delete = loser.delete().with_predicate("l = make_array(3)").await;
        let why = outcome(delete);
        assert!(why.contains("Unable to convert expression"), "{why}");
    }
    let (winner, loser) = both(&table, Side::Without).await;
    let new = table.run("SELECT 9 AS id, [9] AS l").await;
    append(winner, new[0].clone()).await.expect("appended");
    let operation = DeltaOperation::Delete {
        predicate: Some("l = make_array(3)".to_owned()),
    };
    let remove = Action::Remove(Remove {
        path: table.log().1[1].clone(),
        data_change: true,
        ..Remove::default()
    });
    for hooked in [false, true] {
        let (loser, operation, actions) = (loser.clone(), operation.clone(), vec![remove.clone()]);
        let commit = async move {
            let state = loser.snapshot()?;
            if hooked {
                let builder = hook::CommitBuilder::default().with_actions(actions);
                builder
                    .build(Some(state), loser.log_store(), operation)
                    .await
            } else {
                let builder = CommitBuilder::default().with_actions(actions);
                builder
                    .build(Some(state), loser.log_store(), operation)
                    .await
            }
        };
        let expected = if hooked { "ConcurrentAppend" } else { "panic" };
        assert_eq!(outcome_or_panic(commit).await, expected);
        assert_eq!(ids_of(&table).await, [1, 2, 9]);
    }
}

/// What the cases above rest on: the bounds that deltalake writes.
#[tokio::test]
async fn deltalake_writes_the_bounds_that_the_cases_rest_on() {
    let at = TimestampMicrosecondArray::from(vec![1_700_000_000_123_456]).with_timezone("UTC");
    let d = Decimal128Array::from(vec![123_456_789_012_345_678])
        .with_precision_and_scale(18, 3)
        .expect("decimal");
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("at", Arc::new(at) as ArrayRef, true),
        ("d", Arc::new(d) as ArrayRef, true),
    ])
    .expect("batch");
    let table = Table::create("at TIMESTAMP WITH TIME ZONE, d DECIMAL(18, 3)", "", &[]).await;
    append(table.deltalake().await, batch)
        .await
        .expect("appended");
    let entry = table.log_entry(table.version().await);
    let stats = entry
        .iter()
        .find_map(|action| action["add"]["stats"].as_str())
        .expect("statistics");
    assert!(
        stats.contains(r#""at":"2023-11-14T22:13:20.123Z""#),
        "{stats}"
    );
    assert!(stats.contains(r#""d":123456789012345.69"#), "{stats}");
}
