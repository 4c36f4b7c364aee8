//! `taipan levels`: the levels table.

use crate::console::{Console, Outcome};
use crate::exit::Exit;
use crate::flags::{LevelsFlags, LevelsOutput};
use crate::names::Names;
use checker::{Level, LevelRow, TABLE};
use std::io::Write;

pub(crate) fn run(flags: &LevelsFlags, console: &mut Console) -> Outcome {
    let names = Names::new(flags.levels_file.as_deref(), None)?;
    let levels = names.levels(&flags.levels, "[LEVEL]...")?;
    let wanted = |row: &(Level, &LevelRow)| levels.is_empty() || levels.contains(&row.0);
    let own = names.own().iter().filter_map(|level| Some((*level, level.row()?)));
    let table = TABLE.iter().map(|row| (row.level, row));
    let rows: Vec<&LevelRow> = table.chain(own).filter(wanted).map(|(_, row)| row).collect();
    let out = console.out();
    match flags.output {
        LevelsOutput::Json => write!(out, "{}", report::levels_lines(&rows))?,
        LevelsOutput::Text if levels.is_empty() => write!(out, "{}", report::levels_list(&rows))?,
        LevelsOutput::Text => write!(out, "{}", report::levels_details(&rows))?,
        LevelsOutput::Svg => writeln!(out, "{}", report::lattice(&[]))?,
        LevelsOutput::Html => writeln!(out, "{}", report::lattice_page(&[]))?,
    }
    Ok(Exit::Accepted)
}
