//! The store for versions that do not fit into memory: sorted files, merged now and then.
//!
//! **What.** Every `put` becomes a [`Run`]. A key is looked for in the newest run first: versions of a key are put
//! in the order of their times, so the first run that has one at or before the time asked for has the newest.
//! [`FAN_OUT`] runs of one size class are merged into one of the next, by a thread of its own, so that a lookup
//! meets few runs and a put never waits for a large merge. Merging drops versions that were forgotten.
//!
//! **Invariant.** Files are never changed. Files that the last checkpoint names are kept until the next one names
//! others ([`Spill::named`]), so that a restart finds the store exactly as the checkpoint saw it: what was put
//! later is put again by the replay.
//!
//! **Cost.** A put is one sequential write; a lookup is a filter a run, and mostly one read of 4 KiB. Every version is
//! written once for each size class, `log(n)` times in all.

use crate::run::{Run, RunWriter};
use replay::online::{Cold, ColdKey, ColdRecord, ColdTime};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How many runs of a size class there may be.
const FAN_OUT: usize = 4;

struct Kept {
    run: Arc<Run>,
    class: u32,
}

struct Merge {
    /// Which runs it replaces: places in [`State::runs`], neighbours.
    from: usize,
    count: usize,
    thread: JoinHandle<io::Result<Run>>,
}

struct State {
    folder: PathBuf,
    /// The oldest first.
    runs: Vec<Kept>,
    next: u64,
    forgotten: Option<ColdTime>,
    merge: Option<Merge>,
    /// Files that a checkpoint names.
    named: BTreeSet<String>,
    /// Whether checkpoints name files at all.
    keeps: bool,
    space: Vec<u8>,
}

/// A merge must not go on writing into a folder that somebody else may use next.
impl Drop for State {
    fn drop(&mut self) {
        if let Some(merge) = self.merge.take() {
            let _ = merge.thread.join();
        }
    }
}

/// Sorted files in a folder. Copies are the same store.
#[derive(Clone)]
pub struct Spill {
    state: Arc<Mutex<State>>,
}

