//! Histories to measure with: seeded, plain, of the shapes that recorded histories have.

use history::{Builder, History, Lock, Span, ValueId};

/// A shape of histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Integer keys, unique integer values, eight operations a transaction.
    Registers,
    /// Text keys and unique text values.
    Texts,
    /// Registers with client clocks, explicit ids and operation clocks, in units of which an operation takes so many.
    Clocks(i64),
    /// Lists that grow to 30 elements and are read whole.
    Lists,
}

impl Shape {
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("registers", Self::Registers),
        ("texts", Self::Texts),
        ("clocks", Self::Clocks(90)),
        ("lists", Self::Lists),
    ];

    /// Those whose memory is shown: also clocks in nanoseconds, around operations of a millisecond and of a second.
    pub(crate) const MEASURED: [(&'static str, Self); 6] = [
        Self::ALL[0],
        Self::ALL[1],
        Self::ALL[3],
        ("clocks, 90 an operation", Self::Clocks(90)),
        ("clocks, 1 ms in ns", Self::Clocks(1_000_000)),
        ("clocks, 1 s in ns", Self::Clocks(1_000_000_000)),
    ];
}

const SESSIONS: u64 = 32;
const OPS: usize = 8;

/// A stream of numbers: xorshift64*.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// A history of a shape; the same for the same arguments.
pub(crate) fn history(shape: Shape, transactions: usize) -> History {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut builder = Builder::new();
    let keys = (transactions as u64 / 20).clamp(100, 100_000);
    let mut last = vec![ValueId::ABSENT; keys as usize];
    let mut lists: Vec<Vec<ValueId>> = vec![Vec::new(); keys as usize];
    let mut next = 0;
    for count in 0..transactions {
        let session = builder.session((numbers.below(SESSIONS) as i64).into());
        builder.begin(session);
        if let Shape::Clocks(took) = shape {
            let begin = count as i64 * 11 * took;
            builder.set_id((count as i64).into()).expect("counted up");
            builder.set_client(Span { begin, end: begin + 10 * took }).expect("ordered");
        }
        for op in 0..OPS {
            let place = numbers.below(keys);
            let key = match shape {
                Shape::Texts => builder.key(format!("user{place:08}").as_str().into()),
                _ => builder.key((place as i64).into()),
            };
            let place = place as usize;
            let reads = numbers.below(2) == 0;
            if !reads {
                next += 1;
                let value = match shape {
                    Shape::Texts => builder.text(&format!("value-{next:012}")),
                    _ => builder.int(next),
                };
                last[place] = value;
                lists[place].push(value);
                lists[place].truncate(30);
            }
            match (shape, reads) {
                (Shape::Lists, true) => {
                    let value = builder.list(&lists[place]);
                    builder.read(key, value, Lock::None)
                }
                (Shape::Lists, false) => builder.append(key, last[place]),
                (_, true) => builder.read(key, last[place], Lock::None),
                (_, false) => builder.write(key, last[place]),
            };
            if let Shape::Clocks(took) = shape {
                let begin = count as i64 * 11 * took + op as i64 * (took + took / 9);
                builder.set_op_at(Span { begin, end: begin + took }).expect("ordered");
            }
        }
        builder.end().expect("possible");
    }
    builder.finish().expect("possible")
}
