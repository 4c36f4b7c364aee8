//! An order, the reads that it breaks, a clause for each: until it breaks none, or there is none.
//!
//! *What*: keeps a commit order of all transactions (the solver's) and examines every read against it. A read
//! that misses what it must see ([`super::sight`]) says why: a chain of steps from the writer S that is
//! missed to the reader, some of them choices. One of the choices is wrong, or S commits before the version that was
//! read; that is the clause. Only choices that were ever to blame become variables.
//!
//! ```text
//!    order   …  W  …  S  …  U  …  T  …      T read W's version; S ⇝ U by wr, U → T because both wrote y
//!    clause     S before W   or   T before U
//! ```
//!
//! *Choices* and their literals: `order(A, B)` — A commits before B; `picks(R, V)` — the ambiguous read R saw V;
//! `effect(T)` — the transaction T of unknown outcome took effect; what a predicate write found ([`super::matching`]). An ambiguous read that nobody asked about sees the
//! last version before it that has its value.
//!
//! *Invariant*: the edges of all assigned literals lead forward in the order, and every clause follows from
//! the level's definition; so an order that breaks no read is an explanation, and a contradiction a proof.
//!
//! *Steps*: propagate; bring the lanes of keys whose writers moved into order; examine reads in turn; stop when a whole
//! turn found nothing. *Cost*: one pass over the reads a turn, a search between two places of the order a misfit.
//! *Source*: counterexample-guided refinement (Clarke et al. 2000) with the order as the model, as in `refine`.

use super::matching::Matching;
use super::{Setting, Sight, Strict, marked};
use crate::constrain::Known;
use crate::first_order::FirstOrder;
use crate::problem::{INITIAL, NONE, Problem, Read, Standing, Txn};
use crate::solving::interrupt;
use history::{History, OpId};
use isolation::{Budget, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};
use solver::{Counters, Graph, Lit, Node, Progress, Solver, Var};

/// How the search ended.
#[derive(Debug)]
pub(super) enum Searched {
    /// There is an explanation.
    Explained,
    /// These transactions have none.
    Impossible(Vec<Txn>),
    /// The budget is used up.
    GaveUp(Undecided),
}

/// Looks for a commit order in which every read sees what it must.
pub(super) fn search(
    history: &History,
    problem: &Problem,
    (known, first): (&Known, &FirstOrder),
    setting: &Setting,
    budget: &Budget,
) -> (Searched, Counters) {
    let position = match &first.position {
        Ok(position) => position,
        Err(cycle) => return (Searched::Impossible(cycle.clone()), Counters::default()),
    };
    let mut search = Search::new(history, problem, (known, &first.graph), setting, position, budget);
    let searched = search.run();
    (searched, search.solver.counters())
}

pub(super) struct Search<'a> {
    pub(super) problem: &'a Problem,
    known: &'a Known,
    pub(super) sight: Sight,
    /// What must see all that commits before, by transaction, where that counts.
    pub(super) strict: Vec<Strict>,
    budget: &'a Budget,
    /// The known edges, for walking them.
    pub(super) graph: &'a Graph,
    pub(super) solver: Solver,
    /// The versions of each key that are in effect, in the order.
    pub(super) lanes: Vec<Vec<u32>>,
    /// Where versions stand in their lane.
    pub(super) place: Vec<u32>,
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    pub(super) is_base: Vec<bool>,
    /// Reads that miss only what changes whether the key belongs to their range or predicate.
    is_unshown: Vec<bool>,
    /// The session of each transaction, and whether the later ones of the session follow it.
    pub(super) session: Vec<(u32, bool)>,
    /// The operation that wrote each version; only where single operations count.
    pub(super) written_by: Vec<OpId>,
    /// Who reads which version; only where rw edges are walked.
    pub(super) readers: Readers,
    // Literals by what they stand for.
    orders: FxHashMap<(Txn, Txn), Var>,
    picks: FxHashMap<(u32, u32), Var>,
    asked: FxHashSet<u32>,
    effect: FxHashMap<Txn, Var>,
    effect_of: FxHashMap<Var, Txn>,
    pub(super) matching: Matching,
    /// The transactions that a tagged clause speaks of.
    about: Vec<Vec<Txn>>,
    // Scratch.
    moved: Vec<Node>,
    changed: Vec<Var>,
    pub(super) walk: Walk,
}

