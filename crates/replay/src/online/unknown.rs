//! Transactions that have no place in the order of timestamps: whose outcome the client never learnt, or whose timestamps
//! contradict themselves. What others saw of them is decided a little later, and exactly.
//!
//! **What.** The checker judges as if none of them had taken effect. A wrong result that one of them may explain is *held*
//! instead of told. Now and then everything that has arrived (the *log*) is asked for moments that explain what is held
//! ([`super::super::unknown`]): what no moments explain is reported, the rest is dropped.
//!
//! ```text
//!   arrivals ──> checker ──> wrong results ──┬── nothing else may explain it ──> told
//!        │                                   └── held ──┐
//!        └─────> log ───────────────────────────────────┴── Online::decide_unknown ──> told, or dropped
//! ```
//!
//! **When.** When as much as half of the log has arrived since the last time; when the watermark has reached the newest
//! commit and something is held; and at the end.
//!
//! **Memory.** Of what is final the log keeps [`OPS_MAX`] operations, and of the transactions without a place
//! [`FLOATING_MAX`], however old they are. What came before is gone: then what those kept cannot explain may have had to
//! do with what is gone, and is reported as [`Kind::Undecided`]. So is a wrong result that those may explain that are gone
//! ([`super::forgotten`]).
//!
//! **Invariant.** What is held, when it is decided and what comes of it follow from arrivals and watermarks alone: the
//! same for any number of workers and over a restart.

use super::codec::{Input, Output, invalid};
use super::delivered::sameness;
use super::forgotten::Forgotten;
use super::rank::{get_found, put_found};
use super::stamp::Stamp;
use super::txns::Named;
use super::{Found, Kind, Online};
use crate::datum::Datum;
use crate::unknown::{Asked, Decided, decide};
use crate::{Axiom, Content, Finding, order};
use history::formats::{Format, Warnings, jsonl, write_string};
use history::{Builder, Copier, History, Id, Name, Primitive, Timestamp, Transaction, TxnId};
use isolation::{Budget, Options, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::io;

/// So many final operations are kept.
const OPS_MAX: usize = 1 << 17;
/// About how many bytes an operation of the log takes.
const OP_BYTES: usize = 48;
/// So many transactions without a place are kept.
const FLOATING_MAX: usize = 10_000;
/// So many operations arrive at least between two decisions, unless there is nothing else to wait for.
const PAUSE_MIN: u64 = 4_096;
/// So many steps a decision takes at most.
const STEPS_MAX: u64 = 20_000_000;

/// A transaction of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    txn: TxnId,
    /// Its place in the session.
    position: u64,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Known,
    /// Its own results are not judged.
    Late,
    /// It has no place in the order.
    Floating,
}

/// What arrived together.
#[derive(Clone, Debug)]
struct Piece {
    history: History,
    entries: Vec<Entry>,
    ops: usize,
    /// The newest commit of those that have one.
    last: Stamp,
}

/// What a transaction without a place leaves in a key.
#[derive(Clone, Debug)]
struct Left {
    /// When it arrived.
    tick: u64,
    /// None if that depends on what is there.
    value: Option<Datum>,
}

/// A wrong result that may be explained.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    found: Found,
    /// Nothing has been decided yet.
    is_open: bool,
}

/// Which transaction a finding is about: its session, its name and its commit.
type Who = (Name, String, Option<Timestamp>);
/// Which result: the transaction, the operation and the key.
type What = (Who, Option<u32>, Option<Name>);

fn who(named: &Named) -> Who {
    (named.session.clone(), named.name.clone(), named.commit)
}

fn what(found: &Found) -> What {
    (who(&found.txn), found.op, found.key.clone())
}

/// Everything that has arrived and is kept.
#[derive(Debug)]
pub(super) struct Log {
    pieces: VecDeque<Piece>,
    /// Of the history that is being received.
    entries: Vec<Entry>,
    /// Nothing has been dropped.
    is_whole: bool,
    forgotten: Forgotten,
    held: Vec<Held>,
    /// Whose results have been reported: they do not count any more.
    told: FxHashSet<Who>,
    /// How many operations had arrived at the last decision.
    decided_at: u64,
    /// How many operations the last decision was about.
    decided_ops: u64,

