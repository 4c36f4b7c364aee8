//! The search: assignment, watched clauses, edges that follow the assignment.
//!
//! *What*: conflict-driven clause learning where assigning a literal also inserts its edges into the
//! [`Order`]. A cycle is a conflict like a falsified clause.
//!
//! *Invariants*: the edges present are exactly those of the literals on the trail, in trail order; two
//! literals of every clause of length ≥ 2 are watched, and a watched literal is false only if the clause
//! is satisfied by the other one at no higher level.
//!
//! *Steps* of [`Solver::propagate`]: take the next literal off the trail, insert its edges, visit the
//! clauses that watch its negation; on a conflict analyse, jump back, assert the learnt clause, go on.
//!
//! *Source*: MiniSat's scheme; edge sets under one variable as in Vbox §3.5; polarity from the
//! current order as in VeriStrong (Cai et al., PVLDB 2026) §6.2. Where we differ: the order survives backtracking and serves
//! as the model, so that a caller decides only what is wrong with it.

use crate::graph::{Graph, Node};
use crate::order::{Excluded, Order};
use crate::proof::{Origin, Proof};
use smallvec::SmallVec;

/// A Boolean variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub u32);

impl Var {
    /// The literal that holds when the variable is true.
    pub fn positive(self) -> Lit {
        Lit(self.0 << 1)
    }

    /// The literal that holds when the variable is false.
    pub fn negative(self) -> Lit {
        Lit(self.0 << 1 | 1)
    }
}

/// A variable or its negation; `!lit` is the opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lit(u32);

impl Lit {
    /// Stands for "always", where an edge belongs to no literal.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Its variable.
    pub fn var(self) -> Var {
        Var(self.0 >> 1)
    }

    /// Whether it is the variable itself, not its negation.
    pub fn is_positive(self) -> bool {
        self.0 & 1 == 0
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Not for Lit {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// How far the search came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No conflict: what is assigned holds together.
    Consistent,
    /// There is no solution; see [`Solver::core`].
    Unsatisfiable,
    /// The interrupt said stop.
    Interrupted,
}

/// What the search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Variables made.
    pub variables: u64,
    /// Literals decided.
    pub decisions: u64,
    /// Literals assigned for a reason.
    pub propagations: u64,
    /// Conflicts, each of which taught a clause.
    pub conflicts: u64,
    /// Literals excluded because they would close a cycle.
    pub exclusions: u64,
    /// Nodes visited to keep the order.
    pub visited: u64,
    /// Known edges at the start.
    pub edges: u64,
    /// Cycles met in the search, by width: how many literals have an edge on it. Those of width 1, 2 and 3, and all
    /// wider ones.
    pub cycles: [u64; 4],
}

impl Counters {
    fn met_cycle(&mut self, width: usize) {
        let last = self.cycles.len() - 1;
        self.cycles[width.saturating_sub(1).min(last)] += 1;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) lits: SmallVec<[Lit; 4]>,
    pub(crate) learnt: bool,
    /// How many decision levels the clause spans (Audemard and Simon's LBD); few is good.
    pub(crate) levels: u32,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    clause: u32,
    /// Some other literal of the clause: if it holds, the clause need not be visited.
    blocker: Lit,
}

/// No clause: a decision, or not assigned.
pub(crate) const NO_CLAUSE: u32 = u32::MAX;

/// Half of the learnt clauses go when there are this many more than last time.
const REDUCE_STEP: usize = 4_000;

/// The solver; see the crate's head.
pub struct Solver {
    pub(crate) order: Order,
    /// Edge sets: for each literal a piece of `edges`.
    edge_start: Vec<u32>,
    edges: Vec<(Node, Node)>,
    pub(crate) value: Vec<i8>,
    pub(crate) level: Vec<u32>,
    pub(crate) reason: Vec<u32>,
    pub(crate) trail: Vec<Lit>,
    /// For each decision level: the trail's length and the order's mark before it.
    limits: Vec<(u32, u32)>,
    head: usize,
    pub(crate) clauses: Vec<Clause>,
    watches: Vec<Vec<Watch>>,
    /// Learnt clauses that may be deleted.
    learnts: Vec<u32>,
    learnts_max: usize,
    pub(crate) proof: Proof,
    pub(crate) seen: Vec<bool>,
    unsatisfiable: bool,
    /// Variables whose changes the caller wants to hear of, and the changes.
    watched: Vec<bool>,
    changed: Vec<Var>,
    pub(crate) counters: Counters,
    interrupt: Option<Box<dyn Fn() -> bool + Send>>,
    /// How many steps are left until it is asked, and how many there are between two times.
    interrupt_in: u32,
    interrupt_every: u32,
    excluded: Vec<Excluded>,
}

/// How many steps of propagation there are between two times that the interrupt is asked.
const INTERRUPT_EVERY: u32 = 256;

impl Solver {
    /// A solver over a graph. `position` gives every node a different place such that every known edge
    /// leads forward; the nearer it is to a solution, the less there is to do.
    pub fn new(graph: Graph, position: &[u32]) -> Self {
        let counters = Counters { edges: graph.edges() as u64, ..Counters::default() };
        Self {
            order: Order::new(graph, position),
            edge_start: vec![0],
            edges: Vec::new(),
            value: Vec::new(),
            level: Vec::new(),
            reason: Vec::new(),
            trail: Vec::new(),
            limits: Vec::new(),
            head: 0,
            clauses: Vec::new(),
            watches: Vec::new(),
            learnts: Vec::new(),
            learnts_max: REDUCE_STEP,
            proof: Proof::default(),
            seen: Vec::new(),
            unsatisfiable: false,
            watched: Vec::new(),
            changed: Vec::new(),
            counters,
            interrupt: None,
            interrupt_in: INTERRUPT_EVERY,
            interrupt_every: INTERRUPT_EVERY,
            excluded: Vec::new(),
        }
    }

