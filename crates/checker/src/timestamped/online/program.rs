//! What a transaction does to one key, as a function of what the key held before.
//!
//! **What.** A transaction that does more than read and write single keys is kept as a [`Program`] until
//! its verdict is final. Everything it does decomposes by key: given the value that its snapshot holds for
//! a key, [`Program::run`] says what it writes there and which of its results are wrong. A late version
//! changes one key of a snapshot, and only that key is run again.
//!
//! Only counts of predicate writes add up over keys: `run` says which of them matched.
//!
//! The rules are those of the offline replay ([`super::super::ranges`], [`super::super::replay`]).

use super::datum::{Condition, Datum, satisfies};
use super::keys::KeyNo;
use crate::timestamped::Axiom;
use history::Name;
use isolation::Ryow;

/// An operation that outlives the history it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Read { key: KeyNo, seen: Datum },
    Write { key: KeyNo, value: Datum },
    Append { key: KeyNo, value: Datum },
    Range { region: Region, rows: Rows },
    Query { condition: Condition, rows: Rows },
    WriteWhere { condition: Condition, set: Datum, count: Option<u64>, keys: Option<Vec<KeyNo>> },
}

impl Act {
    fn part(&self, number: &mut impl FnMut(KeyNo) -> Option<KeyNo>) -> Option<Self> {
        let mut of_rows = |rows: &Rows| {
            let row = |(key, value): &(KeyNo, Datum)| Some((number(*key)?, value.clone()));
            Rows::new(rows.iter().filter_map(row).collect())
        };
        Some(match self {
            Self::Range { region, rows } => Self::Range { region: region.clone(), rows: of_rows(rows) },
            Self::Query { condition, rows } => {
                Self::Query { condition: condition.clone(), rows: of_rows(rows) }
            }
            Self::Read { key, seen } => Self::Read { key: number(*key)?, seen: seen.clone() },
            Self::Write { key, value } => Self::Write { key: number(*key)?, value: value.clone() },
            Self::Append { key, value } => Self::Append { key: number(*key)?, value: value.clone() },
            Self::WriteWhere { condition, set, count, keys } => Self::WriteWhere {
                condition: condition.clone(),
                set: set.clone(),
                count: *count,
                keys: keys.as_ref().map(|keys| keys.iter().filter_map(|&key| number(key)).collect()),
            },
        })
    }
}

/// The keys that a scan or an iterator speaks of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Region {
    pub(super) from: Option<Name>,
    /// The first name after it.
    pub(super) to: Option<Name>,
    pub(super) visited: Visited,
}

/// How far an iterator got.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Visited {
    All,
    Nothing,
    /// From the beginning to this key.
    UpTo(Name),
    /// From the end to this key.
    DownTo(Name),
}

impl Region {
    pub(super) fn contains(&self, name: &Name) -> bool {
        self.from.as_ref().is_none_or(|from| name >= from)
            && self.to.as_ref().is_none_or(|to| name < to)
            && match &self.visited {
                Visited::All => true,
                Visited::Nothing => false,
                Visited::UpTo(last) => name <= last,
                Visited::DownTo(last) => name >= last,
            }
    }
}

/// What came back, ascending by key number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    by_key: Vec<(KeyNo, Datum)>,
}

impl Rows {
    /// Of rows with the same key, the last counts.
    pub(super) fn new(mut rows: Vec<(KeyNo, Datum)>) -> Self {
        rows.reverse();
        rows.sort_by_key(|(key, _)| *key);
        rows.dedup_by_key(|(key, _)| *key);
        Self { by_key: rows }
    }

    pub(super) fn get(&self, key: KeyNo) -> Datum {
        match self.by_key.binary_search_by_key(&key, |(other, _)| *other) {
            Ok(place) => self.by_key[place].1.clone(),
            Err(_) => Datum::Absent,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(KeyNo, Datum)> {
        self.by_key.iter()
    }
}

/// All operations of a transaction, by their place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Program {
    pub(super) acts: Vec<(u32, Act)>,
}

/// What a transaction leaves in a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Own {
    /// What was there.
    #[default]
    Nothing,
    /// This value.
    Value(Datum),
    /// What was there, with these elements more.
    Appended(Vec<Datum>),
}

impl Own {
    /// The key's value inside the transaction, given its outside value.
    pub(super) fn over(&self, outside: &Datum) -> Datum {
        match self {
            Self::Nothing => outside.clone(),
            Self::Value(value) => value.clone(),
            Self::Appended(more) => outside.append(more.clone().into()),
        }
    }

