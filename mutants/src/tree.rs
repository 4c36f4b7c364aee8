//! A copy of the workspace with faults in one crate, built once.

use crate::plant::{Mutant, SWITCH, plant};
use rustc_hash::FxHashSet;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What went wrong, in words.
pub(crate) type Problem = String;

/// How often what a compiler refuses is taken out.
const ROUNDS_MAX: usize = 20;
/// An error is blamed on faults at most so many lines away.
const LINES_NEAR: usize = 6;

/// A copy of the workspace.
pub(crate) struct Tree {
    /// Where its files are.
    pub(crate) root: PathBuf,
    /// The folder of the crate, below `crates`.
    name: String,
    /// The folder of what is built.
    target: PathBuf,
    /// Features of the crate, with commas.
    features: String,
}

/// A test, as a program of its own.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) binary: PathBuf,
    pub(crate) name: String,
    pub(crate) cwd: PathBuf,
}

/// A fault with its file, relative to the crate.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) file: String,
    pub(crate) mutant: Mutant,
}

fn said(what: &str) -> impl Fn(std::io::Error) -> Problem {
    let what = what.to_owned();
    move |error| format!("{what}: {error}")
}

impl Tree {
    /// Copies what git knows of the workspace in the current folder.
    pub(crate) fn copy(work: &Path, name: &str, features: &str) -> Result<Self, Problem> {
        let tree = Self {
            root: work.join("tree"),
            name: name.to_owned(),
            target: work.join("target"),
            features: features.to_owned(),
        };
        let listed = Command::new("git").args(["ls-files", "-z"]).output().map_err(said("git ls-files"))?;
        for file in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|file| !file.is_empty()) {
            let to = tree.root.join(file);
            let Ok(content) = fs::read(file) else { continue };
            fs::create_dir_all(to.parent().unwrap_or(&tree.root)).map_err(said("the copy"))?;
            if fs::read(&to).is_ok_and(|there| there == content) {
                continue;
            }
            fs::write(&to, content).map_err(said(file))?;
        }
        Ok(tree)
    }

    fn sources(&self) -> Result<Vec<(String, String)>, Problem> {
        let folder = Path::new("crates").join(&self.name).join("src");
        let mut open = vec![folder];
        let mut sources = Vec::new();
        while let Some(folder) = open.pop() {
            let entries = fs::read_dir(&folder).map_err(said(&folder.display().to_string()))?;
            for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).map_err(said(&path.display().to_string()))?;
                    sources.push((path.display().to_string(), text));
                }
            }
        }
        sources.sort();
        Ok(sources)
    }

    /// Plants every fault that compiles.
    pub(crate) fn plant(&self) -> Result<Vec<Planted>, Problem> {
        let sources = self.sources()?;
        let mut refused: FxHashSet<u32> = FxHashSet::default();
        for round in 1..=ROUNDS_MAX {
            let planted = self.write(&sources, &refused)?;
            let errors = self.errors()?;
            eprintln!("round {round}: {} faults, {} errors", planted.len(), errors.len());
            if errors.is_empty() {
                return Ok(planted);
            }
            for (file, line, text) in errors {
                let near = |lines: usize| {
                    let is_near =
                        move |it: &&Planted| it.file == file && it.mutant.line.abs_diff(line) <= lines;
                    planted.iter().filter(is_near).map(|it| it.mutant.number).collect::<Vec<_>>()
                };
                let blamed = (0..=LINES_NEAR).find_map(|lines| {
                    let near = near.clone()(lines);
                    (!near.is_empty()).then_some(near)
                });
                refused.extend(blamed.ok_or(text)?);
            }
        }
        Err(format!("after {ROUNDS_MAX} rounds it still does not compile"))
    }

    fn write(&self, sources: &[(String, String)], refused: &FxHashSet<u32>) -> Result<Vec<Planted>, Problem> {
        let mut next = 1;
        let mut all = Vec::new();
        for (file, source) in sources {
            let (mut text, mutants) = plant(source, &mut next, |number| refused.contains(&number))
                .map_err(|error| format!("{file}: {error}"))?;
            if file.ends_with("/src/lib.rs") {
                text.push_str("\nmod switch;\n");
            }
            fs::write(self.root.join(file), text).map_err(said(file))?;
            all.extend(mutants.into_iter().map(|mutant| Planted { file: file.clone(), mutant }));
        }
        let switch = self.root.join("crates").join(&self.name).join("src/switch.rs");
        fs::write(switch, SWITCH).map_err(said("switch.rs"))?;
        Ok(all)
    }

    fn cargo(&self, args: &[&str]) -> Result<std::process::Output, Problem> {
        let mut cargo = Command::new("cargo");
        cargo.args(args).args(["-p", &format!("taipan-{}", self.name), "--features", &self.features]);
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        cargo.output().map_err(said("cargo"))
    }

    /// Where the compiler refuses what was planted: file, line, message.
    fn errors(&self) -> Result<Vec<(String, usize, String)>, Problem> {
        let output = self.cargo(&["check", "--lib", "--message-format", "json"])?;
        let mut errors = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(told) = serde_json::from_str::<Value>(line) else { continue };
            let message = &told["message"];
            if message["level"] != "error" {
                continue;
            }
            let spans = message["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
            let text = message["rendered"].as_str().unwrap_or_default().to_owned();
            for span in spans.iter().filter(|span| span["is_primary"] == true) {
                let file = span["file_name"].as_str().unwrap_or_default().to_owned();
                let line = span["line_start"].as_u64().and_then(|line| usize::try_from(line).ok());
                errors.push((file, line.unwrap_or(0), text.clone()));
            }
        }
        if errors.is_empty() && !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(errors)
    }

    /// Builds the tests, and names them.
    pub(crate) fn tests(&self) -> Result<Vec<Test>, Problem> {
        let output = self.cargo(&["nextest", "list", "--message-format", "json"])?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let listed: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let mut tests = Vec::new();
        for suite in listed["rust-suites"].as_object().into_iter().flat_map(|suites| suites.values()) {
            let text = |field: &str| PathBuf::from(suite[field].as_str().unwrap_or_default());
            for name in suite["testcases"].as_object().into_iter().flat_map(|cases| cases.keys()) {
                tests.push(Test { binary: text("binary-path"), name: name.clone(), cwd: text("cwd") });
            }
        }
        Ok(tests)
    }
}
