//! Every file format, as one table.
//!
//! A format is a row of the table at the end of this file and a file beside it: its name, how its content is
//! recognised, how it is read and, where it can hold a history, how it is written. Adding one is adding both.
//!
//! * [`read_path`], [`read_stream`], [`read_bytes`] — a file, a stream or bytes into a [`Loaded`] history. The
//!   format is detected from the content; gzip and zstd are undone on the way.
//! * [`write_path`], [`write_stream`] — a history into a file or a stream.
//! * [`read_parts`] — a large file as histories one after the other, in bounded memory.
//! * [`transaction_lines`] — where in a file transactions stand.
//! * [`stretches`] — a large file cut up, for several readers at once.
//! * [`split`] — a history into shards, files of their own.
//! * [`convert`] — one into the other, in pieces where both formats allow it, so that the memory in use does not
//!   grow with the file.
//!
//! A reader sees bytes and a [`Builder`], nothing else. It stops at the first thing it does not
//! understand with a [`Fault`], a byte offset and two sentences; this module, which knows the file, turns that
//! into a [`ReadError`] with line, column and the line itself. What only concerns one transaction a reader passes
//! through [`Warnings::refuse`], which is where `--lenient` turns a refusal into a counted warning.

pub mod binary;
mod compression;
mod convert;
mod detect;
mod error;
mod json;
pub mod jsonl;
mod lines;
mod meaning;
pub mod notation;
mod parts;
mod read;
mod source;
mod split;
mod stretches;
mod write;

// The peers' formats: what their files share, then one file a format.
mod edn;
mod json_tree;
mod plain;
mod tree;

mod dbcop_header;
mod jepsen;

pub mod awdit;
pub mod cobra;
pub mod dbcop_bincode;
pub mod dbcop_hist;
pub mod dbcop_json;
pub mod elle_edn;
pub mod elle_json;
pub mod text;
pub mod timekiller;
pub mod viper;

pub use compression::Compression;
pub use convert::{ConvertError, Converted, Origin, Target, convert};
pub use detect::{Likeness, Probe};
pub use error::{Located, Place, ReadError};
pub use lines::transaction_lines;
pub use parts::read_parts;
pub use read::{Loaded, ReadOptions, Warned, read_bytes, read_path, read_stream};
pub use source::{Directory, FrameBytes, FrameError};
pub use split::{SplitBy, split};
pub use stretches::{Stretch, shards_of, stretches};
pub use write::{Part, WriteError, Writing, write_path, write_stream, write_string};

use crate::{Builder, History, Interrupt};
use std::fmt;

/// Where and why a reader stopped. The place is a byte offset into the bytes that the reader was given; the
/// caller, who knows the file, turns it into line and column and shows the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte at which the input stops making sense.
    pub offset: u64,
    /// What is wrong, as a sentence without a full stop.
    pub problem: String,
    /// What was expected there, and what to do.
    pub expected: String,
}

impl Fault {
    /// A fault at a byte.
    pub fn new(offset: usize, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { offset: offset as u64, problem: problem.into(), expected: expected.into() }
    }

    /// Reading was to stop at a byte; that is what is reported, not this.
    #[cold]
    pub(crate) fn interrupted(offset: usize) -> Self {
        Self::new(offset, "reading was interrupted", "more time and memory")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}; expected {}", self.offset, self.problem, self.expected)
    }
}

impl std::error::Error for Fault {}

/// A fault in one file of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// Which file, as an index into [`Directory::names`].
    pub file: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// The signature of every reader: bytes of a file (decompressed) into a builder.
