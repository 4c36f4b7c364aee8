//! The whole state as bytes, and back: a checkpoint.
//!
//! **Format.** `taipan-online` and a version, then every structure in turn: numbers in as few bytes as they
//! need (LEB128), timestamps as three words, texts with their length; a checksum at the end. A state that
//! was written by another version, cut off or damaged is refused as a whole.
//!
//! The same functions write versions for the cold store.

use super::clock::Clock;
use super::codec::{Input, Output, invalid};
use super::delivered::Delivered;
use super::keys::{Before, Key, KeyNo, Keys, Reader, Version, VersionKind};
use super::program::{Act, Program, Region, Rows, Visited, Wrong};
use super::sessions::{Early, Member, Session};
use super::space::{Counts, KeySpace};
use super::stamp::Stamp;
use super::timeline::{Timed, Timeline};
use super::txns::{Class, Moment, NOBODY, Tie, Touch, Txn, TxnNo, Txns};
use super::unknown::Log;
use super::watch::Watcher;
use super::{Counters, Kind, Online, Settings, Shards, Workers, regroup};
use crate::datum::{Condition, Question};
use crate::{Axiom, Refusal};
use history::Comparison;
use std::fmt;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 14] = b"taipan-online\n";
const SPACE_MAGIC: &[u8; 13] = b"taipan-space\n";
const VERSION: u64 = 6;

/// Why a state was refused.
#[derive(Debug)]
pub enum Damaged {
    /// It could not be read.
    Io(io::Error),
    /// It is not a state, or not of this version.
    NotAState,
    /// It was written with other settings; the sentence says which.
    OtherSettings(String),
    /// Its checksum is wrong: it was cut off or changed.
    Checksum,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the saved state: {error}"),
            Self::NotAState => f.write_str("this is not a saved state, or one of another version"),
            Self::OtherSettings(which) => write!(f, "the saved state was made with another {which}"),
            Self::Checksum => f.write_str("the saved state is damaged: its checksum is wrong"),
        }
    }
}

impl std::error::Error for Damaged {}

