//! A bank: money moves between accounts in SQL transactions, many at a time, in one process and in
//! several. Whatever happens, the sum stays, every transfer happens once or not at all, and who loses
//! a race is told so by a typed error.
//!
//! The table holds accounts, `(id, balance, NULL, NULL)` with ids from 0, each in a file of its own,
//! and one receipt for every transfer, `(FIRST_RECEIPT + number, amount, source, target)`, written in
//! the same transaction. What the balances must be follows from the receipts.
//!
//! Transactions overlap by force: all transfers of a round are done but for the commit before the
//! first of them commits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::prelude::SessionContext;
use delta_disjoint::{ErrorKind, session};
use tempfile::TempDir;
use tokio::sync::Barrier;

use crate::support::{kind_of, open, rows, run, try_run};

const LEVELS: [&str; 2] = ["Serializable", "WriteSerializable"];
const OPENING_BALANCE: i64 = 1000;
const FIRST_RECEIPT: i64 = 1_000_000;

#[derive(Debug, Clone, Copy)]
struct Transfer {
    number: i64,
    source: i64,
    target: i64,
    amount: i64,
}

/// How many attempts each committed transfer took, by its number.
type Attempts = BTreeMap<i64, usize>;

/// Tasks with two accounts each, of their own.
fn disjoint(task: i64, round: i64) -> Transfer {
    let accounts = [2 * task, 2 * task + 1];
    let forth = usize::from(round % 2 == 1);
    Transfer {
        number: 100 * task + round,
        source: accounts[forth],
        target: accounts[1 - forth],
        amount: 10 + round,
    }
}

