//! The smallest sub-history that is still violated, as a history of its own: something for a bug report.
//!
//! *What*: takes the evidence of a violation and leaves out transactions, then operations, as long as what is left
//! violates the level in the same way. What comes out can be written to a file and checked again by anybody.
//!
//! *Invariant*: every step weakens: **if what was there has an explanation, so has what is left**. So what comes out is
//! violated because the whole is, not because something was torn apart:
//!
//! * a transaction goes as in [`search::restrict`]: what others saw of it becomes unknown;
//! * a transaction goes as it is where sessions and clocks say that nobody saw it ([`hidden`]), where it was aborted, or
//!   where another one contradicts itself ([`needless`]);
//! * a result that was read may always go;
//! * of a scan's range an end may go, with the rows there: whoever saw the whole saw the rest;
//! * a write may go if nobody who is left can have seen it. In an order that explains what was there, no read finds that
//!   write, so every read finds the same without it;
//! * an empty transaction, an initial value of a key that nobody names, and all clocks may go.
//!
//! *Steps*:
//! 1. The core of the evidence, and what it saw of others. If that is not violated by itself, nothing can be said.
//! 2. One transaction after the other, where every operation is on one key.
//! 3. Operations: results first, then the ends of scans' ranges, then writes that nobody sees any more; larger pieces
//!    before single ones. Again from 2 until nothing more can go.
//! 4. Initial values and clocks that do not matter.
//! 5. Where that is still long, the same for a violation elsewhere in the history ([`elsewhere`]).
//!
//! What is left is minimal: without any one more of its transactions or operations it has an explanation, or another
//! one than it had. A budget that ends earlier leaves what was reached by then.
//!
//! *Cost*: checks of tiny histories, about as many as the core has operations, twice. *Source*: Zeller and
//! Hildebrandt, Simplifying and isolating failure-inducing input (2002), for the pieces.

mod elsewhere;
mod hidden;
mod needless;
mod observed;

use crate::crowd;
use crate::prove::TRIED_MAX;
use hidden::Hiding;
use history::{History, Id, Name, OpId, Primitive, TxnId};
use isolation::{Evidence, Level, Options, Verdict};
use observed::{Observed, is_write};
use oracle::tiny::{Sketch, SketchOp, SketchTxn};
use rustc_hash::{FxHashMap, FxHashSet};
use search::{restrict::restrict_for, rows};

/// What is left of a violated history.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// A history of its own; its transactions keep their names and their order.
    pub history: History,
    /// The evidence that it is violated: it speaks of this history, not of the whole.
    pub evidence: Box<Evidence>,
    /// For each of its transactions the one in the whole, where only one has that name.
    pub origins: Vec<Option<TxnId>>,
    /// Whether nothing more can go; else the budget ended first.
    pub is_minimal: bool,
}

/// Reduces a violated history. `judge` says what a smaller one comes to, as it did of the whole: [`check`](crate::check())
/// in most cases. `None` if the part that the evidence speaks of is not found violated by itself within the budget.
pub fn reduce(
    history: &History,
    level: Level,
    options: &Options,
    evidence: &Evidence,
    judge: impl Fn(&History) -> Verdict,
) -> Option<Reduced> {
    let reduced = reduce_once(history, level, options, evidence, &judge)?;
    Some(elsewhere::smaller(history, level, options, evidence, &judge, reduced))
}

/// Reduces the core of one violation.
fn reduce_once(
    history: &History,
    level: Level,
    options: &Options,
    evidence: &Evidence,
    judge: &dyn Fn(&History) -> Verdict,
) -> Option<Reduced> {
    let question = Question { level, options, judge };
    let names = Names::of(history);
    let mut violated: Vec<_> = Vec::new();
    for (start, places) in starts(history, level, options, evidence, &names) {
        let start = Sketch { level: Some(level.name().to_owned()), ..start };
        let Some(found) = question.violation(&start.build()) else { continue };
        let is_same = found.anomaly.name == evidence.anomaly.name;
        violated.push((start, found, places));
        if is_same {
            // The name that the whole has comes first.
            violated.rotate_right(1);
            break;
        }
    }
    let (best, evidence, places) = violated.into_iter().next()?;
    let named =
        best.transactions.iter().zip(places).filter_map(|(txn, place)| Some((txn.id.clone()?, place)));
    let named: FxHashMap<String, TxnId> = named.collect();
    let mut reducing =
        Reducing { question, anomaly: evidence.anomaly.name.clone(), best, evidence, is_minimal: true };
    if !reducing.count() {
        reducing.run();
    }
    let Reducing { mut best, evidence, is_minimal, .. } = reducing;
    let origins =
        best.transactions.iter().map(|txn| txn.id.as_ref().and_then(|id| named.get(id).copied())).collect();
    forget_default_ids(&mut best);
    Some(Reduced { history: best.build(), evidence, origins, is_minimal })
}

