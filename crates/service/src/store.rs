//! The state folder: checkpoints, journals, spilled versions, and what was told.
//!
//! ```text
//! checkpoint-N    a head as JSON in one line, then the saved checker; then the length of both, and their XXH3-64
//! journal-N       what happened since checkpoint N
//! journal-N.damaged-1 …    one that is not as it was written, kept aside
//! durable         how many records of journals are on disk for certain
//! spill/          versions that did not fit into memory
//! findings.jsonl  every finding, one a line, in order of their numbers
//! told            how many of them went out: what stands behind those may not have
//! lock            held by the process that uses the folder
//! ```
//!
//! **Steps of a checkpoint.** Everything told is on disk; the spill's files are on disk; checkpoint N + 1 is written under
//! another name, synced; journal N + 1 begins; the checkpoint is renamed; journal N and checkpoint N go. A crash between any
//! two of these leaves one checkpoint that is whole and the journal that belongs to it, so a file that is missing is
//! damage.

use crate::intake::Place;
use crate::journal::{self, Begin, Journal, Loaded};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// What a checkpoint holds beside the checker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The spill's files, oldest first.
    pub(crate) spill: Vec<String>,
    /// How far each source that can go back has been taken.
    pub(crate) places: Vec<(String, u64, u64)>,
    /// How many records of journals it holds.
    pub(crate) records: u64,
    /// What waits to be joined with a change stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) join: Option<String>,
}

