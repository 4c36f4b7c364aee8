//! Predicates as JSON: `{"v1": 3}`, `{"v1": {">=": 10, "<": 20}}`, `{"or": [P, Q]}`, `{"not": P}`.
//!
//! `or` with a list is a disjunction and `not` with an object a negation; anything else at these names is a column
//! that happens to be called so.

use super::super::json::{Cursor, DEPTH_MAX, Kind, push_string};
use super::super::meaning::{KEY, about_keys};
use super::super::{Fault, Format, WriteError};
use super::read::{Scratch, twice};
use super::value::value;
use super::write::push_value;
use crate::{Builder, ColumnId, Comparison, History, NameRef, Predicate, ValueId, ValueRef};

pub(super) fn read(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
) -> Result<Predicate, Fault> {
    nested(cursor, builder, scratch, 0)
}

fn nested(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    depth: usize,
) -> Result<Predicate, Fault> {
    if depth == DEPTH_MAX {
        return Err(cursor.too_deep());
    }
    cursor.take(b'{', "a predicate, an object of columns and conditions")?;
    let mut parts = Vec::new();
    let mut names: Vec<String> = Vec::new();
    while cursor.more(names.is_empty(), b'}')? {
        let at = cursor.here();
        let name = cursor.field()?.into_owned();
        if names.contains(&name) {
            return Err(twice(at, &name));
        }
        match (name.as_str(), cursor.peek()?) {
            ("or", Kind::List) => {
                cursor.take(b'[', "a list of predicates")?;
                let mut any = Vec::new();
                while cursor.more(any.is_empty(), b']')? {
                    any.push(nested(cursor, builder, scratch, depth + 1)?);
                }
                parts.push(Predicate::Any(any));
            }
            ("not", Kind::Object) => {
                parts.push(Predicate::Not(Box::new(nested(cursor, builder, scratch, depth + 1)?)));
            }
            (KEY, _) => return Err(about_keys(at)),
            (_, Kind::Object) => {
                let column = builder.column(&name);
                comparisons(cursor, builder, scratch, column, &mut parts)?;
            }
            _ => {
                let column = builder.column(&name);
                let constant = value(cursor, builder, scratch, 0)?;
                parts.push(Predicate::Compare { column, with: Comparison::Equal, constant });
            }
        }
        names.push(name);
    }
    Ok(match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            Predicate::All(parts)
        }
    })
}

fn comparisons(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    column: ColumnId,
    parts: &mut Vec<Predicate>,
) -> Result<(), Fault> {
    let expected = "comparisons: =, !=, <, <=, >, >= and a constant each";
    cursor.take(b'{', expected)?;
    let mut seen: Vec<Comparison> = Vec::new();
    while cursor.more(seen.is_empty(), b'}')? {
        let at = cursor.here();
        let symbol = cursor.field()?;
        let with = Comparison::ALL.iter().find(|(known, _)| *known == symbol).map(|(_, with)| *with);
        let Some(with) = with else {
            return Err(Fault::new(at, format!("unknown comparison `{symbol}`"), expected));
        };
        if seen.contains(&with) {
            return Err(twice(at, &symbol));
        }
        seen.push(with);
        let constant = value(cursor, builder, scratch, 0)?;
        parts.push(Predicate::Compare { column, with, constant });
    }
    if seen.is_empty() {
        return Err(Fault::new(cursor.here() - 1, "the column has no condition", expected));
    }
    Ok(())
}

pub(super) fn write(out: &mut Vec<u8>, history: &History, predicate: &Predicate) -> Result<(), WriteError> {
    let writer = Writer { history };
    let parts = match predicate {
        Predicate::All(parts) => parts.as_slice(),
        single => std::slice::from_ref(single),
    };
    writer.object(out, parts)
}

struct Writer<'h> {
    history: &'h History,
}

