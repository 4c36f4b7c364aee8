//! A file, a stream or bytes into a history.
//!
//! What: finds out the format, feeds the reader, and gives its faults a place.
//! Steps: open (undo compression) → detect → call the reader on the whole content or on one piece
//! after the other → locate what it refused → finish the builder.
//! Cost: formats of lines and frames are read in blocks, so beside the history itself only the longest line
//! or frame is held; other formats are held whole.

use super::detect::{BYTE_ORDER_MARK, Probe, detect, why_unrecognised};
use super::error::{Located, Piece, ReadError};
use super::parts::{PART_LEN, look_again};
use super::source::{Directory, Stream};
use super::stretches::is_shard;
use super::{
    Fault, FileFault, Format, FrameBytes, FrameError, FrameLength, Input, Read, ReadFrame, Warnings,
};
use crate::{Builder, Copier, History, IdSet, Interrupt};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where checkers leave a history inside a directory; Jepsen's store has a folder per run and a link to the latest.
const USUAL_NAMES: [&str; 4] =
    ["history.edn", "latest/history.edn", "t/latest/history.edn", "latest/history.jsonl"];

/// How a history is to be read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; `None` detects it.
    pub format: Option<Format>,
    /// Turns refusals of single transactions into counted warnings.
    pub lenient: bool,
    /// Takes empty content for a history without transactions.
    pub allow_empty: bool,
    /// How many bytes a compressed or piped file may hold if its format must be read as a whole.
    pub decompressed_max: u64,
    /// Ends the reading early, with [`ReadError::Interrupted`].
    pub interrupt: Interrupt,
    /// What is read is a piece of a history; see [`Builder::piece`].
    pub piece: bool,
}

impl ReadOptions {
    /// The default of `decompressed_max`: 8 GiB.
    pub const DECOMPRESSED_MAX: u64 = 8 << 30;
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            lenient: false,
            allow_empty: false,
            decompressed_max: Self::DECOMPRESSED_MAX,
            interrupt: Interrupt::never(),
            piece: false,
        }
    }
}

