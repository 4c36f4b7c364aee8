//! Makes a failing history smaller: drops transactions, then operations, then simplifies what is left,
//! again and again until nothing more can go.

use super::sketch::{Datum, Sketch, SketchOp};
use history::{History, Lock, Status};

/// The smallest history it can find, by removing and simplifying, for which `still_fails` holds. The
/// history given must fail.
pub fn shrink(history: &History, mut still_fails: impl FnMut(&History) -> bool) -> History {
    let mut best = Sketch::of(history);
    if !still_fails(&best.build()) {
        return history.clone();
    }
    loop {
        let before = best.clone();
        for step in [drop_transactions, drop_operations, simplify] {
            step(&mut best, &mut |sketch| still_fails(&sketch.build()));
        }
        if best == before {
            return best.build();
        }
    }
}

type StillFails<'f> = &'f mut dyn FnMut(&Sketch) -> bool;

/// Tries an edit; keeps it if it changes something and the result still fails.
fn attempt(best: &mut Sketch, still_fails: StillFails<'_>, edit: impl FnOnce(&mut Sketch)) -> bool {
    let mut candidate = best.clone();
    edit(&mut candidate);
    let better = candidate != *best && still_fails(&candidate);
    if better {
        *best = candidate;
    }
    better
}

fn drop_transactions(best: &mut Sketch, still_fails: StillFails<'_>) {
    for place in (0..best.transactions.len()).rev() {
        attempt(best, still_fails, |sketch| drop(sketch.transactions.remove(place)));
    }
}

fn drop_operations(best: &mut Sketch, still_fails: StillFails<'_>) {
    for txn in 0..best.transactions.len() {
        for place in (0..best.transactions[txn].ops.len()).rev() {
            attempt(best, still_fails, |sketch| drop(sketch.transactions[txn].ops.remove(place)));
        }
    }
}

fn simplify(best: &mut Sketch, still_fails: StillFails<'_>) {
    for place in (0..best.initial.len()).rev() {
        attempt(best, still_fails, |sketch| drop(sketch.initial.remove(place)));
    }
    for txn in 0..best.transactions.len() {
        attempt(best, still_fails, |sketch| sketch.transactions[txn].status = Status::Committed);
        attempt(best, still_fails, |sketch| sketch.transactions[txn].client = None);
        attempt(best, still_fails, |sketch| sketch.transactions[txn].db = None);
        for place in 0..best.transactions[txn].ops.len() {
            for edit in OPERATION_EDITS {
                attempt(best, still_fails, |sketch| edit(&mut sketch.transactions[txn].ops[place]));
            }
        }
    }
}

/// Ways to make an operation say less; one that does not apply changes nothing.
const OPERATION_EDITS: [fn(&mut SketchOp); 4] = [forget_result, forget_count, open_range, without_lock];

fn forget_result(operation: &mut SketchOp) {
    match operation {
        SketchOp::Read { value, .. } => *value = Datum::Unknown,
        SketchOp::Scan { rows, .. } | SketchOp::Iterate { rows, .. } | SketchOp::Query { rows, .. } => {
            *rows = None;
        }
        SketchOp::Update { keys, .. } | SketchOp::DeleteWhere { keys, .. } => *keys = None,
        SketchOp::Cas { ok, .. } => *ok = None,
        _ => {}
    }
}

fn forget_count(operation: &mut SketchOp) {
    if let SketchOp::Update { count, .. } | SketchOp::DeleteWhere { count, .. } = operation {
        *count = None;
    }
}

fn open_range(operation: &mut SketchOp) {
    if let SketchOp::Scan { from, to, .. } | SketchOp::Iterate { from, to, .. } = operation {
        (*from, *to) = (None, None);
    }
}

fn without_lock(operation: &mut SketchOp) {
    if let SketchOp::Read { lock, .. } = operation {
        *lock = Lock::None;
    }
}
