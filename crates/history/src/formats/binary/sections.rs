//! The sections of a part: found, measured and copied.

use super::super::Fault;
use super::{VERSION, section};
use bytemuck::Pod;

/// Where one section lies in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// From the start of the frame.
    pub(super) offset: usize,
    pub(super) width: usize,
    pub(super) len: usize,
}

impl Place {
    /// A fault at one of the section's elements.
    #[cold]
    pub(super) fn fault(&self, index: usize, problem: impl Into<String>) -> Fault {
        damaged(self.offset + index * self.width, problem)
    }
}

/// A fault of a file that a writer cannot have written.
#[cold]
pub(super) fn damaged(offset: usize, problem: impl Into<String>) -> Fault {
    Fault::new(offset, problem, "a file as `taipan convert` writes it; convert the original again")
}

/// Where the sections of a part lie, by number.
#[derive(Debug)]
pub(super) struct Places(Vec<(u32, Place)>);

const ENTRY_LEN: usize = 16;

impl Places {
    /// How many bytes of a payload hold the list of its sections, at most.
    pub(super) const LIST_LEN_MAX: usize = 8 + section::ALL.len() * ENTRY_LEN;

    /// Reads the list from the beginning of a frame of `frame_len` bytes whose payload begins at `start`.
    pub(super) fn new(head: &[u8], start: usize, frame_len: usize) -> Result<Self, Fault> {
        let count =
            u32_at(head, start).ok_or_else(|| damaged(start, "the part has no list of sections"))? as usize;
        let list = start + 8;
        let mut offset = count
            .checked_mul(ENTRY_LEN)
            .and_then(|len| list.checked_add(len))
            .filter(|&end| end <= head.len())
            .ok_or_else(|| damaged(start, "the list of sections is longer than the part"))?;
        let mut places: Vec<(u32, Place)> = Vec::with_capacity(count.min(section::ALL.len()));
        for entry in (list..offset).step_by(ENTRY_LEN) {
            let number = u32_at(head, entry).unwrap_or(0);
            let width = u32_at(head, entry + 4).unwrap_or(0) as usize;
            let len = u64_at(head, entry + 8).unwrap_or(u64::MAX);
            if !section::ALL.contains(&number) {
                return Err(Fault::new(
                    entry,
                    format!("section {number} is not known"),
                    format!("sections of version {VERSION}; a newer taipan may be able to read it"),
                ));
            }
            if places.iter().any(|(other, _)| *other == number) {
                return Err(damaged(entry, format!("section {number} comes twice")));
            }
            let end = usize::try_from(len)
                .ok()
                .and_then(|len| len.checked_mul(width))
                .and_then(|bytes| bytes.checked_next_multiple_of(8))
                .and_then(|bytes| offset.checked_add(bytes))
                .filter(|&end| end <= frame_len)
                .ok_or_else(|| damaged(entry, format!("section {number} is longer than the part")))?;
            places.push((number, Place { offset, width, len: len as usize }));
            offset = end;
        }
        if offset != frame_len {
            return Err(damaged(offset, "the part goes on after its last section"));
        }
        Ok(Self(places))
    }

    /// Where a section lies; one that is missing lies, empty, at the start.
    pub(super) fn get(&self, number: u32) -> Place {
        let found = self.0.iter().find(|(other, _)| *other == number);
        found.map_or(Place { offset: 0, width: 1, len: 0 }, |(_, place)| *place)
    }

    /// The same, if its elements are of so many bytes.
    pub(super) fn of_width(&self, number: u32, width: usize) -> Result<Place, Fault> {
        let place = self.get(number);
        if place.len > 0 && place.width != width {
            let problem = format!("section {number} has elements of {} bytes, not {width}", place.width);
            return Err(place.fault(0, problem));
        }
        Ok(place)
    }

    /// The sections that are not empty.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter(|(_, place)| place.len > 0).map(|(number, _)| *number)
    }
}

/// What columns are copied from.
pub(super) trait Columns {
    /// Where a section lies; one that is missing lies, empty, at the start.
    fn place(&self, number: u32) -> Place;

    /// A copy of a column.
    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault>;

    /// A copy of a text.
    fn text(&self, number: u32) -> Result<String, Fault> {
        let text = String::from_utf8(self.column(number)?);
        text.map_err(|error| {
            self.place(number).fault(error.utf8_error().valid_up_to(), "the text is no UTF-8")
        })
    }
}

/// A frame in memory.
pub(super) struct Sections<'a> {
    frame: &'a [u8],
    places: Places,
}

impl<'a> Sections<'a> {
    /// Reads the list of sections; `start` is where the payload begins in the frame.
    pub(super) fn new(frame: &'a [u8], start: usize) -> Result<Self, Fault> {
        Ok(Self { frame, places: Places::new(frame, start, frame.len())? })
    }
}

impl Columns for Sections<'_> {
    fn place(&self, number: u32) -> Place {
        self.places.get(number)
    }

    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault> {
        let place = self.places.of_width(number, size_of::<T>())?;
        let bytes = &self.frame[place.offset..place.offset + place.len * place.width];
        Ok(match bytemuck::try_cast_slice(bytes) {
            Ok(aligned) => aligned.to_vec(),
            Err(_) => bytemuck::pod_collect_to_vec(bytes),
        })
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
