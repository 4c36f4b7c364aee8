//! Frames into the builder.

use super::super::{Fault, Frame, FrameBytes, FrameError, Likeness, Probe};
use super::checks;
use super::sections::{Payload, Places, Sections, damaged, u32_at, u64_at};
use super::{END_FRAME, FRAME_HEADER_LEN, MAGIC, PART_FRAME, PREAMBLE_LEN, VERSION};
use crate::{BuildError, Builder};

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
pub fn read(frame: &mut FrameBytes<'_>, builder: &mut Builder) -> Result<(), FrameError> {
    let mut head = vec![0; FRAME_HEADER_LEN];
    frame.take(&mut head[..PREAMBLE_LEN])?;
    if head.starts_with(&MAGIC) {
        return Ok(preamble(&head[..PREAMBLE_LEN], builder)?);
    }
    if !builder.has_header() {
        return Err(damaged(0, "the file does not start like the binary format").into());
    }
    frame.take(&mut head[PREAMBLE_LEN..])?;
    let (kind, len, checksum) = (u32_at(&head, 0), u64_at(&head, 8), u64_at(&head, 16).unwrap_or(0));
    if u32_at(&head, 4) != Some(0) || len != Some(frame.left()) {
        return Err(damaged(4, "the frame's head is damaged").into());
    }
    if kind == Some(END_FRAME) { end(frame, checksum, builder) } else { part(frame, head, checksum, builder) }
}

fn part(
    frame: &mut FrameBytes<'_>,
    mut head: Vec<u8>,
    checksum: u64,
    builder: &mut Builder,
) -> Result<(), FrameError> {
    let frame_len = usize::try_from(frame.len()).map_err(|_| damaged(0, "the frame is too long"))?;
    let list_len = frame.left().min(Places::LIST_LEN_MAX as u64) as usize;
    let mut payload = Payload::of(frame);
    let mut list = |len: usize| {
        let had = head.len();
        head.resize(FRAME_HEADER_LEN + len, 0);
        payload.take(&mut head[had..])?;
        Ok::<_, FrameError>(Places::len_of_list(&head[FRAME_HEADER_LEN..]))
    };
    // Its length comes first.
    let len = list(Places::COUNT_LEN.min(list_len))?;
    list(len.min(list_len))?;
    let sections = match Places::new(&head, FRAME_HEADER_LEN, frame_len) {
        Ok(places) => Ok(Sections::read(places, &mut payload)?),
        Err(fault) => Err(fault),
    };
    // Whatever else may be wrong comes from damage, if there is any.
    payload.verify(checksum)?;
    let part = checks::part(&sections?)?;
    let refused = |error: BuildError| Fault::new(0, error.to_string(), "a possible history");
    Ok(builder.append_part(part).map_err(refused)?)
}

fn preamble(bytes: &[u8], builder: &mut Builder) -> Result<(), Fault> {
    if cfg!(target_endian = "big") {
        return Err(Fault::new(0, "the binary form is little-endian, this machine is not", "another format"));
    }
    match (u32_at(bytes, 8), u32_at(bytes, 12)) {
        (Some(VERSION), Some(0)) => {}
        (Some(VERSION), _) | (None, _) => {
            return Err(damaged(8, "the file is truncated after its first bytes"));
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
            "convert the original again, or convert it to JSON lines with the version of taipan that wrote it",
        )
    } else {
        ("is not known", "a newer version of taipan may read it")
    };
    let problem = format!("version {version} of the binary form {problem}");
    Fault::new(8, problem, format!("version {VERSION}; {advice}"))
}

fn end(frame: &mut FrameBytes<'_>, checksum: u64, builder: &Builder) -> Result<(), FrameError> {
    let len = frame.left();
    let mut payload = Payload::of(frame);
    let mut totals = [0; 16];
    payload.take(&mut totals[..len.min(16) as usize])?;
    payload.verify(checksum)?;
    let found = (builder.total_transactions(), builder.total_operations());
    match (u64_at(&totals, 0), u64_at(&totals, 8), len) {
        (Some(transactions), Some(operations), 16) if (transactions, operations) == found => Ok(()),
        _ => {
            let (transactions, operations) = found;
            let problem = format!(
                "the parts hold {transactions} transactions and {operations} operations, the end says otherwise"
            );
            Err(damaged(FRAME_HEADER_LEN, problem).into())
        }
    }
}
