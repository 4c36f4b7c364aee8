//! What other programs read: JSON keeps to its schema, JUnit to the common ones, SARIF to what code scanning needs.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/data");

/// Files and flags that between them have every verdict, every kind of argument and every strategy.
const RUNS: &[&[&str]] = &[
    &[
        "check",
        "skew.jsonl",
        "serial.jsonl",
        "misspelt.jsonl",
        "nowhere.jsonl",
        "empty.jsonl",
        "aborted.jsonl",
    ],
    &[
        "check",
        "--level",
        "SI,SER,RC,causal",
        "busy.hist",
        "locking.hist",
        "mixed-queries.hist",
        "stale.jsonl",
    ],
    &["check", "--level", "strict-serializable", "serial.jsonl", "behind.hist", "stale-read.jsonl"],
    &["check", "--all-levels", "behind.hist", "skew.jsonl"],
    &["check", "--anomalies", "busy.hist"],
    &["check", "--by", "timestamps", "broken.hist", "late.hist", "skew.jsonl"],
    &["check", "--compare", "broken.hist", "late.hist"],
    &["check", "--level", "SI", "late.hist"],
    &["check", "--baseline", "known.json", "skew.jsonl", "serial.jsonl"],
    &["check", "--mixed", "mixed.hist", "mixed-queries.hist"],
    &["check", "--ryow", "may", "own-write.hist", "skew.jsonl"],
    &["check", "--timeout", "0.000001", "skew.jsonl"],
    &["check", "--strategy", "eager-pairs", "skew.jsonl", "serial.jsonl"],
    &["check", "--strategy", "eager-cobra", "skew.jsonl", "serial.jsonl"],
    &["check", "--strategy", "eager-polysi", "--level", "SI", "busy.hist", "skew.jsonl"],
    &["check", "--strategy", "eager-veristrong", "skew.jsonl", "busy.hist"],
];

fn taipan(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    command.args(args).current_dir(folder).env("NO_COLOR", "1").output().expect("the program runs")
}

