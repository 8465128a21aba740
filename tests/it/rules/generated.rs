//! Generated columns and columns with a default: made where a statement gives no value, compared where
//! it does.

use delta_disjoint::ErrorKind;
use serde_json::Value;

use super::{add_check, add_key, change_field, change_metadata, generate};
use crate::support::{Table, kind_of, text_rows};

/// `t (id, g, x)` with `g` generated as `x * 10`, and the rows (1, 20, 2) and (2, NULL, NULL).
async fn table() -> Table {
    let table = Table::create(
        "id BIGINT, g BIGINT, x BIGINT",
        "",
        &["VALUES (1, 20, 2)", "VALUES (2, NULL, NULL)"],
    )
    .await;
    generate(&table, "g", "X * 10").await;
    table
}

/// Statements and the rows after them.
const MADE: [(&str, &[&str]); 16] = [
    (
        "INSERT INTO t (id, x) VALUES (3, 4)",
        &["1|20|2", "2|NULL|NULL", "3|40|4"],
    ),
    (
        "INSERT INTO t (x, id) VALUES (4, 3), (NULL, 4)",
        &["1|20|2", "2|NULL|NULL", "3|40|4", "4|NULL|NULL"],
    ),
    (
        "INSERT INTO t (id, x) SELECT id + 10, x + 1 FROM t",
        &["1|20|2", "2|NULL|NULL", "11|30|3", "12|NULL|NULL"],
    ),
    (
        "INSERT INTO t (id, x) SELECT 3, 1 UNION ALL SELECT 4, 2",
        &["1|20|2", "2|NULL|NULL", "3|10|1", "4|20|2"],
    ),
    (
        "INSERT INTO t (id, x) SELECT id + 1, x FROM t ORDER BY id DESC LIMIT 1",
        &["1|20|2", "2|NULL|NULL", "3|NULL|NULL"],
    ),
    // The value is NULL if what it follows from is left out as well.
    (
        "INSERT INTO t (id) VALUES (3)",
        &["1|20|2", "2|NULL|NULL", "3|NULL|NULL"],
    ),
    (
        "INSERT INTO t VALUES (3, 40, 4), (4, NULL, NULL)",
        &["1|20|2", "2|NULL|NULL", "3|40|4", "4|NULL|NULL"],
    ),
    ("INSERT OVERWRITE t (id, x) VALUES (3, 4)", &["3|40|4"]),
    ("UPDATE t SET x = 7", &["1|70|7", "2|70|7"]),
    (
        "UPDATE t SET x = x + 1 WHERE g = 20",
        &["1|30|3", "2|NULL|NULL"],
    ),
    (
        "UPDATE t SET id = 9 WHERE x IS NULL",
        &["1|20|2", "9|NULL|NULL"],
    ),
    (
        "UPDATE t SET g = 70, x = 7 WHERE id = 1",
        &["1|70|7", "2|NULL|NULL"],
    ),
    (
        "MERGE INTO t USING (VALUES (1, 5), (3, 6)) AS s (id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, s.x)",
        &["1|50|5", "2|NULL|NULL", "3|60|6"],
    ),
    (
        "MERGE INTO t USING (VALUES (1, 5), (3, 6), (4, 7)) AS s (id, x) ON t.id = s.id \
         WHEN MATCHED THEN UPDATE SET x = s.x, g = s.x * 10 \
         WHEN NOT MATCHED AND s.id = 3 THEN INSERT VALUES (s.id, 60, s.x) \
         WHEN NOT MATCHED THEN INSERT (x, id) VALUES (s.x, s.id)",
        &["1|50|5", "2|NULL|NULL", "3|60|6", "4|70|7"],
    ),
    (
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = 1",
        &["2|10|1"],
    ),
    (
        "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE",
        &["2|NULL|NULL"],
    ),
];

