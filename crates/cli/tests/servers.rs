//! `taipan run` on real servers: the truth about them, through faults, interrupts and full disks.
//!
//! Tests whose server is not installed are skipped; `scripts/setup` installs both.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn taipan(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// What a run printed and its exit status; `None` where the server is missing.
fn run(arguments: &str) -> Option<(Option<i32>, String)> {
    said(&taipan(&format!("run {arguments}")).output().unwrap())
}

fn said(output: &Output) -> Option<(Option<i32>, String)> {
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if text.contains("server is installed") {
        corpus::missing(if text.contains("PostgreSQL") { "postgres" } else { "mariadb" }, &text);
        return None;
    }
    Some((output.status.code(), text.into_owned()))
}

const DUPLICATES: &str = "--workload duplicates --set keys=20 --set duplicate-keys=1 --set values=3 -n 1500";
const UPDATES: &str = "--workload read-modify-write --set keys=20 -n 1500";

/// MDEV-26642: a row that is set to the value it already has stays invisible to who set it.
#[test]
fn mariadb_hides_a_transactions_own_write_and_is_told() {
    for seed in 0..5 {
        let found = run(&format!("mariadb:temp --isolation repeatable-read {DUPLICATES} --seed {seed}"));
        let Some((exit, text)) = found else { return };
        if exit == Some(1) {
            assert!(text.contains("not read-committed: internal"), "{text}");
            return;
        }
    }
    panic!("not found in five runs");
}

#[test]
fn mariadb_loses_updates_at_repeatable_read_by_design() {
    let at = |level: &str| run(&format!("mariadb:temp --isolation repeatable-read {UPDATES} {level}"));
    let Some((exit, text)) = at("--level snapshot-isolation") else { return };
    assert!(exit == Some(1) && text.contains("not snapshot-isolation"), "{text}");
    let Some((exit, text)) = at("") else { return };
    assert!(exit == Some(0) && text.contains(": read-committed  ("), "{text}");
}

#[test]
fn mariadb_with_snapshot_isolation_keeps_it() {
    let target = "mariadb:temp?innodb_snapshot_isolation=ON --isolation repeatable-read";
    for workload in [UPDATES, "--workload anomalies -n 1500"] {
        let Some((exit, text)) = run(&format!("{target} {workload}")) else { return };
        assert!(exit == Some(0) && text.contains(": snapshot-isolation  ("), "{text}");
    }
}

#[test]
fn postgres_stays_serializable_through_kills() {
    let faults = "--fault kill-connection@0.5 --fault kill-server@1 --fault restart-server@2";
    let arguments = format!("postgres:temp --workload anomalies --set range-max=2 --duration 3 {faults}");
    let Some((exit, text)) = run(&arguments) else { return };
    assert!(exit == Some(0) && text.contains(": serializable  ("), "{text}");
}

#[test]
fn postgres_runs_the_load_that_shows_the_bug_of_older_versions() {
    let load =
        "--workload list-append --spread-keys --set keys=6 --set appends-per-key=3 --pause 0.002 --lead 4";
    let Some((exit, text)) = run(&format!("postgres:temp --level serializable {load} -n 4000")) else {
        return;
    };
    assert!(exit == Some(0) && text.contains(": serializable  ("), "{text}");
}

#[test]
fn an_interrupt_ends_the_run_with_a_check_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Servers do not run as root, and must reach their folder.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let history = tempfile::tempdir().unwrap();
    let history = history.path().join("history.jsonl");
    let child = taipan("run postgres:temp --duration 600 --workload blind-writes --record")
        .arg(&history)
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let exists = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while lines(&history) < 20 && exists(&pid) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let Some((exit, text)) = said(&child.wait_with_output().unwrap()) else { return };
    assert!(exit == Some(0) && text.contains(": serializable  ("), "{text}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_run_is_checked_while_it_goes_on() {
    let arguments = "postgres:temp --workload read-modify-write --set keys=100 --live --duration 3";
    let Some((exit, text)) = run(&format!("{arguments} --fault kill-server@1.5")) else { return };
    assert!(exit == Some(0) && text.contains(": serializable  ("), "{text}");
    assert!(text.contains("by their timestamps, 0 violations of snapshot isolation"), "{text}");
    let target = "mariadb:temp --isolation repeatable-read --level snapshot-isolation --live";
    let Some((exit, text)) = run(&format!("{target} {UPDATES}")) else { return };
    assert!(exit == Some(1) && text.contains("breaks noconflict at key"), "{text}");
}

/// A file system of three megabytes, if this user may have one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_stops_the_run_and_the_history_is_whole() {
    let Some(disk) = SmallDisk::new() else {
        return corpus::missing("root", &"only root may mount a small disk");
    };
    let file = disk.0.path().join("history.jsonl");
    let output = taipan("run sqlite: --workload blind-writes --duration 600 --record").arg(&file).output();
    let (exit, text) = said(&output.unwrap()).unwrap();
    assert!(exit == Some(3) && text.contains("No space left") && text.contains("✔ "), "{text}");
    let (exit, text) = said(&taipan("check").arg(&file).output().unwrap()).unwrap();
    assert!(exit == Some(0), "{text}");
}
