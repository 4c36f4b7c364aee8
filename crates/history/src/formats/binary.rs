//! The binary form (`.tph`): the columns of a history as they lie in memory.
//!
//! What: a file that loads at the speed of a memory copy, for histories that are large or checked often.
//! Invariant: nothing that a file says is believed. Lengths are compared with what is there, the checksum with the
//! bytes, every id with the table it points into, every name and value with its doubles; so a file that loads
//! upholds what a [`Builder`](crate::Builder) would have upheld, and any other is refused.
//! Steps: cut into frames → read columns to where they stay, with the checksum of what comes → check them → append to
//! the builder, which takes the columns over as they are if it is empty, and else translates ids.
//! Cost: every byte is read once and checked once; no text is parsed, and no frame is held beside its columns.
//!
//! # Layout, version 2
//!
//! All numbers are little-endian; everything begins at a multiple of 8 bytes, counted from the start of the file.
//!
//! ```text
//! file     = preamble, part frames, end frame
//! preamble = 89 54 50 48 0d 0a 1a 0a  ("TPH", in bytes that text conversion would damage)
//!            version: u32 = 2, zero: u32
//! frame    = kind: u32 (1 part, 2 end), zero: u32, length of payload: u64, XXH3-64 of payload: u64, payload
//! end      = payload of a frame of kind 2: transactions: u64, operations: u64, both of all parts together
//! part     = payload of a frame of kind 1: count of sections: u32, zero: u32,
//!            that many × (section: u32, bytes an element: u32, elements: u64),
//!            then each section's elements, padded with zeros to a multiple of 8 bytes
//! ```
//!
//! A part is a history of its own, a run of consecutive transactions with all names and values they use, so that
//! a file can be written and read part by part in bounded memory; sessions of the same name go on from part to
//! part. A section that is missing is empty; one that is not listed here makes the part unreadable.
//!
//! | section | element | holds |
//! |---|---|---|
//! | 1 | u32 | session of each transaction |
//! | 2 | u8 | status: 0 committed, 1 aborted, 2 unknown |
//! | 3 | u32 | place of its id in 30, `ffffffff` for the default; missing if all are default |
//! | 4 | u32 | its first operation, and once more the count of operations |
//! | 5 | 2 × i64 | client's begin and end; `i64::MAX`, `i64::MIN` if not recorded; missing if none is |
//! | 6 | 2 × i64 | physical part of the database's start and commit, likewise |
//! | 7 | 2 × u32 | logical parts; missing if all are 0 |
//! | 8 | 12 bytes | operation: kind u8, flags u8, zero u16, a u32, b u32 |
//! | 9 | 32 bytes | operation on many keys: from u32, to u32, predicate u32, start u32, length u32, set u32, count u64 |
//! | 10 | 2 × u32 | rows that came back: key, value |
//! | 11 | u32 | keys that came back from predicate writes |
//! | 12 | u32 | predicates, as words in prefix order |
//! | 13, 14 | u16; bytes | for every 16 operations, up to the last with a clock, which have one; their clocks |
//! | 15, 16 | 2 × u32; text | operation and length of its unknown fields, ascending; a JSON object each |
//! | 17, 18 | 4 × u32; text | transaction and lengths of `level`, `ctx`, unknown fields, `ffffffff` for none; these texts |
//! | 20, 21 | name; text | keys |
//! | 22, 23 | name; text | sessions |
//! | 24, 25 | name; text | columns |
//! | 30, 31 | name; text | explicit ids |
//! | 40 | 16 bytes | values: data u64, length u32, tag u32 |
//! | 41, 42, 43 | text; u32; 2 × u32 | texts of values; elements of lists; cells of rows: column, value |
//! | 50 | 2 × u32 | initial values: key, value, ascending by key |
//! | 51, 52 | text | the header's level; its other fields, a JSON object |
//!
//! *Name*: data u64, length u32, is text u32. An integer is its data; a text is `length` bytes of the text section
//! from `data` on.
//!
//! *Value id* (b of an operation, rows, cells, elements): with the top bit set, the integer of the other 31 bits;
//! `7fffffff`, not known (reads only); else a place in section 40, whose first entry is null. Tags: 0 null, 1 truth
//! value, 2 integer (only those that fit no id), 3 integer above `i64::MAX`, 4 float (only those that are no
//! integer), 5 text, 6 list, 7 row; for the last three, data and length are a piece of 41, 42, 43. Lists hold values
//! listed before them.
//!
//! *Operations*: kinds 0 read, 1 write, 2 delete, 3 append (a is the key, b the value) and 4 scan, 5 iterate, 6 query,
//! 7 update, 8 delete-where (a is a place in section 9). Flags: 1 locks for share, 2 for update, 4 from the end,
//! 8 the end was reported. In section 9, `ffffffff` is an open bound, no predicate, or rows that are not known, and a
//! count of `ffffffffffffffff` was not reported; start and length are a piece of 10, for predicate writes of 11.
//!
//! *Clocks of operations*: in section 13 the lowest bit stands for the first of the 16. In section 14, for each
//! operation with a clock, two numbers in groups of 7 bits, the lowest group first, the top bit of a byte set if
//! another follows: how much later it begins than the clock before it in the same 16 ended (the first: than 0; after
//! one that took 2⁴⁸ or more: than that one began), doubled, or for a negative difference d as -2d - 1; and how long
//! it took.
//!
//! *Predicates*: 0 and n, all of the n that follow; 1 and n, any of them; 2, not the next; 3 to 8 (`=`, `!=`, `<`, `<=`,
//! `>`, `>=`), column, value.
//!
//! # Versions
//!
//! Version 1 held the clocks of operations as plain integers. It was never released; a file of it is refused with the
//! advice to convert the original again.

