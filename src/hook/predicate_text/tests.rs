use arrow::datatypes::{Field, TimeUnit};
use deltalake::delta_datafusion::expr::fmt_expr_to_sql;

use datafusion::common::ScalarValue;
use datafusion::prelude::{col, ident, lit};

use super::*;

fn schema() -> Schema {
    let fields = [
        ("id", DataType::Int64),
        ("small", DataType::Int32),
        ("x", DataType::Float64),
        ("real", DataType::Float32),
        ("name", DataType::Utf8),
        ("flag", DataType::Boolean),
        ("day", DataType::Date32),
        ("price", DataType::Decimal128(10, 2)),
        (
            "at",
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ),
        ("local", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ("raw", DataType::Binary),
    ];
    Schema::new(
        fields
            .into_iter()
            .map(|(name, of)| Field::new(name, of, true))
            .collect::<Vec<_>>(),
    )
}

fn time(micros: i64, zone: Option<&str>) -> Expr {
    lit(ScalarValue::TimestampMicrosecond(
        Some(micros),
        zone.map(Into::into),
    ))
}

fn price(unscaled: i128) -> Expr {
    lit(ScalarValue::Decimal128(Some(unscaled), 10, 2))
}

/// What deltalake prints is read back as what was printed.
#[test]
fn printed_predicates_come_back_as_they_were() {
    let day = |days| lit(ScalarValue::Date32(Some(days)));
    let cases = [
        col("id").lt(lit(50_i64)),
        lit(50_i64).gt_eq(col("id")),
        col("id").eq(lit(-(1_i64 << 53))),
        col("id").not_eq(lit(1_i64 << 53)),
        col("small").gt(lit(-7_i32)),
        col("x").lt(lit(0.1_f64)),
        col("x").gt(lit(-1e300_f64)),
        col("x").eq(lit(5.0_f64)),
        col("name").eq(lit("a b;%\"c OR 1 = 1")),
        col("name").gt(lit("")),
        col("day").lt(day(19_000)),
        col("day").gt(day(-1)),
        col("price").lt(price(-150)),
        col("price").gt_eq(price(7)),
        col("at").gt(time(1_700_000_000_123_456, Some("UTC"))),
        col("local").lt_eq(time(-1, None)),
        col("id").is_null(),
        col("at").is_not_null(),
        col("id").in_list(vec![lit(1_i64), lit(-2_i64)], false),
        col("name").in_list(vec![lit("a"), lit("b")], false),
        col("id").between(lit(1_i64), lit(5_i64)),
        col("id")
            .gt(lit(1_i64))
            .or(col("x").lt(lit(1.5)))
            .and(col("name").eq(lit("z"))),
        col("id")
            .gt(lit(1_i64))
            .or(col("x").lt(lit(1.5)).and(col("name").eq(lit("z")))),
        col("id")
            .is_null()
            .or(col("id").between(lit(1_i64), lit(2_i64)))
            .and(col("name").is_not_null()),
    ];
    for expr in cases {
        let text = fmt_expr_to_sql(&expr).expect("printed");
        let parsed = parse(&text, &schema());
        assert_eq!(parsed.as_ref(), Some(&expr), "{text}");
    }
}

/// A chain as long as is looked at, on the stack of a worker thread.
#[test]
fn long_chains_come_back() {
    let chain = vec!["id=1"; 101].join(" OR ");
    assert!(parse(&chain, &schema()).is_some());
}

/// The printer loses these parentheses, which changes nothing, since AND and OR are associative.
#[test]
fn right_nested_and_or_come_back_with_the_same_meaning() {
    let (a, b, c) = (
        col("id").gt(lit(1_i64)),
        col("id").lt(lit(9_i64)),
        col("x").is_null(),
    );
    let nested = a.clone().and(b.clone().and(c.clone()));
    let text = fmt_expr_to_sql(&nested).expect("printed");
    assert_eq!(parse(&text, &schema()), Some(a.and(b).and(c)), "{text}");
}

#[test]
fn what_may_have_meant_something_else_is_not_taken() {
    let five = || col("id").gt(lit(5_i64));
    let printed = [
        // Two meanings in one text.
        Expr::IsNull(Box::new(five().and(col("flag")))),
        five().and(col("flag").is_null()),
        Expr::InList(InList::new(
            Box::new(col("id").is_null().and(col("flag"))),
            vec![lit(true), lit(false)],
            false,
        )),
        Expr::IsNotTrue(Box::new(five().and(col("x").gt(lit(5.0))))),
        Expr::IsTrue(Box::new(five())),
        Expr::IsNotFalse(Box::new(five().or(five()))),
        Expr::IsNull(Box::new(five())),
        Expr::IsNull(Box::new(col("id") + col("small"))),
        Expr::Not(Box::new(five())),
        Expr::Not(Box::new(five())).and(five()),
        col("id").in_list(vec![lit(1_i64)], true),
        col("id").not_between(lit(1_i64), lit(5_i64)),
        // Other shapes.
        lit(true),
        col("flag"),
        col("flag").eq(lit(true)),
        col("id").gt(col("small")),
        (col("id") + lit(1_i64)).gt(lit(5_i64)),
        col("name").like(lit("a%")),
        // Literals of another type than the column, or without a certain text.
        col("id").lt(lit(1.5_f64)),
        col("id").eq(lit((1_i64 << 53) + 1)),
        col("id").gt(lit(i64::MIN)),
        col("real").lt(lit(0.7_f64)),
        col("real").lt(lit(0.5_f32)),
        col("id").eq(lit("5")),
        col("name").eq(lit(5_i64)),
        col("name").eq(lit("it's")),
        col("name").eq(lit("it''s")),
        col("name").eq(lit("a\\' OR id = 1 OR name = 'b")),
        col("x").gt(lit(f64::NAN)),
        col("x").lt(lit(f64::INFINITY)),
        col("price").lt(lit(ScalarValue::Decimal128(Some(15), 10, 1))),
        col("at").gt(time(0, None)),
        col("local").gt(time(0, Some("UTC"))),
        col("day").lt(lit(ScalarValue::Date32(Some(4_000_000)))),
        col("raw").eq(lit(ScalarValue::Binary(Some(vec![1])))),
        col("id").eq(lit(ScalarValue::Int64(None))),
        ident("nowhere").eq(lit(1_i64)),
        ident("ID").eq(lit(1_i64)),
    ];
    for expr in printed {
        let text = fmt_expr_to_sql(&expr).expect("printed");
        assert_eq!(parse(&text, &schema()), None, "{text}");
    }
    let long = vec!["id = 1"; 4_000].join(" OR ");
    let deep = format!("{}id = 1{}", "(".repeat(2_000), ")".repeat(2_000));
    let chain = vec!["id=1"; 102].join(" OR ");
    let texts = [
        "",
        "id",
        "id >",
        "id > 5;",
        "id > 5 garbage",
        "id > 5 -- OR id < 3",
        "t.id > 5",
        "id > 5L",
        "`id` > 5",
        "id IS DISTINCT FROM 5",
        "id > 1 AND EXISTS (SELECT 1)",
        "CASE WHEN id > 5 THEN true END",
        "abs(id) > 5",
        "CAST(id AS INT) > 5",
        "at > '2020-01-01'",
        "day > '2020-01-01'",
        "at > arrow_cast('2020-01-01T00:00:00.000000', 'Timestamp(Nanosecond, None)')",
        "at > arrow_cast('2020-01-01', 'Timestamp(Microsecond, Some(\"UTC\"))')",
        "id > 99999999999999999999",
        "small > 3000000000",
        &long,
        &deep,
        &chain,
    ];
    for text in texts {
        assert_eq!(
            parse(text, &schema()),
            None,
            "{}",
            &text[..text.len().min(99)]
        );
    }
}

/// A column before IN is printed without quotes, and its name may be anything.
#[test]
fn names_that_read_like_sql_are_taken_only_in_quotes() {
    let mut fields: Vec<Field> = vec![Field::new("id", DataType::Int64, true)];
    fields.push(Field::new("id = 1 OR id", DataType::Int64, true));
    fields.push(Field::new("Mixed \"Case\"", DataType::Int64, true));
    let schema = Schema::new(fields);
    for name in ["id = 1 OR id", "Mixed \"Case\""] {
        let compared = ident(name).lt(lit(5_i64));
        let text = fmt_expr_to_sql(&compared).expect("printed");
        assert_eq!(parse(&text, &schema), Some(compared), "{text}");
        let listed = ident(name).in_list(vec![lit(2_i64)], false);
        let text = fmt_expr_to_sql(&listed).expect("printed");
        assert_eq!(parse(&text, &schema), None, "{text}");
    }
}
