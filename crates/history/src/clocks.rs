//! The clients' clocks around single operations, in few bytes.
//!
//! What: a span for some of the operations, in the order of operations. Operations follow each other closely, so
//! what is kept is how much later each begins than the one before ended, and how long it took.
//! Invariant: a block stands for sixteen operations; its bytes hold one pair of numbers for each of them that has a
//! clock, and are understood without those of other blocks.
//! Steps: a number is written in groups of seven bits, the lowest first, the top bit of a byte saying that another
//! follows; the difference to the operation before, which may be negative, with its sign in the lowest bit.
//! Cost: half a byte an operation for the blocks, and for a clock one byte for every seven bits of either number: 2
//! bytes where both are below 64 and 128, 6 where they are around a millisecond in nanoseconds, 9 around a second; 16 as
//! plain integers.
//! Looking one up decodes half a block, eight pairs on average.

use crate::{Id, OpId, Span};

/// Clocks of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpClocks {
    /// For every sixteen operations, up to the last that has a clock.
    blocks: Vec<Block>,
    bytes: Vec<u8>,
    /// What the next clock is relative to.
    last: i64,
}

/// Where a block's bytes begin, and, in the lowest bits, which of its operations have a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block(u64);

const BLOCK_LEN: usize = 16;

impl Block {
    fn new(start: usize, mask: u16) -> Self {
        Self((start as u64) << 16 | u64::from(mask))
    }

    fn mask(self) -> u16 {
        self.0 as u16
    }

    fn start(self) -> usize {
        (self.0 >> 16) as usize
    }
}

impl OpClocks {
    /// Adds the clock of an operation after all that have one.
    pub(crate) fn push(&mut self, op: OpId, span: Span) {
        let block = op.index() / BLOCK_LEN;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, Block::new(self.bytes.len(), 0));
            self.last = 0;
        }
        debug_assert!(self.blocks[block].mask() >> (op.index() % BLOCK_LEN) == 0, "clocks come in order");
        self.blocks[block].0 |= 1 << (op.index() % BLOCK_LEN);
        let since = span.begin.wrapping_sub(self.last);
        let took = span.end.wrapping_sub(span.begin) as u64;
        push_number(&mut self.bytes, ((since << 1) ^ (since >> 63)) as u64);
        push_number(&mut self.bytes, took);
        self.last = next_last(span.begin, took);
    }

    /// The clock of an operation, if it has one.
    pub(crate) fn get(&self, op: OpId) -> Option<Span> {
        let block = *self.blocks.get(op.index() / BLOCK_LEN)?;
        let bit = 1u16 << (op.index() % BLOCK_LEN);
        if block.mask() & bit == 0 {
            return None;
        }
        let before = (block.mask() & (bit - 1)).count_ones() as usize;
        Decoder { bytes: &self.bytes[block.start()..], last: 0 }.nth(before)
    }

    /// All clocks, in the order of operations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpId, Span)> + '_ {
        self.blocks.iter().enumerate().flat_map(|(number, block)| {
            let decoder = Decoder { bytes: &self.bytes[block.start()..], last: 0 };
            let with_clock = (0..BLOCK_LEN).filter(|place| block.mask() >> place & 1 == 1);
            with_clock.map(move |place| OpId::new(number * BLOCK_LEN + place)).zip(decoder)
        })
    }

    /// Forgets the clocks of operations from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        let Some(&block) = self.blocks.get(len / BLOCK_LEN) else { return };
        let kept: Vec<(OpId, Span)> = (len / BLOCK_LEN * BLOCK_LEN..len)
            .map(OpId::new)
            .filter_map(|op| self.get(op).map(|span| (op, span)))
            .collect();
        self.blocks.truncate(len / BLOCK_LEN);
        self.bytes.truncate(block.start());
        for (op, span) in kept {
            self.push(op, span);
        }
    }

    /// Heap bytes in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.bytes.capacity()
    }

    pub(crate) fn shrink(&mut self) {
        self.blocks.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// For every sixteen operations, which of them have a clock: the lowest bit is the first.
    pub(crate) fn masks(&self) -> Vec<u16> {
        self.blocks.iter().map(|block| block.mask()).collect()
    }

    /// The clocks' bytes, one block after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// From what [`Self::masks`] and [`Self::bytes`] gave; refuses, with the place of the byte, what they cannot give.
    pub(crate) fn from_parts(masks: &[u16], bytes: Vec<u8>, op_count: usize) -> Result<Self, usize> {
        let mut blocks = Vec::with_capacity(masks.len());
        let mut rest = &bytes[..];
        let mut last = 0;
        for (number, &mask) in masks.iter().enumerate() {
            let place = bytes.len() - rest.len();
            let end = number * BLOCK_LEN + (u16::BITS - mask.leading_zeros()) as usize;
            if end > op_count || (mask == 0 && number + 1 == masks.len()) {
                return Err(place);
            }
            blocks.push(Block::new(place, mask));
            let mut decoder = Decoder { bytes: rest, last: 0 };
            for _ in 0..mask.count_ones() {
                let place = bytes.len() - decoder.bytes.len();
                decoder.next().filter(|span| span.begin <= span.end).ok_or(place)?;
            }
            rest = decoder.bytes;
            last = decoder.last;
        }
        if !rest.is_empty() {
            return Err(bytes.len() - rest.len());
        }
        Ok(Self { blocks, bytes, last })
    }
}

