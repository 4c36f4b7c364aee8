//! Several workers, several processes, and processes that die, as a user sees them.
#![cfg(feature = "cluster")]

use corpus::Loopback;
use history::Builder;
use history::formats::{Format, Part, Warnings, Writing, jsonl};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const TAIPAN: &str = env!("CARGO_BIN_EXE_taipan");

fn taipan(arguments: &[&str]) -> Command {
    let mut command = Command::new(TAIPAN);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    taipan(arguments).output().expect("taipan runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What JSON says but for what a check cost, and for the core as data, which workers do not have.
fn verdict(output: &Output) -> String {
    let line = text(&output.stdout);
    let (verdict, _) = line.split_once(",\"stats\"").unwrap_or_else(|| panic!("a finding: {output:?}"));
    let (before, after) = verdict.split_once(",\"level\"").expect("a level");
    assert!(before.starts_with("{\"file\""), "{before}");
    let after = match (after.split_once(",\"core\":["), after.split_once("],\"explanation\":")) {
        (Some((head, _)), Some((_, tail))) => format!("{head},\"explanation\":{tail}"),
        _ => after.to_owned(),
    };
    // What an accepted history tested needs all of it.
    match after.split_once(",\"coverage\":{") {
        Some((head, tail)) => format!("{head}{}", tail.split_once('}').map_or("", |(_, rest)| rest)),
        None => after,
    }
}

fn generate(folder: &Path, name: &str, more: &[&str]) -> String {
    let path = folder.join(name).display().to_string();
    let mut arguments = vec!["generate", "-n", "3000", "--target", "sim:snapshot-isolation"];
    arguments.extend(more);
    arguments.push(&path);
    assert!(run(&arguments).status.success());
    path
}

fn hosts(folder: &Path, addresses: &[String]) -> String {
    let path = folder.join("hosts.txt");
    std::fs::write(&path, addresses.join("\n")).expect("written");
    path.display().to_string()
}

fn loopback() -> Loopback {
    Loopback::hold().expect("an address")
}

#[test]
fn shards_and_workers_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, more) in [("ok.jsonl", &[][..]), ("bad.jsonl", &["--bug", "lost-update:2"])] {
        let path = generate(folder.path(), name, more);
        let check = ["check", "--level", "SI", "--output", "json"];
        // By timestamps all that is reported is the same; by results a search may find another core.
        let by_timestamps = [&check[..], &["--by", "timestamps"]].concat();
        let alone = run(&[&by_timestamps[..], &[&path]].concat());
        let by_results = run(&[&check[..], &[&path]].concat());
        assert_eq!(by_results.status.code(), alone.status.code());
        for by in ["session", "time"] {
            let shards = folder.path().join(format!("{name}-{by}")).display().to_string();
            let split = run(&["split", &path, &shards, "--shards", "5", "--by", by, "--to", "binary"]);
            assert!(split.status.success(), "{split:?}");
            let whole = run(&[&by_timestamps[..], &[&shards]].concat());
            assert_eq!(verdict(&whole), verdict(&alone));
            for workers in ["1", "3"] {
                for file in [&path, &shards] {
                    let many = run(&[&by_timestamps[..], &["--workers", workers, file]].concat());
                    assert_eq!(verdict(&many), verdict(&alone), "{workers} on {file}");
                    assert_eq!(many.status.code(), alone.status.code());
                    let many = run(&[&check[..], &["--workers", workers, file]].concat());
                    assert_eq!(many.status.code(), by_results.status.code(), "{workers} on {file}");
                }
            }
        }
    }
}

#[test]
fn processes_agree_and_the_first_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(folder.path(), "bad.jsonl", &["--bug", "lost-update:1"]);
    let check = ["check", "--level", "SI", "--by", "timestamps", "--output", "json"];
    let alone = run(&[&check[..], &[&path]].concat());
    let loopback = loopback();
    let hosts = hosts(folder.path(), &loopback.addresses(3));
    let start = |process: &str| -> Child {
        taipan(&check)
            .args(["--cluster", &hosts, "--process", process])
            .arg(&path)
            .spawn()
            .expect("taipan runs")
    };
    let outputs: Vec<Output> = ["0", "1", "2"]
        .map(start)
        .into_iter()
        .map(|child| child.wait_with_output().expect("it ends"))
        .collect();
    assert_eq!(verdict(&outputs[0]), verdict(&alone));
    for output in &outputs {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    assert!(text(&outputs[1].stderr).contains("violated, as process 0 reports"), "{:?}", outputs[1]);
    assert!(outputs[2].stdout.is_empty());
}

