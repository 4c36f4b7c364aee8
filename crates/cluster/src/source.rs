//! What is read, and by whom.
//!
//! A history is a file, or a folder of shards (`shard-0000.jsonl`, …), which in the order of their names are the history.
//! Files are cut into stretches, and stretches are dealt to workers like cards: so all of them are at about the same
//! time of the history, and the frontier moves.

use crate::exchange::everybody;
use crate::job::Job;
use crate::setup::Failure;
use history::formats::{Stretch, stretches};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use timely::worker::Worker;

/// Whether processes share the input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Every process sees the same files, and reads its part of them.
    All,
    /// Every process has files of its own, and reads all of them.
    Own,
}

/// About how many bytes all workers together read at once: what is under way takes so much memory however many they are.
const STRETCH_BYTES: u64 = 4 << 20;
/// The same where results decide: everything that was read stays anyway, and the fewer parts, the less is looked up.
const STRETCH_BYTES_RESULTS: u64 = 8 << 20;
/// The least that is read at once.
const STRETCH_BYTES_MIN: u64 = 256 << 10;

/// The files of a history: the file itself, or a folder's shards in order.
pub fn files_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let shards = history::formats::shards_of(path).map_err(|error| Failure::Input(error.to_string()))?;
    // A directory may be a history of one of the formats that are.
    Ok(if shards.is_empty() { vec![path.to_owned()] } else { shards })
}

/// A stretch and its place in the history.
#[derive(Clone, Debug)]
pub(crate) struct Dealt {
    /// Larger for later ones.
    pub(crate) order: u64,
    pub(crate) stretch: Stretch,
}

/// How many parts a stretch may be handed out in.
pub(crate) const PARTS_MAX: u64 = 1 << 20;

/// What a process has: the names of its files, and in how many stretches each is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Holding {
    process: usize,
    files: Vec<(String, u64)>,
    error: Option<String>,
}

/// The stretches of a worker.
pub(crate) fn deal(worker: &mut Worker, job: &Job) -> Result<Vec<Dealt>, Failure> {
    let all = if job.replayed().is_none() { STRETCH_BYTES_RESULTS } else { STRETCH_BYTES };
    let cut = cut(job, (all / worker.peers() as u64).max(STRETCH_BYTES_MIN));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let holding = Holding {
        process: job.setup.process(),
        files: cut.iter().flatten().map(|(file, pieces)| (name(file), pieces.len() as u64)).collect(),
        error: cut.as_ref().err().map(ToString::to_string),
    };
    let all = everybody(worker, holding);
    for holding in &all {
        if let Some(error) = &holding.error {
            return Err(Failure::Input(of_process(job, holding.process, error)));
        }
    }
    let cut = cut?;
    let (index, peers) = (worker.index(), worker.peers());
    let (mine, of) = match job.share {
        Share::All => (index, peers),
        Share::Own => (index % job.setup.workers, job.setup.workers),
    };
    // Files of the same name come in the order of processes.
    let mut names: Vec<(&str, usize)> = match job.share {
        Share::All => all[0].files.iter().map(|(name, _)| (name.as_str(), 0)).collect(),
        Share::Own => {
            let of = |holding: &'_ Holding| holding.process;
            all.iter().flat_map(|it| it.files.iter().map(move |(name, _)| (name.as_str(), of(it)))).collect()
        }
    };
    names.sort_unstable();
    names.dedup();
    let process = if job.share == Share::All { 0 } else { job.setup.process() };
    let mut dealt = Vec::new();
    let mut turn = 0;
    for (file, pieces) in cut {
        let name = name(&file);
        let place = names.binary_search(&(name.as_str(), process)).unwrap_or(0) as u64;
        for (number, stretch) in (0..).zip(pieces) {
            if turn % of == mine {
                dealt.push(Dealt { order: ((place << 24) + number) * PARTS_MAX, stretch });
            }
            turn += 1;
        }
    }
    Ok(dealt)
}

/// An error, and whose it is if there are several.
pub(crate) fn of_process(job: &Job, process: usize, error: &str) -> String {
    match job.setup.processes() {
        1 => error.to_owned(),
        _ => format!("process {process}: {error}"),
    }
}

fn cut(job: &Job, len: u64) -> Result<Vec<(PathBuf, Vec<Stretch>)>, Failure> {
    let mut all = Vec::new();
    for path in &job.paths {
        for file in files_of(path)? {
            let pieces =
                stretches(&file, &job.reading, len).map_err(|error| Failure::Input(error.to_string()))?;
            all.push((file, pieces));
        }
    }
    all.sort_by(|a: &(PathBuf, Vec<Stretch>), b| a.0.cmp(&b.0));
    Ok(all)
}

/// The level that a history asks for in its header.
pub fn level_in_header(
    path: &Path,
    reading: &history::formats::ReadOptions,
) -> Result<Option<String>, Failure> {
    let failed = |error: history::formats::ReadError| Failure::Input(error.to_string());
    let Some(first) = files_of(path)?.into_iter().next() else { return Ok(None) };
    let Some(stretch) = stretches(&first, reading, STRETCH_BYTES).map_err(failed)?.into_iter().next() else {
        return Ok(None);
    };
    let mut level = None;
    let read = stretch.read(reading, |part| {
        level = part.level().map(str::to_owned);
        false
    });
    // What is wrong with the file is reported by whoever reads it whole.
    read.map_err(|error| match history::formats::read_path(&first, reading) {
        Err(error) => failed(error),
        Ok(_) => failed(error),
    })?;
    Ok(level)
}
