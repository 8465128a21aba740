//! For which columns statistics are collected.
//!
//! Source: table properties `delta.dataSkippingNumIndexedCols` (so many leaf columns in table
//! order, 32 when not set, −1 for all), `delta.dataSkippingStatsColumns` (names; goes first) and
//! `delta.dataSkippingStringPrefixLength`. A value that cannot be read counts as not set. Clustering
//! columns have statistics whatever these say (Delta protocol, "Clustered Table").

use std::collections::{BTreeMap, HashSet};

use arrow::datatypes::{DataType, Fields, SchemaRef};

use crate::error::{Error, Result};
use crate::read::column_mapping::physical_name;
use crate::read::statistics::string_prefix_length;

/// The leaf columns with statistics, and the length at which string bounds are cut.
#[derive(Debug, Clone)]
pub struct StatisticsColumns {
    /// By physical names.
    leaves: HashSet<Vec<String>>,
    string_prefix_length: usize,
}

impl StatisticsColumns {
    /// The choice for a file with these `columns` of the table (no partition columns), by the table's
    /// properties, which speak of columns by the table's names.
    pub fn new(columns: &SchemaRef, properties: &BTreeMap<String, String>) -> Self {
        let mut leaves = Vec::new();
        collect_leaves(columns.fields(), &LeafColumn::default(), &mut leaves);
        if let Some(wanted) = properties
            .get("delta.dataSkippingStatsColumns")
            .and_then(|list| parse_column_list(list))
        {
            leaves.retain(|leaf| wanted.iter().any(|name| starts_with(&leaf.names, name)));
        } else {
            let count = properties
                .get("delta.dataSkippingNumIndexedCols")
                .and_then(|value| value.trim().parse::<i64>().ok())
                .filter(|count| *count >= -1)
                .unwrap_or(DEFAULT_INDEXED_COLUMNS);
            // -1, which is all of them, is no usize.
            leaves.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Self {
            leaves: leaves.into_iter().map(|leaf| leaf.path).collect(),
            string_prefix_length: string_prefix_length(properties),
        }
    }

    /// The choice for files that nobody skips.
    pub(super) fn none() -> Self {
        Self {
            leaves: HashSet::new(),
            string_prefix_length: string_prefix_length(&BTreeMap::new()),
        }
    }

    /// The choice with the clustering columns of the table, paths of names in `file_schema`, added.
    ///
    /// # Errors
    ///
    /// `Corrupt` if one of them is not in the file.
    pub fn with_clustering(
        mut self,
        file_schema: &SchemaRef,
        clustering: &[Vec<String>],
    ) -> Result<Self> {
        if clustering.is_empty() {
            return Ok(self);
        }
        let mut leaves = Vec::new();
        collect_leaves(file_schema.fields(), &LeafColumn::default(), &mut leaves);
        for column in clustering {
            let of_column: Vec<_> = leaves
                .iter()
                .filter(|leaf| leaf.path.starts_with(column))
                .map(|leaf| leaf.path.clone())
                .collect();
            if of_column.is_empty() {
                return Err(Error::corrupt(format!(
                    "the clustering column {} is not among the columns of the data files",
                    column.join(".")
                )));
            }
            self.leaves.extend(of_column);
        }
        Ok(self)
    }

    /// Whether the leaf column at `path` (one physical name a level) has statistics.
    pub fn contains(&self, path: &[String]) -> bool {
        self.leaves.contains(path)
    }

    /// At how many UTF-16 units string bounds are cut.
    pub fn string_prefix_length(&self) -> usize {
        self.string_prefix_length
    }
}

/// Splits a list such as ``a, b.c, `d,e`.f`` into paths; `None` if it is malformed. Inside
/// backticks everything is part of the name, and a doubled backtick stands for one.
pub fn parse_column_list(list: &str) -> Option<Vec<Vec<String>>> {
    let mut columns = Vec::new();
    let mut path = Vec::new();
    let mut characters = list.trim().chars().peekable();
    if characters.peek().is_none() {
        return Some(columns);
    }
    loop {
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        let mut name = String::new();
        if characters.next_if_eq(&'`').is_some() {
            loop {
                match characters.next()? {
                    '`' if characters.next_if_eq(&'`').is_some() => name.push('`'),
                    '`' => break,
                    character => name.push(character),
                }
            }
            while characters.next_if(|c| c.is_whitespace()).is_some() {}
        } else {
            while let Some(character) = characters.next_if(|c| !matches!(c, ',' | '.' | '`')) {
                name.push(character);
            }
            name.truncate(name.trim_end().len());
        }
        if name.is_empty() {
            return None;
        }
        path.push(name);
        match characters.next() {
            Some('.') => {}
            Some(',') => columns.push(std::mem::take(&mut path)),
            None => {
                columns.push(path);
                return Some(columns);
            }
            Some(_) => return None,
        }
    }
}

const DEFAULT_INDEXED_COLUMNS: i64 = 32;

/// Column names are told apart without case, as Delta does.
fn starts_with(leaf: &[String], path: &[String]) -> bool {
    leaf.len() >= path.len()
        && leaf
            .iter()
            .zip(path)
            .all(|(a, b)| a.to_lowercase() == b.to_lowercase())
}

/// A leaf column, by one name a level.
#[derive(Debug, Clone, Default)]
struct LeafColumn {
    /// The table's names.
    names: Vec<String>,
    /// The physical names.
    path: Vec<String>,
}

fn collect_leaves(fields: &Fields, parent: &LeafColumn, leaves: &mut Vec<LeafColumn>) {
    for field in fields {
        let mut leaf = parent.clone();
        leaf.names.push(field.name().clone());
        leaf.path.push(physical_name(field).to_owned());
        match field.data_type() {
            DataType::Struct(inner) => collect_leaves(inner, &leaf, leaves),
            _ => leaves.push(leaf),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new(
                "s",
                DataType::Struct(
                    vec![
                        Field::new("x", DataType::Int64, true),
                        Field::new("y,z", DataType::Int64, true),
                    ]
                    .into(),
                ),
                true,
            ),
            Field::new("b.c", DataType::Int64, true),
        ]))
    }

    fn chosen(properties: &[(&str, &str)]) -> Vec<String> {
        let properties = properties
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let columns = StatisticsColumns::new(&schema(), &properties);
        let mut leaves: Vec<_> = columns.leaves.iter().map(|path| path.join("/")).collect();
        leaves.sort();
        leaves
    }

    #[test]
    fn properties_choose_the_leaves() {
        const NUM: &str = "delta.dataSkippingNumIndexedCols";
        const LIST: &str = "delta.dataSkippingStatsColumns";
        let all = vec!["a", "b.c", "s/x", "s/y,z"];
        for (properties, expected) in [
            (vec![], all.clone()),
            (vec![(NUM, "-1")], all.clone()),
            (vec![(NUM, "nonsense")], all.clone()),
            (vec![(NUM, "0")], vec![]),
            (vec![(NUM, "2")], vec!["a", "s/x"]),
            (vec![(LIST, "S")], vec!["s/x", "s/y,z"]),
            (vec![(LIST, "s.`y,z`, `b.c`")], vec!["b.c", "s/y,z"]),
            (vec![(LIST, "b.c")], vec![]),
            (vec![(LIST, "a"), (NUM, "0")], vec!["a"]),
            (vec![(LIST, "a,,"), (NUM, "1")], vec!["a"]),
        ] {
            assert_eq!(chosen(&properties), expected, "{properties:?}");
        }
    }

    #[test]
    fn clustering_columns_are_always_among_them() {
        let none = [(
            "delta.dataSkippingNumIndexedCols".to_owned(),
            "0".to_owned(),
        )]
        .into();
        let with = |columns: &[&[&str]]| {
            let columns: Vec<Vec<String>> = columns
                .iter()
                .map(|path| path.iter().map(|name| (*name).to_owned()).collect())
                .collect();
            StatisticsColumns::new(&schema(), &none).with_clustering(&schema(), &columns)
        };
        for (columns, expected) in [
            (vec![], vec![]),
            (vec![&["b.c"][..]], vec!["b.c"]),
            (vec![&["s", "y,z"], &["a"]], vec!["a", "s/y,z"]),
            (vec![&["s"]], vec!["s/x", "s/y,z"]),
        ] {
            let chosen = with(&columns).expect("columns of the file");
            let mut leaves: Vec<_> = chosen.leaves.iter().map(|path| path.join("/")).collect();
            leaves.sort();
            assert_eq!(leaves, expected, "{columns:?}");
        }
        for missing in [&["c"][..], &["A"], &["b", "c"], &["s", "x", "y"]] {
            let error = with(&[missing]).expect_err("not in the file");
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{missing:?}");
        }
    }

    #[test]
    fn column_list_is_split_by_commas_and_dots_outside_backticks() {
        for (list, expected) in [
            ("", Some(vec![])),
            ("a", Some(vec!["a"])),
            (" a , b.c ", Some(vec!["a", "b/c"])),
            ("`a``b`.c", Some(vec!["a`b/c"])),
            ("`a, b` , c", Some(vec!["a, b", "c"])),
            ("a,", None),
            ("a..b", None),
            ("`a", None),
            ("`a`b", None),
        ] {
            let parsed = parse_column_list(list).map(|columns| {
                columns
                    .iter()
                    .map(|path| path.join("/"))
                    .collect::<Vec<_>>()
            });
            let expected =
                expected.map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect());
            assert_eq!(parsed, expected, "{list}");
        }
    }
}
