//! Names that cannot do anything to what shows them.
//!
//! Names of sessions, transactions, keys and files are arbitrary text. Shown as they are, control characters would reach
//! the terminal, a line break would start a line of its own that says what it likes, and marks of writing direction would
//! turn the text beside them around. Everything for people is rendered from a printable copy of a finding; JSON keeps
//! names as they are, in its own escapes.

use crate::{
    Alternative, Case, Cases, Comparison, Finding, Listed, Member, Named, Overview, Part, Place, Step,
    Surveyed,
};
use crate::{Told, Trouble, Violation};
use std::borrow::Cow;
use std::fmt::Write;

/// A name on one line: control characters, line breaks and invisible marks of direction as escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same of text that has lines of its own.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter == '\n')
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_odd = |letter: char| acts(letter) && !is_kept(letter);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            letter if !is_odd(letter) => out.push(letter),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter => {
                // Writing into a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(letter));
            }
        }
    }
    Cow::Owned(out)
}

/// Whether a character does something instead of showing something.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Ends of lines and paragraphs, marks of direction (Unicode's Bidi_Control), and what is not seen at all.
            '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
            // What XML cannot hold.
            | '\u{fffe}' | '\u{ffff}')
}

fn name(text: &mut String) {
    if let Cow::Owned(escaped) = printable(text) {
        *text = escaped;
    }
}

fn lines(text: &mut String) {
    if let Cow::Owned(escaped) = printable_lines(text) {
        *text = escaped;
    }
}

impl Told {
    /// With names that can be shown.
    pub(crate) fn printable(&self) -> Self {
        let mut told = self.clone();
        told.findings.iter_mut().for_each(Finding::make_printable);
        for Trouble { file, message, .. } in &mut told.troubles {
            name(file);
            lines(message);
        }
        told.surveys.iter_mut().for_each(Surveyed::make_printable);
        for Overview { file, remarks, .. } in &mut told.overviews {
            name(file);
            remarks.iter_mut().for_each(|remark| lines(&mut remark.text));
        }
        told
    }
}

impl Surveyed {
    pub(crate) fn make_printable(&mut self) {
        name(&mut self.file);
    }
}

impl Finding {
    /// With names that can be shown.
    pub(crate) fn printable(&self) -> Self {
        let mut finding = self.clone();
        finding.make_printable();
        finding
    }

    fn make_printable(&mut self) {
        name(&mut self.file);
        self.reason.iter_mut().chain(&mut self.counted).for_each(lines);
        self.notes.iter_mut().for_each(lines);
        self.follows_from.iter_mut().for_each(name);
        self.anomaly.iter_mut().for_each(named);
        for Listed { anomaly, transactions, .. } in self.anomalies.iter_mut().flatten() {
            named(anomaly);
            transactions.iter_mut().for_each(name);
        }
        self.transactions.iter_mut().for_each(member);
        self.explanation.iter_mut().chain(&mut self.support).for_each(step);
        self.cases.iter_mut().for_each(cases);
        self.next.iter_mut().for_each(name);
        for it in self.by_timestamps.iter_mut().flatten() {
            let Violation { transaction, key, other, expected, seen, why, .. } = it;
            [transaction, expected, seen, why].into_iter().chain(key).chain(other).for_each(name);
        }
        if let Some(Comparison { anomaly, why, .. }) = &mut self.comparison {
            anomaly.iter_mut().chain([why]).for_each(name);
        }
        if let Some(Part { notation, instead, .. }) = &mut self.part {
            lines(notation);
            for Alternative { transaction, seen, allowed } in instead {
                [transaction, seen].into_iter().chain(allowed).for_each(name);
            }
        }
    }
}

fn named(anomaly: &mut Named) {
    name(&mut anomaly.name);
}

fn member(member: &mut Member) {
    let Member { name: own, session, db, ctx, operations, .. } = member;
    [own, session].into_iter().chain(ctx).chain(operations).for_each(name);
    if let Some((start, commit)) = db {
        name(start);
        name(commit);
    }
}

fn step(outermost: &mut Step) {
    let mut open = vec![outermost];
    while let Some(Step { from, to, key, why, said, because, cases: split, places, .. }) = open.pop() {
        [to, why, said].into_iter().chain(from).chain(key).for_each(name);
        places.iter_mut().for_each(|Place { transaction, .. }| name(transaction));
        open.extend(because);
        split.iter_mut().for_each(cases);
    }
}

/// Cases nest as deep as they are shown, which is bounded.
fn cases(cases: &mut Cases) {
    for Case { suppose, said, explanation, support, cases: split } in &mut cases.told {
        [suppose, said].into_iter().for_each(name);
        explanation.iter_mut().chain(support).for_each(step);
        split.iter_mut().for_each(self::cases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_escaped_and_nothing_else() {
        for (text, expected) in [
            ("a\u{1b}[31m\r\nb\t", "a\\u{1b}[31m\\r\\nb\\t"),
            ("\u{202e}x\u{2066}\u{2028}\u{85}\u{7f}", "\\u{202e}x\\u{2066}\\u{2028}\\u{85}\\u{7f}"),
            ("Zoë 数据 👩\u{200d}💻 שלום \\n", "Zoë 数据 👩\u{200d}💻 שלום \\n"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\n\u{7}b"), "a\n\\u{7}b");
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