/// Clocks from the bytes of a block. Ends, too early, with bytes that are no number.
struct Decoder<'a> {
    bytes: &'a [u8],
    last: i64,
}

impl Iterator for Decoder<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let since = take_number(&mut self.bytes)?;
        let took = take_number(&mut self.bytes)?;
        let begin = self.last.wrapping_add((since >> 1) as i64 ^ -((since & 1) as i64));
        self.last = next_last(begin, took);
        Some(Span { begin, end: begin.wrapping_add(took as i64) })
    }
}

/// An operation that never ended is no measure for the next.
#[inline]
fn next_last(begin: i64, took: u64) -> i64 {
    if took < 1 << 48 { begin.wrapping_add(took as i64) } else { begin }
}

#[inline]
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        // The tenth group holds one bit.
        if group << shift >> shift != group {
            return None;
        }
        number |= group << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    fn time() -> impl Strategy<Value = i64> {
        prop_oneof![
            0..1_000i64,
            1_700_000_000_000_000_000..1_700_000_000_001_000_000i64,
            any::<i64>(),
            Just(i64::MAX),
            Just(i64::MIN)
        ]
    }

    fn clocks() -> impl Strategy<Value = Vec<(OpId, Span)>> {
        let one = (1..40usize, time(), time());
        prop::collection::vec(one, 0..60).prop_map(|all| {
            let mut op = 0;
            let span = |a: i64, b: i64| Span { begin: a.min(b), end: a.max(b) };
            let place = |(step, a, b)| {
                op += step;
                (OpId::new(op), span(a, b))
            };
            all.into_iter().map(place).collect()
        })
    }

    fn of(all: &[(OpId, Span)]) -> OpClocks {
        let mut clocks = OpClocks::default();
        all.iter().for_each(|&(op, span)| clocks.push(op, span));
        clocks
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/clocks.txt"))), ..ProptestConfig::default() })]

        #[test]
        fn holds_what_it_was_given(all in clocks(), len in 0..2_500usize) {
            let mut clocks = of(&all);
            prop_assert_eq!(clocks.iter().collect::<Vec<_>>(), &all[..]);
            for op in (0..2_500).map(OpId::new) {
                let given = all.iter().find(|(other, _)| *other == op).map(|(_, span)| *span);
                prop_assert_eq!(clocks.get(op), given);
            }
            let again = OpClocks::from_parts(&clocks.masks(), clocks.bytes().to_vec(), 3_000);
            prop_assert_eq!(again.as_ref(), Ok(&clocks));
            clocks.truncate(len);
            let kept: Vec<_> = all.iter().copied().filter(|(op, _)| op.index() < len).collect();
            prop_assert_eq!(clocks.iter().collect::<Vec<_>>(), &kept[..]);
            // It goes on from there.
            let span = Span { begin: 5, end: 7 };
            clocks.push(OpId::new(2_999), span);
            prop_assert_eq!(clocks.get(OpId::new(2_999)), Some(span));
            prop_assert_eq!(clocks.iter().count(), kept.len() + 1);
        }

        #[test]
        fn damage_is_refused_or_gives_clocks(all in clocks(), place: prop::sample::Index, bits: u8) {
            let clocks = of(&all);
            let mut bytes = clocks.bytes().to_vec();
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] ^= bits;
            }
            if let Ok(damaged) = OpClocks::from_parts(&clocks.masks(), bytes, 3_000) {
                prop_assert!(damaged.iter().all(|(op, span)| damaged.get(op) == Some(span) && span.begin <= span.end));
            }
        }
    }

    #[test]
    fn clocks_that_are_close_are_small() {
        let mut clocks = OpClocks::default();
        for op in 0..16_000 {
            let begin = 1_700_000_000_000_000_000 + op as i64 * 100;
            clocks.push(OpId::new(op), Span { begin, end: begin + 90 });
        }
        clocks.shrink();
        assert!(clocks.heap_bytes() < 16_000 * 4, "{}", clocks.heap_bytes());
    }

    #[test]
    fn parts_that_nobody_wrote_are_refused() {
        let parts = |masks: &[u16], bytes: &[u8]| OpClocks::from_parts(masks, bytes.to_vec(), 20);
        assert!(parts(&[1], &[2, 3]).is_ok());
        assert_eq!(parts(&[1], &[2]), Err(0));
        assert_eq!(parts(&[1], &[2, 3, 4]), Err(2));
        assert_eq!(parts(&[1, 0], &[2, 3]), Err(2), "a last block without clocks");
        assert_eq!(parts(&[1, 16], &[2, 3, 4, 5]), Err(2), "an operation that is not there");
        assert_eq!(parts(&[1], &[0xff; 24]), Err(0), "a number without end");
        let before_its_begin = [0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(parts(&[1], &before_its_begin), Err(0));
    }
}
