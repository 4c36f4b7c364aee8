//! The state folder: checkpoints, journals, spilled versions, and what was told.
//!
//! ```text
//! checkpoint-N    a head as JSON in one line, then the saved checker
//! journal-N       what happened since checkpoint N
//! spill/          versions that did not fit into memory
//! findings.jsonl  every finding, one a line, in order of their numbers
//! told            how many of them went out: what stands behind those may not have
//! lock            held by the process that uses the folder
//! ```
//!
//! **Steps of a checkpoint.** Everything told is on disk; the spill's files are on disk; checkpoint N + 1 is written under
//! another name, synced, renamed; journal N + 1 begins; journal N and checkpoint N go. A crash between any two of
//! these leaves one checkpoint that is whole and the journal that belongs to it.

use crate::intake::Place;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// What a checkpoint holds beside the checker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The spill's files, oldest first.
    pub(crate) spill: Vec<String>,
    /// How far each source that can go back has been taken.
    pub(crate) places: Vec<(String, u64, u64)>,
    /// What waits to be joined with a change stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) join: Option<String>,
}

impl Head {
    pub(crate) fn new(spill: Vec<String>, places: &[Place], join: Option<String>) -> Self {
        let places = places.iter().map(|place| (place.source.clone(), place.at.0, place.at.1)).collect();
        Self { spill, places, join }
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        self.places.iter().map(|(source, a, b)| Place { source: source.clone(), at: (*a, *b) }).collect()
    }
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The number of the newest checkpoint; 0 before the first.
    pub(crate) epoch: u64,
    _lock: File,
}

impl Store {
    /// Opens or makes the folder.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder.join("spill"))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"))?;
        lock.try_lock().map_err(|_| {
            io::Error::new(
                io::ErrorKind::AddrInUse,
                format!("{}: another process uses this state folder", folder.display()),
            )
        })?;
        let epoch = newest_checkpoint(folder)?;
        Ok(Self { folder: folder.to_owned(), epoch, _lock: lock })
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.folder.join("spill")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.join(format!("journal-{}", self.epoch))
    }

    pub(crate) fn findings(&self) -> PathBuf {
        self.folder.join("findings.jsonl")
    }

    pub(crate) fn told(&self) -> PathBuf {
        self.folder.join("told")
    }

    /// What is wrong with the newest checkpoint, by name, and what to do about it.
    pub(crate) fn refusal(&self, error: &io::Error) -> io::Error {
        let remedy = match error.kind() {
            io::ErrorKind::InvalidInput => "ask for that one, or begin anew with another state folder",
            _ => "bring the file back from a copy, or begin anew with another state folder",
        };
        let (checkpoint, findings) = (self.checkpoint(), self.findings());
        let told = format!(
            "{}: {error}; {remedy}. What was found so far is in {}",
            checkpoint.display(),
            findings.display()
        );
        io::Error::new(error.kind(), told)
    }

    fn checkpoint(&self) -> PathBuf {
        self.folder.join(format!("checkpoint-{}", self.epoch))
    }

    /// The newest checkpoint: its head, and the checker behind it. None before the first.
    pub(crate) fn load(&self) -> io::Result<Option<(Head, impl Read + use<>)>> {
        if self.epoch == 0 {
            return Ok(None);
        }
        let file = File::open(self.checkpoint()).map_err(|error| self.refusal(&error))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut line = String::new();
        let head = file.read_line(&mut line).and_then(|_| Ok(serde_json::from_str(&line)?));
        Ok(Some((head.map_err(|error| self.refusal(&error))?, file)))
    }

    /// Writes the next checkpoint; from here on the journal is another.
    pub(crate) fn save(
        &mut self,
        head: &Head,
        checker: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let unfinished = self.folder.join("checkpoint.new");
        let mut out = io::BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
        serde_json::to_writer(&mut out, head)?;
        out.write_all(b"\n")?;
        checker(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let old = (self.checkpoint(), self.journal());
        self.epoch += 1;
        std::fs::rename(&unfinished, self.checkpoint())?;
        File::open(&self.folder)?.sync_all()?;
        for path in [old.0, old.1] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn newest_checkpoint(folder: &Path) -> io::Result<u64> {
    let mut newest = 0;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
        if let Some(number) = number("checkpoint-") {
            newest = newest.max(number);
        }
        if let Some(number) = number("checkpoint-").or_else(|| number("journal-")) {
            all.push((number, path.clone()));
        }
    }
    // What a crash left of older ones.
    for (_, path) in all.into_iter().filter(|(number, _)| *number < newest) {
        std::fs::remove_file(path)?;
    }
    Ok(newest)
}

/// A file of lines that are numbered from 0 and added in order; how many it holds is known.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: File,
    /// How many lines it holds.
    pub(crate) count: u64,
    is_dirty: bool,
}

impl Ledger {
    /// Opens the file; a last line that was cut off goes.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let (mut count, mut whole) = (0, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            let len = reader.read_until(b'\n', &mut line)?;
            if len == 0 || line.last() != Some(&b'\n') {
                break;
            }
            count += 1;
            whole += len as u64;
        }
        file.set_len(whole)?;
        let mut ledger = Self { file, count, is_dirty: false };
        io::Seek::seek(&mut ledger.file, io::SeekFrom::End(0))?;
        Ok(ledger)
    }

    pub(crate) fn add(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = lines.join("\n");
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.count += lines.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.file.sync_data()?;
        }
        Ok(())
    }
}

/// A file with one number: up to where something is done.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    /// The number.
    pub(crate) count: u64,
}

impl Mark {
    /// Opens the file; where there is none, the number is `otherwise`. A damaged one says that nothing is done.
    pub(crate) fn open(path: &Path, otherwise: u64) -> io::Result<Self> {
        let is_new = !path.exists();
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let number = std::str::from_utf8(&text).ok().filter(|text| text.len() == MARK_LEN);
        let count = number.and_then(|text| text.trim_end().parse().ok()).unwrap_or(0);
        let mut mark = Self { file, count };
        if is_new {
            mark.set(otherwise)?;
        }
        Ok(mark)
    }

    /// In one write of always the same length, so that a killed process leaves the old number or the new one.
    pub(crate) fn set(&mut self, count: u64) -> io::Result<()> {
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(0))?;
        self.file.write_all(format!("{count:0width$}\n", width = MARK_LEN - 1).as_bytes())?;
        self.count = count;
        Ok(())
    }
}

/// The digits of the largest number, and a line end.
const MARK_LEN: usize = 21;

/// The last lines of a file of findings, at most `max`.
pub(crate) fn last_lines(path: &Path, max: usize) -> io::Result<Vec<String>> {
    let mut last = std::collections::VecDeque::new();
    for line in BufReader::with_capacity(1 << 20, File::open(path)?).lines() {
        last.push_back(line?);
        if last.len() > max {
            last.pop_front();
        }
    }
    Ok(last.into())
}
