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

/// Which of our crates a manifest names under `[dependencies]` (not those for tests only).
fn uses_of_ours(manifest: &str, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let mut section = "";
    let mut used = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if section == "[dependencies]" {
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let name = name.strip_prefix("taipan-").unwrap_or(name);
            if ours.contains(name) {
                used.insert(name.to_owned());
            }
        }
    }
    used
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
fn the_list_of_crates_is_complete() {
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    let listed: BTreeSet<String> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name.to_owned())
        .collect();
    let there: BTreeSet<String> = crates().into_keys().collect();
    assert_eq!(listed, there, "left: the table in ARCHITECTURE.md, right: the folders in crates/");
}

#[test]
fn the_lowest_crates_use_nothing_above_them() {
    let crates = crates();
    let ours: BTreeSet<String> = crates.keys().cloned().collect();
    for name in ["history", "solver"] {
        let Some(manifest) = crates.get(name) else { continue };
        assert_eq!(uses_of_ours(manifest, &ours), BTreeSet::new(), "{name} stands alone");
    }
    let isolation = crates.get("isolation").expect("it holds the levels");
    assert_eq!(uses_of_ours(isolation, &ours), BTreeSet::from(["history".to_owned()]));
}

#[test]
fn nothing_uses_the_command_line() {
    let crates = crates();
    let ours: BTreeSet<String> = crates.keys().cloned().collect();
    let broken = crates
        .iter()
        .filter(|(_, manifest)| uses_of_ours(manifest, &ours).iter().any(|used| used == "cli"))
        .map(|(name, _)| name.clone())
        .collect();
    expect_none("a library cannot use the program", broken);
}

#[test]
fn the_checker_knows_no_renderer_generator_or_database() {
    let crates = crates();
    let ours: BTreeSet<String> = crates.keys().cloned().collect();
    let allowed: BTreeSet<String> = ["history", "isolation", "solver"].map(str::to_owned).into();
    let Some(manifest) = crates.get("checker") else { return };
    let used = uses_of_ours(manifest, &ours);
    assert!(used.is_subset(&allowed), "checker may use {allowed:?} and uses {used:?}");
}

#[test]
fn the_certifier_shares_nothing_with_the_search() {
    let allowed = ["oracle", "levels", "verdict", "certify"];
    let checker = Source::all().into_iter().filter_map(|source| {
        let module = source.path.strip_prefix("crates/checker/src/")?.split(['/', '.']).next()?.to_owned();
        Some(module)
    });
    let search: BTreeSet<String> =
        checker.filter(|module| module != "lib" && !allowed.contains(&module.as_str())).collect();
    assert!(search.contains("pipeline"), "the search is somewhere else now: {search:?}");
    let broken = lines(
        |name| name == "checker",
        |source, line| {
            source.path.starts_with("crates/checker/src/certify")
                && (line.contains("solver::")
                    || search.iter().any(|module| line.contains(&format!("crate::{module}")))
                    || line.contains("crate::check(")
                    || line.contains("crate::{check"))
        },
    );
    expect_none("a certifier that uses the search would repeat its mistakes", broken);
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
