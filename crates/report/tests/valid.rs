//! The page is valid HTML, held together, and can be used without seeing it.

mod explained;

use evidence::check;
use explained::explained;
use history::formats::notation;
use html5ever::tendril::TendrilSink;
use isolation::{Claim, Level, Options};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use std::collections::BTreeSet;
use taipan_report::{Cost, Finding, Overview, Remark, Surveyed, Told, Trouble, pages};

/// An element of a page, with what is in it.
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// All elements of a page in its order; fails where the page is not well written.
fn elements(page: &str) -> Vec<Element> {
    let options = html5ever::ParseOpts {
        tokenizer: html5ever::tokenizer::TokenizerOpts { exact_errors: true, ..Default::default() },
        tree_builder: html5ever::tree_builder::TreeBuilderOpts { exact_errors: true, ..Default::default() },
    };
    let dom = html5ever::parse_document(RcDom::default(), options).one(page);
    assert!(dom.errors.borrow().is_empty(), "{:?}\n{page}", dom.errors.borrow());
    let mut all = Vec::new();
    let mut open = vec![dom.document.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Element { name, attrs, .. } = &node.data {
            all.push(Element {
                name: name.local.to_string(),
                attributes: (attrs.borrow().iter())
                    .map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()))
                    .collect(),
                text: text(&node),
            });
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    all
}

fn text(node: &Handle) -> String {
    let mut text = String::new();
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        if let NodeData::Text { contents } = &node.data {
            text.push_str(&contents.borrow());
        }
        open.extend(node.children.borrow().iter().rev().cloned());
    }
    text
}

fn is_sound(page: &str) {
    let all = elements(page);
    let mut ids = BTreeSet::new();
    for id in all.iter().filter_map(|element| element.get("id")) {
        assert!(ids.insert(id), "two elements are called {id}");
    }
    let mut heading = 0;
    for element in &all {
        let name = element.name.as_str();
        for reference in
            ["aria-labelledby", "aria-describedby", "for"].iter().filter_map(|it| element.get(it))
        {
            assert!(ids.contains(reference), "{name} refers to {reference}, which is not there");
        }
        if let Some(target) = element.get("href") {
            let id =
                target.strip_prefix('#').unwrap_or_else(|| panic!("{name} leads out of the page: {target}"));
            assert!(ids.contains(id), "{name} leads to {id}, which is not there");
        }
        if let Some(tip) = element.get("marker-end") {
            let id = tip.trim_start_matches("url(#").trim_end_matches(')');
            assert!(ids.contains(id), "an arrow without a tip: {tip}");
        }
        assert!(element.get("src").is_none(), "{name} needs something from outside");
        if name == "button" || name == "a" || name == "summary" || element.get("tabindex").is_some() {
            let is_named = !element.text.trim().is_empty() || element.get("aria-label").is_some();
            assert!(is_named, "a {name} that can have the focus has no name");
        }
        if element.get("role") == Some("img") {
            assert!(!element.text.trim().is_empty(), "a picture without words");
        }
        if let Some(level) = name.strip_prefix('h').and_then(|level| level.parse::<u32>().ok()) {
            assert!(level <= heading + 1, "a heading of level {level} below one of level {heading}");
            heading = level;
        }
    }
    let count = |name: &str| all.iter().filter(|element| element.name == name).count();
    assert_eq!((count("title") > 0, count("main"), count("h1")), (true, 1, 1));
    assert_eq!(all.iter().find(|it| it.name == "html").and_then(|it| it.get("lang")), Some("en"));
}

#[test]
fn every_violation_has_a_sound_page() {
    let mut told = Told::default();
    for page in pages() {
        let Some((level, history)) = page.example() else { continue };
        let finding = explained(&format!("{}.hist", page.slug), level, history);
        is_sound(&taipan_report::html(&Told { findings: vec![finding.clone()], ..Told::default() }));
        told.findings.push(finding);
    }
    is_sound(&taipan_report::html(&told));
}

#[test]
fn a_page_with_everything_is_sound() {
    let text =
        "\"<b>&\\\"1\\\"\": r(\"<script>alert(1)</script>\",7) @1..9\ns2: w(x,1)! @2..3 | r(x,1) @20..30\n";
    let history = notation::parse(text).expect("well written");
    let file = "<i>odd & \"quoted\".hist";
    let violated = explained(file, "strict-serializable", text);
    let accepted = notation::parse("s1: w(x,1)").expect("well written");
    let verdict = check(&accepted, Level::SERIALIZABLE, &Options::default()).verdict;
    let accepted = Finding::new(file, Claim::new(Level::SERIALIZABLE), &accepted, &verdict, Cost::default());
    let coverage = isolation::coverage(&history);
    let causal = Claim::new(Level::parse("causal").expect("a name of the table"));
    let open =
        Finding::undecided(file, causal, "the time is <up>".to_owned(), violated.size, Cost::default());
    let remark = |at, until| Remark { at, until, text: "</script><b>paused".to_owned() };
    let survey = evidence::survey(
        &history,
        |level| Ok::<_, ()>(check(&history, level, &Options::default()).verdict),
        |_, _| Ok(None),
        |verdict| verdict,
    );
    let marks = survey.expect("no check fails").marks;
    let page = taipan_report::html(&Told {
        findings: vec![violated.clone(), violated, accepted.with_coverage(coverage), open],
        troubles: vec![Trouble::new(file, "line <1>")],
        surveys: vec![Surveyed { file: file.to_owned(), marks: marks.clone() }],
        overviews: vec![Overview::of(file, &history, &[remark(2, Some(25)), remark(5, None)])],
        began: None,
    });
    is_sound(&page);
    assert!(page.contains("class=\"event\""), "what happened meanwhile is on the time line");
    assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<script>alert"));
    is_sound(&taipan_report::html(&Told::default()));
    let levels = elements(&taipan_report::lattice_page(&marks));
    assert!(levels.iter().any(|element| element.name == "svg"));
}
