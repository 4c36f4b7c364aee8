//! Textbook anomalies in disguise: cases that random operations hardly ever form by themselves.
//!
//! A plant is one of [`PLANTS`] with keys renamed, transactions in another order and perhaps other
//! sessions, reads turned into scans, iterators or queries and writes into appends where the shape has
//! those, and a transaction or two more or less. So it is close to the border between two levels, on
//! either side.

use super::random::Random;
use super::sketch::{Condition, Datum, Sketch, SketchOp, SketchTxn, key_name, session_name};
use super::store::Mix;
use history::formats::notation;
use history::{Comparison, Lock, Name, Status};

/// One transaction a session; every key has one writer or read-modify-writers, values are unique by key.
const PLANTS: &[&str] = &[
    // long fork
    "1: w(x,1)\n2: w(y,2)\n3: r(x,1) r(y,_)\n4: r(y,2) r(x,_)",
    // long fork of sessions
    "1: w(x,1)\n2: w(y,2)\n1: r(y,_)\n2: r(x,_)\n3: r(x,1) r(y,2)",
    // causality violation
    "1: w(x,1)\n2: r(x,1) w(y,2)\n3: r(y,2) r(x,_)",
    // causality violation through a session
    "1: w(x,1)\n1: w(y,2)\n2: r(y,2) r(x,_)",
    // longer causality violation
    "1: w(x,1)\n2: r(x,1) w(y,2)\n3: r(y,2) w(z,3)\n4: r(z,3) r(x,_)",
    // fractured read
    "1: w(x,1) w(y,2)\n2: r(x,1) r(y,_)",
    "1: w(x,1) w(y,2)\n2: r(x,_) r(y,2)",
    // write skew
    "1: r(x,_) w(y,2)\n2: r(y,_) w(x,1)",
    // write skew of three
    "1: r(x,_) w(y,2)\n2: r(y,_) w(z,3)\n3: r(z,_) w(x,1)",
    // the read-only anomaly
    "1: r(y,_) w(y,2)\n2: r(x,_) r(y,_) w(x,1)\n3: r(x,_) r(y,2)",
    // lost update
    "1: r(x,_) w(x,1)\n2: r(x,_) w(x,2)",
    // two readers who disagree about three writers
    "1: w(x,1)\n2: w(y,2)\n3: w(z,3)\n4: r(x,1) r(y,2) r(z,_)\n5: r(z,3) r(y,2) r(x,_)",
    // circular information flow
    "1: w(x,1) r(y,2)\n2: w(y,2) r(x,1)",
    // a cycle through two readers and an update
    "1: w(x,1)\n2: r(y,_) w(z,3)\n3: w(y,2)\n4: r(x,1) r(y,_)\n5: r(y,2) r(x,_) r(z,_)",
    // reads of a session go back
    "1: w(x,1)\n2: r(x,1)\n2: r(x,_)",
    // monotonic writes
    "1: w(x,1)\n1: w(x,2) w(y,3)\n2: r(y,3)\n2: r(x,1)",
];

/// A random plant that fits `transactions_max`, in the shape's kinds of operations.
pub(super) fn plant(random: &mut Random, mix: Mix, transactions_max: usize) -> Sketch {
    let plants: Vec<Sketch> = PLANTS
        .iter()
        .map(|text| Sketch::of(&notation::parse(text).expect("plants are well formed")))
        .filter(|sketch| sketch.transactions.len() <= transactions_max.max(2))
        .collect();
    let mut sketch = random.pick(&plants).clone();
    rename_keys(random, &mut sketch);
    let disguise = Disguise { mix, values: written(&sketch) };
    for operation in sketch.transactions.iter_mut().flat_map(|txn| &mut txn.ops) {
        disguise.apply(random, operation);
    }
    if random.chance(40) {
        let sessions = random.between(1, 3);
        for txn in &mut sketch.transactions {
            txn.session = session_name(random.below(sessions));
        }
    }
    if random.chance(30) && sketch.transactions.len() < transactions_max {
        let place = random.below(sketch.transactions.len() + 1);
        let extra = extra(random, mix);
        sketch.transactions.insert(place, extra);
    }
    if random.chance(15) {
        let place = random.below(sketch.transactions.len());
        sketch.transactions[place].status = Status::Unknown;
    }
    if random.chance(30) {
        let (one, other) = (random.below(sketch.transactions.len()), random.below(sketch.transactions.len()));
        sketch.transactions.swap(one, other);
    }
    sketch
}

