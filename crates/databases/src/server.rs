//! Throw-away servers: a private process on a unix socket in a temporary folder, and nothing left of it
//! afterwards.
//!
//! Nothing is left even if this program is killed: see [`scratch`](crate::scratch).
//!
//! Servers refuse to run as root. Started as root, everything here runs as the vendor's own user, or as
//! `nobody`.

#[cfg(feature = "mysql")]
pub(crate) mod mariadb;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;

use crate::driver::{Failure, Fault};
use crate::scratch::{self, Janitor};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A running throw-away server.
#[derive(Debug)]
pub(crate) struct Server {
    folder: Folder,
    command: ServerCommand,
    child: Mutex<Child>,
    _janitor: Janitor,
}

/// How the server is started, and started again.
#[derive(Clone, Debug)]
pub(crate) struct ServerCommand {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The folder of shared libraries, for builds that bring their own.
    pub(crate) libraries: Option<PathBuf>,
}

/// How long a server may take to start.
const START_WAIT: Duration = Duration::from_secs(60);
/// How long a server may take to end before it is killed: what it would still write is thrown away.
const END_WAIT: Duration = Duration::from_secs(2);

impl Server {
    /// Starts a server and waits until `ready` says it answers.
    pub(crate) fn start(
        folder: Folder,
        janitor: Janitor,
        command: ServerCommand,
        ready: &dyn Fn() -> bool,
    ) -> Result<Self, Failure> {
        let child = Mutex::new(folder.spawn_server(&command)?);
        let server = Self { folder, command, child, _janitor: janitor };
        server.wait_until_ready(ready)?;
        Ok(server)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_ready(&self, ready: &dyn Fn() -> bool) -> Result<(), Failure> {
        let give_up = Instant::now() + START_WAIT;
        while !ready() {
            if let Ok(Some(status)) = self.child().try_wait() {
                return Err(self.not_started(&format!("it exited with {status}")));
            }
            if Instant::now() >= give_up {
                return Err(self.not_started(&format!("no answer in {} s", START_WAIT.as_secs())));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Where it lives, with its socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// The end of the server's log, long enough for the trace that a crash leaves.
    pub(crate) fn log_end(&self) -> String {
        last_lines(&fs::read_to_string(self.folder.log()).unwrap_or_default(), 200)
    }

    /// What the log holds from a place on, and where it ends now.
    pub(crate) fn log_from(&self, place: u64) -> (String, u64) {
        let mut bytes = Vec::new();
        let read = fs::File::open(self.folder.log()).and_then(|mut log| {
            log.seek(SeekFrom::Start(place))?;
            log.read_to_end(&mut bytes)
        });
        match read {
            Ok(len) => (String::from_utf8_lossy(&bytes).into_owned(), place + len as u64),
            Err(_) => (String::new(), place),
        }
    }

    fn not_started(&self, why: &str) -> Failure {
        let program = self.command.program.display();
        Failure::mistake(format!("{program} did not start: {why}; it said:\n{}", self.folder.log_end()))
    }

    /// What befalls a whole server: it is killed, or stopped in its own fast way, and starts again; or stands still.
    pub(crate) fn suffer(&self, fault: Fault, stop: Signal, ready: &dyn Fn() -> bool) -> Result<(), Failure> {
        match fault {
            // One session's, not the server's.
            Fault::KillConnection => return Ok(()),
            Fault::PauseServer => {
                self.pause(Duration::from_millis(500));
                return Ok(());
            }
            Fault::KillServer => self.signal(Signal::KILL),
            Fault::RestartServer => self.signal(stop),
        }
        self.start_again(ready)
    }

    /// Freezes the server for a moment. Only its main process: that is the whole of a server of threads;
    /// of a server of processes it is the one that accepts connections.
    fn pause(&self, pause: Duration) {
        self.signal(Signal::STOP);
        thread::sleep(pause);
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child();
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It fails only if the server is gone already, which is what the signal is for.
            let _ = kill_process(pid, signal);
        }
    }

    /// A new server refuses to start while processes of the old one are there: they may stand still, or take a moment to
    /// go.
    fn start_again(&self, ready: &dyn Fn() -> bool) -> Result<(), Failure> {
        let give_up = Instant::now() + START_WAIT;
        loop {
            {
                let mut child = self.child();
                let _ = child.wait();
                scratch::end_processes_in(self.folder());
                *child = self.folder.spawn_server(&self.command)?;
            }
            match self.wait_until_ready(ready) {
                Ok(()) => return Ok(()),
                Err(failure) if Instant::now() >= give_up => return Err(failure),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::QUIT);
        // One that stands still obeys when it goes on.
        self.signal(Signal::CONT);
        let mut child = self.child();
        let give_up = Instant::now() + END_WAIT;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= give_up {
                let _ = child.kill();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The temporary folder of a server and the user it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    user: Option<User>,
}

/// Whom the server runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl Folder {
    /// A new folder that belongs to `vendor_user` (or `nobody`) if this program runs as root, and the
    /// janitor that will remove it.
    pub(crate) fn new(prefix: &str, vendor_user: &str) -> Result<(Self, Janitor), Failure> {
        let failed = |error: io::Error| {
            Failure::mistake(format!("cannot create a temporary folder for a server: {error}"))
        };
        let (path, janitor) = scratch::folder(prefix).map_err(failed)?;
        let own_uid = fs::metadata(&path).map_err(failed)?.uid();
        let user = if own_uid == 0 {
            let passwd = fs::read_to_string("/etc/passwd").map_err(failed)?;
            let user = [vendor_user, "nobody"].iter().find_map(|name| find_user(&passwd, name));
            Some(user.ok_or_else(|| {
                let message = format!(
                    "database servers refuse to run as root, and neither user {vendor_user} nor nobody exists"
                );
                Failure::mistake(message)
            })?)
        } else {
            None
        };
        if let Some(user) = &user {
            std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        Ok((Self { path, user }, janitor))
    }

    /// The file in which the server leaves its process id.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.path.join("pid")
    }

    /// The folder of the server's data.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Whom programs run as, if not as this program's user.
    pub(crate) fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    /// Whose permission it is that is missing.
    fn who(&self, error: &io::Error) -> String {
        match self.user_name() {
            Some(user) if error.kind() == io::ErrorKind::PermissionDenied => {
                format!(
                    " (database servers refuse to run as root: user {user} must be able to read and run it)"
                )
            }
            _ => String::new(),
        }
    }

    fn command(&self, program: &Path, libraries: Option<&Path>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).stdin(Stdio::null()).env("LC_ALL", "C").env("HOME", &self.path);
        // Two servers that are set up at once would clear each other's temporary tables away.
        command.env("TMPDIR", &self.path);
        if let Some(libraries) = libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    /// Runs a set-up program to its end.
    pub(crate) fn run(&self, setup: &ServerCommand) -> Result<(), Failure> {
        let mut command = self.command(&setup.program, setup.libraries.as_deref());
        let name = setup.program.display();
        let output = command
            .args(&setup.args)
            .output()
            .map_err(|error| Failure::mistake(format!("cannot run {name}: {error}{}", self.who(&error))))?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Err(Failure::mistake(format!(
            "{name} ended with {}; it said:\n{}",
            output.status,
            last_lines(&said, 8)
        )))
    }

    fn spawn_server(&self, server: &ServerCommand) -> Result<Child, Failure> {
        let name = server.program.display();
        let failed =
            |error: io::Error| Failure::mistake(format!("cannot start {name}: {error}{}", self.who(&error)));
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).map_err(failed)?;
        let mut command = self.command(&server.program, server.libraries.as_deref());
        // A process group of its own: Ctrl-C ends the workload, not the server under it.
        command.process_group(0).stdout(log.try_clone().map_err(failed)?).stderr(log);
        command.args(&server.args).spawn().map_err(failed)
    }

    fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    fn log_end(&self) -> String {
        last_lines(&fs::read_to_string(self.log()).unwrap_or_default(), 8)
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().rev().take(count).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// A user of the system's list (`name:password:uid:gid:…`).
fn find_user(passwd: &str, name: &str) -> Option<User> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name: name.to_owned(), uid, gid })
}

/// The folder of an installed server's programs: the one asked for, else the first that has `program`.
pub(crate) fn find_programs(
    asked: Option<&Path>,
    program: &str,
    places: &[PathBuf],
    missing: &str,
) -> Result<PathBuf, Failure> {
    if let Some(folder) = asked {
        let folder = folder
            .canonicalize()
            .map_err(|error| Failure::mistake(format!("bin={}: {error}", folder.display())))?;
        return match folder.join(program).is_file() {
            true => Ok(folder),
            false => Err(Failure::mistake(format!("bin={}: {program} not found", folder.display()))),
        };
    }
    let found = places.iter().find(|folder| folder.join(program).is_file());
    found.cloned().ok_or_else(|| Failure::mistake(missing.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\nmysqld:x:7:8::/:/x\nmysql:x:102:105:My:/n:/bin/false\n";
        assert_eq!(find_user(passwd, "mysql"), Some(User { name: "mysql".into(), uid: 102, gid: 105 }));
        assert_eq!(find_user(passwd, "my"), None);
    }

    #[test]
    fn a_missing_server_names_the_package() {
        let failure = find_programs(None, "no-such-program", &["/usr/bin".into()], "install the package x");
        assert_eq!(failure, Err(Failure::mistake("install the package x")));
        let failure = find_programs(Some(Path::new("/usr/bin")), "no-such-program", &[], "");
        assert!(failure.is_err_and(|failure| failure.to_string().contains("no-such-program")));
    }
}
