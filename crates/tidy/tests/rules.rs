//! Rules on how files are written and named.

use std::collections::BTreeSet;
use taipan_tidy::{Source, root};

/// Fails with every line of `broken` under the sentence `rule`.
fn expect_none(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

fn with_ending<'a>(sources: &'a [Source], endings: &'a [&str]) -> impl Iterator<Item = &'a Source> {
    sources.iter().filter(move |source| endings.iter().any(|ending| source.path.ends_with(ending)))
}

#[test]
fn no_module_is_a_drawer_for_everything() {
    let drawers = ["util", "utils", "common", "helper", "helpers", "manager", "misc", "shared", "stuff"];
    let broken = with_ending(&Source::all(), &[".rs"])
        .filter(|source| source.path.split(['/', '.']).any(|part| drawers.contains(&part)))
        .map(|source| source.path.clone())
        .collect();
    expect_none("name a module for what it holds", broken);
}

#[test]
fn files_fit_into_a_head() {
    let broken = with_ending(&Source::all(), &[".rs"])
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > 900)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    expect_none("a file of more than 900 lines holds two things", broken);
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not break its own rule.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|halves| halves.concat());
    let macros =
        ["to", "unimple"].map(|start| format!("{start}{}!(", if start == "to" { "do" } else { "mented" }));
    let ignored = ["#[", "ignore"].concat();
    let mut broken = Vec::new();
    for source in with_ending(&Source::all(), &[".rs", ".md", ".toml", ".sh", ".yml"]) {
        for (index, line) in source.text.lines().enumerate() {
            let marked = marks.iter().any(|mark| has_word(line, mark));
            let in_code = source.path.ends_with(".rs")
                && (macros.iter().any(|name| line.contains(name)) || line.contains(&ignored));
            if marked || in_code {
                broken.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    expect_none("finish it, or open an issue", broken);
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word)
}

#[test]
fn no_path_of_one_machine() {
    let homes =
        [["/wo", "rk/"], ["/fa", "rm/"], ["/ro", "ot/"], ["/ho", "me/"]].map(|halves| halves.concat());
    let mut broken = Vec::new();
    for source in Source::all().iter().filter(|source| source.path != "Cargo.lock") {
        for (index, line) in source.text.lines().enumerate() {
            if homes.iter().any(|home| starts_a_path(line, home)) {
                broken.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    expect_none("a path that exists on one machine only", broken);
}

/// Whether `home` occurs as the beginning of a path, not in the middle of one.
fn starts_a_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-}$*".contains(letter))
    })
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for source in with_ending(&Source::all(), &[".md"]) {
        let folder = root().join(&source.path).parent().map(ToOwned::to_owned).unwrap_or_default();
        for target in link_targets(&source.text) {
            let outside = target.contains("://") || target.starts_with("mailto:");
            let file = target.split('#').next().unwrap_or_default();
            if outside || file.is_empty() {
                continue;
            }
            if !folder.join(file).exists() {
                broken.push(format!("{}: {target}", source.path));
            }
        }
    }
    expect_none("a link to a file that is not there", broken);
}

#[test]
fn links_to_headings_have_their_heading() {
    let sources = Source::all();
    let mut broken = Vec::new();
    for source in with_ending(&sources, &[".md"]) {
        for target in link_targets(&source.text).iter().filter(|target| !target.contains("://")) {
            let Some((file, heading)) = target.split_once('#') else { continue };
            let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = if file.is_empty() { source.path.clone() } else { resolve(folder, file) };
            let Some(other) = sources.iter().find(|other| other.path == path && path.ends_with(".md")) else {
                continue;
            };
            if !headings(&other.text).contains(heading) {
                broken.push(format!("{}: {target}", source.path));
            }
        }
    }
    expect_none("a link to a heading that is not there", broken);
}

/// The targets of `[text](target)` outside code blocks.
fn link_targets(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let mut rest = if in_code { "" } else { line };
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let end = rest.find(')').unwrap_or(rest.len());
            found.push(rest[..end].split(' ').next().unwrap_or_default().to_owned());
            rest = &rest[end..];
        }
    }
    found
}

/// `folder` and the relative path `file`, without `.` and `..`.
fn resolve(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as the usual renderers make them.
fn headings(markdown: &str) -> BTreeSet<String> {
    markdown
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|line| {
            let kept = line.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
        })
        .collect()
}

#[test]
fn every_script_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let broken = Source::all()
        .iter()
        .filter(|source| source.text.starts_with("#!") && !source.path.ends_with(".rs"))
        .filter(|source| {
            let meta = root().join(&source.path).metadata().expect("the walk just found this file");
            meta.permissions().mode() & 0o111 == 0
        })
        .map(|source| source.path.clone())
        .collect();
    expect_none("a script without the right to be executed", broken);
}
