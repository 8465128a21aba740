//! A small table for each feature, for those who have not the published ones.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType, Int64Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

use super::outcome;
use super::report::Report;
use crate::support::Table;

#[tokio::test]
async fn own_tables_read_as_deltalake_reads_them() {
    let mut report = Report::default();
    for (name, table) in [
        ("plain", plain().await),
        ("partitions", partitions().await),
        ("hidden rows", hidden_rows().await),
        ("checkpoint", checkpoint().await),
        ("checkpoint of two parts", two_parts().await),
        ("v2 checkpoint", v2_checkpoint().await),
        ("old types", old_types().await),
    ] {
        let path = table.path();
        let outcome = outcome(Path::new(&path)).await;
        report.add(Path::new(name), outcome);
    }
    println!("{report}");
    report.assert_no_difference();
}

async fn plain() -> Table {
    Table::create(
        "id BIGINT, s VARCHAR, d DOUBLE, n DECIMAL(20, 3), b BOOLEAN, day DATE, \
         t TIMESTAMP, z TIMESTAMP WITH TIME ZONE",
        "",
        &[
            "VALUES (1, 'a', 1.5, 1.125, true, '2020-01-01', '2020-01-01 00:00:00.000001', \
             '2020-01-01T00:00:00.123456Z')",
            "VALUES (2, NULL, 'NaN'::DOUBLE, NULL, NULL, NULL, NULL, NULL), \
             (NULL, 'ü', -0.0, -99.5, false, '1900-01-01', '1900-01-01', '1900-01-01T00:00:00Z')",
        ],
    )
    .await
}

/// A file with timestamps as INT96 and decimals as bytes of a fixed length, as older writers have them.
async fn old_types() -> Table {
    const JULIAN_DAY_OF_1970: u32 = 2_440_588;
    const LEVELS: [i16; 3] = [1, 1, 0];

    let table = Table::create(
        "id BIGINT, z TIMESTAMP WITH TIME ZONE, d DECIMAL(9, 2)",
        "",
        &[
            "VALUES (1, '1970-01-02T00:00:00.0015Z', 12.34), (2, '1900-01-01T00:00:00Z', -0.05), \
           (3, NULL, NULL)",
        ],
    )
    .await;
    let path = format!("{}/{}", table.path(), table.files_on_disk()[0]);
    let schema = parse_message_type(
        "message old { optional int64 id; optional int96 z; \
         optional fixed_len_byte_array(4) d (DECIMAL(9, 2)); }",
    )
    .expect("schema");
    let file = File::create(&path).expect("file");
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties).expect("writer");
    let mut group = writer.next_row_group().expect("row group");
    let mut column = group.next_column().expect("column").expect("id");
    let ids = column.typed::<Int64Type>();
    ids.write_batch(&[1, 2, 3], Some(&[1; 3]), None)
        .expect("ids");
    column.close().expect("closed");
    let mut column = group.next_column().expect("column").expect("z");
    let times = [
        Int96::from(vec![1_500_000, 0, JULIAN_DAY_OF_1970 + 1]),
        Int96::from(vec![0, 0, JULIAN_DAY_OF_1970 - 25_567]),
    ];
    let zs = column.typed::<Int96Type>();
    zs.write_batch(&times, Some(&LEVELS), None).expect("times");
    column.close().expect("closed");
    let mut column = group.next_column().expect("column").expect("d");
    let decimals = [1_234_i32, -5].map(|d| FixedLenByteArray::from(d.to_be_bytes().to_vec()));
    let ds = column.typed::<FixedLenByteArrayType>();
    ds.write_batch(&decimals, Some(&LEVELS), None)
        .expect("decimals");
    column.close().expect("closed");
    group.close().expect("closed");
    writer.close().expect("closed");
    let size = std::fs::metadata(&path).expect("metadata").len();
    table.change_log_entry(1, |action| {
        if let Some(add) = action.get_mut("add") {
            add["size"] = json!(size);
        }
    });
    let found = "SELECT id, CAST(z AS BIGINT), d FROM t WHERE z IS NOT NULL ORDER BY id";
    let table = Table::open(table.into_folder()).await.expect("opens");
    assert_eq!(
        table.rows(found).await,
        ["1|86400001500|12.34", "2|-2208988800000000|-0.05"]
    );
    table
}

