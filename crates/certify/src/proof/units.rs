//! Unit propagation over clauses of atoms, and whether a clause follows by it.
//!
//! *Invariant*: of every clause of two literals or more, two are watched, and a watched one is false only while
//! something is supposed, or if the other one holds. What follows without any supposition stays assigned.

use super::Atom;
use rustc_hash::FxHashMap;

/// An atom's number, twice; plus one if it is denied.
type Literal = u32;

#[derive(Default)]
pub(super) struct Units {
    numbers: FxHashMap<Atom, u32>,
    clauses: Vec<Vec<Literal>>,
    /// For each literal the clauses to visit when it becomes false.
    watchers: Vec<Vec<u32>>,
    /// 1 holds, -1 does not, by literal.
    value: Vec<i8>,
    trail: Vec<Literal>,
    is_contradiction: bool,
}

impl Units {
    /// Takes a clause for true.
    pub(super) fn add(&mut self, atoms: &[Atom]) {
        let mut literals: Vec<Literal> = atoms.iter().map(|&atom| self.literal(atom)).collect();
        literals.sort_unstable();
        literals.dedup();
        if literals.windows(2).any(|pair| pair[0] ^ 1 == pair[1]) {
            return; // always true
        }
        // Watch what is not false.
        literals.sort_by_key(|&literal| self.value[literal as usize] < 0);
        let open = literals.iter().filter(|&&literal| self.value[literal as usize] >= 0).count();
        match (open, literals.first()) {
            (0, _) => self.is_contradiction = true,
            (1, Some(&only)) => {
                self.assign(only);
                self.is_contradiction |= !self.propagate(self.trail.len() - 1);
            }
            _ => {
                let id = self.clauses.len() as u32;
                for &literal in &literals[..2] {
                    self.watchers[literal as usize].push(id);
                }
                self.clauses.push(literals);
            }
        }
    }

    /// Whether supposing the opposite of all atoms leads to a contradiction.
    pub(super) fn follows(&mut self, atoms: &[Atom]) -> bool {
        if self.is_contradiction {
            return true;
        }
        let start = self.trail.len();
        let literals: Vec<Literal> = atoms.iter().map(|&atom| self.literal(atom)).collect();
        let mut contradiction = false;
        for literal in literals {
            match self.value[literal as usize] {
                1 => contradiction = true,
                0 => self.assign(literal ^ 1),
                _ => {}
            }
        }
        let follows = contradiction || !self.propagate(start);
        for literal in self.trail.drain(start..) {
            self.value[literal as usize] = 0;
            self.value[literal as usize ^ 1] = 0;
        }
        follows
    }

    /// `b before a` denies `a before b`, `missed` denies `saw`, `failed` denies `happened`.
    fn literal(&mut self, atom: Atom) -> Literal {
        let (atom, denied) = match atom {
            Atom::Before(first, second) if first > second => (Atom::Before(second, first), 1),
            Atom::Missed(txn, op, source) => (Atom::Saw(txn, op, source), 1),
            Atom::Failed(txn) => (Atom::Happened(txn), 1),
            atom => (atom, 0),
        };
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(atom).or_insert(next);
        if number == next {
            self.watchers.extend([Vec::new(), Vec::new()]);
            self.value.extend([0, 0]);
        }
        number * 2 + denied
    }

    fn assign(&mut self, literal: Literal) {
        // A unit that holds already is no news, but its place on the trail is asked for.
        self.value[literal as usize] = 1;
        self.value[literal as usize ^ 1] = -1;
        self.trail.push(literal);
    }

    /// Draws all conclusions from the trail's end; false at a contradiction.
    fn propagate(&mut self, from: usize) -> bool {
        let mut head = from;
        while head < self.trail.len() {
            let falsified = self.trail[head] ^ 1;
            head += 1;
            let watching = std::mem::take(&mut self.watchers[falsified as usize]);
            let mut kept = Vec::with_capacity(watching.len());
            let mut consistent = true;
            for (place, &id) in watching.iter().enumerate() {
                match self.visit(id, falsified) {
                    Visit::Moved => {}
                    Visit::Holds => kept.push(id),
                    Visit::Unit(literal) => {
                        kept.push(id);
                        self.assign(literal);
                    }
                    Visit::Contradiction => {
                        kept.extend_from_slice(&watching[place..]);
                        consistent = false;
                        break;
                    }
                }
            }
            self.watchers[falsified as usize] = kept;
            if !consistent {
                return false;
            }
        }
        true
    }

    fn visit(&mut self, id: u32, falsified: Literal) -> Visit {
        let clause = &mut self.clauses[id as usize];
        if clause[0] == falsified {
            clause.swap(0, 1);
        }
        let first = clause[0];
        if self.value[first as usize] > 0 {
            return Visit::Holds;
        }
        let other = (2..clause.len()).find(|&place| self.value[clause[place] as usize] >= 0);
        match other {
            Some(place) => {
                clause.swap(1, place);
                self.watchers[clause[1] as usize].push(id);
                Visit::Moved
            }
            None if self.value[first as usize] < 0 => Visit::Contradiction,
            None => Visit::Unit(first),
        }
    }
}

enum Visit {
    Moved,
    Holds,
    Unit(Literal),
    Contradiction,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_follows_or_does_not() {
        let mut units = Units::default();
        let (a, b, c) = (Atom::Before(0, 1), Atom::Before(1, 2), Atom::Before(2, 0));
        let not = |atom: Atom| match atom {
            Atom::Before(first, second) => Atom::Before(second, first),
            other => other,
        };
        units.add(&[not(a), not(b), not(c)]);
        assert!(!units.follows(&[]));
        assert!(units.follows(&[not(a), not(b), not(c)]));
        assert!(!units.follows(&[not(a), not(b)]));
        units.add(&[a]);
        units.add(&[b]);
        assert!(units.follows(&[not(c)]));
        assert!(!units.follows(&[c]));
        units.add(&[c]);
        assert!(units.follows(&[]));
    }
}