/// An id that says what a transaction is called anyway need not be written down.
fn forget_default_ids(sketch: &mut Sketch) {
    let mut lens: FxHashMap<Name, u32> = FxHashMap::default();
    for txn in &mut sketch.transactions {
        let position = lens.entry(txn.session.clone()).or_default();
        if txn.id.as_ref().is_some_and(|id| *id == format!("{}:{position}", txn.session)) {
            txn.id = None;
        }
        *position += 1;
    }
}

/// The core by itself, where every operation is on one key; and the core with what it saw of others, which takes more room
/// and says more.
fn starts<'h>(
    history: &'h History,
    level: Level,
    options: &Options,
    evidence: &Evidence,
    names: &'h Names<'h>,
) -> impl Iterator<Item = (Sketch, Vec<TxnId>)> + use<'h> {
    let mut core = evidence.transactions.clone();
    core.extend(evidence.edges.iter().flat_map(|edge| edge.from.into_iter().chain([edge.to])));
    core.sort_unstable();
    core.dedup();
    let is_plain = !rows::has_claims(history) && !options.mixed;
    [true, false].into_iter().filter(move |&alone| !alone || is_plain).map(move |alone| match alone {
        true => by_itself(history, level, &core, names),
        false => with_what_it_saw(history, &core, names),
    })
}

fn by_itself(history: &History, level: Level, core: &[TxnId], names: &Names<'_>) -> (Sketch, Vec<TxnId>) {
    let part = restrict_for(history, core, level);
    let mut sketch = Sketch::of(&part.history);
    for (txn, &whole) in sketch.transactions.iter_mut().zip(&part.txns) {
        txn.id = names.unique(whole);
    }
    forget_unused_keys(&mut sketch);
    (sketch, part.txns)
}

/// Initial values of keys that no operation names and that lie in no range say nothing, unless a predicate asks for them.
fn forget_unused_keys(sketch: &mut Sketch) {
    let mut initial = std::mem::take(&mut sketch.initial);
    let (used, observed) = (Observed::keys(sketch), Observed::of(sketch));
    initial.retain(|(key, _)| used.contains(key) || observed.may_show(key));
    sketch.initial = initial;
}

fn with_what_it_saw(history: &History, core: &[TxnId], names: &Names<'_>) -> (Sketch, Vec<TxnId>) {
    let is_core = |txn: TxnId| core.binary_search(&txn).is_ok();
    // What the core saw; of the others only whether they write by predicate matters, for that may have seen anything.
    let mut seen = Observed::default();
    for transaction in history.transactions() {
        let is_core = is_core(transaction.id());
        let is_conditional = |(_, it): (_, Primitive<'_>)| matches!(it, Primitive::WriteIf(_));
        if is_core || transaction.primitives().any(is_conditional) {
            let copy = SketchTxn::of(history, transaction, |operation| is_core || is_write(operation));
            copy.ops.iter().for_each(|operation| seen.note(operation));
        }
    }
    let whole = Sketch::of_initial(history);
    let kept = history.transactions().filter_map(|transaction| {
        let is_core = is_core(transaction.id());
        let wanted = |operation: &SketchOp| is_core || (is_write(operation) && !seen.misses(operation));
        let copy = SketchTxn::of(history, transaction, wanted);
        let id = transaction.id();
        (!copy.ops.is_empty()).then(|| (SketchTxn { id: names.unique(id), ..copy }, id))
    });
    let (transactions, places) = kept.unzip();
    (Sketch { transactions, ..whole }, places)
}

/// Names of transactions, where only one has them.
struct Names<'h> {
    history: &'h History,
    several: FxHashSet<String>,
}

