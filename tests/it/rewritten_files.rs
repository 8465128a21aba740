//! The files that a change writes: their order of rows and their size.

use crate::support::Table;

#[tokio::test]
async fn update_over_several_batches_keeps_copied_and_new_rows_in_order() {
    let table = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    table.run("SET datafusion.execution.batch_size = 100").await;
    table
        .run("INSERT INTO t SELECT value, value AS x FROM generate_series(0, 999) ORDER BY value")
        .await;
    // Several partitions filter in parallel, and their batches come as they are ready.
    table
        .run("SET datafusion.execution.target_partitions = 1")
        .await;
    assert_eq!(
        table.count("UPDATE t SET x = -x WHERE id % 3 = 0").await,
        334
    );
    assert_eq!(table.log().1.len(), 1, "one file becomes one file");
    for (rows, condition) in [(334, "id % 3 = 0"), (666, "id % 3 <> 0")] {
        let ids = table
            .rows(&format!("SELECT id FROM t WHERE {condition}"))
            .await;
        let mut sorted: Vec<i64> = ids.iter().map(|id| id.parse().expect("number")).collect();
        sorted.sort_unstable();
        let sorted: Vec<String> = sorted.iter().map(ToString::to_string).collect();
        assert_eq!((ids.len(), &ids), (rows, &sorted), "{condition}");
    }
    assert_eq!(
        table
            .rows("SELECT count(*), sum(id), sum(abs(x)) FROM t")
            .await,
        ["1000|499500|499500"]
    );
}

#[tokio::test]
async fn small_target_size_makes_several_files() {
    let table = Table::create(
        "id BIGINT, x BIGINT",
        "OPTIONS ('delta.targetFileSize' '20kb')",
        &[],
    )
    .await;
    table
        .run("SET datafusion.execution.target_partitions = 1")
        .await;
    let all = "SELECT value, value * 7919 % 100003 FROM generate_series(0, 39999)";
    assert_eq!(table.count(&format!("INSERT INTO t {all}")).await, 40_000);
    let inserted = table.log().1.len();
    assert!(inserted > 2, "{inserted} files");
    assert_eq!(table.count("UPDATE t SET x = x + 1").await, 40_000);
    let updated = table.log().1.len();
    assert!(updated > 2, "{updated} files");
    assert_eq!(
        table
            .rows("SELECT count(*), count(DISTINCT id), sum(id) FROM t")
            .await,
        ["40000|40000|799980000"]
    );
    // Statistics of each file hold for itself: a point query finds its row.
    for id in [0, 8191, 8192, 39_999] {
        assert_eq!(
            table
                .rows(&format!("SELECT x FROM t WHERE id = {id}"))
                .await,
            [(id * 7919 % 100_003 + 1).to_string()]
        );
    }
}
