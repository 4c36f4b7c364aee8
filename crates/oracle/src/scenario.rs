//! What is left to explain once outcomes and matches are chosen: for every transaction and key, a list of
//! reads and writes.
//!
//! **What.** A scenario fixes two of the things that an explanation chooses: which unknown transactions
//! took effect, and which keys every predicate write matched. After that keys are independent of each
//! other: operations on many keys fall apart into one [`Action`] a key, because their results say for each
//! key what was there. [`each`] tries all scenarios.
//!
//! **Cost.** 2ᵘ outcomes of u unknown transactions, times 2ᵏ matches of every predicate write over k keys
//! that it can match and whose database did not report them.

use super::content::Content;
use super::{Effort, Stop, TooLarge, admit};
use history::{History, Id, KeyId, Operation, Predicate, Range, Row, Status, TxnId, ValueId, Values};
use std::collections::BTreeMap;

/// A choice of outcomes and matches.
pub(super) struct Scenario<'h> {
    /// Transactions that took effect.
    pub(super) participants: Vec<Participant<'h>>,
    /// Transactions that did not: aborted ones, and unknown ones without effect.
    pub(super) ghosts: Vec<Participant<'h>>,
}

/// A transaction, key by key.
pub(super) struct Participant<'h> {
    pub(super) txn: TxnId,
    pub(super) keys: BTreeMap<KeyId, Vec<Action<'h>>>,
}

/// What one operation does to one key.
pub(super) struct Action<'h> {
    /// The operation's place in its transaction.
    pub(super) op: usize,
    pub(super) what: What<'h>,
}

pub(super) enum What<'h> {
    /// It saw a content that is as expected.
    Read(Expected<'h>),
    /// It wrote this.
    Set(Content),
    /// It added this.
    Append(ValueId),
}

/// What a result says about the content that was seen.
#[derive(Default)]
pub(super) struct Expected<'h> {
    /// The predicate that was evaluated, and whether it held; none for an item read.
    pub(super) predicate: Option<(Test<'h>, bool)>,
    /// The content that came back, if one did.
    pub(super) content: Option<Content>,
    /// What it was not, where a compare and set failed.
    pub(super) other_than: Option<Content>,
    /// Whether a conditional write asks: those always build on the transaction's own writes.
    pub(super) by_write: bool,
}

/// A predicate on one key's content.
#[derive(Clone, Copy)]
pub(super) enum Test<'h> {
    /// Scans and iterators: something is there.
    Present,
    /// Queries and predicate writes.
    Where(&'h Predicate),
}

impl Test<'_> {
    pub(super) fn holds(self, values: &Values, content: &Content) -> bool {
        match self {
            Self::Present => content.is_present(),
            Self::Where(predicate) => content.satisfies(values, predicate),
        }
    }
}

impl Expected<'_> {
    pub(super) fn accepts(&self, values: &Values, seen: &Content) -> bool {
        self.predicate.is_none_or(|(test, truth)| test.holds(values, seen) == truth)
            && self.content.as_ref().is_none_or(|content| content == seen)
            && self.other_than.as_ref().is_none_or(|other| other != seen)
    }

    /// Whether an item was read: by a point read, or because it satisfied the predicate.
    pub(super) fn reads_item(&self) -> bool {
        self.predicate.is_none_or(|(_, truth)| truth)
    }
}

impl<'h> Participant<'h> {
    pub(super) fn actions(&self, key: KeyId) -> &[Action<'h>] {
        self.keys.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The place of its last operation that says anything.
    pub(super) fn last_op(&self) -> usize {
        self.keys.values().flatten().map(|action| action.op).max().unwrap_or(0)
    }

    pub(super) fn writes_key(&self, key: KeyId) -> bool {
        self.actions(key).iter().any(Action::writes)
    }

    pub(super) fn writes_any(&self) -> bool {
        self.keys.keys().any(|&key| self.writes_key(key))
    }
}

impl Action<'_> {
    pub(super) fn writes(&self) -> bool {
        !matches!(self.what, What::Read(_))
    }

    /// The transaction's own content of the key after this action.
    pub(super) fn apply(&self, current: &Content) -> Content {
        match &self.what {
            What::Read(_) => current.clone(),
            What::Set(content) => content.clone(),
            What::Append(element) => current.append(*element),
        }
    }
}

