//! The actions of one commit, ours or a winner's, and their form in the log.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bytes::Bytes;
use deltalake::kernel::{
    Add, AddCDCFile, DeletionVectorDescriptor, DomainMetadata, Remove, Transaction,
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use super::winner::CommitInfo;
use crate::error::{Error, Result};
use crate::read::path::canonical_path;
use crate::read::snapshot::{TableMetadata, TableProtocol};

/// The actions of one commit besides its `commitInfo`, sorted by kind.
///
/// Source: Delta protocol, "Actions". File paths are
/// [canonical](crate::read::path::canonical_path).
#[derive(Debug, Clone, Default)]
pub struct Actions {
    /// Files added.
    pub adds: Vec<Add>,
    /// Files removed.
    pub removes: Vec<Remove>,
    /// Files of the change data feed.
    pub cdc: Vec<AddCDCFile>,
    /// Application transactions (`txn`).
    pub transactions: Vec<Transaction>,
    /// Domain metadata.
    pub domains: Vec<DomainMetadata>,
    /// The table's new metadata.
    pub metadata: Option<TableMetadata>,
    /// The table's new protocol.
    pub protocol: Option<TableProtocol>,
    /// Names of actions that this crate does not know. Never written; in a winner they conflict.
    pub unknown: Vec<String>,
}

impl Actions {
    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        !self.has_file_actions() && !self.has_other_actions()
    }

    /// Whether a file is added, removed or written as change data.
    pub fn has_file_actions(&self) -> bool {
        !(self.adds.is_empty() && self.removes.is_empty() && self.cdc.is_empty())
    }

    /// Whether there is anything besides added and removed files and change data.
    pub fn has_other_actions(&self) -> bool {
        !(self.transactions.is_empty()
            && self.domains.is_empty()
            && self.metadata.is_none()
            && self.protocol.is_none()
            && self.unknown.is_empty())
    }

    /// Whether an action says that rows changed: an add or remove with `dataChange=true`, or
    /// change data.
    pub fn declares_data_change(&self) -> bool {
        self.adds.iter().any(|add| add.data_change)
            || self.removes.iter().any(|remove| remove.data_change)
            || !self.cdc.is_empty()
    }

    /// Whether files are added with `dataChange=true` and nothing else is done, application
    /// transactions apart.
    pub fn is_pure_append(&self) -> bool {
        !self.adds.is_empty()
            && self.adds.iter().all(|add| add.data_change)
            && self.removes.is_empty()
            && self.cdc.is_empty()
            && self.domains.is_empty()
            && self.metadata.is_none()
            && self.protocol.is_none()
            && self.unknown.is_empty()
    }

    /// Reads the entry of `version`: one JSON object a line, blank lines ignored.
    ///
    /// `commitInfo` is read leniently, since any writer may put anything there.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable), naming the version, if a line is not an
    /// action in the protocol's form. What cannot be read is never taken for "nothing happened".
    pub fn parse(version: u64, bytes: &[u8], root: &Url) -> Result<(Self, CommitInfo)> {
        let mut actions = Self::default();
        let mut infos = Vec::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            actions
                .parse_line(line, root, &mut infos)
                .map_err(|error| {
                    Error::unavailable(format!(
                        "version {version} of the log cannot be read: line {}: {error}",
                        number + 1
                    ))
                    .with_source(error)
                })?;
        }
        Ok((actions, CommitInfo::merge(infos)))
    }

    fn parse_line(
        &mut self,
        line: &[u8],
        root: &Url,
        infos: &mut Vec<CommitInfo>,
    ) -> serde_json::Result<()> {
        for (name, raw) in serde_json::from_slice::<Entries>(line)?.0 {
            let raw = raw.get();
            if raw == "null" {
                continue;
            }
            match name.as_str() {
                "commitInfo" => infos.push(CommitInfo::parse(raw)),
                "add" => {
                    let mut add: Add = parse(raw)?;
                    check_partition_values(raw, add.partition_values.len())?;
                    add.path = canonical_path(root, &add.path);
                    self.adds.push(add);
                }
                "remove" => {
                    let mut remove: Remove = parse(raw)?;
                    remove.path = canonical_path(root, &remove.path);
                    self.removes.push(remove);
                }
                "cdc" => {
                    let mut cdc: AddCDCFile = parse(raw)?;
                    cdc.path = canonical_path(root, &cdc.path);
                    self.cdc.push(cdc);
                }
                "txn" => self.transactions.push(parse(raw)?),
                "domainMetadata" => self.domains.push(parse(raw)?),
                // The protocol allows one of each; a second one must not hide the first.
                "metaData" if self.metadata.is_none() => self.metadata = Some(parse(raw)?),
                "protocol" if self.protocol.is_none() => self.protocol = Some(parse(raw)?),
                _ => self.unknown.push(name),
            }
        }
        Ok(())
    }

    /// The entry to put into the log: `commitInfo` first, then one action a line. A removed file is
    /// spelled as the log spells it, see
    /// [`TableSnapshot::spellings`](crate::read::snapshot::TableSnapshot::spellings).
    ///
    /// # Errors
    ///
    /// [`Internal`](crate::ErrorKind::Internal) if an action has no JSON form.
    pub fn to_bytes(
        &self,
        commit_info: &Map<String, Value>,
        spellings: &HashMap<String, String>,
    ) -> Result<Bytes> {
        let mut lines = Vec::new();
        write(&mut lines, "commitInfo", commit_info)?;
        if let Some(protocol) = &self.protocol {
            write(&mut lines, "protocol", protocol)?;
        }
        if let Some(metadata) = &self.metadata {
            write(&mut lines, "metaData", metadata)?;
        }
        for transaction in &self.transactions {
            write(&mut lines, "txn", transaction)?;
        }
        for domain in &self.domains {
            write(&mut lines, "domainMetadata", domain)?;
        }
        for remove in &self.removes {
            match spellings.get(&remove.path) {
                Some(text) => write(&mut lines, "remove", &spelled(remove, text)?)?,
                None => write(&mut lines, "remove", remove)?,
            }
        }
        for add in &self.adds {
            write(&mut lines, "add", add)?;
        }
        for cdc in &self.cdc {
            write(&mut lines, "cdc", cdc)?;
        }
        Ok(lines.into())
    }
}

