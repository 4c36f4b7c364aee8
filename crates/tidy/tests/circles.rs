//! Modules of a crate that use each other in a circle.
//!
//! A file and its children are one: they are read together. Larger circles have no first module to read and no last one
//! to change, so there are none but those listed here, and that list only gets shorter.

use std::collections::{BTreeMap, BTreeSet};
use taipan_tidy::Source;

/// Circles that are still there, by crate.
const LEFT: &[(&str, &[&str])] = &[
    (
        "cluster",
        &["clocks", "components", "gather", "greeting", "ids", "job", "setup", "source", "timestamps"],
    ),
    ("databases", &["dialect", "driver", "grammar", "isolation", "matrix"]),
    ("databases", &["duckdb", "fjall", "follow", "mariadb", "postgres", "redb", "sqlite", "target"]),
    ("history", &["builder", "clocks", "formats", "id_set", "model", "names", "predicate", "room", "values"]),
    ("record", &["recorder", "tracer"]),
    (
        "report",
        &["argue", "book", "context", "finding", "picture", "printable", "text", "timestamps", "told"],
    ),
    ("solver", &["order", "proof", "search"]),
    ("workload", &["applications", "plan", "workloads"]),
    ("workload", &["bugs", "certify", "executed", "planting", "running", "simulation"]),
];

/// Which modules at the root of a crate each of them uses, children included; tests and comments do not count.
fn uses(name: &str, sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let folder = format!("crates/{name}/src/");
    let mut code: BTreeMap<String, String> = BTreeMap::new();
    for source in sources.iter().filter(|it| it.path.starts_with(&folder) && it.path.ends_with(".rs")) {
        let module =
            source.path[folder.len()..].split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let text = code.entry(module.to_owned()).or_default();
        source.code().for_each(|(_, line)| {
            text.push_str(line);
            text.push('\n');
        });
    }
    let exported = code.get("lib").map(|text| exports(text)).unwrap_or_default();
    let modules: BTreeSet<&String> =
        code.keys().filter(|it| !["lib", "main"].contains(&it.as_str())).collect();
    let target = |first: &str| {
        let named = exported.get(first).map_or(first, String::as_str);
        modules.iter().find(|module| module.as_str() == named).map(|module| (*module).clone())
    };
    let used = |module: &str, text: &str| -> BTreeSet<String> {
        let all = paths(text, "crate::").into_iter().filter_map(|first| target(&first));
        all.filter(|other| other != module).collect()
    };
    modules.iter().map(|&module| (module.clone(), used(module, &code[module]))).collect()
}

/// The module that each name comes from which `lib.rs` re-exports.
fn exports(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (_, rest) in text.match_indices("pub use ").map(|(at, found)| (at, &text[at + found.len()..])) {
        let statement = rest.split(';').next().unwrap_or_default();
        let Some((module, names)) = statement.split_once("::") else { continue };
        for name in names.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
            found.entry(name.to_owned()).or_insert_with(|| module.trim().to_owned());
        }
    }
    found
}

/// The first names after `prefix`, of groups in braces too.
fn paths(text: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let rest = &text[at + prefix.len()..];
        if !rest.starts_with('{') {
            found.push(first_name(rest));
            continue;
        }
        let mut depth = 0;
        let mut starts = true;
        for (place, letter) in rest.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth == 1 && (letter == '{' || letter == ',') {
                starts = true;
            } else if starts && depth == 1 && letter.is_alphanumeric() {
                found.push(first_name(&rest[place..]));
                starts = false;
            }
        }
    }
    found
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The groups of modules of which each leads to each other.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<&String> = uses[from].iter().collect();
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(&uses[module]);
            }
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|module| (module, reached(module))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (module, reached) in &all {
        let circle: BTreeSet<String> =
            reached.iter().filter(|other| all[*other].contains(module)).map(|it| (*it).clone()).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn modules_use_each_other_in_no_circle() {
    let sources = Source::all();
    let crates: BTreeSet<&str> =
        sources.iter().filter(|it| it.is_product_code()).filter_map(Source::crate_name).collect();
    let mut found: BTreeMap<&str, Vec<BTreeSet<String>>> = BTreeMap::new();
    for name in crates {
        let circles = circles(&uses(name, &sources));
        if !circles.is_empty() {
            found.insert(name, circles);
        }
    }
    let mut left: BTreeMap<&str, Vec<BTreeSet<String>>> = BTreeMap::new();
    for &(name, circle) in LEFT {
        left.entry(name).or_default().push(circle.iter().map(|&module| module.to_owned()).collect());
    }
    assert_eq!(
        found, left,
        "left: circles of modules; right: those that are known; see the head of this file"
    );
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let table = |rows: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let set = |used: &[&str]| used.iter().map(|&it| it.to_owned()).collect();
        rows.iter().map(|&(module, used)| (module.to_owned(), set(used))).collect()
    };
    assert!(circles(&table(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let found = circles(&table(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "a"]), ("d", &["a"])]));
    assert_eq!(found, [["a", "b", "c"].map(str::to_owned).into()]);
    let names = paths("use crate::{a::{self, x}, b, c::Y};\ncrate::d::z()", "crate::");
    assert_eq!(names, ["a", "b", "c", "d"]);
}
