//! MERGEs that went wrong elsewhere, with inputs of our own. Each name says where.

use delta_disjoint::commit::ConflictKind;

use crate::support::Table;

const SERIALIZABLE: &str = "OPTIONS ('delta.isolationLevel' 'Serializable')";

/// delta-rs #2227: merges into several partitions at a time failed; iceberg #13091: they were taken
/// for conflicts.
#[tokio::test]
async fn delta_rs_2227_and_iceberg_13091_merges_of_different_partitions_all_commit() {
    let table = Table::create(
        "region VARCHAR, hash VARCHAR, n BIGINT",
        &format!("PARTITIONED BY (region) {SERIALIZABLE}"),
        &["VALUES ('north', 'n1', 1), ('south', 's1', 2), ('west', 'w1', 3)"],
    )
    .await;
    let mut planned = Vec::new();
    for (region, hash) in [("north", "n"), ("south", "s"), ("west", "w"), ("east", "e")] {
        let statement = format!(
            "MERGE INTO t USING (VALUES ('{region}', '{hash}1', 10), ('{region}', '{hash}2', 20)) \
             AS s (region, hash, n) ON t.region = s.region AND t.hash = s.hash \
             WHEN MATCHED THEN UPDATE SET n = t.n + s.n \
             WHEN NOT MATCHED THEN INSERT VALUES (s.region, s.hash, s.n)"
        );
        planned.push(table.plan(&statement).await);
    }
    for merge in planned {
        assert_eq!(merge.count().await, 2);
    }
    assert_eq!(
        table.rows("SELECT hash, n FROM t ORDER BY hash").await,
        [
            "e1|10", "e2|20", "n1|11", "n2|20", "s1|12", "s2|20", "w1|13", "w2|20"
        ]
    );
}

/// delta-rs #2980: the predicate of a merge over a date, a text and a number as keys could not be
/// read back in the conflict check.
#[tokio::test]
async fn delta_rs_2980_keys_of_several_types_are_checked() {
    let table = Table::create(
        "day DATE, place VARCHAR, n INT, value DOUBLE",
        &format!("PARTITIONED BY (place) {SERIALIZABLE}"),
        &["VALUES (DATE '2024-05-01', 'it''s', 1, 1.0), (DATE '2024-05-02', 'b', 2, 2.0)"],
    )
    .await;
    let merge = |day: &str, place: &str| {
        format!(
            "MERGE INTO t AS target USING (SELECT DATE '{day}' AS day, '{place}' AS place, \
             CAST(1 AS INT) AS n, 9.5 AS value) AS source ON target.day = source.day \
             AND target.place = source.place AND target.n = source.n \
             WHEN MATCHED THEN UPDATE SET value = source.value WHEN NOT MATCHED THEN INSERT \
             VALUES (source.day, source.place, source.n, source.value)"
        )
    };
    let first = table.plan(&merge("2024-05-01", "it''s")).await;
    let second = table.plan(&merge("2024-05-02", "b")).await;
    let same_place = table.plan(&merge("2024-06-01", "it''s")).await;
    let same_key = table.plan(&merge("2024-05-01", "it''s")).await;
    assert_eq!(first.count().await, 1);
    assert_eq!(second.count().await, 1);
    assert_eq!(same_place.count().await, 1, "another day in the same place");
    assert_eq!(same_key.conflict().await, ConflictKind::ConcurrentAppend);
}

/// delta-rs #3432: a merge scanned files of partitions that its source has no key of.
#[tokio::test]
async fn delta_rs_3432_only_files_with_a_key_are_scanned() {
    let table = Table::create(
        "day VARCHAR, month VARCHAR, value VARCHAR",
        "PARTITIONED BY (month)",
        &[
            "VALUES ('2020-01-01', '2020-01', 'a'), ('2020-02-01', '2020-02', 'b'), \
             ('2020-03-01', '2020-03', 'c'), ('2020-04-01', NULL, 'd')",
        ],
    )
    .await;
    let plan = table
        .rows(
            "EXPLAIN ANALYZE MERGE INTO t USING (VALUES ('2020-01-01', '2020-01', 'e'), \
             ('2020-03-01', '2020-03', 'f')) AS s (day, month, value) \
             ON t.day = s.day AND t.month = s.month \
             WHEN MATCHED THEN UPDATE SET value = s.value \
             WHEN NOT MATCHED THEN INSERT VALUES (s.day, s.month, s.value)",
        )
        .await
        .join("\n");
    assert!(plan.contains("files_total=4"), "{plan}");
    assert!(plan.contains("files_pruned_by_keys=2"), "{plan}");
    assert_eq!(
        table.rows("SELECT value FROM t ORDER BY day").await,
        ["e", "b", "f", "d"]
    );
}

