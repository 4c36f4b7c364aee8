//! What names of levels mean: in the file of `--levels`, in the table, and to the database of `--profile`.

use crate::console::Stop;
use crate::flags::LevelName;
use checker::{Level, UnknownLevel, Vendor, meaning_here, parse_levels};
use databases::{PROFILES, Profile};
use std::collections::BTreeSet;
use std::path::Path;
use taipan::{Asked, LevelNames};

/// The names that are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    own: Vec<Level>,
    profile: Option<Profile>,
}

impl Names {
    /// Those of a file of custom levels, and of a database.
    pub(crate) fn new(file: Option<&Path>, profile: Option<Profile>) -> Result<Self, Stop> {
        let own = match file {
            None => Vec::new(),
            Some(file) => {
                let name = file.display();
                let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
                parse_levels(&text).map_err(|bad| format!("{name}: {bad}"))?
            }
        };
        Ok(Self { own, profile })
    }

    /// The custom levels.
    pub(crate) fn own(&self) -> &[Level] {
        &self.own
    }

    /// A custom level or one of the table, else what the database calls so.
    pub(crate) fn find(&self, name: &str) -> Result<Level, UnknownLevel> {
        let own = self.own.iter().copied().find(|level| level.row().is_some_and(|row| row.is_called(name)));
        let known = own.map_or_else(|| Level::parse(name), Ok);
        known.or_else(|unknown| {
            let vendors = self.profile.and_then(|profile| profile.level(name));
            vendors.map_or(Err(unknown), |level| Level::parse(level.promises))
        })
    }

    /// The levels that were typed for an argument.
    pub(crate) fn levels(&self, typed: &[LevelName], argument: &str) -> Result<Vec<Level>, Stop> {
        typed.iter().map(|name| self.level(name, argument)).collect()
    }

    /// The level that was typed for an argument.
    pub(crate) fn level(&self, LevelName(name): &LevelName, argument: &str) -> Result<Level, Stop> {
        self.find(name).map_err(|unknown| Stop::Usage {
            argument: argument.to_owned(),
            value: name.clone(),
            why: format!("{unknown} (see `taipan levels`)"),
        })
    }

    /// What is asked with levels: the database's own, if there is a profile.
    pub(crate) fn asked(&self, levels: &[Level]) -> Result<Vec<Asked>, String> {
        match self.profile {
            None => Ok(levels.iter().copied().map(Asked::from).collect()),
            Some(profile) if levels.is_empty() => Err(format!(
                "--profile {} needs --level with one of its level names: {}",
                profile.name,
                level_names(&profile)
            )),
            Some(profile) => levels.iter().map(|&level| of_vendor(&profile, level)).collect(),
        }
    }

    /// What names mean that mean several things, as far as they were typed without a profile.
    pub(crate) fn meanings(&self, typed: &[LevelName]) -> BTreeSet<String> {
        let typed = typed.iter().filter(|_| self.profile.is_none());
        typed.filter_map(|LevelName(name)| self.meaning(name)).collect()
    }

    /// What an ambiguous name means, and whose name of another level it is.
    fn meaning(&self, name: &str) -> Option<String> {
        let (meaning, level) = (meaning_here(name)?, self.find(name).ok()?);
        let differs = |profile: &&Profile| {
            profile.level(name).is_some_and(|vendors| Level::parse(vendors.promises) != Ok(level))
        };
        let vendors =
            PROFILES.iter().filter(differs).map(|it| format!("for {}'s use --profile {}", it.title, it.name));
        let all: Vec<String> = std::iter::once(format!("{level} here is {meaning}")).chain(vendors).collect();
        Some(all.join("; "))
    }

    /// The names for the library.
    pub(crate) fn shared(&self) -> LevelNames {
        let names = self.clone();
        LevelNames::new(move |name| names.find(name))
    }
}

/// What a database calls a level.
fn of_vendor(profile: &Profile, level: Level) -> Result<Asked, String> {
    let found = profile.level(level.name()).ok_or_else(|| {
        format!("{} has no level {level}; expected one of: {}", profile.name, level_names(profile))
    })?;
    let judged = found.logical.unwrap_or(found.promises);
    let vendor = Vendor {
        database: profile.name,
        product: profile.title,
        level: found.name,
        logical: found.logical.is_some(),
    };
    let level = Level::parse(judged).map_err(|unknown| unknown.to_string())?;
    Ok(Asked { level, vendor: Some(vendor) })
}

fn level_names(profile: &Profile) -> String {
    let names: Vec<&str> = profile.levels.iter().map(|level| level.name).collect();
    names.join(", ")
}
