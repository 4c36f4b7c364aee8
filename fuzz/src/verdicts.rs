//! The checker against the exhaustive oracle: whatever tiny history comes, both say the same at every level, and what the
//! checker certifies, the certifier accepts.

use certify::{Certificate, Ruling, certify, has_certifier};
use checker::answer;
use evidence::add_proof;
use history::History;
use history::formats::notation;
use isolation::{Budget, Claim, Level, Options, Verdict, VerdictKind};
use oracle::oracle;
use std::time::Duration;

/// Larger histories are left to other tests: the oracle tries all orders.
const TRANSACTIONS_MAX: usize = 6;
const OPERATIONS_MAX: usize = 24;

/// A history in the notation.
pub fn verdict(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(history) = notation::parse(text) else { return };
    if history.len() > TRANSACTIONS_MAX || history.op_count() > OPERATIONS_MAX {
        return;
    }
    for level in Level::all() {
        agree(&history, level);
    }
}

fn agree(history: &History, level: Level) {
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(5));
    let options = Options { threads: 1, budget, ..Options::default() };
    let found = answer(&Claim::new(level), history, &options).outcome.verdict;
    let Ok(truth) = oracle(history, level, &options) else { return };
    let decided = (found.kind(), truth.kind());
    if matches!(decided, (VerdictKind::Undecided, _) | (_, VerdictKind::Undecided)) {
        return;
    }
    assert_eq!(found.kind(), truth.kind(), "{level}: the checker, then the oracle");
    // A history that was accepted by its timestamps need not have a witness.
    let has_witness = !matches!(&found, Verdict::Accepted(witness) if witness.order.is_empty());
    if has_certifier(level) && has_witness {
        let mut certificate = Certificate::new("fuzz", history, level, &options, &found);
        add_proof(&mut certificate, history, &options);
        let ruling = certify(history, &certificate, &options.budget);
        assert!(!matches!(ruling, Ruling::Refused(_)), "{level}: {found:?} is {ruling:?}");
    }
}