impl Head {
    pub(crate) fn new(spill: Vec<String>, places: &[Place], records: u64, join: Option<String>) -> Self {
        let places = places.iter().map(|place| (place.source.clone(), place.at.0, place.at.1)).collect();
        Self { spill, places, records, join }
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
                format!("another process uses the state folder {}", folder.display()),
            )
        })?;
        let epoch = newest_checkpoint(folder)?;
        Ok(Self { folder: folder.to_owned(), epoch, _lock: lock })
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.folder.join("spill")
    }

    fn journal(&self, epoch: u64) -> PathBuf {
        self.folder.join(format!("journal-{epoch}"))
    }

    fn durable(&self) -> PathBuf {
        self.folder.join("durable")
    }

    /// The journal behind a checkpoint that holds so many records; none if the folder is new. A record that was torn when
    /// the process ended is left out and kept aside, with a note. Anything else that is not as it was written is refused; a
    /// journal that is damaged itself gets another name, under which nothing is ever taken up or overwritten.
    pub(crate) fn load_journal(
        &self,
        records: u64,
        asked: &str,
        notes: &mut Vec<String>,
    ) -> io::Result<Option<Loaded>> {
        let path = self.journal(self.epoch);
        let durable = journal::marked(&self.durable())?;
        let refused = |what: String| Err(self.refusal_of(&path, &invalid(what)));
        let damaged = |what: String| {
            let aside = kept_aside(&path)?;
            refused(format!("{what}; the damaged file is kept as {}", aside.display()))
        };
        let Some(loaded) = journal::load(&path)? else {
            return match asides(&path).take_while(|aside| aside.exists()).last() {
                Some(aside) => {
                    refused(format!("the journal is missing; a damaged one is kept as {}", aside.display()))
                }
                None if self.epoch == 0 && durable == 0 => Ok(None),
                None => refused("the journal is missing".to_owned()),
            };
        };
        let at = loaded.whole;
        if let Some(later) = loaded.later {
            let missing = loaded.next.max(records);
            return damaged(format!(
                "the journal is damaged at byte {at}: record {missing} cannot be read, although the later record {later} can"
            ));
        }
        let Some((begin, first)) = &loaded.begin else {
            // A crash right at the beginning of a new state.
            if self.epoch == 0 && durable == 0 {
                return Ok(None);
            }
            return damaged("the beginning of the journal is damaged".to_owned());
        };
        if (begin.epoch, *first) != (self.epoch, records) {
            return refused(format!(
                "this journal follows checkpoint {} with {first} records, not {} with {records}",
                begin.epoch, self.epoch
            ));
        }
        if begin.asked != asked {
            let other =
                format!("the state belongs to a check of {}, but this check is of {asked}", begin.asked);
            return Err(self.refusal_of(&path, &io::Error::new(io::ErrorKind::InvalidInput, other)));
        }
        if loaded.next < durable {
            let what = format!(
                "the journal is damaged at byte {at}, or truncated there: {} acknowledged records are missing",
                durable - loaded.next
            );
            return if loaded.rest().is_empty() { refused(what) } else { damaged(what) };
        }
        if !loaded.rest().is_empty() {
            let aside = self.folder.join(format!("journal-{}.torn-at-{at}", self.epoch));
            std::fs::write(&aside, loaded.rest())?;
            notes.push(format!(
                "{}: the last record was incomplete when the process ended and had not been acknowledged; its {} bytes are \
                 left out and kept in {}",
                path.display(),
                loaded.rest().len(),
                aside.display()
            ));
        }
        Ok(Some(loaded))
    }

    /// Goes on with a journal, or begins the first.
    pub(crate) fn open_journal(&self, loaded: Option<&Loaded>, asked: &str) -> io::Result<Journal> {
        let path = self.journal(self.epoch);
        if let Some(loaded) = loaded {
            return Journal::open(&path, &self.durable(), loaded.whole as u64, loaded.next);
        }
        let begin = Begin { epoch: self.epoch, asked: asked.to_owned() };
        let journal = Journal::create(&path, &self.durable(), &begin, 0)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(journal)
    }

    pub(crate) fn findings(&self) -> PathBuf {
        self.folder.join("findings.jsonl")
    }

    pub(crate) fn told(&self) -> PathBuf {
        self.folder.join("told")
    }

    /// What is wrong with the newest checkpoint, by name, and what to do about it.
    pub(crate) fn refusal(&self, error: &io::Error) -> io::Error {
        self.refusal_of(&self.checkpoint(), error)
    }

    /// The same for any file.
    pub(crate) fn refusal_of(&self, path: &Path, error: &io::Error) -> io::Error {
        let remedy = match error.kind() {
            io::ErrorKind::InvalidInput => "use that level, or start with another state folder",
            _ => "restore the file from a backup, or start with another state folder",
        };
        let told = format!(
            "{}: {error}; {remedy}. Findings so far are in {}",
            path.display(),
            self.findings().display()
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
        let opened = opened(&self.checkpoint()).and_then(|mut input| {
            let mut line = String::new();
            input.read_line(&mut line)?;
            Ok((serde_json::from_str(&line)?, input))
        });
        opened.map(Some).map_err(|error| self.refusal(&error))
    }

    /// Writes the next checkpoint; from here on the journal is another, the one that is returned.
    pub(crate) fn save(
        &mut self,
        head: &Head,
        asked: &str,
        checker: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Journal> {
        let unfinished = self.folder.join("checkpoint.new");
        let out = io::BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
        let mut out = Summed { inner: out, sum: Xxh3::new(), len: 0 };
        serde_json::to_writer(&mut out, head)?;
        out.write_all(b"\n")?;
        checker(&mut out)?;
        let Summed { inner: mut out, sum, len } = out;
        out.write_all(&len.to_le_bytes())?;
        out.write_all(&sum.digest().to_le_bytes())?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        let old = (self.checkpoint(), self.journal(self.epoch));
        let begin = Begin { epoch: self.epoch + 1, asked: asked.to_owned() };
        let path = self.journal(begin.epoch);
        let journal = Journal::create(&path, &self.durable(), &begin, head.records)?;
        self.epoch += 1;
        std::fs::rename(&unfinished, self.checkpoint())?;
        File::open(&self.folder)?.sync_all()?;
        for path in [old.0, old.1] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(journal)
    }
}

/// The names under which damaged files are kept, in turn.
fn asides(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (1u32..).map(move |number| path.with_file_name(format!("{name}.damaged-{number}")))
}

/// Gives a damaged file another name.
fn kept_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = asides(path).find(|aside| !aside.exists()).unwrap_or_else(|| path.to_owned());
    std::fs::rename(path, &aside)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(aside)
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// What is behind a checkpoint: its length and its sum.
const SUM_LEN: u64 = 16;

/// A checkpoint whose sum is right, without the sum.
fn opened(path: &Path) -> io::Result<BufReader<io::Take<File>>> {
    let damaged = || invalid("the checkpoint is damaged");
    let mut file = File::open(path)?;
    let len = file.metadata()?.len().checked_sub(SUM_LEN).ok_or_else(damaged)?;
    let mut summed = Summed { inner: io::sink(), sum: Xxh3::new(), len: 0 };
    io::copy(&mut (&mut file).take(len), &mut summed)?;
    let mut foot = Vec::new();
    file.read_to_end(&mut foot)?;
    let expected = [summed.len.to_le_bytes(), summed.sum.digest().to_le_bytes()].concat();
    if foot != expected {
        return Err(damaged());
    }
    io::Seek::rewind(&mut file)?;
    Ok(BufReader::with_capacity(1 << 20, file.take(len)))
}

/// What is written is counted and summed.
struct Summed<W> {
    inner: W,
    sum: Xxh3,
    len: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.sum.update(&bytes[..len]);
        self.len += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn newest_checkpoint(folder: &Path) -> io::Result<u64> {
    let (mut checkpoints, mut journals) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
        if let Some(number) = number("checkpoint-") {
            checkpoints.push((number, path.clone()));
        }
        if let Some(number) = number("journal-") {
            journals.push((number, path.clone()));
        }
    }
    let newest = checkpoints.iter().map(|(number, _)| *number).max().unwrap_or(0);
    // What a crash left: older ones, and a journal whose checkpoint was not in place yet. In that one nothing has happened.
    for (number, path) in journals.iter().filter(|(number, _)| *number > newest) {
        let is_begun = *number == newest + 1 && journal::load(path)?.is_none_or(|journal| journal.is_empty());
        if !is_begun {
            let told = format!(
                "{}: the checkpoint before this journal is missing; restore checkpoint-{number} from a backup, or start with \
                 another state folder",
                path.display()
            );
            return Err(invalid(told));
        }
        std::fs::remove_file(path)?;
    }
    for (_, path) in checkpoints.into_iter().chain(journals).filter(|(number, _)| *number < newest) {
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
    /// Opens the file; a last line that was cut off goes, and is reported again. Lines are those that were written, with their
    /// numbers.
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
            if !line.starts_with(format!("{{\"number\":{count},").as_bytes()) {
                let told = format!("line {} is not finding {count}: the file is damaged", count + 1);
                return Err(invalid(told));
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
        self.file.set_len(MARK_LEN as u64)?;
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
