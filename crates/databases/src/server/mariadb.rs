//! Throw-away servers of MariaDB and MySQL.

use super::{Folder, ServerCommand, find_programs};
use crate::driver::Failure;
use crate::scratch::Janitor;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A new, empty data folder and the command that serves it. Root may connect without a password, by the
/// socket only.
pub(crate) struct DataFolder {
    pub(crate) folder: Folder,
    pub(crate) janitor: Janitor,
    pub(crate) command: ServerCommand,
    pub(crate) socket: PathBuf,
}

/// What all throw-away servers are started with; settings of the user come after and win. The binary log
/// is on, as in production, and gives transactions their place in the commit order.
const SETTINGS: [(&str, &str); 6] = [
    ("max_connections", "300"),
    ("log_bin", "binlog"),
    ("binlog_format", "ROW"),
    ("server_id", "1"),
    ("innodb_buffer_pool_size", "128M"),
    ("innodb_lock_wait_timeout", "10"),
];

const MISSING: &str = "no MariaDB server is installed: install the package mariadb-server \
     (apt-get install mariadb-server), or name the folder of its programs with mariadb:temp?bin=DIR";

const MISSING_MYSQL: &str = "no MySQL server is installed: name the folder of its program mysqld with \
     mysql:temp?bin=DIR (scripts/fetch-mysql-5.6 fetches one; mariadb:temp is MariaDB)";

/// Where programs are installed.
const PLACES: [&str; 5] =
    ["/usr/sbin", "/usr/local/sbin", "/usr/local/mysql/bin", "/usr/bin", "/opt/homebrew/bin"];

impl DataFolder {
    /// MariaDB's.
    pub(crate) fn of_mariadb(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        let server = find_programs(bin, "mariadbd", &PLACES.map(PathBuf::from), MISSING)?;
        let beside = [server.clone(), server.join("../bin"), server.join("../scripts"), "/usr/bin".into()];
        let install = find_programs(None, "mariadb-install-db", &beside, MISSING)?;
        let (folder, janitor) = Folder::new("taipan-mariadb-", "mysql")?;
        let mut args: Vec<OsString> = vec![
            "--no-defaults".into(),
            option("datadir", &folder.data()),
            "--auth-root-authentication-method=normal".into(),
            "--skip-test-db".into(),
            "--skip-log-bin".into(),
        ];
        if let Some(user) = folder.user_name() {
            args.push(format!("--user={user}").into());
        }
        folder.run(&ServerCommand { program: install.join("mariadb-install-db"), args, libraries: None })?;
        Ok(Self::served(folder, janitor, server.join("mariadbd"), None, settings))
    }

    /// MySQL's: from 5.7 on the server itself makes the data; before, it must have brought some along.
    pub(crate) fn of_mysql(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        let server = find_programs(bin, "mysqld", &PLACES.map(PathBuf::from), MISSING_MYSQL)?;
        let program = server.join("mysqld");
        let version = version(&program, &server)?;
        if version.contains("MariaDB") {
            let message = format!("{} is MariaDB: mariadb:temp starts it", program.display());
            return Err(Failure::mistake(message));
        }
        let brought = ["data/mysql", "../data/mysql", "../data"].map(|place| server.join(place));
        let brought = brought.iter().find(|place| place.join("mysql").join("user.frm").exists());
        let (folder, janitor) = Folder::new("taipan-mysql-", "mysql")?;
        let make = match brought {
            Some(brought) => ServerCommand {
                program: "/bin/cp".into(),
                args: vec!["-R".into(), brought.into(), folder.data().into()],
                libraries: None,
            },
            None => ServerCommand {
                program: program.clone(),
                args: vec![
                    "--no-defaults".into(),
                    "--initialize-insecure".into(),
                    option("datadir", &folder.data()),
                ],
                libraries: Some(server.clone()),
            },
        };
        folder.run(&make)?;
        let mut found = Self::served(folder, janitor, program, Some(server.clone()), &[]);
        // A build that was moved does not find its messages and characters by itself.
        if server.join("share").exists() {
            found.command.args.push(option("basedir", &server));
        }
        found.command.args.extend(settings.iter().map(setting));
        Ok(found)
    }

    fn served(
        folder: Folder,
        janitor: Janitor,
        program: PathBuf,
        libraries: Option<PathBuf>,
        settings: &[(String, String)],
    ) -> Self {
        let socket = folder.path.join("socket");
        let mut args: Vec<OsString> = vec![
            "--no-defaults".into(),
            option("datadir", &folder.data()),
            option("socket", &socket),
            option("pid-file", &folder.pid_file()),
            option("tmpdir", &folder.path),
            "--skip-networking".into(),
            "--skip-name-resolve".into(),
        ];
        for (name, value) in SETTINGS {
            args.push(format!("--{name}={value}").into());
        }
        args.extend(settings.iter().map(setting));
        Self { folder, janitor, command: ServerCommand { program, args, libraries }, socket }
    }
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(value);
    option
}

fn setting((name, value): &(String, String)) -> OsString {
    format!("--{name}={value}").into()
}

/// What a server says of itself before it is started.
fn version(program: &Path, libraries: &Path) -> Result<String, Failure> {
    let mut command = Command::new(program);
    let output = command.args(["--no-defaults", "--version"]).env("LD_LIBRARY_PATH", libraries).output();
    match output {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => Err(Failure::mistake(format!("cannot run {}: {error}", program.display()))),
    }
}