impl<'h> Names<'h> {
    fn of(history: &'h History) -> Self {
        // Only a session called 1 and one called "1", or an id like them, can share a name.
        let mut sessions: FxHashSet<String> = FxHashSet::default();
        let mut shared = history.transactions().any(|txn| txn.explicit_id().is_some());
        for session in history.sessions().ids() {
            shared |= !sessions.insert(history.sessions().get(session).to_string());
        }
        let mut several = FxHashSet::default();
        if shared {
            let mut seen: FxHashSet<String> = FxHashSet::default();
            for txn in history.transactions() {
                let name = txn.name().to_string();
                if !seen.insert(name.clone()) {
                    several.insert(name);
                }
            }
        }
        Self { history, several }
    }

    fn unique(&self, txn: TxnId) -> Option<String> {
        let name = self.history.transaction(txn).name().to_string();
        (!self.several.contains(&name)).then_some(name)
    }
}

/// What is asked of every candidate.
struct Question<'o> {
    level: Level,
    options: &'o Options,
    judge: &'o dyn Fn(&History) -> Verdict,
}

impl Question<'_> {
    fn violation(&self, history: &History) -> Option<Box<Evidence>> {
        match (self.judge)(history) {
            Verdict::Violated(evidence) => Some(evidence),
            Verdict::Accepted(_) | Verdict::Undecided(_) => None,
        }
    }

    fn is_exhausted(&self) -> bool {
        self.options.budget.exhausted().is_some()
    }
}

struct Reducing<'o> {
    question: Question<'o>,
    /// The kind of violation, which stays.
    anomaly: String,
    best: Sketch,
    evidence: Box<Evidence>,
    is_minimal: bool,
}

