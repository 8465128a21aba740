//! Secrets never come out, whatever goes wrong.

use super::{Folder, Run, command, run};

/// With characters that SQL, URLs and debug output would write in another way.
const SECRET: &str = "s3cr'et\"/+=\\value";

fn check(ended: Run, what: &str) {
    for text in [&ended.out, &ended.err] {
        for part in ["s3cr", "et\\\"/", "value\u{7f}", "passw0rd"] {
            assert!(!text.contains(part), "{what}: {text}");
        }
    }
}

#[test]
fn options_of_the_store_never_show() {
    let folder = Folder::with_table("");
    let table = folder.table();
    let option = format!("aws_secret_access_key={SECRET}");
    let no_name = SECRET.replace('=', "");
    let named = format!("t={SECRET}");
    let joined = format!("--storage-option={option}");
    let literal = SECRET.replace('\'', "''");
    let echo = format!("SELECT * FROM \"{}\"", SECRET.replace('"', "\"\""));
    let no_number = format!("SELECT CAST('{literal}' AS BIGINT) + id FROM t");
    let unparsable = format!("SELECT FROM '{literal}' WHERE");
    let cases: Vec<Vec<&str>> = vec![
        vec!["sql", "--storage-option", &option, "--help"],
        vec!["sql", "--storage-option", &no_name, "-c", "SELECT 1"],
        vec!["sql", "--storage-option", "=", "-c", "SELECT 1"],
        vec!["sql", &joined, &joined, "-c", "SELECT 1"],
        vec![
            "--storage-option",
            &option,
            "sql",
            &joined,
            "-c",
            "SELECT 1",
        ],
        vec![
            "sql",
            &joined,
            "--table",
            "t=s3://bucket/t",
            "-c",
            "SELECT 1",
        ],
        vec!["sql", &joined, "--table", &named, "-c", "SELECT 1"],
        vec!["sql", &joined, "--nothing", SECRET],
        vec!["sql", &joined, SECRET],
        vec!["sql", &joined, "--format", SECRET],
        vec!["sql", &joined, "-f", SECRET],
        vec!["sql", &joined, "--table", &table, "-c", &echo],
        vec!["sql", &joined, "--table", &table, "-c", &no_number],
        vec!["sql", &joined, "--table", &table, "-c", &unparsable],
        vec!["history", &joined, SECRET],
        vec!["history", "gs://bucket/t", "--storage-option", &option],
    ];
    for arguments in cases {
        let ended = run(&arguments);
        if !arguments.contains(&"--help") {
            assert_ne!(ended.code, Some(0), "{arguments:?}");
        }
        check(ended, &format!("{arguments:?}"));
    }
}

#[test]
fn secrets_of_the_environment_never_show() {
    for variable in [
        "AWS_SECRET_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
    ] {
        let ended = command(&["history", SECRET])
            .env(variable, SECRET)
            .output()
            .expect("runs");
        check(Run::of(ended), variable);
    }
}

#[test]
fn passwords_in_locations_never_show() {
    let locations = [
        "s3://user:passw0rd@bucket/t",
        "http://user:passw0rd@host:80/t?x=1",
        "nothing://user:pa@passw0rd@host",
        "s3://user:a/passw0rd@bucket/t",
        "s3://user:passw0rd@",
        "file://user:passw0rd@/nowhere",
        "https://account.blob.core.windows.net/c/t?sv=2022&sig=passw0rd",
        "https://account.blob.core.windows.net:443/c/t?sv=2022&sig=a/passw0rd%3D",
        "s3://bucket/t?passw0rd",
        "file:///nowhere?sig=passw0rd",
        "abfss://container:passw0rd@account.dfs.core.windows.net/t",
    ];
    for location in locations {
        let table = format!("t={location}");
        let create = format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{location}'");
        let new = format!("CREATE EXTERNAL TABLE t (x INT) STORED AS DELTA LOCATION '{location}'");
        let unparsable = format!("SELECT '{location}' FROM '{location}' WHERE");
        for arguments in [
            vec!["history", location],
            vec!["explain", location, "--read-version", "0"],
            vec!["explain", location],
            vec!["sql", "--table", &table, "-c", "SELECT 1"],
            vec!["sql", "--table", location, "-c", "SELECT 1"],
            vec!["sql", "-c", &create],
            vec!["sql", "-c", &new],
            vec!["sql", "-c", &unparsable],
            vec!["sql", location],
        ] {
            let folder = Folder::new();
            let ended = command(&arguments)
                .current_dir(folder.dir.path())
                .output()
                .expect("runs");
            let ended = Run::of(ended);
            assert_ne!(ended.code, Some(0), "{arguments:?}");
            check(ended, &format!("{arguments:?}"));
            assert!(super::names(folder.dir.path()).is_empty(), "{arguments:?}");
        }
    }
}

