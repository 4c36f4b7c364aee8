//! Values of flags: how each is parsed, and what shells offer for it.

use clap::builder::{PossibleValue, TypedValueParser};
use history::formats::Format;
use history::suggest;
use std::ffi::OsStr;
use std::time::Duration;

/// A parser that also lists values for shell completions. Unlike clap's own list, it takes aliases and values with a part
/// that the list cannot know.
#[derive(Clone)]
pub(super) struct Offered<T> {
    parse: fn(&str) -> Result<T, String>,
    values: fn() -> Vec<PossibleValue>,
}

impl<T> Offered<T> {
    pub(super) const fn new(
        parse: fn(&str) -> Result<T, String>,
        values: fn() -> Vec<PossibleValue>,
    ) -> Self {
        Self { parse, values }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&self.parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

/// The name of a level as it was typed. Which level it is depends on `--levels` and `--profile`, see [`crate::names`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelName(pub(crate) String);

/// A level by any of its names, or of the file of `--levels`.
pub(super) fn levels() -> Offered<LevelName> {
    Offered::new(
        |name| Ok(LevelName(name.to_owned())),
        || checker::TABLE.iter().map(|row| PossibleValue::new(row.name)).collect(),
    )
}

/// A database whose names of levels are known.
pub(super) fn profiles() -> Offered<::databases::Profile> {
    Offered::new(
        |name| {
            let known = ::databases::PROFILES.map(|profile| profile.name);
            ::databases::Profile::of(name).ok_or_else(|| suggest::unknown("profile", name, known))
        },
        || ::databases::PROFILES.map(|profile| PossibleValue::new(profile.name)).into(),
    )
}

/// A format by name.
pub(super) fn formats() -> Offered<Format> {
    Offered::new(
        |name| {
            let known = Format::ALL.iter().map(|format| format.name());
            Format::from_name(name).ok_or_else(|| suggest::unknown("format", name, known))
        },
        || Format::ALL.iter().map(|format| PossibleValue::new(format.name())).collect(),
    )
}

/// A workload by name.
pub(super) fn workloads() -> Offered<String> {
    Offered::new(
        |name| match workload::Workload::named(name) {
            Ok(_) => Ok(name.to_owned()),
            Err(unknown) => Err(unknown.to_string()),
        },
        || described(workload::Workload::names()),
    )
}

/// A bug to plant: NAME, NAME:COUNT or NAME:RATE.
pub(super) fn bugs() -> Offered<String> {
    Offered::new(
        |text| {
            let name = text.split(':').next().unwrap_or_default();
            workload::Bug::parse(name).map_err(|unknown| unknown.to_string())?;
            Ok(text.to_owned())
        },
        || described(workload::Bug::all().map(|bug| (bug.name(), bug.about()))),
    )
}

/// A database, also a simulated one.
pub(super) fn targets() -> Offered<::databases::Address> {
    Offered::new(
        |text| Ok(::databases::Address::from(text)),
        || {
            let live = ::databases::targets().map(|row| (row.form, row.meaning));
            described(live).into_iter().chain(strengths()).collect()
        },
    )
}

/// A database that speaks SQL.
pub(super) fn sql_targets() -> Offered<::databases::Address> {
    Offered::new(
        |text| Ok(::databases::Address::from(text)),
        || {
            let sql = ::databases::targets().filter(|row| row.sql);
            described(sql.map(|row| (row.form, row.meaning)))
        },
    )
}

/// A simulated database.
pub(super) fn simulated() -> Offered<workload::Target> {
    Offered::new(|text| text.parse().map_err(|error: workload::TargetError| error.to_string()), strengths)
}

fn strengths() -> Vec<PossibleValue> {
    workload::Strength::ALL.map(|strength| PossibleValue::new(format!("sim:{}", strength.name()))).into()
}

/// A setting of a workload, NAME=VALUE.
pub(super) fn settings() -> Offered<(String, String)> {
    Offered::new(
        |text| {
            let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as keys=100")?;
            Ok((name.to_owned(), value.to_owned()))
        },
        || {
            let rows = workload::Config::settings();
            rows.map(|(name, about)| PossibleValue::new(format!("{name}=")).help(about)).collect()
        },
    )
}

fn described(rows: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<PossibleValue> {
    rows.map(|(name, about)| PossibleValue::new(name).help(about)).collect()
}

/// The long help of a flag that takes a format.
pub(super) fn format_help(first: &str) -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    format!("{first}\n\nFormats: {}.", names.join(", "))
}

/// A row of a table in the help, with the text beside the name wrapped at 80 columns.
pub(super) fn row(width: usize, name: &str, about: &str) -> String {
    const COLUMNS: usize = 80;
    let gap = width + 3;
    let mut row = format!("  {name:width$}");
    // A name that is too long has its text on the next line.
    let mut column = if name.chars().count() > width { COLUMNS } else { gap - 1 };
    for word in about.split(' ') {
        let length = word.chars().count();
        if column + 1 + length > COLUMNS {
            row = format!("{}\n{:gap$}{word}", row.trim_end(), "");
            column = gap + length;
        } else {
            row = format!("{row} {word}");
            column += 1 + length;
        }
    }
    row + "\n"
}

/// A time in seconds, with a fraction if need be.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "expected a number of seconds, such as 60 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "expected a number of seconds that is not negative".to_owned())
}

/// A size in bytes: `500000000`, `500M`, `4G`, `1.5GiB`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes, such as 500000000, 500M or 4G".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let power = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let bytes = number * 1024f64.powi(power);
    if bytes.is_finite() && bytes >= 0.0 { Ok(bytes as u64) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_people_write() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("1000", Ok(1000)),
            ("4K", Ok(4096)),
            ("1.5k", Ok(1536)),
            ("2M", Ok(2 << 20)),
            ("2MiB", Ok(2 << 20)),
            ("3GB", Ok(3 << 30)),
            ("1t", Ok(1 << 40)),
            ("-1", Err(())),
            ("lots", Err(())),
            ("4X", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(bytes(text).map_err(|_| ()), expected, "{text}");
        }
    }

    #[test]
    fn times_that_people_write() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["-1", "NaN", "inf", "soon", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