/// Scratch of a backward search.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) epoch: u32,
    pub(super) done: Vec<u32>,
    pub(super) cost_of: Vec<(u32, u32)>,
    pub(super) via: Vec<(Node, Why)>,
    pub(super) target: Vec<u32>,
}

/// The reads that saw a version, by version where that is known.
#[derive(Default)]
pub(super) struct Readers {
    known: FxHashMap<u32, Vec<u32>>,
    /// By key: those of the initial version.
    initial: FxHashMap<u32, Vec<u32>>,
    /// By key: those that may have seen one of several.
    open: FxHashMap<u32, Vec<u32>>,
}

impl Readers {
    fn of(problem: &Problem, is_unshown: &[bool]) -> Self {
        let mut it = Self::default();
        for (id, read) in problem.reads.iter().enumerate() {
            let is_open = !read.is_known() || is_unshown.get(id).copied().unwrap_or(false);
            let of = match read.source {
                _ if is_open => it.open.entry(read.key),
                INITIAL => it.initial.entry(read.key),
                source => it.known.entry(source),
            };
            of.or_default().push(id as u32);
        }
        it
    }

    /// Those that may have seen a version of a key.
    pub(super) fn of_version(&self, key: u32, version: u32) -> impl Iterator<Item = u32> + '_ {
        let known = if version == INITIAL { self.initial.get(&key) } else { self.known.get(&version) };
        known.into_iter().chain(self.open.get(&key)).flatten().copied()
    }
}

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// No choice changes it.
    Known,
    /// This read of the later one sees this version of the earlier one.
    Wr(u32, u32),
    /// The first version is overwritten by the second, and the order has them so.
    Ww(u32, u32),
    /// The order has them so.
    Order,
    /// This read of the earlier one saw a version that the later one overwrote; the version, and what overwrote it.
    Rw(u32, u32, u32),
}

/// One step of the argument that a read must see a writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) why: Why,
}

/// How many steps of a budget's meter a read that is examined counts for, and one that raises questions: there may be as
/// many as the key has versions.
const EXAMINED: usize = 8;
const ASKED: usize = 512;

impl<'a> Search<'a> {
    fn new(
        history: &'a History,
        problem: &'a Problem,
        (known, graph): (&'a Known, &'a Graph),
        setting: &'a Setting,
        position: &[u32],
        budget: &'a Budget,
    ) -> Self {
        let nodes = graph.len();
        let mut solver = Solver::new(graph.clone(), position);
        interrupt(&mut solver, budget);
        let session = (problem.txns.iter())
            .map(|&txn| history.transaction(txn))
            .map(|transaction| (transaction.session().0, transaction.is_committed()))
            .collect();
        let mut it = Self {
            problem,
            known,
            sight: setting.sight,
            strict: setting.strict.of(problem),
            budget,
            graph,
            solver,
            lanes: vec![Vec::new(); problem.keys()],
            place: vec![NONE; problem.versions.len()],
            dirty: Vec::new(),
            is_dirty: vec![false; problem.keys()],
            is_base: marked(&problem.bases, problem.reads.len()),
            is_unshown: marked(&problem.unshown, problem.reads.len()),
            session,
            written_by: Vec::new(),
            readers: Readers::default(),
            orders: FxHashMap::default(),
            picks: FxHashMap::default(),
            asked: FxHashSet::default(),
            effect: FxHashMap::default(),
            effect_of: FxHashMap::default(),
            matching: Matching::of(problem),
            about: Vec::new(),
            moved: Vec::new(),
            changed: Vec::new(),
            walk: Walk {
                epoch: 0,
                done: vec![0; nodes],
                cost_of: vec![(0, 0); nodes],
                via: vec![(NONE, Why::Known); nodes],
                target: vec![0; nodes],
            },
        };
        if setting.sight == Sight::EarlierOperations {
            it.written_by = written_by(history, problem);
        }
        if setting.sight == Sight::Updates {
            it.readers = Readers::of(problem, &it.is_unshown);
        }
        for key in 0..problem.keys() as u32 {
            it.line_up(key, true);
        }
        it
    }