/// Calls `accepted` with every scenario until one is; whether one was.
pub(super) fn each<'h>(
    history: &'h History,
    effort: &mut Effort<'_>,
    with_ghosts: bool,
    mut accepted: impl FnMut(&Scenario<'h>, &mut Effort<'_>) -> Result<bool, Stop>,
) -> Result<bool, Stop> {
    let count = history.keys().len();
    if count > KEYS_MAX {
        return Err(Stop::TooLarge(TooLarge::Keys { count, max: KEYS_MAX }));
    }
    if history.op_count() > OPERATIONS_MAX {
        return Err(Stop::TooLarge(TooLarge::Operations { count: history.op_count(), max: OPERATIONS_MAX }));
    }
    if with_ghosts {
        admit(history.len(), TRANSACTIONS_WITH_GHOSTS_MAX)?;
    }
    let keys = Keys::new(history);
    let unknown: Vec<TxnId> = history
        .transactions()
        .filter(|txn| txn.status() == Status::Unknown && txn.ops().any(|(_, op)| may_write(&op)))
        .map(|txn| txn.id())
        .collect();
    for outcome in 0u64..1 << unknown.len() {
        let took_effect = |txn: TxnId| match history.transaction(txn).status() {
            Status::Committed => true,
            Status::Aborted => false,
            Status::Unknown => {
                unknown.iter().position(|&other| other == txn).is_some_and(|place| outcome & 1 << place != 0)
            }
        };
        let choices = predicate_writes(history, &keys, with_ghosts, took_effect);
        // An odometer over the matches of all predicate writes.
        let mut place = vec![0; choices.len()];
        'matches: while choices.iter().all(|choice| !choice.matches.is_empty()) {
            effort.step()?;
            let matched = |txn: TxnId, op: usize| {
                let index = choices.iter().position(|choice| (choice.txn, choice.op) == (txn, op));
                index.map_or(0, |index| choices[index].matches[place[index]])
            };
            if let Some(scenario) = build(history, &keys, with_ghosts, took_effect, matched)
                && accepted(&scenario, effort)?
            {
                return Ok(true);
            }
            for (digit, choice) in place.iter_mut().zip(&choices) {
                *digit += 1;
                if *digit < choice.matches.len() {
                    continue 'matches;
                }
                *digit = 0;
            }
            break;
        }
    }
    Ok(false)
}

/// A transaction of unknown outcome that writes nothing has nothing to explain.
fn may_write(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::Write { .. }
            | Operation::Delete { .. }
            | Operation::Append { .. }
            | Operation::Update { .. }
            | Operation::DeleteWhere { .. }
            | Operation::Cas { .. }
    )
}

/// The keys of a history and their order.
struct Keys {
    all: Vec<KeyId>,
    ranks: Vec<u32>,
    /// Contents that a key may ever have, without lists that appends make.
    contents: Vec<Vec<Content>>,
    appended: Vec<bool>,
}

/// A set of keys, by id.
type KeySet = u64;

/// The most keys of a history.
const KEYS_MAX: usize = KeySet::BITS as usize;
/// The most operations of a history.
const OPERATIONS_MAX: usize = 512;
/// The most transactions where those without effect count too.
const TRANSACTIONS_WITH_GHOSTS_MAX: usize = 16;

impl Keys {
    fn new(history: &History) -> Self {
        let all: Vec<KeyId> = history.keys().ids().collect();
        let values = history.values();
        let mut contents: Vec<Vec<Content>> = all
            .iter()
            .map(|&key| vec![Content::of(values, history.initial_value(key)), Content::Absent])
            .collect();
        let mut appended = vec![false; all.len()];
        for (_, operation) in history.transactions().flat_map(|txn| txn.ops()) {
            match operation {
                Operation::Write { key, value } => contents[key.index()].push(Content::of(values, value)),
                Operation::Append { key, .. } => appended[key.index()] = true,
                Operation::Cas { key, write, .. } => contents[key.index()].push(Content::of(values, write)),
                Operation::Update { set, .. } => {
                    contents.iter_mut().for_each(|contents| contents.push(Content::of(values, set)));
                }
                _ => {}
            }
        }
        Self { ranks: history.keys().ranks(), all, contents, appended }
    }

