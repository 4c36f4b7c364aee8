//! What each read can have seen.
//!
//! *What*: turns a history into a [`Problem`]: the transactions that can have taken effect, the last
//! version each of them wrote to a key, and for every read from outside the versions that carry the
//! value it returned. Nothing here depends on the level, except what several reads of one key in one
//! transaction mean ([`Repeats`]): snapshot isolation and everything above forbid them to differ.
//!
//! *Steps*: (1) walk the operations of each transaction, settle reads of its own writes on the spot, keep
//! the first outside read and the last write of every key; (2) sort the versions of each key by value;
//! (3) look every read up: no version — a violation that needs no order; one — a known edge; several — an
//! open question; (4) settle transactions of unknown outcome: those whose versions nobody can have seen
//! are out, those that somebody must have seen are in, the others are open questions.
//!
//! *Cost*: O(operations), plus a sort within each key. *Source*: Boomslang (Zhang, Mu and Tan 2026) §4.2 and §A.2 (read
//! lineage); VeriStrong (Cai et al., PVLDB 2026) §3 (duplicate values).

use crate::contents::{Contents, ListKind};
use crate::demand;
use crate::lists::{self, ListRead, normal};
use crate::problem::{
    Alternative, Count, Match, NONE, Problem, Repeats, Standing, Txn, Version, sort_versions,
};
use crate::refusal::{Contradiction, Refusal};
use crate::resolve::{OpenRead, Raw, RawRead, resolve};
use crate::rows::{self, Claim, Universe};
use crate::scripts::{self, Action};
use crate::settle::settle;
use history::{
    Area, History, Id, KeyId, OpId, Predicate, Primitive, Range, Row, Status, Test, TxnId, ValueId, WriteIf,
};
use isolation::{Meter, Options, Ryow, Undecided};

/// Makes the problem of a history.
pub fn observe(history: &History, options: &Options) -> Result<Problem, Refusal> {
    observe_with(history, options, Repeats::OneVersion, &[])
}

/// As [`observe`], for levels at which several reads of one key may differ; the reads of transactions that are `blind`
/// (an entry a transaction of the history, or none at all) are left out.
pub fn observe_with(
    history: &History,
    options: &Options,
    repeats: Repeats,
    blind: &[bool],
) -> Result<Problem, Refusal> {
    let mut problem = look(history, options, repeats, blind, None)?;
    settle(&mut problem, &options.budget)?;
    Ok(problem)
}

/// The problem before conclusions are drawn from it, which may rest on transactions that a part does not have. What
/// predicates say on demand is said for some transactions, ascending.
pub fn observe_unsettled(history: &History, options: &Options, but: &[TxnId]) -> Result<Problem, Refusal> {
    look(history, options, Repeats::OneVersion, &[], Some(but))
}

/// The problem before conclusions are drawn from it, as arguments draw them one by one; some transactions of unknown
/// outcome are taken to have committed.
pub fn observe_certain(history: &History, options: &Options, certain: &[TxnId]) -> Result<Problem, Refusal> {
    look_certain(history, options, (Repeats::OneVersion, &[]), None, certain)
}

/// As [`observe_with`], before conclusions are drawn.
pub(crate) fn observe_apart(
    history: &History,
    options: &Options,
    blind: &[bool],
    certain: &[TxnId],
) -> Result<Problem, Refusal> {
    look_certain(history, options, (Repeats::EachItsOwn, blind), None, certain)
}

/// As [`observe`], but where it can wait what predicates say of keys they did not return is left out
/// ([`crate::demand`]).
pub(crate) fn observe_on_demand(history: &History, options: &Options) -> Result<Problem, Refusal> {
    let mut problem = observe_unsettled(history, options, &[])?;
    settle(&mut problem, &options.budget)?;
    Ok(problem)
}

fn look(
    history: &History,
    options: &Options,
    repeats: Repeats,
    blind: &[bool],
    on_demand_but: Option<&[TxnId]>,
) -> Result<Problem, Refusal> {
    look_certain(history, options, (repeats, blind), on_demand_but, &[])
}