impl Spill {
    /// A store in a folder, which is made. Without `keeps`, nothing needs to outlive the process.
    pub fn create(folder: &Path, keeps: bool) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Self::open(folder, &[], keeps)
    }

    /// The store as it was when these files were [`Spill::named`], oldest first; others in the folder are removed.
    pub fn open(folder: &Path, files: &[String], keeps: bool) -> io::Result<Self> {
        let mut runs = Vec::new();
        for name in files {
            let run = Run::open(&folder.join(name))?;
            runs.push(Kept { class: class_of(run.records), run: Arc::new(run) });
        }
        let mut next = 0;
        for file in std::fs::read_dir(folder)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let Some(number) = number_of(&name) else { continue };
            next = next.max(number + 1);
            if !files.contains(&name) {
                std::fs::remove_file(file.path())?;
            }
        }
        let state = State {
            folder: folder.to_owned(),
            runs,
            next,
            forgotten: None,
            merge: None,
            named: files.iter().cloned().collect(),
            keeps,
            space: Vec::new(),
        };
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files it consists of now, oldest first, all on disk.
    pub fn files(&self) -> io::Result<Vec<String>> {
        let state = self.lock();
        for kept in state.runs.iter().filter(|kept| !state.named.contains(&name_of(&kept.run.path))) {
            std::fs::File::open(&kept.run.path)?.sync_all()?;
        }
        Ok(state.runs.iter().map(|kept| name_of(&kept.run.path)).collect())
    }

    /// A checkpoint names these files and no others: what it does not name and the store does not use goes.
    pub fn named(&self, files: &[String]) -> io::Result<()> {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.named, files.iter().cloned().collect());
        for name in before {
            let is_used = state.runs.iter().any(|kept| name_of(&kept.run.path) == name);
            if !is_used && !state.named.contains(&name) {
                std::fs::remove_file(state.folder.join(name))?;
            }
        }
        Ok(())
    }

    /// How many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.lock().runs.iter().map(|kept| kept.run.memory()).sum()
    }

    /// How many bytes of disk it takes.
    pub fn disk(&self) -> u64 {
        self.lock().runs.iter().map(|kept| kept.run.bytes).sum()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn file_name(number: u64) -> String {
    format!("run-{number:010}")
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("run-")?.parse().ok()
}

/// Runs of one class differ by less than a factor of [`FAN_OUT`].
fn class_of(records: u64) -> u32 {
    (records / 1024 + 1).ilog2() / 2
}

impl State {
    fn new_path(&mut self) -> PathBuf {
        self.next += 1;
        self.folder.join(file_name(self.next - 1))
    }

    /// Takes over a merge that is done.
    fn settle_merge(&mut self) -> io::Result<()> {
        let Some(merge) = self.merge.take_if(|merge| merge.thread.is_finished()) else { return Ok(()) };
        let merged = merge.thread.join().map_err(|_| io::Error::other("merging spill files failed"))??;
        let kept = Kept { class: class_of(merged.records), run: Arc::new(merged) };
        let replaced: Vec<Kept> = self.runs.splice(merge.from..merge.from + merge.count, [kept]).collect();
        for old in replaced {
            if !(self.keeps && self.named.contains(&name_of(&old.run.path))) {
                std::fs::remove_file(&old.run.path)?;
            }
        }
        Ok(())
    }

    /// Begins a merge where there are too many runs of a class.
    fn start_merge(&mut self) -> io::Result<()> {
        if self.merge.is_some() {
            return Ok(());
        }
        // The newest stretch of runs that are no larger than its first.
        let Some(last) = self.runs.last() else { return Ok(()) };
        let mut class = last.class;
        let mut from = self.runs.len();
        let mut found = None;
        while let Some(before) = from.checked_sub(1) {
            if self.runs[before].class > class {
                class = self.runs[before].class;
            }
            from = before;
            let count = self.runs[from..].iter().filter(|kept| kept.class == class).count();
            if count >= FAN_OUT {
                found = Some(from);
                break;
            }
        }
        let Some(from) = found else { return Ok(()) };
        let count = self.runs.len() - from;
        let runs: Vec<Arc<Run>> = self.runs[from..].iter().map(|kept| Arc::clone(&kept.run)).collect();
        let (path, forgotten) = (self.new_path(), self.forgotten);
        let thread = std::thread::Builder::new()
            .name("merge".to_owned())
            .spawn(move || merge(&runs, &path, forgotten))?;
        self.merge = Some(Merge { from, count, thread });
        Ok(())
    }
}

/// One run out of several, the oldest first.
fn merge(runs: &[Arc<Run>], path: &Path, forgotten: Option<ColdTime>) -> io::Result<Run> {
    let mut out = RunWriter::create(path)?;
    let mut cursors = Vec::with_capacity(runs.len());
    for run in runs {
        cursors.push(run.from(None)?);
    }
    let mut key: Vec<u8> = Vec::new();
    let mut versions: Vec<(ColdTime, Vec<u8>)> = Vec::new();
    while let Some(least) = cursors.iter().filter_map(|cursor| Some(cursor.get()?.key)).min() {
        key.clear();
        key.extend_from_slice(least);
        versions.clear();
        for cursor in &mut cursors {
            while let Some(entry) = cursor.get().filter(|entry| entry.key == key) {
                versions.push((entry.time, entry.content.to_vec()));
                cursor.step()?;
            }
        }
        // Stable: at equal times the one of the newer run stays last.
        versions.sort_by_key(|(time, _)| *time);
        let oldest = forgotten
            .map_or(0, |until| versions.partition_point(|(time, _)| *time <= until).saturating_sub(1));
        for (time, content) in &versions[oldest..] {
            out.add(&key, time, content)?;
        }
    }
    out.finish()
}

impl Cold for Spill {
    fn put(&mut self, records: Vec<ColdRecord>) -> io::Result<()> {
        let mut state = self.lock();
        state.settle_merge()?;
        let path = state.new_path();
        let mut out = RunWriter::create(&path)?;
        for record in &records {
            out.add(&record.key.0, &record.time, &record.content)?;
        }
        let run = out.finish()?;
        state.runs.push(Kept { class: class_of(run.records), run: Arc::new(run) });
        state.start_merge()
    }

    fn newest(&mut self, key: &ColdKey, until: ColdTime) -> io::Result<Option<ColdRecord>> {
        let mut state = self.lock();
        let mut space = std::mem::take(&mut state.space);
        let mut found = None;
        for kept in state.runs.iter().rev() {
            found = kept.run.newest(&key.0, until, &mut space)?;
            if found.is_some() {
                break;
            }
        }
        state.space = space;
        Ok(found)
    }

    fn keys(&mut self, from: Option<&ColdKey>, to: Option<&ColdKey>) -> io::Result<Vec<ColdKey>> {
        let state = self.lock();
        let mut keys = BTreeSet::new();
        for kept in &state.runs {
            let mut cursor = kept.run.from(from.map(|key| &*key.0))?;
            while let Some(entry) = cursor.get() {
                if to.is_some_and(|to| entry.key >= &*to.0) {
                    break;
                }
                if !keys.contains(entry.key) {
                    keys.insert(entry.key.to_vec());
                }
                cursor.step()?;
            }
        }
        Ok(keys.into_iter().map(|key| ColdKey(key.into())).collect())
    }

    fn forget(&mut self, until: ColdTime) -> io::Result<()> {
        let mut state = self.lock();
        state.forgotten = state.forgotten.max(Some(until));
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.disk()
    }
}