/// delta-rs #4535: WHEN NOT MATCHED BY SOURCE, for one partition like ON, made MERGE read and
/// rewrite all of them.
#[tokio::test]
async fn delta_rs_4535_not_matched_by_source_of_one_partition_reads_that_one() {
    let table = Table::create(
        "day VARCHAR, id BIGINT, live BOOLEAN",
        &format!("PARTITIONED BY (day) {SERIALIZABLE}"),
        &[
            "VALUES ('d1', 1, true), ('d1', 2, true), ('d2', 1, true), ('d2', 2, true), \
             ('d2', 3, true), ('d3', 1, true)",
        ],
    )
    .await;
    let merge = |day: &str| {
        format!(
            "MERGE INTO t USING (VALUES ('{day}', 2), ('{day}', 9)) AS s (day, id) \
             ON t.day = '{day}' AND t.day = s.day AND t.id = s.id \
             WHEN MATCHED THEN UPDATE SET live = true \
             WHEN NOT MATCHED THEN INSERT VALUES (s.day, s.id, true) \
             WHEN NOT MATCHED BY SOURCE AND t.day = '{day}' THEN UPDATE SET live = false"
        )
    };
    let first = table.log().1;
    let other = table.plan(&merge("d1")).await;
    let plan = table
        .rows(&format!("EXPLAIN ANALYZE {}", merge("d2")))
        .await
        .join("\n");
    assert!(plan.contains("files_total=3"), "{plan}");
    assert!(plan.contains("files_pruned=2"), "{plan}");
    let gone: Vec<String> = first
        .iter()
        .filter(|file| !table.log().1.contains(file))
        .cloned()
        .collect();
    assert!(
        matches!(gone.as_slice(), [file] if file.starts_with("day=d2/")),
        "{gone:?}"
    );
    // Nor does who merged another partition meanwhile stand in the way.
    assert_eq!(other.count().await, 3);
    assert_eq!(
        table
            .rows("SELECT day, id, live FROM t ORDER BY day, id")
            .await,
        [
            "d1|1|false",
            "d1|2|true",
            "d1|9|true",
            "d2|1|false",
            "d2|2|true",
            "d2|3|false",
            "d2|9|true",
            "d3|1|true"
        ]
    );
}

/// delta #2170: a condition of WHEN NOT MATCHED BY SOURCE on a partition did not keep writers of
/// other partitions apart.
#[tokio::test]
async fn delta_2170_condition_of_not_matched_by_source_narrows_the_read() {
    let table = Table::create(
        "class BIGINT, id BIGINT",
        &format!("PARTITIONED BY (class) {SERIALIZABLE}"),
        &["VALUES (1, 1), (1, 2), (2, 1), (2, 2)"],
    )
    .await;
    let merge = |class: i64| {
        format!(
            "MERGE INTO t USING (VALUES ({class}, 2), ({class}, 3)) AS s (class, id) \
             ON t.class = s.class AND t.id = s.id AND t.class = {class} \
             WHEN MATCHED THEN UPDATE SET id = 20 \
             WHEN NOT MATCHED THEN INSERT VALUES (s.class, s.id) \
             WHEN NOT MATCHED BY SOURCE AND t.class = {class} THEN DELETE"
        )
    };
    let first = table.plan(&merge(1)).await;
    let second = table.plan(&merge(2)).await;
    let third = table.plan(&merge(2)).await;
    assert_eq!(first.count().await, 3);
    assert_eq!(second.count().await, 3);
    assert_eq!(third.conflict().await, ConflictKind::ConcurrentAppend);
    assert_eq!(
        table
            .rows("SELECT class, id FROM t ORDER BY class, id")
            .await,
        ["1|3", "1|20", "2|3", "2|20"]
    );
}

/// delta #4470: writers of different rows of a table without partitions were taken for conflicts.
#[tokio::test]
async fn delta_4470_merges_of_disjoint_files_of_a_table_without_partitions_commit() {
    let table = Table::numbers(6, 50, SERIALIZABLE).await;
    let mut planned = Vec::new();
    for file in 0..6 {
        let (low, high) = (file * 50 + 10, file * 50 + 19);
        let statement = format!(
            "MERGE INTO t USING (SELECT value AS id FROM generate_series({low}, {high})) AS s \
             ON t.id = s.id WHEN MATCHED AND t.x % 2 = 0 THEN DELETE \
             WHEN MATCHED THEN UPDATE SET x = 0"
        );
        planned.push(table.plan(&statement).await);
    }
    for merge in planned {
        assert_eq!(merge.count().await, 10);
    }
    assert_eq!(
        table
            .rows("SELECT count(*), count(*) FILTER (WHERE x = 0) FROM t")
            .await,
        ["270|31"]
    );
}

