//! The book's pages on anomalies: what a name means, with an example, its picture and its explanation.

use crate::Named;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The name of its file, without its end.
    pub slug: &'static str,
    /// Its text in Markdown, with the heading.
    pub text: &'static str,
}

macro_rules! pages {
    ($($slug:literal,)*) => {
        &[$(Page { slug: $slug, text: include_str!(concat!("../anomalies/", $slug, ".md")) },)*]
    };
}

/// All pages, in the order of the book; a test keeps their examples true.
const PAGES: &[Page] = pages![
    "dirty-write",
    "aborted-read",
    "intermediate-read",
    "circular-information-flow",
    "thin-air",
    "internal",
    "future-read",
    "lost-update",
    "lost-append",
    "write-skew",
    "write-skew-by-predicate",
    "fractured-read",
    "fractured-read-across-two-transactions",
    "long-fork",
    "non-repeatable-read",
    "phantom",
    "predicate-many-preceders",
    "read-of-a-deleted-row",
    "a-predicate-write-that-missed-a-row",
    "causality-violation",
    "observed-transaction-vanishes",
    "stale-read-in-real-time",
    "stale-read-in-a-session",
    "duplicate-elements",
    "duplicate-rows",
    "incompatible-order",
    "impossible-count",
    "impossible-order",
    "impossible-row",
    "impossible-read",
    "a-cycle-of-three",
    "an-order-that-had-to-be-inferred",
    "a-transaction-of-unknown-outcome",
    "no-order",
];

impl Page {
    /// Its heading: the common name, and after a colon Elle's, where they differ.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The name by which it is asked for.
    pub fn name(&self) -> &'static str {
        self.title().split(':').next().unwrap_or_default()
    }

    /// What it is called of an argument of so many steps: the page on long circles shows one of three.
    pub(crate) fn name_with(&self, steps: usize) -> String {
        match (self.slug, steps) {
            ("a-cycle-of-three", 4..) => format!("A cycle of {steps}"),
            _ => self.name().to_owned(),
        }
    }

    /// What it says first: the anomaly in a sentence or two.
    pub fn lead(&self) -> &'static str {
        self.text.split("\n\n").nth(1).unwrap_or_default()
    }

    /// What it says, without heading and example.
    pub(crate) fn prose(&self) -> &'static str {
        let text = self.text.split_once("\n\n").map_or("", |(_, rest)| rest);
        text.split("```").next().unwrap_or_default().trim_end()
    }

    /// Its text where it stands alone: without pictures, links leading into the book at an address.
    pub(crate) fn markdown(&self, book: &str) -> String {
        let lines = self.text.lines().filter(|line| !line.starts_with("!["));
        let text = lines.collect::<Vec<_>>().join("\n");
        let mut parts = text.split("](");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_relative = !part.starts_with("http") && !part.starts_with('#');
            out += "](";
            match part.strip_prefix("../") {
                _ if !is_relative => out += part,
                Some(up) => out += &format!("{book}{up}"),
                None => out += &format!("{book}anomalies/{part}"),
            }
        }
        out
    }

    /// Its file in the sources of the book.
    pub fn path(&self) -> String {
        format!("anomalies/{}.md", self.slug)
    }

    /// The level and the history of its example; none where no tiny history shows it.
    pub fn example(&self) -> Option<(&'static str, &'static str)> {
        let (_, rest) = self.text.split_once("```history ")?;
        let (level, rest) = rest.split_once('\n')?;
        Some((level, rest.split_once("```")?.0))
    }

    /// Whether it is called that, in its heading or in its explanation.
    fn is_called(&self, wanted: &str) -> bool {
        let mut names = self.title().split([':', ',']).map(plain).chain([plain(self.title())]);
        names.any(|name| name == wanted) || self.is_explained_as(wanted)
    }

    /// Whether its example is explained by that name.
    fn is_explained_as(&self, wanted: &str) -> bool {
        self.explained_as()
            .is_some_and(|(name, common)| name == wanted || common.is_some_and(|it| it == wanted))
    }

    /// The shape of its example's argument: Elle's name without the marks, and without what says that only items count.
    pub(crate) fn shape(&self) -> Option<String> {
        let (name, _) = self.explained_as()?;
        Some(name.strip_suffix("item").map(str::to_owned).unwrap_or(name))
    }

    /// The names by which its example is explained: Elle's and the common one.
    fn explained_as(&self) -> Option<(String, Option<String>)> {
        // `✘ history.hist: not LEVEL: COMMON (NAME) on KEYS  (SIZE)`
        let line = self.text.lines().find(|line| line.starts_with("✘ "))?;
        let (_, said) = line.split_once(": not ")?.1.split_once(": ")?;
        let (said, _) = said.rsplit_once("  (")?;
        let names = said.rsplit_once(" on ").map_or(said, |(names, _)| names);
        match names.split_once(" (") {
            Some((common, name)) => Some((plain(name), Some(plain(common)))),
            None => Some((plain(names), None)),
        }
    }
}

