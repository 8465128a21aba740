//! Reading: every place where a vector may lie, and every way in which one may be damaged.

use delta_disjoint::ErrorKind;
use serde_json::{Value, json};

use super::vectors::{bytes, file, inline, stored};
use super::{add_of, hide, numbers, write_file};
use crate::support::{Table, kind_of, try_run};

async fn assert_reads(table: &Table, expected: &[i64]) {
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    let query = "SELECT id FROM t ORDER BY id";
    assert_eq!(table.rows(query).await, expected);
    let deltalake = table.deltalake_session().await;
    let theirs = deltalake.sql(query).await.expect("plan");
    let theirs = theirs.collect().await.expect("rows");
    assert_eq!(crate::support::text_rows(&theirs), expected, "deltalake");
}

#[tokio::test]
async fn a_vector_is_read_wherever_it_lies() {
    let table = numbers(1).await;
    let hidden = [0, 3, 9];
    let (relative, starts) = write_file(&table, "", &[bytes(&[5]), bytes(&hidden)]);
    let (prefixed, _) = write_file(&table, "ab", &[bytes(&hidden)]);
    let elsewhere = tempfile::tempdir().expect("folder");
    let outside = elsewhere.path().join("a vector.bin");
    let inside = std::path::Path::new(&table.path()).join("v.bin");
    for path in [&outside, &inside] {
        std::fs::write(path, file(&[bytes(&hidden)]).0).expect("file");
    }
    let url = |path: &std::path::Path| url::Url::from_file_path(path).expect("url").to_string();
    for vector in [
        inline(&hidden),
        stored("u", &relative, starts[1], &hidden),
        stored("u", &prefixed, 1, &hidden),
        stored("p", &url(&outside), 1, &hidden),
        stored("p", &url(&inside), 1, &hidden),
    ] {
        let copy = table.copy().await;
        copy.put_entry(&hide(&add_of(&copy, 1), &vector)).await;
        assert_reads(&copy, &[1, 2, 4, 5, 6, 7, 8]).await;
        assert_eq!(copy.rows("SELECT count(*) FROM t").await, ["7"]);
        assert_eq!(
            copy.rows("SELECT id FROM t WHERE id IN (3, 4)").await,
            ["4"]
        );
        assert_eq!(copy.rows("SELECT id FROM t LIMIT 20").await.len(), 7);
    }
}

#[tokio::test]
async fn a_vector_survives_a_checkpoint() {
    let table = numbers(2).await;
    let (relative, _) = write_file(&table, "", &[bytes(&[1, 2])]);
    table
        .put_entry(&hide(
            &add_of(&table, 1),
            &stored("u", &relative, 1, &[1, 2]),
        ))
        .await;
    table
        .put_entry(&hide(&add_of(&table, 2), &inline(&[0])))
        .await;
    deltalake::checkpoints::create_checkpoint(&table.deltalake().await, None)
        .await
        .expect("checkpoint");
    for version in 0..=table.version().await {
        let path = format!("{}/_delta_log/{version:020}.json", table.path());
        std::fs::remove_file(path).expect("removed");
    }
    let reader = Table::open(table.into_folder()).await.expect("opened");
    let mut expected: Vec<i64> = (0..20).collect();
    expected.retain(|id| ![1, 2, 10].contains(id));
    assert_reads(&reader, &expected).await;
}

#[tokio::test]
async fn all_rows_or_none_may_be_hidden() {
    let all: Vec<u64> = (0..10).collect();
    for (hidden, expected) in [(all.as_slice(), vec![]), (&[], (0..10).collect())] {
        let table = numbers(1).await;
        table
            .put_entry(&hide(&add_of(&table, 1), &inline(hidden)))
            .await;
        assert_reads(&table, &expected).await;
    }
}

#[tokio::test]
async fn positions_stay_those_of_the_file_over_row_groups() {
    let table = Table::create("id BIGINT, s VARCHAR", "", &[]).await;
    super::allow_vectors(&table).await;
    crate::support::append_row_groups(&table, 4, 5).await;
    let hidden = [0, 4, 5, 6, 7, 8, 9, 19];
    let add = add_of(&table, table.version().await);
    table.put_entry(&hide(&add, &inline(&hidden))).await;
    assert_reads(&table, &[1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 18]).await;
    let condition = "id BETWEEN 8 AND 11";
    assert_eq!(
        table
            .rows(&format!("SELECT id FROM t WHERE {condition} ORDER BY id"))
            .await,
        ["10", "11"]
    );
    assert_eq!(
        table
            .count(&format!("DELETE FROM t WHERE {condition}"))
            .await,
        2
    );
    assert_reads(&table, &[1, 2, 3, 12, 13, 14, 15, 16, 17, 18]).await;
}