impl From<io::Error> for Damaged {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

// ---- the writer of a cold version ----

pub(super) fn put_writer(out: &mut Output<'_>, txn: TxnNo, txns: &Txns) -> io::Result<()> {
    if txn == NOBODY {
        return out.flag(false);
    }
    out.flag(true)?;
    put_txn(out, txns.get(txn))
}

/// The writer, held once.
pub(super) fn get_writer(input: &mut Input<'_>, txns: &mut Txns) -> io::Result<TxnNo> {
    if !input.flag()? {
        return Ok(NOBODY);
    }
    let txn = get_txn(input)?;
    Ok(txns.insert(Txn { holders: 1, touched: Vec::new(), ..txn }))
}

pub(super) fn put_class(out: &mut Output<'_>, class: Class) -> io::Result<()> {
    out.byte(match class {
        Class::Writer => 0,
        Class::Reader => 1,
    })
}

pub(super) fn get_class(input: &mut Input<'_>) -> io::Result<Class> {
    Ok(match input.byte()? {
        0 => Class::Writer,
        1 => Class::Reader,
        _ => return Err(invalid("a class")),
    })
}

pub(super) fn put_tie(out: &mut Output<'_>, tie: &Tie) -> io::Result<()> {
    put_class(out, tie.class)?;
    out.flag(tie.at_once)?;
    out.stamp(tie.start)?;
    out.number(u64::from(tie.session))?;
    out.number(tie.position)
}

pub(super) fn get_tie(input: &mut Input<'_>) -> io::Result<Tie> {
    Ok(Tie {
        class: get_class(input)?,
        at_once: input.flag()?,
        start: input.stamp()?,
        session: input.small()?,
        position: input.number()?,
    })
}

/// Who a transaction is, without what the checker has to do with it.
pub(super) fn put_identity(out: &mut Output<'_>, txn: &Txn) -> io::Result<()> {
    out.stamp(txn.start)?;
    out.stamp(txn.commit)?;
    out.number(u64::from(txn.session))?;
    out.number(txn.position)?;
    out.number(txn.arrival)?;
    out.option(txn.id.as_deref(), Output::name)?;
    put_class(out, txn.class)
}

/// The same, held once, as it is when it arrives.
pub(super) fn get_identity(input: &mut Input<'_>) -> io::Result<Txn> {
    Ok(Txn {
        start: input.stamp()?,
        commit: input.stamp()?,
        session: input.small()?,
        position: input.number()?,
        arrival: input.number()?,
        id: input.option(Input::name)?.map(Box::new),
        class: get_class(input)?,
        holders: 1,
        touched: Vec::new(),
    })
}

fn put_txn(out: &mut Output<'_>, txn: &Txn) -> io::Result<()> {
    put_identity(out, txn)?;
    out.number(u64::from(txn.holders))?;
    out.list(txn.touched.len(), &txn.touched, |out, touch| {
        out.number(u64::from(touch.key))?;
        out.byte(u8::from(touch.read) | u8::from(touch.wrote) << 1)
    })
}

fn get_txn(input: &mut Input<'_>) -> io::Result<Txn> {
    let arrived = get_identity(input)?;
    Ok(Txn {
        holders: input.small()?,
        touched: input.list(|input| {
            let key = input.small()?;
            let flags = input.byte()?;
            Ok(Touch { key, read: flags & 1 != 0, wrote: flags & 2 != 0 })
        })?,
        ..arrived
    })
}

// ---- keys ----

fn put_version(out: &mut Output<'_>, version: &Version) -> io::Result<()> {
    out.stamp(version.commit)?;
    out.number(u64::from(version.txn))?;
    out.datum(&version.value)?;
    out.flag(version.kind == VersionKind::Append)
}

fn get_version(input: &mut Input<'_>) -> io::Result<Version> {
    let (commit, txn, value) = (input.stamp()?, input.small()?, input.datum()?);
    let kind = if input.flag()? { VersionKind::Append } else { VersionKind::Set };
    Ok(Version { commit, txn, value, kind })
}

fn put_reader(out: &mut Output<'_>, reader: &Reader) -> io::Result<()> {
    out.stamp(reader.at)?;
    out.byte(u8::from(reader.after) | u8::from(reader.is_right) << 1)?;
    out.number(u64::from(reader.op))?;
    out.number(u64::from(reader.txn))?;
    out.datum(&reader.seen)
}

fn get_reader(input: &mut Input<'_>) -> io::Result<Reader> {
    let at = input.stamp()?;
    let flags = input.byte()?;
    Ok(Reader {
        at,
        after: flags & 1 != 0,
        is_right: flags & 2 != 0,
        op: input.small()?,
        txn: input.small()?,
        seen: input.datum()?,
    })
}

/// A timeline of what is in order.
pub(super) fn in_order<T: Timed>(items: Vec<T>) -> Timeline<T> {
    let mut timeline = Timeline::default();
    for item in items {
        let end = timeline.find(Stamp::MAX, |_| true);
        timeline.insert(end, item);
    }
    timeline
}

fn put_key(out: &mut Output<'_>, key: &Key) -> io::Result<()> {
    out.name(&key.name)?;
    out.list(key.versions.len(), key.versions.iter(), put_version)?;
    let readers = key.readers.as_deref();
    out.list(readers.map_or(0, Timeline::len), readers.into_iter().flat_map(Timeline::iter), put_reader)?;
    out.byte(match key.before {
        Before::Nothing => 0,
        Before::Dropped => 1,
        Before::Cold => 2,
    })?;
    out.byte(u8::from(key.first_is_cold) | u8::from(key.is_fresh) << 1)?;
    out.number(u64::from(key.pins))
}

fn get_key(input: &mut Input<'_>) -> io::Result<Key> {
    let name = input.name()?;
    let versions = in_order(input.list(get_version)?);
    let readers = in_order(input.list(get_reader)?);
    let before = match input.byte()? {
        0 => Before::Nothing,
        1 => Before::Dropped,
        2 => Before::Cold,
        _ => return Err(invalid("a key")),
    };
    let flags = input.byte()?;
    Ok(Key {
        name,
        versions,
        readers: (!readers.is_empty()).then(|| Box::new(readers)),
        before,
        first_is_cold: flags & 1 != 0,
        is_fresh: flags & 2 != 0,
        is_here: true,
        pins: input.small()?,
    })
}

// ---- programs ----

fn put_condition(out: &mut Output<'_>, condition: &Condition) -> io::Result<()> {
    match condition {
        Condition::All(parts) => {
            out.byte(0)?;
            out.list(parts.len(), parts, put_condition)
        }
        Condition::Any(parts) => {
            out.byte(1)?;
            out.list(parts.len(), parts, put_condition)
        }
        Condition::Not(part) => {
            out.byte(2)?;
            put_condition(out, part)
        }
        Condition::Compare { column, with, constant } => {
            out.byte(3)?;
            out.text(column)?;
            out.text(with.symbol())?;
            out.datum(constant)
        }
    }
}

fn put_question(out: &mut Output<'_>, question: &Question) -> io::Result<()> {
    match question {
        Question::Where(condition) => {
            out.byte(0)?;
            put_condition(out, condition)
        }
        Question::Is(expected) => {
            out.byte(1)?;
            out.datum(expected)
        }
    }
}

fn get_question(input: &mut Input<'_>) -> io::Result<Question> {
    Ok(match input.byte()? {
        0 => Question::Where(get_condition(input)?),
        1 => Question::Is(input.datum()?),
        _ => return Err(invalid("a test")),
    })
}

fn get_condition(input: &mut Input<'_>) -> io::Result<Condition> {
    input.nested(|input| {
        Ok(match input.byte()? {
            0 => Condition::All(input.list(get_condition)?),
            1 => Condition::Any(input.list(get_condition)?),
            2 => Condition::Not(Box::new(get_condition(input)?)),
            3 => {
                let column = input.text()?.into();
                let symbol = input.text()?;
                let with = Comparison::ALL.iter().find(|(name, _)| *name == symbol);
                let with = with.ok_or_else(|| invalid("a comparison"))?.1;
                Condition::Compare { column, with, constant: input.datum()? }
            }
            _ => return Err(invalid("a predicate")),
        })
    })
}

fn put_rows(out: &mut Output<'_>, rows: &Rows) -> io::Result<()> {
    out.list(rows.iter().count(), rows.iter(), |out, (key, value)| {
        out.number(u64::from(*key))?;
        out.datum(value)
    })
}

fn get_rows(input: &mut Input<'_>) -> io::Result<Rows> {
    Ok(Rows::new(input.list(|input| Ok((input.small()?, input.datum()?)))?))
}

fn put_act(out: &mut Output<'_>, (op, act): &(u32, Act)) -> io::Result<()> {
    out.number(u64::from(*op))?;
    match act {
        Act::Read { key, seen } => {
            out.byte(0)?;
            out.number(u64::from(*key))?;
            out.datum(seen)
        }
        Act::Write { key, value } => {
            out.byte(1)?;
            out.number(u64::from(*key))?;
            out.datum(value)
        }
        Act::Append { key, value } => {
            out.byte(2)?;
            out.number(u64::from(*key))?;
            out.datum(value)
        }
        Act::Range { region, rows } => {
            out.byte(3)?;
            out.option(region.from.as_ref(), Output::name)?;
            out.option(region.to.as_ref(), Output::name)?;
            match &region.visited {
                Visited::All => out.byte(0)?,
                Visited::Nothing => out.byte(1)?,
                Visited::UpTo(name) => {
                    out.byte(2)?;
                    out.name(name)?;
                }
                Visited::DownTo(name) => {
                    out.byte(3)?;
                    out.name(name)?;
                }
            }
            put_rows(out, rows)
        }
        Act::Query { question, rows } => {
            out.byte(4)?;
            put_question(out, question)?;
            put_rows(out, rows)
        }
        Act::WriteIf { only, question, set, count, keys } => {
            out.byte(5)?;
            out.option(*only, |out, key| out.number(u64::from(key)))?;
            put_question(out, question)?;
            out.datum(set)?;
            out.option(*count, Output::number)?;
            out.option(keys.as_ref(), |out, keys| {
                out.list(keys.len(), keys, |out, key| out.number(u64::from(*key)))
            })
        }
    }
}

fn get_act(input: &mut Input<'_>) -> io::Result<(u32, Act)> {
    let op = input.small()?;
    let act = match input.byte()? {
        0 => Act::Read { key: input.small()?, seen: input.datum()? },
        1 => Act::Write { key: input.small()?, value: input.datum()? },
        2 => Act::Append { key: input.small()?, value: input.datum()? },
        3 => {
            let (from, to) = (input.option(Input::name)?, input.option(Input::name)?);
            let visited = match input.byte()? {
                0 => Visited::All,
                1 => Visited::Nothing,
                2 => Visited::UpTo(input.name()?),
                3 => Visited::DownTo(input.name()?),
                _ => return Err(invalid("a range")),
            };
            Act::Range { region: Region { from, to, visited }, rows: get_rows(input)? }
        }
        4 => Act::Query { question: get_question(input)?, rows: get_rows(input)? },
        5 => Act::WriteIf {
            only: input.option(Input::small)?,
            question: get_question(input)?,
            set: input.datum()?,
            count: input.option(Input::number)?,
            keys: input.option(|input| input.list(Input::small))?,
        },
        _ => return Err(invalid("an operation")),
    };
    Ok((op, act))
}

pub(super) fn put_program(out: &mut Output<'_>, program: &Program) -> io::Result<()> {
    out.list(program.acts.len(), &program.acts, put_act)
}

pub(super) fn get_program(input: &mut Input<'_>) -> io::Result<Program> {
    Ok(Program { acts: input.list(get_act)? })
}

pub(super) fn axiom_number(axiom: Axiom) -> u8 {
    Axiom::ALL.iter().position(|&other| other == axiom).unwrap_or(0) as u8
}

fn put_watcher(out: &mut Output<'_>, (txn, watcher): (&TxnNo, &Watcher)) -> io::Result<()> {
    out.number(u64::from(*txn))?;
    put_moment(out, watcher.look)?;
    put_program(out, &watcher.program)?;
    out.list(watcher.wrong.len(), &watcher.wrong, |out, (key, wrongs)| {
        out.number(u64::from(*key))?;
        out.list(wrongs.len(), wrongs, |out, wrong| {
            out.number(u64::from(wrong.op))?;
            out.byte(axiom_number(wrong.axiom))?;
            out.datum(&wrong.expected)?;
            out.datum(&wrong.seen)?;
            out.flag(wrong.names_writer)
        })
    })?;
    out.list(watcher.matched.len(), &watcher.matched, |out, (op, count)| {
        out.number(u64::from(*op))?;
        out.number(*count)
    })?;
    out.list(watcher.pinned.len(), &watcher.pinned, |out, key| out.number(u64::from(*key)))
}

fn get_watcher(input: &mut Input<'_>) -> io::Result<(TxnNo, Watcher)> {
    let txn = input.small()?;
    let look = get_moment(input)?;
    let program = get_program(input)?;
    let wrong = input.list(|input| {
        let key: KeyNo = input.small()?;
        let wrongs = input.list(|input| {
            let op = input.small()?;
            let axiom = *Axiom::ALL.get(usize::from(input.byte()?)).ok_or_else(|| invalid("an axiom"))?;
            Ok(Wrong {
                op,
                axiom,
                expected: input.datum()?,
                seen: input.datum()?,
                names_writer: input.flag()?,
            })
        })?;
        Ok((key, wrongs))
    })?;
    let matched = input.list(|input| Ok((input.small()?, input.number()?)))?;
    let pinned = input.list(Input::small)?;
    let watcher = Watcher {
        look,
        program,
        wrong: wrong.into_iter().collect(),
        matched: matched.into_iter().collect(),
        pinned,
    };
    Ok((txn, watcher))
}

fn put_moment(out: &mut Output<'_>, moment: Moment) -> io::Result<()> {
    out.stamp(moment.stamp)?;
    out.flag(moment.after)?;
    out.number(u64::from(moment.txn))
}

fn get_moment(input: &mut Input<'_>) -> io::Result<Moment> {
    Ok(Moment { stamp: input.stamp()?, after: input.flag()?, txn: input.small()? })
}

// ---- sessions ----

fn put_member(out: &mut Output<'_>, member: &Member) -> io::Result<()> {
    out.option(member.id.as_deref(), Output::name)?;
    out.stamp(member.start)?;
    out.stamp(member.commit)?;
    put_tie(out, &member.tie)
}

fn get_member(input: &mut Input<'_>) -> io::Result<Member> {
    Ok(Member {
        id: input.option(Input::name)?.map(Box::new),
        start: input.stamp()?,
        commit: input.stamp()?,
        tie: get_tie(input)?,
    })
}

fn put_session(out: &mut Output<'_>, session: &Session) -> io::Result<()> {
    out.number(session.arrived)?;
    out.option(session.next, Output::number)?;
    out.list(session.early.len(), &session.early, |out, (seq, early)| {
        out.number(*seq)?;
        out.option(early.member.as_ref(), put_member)?;
        out.stamp(early.patience)
    })?;
    out.list(session.lost.len(), &session.lost, |out, (first, last)| {
        out.number(*first)?;
        out.number(*last)
    })?;
    out.option(session.last.as_deref(), put_member)
}

fn get_session(input: &mut Input<'_>) -> io::Result<Session> {
    Ok(Session {
        arrived: input.number()?,
        next: input.option(Input::number)?,
        early: input
            .list(|input| {
                let seq = input.number()?;
                Ok((seq, Early { member: input.option(get_member)?, patience: input.stamp()? }))
            })?
            .into_iter()
            .collect(),
        lost: input.list(|input| Ok((input.number()?, input.number()?)))?,
        last: input.option(get_member)?.map(Box::new),
    })
}

pub(super) fn put_counters(out: &mut Output<'_>, counters: &Counters) -> io::Result<()> {
    let Counters {
        received,
        settled,
        operations,
        provisional,
        flips,
        rechecks,
        found,
        took_effect,
        evicted,
        fetched,
    } = counters;
    for number in [received, settled, operations, provisional, flips, rechecks, took_effect, evicted, fetched]
    {
        out.number(*number)?;
    }
    out.list(found.len(), found, |out, count| out.number(*count))
}

pub(super) fn get_counters(input: &mut Input<'_>) -> io::Result<Counters> {
    let mut counters = Counters {
        received: input.number()?,
        settled: input.number()?,
        operations: input.number()?,
        provisional: input.number()?,
        flips: input.number()?,
        rechecks: input.number()?,
        took_effect: input.number()?,
        evicted: input.number()?,
        fetched: input.number()?,
        found: [0; Kind::ALL.len()],
    };
    let found = input.list(Input::number)?;
    if found.len() != counters.found.len() {
        return Err(invalid("a counter"));
    }
    counters.found.copy_from_slice(&found);
    Ok(counters)
}

pub(super) fn put_counts(out: &mut Output<'_>, counts: &Counts) -> io::Result<()> {
    let Counts { provisional, flips, rechecks, evicted, fetched } = *counts;
    [provisional, flips, rechecks, evicted, fetched].into_iter().try_for_each(|number| out.number(number))
}

pub(super) fn get_counts(input: &mut Input<'_>) -> io::Result<Counts> {
    Ok(Counts {
        provisional: input.number()?,
        flips: input.number()?,
        rechecks: input.number()?,
        evicted: input.number()?,
        fetched: input.number()?,
    })
}

// ---- the whole ----

fn put_checksum(out: &mut Output<'_>) -> io::Result<()> {
    let checksum = out.checksum;
    out.bytes(&checksum.to_le_bytes())
}

fn get_checksum(input: &mut Input<'_>) -> Result<(), Damaged> {
    let expected = input.checksum;
    match input.bytes::<8>()? == expected.to_le_bytes() {
        true => Ok(()),
        false => Err(Damaged::Checksum),
    }
}

impl KeySpace {
    /// Writes the state of a shard. What it found must have been taken.
    pub(super) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Output::new(out);
        out.bytes(SPACE_MAGIC)?;
        out.number(VERSION)?;
        out.stamp(self.watermark)?;
        out.stamp(self.horizon)?;
        out.number(self.spilled.hand as u64)?;
        out.flag(self.spilled.is_used)?;
        put_counts(&mut out, &self.counts)?;
        out.list(self.txns.sessions.len(), &self.txns.sessions, Output::name)?;
        out.number(self.txns.slot_count() as u64)?;
        out.list(self.txns.all().count(), self.txns.all(), |out, (number, txn)| {
            out.number(u64::from(number))?;
            put_txn(out, txn)
        })?;
        out.number(self.keys.slot_count() as u64)?;
        out.list(self.keys.len(), self.keys.all(), |out, key| {
            out.number(u64::from(key))?;
            put_key(out, self.keys.get(key))
        })?;
        for queue in [&self.looks, &self.commits] {
            out.list(queue.len(), queue.iter(), |out, (stamp, txn)| {
                out.stamp(*stamp)?;
                out.number(u64::from(*txn))
            })?;
        }
        let mut watchers: Vec<(&TxnNo, &Watcher)> = self.watch.by_txn.iter().collect();
        watchers.sort_by_key(|(txn, _)| **txn);
        out.list(watchers.len(), watchers, put_watcher)?;
        out.list(self.watch.order.len(), self.watch.order.iter(), |out, moment| put_moment(out, *moment))?;
        out.list(self.empty.len(), &self.empty, |out, key| out.number(u64::from(*key)))?;
        put_checksum(&mut out)
    }

