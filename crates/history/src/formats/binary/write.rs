//! A history, or a part of one, into a frame.

use super::super::{Format, Part, WriteError};
use super::{END_FRAME, MAGIC, PART_FRAME, VERSION, predicates, section};
use crate::model::{NO_ID, TxnExtra};
use crate::names::NameEntry;
use crate::{History, Id, Names};
use bytemuck::Pod;
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// Writes a history, or the next part of one.
pub fn write(history: &History, part: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    if cfg!(target_endian = "big") {
        return Err(WriteError::cannot_hold(Format::Binary, "files written on a big-endian machine", ""));
    }
    if part.is_first() {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&[0; 4])?;
    }
    let rare = Rare::new(history);
    let list = sections(history, &rare);
    let mut head = (list.len() as u64).to_le_bytes().to_vec();
    for section in &list {
        head.extend_from_slice(&section.number.to_le_bytes());
        head.extend_from_slice(&section.width.to_le_bytes());
        head.extend_from_slice(&((section.bytes.len() / section.width as usize) as u64).to_le_bytes());
    }
    let pieces = std::iter::once(head.as_slice()).chain(list.iter().map(|section| section.bytes));
    frame(out, PART_FRAME, pieces)?;
    if part.last {
        let before = part.transactions_before + history.len() as u64;
        let operations = part.operations_before + history.op_count() as u64;
        let totals = [before.to_le_bytes(), operations.to_le_bytes()].concat();
        frame(out, END_FRAME, std::iter::once(totals.as_slice()))?;
    }
    Ok(())
}

/// Writes a frame of pieces, each padded to a multiple of 8 bytes.
fn frame<'a>(
    out: &mut dyn io::Write,
    kind: u32,
    pieces: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<(), WriteError> {
    let padding = |piece: &[u8]| &[0u8; 8][..piece.len().next_multiple_of(8) - piece.len()];
    let mut checksum = Xxh3::new();
    let mut len = 0;
    for piece in pieces.clone() {
        checksum.update(piece);
        checksum.update(padding(piece));
        len += piece.len().next_multiple_of(8) as u64;
    }
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&[0; 4])?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(&checksum.digest().to_le_bytes())?;
    for piece in pieces {
        out.write_all(piece)?;
        out.write_all(padding(piece))?;
    }
    Ok(())
}

struct Section<'a> {
    number: u32,
    width: u32,
    bytes: &'a [u8],
}

/// Columns that a history keeps in another shape.
struct Rare {
    op_extra: Vec<[u32; 2]>,
    op_extra_text: String,
    txn_extra: Vec<[u32; 4]>,
    txn_extra_text: String,
    predicates: Vec<u32>,
    clock_masks: Vec<u16>,
}

impl Rare {
    fn new(history: &History) -> Self {
        let mut rare = Self {
            op_extra: Vec::new(),
            op_extra_text: String::new(),
            txn_extra: Vec::new(),
            txn_extra_text: String::new(),
            predicates: Vec::new(),
            clock_masks: history.op_clocks.masks(),
        };
        for (op, text) in &history.op_extra {
            rare.op_extra.push([op.0, text.len() as u32]);
            rare.op_extra_text.push_str(text);
        }
        for (txn, TxnExtra { level, ctx, unknown }) in &history.txn_extra {
            let len = |text: &Option<Box<str>>| text.as_ref().map_or(NO_ID, |text| text.len() as u32);
            rare.txn_extra.push([txn.0, len(level), len(ctx), len(unknown)]);
            [level, ctx, unknown].into_iter().flatten().for_each(|text| rare.txn_extra_text.push_str(text));
        }
        for predicate in &history.predicates {
            predicates::push(&mut rare.predicates, predicate);
        }
        rare
    }
}

/// The sections that are not empty, in the order of their numbers.
fn sections<'a>(history: &'a History, rare: &'a Rare) -> Vec<Section<'a>> {
    let mut list = Vec::new();
    let out = &mut list;
    column(out, section::SESSION, history.session.as_slice());
    column(out, section::STATUS, history.status.as_slice());
    if history.id.iter().any(|&id| id != NO_ID) {
        column(out, section::ID, history.id.as_slice());
    }
    column(out, section::FIRST_OP, &history.first_op);
    column(out, section::CLIENT, &history.client);
    column(out, section::DB, &history.db);
    column(out, section::DB_LOGICAL, &history.db_logical);
    column(out, section::OPS, history.ops.as_slice());
    column(out, section::COMPOUNDS, &history.compounds);
    column(out, section::ROWS, &history.rows);
    column(out, section::KEY_LISTS, &history.key_lists);
    column(out, section::PREDICATES, &rare.predicates);
    column(out, section::CLOCK_MASKS, &rare.clock_masks);
    column(out, section::CLOCKS, history.op_clocks.bytes());
    column(out, section::OP_EXTRA, &rare.op_extra);
    column(out, section::OP_EXTRA_TEXT, rare.op_extra_text.as_bytes());
    column(out, section::TXN_EXTRA, &rare.txn_extra);
    column(out, section::TXN_EXTRA_TEXT, rare.txn_extra_text.as_bytes());
    names(out, section::KEYS, &history.keys);
    names(out, section::SESSIONS, &history.sessions);
    names(out, section::COLUMNS, &history.values.columns);
    names(out, section::IDS, &history.ids);
    column(out, section::VALUES, &history.values.entries);
    column(out, section::VALUE_TEXT, history.values.text.as_bytes());
    column(out, section::ELEMENTS, &history.values.elements);
    column(out, section::CELLS, &history.values.cells);
    column(out, section::INITIAL, &history.initial);
    column(out, section::LEVEL, history.level().unwrap_or("").as_bytes());
    column(out, section::HEADER_EXTRA, history.header_extra().unwrap_or("").as_bytes());
    list
}

fn column<'a, T: Pod>(out: &mut Vec<Section<'a>>, number: u32, items: &'a [T]) {
    if !items.is_empty() {
        out.push(Section { number, width: size_of::<T>() as u32, bytes: bytemuck::cast_slice(items) });
    }
}

fn names<'a, I: Id>(out: &mut Vec<Section<'a>>, number: u32, names: &'a Names<I>) {
    column::<NameEntry>(out, number, &names.entries);
    column(out, number + 1, names.text.as_bytes());
}
