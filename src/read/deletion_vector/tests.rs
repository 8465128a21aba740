use super::*;

#[test]
fn what_stays_is_the_complement() {
    let cases: [(&str, Vec<u64>, u64, Vec<RowSelector>); 5] = [
        ("nothing gone", vec![], 3, vec![RowSelector::select(3)]),
        ("all gone", vec![0, 1, 2], 3, vec![RowSelector::skip(3)]),
        (
            "middle",
            vec![1],
            3,
            vec![
                RowSelector::select(1),
                RowSelector::skip(1),
                RowSelector::select(1),
            ],
        ),
        (
            "ends",
            vec![0, 2],
            3,
            vec![
                RowSelector::skip(1),
                RowSelector::select(1),
                RowSelector::skip(1),
            ],
        ),
        ("empty file", vec![], 0, vec![]),
    ];
    for (name, gone, total, expected) in cases {
        let gone: RoaringTreemap = gone.into_iter().collect();
        let selectors: Vec<RowSelector> = rows_that_stay(&gone, total).into();
        assert_eq!(selectors, expected, "{name}");
    }
}

fn descriptor(storage_type: DeletionVectorStorageType, path: &str) -> KernelDescriptor {
    KernelDescriptor {
        storage_type,
        path_or_inline_dv: path.to_owned(),
        offset: Some(1),
        size_in_bytes: 36,
        cardinality: 2,
    }
}

#[test]
fn vectors_are_found_by_their_encoded_paths() {
    use DeletionVectorStorageType::{PersistedAbsolute, PersistedRelative};
    let root = Url::parse("file:///data/t/").expect("url");
    for (storage_type, path, expected) in [
        (
            PersistedRelative,
            "vBn[lx{q8@P<9BNH/isA",
            FileLocation::InTable(
                Path::parse("deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin")
                    .expect("path"),
            ),
        ),
        (
            PersistedRelative,
            "ab^-aqEH.-t@S}K{vb[*k^",
            FileLocation::InTable(
                Path::parse("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
                    .expect("path"),
            ),
        ),
        (
            PersistedAbsolute,
            "file:///data/t/a%20b/v.bin",
            FileLocation::InTable(Path::parse("a b/v.bin").expect("path")),
        ),
        (
            PersistedAbsolute,
            "file:///data/u/v.bin",
            FileLocation::Elsewhere(Path::parse("data/u/v.bin").expect("path")),
        ),
    ] {
        let location = locate(&root, &descriptor(storage_type, path)).expect(path);
        assert_eq!(location, expected, "{path}");
    }
}

#[test]
fn odd_paths_are_refused() {
    use DeletionVectorStorageType::{PersistedAbsolute, PersistedRelative};
    let root = Url::parse("file:///data/t/").expect("url");
    for (storage_type, path) in [
        (PersistedRelative, "short"),
        (PersistedRelative, "http://x/^-aqEH.-t@S}K{vb[*k^"),
        (PersistedRelative, "//x^-aqEH.-t@S}K{vb[*k^"),
        (PersistedRelative, "a?^-aqEH.-t@S}K{vb[*k^"),
        (PersistedAbsolute, "s3://bucket/v.bin"),
        (PersistedAbsolute, "/v.bin"),
    ] {
        locate(&root, &descriptor(storage_type, path)).expect_err(path);
    }
}

#[test]
fn chosen_rows_and_rows_that_stay_part_a_file() {
    for rows in [
        vec![],
        vec![0],
        vec![9],
        vec![0, 1, 2, 7, 9],
        (0..10).collect::<Vec<u64>>(),
    ] {
        let chosen: RoaringTreemap = rows.iter().copied().collect();
        let taken = |selection: RowSelection| {
            let mut taken = Vec::new();
            let mut next = 0;
            for selector in selection.iter() {
                let end = next + selector.row_count as u64;
                if !selector.skip {
                    taken.extend(next..end);
                }
                next = end;
            }
            assert_eq!(next, 10, "{rows:?}");
            taken
        };
        let others: Vec<u64> = (0..10).filter(|row| !rows.contains(row)).collect();
        assert_eq!(taken(chosen_rows(&chosen, 10)), rows);
        assert_eq!(taken(rows_that_stay(&chosen, 10)), others);
    }
}
