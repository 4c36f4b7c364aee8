//! What happens when the world fails: full disks, read errors, files cut off, processes killed at random points, clocks
//! that jump. Nothing is lost that was acknowledged, no verdict is wrong, and a sentence says what happened. The table is in
//! docs/faults.md.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    command.args(arguments).current_dir(folder);
    command
}

fn taipan(arguments: &[&str], folder: &Path) -> Output {
    command(arguments, folder).output().unwrap()
}

/// The exit status and what was said, which never is a panic.
fn told(output: &Output) -> (i32, String) {
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code().unwrap_or(-1), text.into_owned())
}

/// Random numbers that differ from run to run: where a process is killed is not to be the same every time.
fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(below) % below
}

/// Writes a history with a lost update.
fn violated(folder: &Path) {
    fs::write(folder.join("h.hist"), "a: w(x,1) | r(x,_)\nb: r(x,1) w(x,2)\nc: r(x,1) w(x,3)\n").unwrap();
}

#[test]
fn a_full_disk_is_told_and_changes_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    violated(at);
    std::os::unix::fs::symlink("/dev/full", at.join("full.jsonl")).unwrap();
    for arguments in [
        &["generate", "--transactions", "20000", "full.jsonl"][..],
        &["generate", "--transactions", "20000", "--to", "binary", "/dev/full"],
        &["convert", "h.hist", "full.jsonl"],
        &["check", "--report", "/dev/full", "h.hist"],
        &["check", "--certificate", "/dev/full", "h.hist"],
        &["run", "sqlite:", "--transactions", "300", "--record", "full.jsonl"],
    ] {
        let output = taipan(arguments, at);
        let (code, text) = told(&output);
        assert_eq!(code, 3, "{arguments:?}: {text}");
        assert!(text.contains("No space left") || text.contains("the disk is full"), "{arguments:?}: {text}");
    }
    // Standard output itself.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = command(&["check", "h.hist"], at).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let (code, text) = told(&child.wait_with_output().unwrap());
    assert!(code != 0 && text.contains("space"), "{code}: {text}");
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(taipan(&["generate", "--transactions", "2000", "h.jsonl"], at).status.success());
    for file in ["h.tph", "h.jsonl.gz", "h.jsonl.zst"] {
        assert!(taipan(&["convert", "h.jsonl", file], at).status.success());
    }
    // Reading gives an error, not an end.
    let (code, text) = told(&taipan(&["check", "/proc/self/mem"], at));
    assert_eq!(code, 3, "{text}");
    for file in ["h.jsonl", "h.tph", "h.jsonl.gz", "h.jsonl.zst"] {
        let whole = fs::read(at.join(file)).unwrap();
        for _ in 0..6 {
            let len = 1 + random(whole.len() as u64 - 1) as usize;
            fs::write(at.join("cut"), &whole[..len]).unwrap();
            let ending = file.split_once('.').unwrap().1;
            let cut = format!("cut.{ending}");
            fs::rename(at.join("cut"), at.join(&cut)).unwrap();
            let (code, text) = told(&taipan(&["check", &cut], at));
            // Lines may end where they were cut; a verdict is then one on what is there, and it is a true one.
            let is_fine = code == 3 || code == 0 && ending == "jsonl";
            assert!(is_fine, "{cut} of {len} bytes: {code}: {text}");
        }
    }
}

/// A recording that is killed is a history of what was acknowledged, and never a violation.
#[test]
fn a_recording_that_is_killed_is_whole_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut recorded = 0;
    for round in 0..8 {
        let file = format!("r{round}.jsonl");
        let arguments = ["run", "sqlite:", "--duration", "20", "--no-check", "-q", "--record", &file];
        let mut child = command(&arguments, at).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(150 + random(500)));
        let is_gentle = round % 2 == 0;
        if is_gentle {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        } else {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        let lenient: &[&str] = if is_gentle { &[] } else { &["--lenient"] };
        let arguments = [&["check", &file][..], lenient].concat();
        let (code, text) = told(&taipan(&arguments, at));
        assert!(code == 0 || code == 3 && !is_gentle, "killed by TERM: {is_gentle}: {code}: {text}");
        recorded += usize::from(code == 0);
    }
    assert!(recorded >= 4, "{recorded} recordings had begun when they were killed");
}

/// The number of pairs of transactions that are sent; every third one holds a stale read.
const PAIRS: usize = 300;

/// Two transactions: a write, and a read that sees it or does not.
fn pair(number: usize) -> [String; 2] {
    let at = 10 * number + 10;
    let seen = if number.is_multiple_of(3) { "-1".to_owned() } else { number.to_string() };
    let line = |session: u32, start: usize, op: &str| {
        let commit = start + 1;
        format!(
            "{{\"session\":{session},\"seq\":{number},\"db\":{{\"start\":{start},\"commit\":{commit}}},\"ops\":[{op}]}}\n"
        )
    };
    // On several keys, so that several workers have some.
    let key = number % 7;
    let op = |kind: &str, value: &str| format!("{{\"op\":\"{kind}\",\"key\":\"k{key}\",\"value\":{value}}}");
    [line(1, at, &op("write", &number.to_string())), line(2, at + 4, &op("read", &seen))]
}