    // What follows from the pieces.
    ops: usize,
    floating: usize,
    left: FxHashMap<Name, Vec<Left>>,
    /// From when on some transaction without a place has been here.
    since: Option<u64>,
    /// From when on one of them writes by a predicate: whatever it finds.
    anywhere_since: Option<u64>,
    /// From when on others do: what they leave may depend on what they found.
    predicates_since: Option<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            pieces: VecDeque::new(),
            entries: Vec::new(),
            is_whole: true,
            forgotten: Forgotten::default(),
            held: Vec::new(),
            told: FxHashSet::default(),
            decided_at: 0,
            decided_ops: 0,
            ops: 0,
            floating: 0,
            left: FxHashMap::default(),
            since: None,
            anywhere_since: None,
            predicates_since: None,
        }
    }
}

fn writes_by_predicate(txn: Transaction<'_>) -> bool {
    txn.primitives().any(|(_, it)| matches!(it, Primitive::WriteIf(_)))
}

impl Log {
    pub(super) fn bytes(&self) -> usize {
        self.ops * OP_BYTES + self.held.len() * 256 + self.forgotten.bytes()
    }

    /// A transaction that has a place.
    pub(super) fn known(
        &mut self,
        part: &History,
        txn: Transaction<'_>,
        position: u64,
        is_late: bool,
        tick: u64,
    ) {
        let role = if is_late { Role::Late } else { Role::Known };
        self.entries.push(Entry { txn: txn.id(), position, role });
        self.notice(part, txn, role, tick);
    }

    /// What follows from a transaction.
    fn notice(&mut self, part: &History, txn: Transaction<'_>, role: Role, tick: u64) {
        if txn.op_ids().any(|op| part.point(op).is_none()) && writes_by_predicate(txn) {
            let since = match role {
                Role::Floating => &mut self.anywhere_since,
                Role::Known | Role::Late => &mut self.predicates_since,
            };
            since.get_or_insert(tick);
        }
        if role != Role::Floating {
            return;
        }
        self.floating += 1;
        self.since.get_or_insert(tick);
        let mut leaves: FxHashMap<Name, Option<Datum>> = FxHashMap::default();
        for (_, operation) in txn.primitives() {
            let (key, value) = match operation {
                Primitive::Write { key, value } => (key, Some(Datum::of(part.values(), value))),
                Primitive::Append { key, .. } => (key, None),
                _ => continue,
            };
            leaves.insert(part.keys().get(key).to_owned(), value);
        }
        for (key, value) in leaves {
            self.left.entry(key).or_default().push(Left { tick, value });
        }
    }

    /// The history whose transactions have just been noticed.
    pub(super) fn take(&mut self, part: &History, newest: Stamp) {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() && part.initial().is_empty() {
            return;
        }
        let piece = Piece::new(part.clone(), entries, newest);
        self.ops += piece.ops;
        self.pieces.push_back(piece);
    }

    /// Whether a wrong result that was found at this tick may be explained by a transaction without a place.
    fn concerns(&self, found: &Found, tick: u64) -> bool {
        let is_here = |since: Option<u64>| since.is_some_and(|since| since <= tick);
        if !is_here(self.since) {
            return false;
        }
        match found.kind {
            Kind::Broken(Axiom::External) => {}
            // What a predicate write finds decides what its transaction writes and reads after it.
            Kind::Broken(Axiom::Internal | Axiom::NoConflict) => return is_here(self.predicates_since),
            _ => return false,
        }
        let Some(key) = found.key.as_ref().filter(|_| !is_here(self.anywhere_since)) else { return true };
        // A plain value has to be one that one of them leaves there.
        let is_plain = |seen: &&Datum| seen.is_plain() && !is_here(self.predicates_since);
        let seen = found.seen.as_ref().filter(is_plain);
        let fits = |left: &Left| {
            left.tick <= tick && seen.is_none_or(|seen| left.value.as_ref().is_none_or(|left| left == seen))
        };
        self.left.get(key).is_some_and(|left| left.iter().any(fits))
    }

    /// Forgets what is oldest of what is final, but for transactions without a place.
    fn cut(&mut self, watermark: Stamp, memory_max: Option<usize>) {
        let most = memory_max.map_or(OPS_MAX, |bytes| (bytes / 8 / OP_BYTES).min(OPS_MAX));
        if self.ops <= most && self.floating <= 2 * FLOATING_MAX {
            return;
        }
        let is_final = |piece: &&Piece| piece.last <= watermark;
        let mut surplus: usize = self.pieces.iter().take_while(is_final).map(|piece| piece.ops).sum();
        if surplus <= most && self.floating <= 2 * FLOATING_MAX {
            return;
        }
        let mut stays = VecDeque::new();
        while surplus > most / 2 {
            let Some(piece) = self.pieces.pop_front() else { break };
            surplus -= piece.ops;
            self.is_whole = false;
            stays.extend(piece.floating());
        }
        for piece in stays.into_iter().rev() {
            self.pieces.push_front(piece);
        }
        self.forget_floating();
        self.count();
        let here: FxHashSet<Who> = self.pieces.iter().flat_map(Piece::all).collect();
        self.told.retain(|who| here.contains(who));
        self.held.retain(|held| held.is_open || here.contains(&who(&held.found.txn)));
    }

