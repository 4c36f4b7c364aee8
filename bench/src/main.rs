//! Measurements of Taipan. `all` runs everything and writes down what came out; the single ones make their input from a
//! seed and print one table of CPU time and ratios, so that numbers of one run compare with each other and with nothing
//! else.
//!
//! `cargo run --release -p taipan-bench -- help` lists them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its measurements")]

mod checks;
mod flags;
mod formats;
mod generate;
mod levels;
mod memory;
mod peers;
mod scale;
mod suite;
mod timestamps;
mod workloads;

use flags::{Asked, Table};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = flags::command().get_matches();
    let result = match flags::asked(&matches) {
        Err(error) => error.exit(),
        Ok(Asked::Suite(name, flags)) => suite::run(&name, flags),
        Ok(Asked::Table(table)) => print(table),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

fn print(table: Table) -> Result<(), Box<dyn Error>> {
    match table {
        Table::Chart { results } => suite::chart(&results),
        Table::Formats(size) => formats::run(size.transactions),
        Table::Peers(size) => peers::run(size.transactions),
        Table::Read { paths } => peers::read(&paths),
        Table::Memory(size) => memory::run(size.transactions),
        Table::Generate(size) => generate::run(size.transactions),
        Table::Levels { size, adya } => levels::run(size.transactions, adya.as_deref()),
        Table::Survey { paths } => levels::survey_files(&paths),
        Table::Timestamps { size, part } => timestamps::run(size.transactions, part),
        Table::Scale { size, part } => scale::run(size.transactions, part),
        Table::Checks(flags) => checks::run(&flags),
        Table::Convert { from, to } => memory::convert_and_measure(&from, &to),
        Table::CheckOne { file, level, limit_s, strategy } => {
            checks::check_one(&file, &level, limit_s, strategy)
        }
        Table::ScaleOne { path, processes, workers, said } => {
            scale::measure_one(&path, processes, workers, &said)
        }
        Table::MeasureOne { file, level, strategy, without, limit_s } => {
            suite::measure_one(&file, &level, &strategy, &without, limit_s)
        }
    }
}
