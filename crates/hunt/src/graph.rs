//! The statement-dependency graph of an execution (TxCheck, Jiang et al., OSDI 2023, §3.1, appendix A).
//!
//! What: nodes are the statements of committed transactions; an edge leads from a statement to one that must come
//! later in any order without transactions that gives the same results.
//!
//! Invariant: for every row version that a statement looked at, whoever installed it comes before, and whoever
//! installed the row's next version comes after.
//!
//! ```text
//!    installs v          looks at v          overwrites v
//!    AWR(Si) ∋ v  ───►  VSR(Sj) ∋ v  ───►  BWR(Sk) ∋ v
//! ```
//!
//! Steps:
//!
//! 1. Who installed and who overwrote each version, from the reads after and before writes.
//! 2. What each statement looked at: all versions of the tables it refers to. A key that some statement knows and
//!    this one did not see was looked at as well: it was not there *yet*, or not *any more*. The paper leaves these
//!    versions, Adya's unborn and dead ones, to its definitions; here they are versions like others, installed by
//!    nobody or by the DELETE. Without them an INSERT could be moved before a query that did not see its rows.
//! 3. Edges by the lemmas of appendix B, each with its kinds.
//!
//! Which of the two a missing row was is settled by the level's [`View`]: the last DELETE of that row which the
//! statement can have seen, else none.
//!
//! Cost: linear in the rows that version-set reads returned, times the number of statements at one version.

use crate::case::{Case, Instrumented, Kind, StepNo, TableNo, TxnNo};
use crate::execute::{Fate, Observed, Run, items};
use databases::View;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// The place of a statement in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

impl Node {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A kind of dependency; the definitions are 2 to 8 of the paper's appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependency {
    /// Shows a version that the other installed.
    ItemRead,
    /// Overwrites a version that the other installed.
    ItemWrite,
    /// Overwrites a version that the other showed.
    ItemAnti,
    /// Looks, to read, at a version that the other installed.
    PredicateRead,
    /// Looks, to write, at a version of the other, or overwrites one the other looked at to write.
    PredicateWrite,
    /// Overwrites a version that the other looked at to read.
    PredicateAnti,
    /// Computes what it writes from a version of the other, or overwrites what the other computed from.
    ValueWrite,
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ItemRead => "item-read",
            Self::ItemWrite => "item-write",
            Self::ItemAnti => "item-anti",
            Self::PredicateRead => "predicate-read",
            Self::PredicateWrite => "predicate-write",
            Self::PredicateAnti => "predicate-anti",
            Self::ValueWrite => "value-write",
        })
    }
}

/// A version of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Version {
    /// What the version column says.
    Live(i64),
    /// Not there yet.
    Unborn,
    /// Removed by this statement.
    Dead(Node),
}

type RowVersion = (TableNo, i64, Version);

/// The graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The statements, in the order of their execution.
    pub nodes: Vec<StepNo>,
    /// From the one that comes first, with all kinds in order.
    pub edges: BTreeMap<(Node, Node), Vec<Dependency>>,
    /// Statements of which it is not known which versions are theirs: another installed the same.
    pub ambiguous: Vec<StepNo>,
}

impl Graph {
    /// The graph of an execution.
    pub fn of(case: &Case, run: &Run) -> Self {
        let facts = Facts::of(case, run);
        let mut graph = Self { nodes: facts.members.iter().map(|m| m.step).collect(), ..Self::default() };
        let installers = facts.installers();
        let overwriters = facts.overwriters();
        for ((_, _, version), nodes) in &installers {
            if let (Version::Live(_), [_, later @ ..]) = (version, nodes.as_slice()) {
                graph.ambiguous.extend(later.iter().map(|node| facts.member(*node).step));
            }
        }
        for (place, member) in facts.members.iter().enumerate() {
            let node = node_of(place);
            for (version, from, to) in facts.looks(node, member) {
                for &installer in installers.get(&version).into_iter().flatten() {
                    graph.add(installer, node, from);
                }
                for &overwriter in overwriters.get(&version).into_iter().flatten() {
                    graph.add(node, overwriter, to);
                }
            }
        }
        graph
    }

    fn add(&mut self, from: Node, to: Node, kind: Dependency) {
        if from == to {
            return;
        }
        let kinds = self.edges.entry((from, to)).or_default();
        if let Err(place) = kinds.binary_search(&kind) {
            kinds.insert(place, kind);
        }
    }

