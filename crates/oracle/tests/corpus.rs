//! The oracle on the smallest labelled histories of the corpus.
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips and what it counted")]

use corpus::Label;
use history::formats::{ReadOptions, read_path};
use isolation::{Level, Options, Verdict};
use std::path::Path;
use taipan_oracle::oracle;

/// The levels that the columns of the labels speak of; they count session order.
const LEVELS: [&str; 5] = [
    "axiomatic-read-committed",
    "read-atomic",
    "causal",
    "strong-session-snapshot-isolation",
    "strong-session-serializable",
];

/// Larger ones are refused anyway.
const TRANSACTIONS_MAX: usize = 24;

#[test]
fn tiny_labelled_histories_get_their_label() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return corpus::missing("corpus", &missing),
    };
    let (mut agreed, mut refused, mut wrong) = (0, 0, Vec::new());
    for labelled in all.iter().filter(|one| one.transactions.is_some_and(|count| count <= TRANSACTIONS_MAX)) {
        let Ok(loaded) = read_path(&labelled.path, &ReadOptions::default()) else { continue };
        for (name, label) in LEVELS.iter().zip(labelled.verdicts) {
            let level = Level::parse(name).expect("a level of the table");
            match (oracle(&loaded.history, level, &Options::default()), label) {
                (Ok(Verdict::Accepted(_)), Label::Accept) | (Ok(Verdict::Violated(_)), Label::Reject) => {
                    agreed += 1;
                }
                (Ok(verdict), Label::Accept | Label::Reject) => {
                    wrong.push(format!(
                        "{}: {name}: labelled {label:?}, {}",
                        labelled.path.display(),
                        verdict.name()
                    ));
                }
                (Err(_), _) => refused += 1,
                (Ok(_), _) => {}
            }
        }
    }
    eprintln!("{agreed} verdicts agree with their labels, {refused} were refused as too large");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(agreed > 0, "no label was compared");
}
