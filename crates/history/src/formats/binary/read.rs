//! Frames into the builder.

use super::super::{Fault, Frame, Likeness, Probe, Warnings};
use super::checks;
use super::sections::{Sections, damaged, u32_at, u64_at};
use super::{END_FRAME, FRAME_HEADER_LEN, MAGIC, PART_FRAME, PREAMBLE_LEN, VERSION};
use crate::Builder;
use xxhash_rust::xxh3::xxh3_64;

/// Recognises the format by its first bytes.
pub fn detect(probe: &Probe<'_>) -> Likeness {
    if probe.head.starts_with(&MAGIC) { Likeness::Certain } else { Likeness::No }
}

/// How long the frame is that begins with these bytes. The preamble counts as one.
pub fn frame_length(start: &[u8]) -> Result<Option<Frame>, Fault> {
    if start.starts_with(&MAGIC) {
        return Ok(Some(Frame { len: PREAMBLE_LEN as u64, is_last: false }));
    }
    let (Some(kind), Some(len)) = (u32_at(start, 0), u64_at(start, 8)) else { return Ok(None) };
    let total = len.checked_add(FRAME_HEADER_LEN as u64);
    match (kind, total) {
        (PART_FRAME | END_FRAME, Some(total)) => Ok(Some(Frame { len: total, is_last: kind == END_FRAME })),
        _ => Err(damaged(0, "no frame of the binary form begins here")),
    }
}

/// Reads one frame.
pub fn read(bytes: &[u8], builder: &mut Builder, _: &mut Warnings) -> Result<(), Fault> {
    if bytes.starts_with(&MAGIC) {
        return preamble(bytes, builder);
    }
    if !builder.has_header() {
        return Err(damaged(0, "the file does not begin as the binary form does"));
    }
    let kind = u32_at(bytes, 0);
    if u32_at(bytes, 4) != Some(0) {
        return Err(damaged(4, "the frame's head is damaged"));
    }
    let (Some(len), Some(checksum)) = (u64_at(bytes, 8), u64_at(bytes, 16)) else {
        return Err(damaged(0, "the frame is cut off"));
    };
    let payload = &bytes[FRAME_HEADER_LEN..];
    if payload.len() as u64 != len {
        let problem =
            format!("the frame holds {len} bytes, but {} are there: the file is cut off", payload.len());
        return Err(damaged(0, problem));
    }
    if xxh3_64(payload) != checksum {
        return Err(damaged(0, "the checksum does not fit: the frame is damaged"));
    }
    if kind == Some(END_FRAME) {
        return end(payload, builder);
    }
    let sections = Sections::new(bytes, FRAME_HEADER_LEN)?;
    let part = checks::part(&sections)?;
    builder.append_part(part).map_err(|error| Fault::new(0, error.to_string(), "a possible history"))
}

fn preamble(bytes: &[u8], builder: &mut Builder) -> Result<(), Fault> {
    if cfg!(target_endian = "big") {
        return Err(Fault::new(0, "the binary form is little-endian, this machine is not", "another format"));
    }
    match (u32_at(bytes, 8), u32_at(bytes, 12)) {
        (Some(VERSION), Some(0)) => {}
        (Some(VERSION), _) | (None, _) => {
            return Err(damaged(8, "the file is cut off after its first bytes"));
        }
        (Some(version), _) => {
            return Err(other_version(version));
        }
    }
    if !builder.begin_header() {
        return Err(damaged(0, "the file begins twice"));
    }
    Ok(())
}

/// A file of another version: what to do depends on whether it is older or newer.
fn other_version(version: u32) -> Fault {
    let (problem, advice) = if version < VERSION {
        (
            "is no longer read",
            "convert the original again, or convert it to JSON lines with the taipan that wrote it",
        )
    } else {
        ("is not known", "a newer taipan may be able to read it")
    };
    let problem = format!("version {version} of the binary form {problem}");
    Fault::new(8, problem, format!("version {VERSION}; {advice}"))
}

fn end(payload: &[u8], builder: &Builder) -> Result<(), Fault> {
    let found = (builder.total_transactions(), builder.total_operations());
    match (u64_at(payload, 0), u64_at(payload, 8), payload.len()) {
        (Some(transactions), Some(operations), 16) if (transactions, operations) == found => Ok(()),
        _ => Err(damaged(
            FRAME_HEADER_LEN,
            format!(
                "the parts hold {} transactions and {} operations, the end says otherwise",
                found.0, found.1
            ),
        )),
    }
}