struct Watching {
    child: Child,
    /// Lines of standard output.
    found: Receiver<String>,
}

fn watch(at: &Path, more: &[&str]) -> Watching {
    let arguments = ["watch", "--unix", "socket", "--state", "state", "--window", "40", "-q"];
    let mut child = command(&[&arguments, more].concat(), at)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (send, found) = channel();
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(send.send(line))));
    Watching { child, found }
}

/// A connection, unless whoever listens was killed before it did.
fn connect(at: &Path, is_killed: &AtomicBool) -> Option<UnixStream> {
    for _ in 0..6_000 {
        if let Ok(stream) = UnixStream::connect(at.join("socket")) {
            return Some(stream);
        }
        if is_killed.load(Ordering::Relaxed) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nobody listens");
}

/// Sends lines from a place on, and gives how many of all were acknowledged when the connection ended.
fn send(at: &Path, lines: &[String], from: usize, is_killed: &AtomicBool) -> usize {
    let Some(mut stream) = connect(at, is_killed) else { return from };
    let answers = BufReader::new(stream.try_clone().unwrap());
    let heard = std::thread::spawn(move || {
        let mut durable = 0;
        for line in answers.lines().map_while(Result::ok) {
            let number = line.strip_prefix("{\"durable\":").and_then(|it| it.strip_suffix('}'));
            durable = number.and_then(|it| it.parse().ok()).unwrap_or(durable);
        }
        durable
    });
    for line in &lines[from..] {
        if stream.write_all(line.as_bytes()).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    from + heard.join().unwrap()
}

/// Transaction `t50` has a clock that is far ahead, and `t120` reads what nobody wrote.
fn clocked(number: usize) -> String {
    let (session, seq, start) = (number % 5, number / 5, 1_000 + 10 * number);
    let commit = if number == 50 { 1_000_000_000_000_000 } else { start + 5 };
    let op = match number {
        120 => "{\"op\":\"read\",\"key\":\"k\",\"value\":77777}".to_owned(),
        _ => format!("{{\"op\":\"write\",\"key\":\"k{number}\",\"value\":1}}"),
    };
    format!(
        "{{\"session\":{session},\"seq\":{seq},\"id\":\"t{number}\",\"db\":{{\"start\":{start},\"commit\":{commit}}},\"ops\":[{op}]}}\n"
    )
}

/// One clock that is far ahead is reported, and what is wrong after it is found, also after a restart.
#[test]
fn a_wrong_clock_blinds_no_watch() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let lines: Vec<String> = (0..1_000).map(clocked).collect();
    let mut told: Vec<(String, String)> = Vec::new();
    for part in [&lines[..100], &lines[100..]] {
        let mut watching = watch(at, &[]);
        assert_eq!(send(at, part, 0, &AtomicBool::new(false)), part.len());
        let pid = rustix::process::Pid::from_child(&watching.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        watching.child.wait().unwrap();
        for line in watching.found.iter() {
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            told.push((word(&value["kind"]), word(&value["transaction"]["name"])));
        }
    }
    told.sort();
    let expected = [("clock-jump", "t50"), ("ext", "t120")];
    assert_eq!(told, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
}

/// Killed again and again, a watch that keeps its state loses nothing that it acknowledged, and tells every finding.
#[test]
fn a_watch_that_is_killed_loses_nothing_that_it_acknowledged() {
    killed_again_and_again(|_| &[]);
}

/// The same with keys on workers, also when it comes back with more or fewer of them.
#[cfg(feature = "cluster")]
#[test]
fn a_watch_on_workers_that_is_killed_loses_nothing_that_it_acknowledged() {
    killed_again_and_again(|_| &["--workers", "2"]);
    killed_again_and_again(|kills| match kills % 4 {
        0 => &["--workers", "2"],
        1 => &["--workers", "3"],
        2 => &[],
        _ => &["--workers", "1"],
    });
}

/// Counts a violation that was told.
fn count(line: &str, found: &mut BTreeMap<String, usize>) {
    // The kill may have cut a line off.
    let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else { return };
    // What is sent again because nobody acknowledged it may be told to be there already.
    let is_violation = line["violation"] == true;
    if let Some(txn) = line["transaction"]["name"].as_str().filter(|_| is_violation) {
        *found.entry(txn.to_owned()).or_default() += 1;
    }
}

/// `more` says how the watch is started after so many kills.
fn killed_again_and_again(more: impl Fn(u32) -> &'static [&'static str]) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut lines: Vec<String> = (0..PAIRS).flat_map(pair).collect();
    lines.push(format!("{{\"watermark\":{}}}\n", 10 * PAIRS + 100));
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut durable = 0;
    let mut kills = 0;
    let mut is_over = false;
    while !is_over {
        let mut watching = watch(at, more(kills));
        // What was acknowledged right before a kill is reported by the next.
        let (wait, is_last) = (20 + random(220), kills >= 6 || durable == lines.len());
        let is_killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (lines, from) = (&lines, durable);
            let is_killed = &is_killed;
            let sending = scope.spawn(move || send(at, lines, from, is_killed));
            if !is_last {
                std::thread::sleep(Duration::from_millis(wait));
                let _ = watching.child.kill();
                is_killed.store(true, Ordering::Relaxed);
                kills += 1;
            }
            durable = sending.join().unwrap();
        });
        is_over = is_last && durable == lines.len();
        if is_last {
            std::thread::sleep(Duration::from_millis(500));
            let pid = rustix::process::Pid::from_child(&watching.child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        watching.child.wait().unwrap();
        watching.found.iter().for_each(|line| count(&line, &mut found));
        let _ = fs::remove_file(at.join("socket"));
    }
    // What was written down right before a kill and may not have been printed is printed by the next; the file has it once.
    let mut kept = BTreeMap::new();
    let file = fs::read_to_string(at.join("state").join("findings.jsonl")).unwrap();
    file.lines().for_each(|line| count(line, &mut kept));
    assert!(kept.values().all(|&times| times == 1), "{kept:?}");
    assert!(kept.keys().eq(found.keys()), "after {kills} kills: {kept:?} in the file, {found:?} printed");
    let expected: Vec<String> = (0..PAIRS).step_by(3).map(|number| format!("2:{number}")).collect();
    let missing: Vec<&String> = expected.iter().filter(|name| !found.contains_key(*name)).collect();
    assert!(missing.is_empty(), "after {kills} kills nobody told of {missing:?}: {found:?}");
    let more: Vec<_> = found.keys().filter(|name| !expected.contains(name)).collect();
    assert!(more.is_empty(), "false alarms after {kills} kills: {more:?}");
}

#[test]
fn a_state_that_was_cut_off_is_told_or_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text: String = (0..60).flat_map(pair).collect();
    fs::write(at.join("h.jsonl"), text).unwrap();
    let run = || told(&taipan(&["watch", "h.jsonl", "--state", "state", "--window", "20", "-q"], at));
    assert_eq!(run().0, 1);
    let state = at.join("state");
    let files: Vec<_> = fs::read_dir(&state).unwrap().map(|it| it.unwrap().path()).collect();
    let kept: Vec<_> =
        files.into_iter().filter(|it| it.is_file()).map(|it| (it.clone(), fs::read(it).unwrap())).collect();
    assert!(kept.iter().any(|(_, whole)| !whole.is_empty()));
    for (cut, whole) in kept.iter().filter(|(_, whole)| !whole.is_empty()) {
        for len in [whole.len() / 2, whole.len() - 1] {
            fs::remove_dir_all(&state).unwrap();
            fs::create_dir(&state).unwrap();
            kept.iter().for_each(|(file, whole)| fs::write(file, whole).unwrap());
            fs::write(cut, &whole[..len]).unwrap();
            let (code, text) = run();
            // The stale reads are reported by this run, or were by the one before; or the file is refused by name.
            let name = cut.file_name().unwrap().to_str().unwrap();
            let is_refused = code == 3 && text.contains(name) && text.contains("another state folder");
            assert!([0, 1, 2].contains(&code) || is_refused, "{cut:?}: {code}: {text}");
            let is_needed = ["checkpoint", "journal", "findings"].iter().any(|it| name.starts_with(it));
            assert_eq!(is_refused, is_needed, "{cut:?}: {code}: {text}");
        }
    }
}

/// A clock that was set back: refused within a transaction, and told between two of one session.
#[test]
fn clocks_that_jump_are_told_apart_from_anomalies() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("within.hist"), "a: w(x,1) @20..10\n").unwrap();
    let (code, text) = told(&taipan(&["check", "within.hist"], at));
    assert!(code == 3 && text.contains("within.hist:1"), "{code}: {text}");
    // The second transaction of the session seems to have ended before the first began.
    fs::write(at.join("between.hist"), "a: w(x,1) @100..110 | r(x,1) @20..30\n").unwrap();
    let (code, text) = told(&taipan(&["check", "--level", "strict-serializable", "between.hist"], at));
    assert!(code == 1 && text.contains("clocks contradict the session order"), "{code}: {text}");
    let (code, _) = told(&taipan(
        &["check", "--level", "strict-serializable", "--clock-skew", "100", "between.hist"],
        at,
    ));
    assert_eq!(code, 0, "the clocks may have differed by so much");
    assert_eq!(told(&taipan(&["check", "between.hist"], at)).0, 0, "serializability asks for no clocks");
}