impl Reducing<'_> {
    /// Where counting shows the violation, whatever is not counted goes, and then nothing else can.
    fn count(&mut self) -> bool {
        let history = self.best.build();
        let all: Vec<TxnId> = history.transactions().map(|txn| txn.id()).collect();
        let Question { level, options, .. } = self.question;
        let may_count = all.len() > TRIED_MAX;
        let found = may_count.then(|| crowd::crowd(&history, &all, level, options)).flatten();
        let Some(crowd) = found.filter(|crowd| crowd.needs_all(&history, &all)) else { return false };
        let counted_ops = crowd.operations(&history);
        let op =
            |(txn, place): (usize, usize)| OpId(history.transaction(all[txn]).first_op().0 + place as u32);
        let counted = without(&self.best, |place| !counted_ops.contains(&op(place)));
        if counted != self.best && !self.attempt(counted) {
            return false;
        }
        self.drop_initial_values();
        self.drop_clocks();
        true
    }

    fn run(&mut self) {
        loop {
            let before = self.best.clone();
            self.drop_aborted();
            self.drop_bystanders();
            self.drop_hidden();
            self.drop_transactions();
            self.drop_results();
            self.narrow_scans();
            self.drop_writes();
            if self.question.is_exhausted() {
                self.is_minimal = false;
                return;
            }
            if self.best == before {
                break;
            }
        }
        self.drop_initial_values();
        self.drop_clocks();
        self.is_minimal = !self.question.is_exhausted();
    }

    /// Takes a candidate if it is violated in the same way.
    fn attempt(&mut self, candidate: Sketch) -> bool {
        if self.question.is_exhausted() || candidate == self.best {
            return false;
        }
        let Some(evidence) = self.question.violation(&candidate.build()) else { return false };
        // What was too large to be argued about has no name of its own yet.
        let same = evidence.anomaly.name == self.anomaly || self.evidence.edges.is_empty();
        if same {
            self.anomaly.clone_from(&evidence.anomaly.name);
            self.best = candidate;
            self.evidence = evidence;
        }
        same
    }

    fn drop_transactions(&mut self) {
        if rows::has_claims(&self.best.build()) || self.question.options.mixed {
            return;
        }
        for place in (0..self.best.transactions.len()).rev() {
            let whole = self.best.build();
            let keep: Vec<TxnId> = (0..whole.len()).filter(|&other| other != place).map(TxnId::new).collect();
            let part = restrict_for(&whole, &keep, self.question.level);
            let mut candidate = Sketch { level: self.best.level.clone(), ..Sketch::of(&part.history) };
            for (txn, whole) in candidate.transactions.iter_mut().zip(&part.txns) {
                txn.id.clone_from(&self.best.transactions[whole.index()].id);
            }
            self.attempt(candidate);
        }
    }

    /// Leaves out transactions of which sessions or clocks say that nobody saw them.
    fn drop_hidden(&mut self) {
        let (level, skew) = (self.question.level, self.question.options.clock_skew);
        if self.question.options.mixed || !level.modules().is_empty() {
            return;
        }
        for place in (0..self.best.transactions.len()).rev() {
            if Hiding::of(&self.best, level, skew).is_some_and(|hiding| hiding.hides(place)) {
                let mut candidate = self.best.clone();
                candidate.transactions.remove(place);
                self.attempt(candidate);
            }
        }
    }

    /// Leaves out results, in pieces that are halved.
    fn drop_results(&mut self) {
        let places = |sketch: &Sketch| -> Vec<(usize, usize)> {
            let ops = |(txn, it): (usize, &SketchTxn)| {
                let of_txn = it.ops.iter().enumerate().filter(|(_, operation)| !is_write(operation));
                of_txn.map(|(place, _)| (txn, place)).collect::<Vec<_>>()
            };
            sketch.transactions.iter().enumerate().flat_map(ops).collect()
        };
        let mut len = places(&self.best).len().max(1).next_power_of_two();
        while len > 0 {
            let mut from = 0;
            loop {
                let all = places(&self.best);
                let Some(piece) =
                    all.get(from..(from + len).min(all.len())).filter(|piece| !piece.is_empty())
                else {
                    break;
                };
                let gone: FxHashSet<(usize, usize)> = piece.iter().copied().collect();
                if !self.attempt(without(&self.best, |place| gone.contains(&place))) {
                    from += len;
                }
            }
            len /= 2;
        }
    }

    /// Leaves out ends of scans' ranges: a half, then a quarter of the rows, and so on.
    fn narrow_scans(&mut self) {
        for txn in 0..self.best.transactions.len() {
            for place in 0..self.best.transactions[txn].ops.len() {
                let mut piece = scanned(&self.best.transactions[txn].ops[place]).div_ceil(2);
                while piece > 0 {
                    let narrower = |sketch: &Sketch, first: bool| {
                        let mut candidate = sketch.clone();
                        let op = &mut candidate.transactions[txn].ops[place];
                        *op = narrowed(op, piece, first)?;
                        Some(candidate)
                    };
                    let mut is_narrower = false;
                    for first in [true, false] {
                        is_narrower |= narrower(&self.best, first).is_some_and(|it| self.attempt(it));
                    }
                    if !is_narrower {
                        piece /= 2;
                    }
                }
                if let Some(op) = tightened(&self.best.transactions[txn].ops[place]) {
                    let mut candidate = self.best.clone();
                    candidate.transactions[txn].ops[place] = op;
                    self.attempt(candidate);
                }
            }
        }
    }

    /// Leaves out writes that nobody can have seen, all at once or each by itself, and transactions that do nothing.
    fn drop_writes(&mut self) {
        let observed = Observed::of(&self.best);
        let mut bare = self.best.clone();
        for txn in &mut bare.transactions {
            txn.ops.retain(|operation| !(is_write(operation) && observed.misses(operation)));
        }
        bare.transactions.retain(|txn| !txn.ops.is_empty());
        self.attempt(bare);
        for txn in (0..self.best.transactions.len()).rev() {
            for place in (0..self.best.transactions[txn].ops.len()).rev() {
                let operation = &self.best.transactions[txn].ops[place];
                if is_write(operation) && Observed::of(&self.best).misses(operation) {
                    self.attempt(without(&self.best, |other| other == (txn, place)));
                }
            }
        }
        for txn in (0..self.best.transactions.len()).rev() {
            if self.best.transactions[txn].ops.is_empty() {
                let mut candidate = self.best.clone();
                candidate.transactions.remove(txn);
                self.attempt(candidate);
            }
        }
    }

    fn drop_initial_values(&mut self) {
        let mut candidate = self.best.clone();
        forget_unused_keys(&mut candidate);
        self.attempt(candidate);
    }

    fn drop_clocks(&mut self) {
        let mut candidate = self.best.clone();
        for txn in &mut candidate.transactions {
            txn.client = None;
            txn.db = None;
        }
        self.attempt(candidate);
    }
}

