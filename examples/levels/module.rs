//! A level with a module in Rust: serializable, and the newsletter's readers see what was published before they began.
//!
//! `cargo run -p taipan-checker --example module` checks two tiny histories.

use evidence::check;
use history::History;
use history::formats::notation;
use isolation::{Additions, Definition, Level, Module, Options, Rule};

/// Transactions that touch the key `news` keep to the clients' clocks.
#[derive(Debug)]
pub(crate) struct FreshNews;

impl Module for FreshNews {
    fn name(&self) -> &str {
        "fresh news"
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let touches = |it: &history::Transaction<'_>| {
            it.ops().any(|(_, op)| op.key().is_some_and(|key| history.keys().get(key).to_string() == "news"))
        };
        let readers = || history.transactions().filter(touches);
        for first in readers().filter(|it| it.is_committed()) {
            for second in readers() {
                let ended = first.client().zip(second.client()).is_some_and(|(a, b)| a.end < b.begin);
                if ended {
                    additions.before.push((first.id(), second.id()));
                }
            }
        }
        Ok(())
    }
}

/// The level.
pub(crate) fn level() -> Level {
    let definition = Definition::new("serializable-with-fresh-news", Rule::Serializable).with(FreshNews);
    definition.level().expect("the table has no level of that name")
}

/// A verdict's name.
pub(crate) fn verdict(text: &str) -> &'static str {
    let history = notation::parse(text).expect("the notation is right");
    check(&history, level(), &Options::default()).verdict.name()
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() {
    for text in [FRESH, STALE] {
        println!("{text}{}\n", verdict(text));
    }
}

/// The reader sees what was published before it began.
pub(crate) const FRESH: &str = "author: w(news,1) @0..10\nreader: r(news,1) @20..30\n";
/// It does not.
pub(crate) const STALE: &str = "author: w(news,1) @0..10\nreader: r(news,_) @20..30\n";