mod checks;
mod predicates;
mod read;
mod sections;
mod slices;
mod write;

pub use read::{detect, frame_length, read};
pub use slices::{Slice, read_slice, slices};
pub use write::write;

/// How a file begins.
const MAGIC: [u8; 8] = *b"\x89TPH\r\n\x1a\n";
const VERSION: u32 = 2;
const PREAMBLE_LEN: usize = 16;
const FRAME_HEADER_LEN: usize = 24;
const PART_FRAME: u32 = 1;
const END_FRAME: u32 = 2;

/// The numbers of the sections.
mod section {
    pub(super) const SESSION: u32 = 1;
    pub(super) const STATUS: u32 = 2;
    pub(super) const ID: u32 = 3;
    pub(super) const FIRST_OP: u32 = 4;
    pub(super) const CLIENT: u32 = 5;
    pub(super) const DB: u32 = 6;
    pub(super) const DB_LOGICAL: u32 = 7;
    pub(super) const OPS: u32 = 8;
    pub(super) const COMPOUNDS: u32 = 9;
    pub(super) const ROWS: u32 = 10;
    pub(super) const KEY_LISTS: u32 = 11;
    pub(super) const PREDICATES: u32 = 12;
    pub(super) const CLOCK_MASKS: u32 = 13;
    pub(super) const CLOCKS: u32 = 14;
    pub(super) const OP_EXTRA: u32 = 15;
    pub(super) const OP_EXTRA_TEXT: u32 = 16;
    pub(super) const TXN_EXTRA: u32 = 17;
    pub(super) const TXN_EXTRA_TEXT: u32 = 18;
    pub(super) const KEYS: u32 = 20;
    pub(super) const SESSIONS: u32 = 22;
    pub(super) const COLUMNS: u32 = 24;
    pub(super) const IDS: u32 = 30;
    pub(super) const VALUES: u32 = 40;
    pub(super) const VALUE_TEXT: u32 = 41;
    pub(super) const ELEMENTS: u32 = 42;
    pub(super) const CELLS: u32 = 43;
    pub(super) const INITIAL: u32 = 50;
    pub(super) const LEVEL: u32 = 51;
    pub(super) const HEADER_EXTRA: u32 = 52;

    /// How the elements of a section are aligned in memory.
    pub(super) fn align(number: u32) -> usize {
        match number {
            STATUS | CLOCKS | OP_EXTRA_TEXT | TXN_EXTRA_TEXT | VALUE_TEXT | LEVEL | HEADER_EXTRA => 1,
            CLOCK_MASKS => 2,
            CLIENT | DB | COMPOUNDS | KEYS | SESSIONS | COLUMNS | IDS | VALUES => 8,
            text if [KEYS + 1, SESSIONS + 1, COLUMNS + 1, IDS + 1].contains(&text) => 1,
            _ => 4,
        }
    }

    /// All of them; the text of a table of names has the number after the table's.
    pub(super) const ALL: &[u32] = &[
        SESSION,
        STATUS,
        ID,
        FIRST_OP,
        CLIENT,
        DB,
        DB_LOGICAL,
        OPS,
        COMPOUNDS,
        ROWS,
        KEY_LISTS,
        PREDICATES,
        CLOCK_MASKS,
        CLOCKS,
        OP_EXTRA,
        OP_EXTRA_TEXT,
        TXN_EXTRA,
        TXN_EXTRA_TEXT,
        KEYS,
        KEYS + 1,
        SESSIONS,
        SESSIONS + 1,
        COLUMNS,
        COLUMNS + 1,
        IDS,
        IDS + 1,
        VALUES,
        VALUE_TEXT,
        ELEMENTS,
        CELLS,
        INITIAL,
        LEVEL,
        HEADER_EXTRA,
    ];
}