    /// The keys that can ever satisfy a predicate.
    fn matchable(&self, values: &Values, predicate: &Predicate) -> KeySet {
        let can = |key: &KeyId| {
            self.appended[key.index()]
                || self.contents[key.index()].iter().any(|content| content.satisfies(values, predicate))
        };
        self.all.iter().filter(|key| can(key)).fold(0, |set, key| set | 1 << key.0)
    }

    fn rank(&self, key: KeyId) -> u32 {
        self.ranks[key.index()]
    }
}

/// The keys that one predicate write may have matched.
struct MatchChoice {
    txn: TxnId,
    op: usize,
    matches: Vec<KeySet>,
}

fn predicate_writes(
    history: &History,
    keys: &Keys,
    with_ghosts: bool,
    took_effect: impl Fn(TxnId) -> bool,
) -> Vec<MatchChoice> {
    let mut choices = Vec::new();
    for txn in history.transactions() {
        let effective = took_effect(txn.id());
        if !effective && !with_ghosts {
            continue;
        }
        for (op, (_, operation)) in txn.ops().enumerate() {
            if let Operation::Cas { key, ok, .. } = operation {
                let known = ok.filter(|_| effective);
                let did = |set: &KeySet| known.is_none_or(|ok| ok == (*set != 0));
                let matches = [0, 1 << key.0].into_iter().filter(did).collect();
                choices.push(MatchChoice { txn: txn.id(), op, matches });
                continue;
            }
            let (predicate, count, reported) = match operation {
                Operation::Update { predicate, count, keys, .. }
                | Operation::DeleteWhere { predicate, count, keys } => (predicate, count, keys),
                _ => continue,
            };
            let matchable = keys.matchable(history.values(), predicate);
            // What a transaction without effect reported constrains nothing.
            let fits = |set: KeySet| {
                let count_fits = count.is_none_or(|count| count == u64::from(set.count_ones()));
                let keys_fit = reported.is_none_or(|reported| {
                    let as_set = reported.iter().fold(0, |set: KeySet, key| set | 1 << key.0);
                    set == as_set && reported.len() as u32 == set.count_ones()
                });
                !effective || count_fits && keys_fit
            };
            let matches = subsets(matchable).filter(|&set| fits(set)).collect();
            choices.push(MatchChoice { txn: txn.id(), op, matches });
        }
    }
    choices
}

/// All subsets of a set, the empty one first.
fn subsets(of: KeySet) -> impl Iterator<Item = KeySet> {
    std::iter::successors(Some(0), move |&set: &KeySet| {
        let next = set.wrapping_sub(of) & of;
        (next != 0).then_some(next)
    })
}

/// The scenario of a choice; `None` if a result that counts is impossible by itself.
fn build<'h>(
    history: &'h History,
    keys: &Keys,
    with_ghosts: bool,
    took_effect: impl Fn(TxnId) -> bool,
    matched: impl Fn(TxnId, usize) -> KeySet,
) -> Option<Scenario<'h>> {
    let mut scenario = Scenario { participants: Vec::new(), ghosts: Vec::new() };
    for txn in history.transactions() {
        let effective = took_effect(txn.id());
        if !effective && !with_ghosts {
            continue;
        }
        let mut participant = Participant { txn: txn.id(), keys: BTreeMap::new() };
        for (op, (_, operation)) in txn.ops().enumerate() {
            let actions = actions(history, keys, operation, matched(txn.id(), op));
            let actions = match actions {
                Some(actions) => actions,
                None if effective => return None,
                None => Vec::new(),
            };
            for (key, what) in actions {
                participant.keys.entry(key).or_default().push(Action { op, what });
            }
        }
        if effective {
            scenario.participants.push(participant);
        } else {
            scenario.ghosts.push(participant);
        }
    }
    Some(scenario)
}