    fn forget_floating(&mut self) {
        let is_floating = |entry: &Entry| entry.role == Role::Floating;
        let mut surplus = self.floating.saturating_sub(FLOATING_MAX);
        self.is_whole &= surplus == 0;
        let forgotten = &mut self.forgotten;
        for Piece { entries, history, .. } in &mut self.pieces {
            entries.retain(|entry| {
                let goes = surplus > 0 && is_floating(entry);
                if goes {
                    forgotten.add(history, history.transaction(entry.txn));
                    surplus -= 1;
                }
                !goes
            });
            if surplus == 0 {
                break;
            }
        }
        self.pieces.retain(|piece| !piece.entries.is_empty());
    }

    /// Counts what follows from the pieces anew.
    fn count(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        (self.ops, self.floating) = (0, 0);
        (self.since, self.anywhere_since, self.predicates_since) = (None, None, None);
        self.left.clear();
        for piece in &pieces {
            self.ops += piece.ops;
            for entry in &piece.entries {
                self.notice(&piece.history, piece.history.transaction(entry.txn), entry.role, 0);
            }
        }
        self.pieces = pieces;
    }

    // ---- a saved state ----

    pub(super) fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.list(self.pieces.len(), &self.pieces, |out, piece| {
            let text = write_string(&piece.history, Format::Jsonl).map_err(io::Error::other)?;
            out.text(&text)?;
            out.stamp(piece.last)?;
            out.list(piece.entries.len(), &piece.entries, |out, entry| {
                out.number(entry.txn.index() as u64)?;
                out.number(entry.position)?;
                out.byte(entry.role as u8)
            })
        })?;
        out.flag(self.is_whole)?;
        self.forgotten.put(out)?;
        out.list(self.held.len(), &self.held, |out, held| {
            put_found(out, &held.found)?;
            out.flag(held.is_open)
        })?;
        let mut told: Vec<&Who> = self.told.iter().collect();
        told.sort_unstable();
        out.list(told.len(), told, |out, (session, name, commit)| {
            out.name(session)?;
            out.text(name)?;
            out.option(commit.map(Stamp::from), Output::stamp)
        })?;
        out.number(self.decided_at)?;
        out.number(self.decided_ops)
    }

    pub(super) fn get(input: &mut Input<'_>) -> io::Result<Self> {
        let pieces = input.list(|input| {
            let text = input.text()?;
            let mut builder = Builder::stream();
            let read = jsonl::read(text.as_bytes(), &mut builder, &mut Warnings::new(false));
            let history = read.ok().and_then(|()| builder.finish().ok()).ok_or_else(|| invalid("a log"))?;
            let last = input.stamp()?;
            let entries = input.list(|input| {
                let (txn, position) = (input.count()?, input.number()?);
                let role = match input.byte()? {
                    0 => Role::Known,
                    1 => Role::Late,
                    2 => Role::Floating,
                    _ => return Err(invalid("a transaction of the log")),
                };
                match txn < history.len() {
                    true => Ok(Entry { txn: TxnId::new(txn), position, role }),
                    false => Err(invalid("a transaction of the log")),
                }
            })?;
            Ok(Piece { last, ..Piece::new(history, entries, last) })
        })?;
        let mut log = Self { pieces: pieces.into(), ..Self::default() };
        log.is_whole = input.flag()?;
        log.forgotten = Forgotten::get(input)?;
        log.held = input.list(|input| Ok(Held { found: get_found(input)?, is_open: input.flag()? }))?;
        let told = input.list(|input| {
            let (session, name) = (input.name()?, input.text()?);
            Ok((session, name, input.option(|input| Ok(Timestamp::from(input.stamp()?)))?))
        })?;
        log.told = told.into_iter().collect();
        log.decided_at = input.number()?;
        log.decided_ops = input.number()?;
        log.count();
        Ok(log)
    }
}