/// A history and how it was read.
#[derive(Debug)]
pub struct Loaded {
    /// The history.
    pub history: History,
    /// Its format.
    pub format: Format,
    /// What was refused and left out, where that was allowed.
    pub warnings: Warned,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

/// Refusals that became warnings, and notes.
#[derive(Clone, Debug, Default)]
pub struct Warned {
    /// How many there were.
    pub count: u64,
    /// The first of them ([`Warnings::KEPT_MAX`]), with their places.
    pub first: Vec<Located>,
    /// How many unknown fields were ignored.
    pub ignored: u64,
    /// The first of them.
    pub first_ignored: Option<Box<Located>>,
    /// What else the reader has to say of the history, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a history from a file, or from a directory where the format is one.
pub fn read_path(path: &Path, options: &ReadOptions) -> Result<Loaded, ReadError> {
    let mut reading = Reading::new(path, options);
    let meta = std::fs::metadata(path).map_err(|source| ReadError::open(path, source))?;
    if meta.is_dir() {
        return reading.directory();
    }
    let format = reading.open(path)?;
    reading.all(format)?;
    reading.finish()
}

/// The file of a directory that is the history: the only one called `history.…`; in a Jepsen store folder `history.txt`
/// lies beside it, the same for people.
fn history_file(names: &[String]) -> Option<usize> {
    let is_for_people = |name: &str| name.starts_with("history.txt");
    let all: Vec<usize> = (0..names.len()).filter(|&file| names[file].starts_with("history.")).collect();
    let rest: Vec<usize> = all.iter().copied().filter(|&file| !is_for_people(&names[file])).collect();
    match (&all[..], &rest[..]) {
        (&[only], _) | (_, &[only]) => Some(only),
        _ => None,
    }
}

/// How deep histories are looked for below a folder: Jepsen's is store/TEST/TIME.
const BELOW_MAX: usize = 2;

/// A history in a folder below: Jepsen's link to the latest run first, else what is last by name.
fn history_below(path: &Path) -> Option<PathBuf> {
    let mut level = vec![path.to_owned()];
    for _ in 0..BELOW_MAX {
        let entries = level.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|it| it.path()).filter(|it| it.is_dir()).collect();
        folders.sort_by_key(|it| (it.ends_with("latest"), it.clone()));
        let history = |folder: &PathBuf| Some(folder.join("history.edn")).filter(|file| file.is_file());
        if let Some(found) = folders.iter().rev().find_map(history) {
            return Some(found);
        }
        level = folders;
    }
    None
}

/// Reads a history from a stream; `name` stands for it in messages.
pub fn read_stream(name: &str, stream: impl io::Read, options: &ReadOptions) -> Result<Loaded, ReadError> {
    let mut reading = Reading::new(Path::new(name), options);
    let format = reading.attach(Stream::new(Box::new(stream)))?;
    reading.all(format)?;
    reading.finish()
}

/// Reads a history from bytes; `name` stands for them in messages.
pub fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Loaded, ReadError> {
    read_stream(name, bytes, options)
}

/// The longest line, or unfinished frame at the end of a file, that is held: a longer one is refused, so that
/// memory stays bounded whatever the file holds.
pub(super) const LINE_LEN_MAX: usize = 256 << 20;

/// A history while it is read.
pub(super) struct Reading<'a> {
    path: PathBuf,
    options: ReadOptions,
    /// What is left to read; none at the end.
    source: Option<Stream<'a>>,
    /// How many bytes and line ends the reader has seen.
    offset: u64,
    lines: u64,
    pub(super) builder: Builder,
    warnings: Warnings,
    warned: Warned,
    format: Option<Format>,
    /// Whether the path is that of the file, not what a stream is called.
    is_path: bool,
    /// Whether formats of lines are read line by line, not as many as are at hand.
    by_line: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &Path, options: &ReadOptions) -> Self {
        let mut builder = if options.piece { Builder::piece() } else { Builder::new() };
        builder.set_interrupt(options.interrupt.clone());
        Self {
            path: path.to_owned(),
            options: options.clone(),
            source: None,
            offset: 0,
            lines: 0,
            builder,
            warnings: Warnings::new(options.lenient).until(options.interrupt.clone()),
            warned: Warned::default(),
            format: None,
            is_path: false,
            by_line: false,
        }
    }

    /// The same, a step being one line where the format is one of lines.
    pub(super) fn line_by_line(self) -> Self {
        Self { by_line: true, ..self }
    }

    /// How many line ends were read.
    pub(super) fn lines_read(&self) -> u64 {
        self.lines
    }

    /// Opens a file and finds its format.
    pub(super) fn open(&mut self, path: &Path) -> Result<Format, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::open(path, source))?;
        let format = self.attach(Stream::of_file(file))?;
        self.is_path = true;
        Ok(format)
    }

    /// Takes a stream and finds its format.
    pub(super) fn attach(&mut self, stream: io::Result<Stream<'a>>) -> Result<Format, ReadError> {
        let mut stream = stream.map_err(|source| self.broken(source))?;
        stream.fill_to(Probe::HEAD_LEN).map_err(|source| self.broken(source))?;
        let len = stream.waiting().len().min(Probe::HEAD_LEN);
        let complete = stream.is_at_end() && len == stream.waiting().len();
        let probe = Probe { head: &stream.waiting()[..len], complete, files: None };
        let format = self.recognise(&probe)?;
        if stream.waiting().starts_with(BYTE_ORDER_MARK) && !matches!(format.row().input, Input::Frames(..)) {
            stream.take(BYTE_ORDER_MARK.len());
            self.offset += BYTE_ORDER_MARK.len() as u64;
        }
        self.source = Some(stream);
        Ok(format)
    }

    fn recognise(&mut self, probe: &Probe<'_>) -> Result<Format, ReadError> {
        let path = self.path.clone();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if probe.head.iter().all(u8::is_ascii_whitespace) && probe.complete {
            if !self.options.allow_empty {
                return Err(ReadError::Empty { path });
            }
            let format = self.options.format.or(Format::from_file_name(name)).unwrap_or(Format::Jsonl);
            self.format = Some(format);
            return Ok(format);
        }
        let format = self
            .options
            .format
            .or_else(|| detect(probe, name))
            .ok_or_else(|| ReadError::Unrecognised { path: path.clone(), why: why_unrecognised(probe) })?;
        if matches!(format.row().input, Input::Directory(_)) {
            return Err(ReadError::NotADirectory { path, format });
        }
        self.format = Some(format);
        Ok(format)
    }

    /// Reads a directory: one that is a history, or one that holds a single history file, as Jepsen's store folders do.
    fn directory(mut self) -> Result<Loaded, ReadError> {
        let directory = Directory::open(&self.path, &self.options)?;
        let probe = Probe { head: &[], complete: true, files: Some(directory.names()) };
        let format = self.options.format.or_else(|| detect(&probe, ""));
        let read = match format.map(|format| (format, format.row().input)) {
            Some((format, Input::Directory(read))) => {
                self.format = Some(format);
                read
            }
            other => return self.only_file(&directory, other.map(|(format, _)| format)),
        };
        let result = read(&directory, &mut self.builder, &mut self.warnings);
        let format = self.format.expect("set above");
        let locate = |FileFault { file, fault }: FileFault| -> Located {
            let file = file.min(directory.names().len().saturating_sub(1));
            let bytes = directory.bytes_of(file).unwrap_or_default();
            let piece = Piece { bytes: &bytes, offset: 0, lines: 0 };
            Located::new(&directory.path_of(file), format, piece, fault)
        };
        self.warned.count = self.warnings.count();
        self.warned.first = self.warnings.drain().map(locate).collect();
        if let Err(fault) = result {
            self.go_on(0)?;
            return Err(ReadError::Fault(Box::new(locate(fault))));
        }
        self.offset = directory.len_bytes();
        self.finish()
    }

    fn only_file(self, directory: &Directory, format: Option<Format>) -> Result<Loaded, ReadError> {
        if directory.names().iter().any(|name| is_shard(name)) {
            return self.shards(directory);
        }
        match (history_file(directory.names()), format) {
            (Some(file), _) => read_path(&directory.path_of(file), &self.options),
            (None, Some(format)) => Err(ReadError::NotAFile { path: self.path, format }),
            (None, None) => {
                let usual = USUAL_NAMES.iter().map(|name| self.path.join(name)).find(|file| file.is_file());
                let inside = usual.or_else(|| history_below(&self.path));
                Err(ReadError::Directory { path: self.path, inside })
            }
        }
    }

    /// Reads the shards of a folder, one after the other, into one history.
    fn shards(self, directory: &Directory) -> Result<Loaded, ReadError> {
        let mut whole: Option<Loaded> = None;
        let mut builder = Builder::new();
        for file in (0..directory.names().len()).filter(|&file| is_shard(&directory.names()[file])) {
            let path = directory.path_of(file);
            let options = ReadOptions { allow_empty: true, ..self.options.clone() };
            let shard = read_path(&path, &options)?;
            let mut copier = Copier::new(&shard.history);
            copier.header(&mut builder, |_| true);
            for txn in shard.history.transactions() {
                copier
                    .transaction(txn.id(), None, &mut builder)
                    .map_err(|error| ReadError::Build { path: path.clone(), error })?;
            }
            drop(copier);
            match &mut whole {
                None => whole = Some(shard),
                Some(whole) => {
                    whole.bytes += shard.bytes;
                    whole.warnings.count += shard.warnings.count;
                    whole.warnings.first.extend(shard.warnings.first);
                    whole.warnings.ignored += shard.warnings.ignored;
                    whole.warnings.first_ignored =
                        whole.warnings.first_ignored.take().or(shard.warnings.first_ignored);
                    whole.warnings.notes.extend(shard.warnings.notes);
                }
            }
        }
        let history = builder.finish().map_err(|error| self.build_error(error))?;
        let whole = whole.expect("there is a shard");
        Ok(Loaded { history, ..whole })
    }

    /// Reads to the end.
    pub(super) fn all(&mut self, format: Format) -> Result<(), ReadError> {
        while self.step(format)? {}
        Ok(())
    }

    /// Reads one piece more; false at the end.
    pub(super) fn step(&mut self, format: Format) -> Result<bool, ReadError> {
        self.go_on(0)?;
        match format.row().input {
            Input::Whole(read) => self.step_whole(format, read),
            Input::Lines(read) => self.step_lines(format, read),
            Input::Frames(read, length) => self.step_frames(format, read, length),
            Input::Directory(_) => Err(ReadError::NotADirectory { path: self.path.clone(), format }),
        }
    }

    fn step_whole(&mut self, format: Format, read: Read) -> Result<bool, ReadError> {
        let Some(stream) = self.source.take() else { return Ok(false) };
        let bytes = stream.rest(&self.options).map_err(|source| self.broken(source))?;
        self.read_piece(format, read, &bytes)?;
        Ok(false)
    }

    fn step_lines(&mut self, format: Format, read: Read) -> Result<bool, ReadError> {
        let Some(mut stream) = self.source.take() else { return Ok(false) };
        // Where the search for a line end goes on; a long line is not searched twice.
        let mut searched = 0;
        let len = loop {
            let unseen = &stream.waiting()[searched..];
            let line_end = match self.by_line {
                true => memchr::memchr(b'\n', unseen),
                false => memchr::memrchr(b'\n', unseen),
            };
            if let Some(place) = line_end {
                break searched + place + 1;
            }
            searched = stream.waiting().len();
            if stream.is_at_end() {
                break searched;
            }
            if searched > LINE_LEN_MAX {
                let fault = Fault::new(
                    0,
                    format!("the line is longer than {} MiB", LINE_LEN_MAX >> 20),
                    "one transaction per line, each line ended by a line feed",
                );
                return Err(self.fault(format, stream.waiting(), fault));
            }
            self.go_on(searched as u64 / 2)?;
            stream.fill().map_err(|source| self.broken(source))?;
        };
        if len == 0 {
            return Ok(false);
        }
        self.read_piece(format, read, &stream.waiting()[..len])?;
        stream.take(len);
        self.source = Some(stream);
        Ok(true)
    }

    fn step_frames(
        &mut self,
        format: Format,
        read: ReadFrame,
        length: FrameLength,
    ) -> Result<bool, ReadError> {
        let Some(mut stream) = self.source.take() else { return Ok(false) };
        let frame = loop {
            let waiting = stream.waiting();
            match length(waiting).map_err(|fault| self.fault(format, waiting, fault))? {
                Some(frame) => break frame,
                None if stream.is_at_end() => {
                    let fault = Fault::new(waiting.len(), "the file is truncated", "another frame");
                    return Err(self.fault(format, waiting, fault));
                }
                None => stream.fill().map_err(|error| self.broken(error))?,
            }
        };
        self.go_on(frame.len)?;
        let sure = stream.sure();
        match read(&mut FrameBytes::new(&mut stream, frame.len, sure), &mut self.builder) {
            Ok(()) => self.offset += frame.len,
            Err(FrameError::Broken(error)) => return Err(self.broken(error)),
            Err(FrameError::Fault(fault)) => {
                self.go_on(0)?;
                let fault = Located::in_frame(&self.path, format, self.offset, fault);
                return Err(ReadError::Fault(Box::new(fault)));
            }
        }
        if !frame.is_last {
            self.source = Some(stream);
            return Ok(true);
        }
        stream.fill_to(1).map_err(|error| self.broken(error))?;
        match stream.waiting() {
            [] => Ok(false),
            rest => Err(self.fault(
                format,
                rest,
                Fault::new(0, "the file goes on after its end", "no more bytes"),
            )),
        }
    }

    /// From now on the history may be taken in parts ([`Self::take_part`]), and ids are still unique in all of it.
    pub(super) fn remember_ids(&mut self) {
        // Odd ids are kept as hashes if the file can be read again. What is to be left out is left out at once.
        let is_file = std::fs::metadata(&self.path).is_ok_and(|meta| meta.is_file());
        let looks_again = is_file && self.is_path && !self.options.lenient;
        self.builder.remember_ids(if looks_again { IdSet::hashed() } else { IdSet::whole() });
    }

    /// What was read since the last part was taken.
    pub(super) fn take_part(&mut self) -> Result<History, ReadError> {
        let part = self.builder.take_part().map_err(|error| self.build_error(error))?;
        let part = ReadError::unless_unsupported(&self.path, part)?;
        match self.builder.take_suspected() {
            suspected if suspected.is_empty() => Ok(part),
            suspected => look_again(&self.path, &self.options, suspected).map(|()| part),
        }
    }

    /// Whether enough was read for a part.
    pub(super) fn has_part(&self) -> bool {
        self.builder.len() >= PART_LEN || self.builder.op_count() >= PART_LEN
    }

    /// A fault in bytes that begin where reading stands.
    fn fault(&self, format: Format, bytes: &[u8], fault: Fault) -> ReadError {
        let piece = Piece { bytes, offset: self.offset, lines: self.lines };
        ReadError::Fault(Box::new(Located::new(&self.path, format, piece, fault)))
    }

    fn read_piece(&mut self, format: Format, read: Read, bytes: &[u8]) -> Result<(), ReadError> {
        let result = read(bytes, &mut self.builder, &mut self.warnings);
        let piece = Piece { bytes, offset: self.offset, lines: self.lines };
        for FileFault { fault, .. } in self.warnings.drain() {
            if self.warned.first.len() < Warnings::KEPT_MAX {
                self.warned.first.push(Located::new(&self.path, format, piece, fault));
            }
        }
        self.warned.count = self.warnings.count();
        self.warned.ignored = self.warnings.ignored;
        if let Some(FileFault { fault, .. }) = self.warnings.first_ignored.take()
            && self.warned.first_ignored.is_none()
        {
            self.warned.first_ignored = Some(Box::new(Located::new(&self.path, format, piece, fault)));
        }
        if let Err(fault) = result {
            self.go_on(0)?;
            return Err(ReadError::Fault(Box::new(Located::new(&self.path, format, piece, fault))));
        }
        self.offset += bytes.len() as u64;
        if matches!(format.row().input, Input::Lines(_)) {
            self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        }
        Ok(())
    }

    /// Whether reading may go on, with a step that takes that many bytes at once.
    fn go_on(&self, ahead: u64) -> Result<(), ReadError> {
        match self.options.interrupt.is_due(ahead) {
            true => Err(self.interrupted()),
            false => Ok(()),
        }
    }

    fn interrupted(&self) -> ReadError {
        ReadError::Interrupted {
            path: self.path.clone(),
            bytes: self.offset,
            transactions: self.builder.total_transactions(),
            operations: self.builder.total_operations(),
            sessions: self.builder.session_count() as u64,
            level: self.builder.level().map(str::to_owned),
        }
    }

    fn broken(&self, source: io::Error) -> ReadError {
        if self.options.interrupt.is_due(0) {
            return self.interrupted();
        }
        ReadError::Broken { path: self.path.clone(), offset: self.offset, source }
    }

    pub(super) fn build_error(&self, error: crate::BuildError) -> ReadError {
        ReadError::Build { path: self.path.clone(), error }
    }

    pub(super) fn finish(self) -> Result<Loaded, ReadError> {
        let Self { path, builder, mut warned, warnings, offset, format, .. } = self;
        warned.notes = warnings.notes;
        let history = builder.finish().map_err(|error| ReadError::Build { path: path.clone(), error })?;
        let history = ReadError::unless_unsupported(&path, history)?;
        let format = format.expect("a format is recognised before anything is read");
        Ok(Loaded { history, format, warnings: warned, bytes: offset })
    }
}
