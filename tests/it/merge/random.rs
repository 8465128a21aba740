//! Random MERGEs: what is left in the table is what a plain loop over all pairs of rows computes,
//! and, where deltalake defines the result too, what its MergeBuilder leaves.

use std::fmt::Write;

use datafusion::prelude::SessionContext;
use delta_disjoint::ErrorKind;

use super::model::{Case, Outcome, Rng};
use crate::support::{Table, count, kind_of, try_run};

const CASES: u64 = 150;

const DELTALAKE_CASES: u64 = 40;

#[tokio::test]
async fn merge_agrees_with_a_loop_over_all_pairs_of_rows() {
    let mut refused = 0;
    let mut changed = 0;
    // Tables are copied rather than made: a few rows in a few files, the same for a run of cases.
    let mut files = Vec::new();
    let mut template = None;
    for seed in 0..CASES {
        let mut rng = Rng::new(seed);
        if seed % 25 == 0 {
            files = Case::random_files(&mut rng);
            template = Some(create(&files).await);
        }
        let case = Case::random(&mut rng, files.clone());
        let table = template.as_ref().expect("made").copy().await;
        let statement = case.sql();
        let before = table.log();
        match (case.evaluate(), try_run(&table.ctx, &statement).await) {
            (Outcome::Rows(rows, expected), Ok(batches)) => {
                assert_eq!(
                    table.rows("SELECT id, x, s FROM t ORDER BY 1, 2, 3").await,
                    rows,
                    "case {seed}: {statement}\nbefore: {files:?}"
                );
                assert_eq!(count(&batches), expected, "case {seed}: {statement}");
                changed += u64::from(expected > 0);
            }
            (Outcome::ChangedTwice, Err(error)) => {
                assert_eq!(
                    kind_of(&error),
                    Some(ErrorKind::Invalid),
                    "case {seed}: {statement}\n{error}"
                );
                assert!(error.to_string().contains("more than one row"), "{error}");
                assert_eq!(table.log(), before, "case {seed}");
                refused += 1;
            }
            (expected, result) => {
                panic!("case {seed}: {statement}\nexpected {expected:?}, got {result:?}")
            }
        }
    }
    println!("{changed} of {CASES} changed rows, {refused} were refused");
    assert!(
        changed > CASES / 3 && refused > CASES / 40,
        "{changed} {refused}"
    );
}

/// Where deltalake's builder gives an answer it is the same.
#[tokio::test]
async fn merge_agrees_with_deltalake() {
    let ctx = SessionContext::new();
    let mut rng = Rng::new(1);
    let files = Case::random_files(&mut rng);
    let template = create(&files).await;
    let mut compared = 0;
    for seed in 1000..1000 + DELTALAKE_CASES {
        let case = Case::random(&mut Rng::new(seed), files.clone());
        let Outcome::Rows(expected, _) = case.evaluate() else {
            continue;
        };
        let table = template.copy().await;
        let source = format!("SELECT * FROM {} AS v", case.source_sql());
        let source = ctx.sql(&source).await.expect("source");
        let builder = case.builder(table.deltalake().await, source);
        if builder.expect("builder").await.is_err() {
            // What its planner does not know, such as conditions it cannot turn into text.
            continue;
        }
        compared += 1;
        assert_eq!(
            table.rows("SELECT id, x, s FROM t ORDER BY 1, 2, 3").await,
            expected,
            "case {seed}: {}\nbefore: {files:?}",
            case.sql()
        );
    }
    println!("{compared} of {DELTALAKE_CASES} compared");
    assert!(compared > DELTALAKE_CASES / 2, "{compared}");
}

async fn create(files: &[Vec<super::model::Row>]) -> Table {
    let inserts: Vec<String> = files
        .iter()
        .map(|rows| {
            let mut values = String::from("VALUES ");
            for row in rows {
                let comma = if values.ends_with(')') { ", " } else { "" };
                write!(values, "{comma}{}", row.literal()).expect("text");
            }
            values
        })
        .collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    Table::create("id BIGINT, x BIGINT, s VARCHAR", "", &inserts).await
}
