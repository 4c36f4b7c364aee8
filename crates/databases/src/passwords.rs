//! Passwords from where each vendor's own programs look for them, so that none has to be typed into a command.
//!
//! A password in the URL comes first. Then, for PostgreSQL: `PGPASSWORD`, and the file that `PGPASSFILE` names or
//! `~/.pgpass`. For MariaDB and MySQL: the group `[client]` of `~/.my.cnf`, then of `$MYSQL_HOME/my.cnf`, then
//! `MYSQL_PWD`.

use crate::driver::Failure;
use crate::secret::Secret;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where passwords are looked for.
#[derive(Clone, Debug, Default)]
pub struct Passwords {
    pg_password: Option<Secret>,
    pg_file: Option<PathBuf>,
    mysql_password: Option<Secret>,
    /// The first that has something counts.
    mysql_files: Vec<PathBuf>,
}

/// Whose password is looked for.
pub(crate) struct Login<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// What an option file says of a client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientOptions {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

impl Passwords {
    /// As the environment says; `variable` looks a variable up.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = path("HOME");
        let at_home = |file: &str| home.as_ref().map(|home| home.join(file));
        Self {
            pg_password: text("PGPASSWORD").map(Secret::new),
            pg_file: path("PGPASSFILE").or_else(|| at_home(".pgpass")),
            mysql_password: text("MYSQL_PWD").map(Secret::new),
            mysql_files: at_home(".my.cnf")
                .into_iter()
                .chain(path("MYSQL_HOME").map(|home| home.join("my.cnf")))
                .collect(),
        }
    }

    /// PostgreSQL's.
    pub(crate) fn of_postgres(&self, login: &Login<'_>) -> Result<Option<Secret>, Failure> {
        if let Some(password) = &self.pg_password {
            return Ok(Some(password.clone()));
        }
        let Some((file, text)) = self.pg_file.as_deref().and_then(readable) else { return Ok(None) };
        let found = in_password_file(&text, login);
        match found.is_some() && is_open_to_others(file) {
            true => Err(open_to_others(file)),
            false => Ok(found),
        }
    }

    /// MariaDB's and MySQL's.
    pub(crate) fn of_mysql(&self) -> Result<ClientOptions, Failure> {
        let mut options = ClientOptions::default();
        for (file, text) in self.mysql_files.iter().filter_map(|file| readable(file)) {
            let found = in_option_file(&text);
            if found.password.is_some() && is_open_to_others(file) {
                return Err(open_to_others(file));
            }
            options.user = options.user.or(found.user);
            options.password = options.password.or(found.password);
        }
        options.password = options.password.or_else(|| self.mysql_password.clone());
        Ok(options)
    }
}

/// A file that is there; most people have none.
fn readable(file: &Path) -> Option<(&Path, String)> {
    fs::read_to_string(file).ok().map(|text| (file, text))
}

fn open_to_others(file: &Path) -> Failure {
    let file = file.display();
    Failure::mistake(format!("{file} holds a password and other users can read it: chmod 600 {file}"))
}

#[cfg(unix)]
fn is_open_to_others(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

/// The first line `host:port:database:user:password` that fits, where `*` fits everything.
fn in_password_file(text: &str, login: &Login<'_>) -> Option<Secret> {
    let host = if login.host.starts_with('/') || login.host.is_empty() { "localhost" } else { login.host };
    let port = login.port.to_string();
    let wanted = [host, port.as_str(), login.database, login.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, fields) = fields.split_last()?;
        let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
        (fields.len() == wanted.len() && fields.iter().zip(&wanted).all(fits))
            .then(|| Secret::new(password.clone()))
    })
}

/// The five fields of a line; a backslash takes the next character as it is. Colons of the password need none.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let count = fields.len();
        let Some(last) = fields.last_mut() else { break };
        match c {
            '\\' => last.extend(chars.next()),
            ':' if count < 5 => fields.push(String::new()),
            c => last.push(c),
        }
    }
    fields
}

/// What the groups of every client say; later lines win.
fn in_option_file(text: &str) -> ClientOptions {
    let mut found = ClientOptions::default();
    let mut is_ours = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(group) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            is_ours = matches!(group.trim(), "client" | "client-mariadb" | "client-server");
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_ours) {
            match name.trim() {
                "user" => found.user = Some(option_value(value)),
                "password" => found.password = Some(Secret::new(option_value(value))),
                _ => {}
            }
        }
    }
    found
}

