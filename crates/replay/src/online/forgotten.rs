//! What transactions without a place may have left that are not kept any more.
//!
//! **What.** Of each that [`super::unknown`] lets go, hashes of what it may leave: a key with a value, or a key alone where the
//! value depends on what is there. A wrong result that one of those may explain is undecided. Hashes only ever say too
//! much, so no limit here makes a verdict.
//!
//! **Memory.** [`HASHES_MAX`] hashes; beyond that anything may have been left anywhere.

use super::codec::{Input, Output};
use super::{Found, Kind};
use crate::Axiom;
use crate::datum::Datum;
use history::{History, Name, Primitive, Transaction};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::io;

/// So many hashes are kept.
const HASHES_MAX: usize = 1 << 18;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Forgotten {
    left: FxHashSet<u64>,
    /// They may have left anything anywhere.
    anywhere: bool,
}

#[derive(Clone, Copy)]
enum What<'a> {
    /// The key has this value.
    Value(&'a Datum),
    /// The key has any value.
    Any,
    /// Something was left in the key.
    Touched,
}

fn hash(key: &Name, what: What<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    match what {
        What::Value(value) => (0u8, value.hash()).hash(&mut hasher),
        What::Any => 1u8.hash(&mut hasher),
        What::Touched => 2u8.hash(&mut hasher),
    }
    hasher.finish()
}

impl Forgotten {
    pub(super) fn bytes(&self) -> usize {
        self.left.capacity() * 9
    }

    /// One of them is let go.
    pub(super) fn add(&mut self, part: &History, txn: Transaction<'_>) {
        for (_, operation) in txn.primitives() {
            let (key, value) = match operation {
                Primitive::Write { key, value } => (key, Some(Datum::of(part.values(), value))),
                Primitive::Append { key, .. } => (key, None),
                Primitive::WriteIf(_) => {
                    self.anywhere = true;
                    continue;
                }
                Primitive::Read { .. } | Primitive::Show { .. } => continue,
            };
            let key = part.keys().get(key).to_owned();
            let what = value.as_ref().filter(|it| it.is_known()).map_or(What::Any, What::Value);
            self.left.insert(hash(&key, what));
            self.left.insert(hash(&key, What::Touched));
        }
        if self.left.len() > HASHES_MAX {
            self.left = FxHashSet::default();
            self.anywhere = true;
        }
    }

    /// Whether one of them may explain a wrong result. With `predicates`, what others left may depend on them.
    pub(super) fn may_explain(&self, found: &Found, predicates: bool) -> bool {
        if self.left.is_empty() && !self.anywhere {
            return false;
        }
        match found.kind {
            Kind::Broken(Axiom::External) => {}
            Kind::Broken(Axiom::Internal | Axiom::NoConflict) => return predicates,
            _ => return false,
        }
        let Some(key) = found.key.as_ref().filter(|_| !self.anywhere) else { return true };
        let has = |what| self.left.contains(&hash(key, what));
        match found.seen.as_ref() {
            Some(seen) if seen.is_plain() && !predicates => has(What::Any) || has(What::Value(seen)),
            _ => has(What::Touched),
        }
    }

    // ---- a saved state ----

    pub(super) fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.flag(self.anywhere)?;
        let mut left: Vec<u64> = self.left.iter().copied().collect();
        left.sort_unstable();
        out.list(left.len(), left, |out, hash| out.bytes(&hash.to_le_bytes()))
    }

    pub(super) fn get(input: &mut Input<'_>) -> io::Result<Self> {
        let anywhere = input.flag()?;
        let left = input.list(|input| input.bytes().map(u64::from_le_bytes))?;
        Ok(Self { left: left.into_iter().collect(), anywhere })
    }
}
