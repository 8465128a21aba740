use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::common::ScalarValue;

use super::KeyValues;
use super::gather::KeyGatherer;

fn gathered(limit: usize, columns: &[ArrayRef]) -> KeyValues {
    let mut gatherer = KeyGatherer::new(limit);
    for column in columns {
        gatherer.add(column).expect("added");
    }
    gatherer.finish()
}

#[test]
fn keys_are_a_set_up_to_the_limit_and_a_range_above_it() {
    let numbers = |values: &[Option<i64>]| -> ArrayRef {
        Arc::new(values.iter().copied().collect::<Int64Array>())
    };
    let columns = [
        numbers(&[Some(5), None, Some(3), Some(5)]),
        numbers(&[None, None]),
        numbers(&[]),
        numbers(&[Some(9), Some(-1)]),
    ];
    let set = |values: &[i64]| {
        KeyValues::Set(
            values
                .iter()
                .map(|value| ScalarValue::from(*value))
                .collect(),
        )
    };
    let range = |least: i64, most: i64| KeyValues::Range(least.into(), most.into());
    for (limit, expected) in [
        (4, set(&[-1, 3, 5, 9])),
        (3, range(-1, 9)),
        (1, range(-1, 9)),
        (0, range(-1, 9)),
    ] {
        assert_eq!(gathered(limit, &columns), expected, "{limit}");
    }
    assert_eq!(gathered(4, &columns[1..3]), set(&[]));
}

#[test]
fn range_of_texts_is_in_the_order_of_bytes() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["b", "é", "Z", "a"]));
    let range = KeyValues::Range(ScalarValue::from("Z"), ScalarValue::from("é"));
    assert_eq!(gathered(2, &[texts]), range);
}
