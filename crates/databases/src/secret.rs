//! Targets with passwords in them, and how they are shown: without.
//!
//! An [`Address`] is what a user typed where a database, a broker or a receiver is named. `Display` and `Debug` hide the
//! password, also in what is no well-formed URL: what could be a password is hidden rather than shown. Only
//! [`Address::expose`] gives the text as it was typed, for the driver.

use crate::driver::Failure;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What is shown in its place.
const HIDDEN: &str = "***";

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// An address as it was typed. See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Secret);

impl Address {
    /// The address as it was typed, with its password.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Refuses a user or password with a character that ends it, which a driver would take for something else.
    pub(crate) fn well_formed(&self, vendor: &str, variable: &str) -> Result<(), Failure> {
        let Some(rest) = self.expose().split_once("://").map(|(_, rest)| rest) else { return Ok(()) };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_odd = match authority.matches('@').count() {
            // Without a user there is a host and a port, and no `@` comes later.
            0 => rest.contains('@') && after_colon(authority).is_some_and(|port| !is_number(port)),
            1 => false,
            _ => true,
        };
        let mistake = || {
            Failure::mistake(format!(
                "{self} is not a {vendor} URL: the user or the password holds one of @ / ? #. Write it as %40, %2F, \
                 %3F or %23, or leave the password out and set {variable}"
            ))
        };
        if is_odd { Err(mistake()) } else { Ok(()) }
    }

    /// What is said of a URL that the driver does not understand.
    pub(crate) fn refused(&self, vendor: &str, error: &dyn fmt::Display) -> Failure {
        let error = error.to_string();
        let hidden = hidden_parts(self.expose());
        let shows = |&(start, end): &(usize, usize)| error.contains(&self.expose()[start..end]);
        match hidden.iter().any(shows) {
            true => Failure::mistake(format!("{self} is not a {vendor} URL")),
            false => Failure::mistake(format!("{self} is not a {vendor} URL: {error}")),
        }
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(Secret::new(text))
    }
}

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(self.expose()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", without_password(self.expose()))
    }
}

/// An address without what is, or could be, a password.
pub fn without_password(address: &str) -> String {
    let mut shown = String::with_capacity(address.len());
    let mut from = 0;
    for (start, end) in hidden_parts(address) {
        shown.push_str(&address[from..start]);
        shown.push_str(HIDDEN);
        from = end;
    }
    shown + &address[from..]
}

/// Arguments of a program that hold a password, also as `--flag=ADDRESS`, each with what is shown instead. A file whose name
/// has a colon and then an `@` may be an address without its slashes, and is shown as one.
pub fn with_passwords(arguments: impl Iterator<Item = OsString>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for argument in arguments {
        let argument = argument.to_string_lossy();
        let value = argument.strip_prefix("--").and_then(|flag| flag.split_once('=')).map(|(_, value)| value);
        let address = value.unwrap_or(&argument);
        let shown = without_password(address);
        if shown != address {
            found.push((address.to_owned(), shown));
        }
    }
    found
}

/// What an address of files begins with: an `@` in it is part of a name.
const OF_FILES: [&str; 5] = ["sqlite", "duckdb", "fjall", "redb", "sim"];

/// The places in an address that are not shown, in order and apart.
fn hidden_parts(address: &str) -> Vec<(usize, usize)> {
    let mut parts: Vec<(usize, usize)> = login(address).into_iter().chain(parameters(address)).collect();
    parts.retain(|(start, end)| start < end);
    parts.sort_unstable();
    let mut apart: Vec<(usize, usize)> = Vec::new();
    for (start, end) in parts {
        match apart.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => apart.push((start, end)),
        }
    }
    apart
}

/// The password before the host: from the first colon to the last `@`, because a password may hold an `@` itself.
fn login(address: &str) -> Option<(usize, usize)> {
    let scheme = address.split(':').next().unwrap_or_default();
    let start = match address.find("://") {
        Some(at) => at + 3,
        None if OF_FILES.contains(&scheme) => return None,
        // `postgres:user:password@host`, or `user:password@host` where the scheme was forgotten.
        None => 0,
    };
    let rest = &address[start..];
    if let Some(end) = rest.rfind('@') {
        let colon = rest[..end].find(':')?;
        return Some((start + colon + 1, start + end));
    }
    // `postgres://user:password` where the host was forgotten. A port is a number.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let port = after_colon(authority)?;
    let end = start + authority.len();
    (start > 0 && !is_number(port)).then_some((end - port.len(), end))
}