/// How many rows a scan has.
fn scanned(operation: &SketchOp) -> usize {
    match operation {
        SketchOp::Scan { rows: Some(rows), .. } => rows.len(),
        _ => 0,
    }
}

/// A scan without so many of its rows, the first or the last, and without the part of its range where they are. Of a key
/// that has several rows none goes without the others. `None` if nothing would be left of it, or nothing go.
fn narrowed(operation: &SketchOp, piece: usize, first: bool) -> Option<SketchOp> {
    let SketchOp::Scan { from, to, rows: Some(rows) } = operation else { return None };
    if piece >= rows.len() {
        return None;
    }
    let (mut from, mut to, mut rows) = (from.clone(), to.clone(), rows.clone());
    let len = rows.len();
    if first {
        let bound = rows[piece].0.clone();
        rows.retain(|(key, _)| *key >= bound);
        from = Some(bound);
    } else {
        let bound = rows[len - piece].0.clone();
        rows.retain(|(key, _)| *key < bound);
        to = Some(bound);
    }
    (!rows.is_empty() && rows.len() < len).then_some(SketchOp::Scan { from, to, rows: Some(rows) })
}

/// A scan from its first row to its last, where keys are integers: of texts there is none that is right behind another.
fn tightened(operation: &SketchOp) -> Option<SketchOp> {
    let SketchOp::Scan { rows: Some(rows), .. } = operation else { return None };
    let (first, last) = (rows.iter().map(|row| &row.0).min()?, rows.iter().map(|row| &row.0).max()?);
    let (Name::Int(first), Name::Int(last)) = (first, last) else { return None };
    let behind = Name::Int(last.checked_add(1)?);
    Some(SketchOp::Scan { from: Some(Name::Int(*first)), to: Some(behind), rows: Some(rows.clone()) })
}