/// A vector, made unfit.
fn damaged(table: &Table) -> Vec<(&'static str, Value)> {
    let hidden = [1, 2];
    let good = bytes(&hidden);
    let (whole, _) = file(std::slice::from_ref(&good));
    let write = |bytes: &[u8]| {
        let (path, _) = write_file(table, "", &[]);
        let name = std::fs::read_dir(table.path())
            .expect("folder")
            .map(|entry| entry.expect("entry").path())
            .find(|path| std::fs::metadata(path).expect("file").len() == 1)
            .expect("the new file");
        std::fs::write(name, bytes).expect("file");
        stored("u", &path, 1, &hidden)
    };
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        write(&bytes)
    };
    let changed = |mut vector: Value, key: &str, value: Value| {
        vector[key] = value;
        vector
    };
    let last = whole.len() - 1;
    let beyond = bytes(&[3, 10]);
    let (far, starts) = write_file(table, "", &[beyond]);
    vec![
        ("format version", with(0, 2)),
        ("length", with(4, whole[4] + 1)),
        ("magic number", with(5, 0)),
        ("bitmap", with(last - 5, whole[last - 5] ^ 1)),
        ("checksum", with(last, whole[last] ^ 1)),
        ("cut short", write(&whole[..last])),
        ("missing", stored("u", "ab^-aqEH.-t@S}K{vb[*k^", 1, &hidden)),
        ("path", stored("u", "tooshort", 1, &hidden)),
        ("offset", changed(write(&whole), "offset", json!(2))),
        (
            "offset far out",
            changed(write(&whole), "offset", json!(1000)),
        ),
        (
            "negative offset",
            changed(write(&whole), "offset", json!(-1)),
        ),
        ("size", changed(write(&whole), "sizeInBytes", json!(3))),
        ("count", changed(write(&whole), "cardinality", json!(3))),
        (
            "negative count",
            changed(write(&whole), "cardinality", json!(-2)),
        ),
        (
            "row beyond the file",
            stored("u", &far, starts[0], &[3, 10]),
        ),
        (
            "inline count",
            changed(inline(&hidden), "cardinality", json!(1)),
        ),
        (
            "inline size",
            changed(inline(&hidden), "sizeInBytes", json!(8)),
        ),
        (
            "inline text",
            changed(inline(&hidden), "pathOrInlineDv", json!("")),
        ),
        (
            "inline characters",
            changed(
                inline(&hidden),
                "pathOrInlineDv",
                json!("~".repeat(good.len().div_ceil(4) * 5)),
            ),
        ),
    ]
}

#[tokio::test]
async fn a_damaged_vector_is_an_error_and_never_a_visible_row() {
    let table = numbers(2).await;
    for (damage, vector) in damaged(&table) {
        let copy = table.copy().await;
        let version = copy.put_entry(&hide(&add_of(&copy, 1), &vector)).await;
        let path = add_of(&copy, 1)["path"].as_str().expect("path").to_owned();
        for text in ["SELECT id FROM t", "DELETE FROM t WHERE id = 3"] {
            let error = match try_run(&copy.ctx, text).await {
                Ok(_) => panic!("{damage}: {text}"),
                Err(error) => error,
            };
            assert_eq!(
                kind_of(&error),
                Some(ErrorKind::Corrupt),
                "{damage}: {error}"
            );
            let message = error.to_string();
            assert!(message.contains(&path), "{damage}: {message}");
            assert!(message.contains(&format!("version {version}")), "{message}");
        }
        // The vectors of files that are not read are not looked at.
        assert_eq!(copy.rows("SELECT id FROM t WHERE id = 15").await, ["15"]);
    }
}

#[tokio::test]
async fn an_unknown_kind_of_vector_is_an_error() {
    let table = numbers(1).await;
    let mut vector = inline(&[1]);
    vector["storageType"] = json!("x");
    let version = table.put_entry(&hide(&add_of(&table, 1), &vector)).await;
    let error = table.error("SELECT id FROM t").await;
    assert_eq!(kind_of(&error), Some(ErrorKind::Corrupt), "{error}");
    assert!(
        error.to_string().contains(&format!("version {version}")),
        "{error}"
    );
}