/// Processes that would not do the same refuse each other, by name of what differs: what one reads of another file, or of
/// files that the other takes for its own, would be a verdict on nothing.
#[test]
fn processes_that_would_not_do_the_same_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(folder.path(), "ok.jsonl", &[]);
    let other = folder.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    let bytes = std::fs::read(&path).expect("written");
    std::fs::write(other.join("ok.jsonl"), &bytes[..bytes.len() / 2]).expect("written");
    let other = other.join("ok.jsonl").display().to_string();
    let loopback = loopback();
    let addresses = loopback.addresses(2);
    let hosts = hosts(folder.path(), &addresses);
    let cases: [(&[&str], &str, &str); 4] = [
        (&["--shards", "own"], &path, "--shards is own for process 1 and shared for process 0"),
        (&["--by", "timestamps"], &path, "--by is timestamps for process 1 and results for process 0"),
        (&["--workers", "3"], &path, "--workers is 3 for process 1 and 1 for process 0"),
        (&[], &other, "file ok.jsonl is "),
    ];
    for (more, file, expected) in cases {
        let check = ["check", "--level", "SI", "--cluster", &hosts, "--process"];
        let first = taipan(&check).args(["0", &path]).spawn().expect("taipan runs");
        let second = taipan(&check).arg("1").args(more).arg(file).output().expect("taipan runs");
        let first = first.wait_with_output().expect("it ends");
        for (output, there) in [(&first, 1), (&second, 0)] {
            assert_eq!(output.status.code(), Some(3), "{output:?}");
            assert!(output.stdout.is_empty(), "no verdict: {output:?}");
            let said = text(&output.stderr);
            assert!(said.contains(&format!("process {there} at {}", addresses[there])), "{said}");
        }
        assert!(text(&first.stderr).contains(expected), "{expected}: {first:?}");
    }
    // A process of a watch and one of a check.
    let first = taipan(&["check", "--level", "SI", "--cluster", &hosts, "--process", "0", &path]).spawn();
    let second = run(&["watch", "--cluster", &hosts, "--process", "1"]);
    let first = first.expect("taipan runs").wait_with_output().expect("it ends");
    assert_eq!((first.status.code(), second.status.code()), (Some(3), Some(3)), "{first:?} {second:?}");
    assert!(
        text(&second.stderr).contains("command is check for process 0 and watch for process 1"),
        "{second:?}"
    );
}

/// Transactions that count, in two parts of a file that are read apart. The last but a few is named by `again`.
fn numbered(path: &Path, name: Naming<'_>, again: &str, count: usize) {
    let mut text = String::new();
    for number in 0..count {
        let id = match number + 100 == count {
            true => again.to_owned(),
            false => name(number),
        };
        let times = format!("{{\"start\":{},\"commit\":{}}}", 2 * number + 1, 2 * number + 2);
        let write = format!("{{\"op\":\"write\",\"key\":{},\"value\":{number}}}", number % 500);
        text += &format!("{{\"session\":{},{id}\"db\":{times},\"ops\":[{write}]}}\n", number % 4);
    }
    if path.extension().is_some_and(|ending| ending == "jsonl") {
        std::fs::write(path, text).expect("written");
        return;
    }
    // Frames that nobody looked at together.
    let mut writing = Writing::create(path).expect("a file");
    let mut builder = Builder::new();
    let mut before = 0;
    let half = text[..text.len() / 2].rfind('\n').expect("a line") + 1;
    for (index, half) in (0..).zip([&text[..half], &text[half..]]) {
        jsonl::read(half.as_bytes(), &mut builder, &mut Warnings::new(false)).expect("lines");
        let part = builder.take_part().expect("a part");
        let place = Part { index, last: index == 1, transactions_before: before, operations_before: before };
        writing.part(&part, Format::Binary, place).expect("written");
        before += part.len() as u64;
    }
    writing.finish().expect("written");
}

