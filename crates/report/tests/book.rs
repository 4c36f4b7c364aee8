//! The book's pages on anomalies and on levels say what the program says.
//!
//! `BOOK=overwrite cargo nextest run -p taipan-report --test book` writes what it says now into the pages; read the change
//! before you commit it.

mod explained;

use evidence::check;
use explained::explained;
use history::formats::notation;
use isolation::{Implication, Level, LevelRow, Options, TABLE, Verdict, implications};
use std::path::PathBuf;
use taipan_report::{Detail, Page, Palette, pages};

fn book(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src").join(name)
}

/// Compares a file of the book with what it should be, or makes it so.
fn hold(name: &str, now: &str) {
    let path = book(name);
    if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, now).expect("the book can be written");
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (said, now)) in there.lines().zip(now.lines()).enumerate() {
        assert_eq!(said, now, "docs/book/src/{name}:{}; BOOK=overwrite brings it up to date", line + 1);
    }
    assert_eq!(there.lines().count(), now.lines().count(), "docs/book/src/{name}");
}

/// The files of a folder of the book that end like this.
fn files(folder: &str, end: &str) -> Vec<String> {
    let entries = std::fs::read_dir(book(folder)).expect("the folder is there");
    let names =
        entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter_map(|name| name.strip_suffix(end).map(str::to_owned)).collect();
    names.sort();
    names
}

/// A page with its picture and its explanation as they are now; what people wrote stays. None if it has no example.
fn rewritten(page: &Page) -> Option<(String, String)> {
    let (level, history) = page.example()?;
    let end = page.text.find("```history")?;
    let finding = explained("history.hist", level, history);
    let told = taipan_report::text(&finding, Detail::Full, Palette::plain());
    let text = format!(
        "{}```history {level}\n{history}```\n\n![The transactions and what orders them]({}.svg)\n\n\
         ```explanation\n{}\n```\n",
        &page.text[..end],
        page.slug,
        told.trim_end()
    );
    Some((text, format!("{}\n", taipan_report::svg(&finding))))
}

#[test]
fn the_pages_on_anomalies_say_what_the_program_says() {
    for page in pages() {
        let Some((text, picture)) = rewritten(page) else { continue };
        hold(&page.path(), &text);
        hold(&format!("anomalies/{}.svg", page.slug), &picture);
    }
    let mut known: Vec<String> = pages().iter().map(|page| page.slug.to_owned()).collect();
    known.push("README".to_owned());
    known.sort();
    assert_eq!(files("anomalies", ".md"), known, "every page is in the table of crates/report/src/book.rs");
}

/// How the checker works is shown on an example.
#[test]
fn the_page_on_how_it_works_says_what_the_program_says() {
    let page = std::fs::read_to_string(book("how-it-works.md")).expect("the page is there");
    let (before, rest) = page.split_once("```explanation\n").expect("it has an explanation");
    let (_, after) = rest.split_once("```").expect("the explanation ends");
    let (_, example) = before.split_once("```history ").expect("it has an example");
    let (level, example) = example.split_once('\n').expect("the example has lines");
    let (history, _) = example.split_once("```").expect("the example ends");
    let told =
        taipan_report::text(&explained("history.hist", level, history), Detail::Full, Palette::plain());
    hold("how-it-works.md", &format!("{before}```explanation\n{told}```{after}"));
}

#[test]
fn the_list_of_anomalies_is_complete() {
    let rows = pages().iter().map(|page| {
        let Some((level, history)) = page.example() else {
            return format!("| [{}]({}.md) | `{}` | any |\n", page.name(), page.slug, page.slug);
        };
        let finding = explained("history.hist", level, history);
        let part = finding.part.as_ref().expect("it was asked for");
        let weakest: Vec<String> = part.weakest.iter().map(|level| link(*level, "../levels")).collect();
        let name = finding.anomaly.as_ref().map(|anomaly| anomaly.name.clone()).unwrap_or_default();
        format!("| [{}]({}.md) | `{name}` | {} |\n", page.name(), page.slug, weakest.join(", "))
    });
    let rows: String = rows.collect();
    hold(
        "anomalies/README.md",
        &format!("{INTRODUCTION}\n| anomaly | name | weakest level broken |\n|---|---|---|\n{rows}"),
    );
}

const INTRODUCTION: &str = "\
# Anomalies, explained

Each page shows an anomaly: a tiny history in the [one-line notation](../formats/notation.md) with the level it was checked
at, its graph, and the output of `taipan explain`. `taipan explain --anomaly NAME` prints the page. The names are Elle's,
with the common name next to them where one exists. Every edge names the result that shows it; inferred edges name their
reasons.

A test runs the examples and keeps graphs and explanations up to date. The last column is the weakest level that the example
breaks; every stronger level is broken, too.
";

// ---- levels ----

fn link(level: Level, folder: &str) -> String {
    format!("[{0}]({folder}/{0}.md)", level.name())
}

fn verdict_at(level: Level, history: &str) -> Verdict {
    let history = notation::parse(history).expect("the examples are well written");
    check(&history, level, &Options::default()).verdict
}

fn is_violated(level: Level, history: &str) -> bool {
    matches!(verdict_at(level, history), Verdict::Violated(_))
}