    fn run(&mut self) -> Searched {
        // What depends on what was found first, then every read.
        let matches = self.problem.matches.len();
        let count = matches + self.problem.reads.len();
        let mut next: usize = 0;
        let mut clean = 0;
        let meter = self.budget.meter();
        while clean < count {
            if let Err(why) = meter.steps(EXAMINED) {
                return Searched::GaveUp(why);
            }
            let is_fine = match next.checked_sub(matches) {
                None => self.examine_match(next as u32),
                Some(read) => self.examine(read as u32),
            };
            if is_fine {
                clean += 1;
                next = if next + 1 == count { 0 } else { next + 1 };
                if clean < count || self.counts_fit() {
                    continue;
                }
            }
            clean = 0;
            if let Err(why) = meter.steps(ASKED) {
                return Searched::GaveUp(why);
            }
            match self.solver.propagate() {
                Progress::Consistent => {}
                Progress::Unsatisfiable => return Searched::Impossible(self.core()),
                Progress::Interrupted => {
                    return Searched::GaveUp(self.budget.exhausted().unwrap_or(Undecided::Cancelled));
                }
            }
            self.note_changes();
        }
        Searched::Explained
    }

    // ---- the order ----

    #[inline]
    pub(super) fn position(&self, node: Node) -> u32 {
        self.solver.position(node)
    }

    #[inline]
    pub(super) fn writer(&self, version: u32) -> Txn {
        self.problem.versions[version as usize].txn
    }

    /// Brings a key's lane into the order, anew if who is in effect has changed.
    pub(super) fn line_up(&mut self, key: u32, anew: bool) {
        let mut lane = std::mem::take(&mut self.lanes[key as usize]);
        if anew {
            let versions = self.problem.versions_of_key(key).iter().map(|&(_, version)| version);
            lane = versions.filter(|&version| self.counts(version)).collect();
        }
        lane.sort_by_key(|&version| self.position(self.writer(version)));
        for (place, &version) in lane.iter().enumerate() {
            self.place[version as usize] = place as u32;
        }
        self.lanes[key as usize] = lane;
    }

    fn note_changes(&mut self) {
        let mut moved = std::mem::take(&mut self.moved);
        self.solver.take_moved(&mut moved);
        for node in moved.drain(..).filter(|&node| (node as usize) < self.problem.len()) {
            if !self.in_effect(node) {
                continue;
            }
            for version in self.problem.version_ids(node) {
                let key = self.problem.versions[version as usize].key;
                let is_noted = self.is_dirty[key as usize] || !self.counts(version);
                if !is_noted && self.is_displaced(key, version) {
                    self.is_dirty[key as usize] = true;
                    self.dirty.push(key);
                }
            }
        }
        self.moved = moved;
        while let Some(key) = self.dirty.pop() {
            self.is_dirty[key as usize] = false;
            self.line_up(key, false);
        }
        let mut changed = std::mem::take(&mut self.changed);
        self.solver.take_changed(&mut changed);
        for var in changed.drain(..) {
            if let Some(&txn) = self.effect_of.get(&var) {
                for version in self.problem.version_ids(txn) {
                    self.line_up(self.problem.versions[version as usize].key, true);
                }
            }
            if let Some(key) = self.matching.key_of(self.problem, var) {
                self.line_up(key, true);
            }
        }
        self.changed = changed;
    }

    fn is_displaced(&self, key: u32, version: u32) -> bool {
        let lane = &self.lanes[key as usize];
        let place = self.place[version as usize] as usize;
        let at = |place: usize| lane.get(place).map(|&version| self.position(self.writer(version)));
        let here = at(place);
        place > 0 && at(place - 1) > here || at(place + 1).is_some_and(|after| Some(after) < here)
    }

    pub(super) fn in_effect(&self, txn: Txn) -> bool {
        match self.problem.standing[txn as usize] {
            Standing::In => true,
            Standing::Out => false,
            Standing::Maybe => {
                let effect = self.effect.get(&txn);
                effect.is_some_and(|effect| self.solver.value(effect.positive()) == Some(true))
            }
        }
    }

    /// Whether a version is there as things stand.
    pub(super) fn counts(&self, version: u32) -> bool {
        self.in_effect(self.writer(version)) && self.is_true(self.problem.alternative_of_version(version))
    }

    /// Whether a read happened as things stand, and is one.
    pub(super) fn is_read(&self, id: u32) -> bool {
        !self.is_base.get(id as usize).copied().unwrap_or(false)
            && self.is_true(self.problem.alternative_of_read(id))
    }

    /// The version of a key that a transaction wrote, as things stand.
    pub(super) fn version_now(&self, txn: Txn, key: u32) -> Option<u32> {
        let of_key = |&version: &u32| self.problem.versions[version as usize].key == key;
        self.problem.version_ids(txn).filter(of_key).find(|&version| self.counts(version))
    }

