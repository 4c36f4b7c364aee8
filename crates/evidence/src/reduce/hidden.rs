//! Which transactions no read can have seen, although they wrote what was read.
//!
//! *What*: where values are written more than once, a read may have seen any writer of its value, so none of them can go.
//! But sessions and clocks hide most of them: whoever came after the read, and whoever was overwritten before it began.
//!
//! ```text
//!   W wrote x = 0  ──▶  X wrote x = 2  ──▶  R read x = 0        W is hidden from R by X
//!   R read x = 0   ──▶  W wrote x = 0                           W is hidden from R by time
//! ```
//!
//! *Invariant*: in every order that explains a history R finds something else than W's write. So what is left without W
//! has an explanation if the whole has one.

use super::observed::{Observed, is_write};
use history::{Name, Status};
use isolation::{Level, Rule};
use oracle::tiny::{Datum, Sketch, SketchOp, SketchTxn};

/// The order that sessions and clocks give.
pub(super) struct Hiding<'s> {
    sketch: &'s Sketch,
    level: Level,
    skew: i64,
}

impl<'s> Hiding<'s> {
    /// None if the level has no order that hides anything.
    pub(super) fn of(sketch: &'s Sketch, level: Level, skew: i64) -> Option<Self> {
        let is_snapshot = matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation);
        (is_snapshot && (level.session || level.realtime)).then_some(Self { sketch, level, skew })
    }

    /// Whether nobody else can have seen what a transaction wrote.
    pub(super) fn hides(&self, place: usize) -> bool {
        let txn = &self.sketch.transactions[place];
        if txn.status != Status::Committed {
            return false;
        }
        let others = self.sketch.transactions.iter().enumerate().filter(|&(other, _)| other != place);
        let mut observed = Observed::default();
        // What is hidden from a plain read is not shown by it; anything else counts as it is.
        for (reader, it) in others {
            let is_seen = |operation: &&SketchOp| match operation {
                SketchOp::Read { key, value, .. } if !matches!(value, Datum::List(_)) => {
                    !self.is_hidden(place, reader, key)
                }
                _ => true,
            };
            it.ops.iter().filter(is_seen).for_each(|operation| observed.note(operation));
        }
        txn.ops.iter().filter(|operation| is_write(operation)).all(|operation| {
            matches!(operation, SketchOp::Write { value, .. } if !matches!(value, Datum::List(_)))
                && observed.misses(operation)
        })
    }

    /// Whether a read of a key cannot have seen a transaction's write.
    fn is_hidden(&self, writer: usize, reader: usize, key: &Name) -> bool {
        let overwrites = |operation: &SketchOp| match operation {
            SketchOp::Write { key: at, .. } | SketchOp::Delete { key: at } => at == key,
            _ => false,
        };
        let between = |(place, it): (usize, &SketchTxn)| {
            place != writer
                && place != reader
                && it.status == Status::Committed
                && it.ops.iter().any(overwrites)
                && self.is_before(writer, place)
                && self.is_before(place, reader)
        };
        self.is_before(reader, writer) || self.sketch.transactions.iter().enumerate().any(between)
    }

    /// Whether sessions or clocks put one before another.
    fn is_before(&self, first: usize, second: usize) -> bool {
        let (one, two) = (&self.sketch.transactions[first], &self.sketch.transactions[second]);
        let in_session = self.level.session && one.session == two.session && first < second;
        let clocks = one.client.zip(two.client).filter(|_| self.level.realtime);
        let in_time = clocks.is_some_and(|(one, two)| one.end.saturating_add(self.skew) < two.begin);
        one.status == Status::Committed && (in_session || in_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    /// Whether nobody can have seen the first transaction of a history.
    fn hides_first(text: &str, level: Level, skew: i64) -> bool {
        let history = notation::parse(text).expect("the notation is right");
        let sketch = Sketch::of(&history);
        Hiding::of(&sketch, level, skew).is_some_and(|hiding| hiding.hides(0))
    }

    #[test]
    fn only_what_committed_in_between_hides_a_write() {
        let hides = |text: &str| hides_first(text, Level::STRICT_SERIALIZABLE, 0);
        assert!(hides("a: w(x,0) @0..1\nb: w(x,2) @2..3\nc: r(x,0) @4..5\n"));
        assert!(hides("a: w(x,0) @4..5\nc: r(x,0) @0..1\n"), "it came later");
        assert!(hides("a: w(x,0) | w(x,2) | r(x,0)\n"), "by session order");
        assert!(hides("a: w(x,0) @0..1\nb: d(x) @2..3\nc: r(x,0) @4..5\n"));
        assert!(!hides("a: w(x,0) @0..1\nc: r(x,0) @4..5\n"), "nobody overwrote it");
        assert!(!hides("a: w(x,0) @0..1\nb: w(x,2)! @2..3\nc: r(x,0) @4..5\n"), "that was aborted");
        assert!(!hides("a: w(x,0) @0..1\nb: w(x,2)? @2..3\nc: r(x,0) @4..5\n"), "that may not have been");
        assert!(!hides("a: w(x,0) @0..1\nb: w(y,2) @2..3\nc: r(x,0) @4..5\n"), "that is another key");
        assert!(!hides("a: w(x,0) @0..1\nb: r(x,2) @2..3\nc: r(x,0) @4..5\n"), "that wrote nothing");
        assert!(!hides("a: w(x,0) @0..1\nb: w(x,2) @2..4\nc: r(x,0) @4..5\n"), "that may have come later");
        assert!(!hides("a: w(x,0) @0..2\nb: w(x,2) @2..3\nc: r(x,0) @4..5\n"), "that may have come before");
        assert!(!hides("a: w(x,0)? @0..1\nb: w(x,2) @2..3\nc: r(x,0) @4..5\n"), "it may come at any time");
    }

    #[test]
    fn clocks_that_differ_hide_less() {
        let text = "a: w(x,0) @0..1\nb: w(x,2) @3..4\nc: r(x,0) @6..7\n";
        assert!(hides_first(text, Level::STRICT_SERIALIZABLE, 1));
        assert!(!hides_first(text, Level::STRICT_SERIALIZABLE, 2));
        assert!(!hides_first(text, Level::SERIALIZABLE, 0), "clocks do not count there");
    }
}
