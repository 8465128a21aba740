//! From statistics to their JSON, whole or damaged. Damage takes information away, makes it wider,
//! or contradicts itself; bounds that are consistent and too narrow could not be told from true
//! ones.

use rand::Rng;
use rand::rngs::StdRng;

use super::rows::Table;
use super::values::pool;
use super::writers::{Said, Statistics, decimal_text};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

/// The statistics of a file as text.
#[derive(Debug, Clone)]
pub(super) struct Text {
    /// None where there are none.
    pub(super) json: Option<String>,
    /// Whether a judge must take them as unknown though something stands there.
    pub(super) broken: bool,
}

/// Writes `statistics` down; half of the time after damage that leaves it well-formed, now and then
/// with damage to the text.
pub(super) fn write(table: &Table, statistics: &mut Statistics, random: &mut StdRng) -> Text {
    if random.random_bool(0.4) {
        for _ in 0..random.random_range(1..4) {
            take_away(statistics, random);
        }
    }
    if random.random_bool(0.1) {
        widen(table, statistics, random);
    }
    if random.random_bool(0.04) {
        return Text {
            json: None,
            broken: true,
        };
    }
    let mut broken = random.random_bool(0.15);
    let mut json = tree(table, statistics);
    let mut text = None;
    if broken {
        match random.random_range(0..5) {
            0 => {
                let whole = json.to_string();
                let mut end = random.random_range(0..whole.len());
                while !whole.is_char_boundary(end) {
                    end -= 1;
                }
                text = Some(whole[..end].to_owned());
            }
            1 => repeat_a_key(&mut json, random),
            2 => break_a_value(&mut json, random),
            3 => broken = contradict(table, statistics, &mut json, random),
            _ => broken = count_too_many(table, statistics, &mut json, random),
        }
    }
    Text {
        json: Some(text.unwrap_or_else(|| json.to_string())),
        broken,
    }
}

fn take_away(statistics: &mut Statistics, random: &mut StdRng) {
    if random.random_bool(0.15) {
        statistics.rows = None;
        return;
    }
    let leaf = random.random_range(0..statistics.leaves.len());
    let said = &mut statistics.leaves[leaf];
    match random.random_range(0..4) {
        0 => (said.min, said.min_text) = (None, None),
        1 => (said.max, said.max_text) = (None, None),
        2 => said.nulls = None,
        _ => *said = Said::default(),
    }
}

/// Moves the bounds of whole numbers outwards.
fn widen(table: &Table, statistics: &mut Statistics, random: &mut StdRng) {
    for (leaf, said) in table.leaves.iter().zip(&mut statistics.leaves) {
        if !matches!(
            leaf.data_type,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64
        ) {
            continue;
        }
        let pool = pool(&leaf.data_type);
        let other = &pool[random.random_range(0..pool.len())];
        if said.min.as_ref().is_some_and(|min| other < min) {
            said.min = Some(other.clone());
            said.min_text = Some(other.to_string());
        }
        if said.max.as_ref().is_some_and(|max| other > max) {
            said.max = Some(other.clone());
            said.max_text = Some(other.to_string());
        }
    }
}

/// A JSON value whose keys may repeat.
#[derive(Debug, Clone)]
enum Json {
    Raw(String),
    Object(Vec<(String, Json)>),
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Raw(text) => f.write_str(text),
            Self::Object(entries) => {
                f.write_str("{")?;
                for (position, (key, value)) in entries.iter().enumerate() {
                    let comma = if position == 0 { "" } else { "," };
                    write!(f, "{comma}{}:{value}", serde_json::json!(key))?;
                }
                f.write_str("}")
            }
        }
    }
}

impl Json {
    fn object() -> Self {
        Self::Object(Vec::new())
    }

    fn put(&mut self, path: &[String], text: String) {
        let (Self::Object(entries), Some((first, rest))) = (self, path.split_first()) else {
            return;
        };
        if rest.is_empty() {
            entries.push((first.clone(), Self::Raw(text)));
            return;
        }
        let position = entries.iter().position(|(key, _)| key == first);
        let position = position.unwrap_or_else(|| {
            entries.push((first.clone(), Self::object()));
            entries.len() - 1
        });
        entries[position].1.put(rest, text);
    }

    /// Replaces the value at `path` by `change` of it, if there is one.
    fn change(&mut self, path: &[&str], change: &mut dyn FnMut(&mut Json)) -> bool {
        let Some((first, rest)) = path.split_first() else {
            change(self);
            return true;
        };
        let Self::Object(entries) = self else {
            return false;
        };
        entries
            .iter_mut()
            .find(|(key, _)| key == first)
            .is_some_and(|(_, value)| value.change(rest, change))
    }
}

