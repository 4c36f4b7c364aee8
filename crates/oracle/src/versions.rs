//! One key under one version order: what each version holds, and which versions each read may have seen.

use super::content::Content;
use super::scenario::{Expected, Participant, What};
use history::{KeyId, Values};
use isolation::Ryow;

/// The versions of one key, the initial one first, and the reads that must have seen one of them.
pub(super) struct Versions<'s, 'h> {
    /// Who wrote each version, by place among the participants; the initial version has no writer.
    pub(super) writers: Vec<Option<usize>>,
    pub(super) contents: Vec<Content>,
    /// Reads that the transaction's own writes do not explain.
    pub(super) reads: Vec<ExternalRead<'s, 'h>>,
}

/// A read that saw a version of another transaction, or the initial one.
pub(super) struct ExternalRead<'s, 'h> {
    /// Who read, by place among the participants.
    pub(super) reader: usize,
    /// With which of its operations.
    pub(super) op: usize,
    pub(super) expected: &'s Expected<'h>,
    /// Versions that have the expected content.
    pub(super) candidates: Vec<usize>,
}

/// A key and who takes part.
pub(super) struct OneKey<'s, 'h> {
    pub(super) key: KeyId,
    pub(super) participants: &'s [Participant<'h>],
    pub(super) values: &'h Values,
    pub(super) ryow: Ryow,
    pub(super) initial: Content,
}

impl<'s, 'h> OneKey<'s, 'h> {
    /// Who writes the key.
    pub(super) fn writers(&self) -> Vec<usize> {
        (0..self.participants.len()).filter(|&place| self.participants[place].writes_key(self.key)).collect()
    }

    /// The key under an order of its writers; `None` if a read of an own write does not fit, or if nothing
    /// fits a read.
    pub(super) fn under(&self, order: &[usize]) -> Option<Versions<'s, 'h>> {
        let mut writers = vec![None];
        let mut contents = vec![self.initial.clone()];
        let mut reads = Vec::new();
        for &writer in order {
            let base = contents[contents.len() - 1].clone();
            contents.push(self.run(writer, &base, &mut reads)?);
            writers.push(Some(writer));
        }
        for reader in (0..self.participants.len()).filter(|reader| !order.contains(reader)) {
            self.run(reader, &Content::Absent, &mut reads)?;
        }
        for read in &mut reads {
            read.candidates = (0..contents.len())
                .filter(|&version| writers[version] != Some(read.reader))
                .filter(|&version| read.expected.accepts(self.values, &contents[version]))
                .collect();
            if read.candidates.is_empty() {
                return None;
            }
        }
        Some(Versions { writers, contents, reads })
    }

    /// Runs a transaction on this key. Its writes build on `base`, the version before its own; its reads of
    /// own writes are checked, the others collected.
    fn run(&self, who: usize, base: &Content, reads: &mut Vec<ExternalRead<'s, 'h>>) -> Option<Content> {
        let mut own = base.clone();
        let mut wrote = false;
        for action in self.participants[who].actions(self.key) {
            if let What::Read(expected) = &action.what {
                let fits_own = wrote && expected.accepts(self.values, &own);
                let must = wrote && (self.ryow == Ryow::Must || expected.by_write);
                let may = wrote && self.ryow == Ryow::May;
                if must && !fits_own {
                    return None;
                }
                if !(must || may && fits_own) {
                    reads.push(ExternalRead { reader: who, op: action.op, expected, candidates: Vec::new() });
                }
            }
            own = action.apply(&own);
            wrote |= action.writes();
        }
        Some(own)
    }
}

/// Calls `visit` with every order of `items`; stops with an error.
pub(super) fn permutations<E>(
    items: &[usize],
    visit: &mut impl FnMut(&[usize]) -> Result<(), E>,
) -> Result<(), E> {
    fn extend<E>(
        order: &mut Vec<usize>,
        left: &mut Vec<usize>,
        visit: &mut impl FnMut(&[usize]) -> Result<(), E>,
    ) -> Result<(), E> {
        if left.is_empty() {
            return visit(order);
        }
        for place in 0..left.len() {
            let item = left.remove(place);
            order.push(item);
            extend(order, left, visit)?;
            order.pop();
            left.insert(place, item);
        }
        Ok(())
    }
    extend(&mut Vec::new(), &mut items.to_vec(), visit)
}
