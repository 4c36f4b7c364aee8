//! What can go wrong while a history is read, in sentences for the person who has the file.

use super::{Fault, Format, Input};
use crate::{BuildError, History};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a history could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// Whoever waits for the history asked to stop.
    Interrupted {
        /// The file.
        path: PathBuf,
        /// How far reading had come, in whole pieces of the file.
        bytes: u64,
        /// How many transactions were complete.
        transactions: u64,
        /// How many operations had been seen.
        operations: u64,
        /// How many sessions.
        sessions: u64,
        /// The level that the header asked for.
        level: Option<String>,
    },
    /// The file could not be opened: it is missing, or not ours to read.
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory that is no history of any format.
    Directory {
        /// The directory.
        path: PathBuf,
        /// A history file inside it or in a folder of it.
        inside: Option<PathBuf>,
    },
    /// The format is a directory of files, and this is one file.
    NotADirectory {
        /// The file.
        path: PathBuf,
        /// The format asked for.
        format: Format,
    },
    /// The format is one file, and this is a directory.
    NotAFile {
        /// The directory.
        path: PathBuf,
        /// The format asked for.
        format: Format,
    },
    /// Nothing in it.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No format recognises the content.
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// What it looks like instead.
        why: String,
    },
    /// The bytes stopped coming: an error of the disk, damaged compression, or more than fits.
    Broken {
        /// The file.
        path: PathBuf,
        /// How many bytes (decompressed) had come.
        offset: u64,
        /// What happened.
        source: io::Error,
    },
    /// The content is not what the format says.
    Fault(Box<Located>),
    /// The file reads well, but says something that is not supported.
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What, and what to do.
        why: String,
    },
    /// The file reads well but is no possible history.
    Build {
        /// The file.
        path: PathBuf,
        /// Why.
        error: BuildError,
    },
}

/// A fault with its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The file.
    pub path: PathBuf,
    /// The format that was read.
    pub format: Format,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
    /// What was expected.
    pub expected: String,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In text.
    Line {
        /// From 1.
        line: u64,
        /// In characters, from 1.
        column: u64,
        /// The line, or the part of it around the column.
        excerpt: String,
        /// Which character of the excerpt it is, from 0.
        caret: usize,
    },
    /// In binary data.
    Byte {
        /// From 0.
        offset: u64,
        /// The bytes there, in hexadecimal, where they are at hand.
        excerpt: Option<String>,
    },
}

/// A piece of a file and where it lies there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    /// How many bytes come before it.
    pub(super) offset: u64,
    /// How many line ends come before it.
    pub(super) lines: u64,
}

impl Located {
    pub(super) fn new(path: &Path, format: Format, piece: Piece<'_>, fault: Fault) -> Self {
        let at = usize::try_from(fault.offset).unwrap_or(usize::MAX).min(piece.bytes.len());
        let is_text = matches!(format.row().input, Input::Lines(_)) || looks_like_text(piece.bytes, at);
        let place = if is_text { line_at(piece, at) } else { byte_at(piece, at) };
        Self { path: path.to_owned(), format, place, problem: fault.problem, expected: fault.expected }
    }

    /// A fault in a frame that begins at a place of the file.
    pub(super) fn in_frame(path: &Path, format: Format, start: u64, fault: Fault) -> Self {
        let place = Place::Byte { offset: start.saturating_add(fault.offset), excerpt: None };
        Self { path: path.to_owned(), format, place, problem: fault.problem, expected: fault.expected }
    }

    /// The line, where there is one.
    pub fn line(&self) -> Option<u64> {
        match self.place {
            Place::Line { line, .. } => Some(line),
            Place::Byte { .. } => None,
        }
    }

    /// The column in characters, where there is one.
    pub fn column(&self) -> Option<u64> {
        match self.place {
            Place::Line { column, .. } => Some(column),
            Place::Byte { .. } => None,
        }
    }
}

fn looks_like_text(bytes: &[u8], at: usize) -> bool {
    let near = &bytes[at.saturating_sub(64)..bytes.len().min(at + 64)];
    near.iter().all(|&byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// How many characters of a line are shown on either side of the column.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 40;

fn line_at(piece: Piece<'_>, at: usize) -> Place {
    let bytes = piece.bytes;
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |place| place + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |place| at + place);
    let line = piece.lines + memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1;
    // Not more than what can be shown is decoded: a line may be very long.
    let column = count_chars(&bytes[start..at]) + 1;
    let from = back(bytes, start, at, SHOWN_BEFORE);
    let before = String::from_utf8_lossy(&bytes[from..at]).chars().map(printable).collect::<String>();
    let to = at + bytes[at..end].len().min(4 * SHOWN_AFTER);
    let decoded = String::from_utf8_lossy(&bytes[at..to]);
    let after = decoded.trim_end().chars().map(printable).take(SHOWN_AFTER).collect::<String>();
    let cut = to < end || decoded.trim_end().chars().count() > SHOWN_AFTER;
    let (left, right) = (if from > start { "…" } else { "" }, if cut { "…" } else { "" });
    let caret = left.chars().count() + before.chars().count();
    Place::Line { line, column, excerpt: format!("{left}{before}{after}{right}"), caret }
}

/// Characters of UTF-8: all bytes that do not continue one.
fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}

