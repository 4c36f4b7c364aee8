//! One parsed form, JSON or EDN: what the readers of formats made of nested text look at.
//!
//! A tree holds one form at a time (an operation map, a transaction) and is filled again for the next, so
//! memory follows the largest form, not the file. The children of a node lie side by side: a parser puts
//! finished forms on a stack and, when a bracket closes, moves the part that the bracket encloses into the
//! table of nodes. No recursion, one allocation a growth.

use super::Fault;
use super::json::{DEPTH_MAX, push_string};
use crate::{Builder, Cell, KeyId, NameRef, ValueId};
use std::io::Write as _;

/// A form and where it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) offset: usize,
    pub(super) form: Form<'a>,
}

/// What a form is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form<'a> {
    /// `null`, `nil`.
    Nil,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    Float(f64),
    /// A number that no machine type holds, as it was written.
    Big(&'a str),
    /// A string without escapes.
    Text(&'a str),
    /// A string with escapes undone: a piece of the tree's text.
    Unescaped(Piece),
    /// An EDN keyword (without the colon) or symbol.
    Word(&'a str),
    /// An array, vector or list.
    List(Piece),
    /// An EDN set.
    Set(Piece),
    /// An object or map: keys and values in turn.
    Map(Piece),
}

/// A stretch of one of the tree's tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    start: u32,
    len: u32,
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    /// Where the bracket is.
    pub(super) offset: usize,
    /// How high the stack was when it opened.
    mark: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    List,
    Set,
    Map,
    /// EDN's `#_`: takes one form and vanishes.
    Discard,
    /// EDN's `#tag`: takes one form and is that form.
    Tag,
}

/// The tables that nodes point into.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    text: String,
    /// Finished forms whose bracket is still open.
    stack: Vec<Node<'a>>,
    frames: Vec<Frame>,
}

