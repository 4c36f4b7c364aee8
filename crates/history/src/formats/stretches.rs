//! A large file as stretches that can be read apart, by different threads or machines.
//!
//! What: JSON lines are cut at line ends, the binary form between its frames and large frames into
//! [slices](super::binary::slices); any other file, and a compressed one, is a
//! single stretch. Invariant: the stretches, one after the other, hold the transactions of the file; a transaction's
//! place in its session counts from the beginning of its stretch. Equal transaction ids are noticed within a stretch: who
//! reads several has to compare them ([`IdSet`](crate::IdSet)).
//! Cost: finding them reads a line a stretch, or the head of every frame.

use super::binary::{Slice, read_slice, slices};
use super::compression::Compression;
use super::error::{Located, Piece, ReadError};
use super::read::Reading;
use super::{Format, FrameBytes, FrameError, Input, ReadOptions, Warnings, read_parts, read_path};
use crate::{Builder, History};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A part of a file that can be read by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The file.
    pub path: PathBuf,
    /// Where it lies; none if it is the whole file.
    cut: Option<Cut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    format: Format,
    from: u64,
    to: u64,
    /// Which of the transactions that lie there; none: all.
    slice: Option<Slice>,
}

impl Stretch {
    /// A whole file, or a directory where the format is one.
    pub fn whole(path: &Path) -> Self {
        Self { path: path.to_owned(), cut: None }
    }

    /// Reads it and gives it to `each`, in parts where that is possible, until that wants no more.
    pub fn read(
        &self,
        options: &ReadOptions,
        mut each: impl FnMut(History) -> bool,
    ) -> Result<(), ReadError> {
        let Some(cut) = self.cut else {
            if self.path.is_dir() {
                each(read_path(&self.path, options)?.history);
                return Ok(());
            }
            let mut goes_on = true;
            let take = |part| {
                goes_on = each(part);
                goes_on
            };
            if !read_parts(&self.path, options, take)? && goes_on {
                each(read_path(&self.path, options)?.history);
            }
            return Ok(());
        };
        each(self.read_cut(cut, options)?);
        Ok(())
    }

    fn read_cut(&self, cut: Cut, options: &ReadOptions) -> Result<History, ReadError> {
        let Some(slice) = cut.slice else { return self.read_whole_cut(cut, options) };
        let file = File::open(&self.path).map_err(|source| ReadError::open(&self.path, source))?;
        read_slice(&file, cut.from..cut.to, slice).or_else(|fault| {
            // The frame as a whole is refused for the same reason, and with a better place.
            self.read_whole_cut(cut, options)?;
            let fault = Located::in_frame(&self.path, cut.format, cut.from, fault);
            Err(ReadError::Fault(Box::new(fault)))
        })
    }

    fn read_whole_cut(
        &self,
        Cut { format, from, to, .. }: Cut,
        options: &ReadOptions,
    ) -> Result<History, ReadError> {
        let failed = |source| ReadError::open(&self.path, source);
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut builder = Builder::piece();
        builder.set_interrupt(options.interrupt.clone());
        // It became shorter since it was cut.
        let broken = |source| ReadError::Broken { path: self.path.clone(), offset: from, source };
        match format.row().input {
            Input::Lines(read) => {
                let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(usize::MAX)];
                file.read_exact(&mut bytes).map_err(broken)?;
                let mut warnings = Warnings::new(options.lenient);
                read(&bytes, &mut builder, &mut warnings).map_err(|fault| {
                    let piece = Piece { bytes: &bytes, offset: from, lines: 0 };
                    ReadError::Fault(Box::new(Located::new(&self.path, format, piece, fault)))
                })?;
            }
            Input::Frames(read, _) => {
                // The preamble was looked at when the file was cut.
                builder.begin_header();
                let mut frame = FrameBytes::new(&mut file, to - from, to - from);
                read(&mut frame, &mut builder).map_err(|error| match error {
                    FrameError::Broken(source) => broken(source),
                    FrameError::Fault(fault) => {
                        ReadError::Fault(Box::new(Located::in_frame(&self.path, format, from, fault)))
                    }
                })?;
            }
            _ => unreachable!("only lines and frames are cut"),
        }
        let history =
            builder.finish().map_err(|error| ReadError::Build { path: self.path.clone(), error })?;
        ReadError::unless_unsupported(&self.path, history)
    }
}

