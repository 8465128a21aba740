//! Conditions as they are before DataFusion's simplifier takes NOT and lists apart.

use super::*;

#[test]
fn not_is_pushed_down_to_the_leaves() {
    let schema = table(
        &[
            ("a", DataType::Int64),
            ("b", DataType::Int64),
            ("s", DataType::Utf8),
        ],
        &[],
    );
    let add = file(
        r#"{"numRecords":4,"minValues":{"a":10,"b":30,"s":"m"},
            "maxValues":{"a":20,"b":40,"s":"p"},"nullCount":{"a":0,"b":0,"s":1}}"#,
    );
    let (a, b, s) = (|| col("a"), || col("b"), || col("s"));
    let all = || a().gt_eq(lit(10_i64));
    let none = || a().lt(lit(10_i64));
    let some = || b().lt(lit(35_i64));
    let long: Vec<Expr> = (0..50_i64).map(lit).collect();
    for (filter, expected) in [
        (!all(), true),
        (!none(), false),
        (!(all().and(some())), false),
        (!(all().and(b().lt(lit(50_i64)))), true),
        (!(none().or(some())), false),
        (!(all().or(some())), true),
        (!!none(), true),
        (!!all(), false),
        (!(a().between(lit(10_i64), lit(20_i64))), true),
        (!(a().between(lit(11_i64), lit(20_i64))), false),
        (!(a().not_between(lit(10_i64), lit(20_i64))), false),
        (!(a().not_between(lit(1_i64), lit(9_i64))), true),
        (!(a().in_list(long.clone(), true)), false),
        (!(a().in_list(vec![lit(1_i64), lit(2_i64)], true)), true),
        (!(a().in_list(long.clone(), false)), false),
        (!(s().is_null()), false),
        (!(a().is_not_null()), true),
        (!(s().not_like(lit("x%"))), true),
        (!(s().like(lit("x%"))), false),
        (none().is_true(), true),
        (!(none().is_true()), false),
        (!(none().is_not_true()), true),
        (all().is_false(), true),
        (!(all().is_false()), false),
        (!(all().is_not_false()), true),
        (!(all().is_unknown()), false),
        (!(none().is_true().and(all())), false),
    ] {
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &schema);
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert_eq!(decision.is_skip(), expected, "{filter}: {decision:?}");
    }
}

#[test]
fn a_list_with_null_is_never_left() {
    let add = file(r#"{"minValues":{"id":10},"maxValues":{"id":20}}"#);
    let null = lit(ScalarValue::Int64(None));
    for (values, negated, expected) in [
        (vec![lit(1_i64), null.clone()], true, true),
        (vec![lit(1_i64)], true, false),
        (vec![lit(1_i64), null.clone()], false, true),
        (vec![lit(15_i64), null.clone()], false, false),
        (vec![null.clone()], false, true),
        (vec![null], true, true),
    ] {
        let filter = col("id").in_list(values, negated);
        let predicate = ReadPredicate::new(std::slice::from_ref(&filter), &ids());
        let decision = prune(&predicate, &[unknown_writer(&add)], Visible::Statistics).remove(0);
        assert_eq!(decision.is_skip(), expected, "{filter}: {decision:?}");
    }
}