impl<'h> Writer<'h> {
    /// A conjunction as one object, if no two parts need the same field; else as the negation of a disjunction.
    fn object(&self, out: &mut Vec<u8>, parts: &[Predicate]) -> Result<(), WriteError> {
        if !self.fits_one_object(parts) {
            out.extend_from_slice(b"{\"not\":{\"or\":[");
            for (index, part) in parts.iter().enumerate() {
                comma(out, index);
                out.extend_from_slice(b"{\"not\":");
                self.nested(out, part)?;
                out.push(b'}');
            }
            out.extend_from_slice(b"]}}");
            return Ok(());
        }
        out.push(b'{');
        let mut index = 0;
        while index < parts.len() {
            comma(out, index);
            match &parts[index] {
                Predicate::Any(any) => {
                    out.extend_from_slice(b"\"or\":[");
                    for (index, part) in any.iter().enumerate() {
                        comma(out, index);
                        self.nested(out, part)?;
                    }
                    out.push(b']');
                }
                Predicate::Not(part) => {
                    out.extend_from_slice(b"\"not\":");
                    self.nested(out, part)?;
                }
                Predicate::Compare { column, .. } => {
                    index += self.column(out, *column, &parts[index..])? - 1;
                }
                Predicate::All(_) => unreachable!("fits_one_object() admits no conjunction in a conjunction"),
            }
            index += 1;
        }
        out.push(b'}');
        Ok(())
    }

    fn nested(&self, out: &mut Vec<u8>, part: &Predicate) -> Result<(), WriteError> {
        write(out, self.history, part)
    }

    /// The conditions on one column that stand next to each other; how many there are.
    fn column(&self, out: &mut Vec<u8>, column: ColumnId, parts: &[Predicate]) -> Result<usize, WriteError> {
        let conditions: Vec<(Comparison, ValueId)> = parts
            .iter()
            .map_while(|part| match part {
                Predicate::Compare { column: other, with, constant } if *other == column => {
                    Some((*with, *constant))
                }
                _ => None,
            })
            .collect();
        let name = self.column_name(column);
        push_string(out, name);
        out.push(b':');
        if let [(Comparison::Equal, constant)] = conditions[..]
            && self.is_plain(constant)
        {
            push_value(out, self.history, constant);
            return Ok(1);
        }
        if name == "not" {
            return Err(WriteError::cannot_hold(Format::Jsonl, "comparisons of a column called `not`", ""));
        }
        out.push(b'{');
        for (index, (with, constant)) in conditions.iter().enumerate() {
            comma(out, index);
            push_string(out, with.symbol());
            out.push(b':');
            push_value(out, self.history, *constant);
        }
        out.push(b'}');
        Ok(conditions.len())
    }

    /// Whether a constant can stand beside its column without `=`: an object would be read as comparisons, and a
    /// list at the name `or` as a disjunction.
    fn is_plain(&self, constant: ValueId) -> bool {
        !matches!(self.history.values().get(constant), ValueRef::Row(_) | ValueRef::List(_))
    }

    fn column_name(&self, column: ColumnId) -> &'h str {
        match self.history.values().columns().get(column) {
            NameRef::Str(name) => name,
            NameRef::Int(_) => unreachable!("columns are interned as text"),
        }
    }

    fn fits_one_object(&self, parts: &[Predicate]) -> bool {
        // One field a part, except that neighbouring comparisons of one column share theirs.
        let mut fields: Vec<&str> = Vec::new();
        let mut comparisons: Vec<Comparison> = Vec::new();
        let mut last_column = None;
        for part in parts {
            let (field, column) = match part {
                Predicate::All(_) => return false,
                Predicate::Any(_) => ("or", None),
                Predicate::Not(_) => ("not", None),
                Predicate::Compare { column, .. } => (self.column_name(*column), Some(*column)),
            };
            if column.is_none() || column != last_column {
                if fields.contains(&field) {
                    return false;
                }
                fields.push(field);
                comparisons.clear();
            }
            if let Predicate::Compare { with, .. } = part {
                if comparisons.contains(with) {
                    return false;
                }
                comparisons.push(*with);
            }
            last_column = column;
        }
        true
    }
}

fn comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}