    /// Reads what [`KeySpace::save`] wrote.
    pub(super) fn restore(settings: &Settings, input: &mut dyn Read) -> Result<Self, Damaged> {
        let mut input = Input::new(input);
        if input.bytes::<13>()? != *SPACE_MAGIC || input.number()? != VERSION {
            return Err(Damaged::NotAState);
        }
        let mut space = Self::new(settings);
        space.read_state(&mut input)?;
        get_checksum(&mut input)?;
        space.count_what_is_held();
        Ok(space)
    }

    fn read_state(&mut self, input: &mut Input<'_>) -> io::Result<()> {
        self.watermark = input.stamp()?;
        self.horizon = input.stamp()?;
        self.spilled.hand = input.count()?;
        self.spilled.is_used = input.flag()?;
        self.counts = get_counts(input)?;
        self.txns.sessions = input.list(Input::name)?;
        let slots = bounded(input.count()?)?;
        let records = input.list(|input| Ok((within(input.small()?, slots)?, get_txn(input)?)))?;
        self.txns.restore(records, slots);
        let slots = bounded(input.count()?)?;
        let keys = input.list(|input| Ok((within(input.small()?, slots)?, get_key(input)?)))?;
        self.keys = Keys::restore(keys, slots);
        for queue in [&mut self.looks, &mut self.commits] {
            *queue = in_order(input.list(|input| Ok((input.stamp()?, input.small()?)))?);
        }
        self.watch.by_txn = input.list(get_watcher)?.into_iter().collect();
        self.watch.order = in_order(input.list(get_moment)?);
        self.empty = input.list(Input::small)?;
        Ok(())
    }
}

