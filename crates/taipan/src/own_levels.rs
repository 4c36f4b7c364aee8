//! Levels of the user's own: the file of `--levels` is read before the flags that name its levels.

use checker::{Level, UnknownLevel, parse_levels};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

static LEVELS: OnceLock<Vec<Level>> = OnceLock::new();

/// Reads the file that the arguments name, if they do.
pub(crate) fn load(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let Some(file) = file(arguments) else { return Ok(()) };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let levels = parse_levels(&text).map_err(|bad| format!("{}: {bad}", file.display()))?;
    // The program loads once.
    let _ = LEVELS.set(levels);
    Ok(())
}

fn file(mut arguments: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    while let Some(argument) = arguments.next() {
        if argument == "--levels" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(file) = argument.to_str().and_then(|it| it.strip_prefix("--levels=")) {
            return Some(PathBuf::from(file));
        }
    }
    None
}

/// The levels of the file.
pub(crate) fn all() -> &'static [Level] {
    LEVELS.get().map_or(&[], Vec::as_slice)
}

/// A level of the file or of the table.
pub(crate) fn find(name: &str) -> Result<Level, UnknownLevel> {
    let own = all().iter().copied().find(|level| level.row().is_some_and(|row| row.is_called(name)));
    own.map_or_else(|| Level::parse(name), Ok)
}