/// A sketch without some of its operations.
fn without(sketch: &Sketch, gone: impl Fn((usize, usize)) -> bool) -> Sketch {
    let mut left = sketch.clone();
    for (txn, it) in left.transactions.iter_mut().enumerate() {
        let ops: Vec<SketchOp> = std::mem::take(&mut it.ops);
        let kept = ops.into_iter().enumerate().filter(|&(place, _)| !gone((txn, place)));
        it.ops = kept.map(|(_, operation)| operation).collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use history::formats::notation;
    use oracle::oracle;
    use oracle::tiny::Shape;

    const LEVELS: [&str; 8] = [
        "serializable",
        "strict-serializable",
        "snapshot-isolation",
        "strong-session-snapshot-isolation",
        "causal",
        "read-atomic",
        "axiomatic-read-committed",
        "repeatable-read",
    ];

    fn levels() -> impl Iterator<Item = Level> {
        LEVELS.into_iter().map(|name| Level::parse(name).expect("a level of the table"))
    }

    fn shapes() -> [Shape; 5] {
        [Shape::registers(), Shape::lists(), Shape::ranges(), Shape::predicates(), Shape::everything()]
    }

    fn is(history: &History, level: Level, verdict: &str) -> bool {
        oracle(history, level, &Options::default()).is_ok_and(|found| found.name() == verdict)
    }

    /// Every step that the reduction takes, on histories that have an explanation: each must have one afterwards, too.
    #[test]
    fn steps_weaken() {
        let mut steps = 0;
        for (shape, seed) in shapes().iter().flat_map(|shape| (0..60).map(move |seed| (shape, seed))) {
            let sketch = shape.sketch(seed);
            let observed = Observed::of(&sketch);
            for level in levels().filter(|&level| is(&sketch.build(), level, "accepted")) {
                for (txn, place) in places(&sketch) {
                    let operation = &sketch.transactions[txn].ops[place];
                    if is_write(operation) && !observed.misses(operation) {
                        continue;
                    }
                    let mut smaller = vec![without(&sketch, |other| other == (txn, place))];
                    for first in [true, false] {
                        let mut narrower = sketch.clone();
                        let narrow = narrowed(operation, 1, first);
                        if let Some(op) = if first { narrow } else { narrow.or_else(|| tightened(operation)) }
                        {
                            narrower.transactions[txn].ops[place] = op;
                            forget_unused_keys(&mut narrower);
                            smaller.push(narrower);
                        }
                    }
                    for smaller in smaller {
                        let smaller = smaller.build();
                        let text = || {
                            format!("{level}: {txn}, {place}\n{sketch}\n{}", notation::to_string(&smaller))
                        };
                        assert!(is(&smaller, level, "accepted"), "{}", text());
                        steps += 1;
                    }
                }
            }
        }
        assert!(steps > 2_000, "only {steps} steps were tried");
    }

    /// The same of transactions that sessions or clocks hide.
    #[test]
    fn leaving_out_what_is_hidden_weakens() {
        let mut steps = 0;
        for (shape, seed) in shapes().iter().flat_map(|shape| (0..150).map(move |seed| (shape, seed))) {
            let sketch = shape.sketch(seed);
            for level in levels() {
                let Some(hiding) = Hiding::of(&sketch, level, 0) else { continue };
                let hidden: Vec<usize> =
                    (0..sketch.transactions.len()).filter(|&it| hiding.hides(it)).collect();
                if hidden.is_empty() || !is(&sketch.build(), level, "accepted") {
                    continue;
                }
                for place in hidden {
                    let mut smaller = sketch.clone();
                    smaller.transactions.remove(place);
                    assert!(is(&smaller.build(), level, "accepted"), "{level}: {place}\n{sketch}\n{smaller}");
                    steps += 1;
                }
            }
        }
        assert!(steps > 100, "only {steps} steps were tried");
    }

    fn places(sketch: &Sketch) -> Vec<(usize, usize)> {
        let of_txn = |(txn, it): (usize, &SketchTxn)| {
            (0..it.ops.len()).map(move |place| (txn, place)).collect::<Vec<_>>()
        };
        sketch.transactions.iter().enumerate().flat_map(of_txn).collect()
    }

    /// What is left is violated, by the exhaustive oracle as well, and nothing of it can go.
    #[test]
    fn what_is_left_is_violated_and_minimal() {
        let options = Options::default();
        let mut reduced = 0;
        for (shape, seed) in shapes().iter().flat_map(|shape| (0..40).map(move |seed| (shape, seed))) {
            let history = shape.history(seed);
            for level in levels() {
                let judge = |history: &History| check(history, level, &options).verdict;
                let Verdict::Violated(evidence) = judge(&history) else { continue };
                let Some(left) = reduce(&history, level, &options, &evidence, judge) else { continue };
                let text = || {
                    format!(
                        "{level}\n{}\n{}",
                        notation::to_string(&history),
                        notation::to_string(&left.history)
                    )
                };
                assert!(left.is_minimal && left.history.len() <= history.len(), "{}", text());
                assert!(is(&left.history, level, "violated"), "{}", text());
                assert_eq!(left.history.level(), Some(level.name()));
                is_minimal(&left, level, &text);
                reduced += 1;
            }
        }
        assert!(reduced > 100, "only {reduced} were reduced");
    }

    fn is_minimal(left: &Reduced, level: Level, text: &dyn Fn() -> String) {
        let sketch = Sketch::of(&left.history);
        for (txn, place) in places(&sketch) {
            if is_write(&sketch.transactions[txn].ops[place]) {
                continue;
            }
            let smaller = without(&sketch, |other| other == (txn, place)).build();
            if let Verdict::Violated(evidence) = check(&smaller, level, &Options::default()).verdict {
                assert_ne!(evidence.anomaly.name, left.evidence.anomaly.name, "{txn}, {place}: {}", text());
            }
        }
    }

    fn reduced(level: &str, text: &str) -> String {
        let history = notation::parse(text).expect("well written");
        let (level, options) = (Level::parse(level).expect("a level"), Options::default());
        let judge = |history: &History| check(history, level, &options).verdict;
        let Verdict::Violated(evidence) = judge(&history) else { panic!("it is violated") };
        let left =
            reduce(&history, level, &options, &evidence, judge).expect("the core is violated by itself");
        assert!(left.is_minimal);
        notation::to_string(&left.history)
    }

    #[test]
    fn what_does_not_matter_goes() {
        let lost_update = "init: x=0 y=0 z=0\n\
            s1: r(z,0) | r(x,0) r(y,0) w(x,1) w(y,5) @1..5\n\
            s2: r(x,0) w(x,2) r(z,0) @2..6\n\
            s3: r(y,5) w(z,7)! | r(y,5)\n";
        assert_eq!(
            reduced("serializable", lost_update),
            "init: x=0\nlevel: serializable\ns1: [\"s1:1\"] r(x,0) w(x,1)\ns2: r(x,0) w(x,2)\n"
        );
        let aborted = "s1: w(x,1) w(y,1)! | w(y,2)\ns2: r(y,2) r(x,1) w(z,1)\n";
        assert_eq!(reduced("serializable", aborted), "level: serializable\ns1: w(x,1)!\ns2: r(x,1)\n");
        let in_real_time = "s1: w(x,1) w(y,1) @1..2\ns2: r(x,_) r(z,_) @3..4\n";
        assert_eq!(
            reduced("strict-serializable", in_real_time),
            "level: strict-serializable\ns1: w(x,1) @1..2\ns2: r(x,_) @3..4\n"
        );
    }

    /// Where keys are numbers, whoever reads the report sees the range that matters and no more.
    #[test]
    fn ranges_of_numbers_go_from_the_first_row_to_the_last() {
        let text = "s1: w(3,1) w(5,2) w(9,1)\ns2: scan(..)=[3:1 5:7 9:1]\n";
        assert_eq!(reduced("serializable", text), "level: serializable\ns2: scan(5..6)=[5:7]\n");
    }

    #[test]
    fn writers_that_time_hides_go() {
        let text = "s1: w(x,0) @1..2 | w(x,0) @3..4 | w(x,0) @5..6\ns2: w(x,2) @7..8\ns3: r(x,0) @9..10\n\
            s4: w(x,0) @11..12\n";
        let left = reduced("strict-serializable", text);
        assert_eq!(left.lines().filter(|line| line.starts_with('s')).count(), 3, "{left}");
        assert_eq!(left.matches('|').count(), 0, "{left}");
    }

    #[test]
    fn a_budget_that_is_used_up_leaves_nothing_or_something_violated() {
        let history = notation::parse("s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n").expect("well written");
        let (level, options) = (Level::parse("serializable").expect("a level"), Options::default());
        let judge = |history: &History| check(history, level, &options).verdict;
        let Verdict::Violated(evidence) = judge(&history) else { panic!("it is violated") };
        let spent = Options { budget: options.budget.clone(), ..options.clone() };
        spent.budget.cancel();
        let fresh = |history: &History| check(history, level, &Options::default()).verdict;
        let left = reduce(&history, level, &spent, &evidence, fresh).expect("the judge has time of its own");
        assert!(!left.is_minimal && is(&left.history, level, "violated"));
    }

    /// A transaction that found a key and did not find it in its own range, between many that deleted the key: the one is
    /// left that was at work meanwhile, and none of those that were aborted.
    #[test]
    fn whoever_is_not_needed_goes() {
        let mut text = "w: w(5,1) @0..1\n".to_owned();
        for late in 0..8 {
            let (begin, aborted) = (20 + 2 * late, if late % 2 == 0 { "!" } else { "" });
            text += &format!("d{late}: d(5){aborted} @{begin}..{}\n", begin + 1);
        }
        text += "a: d(5) w(6,0) @3..6\nr: r(5,1) scan(4..7)=[] @4..7\n";
        let history = notation::parse(&text).expect("the notation is right");
        let options = Options::default();
        for level in levels().take(4) {
            let judge = |part: &History| check(part, level, &options).verdict;
            let Verdict::Violated(evidence) = judge(&history) else { panic!("{level}") };
            let blamed = |history: &History, evidence: &Evidence| {
                let from = evidence.edges.iter().filter_map(|edge| edge.from);
                let from = from.chain(evidence.supposed_writers(history));
                from.map(|txn| history.transaction(txn).name().to_string()).collect::<Vec<_>>()
            };
            assert!(blamed(&history, &evidence).contains(&"a:0".to_owned()), "{level}: {evidence:?}");
            let reduced = reduce(&history, level, &options, &evidence, judge).expect("it is violated");
            let left = notation::to_string(&reduced.history);
            assert!(reduced.history.len() <= 3 && !left.contains('!'), "{level}: {left}");
            assert!(
                blamed(&reduced.history, &reduced.evidence).contains(&"a:0".to_owned()),
                "{level}: {left}"
            );
        }
    }
}