impl Piece {
    /// Commits that are further ahead than the newest are not counted.
    fn new(history: History, entries: Vec<Entry>, newest: Stamp) -> Self {
        let of = |entry: &Entry| history.transaction(entry.txn);
        let ops = entries.iter().map(|entry| of(entry).op_ids().len()).sum();
        let placed = entries.iter().filter(|entry| entry.role != Role::Floating);
        let commits = placed.filter_map(|entry| of(entry).db()).map(|(_, commit)| Stamp::from(commit));
        let last = commits.filter(|commit| *commit <= newest).max().unwrap_or(Stamp::MIN);
        Self { history, entries, ops, last }
    }

    /// What is kept of it: transactions without a place.
    fn floating(self) -> Option<Self> {
        let keeps = |entry: &&Entry| entry.role == Role::Floating;
        let kept: Vec<Entry> = self.entries.iter().filter(keeps).copied().collect();
        if kept.is_empty() {
            return None;
        }
        let mut builder = Builder::stream();
        let mut copier = Copier::new(&self.history);
        let mut entries = Vec::with_capacity(kept.len());
        for entry in kept {
            let txn = copier.transaction(entry.txn, None, &mut builder).ok()?;
            entries.push(Entry { txn, ..entry });
        }
        Some(Self::new(builder.finish().ok()?, entries, Stamp::MIN))
    }

    fn line(&self, entry: &Entry) -> Option<String> {
        let mut builder = Builder::stream();
        Copier::new(&self.history).transaction(entry.txn, None, &mut builder).ok()?;
        let text = write_string(&builder.finish().ok()?, Format::Jsonl).ok()?;
        text.lines().find(|line| line.contains("\"ops\"")).map(str::to_owned)
    }

    fn named(&self, entry: &Entry) -> Named {
        let txn = self.history.transaction(entry.txn);
        let session = self.history.sessions().get(txn.session()).to_owned();
        let name = match txn.explicit_id() {
            Some(id) => id.to_string(),
            None => format!("{session}:{}", entry.position),
        };
        let times = txn.db();
        Named { name, session, start: times.map(|it| it.0), commit: times.map(|it| it.1) }
    }

    fn all(&self) -> impl Iterator<Item = Who> + '_ {
        self.entries.iter().map(|entry| who(&self.named(entry)))
    }
}

/// The log as one history.
struct Joined {
    history: History,
    /// By transaction of that history.
    named: Vec<Named>,
    blind: Vec<TxnId>,
}

impl Log {
    /// Leaves out what came late and is here already: it was delivered again, when its first time had been forgotten.
    fn leave_out_again(&self, order: &mut Vec<(u64, usize, Entry)>) {
        if !order.iter().any(|(_, _, entry)| entry.role == Role::Late) {
            return;
        }
        let same = |place: usize, entry: &Entry| {
            let history = &self.pieces[place].history;
            sameness(history, history.transaction(entry.txn))
        };
        let in_time = order.iter().filter(|(_, _, entry)| entry.role == Role::Known);
        let mut here: FxHashSet<(u64, u64)> =
            in_time.filter_map(|(_, place, entry)| same(*place, entry)).collect();
        order.retain(|(_, place, entry)| {
            entry.role != Role::Late || same(*place, entry).is_none_or(|same| here.insert(same))
        });
    }

    /// Transactions as lines of JSON, as far as they are kept.
    fn lines_of(&self, wanted: &FxHashSet<Who>) -> FxHashMap<Who, String> {
        let commits: FxHashSet<Option<Timestamp>> = wanted.iter().map(|(_, _, commit)| *commit).collect();
        let mut found = FxHashMap::default();
        for piece in self.pieces.iter().rev() {
            for entry in &piece.entries {
                let commit = piece.history.transaction(entry.txn).db().map(|(_, commit)| commit);
                if !commits.contains(&commit) {
                    continue;
                }
                let who = who(&piece.named(entry));
                if wanted.contains(&who)
                    && !found.contains_key(&who)
                    && let Some(line) = piece.line(entry)
                {
                    found.insert(who, line);
                }
            }
            if found.len() == wanted.len() {
                break;
            }
        }
        found
    }

