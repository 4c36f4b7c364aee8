//! A throw-away MariaDB server.

use super::{Folder, Janitor, ServerCommand, find_programs};
use crate::driver::Failure;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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

impl DataFolder {
    pub(crate) fn create(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        let places =
            ["/usr/sbin", "/usr/local/sbin", "/usr/local/mysql/bin", "/usr/bin", "/opt/homebrew/bin"];
        let server = find_programs(bin, "mariadbd", &places.map(PathBuf::from), MISSING)?;
        let beside = [server.clone(), server.join("../bin"), server.join("../scripts"), "/usr/bin".into()];
        let install = find_programs(None, "mariadb-install-db", &beside, MISSING)?;
        let (folder, janitor) = Folder::new("taipan-mariadb-", "mysql")?;
        let option = |name: &str, value: &Path| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(value);
            option
        };
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
        args.extend(settings.iter().map(|(name, value)| OsString::from(format!("--{name}={value}"))));
        let command = ServerCommand { program: server.join("mariadbd"), args, libraries: None };
        Ok(Self { folder, janitor, command, socket })
    }
}