    /// The nodes that come after each node.
    pub fn successors(&self) -> Vec<Vec<Node>> {
        let mut successors = vec![Vec::new(); self.nodes.len()];
        for (from, to) in self.edges.keys() {
            successors[from.index()].push(*to);
        }
        successors
    }
}

/// A statement of a committed transaction, with what it saw.
struct Member<'r> {
    step: StepNo,
    txn: TxnNo,
    statement: &'r Instrumented,
    seen: &'r Observed,
    before: Vec<(i64, i64)>,
    after: Vec<(i64, i64)>,
}

impl Member<'_> {
    /// Rows that were left as they are: another statement had made them so already.
    fn is_idle(&self, version: i64) -> bool {
        self.statement.shared && version == self.statement.version && self.statement.kind == Kind::Update
    }
}

struct Facts<'r> {
    members: Vec<Member<'r>>,
    /// Every key that anybody saw, table by table.
    known: HashMap<TableNo, HashSet<i64>>,
    /// Keys that were there from the start.
    initial: HashSet<(TableNo, i64)>,
    /// Who removed a row.
    deleters: HashMap<(TableNo, i64), Vec<Node>>,
    /// When each transaction committed, and when its first statement was through.
    commits: Vec<Option<u32>>,
    firsts: Vec<u32>,
}

fn node_of(place: usize) -> Node {
    Node(u32::try_from(place).expect("a case has few statements"))
}

impl<'r> Facts<'r> {
    fn of(case: &'r Case, run: &'r Run) -> Self {
        let mut members: Vec<Member<'r>> = Vec::new();
        let mut firsts = vec![u32::MAX; case.transactions()];
        for (step, statement) in case.statements() {
            let Some(seen) = run.observed.get(&step.number) else { continue };
            let first = &mut firsts[step.txn.index()];
            *first = seen.at.min(*first);
            if run.committed(step.txn) && !run.undone.contains(&step.number) {
                let before = items(&seen.before);
                let mut after = items(&seen.after);
                if statement.shared {
                    after.retain(|(key, _)| before.iter().any(|(known, _)| known == key));
                }
                members.push(Member { step: step.number, txn: step.txn, statement, seen, before, after });
            }
        }
        members.sort_by_key(|member| member.seen.at);
        let commits = run.fates.iter().map(|fate| match fate {
            Fate::Committed(at) => Some(*at),
            _ => None,
        });
        let mut facts = Self {
            members,
            known: HashMap::new(),
            initial: HashSet::new(),
            deleters: HashMap::new(),
            commits: commits.collect(),
            firsts,
        };
        facts.keys(case);
        facts
    }

    fn keys(&mut self, case: &Case) {
        let installed: HashSet<i64> = case.statements().map(|(_, statement)| statement.version).collect();
        for (place, member) in self.members.iter().enumerate() {
            let target = member.statement.target;
            let of_target = |rows: &[(i64, i64)]| target.map(|table| (table, rows.to_vec()));
            let seen = member.seen.versions.iter().cloned();
            for (table, rows) in seen.chain(of_target(&member.before)).chain(of_target(&member.after)) {
                for (key, version) in rows {
                    self.known.entry(table).or_default().insert(key);
                    if !installed.contains(&version) {
                        self.initial.insert((table, key));
                    }
                }
            }
            if let (Kind::Delete, Some(table)) = (member.statement.kind, target) {
                for (key, _) in &member.before {
                    self.deleters.entry((table, *key)).or_default().push(node_of(place));
                }
            }
        }
    }

