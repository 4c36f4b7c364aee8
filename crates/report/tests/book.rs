//! The book's chapter on anomalies says what the program says.
//!
//! `BOOK=overwrite cargo test -p taipan-report --test book` writes what it says now into the chapter; read the change
//! before you commit it.

use checker::{Level, Options};
use history::formats::notation;
use report::{Cost, Finding, Palette};
use std::path::Path;

/// What is said of a history at a level, without times.
fn explanation(level: &str, text: &str) -> String {
    let history = notation::parse(text).expect("the chapter's histories are well written");
    let level = Level::parse(level).expect("the chapter names levels");
    let outcome = checker::check(&history, level, &Options::default());
    let finding = Finding::new("history.hist", level.name(), &history, &outcome.verdict, Cost::default());
    assert_eq!(finding.verdict, "violated", "{text}");
    report::text(&finding, Palette::plain()).trim_end().to_owned()
}

/// The chapter with every explanation as it is now, and how many there are.
fn rewritten(chapter: &str) -> (String, usize) {
    let mut text = String::new();
    let mut count = 0;
    let mut lines = chapter.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some(level) = line.strip_prefix("```history ") else { continue };
        let history: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let history = history.join("\n");
        let between: Vec<&str> = lines.by_ref().take_while(|line| *line != "```explanation").collect();
        assert!(
            between.iter().all(|line| line.is_empty()),
            "an explanation follows its history: {between:?}"
        );
        lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        let told = explanation(level, &history);
        text.push_str(&format!("{history}\n```\n\n```explanation\n{told}\n```\n"));
        count += 1;
    }
    (text, count)
}

#[test]
fn the_chapter_on_anomalies_says_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/anomalies.md");
    let chapter = std::fs::read_to_string(&path).expect("the chapter is there");
    let (now, count) = rewritten(&chapter);
    assert!(count >= 20, "only {count} examples");
    if std::env::var_os("BOOK").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, now).expect("the chapter can be written");
        return;
    }
    for (line, (said, now)) in chapter.lines().zip(now.lines()).enumerate() {
        assert_eq!(said, now, "docs/book/src/anomalies.md:{}; BOOK=overwrite brings it up to date", line + 1);
    }
    assert_eq!(chapter.lines().count(), now.lines().count());
}