impl Online {
    /// Writes the whole state, one shard after the other. Findings must have been taken after [`Online::catch_up`].
    pub fn save(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.catch_up()?;
        self.save_arrivals(out)?;
        match &self.shards {
            Shards::Here(space) => space.save(out),
            Shards::Away(_) => self.save_away(out),
        }
    }

    /// What is kept where transactions arrive.
    fn save_arrivals(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Output::new(out);
        out.bytes(MAGIC)?;
        out.number(VERSION)?;
        out.text(self.settings.level.name())?;
        out.text(&format!("{:?}", self.settings.ryow))?;
        out.number(self.shards.count() as u64)?;
        out.stamp(self.watermark)?;
        out.stamp(self.horizon)?;
        out.stamp(self.newest)?;
        out.number(self.next_number)?;
        put_counters(&mut out, &self.counters)?;
        out.list(self.names.len(), &self.names, Output::name)?;
        out.list(self.sessions.all.len(), &self.sessions.all, put_session)?;
        out.list(self.pending.len(), self.pending.iter(), |out, stamp| out.stamp(*stamp))?;
        self.clock.put(&mut out)?;
        self.delivered.put(&mut out)?;
        self.log.put(&mut out)?;
        put_checksum(&mut out)
    }

    /// Reads a state that [`Online::save`] wrote with the same settings, on however many workers. A cold store must be given
    /// with what it held then.
    pub fn restore(settings: Settings, input: &mut dyn Read) -> Result<Self, Damaged> {
        let mut online = Self::new(settings).map_err(refused)?;
        let spaces = online.restore_arrivals(input)?;
        let [space] =
            regroup::deal(spaces, 1, &online.settings).try_into().map_err(|_| Damaged::NotAState)?;
        online.shards = Shards::Here(Box::new(space));
        Ok(online)
    }