    /// Everything without a place, and of the others what has committed by now.
    fn joined(&self, watermark: Stamp) -> Result<Joined, history::BuildError> {
        let mut order: Vec<(u64, usize, Entry)> = Vec::new();
        for (place, piece) in self.pieces.iter().enumerate() {
            let is_past = |entry: &&Entry| {
                let commit = piece.history.transaction(entry.txn).db().map(|(_, commit)| Stamp::from(commit));
                entry.role == Role::Floating || commit.is_some_and(|commit| commit <= watermark)
            };
            order.extend(piece.entries.iter().filter(is_past).map(|entry| (entry.position, place, *entry)));
        }
        self.leave_out_again(&mut order);
        order.sort_by_key(|(position, place, entry)| (*position, *place, entry.txn));
        let mut builder = Builder::new();
        let mut copiers: Vec<Copier<'_>> = self.pieces.iter().map(|it| Copier::new(&it.history)).collect();
        let mut begun: FxHashSet<Name> = FxHashSet::default();
        for (piece, copier) in self.pieces.iter().zip(&mut copiers) {
            let is_first: FxHashSet<_> = (piece.history.initial().iter())
                .filter(|row| begun.insert(piece.history.keys().get(row.key).to_owned()))
                .map(|row| row.key)
                .collect();
            copier.header(&mut builder, |key| is_first.contains(&key));
        }
        let (mut named, mut blind) = (Vec::with_capacity(order.len()), Vec::new());
        for (_, place, entry) in order {
            let txn = copiers[place].timed(entry.txn, &mut builder)?;
            let name = self.pieces[place].named(&entry);
            if entry.role == Role::Late || self.told.contains(&who(&name)) {
                blind.push(txn);
            }
            named.push(name);
        }
        Ok(Joined { history: builder.finish()?, named, blind })
    }
}

/// Why a result is undecided that transactions may explain which are gone.
const GONE: &str =
    "transactions of unknown outcome that arrived long before may explain it, and are not kept any more";
/// Why a result is undecided that those that are kept do not explain.
const CUT: &str = "what arrived long before is not kept any more, and may be a part of the explanation";

fn doubted(found: Found, why: &str) -> Found {
    Found { kind: Kind::Undecided, doubt: Some(why.into()), ..found }
}

impl Online {
    /// The transactions of findings as they arrived, a line of JSON each: first the one that a finding is about, then the
    /// other one. What arrived long ago is not kept any more.
    pub fn transactions_of(&self, findings: &[Found]) -> Vec<Vec<String>> {
        let of = |found: &Found| [Some(who(&found.txn)), found.other.as_ref().map(who)].into_iter().flatten();
        let wanted: FxHashSet<Who> = findings.iter().flat_map(of).collect();
        if wanted.is_empty() {
            return vec![Vec::new(); findings.len()];
        }
        let lines = self.log.lines_of(&wanted);
        findings.iter().map(|found| of(found).filter_map(|who| lines.get(&who).cloned()).collect()).collect()
    }

    /// Of unknown outcome, or it contradicts itself.
    pub(super) fn log_floating(&mut self, part: &History, txn: Transaction<'_>, position: u64) {
        if order::is_read_only(part, txn.id()) {
            return;
        }
        let tick = self.tick();
        self.log.entries.push(Entry { txn: txn.id(), position, role: Role::Floating });
        self.log.notice(part, txn, Role::Floating, tick);
    }

    /// Tells a finding, unless it may be explained.
    pub(super) fn number_unless_held(&mut self, found: Found, tick: u64) {
        if !self.log.concerns(&found, tick) {
            // Whatever is here by now: with workers a finding comes later than what it was found before.
            let is_of_results =
                matches!(found.kind, Kind::Broken(Axiom::External | Axiom::Internal | Axiom::NoConflict));
            if is_of_results {
                self.log.told.insert(who(&found.txn));
            }
            return match self.log.forgotten.may_explain(&found, self.log.predicates_since.is_some()) {
                true => self.number(doubted(found, GONE)),
                false => self.number(found),
            };
        }
        // Of a transaction whose results do not count any more nothing else is said.
        if !self.log.told.contains(&who(&found.txn)) {
            self.log.held.push(Held { found, is_open: true });
        }
    }

    /// Whether it may be time to decide, as far as arrivals and watermarks say.
    pub(super) fn may_decide_unknown(&self) -> bool {
        self.log.since.is_some() && (self.is_time_to_decide() || self.watermark >= self.newest)
    }

    fn is_time_to_decide(&self) -> bool {
        let since = self.counters.operations - self.log.decided_at;
        self.watermark == Stamp::MAX || since >= PAUSE_MIN.max(self.log.decided_ops / 2)
    }

