//! What a transaction does to one key, as a function of what the key held before.
//!
//! **What.** A transaction that does more than read and write single keys is kept as a [`Program`] until
//! its verdict is final. Everything it does decomposes by key: given the value that its snapshot holds for
//! a key, [`Program::run`] says what it writes there and which of its results are wrong. A late version
//! changes one key of a snapshot, and only that key is run again.
//!
//! Only counts of predicate writes add up over keys: `run` says which of them matched.
//!
//! The rules are those of every replay ([`super::super::step`]).

use super::keys::KeyNo;
use crate::Axiom;
use crate::datum::{Datum, Question};
use crate::step::{Local, Misfit, Read, Rules, Standalone, Wrote};
use history::Name;
use isolation::Ryow;

/// An operation that outlives the history it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Read {
        key: KeyNo,
        seen: Datum,
    },
    Write {
        key: KeyNo,
        value: Datum,
    },
    Append {
        key: KeyNo,
        value: Datum,
    },
    Range {
        region: Region,
        rows: Rows,
    },
    Query {
        question: Question,
        rows: Rows,
    },
    WriteIf {
        /// The one key that it is about; none: every key.
        only: Option<KeyNo>,
        question: Question,
        set: Datum,
        count: Option<u64>,
        keys: Option<Vec<KeyNo>>,
    },
}

impl Act {
    fn part(&self, number: &mut impl FnMut(KeyNo) -> Option<KeyNo>) -> Option<Self> {
        let mut of_rows = |rows: &Rows| {
            let row = |(key, value): &(KeyNo, Datum)| Some((number(*key)?, value.clone()));
            Rows::new(rows.iter().filter_map(row).collect())
        };
        Some(match self {
            Self::Range { region, rows } => Self::Range { region: region.clone(), rows: of_rows(rows) },
            Self::Query { question, rows } => Self::Query { question: question.clone(), rows: of_rows(rows) },
            Self::Read { key, seen } => Self::Read { key: number(*key)?, seen: seen.clone() },
            Self::Write { key, value } => Self::Write { key: number(*key)?, value: value.clone() },
            Self::Append { key, value } => Self::Append { key: number(*key)?, value: value.clone() },
            Self::WriteIf { only, question, set, count, keys } => Self::WriteIf {
                only: match only {
                    Some(key) => Some(number(*key)?),
                    None => None,
                },
                question: question.clone(),
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
    /// What is left by a transaction that wrote this and appended that.
    pub(super) fn of<V>((wrote, appended): (&Wrote<V>, &[V]), datum: impl Fn(&V) -> Datum) -> Self {
        let more = || appended.iter().map(&datum).collect::<Vec<Datum>>();
        match wrote {
            Wrote::Nothing => Self::Nothing,
            Wrote::Value(value) if appended.is_empty() => Self::Value(datum(value)),
            Wrote::Value(value) => Self::Value(datum(value).append(more().into())),
            Wrote::Appended => Self::Appended(more()),
        }
    }

    /// The key's value inside the transaction, given its outside value.
    pub(super) fn over(&self, outside: &Datum) -> Datum {
        match self {
            Self::Nothing => outside.clone(),
            Self::Value(value) => value.clone(),
            Self::Appended(more) => outside.append(more.clone().into()),
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

impl Program {
    /// Whether it speaks of keys that it does not name.
    pub(super) fn is_wide(&self) -> bool {
        self.acts.iter().any(|(_, act)| {
            matches!(act, Act::Range { .. } | Act::Query { .. } | Act::WriteIf { only: None, .. })
        })
    }

    /// Whether it may come to write a key that it does not write as things stand.
    pub(super) fn may_come_to_write(&self) -> bool {
        self.acts.iter().any(|(_, act)| matches!(act, Act::WriteIf { .. }))
    }

    /// Whether it writes, or can.
    pub(super) fn may_write(&self) -> bool {
        let writes = |act: &Act| matches!(act, Act::Write { .. } | Act::Append { .. } | Act::WriteIf { .. });
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
            Act::Query { .. } | Act::WriteIf { only: None, .. } => true,
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
                Act::WriteIf { only, keys: reported, .. } => {
                    keys.extend(only.iter().chain(reported.iter().flatten()))
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The counts that the database reported.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.acts.iter().filter_map(|(op, act)| match act {
            Act::WriteIf { count: Some(count), .. } => Some((*op, *count)),
            _ => None,
        })
    }

    /// What it does to a key that its snapshot holds as `outside`.
    pub(super) fn run(&self, key: KeyNo, name: &Name, outside: &Datum, ryow: Ryow) -> Outcome {
        let rules = Rules { values: Standalone, ryow };
        let mut run = Run { outside, local: Local::default(), rules, outcome: Outcome::default() };
        for (op, act) in &self.acts {
            run.step(*op, act, key, name);
        }
        Outcome { own: Own::of(run.local.wrote(), Datum::clone), ..run.outcome }
    }
}

/// The state of a run.
struct Run<'a> {
    outside: &'a Datum,
    local: Local<Datum, Datum>,
    rules: Rules<Standalone>,
    outcome: Outcome,
}

impl Run<'_> {
    fn step(&mut self, op: u32, act: &Act, key: KeyNo, name: &Name) {
        match act {
            Act::Read { key: at, seen } if *at == key => self.read(op, seen),
            Act::Write { key: at, value } if *at == key => self.local.write(value.clone()),
            Act::Append { key: at, value } if *at == key => self.local.append(value.clone()),
            Act::Range { region, rows } if region.contains(name) => self.row(op, None, rows.get(key)),
            Act::Query { question, rows } => self.row(op, Some(question), rows.get(key)),
            Act::WriteIf { only, question, set, keys, .. } if only.is_none_or(|at| at == key) => {
                let reported = keys.as_ref().map(|keys| keys.contains(&key));
                self.write_if(op, question, set, reported);
            }
            _ => {}
        }
    }

    fn wrong(&mut self, op: u32, misfit: Option<Misfit<Datum>>, seen: &Datum) {
        if let Some(Misfit { axiom, expected, names_writer }) = misfit {
            self.outcome.wrong.push(Wrong { op, axiom, expected, seen: seen.clone(), names_writer });
        }
    }

    fn read(&mut self, op: u32, seen: &Datum) {
        let misfit = match self.local.read(seen, self.rules) {
            Read::Right => None,
            Read::First => (self.outside != seen).then(|| Misfit::external(self.outside.clone())),
            Read::Wrong(expected) => Some(Misfit::internal(expected)),
            Read::Open => self.local.read_over(seen, self.outside.clone(), self.rules),
        };
        self.wrong(op, misfit, seen);
    }

    fn row(&mut self, op: u32, question: Option<&Question>, seen: Datum) {
        let misfit = self.local.row(&seen, question, self.outside.clone(), self.rules);
        self.wrong(op, misfit, &seen);
    }

    fn write_if(&mut self, op: u32, question: &Question, set: &Datum, reported: Option<bool>) {
        let found = self.local.find(question, reported, self.outside.clone(), self.rules.values);
        if found.is_match {
            self.outcome.matched.push(op);
        }
        if let Some(value) = found.misreported {
            // The value in question stands on the side that has it.
            let (expected, seen) = match (found.is_match, question) {
                (true, _) => (value, Datum::Absent),
                (false, Question::Is(found)) => (value, found.clone()),
                (false, _) => (Datum::Absent, value),
            };
            self.wrong(op, Some(Misfit::external(expected)), &seen);
        }
        if reported.unwrap_or(found.is_match) {
            self.local.write(set.clone());
        }
    }
}