///
/// Offsets of faults count from the first of these bytes. A refusal that concerns one transaction goes through
/// [`Warnings::refuse`]; if that returns `Ok`, the reader drops the transaction ([`Builder::abandon`]) and goes on.
pub type Read = fn(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault>;

/// The signature of a reader of a history that is a directory of files. Before a file's refusals are passed on,
/// [`Warnings::in_file`] says which file they belong to.
pub type ReadDirectory =
    fn(files: &Directory, builder: &mut Builder, warnings: &mut Warnings) -> Result<(), FileFault>;

/// The signature of every writer: a history, or the next part of one, into a stream.
pub type Write = fn(history: &History, part: Part, out: &mut dyn std::io::Write) -> Result<(), WriteError>;

/// The signature of a writer of a history that is a directory: every file is handed over by name, whole.
pub type WriteDirectory = fn(history: &History, put: &mut PutFile<'_>) -> Result<(), WriteError>;

/// Takes a file of a directory: its name and its bytes.
pub type PutFile<'a> = dyn FnMut(&str, &[u8]) -> Result<(), WriteError> + 'a;

/// What the first bytes of a frame tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How many bytes it has.
    pub len: u64,
    /// Whether the file ends with it.
    pub is_last: bool,
}

/// What the frame is that begins with these bytes; `None` if more bytes are needed to tell.
pub type FrameLength = fn(start: &[u8]) -> Result<Option<Frame>, Fault>;

/// Takes one frame into a builder.
pub type ReadFrame = fn(&mut FrameBytes<'_>, &mut Builder) -> Result<(), FrameError>;

/// What a reader wants to be given.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// All bytes of the file at once.
    Whole(Read),
    /// Any number of whole lines: the reader is called again and again with consecutive pieces of the file, each
    /// ending where a line ends, and keeps what it must remember in the builder.
    Lines(Read),
    /// One frame after the other, each of a length that its first bytes tell.
    Frames(ReadFrame, FrameLength),
    /// A directory of files.
    Directory(ReadDirectory),
}

/// What a writer can do.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// The format is only read.
    No,
    /// The writer needs the whole history at once.
    Whole(Write),
    /// The writer also takes a history in parts, each a run of consecutive transactions.
    Parts(Write),
    /// The writer makes a directory of files.
    Directory(WriteDirectory),
}

/// Refusals that `--lenient` turned into warnings.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    lenient: bool,
    /// When due, the next refusal is one, lenient or not: reading is to end.
    interrupt: Interrupt,
    file: usize,
    /// What was refused, in order, by file; only the first [`Self::KEPT_MAX`], so that memory stays bounded.
    kept: Vec<FileFault>,
    count: u64,
    /// Whether unknown fields are refused even if refusals become warnings.
    strict_fields: bool,
    /// Unknown fields that were ignored, and the first of them.
    ignored: u64,
    first_ignored: Option<FileFault>,
    notes: Vec<String>,
}

impl Warnings {
    /// How many warnings are kept with their place; the others are only counted.
    pub const KEPT_MAX: usize = 1000;

    /// No refusals yet; with `lenient` they will become warnings.
    pub fn new(lenient: bool) -> Self {
        Self { lenient, ..Self::default() }
    }

    /// Refusals become warnings, and an unknown field is a refusal of its line: for streams, whose sender has to mend it.
    pub fn line_by_line() -> Self {
        Self { lenient: true, strict_fields: true, ..Self::default() }
    }

    /// The same, until the interrupt is due: then every refusal ends the reading.
    fn until(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Whether refusals become warnings.
    pub fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Passes on a refusal of one transaction. `Ok` means: it is a warning now, drop the transaction and go on.
    pub fn refuse(&mut self, fault: Fault) -> Result<(), Fault> {
        if !self.lenient || self.interrupt.is_due(0) {
            return Err(fault);
        }
        self.count += 1;
        if self.kept.len() < Self::KEPT_MAX {
            self.kept.push(FileFault { file: self.file, fault });
        }
        Ok(())
    }

    /// Whether unknown fields are ignored and counted instead of refused.
    pub fn ignores_fields(&self) -> bool {
        self.lenient && !self.strict_fields
    }

    /// Counts unknown fields that were ignored, with the first of them.
    pub fn ignore(&mut self, count: u64, fault: Fault) {
        self.ignored += count;
        self.first_ignored.get_or_insert(FileFault { file: self.file, fault });
    }

    /// Says something of the whole history that its user should know though nothing is wrong with the file: a
    /// sentence without a full stop.
    pub fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }

    /// Says which file of a directory the next refusals belong to.
    pub fn in_file(&mut self, file: usize) {
        self.file = file;
    }

    /// How many refusals became warnings.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Hands out the kept ones.
    fn drain(&mut self) -> impl Iterator<Item = FileFault> + use<> {
        std::mem::take(&mut self.kept).into_iter()
    }

    /// The first of them, with their places.
    pub fn kept(&self) -> &[FileFault] {
        &self.kept
    }
}

/// One row of the table of formats.
#[derive(Clone, Copy, Debug)]
pub struct FormatRow {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Usual file name endings, without the dot and without `.gz` or `.zst`.
    pub extensions: &'static [&'static str],
    /// Tells from the first bytes, or a directory's file names, whether it is this format.
    pub detect: fn(&Probe<'_>) -> Likeness,
    /// The reader.
    pub input: Input,
    /// The writer, if the format can be written.
    pub output: Output,
}

macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident $row:expr;)*) => {
        /// A file format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format { $($(#[$doc])* $variant,)* }

        impl Format {
            /// All formats, in the order in which they are tried.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The format's row of the table.
            pub fn row(self) -> &'static FormatRow {
                match self { $(Self::$variant => { const ROW: FormatRow = $row; &ROW })* }
            }
        }
    };
}