/// iceberg PR #9050: two merges whose sources each sum up the class that the other adds to.
#[tokio::test]
async fn iceberg_9050_sources_that_read_what_the_other_writes_do_not_both_commit() {
    for partitioned in ["", "PARTITIONED BY (class)"] {
        let table = Table::create(
            "id BIGINT, class BIGINT, value BIGINT",
            &format!("{partitioned} {SERIALIZABLE}"),
            &[
                "VALUES (1, 1, 10), (2, 1, 20)",
                "VALUES (3, 2, 100), (4, 2, 200)",
            ],
        )
        .await;
        let merge = |id: i64, from: i64, to: i64| {
            format!(
                "MERGE INTO t USING (SELECT {id} AS id, {to} AS class, sum(value) AS value FROM t \
                 WHERE class = {from}) AS u ON t.id = u.id \
                 WHEN MATCHED THEN UPDATE SET value = u.value \
                 WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.class, u.value)"
            )
        };
        let first = table.plan(&merge(1005, 1, 2)).await;
        let second = table.plan(&merge(1006, 2, 1)).await;
        assert_eq!(first.count().await, 1);
        assert_eq!(second.conflict().await, ConflictKind::ConcurrentAppend);
        assert_eq!(
            table.rows("SELECT id, value FROM t WHERE id > 1000").await,
            ["1005|30"]
        );
    }
}

/// trino #31072: the same new key in different partitions, which the check did not look into;
/// lance #4585: the same new key, where no file was touched.
#[tokio::test]
async fn trino_31072_and_lance_4585_the_same_new_key_is_inserted_once() {
    for partitioned in ["PARTITIONED BY (dt)", ""] {
        let table = Table::create(
            "id BIGINT, v VARCHAR, dt VARCHAR",
            &format!("{partitioned} {SERIALIZABLE}"),
            &["VALUES (1, 'seed', 'd0')"],
        )
        .await;
        let merge = |v: &str, dt: &str| {
            format!(
                "MERGE INTO t USING (VALUES (7, '{v}', '{dt}')) AS s (id, v, dt) ON t.id = s.id \
                 WHEN MATCHED THEN UPDATE SET v = s.v \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.dt)"
            )
        };
        let first = table.plan(&merge("a", "d1")).await;
        let second = table.plan(&merge("b", "d2")).await;
        assert_eq!(first.count().await, 1);
        assert_eq!(second.conflict().await, ConflictKind::ConcurrentAppend);
        // Run again it finds the row.
        assert_eq!(table.count(&merge("b", "d2")).await, 1);
        assert_eq!(
            table.rows("SELECT v, dt FROM t WHERE id = 7").await,
            ["b|d1"]
        );
    }
}

/// delta-rs #4475 and #4572: rows beyond the first batch of a file, and large sources, were taken
/// for rows that match twice.
#[tokio::test]
async fn delta_rs_4572_rows_of_many_batches_match_once() {
    let table = Table::numbers(2, 9000, "").await;
    let changed = table
        .count(
            "MERGE INTO t USING (SELECT id, x + 1 AS x FROM t) AS s ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.x)",
        )
        .await;
    assert_eq!(changed, 18_000);
    assert_eq!(
        table.rows("SELECT count(*), sum(x - id) FROM t").await,
        ["18000|18000"]
    );
}

/// delta-rs #4527: columns that take no NULL were checked before it was decided which side a value
/// comes from.
#[tokio::test]
async fn delta_rs_4527_not_null_is_asked_of_the_rows_that_are_written() {
    let table = Table::create(
        "id BIGINT NOT NULL, path VARCHAR",
        "",
        &["VALUES (1, 'a'), (2, 'b')"],
    )
    .await;
    let merge = |id: &str| {
        format!(
            "MERGE INTO t USING (VALUES (2, 'c'), ({id}, 'd')) AS s (id, path) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET path = s.path \
             WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.path) \
             WHEN NOT MATCHED BY SOURCE THEN UPDATE SET path = 'gone'"
        )
    };
    let error = table.refused(&merge("NULL")).await;
    assert!(
        error.to_string().contains("NOT NULL of the column id"),
        "{error}"
    );
    assert_eq!(table.count(&merge("3")).await, 3);
    assert_eq!(
        table.rows("SELECT id, path FROM t ORDER BY id").await,
        ["1|gone", "2|c", "3|d"]
    );
}
