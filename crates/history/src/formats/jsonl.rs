//! JSON lines, one transaction per line: the native format.
//!
//! What: reads and writes everything a history can hold. The fields of a line, an operation or a clock may come in
//! any order; fields that the format does not define are refused (`fields`), or ignored and counted where
//! reading is lenient.
//! Invariant: a line either becomes exactly one transaction (or the header) or is refused as a whole with the place
//! of the first thing that is wrong; a refused transaction leaves nothing behind in the builder.
//! Steps: cut the bytes into lines → one pass over each line, straight into the builder; no tree is built. Only an
//! operation whose `op` is not its first field is looked at twice, once to find out what it is.
//! Cost: one pass; memory beside the builder is one line's scratch space.

mod fields;
mod predicate;
mod read;
mod value;
mod write;

pub(super) use read::first_line_fields;
pub use read::{detect, read};
pub use write::{header_line, transaction_line, with_timestamps, write};
