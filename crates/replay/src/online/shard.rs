//! A worker of the online checker: the keys that live there.
//!
//! **What.** [`Shard::take`] follows the orders of one message ([`super::post`]) and answers with what came of them: a
//! [`KeySpace`] behind a codec, whose findings carry their [`Rank`].
//!
//! **The answer** is how large the worker is, what it counted, its findings, its shares of predicate writes, and its
//! state if it was asked for.

use super::admit::Piece;
use super::codec::{Input, Output, invalid};
use super::cold::{Cold, ColdKey, ColdRecord, ColdTime};
use super::keys::KeyNo;
use super::post;
use super::program::{Own, Program};
use super::rank::{Phase, Rank, Share, get_found, get_share, put_found, put_share};
use super::save::{get_counts, get_identity, get_program, put_counts};
use super::space::{Counts, KeySpace};
use super::stamp::Stamp;
use super::txns::Txn;
use super::{Found, Settings, Size};
use crate::shards::home;
use isolation::{Level, Ryow};
use std::io;

/// A worker.
pub struct Shard {
    space: Option<KeySpace>,
    cold: Option<Box<dyn Cold>>,
    /// How many pieces of transactions it has taken.
    pieces: u64,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}

/// What a worker knows of how far it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Progress {
    pub(super) pieces: u64,
    pub(super) size: Size,
    pub(super) counts: Counts,
}

/// What came of a message.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) progress: Progress,
    pub(super) told: Vec<(Rank, Found)>,
    pub(super) shares: Vec<(Rank, Share)>,
    pub(super) state: Option<Vec<u8>>,
}

/// A cold store that several workers share: each sees its own keys.
struct OwnKeys {
    cold: Box<dyn Cold>,
    worker: usize,
    workers: usize,
}

impl Cold for OwnKeys {
    fn put(&mut self, records: Vec<ColdRecord>) -> io::Result<()> {
        self.cold.put(records)
    }

    fn newest(&mut self, key: &ColdKey, until: ColdTime) -> io::Result<Option<ColdRecord>> {
        self.cold.newest(key, until)
    }

    fn keys(&mut self, from: Option<&ColdKey>, to: Option<&ColdKey>) -> io::Result<Vec<ColdKey>> {
        let mut keys = self.cold.keys(from, to)?;
        keys.retain(|key| key.name().is_none_or(|name| home(name.as_ref(), self.workers) == self.worker));
        Ok(keys)
    }

    fn forget(&mut self, until: ColdTime) -> io::Result<()> {
        self.cold.forget(until)
    }

    fn bytes(&self) -> u64 {
        self.cold.bytes()
    }
}

impl Shard {
    /// One of so many workers. They may share a cold store.
    pub fn new(worker: usize, workers: usize, cold: Option<Box<dyn Cold>>) -> Self {
        let own = |cold| Box::new(OwnKeys { cold, worker, workers }) as Box<dyn Cold>;
        Self { space: None, cold: cold.map(own), pieces: 0 }
    }

    /// Follows the orders of a message; what went wrong is in the answer.
    pub fn take(&mut self, message: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Output::unsummed(&mut bytes);
        // Writing into a vector cannot fail.
        let _ = match self.follow(message) {
            Ok(answer) => answer.put(&mut out),
            Err(error) => out.byte(1).and_then(|()| out.text(&error.to_string())),
        };
        bytes
    }

    fn follow(&mut self, mut message: &[u8]) -> io::Result<Answer> {
        let mut answer = Answer::default();
        let names = Input::unsummed(&mut message).list(Input::name)?;
        let mut reader = Reader { message, keys: Vec::new() };
        let mut names = Some(names);
        while let Some((&order, rest)) = reader.message.split_first() {
            reader.message = rest;
            match order {
                post::BEGIN => {
                    let settings = reader.settings()?;
                    self.begin(KeySpace::new(&settings));
                }
                post::RESTORE => {
                    let settings = reader.settings()?;
                    let space = KeySpace::restore(&settings, &mut reader.message)
                        .map_err(|damaged| io::Error::new(io::ErrorKind::InvalidData, damaged.to_string()))?;
                    self.begin(space);
                }
                order => {
                    let space = self.space.as_mut().ok_or_else(|| invalid("the first order"))?;
                    space.txns.sessions.extend(names.take().into_iter().flatten());
                    self.pieces += u64::from(matches!(order, post::POINTS | post::PROGRAM));
                    space.obey(order, &mut reader, &mut answer)?;
                }
            }
        }
        if let Some(space) = &mut self.space {
            space.txns.sessions.extend(names.into_iter().flatten());
            space.make_room()?;
            if let Some(ranked) = space.ranked_mut() {
                answer.told = std::mem::take(&mut ranked.told);
                answer.shares = std::mem::take(&mut ranked.shares);
            }
            answer.progress = Progress { pieces: self.pieces, size: space.size(), counts: space.counts };
        }
        Ok(answer)
    }

    fn begin(&mut self, space: KeySpace) {
        let mut space = space.ranking();
        space.spilled.store = self.cold.take();
        self.space = Some(space);
    }
}

/// What is left of a message, and the keys it has named.
struct Reader<'m> {
    message: &'m [u8],
    keys: Vec<KeyNo>,
}

