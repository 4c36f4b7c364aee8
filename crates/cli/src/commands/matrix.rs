//! `taipan matrix`: scripted schedules on a live database, seen against expected.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{MatrixFlags, MatrixOutput};
use crate::input::passwords;
use crate::recording;
use crate::sweeper::Sweeper;
use databases::{Cell, Limit, MATRIX_LEFTOVER, Matrix, MatrixNews, SCHEDULES};
use serde_json::json;
use std::fmt::{Display, Write as _};
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
    match flags.output {
        MatrixOutput::Text => text(first, flags, console)?,
        MatrixOutput::Json => json_lines(first, console)?,
        MatrixOutput::Html => write!(console.out(), "{}", page(first))?,
    }
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

/// What a cell says; `!`: not what is known of the database.
fn mark(cell: &Cell) -> String {
    format!("{}{}", if cell.seen { "possible" } else { "-" }, if cell.is_surprising() { " !" } else { "" })
}

/// The width of the widest cell, `possible !`.
const CELL_WIDTH: usize = 10;

fn text(matrix: &Matrix, flags: &MatrixFlags, console: &mut Console) -> Result<(), Stop> {
    let out = console.out();
    writeln!(out, "{}: anomalies by isolation level\n", matrix.database)?;
    let names = matrix.levels.iter().map(|level| level.name.to_owned()).collect();
    let head = line("", names, matrix);
    let width = head.chars().count();
    writeln!(out, "{head}")?;
    for row in &matrix.rows {
        let cells = line(row.schedule.name, row.cells.iter().map(mark).collect(), matrix);
        writeln!(out, "{cells:width$}  {}", row.schedule.words())?;
    }
    writeln!(
        out,
        "\npossible: the anomaly occurred. -: it did not. !: differs from what is known of this database."
    )?;
    for guarantee in guarantees(matrix) {
        writeln!(out, "{guarantee}")?;
    }
    for (schedule, level, cell) in matrix.surprises() {
        let expected = if cell.seen { "was not expected" } else { "was expected" };
        writeln!(out, "\n{} at {} {expected}: {}", schedule.name, level.name, schedule.about)?;
        steps(out, cell)?;
    }
    let Some(name) = &flags.trace else { return Ok(()) };
    for row in matrix.rows.iter().filter(|row| name.is_empty() || is_asked_for(row.schedule.name, name)) {
        for (cell, level) in row.cells.iter().zip(&matrix.levels) {
            let seen = if cell.seen { "occurs" } else { "does not occur" };
            writeln!(out, "\n{} at {} {seen}: {}", row.schedule.name, level.name, row.schedule.about)?;
            steps(out, cell)?;
        }
    }
    Ok(())
}

/// What the database guarantees at each of its levels.
fn guarantees(matrix: &Matrix) -> Vec<String> {
    matrix.levels.iter().map(|level| recording::guarantee(&matrix.database, level)).collect()
}

/// A row of the table: each cell as wide as its level's name.
fn line(head: &str, cells: Vec<String>, matrix: &Matrix) -> String {
    let mut line = format!("{head:16}");
    for (cell, level) in cells.iter().zip(&matrix.levels) {
        let _ = write!(line, "  {cell:width$}", width = level.name.chars().count().max(CELL_WIDTH));
    }
    line.trim_end().to_owned()
}

fn steps(out: &mut impl Write, cell: &Cell) -> Result<(), Stop> {
    for line in &cell.trace {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn json_lines(matrix: &Matrix, console: &mut Console) -> Result<(), Stop> {
    for row in &matrix.rows {
        for (cell, level) in row.cells.iter().zip(&matrix.levels) {
            let trace: Vec<String> = cell.trace.iter().map(ToString::to_string).collect();
            let line = json!({
                "database": matrix.database,
                "anomaly": row.schedule.name,
                "about": row.schedule.about,
                "isolation": level.name,
                "promises": level.promises,
                "seen": cell.seen,
                "expected": cell.expected,
                "trace": trace,
            });
            writeln!(console.out(), "{line}")?;
        }
    }
    Ok(())
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
    table{border-collapse:collapse}th,td{padding:.3rem .8rem;border-bottom:1px solid #8884;text-align:left}\
    th small{font-weight:400}td.x{background:#e5484d33}td.surprise{outline:3px solid #e5484d}details{margin:.3rem 0}\
    pre{overflow-x:auto;background:#8881;padding:.6rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}";

/// One page that needs nothing beside it; every cell opens to its steps.
fn page(matrix: &Matrix) -> String {
    let title = format!("Anomaly matrix of {}", escaped(&matrix.database));
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\
         <h1>{title}</h1><p>possible: the anomaly occurred; -: it did not; framed: differs from what is known of this database.</p><table><tr><th>anomaly</th>"
    );
    for level in &matrix.levels {
        let _ = write!(page, "<th>{}</th>", escaped(level.name));
    }
    page.push_str("</tr>");
    for row in &matrix.rows {
        let _ = write!(
            page,
            "<tr><th title=\"{}\">{} <small>{}</small></th>",
            escaped(row.schedule.about),
            escaped(row.schedule.name),
            escaped(row.schedule.words())
        );
        for cell in &row.cells {
            let class = match (cell.seen, cell.is_surprising()) {
                (true, true) => "x surprise",
                (true, false) => "x",
                (false, true) => "surprise",
                (false, false) => "",
            };
            let trace: Vec<String> = cell.trace.iter().map(|line| escaped(&line.to_string())).collect();
            let _ = write!(
                page,
                "<td class=\"{class}\"><details><summary>{}</summary><pre>{}</pre></details></td>",
                mark(cell),
                trace.join("\n")
            );
        }
        page.push_str("</tr>");
    }
    page.push_str("</table><ul>");
    for guarantee in guarantees(matrix) {
        let _ = write!(page, "<li>{}</li>", escaped(&guarantee));
    }
    page.push_str("</ul><dl>");
    for row in &matrix.rows {
        let _ =
            write!(page, "<dt>{}</dt><dd>{}</dd>", escaped(row.schedule.name), escaped(row.schedule.about));
    }
    page.push_str("</dl></html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