async fn partitions() -> Table {
    Table::create(
        "id BIGINT, s VARCHAR, n DECIMAL(10, 2), b BOOLEAN, day DATE, t TIMESTAMP, \
         z TIMESTAMP WITH TIME ZONE",
        "PARTITIONED BY (s, n, b, day, t, z)",
        &[
            "VALUES (1, 'a b/c=%ü', 1.50, true, '2020-01-01', '2020-01-01 01:02:03.5', \
             '2020-01-01T00:00:00.123456Z')",
            "VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL)",
        ],
    )
    .await
}

async fn hidden_rows() -> Table {
    use crate::deletion_vectors::{add_of, hide, numbers, vectors::inline};
    let table = numbers(2).await;
    let actions = hide(&add_of(&table, 1), &inline(&[0, 4, 9]));
    table.put_entry(&actions).await;
    table
}

async fn checkpoint() -> Table {
    let table = Table::numbers(3, 5, "").await;
    deltalake::checkpoints::create_checkpoint(&table.deltalake().await, None)
        .await
        .expect("checkpoint");
    forget_entries(&table).await;
    table
}

/// The log's JSON entries are cleaned up.
async fn forget_entries(table: &Table) {
    for version in 0..=table.version().await {
        let path = format!("{}/_delta_log/{version:020}.json", table.path());
        std::fs::remove_file(path).expect("removed");
    }
}

async fn two_parts() -> Table {
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let table = checkpoint().await;
    let log = format!("{}/_delta_log", table.path());
    let whole = format!("{log}/{:020}.checkpoint.parquet", 3);
    let file = std::fs::File::open(&whole).expect("checkpoint");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.build())
        .expect("reader");
    let schema = arrow::array::RecordBatchReader::schema(&reader);
    let batches: Vec<_> = reader.map(|batch| batch.expect("batch")).collect();
    let rows = arrow::compute::concat_batches(&schema, &batches).expect("one batch");
    let half = rows.num_rows() / 2;
    for (part, rows) in [
        (1, rows.slice(0, half)),
        (2, rows.slice(half, rows.num_rows() - half)),
    ] {
        let path = format!("{log}/{:020}.checkpoint.{part:010}.{:010}.parquet", 3, 2);
        let file = std::fs::File::create(path).expect("part");
        let mut writer = ArrowWriter::try_new(file, rows.schema(), None).expect("writer");
        writer.write(&rows).expect("written");
        writer.close().expect("closed");
    }
    std::fs::remove_file(whole).expect("removed");
    std::fs::remove_file(format!("{log}/_last_checkpoint")).expect("removed");
    table
}

async fn v2_checkpoint() -> Table {
    let table = Table::numbers(2, 5, "").await;
    table
        .put_entry(&[json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"],
        }})])
        .await;
    let version = table.version().await;
    let mut actions: Vec<Value> = (0..=version)
        .flat_map(|version| table.log_entry(version))
        .filter(|action| action.get("metaData").is_some() || action.get("add").is_some())
        .collect();
    actions.extend(
        table
            .log_entry(version)
            .into_iter()
            .filter(|action| action.get("protocol").is_some()),
    );
    actions.insert(0, json!({"checkpointMetadata": {"version": version}}));
    let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
    let name = format!("{version:020}.checkpoint.{}.json", uuid::Uuid::new_v4());
    std::fs::write(
        format!("{}/_delta_log/{name}", table.path()),
        lines.join("\n"),
    )
    .expect("checkpoint");
    forget_entries(&table).await;
    table
}