    pub(super) fn push(&mut self, value: Datum) {
        match self {
            Self::Nothing => *self = Self::Appended(vec![value]),
            Self::Value(before) => *before = before.append(Box::new([value])),
            Self::Appended(more) => more.push(value),
        }
    }
}

/// A result that is not what it had to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) op: u32,
    pub(super) axiom: Axiom,
    pub(super) expected: Datum,
    pub(super) seen: Datum,
    /// Whether the writer of the version in the snapshot is to be named.
    pub(super) names_writer: bool,
}

/// What comes of running a program on one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) own: Own,
    pub(super) wrong: Vec<Wrong>,
    /// The predicate writes that the key satisfied.
    pub(super) matched: Vec<u32>,
}

/// The state of a run.
struct Run<'a> {
    outside: &'a Datum,
    first_look: Option<Datum>,
    ryow: Ryow,
    outcome: Outcome,
}

impl Program {
    /// Whether it speaks of keys that it does not name.
    pub(super) fn is_wide(&self) -> bool {
        self.acts
            .iter()
            .any(|(_, act)| matches!(act, Act::Range { .. } | Act::Query { .. } | Act::WriteWhere { .. }))
    }

    /// Whether it can write keys that it does not name.
    pub(super) fn writes_anywhere(&self) -> bool {
        self.acts.iter().any(|(_, act)| matches!(act, Act::WriteWhere { .. }))
    }

    /// Whether it writes, or can.
    pub(super) fn may_write(&self) -> bool {
        let writes =
            |act: &Act| matches!(act, Act::Write { .. } | Act::Append { .. } | Act::WriteWhere { .. });
        self.acts.iter().any(|(_, act)| writes(act))
    }

    /// What it does to the keys that have a number elsewhere, by that number; and to those that it does not name.
    pub(super) fn part(&self, number: &mut impl FnMut(KeyNo) -> Option<KeyNo>) -> Self {
        let mut acts = Vec::new();
        for (op, act) in &self.acts {
            acts.extend(act.part(number).map(|act| (*op, act)));
        }
        Self { acts }
    }

    /// Whether it may have something to say of a key, beside the keys it names.
    pub(super) fn concerns(&self, name: &Name) -> bool {
        self.acts.iter().any(|(_, act)| match act {
            Act::Range { region, .. } => region.contains(name),
            Act::Query { .. } | Act::WriteWhere { .. } => true,
            _ => false,
        })
    }