impl Reader<'_> {
    fn get<T>(&mut self, get: impl FnOnce(&mut Input<'_>) -> io::Result<T>) -> io::Result<T> {
        get(&mut Input::unsummed(&mut self.message))
    }

    fn settings(&mut self) -> io::Result<Settings> {
        self.get(|input| {
            let level = Level::parse(&input.text()?).map_err(|_| invalid("a level"))?;
            let ryow = input.text()?;
            let all = [Ryow::Must, Ryow::May, Ryow::Never];
            let ryow = all.into_iter().find(|other| format!("{other:?}") == ryow);
            Ok(Settings {
                level,
                ryow: ryow.ok_or_else(|| invalid("a policy"))?,
                memory_max: input.option(Input::count)?,
            })
        })
    }

    /// A key, by its number in the message; the first time its name follows.
    fn key(&mut self, space: &mut KeySpace) -> io::Result<KeyNo> {
        let number = self.get(|input| input.count())?;
        if let Some(&key) = self.keys.get(number) {
            return Ok(key);
        }
        if number != self.keys.len() {
            return Err(invalid("the number of a key"));
        }
        let name = self.get(|input| input.name())?;
        let key = space.key(name.as_ref())?;
        self.keys.push(key);
        Ok(key)
    }

    fn program(&mut self, space: &mut KeySpace) -> io::Result<Program> {
        let named = self.get(|input| input.count())?;
        for _ in 0..named {
            self.key(space)?;
        }
        let program = self.get(get_program)?;
        let keys = &self.keys;
        Ok(program.part(&mut |number| keys.get(number as usize).copied()))
    }

    /// A transaction that arrives.
    fn txn(&mut self, space: &mut KeySpace) -> io::Result<Txn> {
        let (tick, txn) = self.get(|input| {
            let tick = input.number()?;
            Ok((tick, get_identity(input)?))
        })?;
        if txn.session as usize >= space.txns.sessions.len() {
            return Err(invalid("a session"));
        }
        space.set_rank(Rank { arrival: txn.arrival, ..Rank::new(tick, Phase::Judged) });
        Ok(txn)
    }

    /// What a transaction does to a key.
    fn piece(&mut self, space: &mut KeySpace) -> io::Result<Piece> {
        let key = self.key(space)?;
        self.get(|input| {
            let look = input.option(|input| {
                let op = input.small()?;
                Ok((input.datum()?, op))
            })?;
            Ok(Piece { key, look, own: get_own(input)? })
        })
    }
}

fn get_own(input: &mut Input<'_>) -> io::Result<Own> {
    Ok(match input.byte()? {
        0 => Own::Nothing,
        1 => Own::Value(input.datum()?),
        2 => Own::Appended(input.list(Input::datum)?),
        _ => return Err(invalid("a write")),
    })
}

impl KeySpace {
    fn obey(&mut self, order: u8, reader: &mut Reader<'_>, answer: &mut Answer) -> io::Result<()> {
        match order {
            post::INITIAL => {
                let key = reader.key(self)?;
                let value = reader.get(|input| input.datum())?;
                self.begin_with(key, value);
            }
            post::POINTS => {
                let txn = reader.txn(self)?;
                let count = reader.get(|input| input.count())?;
                let mut pieces = Vec::new();
                for _ in 0..count {
                    pieces.push(reader.piece(self)?);
                }
                self.admit_points(txn, &mut pieces)?;
            }
            post::PROGRAM => {
                let txn = reader.txn(self)?;
                let program = reader.program(self)?;
                self.admit_program(txn, program)?;
            }
            post::ADVANCE => {
                let (tick, watermark, horizon) = reader.get(get_advance)?;
                self.set_rank(Rank::new(tick, Phase::Looks));
                self.advance_to(watermark, horizon)?;
            }
            post::SAVE => {
                let mut state = Vec::new();
                self.save(&mut state)?;
                answer.state = Some(state);
            }
            post::MEMORY => self.memory_max = reader.get(|input| input.option(Input::count))?,
            _ => return Err(invalid("an order")),
        }
        Ok(())
    }
}

fn get_advance(input: &mut Input<'_>) -> io::Result<(u64, Stamp, Stamp)> {
    Ok((input.number()?, input.stamp()?, input.stamp()?))
}

// ---- answers as bytes ----

impl Answer {
    fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.byte(0)?;
        let Progress { pieces, size, counts } = &self.progress;
        out.number(*pieces)?;
        let Size { keys, versions, open_results, transactions, bytes } = *size;
        for number in [keys, versions, open_results, transactions, bytes] {
            out.number(number as u64)?;
        }
        put_counts(out, counts)?;
        out.list(self.told.len(), &self.told, |out, (rank, found)| {
            rank.put(out)?;
            put_found(out, found)
        })?;
        out.list(self.shares.len(), &self.shares, |out, (rank, share)| {
            rank.put(out)?;
            put_share(out, share)
        })?;
        out.option(self.state.as_ref(), |out, state| {
            out.number(state.len() as u64)?;
            out.bytes(state)
        })
    }

    /// What a worker answered, or what went wrong there.
    pub(super) fn get(mut bytes: &[u8]) -> io::Result<Self> {
        let mut input = Input::unsummed(&mut bytes);
        if input.byte()? != 0 {
            return Err(io::Error::other(input.text()?));
        }
        let pieces = input.number()?;
        let size = Size {
            keys: input.count()?,
            versions: input.count()?,
            open_results: input.count()?,
            transactions: input.count()?,
            bytes: input.count()?,
        };
        let counts = get_counts(&mut input)?;
        let told = input.list(|input| Ok((Rank::get(input)?, get_found(input)?)))?;
        let shares = input.list(|input| Ok((Rank::get(input)?, get_share(input)?)))?;
        let has_state = input.flag()?;
        let mut state = None;
        if has_state {
            let len = input.count()?;
            let rest = bytes;
            state = Some(rest.get(..len).ok_or_else(|| invalid("a state"))?.to_vec());
        }
        Ok(Self { progress: Progress { pieces, size, counts }, told, shares, state })
    }
}
