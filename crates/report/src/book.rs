//! The book's chapter on anomalies, section by section: what a name means, with an example and its explanation.

/// The chapter; a test keeps its examples true.
const CHAPTER: &str = include_str!("../../../docs/book/src/anomalies.md");

/// A section of the chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its heading: the common name, and after a colon Elle's, where they differ.
    pub title: &'static str,
    /// Its text in Markdown, with the heading.
    pub text: &'static str,
}

/// All sections, in the order of the chapter.
pub fn pages() -> Vec<Page> {
    let starts: Vec<usize> = CHAPTER.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().skip(1).copied().chain([CHAPTER.len()]);
    let page = |(start, end): (usize, usize)| {
        let text = CHAPTER[start..end].trim_end();
        let title = text.lines().next().unwrap_or_default().trim_start_matches("## ");
        Page { title, text }
    };
    starts.iter().copied().zip(ends).map(page).collect()
}

/// The sections about an anomaly, by any of its names: `G-single`, `fractured read`, `lost-update`.
pub fn pages_about(name: &str) -> Vec<Page> {
    let wanted = plain(name);
    let exact = |page: &Page| {
        let names = page.title.split([':', ',']).map(plain);
        names.chain([plain(page.title)]).any(|name| name == wanted) || is_name_of(page, &wanted)
    };
    let all = pages();
    let found: Vec<Page> = all.iter().copied().filter(exact).collect();
    if !found.is_empty() || wanted.is_empty() {
        return found;
    }
    all.into_iter().filter(|page| plain(page.title).contains(&wanted)).collect()
}

/// Whether the example of a section is explained by that name.
fn is_name_of(page: &Page, wanted: &str) -> bool {
    let said = page.text.lines().find_map(|line| line.split_once(": violated: "));
    said.is_some_and(|(_, rest)| {
        let names = rest.split(" (").take(2).map(|name| plain(name.trim_end_matches(')')));
        names.into_iter().any(|name| name == wanted)
    })
}

/// A name without the marks that people write or leave out.
fn plain(name: &str) -> String {
    name.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{pages, pages_about};

    #[test]
    fn every_section_is_found_by_its_names() {
        let titles = |name: &str| pages_about(name).iter().map(|page| page.title).collect::<Vec<_>>();
        assert!(pages().len() >= 20);
        for page in pages() {
            assert!(titles(page.title).contains(&page.title), "{}", page.title);
            assert!(page.text.starts_with("## ") && page.text.contains("```history"), "{}", page.title);
        }
        assert_eq!(titles("G1a"), ["Aborted read: G1a"]);
        assert_eq!(titles("aborted-read"), ["Aborted read: G1a"]);
        assert_eq!(titles("lost-update"), ["Lost update"]);
        assert!(titles("G-single").contains(&"Fractured read: G-single"));
        assert!(titles("write skew").contains(&"Write skew: G2-item"));
        assert_eq!(titles("no such thing"), Vec::<&str>::new());
        assert_eq!(titles(""), Vec::<&str>::new());
    }
}