    /// As [`Online::restore`], with its keys on workers.
    pub fn restore_on(
        settings: Settings,
        input: &mut dyn Read,
        workers: Box<dyn Workers>,
    ) -> Result<Self, Damaged> {
        let mut online = Self::new(settings).map_err(refused)?;
        let spaces = online.restore_arrivals(input)?;
        let spaces = regroup::deal(spaces, workers.count().max(1), &online.settings);
        online.hand_over(spaces, workers)?;
        Ok(online)
    }

    /// Takes what is kept where transactions arrive, and gives back the shards.
    fn restore_arrivals(&mut self, source: &mut dyn Read) -> Result<Vec<KeySpace>, Damaged> {
        let mut input = Input::new(source);
        if input.bytes::<14>()? != *MAGIC || input.number()? != VERSION {
            return Err(Damaged::NotAState);
        }
        if input.text()? != self.settings.level.name() {
            return Err(Damaged::OtherSettings("level".into()));
        }
        if input.text()? != format!("{:?}", self.settings.ryow) {
            return Err(Damaged::OtherSettings("policy on reads of own writes".into()));
        }
        let shards = input.count()?;
        self.read_arrivals(&mut input)?;
        get_checksum(&mut input)?;
        self.count_arrivals();
        (0..shards).map(|_| KeySpace::restore(&self.settings, source)).collect()
    }

