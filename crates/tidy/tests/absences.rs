//! The invariants of absence that ARCHITECTURE.md states, and its list of crates.

use std::collections::{BTreeMap, BTreeSet};
use taipan_tidy::{Source, root};

fn expect_none(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule} (see ARCHITECTURE.md):\n  {}", broken.join("\n  "));
}

/// Every crate of the workspace with its manifest.
fn crates() -> BTreeMap<String, String> {
    let manifests = Source::all().into_iter().filter_map(|source| {
        let name = source.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?.to_owned();
        (!name.contains('/')).then_some((name, source.text))
    });
    manifests.collect()
}

/// Which of our crates a manifest names under `[dependencies]`, those of a target included and those for tests not.
fn uses_of_ours(manifest: &str, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let mut counts = false;
    let mut used = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-") && !line.contains("build-");
        } else if counts {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let name = name.strip_prefix("taipan-").unwrap_or(name);
            if ours.contains(name) {
                used.insert(name.to_owned());
            }
        }
    }
    used
}

/// The table of crates in ARCHITECTURE.md: for each what it holds and which others it may use.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let [name, _holds, uses, _must_not] = cells[..] else {
            panic!("a row has the cells crate, holds, uses, must not: {line}")
        };
        let uses = uses.split('`').skip(1).step_by(2).map(str::to_owned);
        Some((name.trim_end_matches('`').to_owned(), uses.collect()))
    };
    document.lines().filter_map(row).collect()
}

/// Lines of product code, with their place, that `is_bad` in crates that `concerns` selects.
fn lines(concerns: impl Fn(&str) -> bool, is_bad: impl Fn(&Source, &str) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for source in Source::all().iter().filter(|source| source.is_product_code()) {
        if !source.crate_name().is_some_and(&concerns) {
            continue;
        }
        for (number, line) in source.code() {
            if is_bad(source, line) {
                broken.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    broken
}

#[test]
fn crates_use_what_the_table_allows() {
    let crates = crates();
    let ours: BTreeSet<String> = crates.keys().cloned().collect();
    let used: BTreeMap<String, BTreeSet<String>> =
        (crates.iter()).map(|(name, manifest)| (name.clone(), uses_of_ours(manifest, &ours))).collect();
    let allowed = table();
    let named = |table: &BTreeMap<String, BTreeSet<String>>| table.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        named(&allowed),
        named(&used),
        "left: the table in ARCHITECTURE.md, right: the folders in crates/"
    );
    let broken = (used.iter())
        .filter(|&(name, used)| allowed[name] != *used)
        .map(|(name, used)| format!("{name} uses {used:?}, the table says {:?}", allowed[name]))
        .collect();
    expect_none("crates use exactly what the table says", broken);
}

#[test]
fn only_the_command_line_prints_and_exits() {
    let calls =
        ["println!(", "eprintln!(", "print!(", "eprint!(", "process::exit(", "io::stdout(", "io::stderr("];
    // `corpus` is for tests, which say what they skip.
    let broken = lines(
        |name| !["cli", "corpus"].contains(&name),
        |_, line| calls.iter().any(|call| line.contains(call)),
    );
    expect_none("only `cli` prints and exits", broken);
}

#[test]
fn only_databases_names_vendors() {
    let vendors = [
        "postgres",
        "mysql",
        "mariadb",
        "sqlite",
        "cockroach",
        "yugabyte",
        "tidb",
        "duckdb",
        "mongodb",
        "rocksdb",
        "oracle database",
        "dgraph",
        "galera",
    ];
    // The command line passes target names on and the demo says what it runs on; `corpus` knows what tests need.
    let broken = lines(
        |name| !["cli", "corpus", "databases", "workload", "tidy"].contains(&name),
        |_, line| {
            let line = line.to_lowercase();
            vendors.iter().any(|vendor| line.contains(vendor))
        },
    );
    expect_none("only `databases` names vendors", broken);
}

#[test]
fn level_names_are_matched_in_one_place() {
    let names = [
        "read-uncommitted",
        "read-committed",
        "cursor-stability",
        "monotonic-view",
        "consistent-view",
        "repeatable-read",
        "snapshot-isolation",
        "serializable",
        "strict-serializable",
        "read-atomic",
        "causal",
        "prefix",
        "parallel-snapshot-isolation",
    ];
    let broken = lines(
        |name| name != "workload" && name != "tidy",
        |source, line| {
            !source.path.starts_with("crates/isolation/src/levels")
                // Vendors' own names, and what they promise: data, not matched on.
                && source.path != "crates/databases/src/isolation.rs"
                && names.iter().any(|name| line.contains(&format!("\"{name}\"")))
        },
    );
    expect_none("level names are matched only in `isolation::levels`", broken);
}

#[test]
fn every_crate_obeys_the_lints_and_says_what_it_is() {
    let sources = Source::all();
    let mut broken = Vec::new();
    for (name, manifest) in crates() {
        // The workspace forbids `unsafe` code.
        if !manifest.contains("[lints]\nworkspace = true") {
            broken.push(format!("{name}: no `[lints] workspace = true`"));
        }
        let heads = ["lib.rs", "main.rs"].map(|file| format!("crates/{name}/src/{file}"));
        let head = sources.iter().find(|source| heads.contains(&source.path));
        if !head.is_some_and(|head| head.text.starts_with("//! ")) {
            broken.push(format!("{name}: its first file does not begin with what the crate is"));
        }
    }
    expect_none("crates are alike", broken);
}
