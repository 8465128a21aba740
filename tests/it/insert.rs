//! INSERT and INSERT OVERWRITE put exactly the given rows into the table.

use delta_disjoint::ErrorKind;

use crate::support::{Table, kind_of, rows};

#[tokio::test]
async fn insert_of_every_form_adds_its_rows() {
    let cases: &[(&str, u64, &[&str])] = &[
        (
            "INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, NULL)",
            2,
            &["1|10|a", "2|NULL|NULL"],
        ),
        ("INSERT INTO t (id, s) VALUES (3, 'c')", 1, &["3|NULL|c"]),
        ("INSERT INTO t (s, id) VALUES ('d', 4)", 1, &["4|NULL|d"]),
        (
            "INSERT INTO t SELECT id + 100, x, s FROM t WHERE id < 3",
            2,
            &["101|10|a", "102|NULL|NULL"],
        ),
        ("INSERT INTO t SELECT 5, 50, 'e'", 1, &["5|50|e"]),
        (
            "INSERT INTO t SELECT id, y, 'o' FROM o ORDER BY id",
            2,
            &["6|60|o", "7|70|o"],
        ),
        ("INSERT INTO t VALUES ('8', 8.9, 80)", 1, &["8|8|80"]),
        ("INSERT INTO t SELECT * FROM t WHERE false", 0, &[]),
        ("INSERT INTO t SELECT id, x, s FROM v", 1, &["5|50|e"]),
        (
            "INSERT INTO t WITH c AS (SELECT 9 AS a) SELECT a, a AS b, NULL FROM c",
            1,
            &["9|9|NULL"],
        ),
        (
            "INSERT INTO t (id) SELECT max(id) + 1 FROM t",
            1,
            &["103|NULL|NULL"],
        ),
        (
            "INSERT INTO t SELECT 1 AS a, 1 AS b, '1' AS c UNION ALL SELECT 1, 1 AS b, '1'",
            2,
            &["1|1|1", "1|1|1"],
        ),
    ];
    let table = Table::create("id BIGINT, x BIGINT, s VARCHAR", "", &[]).await;
    table
        .run("CREATE TABLE o (id BIGINT, y BIGINT) AS VALUES (7, 70), (6, 60)")
        .await;
    table
        .run("CREATE VIEW v AS SELECT * FROM t WHERE id = 5")
        .await;
    let mut expected: Vec<String> = Vec::new();
    for (statement, count, new) in cases {
        let version = table.log().0;
        assert_eq!(table.count(statement).await, *count, "{statement}");
        assert_eq!(
            table.log().0,
            version + u64::from(*count > 0),
            "{statement}"
        );
        expected.extend(new.iter().map(|row| (*row).to_owned()));
        let mut found = table.rows("SELECT * FROM t").await;
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{statement}");
    }
}

#[tokio::test]
async fn insert_with_order_by_writes_in_that_order() {
    let table = Table::numbers(3, 10, "").await;
    let other = Table::create("id BIGINT, x BIGINT", "", &[]).await;
    crate::support::open(&table.ctx, "o", &other.path()).await;
    table
        .run("INSERT INTO o SELECT * FROM t ORDER BY id DESC")
        .await;
    let expected: Vec<String> = (0..30).rev().map(|id| id.to_string()).collect();
    assert_eq!(other.rows("SELECT id FROM t").await, expected);
}