/// A value without its quotes, comment and escapes.
fn option_value(text: &str) -> String {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let text = match quote {
        Some(quote) => text[1..].rsplit_once(quote).map_or(&text[1..], |(inside, _)| inside),
        None => text.split(" #").next().unwrap_or_default().trim_end(),
    };
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('s') => value.push(' '),
            Some(c @ ('\\' | '"' | '\'')) => value.push(c),
            other => {
                value.push('\\');
                value.extend(other);
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_password_file() {
        let login = |host, database, user| Login { host, port: 5432, database, user };
        let text =
            "# comment\nother:*:*:*:no\nh:5432:shop:me:one\n*:*:*:a\\:b:t\\\\wo:2\nlocalhost:*:*:me:three\n";
        for (login, expected) in [
            (login("h", "shop", "me"), Some("one")),
            (login("h", "x", "a:b"), Some("t\\wo:2")),
            (login("/tmp", "x", "me"), Some("three")),
            (login("h", "x", "me"), None),
        ] {
            let found = in_password_file(text, &login);
            assert_eq!(found.as_ref().map(Secret::expose), expected);
        }
    }

    #[test]
    fn groups_of_an_option_file() {
        let text = "password=no\n[mysqld]\npassword=no\n[client]\n# c\nuser = me\npassword = \"a #b\\\\\" # c\n[x]\nuser=n\n";
        let found = in_option_file(text);
        assert_eq!(found.user.as_deref(), Some("me"));
        assert_eq!(found.password.as_ref().map(Secret::expose), Some("a #b\\"));
        assert_eq!(option_value(" s\\s\\q # comment"), "s \\q");
    }

    #[test]
    fn the_order_of_places() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str, mode: u32| {
            use std::os::unix::fs::PermissionsExt;
            fs::write(path(name), text).expect("it is ours");
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        let login = Login { host: "h", port: 1, database: "d", user: "u" };
        let with = |variables: &[(&str, &str)]| {
            let home = ("HOME", folder.path().to_str().expect("a name in UTF-8"));
            let all: Vec<(String, String)> =
                variables.iter().chain([&home]).map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            Passwords::of(|name| all.iter().find(|(other, _)| other == name).map(|(_, value)| value.into()))
        };
        assert_eq!(with(&[]).of_postgres(&login), Ok(None));
        write(".pgpass", "*:*:*:*:file\n", 0o600);
        let exposed = |found: Result<Option<Secret>, Failure>| {
            found.expect("it can be read").map(|secret| secret.expose().to_owned())
        };
        assert_eq!(exposed(with(&[]).of_postgres(&login)).as_deref(), Some("file"));
        assert_eq!(exposed(with(&[("PGPASSWORD", "env")]).of_postgres(&login)).as_deref(), Some("env"));
        assert_eq!(exposed(with(&[("PGPASSFILE", "/nowhere")]).of_postgres(&login)), None);
        write(".pgpass", "*:*:*:*:file\n", 0o644);
        let said = with(&[]).of_postgres(&login).expect_err("others can read it").to_string();
        assert!(said.contains("chmod 600"), "{said}");

        let password = |passwords: Passwords| {
            let found = passwords.of_mysql().expect("it can be read");
            found.password.map(|secret| secret.expose().to_owned())
        };
        assert_eq!(password(with(&[("MYSQL_PWD", "env")])).as_deref(), Some("env"));
        write("my.cnf", "[client]\npassword=of-home\n", 0o600);
        let home = folder.path().to_str().expect("a name in UTF-8").to_owned();
        assert_eq!(
            password(with(&[("MYSQL_HOME", &home), ("MYSQL_PWD", "env")])).as_deref(),
            Some("of-home")
        );
        write(".my.cnf", "[client]\npassword=mine\n", 0o600);
        assert_eq!(password(with(&[("MYSQL_HOME", &home), ("MYSQL_PWD", "env")])).as_deref(), Some("mine"));
        assert!(
            !format!("{:?}", with(&[("PGPASSWORD", "s3cr3t"), ("MYSQL_PWD", "s3cr3t")])).contains("s3cr3t")
        );
    }
}
