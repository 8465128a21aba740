use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::random;
use datafusion::logical_expr::{ScalarUDF, Volatility, col, create_udf, lit, placeholder};
use datafusion::prelude::SessionContext;

use super::*;
use crate::read::test_support::{predicate, table, timestamp};

fn columns() -> StatisticsSchema {
    table(
        &[
            ("a", DataType::Int64),
            ("b", DataType::Int64),
            ("s", DataType::Utf8),
            ("f", DataType::Float64),
            ("flag", DataType::Boolean),
            ("ts", timestamp()),
            ("p", DataType::Int32),
        ],
        &["p"],
    )
}

#[test]
fn text_is_readable_and_unqualified() {
    for (sql, expected) in [
        ("t.a < 50", "a < 50"),
        ("a < 50 AND s = 'x'", "a < 50 AND s = 'x'"),
        ("a < 50 OR b = 1", "(a < 50 OR b = 1)"),
        ("true", "true"),
        ("s = 'a''''b'", "s = 'a''''b'"),
        (r"s = '\'' OR '", r"s = '\'' OR '"),
        (
            "(a IS DISTINCT FROM 1) AND b = 2",
            "(a IS DISTINCT FROM 1) AND b = 2",
        ),
        ("NOT (a = 1 AND b = 2)", "(a <> 1 OR b <> 2)"),
        ("a IN (1, 2, 3, 4)", "a IN (1, 2, 3, 4)"),
        ("(a = 1) IS NOT TRUE", "(a = 1) IS NOT TRUE"),
        ("a - (b - 1) > -a * 2", "a - (b - 1) > -a * 2"),
    ] {
        let predicate = predicate(&columns(), sql);
        assert_eq!(predicate.to_string(), expected, "{sql}");
    }
    assert_eq!(ReadPredicate::new(&[], &columns()).to_string(), "true");
}

#[test]
fn what_nothing_can_decide_becomes_true() {
    for sql in [
        "TRY_CAST(s AS INT) = 1",
        "a < 5 OR random() < 0.5",
        "random() < 0.5",
    ] {
        let predicate = predicate(&columns(), sql);
        assert!(predicate.is_always_true(), "{sql}: {predicate:?}");
    }
}

/// Whether a conjunct is decided by the values of data columns at most, and not by their bounds.
fn needs_values(term: &Term) -> bool {
    match &term.test {
        Test::Unusable(_) | Test::Always => true,
        Test::Never => false,
        Test::Statistics(test) => {
            test.operands.is_empty()
                && test.facts.iter().all(|fact| match fact {
                    Fact::Value(value) => value.why.is_some(),
                    Fact::Set(_) => false,
                })
        }
    }
}

#[test]
fn what_bounds_cannot_decide_needs_values() {
    for sql in [
        "a + 1 = 3",
        "a % 2 = 1",
        "CAST(a AS VARCHAR) > '3'",
        "CAST(a AS INT) + 0 < 10",
        "length(s) > 5",
        "a < b",
        "a = p",
        "s LIKE '%x' ESCAPE '!'",
        "s ILIKE 'x%'",
        "s SIMILAR TO 'x'",
        "s ~ 'x[0-9]$'",
        "CAST(ts AS TIME) = '23:30:00'",
        "flag",
        "NOT flag",
        "CASE WHEN a < 5 THEN true ELSE false END",
        "(a > 5 AND b > 5) IS NOT TRUE",
        "(a > 5) = (b > 5)",
        "f <> 0.0",
        "f > 'NaN'::double",
    ] {
        let predicate = predicate(&columns(), sql);
        assert!(
            predicate.terms().iter().all(needs_values),
            "{sql}: {predicate:?}"
        );
    }
}

#[test]
fn what_statistics_can_decide_is_kept() {
    for sql in [
        "a < 5",
        "5 > a",
        "a <> 5",
        "a IS DISTINCT FROM 5",
        "a IS NULL",
        "a IS NOT NULL",
        "a BETWEEN 1 AND 5",
        "a NOT BETWEEN 1 AND 5",
        "a IN (1, 2, 3, 4, 5, 6)",
        "a NOT IN (1, 2, 3, 4, 5, 6)",
        "s LIKE 'x%'",
        "s NOT LIKE 'x%'",
        "f = 1.5",
        "f > 1.5",
        "flag IS NULL",
        "a < 5 AND length(s) > 5",
        "(a < 5) IS TRUE",
        "NOT (a >= 10 AND b <= 20)",
        "p % 2 = 1 OR a < 5",
        "CAST(a AS DOUBLE) > 1.5",
        "false",
    ] {
        let predicate = predicate(&columns(), sql);
        assert!(!predicate.is_always_true(), "{sql}: {predicate:?}");
    }
}