#[tokio::test]
async fn values_are_made_where_none_are_given() {
    let original = table().await;
    for (text, expected) in MADE {
        let table = original.copy().await;
        table.run(text).await;
        let query = "SELECT * FROM t ORDER BY id";
        assert_eq!(table.rows(query).await, expected, "{text}");
        let theirs = table.deltalake_session().await;
        let rows = theirs.sql(query).await.expect("plan").collect().await;
        assert_eq!(text_rows(&rows.expect("rows")), expected, "{text}");

        let table = original.copy().await;
        table.run("BEGIN").await;
        table.run(text).await;
        assert_eq!(table.rows(query).await, expected, "{text}");
        table.run("COMMIT").await;
        assert_eq!(table.rows(query).await, expected, "{text}");

        let table = original.copy().await;
        table.run(&format!("PREPARE made AS {text}")).await;
        table.run("EXECUTE made").await;
        assert_eq!(table.rows(query).await, expected, "prepared: {text}");
        table.run("DEALLOCATE made").await;
    }
}

#[tokio::test]
async fn values_that_are_given_are_compared() {
    let table = table().await;
    for (text, given, expected) in [
        ("INSERT INTO t VALUES (3, 41, 4)", "41", "40"),
        (
            "INSERT INTO t VALUES (3, 40, 4), (4, NULL, 4)",
            "NULL",
            "40",
        ),
        ("INSERT INTO t (id, g) VALUES (3, 1)", "1", "NULL"),
        ("INSERT INTO t SELECT id, x + 0, x FROM t", "2", "20"),
        ("INSERT OVERWRITE t VALUES (3, 41, 4)", "41", "40"),
        ("UPDATE t SET g = 21 WHERE id = 1", "21", "20"),
        ("UPDATE t SET g = 20, x = 3 WHERE id = 1", "20", "30"),
        (
            "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET g = 1",
            "1",
            "20",
        ),
        (
            "MERGE INTO t USING (VALUES (1), (3)) AS s (id) ON t.id = s.id \
             WHEN MATCHED THEN UPDATE SET x = 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 5, 5)",
            "5",
            "50",
        ),
    ] {
        let error = table.refused(text).await;
        assert_eq!(kind_of(&error), Some(ErrorKind::Invalid), "{text}: {error}");
        for part in [
            "generated column g (X * 10)".to_owned(),
            format!("value {given} in"),
            format!("it is {expected};"),
        ] {
            assert!(
                error.to_string().contains(&part),
                "{text}: {part} in {error}"
            );
        }
    }
}

#[tokio::test]
async fn values_are_made_from_parameters() {
    let table = table().await;
    table
        .run("PREPARE new AS INSERT INTO t (id, x) VALUES ($1, $2)")
        .await;
    table.run("EXECUTE new(3, 4)").await;
    table.run("EXECUTE new(4, 5)").await;
    assert_eq!(
        table.rows("SELECT * FROM t WHERE id > 2 ORDER BY id").await,
        ["3|40|4", "4|50|5"]
    );
}

#[tokio::test]
async fn rows_of_before_get_their_value_when_they_change() {
    let table = Table::create(
        "id BIGINT, g BIGINT, x BIGINT",
        "",
        &["VALUES (1, 7, 2), (2, 8, 2)"],
    )
    .await;
    generate(&table, "g", "x * 10").await;
    table.run("UPDATE t SET id = 3 WHERE id = 1").await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["2|8|2", "3|20|2"]
    );
}

