//! JSON into values.

use super::super::Fault;
use super::super::json::{Cursor, DEPTH_MAX, Kind, Number};
use super::read::Scratch;
use crate::{Builder, Cell, ValueId};

/// A value: a scalar, a list or a flat object.
#[inline]
pub(super) fn value(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    depth: usize,
) -> Result<ValueId, Fault> {
    match cursor.peek()? {
        Kind::Number => Ok(match cursor.number()? {
            Number::Int(value) => builder.int(value),
            Number::UInt(value) => builder.uint(value),
            Number::Float(value) => builder.float(value),
        }),
        Kind::String => {
            let text = cursor.string()?;
            Ok(builder.text(&text))
        }
        Kind::Null => cursor.null().map(|()| ValueId::ABSENT),
        Kind::Bool => {
            let value = cursor.boolean()?;
            Ok(builder.boolean(value))
        }
        Kind::List => list(cursor, builder, scratch, depth),
        Kind::Object => row(cursor, builder, scratch),
    }
}

/// Fails if what was gathered is about to be copied and there is no room for it.
pub(super) fn room_for<T>(count: usize, cursor: &mut Cursor<'_>, builder: &Builder) -> Result<(), Fault> {
    let bytes = (count * size_of::<T>()) as u64;
    match bytes >= COPIED_UNASKED && builder.interrupt().is_due(bytes) {
        true => Err(Fault::interrupted(cursor.here())),
        false => Ok(()),
    }
}

/// Less is copied without asking.
const COPIED_UNASKED: u64 = 1 << 20;

fn list(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    depth: usize,
) -> Result<ValueId, Fault> {
    if depth == DEPTH_MAX {
        return Err(cursor.too_deep());
    }
    cursor.take(b'[', "a list")?;
    let base = scratch.elements.len();
    let mut first = true;
    let mut walk = || -> Result<ValueId, Fault> {
        while cursor.more(first, b']')? {
            first = false;
            let element = value(cursor, builder, scratch, depth + 1)?;
            scratch.elements.push(element);
        }
        room_for::<ValueId>(scratch.elements.len() - base, cursor, builder)?;
        Ok(builder.list(&scratch.elements[base..]))
    };
    let result = walk();
    scratch.elements.truncate(base);
    result
}

fn row(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<ValueId, Fault> {
    let start = cursor.here();
    cursor.take(b'{', "a row, an object of columns")?;
    scratch.cells.clear();
    while cursor.more(scratch.cells.is_empty(), b'}')? {
        let column = builder.column(&cursor.field()?);
        if let kind @ (Kind::List | Kind::Object) = cursor.peek()? {
            return Err(Fault::new(
                cursor.here(),
                format!("a column's value cannot be {}", kind.name()),
                "a flat row: a scalar in every column",
            ));
        }
        let value = value(cursor, builder, scratch, 0)?;
        scratch.cells.push(Cell { column, value });
    }
    let given = scratch.cells.len();
    room_for::<Cell>(given, cursor, builder)?;
    let row = builder.row(&mut scratch.cells);
    if scratch.cells.len() != given {
        return Err(Fault::new(start, "the row has a column twice", "each column once"));
    }
    Ok(row)
}