fn user_function(volatility: Volatility) -> ScalarUDF {
    create_udf(
        "mine",
        vec![DataType::Int32],
        DataType::Boolean,
        volatility,
        Arc::new(|_| Ok(datafusion::logical_expr::ColumnarValue::from(false_scalar()))),
    )
}

fn false_scalar() -> datafusion::common::ScalarValue {
    datafusion::common::ScalarValue::from(false)
}

#[test]
fn functions_of_partition_columns_must_be_immutable() {
    for (volatility, expected) in [
        (Volatility::Immutable, false),
        (Volatility::Stable, true),
        (Volatility::Volatile, true),
    ] {
        let filter = user_function(volatility).call(vec![col("p")]);
        let predicate = ReadPredicate::new(&[filter], &columns());
        assert_eq!(predicate.is_always_true(), expected, "{volatility:?}");
    }
}

#[test]
fn leaves_that_no_planner_hands_over_become_true() {
    let aggregate = datafusion::functions_aggregate::expr_fn::count(col("a")).gt(lit(1_i64));
    for filter in [
        random().lt(lit(0.5)),
        random().lt(lit(0.5)).is_true(),
        col("nowhere").lt(lit(1_i64)),
        placeholder("$1"),
        col("a").lt(placeholder("$1")),
        aggregate,
        lit(1_i64),
    ] {
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &columns());
        assert!(predicate.is_always_true(), "{filter}");
        // The rest of the conjunction stays.
        let filter = filter.and(col("a").lt(lit(5_i64)));
        let predicate = ReadPredicate::new(&[filter], &columns());
        assert!(!predicate.is_always_true(), "{predicate}");
    }
}

#[tokio::test]
async fn subqueries_become_true() {
    let plan = SessionContext::new()
        .sql("SELECT 1 AS y")
        .await
        .expect("plan")
        .into_unoptimized_plan();
    let plan = Arc::new(plan);
    for filter in [
        datafusion::logical_expr::in_subquery(col("a"), Arc::clone(&plan)),
        datafusion::logical_expr::exists(Arc::clone(&plan)),
        col("a").lt(datafusion::logical_expr::scalar_subquery(Arc::clone(&plan))),
        col("p").lt(datafusion::logical_expr::scalar_subquery(plan)),
    ] {
        let predicate = ReadPredicate::new(&[filter], &columns());
        assert!(predicate.is_always_true(), "{predicate}");
    }
}

#[test]
fn the_ends_of_a_float_range_are_one_term() {
    let terms = |sql| {
        predicate(&columns(), sql)
            .terms()
            .iter()
            .map(|term| term.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        terms("f >= 1 AND a = 2 AND f < 5"),
        ["a = 2", "f >= 1.0 AND f < 5.0"]
    );
    assert_eq!(terms("f >= 1 AND f > 5"), ["f >= 1.0", "f > 5.0"]);
    assert_eq!(terms("a >= 1 AND a < 5"), ["a >= 1", "a < 5"]);
}

#[test]
fn deep_and_wide_conditions_end() {
    let mut deep = col("a").lt(lit(5_i64));
    for level in 0..400 {
        deep = if level % 2 == 0 {
            deep.and(col("b").eq(lit(level)))
        } else {
            deep.or(col("b").eq(lit(level)))
        };
    }
    // The outermost levels still count.
    let predicate = ReadPredicate::new(&[deep], &columns());
    assert!(!predicate.is_always_true());
    assert_eq!(predicate.to_string(), "(a long condition)");

    let wide = (0..1000_i64)
        .map(|value| col("a").eq(lit(value)))
        .reduce(Expr::or)
        .expect("terms");
    let predicate = ReadPredicate::new(&[wide], &columns());
    assert!(!predicate.is_always_true());
    assert_eq!(predicate.to_string(), "(a long condition)");
}

#[test]
fn user_functions_of_data_columns_must_be_immutable_too() {
    for (volatility, expected) in [
        (Volatility::Immutable, false),
        (Volatility::Stable, true),
        (Volatility::Volatile, true),
    ] {
        let filter = user_function(volatility).call(vec![cast_to_int(col("a"))]);
        let predicate = ReadPredicate::new(&[filter], &columns());
        assert_eq!(predicate.is_always_true(), expected, "{volatility:?}");
    }
}

fn cast_to_int(expr: Expr) -> Expr {
    datafusion::logical_expr::cast(expr, DataType::Int32)
}

#[test]
fn literals_that_do_not_fit_need_values() {
    for filter in [col("a").eq(lit(1.5)), col("a").eq(lit("1"))] {
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &columns());
        assert!(predicate.terms().iter().all(needs_values), "{filter}");
    }
}

#[test]
fn it_is_shared_between_threads() {
    fn check<T: Send + Sync + Clone + fmt::Debug>() {}
    check::<ReadPredicate>();
}
