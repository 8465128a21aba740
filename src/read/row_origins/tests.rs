use super::*;
use crate::ErrorKind;

fn from(file: u32, row: u64, changed: bool) -> Option<Origin> {
    Some(Origin { file, row, changed })
}

fn origins(rows: &[Option<Origin>]) -> RowOrigins {
    let mut origins = RowOrigins::default();
    for row in rows {
        origins.push(*row);
    }
    origins
}

/// Row by row, as a reader would note them.
fn rows(origins: &RowOrigins) -> Vec<Option<Origin>> {
    let mut rows = Vec::new();
    for run in origins.runs.iter() {
        for offset in 0..run.length {
            rows.push(run.from.map(|from| Origin {
                row: from.row + offset,
                ..from
            }));
        }
    }
    rows
}

#[test]
fn rows_that_follow_each_other_are_one_run() {
    for (given, runs) in [
        (
            vec![from(0, 4, false), from(0, 5, false), from(0, 6, false)],
            1,
        ),
        (vec![from(0, 4, false), from(0, 6, false)], 2),
        (vec![from(0, 5, false), from(0, 4, false)], 2),
        (vec![from(0, 4, false), from(1, 5, false)], 2),
        (vec![from(0, 4, false), from(0, 5, true)], 2),
        (vec![None, None, from(0, 0, true), None], 3),
        (vec![], 0),
    ] {
        let origins = origins(&given);
        assert_eq!(origins.runs.iter().count(), runs, "{given:?}");
        assert_eq!(origins.rows(), given.len() as u64);
        assert_eq!(rows(&origins), given);
    }
}

#[test]
fn rows_of_own_files_come_from_where_those_came_from() {
    // File 0 of the view is file 7 of the base, file 1 was written by an earlier statement.
    let older = origins(&[
        from(3, 10, false),
        from(3, 11, false),
        from(3, 20, true),
        None,
        None,
    ]);
    let source = |file| match file {
        0 => Ok(Source::Base(7)),
        1 => Ok(Source::Written(&older)),
        _ => Err(Error::internal("no such file")),
    };
    let newer = origins(&[
        from(1, 4, true),
        from(1, 1, false),
        from(1, 2, false),
        from(1, 3, false),
        from(1, 0, true),
        from(0, 5, true),
        None,
    ]);
    assert_eq!(
        rows(&newer.resolved(source).expect("resolved")),
        [
            None,
            from(3, 11, false),
            from(3, 20, true),
            None,
            from(3, 10, true),
            from(7, 5, true),
            None,
        ]
    );
    for beyond in [
        from(1, 5, false),
        from(1, u64::MAX, false),
        from(2, 0, false),
    ] {
        let error = origins(&[beyond]).resolved(source).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}

#[test]
fn runs_beyond_one_piece_are_found_again() {
    let count = RUNS_IN_A_PIECE as u64 * 2 + 10;
    let older: Vec<Option<Origin>> = (0..count).map(|row| from(7, row * 2, false)).collect();
    let older = origins(&older);
    let wanted = [
        0,
        RUNS_IN_A_PIECE as u64 - 1,
        RUNS_IN_A_PIECE as u64,
        count - 2,
    ];
    let mut newer = RowOrigins::default();
    for row in wanted {
        newer.push_run(Run {
            length: 2,
            from: from(0, row, true),
        });
    }
    let resolved = newer
        .resolved(|_| Ok(Source::Written(&older)))
        .expect("resolved");
    let expected: Vec<Option<Origin>> = wanted
        .into_iter()
        .flat_map(|row| [from(7, row * 2, true), from(7, row * 2 + 2, true)])
        .collect();
    assert_eq!(rows(&resolved), expected);
    let pieces: Vec<usize> = older.into_pieces().map(|piece| piece.len()).collect();
    assert_eq!(pieces, [RUNS_IN_A_PIECE, RUNS_IN_A_PIECE, 10]);
}

#[test]
fn net_rows_tell_what_stayed_what_changed_and_what_came() {
    let mut net = NetRows::of_removed([0, 2]);
    net.add_written(
        5,
        &origins(&[from(0, 1, false), from(0, 2, true), None, from(2, 0, true)]),
    )
    .expect("added");
    let bits = |rows: &[u64]| rows.iter().copied().collect::<RoaringTreemap>();
    assert_eq!(net.removed()[&0].copied, bits(&[1]));
    assert_eq!(net.removed()[&0].changed, bits(&[2]));
    assert_eq!(net.removed()[&2].changed, bits(&[0]));
    assert_eq!(net.written()[&5].inserted, bits(&[2]));
    assert_eq!(net.written()[&5].changed, bits(&[1, 3]));
    assert_eq!(net.written()[&5].total, 4);
    assert!(!net.is_told_by_files());

    for twice in [from(0, 1, false), from(1, 0, false)] {
        let mut net = net.clone();
        assert!(net.add_written(6, &origins(&[twice])).is_err(), "{twice:?}");
    }
}

#[test]
fn new_rows_and_whole_files_need_no_change_files() {
    let mut net = NetRows::of_removed([0]);
    net.add_written(1, &origins(&[None, None])).expect("added");
    assert!(net.is_told_by_files());
    net.add_written(2, &origins(&[from(0, 3, false)]))
        .expect("added");
    assert!(!net.is_told_by_files());
}