fn is_accepted(level: Level, history: &str) -> bool {
    matches!(verdict_at(level, history), Verdict::Accepted(_))
}

/// What directly follows from a level, or what it directly follows from.
fn neighbours(level: Level, weaker: bool) -> Vec<Level> {
    let of = |it: &Implication| match weaker {
        true => (it.stronger == level).then_some(it.weaker),
        false => (it.weaker == level).then_some(it.stronger),
    };
    implications().iter().filter_map(of).collect()
}

fn list(levels: &[Level]) -> String {
    levels.iter().map(|&level| link(level, ".")).collect::<Vec<_>>().join(", ")
}

/// A page of the table's row: all of it is what the table and the program say.
fn level_page(row: &LevelRow) -> String {
    let examples = || pages().iter().filter_map(|page| Some((page, page.example()?.1)));
    let (weaker, stronger) = (neighbours(row.level, true), neighbours(row.level, false));
    let mut text = format!("# {}\n\n", row.name);
    if !row.aliases.is_empty() {
        text += &format!("Also called {}. ", row.aliases.join(", "));
    }
    text += &format!(
        "In plain words: {}.\n\nForbids {}. Source: {}.\n\n",
        row.level.promise(),
        row.forbids,
        row.source
    );
    let orders = match (row.level.session, row.level.realtime) {
        (false, false) => "Neither session order nor real-time order counts.",
        (true, false) => "Session order counts: a transaction comes after the earlier ones of its session.",
        (false, true) => {
            "Real-time order counts: a transaction comes after those that ended before it began."
        }
        (true, true) => "Session order and real-time order count.",
    };
    text += orders;
    for (what, levels) in [("Implies", &weaker), ("Implied by", &stronger)] {
        if !levels.is_empty() {
            text += &format!(" {what} {}.", list(levels));
        }
    }
    text += "\n";
    // The example that says most: what is weaker allows it, as far as anything weaker does.
    let broken =
        examples().filter(|(_, history)| is_violated(row.level, history)).max_by_key(|(_, history)| {
            (
                weaker.iter().filter(|&&level| is_accepted(level, history)).count(),
                std::cmp::Reverse(history.len()),
            )
        });
    if let Some((page, history)) = broken {
        let finding = explained("history.hist", row.name, history);
        text += &format!(
            "\n## What it forbids\n\n[{}](../anomalies/{}.md):\n\n```history {}\n{history}```\n\n```explanation\n{}\n```\n",
            page.name(),
            page.slug,
            row.name,
            taipan_report::text(&finding, Detail::Full, Palette::plain()).trim_end()
        );
    }
    let allowed =
        examples().filter(|(_, history)| is_accepted(row.level, history)).max_by_key(|(_, history)| {
            (
                stronger.iter().filter(|&&level| is_violated(level, history)).count(),
                std::cmp::Reverse(history.len()),
            )
        });
    if let Some((page, history)) = allowed {
        let above: Vec<Level> =
            stronger.iter().copied().filter(|&level| is_violated(level, history)).collect();
        let not = if above.is_empty() {
            String::new()
        } else {
            format!("; {} forbid{} it", list(&above), if above.len() == 1 { "s" } else { "" })
        };
        text += &format!(
            "\n## What it allows\n\n[{}](../anomalies/{}.md){not}:\n\n```history\n{history}```\n",
            page.name(),
            page.slug
        );
    }
    text
}

#[test]
fn every_level_has_a_page() {
    for row in TABLE {
        hold(&format!("levels/{}.md", row.name), &level_page(row));
    }
    let mut known: Vec<String> = TABLE.iter().map(|row| row.name.to_owned()).collect();
    known.sort();
    assert_eq!(files("levels", ".md"), known);
}

#[test]
fn the_contents_name_every_page() {
    let path = book("SUMMARY.md");
    let contents = std::fs::read_to_string(path).expect("the contents are there");
    let mut now = String::new();
    for line in contents.lines() {
        let is_made = ["  - [", "](levels/"].iter().all(|part| line.contains(part))
            || line.contains("](anomalies/") && line.starts_with("  ");
        if is_made {
            continue;
        }
        now += &format!("{line}\n");
        if line.contains("](levels.md)") {
            TABLE.iter().for_each(|row| now += &format!("  - [{0}](levels/{0}.md)\n", row.name));
        }
        if line.contains("](anomalies/README.md)") {
            pages().iter().for_each(|page| now += &format!("  - [{}]({})\n", page.name(), page.path()));
        }
    }
    hold("SUMMARY.md", &now);
}

/// A page that the contents do not name is not built.
#[test]
fn no_page_is_left_out_of_the_contents() {
    let contents = std::fs::read_to_string(book("SUMMARY.md")).expect("the contents are there");
    let mut count = 0;
    for folder in ["", "anomalies/", "databases/", "formats/", "levels/"] {
        for name in files(folder, ".md").iter().filter(|name| *name != "SUMMARY") {
            assert!(contents.contains(&format!("]({folder}{name}.md)")), "{folder}{name}.md");
            count += 1;
        }
    }
    assert!(count > 70, "the book is longer than {count} pages");
}