/// What identifies a logical file: its path and its deletion vector.
///
/// Source: Delta protocol, "Add File and Remove File": the primary key of a file is its path and
/// the unique id of its deletion vector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// Canonical path.
    pub path: String,
    /// [Unique id](dv_id) of the deletion vector.
    pub dv: Option<String>,
}

impl FileKey {
    /// The key of an added file.
    pub fn of_add(add: &Add) -> Self {
        Self {
            path: add.path.clone(),
            dv: add.deletion_vector.as_ref().map(dv_id),
        }
    }

    /// The key of a removed file.
    pub fn of_remove(remove: &Remove) -> Self {
        Self {
            path: remove.path.clone(),
            dv: remove.deletion_vector.as_ref().map(dv_id),
        }
    }
}

impl fmt::Display for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match &self.dv {
            Some(dv) => write!(f, " with deletion vector {dv}"),
            None => Ok(()),
        }
    }
}

/// The unique id of a deletion vector: `storageType + pathOrInlineDv`, then `@offset` if it has
/// one.
///
/// Source: Delta protocol, "Deletion Vectors", derived field `uniqueId`.
pub fn dv_id(dv: &DeletionVectorDescriptor) -> String {
    match dv.offset {
        Some(offset) => format!("{}{}@{offset}", dv.storage_type, dv.path_or_inline_dv),
        None => format!("{}{}", dv.storage_type, dv.path_or_inline_dv),
    }
}

/// Refuses an `add` in which one of the `distinct` partition values is repeated: which of them holds,
/// nobody can tell, and a map keeps any one.
fn check_partition_values(raw: &str, distinct: usize) -> serde_json::Result<()> {
    #[derive(serde::Deserialize)]
    struct Given {
        #[serde(rename = "partitionValues")]
        partition_values: Entries,
    }
    // Nothing to look for in a table without partitions.
    if distinct > 0 && parse::<Given>(raw)?.partition_values.0.len() > distinct {
        return Err(serde::de::Error::custom("a partition value is repeated"));
    }
    Ok(())
}

/// All members of one JSON object, repeated names included: a map would silently drop an action.
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that holds an action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn parse<T: DeserializeOwned>(raw: &str) -> serde_json::Result<T> {
    serde_json::from_str(raw)
}

/// `remove` with `text`, which is encoded already, for its path.
fn spelled(remove: &Remove, text: &str) -> Result<Value> {
    let mut action = serde_json::to_value(remove)
        .map_err(|error| Error::internal("a remove action has no JSON form").with_source(error))?;
    if let Some(fields) = action.as_object_mut() {
        fields.insert("path".to_owned(), text.into());
    }
    Ok(action)
}