fn printed(folder: &Path, form: &str, args: &[&str]) -> String {
    let all: Vec<&str> = args[..1].iter().chain(&["--output", form]).chain(&args[1..]).copied().collect();
    String::from_utf8(taipan(folder, &all).stdout).expect("text")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn schema() -> Value {
    let text = include_str!("../../../docs/schema/check-output.schema.json");
    serde_json::from_str(text).expect("the schema is JSON")
}

/// The schema with that of histories, which it refers to, in one document: the validator does not follow references
/// from a second document into itself.
fn bundled() -> Value {
    let text = include_str!("../../../docs/schema/check-output.schema.json");
    let text = text.replace("history.schema.json#", "#");
    let mut schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    let history = include_str!("../../../docs/schema/history.schema.json");
    let history: Value = serde_json::from_str(history).expect("the schema is JSON");
    let shared = schema["$defs"].as_object_mut().expect("definitions");
    for (name, definition) in history["$defs"].as_object().expect("definitions") {
        assert!(shared.insert(name.clone(), definition.clone()).is_none(), "{name} is defined twice");
    }
    schema
}

/// Calls the first argument with each line of JSON that the runs print.
fn each_line(mut see: impl FnMut(&[&str], &Value)) {
    let runs = RUNS.iter().copied().chain([&["explain", "skew.jsonl"][..], &["explain", "busy.hist"]]);
    for run in runs {
        let text = printed(Path::new(DATA), "json", run);
        assert!(!text.is_empty(), "{run:?}");
        for line in text.lines() {
            see(run, &serde_json::from_str(line).unwrap_or_else(|error| panic!("{run:?}: {error}: {line}")));
        }
    }
}

#[test]
fn json_keeps_to_its_schema() {
    let schema = jsonschema::draft202012::new(&bundled()).expect("a schema");
    let mut verdicts = BTreeSet::new();
    each_line(|run, line| {
        if let Err(errors) = schema.validate(line) {
            let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
            panic!("{run:?}: {errors:?}\n{line:#}");
        }
        verdicts.insert(line["verdict"].as_str().expect("a verdict").to_owned());
    });
    assert_eq!(
        verdicts.iter().map(String::as_str).collect::<Vec<_>>(),
        ["accepted", "error", "undecided", "violated"]
    );
    // The schema says something.
    for wrong in [
        r#"{"file":"a","verdict":"error"}"#,
        r#"{"file":"a","level":"serializable","verdict":"fine","stats":{}}"#,
        r#"{"file":"a","level":"serializable","verdict":"violated","stats":{"transactions":1,"operations":1,"sessions":1,"read_ms":0,"check_ms":0,"peak_rss_bytes":0}}"#,
    ] {
        let wrong: Value = serde_json::from_str(wrong).expect("JSON");
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn steps_are_numbered_and_each_is_there_once() {
    let mut inferred = 0;
    each_line(|run, line| {
        let steps = |name: &str| line[name].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = steps("explanation").into_iter().chain(steps("support")).collect();
        let mut told = BTreeSet::new();
        for (index, step) in all.iter().enumerate() {
            assert_eq!(step["step"], index + 1, "{run:?}");
            let what = [&step["from"], &step["to"], &step["edge"], &step["why"]].map(Value::to_string);
            assert!(told.insert(what), "{run:?}: twice: {step}");
            for number in step["because"].as_array().into_iter().flatten() {
                inferred += 1;
                let number = number.as_u64().expect("a number") as usize;
                assert!((1..=all.len()).contains(&number) && number != index + 1, "{run:?}: {step}");
            }
        }
    });
    assert!(inferred > 0, "no argument has an inferred step");
}

#[test]
fn core_operations_are_those_of_the_file() {
    let mut compared = 0;
    each_line(|run, line| {
        let file = line["file"].as_str().expect("a file");
        if !file.ends_with(".jsonl") {
            return;
        }
        for member in line["core"].as_array().into_iter().flatten() {
            let Some(number) = member["line"].as_u64() else { continue };
            let text = std::fs::read_to_string(Path::new(DATA).join(file)).expect("a file");
            let there = text.lines().nth(number as usize - 1).expect("a line");
            let there: Value = serde_json::from_str(there).expect("JSON");
            assert_eq!(member["transaction"]["session"], there["session"], "{run:?}");
            assert_eq!(member["transaction"]["ops"], there["ops"], "{run:?}");
            compared += 1;
        }
    });
    assert!(compared >= 4, "{compared}");
    let workers = printed(Path::new(DATA), "json", &["check", "--workers", "2", "skew.jsonl"]);
    assert!(workers.contains("explanation") && !workers.contains("\"core\""), "{workers}");
}

/// Whatever the checker may count is documented.
#[test]
fn every_counter_is_in_the_schema() {
    let schema = schema();
    let documented =
        schema["$defs"]["finding"]["properties"]["stats"]["properties"]["counters"]["properties"].as_object();
    let documented = documented.expect("an object");
    let engines = ["encodings", "evidence", "isolation", "replay", "search"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open: Vec<PathBuf> = engines.iter().map(|name| folder.join(name).join("src")).collect();
    let mut found = BTreeSet::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("a file").path()),
            );
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        for part in text.split("record(\"").skip(1) {
            found.extend(part.split('"').next().map(str::to_owned));
        }
    }
    assert!(found.contains("suspects") && found.len() > 15, "{found:?}");
    let missing: Vec<&String> = found.iter().filter(|name| !documented.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not in docs/schema/check-output.schema.json: {missing:?}");
}

/// An element of XML.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    children: Vec<Element>,
    text: String,
}

impl Element {
    fn count(&self, name: &str) -> u64 {
        self.attributes[name].parse().unwrap_or_else(|_| panic!("{name} is no number: {self:?}"))
    }

    fn seconds(&self) -> f64 {
        let time = &self.attributes["time"];
        let (whole, part) = time.split_once('.').expect("a decimal number");
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        assert!(digits(whole) && digits(part) && part.len() <= 3, "{time}");
        time.parse().expect("a number")
    }

    fn has_only(&self, names: &[&str]) {
        let here: Vec<&str> = self.attributes.keys().map(String::as_str).collect();
        let mut names = names.to_vec();
        names.sort_unstable();
        assert_eq!(here, names, "attributes of {}", self.name);
    }
}

fn xml(text: &str) -> Element {
    // Of all below the space XML 1.0 takes only these, and neither of the two last of the plane.
    let is_allowed = |letter: char| match letter {
        '\t' | '\n' | '\r' => true,
        letter => letter >= ' ' && !matches!(letter, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'),
    };
    assert!(text.chars().all(is_allowed), "a control character: {text:?}");
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let is_empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => {
                let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                let attributes = tag.attributes().map(|attribute| {
                    let attribute = attribute.expect("an attribute");
                    let value = name(&attribute.value);
                    (name(attribute.key.as_ref()), value)
                });
                let element = Element {
                    attributes: attributes.collect(),
                    name: name(tag.name().as_ref()),
                    ..Element::default()
                };
                match is_empty {
                    true => open.last_mut().expect("the root").children.push(element),
                    false => open.push(element),
                }
            }
            Event::End(_) => {
                let element = open.pop().expect("it was opened");
                open.last_mut().expect("the root").children.push(element);
            }
            Event::Text(text) => {
                open.last_mut().expect("the root").text += &String::from_utf8_lossy(&text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let mut root = open.pop().expect("the root");
    root.children.pop().expect("an element")
}

/// What both Ant's schema and that of Jenkins' xUnit plugin require.
fn is_junit(text: &str) -> Vec<Element> {
    let root = xml(text);
    assert_eq!(root.name, "testsuites");
    root.has_only(&[]);
    for (place, suite) in root.children.iter().enumerate() {
        assert_eq!(suite.name, "testsuite");
        suite.has_only(&[
            "id",
            "package",
            "name",
            "timestamp",
            "hostname",
            "tests",
            "failures",
            "errors",
            "skipped",
            "time",
        ]);
        assert_eq!(suite.count("id"), place as u64);
        let shape: String = suite.attributes["timestamp"]
            .chars()
            .map(|it| if it.is_ascii_digit() { '0' } else { it })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00");
        let names: Vec<&str> = suite.children.iter().map(|child| child.name.as_str()).collect();
        let [first, cases @ .., out, err] = names.as_slice() else { panic!("{names:?}") };
        assert_eq!((*first, *out, *err), ("properties", "system-out", "system-err"));
        assert!(!cases.is_empty() && cases.iter().all(|name| *name == "testcase"), "{names:?}");
        for property in &suite.children[0].children {
            assert_eq!(property.name, "property");
            property.has_only(&["name", "value"]);
        }
        let (mut results, mut time) = (BTreeMap::<&str, u64>::new(), 0.0);
        for case in suite.children.iter().filter(|child| child.name == "testcase") {
            case.has_only(&["name", "classname", "time"]);
            time += case.seconds();
            assert!(case.children.len() <= 1, "{case:?}");
            for result in &case.children {
                match result.name.as_str() {
                    "skipped" => result.has_only(&["message"]),
                    _ => result.has_only(&["type", "message"]),
                }
                *results.entry(result.name.as_str()).or_default() += 1;
            }
        }
        assert!((suite.seconds() - time).abs() < 0.0005, "{time}: {suite:?}");
        assert_eq!(suite.count("tests"), cases.len() as u64);
        for (attribute, element) in [("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
            assert_eq!(suite.count(attribute), results.remove(element).unwrap_or_default(), "{attribute}");
        }
        assert!(results.is_empty(), "{results:?}");
    }
    root.children
}

#[test]
fn junit_is_valid() {
    let mut kinds = BTreeSet::new();
    for run in RUNS {
        for suite in is_junit(&printed(Path::new(DATA), "junit", run)) {
            for result in suite.children.iter().flat_map(|case| &case.children) {
                if result.name != "property" {
                    let kind = result.attributes.get("type").cloned().unwrap_or_default();
                    kinds.insert((result.name.clone(), kind));
                }
            }
        }
    }
    for (element, kind) in
        [("error", "undecided"), ("error", "unreadable"), ("skipped", ""), ("failure", "G2-item")]
    {
        assert!(kinds.contains(&(element.to_owned(), kind.to_owned())), "{element} {kind}: {kinds:?}");
    }
    assert!(kinds.iter().all(|(element, kind)| element != "error" || kind.starts_with("un")), "{kinds:?}");
}

#[test]
fn names_that_act_do_not_get_into_junit() {
    let folder = folder("acting-names");
    let name = "a\u{1}b\u{fffe}<&\">.jsonl";
    let text =
        "{\"session\":\"\\u0007s\",\"ops\":[{\"op\":\"read\",\"key\":\"\\uffff\\u0001]]>\",\"value\":1}]}\n";
    std::fs::write(folder.join(name), text).expect("a file");
    let suites = is_junit(&printed(&folder, "junit", &["check", name]));
    assert_eq!(suites[0].count("failures"), 1);
    is_junit(&printed(&folder, "junit", &["check", "no\u{2}where.jsonl"]));
}

/// Which claim was checked, and what timestamps refuse, stands in every form.
#[test]
fn every_form_says_what_was_checked() {
    for form in ["text", "json", "junit", "sarif", "html", "markdown"] {
        let text = printed(Path::new(DATA), form, &["check", "--level", "SI", "late.hist"]);
        assert!(text.contains("another order explains the results"), "{form}: {text}");
        let text = printed(Path::new(DATA), form, &["check", "--by", "timestamps", "late.hist"]);
        assert!(text.contains("timestamps"), "{form}: {text}");
    }
    for form in ["junit", "sarif", "html", "markdown"] {
        let text = printed(Path::new(DATA), form, &["check", "--level", "SI", "late.hist"]);
        assert!(text.contains("Checked by results"), "{form}: {text}");
        let text = printed(Path::new(DATA), form, &["check", "--by", "timestamps", "late.hist"]);
        assert!(text.contains("Checked by the database"), "{form}: {text}");
    }
}

fn sarif(folder: &Path, args: &[&str]) -> Value {
    let log: Value = serde_json::from_str(&printed(folder, "sarif", args)).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    log["runs"][0].clone()
}

#[test]
fn sarif_has_what_code_scanning_needs() {
    let mut results = 0;
    for run in RUNS {
        let log = sarif(Path::new(DATA), run);
        let rules = log["tool"]["driver"]["rules"].as_array().expect("rules");
        for rule in rules {
            for text in ["shortDescription", "fullDescription", "help"] {
                assert!(rule[text]["text"].as_str().is_some_and(|it| it.len() > 10), "{run:?}: {rule:#}");
            }
            assert!(rule["help"]["markdown"].as_str().is_some_and(|it| it.starts_with("# ")), "{rule:#}");
            let page =
                rule["helpUri"].as_str().and_then(|it| it.split_once("/blob/main/")).expect("a page").1;
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
            assert!(page.is_file(), "{}", page.display());
        }
        for result in log["results"].as_array().expect("results") {
            results += 1;
            let rule = &rules[result["ruleIndex"].as_u64().expect("a number") as usize];
            assert_eq!(rule["id"], result["ruleId"], "{run:?}");
            assert_eq!((result["kind"].as_str(), result["level"].as_str()), (Some("fail"), Some("error")));
            let file = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str();
            let text = std::fs::read_to_string(Path::new(DATA).join(file.expect("a file"))).expect("text");
            let related = result["relatedLocations"].as_array().expect("transactions");
            assert!(!related.is_empty(), "{run:?}");
            for place in related.iter().chain([&result["locations"][0]]) {
                let line = place["physicalLocation"]["region"]["startLine"].as_u64();
                let line = text.lines().nth(line.expect("a line") as usize - 1).expect("a line of the file");
                let session = place["logicalLocations"][0]["fullyQualifiedName"].as_str().expect("a name");
                let session = session.split(['/', ' ']).nth(1).expect("a session");
                let begins = [format!("{session}:"), format!("{{\"session\":{session},")];
                assert!(begins.iter().any(|it| line.starts_with(it.as_str())), "{session}: {line}");
            }
            let prints = result["partialFingerprints"].as_object().expect("fingerprints");
            assert_eq!(prints.len(), 2);
            assert!(prints.values().all(|print| print == &prints["taipanArgument/v1"]));
        }
    }
    assert!(results >= 12, "{results}");
}

#[test]
fn two_runs_of_one_bug_have_one_fingerprint() {
    let folder = folder("fingerprints");
    let print = |text: &str| {
        std::fs::write(folder.join("run.hist"), text).expect("a file");
        let log = sarif(&folder, &["check", "run.hist"]);
        let prints = &log["results"][0]["partialFingerprints"]["taipanArgument/v1"];
        prints.as_str().unwrap_or_else(|| panic!("no violation: {text}")).to_owned()
    };
    // A cycle of edges of different kinds, begun at another place, with other names, values and neighbours.
    let first = print("init: x=0 y=0\ns1: w(x,1) w(y,1)\ns2: r(x,1) r(y,0)\n");
    let second =
        print("init: k=5 l=6\nb: r(z,_) | r(l,7) r(k,5)\na: [77] w(k,9) w(l,7)\nc: w(z,1) | r(z,1)\n");
    assert_eq!(first, second);
    let other = print("init: x=0 y=0\ns1: r(x,0) w(y,1)\ns2: r(y,0) w(x,1)\n");
    assert_ne!(first, other);
}

#[test]
fn a_page_beside_it_changes_nothing_that_is_printed() {
    let folder = folder("page-beside");
    let page = folder.join("page.html");
    let page = page.to_str().expect("a name");
    for form in ["sarif", "markdown", "text"] {
        let args = ["check", "busy.hist", "stale-read.jsonl"];
        let alone = printed(Path::new(DATA), form, &args);
        let beside = printed(Path::new(DATA), form, &[&args[..], &["--report", page]].concat());
        let timeless =
            |text: &str| text.lines().filter(|line| !line.contains(" ms)")).collect::<Vec<_>>().join("\n");
        assert_eq!(timeless(&alone), timeless(&beside), "{form}");
    }
}

#[test]
fn many_files_end_with_a_line_that_adds_them_up() {
    let last = |args: &[&str]| {
        let output = taipan(Path::new(DATA), args);
        let text = String::from_utf8(output.stdout).expect("text");
        (text.lines().last().unwrap_or_default().to_owned(), output.status.code())
    };
    let many = ["check", "serial.jsonl", "skew.jsonl", "misspelt.jsonl", "stale.jsonl"];
    assert_eq!(last(&many), ("4 files: 2 accepted, 1 violated, 1 not checked".to_owned(), Some(3)));
    let (line, exit) = last(&["check", "--level", "SER,strict-serializable", "serial.jsonl", "skew.jsonl"]);
    assert_eq!(line, "2 files, 4 checks: 1 accepted, 2 violated, 1 undecided");
    assert_eq!(exit, Some(1));
    let (line, exit) = last(&["check", "--baseline", "known.json", "serial.jsonl", "skew.jsonl"]);
    assert_eq!((line.as_str(), exit), ("2 files: 1 accepted, 1 violated as before", Some(0)));
    let (line, _) = last(&["check", "serial.jsonl"]);
    assert!(!line.contains("files"), "{line}");
}

/// The commands of the ready-made workflow, with the book and README beside it.
#[test]
fn the_workflow_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file");
    let workflow = read("examples/ci/github-actions.yml");
    assert!(read("docs/book/src/ci.md").contains(&workflow), "the book shows another workflow");
    let commands: Vec<&str> = workflow.lines().filter_map(|line| line.trim().strip_prefix("run: ")).collect();
    let install = format!("cargo install --locked --git {} taipan-cli", env!("CARGO_PKG_REPOSITORY"));
    assert_eq!(commands[0], install);
    assert!(read("README.md").contains(&install), "README installs it otherwise");
    for (history, exit) in [("skew.jsonl", 1), ("serial.jsonl", 0), ("misspelt.jsonl", 3)] {
        let folder = folder(&format!("workflow-{exit}"));
        std::fs::copy(Path::new(DATA).join(history), folder.join("history.jsonl")).expect("a copy");
        let program = Path::new(env!("CARGO_BIN_EXE_taipan")).parent().expect("a folder");
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
        let run = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(&folder).env("PATH", &path);
            shell.env("GITHUB_STEP_SUMMARY", "summary.md").output().expect("a shell").status.code()
        };
        let checks: Vec<&str> = commands.iter().copied().filter(|it| it.starts_with("taipan")).collect();
        assert_eq!(checks.len(), 2, "{commands:?}");
        assert_eq!(run(checks[0]), Some(exit), "{history}");
        assert_eq!(run(checks[1]), Some(0), "{history}");
        for file in ["summary.md", "report.html", "taipan.sarif"] {
            let len = std::fs::metadata(folder.join(file)).map(|meta| meta.len());
            assert!(len.is_ok_and(|len| len > 0), "{history}: {file}");
        }
    }
}
