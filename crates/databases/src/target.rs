//! Targets as people write them: `sqlite:`, `postgres:temp?fsync=off`, `mysql://root@localhost/test`.

use crate::driver::{Database, Failure};
use crate::{Address, Fjall, MariaDb, Passwords, Postgres, Probe, Redb, Sqlite};
use history::suggest;
use std::path::{Path, PathBuf};

/// A way to write a target, for help texts and error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetForm {
    /// The way it is written.
    pub form: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn form(form: &'static str, meaning: &'static str) -> TargetForm {
    TargetForm { form, meaning }
}

/// Every way to write a target.
pub const TARGETS: &[TargetForm] = &[
    form("sqlite:", "SQLite in a temporary folder, as sqlite:temp"),
    form("sqlite:PATH", "a SQLite file"),
    form("postgres:temp", "a temporary PostgreSQL server; ?bin=DIR&SETTING=VALUE&…"),
    form("postgres://USER@HOST/DATABASE", "a running PostgreSQL server"),
    form("mariadb:temp", "a temporary MariaDB server; ?bin=DIR&SETTING=VALUE&…"),
    form("mysql:temp", "a temporary MySQL server; ?bin=DIR&SETTING=VALUE&…"),
    form("mysql://USER@HOST/DATABASE", "a running MariaDB or MySQL server"),
    #[cfg(feature = "duckdb")]
    form("duckdb:", "DuckDB in a temporary folder"),
    #[cfg(feature = "duckdb")]
    form("duckdb:PATH", "a DuckDB file"),
    form("fjall:", "fjall in a temporary folder; fjall:?probe=size reads by way of size_of first"),
    form("fjall:PATH", "a folder of fjall"),
    form("redb:", "redb in a temporary folder"),
    form("redb:PATH", "a redb file"),
];

impl TargetForm {
    /// Whether the database speaks SQL.
    pub fn speaks_sql(&self) -> bool {
        !["fjall:", "redb:"].iter().any(|scheme| self.form.starts_with(scheme))
    }
}

/// Opens a target: starts the server it asks for, or connects to it. Passwords are those in the target.
pub fn open(target: &str) -> Result<Box<dyn Database>, Failure> {
    open_with(&Address::from(target), &Passwords::default())
}

/// As [`open`], with passwords from elsewhere.
pub fn open_with(address: &Address, passwords: &Passwords) -> Result<Box<dyn Database>, Failure> {
    let target = address.expose();
    let Some((scheme, rest)) = target.split_once(':') else { return Err(unknown(target)) };
    match scheme {
        "sqlite" if is_temporary(rest) => Ok(Box::new(Sqlite::temporary()?)),
        "sqlite" => Ok(Box::new(Sqlite::at(rest))),
        #[cfg(feature = "duckdb")]
        "duckdb" if is_temporary(rest) => Ok(Box::new(crate::DuckDb::temporary()?)),
        #[cfg(feature = "duckdb")]
        "duckdb" => Ok(Box::new(crate::DuckDb::at(Path::new(rest))?)),
        #[cfg(not(feature = "duckdb"))]
        "duckdb" => Err(Failure::mistake(
            "this build of taipan has no DuckDB; build it with --features duckdb (docs/book/src/databases/README.md)",
        )),
        "redb" if is_temporary(rest) => Ok(Box::new(Redb::temporary()?)),
        "redb" => Ok(Box::new(Redb::at(Path::new(rest))?)),
        "fjall" => open_fjall(target, rest),
        "postgres" | "postgresql" if rest.starts_with("//") => {
            Ok(Box::new(Postgres::at(address, passwords)?))
        }
        "mysql" | "mariadb" if rest.starts_with("//") => Ok(Box::new(MariaDb::at(address, passwords)?)),
        "postgres" | "postgresql" => {
            let temp = Temp::parse(target, rest)?;
            Ok(Box::new(Postgres::temporary(temp.bin.as_deref(), &temp.settings)?))
        }
        "mariadb" => {
            let temp = Temp::parse(target, rest)?;
            Ok(Box::new(MariaDb::temporary(temp.bin.as_deref(), &temp.settings)?))
        }
        "mysql" => {
            let temp = Temp::parse(target, rest)?;
            Ok(Box::new(MariaDb::temporary_mysql(temp.bin.as_deref(), &temp.settings)?))
        }
        _ => Err(unknown(target)),
    }
}

/// `sqlite:` and `sqlite:temp` are the same; a file of that name is `sqlite:./temp`.
fn is_temporary(rest: &str) -> bool {
    matches!(rest, "" | "temp")
}

/// Whether what a target names is still there when this program is not.
pub fn is_lasting(target: &str) -> bool {
    let rest = target.split_once(':').map_or("", |(_, rest)| rest);
    !is_temporary(rest.split_once('?').map_or(rest, |(path, _)| path))
}

fn open_fjall(target: &str, rest: &str) -> Result<Box<dyn Database>, Failure> {
    let (path, probe) = match rest.split_once('?') {
        None => (rest, Probe::Value),
        Some((path, "probe=value")) => (path, Probe::Value),
        Some((path, "probe=size")) => (path, Probe::Size),
        Some((_, option)) => {
            let message = format!("{}: {option:?} is not probe=value or probe=size", Address::from(target));
            return Err(Failure::mistake(message));
        }
    };
    let database =
        if is_temporary(path) { Fjall::temporary(probe)? } else { Fjall::at(Path::new(path), probe)? };
    Ok(Box::new(database))
}

fn unknown(target: &str) -> Failure {
    // An address is long; what is misspelt is what comes before it.
    let scheme = target.split(['/', '?']).next().unwrap_or(target);
    let meant =
        suggest::nearest(scheme, TARGETS.iter().map(|row| row.form).filter(|form| !form.contains("//")));
    let forms: Vec<&str> = TARGETS.iter().map(|target| target.form).collect();
    let target = Address::from(target);
    let expected = format!("expected one of: {}", forms.join(", "));
    Failure::mistake(match meant {
        Some(meant) => format!("unknown target {target:?}; did you mean {meant}? ({expected})"),
        None => format!("unknown target {target:?}; {expected}"),
    })
}

/// The options of a temporary server: `temp?bin=DIR&name=value&…`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Temp {
    bin: Option<PathBuf>,
    settings: Vec<(String, String)>,
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