/// The files of a folder of shards, which `taipan split` makes: `shard-0000.jsonl` and so on, in the order of their names;
/// none if it is a folder of something else.
pub fn shards_of(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |source| ReadError::open(folder, source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_shard(&path.file_name().unwrap_or_default().to_string_lossy()) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file is called as shards are.
pub(super) fn is_shard(name: &str) -> bool {
    name.starts_with("shard-") && !name.ends_with(".unfinished")
}

/// A byte of the binary form holds about as much as two of JSON lines.
const DENSITY: u64 = 2;

/// Cuts a file into stretches of about `len` bytes of JSON lines, or what holds as much.
pub fn stretches(path: &Path, options: &ReadOptions, len: u64) -> Result<Vec<Stretch>, ReadError> {
    let failed = |source| ReadError::open(path, source);
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() || meta.len() <= len / DENSITY {
        return Ok(vec![Stretch::whole(path)]);
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut head = [0; 16];
    file.read_exact(&mut head).map_err(failed)?;
    if Compression::from_head(&head) != Compression::None {
        return Ok(vec![Stretch::whole(path)]);
    }
    let format = Reading::new(path, options).open(path)?;
    let ends = match format {
        Format::Jsonl if meta.len() > len => line_ends(&file, meta.len(), len).map_err(failed)?,
        Format::Binary => frame_ends(&file, meta.len()).map_err(failed)?,
        _ => Vec::new(),
    };
    if ends.len() < 2 {
        return Ok(vec![Stretch::whole(path)]);
    }
    let mut cuts = Vec::with_capacity(ends.len());
    for (number, pair) in ends.windows(2).enumerate() {
        let slices = match format {
            Format::Binary => slices(&file, pair[0]..pair[1], number, len / DENSITY),
            _ => Vec::new(),
        };
        let whole = Cut { format, from: pair[0], to: pair[1], slice: None };
        match slices.is_empty() {
            true => cuts.push(whole),
            false => cuts.extend(slices.into_iter().map(|slice| Cut { slice: Some(slice), ..whole })),
        }
    }
    Ok(cuts.into_iter().map(|cut| Stretch { path: path.to_owned(), cut: Some(cut) }).collect())
}

/// Where stretches of lines begin, and the end of the file.
fn line_ends(file: &File, size: u64, len: u64) -> io::Result<Vec<u64>> {
    let mut file = BufReader::with_capacity(4096, file);
    let mut ends = vec![0];
    let mut at = len;
    let mut line = Vec::new();
    while at < size {
        file.seek(SeekFrom::Start(at))?;
        line.clear();
        at += file.read_until(b'\n', &mut line)? as u64;
        if at < size {
            ends.push(at);
        }
        at += len;
    }
    ends.push(size);
    Ok(ends)
}

/// Where stretches of frames begin, and where the last part ends. None if it does not look as it should: whoever reads it
/// whole tells why.
fn frame_ends(mut file: &File, size: u64) -> io::Result<Vec<u64>> {
    let Input::Frames(_, length) = Format::Binary.row().input else { return Ok(Vec::new()) };
    let mut ends: Vec<u64> = Vec::new();
    let mut at = 0;
    let mut head = [0; 24];
    loop {
        file.seek(SeekFrom::Start(at))?;
        if file.read_exact(&mut head).is_err() {
            return Ok(Vec::new());
        }
        let Ok(Some(frame)) = length(&head) else { return Ok(Vec::new()) };
        let end = at.saturating_add(frame.len);
        if frame.is_last || end > size {
            // What is cut off, or goes on after its end, is not cut here.
            if end != size || ends.is_empty() {
                return Ok(Vec::new());
            }
            ends.push(at);
            return Ok(ends);
        }
        // The preamble is no part; every frame after it is a stretch.
        if at > 0 {
            ends.push(at);
        }
        at = end;
    }
}