const COUNT: usize = 100_000;

/// What a transaction is called, by number: a field, or nothing.
type Naming<'a> = &'a dyn Fn(usize) -> String;

/// An id that comes twice is refused by several workers as by one, whoever read it.
#[test]
fn an_id_that_two_workers_read_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |id: String| format!("\"id\":{id},");
    let counted = |number: usize| named(number.to_string());
    let odd =
        |number: usize| named(format!("\"{:x}-x\"", (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let none = |_: usize| String::new();
    let cases: [(&str, Naming<'_>, String); 3] = [
        ("counted", &counted, counted(1_000)),
        ("odd", &odd, odd(1_000)),
        ("default", &none, named("\"0:250\"".to_owned())),
    ];
    for (what, name, again) in cases {
        for ending in ["jsonl", "tph"] {
            let path = folder.path().join(format!("{what}.{ending}"));
            numbered(&path, name, &again, COUNT);
            let path = path.display().to_string();
            let alone = run(&["check", "--level", "SI", &path]);
            assert_eq!(alone.status.code(), Some(3), "{alone:?}");
            let said = text(&alone.stderr);
            assert!(said.contains("is used twice: ids must be unique in a history"), "{said}");
            let by: [&[&str]; 4] = [
                &["--level", "SI"],
                &["--level", "SI", "--by", "timestamps", "--ryow", "may"],
                &["--level", "causal", "--by", "results"],
                &["--level", "serializable", "--by", "results"],
            ];
            for by in by {
                let mut several = taipan(&["check", "--workers", "2"]);
                let several = several.args(by).arg(&path).output().expect("taipan runs");
                assert_eq!(several.status.code(), Some(3), "{several:?}");
                assert_eq!(text(&several.stderr), said, "{by:?}");
            }
        }
        // Nothing is refused that is not there twice.
        let path = folder.path().join("good.jsonl");
        let other = if what == "default" { named("\"0:100000\"".to_owned()) } else { name(COUNT) };
        numbered(&path, name, &other, COUNT);
        for by in [&["--level", "SI"][..], &["--level", "SI", "--by", "timestamps", "--ryow", "may"]] {
            let mut several = taipan(&["check", "--workers", "2"]);
            let several = several.args(by).arg(&path).output().expect("taipan runs");
            assert_eq!(several.status.code(), Some(0), "{several:?}");
        }
    }
}

/// One process that reads a large file in parts accepts it with its ids, and refuses one that comes twice.
#[test]
fn ids_of_a_large_file_are_read_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.jsonl");
    let name = |number: usize| format!("\"id\":\"t{number}\",");
    for (again, status) in [(name(7), 3), (name(2 * COUNT), 0)] {
        numbered(&path, &name, &again, 2 * COUNT);
        assert!(std::fs::metadata(&path).expect("a file").len() > 16 << 20, "it is large");
        let output = run(&["check", "--level", "SI", &path.display().to_string()]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        match status {
            0 => assert!(text(&output.stdout).contains("✔ "), "{output:?}"),
            _ => assert!(text(&output.stderr).contains("h.jsonl:199901:"), "{output:?}"),
        }
    }
}

/// Two processes with files of their own, and a folder of shards.
#[test]
fn an_id_in_two_files_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let shards: Vec<PathBuf> =
        (0..2).map(|number| folder.path().join(format!("shards/shard-000{number}.jsonl"))).collect();
    std::fs::create_dir(folder.path().join("shards")).expect("a folder");
    numbered(&shards[0], &|number| format!("\"id\":{number},"), "\"id\":\"x\",", 200);
    numbered(&shards[1], &|number| format!("\"id\":{},", number + 1_000), "\"id\":7,", 200);
    let whole = folder.path().join("shards").display().to_string();
    let alone = run(&["check", "--level", "SI", &whole]);
    assert_eq!(alone.status.code(), Some(3), "{alone:?}");
    let several = run(&["check", "--level", "SI", "--workers", "2", &whole]);
    assert_eq!(several.status.code(), Some(3), "{several:?}");
    assert_eq!(text(&several.stderr), text(&alone.stderr));
    let loopback = loopback();
    let hosts = hosts(folder.path(), &loopback.addresses(2));
    let start = |process: &str, file: &Path| -> Child {
        let mut command = taipan(&["check", "--level", "SI", "--shards", "own", "--cluster", &hosts]);
        command.args(["--process", process]).arg(file).spawn().expect("taipan runs")
    };
    for child in [start("0", &shards[0]), start("1", &shards[1])] {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("process 1: ") && said.contains("transaction id 7 is used twice"), "{said}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

/// Process 2 reads a pipe in which nothing comes, and is killed while the others wait for it.
#[test]
fn a_process_that_dies_is_named_and_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(folder.path(), "h.jsonl", &[]);
    let pipe: PathBuf = folder.path().join("pipe.jsonl");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        return corpus::missing("mkfifo", &"mkfifo makes no pipe here");
    }
    let loopback = loopback();
    let addresses = loopback.addresses(3);
    let hosts = hosts(folder.path(), &addresses);
    let start = |process: &str, file: &str| -> Child {
        let mut command = taipan(&["check", "--level", "SI", "--shards", "own", "--cluster", &hosts]);
        command.args(["--process", process, file]).spawn().expect("taipan runs")
    };
    let pipe_name = pipe.display().to_string();
    let others = [start("0", &path), start("1", &path)];
    let mut doomed = start("2", &pipe_name);
    // Opens when process 2 has begun to read: then everybody is connected.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).expect("the pipe");
    writer.write_all(b"{\"session\":77,\"ops\":[").expect("written");
    doomed.kill().expect("killed");
    doomed.wait().expect("it is gone");
    for child in others {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(&format!("lost process 2 at {}", addresses[2])), "{error}");
        assert!(output.stdout.is_empty(), "no verdict: {output:?}");
    }
    drop(writer);
}

/// A watch with keys on workers of three processes tells what one thread tells, byte for byte, and goes on from its state with
/// any other number.
#[test]
fn a_watch_on_workers_and_processes_tells_what_one_thread_tells() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = generate(folder.path(), "bad.jsonl", &["--bug", "lost-update:2", "--bug", "stale-read:2"]);
    let alone = run(&["watch", &path, "--window", "300", "-q"]);
    assert_eq!(alone.status.code(), Some(1), "{alone:?}");
    for workers in ["1", "2", "4"] {
        let several = run(&["watch", &path, "--window", "300", "-q", "--workers", workers]);
        assert_eq!(text(&several.stdout), text(&alone.stdout), "{workers} workers");
        assert_eq!(several.status.code(), Some(1));
    }
    let loopback = loopback();
    let hosts = hosts(folder.path(), &loopback.addresses(3));
    let state = folder.path().join("state").display().to_string();
    let crew = |process: &'static str| ["watch", "--cluster", &hosts, "--process", process, "--workers", "2"];
    let others = [crew("1"), crew("2")].map(|arguments| taipan(&arguments).spawn().expect("taipan runs"));
    let mut first = taipan(&crew("0"));
    let first = first.args([&path, "--window", "300", "--monitor", "1", "--state", &state]).output();
    let first = first.expect("taipan runs");
    assert_eq!(text(&first.stdout), text(&alone.stdout));
    assert_eq!(first.status.code(), Some(1), "{first:?}");
    assert!(text(&first.stderr).contains("worker 5: "), "{first:?}");
    for other in others {
        let output = other.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    // All of it is known from the state, whatever the number of workers.
    let again = run(&["watch", &path, "--window", "300", "--state", &state, "--workers", "3"]);
    let found = text(&again.stdout);
    let count = found.lines().filter(|line| line.contains("\"kind\":\"duplicate\"")).count();
    assert!(
        count > 2500 && count == found.lines().count(),
        "{count} duplicates of {}",
        found.lines().count()
    );
}

/// A process with keys of a watch is killed: the others name it, and no more is reported.
#[test]
fn a_watch_without_one_of_its_processes_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let loopback = loopback();
    let addresses = loopback.addresses(3);
    let hosts = hosts(folder.path(), &addresses);
    let start = |process: &str| -> Child {
        let mut command =
            taipan(&["watch", "--cluster", &hosts, "--process", process, "--explicit-watermarks"]);
        command.stdin(Stdio::piped()).spawn().expect("taipan runs")
    };
    let mut first = start("0");
    let (second, mut doomed) = (start("1"), start("2"));
    // A finding says that all are there and work.
    let mut input = first.stdin.take().expect("a pipe");
    for number in 1..50 {
        let read = format!("{{\"op\":\"read\",\"key\":{number},\"value\":5}}");
        let times = format!("{{\"start\":{},\"commit\":{}}}", 2 * number, 2 * number + 1);
        writeln!(input, "{{\"session\":1,\"db\":{times},\"ops\":[{read}]}}").expect("it listens");
    }
    writeln!(input, "{{\"watermark\":90}}").expect("it listens");
    let mut found = String::new();
    let mut output = std::io::BufReader::new(first.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut output, &mut found).expect("a finding");
    assert!(found.starts_with("{\"number\":0,\"kind\":\"ext\""), "{found}");
    doomed.kill().expect("killed");
    doomed.wait().expect("it is gone");
    for child in [first, second] {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(&format!("lost process 2 at {}", addresses[2])), "{error}");
    }
}

