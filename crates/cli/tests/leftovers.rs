//! What a killed program leaves behind: nothing. And what a server that stands still does to it: little.
//!
//! The tests of a server that is not installed say so and end; `scripts/setup` installs both.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may")]

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A folder for temporary folders that servers, which do not run as root, can reach.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn start(arguments: &str, place: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_taipan"))
        .args(arguments.split_whitespace())
        .current_dir(place)
        .env("TMPDIR", place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Folders that begin so.
fn folders(place: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
    let is_ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    entries.filter(is_ours).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first number in the line of that number, from 1, of a file in a server's folder.
fn number_in(file: &Path, line: usize) -> Option<i32> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().nth(line - 1)?.split_whitespace().last()?.parse().ok()
}

fn main_process(folder: &Path) -> Option<Pid> {
    let number =
        number_in(&folder.join("pid"), 1).or_else(|| number_in(&folder.join("data/postmaster.pid"), 1));
    // A server that sets itself up writes it as a negative number.
    Pid::from_raw(number?.abs())
}

/// A run on a throw-away server that is at work; `None` where the server is missing.
fn at_work(arguments: &str, place: &Path) -> Option<(Child, PathBuf)> {
    let mut child = start(arguments, place);
    let record = place.join("h.jsonl");
    loop {
        if let Ok(Some(_)) = child.try_wait() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert!(said.contains("server is installed"), "{said}");
            eprintln!("skipped: {said}");
            return None;
        }
        let server = folders(place, "taipan-").into_iter().find(|folder| main_process(folder).is_some());
        if let Some(server) = server.filter(|server| is_busy(server, &record)) {
            return Some((child, server));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a run has recorded something, or a matrix or a hunt has a table.
fn is_busy(server: &Path, record: &Path) -> bool {
    let lines = fs::read_to_string(record).unwrap_or_default().lines().count();
    let files = fs::read_dir(server.join("data/taipan")).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    lines > 20 || names.any(|name| ["taipan_matrix.ibd", "hunt0.ibd"].contains(&name.as_str()))
}

fn processes_in(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|at| at.starts_with(folder)))
        .count()
}

#[test]
fn embedded_stores_leave_no_folder() {
    for target in ["sqlite:", "sqlite:temp", "fjall:", "redb:temp"] {
        let place = place();
        let mut child =
            start(&format!("run {target} --duration 60 --no-check --record h.jsonl"), place.path());
        wait_until("it has begun", || !folders(place.path(), "taipan-").is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("its folder is removed", || folders(place.path(), "taipan-").is_empty());
        assert!(!place.path().join("temp").exists(), "{target} is a temporary folder");
    }
}

#[test]
fn a_watch_leaves_no_folder() {
    let place = place();
    let mut child = start("watch --unix socket", place.path());
    wait_until("it has begun", || !folders(place.path(), "taipan-watch-").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("its folder is removed", || folders(place.path(), "taipan-").is_empty());
}

#[test]
fn killed_runs_leave_no_server_folder_or_shared_memory() {
    for target in ["postgres:temp", "mariadb:temp"] {
        for is_frozen in [false, true] {
            let place = place();
            let arguments = format!("run {target} --duration 600 --no-check --record h.jsonl");
            let Some((mut child, server)) = at_work(&arguments, place.path()) else { return };
            let segment = number_in(&server.join("data/postmaster.pid"), 7);
            let exists = |id: i32| {
                let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
                table.lines().any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()))
            };
            assert!(target.starts_with("mariadb") || segment.is_some_and(exists), "{target} has its segment");
            if is_frozen {
                kill_process(main_process(&server).unwrap(), Signal::STOP).unwrap();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            wait_until("the server's folder is removed", || !server.exists());
            assert_eq!(processes_in(&server), 0, "{target}");
            assert!(!segment.is_some_and(exists), "{target}: shared memory is left");
        }
    }
}

/// Killed while its server is still being set up.
#[test]
fn killed_starts_leave_nothing() {
    for target in ["postgres:temp", "mariadb:temp"] {
        for wait_ms in [30, 200, 700] {
            let place = place();
            let mut child = start(&format!("run {target}"), place.path());
            std::thread::sleep(Duration::from_millis(wait_ms));
            child.kill().unwrap();
            child.wait().unwrap();
            let is_gone = || folders(place.path(), "taipan-").is_empty() && processes_in(place.path()) == 0;
            wait_until("everything is removed", is_gone);
        }
    }
}

#[test]
fn a_killed_matrix_leaves_no_table() {
    let place = place();
    let file = place.path().join("h.db");
    let has_table = || {
        let bytes = fs::read(&file).unwrap_or_default();
        bytes.windows(13).any(|window| window == b"taipan_matrix")
    };
    let database = || databases::open(&format!("sqlite:{}", file.display())).unwrap();
    let tables = || {
        let database = database();
        let mut console = database.scripted().unwrap().console().unwrap();
        console.send("SELECT name FROM sqlite_master WHERE name = 'taipan_matrix'").unwrap().len()
    };
    let mut child = start("matrix sqlite:h.db --runs 100000", place.path());
    let wal = place.path().join("h.db-wal");
    wait_until("it plays", || has_table() || wal.metadata().is_ok_and(|meta| meta.len() > 8192));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the table is dropped", || tables() == 0);
    // Nor does one that ends by itself.
    assert!(start("matrix sqlite:h.db", place.path()).wait().unwrap().success());
    assert_eq!(tables(), 0);
}

#[test]
fn a_killed_hunt_leaves_no_table() {
    let place = place();
    let file = place.path().join("h.db");
    let tables = || {
        let database = databases::open(&format!("sqlite:{}", file.display())).unwrap();
        let mut console = database.scripted().unwrap().console().unwrap();
        console.send("SELECT name FROM sqlite_master WHERE name LIKE 'hunt%'").unwrap().len()
    };
    let mut child = start("hunt sqlite:h.db --time 600", place.path());
    let wal = place.path().join("h.db-wal");
    wait_until("it hunts", || wal.metadata().is_ok_and(|meta| meta.len() > 100_000));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the tables are dropped", || tables() == 0);
}

/// Stops a server that is at work, and gives what the command said at its end.
fn frozen(command: &str, place: &Path) -> Option<(Option<i32>, String, Duration)> {
    let (mut child, server) = at_work(command, place)?;
    let stopped = Instant::now();
    kill_process(main_process(&server).unwrap(), Signal::STOP).unwrap();
    let give_up = Instant::now() + Duration::from_secs(120);
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = stopped.elapsed();
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Some((output.status.code(), text.into_owned(), took))
}

#[test]
fn a_server_that_hangs_is_replaced_and_the_run_goes_on() {
    let place = place();
    let run = "run mariadb:temp --workload read-modify-write --duration 6 --patience 4 --record h.jsonl";
    let Some((exit, text, took)) = frozen(run, place.path()) else { return };
    assert!(
        // What it finds is the server's affair: one that is killed may lose what it acknowledged.
        matches!(exit, Some(0 | 1)) && text.contains("the server hung and was replaced"),
        "after {took:?}: {exit:?}: {text}"
    );
}

#[test]
fn a_server_that_hangs_is_replaced_and_the_matrix_goes_on() {
    let place = place();
    let Some((exit, text, took)) = frozen("matrix mariadb:temp --patience 4 --runs 8", place.path()) else {
        return;
    };
    assert!(exit == Some(0) && text.contains("the server was replaced"), "after {took:?}: {exit:?}: {text}");
}

#[test]
fn a_server_that_hangs_is_told_and_replaced_by_a_hunt() {
    let place = place();
    let hunt = "hunt mariadb:temp --time 12 --patience 4 --reduce 2 --save found";
    let Some((exit, text, took)) = frozen(hunt, place.path()) else { return };
    let is_told = text.contains("lost the server, or it hangs") && text.contains("hang");
    assert!(exit == Some(1) && is_told, "after {took:?}: {exit:?}: {text}");
}

#[test]
fn two_interrupts_end_a_run_whose_server_hangs() {
    let place = place();
    let arguments = "run mariadb:temp --duration 600 --record h.jsonl";
    let Some((mut child, server)) = at_work(arguments, place.path()) else { return };
    kill_process(main_process(&server).unwrap(), Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    wait_until("it ends", || {
        fs::read_to_string(format!("/proc/{}/stat", child.id())).is_ok_and(|stat| stat.contains(") Z "))
    });
    child.wait().unwrap();
    wait_until("the server's folder is removed", || !server.exists());
}

/// Long before anybody's patience ends.
#[test]
fn one_interrupt_ends_what_waits_for_a_server_that_hangs() {
    for (arguments, said) in [
        ("run mariadb:temp --duration 600 --record h.jsonl", "the run stopped"),
        // Its connections have processes of their own, which go on.
        ("run postgres:temp --duration 600 --record h.jsonl", "ends after the transactions that are open"),
        ("hunt mariadb:temp --time 600 --save found", "interrupted while the server did not answer"),
        ("matrix mariadb:temp --runs 100", ""),
    ] {
        let place = place();
        let Some((mut child, server)) = at_work(arguments, place.path()) else { return };
        kill_process(main_process(&server).unwrap(), Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        while matches!(child.try_wait(), Ok(None)) && asked.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = asked.elapsed();
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(took < Duration::from_secs(20) && text.contains(said), "{arguments}: after {took:?}: {text}");
        wait_until("the server's folder is removed", || !server.exists());
    }
}