fn look_certain(
    history: &History,
    options: &Options,
    (repeats, blind): (Repeats, &[bool]),
    on_demand_but: Option<&[TxnId]>,
    certain: &[TxnId],
) -> Result<Problem, Refusal> {
    let mut walk = Walk::new(history, options, repeats, on_demand_but)?;
    walk.blind = blind.to_vec();
    walk.certain = certain.to_vec();
    walk.transactions()?;
    options.budget.check()?;
    let Walk { mut problem, known, raw_reads, claims, claimed, open_reads, appends, mut list_reads, .. } =
        walk;
    sort_versions(&mut problem);
    options.budget.check()?;
    let raw = Raw {
        contents: &known,
        reads: &raw_reads,
        claims: &claims,
        claimed: &claimed,
        open: &open_reads,
        bases: &walk.bases,
        unshown: &walk.unshown,
        items: &walk.items,
    };
    resolve(&mut problem, &raw, &mut list_reads, &options.budget)?;
    drop(raw_reads);
    if !appends.is_empty() || !list_reads.is_empty() {
        lists::resolve(history, &mut problem, &appends, &list_reads, &options.budget)?;
    }
    Ok(problem)
}

/// What a transaction did to a key so far.
struct Touch<'h> {
    key: u32,
    /// The outside read's value; `UNKNOWN` if there is none.
    seen: ValueId,
    seen_op: OpId,
    /// The own write's value; `UNKNOWN` if there is none.
    own: ValueId,
    /// On a list key: how many elements it appended, and its outside read in `list_reads`.
    appended: u32,
    list_read: u32,
    /// What was said about the outside value without naming it.
    claims: Vec<Claim<'h>>,
    /// All of it, where what is left depends on what was found.
    script: Vec<Action<'h>>,
}

struct Walk<'h> {
    meter: Meter<'h>,
    history: &'h History,
    known: Contents<'h>,
    ryow: Ryow,
    repeats: Repeats,
    /// Transactions of the history whose reads are left out; empty: none.
    blind: Vec<bool>,
    /// Transactions of unknown outcome that are taken to have committed.
    certain: Vec<TxnId>,
    problem: Problem,
    raw_reads: Vec<RawRead>,
    appends: Vec<lists::Append>,
    list_reads: Vec<ListRead>,
    /// Which transaction touched a key last, and where in `touches`.
    stamp: Vec<u32>,
    slot: Vec<u32>,
    touches: Vec<Touch<'h>>,
    /// Where operations are about many keys.
    universe: Option<Universe>,
    claims: Vec<Claim<'h>>,
    claimed: Vec<(u32, u32)>,
    /// Reads that are none, and reads that saw no row; see [`Problem::bases`] and [`Problem::unshown`].
    bases: Vec<u32>,
    unshown: Vec<u32>,
    /// Reads that are of a key by name, whatever they saw there.
    items: Vec<u32>,
    /// Whether the transaction at hand writes by predicate without a report: then everything goes into scripts.
    is_scripted: bool,
    open_reads: Vec<OpenRead>,
    contents: Vec<Vec<ValueId>>,
    /// Transactions for which nothing waits, where something does.
    on_demand_but: Vec<TxnId>,
    /// Whether what the predicates of the transaction at hand say waits, and what they asked so far.
    is_on_demand: bool,
    asked: Vec<(Test<'h>, OpId)>,
}

impl<'h> Walk<'h> {
    fn new(
        history: &'h History,
        options: &'h Options,
        repeats: Repeats,
        on_demand_but: Option<&[TxnId]>,
    ) -> Result<Self, Undecided> {
        let Options { ryow, ref budget, .. } = *options;
        let keys = history.keys().len();
        let initial = {
            let mut initial = vec![ValueId::ABSENT; keys];
            for row in history.initial() {
                initial[row.key.index()] = normal(history, row.value);
            }
            initial
        };
        let known = Contents::of(history, ryow, budget)?;
        let is_on_demand = on_demand_but.is_some() && demand::can_wait(history, &known, ryow);
        let universe = Universe::of(history, &known, !is_on_demand, budget)?;
        Ok(Self {
            meter: budget.meter(),
            history,
            known,
            ryow,
            repeats,
            blind: Vec::new(),
            certain: Vec::new(),
            problem: Problem { initial, is_on_demand, ..Problem::default() },
            raw_reads: Vec::new(),
            appends: Vec::new(),
            list_reads: Vec::new(),
            stamp: vec![NONE; keys],
            slot: vec![0; keys],
            touches: Vec::new(),
            universe,
            claims: Vec::new(),
            claimed: Vec::new(),
            bases: Vec::new(),
            unshown: Vec::new(),
            items: Vec::new(),
            is_scripted: false,
            open_reads: Vec::new(),
            contents: Vec::new(),
            on_demand_but: {
                let mut txns = on_demand_but.unwrap_or_default().to_vec();
                txns.sort_unstable();
                txns
            },
            is_on_demand: false,
            asked: Vec::new(),
        })
    }