/// Tasks that share four accounts; in the first round all take from the same one.
fn shared(task: i64, round: i64) -> Transfer {
    let source = if round == 0 {
        0
    } else {
        (task + 3 * round) % 4
    };
    Transfer {
        number: 100 * task + round,
        source,
        target: (source + 1 + (task + round) % 3) % 4,
        amount: 1 + task + 10 * round,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disjoint_transfers_commit_at_their_first_attempt() {
    for level in LEVELS {
        let bank = new_bank(level, 8).await;
        let attempts = in_tasks(bank.path(), 4, 5, disjoint).await;
        check(bank.path(), &attempts, 4, 5, disjoint).await;
        at_first_attempt(&attempts, level);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_between_shared_accounts_lose_no_money() {
    for level in LEVELS {
        let bank = new_bank(level, 4).await;
        let attempts = in_tasks(bank.path(), 4, 3, shared).await;
        check(bank.path(), &attempts, 4, 3, shared).await;
        one_wins_the_first_round(&attempts, 4, level);
    }
}

#[tokio::test]
async fn disjoint_transfers_of_several_processes_commit_at_their_first_attempt() {
    for level in LEVELS {
        let bank = new_bank(level, 6).await;
        let attempts = in_processes(bank.path(), 3, 3, "disjoint");
        check(bank.path(), &attempts, 3, 3, disjoint).await;
        at_first_attempt(&attempts, level);
    }
}

#[tokio::test]
async fn transfers_of_several_processes_lose_no_money() {
    for level in LEVELS {
        let bank = new_bank(level, 4).await;
        let attempts = in_processes(bank.path(), 3, 2, "shared");
        check(bank.path(), &attempts, 3, 2, shared).await;
        one_wins_the_first_round(&attempts, 3, level);
    }
}

/// One process of several: not a test by itself, and nothing where it is not started by one.
#[tokio::test]
async fn process() {
    let Ok(arguments) = std::env::var("BANK_PROCESS") else {
        return;
    };
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let [task, tasks, rounds, plan] = arguments.as_slice() else {
        panic!("BANK_PROCESS is <task> <tasks> <rounds> <plan>");
    };
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let (task, tasks, rounds) = (number(task), number(tasks), number(rounds));
    let folder = std::env::var("BANK_FOLDER").expect("the bank's folder");
    let folder = Path::new(&folder);
    let plan = if *plan == "disjoint" {
        disjoint
    } else {
        shared
    };
    let ctx = teller(folder).await;
    for round in 0..rounds {
        let transfer = plan(task, round);
        let meeting = Meeting::Processes {
            folder: folder.to_owned(),
            task,
            tasks,
        };
        let attempts = until_committed(&ctx, transfer, &meeting).await;
        println!("committed {} {attempts}", transfer.number);
    }
}

async fn in_tasks(
    folder: &Path,
    tasks: i64,
    rounds: i64,
    plan: fn(i64, i64) -> Transfer,
) -> Attempts {
    let meeting = Arc::new(Meeting::Tasks(Barrier::new(tasks as usize)));
    let handles: Vec<_> = (0..tasks)
        .map(|task| {
            let meeting = Arc::clone(&meeting);
            let folder = folder.to_owned();
            tokio::spawn(async move {
                let ctx = teller(&folder).await;
                let mut done = Vec::new();
                for round in 0..rounds {
                    let transfer = plan(task, round);
                    let attempts = until_committed(&ctx, transfer, &meeting).await;
                    done.push((transfer.number, attempts));
                }
                done
            })
        })
        .collect();
    let mut attempts = Attempts::new();
    for handle in handles {
        attempts.extend(handle.await.expect("a task ends"));
    }
    attempts
}

fn in_processes(folder: &Path, tasks: i64, rounds: i64, plan: &str) -> Attempts {
    let program = std::env::current_exe().expect("this test binary");
    let children: Vec<_> = (0..tasks)
        .map(|task| {
            Command::new(&program)
                .args(["--exact", "bank::process", "--nocapture"])
                .env("BANK_PROCESS", format!("{task} {tasks} {rounds} {plan}"))
                .env("BANK_FOLDER", folder)
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        })
        .collect();
    let mut attempts = Attempts::new();
    for child in children {
        let output = child.wait_with_output().expect("output");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        for line in text.lines() {
            // Behind what the test harness has written on the same line.
            if let Some((_, numbers)) = line.split_once("committed ") {
                let (number, count) = numbers.split_once(' ').expect("two numbers");
                attempts.insert(
                    number.parse().expect("a transfer"),
                    count.parse().expect("a count"),
                );
            }
        }
    }
    attempts
}

/// Where all who move money in a round wait for each other.
enum Meeting {
    Tasks(Barrier),
    /// Each process leaves a file behind.
    Processes {
        folder: PathBuf,
        task: i64,
        tasks: i64,
    },
}

impl Meeting {
    async fn wait(&self, transfer: Transfer) {
        const PATIENCE: Duration = Duration::from_secs(120);

        match self {
            Self::Tasks(barrier) => {
                barrier.wait().await;
            }
            Self::Processes {
                folder,
                task,
                tasks,
            } => {
                let round = transfer.number % 100;
                let name = |task: i64| folder.join(format!("round-{round}-task-{task}"));
                std::fs::write(name(*task), "").expect("written");
                let start = Instant::now();
                while !(0..*tasks).all(|other| name(other).exists()) {
                    assert!(start.elapsed() < PATIENCE, "a process does not come");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }
}

/// Attempts `transfer` until it is committed, which must not take more attempts than there are
/// others that may come first. All of a round meet before the first of them commits.
async fn until_committed(ctx: &SessionContext, transfer: Transfer, meeting: &Meeting) -> usize {
    const MOST_ATTEMPTS: usize = 50;

    for attempt in 1..=MOST_ATTEMPTS {
        prepare(ctx, transfer).await;
        if attempt == 1 {
            meeting.wait(transfer).await;
        }
        match try_run(ctx, "COMMIT").await {
            Ok(_) => return attempt,
            Err(error) => {
                let kind = kind_of(&error);
                assert!(
                    matches!(kind, Some(ErrorKind::Conflict | ErrorKind::Contended)),
                    "{transfer:?}: {error}"
                );
            }
        }
    }
    panic!("{transfer:?} was not committed in {MOST_ATTEMPTS} attempts");
}

/// All of a transfer but for the commit.
async fn prepare(ctx: &SessionContext, transfer: Transfer) {
    let Transfer {
        number,
        source,
        target,
        amount,
    } = transfer;
    run(ctx, "BEGIN").await;
    let before = balance(ctx, source).await;
    assert!(before >= amount, "the opening balance is enough for all");
    for (account, change) in [(source, -amount), (target, amount)] {
        run(
            ctx,
            &format!("UPDATE bank SET balance = balance + {change} WHERE id = {account}"),
        )
        .await;
    }
    let receipt = FIRST_RECEIPT + number;
    run(
        ctx,
        &format!("INSERT INTO bank VALUES ({receipt}, {amount}, {source}, {target})"),
    )
    .await;
    assert_eq!(balance(ctx, source).await, before - amount, "{transfer:?}");
}

async fn balance(ctx: &SessionContext, account: i64) -> i64 {
    let found = rows(
        ctx,
        &format!("SELECT balance FROM bank WHERE id = {account}"),
    )
    .await;
    let [balance] = found.as_slice() else {
        panic!("account {account}: {found:?}");
    };
    balance.parse().expect("a number")
}

async fn new_bank(level: &str, accounts: i64) -> TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    let ctx = session();
    run(
        &ctx,
        &format!(
            "CREATE EXTERNAL TABLE bank (id BIGINT, balance BIGINT, source BIGINT, target BIGINT) \
             STORED AS DELTA LOCATION '{}' OPTIONS ('delta.isolationLevel' '{level}')",
            location(folder.path()),
        ),
    )
    .await;
    for account in 0..accounts {
        let row = format!("({account}, {OPENING_BALANCE}, NULL, NULL)");
        run(&ctx, &format!("INSERT INTO bank VALUES {row}")).await;
    }
    folder
}

/// A session that works at the bank in `folder`.
async fn teller(folder: &Path) -> SessionContext {
    let ctx = session();
    open(&ctx, "bank", &location(folder)).await;
    ctx
}

fn location(folder: &Path) -> String {
    folder.join("bank").to_str().expect("utf-8").to_owned()
}

/// Every transfer is in the table once, and the balances are what the receipts say.
async fn check(
    folder: &Path,
    attempts: &Attempts,
    tasks: i64,
    rounds: i64,
    plan: fn(i64, i64) -> Transfer,
) {
    let ctx = teller(folder).await;
    let mut balances = BTreeMap::new();
    let mut receipts = Vec::new();
    for task in 0..tasks {
        for round in 0..rounds {
            let transfer = plan(task, round);
            assert!(attempts.contains_key(&transfer.number), "{transfer:?}");
            *balances.entry(transfer.source).or_insert(OPENING_BALANCE) -= transfer.amount;
            *balances.entry(transfer.target).or_insert(OPENING_BALANCE) += transfer.amount;
            receipts.push((
                FIRST_RECEIPT + transfer.number,
                format!(
                    "{}|{}|{}|{}",
                    FIRST_RECEIPT + transfer.number,
                    transfer.amount,
                    transfer.source,
                    transfer.target
                ),
            ));
        }
    }
    receipts.sort();
    let receipts: Vec<String> = receipts.into_iter().map(|(_, text)| text).collect();
    let found = rows(
        &ctx,
        &format!("SELECT * FROM bank WHERE id >= {FIRST_RECEIPT} ORDER BY id"),
    )
    .await;
    assert_eq!(found, receipts);
    let balances: Vec<String> = balances
        .into_iter()
        .map(|(account, balance)| format!("{account}|{balance}"))
        .collect();
    let found = rows(
        &ctx,
        &format!("SELECT id, balance FROM bank WHERE id < {FIRST_RECEIPT} ORDER BY id"),
    )
    .await;
    assert_eq!(found, balances);
}

fn at_first_attempt(attempts: &Attempts, level: &str) {
    let first = attempts.values().filter(|count| **count == 1).count();
    assert!(
        first * 100 >= attempts.len() * 95,
        "{level}: {first} of {} committed at their first attempt: {attempts:?}",
        attempts.len()
    );
}

/// In round 0 all tasks take from one account, each having read it before the first of them commits.
fn one_wins_the_first_round(attempts: &Attempts, tasks: i64, level: &str) {
    let winners = (0..tasks)
        .filter(|task| attempts[&(100 * task)] == 1)
        .count();
    assert_eq!(winners, 1, "{level}: {attempts:?}");
}