    /// Decides what is held, if it is time.
    pub(super) fn decide_unknown(&mut self) {
        if !self.may_decide_unknown() {
            if self.log.since.is_none() {
                self.log.cut(self.watermark, self.settings.memory_max);
            }
            return;
        }
        let is_final =
            |held: &Held| held.found.txn.commit.is_some_and(|it| Stamp::from(it) <= self.watermark);
        let is_waiting = self.log.held.iter().any(|held| held.is_open && is_final(held));
        if !self.is_time_to_decide() && !is_waiting {
            return;
        }
        self.log.decided_at = self.counters.operations;
        self.log.decided_ops = self.log.ops as u64;
        if !self.log.held.is_empty() {
            self.decide_held();
        }
        self.log.cut(self.watermark, self.settings.memory_max);
    }

    fn decide_held(&mut self) {
        let watermark = self.watermark;
        let is_final = |held: &Held| held.found.txn.commit.is_some_and(|it| Stamp::from(it) <= watermark);
        let decided = match self.log.joined(watermark) {
            Ok(joined) => self.ask(&joined),
            Err(error) => Err(Undecided::Unsupported(error.to_string())),
        };
        let mut told: Vec<Found> = Vec::new();
        match decided {
            Ok(Some(findings)) => {
                for found in findings {
                    told.push(if self.log.is_whole { found } else { doubted(found, CUT) });
                }
            }
            // There is nobody left who may have written what is held.
            Ok(None) => {
                let open = self.log.held.iter().filter(|held| held.is_open && is_final(held));
                let open = open.map(|held| held.found.clone());
                told.extend(open.map(|found| if self.log.is_whole { found } else { doubted(found, CUT) }));
            }
            Err(why) => {
                let why = why.to_string();
                let open = self.log.held.iter().filter(|held| held.is_open && is_final(held));
                told.extend(open.map(|held| doubted(held.found.clone(), &why)));
            }
        }
        for held in self.log.held.iter_mut().filter(|held| is_final(held)) {
            held.is_open = false;
        }
        self.log.told.extend(told.iter().map(|found| who(&found.txn)));
        let gone = &self.log.told;
        self.log.held.retain(|held| !gone.contains(&who(&held.found.txn)));
        told.into_iter().for_each(|found| self.number(found));
    }

    /// What no moments explain; `None` if there is nobody whose moment is open.
    fn ask(&mut self, joined: &Joined) -> Result<Option<Vec<Found>>, Undecided> {
        let Joined { history, named, blind } = joined;
        let held: FxHashMap<What, usize> =
            self.log.held.iter().enumerate().map(|(place, held)| (what(&held.found), place)).collect();
        let result = |finding: &Finding| -> What {
            let first = history.transaction(finding.txn).op_ids().next().map_or(0, Id::index);
            let op = finding.op.map(|op| (op.index() - first) as u32);
            (who(&named[finding.txn.index()]), op, finding.key.map(|key| history.keys().get(key).to_owned()))
        };
        let steps = Undecided::Unsupported("there are too many ways to place them".to_owned());
        let asked = Asked {
            history,
            level: self.settings.level,
            options: &Options {
                ryow: self.settings.ryow,
                budget: Budget::unlimited().with_steps(STEPS_MAX, steps),
                ..Options::default()
            },
            is_held: &|finding| held.contains_key(&result(finding)),
            blind,
            is_whole: self.log.is_whole,
        };
        let Some(Decided { findings, took_effect }) = decide(&asked)? else { return Ok(None) };
        self.counters.took_effect = self.counters.took_effect.max(took_effect as u64);
        let told = findings.iter().map(|finding| match held.get(&result(finding)) {
            Some(&place) => self.log.held[place].found.clone(),
            None => self.found_of(joined, finding),
        });
        Ok(Some(told.collect()))
    }

    /// A finding about the log.
    fn found_of(&self, joined: &Joined, finding: &Finding) -> Found {
        let Joined { history, named, .. } = joined;
        let first = history.transaction(finding.txn).op_ids().next().map_or(0, Id::index);
        let values = history.values();
        let datum = |content: &Content| Datum::of_content(values, content);
        let mut found = Found::about(Kind::Broken(finding.axiom), named[finding.txn.index()].clone());
        found.op = finding.op.map(|op| (op.index() - first) as u32);
        found.key = finding.key.map(|key| history.keys().get(key).to_owned());
        found.other = finding.other.map(|other| named[other.index()].clone());
        if finding.axiom != Axiom::NoConflict {
            found.expected = datum(&finding.expected);
            found.seen = datum(&finding.seen);
        }
        if let (Content::Count(expected), Content::Count(seen)) = (&finding.expected, &finding.seen) {
            found.counts = Some((*expected, *seen));
        }
        found
    }
}
