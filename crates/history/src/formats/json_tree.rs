//! JSON forms into a [`Tree`]: for formats that are understood a transaction or an operation at a time.
//!
//! What: one value after the other, while the caller walks the outer arrays of the file with the [`Cursor`]
//! itself, so that a file of one huge array is read in the memory of one element.
//! Invariant: a form's offset is that of its first byte in the text.
//! Steps: a form, then the brackets that close after it; open brackets are frames of the tree, so there is no
//! recursion.
//! Cost: one pass.

use super::Fault;
use super::json::{Cursor, Kind, Number};
use super::tree::{Form, FrameKind, Node, Tree};
use std::borrow::Cow;

/// The bytes of a file as text.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        Fault::new(error.valid_up_to(), "bytes that are not UTF-8", "text in UTF-8 (iconv converts it)")
    })
}

/// Parses the next value into a tree that holds no open brackets.
pub(super) fn form<'a>(cursor: &mut Cursor<'a>, tree: &mut Tree<'a>) -> Result<Node<'a>, Fault> {
    loop {
        // 1. A form, or the bracket that opens one.
        let kind = cursor.peek()?;
        let offset = cursor.here();
        let mut is_first = false;
        match kind {
            Kind::Object | Kind::List => {
                let (open, frame) =
                    if kind == Kind::Object { (b'{', FrameKind::Map) } else { (b'[', FrameKind::List) };
                cursor.take(open, "a bracket")?;
                tree.open(frame, offset)?;
                is_first = true;
            }
            Kind::Null => {
                cursor.null()?;
                tree.push(Node { offset, form: Form::Nil });
            }
            Kind::Bool => {
                let value = cursor.boolean()?;
                tree.push(Node { offset, form: Form::Bool(value) });
            }
            Kind::Number => {
                let form = match cursor.number()? {
                    Number::Int(value) => Form::Int(value),
                    Number::UInt(value) => Form::UInt(value),
                    Number::Float(value) => Form::Float(value),
                };
                tree.push(Node { offset, form });
            }
            Kind::String => {
                let form = string_form(cursor.string()?, tree, offset)?;
                tree.push(Node { offset, form });
            }
        }
        // 2. Brackets that close after it, up to the next entry.
        loop {
            let Some(frame) = tree.frame() else {
                return Ok(tree.pop().expect("step 1 pushed a form, or step 2 closed one"));
            };
            let close = if frame.kind == FrameKind::Map { b'}' } else { b']' };
            if cursor.more(is_first, close)? {
                if frame.kind == FrameKind::Map {
                    let offset = cursor.here();
                    let form = string_form(cursor.field()?, tree, offset)?;
                    tree.push(Node { offset, form });
                }
                break;
            }
            let node = tree.close()?;
            tree.push(node);
            is_first = false;
        }
    }
}

fn string_form<'a>(text: Cow<'a, str>, tree: &mut Tree<'a>, offset: usize) -> Result<Form<'a>, Fault> {
    match text {
        Cow::Borrowed(text) => Ok(Form::Text(text)),
        Cow::Owned(text) => tree.unescape(offset, |out| {
            out.push_str(&text);
            Ok(())
        }),
    }
}
