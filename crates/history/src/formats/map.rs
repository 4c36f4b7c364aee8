//! Memory-mapped files: the one module of this crate with `unsafe` code.
//!
//! A mapped file is a `&[u8]` whose bytes another process could change or cut off while we look at them. The
//! compiler cannot know, so making the map is `unsafe`. What makes it sound enough here:
//!
//! * The map is private and read-only: nothing we do changes the file.
//! * No reader keeps a reference into the map beyond its call, and none validates bytes first and trusts them
//!   later through `unsafe`: all checks are ordinary checked slicing, and text is validated and used in one go.
//!   A byte that changes in between can make a history wrong or a reader refuse; it cannot break memory safety
//!   of our own structures, which are copies.
//! * A file that is cut off while it is mapped makes the kernel stop the process with SIGBUS. That is the usual
//!   price of a map, and the reason why only regular files are mapped, never pipes or devices.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

/// Maps a regular file that is not empty.
pub(super) fn map(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: see the head of this module.
    let map = unsafe { memmap2::Mmap::map(file) }?;
    #[cfg(unix)]
    // Readers go through the file once, from its beginning to its end. A refused hint changes nothing.
    let _ = map.advise(memmap2::Advice::Sequential);
    Ok(map)
}