    fn read_arrivals(&mut self, input: &mut Input<'_>) -> io::Result<()> {
        self.watermark = input.stamp()?;
        self.horizon = input.stamp()?;
        self.newest = input.stamp()?;
        self.next_number = input.number()?;
        self.counters = get_counters(input)?;
        self.names = input.list(Input::name)?;
        self.sessions.all = input.list(get_session)?;
        self.pending = in_order(input.list(Input::stamp)?);
        self.clock = Clock::get(input)?;
        self.delivered = Delivered::get(input)?;
        self.log = Log::get(input)?;
        Ok(())
    }

    /// Restores what follows from the rest.
    fn count_arrivals(&mut self) {
        for (number, name) in self.names.iter().enumerate().take(self.sessions.all.len()) {
            self.sessions.by_name.insert(name.clone(), number as u32);
        }
        for (number, session) in self.sessions.all.iter().enumerate() {
            if !session.early.is_empty() {
                self.sessions.waiting.push(number as u32);
                self.sessions.early_count += session.early.len();
            }
        }
    }
}

fn refused(refusal: Refusal) -> Damaged {
    Damaged::OtherSettings(refusal.to_string())
}

/// A number of slots that a damaged state cannot make absurd.
fn bounded(slots: usize) -> io::Result<usize> {
    if slots > 1 << 31 { Err(invalid("a number of slots")) } else { Ok(slots) }
}

fn within(number: u32, slots: usize) -> io::Result<u32> {
    if (number as usize) < slots { Ok(number) } else { Err(invalid("a slot")) }
}
