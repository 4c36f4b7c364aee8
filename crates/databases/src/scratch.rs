//! Temporary folders of which nothing is left, even if this program is killed.
//!
//! A janitor, a small shell process of its own process group, holds the reading end of a pipe whose writing end only this
//! program has. When the pipe closes, for whatever reason (drop, panic, Ctrl-C, SIGKILL), the janitor ends what still
//! works in the folder (a server of ours, or the program that was setting it up), takes back the shared memory that a
//! PostgreSQL server left, and removes the folder.

use crate::driver::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A temporary folder, removed with the value or when this program ends.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _janitor: Janitor,
}

impl Scratch {
    /// A new folder whose name begins so.
    pub fn new(prefix: &str) -> Result<Self, Failure> {
        let (path, janitor) = folder(prefix).map_err(|error| no_folder(&error))?;
        Ok(Self { path, _janitor: janitor })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A new folder, by its true name, and who removes it.
pub(crate) fn folder(prefix: &str) -> io::Result<(PathBuf, Janitor)> {
    let place = std::env::temp_dir().canonicalize()?;
    let (janitor, path) = tempfile::Builder::new().prefix(prefix).make_in(place, Janitor::start)?.keep()?;
    Ok((path, janitor))
}

pub(crate) fn no_folder(error: &io::Error) -> Failure {
    Failure::mistake(format!("cannot create a temporary folder: {error}"))
}

/// Ends every process that works in a folder.
pub(crate) fn end_processes_in(folder: &Path) {
    let works_there = |pid: &str| {
        let place = fs::read_link(format!("/proc/{pid}/cwd"));
        place.is_ok_and(|place| place.starts_with(folder))
    };
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().filter(|name| works_there(name)) else { continue };
        if let Some(pid) = number.parse().ok().and_then(Pid::from_raw) {
            // It fails only if the process is gone already.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Removes a folder when this program is done with it, however it ends.
#[derive(Debug)]
pub(crate) struct Janitor {
    process: Child,
    /// Closing it is the signal.
    pipe: Option<ChildStdin>,
}

/// `$1` is the folder, whose servers work in it. The janitor makes it, so that there is never a folder without a janitor,
/// and says so with one line. PostgreSQL is asked to stop at once: then it takes its shared memory
/// with it. What is still there after a second is killed, and the segment that its pid file names is removed.
const JANITOR: &str = r#"
trap '' PIPE
mkdir -m 700 -- "$1" || exit 1
echo
exec >/dev/null 2>&1
cat
export FOLDER="$1"
working() {
    ls -ld /proc/[0-9]*/cwd 2>/dev/null | awk '{
        place = substr($0, index($0, " -> ") + 4); sub(/ \(deleted\)$/, "", place)
        if (place != ENVIRON["FOLDER"] && index(place, ENVIRON["FOLDER"] "/") != 1) next
        if (match($0, /\/proc\/[0-9]+/)) print substr($0, RSTART + 6, RLENGTH - 6)
    }'
}
segment=
try=0
while [ $try -lt 100 ]; do
    main=$(sed -n 1p "$1/data/postmaster.pid" 2>/dev/null)
    line=$(sed -n 7p "$1/data/postmaster.pid" 2>/dev/null)
    segment=${line##* }${segment:+ $segment}
    found=$(working)
    if [ -z "$found" ]; then
        for one in $segment; do ipcrm -m "$one" 2>/dev/null; done
        rm -rf -- "$1" 2>/dev/null && [ ! -e "$1" ] && exit 0
    elif [ -n "$main" ] && [ $try -lt 20 ]; then
        case " $(echo $found) " in
        *" $main "*) [ $try -gt 0 ] || kill -QUIT "$main" 2>/dev/null ;;
        *) kill -9 $found 2>/dev/null ;;
        esac
    else
        kill -9 $found 2>/dev/null
    fi
    try=$((try + 1))
    sleep 0.05
done
"#;

impl Janitor {
    /// Makes the folder and watches over it.
    fn start(folder: &Path) -> io::Result<Self> {
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(JANITOR)
            .arg("taipan-janitor")
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take();
        let made = process.stdout.take().is_some_and(|mut said| said.read_exact(&mut [0]).is_ok());
        let complaints = process.stderr.take();
        let janitor = Self { process, pipe };
        if made {
            return Ok(janitor);
        }
        if folder.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut why = String::new();
        if let Some(mut complaints) = complaints {
            complaints.read_to_string(&mut why)?;
        }
        Err(io::Error::other(why.trim().to_owned()))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_janitor_removes_the_folder() {
        let scratch = Scratch::new("taipan-janitor-test-").expect("a temporary folder");
        let path = scratch.path().to_owned();
        fs::create_dir_all(path.join("base")).expect("it is ours");
        fs::write(path.join("base/1"), "x").expect("it is ours");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_janitor_ends_what_works_in_the_folder_and_nothing_else() {
        let scratch = Scratch::new("taipan-janitor-test-").expect("a temporary folder");
        let path = scratch.path().to_owned();
        fs::create_dir(path.join("data")).expect("it is ours");
        let sleep = |place: &Path| {
            let mut command = Command::new("sleep");
            command.arg("60").current_dir(place).spawn().expect("sleep is there")
        };
        let (mut inside, mut beside) = (sleep(&path.join("data")), sleep(Path::new("/")));
        // A stale pid file names a process of others.
        fs::write(path.join("data/postmaster.pid"), format!("{}\n", beside.id())).expect("it is ours");
        drop(scratch);
        assert!(!path.exists());
        assert!(inside.wait().is_ok_and(|status| !status.success()), "it was ended");
        assert!(matches!(beside.try_wait(), Ok(None)), "the process named in a stale pid file lives");
        beside.kill().expect("it is ours");
        let _ = beside.wait();
    }

    #[test]
    fn processes_in_a_folder_are_ended() {
        let scratch = Scratch::new("taipan-janitor-test-").expect("a temporary folder");
        let mut command = Command::new("sleep");
        let mut inside = command.arg("60").current_dir(scratch.path()).spawn().expect("sleep is there");
        end_processes_in(scratch.path());
        assert!(inside.wait().is_ok_and(|status| !status.success()));
    }
}
