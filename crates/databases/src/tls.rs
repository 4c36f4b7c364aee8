//! TLS as a URL asks for it, in each vendor's words.
//!
//! PostgreSQL's are libpq's `sslmode` and `sslrootcert`; MariaDB's and MySQL's are their clients' `ssl-mode` and `ssl-ca`.

use crate::driver::Failure;
use net::Trust;
use std::path::PathBuf;

/// What a URL says of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    /// In the clear.
    Never,
    /// Encrypted if the server can, whoever it is.
    #[default]
    IfOffered,
    /// Encrypted, with a server that is trusted so.
    With(Trust),
}

/// A URL without the parameters of these names, and their values.
fn taken<const N: usize>(url: &str, names: [&str; N]) -> (String, [Option<String>; N]) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), [const { None }; N]) };
    let mut values = [const { None }; N];
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match names.iter().position(|known| known.eq_ignore_ascii_case(name)) {
            Some(place) => values[place] = Some(value.to_owned()),
            None => kept.push(parameter),
        }
    }
    let address = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
    (address, values)
}

/// Refuses what this build cannot do.
fn possible(tls: Tls) -> Result<Tls, Failure> {
    match tls {
        Tls::With(_) if !cfg!(feature = "tls") => Err(Failure::mistake(net::NO_TLS)),
        tls => Ok(tls),
    }
}

/// As libpq reads it: `require` with a file of authorities checks them, too.
#[cfg(feature = "postgres")]
pub(crate) fn of_postgres(url: &str) -> Result<(String, Tls), Failure> {
    let (url, [mode, authorities]) = taken(url, ["sslmode", "sslrootcert"]);
    let file = authorities.filter(|file| file != "system").map(PathBuf::from);
    possible(match (mode.as_deref(), file) {
        (Some("disable"), _) => Tls::Never,
        (None | Some("prefer" | "allow"), None) => Tls::IfOffered,
        (Some("require"), None) => Tls::With(Trust::Anybody),
        (Some("verify-full"), None) => Tls::With(Trust::System),
        (Some("verify-full"), Some(file)) => Tls::With(Trust::File(file)),
        (None | Some("prefer" | "allow" | "require" | "verify-ca"), Some(file)) => {
            Tls::With(Trust::FileForAnyName(file))
        }
        (Some("verify-ca"), None) => {
            return Err(Failure::mistake(
                "sslmode=verify-ca needs sslrootcert=FILE; or write sslmode=verify-full",
            ));
        }
        (Some(other), _) => {
            return Err(Failure::mistake(format!(
                "sslmode={other}: expected disable, prefer, require, verify-ca or verify-full"
            )));
        }
    })
    .map(|tls| (url, tls))
}

/// As the vendor's clients read it, except that nothing is encrypted unless it is asked for.
#[cfg(feature = "mysql")]
pub(crate) fn of_mysql(url: &str) -> Result<(String, Tls), Failure> {
    let (url, [mode, authorities]) = taken(url, ["ssl-mode", "ssl-ca"]);
    let file = authorities.map(PathBuf::from);
    possible(match (mode.map(|mode| mode.to_ascii_uppercase()).as_deref(), file) {
        (Some("DISABLED"), _) => Tls::Never,
        (None, None) => Tls::IfOffered,
        (Some("REQUIRED"), None) => Tls::With(Trust::Anybody),
        (Some("VERIFY_IDENTITY"), None) => Tls::With(Trust::System),
        (Some("VERIFY_IDENTITY"), Some(file)) => Tls::With(Trust::File(file)),
        (None | Some("REQUIRED" | "VERIFY_CA"), Some(file)) => Tls::With(Trust::FileForAnyName(file)),
        (Some("VERIFY_CA"), None) => {
            return Err(Failure::mistake(
                "ssl-mode=VERIFY_CA needs ssl-ca=FILE; or write ssl-mode=VERIFY_IDENTITY",
            ));
        }
        (Some(other), _) => {
            return Err(Failure::mistake(format!(
                "ssl-mode={other}: expected DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"
            )));
        }
    })
    .map(|tls| (url, tls))
}

#[cfg(all(test, feature = "postgres", feature = "mysql", feature = "tls"))]
mod tests {
    use super::*;

    #[test]
    fn what_postgres_urls_ask_for() {
        let asked = |query: &str| of_postgres(&format!("postgres://u@h/d{query}"));
        let plain = "postgres://u@h/d".to_owned();
        let file = || PathBuf::from("/ca.pem");
        for (query, tls) in [
            ("", Tls::IfOffered),
            ("?sslmode=disable", Tls::Never),
            ("?sslmode=require", Tls::With(Trust::Anybody)),
            ("?sslmode=require&sslrootcert=/ca.pem", Tls::With(Trust::FileForAnyName(file()))),
            ("?sslmode=verify-ca&sslrootcert=/ca.pem", Tls::With(Trust::FileForAnyName(file()))),
            ("?sslrootcert=/ca.pem&sslmode=verify-full", Tls::With(Trust::File(file()))),
            ("?sslmode=verify-full&sslrootcert=system", Tls::With(Trust::System)),
        ] {
            assert_eq!(asked(query), Ok((plain.clone(), tls)), "{query}");
        }
        let (kept, _) = asked("?connect_timeout=3&sslmode=require&application_name=x").expect("a good URL");
        assert_eq!(kept, "postgres://u@h/d?connect_timeout=3&application_name=x");
        for wrong in ["?sslmode=on", "?sslmode=verify-ca"] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_mysql_urls_ask_for() {
        let asked = |query: &str| of_mysql(&format!("mysql://u@h/d{query}")).map(|(_, tls)| tls);
        assert_eq!(asked(""), Ok(Tls::IfOffered));
        assert_eq!(asked("?ssl-mode=required"), Ok(Tls::With(Trust::Anybody)));
        assert_eq!(asked("?ssl-mode=VERIFY_IDENTITY"), Ok(Tls::With(Trust::System)));
        assert_eq!(asked("?ssl-ca=/ca.pem"), Ok(Tls::With(Trust::FileForAnyName("/ca.pem".into()))));
        assert!(asked("?ssl-mode=maybe").is_err());
    }
}
