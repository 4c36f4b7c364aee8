//! Replay, blame, refine: from a first order to one that explains everything, or to a proof that there
//! is none.
//!
//! *What*: keeps an order of all nodes (the solver's) and looks for results that do not fit it. A result
//! that does not fit names exactly the open question that matters; only that question goes to the
//! solver, which answers it, moving a few nodes; only the keys those touched are replayed again. When
//! nothing is left to replay, the order is a witness. When the solver runs out of answers, the questions
//! asked so far are a proof of violation.
//!
//! *Open questions* and their literals:
//! * `before(V, W)` — version V is overwritten, directly or not, by W on the same key; either way the
//!   certain readers of the earlier one come before the later one (Vbox eq. 1 and 2).
//! * `misses(T, W)` — T reads before W is visible, or W is visible to T.
//! * `picks(R, W)` — the ambiguous read R saw W.
//! * `effect(T)` — the transaction T of unknown outcome took effect.
//!
//! *Blame*, for a read by T that should see W and finds S instead:
//!
//! ```text
//!    order   …  W  …  S  …  T  …          S before W, or T before S
//! ```
//!
//! With W certain that is the one variable `before(S, W)`. With W picked it is the clause
//! `¬picks(R, W) ∨ before(S, W) ∨ misses(T, S)`. At snapshot isolation two writers of one key that
//! overlap are one more `before`.
//!
//! *Invariant*: a key that is not dirty fits the order. *Cost*: one pass over what is dirty a round.
//! *Source*: the questions are the superpositions of Boomslang (Zhang, Mu and Tan 2026) §A.4.

use crate::alternatives::{Alternatives, recount};
use crate::constrain::Known;
use crate::lanes::{Access, AccessKind, Lanes};
use crate::problem::{INITIAL, NONE, Problem, Read, Standing, Txn};
use crate::schedule::Readers;
use crate::solving::interrupt;
use isolation::{Budget, Undecided};
use rustc_hash::FxHashMap;
use solver::{Counters, Lit, Node, Progress, Solver, Var};

/// How the refinement ended.
#[derive(Debug)]
pub enum Refined {
    /// This order of nodes explains everything; these transactions of unknown outcome took effect.
    Explained {
        /// The place of each node.
        position: Vec<u32>,
        /// Those of unknown outcome that took effect.
        effective: Vec<Txn>,
    },
    /// These transactions have no explanation.
    Impossible(Vec<Txn>),
    /// The budget is used up.
    GaveUp(Undecided),
}

/// What does not fit: a read, or two writers that overlap.
#[derive(Clone, Copy, Debug)]
enum Blame {
    Read(u32),
    Overlap(u32, u32),
}

/// Questions that were asked, with the answers and what the solver learnt from them. They stay when claims are added to
/// the problem: what was impossible stays so.
pub struct Questions {
    solver: Solver,
    // Literals by what they stand for.
    before: FxHashMap<(u32, u32), Var>,
    misses: FxHashMap<(Txn, u32), Var>,
    effect: FxHashMap<Txn, Var>,
    effect_of: FxHashMap<Var, Txn>,
    alternatives: Alternatives,
    apart: FxHashMap<(u32, u32), Var>,
    /// What each ambiguous read that was asked about can have seen, and the variable that it did.
    picks: FxHashMap<u32, Vec<(u32, Var)>>,
    /// The transactions that a tagged clause speaks of.
    about: Vec<Vec<Txn>>,
}

impl Questions {
    /// None yet; the order to begin with.
    pub fn nothing(problem: &Problem, known: &Known, position: &[u32], budget: &Budget) -> Self {
        let mut solver = Solver::new(known.graph(problem), position);
        interrupt(&mut solver, budget);
        Self {
            solver,
            before: FxHashMap::default(),
            misses: FxHashMap::default(),
            effect: FxHashMap::default(),
            effect_of: FxHashMap::default(),
            alternatives: Alternatives::default(),
            apart: FxHashMap::default(),
            picks: FxHashMap::default(),
            about: Vec::new(),
        }
    }

