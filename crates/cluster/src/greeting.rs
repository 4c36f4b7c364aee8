//! What processes say to each other before they work together.
//!
//! A process that calls sends its number and everything that all processes must agree on, field by field; the one
//! that is called answers with its own. Both compare, so both refuse a difference, and both name the process, the field
//! and the two values.
//!
//! ```text
//! frame = MAGIC, length of the rest: u32 in network order, the rest as JSON
//! ```
//!
//! **Cost.** Shared files are read once by every process, for their hashes.

use crate::source::{Share, files_of};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"taipan 1";
/// The longest greeting: a folder of many shards.
const LEN_MAX: u32 = 16 << 20;

/// What all processes must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    fields: Vec<(String, String)>,
    /// Shared files: name, and size with hash.
    files: Vec<(String, String)>,
}

impl Greeting {
    /// For a command of this version.
    pub fn new(command: &str) -> Self {
        Self::of_version(env!("CARGO_PKG_VERSION")).with("command", command)
    }

    pub(crate) fn of_version(version: &str) -> Self {
        Self { fields: Vec::new(), files: Vec::new() }.with("version", version)
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.fields.push((name.to_owned(), value.to_string()));
        self
    }

    /// With the files of a history, if all processes read the same ones.
    pub(crate) fn with_files(mut self, paths: &[PathBuf], share: Share) -> Self {
        if share == Share::Own {
            return self;
        }
        for path in paths {
            match files_of(path) {
                Ok(files) => self.files.extend(files.iter().flat_map(|file| described(file))),
                Err(error) => self.files.push((name_of(path), format!("unreadable ({error})"))),
            }
        }
        self.files.sort();
        self
    }

    /// How another greeting differs, in words; `None` if it does not.
    fn differences(&self, other: &Self, own: usize, others: usize) -> Option<String> {
        let mut said = differing(&self.fields, &other.fields, own, others);
        // Where flags differ, other files are read, or none.
        if said.is_empty() {
            said = differing(&self.files, &other.files, own, others);
        }
        (!said.is_empty()).then_some(said)
    }
}

fn differing(own: &[(String, String)], other: &[(String, String)], here: usize, there: usize) -> String {
    let mut names: Vec<&str> = own.iter().chain(other).map(|(name, _)| name.as_str()).collect();
    let mut seen = rustc_hash::FxHashSet::default();
    names.retain(|name| seen.insert(*name));
    let values = |fields: &[(String, String)], name: &str| {
        let found: Vec<&str> = fields.iter().filter(|it| it.0 == name).map(|it| it.1.as_str()).collect();
        if found.is_empty() { "absent".to_owned() } else { found.join(" and ") }
    };
    let mut said = String::new();
    for name in names {
        let (ours, theirs) = (values(own, name), values(other, name));
        if ours != theirs {
            let separator = if said.is_empty() { "" } else { "; " };
            // Writing to a string does not fail.
            let _ = write!(
                said,
                "{separator}{name} is {theirs} for process {there} and {ours} for process {here}"
            );
        }
    }
    said
}

fn name_of(path: &Path) -> String {
    format!("file {}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// A file, or all files of a folder that is one history: names, and sizes with hashes.
fn described(path: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut waiting = vec![(name_of(path), path.to_owned())];
    while let Some((name, path)) = waiting.pop() {
        match std::fs::read_dir(&path) {
            Ok(folder) => waiting.extend(
                folder
                    .flatten()
                    .map(|entry| (format!("{name}/{}", entry.file_name().to_string_lossy()), entry.path())),
            ),
            Err(_) => {
                let value = size_and_hash(&path).unwrap_or_else(|error| format!("unreadable ({error})"));
                all.push((name, value));
            }
        }
    }
    all
}

fn size_and_hash(path: &Path) -> io::Result<String> {
    // What is read from a pipe is gone.
    if !std::fs::metadata(path)?.is_file() {
        return Ok("not a regular file".to_owned());
    }
    let mut file = File::open(path)?;
    let (mut hash, mut size) = (Xxh3::new(), 0);
    let mut space = vec![0; 1 << 20];
    loop {
        let len = match file.read(&mut space) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&space[..len]);
        size += len as u64;
    }
    Ok(format!("{size} bytes with hash {:016x}", hash.digest()))
}

/// A process and what it says.
#[derive(Serialize, Deserialize)]
struct Frame {
    process: usize,
    greeting: Greeting,
}

/// Says who this is.
pub(crate) fn say(stream: &mut TcpStream, process: usize, greeting: &Greeting) -> io::Result<()> {
    let text = serde_json::to_vec(&Frame { process, greeting: greeting.clone() })?;
    let len = u32::try_from(text.len()).ok().filter(|&len| len <= LEN_MAX);
    let len = len.ok_or_else(|| io::Error::other("there are too many files for a greeting"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&len.to_be_bytes());
    bytes.extend_from_slice(&text);
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&bytes)?;
    stream.set_write_timeout(None)
}

/// Hears who another is. An error is a stranger, or a process that went away.
pub(crate) fn hear(stream: &mut TcpStream, until: Instant) -> io::Result<(usize, Greeting)> {
    let mut head = [0; 12];
    fill(stream, &mut head, until)?;
    let (magic, len) = head.split_at(MAGIC.len());
    let len = u32::from_be_bytes(len.try_into().unwrap_or_default());
    if magic != MAGIC || len > LEN_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the process at this address is not a taipan of this version",
        ));
    }
    // Memory follows what comes, not what is announced.
    let mut text = Vec::new();
    while text.len() < len as usize {
        let from = text.len();
        text.resize((from + (64 << 10)).min(len as usize), 0);
        fill(stream, &mut text[from..], until)?;
    }
    stream.set_read_timeout(None)?;
    let Frame { process, greeting } = serde_json::from_slice(&text)?;
    Ok((process, greeting))
}

/// Like `read_exact`, until a moment.
fn fill(stream: &mut TcpStream, mut into: &mut [u8], until: Instant) -> io::Result<()> {
    while !into.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => into = &mut into[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Why two processes cannot work together; `None` if they can.
pub(crate) fn refusal(own: (usize, &Greeting), other: (usize, &Greeting), address: &str) -> Option<String> {
    let differences = own.1.differences(other.1, own.0, other.0)?;
    Some(format!(
        "process {} at {address} and process {} are to do different things: {differences}. All processes need the same \
         version, flags and files",
        other.0, own.0
    ))
}
