//! The sections of a part: found, measured and read to where they stay.

use super::super::{Fault, FrameBytes, FrameError};
use super::{VERSION, section};
use bytemuck::Pod;
use bytemuck::allocation::{try_cast_vec, try_zeroed_vec};
use std::cell::Cell;
use std::io;
use xxhash_rust::xxh3::Xxh3;

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
    /// How many bytes of a payload say how long the list of its sections is.
    pub(super) const COUNT_LEN: usize = 8;
    /// How many hold the list, at most.
    pub(super) const LIST_LEN_MAX: usize = Self::COUNT_LEN + section::ALL.len() * ENTRY_LEN;

    /// How many bytes hold the list of the payload that begins with these.
    pub(super) fn len_of_list(payload: &[u8]) -> usize {
        let count = u32_at(payload, 0).unwrap_or(0) as usize;
        count.saturating_mul(ENTRY_LEN).saturating_add(Self::COUNT_LEN)
    }

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
                    format!("sections of version {VERSION}; a newer version of taipan may read it"),
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

/// What columns are taken from.
pub(super) trait Columns {
    /// Where a section lies; one that is missing lies, empty, at the start.
    fn place(&self, number: u32) -> Place;

    /// A column, for the first time.
    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault>;

    /// A text, for the first time.
    fn text(&self, number: u32) -> Result<String, Fault> {
        let text = String::from_utf8(self.column(number)?);
        text.map_err(|error| {
            self.place(number).fault(error.utf8_error().valid_up_to(), "the text is not UTF-8")
        })
    }
}

/// The columns of a part, as they came.
pub(super) struct Sections {
    places: Places,
    /// Each is taken once.
    columns: Vec<(u32, Cell<Words>)>,
}

impl Sections {
    /// Reads all sections of a part, each straight to where it stays; the list of them has been read.
    pub(super) fn read(places: Places, payload: &mut Payload<'_, '_>) -> Result<Self, FrameError> {
        let mut columns = Vec::with_capacity(places.0.len());
        for (number, place) in &places.0 {
            let &Place { width, len, .. } = place;
            let bytes = len * width;
            let words = match section::align(*number) {
                2 if width % 2 == 0 => Words::U16(payload.words(bytes, width)?),
                4 if width % 4 == 0 => Words::U32(payload.words(bytes, width)?),
                8 if width % 8 == 0 => Words::U64(payload.words(bytes, width)?),
                _ => Words::U8(payload.words(bytes, width)?),
            };
            columns.push((*number, Cell::new(words)));
            payload.take(&mut [0; 8][..bytes.next_multiple_of(8) - bytes])?;
        }
        Ok(Self { places, columns })
    }
}

impl Columns for Sections {
    fn place(&self, number: u32) -> Place {
        self.places.get(number)
    }

    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault> {
        self.places.of_width(number, size_of::<T>())?;
        let found = self.columns.iter().find(|(other, _)| *other == number);
        Ok(found.map_or_else(Vec::new, |(_, words)| words.take().into_column()))
    }
}

/// A column before its type is known: words that are aligned as it will be.
enum Words {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Default for Words {
    fn default() -> Self {
        Self::U8(Vec::new())
    }
}

impl Words {
    /// The same memory as elements of their type; copied if it is aligned in another way.
    fn into_column<T: Pod>(self) -> Vec<T> {
        fn cast<W: Pod, T: Pod>(words: Vec<W>) -> Vec<T> {
            try_cast_vec(words).unwrap_or_else(|(_, words)| bytemuck::pod_collect_to_vec(&words))
        }
        match self {
            Self::U8(words) => cast(words),
            Self::U16(words) => cast(words),
            Self::U32(words) => cast(words),
            Self::U64(words) => cast(words),
        }
    }
}

/// The payload of a frame while it comes, and its checksum.
pub(super) struct Payload<'p, 'f> {
    frame: &'p mut FrameBytes<'f>,
    checksum: Xxh3,
}

/// How much is read at once: what has just come is in the cache when its checksum is taken.
const BLOCK_LEN: usize = 128 << 10;

impl<'p, 'f> Payload<'p, 'f> {
    /// What is left of a frame.
    pub(super) fn of(frame: &'p mut FrameBytes<'f>) -> Self {
        Self { frame, checksum: Xxh3::new() }
    }

    /// The next bytes.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Result<(), FrameError> {
        for block in into.chunks_mut(BLOCK_LEN) {
            self.frame.take(block)?;
            self.checksum.update(block);
        }
        Ok(())
    }

    /// Passes over bytes.
    fn skip(&mut self, len: u64) -> Result<(), FrameError> {
        let mut block = vec![0; usize::try_from(len).map_or(BLOCK_LEN, |len| len.min(BLOCK_LEN))];
        let mut left = len;
        while left > 0 {
            let now = left.min(BLOCK_LEN as u64);
            self.take(&mut block[..now as usize])?;
            left -= now;
        }
        Ok(())
    }

    /// The next bytes as words, in elements of `width` bytes each. No more memory is taken than bytes come.
    fn words<W: Pod>(&mut self, bytes: usize, width: usize) -> Result<Vec<W>, FrameError> {
        let size = size_of::<W>();
        let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let sure = usize::try_from(self.frame.sure()).map_or(bytes, |sure| sure.min(bytes));
        let mut words: Vec<W> =
            try_zeroed_vec(sure / width.max(1) * width / size).map_err(|()| no_memory())?;
        self.take(bytemuck::cast_slice_mut(&mut words))?;
        // Whole elements, so that they are where they stay; an element that is larger than a block is none.
        let block = if (1..=BLOCK_LEN).contains(&width) { BLOCK_LEN / width * width } else { BLOCK_LEN };
        while words.len() * size < bytes {
            let (had, left) = (words.len(), bytes - words.len() * size);
            let more = block.min(left) / size;
            if words.capacity() < had + more {
                words.try_reserve_exact(had.max(more)).map_err(|_| no_memory())?;
            }
            words.resize(had + more, W::zeroed());
            self.take(bytemuck::cast_slice_mut(&mut words[had..]))?;
        }
        Ok(words)
    }

    /// Takes what is left. Is all as it was written?
    pub(super) fn verify(mut self, checksum: u64) -> Result<(), FrameError> {
        self.skip(self.frame.left())?;
        if self.checksum.digest() == checksum { Ok(()) } else { Err(unsound().into()) }
    }
}

/// A fault of a frame that is not as it was written.
pub(super) fn unsound() -> Fault {
    damaged(0, "the checksum does not fit: the frame is damaged")
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
