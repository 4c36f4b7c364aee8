//! Measurements of Taipan. `all` runs everything and writes down what came out; the single ones make their input from a
//! seed and print one table of CPU time and ratios, so that numbers of one run compare with each other and with nothing
//! else.
//!
//! ```text
//! cargo run --release -p taipan-bench -- all [--small] [--record] [--results FOLDER] [--peer NAME=PATH]…
//! cargo run --release -p taipan-bench -- growth|stages|every-level|workloads|corpus|side-by-side|ablations|online|rivals|printed
//! cargo run --release -p taipan-bench -- chart [FOLDER]
//! cargo run --release -p taipan-bench -- formats [TRANSACTIONS]
//! cargo run --release -p taipan-bench -- peers [TRANSACTIONS]
//! cargo run --release -p taipan-bench -- read HISTORY…
//! cargo run --release -p taipan-bench -- memory [TRANSACTIONS]
//! cargo run --release -p taipan-bench -- generate [TRANSACTIONS]
//! cargo run --release -p taipan-bench -- levels [TRANSACTIONS | --adya PROGRAM]
//! cargo run --release -p taipan-bench -- survey HISTORY…
//! cargo run --release -p taipan-bench -- timestamps [TRANSACTIONS [offline|online|sustained|socket]]
//! cargo run --release -p taipan-bench -- scale [TRANSACTIONS [checks|results|causal|volumes]]
//! cargo run --release -p taipan-bench -- checks [short|full] [--only NAME] [--limit SECONDS] [--strategies all|NAME,…] [--table FILE.md]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its measurements")]

mod checks;
mod formats;
mod generate;
mod levels;
mod memory;
mod peers;
mod scale;
mod suite;
mod timestamps;
mod workloads;

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = |transactions: &str, run: fn(usize) -> Result<(), Box<dyn Error>>| match transactions.parse() {
        Ok(transactions) => run(transactions),
        Err(_) => Err(USAGE.into()),
    };
    let result = match arguments[..] {
        ["formats"] => formats::run(200_000),
        ["peers"] => peers::run(200_000),
        ["memory"] => memory::run(200_000),
        ["generate"] => generate::run(200_000),
        ["formats", transactions] => run(transactions, formats::run),
        ["peers", transactions] => run(transactions, peers::run),
        ["memory", transactions] => run(transactions, memory::run),
        ["generate", transactions] => run(transactions, generate::run),
        ["timestamps"] => timestamps::run(1_000_000),
        ["timestamps", transactions] => run(transactions, timestamps::run),
        ["levels"] => levels::run(100_000, None),
        ["levels", "--adya", program] => levels::run(100_000, Some(program.as_ref())),
        ["levels", transactions] => run(transactions, |transactions| levels::run(transactions, None)),
        ["survey", ref paths @ ..] => levels::survey_files(paths),
        ["timestamps", transactions, part] => match transactions.parse() {
            Ok(transactions) => timestamps::run_part(transactions, part),
            Err(_) => Err(USAGE.into()),
        },
        ["scale"] => scale::run(1_000_000, None),
        ["scale", transactions] => run(transactions, |transactions| scale::run(transactions, None)),
        ["scale", transactions, part] => match transactions.parse() {
            Ok(transactions) => scale::run(transactions, Some(part)),
            Err(_) => Err(USAGE.into()),
        },
        ["read", ref paths @ ..] => peers::read(paths),
        ["convert", from, to] => memory::convert_and_measure(from.as_ref(), to.as_ref()),
        ["checks", ref rest @ ..] => checks::run(rest),
        ["check-one", file, level, limit, strategy] => {
            checks::check_one(file.as_ref(), level, limit, strategy)
        }
        ["scale-one", ref rest @ ..] => scale::measure_one(rest),
        ["chart"] => suite::chart("bench/results"),
        ["chart", results] => suite::chart(results),
        ["measure-one", ref rest @ ..] => suite::measure_one(rest),
        [name, ref rest @ ..] if name == "all" || suite::names().contains(&name) => suite::run(name, rest),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

const USAGE: &str = "usage: taipan-bench all [--small] [--record] [--results FOLDER] [--peer NAME=PATH]…
       taipan-bench growth|stages|every-level|workloads|corpus|side-by-side|ablations|online|rivals|printed, with the same flags
       taipan-bench chart [FOLDER]
       taipan-bench formats|peers|memory|generate|levels|timestamps [TRANSACTIONS]
       taipan-bench levels --adya PROGRAM
       taipan-bench survey|read HISTORY…
       taipan-bench timestamps TRANSACTIONS offline|online|sustained|socket
       taipan-bench checks [short|full] [--only NAME] [--limit SECONDS] [--strategies all|NAME,…] [--table FILE.md]";