    /// A version that a transaction wrote, if it wrote any; one that is certain rather than one that depends.
    pub(super) fn update_by(&self, txn: Txn) -> Option<u32> {
        let certain = |&version: &u32| self.problem.alternative_of_version(version) == NONE;
        let mut versions = self.problem.version_ids(txn);
        versions.clone().find(certain).or_else(|| versions.find(|&version| self.counts(version)))
    }

    /// Whether a read misses only what changes whether its key belongs to its range or predicate.
    pub(super) fn is_unshown(&self, id: u32) -> bool {
        !self.sight.is_axiomatic() && self.is_unshown.get(id as usize).copied().unwrap_or(false)
    }

    /// What a read sees at the moment.
    pub(super) fn source(&self, id: u32) -> Option<u32> {
        let read = &self.problem.reads[id as usize];
        if read.is_known() {
            return Some(read.source);
        }
        let asked = self.asked.contains(&id);
        if asked {
            let mut candidates = self.problem.candidates(read);
            let picked = candidates.find(|&version| self.picked(id, version) == Some(true));
            if picked.is_some() {
                return picked;
            }
        }
        let lane = &self.lanes[read.key as usize];
        let before = self.position(read.txn);
        let count = lane.partition_point(|&version| self.position(self.writer(version)) < before);
        let fits = |version: u32| {
            self.problem.fits(read, version) && !(asked && self.picked(id, version) == Some(false))
        };
        let Some(last) = lane[..count].iter().rposition(|&version| fits(version)) else {
            return fits(INITIAL).then_some(INITIAL);
        };
        if !self.is_unshown(id) {
            return Some(lane[last]);
        }
        // Of several versions that it can have seen in a row the first asks for least.
        let first = lane[..last].iter().rposition(|&version| !fits(version)).map_or(0, |place| place + 1);
        if first == 0 && fits(INITIAL) {
            return Some(INITIAL);
        }
        Some(lane[first])
    }

    fn picked(&self, id: u32, version: u32) -> Option<bool> {
        self.solver.value(self.picks.get(&(id, version))?.positive())
    }

    // ---- reads ----

    /// Whether a read is as it must be; if not, a clause and perhaps a decision make the difference.
    fn examine(&mut self, id: u32) -> bool {
        let read = self.problem.reads[id as usize];
        if !self.in_effect(read.txn) || !self.is_true(self.problem.alternative_of_read(id)) {
            return true;
        }
        let Some(source) = self.source(id) else {
            self.ask(id, &read);
            return false;
        };
        let mut from = if source == INITIAL { 0 } else { self.place[source as usize] as usize + 1 };
        let before = self.position(read.txn);
        let lane = &self.lanes[read.key as usize];
        if self.is_unshown(id) {
            from += lane[from..].iter().take_while(|&&version| self.problem.fits(&read, version)).count();
        }
        match lane.get(from) {
            Some(&next) if self.position(self.writer(next)) < before => {}
            _ => return true,
        }
        let Some(steps) = self.must_see(id, &read, from) else { return true };
        self.accuse(id, &read, source, &steps);
        false
    }

    /// A step is wrong, or what must be seen commits before the source.
    fn accuse(&mut self, id: u32, read: &Read, source: u32, steps: &[Step]) {
        let seen = steps[0].from;
        // Clauses that are added on the way may take choices back: what the argument rests on is noted first.
        let premises = self.premises(id, read, steps);
        let mut about: Vec<Txn> = steps.iter().flat_map(|step| [step.from, step.to]).collect();
        about.push(read.txn);
        let mut lits = Vec::with_capacity(steps.len() + 2);
        let mut wish = None;
        for step in steps {
            wish = self.undo(step, &mut lits, &mut about).or(wish);
        }
        let pick = self.pick_lit(id, source);
        lits.extend(pick.map(|pick| !pick));
        for alternative in premises {
            lits.extend(self.unless_true(alternative));
        }
        if source != INITIAL {
            let writer = self.writer(source);
            about.push(writer);
            let before = self.order(seen, writer);
            lits.push(before);
            let place = self.position(seen);
            let is_near = place.saturating_sub(self.position(writer)) <= self.position(read.txn) - place;
            if is_near || wish.is_none() {
                wish = Some(before);
            }
        }
        about.retain(|&txn| (txn as usize) < self.problem.len());
        about.sort_unstable();
        about.dedup();
        for &txn in &about {
            lits.extend(self.unless_effective(txn));
        }
        self.suppose(lits, wish, about);
    }

