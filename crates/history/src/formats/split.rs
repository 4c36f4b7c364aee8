//! A history into shards: files of their own, for several machines to read.
//!
//! What: every transaction goes whole into one shard, `shard-0000.jsonl` and so on; together, in the order of their names,
//! the shards are the history. By session, a session is whole in its shard. By time, a shard is a stretch of time; what
//! has no name of its own gets its default name, since its place in its session no longer tells.
//! Invariant: initial values are in the first shard, the level is in all.
//! Cost: one pass by session, two by time; memory for one part a shard.

use super::convert::ConvertError;
use super::write::{Part, WriteError, Writing};
use super::{Format, ReadError, ReadOptions, read_parts, read_path};
use crate::{Builder, Copier, History, Name, NameRef, SessionId, Transaction};
use rustc_hash::FxHashMap;
use std::path::Path;

/// What decides where a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// Its session.
    Session,
    /// When it committed: by the database's timestamps, else by the client's clock, else its place in the file.
    Time,
}

/// A shard is written when it holds this many operations.
const OPERATIONS_MAX: usize = 1 << 16;
/// So many moments are remembered to find out where to cut.
const MOMENTS_MAX: usize = 1 << 20;

/// Splits a history into shards in a folder, which is made if it is not there; how many transactions each got.
pub fn split(
    input: &Path,
    options: &ReadOptions,
    folder: &Path,
    shards: usize,
    by: SplitBy,
    format: Format,
) -> Result<Vec<u64>, ConvertError> {
    let place = match by {
        SplitBy::Session => Placing::Session(FxHashMap::default()),
        SplitBy::Time => Placing::Time(cuts(input, options, shards)?),
    };
    let failed = |source| WriteError::Io { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        let source = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "the folder is not empty");
        return Err(failed(source).into());
    }
    let ending = format.row().extensions.first().unwrap_or(&"jsonl");
    let mut outs = Vec::new();
    for number in 0..shards.max(1) {
        outs.push(Out::create(&folder.join(format!("shard-{number:04}.{ending}")), format)?);
    }
    let mut splitting = Splitting { place, outs, seen: 0, result: Ok(()) };
    each_part(input, options, |part| {
        splitting.result = splitting.part(&part);
        splitting.result.is_ok()
    })?;
    splitting.result?;
    splitting.outs.into_iter().map(Out::finish).collect()
}

/// Gives a history to `each`, part by part where that is possible.
fn each_part(
    input: &Path,
    options: &ReadOptions,
    mut each: impl FnMut(History) -> bool,
) -> Result<(), ReadError> {
    let mut goes_on = true;
    let take = |part| {
        goes_on = each(part);
        goes_on
    };
    if !read_parts(input, options, take)? && goes_on {
        each(read_path(input, options)?.history);
    }
    Ok(())
}

enum Placing {
    /// Where each session goes.
    Session(FxHashMap<Name, usize>),
    /// When each shard but the first begins.
    Time(Vec<i64>),
}

struct Splitting {
    place: Placing,
    outs: Vec<Out>,
    /// Transactions of the parts before.
    seen: i64,
    result: Result<(), ConvertError>,
}

impl Splitting {
    fn part(&mut self, part: &History) -> Result<(), ConvertError> {
        let sessions: Vec<usize> = match &mut self.place {
            Placing::Time(_) => Vec::new(),
            Placing::Session(known) => {
                let shards = self.outs.len();
                let of = |id: SessionId| {
                    // In turn, as they first occur.
                    let next = known.len() % shards;
                    *known.entry(part.sessions().get(id).to_owned()).or_insert(next)
                };
                part.sessions().ids().map(of).collect()
            }
        };
        let mut copiers: Vec<Copier<'_>> = self.outs.iter().map(|_| Copier::new(part)).collect();
        if self.seen == 0 {
            for (number, (out, copier)) in self.outs.iter_mut().zip(&mut copiers).enumerate() {
                copier.header(&mut out.builder, |_| number == 0);
            }
        }
        for txn in part.transactions() {
            let (shard, id) = match &self.place {
                Placing::Session(_) => (sessions[crate::Id::index(txn.session())], None),
                Placing::Time(cuts) => {
                    let moment = moment(txn, self.seen);
                    (cuts.partition_point(|&cut| cut <= moment), Some(lasting_name(part, txn)))
                }
            };
            self.seen += 1;
            let copied = copiers[shard].transaction(txn.id(), id.as_deref(), &mut self.outs[shard].builder);
            copied.map_err(|error| {
                ConvertError::Read(ReadError::Build { path: self.outs[shard].path.clone(), error })
            })?;
        }
        drop(copiers);
        for out in self.outs.iter_mut().filter(|out| out.builder.op_count() >= OPERATIONS_MAX) {
            out.write(false)?;
        }
        Ok(())
    }
}

/// A name that stays when others of the session lie in other shards. A session called `"1"` is not the session 1.
fn lasting_name(part: &History, txn: Transaction<'_>) -> String {
    let name = txn.name().to_string();
    match part.sessions().get(txn.session()) {
        NameRef::Str(session) if txn.explicit_id().is_none() && session.parse::<i64>().is_ok() => {
            format!("\"{session}\"{}", &name[session.len()..])
        }
        _ => name,
    }
}

/// When a transaction was over; `place` is its place in the file.
fn moment(txn: Transaction<'_>, place: i64) -> i64 {
    match (txn.db(), txn.client()) {
        (Some((_, commit)), _) => commit.physical,
        (None, Some(span)) => span.end,
        (None, None) => place,
    }
}

/// When to cut, so that shards are about equally large.
fn cuts(input: &Path, options: &ReadOptions, shards: usize) -> Result<Vec<i64>, ReadError> {
    let mut moments: Vec<i64> = Vec::new();
    let (mut seen, mut stride) = (0, 1);
    each_part(input, options, |part| {
        for txn in part.transactions() {
            if seen % stride == 0 {
                moments.push(moment(txn, seen));
            }
            seen += 1;
        }
        while moments.len() > MOMENTS_MAX {
            moments = std::mem::take(&mut moments).into_iter().step_by(2).collect();
            stride *= 2;
        }
        true
    })?;
    moments.sort_unstable();
    let cut = |number: usize| moments.get(number * moments.len() / shards.max(1)).copied();
    Ok((1..shards).filter_map(cut).collect())
}

/// A shard while it is written.
struct Out {
    path: std::path::PathBuf,
    builder: Builder,
    writing: Writing<'static>,
    format: Format,
    parts: u64,
    transactions: u64,
    operations: u64,
}

impl Out {
    fn create(path: &Path, format: Format) -> Result<Self, WriteError> {
        Ok(Self {
            path: path.to_owned(),
            builder: Builder::new(),
            writing: Writing::create(path)?,
            format,
            parts: 0,
            transactions: 0,
            operations: 0,
        })
    }

    fn write(&mut self, last: bool) -> Result<(), ConvertError> {
        let failed = |error| ConvertError::Read(ReadError::Build { path: self.path.clone(), error });
        let history = self.builder.take_part().map_err(failed)?;
        let part = Part {
            index: self.parts,
            last,
            transactions_before: self.transactions,
            operations_before: self.operations,
        };
        self.writing.part(&history, self.format, part)?;
        self.parts += 1;
        self.transactions += history.len() as u64;
        self.operations += history.op_count() as u64;
        Ok(())
    }

    fn finish(mut self) -> Result<u64, ConvertError> {
        self.write(true)?;
        self.writing.finish()?;
        Ok(self.transactions)
    }
}