#[tokio::test]
async fn insert_overwrite_replaces_all_rows() {
    let table = Table::numbers(2, 3, "").await;
    let (version, _) = table.log();
    assert_eq!(
        table
            .count("INSERT OVERWRITE t SELECT id, x * 10 FROM t WHERE id > 2")
            .await,
        3
    );
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["3|30", "4|40", "5|50"]
    );
    assert_eq!(table.count("INSERT OVERWRITE t (id) VALUES (7)").await, 1);
    assert_eq!(table.rows("SELECT * FROM t").await, ["7|NULL"]);
    assert_eq!(
        table
            .count("INSERT OVERWRITE t SELECT * FROM t WHERE false")
            .await,
        0
    );
    assert_eq!(table.rows("SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(table.log(), (version + 3, vec![]));
    // Nothing goes and nothing comes.
    assert_eq!(table.count("INSERT OVERWRITE t SELECT * FROM t").await, 0);
    assert_eq!(table.log().0, version + 3);
    assert_eq!(
        table.commit_info(version + 1)["operationParameters"]["mode"],
        "Overwrite"
    );
}

#[tokio::test]
async fn null_in_a_not_null_column_is_refused_by_every_statement() {
    let table = Table::create(
        "id BIGINT NOT NULL, x BIGINT, s VARCHAR NOT NULL",
        "",
        &["VALUES (1, 10, 'a'), (2, NULL, 'b')"],
    )
    .await;
    for (statement, column) in [
        ("INSERT INTO t VALUES (NULL, 1, 'c')", "id"),
        ("INSERT INTO t VALUES (3, 1, 'c'), (4, 1, NULL)", "s"),
        ("INSERT INTO t (id) VALUES (3)", "s"),
        ("INSERT INTO t SELECT x, id, s FROM t", "id"),
        ("INSERT OVERWRITE t SELECT x, id, s FROM t", "id"),
        ("INSERT OVERWRITE t (id, x) VALUES (1, 1)", "s"),
        ("UPDATE t SET s = NULL", "s"),
        ("UPDATE t SET id = x WHERE id = 2", "id"),
        (
            "UPDATE t SET s = (SELECT max(s) FROM t WHERE false) WHERE id = 1",
            "s",
        ),
    ] {
        let error = table.refused(statement).await;
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Invalid),
            "{statement}: {error}"
        );
        assert!(
            error
                .to_string()
                .contains(&format!("NOT NULL of the column {column} ")),
            "{statement}: {error}"
        );
    }
    assert_eq!(
        table.count("UPDATE t SET id = x WHERE x IS NOT NULL").await,
        1
    );
    assert_eq!(table.count("UPDATE t SET x = NULL").await, 2);
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["2|NULL|b", "10|NULL|a"]
    );
}

#[tokio::test]
async fn insert_that_fails_leaves_nothing_behind() {
    let table = Table::numbers(1, 3, "").await;
    for (statement, names) in [
        ("INSERT INTO t VALUES (1)", "1 values in row 0"),
        ("INSERT INTO t SELECT 1", "Column count"),
        ("INSERT INTO t (nothing) VALUES (1)", "nothing"),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "id"),
        ("INSERT INTO t VALUES ('abc', 1)", "abc"),
        (
            "INSERT INTO t SELECT id, x / (id - 2) FROM t",
            "Divide by zero",
        ),
        (
            "INSERT OVERWRITE t SELECT id, x / (id - 2) FROM t",
            "Divide by zero",
        ),
        ("INSERT INTO t SELECT nothing FROM t", "nothing"),
        ("INSERT INTO nothing VALUES (1)", "nothing"),
    ] {
        let error = table.refused(statement).await.to_string();
        assert!(error.contains(names), "{statement}: {error}");
    }
}

/// Types and some of their values, as text to cast.
const TYPES: &[(&str, &[&str])] = &[
    ("TINYINT", &["-128", "127", "0"]),
    ("SMALLINT", &["-32768", "32767"]),
    ("INT", &["-2147483648", "2147483647"]),
    (
        "BIGINT",
        &[
            "-9223372036854775808",
            "9223372036854775807",
            "9007199254740993",
        ],
    ),
    ("BOOLEAN", &["true", "false"]),
    ("VARCHAR", &["''", "'é🌼'", "'a''b'", "'x\\y\n'"]),
    ("DATE", &["'0001-01-01'", "'9999-12-31'", "'1582-10-10'"]),
    (
        "TIMESTAMP",
        &[
            "'1969-12-31T23:59:59.999999'",
            "'2024-02-29T12:00:00.000001'",
        ],
    ),
    (
        "TIMESTAMP WITH TIME ZONE",
        &[
            "'1850-01-01T00:00:00Z'",
            "'2024-02-29T12:00:00.000001+02:00'",
        ],
    ),
    (
        "DECIMAL(38, 10)",
        &[
            "'9999999999999999999999999999.9999999999'",
            "'-0.0000000001'",
            "'0.1000000001'",
        ],
    ),
    (
        "DECIMAL(38, 0)",
        &[
            "'99999999999999999999999999999999999999'",
            "'9223372036854775808'",
        ],
    ),
    ("DECIMAL(5, 2)", &["'-999.99'", "'0.01'"]),
    (
        "DOUBLE",
        &["'NaN'", "'-0.0'", "'inf'", "'-inf'", "'0.1'", "'5e-324'"],
    ),
    ("FLOAT", &["'NaN'", "'-0.0'", "'inf'", "'0.1'", "'1e-45'"]),
    ("BYTEA", &["X'00ff80'", "X''"]),
];

