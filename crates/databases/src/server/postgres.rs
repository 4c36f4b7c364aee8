//! A throw-away PostgreSQL server.

use super::{Folder, ServerCommand, find_programs};
use crate::driver::Failure;
use crate::scratch::Janitor;
use std::fs;
use std::path::{Path, PathBuf};

/// A new, empty cluster and the command that serves it. Any user may connect, by the socket only.
pub(crate) struct Cluster {
    pub(crate) folder: Folder,
    pub(crate) janitor: Janitor,
    pub(crate) command: ServerCommand,
}

/// What all throw-away servers are started with; settings of the user come after and win.
const SETTINGS: [(&str, &str); 6] = [
    ("listen_addresses", ""),
    ("max_connections", "300"),
    ("wal_level", "logical"),
    ("jit", "off"),
    // In its own folder, which goes whatever happens.
    ("dynamic_shared_memory_type", "mmap"),
    // A workload made of conflicts would spend its time waiting for deadlocks to be noticed: 1 s by default.
    ("deadlock_timeout", "10ms"),
];

const MISSING: &str = "no PostgreSQL server is installed: install the package postgresql \
     (apt-get install postgresql), or name the folder of its programs with postgres:temp?bin=DIR";

impl Cluster {
    pub(crate) fn create(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        let bin = find_programs(bin, "initdb", &places(), MISSING)?;
        let libraries = Some(bin.join("../lib")).filter(|folder| folder.is_dir());
        let (folder, janitor) = Folder::new("taipan-postgres-", "postgres")?;
        let data = folder.data();
        folder.run(&ServerCommand {
            program: bin.join("initdb"),
            args: ["--auth=trust", "--username=taipan", "--encoding=UTF8", "--locale=C", "--nosync", "-D"]
                .into_iter()
                .map(Into::into)
                .chain([data.clone().into_os_string()])
                .collect(),
            libraries: libraries.clone(),
        })?;
        let mut args = vec!["-D".into(), data.into_os_string(), "-k".into(), folder.path.clone().into()];
        let supported = supported_settings(&bin);
        for (name, value) in SETTINGS.iter().filter(|(name, _)| supported(name)) {
            args.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        for (name, value) in settings {
            args.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        let command = ServerCommand { program: bin.join("postgres"), args, libraries };
        Ok(Self { folder, janitor, command })
    }
}

/// `jit` came with version 11; a build that lacks it also lacks the library.
fn supported_settings(bin: &Path) -> impl Fn(&str) -> bool {
    let has_jit = ["../share/postgresql.conf.sample", "../share/postgresql/postgresql.conf.sample"]
        .iter()
        .map(|sample| bin.join(sample))
        .chain(sample_of_package(bin))
        .find_map(|sample| fs::read_to_string(sample).ok())
        .is_none_or(|sample| sample.contains("jit"));
    move |name| name != "jit" || has_jit
}

/// Debian keeps the sample under `/usr/share/postgresql/VERSION`.
fn sample_of_package(bin: &Path) -> Option<PathBuf> {
    let version = bin.parent()?.file_name()?;
    Some(Path::new("/usr/share/postgresql").join(version).join("postgresql.conf.sample"))
}

/// Where packages put the programs, the newest version first.
fn places() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin")))
        })
        .collect();
    versions.sort();
    let packaged = versions.into_iter().rev().map(|(_, path)| path);
    let others = ["/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
    packaged.chain(others.map(PathBuf::from)).collect()
}