    /// Asked from time to time; `true` stops the search.
    pub fn set_interrupt(&mut self, interrupt: impl Fn() -> bool + Send + 'static) {
        self.interrupt = Some(Box::new(interrupt));
    }

    /// Asks whether to stop once per so many steps, counted over all calls.
    pub fn set_interrupt_every(&mut self, steps: u32) {
        self.interrupt_every = steps.max(1);
        self.interrupt_in = self.interrupt_every;
    }

    /// Counts a step; whether the interrupt says stop.
    fn is_interrupted(&mut self) -> bool {
        self.interrupt_in -= 1;
        if self.interrupt_in > 0 {
            return false;
        }
        self.interrupt_in = self.interrupt_every;
        self.interrupt.as_ref().is_some_and(|interrupt| interrupt())
    }

    /// Keeps every clause for [`Solver::proof`].
    pub fn log_proof(&mut self) {
        self.proof.keep_steps();
    }

    // ---- the problem ----

    /// A new variable and the edges that either of its values brings.
    pub fn new_var(&mut self, when_true: &[(Node, Node)], when_false: &[(Node, Node)]) -> Var {
        let var = Var(self.level.len() as u32);
        for (lit, edges) in [(var.positive(), when_true), (var.negative(), when_false)] {
            self.edges.extend_from_slice(edges);
            self.edge_start.push(self.edges.len() as u32);
            for &(from, to) in edges {
                self.order.announce(from, to, lit);
            }
        }
        self.value.extend([0, 0]);
        self.level.push(0);
        self.reason.push(NO_CLAUSE);
        self.watches.extend([Vec::new(), Vec::new()]);
        self.seen.push(false);
        self.watched.push(false);
        self.counters.variables += 1;
        var
    }

    /// Reports in [`Solver::take_changed`] whenever the variable is assigned or no longer is.
    pub fn watch(&mut self, var: Var) {
        self.watched[var.0 as usize] = true;
    }

    /// Adds a clause, at any time. The tag comes back in [`Solver::core`] if the clause was needed.
    /// May jump back, when the clause already contradicts what was decided.
    pub fn add_clause(&mut self, lits: &[Lit], tag: u32) {
        let mut lits: SmallVec<[Lit; 4]> = lits.iter().copied().collect();
        lits.sort_unstable();
        lits.dedup();
        if lits.windows(2).any(|pair| pair[0] == !pair[1]) {
            return; // always true
        }
        let origin = Origin::Input { tag };
        self.attach(lits, origin, false);
    }

