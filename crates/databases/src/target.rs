//! Targets as people write them: `sqlite:`, `postgres:temp?fsync=off`, `mysql://root@localhost/test`.
//!
//! Each vendor's file has a [`Vendor`]: how its targets are written and how they are opened. A new vendor is a file with
//! such a row, and its place in [`VENDORS`].

use crate::driver::{Database, Failure};
use crate::{Address, Passwords};
use history::suggest;
use std::path::PathBuf;

/// A way to write a target, for help texts and error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetForm {
    /// The way it is written.
    pub form: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Whether the database speaks SQL.
    pub sql: bool,
}

/// A target of a SQL database.
pub(crate) const fn sql(form: &'static str, meaning: &'static str) -> TargetForm {
    TargetForm { form, meaning, sql: true }
}

/// A target of a key-value store.
pub(crate) const fn store(form: &'static str, meaning: &'static str) -> TargetForm {
    TargetForm { form, meaning, sql: false }
}

/// How the targets of a vendor are written and opened.
pub(crate) struct Vendor {
    /// What stands before the colon.
    pub(crate) schemes: &'static [&'static str],
    pub(crate) forms: &'static [TargetForm],
    pub(crate) open: fn(&Written<'_>) -> Result<Box<dyn Database>, Failure>,
}

/// A target as it was written.
pub(crate) struct Written<'a> {
    pub(crate) address: &'a Address,
    pub(crate) passwords: &'a Passwords,
    pub(crate) scheme: &'a str,
    /// What follows the colon.
    pub(crate) rest: &'a str,
}

impl Written<'_> {
    /// `sqlite:` and `sqlite:temp` are the same; a file of that name is `sqlite:./temp`.
    pub(crate) fn is_temporary(&self) -> bool {
        is_temporary(self.rest)
    }

    /// Whether it is a URL of a running server.
    pub(crate) fn is_url(&self) -> bool {
        self.rest.starts_with("//")
    }

    /// The options of a temporary server.
    pub(crate) fn temp(&self) -> Result<Temp, Failure> {
        Temp::parse(self.address.expose(), self.rest)
    }
}

/// The vendors of this build.
const VENDORS: &[&Vendor] = &[
    #[cfg(feature = "sqlite")]
    &crate::sqlite::VENDOR,
    #[cfg(feature = "postgres")]
    &crate::postgres::VENDOR,
    #[cfg(feature = "mysql")]
    &crate::mariadb::VENDOR,
    #[cfg(feature = "duckdb")]
    &crate::duckdb::VENDOR,
    #[cfg(feature = "fjall")]
    &crate::fjall::VENDOR,
    #[cfg(feature = "redb")]
    &crate::redb::VENDOR,
];

/// What a scheme needs to be built with.
const FEATURES: [(&str, &str); 8] = [
    ("sqlite", "sqlite"),
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("mariadb", "mysql"),
    ("mysql", "mysql"),
    ("duckdb", "duckdb"),
    ("fjall", "fjall"),
    ("redb", "redb"),
];

/// Every way to write a target.
pub fn targets() -> impl Iterator<Item = &'static TargetForm> + Clone {
    VENDORS.iter().flat_map(|vendor| vendor.forms)
}

/// Opens a target: starts the server it asks for, or connects to it. Passwords are those in the target.
pub fn open(target: &str) -> Result<Box<dyn Database>, Failure> {
    open_with(&Address::from(target), &Passwords::default())
}

/// As [`open`], with passwords from elsewhere.
pub fn open_with(address: &Address, passwords: &Passwords) -> Result<Box<dyn Database>, Failure> {
    let target = address.expose();
    let Some((scheme, rest)) = target.split_once(':') else { return Err(unknown(target)) };
    if let Some(vendor) = VENDORS.iter().find(|vendor| vendor.schemes.contains(&scheme)) {
        return (vendor.open)(&Written { address, passwords, scheme, rest });
    }
    match FEATURES.iter().find(|(known, _)| *known == scheme) {
        Some((_, feature)) => Err(Failure::mistake(format!(
            "this build of taipan has no {scheme} targets; build it with --features {feature} \
             (docs/book/src/databases/README.md)"
        ))),
        None => Err(unknown(target)),
    }
}

pub(crate) fn is_temporary(rest: &str) -> bool {
    matches!(rest, "" | "temp")
}

/// Whether what a target names is still there when this program is not.
pub fn is_lasting(target: &str) -> bool {
    let rest = target.split_once(':').map_or("", |(_, rest)| rest);
    !is_temporary(rest.split_once('?').map_or(rest, |(path, _)| path))
}

fn unknown(target: &str) -> Failure {
    // An address is long; what is misspelt is what comes before it.
    let scheme = target.split(['/', '?']).next().unwrap_or(target);
    let meant = suggest::nearest(scheme, targets().map(|row| row.form).filter(|form| !form.contains("//")));
    let forms: Vec<&str> = targets().map(|target| target.form).collect();
    let target = Address::from(target);
    let expected = format!("expected one of: {}", forms.join(", "));
    Failure::mistake(match meant {
        Some(meant) => format!("unknown target {target:?}; did you mean {meant}? ({expected})"),
        None => format!("unknown target {target:?}; {expected}"),
    })
}

/// The options of a temporary server: `temp?bin=DIR&name=value&…`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Temp {
    /// The folder of the server's programs.
    pub(crate) bin: Option<PathBuf>,
    pub(crate) settings: Vec<(String, String)>,
}

impl Temp {
    fn parse(target: &str, rest: &str) -> Result<Self, Failure> {
        let (word, query) = rest.split_once('?').unwrap_or((rest, ""));
        if word != "temp" {
            return Err(unknown(target));
        }
        let mut temp = Self::default();
        let target = Address::from(target);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let Some((name, value)) = option.split_once('=') else {
                let option = Address::from(option);
                return Err(Failure::mistake(format!(
                    "{target:?}: {option:?} is not of the form name=value"
                )));
            };
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(Failure::mistake(format!("{target:?}: {name:?} is not the name of a setting")));
            }
            match name {
                "bin" => temp.bin = Some(value.into()),
                name => temp.settings.push((name.to_owned(), value.to_owned())),
            }
        }
        Ok(temp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_throw_away_servers() {
        let temp =
            Temp::parse("", "temp?bin=/x/y&innodb_snapshot_isolation=ON&a=b=c").expect("it is well-formed");
        assert_eq!(temp.bin, Some("/x/y".into()));
        let settings = [("innodb_snapshot_isolation", "ON"), ("a", "b=c")];
        assert_eq!(temp.settings, settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(Temp::parse("", "temp"), Ok(Temp::default()));
    }

    #[test]
    fn what_is_temporary_does_not_last() {
        for target in ["sqlite:", "sqlite:temp", "redb:temp", "fjall:?probe=size", "postgres:temp?fsync=off"]
        {
            assert!(!is_lasting(target), "{target}");
        }
        for target in
            ["sqlite:h.db", "sqlite:./temp", "postgres://u@h/d", "mysql://u@h/d", "fjall:f?probe=size"]
        {
            assert!(is_lasting(target), "{target}");
        }
    }

    #[test]
    fn what_is_no_target_lists_those_that_are() {
        for target in
            ["", "oracle", "oracle:x", "postgres:", "postgres:tmp", "mariadb:temp?x", "postgres:temp?a b=1"]
        {
            let failure = open(target).err().expect("it is no target").to_string();
            assert!(failure.contains(target), "{failure}");
        }
        assert!(unknown("x").to_string().contains("postgres:temp"));
    }
}