fn write(lines: &mut Vec<u8>, name: &str, action: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *lines, &BTreeMap::from([(name, action)])).map_err(|error| {
        Error::internal(format!("a {name} action has no JSON form")).with_source(error)
    })?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn root() -> Url {
        Url::parse("file:///lake/t/").unwrap()
    }

    #[test]
    fn every_action_survives_a_round_trip() {
        let text = concat!(
            r#"{"commitInfo":{"operation":"X","isBlindAppend":true,"readVersion":4}}"#,
            "\n\n",
            r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
            "\r\n",
            r#"{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}}}"#,
            "\n",
            r#"{"txn":{"appId":"a","version":1}}"#,
            "\n",
            r#"{"domainMetadata":{"domain":"d","configuration":"","removed":false}}"#,
            "\n",
            r#"{"remove":{"path":"file:///lake/t/a%20b","dataChange":true}}"#,
            "\n",
            r#"{"add":{"path":"p=1/c%25d","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":false}}"#,
            "\n",
            r#"{"cdc":{"path":"_change_data/x","partitionValues":{},"size":1,"dataChange":false}}"#,
        );
        let (actions, info) = Actions::parse(5, text.as_bytes(), &root()).unwrap();
        let mut map = Map::new();
        map.insert("operation".into(), "X".into());
        let spellings = HashMap::from([("a b".to_owned(), "file:///lake/t/a b".to_owned())]);
        let bytes = actions.to_bytes(&map, &spellings).unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert!(text.contains(r#""path":"file:///lake/t/a b""#), "{text}");
        assert!(bytes.starts_with(br#"{"commitInfo":"#));
        let (again, again_info) = Actions::parse(6, &bytes, &root()).unwrap();
        assert_eq!(info.operation, again_info.operation);
        assert_eq!(info.read_version, Some(4));
        for actions in [actions, again] {
            assert_eq!(actions.removes[0].path, "a b");
            assert_eq!(actions.adds[0].path, "p=1/c%d");
            assert_eq!(actions.adds[0].partition_values["p"], None);
            assert_eq!(actions.cdc.len(), 1);
            assert_eq!(actions.transactions[0].app_id, "a");
            assert_eq!(actions.domains[0].domain, "d");
            assert_eq!(actions.metadata.unwrap().id, "i");
            assert_eq!(actions.protocol.unwrap().min_writer_version, 2);
            assert!(actions.unknown.is_empty());
        }
    }

    #[test]
    fn what_is_not_an_action_is_a_retryable_error_that_names_the_version() {
        let cases = [
            ("cut line", r#"{"add":{"path":"a""#),
            ("not an object", "[1]"),
            ("scalar", "7"),
            (
                "add without size",
                r#"{"add":{"path":"a","partitionValues":{},"modificationTime":0,"dataChange":true}}"#,
            ),
            ("wrong type", r#"{"remove":{"path":7,"dataChange":true}}"#),
            (
                "two on a line",
                r#"{"txn":{"appId":"a","version":1}}{"txn":{"appId":"b","version":1}}"#,
            ),
            (
                "unknown storage type",
                r#"{"remove":{"path":"a","dataChange":true,"deletionVector":{"storageType":"z","pathOrInlineDv":"","sizeInBytes":1,"cardinality":1}}}"#,
            ),
        ];
        for (name, text) in cases {
            let error = Actions::parse(17, text.as_bytes(), &root()).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}");
            assert!(error.message().contains("version 17"), "{name}: {error}");
        }
    }

    #[test]
    fn nothing_on_a_line_is_lost() {
        let text = concat!(
            r#"{"txn":{"appId":"a","version":1},"txn":{"appId":"b","version":1}}"#,
            "\n",
            r#"{"rowIdHighWaterMark":{"value":1}}"#,
            "\n",
            r#"{"protocol":{"minReaderVersion":1}}"#,
            "\n",
            r#"{"protocol":{"minReaderVersion":2}}"#,
            "\n",
            r#"{"add":null}"#,
        );
        let (actions, _) = Actions::parse(1, text.as_bytes(), &root()).unwrap();
        assert_eq!(actions.transactions.len(), 2);
        assert_eq!(actions.unknown, ["rowIdHighWaterMark", "protocol"]);
        assert!(!actions.is_empty());
        assert!(!actions.is_pure_append());
    }

    #[test]
    fn file_keys_tell_deletion_vectors_apart() {
        let key = |dv: &str| {
            let text = format!(
                r#"{{"remove":{{"path":"a","dataChange":true,"deletionVector":{{"storageType":"u","pathOrInlineDv":"x",{dv}"sizeInBytes":1,"cardinality":1}}}}}}"#
            );
            let (actions, _) = Actions::parse(1, text.as_bytes(), &root()).unwrap();
            FileKey::of_remove(&actions.removes[0])
        };
        assert_eq!(key("").dv.as_deref(), Some("ux"));
        assert_eq!(key(r#""offset":4,"#).dv.as_deref(), Some("ux@4"));
        assert_eq!(
            key(r#""offset":4,"#).to_string(),
            "a with deletion vector ux@4"
        );
    }
}