impl Format {
    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The format that a file's name asks for, with or without `.gz` or `.zst`.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
        let ends = |format: &Self| {
            format
                .row()
                .extensions
                .iter()
                .any(|ending| name.strip_suffix(ending).is_some_and(|rest| rest.ends_with('.')))
        };
        Self::ALL.iter().copied().find(ends)
    }

    /// Whether the format can be written.
    pub fn is_writable(self) -> bool {
        !matches!(self.row().output, Output::No)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

formats! {
    /// JSON lines, the native format.
    Jsonl FormatRow {
        name: "jsonl",
        about: "JSON lines, one transaction per line: the native format",
        extensions: &["jsonl", "ndjson"],
        detect: jsonl::detect,
        input: Input::Lines(jsonl::read),
        output: Output::Parts(jsonl::write),
    };
    /// The one-line notation.
    Notation FormatRow {
        name: "notation",
        about: "the short notation, one session per line: s1: w(x,1) | r(x,1)",
        extensions: &["hist"],
        detect: notation::detect,
        input: Input::Lines(notation::read),
        output: Output::Parts(notation::write),
    };
    /// The binary form.
    Binary FormatRow {
        name: "binary",
        about: "the compact binary format, which loads at the speed of a memory copy",
        extensions: &["tph"],
        detect: binary::detect,
        input: Input::Frames(binary::read, binary::frame_length),
        output: Output::Parts(binary::write),
    };
    /// Jepsen and Elle histories as EDN.
    ElleEdn FormatRow {
        name: "elle-edn",
        about: "Jepsen and Elle operations as EDN: list-append, rw-register and other models",
        extensions: &["edn"],
        detect: elle_edn::detect,
        input: Input::Whole(elle_edn::read),
        output: Output::Whole(elle_edn::write),
    };
    /// Jepsen and Elle histories as JSON.
    ElleJson FormatRow {
        name: "elle-json",
        about: "Jepsen and Elle operations as JSON, an array or one object per line",
        extensions: &["json"],
        detect: elle_json::detect,
        input: Input::Whole(elle_json::read),
        output: Output::Whole(elle_json::write),
    };
    /// TimeKiller's transactions with timestamps.
    Timekiller FormatRow {
        name: "timekiller",
        about: "TimeKiller's JSON: transactions with the database's timestamps, key-value or list",
        extensions: &[],
        detect: timekiller::detect,
        input: Input::Whole(timekiller::read),
        output: Output::Whole(timekiller::write),
    };
    /// dbcop's JSON.
    DbcopJson FormatRow {
        name: "dbcop-json",
        about: "dbcop's JSON: sessions of transactions of events",
        extensions: &[],
        detect: dbcop_json::detect,
        input: Input::Whole(dbcop_json::read),
        output: Output::Whole(dbcop_json::write),
    };
    /// dbcop's text.
    DbcopHist FormatRow {
        name: "dbcop-hist",
        about: "dbcop's text: [x:=1 y==2], one session after the other",
        extensions: &[],
        detect: dbcop_hist::detect,
        input: Input::Whole(dbcop_hist::read),
        output: Output::Whole(dbcop_hist::write),
    };
    /// The text of PolySI, Plume and IsoVista.
    Text FormatRow {
        name: "text",
        about: "the text of PolySI, Plume and IsoVista: r(key,value,session,transaction)",
        extensions: &["txt"],
        detect: text::detect,
        input: Input::Whole(text::read),
        output: Output::Whole(text::write),
    };
    /// AWDIT's test histories.
    Awdit FormatRow {
        name: "awdit",
        about: "AWDIT's test histories: w key value, lines of dashes and equals signs",
        extensions: &[],
        detect: awdit::detect,
        input: Input::Whole(awdit::read),
        output: Output::Whole(awdit::write),
    };
    /// dbcop's binary form.
    DbcopBincode FormatRow {
        name: "dbcop",
        about: "dbcop's binary histories (history.bincode)",
        extensions: &["bincode"],
        detect: dbcop_bincode::detect,
        input: Input::Whole(dbcop_bincode::read),
        output: Output::Whole(dbcop_bincode::write),
    };
    /// Cobra's logs.
    Cobra FormatRow {
        name: "cobra",
        about: "Cobra's logs, a directory of T<n>.log; with write ids or value-only",
        extensions: &[],
        detect: cobra::detect,
        input: Input::Directory(cobra::read),
        output: Output::Directory(cobra::write),
    };
    /// Viper's logs.
    Viper FormatRow {
        name: "viper",
        about: "Viper's JSON logs, a directory of J<n>.log",
        extensions: &[],
        detect: viper::detect,
        input: Input::Directory(viper::read),
        output: Output::Directory(viper::write),
    };
}