#[tokio::test]
async fn a_partition_column_may_be_generated() {
    for mapping in ["", "OPTIONS ('delta.columnMapping.mode' 'name')"] {
        let table = Table::create(
            "id BIGINT, at TIMESTAMP WITH TIME ZONE, day DATE NOT NULL",
            &format!("PARTITIONED BY (day) {mapping}"),
            &[],
        )
        .await;
        generate(&table, "day", "CAST(at AS DATE)").await;
        table
            .run(
                "INSERT INTO t (id, at) VALUES (1, '2024-02-28T23:59:59Z'), \
                 (2, '2024-02-29T00:00:00Z')",
            )
            .await;
        let mut days: Vec<Value> = table
            .log_entry(table.log().0)
            .iter()
            .filter_map(|action| action.get("add"))
            .filter_map(|add| add["partitionValues"].as_object())
            .flat_map(|values| values.values().cloned())
            .collect();
        days.sort_by_key(Value::to_string);
        assert_eq!(days, ["2024-02-28", "2024-02-29"]);
        table
            .run("UPDATE t SET at = '2024-03-01T12:00:00Z' WHERE day = '2024-02-28'")
            .await;
        assert_eq!(
            table.rows("SELECT id, day FROM t ORDER BY id").await,
            ["1|2024-03-01", "2|2024-02-29"]
        );
        // The value would be NULL, which the column does not take.
        let error = table.refused("INSERT INTO t (id) VALUES (3)").await;
        assert!(
            error.to_string().contains("NOT NULL of the column day"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn conditions_see_the_values_that_were_made() {
    let table = table().await;
    add_check(&table, "low", "g IS NULL OR g < 100").await;
    table.run("INSERT INTO t (id, x) VALUES (3, 9)").await;
    for text in [
        "INSERT INTO t (id, x) VALUES (4, 10)",
        "UPDATE t SET x = 10 WHERE id = 1",
    ] {
        let error = table.refused(text).await;
        assert!(error.to_string().contains("g = 100"), "{text}: {error}");
    }
}

#[tokio::test]
async fn lengths_and_generated_values_go_together() {
    let table = Table::create("id BIGINT, c VARCHAR, u VARCHAR", "", &[]).await;
    add_key(&table, &["c"], "__CHAR_VARCHAR_TYPE_STRING", "char(3)").await;
    generate(&table, "u", "upper(c)").await;
    table.run("INSERT INTO t (id, c) VALUES (1, 'a')").await;
    table.run("UPDATE t SET c = 'b'").await;
    assert_eq!(
        table.rows("SELECT '<' || c || u || '>' FROM t").await,
        ["<b  B  >"]
    );
}

#[tokio::test]
async fn new_rows_keep_the_order_they_are_asked_in() {
    let table = table().await;
    table
        .run("INSERT OVERWRITE t (id, x) SELECT value AS id, value AS x FROM generate_series(1, 50) ORDER BY id DESC")
        .await;
    let ids: Vec<String> = (1..=50).rev().map(|id| id.to_string()).collect();
    assert_eq!(table.rows("SELECT id FROM t").await, ids);
}

#[tokio::test]
async fn defaults_are_given_to_rows_without_a_value() {
    let table = Table::create(
        "id BIGINT, d BIGINT, s VARCHAR, day DATE, g BIGINT",
        "",
        &["VALUES (0, NULL, NULL, NULL, NULL)"],
    )
    .await;
    add_key(&table, &["d"], "CURRENT_DEFAULT", "7").await;
    add_key(&table, &["s"], "CURRENT_DEFAULT", "\"it\"").await;
    add_key(&table, &["day"], "CURRENT_DEFAULT", "DATE '2024-02-29'").await;
    generate(&table, "g", "d + 1").await;
    table.run("INSERT INTO t (id) VALUES (1)").await;
    table.run("INSERT INTO t (id, d) VALUES (2, NULL)").await;
    table.run("INSERT INTO t (id, s) SELECT 3, 'x'").await;
    table
        .run(
            "MERGE INTO t USING (VALUES (4)) AS m (id) ON t.id = m.id \
             WHEN NOT MATCHED THEN INSERT (id, day) VALUES (m.id, NULL)",
        )
        .await;
    table.run("UPDATE t SET s = 'y' WHERE id = 0").await;
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        [
            "0|NULL|y|NULL|NULL",
            "1|7|it|2024-02-29|8",
            "2|NULL|it|2024-02-29|NULL",
            "3|7|x|2024-02-29|8",
            "4|7|it|NULL|8",
        ]
    );
}

#[tokio::test]
async fn a_default_that_is_not_understood_refuses_only_rows_that_need_it() {
    let table = Table::create("id BIGINT, d BIGINT", "", &[]).await;
    add_key(&table, &["d"], "CURRENT_DEFAULT", "current_user()").await;
    let error = table.refused("INSERT INTO t (id) VALUES (1)").await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Unsupported));
    for part in ["default of the column d", "current_user"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(table.count("INSERT INTO t VALUES (1, 1)").await, 1);
    assert_eq!(table.count("UPDATE t SET d = 2").await, 1);
}

#[tokio::test]
async fn identity_columns_stay_refused_by_name() {
    let table = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    change_metadata(&table, |metadata| {
        change_field(metadata, &["id"], |field| {
            field["metadata"]["delta.identity.start"] = serde_json::json!(1);
        });
    })
    .await;
    let error = table.refused("INSERT INTO t (x) VALUES (1)").await;
    assert!(error.to_string().contains("identityColumns"), "{error}");
}
