//! `taipan levels`: the levels table.

use crate::console::{Console, Outcome};
use crate::exit::Exit;
use crate::flags::{LevelsFlags, LevelsOutput};
use crate::names::Names;
use checker::{Implication, Level, LevelRow, TABLE, implications};
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(flags: &LevelsFlags, console: &mut Console) -> Outcome {
    let names = Names::new(flags.levels_file.as_deref(), None)?;
    let levels = names.levels(&flags.levels, "[LEVEL]...")?;
    let wanted = |row: &(Level, &LevelRow)| levels.is_empty() || levels.contains(&row.0);
    let own = names.own().iter().filter_map(|level| Some((*level, level.row()?)));
    let table = TABLE.iter().map(|row| (row.level, row));
    let rows: Vec<&LevelRow> = table.chain(own).filter(wanted).map(|(_, row)| row).collect();
    let out = console.out();
    match flags.output {
        LevelsOutput::Json => json(out, &rows)?,
        LevelsOutput::Text if levels.is_empty() => list(out, &rows)?,
        LevelsOutput::Text => details(out, &rows)?,
        LevelsOutput::Svg => writeln!(out, "{}", report::lattice(&[]))?,
        LevelsOutput::Html => writeln!(out, "{}", report::lattice_page(&[]))?,
    }
    Ok(Exit::Accepted)
}

fn list(out: &mut impl Write, rows: &[&LevelRow]) -> io::Result<()> {
    const HEADER: [&str; 2] = ["LEVEL", "BROKEN BY"];
    let widest = |name: fn(&LevelRow) -> &str, header: &str| {
        rows.iter().map(|row| name(row).len()).chain([header.len()]).max().unwrap_or(0)
    };
    let width = widest(|row| row.name, HEADER[0]);
    let anomalies = widest(|row| row.anomaly, HEADER[1]);
    writeln!(out, "{:width$}  {:anomalies$}  ALSO CALLED", HEADER[0], HEADER[1])?;
    for row in rows {
        let aliases = row.aliases.join(", ");
        let line = format!("{:width$}  {:anomalies$}  {aliases}", row.name, row.anomaly);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "\n`taipan levels LEVEL` shows details.")
}

fn details(out: &mut impl Write, rows: &[&LevelRow]) -> io::Result<()> {
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", row.name)?;
        writeln!(out, "  also called  {}", row.aliases.join(", "))?;
        writeln!(out, "  forbids      {}", row.forbids)?;
        writeln!(out, "  broken by    {}", row.anomaly)?;
        writeln!(out, "  implies      {}", phrase(&neighbours(row, Side::Weaker)))?;
        writeln!(out, "  implied by   {}", phrase(&neighbours(row, Side::Stronger)))?;
        writeln!(out, "  source       {}", row.source)?;
    }
    Ok(())
}

fn phrase(implications: &[(Level, bool)]) -> String {
    let name = |&(level, conditional): &(Level, bool)| {
        format!("{level}{}", if conditional { " (without predicates)" } else { "" })
    };
    match implications {
        [] => "no other".to_owned(),
        all => all.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

#[derive(Clone, Copy)]
enum Side {
    Weaker,
    Stronger,
}

/// The levels directly below or above one, and whether only for histories without predicates.
fn neighbours(row: &LevelRow, side: Side) -> Vec<(Level, bool)> {
    let level = row.level;
    if !TABLE.iter().any(|it| it.name == row.name) {
        // A row of one's own asks for no less than the row of the table that counts the same orders.
        return match side {
            Side::Weaker => level.row().map(|_| (level, false)).into_iter().collect(),
            Side::Stronger => Vec::new(),
        };
    }
    let other = |it: &Implication| match side {
        Side::Weaker => (it.stronger == level).then_some(it.weaker),
        Side::Stronger => (it.weaker == level).then_some(it.stronger),
    };
    implications().iter().filter_map(|it| Some((other(it)?, it.without_predicates))).collect()
}

#[derive(Serialize)]
struct Row {
    level: &'static str,
    aliases: &'static [&'static str],
    forbids: &'static str,
    anomaly: &'static str,
    session_order: bool,
    realtime_order: bool,
    implies: Vec<&'static str>,
    source: &'static str,
}

fn json(out: &mut impl Write, rows: &[&LevelRow]) -> io::Result<()> {
    for row in rows {
        let weaker = neighbours(row, Side::Weaker).into_iter().filter(|(_, conditional)| !conditional);
        let row = Row {
            level: row.name,
            aliases: row.aliases,
            forbids: row.forbids,
            anomaly: row.anomaly,
            session_order: row.level.session,
            realtime_order: row.level.realtime,
            implies: weaker.map(|(level, _)| level.name()).collect(),
            source: row.source,
        };
        writeln!(out, "{}", serde_json::to_string(&row)?)?;
    }
    Ok(())
}