    /// Refines the order until it explains everything; the keys where it may not.
    pub fn refine(
        &mut self,
        problem: &Problem,
        known: &Known,
        readers: &Readers,
        suspects: &[u32],
        budget: &Budget,
    ) -> Refined {
        let mut refiner = Refiner {
            problem,
            known,
            readers,
            budget,
            matches_of_key: matches_by_key(problem),
            dirty: Vec::new(),
            is_dirty: vec![false; problem.keys()],
            blames: Vec::new(),
            moved: Vec::new(),
            changed: Vec::new(),
            lanes: Lanes::new(problem, known.nodes),
            questions: self,
        };
        for &key in suspects {
            refiner.mark_dirty(key);
        }
        refiner.run()
    }

    /// Reads have other numbers now.
    pub fn renumber(&mut self, now: impl Fn(u32) -> u32) {
        self.picks = self.picks.drain().map(|(id, picks)| (now(id), picks)).collect();
    }

    /// What it has taken so far.
    pub fn counters(&self) -> Counters {
        self.solver.counters()
    }
}

/// How many steps of a budget's meter a round counts for: it may replay a whole key.
const ROUND: usize = 512;

struct Refiner<'a> {
    problem: &'a Problem,
    known: &'a Known,
    readers: &'a Readers,
    budget: &'a Budget,
    questions: &'a mut Questions,
    matches_of_key: FxHashMap<u32, Vec<u32>>,
    // Work.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    blames: Vec<Blame>,
    moved: Vec<Node>,
    changed: Vec<Var>,
    lanes: Lanes<'a>,
}