    /// The alternatives that an argument rests on, beside those of its steps.
    fn premises(&self, id: u32, read: &Read, steps: &[Step]) -> Vec<u32> {
        if self.problem.matches.is_empty() {
            return Vec::new();
        }
        let mut versions: Vec<u32> = self.version_now(steps[0].from, read.key).into_iter().collect();
        match self.sight {
            Sight::BeforeOwnWrite => versions.extend(self.version_now(read.txn, read.key)),
            Sight::Updates => {
                let txns = steps.iter().flat_map(|step| [step.from, step.to]);
                versions.extend(txns.filter_map(|txn| self.update_by(txn)));
            }
            _ => {}
        }
        let mut all: Vec<u32> =
            versions.into_iter().map(|version| self.problem.alternative_of_version(version)).collect();
        all.push(self.problem.alternative_of_read(id));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the literals that would undo a step; returns the best of them.
    fn undo(&mut self, step: &Step, lits: &mut Vec<Lit>, about: &mut Vec<Txn>) -> Option<Lit> {
        let first = lits.len();
        match step.why {
            Why::Known => {}
            Why::Wr(read, version) => {
                lits.extend(self.unless_true(self.problem.alternative_of_read(read)));
                lits.extend(self.pick_lit(read, version).map(|pick| !pick));
            }
            Why::Ww(one, other) => {
                for version in [one, other] {
                    lits.extend(self.unless_true(self.problem.alternative_of_version(version)));
                }
                lits.push(self.order(step.to, step.from));
            }
            Why::Order => lits.push(self.order(step.to, step.from)),
            Why::Rw(read, version, later) => {
                lits.extend(self.unless_true(self.problem.alternative_of_read(read)));
                lits.extend(self.unless_true(self.problem.alternative_of_version(later)));
                lits.extend(self.pick_lit(read, version).map(|pick| !pick));
                if version != INITIAL {
                    let writer = self.writer(version);
                    about.push(writer);
                    lits.push(self.order(step.to, writer));
                }
            }
        }
        lits[first..].last().copied()
    }

    /// "Some candidate is what the read saw", and which one is supposed.
    fn ask(&mut self, id: u32, read: &Read) {
        self.ask_source(id, read);
        let place = self.position(read.txn);
        let open = self.problem.candidates(read).filter(|&version| self.picked(id, version).is_none());
        let nearest = open.min_by_key(|&version| match version {
            INITIAL => (place, version),
            version => (self.position(self.writer(version)).abs_diff(place), version),
        });
        if let Some(version) = nearest {
            self.decide(self.picks[&(id, version)].positive());
        }
    }

    fn ask_source(&mut self, id: u32, read: &Read) {
        if !self.asked.insert(id) {
            return;
        }
        let candidates: Vec<u32> = self.problem.candidates(read).collect();
        let mut lits = Vec::with_capacity(candidates.len() + 1);
        let mut about = vec![read.txn];
        for &version in &candidates {
            if version == INITIAL {
                let var = self.solver.new_var(&[], &[]);
                self.picks.insert((id, version), var);
                lits.push(var.positive());
                continue;
            }
            let writer = self.writer(version);
            about.push(writer);
            let var = self.solver.new_var(&[(writer, read.txn)], &[]);
            self.picks.insert((id, version), var);
            lits.push(var.positive());
            if let Some(not_effective) = self.unless_effective(writer) {
                self.add_clause(&[var.negative(), !not_effective], vec![read.txn, writer]);
            }
            if let Some(not_there) = self.unless_true(self.problem.alternative_of_version(version)) {
                self.add_clause(&[var.negative(), !not_there], vec![read.txn, writer]);
            }
        }
        lits.extend(self.unless_effective(read.txn));
        lits.extend(self.unless_true(self.problem.alternative_of_read(id)));
        self.add_clause(&lits, about);
    }

    /// The literal that an ambiguous read saw a version; none if it is certain.
    fn pick_lit(&mut self, id: u32, version: u32) -> Option<Lit> {
        let read = self.problem.reads[id as usize];
        if read.is_known() {
            return None;
        }
        self.ask_source(id, &read);
        Some(self.picks[&(id, version)].positive())
    }

    // ---- clauses and literals ----

    pub(super) fn add_clause(&mut self, lits: &[Lit], about: Vec<Txn>) {
        let tag = self.about.len() as u32;
        self.about.push(about);
        self.solver.add_clause(lits, tag);
    }

    /// Adds a clause; if it still leaves a choice, takes the wish.
    fn suppose(&mut self, lits: Vec<Lit>, wish: Option<Lit>, about: Vec<Txn>) {
        self.add_clause(&lits, about);
        let holds = |lit: Lit| self.solver.value(lit);
        if lits.iter().any(|&lit| holds(lit) == Some(true)) {
            return;
        }
        let mut choices = wish.into_iter().chain(lits.iter().copied());
        if let Some(choice) = choices.find(|&lit| holds(lit).is_none()) {
            self.decide(choice);
        }
    }

    /// Supposes a literal, unless conclusions are waiting to be drawn: then the read is examined again.
    pub(super) fn decide(&mut self, lit: Lit) {
        if self.solver.is_settled() && self.solver.value(lit).is_none() {
            self.solver.decide(lit);
        }
    }

    /// The literal that one transaction commits before another.
    fn order(&mut self, first: Txn, second: Txn) -> Lit {
        let pair = (first.min(second), first.max(second));
        let solver = &mut self.solver;
        let var = *self.orders.entry(pair).or_insert_with(|| solver.new_var(&[pair], &[(pair.1, pair.0)]));
        if first < second { var.positive() } else { var.negative() }
    }

    /// The literal that a transaction did not take effect; none if it certainly did.
    pub(super) fn unless_effective(&mut self, txn: Txn) -> Option<Lit> {
        if self.problem.standing[txn as usize] == Standing::In {
            return None;
        }
        if let Some(&var) = self.effect.get(&txn) {
            return Some(var.negative());
        }
        let var = self.ask_effect(txn);
        // If it did, so did those that it certainly saw, and those that they saw.
        let mut asked = vec![(txn, var)];
        while let Some((txn, var)) = asked.pop() {
            for writer in self.certainly_seen(txn) {
                if self.problem.standing[writer as usize] == Standing::In {
                    continue;
                }
                let of_writer = self.effect.get(&writer).copied().unwrap_or_else(|| {
                    let of_writer = self.ask_effect(writer);
                    asked.push((writer, of_writer));
                    of_writer
                });
                self.add_clause(&[var.negative(), of_writer.positive()], vec![txn, writer]);
            }
        }
        Some(var.negative())
    }

    /// The variable that a transaction took effect: then those that it certainly saw came before it.
    fn ask_effect(&mut self, txn: Txn) -> Var {
        let edges: Vec<(Node, Node)> =
            self.certainly_seen(txn).into_iter().map(|writer| (writer, txn)).collect();
        let var = self.solver.new_var(&edges, &[]);
        self.solver.watch(var);
        self.effect.insert(txn, var);
        self.effect_of.insert(var, txn);
        var
    }

    fn certainly_seen(&self, txn: Txn) -> Vec<Txn> {
        let reads = self.problem.reads_of(txn).iter();
        let sources = reads.filter(|read| read.is_known() && read.source < INITIAL);
        sources.map(|read| self.writer(read.source)).collect()
    }

    // ---- the end ----

    /// The transactions that the contradiction speaks of.
    fn core(&self) -> Vec<Txn> {
        let core = self.solver.core();
        let from_nodes = core.nodes.iter().map(|&node| self.known.nodes.txn(node));
        let from_clauses = core.tags.iter().flat_map(|&tag| self.about[tag as usize].iter().copied());
        let mut txns: Vec<Txn> =
            from_nodes.chain(from_clauses).filter(|&txn| (txn as usize) < self.problem.len()).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }
}

/// The operation that made each version: the last write of its key in its transaction.
fn written_by(history: &History, problem: &Problem) -> Vec<OpId> {
    let mut ops = vec![OpId(NONE); problem.versions.len()];
    for (txn, &id) in problem.txns.iter().enumerate() {
        for (op, operation) in history.transaction(id).primitives() {
            for key in operation.written_keys() {
                if let Some(version) = problem.version_by(txn as Txn, key.0) {
                    ops[version as usize] = op;
                }
            }
        }
    }
    for &(version, op) in &problem.written_late {
        ops[version as usize] = op;
    }
    ops
}