/// One column for each type, through INSERT, through the copying of an UPDATE of another column, and
/// as new values of an UPDATE.
#[tokio::test]
async fn values_of_every_type_survive_insert_and_update() {
    let most = TYPES
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .expect("types");
    let columns: Vec<String> = TYPES
        .iter()
        .enumerate()
        .map(|(column, (declared, _))| format!("v{column} {declared}"))
        .collect();
    let literal = |column: usize, row: usize| {
        let (declared, values) = TYPES[column];
        let value = values.get(row).unwrap_or(&"NULL");
        format!("CAST({value} AS {declared})")
    };
    let rows_of: Vec<String> = (0..=most)
        .map(|row| {
            let values: Vec<String> = (0..TYPES.len())
                .map(|column| literal(column, row))
                .collect();
            format!("({row}, 0, {})", values.join(", "))
        })
        .collect();
    let values = rows_of.join(", ");
    let table = Table::create(
        &format!("id BIGINT, y BIGINT, {}", columns.join(", ")),
        "",
        &[],
    )
    .await;
    let mut expected = table.rows(&format!("VALUES {values}")).await;
    let rows_in_all = expected.len() as u64;
    assert_eq!(
        table.count(&format!("INSERT INTO t VALUES {values}")).await,
        rows_in_all
    );
    assert_eq!(table.rows("SELECT * FROM t ORDER BY id").await, expected);

    // Half of the rows are copied, half are written anew.
    table.run("UPDATE t SET y = 1 WHERE id % 2 = 0").await;
    table.run("UPDATE t SET y = 0").await;
    let other = table.other_session().await;
    assert_eq!(rows(&other, "SELECT * FROM t ORDER BY id").await, expected);

    // The values of the first row, as new values of the last, whose are all NULL.
    let set: Vec<String> = (0..TYPES.len())
        .map(|column| format!("v{column} = {}", literal(column, 0)))
        .collect();
    assert_eq!(
        table
            .count(&format!(
                "UPDATE t SET {} WHERE id = {most}",
                set.join(", ")
            ))
            .await,
        1
    );
    let first = expected[0].split_once('|').expect("columns").1.to_owned();
    expected[most] = format!("{most}|{first}");
    assert_eq!(table.rows("SELECT * FROM t ORDER BY id").await, expected);
}

#[tokio::test]
async fn partition_values_of_every_type_survive_insert_update_and_delete() {
    for (declared, values) in TYPES {
        let table = Table::create(
            &format!("id BIGINT, v {declared}, y BIGINT"),
            "PARTITIONED BY (v)",
            &[],
        )
        .await;
        // Delta has no empty partition value.
        let values: Vec<&str> = values
            .iter()
            .filter(|value| !matches!(**value, "''" | "X''"))
            .copied()
            .chain(["NULL"])
            .collect();
        let rows: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(id, value)| format!("({id}, CAST({value} AS {declared}), 0)"))
            .collect();
        let rows = rows.join(", ");
        let expected = table
            .rows(&format!(
                "SELECT * FROM (VALUES {rows}) AS v(id, v, y) ORDER BY id"
            ))
            .await;
        table.run(&format!("INSERT INTO t VALUES {rows}")).await;
        assert_eq!(
            table.rows("SELECT * FROM t ORDER BY id").await,
            expected,
            "{declared}"
        );
        let other = table.other_session().await;
        table.run("UPDATE t SET y = 1").await;
        assert_eq!(
            crate::support::rows(&other, "SELECT id, v, 0 FROM t ORDER BY id").await,
            expected,
            "{declared}"
        );
        for value in [values[0], "NULL"] {
            let condition = match value {
                "NULL" => "v IS NULL".to_owned(),
                value => format!("v = CAST({value} AS {declared})"),
            };
            assert_eq!(
                table
                    .count(&format!("DELETE FROM t WHERE {condition}"))
                    .await,
                1,
                "{declared}: {condition}"
            );
        }
    }
}

#[tokio::test]
async fn frame_written_to_the_table_is_cast_to_its_columns() {
    use datafusion::dataframe::DataFrameWriteOptions;
    use datafusion::logical_expr::dml::InsertOp;

    let table = Table::create("id BIGINT, s VARCHAR, x INT", "", &[]).await;
    let write = async |query: &str, op: InsertOp| {
        let options = DataFrameWriteOptions::new().with_insert_operation(op);
        table
            .ctx
            .sql(query)
            .await
            .expect("planned")
            .write_table("t", options)
            .await
    };
    let narrow =
        "SELECT CAST(1 AS INT) AS id, arrow_cast('a', 'Utf8View') AS s, CAST(2 AS BIGINT) AS x";
    write(narrow, InsertOp::Append).await.expect("written");
    write(
        "SELECT 2 AS id, 'b' AS s, CAST(NULL AS INT) AS x",
        InsertOp::Append,
    )
    .await
    .expect("written");
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY id").await,
        ["1|a|2", "2|b|NULL"]
    );
    write(narrow, InsertOp::Overwrite).await.expect("written");
    assert_eq!(table.rows("SELECT * FROM t").await, ["1|a|2"]);
    let before = table.log();
    for query in [
        "SELECT 1 AS id, 'a' AS s",
        "SELECT 1 AS id, 2 AS x, 'a' AS s",
    ] {
        let error = write(query, InsertOp::Append).await.expect_err(query);
        assert_eq!(
            kind_of(&error),
            Some(ErrorKind::Invalid),
            "{query}: {error}"
        );
        assert!(error.to_string().contains("(id, s, x)"), "{query}: {error}");
    }
    assert_eq!(table.log(), before);
}