    fn member(&self, node: Node) -> &Member<'r> {
        &self.members[node.index()]
    }

    /// Who installed what.
    fn installers(&self) -> HashMap<RowVersion, Vec<Node>> {
        let mut found: HashMap<RowVersion, Vec<Node>> = HashMap::new();
        for (place, member) in self.members.iter().enumerate() {
            let Some(table) = member.statement.target else { continue };
            let node = node_of(place);
            match member.statement.kind {
                Kind::Select => {}
                Kind::Delete => {
                    for (key, _) in &member.before {
                        found.entry((table, *key, Version::Dead(node))).or_default().push(node);
                    }
                }
                Kind::Insert | Kind::Update => {
                    for (key, version) in &member.after {
                        let was = member.before.iter().find(|(known, _)| known == key).map(|(_, was)| *was);
                        if !was.is_some_and(|was| member.is_idle(was)) {
                            found.entry((table, *key, Version::Live(*version))).or_default().push(node);
                        }
                    }
                }
            }
        }
        found
    }

    /// Who overwrote what.
    fn overwriters(&self) -> HashMap<RowVersion, Vec<Node>> {
        let mut found: HashMap<RowVersion, Vec<Node>> = HashMap::new();
        for (place, member) in self.members.iter().enumerate() {
            let Some(table) = member.statement.target else { continue };
            let node = node_of(place);
            for (key, version) in member.before.iter().filter(|(_, version)| !member.is_idle(*version)) {
                found.entry((table, *key, Version::Live(*version))).or_default().push(node);
            }
            for key in self.born(member) {
                if let Some(version) = self.missing(node, member, table, key) {
                    found.entry((table, key, version)).or_default().push(node);
                }
            }
        }
        found
    }

    /// The keys that an INSERT added.
    fn born(&self, member: &Member<'_>) -> Vec<i64> {
        if member.statement.kind != Kind::Insert {
            return Vec::new();
        }
        let is_new = |key: &i64| !member.before.iter().any(|(known, _)| known == key);
        member.after.iter().map(|(key, _)| *key).filter(is_new).collect()
    }

    /// Everything a statement looked at, with the kinds of dependency on the installer and of the overwriter on it.
    fn looks(&self, node: Node, member: &Member<'_>) -> Vec<(RowVersion, Dependency, Dependency)> {
        let mut looks = Vec::new();
        let statement = member.statement;
        for (table, rows) in &member.seen.versions {
            let (from, to) = match statement.kind {
                Kind::Select => (Dependency::PredicateRead, Dependency::PredicateAnti),
                Kind::Insert => (Dependency::ValueWrite, Dependency::ValueWrite),
                _ if statement.target != Some(*table) => (Dependency::ValueWrite, Dependency::ValueWrite),
                _ => (Dependency::PredicateWrite, Dependency::PredicateWrite),
            };
            let mut seen: HashSet<i64> = HashSet::new();
            for (key, version) in rows {
                seen.insert(*key);
                looks.push(((*table, *key, Version::Live(*version)), from, to));
            }
            for key in self.known.get(table).into_iter().flatten().filter(|key| !seen.contains(key)) {
                if let Some(version) = self.missing(node, member, *table, *key) {
                    looks.push(((*table, *key, version), from, to));
                }
            }
        }
        if let Some(table) = statement.target {
            for (key, version) in &member.before {
                let look = (table, *key, Version::Live(*version));
                looks.push((look, Dependency::ItemWrite, Dependency::PredicateWrite));
            }
            for key in self.born(member) {
                if let Some(version) = self.missing(node, member, table, key) {
                    looks.push(((table, key, version), Dependency::ItemWrite, Dependency::ItemWrite));
                }
            }
        }
        if let Some(table) = statement.items {
            for (key, version) in items(&member.seen.output) {
                let look = (table, key, Version::Live(version));
                looks.push((look, Dependency::ItemRead, Dependency::ItemAnti));
            }
        }
        looks
    }

    /// What a statement looked at where it saw no row: the last DELETE that it can have seen, or that nobody had
    /// made the row.
    fn missing(&self, node: Node, member: &Member<'_>, table: TableNo, key: i64) -> Option<Version> {
        let unborn = (!self.initial.contains(&(table, key))).then_some(Version::Unborn);
        let Some(deleters) = self.deleters.get(&(table, key)) else { return unborn };
        let horizon = match member.statement.view {
            View::Statement => member.seen.at,
            View::Transaction => self.firsts[member.txn.index()],
        };
        let is_visible = |deleter: &&Node| {
            let other = self.member(**deleter);
            match other.txn == member.txn {
                true => other.seen.at < member.seen.at,
                false => self.commits[other.txn.index()].is_some_and(|at| at < horizon),
            }
        };
        let last = deleters.iter().filter(|deleter| **deleter != node).rfind(is_visible);
        last.map(|deleter| Version::Dead(*deleter)).or(unborn)
    }
}