fn tree(table: &Table, statistics: &Statistics) -> Json {
    let [mut min, mut max, mut nulls] = [(); 3].map(|()| Json::object());
    for (leaf, said) in table.leaves.iter().zip(&statistics.leaves) {
        for (object, text) in [
            (&mut min, said.min_text.clone()),
            (&mut max, said.max_text.clone()),
            (&mut nulls, said.nulls.map(|count| count.to_string())),
        ] {
            if let Some(text) = text {
                object.put(&leaf.path, text);
            }
        }
    }
    let mut entries = Vec::new();
    if let Some(rows) = statistics.rows {
        entries.push(("numRecords".to_owned(), Json::Raw(rows.to_string())));
    }
    entries.push(("minValues".to_owned(), min));
    entries.push(("maxValues".to_owned(), max));
    entries.push(("nullCount".to_owned(), nulls));
    if let Some(tight) = statistics.tight {
        entries.push(("tightBounds".to_owned(), Json::Raw(tight.to_string())));
    }
    Json::Object(entries)
}

/// Follows random keys downwards.
fn random_object<'j>(json: &'j mut Json, random: &mut StdRng) -> &'j mut Vec<(String, Json)> {
    let Json::Object(entries) = json else {
        unreachable!("an object");
    };
    let inner: Vec<usize> = entries
        .iter()
        .enumerate()
        .filter(|(_, (_, value))| matches!(value, Json::Object(inner) if !inner.is_empty()))
        .map(|(position, _)| position)
        .collect();
    if inner.is_empty() || random.random_bool(0.2) {
        return entries;
    }
    let position = inner[random.random_range(0..inner.len())];
    random_object(&mut entries[position].1, random)
}

fn repeat_a_key(json: &mut Json, random: &mut StdRng) {
    let entries = random_object(json, random);
    if entries.is_empty() {
        return;
    }
    let position = random.random_range(0..entries.len());
    let (key, value) = entries[position].clone();
    // The other value comes first or last.
    let other = match value {
        Json::Raw(_) => Json::Raw(["1", "\"a\"", "null"][random.random_range(0..3)].to_owned()),
        Json::Object(_) => Json::object(),
    };
    let at = if random.random_bool(0.5) {
        0
    } else {
        entries.len()
    };
    entries.insert(at, (key, other));
}

fn break_a_value(json: &mut Json, random: &mut StdRng) {
    let entries = random_object(json, random);
    if entries.is_empty() {
        return;
    }
    let position = random.random_range(0..entries.len());
    if entries[position].0 == "tightBounds" {
        return;
    }
    let wrong = ["[1]", "{}", "null", "true", "[]", "{\"a\":{}}", "-1.5e999"];
    entries[position].1 = Json::Raw(wrong[random.random_range(0..wrong.len())].to_owned());
}

/// Turns the bounds of a whole number round.
fn contradict(
    table: &Table,
    statistics: &Statistics,
    json: &mut Json,
    _random: &mut StdRng,
) -> bool {
    for (leaf, said) in table.leaves.iter().zip(&statistics.leaves) {
        let whole = match &leaf.data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
            DataType::Decimal128(precision, _) => *precision <= 15,
            _ => false,
        };
        let (Some(min), Some(max)) = (&said.min, &said.max) else {
            continue;
        };
        if !whole || min == max {
            continue;
        }
        let text = |value: &ScalarValue| match value {
            ScalarValue::Decimal128(Some(value), _, scale) => decimal_text(*value, *scale),
            other => other.to_string(),
        };
        for (side, value) in [("minValues", text(max)), ("maxValues", text(min))] {
            let mut path = vec![side];
            path.extend(leaf.path.iter().map(String::as_str));
            json.change(&path, &mut |json| *json = Json::Raw(value.clone()));
        }
        return true;
    }
    false
}

/// Counts more NULLs than rows.
fn count_too_many(
    table: &Table,
    statistics: &Statistics,
    json: &mut Json,
    random: &mut StdRng,
) -> bool {
    let Some(rows) = statistics.rows else {
        return false;
    };
    let leaf = &table.leaves[random.random_range(0..table.leaves.len())];
    let mut path = vec!["nullCount"];
    path.extend(leaf.path.iter().map(String::as_str));
    json.change(&path, &mut |json| {
        *json = Json::Raw((rows + 1).to_string());
    })
}
