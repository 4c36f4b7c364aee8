//! Levels of the user's own, and a vendor's names: the file of `--levels` and `--profile` are looked at before the flags that
//! name levels.

use checker::{Level, UnknownLevel, meaning_here, parse_levels};
use databases::{PROFILES, Profile};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

static LEVELS: OnceLock<Vec<Level>> = OnceLock::new();
static PROFILE: OnceLock<Profile> = OnceLock::new();
static AMBIGUOUS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reads the file that the arguments name, if they do, and notes their profile.
pub(crate) fn load(arguments: &[OsString]) -> Result<(), String> {
    let profile = value_of("--profile", arguments);
    if let Some(profile) = profile.and_then(|name| Profile::of(name.to_str()?)) {
        let _ = PROFILE.set(profile);
    }
    let Some(file) = value_of("--levels", arguments).map(PathBuf::from) else { return Ok(()) };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let levels = parse_levels(&text).map_err(|bad| format!("{}: {bad}", file.display()))?;
    // The program loads once.
    let _ = LEVELS.set(levels);
    Ok(())
}

/// What an argument is set to.
fn value_of(flag: &str, arguments: &[OsString]) -> Option<OsString> {
    for (place, argument) in arguments.iter().enumerate() {
        if argument == flag {
            return arguments.get(place + 1).cloned();
        }
        let rest = argument.to_str().and_then(|it| it.strip_prefix(flag));
        if let Some(value) = rest.and_then(|it| it.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// The levels of the file.
pub(crate) fn all() -> &'static [Level] {
    LEVELS.get().map_or(&[], Vec::as_slice)
}

/// What names that mean several things mean here, as far as the arguments use them without a profile.
pub(crate) fn meanings() -> Vec<String> {
    let asked = AMBIGUOUS.lock().unwrap_or_else(PoisonError::into_inner);
    asked.iter().cloned().collect()
}

/// Notes what an ambiguous name means, and whose name of a level it is, too.
fn note_meaning(name: &str, level: Level) {
    let Some(meaning) = meaning_here(name).filter(|_| PROFILE.get().is_none()) else { return };
    let differs = |profile: &&Profile| {
        profile.level(name).is_some_and(|vendors| Level::parse(vendors.promises) != Ok(level))
    };
    let vendors: Vec<String> = PROFILES
        .iter()
        .filter(differs)
        .map(|profile| format!("for {}'s use --profile {}", profile.title, profile.name))
        .collect();
    let all: Vec<String> = std::iter::once(format!("{level} here is {meaning}")).chain(vendors).collect();
    AMBIGUOUS.lock().unwrap_or_else(PoisonError::into_inner).insert(all.join("; "));
}

/// A level of the file or of the table, else what the profile calls so.
pub(crate) fn find(name: &str) -> Result<Level, UnknownLevel> {
    let own = all().iter().copied().find(|level| level.row().is_some_and(|row| row.is_called(name)));
    let known = own.map_or_else(|| Level::parse(name).inspect(|&level| note_meaning(name, level)), Ok);
    known.or_else(|unknown| {
        let vendors = PROFILE.get().and_then(|profile| profile.level(name));
        vendors.map_or(Err(unknown), |level| Level::parse(level.promises))
    })
}