    /// The keys it names.
    pub(super) fn named_keys(&self) -> Vec<KeyNo> {
        let mut keys = Vec::new();
        for (_, act) in &self.acts {
            match act {
                Act::Read { key, .. } | Act::Write { key, .. } | Act::Append { key, .. } => keys.push(*key),
                Act::Range { rows, .. } | Act::Query { rows, .. } => {
                    keys.extend(rows.iter().map(|row| row.0))
                }
                Act::WriteWhere { keys: reported, .. } => keys.extend(reported.iter().flatten()),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The counts that the database reported.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.acts.iter().filter_map(|(op, act)| match act {
            Act::WriteWhere { count: Some(count), .. } => Some((*op, *count)),
            _ => None,
        })
    }

    /// What it does to a key that its snapshot holds as `outside`.
    pub(super) fn run(&self, key: KeyNo, name: &Name, outside: &Datum, ryow: Ryow) -> Outcome {
        let mut run = Run { outside, first_look: None, ryow, outcome: Outcome::default() };
        for (op, act) in &self.acts {
            run.step(*op, act, key, name);
        }
        run.outcome
    }
}

impl Run<'_> {
    fn step(&mut self, op: u32, act: &Act, key: KeyNo, name: &Name) {
        match act {
            Act::Read { key: at, seen } if *at == key && seen.is_known() => self.read(op, seen),
            Act::Write { key: at, value } if *at == key => self.outcome.own = Own::Value(value.clone()),
            Act::Append { key: at, value } if *at == key => self.outcome.own.push(value.clone()),
            Act::Range { region, rows } if region.contains(name) => self.row(op, None, rows.get(key)),
            Act::Query { condition, rows } => self.row(op, Some(condition), rows.get(key)),
            Act::WriteWhere { condition, set, keys, .. } => {
                let reported = keys.as_ref().map(|keys| keys.contains(&key));
                self.write_where(op, condition, set, reported);
            }
            _ => {}
        }
    }

    fn wrong(&mut self, op: u32, axiom: Axiom, expected: Datum, seen: &Datum, names_writer: bool) {
        self.outcome.wrong.push(Wrong { op, axiom, expected, seen: seen.clone(), names_writer });
    }

    fn read(&mut self, op: u32, seen: &Datum) {
        match (self.outcome.own.clone(), self.ryow) {
            (Own::Nothing, _) | (_, Ryow::Never) => self.look(op, seen, seen, &[]),
            (Own::Value(value), _) if value == *seen => {}
            (Own::Value(_), Ryow::May) => self.look(op, seen, seen, &[]),
            (Own::Value(value), Ryow::Must) => self.wrong(op, Axiom::Internal, value, seen, false),
            (Own::Appended(more), Ryow::Must) => self.look_through(op, seen, &more),
            (Own::Appended(more), Ryow::May) => {
                // Either with what it appended, or without.
                let before = (self.outcome.wrong.len(), self.first_look.clone());
                self.look_through(op, seen, &more);
                if self.outcome.wrong.len() > before.0 {
                    self.outcome.wrong.truncate(before.0);
                    self.first_look = before.1;
                    self.look(op, seen, seen, &[]);
                }
            }
        }
    }

    /// A read of what the transaction appended to.
    fn look_through(&mut self, op: u32, seen: &Datum, more: &[Datum]) {
        match seen.strip_suffix(more) {
            Some(before) => self.look(op, &before, seen, more),
            None => {
                let known = self.first_look.is_some();
                let outside = self.first_look.as_ref().unwrap_or(self.outside);
                let expected = outside.append(more.to_vec().into());
                self.wrong(op, Axiom::Internal, expected, seen, !known);
            }
        }
    }

    /// What a read shows of the outside: against the first look, or, if this is the first, the snapshot.
    fn look(&mut self, op: u32, shown: &Datum, seen: &Datum, more: &[Datum]) {
        let (axiom, expected) = match &self.first_look {
            Some(first) => (Axiom::Internal, first.clone()),
            None => (Axiom::External, self.outside.clone()),
        };
        if self.first_look.is_none() {
            self.first_look = Some(shown.clone());
        }
        let names_writer = axiom == Axiom::External;
        if more.is_empty() {
            if expected != *shown {
                self.wrong(op, axiom, expected, seen, names_writer);
            }
        } else if !expected.same_as_list(shown) {
            self.wrong(op, axiom, expected.append(more.to_vec().into()), seen, names_writer);
        }
    }

    /// What the key had to contribute to a scan, an iterator or a query.
    fn row(&mut self, op: u32, condition: Option<&Condition>, seen: Datum) {
        let filter = |value: Datum| match condition {
            Some(condition) if !satisfies(condition, &value) => Datum::Absent,
            _ => value,
        };
        let fits = |value: &Datum| match seen.is_known() {
            true => *value == seen,
            false => value.is_present(),
        };
        let outside = filter(self.outside.clone());
        let inside = filter(self.outcome.own.over(self.outside));
        let wrote = self.outcome.own != Own::Nothing;
        let (fitting, expected) = match (wrote, self.ryow) {
            (true, Ryow::Must) => (fits(&inside), inside),
            (true, Ryow::May) => (fits(&inside) || fits(&outside), inside),
            (false, _) | (_, Ryow::Never) => (fits(&outside), outside),
        };
        if !fitting {
            let own = self.ryow != Ryow::Never && matches!(self.outcome.own, Own::Value(_));
            let axiom = if own { Axiom::Internal } else { Axiom::External };
            self.wrong(op, axiom, expected, &seen, !own);
        }
    }

    fn write_where(&mut self, op: u32, condition: &Condition, set: &Datum, reported: Option<bool>) {
        let value = self.outcome.own.over(self.outside);
        let matches = satisfies(condition, &value);
        if matches {
            self.outcome.matched.push(op);
        }
        match (matches, reported) {
            (true, Some(false)) => self.wrong(op, Axiom::External, value, &Datum::Absent, true),
            (false, Some(true)) => self.wrong(op, Axiom::External, Datum::Absent, &value, true),
            _ => {}
        }
        if reported.unwrap_or(matches) {
            self.outcome.own = Own::Value(set.clone());
        }
    }
}