/// All pages, in the order of the book.
pub fn pages() -> &'static [Page] {
    PAGES
}

/// The page of a file's name.
pub(crate) fn page(slug: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.slug == slug)
}

/// The page on an anomaly: by its common name and how it was found, else by Elle's name, with less and less of it.
pub(crate) fn page_of(anomaly: &Named) -> Option<Page> {
    let order = ["-process", "-realtime"].into_iter().find(|order| anomaly.name.ends_with(order));
    let base = anomaly.name.trim_end_matches(order.unwrap_or_default());
    let common = anomaly.common.map(plain);
    let exactly = |name: &str| {
        let wanted = Some((plain(name), common.clone()));
        PAGES.iter().find(|page| page.explained_as() == wanted)
    };
    let called = || {
        let common = common.as_ref()?;
        PAGES.iter().find(|page| page.is_called(common))
    };
    let named = |name: &str| {
        let name = plain(name);
        PAGES.iter().find(|page| page.is_called(&name))
    };
    let found = exactly(&anomaly.name).or_else(|| exactly(base)).or_else(called);
    let found = found.or_else(|| named(&anomaly.name)).or_else(|| named(base));
    found.or_else(|| named(base.trim_end_matches("-item"))).copied()
}

/// A name without the marks that people write or leave out.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_heading_and_an_example() {
        assert!(pages().len() >= 25);
        for page in pages() {
            let has_example = page.example().is_some() || page.slug == "no-order";
            assert!(page.text.starts_with("# ") && has_example, "{}", page.title());
        }
    }

    #[test]
    fn a_page_is_called_after_the_history_at_hand() {
        let named = |name: &str| page_of(&Named { name: name.to_owned(), common: None }).expect("a page");
        assert_eq!(named("G2-item").name_with(3), "A cycle of three");
        assert_eq!(named("G2-item").name_with(40), "A cycle of 40");
        assert_eq!(named("lost-update").name_with(40), "Lost update");
        // What a page says first is shown beside any history, so it does not speak of its example.
        for page in pages() {
            let speaks =
                ["Here ", "this one", "The same "].into_iter().find(|words| page.lead().contains(words));
            assert_eq!(speaks, None, "{}", page.title());
        }
    }

    #[test]
    fn every_anomaly_has_a_page() {
        let slug =
            |name: &str, common| page_of(&Named { name: name.to_owned(), common }).map(|page| page.slug);
        assert_eq!(slug("lost-update", Some("lost update")), Some("lost-update"));
        assert_eq!(slug("G-single-item", Some("read skew")), Some("causality-violation"));
        assert_eq!(slug("G-single-item-process", Some("stale read")), Some("stale-read-in-a-session"));
        assert_eq!(slug("G-single-item-realtime", Some("stale read")), Some("stale-read-in-real-time"));
        assert_eq!(slug("G2", Some("predicate write skew")), Some("write-skew-by-predicate"));
        assert_eq!(slug("G2-item-realtime", None), Some("a-cycle-of-three"));
        assert_eq!(slug("G2-item", Some("write skew")), Some("write-skew"));
        assert_eq!(slug("G1c-process", Some("circular information flow")), Some("circular-information-flow"));
        assert_eq!(slug("G-nonadjacent", Some("long fork")), Some("long-fork"));
        let unargued = Some("no order explains so many together");
        assert_eq!(slug("no-order", unargued), Some("no-order"));
        assert_eq!(slug("dirty-update", None), None);
    }
}