impl Refiner<'_> {
    fn run(&mut self) -> Refined {
        let meter = self.budget.meter();
        loop {
            match self.questions.solver.propagate() {
                Progress::Consistent => {}
                Progress::Unsatisfiable => return Refined::Impossible(self.core()),
                Progress::Interrupted => {
                    return Refined::GaveUp(self.budget.exhausted().unwrap_or(Undecided::Cancelled));
                }
            }
            self.note_changes();
            if let Err(why) = meter.steps(ROUND) {
                return Refined::GaveUp(why);
            }
            if let Some(blame) = self.blames.pop() {
                self.answer(blame);
            } else if let Some(key) = self.dirty.pop() {
                self.is_dirty[key as usize] = false;
                if self.choose_alternatives(key) {
                    self.replay(key);
                }
            } else if self.counts_fit() {
                return self.explained();
            }
        }
    }

    fn explained(&self) -> Refined {
        let position = (0..self.questions.solver.nodes() as Node)
            .map(|node| self.questions.solver.position(node))
            .collect();
        let mut effective: Vec<Txn> =
            self.questions.effect.keys().copied().filter(|&txn| self.in_effect(txn)).collect();
        effective.sort_unstable();
        Refined::Explained { position, effective }
    }

    // ---- what changed ----

    fn mark_dirty(&mut self, key: u32) {
        if !std::mem::replace(&mut self.is_dirty[key as usize], true) {
            self.dirty.push(key);
        }
    }

    /// Keys of whatever moved or came into effect are replayed again.
    fn note_changes(&mut self) {
        let mut moved = std::mem::take(&mut self.moved);
        self.questions.solver.take_moved(&mut moved);
        for node in moved.drain(..) {
            let txn = self.known.nodes.txn(node);
            if (txn as usize) < self.problem.len() && self.in_effect(txn) {
                self.mark_displaced(txn);
            }
        }
        self.moved = moved;
        let mut changed = std::mem::take(&mut self.changed);
        self.questions.solver.take_changed(&mut changed);
        for var in changed.drain(..) {
            if let Some(&txn) = self.questions.effect_of.get(&var) {
                self.forget_lanes(txn);
            }
            if let Some(of) = self.questions.alternatives.match_of(self.problem, var) {
                let key = self.problem.matches[of as usize].key;
                self.lanes.forget(key);
                self.mark_dirty(key);
            }
        }
        self.changed = changed;
    }

    /// A key is replayed again only if somebody changed places with a neighbour on its lane.
    fn mark_displaced(&mut self, txn: Txn) {
        let (dirty, is_dirty) = (&mut self.dirty, &mut self.is_dirty);
        self.lanes.displace(txn, &self.questions.solver, |key| {
            if !std::mem::replace(&mut is_dirty[key as usize], true) {
                dirty.push(key);
            }
        });
    }

    /// Who is on the lanes of a transaction's keys has changed.
    fn forget_lanes(&mut self, txn: Txn) {
        let reads = self.problem.reads_of(txn).iter().map(|read| read.key);
        let versions = self.problem.versions_of(txn).iter().map(|version| version.key);
        for key in reads.chain(versions).collect::<Vec<_>>() {
            self.lanes.forget(key);
            self.mark_dirty(key);
        }
    }

    fn in_effect(&self, txn: Txn) -> bool {
        is_in_effect(self.problem, &self.questions.effect, &self.questions.solver, txn)
    }

    // ---- replay ----

    #[inline]
    fn begin_of(&self, txn: Txn) -> u32 {
        self.questions.solver.position(self.known.nodes.begin(txn))
    }

    #[inline]
    fn commit_of(&self, version: u32) -> u32 {
        let txn = self.problem.versions[version as usize].txn;
        self.questions.solver.position(self.known.nodes.commit(txn))
    }

    fn line_up(&mut self, key: u32) {
        let (problem, effect, solver) = (self.problem, &self.questions.effect, &self.questions.solver);
        let alternatives = &self.questions.alternatives;
        let is_true = |alternative: u32| {
            alternative == NONE
                || alternatives.literal(alternative).is_some_and(|lit| solver.value(lit) == Some(true))
        };
        self.lanes.line_up(key, solver, |access| match access {
            AccessKind::Read(id) => {
                is_true(problem.alternative_of_read(id))
                    && is_in_effect(problem, effect, solver, problem.reads[id as usize].txn)
            }
            AccessKind::Version(id) | AccessKind::Opening(id) => {
                is_true(problem.alternative_of_version(id))
                    && is_in_effect(problem, effect, solver, problem.versions[id as usize].txn)
            }
        });
    }

    /// Supposes, for the first match on a key that is open, what the order says. False: look again.
    fn choose_alternatives(&mut self, key: u32) -> bool {
        let Some(matches) = self.matches_of_key.get(&key) else { return true };
        let is_open = |&&it: &&u32| {
            let it = &self.problem.matches[it as usize];
            self.in_effect(it.txn) && !(it.first..it.end).any(|index| self.is_true(index))
        };
        let open = matches.iter().filter(is_open);
        let first = open.min_by_key(|&&it| self.begin_of(self.problem.matches[it as usize].txn));
        let Some(&first) = first else { return true };
        let it = self.problem.matches[first as usize];
        self.line_up(key);
        let at = self.begin_of(it.txn);
        let found = self.lanes.visible_at(key, &self.questions.solver, at).unwrap_or(INITIAL);
        let fitting = self.problem.alternative_on(&it, found);
        let lits: Vec<(u32, Lit)> = (it.first..it.end).map(|index| (index, self.came_true(index))).collect();
        let open = |lit: Lit| self.questions.solver.value(lit).is_none();
        let choice = lits.iter().find(|&&(index, lit)| Some(index) == fitting && open(lit));
        let choice = choice.or_else(|| lits.iter().find(|&&(_, lit)| open(lit)));
        if let Some(&(_, lit)) = choice {
            self.decide(lit);
        }
        self.mark_dirty(key);
        false
    }

    fn is_true(&self, alternative: u32) -> bool {
        let lit = self.questions.alternatives.literal(alternative);
        lit.is_some_and(|lit| self.questions.solver.value(lit) == Some(true))
    }

    /// Whether predicate writes matched as many keys as they reported; else says so to the solver.
    fn counts_fit(&mut self) -> bool {
        let problem = self.problem;
        let mut fit = true;
        for count in problem.counts.iter().filter(|count| self.in_effect(count.txn)).collect::<Vec<_>>() {
            let mut of: Vec<u32> =
                count.matched.iter().map(|&it| problem.alternatives[it as usize].of).collect();
            of.dedup();
            let is_open = |&of: &u32| {
                let it = &problem.matches[of as usize];
                !(it.first..it.end).any(|index| self.is_true(index))
            };
            let open: Vec<u32> = of.iter().copied().filter(is_open).collect();
            if !open.is_empty() {
                for of in open {
                    self.mark_dirty(problem.matches[of as usize].key);
                }
                fit = false;
                continue;
            }
            let Some(otherwise) = recount(problem, count, |it| self.is_true(it)) else { continue };
            let mut lits: Vec<Lit> = self.unless_effective(count.txn).into_iter().collect();
            for (alternative, is_true) in otherwise {
                let lit = self.came_true(alternative);
                lits.push(if is_true { lit } else { !lit });
            }
            self.add_clause(&lits, &[count.txn]);
            fit = false;
        }
        fit
    }

    /// Looks at what has changed on a key's lane.
    fn replay(&mut self, key: u32) {
        self.line_up(key);
        let window = self.lanes.take_unchecked(key);
        let lane = self.lanes.lane(key);
        let mut before = lane.clone().take(window.start).rev();
        let mut current = before.find_map(Access::as_version).unwrap_or(INITIAL);
        for (place, access) in lane.enumerate().skip(window.start) {
            match access.kind() {
                AccessKind::Version(version) => {
                    if self.known.nodes.points == 2 && current != INITIAL {
                        let later = self.problem.versions[version as usize].txn;
                        if self.commit_of(current) > self.begin_of(later) {
                            self.blames.push(Blame::Overlap(current, version));
                        }
                    }
                    if place >= window.end {
                        break;
                    }
                    current = version;
                }
                AccessKind::Read(id) => {
                    if !self.problem.fits(&self.problem.reads[id as usize], current) {
                        self.blames.push(Blame::Read(id));
                    }
                }
                AccessKind::Opening(_) => {}
            }
        }
    }

    /// What a read finds on its lane.
    fn visible(&self, id: u32) -> u32 {
        self.lanes.visible_to(id).unwrap_or(INITIAL)
    }

    // ---- blame ----

    /// Asks the question that a misfit raises, and supposes an answer, if the order still misfits.
    fn answer(&mut self, blame: Blame) {
        match blame {
            Blame::Overlap(first, second) => self.answer_overlap(first, second),
            Blame::Read(id) => {
                let read = self.problem.reads[id as usize];
                let alternative = self.problem.alternative_of_read(id);
                if !self.in_effect(read.txn) || alternative != NONE && !self.is_true(alternative) {
                    return;
                }
                self.line_up(read.key);
                let found = self.visible(id);
                if self.problem.fits(&read, found) {
                    return;
                }
                // The answer may be taken back by a conflict: look again until it fits.
                self.blames.push(blame);
                if read.is_known() {
                    self.answer_known(id, &read);
                } else {
                    self.answer_ambiguous(id, &read, found);
                }
            }
        }
    }

    fn answer_overlap(&mut self, first: u32, second: u32) {
        let txn = |version: u32| self.problem.versions[version as usize].txn;
        let (one, two) = (txn(first), txn(second));
        // What fits is dropped: from here on the lane must notice what changes.
        self.line_up(self.problem.versions[first as usize].key);
        let apart = self.commit_of(first) < self.begin_of(two) || self.commit_of(second) < self.begin_of(one);
        if apart || !self.version_counts(first) || !self.version_counts(second) {
            return;
        }
        self.blames.push(Blame::Overlap(first, second));
        if self.is_open(first) || self.is_open(second) {
            let mut lits = self.unless_version(first);
            lits.extend(self.unless_version(second));
            let wish = self.before(first, second);
            lits.extend([wish, self.before(second, first)]);
            self.suppose(lits, wish, &[one, two]);
            return;
        }
        let lit = self.before(first, second);
        debug_assert_eq!(
            self.questions.solver.value(lit),
            None,
            "writers whose order is decided do not overlap"
        );
        self.decide(lit);
    }

    /// The read should see its source; the first version that comes between is to blame.
    fn answer_known(&mut self, id: u32, read: &Read) {
        let source = read.source;
        let blamed = self.lanes.first_between(Some(source).filter(|&source| source != INITIAL), id);
        let blamed = blamed.expect("a read that finds another version than its own is behind one");
        let (place, at) = (self.begin_of(read.txn), self.commit_of(blamed));
        let blamed_txn = self.problem.versions[blamed as usize].txn;
        let mut lits = Vec::with_capacity(4);
        lits.extend(self.unless_effective(read.txn));
        lits.extend(self.unless_version(blamed));
        if source == INITIAL {
            let misses = self.misses(read.txn, blamed);
            lits.push(misses);
            self.suppose(lits, misses, &[read.txn, blamed_txn]);
            return;
        }
        let before = self.before(blamed, source);
        let source_txn = self.problem.versions[source as usize].txn;
        let nearer_source = at - self.commit_of(source) <= place - at;
        if lits.is_empty() {
            // Both certain: the one variable carries the reader along.
            let lit = if nearer_source { before } else { !before };
            debug_assert_eq!(
                self.questions.solver.value(lit),
                None,
                "a decided order fits the reads it carries along"
            );
            self.decide(lit);
            return;
        }
        let misses = self.misses(read.txn, blamed);
        lits.extend([before, misses]);
        let wish = if nearer_source { before } else { misses };
        self.suppose(lits, wish, &[read.txn, blamed_txn, source_txn]);
    }

    fn answer_ambiguous(&mut self, id: u32, read: &Read, found: u32) {
        let Some(picks) = self.questions.picks.get(&id) else { return self.ask_source(id, read) };
        let picked = picks.iter().find(|(_, var)| self.questions.solver.value(var.positive()) == Some(true));
        match picked {
            Some(&(source, var)) => self.blame_found(id, source, found, var.positive()),
            None => {
                let nearest = self.nearest_candidate(read, picks);
                let nearest = nearest.expect("the clause over all candidates keeps one open");
                self.decide(nearest.positive());
            }
        }
    }

    /// A picked source is hidden by what the read found.
    fn blame_found(&mut self, id: u32, source: u32, found: u32, pick: Lit) {
        let read = self.problem.reads[id as usize];
        debug_assert_ne!(found, INITIAL, "a picked source lies before its reader");
        let found_txn = self.problem.versions[found as usize].txn;
        let mut lits = vec![!pick];
        lits.extend(self.unless_read(id));
        lits.extend(self.unless_version(found));
        let misses = self.misses(read.txn, found);
        lits.push(misses);
        let mut about = vec![read.txn, found_txn];
        let mut wish = misses;
        if source != INITIAL {
            let before = self.before(found, source);
            lits.push(before);
            about.push(self.problem.versions[source as usize].txn);
            let (from, at) = (self.commit_of(source), self.commit_of(found));
            if at.saturating_sub(from) <= self.begin_of(read.txn) - at {
                wish = before;
            }
        }
        self.suppose(lits, wish, &about);
    }

    /// "Some candidate is what the read saw."
    fn ask_source(&mut self, id: u32, read: &Read) {
        let reader = self.known.nodes.begin(read.txn);
        let mut picks = Vec::new();
        let mut about = vec![read.txn];
        let problem = self.problem;
        for version in problem.candidates(read) {
            if version == INITIAL {
                picks.push((version, self.questions.solver.new_var(&[], &[])));
                continue;
            }
            let writer = problem.versions[version as usize].txn;
            about.push(writer);
            let var = self.questions.solver.new_var(&[(self.known.nodes.commit(writer), reader)], &[]);
            picks.push((version, var));
            for unless in self.unless_version(version) {
                self.add_clause(&[var.negative(), !unless], &[read.txn, writer]);
            }
        }
        let mut lits: Vec<Lit> = picks.iter().map(|(_, var)| var.positive()).collect();
        lits.extend(self.unless_read(id));
        self.questions.picks.insert(id, picks);
        self.add_clause(&lits, &about);
    }

    /// The open candidate that is nearest in the order.
    fn nearest_candidate(&self, read: &Read, picks: &[(u32, Var)]) -> Option<Var> {
        let place = self.begin_of(read.txn);
        let open = picks.iter().filter(|(_, var)| self.questions.solver.value(var.positive()).is_none());
        let nearest = open.min_by_key(|&&(version, _)| match version {
            INITIAL => (place, version),
            version => (self.commit_of(version).abs_diff(place), version),
        });
        nearest.map(|&(_, var)| var)
    }

    // ---- clauses and literals ----

    fn add_clause(&mut self, lits: &[Lit], about: &[Txn]) {
        let tag = self.questions.about.len() as u32;
        self.questions.about.push(about.to_vec());
        self.questions.solver.add_clause(lits, tag);
    }

    /// Adds a clause; if it still leaves a choice, takes the wish.
    fn suppose(&mut self, lits: Vec<Lit>, wish: Lit, about: &[Txn]) {
        self.add_clause(&lits, about);
        let holds = |lit: &Lit| self.questions.solver.value(*lit);
        if lits.iter().any(|lit| holds(lit) == Some(true)) {
            return;
        }
        let open = |lit: &&Lit| holds(lit).is_none();
        let choice =
            Some(wish).filter(|wish| holds(wish).is_none()).or_else(|| lits.iter().find(open).copied());
        if let Some(choice) = choice {
            self.decide(choice);
        }
    }

    /// Supposes a literal, unless conclusions are waiting to be drawn: then the blame comes up again.
    fn decide(&mut self, lit: Lit) {
        if self.questions.solver.is_settled() && self.questions.solver.value(lit).is_none() {
            self.questions.solver.decide(lit);
        }
    }

    /// The literal that version `first` comes before version `second` on their key.
    fn before(&mut self, first: u32, second: u32) -> Lit {
        if self.known.nodes.points == 2 && (self.is_open(first) || self.is_open(second)) {
            // Writers that may not conflict need not be apart: not before is not after.
            let nodes = self.known.nodes;
            let writer = |version: u32| self.problem.versions[version as usize].txn;
            let edge = (nodes.commit(writer(first)), nodes.begin(writer(second)));
            let solver = &mut self.questions.solver;
            let var =
                self.questions.apart.entry((first, second)).or_insert_with(|| solver.new_var(&[edge], &[]));
            return var.positive();
        }
        let pair = (first.min(second), first.max(second));
        let var = match self.questions.before.get(&pair) {
            Some(&var) => var,
            None => {
                let when_true = self.order_edges(pair.0, pair.1);
                let when_false = self.order_edges(pair.1, pair.0);
                let var = self.questions.solver.new_var(&when_true, &when_false);
                self.questions.before.insert(pair, var);
                var
            }
        };
        if first < second { var.positive() } else { var.negative() }
    }

    /// What it means that `first` comes before `second`: the writers, and where both are certain the
    /// certain readers of the first.
    fn order_edges(&self, first: u32, second: u32) -> Vec<(Node, Node)> {
        let nodes = self.known.nodes;
        let writer = |version: u32| self.problem.versions[version as usize].txn;
        let is_in = |txn: Txn| self.problem.standing[txn as usize] == Standing::In;
        let (one, two) = (writer(first), writer(second));
        let mut edges = vec![(nodes.commit(one), nodes.begin(two))];
        if is_in(one) && is_in(two) && !self.is_open(first) && !self.is_open(second) {
            for &reader in self.readers.of(first).iter().filter(|&&reader| reader != two && is_in(reader)) {
                edges.push((nodes.begin(reader), nodes.commit(two)));
            }
        }
        edges
    }

    /// The literal that a transaction reads before a version is visible.
    fn misses(&mut self, txn: Txn, version: u32) -> Lit {
        let nodes = self.known.nodes;
        let writer = self.problem.versions[version as usize].txn;
        let (begin, commit) = (nodes.begin(txn), nodes.commit(writer));
        let solver = &mut self.questions.solver;
        let var = *self
            .questions
            .misses
            .entry((txn, writer))
            .or_insert_with(|| solver.new_var(&[(begin, commit)], &[(commit, begin)]));
        var.positive()
    }

    /// The literal that a transaction did not take effect; none if it certainly did.
    fn unless_effective(&mut self, txn: Txn) -> Option<Lit> {
        let is_certain = |txn: Txn| self.problem.standing[txn as usize] == Standing::In;
        if is_certain(txn) {
            return None;
        }
        // If it did, whoever it certainly saw came before it and took effect too.
        let mut made: Vec<(Var, Txn, Vec<Txn>)> = Vec::new();
        let mut work = vec![txn];
        while let Some(txn) = work.pop() {
            if is_certain(txn) || self.questions.effect.contains_key(&txn) {
                continue;
            }
            let reads = self.problem.reads_of(txn).iter();
            let sources = reads.filter(|read| read.is_known() && read.source < INITIAL);
            let seen: Vec<Txn> =
                sources.map(|read| self.problem.versions[read.source as usize].txn).collect();
            let nodes = self.known.nodes;
            let edges: Vec<(Node, Node)> =
                seen.iter().map(|&writer| (nodes.commit(writer), nodes.begin(txn))).collect();
            let var = self.questions.solver.new_var(&edges, &[]);
            self.questions.solver.watch(var);
            self.questions.effect.insert(txn, var);
            self.questions.effect_of.insert(var, txn);
            work.extend(&seen);
            made.push((var, txn, seen));
        }
        for (var, txn, seen) in made {
            for writer in seen {
                if let Some(effective) = self.questions.effect.get(&writer).map(|var| var.positive()) {
                    self.add_clause(&[var.negative(), effective], &[txn, writer]);
                }
            }
        }
        self.questions.effect.get(&txn).map(|var| var.negative())
    }

    /// Whether a version is there only if an alternative came true.
    fn is_open(&self, version: u32) -> bool {
        self.problem.alternative_of_version(version) != NONE
    }

    fn version_counts(&self, version: u32) -> bool {
        let alternative = self.problem.alternative_of_version(version);
        self.in_effect(self.problem.versions[version as usize].txn)
            && (alternative == NONE || self.is_true(alternative))
    }

    /// The literals of which one holds if a version is not there.
    fn unless_version(&mut self, version: u32) -> Vec<Lit> {
        let txn = self.problem.versions[version as usize].txn;
        let mut lits: Vec<Lit> = self.unless_effective(txn).into_iter().collect();
        let alternative = self.problem.alternative_of_version(version);
        if alternative != NONE {
            lits.push(!self.came_true(alternative));
        }
        lits
    }

    /// The literals of which one holds if a read did not happen.
    fn unless_read(&mut self, id: u32) -> Vec<Lit> {
        let txn = self.problem.reads[id as usize].txn;
        let mut lits: Vec<Lit> = self.unless_effective(txn).into_iter().collect();
        let alternative = self.problem.alternative_of_read(id);
        if alternative != NONE {
            lits.push(!self.came_true(alternative));
        }
        lits
    }

    /// The literal that an alternative came true.
    fn came_true(&mut self, alternative: u32) -> Lit {
        if let Some(lit) = self.questions.alternatives.literal(alternative) {
            return lit;
        }
        let of = self.problem.alternatives[alternative as usize].of;
        let it = self.problem.matches[of as usize];
        let unless = self.unless_effective(it.txn);
        let Questions { alternatives, solver, .. } = &mut *self.questions;
        for clause in alternatives.introduce(self.problem, solver, it, unless) {
            self.add_clause(&clause, &[it.txn]);
        }
        self.questions.alternatives.literal(alternative).expect("all of a match are introduced together")
    }

    // ---- the end ----

    /// The transactions that the contradiction speaks of.
    fn core(&self) -> Vec<Txn> {
        let core = self.questions.solver.core();
        let from_nodes = core.nodes.iter().map(|&node| self.known.nodes.txn(node));
        let from_clauses =
            core.tags.iter().flat_map(|&tag| self.questions.about[tag as usize].iter().copied());
        let mut txns: Vec<Txn> =
            from_nodes.chain(from_clauses).filter(|&txn| (txn as usize) < self.problem.len()).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }
}

fn matches_by_key(problem: &Problem) -> FxHashMap<u32, Vec<u32>> {
    let mut by_key: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (index, it) in problem.matches.iter().enumerate() {
        by_key.entry(it.key).or_default().push(index as u32);
    }
    by_key
}

/// Whether a transaction takes effect as things stand.
fn is_in_effect(problem: &Problem, effect: &FxHashMap<Txn, Var>, solver: &Solver, txn: Txn) -> bool {
    match problem.standing[txn as usize] {
        Standing::In => true,
        Standing::Out => false,
        Standing::Maybe => {
            effect.get(&txn).is_some_and(|effect| solver.value(effect.positive()) == Some(true))
        }
    }
}