    fn transactions(&mut self) -> Result<(), Refusal> {
        let mut last_of_session = vec![NONE; self.history.sessions().len()];
        for transaction in self.history.transactions() {
            let standing = match transaction.status() {
                Status::Committed => Standing::In,
                Status::Unknown if self.certain.contains(&transaction.id()) => Standing::In,
                Status::Unknown => Standing::Maybe,
                Status::Aborted => continue,
            };
            let txn = self.problem.txns.len() as Txn;
            let last = &mut last_of_session[transaction.session().index()];
            self.problem.txns.push(transaction.id());
            self.problem.standing.push(standing);
            self.problem.previous.push(*last);
            if standing == Standing::In {
                *last = txn;
            }
            self.problem.first_version.push(self.problem.versions.len() as u32);
            self.problem.first_read.push(self.raw_reads.len() as u32);
            self.touches.clear();
            self.asked.clear();
            self.is_on_demand =
                self.problem.is_on_demand && self.on_demand_but.binary_search(&transaction.id()).is_err();
            self.is_scripted = transaction.primitives().any(|(_, operation)| self.is_open(&operation));
            for (op, operation) in transaction.primitives() {
                self.meter.step()?;
                let done = self.operation(txn, op, operation);
                self.forgive(txn, done)?;
            }
            let done = if self.is_scripted { self.settle_scripts(txn) } else { Ok(()) };
            self.forgive(txn, done)?;
            self.meter.steps(self.touches.len())?;
            let done = self.finish(txn).map_err(Refusal::Contradiction);
            self.forgive(txn, done)?;
        }
        self.problem.first_version.push(self.problem.versions.len() as u32);
        self.problem.first_read.push(self.raw_reads.len() as u32);
        Ok(())
    }

    /// A transaction of unknown outcome that contradicts itself did not take effect.
    fn forgive(&mut self, txn: Txn, done: Result<(), Refusal>) -> Result<(), Refusal> {
        let standing = &mut self.problem.standing[txn as usize];
        match done {
            Err(Refusal::Contradiction(_)) if *standing != Standing::In => {
                *standing = Standing::Out;
                Ok(())
            }
            other => other,
        }
    }

    /// Whether what an operation does may depend on what it finds.
    fn is_open(&self, operation: &Primitive<'_>) -> bool {
        operation.is_open_write()
            || match operation.key() {
                Some(key) => self.known.kind(key) == ListKind::Open,
                None => self.known.has_open_lists(),
            }
    }

    fn is_blind(&self, txn: Txn) -> bool {
        let id = self.problem.txns[txn as usize];
        self.blind.get(id.index()).copied().unwrap_or(false)
    }