#[tokio::test]
async fn nested_values_survive_insert_and_update() {
    let table = Table::create(
        "id BIGINT, s STRUCT<a BIGINT, b VARCHAR>, l BIGINT[], n STRUCT<c BIGINT>[]",
        "",
        &[],
    )
    .await;
    let insert = "INSERT INTO t VALUES \
        (1, named_struct('a', 1, 'b', 'x'), [1, NULL, 3], \
            [named_struct('c', 5)]), \
        (2, named_struct('a', NULL, 'b', NULL), [], []), \
        (3, NULL, NULL, NULL)";
    assert_eq!(table.count(insert).await, 3);
    let expected = table.rows("SELECT s, l, n FROM t ORDER BY id").await;
    assert_eq!(
        expected,
        [
            "{a: 1, b: x}|[1, NULL, 3]|[{c: 5}]",
            "{a: NULL, b: NULL}|[]|[]",
            "NULL|NULL|NULL"
        ]
    );
    assert_eq!(
        table.count("UPDATE t SET id = id + 10 WHERE id <> 2").await,
        2
    );
    assert_eq!(
        table.rows("SELECT s, l, n FROM t ORDER BY id % 10").await,
        expected
    );
    assert_eq!(
        table
            .count(
                "UPDATE t SET s = named_struct('a', s['a'] + 1, 'b', 'y'), l = [7] WHERE s['a'] = 1"
            )
            .await,
        1
    );
    assert_eq!(
        table.rows("SELECT id, s, l FROM t WHERE s['a'] = 2").await,
        ["11|{a: 2, b: y}|[7]"]
    );
    assert_eq!(table.count("DELETE FROM t WHERE s['a'] IS NULL").await, 2);
    assert_eq!(table.rows("SELECT id FROM t").await, ["11"]);
}

#[tokio::test]
async fn columns_with_dots_and_upper_case_work_in_every_statement() {
    let table = Table::create(
        "\"a.b\" BIGINT, \"Up\" BIGINT, \"Größe\" VARCHAR, \"it's\"\"q\"\"\" BIGINT",
        "",
        &[],
    )
    .await;
    for first in [0, 10] {
        table
            .run(&format!(
                "INSERT INTO t (\"Up\", \"a.b\", \"Größe\") VALUES ({first}, {first}, 'x'), \
                 ({0}, {0}, 'y')",
                first + 1
            ))
            .await;
    }
    for column in ["\"a.b\"", "\"Up\"", "t.\"a.b\"", "t.\"Up\""] {
        let plan = table
            .rows(&format!("EXPLAIN SELECT * FROM t WHERE {column} > 5"))
            .await;
        assert!(
            plan.join("\n").contains("files_pruned=1"),
            "{column}: {plan:?}"
        );
    }
    assert_eq!(
        table
            .count("UPDATE t SET \"a.b\" = 100, \"Up\" = \"a.b\" + 1 WHERE \"a.b\" = 1")
            .await,
        1
    );
    assert_eq!(
        table
            .count("UPDATE t AS a SET \"Größe\" = 'z' WHERE a.\"Up\" = 10")
            .await,
        1
    );
    assert_eq!(
        table
            .count("UPDATE t SET \"it's\"\"q\"\"\" = 4 WHERE \"a.b\" IN (SELECT \"a.b\" FROM t WHERE \"Up\" = 0)")
            .await,
        1
    );
    assert_eq!(
        table.rows("SELECT * FROM t ORDER BY \"a.b\"").await,
        ["0|0|x|4", "10|10|z|NULL", "11|11|y|NULL", "100|2|y|NULL"]
    );
    assert_eq!(
        table
            .count("DELETE FROM t WHERE \"a.b\" = 100 AND \"Up\" = 2")
            .await,
        1
    );
    assert_eq!(table.count("DELETE FROM t WHERE t.\"a.b\" >= 10").await, 2);
    assert_eq!(
        table.rows("SELECT \"Up\", \"it's\"\"q\"\"\" FROM t").await,
        ["0|4"]
    );
}
