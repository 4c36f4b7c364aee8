//! Which accepted histories have a witness.

use certify::has_certifier;
use checker::{Level, Verdict};

/// Whether an accepted history has no witness though its level could have one. Where timestamps do not say when a
/// transaction of unknown outcome took effect, only the search finds one.
pub(crate) fn is_missing(verdict: &Verdict, level: Level) -> bool {
    match verdict {
        Verdict::Accepted(witness) => witness.order.is_empty() && has_certifier(level),
        _ => false,
    }
}
