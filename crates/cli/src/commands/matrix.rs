//! `taipan matrix`: scripted schedules on a live database, seen against expected.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{MatrixFlags, MatrixOutput};
use crate::input::passwords;
use crate::recording;
use crate::sweeper::Sweeper;
use databases::{Cell, Isolation, Limit, MATRIX_LEFTOVER, Matrix, MatrixNews, SCHEDULES};
use report::{MatrixCell, MatrixLevel, MatrixRow};
use std::fmt::Display;
use std::io::Write;

pub(crate) fn run(flags: &MatrixFlags, console: &mut Console) -> Outcome {
    if let Some(name) = flags.trace.as_deref().filter(|name| !name.is_empty())
        && !SCHEDULES.iter().any(|schedule| is_asked_for(schedule.name, name))
    {
        let names = SCHEDULES.iter().map(|schedule| schedule.name);
        return Err(Stop::Error(history::suggest::unknown("anomaly", name, names)));
    }
    let matrices = play(flags, console)?;
    let Some(first) = matrices.first() else { return Ok(Exit::Accepted) };
    let told = told(first, flags);
    let rendered = match flags.output {
        MatrixOutput::Text => told.text(),
        MatrixOutput::Json => told.json_lines(),
        MatrixOutput::Html => told.html(),
    };
    write!(console.out(), "{rendered}")?;
    let unstable = matrices.iter().skip(1).filter(|matrix| !agree(first, matrix)).count();
    if unstable > 0 {
        console
            .error(format_args!("{unstable} of {} runs gave another result than the first", matrices.len()));
        return Ok(Exit::Violated);
    }
    Ok(if first.surprises().next().is_some() { Exit::Violated } else { Exit::Accepted })
}

/// Whether a schedule shows the anomaly of a name: the schedule of that name alone, else all that show it.
fn is_asked_for(schedule: &str, name: &str) -> bool {
    if SCHEDULES.iter().any(|one| one.name.eq_ignore_ascii_case(name)) {
        return schedule.eq_ignore_ascii_case(name);
    }
    report::anomaly(name).is_ok_and(|asked| report::anomaly(schedule) == Ok(asked))
}

fn said(error: impl Display) -> Stop {
    Stop::Error(error.to_string())
}

fn play(flags: &MatrixFlags, console: &mut Console) -> Result<Vec<Matrix>, Stop> {
    let progress = console.progress(0);
    progress.say(format_args!("opening {}", flags.target));
    let mut database = databases::open_with(&flags.target, &passwords()).map_err(said)?;
    database.set_limit(Limit::within(flags.patience));
    let _sweeper = Sweeper::start(flags.target.expose(), &[MATRIX_LEFTOVER.to_owned()])?;
    (1..=flags.runs)
        .map(|run| {
            let tell = |news| match news {
                MatrixNews::Done(done, all) => {
                    progress.say(format_args!("run {run} of {}: {done} of {all} schedules", flags.runs));
                }
                MatrixNews::Replaced(why) => {
                    progress.pause(|| console.note(format_args!("{why}: the server was replaced")));
                }
            };
            databases::matrix(&*database, tell).map_err(said)
        })
        .collect()
}

fn agree(one: &Matrix, other: &Matrix) -> bool {
    let seen = |matrix: &Matrix| -> Vec<bool> {
        matrix.rows.iter().flat_map(|row| row.cells.iter().map(|cell| cell.seen)).collect()
    };
    seen(one) == seen(other)
}

/// What is reported about a matrix.
fn told(matrix: &Matrix, flags: &MatrixFlags) -> report::Matrix {
    let is_traced = |schedule: &str| {
        flags.trace.as_deref().is_some_and(|name| name.is_empty() || is_asked_for(schedule, name))
    };
    let level = |level: &Isolation| MatrixLevel {
        name: level.name,
        promises: level.promises,
        guarantee: recording::guarantee(&matrix.database, level),
    };
    let cell = |cell: &Cell| MatrixCell {
        seen: cell.seen,
        expected: cell.expected,
        trace: cell.trace.iter().map(ToString::to_string).collect(),
    };
    let row = |row: &databases::MatrixRow| MatrixRow {
        anomaly: row.schedule.name,
        words: row.schedule.words(),
        about: row.schedule.about,
        cells: row.cells.iter().map(cell).collect(),
        is_traced: is_traced(row.schedule.name),
    };
    report::Matrix {
        database: matrix.database.clone(),
        levels: matrix.levels.iter().map(level).collect(),
        rows: matrix.rows.iter().map(row).collect(),
    }
}