/// One more write, of a key of the plant or another.
fn extra(random: &mut Random, mix: Mix) -> SketchTxn {
    let key = key_name(random.below(3));
    let value = Datum::Int(random.between(1, 5) as i64);
    let operation =
        if mix.write > 0 { SketchOp::Write { key, value } } else { SketchOp::Append { key, value } };
    SketchTxn {
        id: None,
        session: session_name(random.below(4)),
        status: Status::Committed,
        client: None,
        db: None,
        ops: vec![operation],
    }
}

fn rename_keys(random: &mut Random, sketch: &mut Sketch) {
    let shift = random.below(3);
    let mirror = random.chance(50);
    let rename = |key: &mut Name| {
        let place = (0..3).find(|&place| key_name(place) == *key).unwrap_or(0);
        let place = if mirror { 2 - place } else { place };
        *key = key_name((place + shift) % 3);
    };
    for operation in sketch.transactions.iter_mut().flat_map(|txn| &mut txn.ops) {
        if let SketchOp::Read { key, .. } | SketchOp::Write { key, .. } = operation {
            rename(key);
        }
    }
}

fn written(sketch: &Sketch) -> Vec<(Name, Datum)> {
    let operations = sketch.transactions.iter().flat_map(|txn| &txn.ops);
    operations
        .filter_map(|operation| match operation {
            SketchOp::Write { key, value } => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect()
}

struct Disguise {
    mix: Mix,
    /// What the plant writes.
    values: Vec<(Name, Datum)>,
}

impl Disguise {
    fn apply(&self, random: &mut Random, operation: &mut SketchOp) {
        let lists = self.mix.write == 0 && self.mix.append > 0;
        match operation {
            SketchOp::Write { key, value } if lists => {
                *operation = SketchOp::Append { key: key.clone(), value: value.clone() };
            }
            SketchOp::Read { key, value, .. } => {
                let (key, mut value) = (key.clone(), value.clone());
                if lists && value != Datum::Absent {
                    value = self.list_up_to(&key, value);
                }
                *operation = self.read(random, key, value);
            }
            _ => {}
        }
    }

    /// The list after all appends up to the one of `value`.
    fn list_up_to(&self, key: &Name, value: Datum) -> Datum {
        let mut elements = Vec::new();
        for (_, element) in self.values.iter().filter(|(other, _)| other == key) {
            elements.push(element.clone());
            if *element == value {
                break;
            }
        }
        Datum::List(elements)
    }

    fn read(&self, random: &mut Random, key: Name, value: Datum) -> SketchOp {
        let rows = if value == Datum::Absent { vec![] } else { vec![(key.clone(), value.clone())] };
        let next = (0..2).find(|&place| key_name(place) == key).map(|place| key_name(place + 1));
        let mix = self.mix;
        match random.weighted(&[mix.read.max(1), mix.scan, mix.iterate, mix.query]) {
            1 => SketchOp::Scan { from: Some(key), to: next, rows: Some(rows) },
            2 => {
                let (reverse, exhausted) = (random.chance(50), rows.is_empty() || random.chance(50));
                SketchOp::Iterate { from: Some(key), to: next, reverse, exhausted, rows: Some(rows) }
            }
            3 => {
                let wanted = self.values.iter().find(|(other, _)| *other == key).map(|(_, value)| value);
                let constant = wanted.cloned().unwrap_or(Datum::Int(9));
                let condition = Condition::compare("value", Comparison::Equal, constant);
                SketchOp::Query { condition, rows: Some(rows) }
            }
            _ => SketchOp::Read { key, value, lock: Lock::None },
        }
    }
}