/// What an operation does to each key; `None` if its result cannot be, whatever the contents were.
fn actions<'h>(
    history: &'h History,
    keys: &Keys,
    operation: Operation<'h>,
    matched: KeySet,
) -> Option<Vec<(KeyId, What<'h>)>> {
    let values = history.values();
    let item = |content| Expected { content: Some(content), ..Expected::default() };
    Some(match operation {
        Operation::Read { value, .. } if !value.is_known() => Vec::new(),
        Operation::Read { key, value, .. } => vec![(key, What::Read(item(Content::of(values, value))))],
        Operation::Write { key, value } => vec![(key, What::Set(Content::of(values, value)))],
        Operation::Delete { key } => vec![(key, What::Set(Content::Absent))],
        Operation::Append { key, value } => vec![(key, What::Append(value))],
        Operation::Cas { key, expect, write, .. } => {
            let expect = Some(Content::of(values, expect));
            let wrote = matched != 0;
            let (content, other_than) = if wrote { (expect, None) } else { (None, expect) };
            let found = Expected { predicate: None, content, other_than, by_write: true };
            let mut actions = vec![(key, What::Read(found))];
            actions.extend(wrote.then(|| (key, What::Set(Content::of(values, write)))));
            actions
        }
        Operation::Scan { rows: None, .. }
        | Operation::Iterate { rows: None, .. }
        | Operation::Query { rows: None, .. } => Vec::new(),
        Operation::Scan { range, rows: Some(rows) } => range_actions(values, keys, range, false, true, rows)?,
        Operation::Iterate { range, reverse, exhausted, rows: Some(rows) } => {
            range_actions(values, keys, range, reverse, exhausted, rows)?
        }
        Operation::Query { predicate, rows: Some(rows) } => {
            let once = |row: &Row| rows.iter().filter(|other| other.key == row.key).count() == 1;
            if !rows.iter().all(once) {
                return None;
            }
            let test = Test::Where(predicate);
            keys.all.iter().map(|&key| (key, row_action(values, test, key, rows))).collect()
        }
        Operation::Update { predicate, set, .. } => {
            predicate_write(keys, predicate, &Content::of(values, set), matched)
        }
        Operation::DeleteWhere { predicate, .. } => {
            predicate_write(keys, predicate, &Content::Absent, matched)
        }
    })
}

fn range_actions<'h>(
    values: &Values,
    keys: &Keys,
    range: Range,
    reverse: bool,
    to_the_end: bool,
    rows: &[Row],
) -> Option<Vec<(KeyId, What<'h>)>> {
    let inside = |key: KeyId| {
        range.from.is_none_or(|from| keys.rank(from) <= keys.rank(key))
            && range.to.is_none_or(|to| keys.rank(key) < keys.rank(to))
    };
    // The distance from where the iteration starts.
    let depth = |key: KeyId| if reverse { u32::MAX - keys.rank(key) } else { keys.rank(key) };
    let ascending = rows.windows(2).all(|pair| depth(pair[0].key) < depth(pair[1].key));
    if !ascending || !rows.iter().all(|row| inside(row.key)) {
        return None;
    }
    let last = if to_the_end { Some(u32::MAX) } else { rows.last().map(|row| depth(row.key)) };
    let visited = keys.all.iter().filter(|&&key| inside(key) && last.is_some_and(|last| depth(key) <= last));
    Some(visited.map(|&key| (key, row_action(values, Test::Present, key, rows))).collect())
}

/// What a row, or that there is none, says about its key.
fn row_action<'h>(values: &Values, test: Test<'h>, key: KeyId, rows: &[Row]) -> What<'h> {
    let row = rows.iter().find(|row| row.key == key);
    let (truth, content) = match row.map(|row| row.value) {
        None => (false, None),
        Some(value) if !value.is_known() => (true, None),
        Some(value) => match Content::of(values, value) {
            Content::Absent => (false, None),
            content => (true, Some(content)),
        },
    };
    What::Read(Expected { predicate: Some((test, truth)), content, ..Expected::default() })
}

fn predicate_write<'h>(
    keys: &Keys,
    predicate: &'h Predicate,
    set: &Content,
    matched: KeySet,
) -> Vec<(KeyId, What<'h>)> {
    let mut actions = Vec::new();
    for &key in &keys.all {
        let truth = matched & 1 << key.0 != 0;
        let predicate = Some((Test::Where(predicate), truth));
        actions.push((key, What::Read(Expected { predicate, by_write: true, ..Expected::default() })));
        if truth {
            actions.push((key, What::Set(set.clone())));
        }
    }
    actions
}
