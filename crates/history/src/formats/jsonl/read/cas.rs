//! Compare and set: an operation on one key with two values.

use super::super::super::Fault;
use super::super::super::json::Cursor;
use super::super::fields::{OpKind, Owner};
use super::{
    AT, Clock, KEY, OP, OP_CTX, Scratch, Seen, VALUE, clock, key, missing, op_ctx, unknown_field, value,
};
use crate::Builder;

/// Reads a compare and set, from behind what has been read of it.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    start: usize,
    op_is_taken: bool,
) -> Result<Option<Clock>, Fault> {
    let mut seen = Seen(u32::from(op_is_taken) << OP);
    let (mut found_key, mut expect, mut write, mut ok) = (None, None, None, None);
    let mut clocked = None;
    let mut first = !op_is_taken;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        let mut once = |bit: u32| seen.add(bit, at, &name);
        match &*name {
            "key" => {
                once(KEY)?;
                found_key = Some(key(cursor, builder)?);
            }
            "expect" => {
                once(VALUE)?;
                expect = Some(value(cursor, builder, scratch, 0)?);
            }
            "write" => {
                once(5)?;
                write = Some(value(cursor, builder, scratch, 0)?);
            }
            "ok" => {
                once(6)?;
                ok = Some(cursor.boolean()?);
            }
            "at" => {
                once(AT)?;
                clocked = Some(clock(cursor)?);
            }
            "op" => {
                once(OP)?;
                cursor.string()?;
            }
            "ctx" => {
                once(OP_CTX)?;
                op_ctx(cursor, scratch, at)?;
            }
            _ => unknown_field(cursor, scratch, Owner::Operation(OpKind::Cas), at, &name)?,
        }
    }
    let lacks = |name, expected| missing(start, "the operation", name, expected);
    let key = found_key.ok_or_else(|| lacks("key", "\"key\": an integer or a string"))?;
    let expect =
        expect.ok_or_else(|| lacks("expect", "\"expect\": what the key must hold; null: nothing"))?;
    let write = write.ok_or_else(|| lacks("write", "\"write\": what is written then"))?;
    builder.cas(key, expect, write, ok);
    Ok(clocked)
}