#[test]
fn what_is_no_secret_stays_readable() {
    let arguments = [
        "sql",
        "--storage-option",
        "aws_region=nowhere",
        "-c",
        "SELECT * FROM nowhere",
    ];
    let error = run(&arguments).failed(1);
    assert!(error.contains("nowhere"), "{error}");
    let error = run(&["history", "gs://bucket/a@b"]).failed(1);
    assert!(error.contains("gs://bucket/a@b"), "{error}");
    let container = "wasb://container@account.blob.core.windows.net/t";
    let error = run(&["history", container]).failed(1);
    assert!(error.contains(container), "{error}");
    let create = "CREATE EXTERNAL TABLE t (x INT) STORED AS DELTA LOCATION '/nowhere' \
                  OPTIONS ('delta.isolationLevel' 'Nonsense', 'aws_secret_access_key' 'passw0rd')";
    let error = run(&["sql", "-c", create]).failed(1);
    assert!(error.contains("delta.isolationLevel"), "{error}");
    assert!(error.contains("Nonsense"), "{error}");
}

#[test]
fn options_reach_the_store_of_every_table_and_stay_hidden_there() {
    let folder = Folder::with_table("");
    let (table, path) = (folder.table(), folder.path());
    let open = format!("CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '{path}'");
    // An option that is looked at for a local table too.
    let option = "--storage-option=concurrency_limit=no-number";
    for arguments in [
        vec!["sql", option, "--table", &table, "-c", "SELECT 1"],
        vec!["sql", option, "-c", &open],
        vec!["history", option, &path],
    ] {
        let error = run(&arguments).failed(1);
        assert!(error.contains("concurrency_limit"), "{error}");
        assert!(!error.contains("no-number"), "{error}");
    }
}

#[test]
fn options_in_statements_never_show() {
    let start = "CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION '/nowhere'";
    let options = [
        "('aws_secret_access_key' 'a' 'passw0rd')",
        "('aws_secret_access_key' a passw0rd)",
        "('aws_secret_access_key' \"passw0rd\" 'x')",
        "(aws_secret_access_key 'a' \"passw0rd\")",
        "(aws.secret_access_key E'passw0rd' 'passw0rd')",
        "('aws_secret_access_key' $$passw0rd$$ $$passw0rd$$)",
        "('aws_secret_access_key', 'passw0rd' 'passw0rd' 'x', 'passw0rd')",
        "('region' 'x' passw0rd)",
        "('region' 'x', passw0rd)",
        "('concurrency_limit' 'passw0rd')",
        "('a' (passw0rd), 'b' 'passw0rd' 'passw0rd')",
        "('a' 'passw0rd' 'passw0rd' -- broken off\n , '",
        "('delta.isolationLevel' 'x', 'b' 'passw0rd' 'passw0rd')",
    ];
    for options in options {
        let create = format!("{start} OPTIONS {options}");
        let copy = format!("COPY (SELECT 1) TO '/nowhere/x.csv' OPTIONS {options}");
        for text in [create, copy.to_lowercase()] {
            let ended = run(&["sql", "-c", &text]);
            assert_ne!(ended.code, Some(0), "{text}");
            check(ended, &text);
        }
    }
}