    fn operation(&mut self, txn: Txn, op: OpId, operation: Primitive<'h>) -> Result<(), Refusal> {
        match operation {
            Primitive::Read { value, .. } if !value.is_known() || self.is_blind(txn) => Ok(()),
            Primitive::Read { key, value, .. } => {
                let value = normal(self.history, value);
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)
            }
            Primitive::Write { key, value } => {
                let value = self.known.written(value);
                self.write(txn, op, key, value);
                Ok(())
            }
            Primitive::Append { key, value } => {
                self.append(txn, op, key, value);
                Ok(())
            }
            Primitive::Show { rows: None, .. } => Ok(()),
            Primitive::Show { .. } if self.is_blind(txn) => Ok(()),
            Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
                self.range(txn, op, (range, reverse, to_the_end), rows)
            }
            Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                self.query(txn, op, predicate, rows)
            }
            Primitive::WriteIf(write) => self.write_if(txn, op, &write),
        }
    }

    /// A scan or an iterator.
    fn range(
        &mut self,
        txn: Txn,
        op: OpId,
        (range, reverse, to_the_end): (Range, bool, bool),
        rows: &[Row],
    ) -> Result<(), Refusal> {
        let universe = self.universe.as_ref().expect("an operation on many keys makes one");
        let visited = universe.visited(range, reverse, to_the_end, rows);
        for (key, value) in visited.ok_or(Refusal::Contradiction(Contradiction::BadRows { op }))? {
            self.meter.step()?;
            if value.is_known() {
                let value = normal(self.history, value);
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)?;
            } else {
                self.claim(txn, key, Claim { test: Test::Present, truth: true, op })?;
            }
        }
        Ok(())
    }

    fn query(&mut self, txn: Txn, op: OpId, predicate: &'h Predicate, rows: &[Row]) -> Result<(), Refusal> {
        let bad_rows = Refusal::Contradiction(Contradiction::BadRows { op });
        let mut sorted: Vec<Row> = rows.to_vec();
        sorted.sort_unstable_by_key(|row| row.key);
        if sorted.windows(2).any(|pair| pair[0].key == pair[1].key) {
            return Err(bad_rows);
        }
        let returned: Vec<KeyId> = rows.iter().map(|row| row.key).collect();
        for key in self.concerned(predicate, &returned)? {
            self.meter.step()?;
            let row = sorted.binary_search_by_key(&key, |row| row.key).ok();
            let value = row.map_or(ValueId::ABSENT, |row| normal(self.history, sorted[row].value));
            if value.is_known() && value != ValueId::ABSENT {
                if !predicate.holds(self.history.values(), value) {
                    return Err(bad_rows);
                }
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)?;
            } else {
                let truth = !value.is_known();
                self.claim(txn, key, Claim { test: Test::Where(predicate), truth, op })?;
            }
        }
        self.asked.push((Test::Where(predicate), op));
        Ok(())
    }

    /// The keys of which a predicate says something now: those it may ever hold of; where that can wait, those that the
    /// transaction touched, and those that it returned or wrote.
    fn concerned(&self, predicate: &Predicate, named: &[KeyId]) -> Result<Vec<KeyId>, Undecided> {
        if !self.is_on_demand {
            let universe = self.universe.as_ref().expect("an operation on many keys makes one");
            let named = named.iter().copied();
            return universe.concerned(self.history, &self.known, predicate, named, &self.meter);
        }
        let touched = self.touches.iter().map(|touch| KeyId(touch.key));
        let mut keys: Vec<KeyId> = touched.chain(named.iter().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The keys of which a conditional write says something now.
    fn tested(&self, write: &WriteIf<'_>) -> Result<Vec<KeyId>, Undecided> {
        match (write.key, write.test) {
            (Some(key), _) => Ok(vec![key]),
            (None, Test::Where(predicate)) => self.concerned(predicate, write.keys.unwrap_or_default()),
            (None, _) => Ok(self.history.keys().ids().collect()),
        }
    }

    /// A write where a test holds.
    fn write_if(&mut self, txn: Txn, op: OpId, write: &WriteIf<'h>) -> Result<(), Refusal> {
        let WriteIf { test, count, .. } = *write;
        let set = self.known.written(write.set);
        let Some(keys) = write.keys else {
            for key in self.tested(write)? {
                self.meter.step()?;
                self.touch(txn, key).script.push(Action::SetIf { op, test, set });
            }
            return Ok(());
        };
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || count.is_some_and(|count| count != keys.len() as u64) {
            return Err(Refusal::Contradiction(Contradiction::BadRows { op }));
        }
        for key in self.tested(write)? {
            self.meter.step()?;
            let truth = sorted.binary_search(&key).is_ok();
            let claim = Claim { test, truth, op };
            if self.is_scripted {
                let script = &mut self.touch(txn, key).script;
                script.push(Action::Found(claim));
                script.extend(truth.then_some(Action::Set { value: set, op }));
                continue;
            }
            // What earlier predicates said of it is claimed when it is touched: then this goes with it.
            let is_new = self.stamp[key.index()] != txn && self.asked.is_empty();
            let waits = self.is_on_demand && write.key.is_none() && truth && is_new;
            if !waits {
                self.found(txn, key, claim)?;
            }
            if truth {
                self.write(txn, op, key, set);
            }
        }
        if write.key.is_none() {
            self.asked.push((test, op));
        }
        Ok(())
    }

    /// A predicate write says something about what it builds on: the transaction's own writes, whatever its reads do.
    fn found(&mut self, txn: Txn, key: KeyId, claim: Claim<'h>) -> Result<(), Refusal> {
        let own = self.touch(txn, key).own;
        if !own.is_known() {
            self.claim_outside(txn, key, claim);
        } else if !claim.accepts(&self.known, own) {
            return Err(Refusal::Contradiction(Contradiction::Internal { op: claim.op, key }));
        }
        Ok(())
    }

    /// Something is said about the value seen at a key.
    fn claim(&mut self, txn: Txn, key: KeyId, claim: Claim<'h>) -> Result<(), Refusal> {
        if self.is_scripted {
            self.touch(txn, key).script.push(Action::Claim(claim));
            return Ok(());
        }
        let ryow = self.ryow;
        let touch = self.touch(txn, key);
        let own = match touch.appended {
            0 => touch.own.is_known().then_some(touch.own),
            // Present, whatever it is.
            _ => Some(ValueId::UNKNOWN),
        };
        match own {
            Some(own) if ryow != Ryow::Never && claim.accepts(&self.known, own) => Ok(()),
            Some(_) if ryow == Ryow::Must => {
                Err(Refusal::Contradiction(Contradiction::Internal { op: claim.op, key }))
            }
            _ => {
                self.claim_outside(txn, key, claim);
                Ok(())
            }
        }
    }

    /// Something is said about the value outside.
    fn claim_outside(&mut self, txn: Txn, key: KeyId, claim: Claim<'h>) {
        if self.repeats == Repeats::OneVersion {
            self.touch(txn, key).claims.push(claim);
            return;
        }
        if self.is_blind(txn) {
            return;
        }
        self.claimed.push((self.raw_reads.len() as u32, self.claims.len() as u32));
        self.claims.push(claim);
        if claim.is_of_item() {
            self.items.push(self.raw_reads.len() as u32);
        }
        self.push_read(RawRead { key: key.0, value: ValueId::UNKNOWN, op: claim.op }, claim.is_shown());
    }

    /// Keeps an outside read, where each is its own.
    fn push_read(&mut self, read: RawRead, is_shown: bool) {
        if !is_shown {
            self.unshown.push(self.raw_reads.len() as u32);
        }
        self.raw_reads.push(read);
    }

    /// Whether a read of this value showed a row: what a range or a predicate left out it did not.
    fn is_shown(&self, op: OpId, value: ValueId) -> bool {
        self.universe.is_none()
            || value != ValueId::ABSENT
            || !rows::is_about_many(&self.history.primitive(op))
    }

    #[inline]
    fn touch(&mut self, txn: Txn, key: KeyId) -> &mut Touch<'h> {
        let place = key.index();
        if self.stamp[place] != txn {
            self.stamp[place] = txn;
            self.slot[place] = self.touches.len() as u32;
            let claim = |&(test, op)| Claim { test, truth: false, op };
            // What predicates said of it waits no longer.
            let asked = if self.is_on_demand { self.asked.as_slice() } else { &[] };
            let claims = asked.iter().map(claim).collect();
            self.touches.push(Touch {
                key: key.0,
                seen: ValueId::UNKNOWN,
                seen_op: OpId(NONE),
                own: ValueId::UNKNOWN,
                appended: 0,
                list_read: NONE,
                claims,
                script: Vec::new(),
            });
        }
        let slot = self.slot[place];
        &mut self.touches[slot as usize]
    }

    fn write(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) {
        if self.is_scripted {
            self.touch(txn, key).script.push(Action::Set { value, op });
        } else {
            self.touch(txn, key).own = value;
        }
    }

    fn append(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) {
        if self.is_scripted {
            self.touch(txn, key).script.push(Action::Append { op, key, element: value });
            return;
        }
        self.touch(txn, key).appended += 1;
        self.appends.push(lists::Append { key: key.0, txn, element: value });
    }

    fn read(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) -> Result<(), Contradiction> {
        if self.is_scripted {
            self.touch(txn, key).script.push(Action::Read { op, value });
            return Ok(());
        }
        if self.known.kind(key) == ListKind::Plain {
            return self.read_list(txn, op, key, value);
        }
        let ryow = self.ryow;
        let touch = self.touch(txn, key);
        if touch.own.is_known() {
            match ryow {
                Ryow::Must if value == touch.own => return Ok(()),
                Ryow::Must => return Err(Contradiction::Internal { op, key }),
                Ryow::May if value == touch.own => return Ok(()),
                Ryow::May | Ryow::Never => {}
            }
        }
        if self.repeats == Repeats::EachItsOwn {
            let is_shown = self.is_shown(op, value);
            self.push_read(RawRead { key: key.0, value, op }, is_shown);
            return Ok(());
        }
        self.touch(txn, key).see(value, op)
    }

    /// A read of a list: what is left after taking its own appends off the end came from outside.
    fn read_list(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) -> Result<(), Contradiction> {
        let Some(elements) = lists::elements(self.history, value) else {
            return Err(Contradiction::NoSource { op, key });
        };
        let appended = self.touch(txn, key).appended as usize;
        let own = match self.ryow {
            Ryow::Never => Vec::new(),
            Ryow::Must | Ryow::May => lists::own_appends(&self.appends, txn, key.0, appended),
        };
        let trim = match elements.len().checked_sub(own.len()) {
            Some(rest) if elements[rest..] == own[..] => own.len(),
            _ if self.ryow == Ryow::May => 0,
            _ => return Err(Contradiction::Internal { op, key }),
        };
        let outside = &elements[..elements.len() - trim];
        if self.repeats == Repeats::EachItsOwn {
            let slot = self.raw_reads.len() as u32;
            self.list_reads.push(ListRead { key: key.0, txn, value, trim: trim as u32, op, slot });
            let is_shown = self.is_shown(op, value);
            self.push_read(RawRead { key: key.0, value: ValueId::UNKNOWN, op }, is_shown);
            if trim > 0 {
                self.bases.push(slot);
            }
            return Ok(());
        }
        let next = self.list_reads.len() as u32;
        let list_read = self.touch(txn, key).list_read;
        if let Some(first) = self.list_reads.get(list_read as usize) {
            let same = lists::outside(self.history, first) == outside;
            return if same {
                Ok(())
            } else {
                Err(Contradiction::NonRepeatable { first: first.op, second: op })
            };
        }
        self.touch(txn, key).list_read = next;
        self.list_reads.push(ListRead { key: key.0, txn, value, trim: trim as u32, op, slot: NONE });
        Ok(())
    }

    /// Sorts scripts by what happens; those whose end is certain are done like any other's operations.
    fn settle_scripts(&mut self, txn: Txn) -> Result<(), Refusal> {
        self.is_scripted = false;
        if self.contents.is_empty() {
            self.contents = self.universe.as_ref().map(Universe::contents).unwrap_or_default();
        }
        let mut counted: Vec<(OpId, u64, Vec<u32>)> = Vec::new();
        for (op, operation) in self.history.transaction(self.problem.txns[txn as usize]).primitives() {
            if let Primitive::WriteIf(WriteIf { count: Some(count), keys: None, .. }) = operation {
                counted.push((op, count, Vec::new()));
            }
        }
        let mut result = Ok(());
        for place in 0..self.touches.len() {
            let script = std::mem::take(&mut self.touches[place].script);
            let key = KeyId(self.touches[place].key);
            let done = match scripts::opened_by(&script, self.known.kind(key) == ListKind::Open) {
                Some(op) => self.settle_open((txn, op, key), &script, &mut counted),
                // What is wrong with one action takes nothing away from those behind it: others may have seen them.
                None => {
                    self.meter.steps(script.len())?;
                    let acted: Vec<_> = script.iter().map(|action| self.act(txn, key, action)).collect();
                    acted.into_iter().collect()
                }
            };
            if matches!(done, Err(Refusal::Open(_))) {
                return done;
            }
            result = result.and(done);
        }
        for (op, count, matched) in counted {
            let mut of: Vec<u32> =
                matched.iter().map(|&it| self.problem.alternatives[it as usize].of).collect();
            of.dedup();
            if (of.len() as u64) < count {
                result = result.and(Err(Refusal::Contradiction(Contradiction::BadRows { op })));
            }
            self.problem.counts.push(Count { txn, op, count, matched });
        }
        result
    }

    fn act(&mut self, txn: Txn, key: KeyId, action: &Action<'h>) -> Result<(), Refusal> {
        match *action {
            Action::Read { op, value } => self.read(txn, op, key, value).map_err(Refusal::Contradiction),
            Action::Claim(claim) => self.claim(txn, key, claim),
            Action::Set { value, op } => {
                self.write(txn, op, key, value);
                Ok(())
            }
            Action::Found(claim) => self.found(txn, key, claim),
            Action::Append { op, element, .. } => {
                self.append(txn, op, key, element);
                Ok(())
            }
            Action::SetIf { .. } => unreachable!("only scripts whose end is certain are done"),
        }
    }

    /// A script whose end depends on what was found.
    fn settle_open(
        &mut self,
        (txn, op, key): (Txn, OpId, KeyId),
        script: &[Action<'h>],
        counted: &mut [(OpId, u64, Vec<u32>)],
    ) -> Result<(), Refusal> {
        if self.repeats == Repeats::EachItsOwn {
            return self.settle_branches((txn, op, key), script, counted);
        }
        let lists = self.known.of_key(key).iter().copied();
        let contents = self.contents.get(key.index()).into_iter().flatten().copied().chain(lists);
        let initial = self.problem.initial[key.index()];
        let contents = contents.chain([ValueId::ABSENT, initial]);
        let outcomes = scripts::outcomes(&self.known, self.ryow, script, contents, &self.meter)?;
        if outcomes.is_empty() {
            return Err(Refusal::Contradiction(Contradiction::NoSource { op, key }));
        }
        let of = self.problem.matches.len() as u32;
        let first = self.problem.alternatives.len() as u32;
        for outcome in outcomes {
            self.meter.steps(1 + counted.len() * outcome.trace.matched.len())?;
            let index = self.problem.alternatives.len() as u32;
            for (op, _, matched) in counted.iter_mut() {
                if outcome.trace.matched.contains(op) {
                    matched.push(index);
                }
            }
            let mut version = NONE;
            if let Some(value) = outcome.trace.left {
                version = self.problem.versions.len() as u32;
                self.problem.version_alternative.resize(version as usize, NONE);
                self.problem.version_alternative.push(index);
                self.problem.versions.push(Version { key: key.0, txn, value });
            }
            let read = self.raw_reads.len() as u32;
            self.raw_reads.push(RawRead { key: key.0, value: ValueId::UNKNOWN, op });
            self.open_reads.push(OpenRead { read, alternative: index, contents: outcome.contents });
            self.problem.alternatives.push(Alternative { of, read: NONE, version, is_possible: true });
        }
        let end = self.problem.alternatives.len() as u32;
        self.problem.matches.push(Match { txn, key: key.0, op, is_settled: false, first, end });
        Ok(())
    }

    /// As [`Self::settle_open`], where every operation sees a version of its own.
    fn settle_branches(
        &mut self,
        (txn, op, key): (Txn, OpId, KeyId),
        script: &[Action<'h>],
        counted: &mut [(OpId, u64, Vec<u32>)],
    ) -> Result<(), Refusal> {
        let mut contents = self.contents.get(key.index()).cloned().unwrap_or_default();
        contents.extend(self.known.of_key(key));
        contents.extend([ValueId::ABSENT, self.problem.initial[key.index()]]);
        contents.sort_unstable();
        contents.dedup();
        let branches = scripts::branches(&self.known, self.ryow, script, &contents, &self.meter)?;
        if branches.is_empty() {
            return Err(Refusal::Contradiction(Contradiction::NoSource { op, key }));
        }
        let is_blind = self.is_blind(txn);
        let of = self.problem.matches.len() as u32;
        let first = self.problem.alternatives.len() as u32;
        for branch in branches {
            self.meter.steps(1 + branch.seen.len() * contents.len())?;
            let index = self.problem.alternatives.len() as u32;
            for (op, _, matched) in counted.iter_mut() {
                if branch.matched.contains(op) {
                    matched.push(index);
                }
            }
            let mut version = NONE;
            if let Some((value, op)) = branch.left {
                version = self.problem.versions.len() as u32;
                self.problem.version_alternative.resize(version as usize, NONE);
                self.problem.version_alternative.push(index);
                self.problem.versions.push(Version { key: key.0, txn, value });
                self.problem.written_late.push((version, op));
            }
            if !branch.bases.is_empty() {
                let read = self.raw_reads.len() as u32;
                self.bases.push(read);
                self.raw_reads.push(RawRead { key: key.0, value: ValueId::UNKNOWN, op });
                self.open_reads.push(OpenRead { read, alternative: index, contents: branch.bases });
            }
            for seen in branch.seen.iter().filter(|_| !is_blind) {
                let fitting = contents.iter().copied().filter(|&it| seen.accepts(&self.known, it));
                let contents: Vec<ValueId> = fitting.collect();
                let read = self.raw_reads.len() as u32;
                let is_shown = seen.is_shown() && self.is_shown(seen.op(), seen.value());
                if seen.is_of_item() {
                    self.items.push(read);
                }
                self.push_read(RawRead { key: key.0, value: ValueId::UNKNOWN, op: seen.op() }, is_shown);
                self.open_reads.push(OpenRead { read, alternative: index, contents });
            }
            self.problem.alternatives.push(Alternative { of, read: NONE, version, is_possible: true });
        }
        let end = self.problem.alternatives.len() as u32;
        self.problem.matches.push(Match { txn, key: key.0, op, is_settled: false, first, end });
        Ok(())
    }

    /// Keeps what the transaction saw from outside and what it left behind.
    fn finish(&mut self, txn: Txn) -> Result<(), Contradiction> {
        let mut contradiction = Ok(());
        for touch in &self.touches {
            if let Some(read) = self.list_reads.get_mut(touch.list_read as usize) {
                read.slot = self.raw_reads.len() as u32;
                self.raw_reads.push(RawRead { key: touch.key, value: ValueId::UNKNOWN, op: read.op });
                let is_empty = lists::outside(self.history, read).is_empty();
                let seen = if is_empty { ValueId::ABSENT } else { ValueId::UNKNOWN };
                contradiction = contradiction.and(touch.agree(&self.known, seen, read.op));
            } else if touch.seen.is_known() {
                self.raw_reads.push(RawRead { key: touch.key, value: touch.seen, op: touch.seen_op });
                contradiction = contradiction.and(touch.agree(&self.known, touch.seen, touch.seen_op));
            } else if let Some(claim) = touch.claims.first() {
                self.claimed.push((self.raw_reads.len() as u32, self.claims.len() as u32));
                self.claims.extend(&touch.claims);
                self.raw_reads.push(RawRead { key: touch.key, value: ValueId::UNKNOWN, op: claim.op });
            }
            if touch.own.is_known() || touch.appended > 0 {
                self.problem.versions.push(Version { key: touch.key, txn, value: touch.own });
            }
        }
        // Keys were first touched in another order than their lists were read.
        let first = self.list_reads.partition_point(|read| read.txn < txn);
        self.list_reads[first..].sort_unstable_by_key(|read| read.slot);
        contradiction
    }
}

impl Touch<'_> {
    /// Whether everything claimed holds of the value that was seen.
    fn agree(&self, known: &Contents<'_>, seen: ValueId, op: OpId) -> Result<(), Contradiction> {
        match self.claims.iter().find(|claim| !claim.accepts(known, seen)) {
            Some(claim) => Err(Contradiction::NonRepeatable { first: op, second: claim.op }),
            None => Ok(()),
        }
    }

    fn see(&mut self, value: ValueId, op: OpId) -> Result<(), Contradiction> {
        if !self.seen.is_known() {
            self.seen = value;
            self.seen_op = op;
        } else if self.seen != value {
            return Err(Contradiction::NonRepeatable { first: self.seen_op, second: op });
        }
        Ok(())
    }
}
