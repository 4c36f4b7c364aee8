//! `taipan watch postgres://…` on a real server: what clients saw is held against the change stream, also over a crash of
//! the watch.

#![allow(clippy::unwrap_used, reason = "a test may")]

use databases::{Database, Header, Plan, Postgres, Recorder, RunOptions, Sinks, WorkloadPlan, run};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use workload::{Settings, Workload};

fn server() -> Option<Postgres> {
    corpus::server("postgres", Postgres::temporary(None, &[("fsync".to_owned(), "off".to_owned())]))
}

/// A workload on a server, which clients trace.
struct Shop {
    server: Postgres,
    folder: tempfile::TempDir,
    rounds: usize,
}

impl Shop {
    fn open() -> Option<Self> {
        let mut server = server()?;
        let plan = Self::plan(0);
        server.create(&plan.schema(), &plan.initial()).unwrap();
        let isolation = server.isolations()[1];
        server.enable_timestamps(&isolation).unwrap();
        Some(Self { server, folder: tempfile::tempdir().unwrap(), rounds: 0 })
    }

    fn plan(seed: u64) -> WorkloadPlan {
        let settings =
            Settings { sessions: 4, keys: 30, ops: 4, seed, ..Workload::ReadModifyWrite.settings() };
        WorkloadPlan::new(settings).unwrap()
    }

    /// Does some more business; what clients saw of it.
    fn trade(&mut self, transactions: u64) -> Vec<String> {
        self.rounds += 1;
        let path = self.folder.path().join(format!("{}.jsonl", self.rounds));
        let sinks = Sinks { file: Some(path.clone()), ..Sinks::default() };
        let recorder = Recorder::new(&Header::default(), sinks).unwrap();
        let options = RunOptions {
            sessions: 4,
            transactions: Some(transactions),
            isolation: Some(self.server.isolations()[1]),
            ..RunOptions::default()
        };
        run(&self.server, &Self::plan(self.rounds as u64), &recorder, &options).unwrap();
        std::fs::read_to_string(path).unwrap().lines().map(|line| format!("{line}\n")).collect()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// How long the watch's journal is.
    fn journal(&self) -> u64 {
        std::fs::metadata(self.state().join("journal-0")).map_or(0, |meta| meta.len())
    }
}

/// A watch, with the stream of what clients saw.
struct Watch {
    child: Child,
    state: PathBuf,
}

impl Watch {
    fn start(shop: &Shop) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
        command.args(["watch", &shop.server.url().unwrap(), "--grace", "0.5", "--state"]).arg(shop.state());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), state: shop.state() }
    }

    fn tell(&mut self, lines: &[String]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(lines.concat().as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn findings(&self) -> String {
        std::fs::read_to_string(self.state.join("findings.jsonl")).unwrap_or_default()
    }

    /// The rows at the beginning are in its journal: what is done from now on, it sees.
    fn wait_until_following(&self, shop: &Shop) {
        wait(|| shop.journal() > 0);
    }

    fn wait_for(&self, what: &str) {
        wait(|| self.findings().contains(what));
    }

    /// Ends it in good order; what it said, and its exit status.
    fn end(self) -> (String, Option<i32>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    }
}

/// A line that says that a client saw something it cannot have seen.
fn doctored(line: &str) -> Option<String> {
    let mut line: serde_json::Value = serde_json::from_str(line).ok()?;
    if line.get("status").is_some() || line["ctx"].get("commit").is_none() {
        return None;
    }
    let read = line["ops"].as_array_mut()?.iter_mut().find(|op| op["op"] == "read")?;
    read["value"] = 123_456_789.into();
    Some(format!("{line}\n"))
}

#[test]
fn a_followed_server_is_in_order_until_a_client_sees_what_it_cannot_have_seen() {
    let Some(mut shop) = Shop::open() else { return };
    shop.trade(50);
    let mut watch = Watch::start(&shop);
    watch.wait_until_following(&shop);
    let seen = shop.trade(300);
    watch.tell(&seen);
    // The watch dies once some of it is in its journal; the server keeps what happens meanwhile.
    let taken = seen.iter().map(String::len).sum::<usize>() as u64;
    wait(|| shop.journal() > taken);
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    assert_eq!(watch.findings(), "");
    let seen = shop.trade(200);
    let mut watch = Watch::start(&shop);
    watch.tell(&seen);
    let mut seen = shop.trade(200);
    let (place, wrong) =
        seen.iter().enumerate().find_map(|(place, line)| Some((place, doctored(line)?))).unwrap();
    seen[place] = wrong;
    watch.tell(&seen);
    watch.wait_for("\"kind\":\"ext\"");
    let findings = watch.findings();
    let (said, exit) = watch.end();
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("traced transactions joined with the change stream"), "{said}");
    let violations: Vec<&str> = findings.lines().filter(|line| line.contains("\"violation\":true")).collect();
    assert_eq!(violations.len(), 1, "{findings}");
    assert!(violations[0].contains("123456789"), "{findings}");
}

/// Waits for what must come; a minute is more than enough.
fn wait(mut is_there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_cannot_be_followed_is_said() {
    let said = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
        let output = command.arg("watch").args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        String::from_utf8(output.stderr).unwrap()
    };
    let nowhere = "postgres://nobody@localhost:1/none";
    assert!(said(&[nowhere, "--level", "serializable"]).contains("snapshot isolation"));
    assert!(said(&[nowhere, "--window", "10"]).contains("--grace"));
    assert!(said(&[nowhere, nowhere]).contains("one database"));
    assert!(said(&["--table", "x"]).contains("postgres://"));
    assert!(said(&[nowhere]).contains("following the database"));
}