/// The start of the `chars`-th character before `at`, but not before `start`.
fn back(bytes: &[u8], start: usize, at: usize, chars: usize) -> usize {
    let mut from = at;
    let mut seen = 0;
    while from > start && seen < chars {
        from -= 1;
        if bytes[from] & 0xc0 != 0x80 {
            seen += 1;
        }
    }
    from
}

fn printable(ch: char) -> char {
    match ch {
        '\t' => ' ',
        ch if ch.is_control() => '\u{b7}',
        ch => ch,
    }
}

fn byte_at(piece: Piece<'_>, at: usize) -> Place {
    let shown = &piece.bytes[at..piece.bytes.len().min(at + 16)];
    let excerpt = shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    Place::Byte { offset: piece.offset + at as u64, excerpt: Some(excerpt) }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.place {
            Place::Line { line, column, excerpt, caret } => {
                let margin = " ".repeat(line.to_string().len());
                writeln!(f, "{path}:{line}:{column}: {}", self.problem)?;
                writeln!(f, "{margin} |")?;
                writeln!(f, "{line} | {excerpt}")?;
                writeln!(f, "{margin} | {}^", " ".repeat(*caret))?;
                write!(f, "{margin} = expected {}", self.expected)
            }
            Place::Byte { offset, excerpt } => {
                writeln!(f, "{path}: byte {offset}: {}", self.problem)?;
                match excerpt.as_deref() {
                    None => {}
                    Some("") => writeln!(f, "  | (the file ends here)")?,
                    Some(excerpt) => writeln!(f, "  | {excerpt}")?,
                }
                write!(f, "  = expected {}", self.expected)
            }
        }
    }
}

impl ReadError {
    pub(super) fn open(path: &Path, source: io::Error) -> Self {
        Self::Open { path: path.to_owned(), source }
    }

    /// The history, unless it says something that is not supported.
    pub(super) fn unless_unsupported(path: &Path, history: History) -> Result<History, Self> {
        match super::meaning::partial_update(&history) {
            Some(why) => Err(Self::Unsupported { path: path.to_owned(), why }),
            None => Ok(history),
        }
    }

    /// The fault with its place, if the content was at fault.
    pub fn located(&self) -> Option<&Located> {
        match self {
            Self::Fault(located) => Some(located),
            _ => None,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, source } => {
                let path = path.display();
                match source.kind() {
                    io::ErrorKind::NotFound => {
                        write!(f, "{path}: no such file")
                    }
                    io::ErrorKind::PermissionDenied => {
                        write!(f, "{path}: permission denied")
                    }
                    _ => write!(f, "cannot open {path}: {source}"),
                }
            }
            Self::Directory { path, inside } => {
                let formats = directory_formats();
                write!(
                    f,
                    "{} is a directory, but not a history of a directory format ({formats})",
                    path.display()
                )?;
                match inside {
                    Some(file) => write!(f, "; did you mean {}?", file.display()),
                    None => f.write_str("; name the history file itself"),
                }
            }
            Self::NotADirectory { path, format } => {
                write!(f, "{}: is a file, but a {format} history is a directory of files", path.display())
            }
            Self::NotAFile { path, format } => {
                write!(f, "{}: is a directory, but a {format} history is one file", path.display())
            }
            Self::Empty { path } => {
                write!(f, "{}: is empty; a history has at least one transaction", path.display())
            }
            Self::Unrecognised { path, why } => write!(
                f,
                "{}: unknown history format: {why}; use --format to force one of: {}",
                path.display(),
                Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
            ),
            Self::Broken { path, offset, source } => {
                write!(f, "{}: reading failed after {offset} bytes: {source}", path.display())?;
                if source.kind() == io::ErrorKind::UnexpectedEof {
                    f.write_str(" (the file is truncated)")?;
                }
                Ok(())
            }
            Self::Fault(located) => located.fmt(f),
            Self::Interrupted { path, transactions, .. } => {
                write!(f, "{}: reading was interrupted after {transactions} transactions", path.display())
            }
            Self::Build { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Unsupported { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

fn directory_formats() -> String {
    let names: Vec<_> = Format::ALL
        .iter()
        .filter(|format| matches!(format.row().input, Input::Directory(_)))
        .map(|format| format.name())
        .collect();
    if names.is_empty() { "no format is one".into() } else { names.join(", ") }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { source, .. } | Self::Broken { source, .. } => Some(source),
            Self::Build { error, .. } => Some(error),
            _ => None,
        }
    }
}