impl<'a> Tree<'a> {
    /// Forgets all forms; tables keep their memory.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.text.clear();
        self.stack.clear();
        self.frames.clear();
    }

    // ---- for parsers ----

    /// Opens a bracket.
    pub(super) fn open(&mut self, kind: FrameKind, offset: usize) -> Result<(), Fault> {
        if self.frames.len() == DEPTH_MAX {
            return Err(Fault::new(
                offset,
                format!("brackets nest deeper than {DEPTH_MAX}"),
                "a history, which nests five levels at most",
            ));
        }
        self.frames.push(Frame { kind, offset, mark: self.stack.len() });
        Ok(())
    }

    /// The innermost open bracket.
    #[inline]
    pub(super) fn frame(&self) -> Option<Frame> {
        self.frames.last().copied()
    }

    /// How many forms the innermost bracket holds so far.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.stack.len() - self.frames.last().map_or(0, |frame| frame.mark)
    }

    /// Adds a finished form to the innermost bracket.
    #[inline]
    pub(super) fn push(&mut self, node: Node<'a>) {
        self.stack.push(node);
    }

    /// The form added last.
    pub(super) fn pop(&mut self) -> Option<Node<'a>> {
        self.stack.pop()
    }

    /// Drops the innermost bracket itself; what it holds goes to the bracket around it.
    pub(super) fn dissolve(&mut self) {
        self.frames.pop();
    }

    /// Closes the innermost bracket and makes a node of it.
    pub(super) fn close(&mut self) -> Result<Node<'a>, Fault> {
        let frame = self.frames.pop().expect("parsers close only what they opened");
        let start = table_index(self.nodes.len(), frame.offset)?;
        self.nodes.extend_from_slice(&self.stack[frame.mark..]);
        let len = table_index(self.stack.len() - frame.mark, frame.offset)?;
        self.stack.truncate(frame.mark);
        let piece = Piece { start, len };
        let form = match frame.kind {
            FrameKind::Set => Form::Set(piece),
            FrameKind::Map => Form::Map(piece),
            FrameKind::List | FrameKind::Discard | FrameKind::Tag => Form::List(piece),
        };
        Ok(Node { offset: frame.offset, form })
    }

    /// The text that escapes are undone into.
    pub(super) fn unescape(
        &mut self,
        offset: usize,
        undo: impl FnOnce(&mut String) -> Result<(), Fault>,
    ) -> Result<Form<'a>, Fault> {
        let start = table_index(self.text.len(), offset)?;
        undo(&mut self.text)?;
        let len = table_index(self.text.len(), offset)? - start;
        Ok(Form::Unescaped(Piece { start, len }))
    }

    // ---- for readers ----

    /// The children of a list, set or map; nothing for any other form.
    #[inline]
    pub(super) fn children(&self, node: Node<'a>) -> &[Node<'a>] {
        match node.form {
            Form::List(piece) | Form::Set(piece) | Form::Map(piece) => {
                &self.nodes[piece.start as usize..(piece.start + piece.len) as usize]
            }
            _ => &[],
        }
    }

    /// The text of a string, keyword or symbol.
    #[inline]
    pub(super) fn text(&self, node: Node<'a>) -> Option<&str> {
        match node.form {
            Form::Text(text) | Form::Word(text) => Some(text),
            Form::Unescaped(piece) => {
                Some(&self.text[piece.start as usize..(piece.start + piece.len) as usize])
            }
            _ => None,
        }
    }

    /// The entries of a map; nothing for any other form.
    pub(super) fn entries(&self, node: Node<'a>) -> impl Iterator<Item = (Node<'a>, Node<'a>)> {
        let children = if matches!(node.form, Form::Map(_)) { self.children(node) } else { &[] };
        children.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// The value of a map's entry; of two entries of one name the last counts.
    pub(super) fn entry(&self, node: Node<'a>, name: &str) -> Option<Node<'a>> {
        self.entries(node).filter(|(key, _)| self.text(*key) == Some(name)).map(|(_, value)| value).last()
    }

    /// A form as a key: integers and texts as they are, anything else by the text that it is written as.
    pub(super) fn key(&self, node: Node<'a>, builder: &mut Builder) -> KeyId {
        match (node.form, self.text(node)) {
            (Form::Int(value), _) => builder.key(NameRef::Int(value)),
            (_, Some(text)) => builder.key(NameRef::Str(text)),
            _ => builder.key(NameRef::Str(&self.json(node))),
        }
    }

    /// A form as a value. Lists and flat maps keep their shape; what nests deeper inside them becomes the text
    /// that it is written as.
    pub(super) fn value(&self, node: Node<'a>, builder: &mut Builder) -> ValueId {
        match node.form {
            Form::List(_) | Form::Set(_) => {
                let elements: Vec<ValueId> =
                    self.children(node).iter().map(|&child| self.scalar(child, builder)).collect();
                builder.list(&elements)
            }
            Form::Map(_) => {
                let mut cells: Vec<Cell> = Vec::new();
                for (name, value) in self.entries(node) {
                    let column = match self.text(name) {
                        Some(text) => builder.column(text),
                        None => builder.column(&self.json(name)),
                    };
                    cells.push(Cell { column, value: self.scalar(value, builder) });
                }
                builder.row(&mut cells)
            }
            _ => self.scalar(node, builder),
        }
    }

    /// A form as a scalar.
    fn scalar(&self, node: Node<'a>, builder: &mut Builder) -> ValueId {
        match node.form {
            Form::Nil => ValueId::ABSENT,
            Form::Bool(value) => builder.boolean(value),
            Form::Int(value) => builder.int(value),
            Form::UInt(value) => builder.uint(value),
            Form::Float(value) => builder.float(value),
            Form::Big(text) => builder.text(text),
            Form::Text(_) | Form::Word(_) | Form::Unescaped(_) => {
                builder.text(self.text(node).unwrap_or_default())
            }
            Form::List(_) | Form::Set(_) | Form::Map(_) => builder.text(&self.json(node)),
        }
    }

    /// A form as compact JSON: sets are arrays, keywords are strings, map keys that are no text are written as
    /// the text of their JSON.
    pub(super) fn json(&self, node: Node<'a>) -> String {
        let mut out = Vec::new();
        self.write_json(node, &mut out);
        String::from_utf8(out).expect("JSON is written from text")
    }

    /// Depth is bounded by [`DEPTH_MAX`], so this may recurse.
    fn write_json(&self, node: Node<'a>, out: &mut Vec<u8>) {
        match node.form {
            Form::Nil => out.extend(b"null"),
            Form::Bool(value) => _ = write!(out, "{value}"),
            Form::Int(value) => _ = write!(out, "{value}"),
            Form::UInt(value) => _ = write!(out, "{value}"),
            Form::Float(value) if value.is_finite() => _ = write!(out, "{value:?}"),
            Form::Float(value) => _ = write!(out, "\"{value}\""),
            Form::Big(text) => push_string(out, text),
            Form::Text(_) | Form::Word(_) | Form::Unescaped(_) => {
                push_string(out, self.text(node).unwrap_or_default());
            }
            Form::List(_) | Form::Set(_) => {
                out.push(b'[');
                for (index, &child) in self.children(node).iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.write_json(child, out);
                }
                out.push(b']');
            }
            Form::Map(_) => {
                out.push(b'{');
                for (index, (name, value)) in self.entries(node).enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    match self.text(name) {
                        Some(text) => push_string(out, text),
                        None => push_string(out, &self.json(name)),
                    }
                    out.push(b':');
                    self.write_json(value, out);
                }
                out.push(b'}');
            }
        }
    }
}

/// A form of more than four billion parts does not fit the tables.
fn table_index(value: usize, offset: usize) -> Result<u32, Fault> {
    u32::try_from(value).map_err(|_| {
        Fault::new(
            offset,
            "one form holds more than four billion parts",
            "a history of many small transactions",
        )
    })
}
