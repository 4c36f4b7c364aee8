//! Files that comments and the documents at the root name are there.

use std::collections::BTreeSet;
use taipan_tidy::Source;

/// What names of files end with that are looked for.
const ENDINGS: [&str; 4] = [".md", ".rs", ".toml", ".txt"];

/// The names of files in a text. Words in capitals stand for what a user names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || "_-./<>*{}".contains(letter)));
    let words = words.map(|word| word.trim_end_matches('.')).filter(|word| {
        let stem = word.split('.').next().unwrap_or_default();
        ENDINGS.iter().any(|ending| word.ends_with(ending) && word.len() > ending.len())
            && !word.contains(['<', '>', '*', '{', '}'])
            && stem.rsplit('/').next().is_some_and(|name| name.chars().any(char::is_lowercase))
    });
    words.filter(|word| !word.starts_with('/'))
}

/// Whether a file is there: from the root, beside the one that names it, or by the end of its path.
fn is_there(name: &str, by: &str, paths: &BTreeSet<String>) -> bool {
    let mut beside: Vec<&str> = by.split('/').collect();
    beside.pop();
    for part in name.split('/') {
        match part {
            ".." => _ = beside.pop(),
            "." => {}
            part => beside.push(part),
        }
    }
    let end = format!("/{}", name.trim_start_matches("../"));
    paths.contains(name) || paths.contains(&beside.join("/")) || paths.iter().any(|path| path.ends_with(&end))
}

#[test]
fn files_that_are_named_exist() {
    let sources = Source::all();
    let paths: BTreeSet<String> = sources.iter().map(|source| source.path.clone()).collect();
    let mut missing = Vec::new();
    for source in &sources {
        let is_document = source.path.ends_with(".md") && !source.path.contains('/');
        if !is_document && !source.path.ends_with(".rs") {
            continue;
        }
        for (number, line) in (1..).zip(source.text.lines()) {
            let text = match line.split_once("//") {
                Some((_, comment)) if !is_document => comment,
                _ if is_document => line,
                _ => continue,
            };
            // An address is no file of ours.
            let text = if text.contains("://") || line.contains("://") { "" } else { text };
            let absent = named(text).filter(|name| !is_there(name, &source.path, &paths));
            missing.extend(absent.map(|name| format!("{}:{number}: {name}", source.path)));
        }
    }
    assert!(missing.is_empty(), "these files are named and are not there:\n  {}", missing.join("\n  "));
}

#[test]
fn names_of_files_are_found_in_text() {
    let found: Vec<&str> =
        named("see `crates/a/src/lib.rs`, notes.md. FILE.md and *.rs are none; e.g. x.rs:12").collect();
    assert_eq!(found, ["crates/a/src/lib.rs", "notes.md", "x.rs"]);
}
