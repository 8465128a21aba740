//! A table of many files: a statement looks into those that its condition leaves, and into no other.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::Table;

/// Enough that a step that opened every file or compared each with each other would be felt.
const FILES: usize = 2_000;

/// `t (id BIGINT, x BIGINT)` of one real file, with the ids 0 and 1, and of many that are nowhere.
async fn table() -> Table {
    let table = Table::create("id BIGINT, x BIGINT", "", &["VALUES (0, 0), (1, 1)"]).await;
    let mut lines = String::from(r#"{"commitInfo":{"operation":"WRITE"}}"#);
    for file in 1..=FILES {
        let (first, last) = (file * 100, file * 100 + 99);
        let stats = format!(
            r#"{{"numRecords":100,"minValues":{{"id":{first},"x":0}},"maxValues":{{"id":{last},"x":9}},"nullCount":{{"id":0,"x":0}}}}"#
        );
        let stats = stats.replace('"', "\\\"");
        let _ = write!(
            lines,
            "\n{{\"add\":{{\"path\":\"part-{file}.parquet\",\"partitionValues\":{{}},\"size\":1000,\
             \"modificationTime\":0,\"dataChange\":true,\"stats\":\"{stats}\"}}}}"
        );
    }
    let log = Path::new(&table.path()).join("_delta_log");
    std::fs::write(log.join(format!("{:020}.json", 2)), lines).expect("written");
    table
}

#[tokio::test]
async fn statement_on_many_files_opens_those_that_its_condition_leaves() {
    let table = table().await;
    assert_eq!(
        table
            .rows("SELECT id, x FROM t WHERE id < 100 ORDER BY id")
            .await,
        ["0|0", "1|1"]
    );
    // The loser reads one file; the winner's is skipped among the candidates.
    let delete = table.plan("DELETE FROM t WHERE id < 1").await;
    assert_eq!(table.count("INSERT INTO t VALUES (9000000, 1)").await, 1);
    assert_eq!(delete.count().await, 1);
    assert_eq!(
        table
            .rows("SELECT id, x FROM t WHERE id < 100 OR id > 8999999 ORDER BY id")
            .await,
        ["1|1", "9000000|1"]
    );
    assert_eq!(table.log().1.len(), FILES + 2);
}