/// What comes after the host's colon; the colons of an address in brackets are not it.
fn after_colon(authority: &str) -> Option<&str> {
    let after = authority.rfind(']').map_or(0, |end| end + 1);
    authority[after..].split_once(':').map(|(_, port)| port)
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}

/// What the values of parameters are hidden after, whatever stands before these words.
const SECRET_NAMES: [&str; 5] = ["password=", "passwd=", "pwd=", "secret=", "token="];

/// The values of parameters that are passwords: `?password=…`, `password=… host=…`.
fn parameters(address: &str) -> Vec<(usize, usize)> {
    let lower = address.to_ascii_lowercase();
    let mut parts = Vec::new();
    for name in SECRET_NAMES {
        for (at, _) in lower.match_indices(name) {
            let start = at + name.len();
            let len = lower[start..].find(['&', ' ', '#']).unwrap_or(lower.len() - start);
            parts.push((start, start + len));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (typed, shown) in [
            ("postgres://u:s3cr3t@host:5432/db", "postgres://u:***@host:5432/db"),
            ("postgres://u:s3@cr3t@host/db", "postgres://u:***@host/db"),
            ("postgres://u:s3/cr3t@host/db", "postgres://u:***@host/db"),
            ("postgres://u:s3:cr3t@host", "postgres://u:***@host"),
            ("postgres://:s3cr3t@host", "postgres://:***@host"),
            ("postgres://u:s3cr3t", "postgres://u:***"),
            ("postgres://u:s3cr3t/db", "postgres://u:***/db"),
            ("postgres:u:s3cr3t@host", "postgres:***@host"),
            ("u:s3cr3t@host/db", "u:***@host/db"),
            ("mysql://u@host/db?password=s3cr3t&x=1", "mysql://u@host/db?password=***&x=1"),
            ("host=h PassWord=s3cr3t user=u", "host=h PassWord=*** user=u"),
            ("redis://:s3cr3t@h?stream=a", "redis://:***@h?stream=a"),
            ("http://u:s3cr3t@h:80/x?token=s3cr3t", "http://u:***@h:80/x?token=***"),
            // Nothing to hide.
            ("postgres://u@host:5432/db", "postgres://u@host:5432/db"),
            ("postgres://host:5432/db", "postgres://host:5432/db"),
            ("postgres://[::1]:5432/db", "postgres://[::1]:5432/db"),
            ("postgres://[::1]/db", "postgres://[::1]/db"),
            ("sqlite:a:b@c", "sqlite:a:b@c"),
            ("postgres:temp?fsync=off", "postgres:temp?fsync=off"),
            ("", ""),
        ] {
            assert_eq!(without_password(typed), shown);
            let address = Address::from(typed);
            assert!(!format!("{address} {address:?}").contains("cr3t"));
        }
        assert_eq!(format!("{0} {0:?}", Secret::new("s3cr3t")), "*** ***");
    }

    #[test]
    fn arguments_with_passwords_are_found() {
        let typed = [
            "check",
            "postgres://u:p@h",
            "--broker=redis://:p@h",
            "a@b:c",
            "sqlite:a:b@c",
            "u:p@h",
            "redis//:p@h",
        ];
        let found = with_passwords(typed.iter().map(OsString::from));
        let shown: Vec<&str> = found.iter().map(|(_, shown)| shown.as_str()).collect();
        assert_eq!(shown, ["postgres://u:***@h", "redis://:***@h", "u:***@h", "redis//:***@h"]);
    }

    #[test]
    fn malformed_urls_are_refused_without_the_password() {
        for typed in ["postgres://u:s3@cr3t@h", "postgres://u:s3/cr3t@h/d", "postgres://u:s3?cr3t@h"] {
            let address = Address::from(typed);
            let said = address.well_formed("PostgreSQL", "PGPASSWORD").expect_err(typed).to_string();
            assert!(said.contains("%40") && !said.contains("cr3t") && !said.contains("s3"), "{said}");
        }
        for typed in ["postgres://u:p@h/d", "postgres://u@h:1/d", "postgres://h/d?x=a@b", "postgres://h:1"] {
            assert_eq!(Address::from(typed).well_formed("", ""), Ok(()), "{typed}");
        }
        let address = Address::from("postgres://u:s3cr3t@h");
        assert!(!address.refused("PostgreSQL", &"s3cr3t is no port").to_string().contains("s3cr3t"));
        assert!(address.refused("PostgreSQL", &"no port").to_string().contains("no port"));
    }
}