    /// Brings a clause in, jumping back to where it is not contradicted.
    fn attach(&mut self, mut lits: SmallVec<[Lit; 4]>, origin: Origin, learnt: bool) -> u32 {
        // Watch what is not false, else what became false last.
        lits.sort_by_key(|&lit| match self.value(lit) {
            Some(false) => (1, u32::MAX - self.level_of(lit)),
            _ => (0, 0),
        });
        let id = self.clauses.len() as u32;
        self.proof.add(id, origin, &lits);
        let levels = self.count_levels(&lits);
        self.clauses.push(Clause { lits, learnt, levels });
        let clause = &self.clauses[id as usize];
        let (first, second) = (clause.lits.first().copied(), clause.lits.get(1).copied());
        if learnt && clause.lits.len() > 2 {
            self.learnts.push(id);
        }
        let Some(first) = first else {
            self.proof.conclude(vec![id]);
            self.unsatisfiable = true;
            return id;
        };
        if let Some(second) = second {
            self.watches[(!first).index()].push(Watch { clause: id, blocker: second });
            self.watches[(!second).index()].push(Watch { clause: id, blocker: first });
        }
        let second_level = second.map_or(0, |second| match self.value(second) {
            Some(false) => self.level_of(second),
            _ => u32::MAX,
        });
        match self.value(first) {
            // Unit below the level at which it happens to hold: it must outlive that level.
            Some(true) if second_level < self.level_of(first) => {
                self.jump_back(second_level);
                self.assign(first, id);
            }
            Some(true) => {}
            Some(false) => self.resolve_conflict(id),
            // Unit: it follows at the level of the last false literal.
            None if second_level != u32::MAX => {
                self.jump_back(second_level);
                self.assign(first, id);
            }
            None => {}
        }
        id
    }

    // ---- the state ----

    /// Whether a literal holds; `None` if it is open.
    #[inline]
    pub fn value(&self, lit: Lit) -> Option<bool> {
        match self.value[lit.index()] {
            0 => None,
            value => Some(value > 0),
        }
    }

    /// The place of a node in the current order: every edge that holds leads forward.
    #[inline]
    pub fn position(&self, node: Node) -> u32 {
        self.order.position(node)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.order.nodes()
    }

    /// Appends the nodes that changed place since the last call.
    pub fn take_moved(&mut self, into: &mut Vec<Node>) {
        self.order.take_moved(into);
    }

    /// Appends the watched variables that changed since the last call.
    pub fn take_changed(&mut self, into: &mut Vec<Var>) {
        into.append(&mut self.changed);
    }

    /// Whether the current order has all edges of a literal forward.
    pub fn agrees(&self, lit: Lit) -> bool {
        self.edges_of(lit).iter().all(|&(from, to)| self.position(from) < self.position(to))
    }

    /// What the search did so far.
    pub fn counters(&self) -> Counters {
        Counters { visited: self.order.visited, ..self.counters }
    }

    fn edges_of(&self, lit: Lit) -> &[(Node, Node)] {
        &self.edges[self.edge_start[lit.index()] as usize..self.edge_start[lit.index() + 1] as usize]
    }

    #[inline]
    pub(crate) fn level_of(&self, lit: Lit) -> u32 {
        self.level[lit.var().0 as usize]
    }

    pub(crate) fn decision_level(&self) -> u32 {
        self.limits.len() as u32
    }