/// Three hosts on one machine: network namespaces behind a bridge.
#[test]
fn hosts_in_namespaces_of_their_own() {
    let ip = |arguments: &str| {
        let done = Command::new("ip").args(arguments.split(' ')).output();
        done.map_err(|error| error.to_string()).and_then(|done| match done.status.success() {
            true => Ok(()),
            false => Err(text(&done.stderr)),
        })
    };
    let name = format!("tpn{}", std::process::id() % 10_000);
    if let Err(why) = ip(&format!("link add {name}b type bridge")) {
        return corpus::missing("namespaces", &format!("needs root and iproute2 with namespaces: {why}"));
    }
    let build = || {
        ip(&format!("link set {name}b up"))?;
        for host in 0..3 {
            ip(&format!("netns add {name}{host}"))?;
            ip(&format!("link add {name}v{host} type veth peer name eth0 netns {name}{host}"))?;
            ip(&format!("link set {name}v{host} master {name}b up"))?;
            ip(&format!("-n {name}{host} addr add 10.217.0.{}/24 dev eth0", host + 1))?;
            ip(&format!("-n {name}{host} link set eth0 up"))?;
            ip(&format!("-n {name}{host} link set lo up"))?;
        }
        Ok::<(), String>(())
    };
    let result = build().map(|()| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = generate(folder.path(), "bad.jsonl", &["--bug", "lost-update:1"]);
        let alone = run(&["check", "--level", "SI", "--output", "json", &path]);
        let addresses: Vec<String> = (1..4).map(|host| format!("10.217.0.{host}:7300")).collect();
        let hosts = hosts(folder.path(), &addresses);
        let start = |host: usize| -> Child {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &format!("{name}{host}"), TAIPAN, "check", "--level", "SI"]);
            command.args(["--output", "json", "--cluster", &hosts, "--process", &host.to_string(), &path]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ip runs")
        };
        let outputs: Vec<Output> = [0, 1, 2]
            .map(start)
            .into_iter()
            .map(|child| child.wait_with_output().expect("it ends"))
            .collect();
        (verdict(&outputs[0]), verdict(&alone))
    });
    for host in 0..3 {
        // What was not made cannot be removed.
        let _ = ip(&format!("netns del {name}{host}"));
    }
    let _ = ip(&format!("link del {name}b"));
    match result {
        Ok((many, alone)) => assert_eq!(many, alone),
        Err(why) => corpus::missing("namespaces", &format!("namespaces cannot be made here: {why}")),
    }
}
