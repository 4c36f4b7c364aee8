//! What others wrote that the program is made of: under licences that allow it, from the registry, each once where it can
//! be.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Licences that ask for no more than a notice.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "BSL-1.0",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
];

/// Also allowed, for what it is: MPL-2.0 asks for changes to its own files only, and there are none.
const BY_FILE: [&str; 1] = ["MPL-2.0"];

/// How many crates there may be in two versions: what others have not caught up with yet.
const TWICE_MAX: usize = 20;

fn packages() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Whether an expression of licences leaves a choice that is allowed.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    let allows = |licence: &str| LICENCES.contains(&licence) || BY_FILE.contains(&licence);
    expression.split(" OR ").any(|choice| choice.split(" AND ").all(|licence| allows(licence.trim())))
}

#[test]
fn licences_allow_what_we_do() {
    let packages = packages();
    assert!(packages.len() > 100, "there are dependencies");
    let text = |package: &Value, field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(&text(package, "license")))
        .map(|package| format!("{}: {}", text(package, "name"), text(package, "license")))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn everything_comes_from_the_registry_or_from_here() {
    let foreign: Vec<Value> = packages()
        .into_iter()
        .filter(|package| package["source"].as_str().is_some_and(|source| !source.starts_with("registry+")))
        .map(|package| package["id"].clone())
        .collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
}

#[test]
fn few_crates_are_there_twice() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        // Import libraries of other systems come in many versions and are never built here.
        if !text("name").starts_with("windows") {
            versions.entry(text("name")).or_default().insert(text("version"));
        }
    }
    let twice: Vec<_> = versions.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
    assert!(twice.len() <= TWICE_MAX, "{} crates are there twice: {twice:#?}", twice.len());
}