    fn count_levels(&self, lits: &[Lit]) -> u32 {
        let mut levels: SmallVec<[u32; 16]> = lits.iter().map(|&lit| self.level_of(lit)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.len() as u32
    }

    // ---- the search ----

    /// Whether all conclusions are drawn: only then may something be decided.
    pub fn is_settled(&self) -> bool {
        self.head == self.trail.len() && !self.unsatisfiable
    }

    /// Supposes a literal that is open, when the solver is settled. Call [`Solver::propagate`] next.
    pub fn decide(&mut self, lit: Lit) {
        debug_assert!(
            self.is_settled(),
            "a decision stands on everything that follows from the earlier ones"
        );
        debug_assert_eq!(self.value(lit), None, "only an open literal can be decided");
        self.counters.decisions += 1;
        self.limits.push((self.trail.len() as u32, self.order.mark() as u32));
        self.assign(lit, NO_CLAUSE);
    }

    /// Draws all conclusions, resolving conflicts until there is none left.
    pub fn propagate(&mut self) -> Progress {
        loop {
            if self.unsatisfiable {
                return Progress::Unsatisfiable;
            }
            if self.is_interrupted() {
                return Progress::Interrupted;
            }
            if let Some(conflict) = self.propagate_once() {
                self.resolve_conflict(conflict);
                continue;
            }
            if self.head == self.trail.len() {
                if self.learnts.len() >= self.learnts_max {
                    self.reduce();
                }
                return Progress::Consistent;
            }
        }
    }

    /// Searches by itself: every clause gets a literal that holds, preferring what the order has.
    pub fn solve(&mut self) -> Progress {
        loop {
            match self.propagate() {
                Progress::Consistent => {}
                other => return other,
            }
            // The first clause in which nothing holds yet.
            let open = self.clauses.iter().find(|clause| {
                !clause.learnt && !clause.lits.iter().any(|&lit| self.value(lit) == Some(true))
            });
            let Some(clause) = open else { return Progress::Consistent };
            let candidates = || clause.lits.iter().copied().filter(|&lit| self.value(lit).is_none());
            let choice = candidates().find(|&lit| self.agrees(lit)).or_else(|| candidates().next());
            let choice = choice.expect("a clause without an open literal would have been a conflict");
            self.decide(choice);
        }
    }

    /// Assigns every variable the value the order has, where neither was decided. For callers that want
    /// a total assignment: conflicts are resolved as usual.
    pub fn complete(&mut self) -> Progress {
        let mut next = 0;
        loop {
            match self.propagate() {
                Progress::Consistent => {}
                other => return other,
            }
            while next < self.level.len() && self.value(Var(next as u32).positive()).is_some() {
                next += 1;
            }
            if next == self.level.len() {
                // A jump back may have opened earlier ones.
                match (0..next).find(|&var| self.value(Var(var as u32).positive()).is_none()) {
                    Some(open) => next = open,
                    None => return Progress::Consistent,
                }
            }
            let var = Var(next as u32);
            let lit = if self.agrees(var.positive()) { var.positive() } else { var.negative() };
            self.decide(lit);
        }
    }

    pub(crate) fn assign(&mut self, lit: Lit, reason: u32) {
        debug_assert_eq!(self.value(lit), None);
        self.value[lit.index()] = 1;
        self.value[(!lit).index()] = -1;
        let var = lit.var();
        let level = self.decision_level();
        let reason = if level == 0 { self.derive_unit(lit, reason) } else { reason };
        self.level[var.0 as usize] = level;
        self.reason[var.0 as usize] = reason;
        self.trail.push(lit);
        if reason != NO_CLAUSE {
            self.counters.propagations += 1;
        }
        if self.watched[var.0 as usize] {
            self.changed.push(var);
        }
    }

    /// What holds from the start is a clause of its own, so that whoever rests on it need not look further.
    fn derive_unit(&mut self, lit: Lit, reason: u32) -> u32 {
        let lits = &self.clauses[reason as usize].lits;
        if lits.len() == 1 {
            return reason;
        }
        let others = lits.iter().filter(|&&other| other != lit);
        let from =
            std::iter::once(reason).chain(others.map(|other| self.reason[other.var().0 as usize])).collect();
        let id = self.clauses.len() as u32;
        let lits = SmallVec::from_slice(&[lit]);
        self.proof.add(id, Origin::Learnt { from }, &lits);
        self.clauses.push(Clause { lits, learnt: true, levels: 1 });
        id
    }

    /// Takes one literal off the queue: its edges, then its clauses. Returns a falsified clause.
    fn propagate_once(&mut self) -> Option<u32> {
        let &lit = self.trail.get(self.head)?;
        self.head += 1;
        self.insert_edges(lit).or_else(|| self.visit_watches(lit))
    }

    fn insert_edges(&mut self, lit: Lit) -> Option<u32> {
        let (start, end) = (self.edge_start[lit.index()], self.edge_start[lit.index() + 1]);
        for index in start..end {
            let (from, to) = self.edges[index as usize];
            let value = &self.value;
            let open = |other: Lit| value[other.index()] == 0;
            let mut excluded = std::mem::take(&mut self.excluded);
            let result = self.order.insert(from, to, lit, open, &mut excluded);
            if let Err(cycle) = result {
                self.excluded = excluded;
                self.counters.met_cycle(cycle.lits.len());
                let lits = cycle.lits.iter().map(|&lit| !lit).collect();
                return Some(self.add_lemma(lits, cycle.nodes));
            }
            for it in excluded.drain(..) {
                if self.value(it.lit).is_none() {
                    self.counters.exclusions += 1;
                    self.counters.met_cycle(it.cycle.lits.len() + 1);
                    let mut lits: SmallVec<[Lit; 4]> = it.cycle.lits.iter().map(|&lit| !lit).collect();
                    lits.push(!it.lit);
                    let last = lits.len() - 1;
                    lits.swap(0, last);
                    let id = self.add_lemma(lits, it.cycle.nodes);
                    self.assign(!it.lit, id);
                }
            }
            self.excluded = excluded;
        }
        None
    }

    /// A clause that a cycle proves. Not watched: what it says is in the graph.
    fn add_lemma(&mut self, lits: SmallVec<[Lit; 4]>, nodes: Vec<Node>) -> u32 {
        let id = self.clauses.len() as u32;
        self.proof.add(id, Origin::Cycle { nodes }, &lits);
        self.clauses.push(Clause { lits, learnt: true, levels: 0 });
        id
    }

    fn visit_watches(&mut self, lit: Lit) -> Option<u32> {
        let mut watches = std::mem::take(&mut self.watches[lit.index()]);
        let mut kept = 0;
        let mut conflict = None;
        let mut index = 0;
        while index < watches.len() {
            let watch = watches[index];
            index += 1;
            if self.value(watch.blocker) == Some(true) {
                watches[kept] = watch;
                kept += 1;
                continue;
            }
            match self.visit(watch.clause, !lit) {
                Visit::Moved => {}
                Visit::Holds(blocker) => {
                    watches[kept] = Watch { clause: watch.clause, blocker };
                    kept += 1;
                }
                Visit::Unit(unit) => {
                    watches[kept] = watch;
                    kept += 1;
                    self.assign(unit, watch.clause);
                }
                Visit::Falsified => {
                    watches[kept] = watch;
                    kept += 1;
                    conflict = Some(watch.clause);
                    break;
                }
                Visit::Deleted => {}
            }
        }
        watches.copy_within(index.., kept);
        watches.truncate(kept + watches.len() - index);
        // Moving a watch never adds to this list: a new watch is not false, `!lit` is.
        self.watches[lit.index()] = watches;
        conflict
    }

    /// Finds another literal to watch in place of `falsified`.
    fn visit(&mut self, clause: u32, falsified: Lit) -> Visit {
        let lits = &mut self.clauses[clause as usize].lits;
        if lits.is_empty() {
            return Visit::Deleted;
        }
        if lits[0] == falsified {
            lits.swap(0, 1);
        }
        debug_assert_eq!(lits[1], falsified);
        let first = lits[0];
        let value = &self.value;
        if value[first.index()] > 0 {
            return Visit::Holds(first);
        }
        for index in 2..lits.len() {
            if value[lits[index].index()] >= 0 {
                lits.swap(1, index);
                let watch = lits[1];
                self.watches[(!watch).index()].push(Watch { clause, blocker: first });
                return Visit::Moved;
            }
        }
        if value[first.index()] < 0 { Visit::Falsified } else { Visit::Unit(first) }
    }

    /// Undoes everything above a level. The order stays as it is.
    pub(crate) fn jump_back(&mut self, level: u32) {
        if self.decision_level() <= level {
            return;
        }
        let (trail, mark) = self.limits[level as usize];
        self.limits.truncate(level as usize);
        self.order.undo_to(mark as usize);
        for lit in self.trail.drain(trail as usize..) {
            self.value[lit.index()] = 0;
            self.value[(!lit).index()] = 0;
            self.reason[lit.var().0 as usize] = NO_CLAUSE;
            if self.watched[lit.var().0 as usize] {
                self.changed.push(lit.var());
            }
        }
        self.head = trail as usize;
    }

    /// Learns from a falsified clause and goes on where the learnt one is unit.
    fn resolve_conflict(&mut self, conflict: u32) {
        self.counters.conflicts += 1;
        // The conflict belongs to the level of its last literal.
        let top = self.clauses[conflict as usize].lits.iter().map(|&lit| self.level_of(lit)).max();
        self.jump_back(top.unwrap_or(0));
        if self.decision_level() == 0 {
            self.explain_level_zero(conflict);
            self.unsatisfiable = true;
            return;
        }
        let learnt = self.analyze(conflict);
        self.jump_back(learnt.level);
        self.attach(learnt.lits, Origin::Learnt { from: learnt.from }, true);
    }

    /// Deletes the worse half of the learnt clauses, except those that are reasons now.
    fn reduce(&mut self) {
        let clauses = &self.clauses;
        self.learnts.sort_by_key(|&id| clauses[id as usize].levels);
        let half = self.learnts.len() / 2;
        let mut kept = Vec::with_capacity(half);
        for (rank, &id) in self.learnts.iter().enumerate() {
            let clause = &mut self.clauses[id as usize];
            let first = clause.lits[0];
            let is_reason = self.reason[first.var().0 as usize] == id;
            if rank < half || clause.levels <= 2 || is_reason {
                kept.push(id);
            } else {
                clause.lits = SmallVec::new();
            }
        }
        self.learnts_max = kept.len() + REDUCE_STEP;
        self.learnts = kept;
    }
}

enum Visit {
    Moved,
    Holds(Lit),
    Unit(Lit),
    Falsified,
    Deleted,
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("counters", &self.counters()).finish_non_exhaustive()
    }
}
