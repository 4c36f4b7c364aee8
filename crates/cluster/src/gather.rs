//! What was not settled where it lies comes to worker 0: transactions as they were read, in the order of the history.

use crate::exchange::{everybody, exchange};
use crate::ids::Ids;
use crate::job::Job;
use crate::setup::Failure;
use crate::source::{Dealt, PARTS_MAX};
use history::formats::{Format, ReadOptions, read_bytes, write_stream};
use history::{Builder, Copier, History, Id, NameRef, TxnId};
use replay::shards::{Label, Suspects};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use timely::worker::Worker;

/// A history in its binary form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed(Vec<u8>);

impl Packed {
    pub(crate) fn new(history: &History) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        write_stream(history, Format::Binary, &mut bytes)
            .map_err(|error| Failure::Worker(error.to_string()))?;
        Ok(Self(bytes))
    }

    pub(crate) fn open(&self) -> Result<History, Failure> {
        let format = Some(Format::Binary);
        let options = ReadOptions { format, allow_empty: true, piece: true, ..ReadOptions::default() };
        let loaded = read_bytes("what another worker sent", &self.0, &options);
        loaded.map(|loaded| loaded.history).map_err(|error| Failure::Worker(error.to_string()))
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Packed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Ok(Packed(bytes.to_vec()))
            }
            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Packed, E> {
                Ok(Packed(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

/// For each session, the stretches that hold it and how many of it come before each.
pub(crate) type Before = FxHashMap<Label, Vec<(u64, u32)>>;

/// How many transactions of each session a worker's stretches hold: so many default names come before the next one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Census {
    stretches: Vec<(u64, Vec<(Label, u32)>)>,
}

impl Census {
    /// Counts a part of the stretch that begins at `order`.
    pub(crate) fn count(&mut self, order: u64, part: &History) {
        if self.stretches.last().is_none_or(|(last, _)| *last != order) {
            self.stretches.push((order, Vec::new()));
        }
        let Some((_, counts)) = self.stretches.last_mut() else { return };
        for id in part.sessions().ids() {
            let (label, more) = (Label::from(part.sessions().get(id)), part.of_session(id).len() as u32);
            match counts.iter_mut().find(|(other, _)| *other == label) {
                Some((_, count)) => *count += more,
                None => counts.push((label, more)),
            }
        }
    }

    /// Counts all that a worker reads.
    pub(crate) fn of(job: &Job, dealt: &[Dealt]) -> Self {
        let mut census = Self::default();
        for dealt in dealt {
            // What cannot be read is reported by whoever needs it.
            let _ = dealt.stretch.read(&job.reading, |part| {
                census.count(dealt.order, &part);
                true
            });
        }
        census
    }

    /// For each session, the stretches that hold it and how many of it come before each.
    pub(crate) fn before(all: Vec<Self>) -> Before {
        let mut stretches: Vec<_> = all.into_iter().flat_map(|census| census.stretches).collect();
        stretches.sort_by_key(|(order, _)| *order);
        let mut before: FxHashMap<Label, (u32, Vec<(u64, u32)>)> = FxHashMap::default();
        for (order, counts) in stretches {
            for (label, count) in counts {
                let (sum, list) = before.entry(label).or_default();
                list.push((order, *sum));
                *sum += count;
            }
        }
        before.into_iter().map(|(label, (_, list))| (label, list)).collect()
    }

    /// How many transactions of a session come before a stretch.
    pub(crate) fn earlier(before: &Before, session: NameRef<'_>, stretch: u64) -> u32 {
        let Some(list) = before.get(&Label::from(session)) else { return 0 };
        list.binary_search_by_key(&stretch, |(order, _)| *order).map_or(0, |place| list[place].1)
    }
}

/// The transactions that have to do with suspects, at worker 0; nothing at the others.
pub(crate) fn gather(
    worker: &mut Worker,
    job: &Job,
    dealt: &[Dealt],
    suspects: &Suspects,
    census: Option<Census>,
    ids: &mut Ids,
) -> Result<Option<History>, Failure> {
    let census = census.unwrap_or_else(|| Census::of(job, dealt));
    let before = Census::before(everybody(worker, census));
    ids.begin();
    let mut parcels: Vec<(usize, u64, Result<Packed, Failure>)> = Vec::new();
    for dealt in dealt {
        let mut number = 0;
        let read = dealt.stretch.read(&job.reading, |part| {
            let order = dealt.order + number % PARTS_MAX;
            number += 1;
            ids.take(&part);
            if let Some(why) = job.refused(&part) {
                parcels.push((0, order, Err(Failure::Input(why))));
            }
            if let Some(packed) = pick(&part, dealt.order, suspects, &before) {
                parcels.push((0, order, packed));
            }
            true
        });
        if let Err(error) = read {
            let error = Failure::Input(job.plain_error(&dealt.stretch.path, &error));
            parcels.push((0, dealt.order, Err(error)));
        }
    }
    ids.unite(worker, job, dealt)?;
    let parcels = parcels.into_iter().map(|(to, order, it)| (to, order, it.map_err(|why| why.to_string())));
    let came = exchange(worker, parcels);
    if worker.index() != 0 {
        return Ok(None);
    }
    let parts = came.into_iter().map(|(_, packed)| packed.map_err(Failure::Input));
    merge(parts).map(Some)
}

/// Parts, one after the other, as one history.
pub(crate) fn merge(parts: impl IntoIterator<Item = Result<Packed, Failure>>) -> Result<History, Failure> {
    // Whether ids are unique, everybody together found out.
    let mut builder = Builder::piece();
    for packed in parts {
        let part = packed?.open()?;
        let mut copier = Copier::new(&part);
        copier.header(&mut builder, |_| true);
        for txn in part.transactions() {
            copier
                .transaction(txn.id(), None, &mut builder)
                .map_err(|error| Failure::Input(error.to_string()))?;
        }
    }
    builder.finish().map_err(|error| Failure::Input(error.to_string()))
}

/// Some transactions of a part; a name for those that have none of their own.
pub(crate) fn copy(
    part: &History,
    txns: &[TxnId],
    initial: impl Fn(history::KeyId) -> bool,
    name: impl Fn(history::Transaction<'_>) -> Option<String>,
) -> Result<Packed, Failure> {
    let mut builder = Builder::piece();
    let mut copier = Copier::new(part);
    copier.header(&mut builder, initial);
    for &txn in txns {
        let name = name(part.transaction(txn));
        copier
            .transaction(txn, name.as_deref(), &mut builder)
            .map_err(|error| Failure::Input(error.to_string()))?;
    }
    Packed::new(&builder.finish().map_err(|error| Failure::Input(error.to_string()))?)
}

fn pick(
    part: &History,
    stretch: u64,
    suspects: &Suspects,
    before: &Before,
) -> Option<Result<Packed, Failure>> {
    let picked = suspects.pick(part);
    let keys = suspects.keys_of(part);
    if picked.is_empty() && !part.initial().iter().any(|row| keys[row.key.index()]) {
        return None;
    }
    let offsets: Vec<u32> =
        (part.sessions().ids()).map(|id| Census::earlier(before, part.sessions().get(id), stretch)).collect();
    // A session called "1" beside a session 1 is told apart by quotes.
    let is_twin =
        |session: &str| session.parse().is_ok_and(|number| before.contains_key(&Label::Int(number)));
    let name = |txn: history::Transaction<'_>| {
        let position = txn.position() + offsets[txn.session().index()];
        Some(match part.sessions().get(txn.session()) {
            NameRef::Str(session) if is_twin(session) => format!("\"{session}\":{position}"),
            session => format!("{session}:{position}"),
        })
    };
    Some(copy(part, &picked, |key| keys[key.index()], name))
}
